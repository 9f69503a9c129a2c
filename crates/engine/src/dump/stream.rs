//! Streams: packs of entries, counters, groups with what is pending, and remembered producers.
//!
//! ```text
//! pack:  id of 16 bytes (big-endian), listpack: count, deleted, names: (count, name..., 0),
//!        entry: (flags, ms, seq, [count, name, value... | value...], elements of this entry)
//! value: packs, length, last id, [first id, greatest deleted id, entries added], groups,
//!        [duration, names a producer, producers: (name, (message, id)...)..., added, duplicates]
//! group: name, last id, [entries read], pending: (id, time, deliveries)...,
//!        consumers: (name, seen, [active], ids...)..., [released ids...]
//! ```
//! What stands in brackets came with later versions.
//!
//! # Invariants
//! - Every pending entry belongs to one consumer of its group, or was released.

use std::borrow::Cow;
use std::collections::BTreeMap;

use structure::listpack::{Entry as Item, Iter, Listpack};
use structure::stream::{BlockLimits, Entry, Group, IdempotencyLimits, Stream, StreamId};

use super::cursor::{Cursor, Source};
use super::string::{write_number, write_plain, write_string};
use super::{Build, Damaged, Format, Forms, Sink, Unwritable, head, kind};

const DELETED: i64 = 1;
const SAME_NAMES: i64 = 2;

/// Bounds of a pack that we write: Redis's defaults.
const PACK_ENTRIES_MAX: usize = 100;
const PACK_BYTES_MAX: usize = 4096;

/// The entries read of a group that does not know.
const UNKNOWN: u64 = u64::MAX;

pub(super) fn write<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    stream: &Stream,
) -> Result<(), Unwritable> {
    let kind = match forms.format {
        Format::Redis8_10 => kind::STREAM_5,
        Format::Redis7_0 => kind::STREAM_2,
        Format::Valkey9_1 => kind::STREAM_3,
    };
    if kind < kind::STREAM_5 {
        if stream.groups().any(|group| group.released_len() > 0) {
            return Err(Unwritable::Released);
        }
        if stream
            .idempotency()
            .is_some_and(|memory| memory.producers() > 0)
        {
            return Err(Unwritable::Producers);
        }
    }
    head(out.buf(), forms, kind, key);
    write_packs(out, forms, stream)?;
    let buf = out.buf();
    write_number(buf, stream.len());
    for id in [stream.last_id(), stream.first_id(), stream.max_deleted_id()] {
        write_id(buf, id);
    }
    write_number(buf, stream.entries_added());
    write_number(buf, stream.groups().len() as u64);
    stream
        .groups()
        .for_each(|group| write_group(out, forms, kind, group));
    if kind == kind::STREAM_5 {
        write_producers(out, forms, stream);
    }
    Ok(())
}

/// An id as two numbers.
fn write_id(out: &mut Vec<u8>, id: StreamId) {
    write_number(out, id.ms);
    write_number(out, id.seq);
}

/// An id as 16 bytes.
fn write_id_fixed(out: &mut Vec<u8>, id: StreamId) {
    out.extend(id.ms.to_be_bytes());
    out.extend(id.seq.to_be_bytes());
}

/// Shows the entries of each pack.
fn each_pack(stream: &Stream, mut each: impl FnMut(&[Entry<'_>])) {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    for entry in stream.range(StreamId::MIN, StreamId::MAX) {
        let fields = entry.fields.clone();
        let more: usize = fields.map(|(name, value)| name.len() + value.len()).sum();
        if !entries.is_empty()
            && (entries.len() >= PACK_ENTRIES_MAX || bytes + more > PACK_BYTES_MAX)
        {
            each(&entries);
            entries.clear();
            bytes = 0;
        }
        entries.push(entry);
        bytes += more;
    }
    if !entries.is_empty() {
        each(&entries);
    }
}

fn write_packs<K: Sink>(out: &mut K, forms: &mut Forms, stream: &Stream) -> Result<(), Unwritable> {
    let mut packs = 0;
    each_pack(stream, |_| packs += 1);
    write_number(out.buf(), packs);
    let mut done = Ok(());
    each_pack(stream, |entries| {
        if done.is_err() {
            return;
        }
        let Some((base, pack)) = pack(entries) else {
            done = Err(Unwritable::TooBig);
            return;
        };
        write_number(out.buf(), 16);
        write_id_fixed(out.buf(), base);
        write_plain(out.buf(), forms, pack.as_bytes());
        out.spill();
    });
    done
}

/// One pack; `None` where its one entry is too big for any.
fn pack(entries: &[Entry<'_>]) -> Option<(StreamId, Listpack)> {
    let first = entries.first()?;
    let base = first.id;
    let mut pack = Listpack::new();
    pack.push_back_int(i64::try_from(entries.len()).ok()?);
    pack.push_back_int(0);
    pack.push_back_int(i64::try_from(first.fields.len()).ok()?);
    for (name, _) in first.fields.clone() {
        push(&mut pack, name)?;
    }
    pack.push_back_int(0);
    for entry in entries {
        let fields = || entry.fields.clone();
        let names = fields().map(|(name, _)| name);
        let same = names.eq(first.fields.clone().map(|(name, _)| name));
        let count = i64::try_from(fields().len()).ok()?;
        pack.push_back_int(if same { SAME_NAMES } else { 0 });
        pack.push_back_int(entry.id.ms.wrapping_sub(base.ms).cast_signed());
        pack.push_back_int(entry.id.seq.wrapping_sub(base.seq).cast_signed());
        if !same {
            pack.push_back_int(count);
        }
        for (name, value) in fields() {
            if !same {
                push(&mut pack, name)?;
            }
            push(&mut pack, value)?;
        }
        pack.push_back_int(if same { count + 3 } else { 2 * count + 4 });
    }
    Some((base, pack))
}

fn push(pack: &mut Listpack, bytes: &[u8]) -> Option<()> {
    if !pack.can_hold(bytes.len() + 64) {
        return None;
    }
    pack.push_back(bytes);
    Some(())
}

fn write_group<K: Sink>(out: &mut K, forms: &mut Forms, kind: u8, group: &Group) {
    let pending = || group.pending_range(StreamId::MIN, StreamId::MAX, None);
    let buf = out.buf();
    write_string(buf, forms, group.name());
    write_id(buf, group.last_delivered());
    write_number(buf, group.entries_read.unwrap_or(UNKNOWN));
    write_number(buf, group.pending_len());
    for entry in pending() {
        let buf = out.buf();
        write_id_fixed(buf, entry.id);
        buf.extend(entry.delivered_ms.to_le_bytes());
        write_number(buf, entry.deliveries);
        out.spill();
    }
    write_number(out.buf(), group.consumers_len() as u64);
    for (index, consumer) in group.consumers() {
        let buf = out.buf();
        write_string(buf, forms, consumer.name());
        buf.extend(consumer.seen_ms.to_le_bytes());
        if kind >= kind::STREAM_3 {
            buf.extend(consumer.active_ms.unwrap_or(UNKNOWN).to_le_bytes());
        }
        write_number(buf, consumer.pending());
        for entry in group.pending_range(StreamId::MIN, StreamId::MAX, Some(index)) {
            write_id_fixed(out.buf(), entry.id);
            out.spill();
        }
    }
    if kind == kind::STREAM_5 {
        let released = usize::try_from(group.released_len()).unwrap_or(usize::MAX);
        write_number(out.buf(), group.released_len());
        for entry in group.claimable(None, released, |_| true) {
            write_id_fixed(out.buf(), entry.id);
        }
    }
}

fn write_producers<K: Sink>(out: &mut K, forms: &mut Forms, stream: &Stream) {
    let limits = stream.idempotency_limits();
    write_number(out.buf(), limits.duration_s.into());
    write_number(out.buf(), limits.entries_max.into());
    let Some(memory) = stream.idempotency() else {
        out.buf().extend([0, 0, 0]);
        return;
    };
    let messages: Vec<(&[u8], &[u8], StreamId)> = memory.iter().collect();
    write_number(out.buf(), memory.producers() as u64);
    for of_one in messages.chunk_by(|(one, ..), (other, ..)| one == other) {
        write_string(out.buf(), forms, of_one[0].0);
        write_number(out.buf(), of_one.len() as u64);
        for (_, message, id) in of_one {
            write_string(out.buf(), forms, message);
            write_id(out.buf(), *id);
            out.spill();
        }
    }
    write_number(out.buf(), memory.added);
    write_number(out.buf(), memory.duplicates);
}

pub(super) fn read<S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    build: Build<'_>,
) -> Result<Stream, Damaged> {
    let bounded = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let mut stream = Stream::new(IdempotencyLimits {
        duration_s: bounded(build.settings.stream_idmp_duration),
        entries_max: bounded(build.settings.stream_idmp_maxsize),
    });
    let limits = BlockLimits {
        bytes: build.settings.stream_node_bytes,
        entries: build.settings.stream_node_entries,
    };
    for _ in 0..from.number()? {
        let base = base_id(from.string()?)?;
        let pack = Listpack::from_bytes(from.string_owned()?).map_err(|_| Damaged)?;
        read_pack(&pack, base, &mut stream, limits)?;
    }
    let length = from.number()?;
    let last = read_id(from)?;
    let (mut deleted, mut added) = (StreamId::MIN, length);
    if kind != kind::STREAM_1 {
        read_id(from)?;
        deleted = read_id(from)?;
        added = from.number()?;
    }
    if length != stream.len() || last < stream.last_id() || deleted > last || added < length {
        return Err(Damaged);
    }
    stream.set_counters(last, Some(added), Some(deleted));
    for _ in 0..from.number()? {
        read_group(from, kind, &mut stream)?;
    }
    if kind >= kind::STREAM_4 {
        read_producers(from, &mut stream)?;
    }
    Ok(stream)
}

fn base_id(bytes: &[u8]) -> Result<StreamId, Damaged> {
    let mut from = Cursor::new(bytes, 16);
    let id = read_id_fixed(&mut from)?;
    if from.source().is_empty() {
        Ok(id)
    } else {
        Err(Damaged)
    }
}

fn read_id<S: Source>(from: &mut Cursor<S>) -> Result<StreamId, Damaged> {
    Ok(StreamId::new(from.number()?, from.number()?))
}

fn read_id_fixed<S: Source>(from: &mut Cursor<S>) -> Result<StreamId, Damaged> {
    Ok(StreamId::new(from.word_big()?, from.word_big()?))
}

/// The next element as an integer.
fn int(items: &mut Iter<'_>) -> Result<i64, Damaged> {
    items.next().and_then(Item::int).ok_or(Damaged)
}

/// The next element as a count of elements that follow.
fn count(items: &mut Iter<'_>) -> Result<usize, Damaged> {
    usize::try_from(int(items)?).map_err(|_| Damaged)
}

fn text<'a>(items: &mut Iter<'a>) -> Result<Cow<'a, [u8]>, Damaged> {
    Ok(match items.next().ok_or(Damaged)? {
        Item::Bytes(bytes) => bytes.into(),
        item @ Item::Int(_) => item.to_vec().into(),
    })
}

fn read_pack(
    pack: &Listpack,
    base: StreamId,
    stream: &mut Stream,
    limits: BlockLimits,
) -> Result<(), Damaged> {
    let mut items = pack.iter();
    let (living, dead) = (count(&mut items)?, count(&mut items)?);
    let mut names = Vec::new();
    for _ in 0..count(&mut items)? {
        names.push(text(&mut items)?);
    }
    if int(&mut items)? != 0 {
        return Err(Damaged);
    }
    let (mut seen_living, mut seen_dead) = (0, 0);
    let mut fields: Vec<Cow<'_, [u8]>> = Vec::new();
    while let Some(flags) = items.next() {
        let flags = flags.int().ok_or(Damaged)?;
        let id = StreamId::new(
            base.ms.wrapping_add_signed(int(&mut items)?),
            base.seq.wrapping_add_signed(int(&mut items)?),
        );
        fields.clear();
        let elements = if flags & SAME_NAMES != 0 {
            for name in &names {
                fields.extend([name.clone(), text(&mut items)?]);
            }
            names.len() + 3
        } else {
            let pairs = count(&mut items)?;
            for _ in 0..pairs.checked_mul(2).ok_or(Damaged)? {
                fields.push(text(&mut items)?);
            }
            2 * pairs + 4
        };
        if count(&mut items)? != elements || fields.is_empty() {
            return Err(Damaged);
        }
        if flags & DELETED != 0 {
            seen_dead += 1;
            continue;
        }
        seen_living += 1;
        if !stream.append(id, fields.iter().map(|field| &**field), limits) {
            return Err(Damaged);
        }
    }
    if (living, dead) != (seen_living, seen_dead) {
        return Err(Damaged);
    }
    Ok(())
}

fn read_group<S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    stream: &mut Stream,
) -> Result<(), Damaged> {
    let name = from.string_owned()?;
    let last = read_id(from)?;
    let read = match kind {
        kind::STREAM_1 => None,
        _ => Some(from.number()?).filter(|read| *read != UNKNOWN),
    };
    let group = stream.create_group(&name, last, read).ok_or(Damaged)?;
    let mut pending = BTreeMap::new();
    for _ in 0..from.number()? {
        let id = read_id_fixed(from)?;
        let delivery = (from.word()?, from.number()?);
        if pending.insert(id, delivery).is_some() {
            return Err(Damaged);
        }
    }
    for _ in 0..from.number()? {
        let name = from.string_owned()?;
        let seen_ms = from.word()?;
        let (index, is_new) = group.add_consumer(&name, seen_ms);
        if !is_new {
            return Err(Damaged);
        }
        let active_ms = match kind {
            kind::STREAM_1 | kind::STREAM_2 => Some(seen_ms),
            _ => Some(from.word()?).filter(|active| active.cast_signed() >= 0),
        };
        group.consumer_mut(index).ok_or(Damaged)?.active_ms = active_ms;
        for _ in 0..from.number()? {
            let id = read_id_fixed(from)?;
            let (delivered_ms, deliveries) = pending.remove(&id).ok_or(Damaged)?;
            group.hold(id, index, delivered_ms, deliveries);
        }
    }
    if kind >= kind::STREAM_5 {
        for _ in 0..from.number()? {
            let id = read_id_fixed(from)?;
            let (_, deliveries) = pending.remove(&id).ok_or(Damaged)?;
            group.release(id, deliveries);
        }
    }
    if pending.is_empty() {
        Ok(())
    } else {
        Err(Damaged)
    }
}

fn read_producers<S: Source>(from: &mut Cursor<S>, stream: &mut Stream) -> Result<(), Damaged> {
    let number = |from: &mut Cursor<S>| u32::try_from(from.number()?).map_err(|_| Damaged);
    let limits = IdempotencyLimits {
        duration_s: number(from)?,
        entries_max: number(from)?,
    };
    stream.set_idempotency_limits(limits);
    let producers = from.number()?;
    for _ in 0..producers {
        let producer = from.string_owned()?;
        let mut messages = from.number()?;
        while messages > 0 {
            let message = from.string_owned()?;
            let id = read_id(from)?;
            let memory = stream.idempotency_mut();
            if memory.find(&producer, &message).is_some() {
                return Err(Damaged);
            }
            memory.record(&producer, &message, id, limits.entries_max);
            messages -= 1;
        }
    }
    let (added, duplicates) = (from.number()?, from.number()?);
    if producers > 0 || added > 0 || duplicates > 0 {
        let memory = stream.idempotency_mut();
        (memory.added, memory.duplicates) = (added, duplicates);
    }
    Ok(())
}
