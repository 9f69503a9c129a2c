//! Lists, sets, sorted sets and hashes.
//!
//! ```text
//! list:   chunks: (1, item | 2, listpack)...
//! set:    members... | intset | listpack
//! zset:   (member, score of 8 bytes)... | listpack of member, score
//! hash:   (field, value)... | listpack of field, value
//! timed:  earliest time 8, then (time - earliest + 1 or 0, field, value)...
//!         | earliest time 8, listpack of field, value, time or 0
//!         | Valkey: (field, value, time or -1 of 8)...
//! named:  fields, then listpack of a number, value... | value...
//!         with fields: 0, listpack | 1, field...
//! ```
//! What is counted begins with its count; a pack is a string. Small values are written in the form
//! that they are kept in, so that the bytes are those that Redis writes. The named forms are those
//! of hashes that HIMPORT made, which we read and keep as any other.

use std::borrow::Cow;

use structure::intset::Intset;
use structure::list::{ChunkBytes, List};
use structure::listpack::{Entry as Item, Listpack};
use structure::packed::PackedPast;
use structure::record::ValueRef;

use super::cursor::{Cursor, Source};
use super::string::{write_number, write_plain, write_string};
use super::ziplist::{ziplist, zipmap};
use super::{Build, Damaged, Dialect, Format, Forms, Sink, Unwritable, head, kind};
use crate::object::{Frozen, Hash, Object, Set, SortedSet, transfer};

/// How a chunk of a list is kept.
const PLAIN: u64 = 1;
const PACKED: u64 = 2;

/// Writes the type and the value.
pub(super) fn write<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    object: &Object,
) -> Result<(), Unwritable> {
    match object {
        Object::List(list) => write_list(out, forms, key, list),
        Object::Set(set) => write_set(out, forms, key, set),
        Object::SortedSet(sorted) => write_sorted_set(out, forms, key, sorted),
        Object::Hash(hash) => return write_hash(out, forms, key, hash),
        Object::Stream(_) | Object::Array(_) => return Err(Unwritable::TooBig),
    }
    Ok(())
}

fn write_list<K: Sink>(out: &mut K, forms: &mut Forms, key: Option<&[u8]>, list: &List) {
    let mut bytes = Vec::new();
    head(out.buf(), forms, kind::LIST_OF_LISTPACKS, key);
    write_number(out.buf(), list.chunks().count() as u64);
    for chunk in list.chunks() {
        let form = match chunk {
            ChunkBytes::Plain(_) => PLAIN,
            ChunkBytes::Packed { .. } => PACKED,
        };
        write_number(out.buf(), form);
        if forms.compresses() {
            bytes.clear();
            chunk.write(&mut bytes);
            write_plain(out.buf(), forms, &bytes);
        } else {
            write_number(out.buf(), chunk.byte_len() as u64);
            chunk.write(out.buf());
        }
        out.spill();
    }
}

fn write_set<K: Sink>(out: &mut K, forms: &mut Forms, key: Option<&[u8]>, set: &Set) {
    match set.encoding() {
        "intset" => {
            let mut ints = Intset::new();
            transfer::each_member(set, |member| {
                ints.insert(structure::decimal::parse(member).unwrap_or(0));
            });
            head(out.buf(), forms, kind::SET_INTSET, key);
            write_plain(out.buf(), forms, ints.as_bytes());
        }
        "listpack" if forms.format != Format::Redis7_0 => {
            let mut pack = Listpack::new();
            transfer::each_member(set, |member| pack.push_back(member));
            head(out.buf(), forms, kind::SET_LISTPACK, key);
            write_plain(out.buf(), forms, pack.as_bytes());
        }
        _ => {
            head(out.buf(), forms, kind::SET, key);
            write_number(out.buf(), set.len() as u64);
            transfer::each_member(set, |member| {
                write_string(out.buf(), forms, member);
                out.spill();
            });
        }
    }
}

fn write_sorted_set<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    sorted: &SortedSet,
) {
    if sorted.encoding() == "listpack" {
        let (mut pack, mut text) = (Listpack::new(), Vec::new());
        transfer::each_scored(sorted, |member, score| {
            pack.push_back(member);
            text.clear();
            resp::format_double(score, &mut text);
            pack.push_back(&text);
        });
        head(out.buf(), forms, kind::ZSET_LISTPACK, key);
        write_plain(out.buf(), forms, pack.as_bytes());
        return;
    }
    head(out.buf(), forms, kind::ZSET, key);
    write_number(out.buf(), sorted.len() as u64);
    transfer::each_scored(sorted, |member, score| {
        write_string(out.buf(), forms, member);
        out.buf().extend(score.to_le_bytes());
        out.spill();
    });
}

/// Writes the type, the key and the value of a big one that was frozen.
///
/// # Errors
/// As [`super::write_value`].
pub fn write_frozen<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    value: Frozen,
) -> Result<(), Unwritable> {
    match value {
        Frozen::Object(object) => {
            return super::write_value(out, forms, key, ValueRef::Object(&object));
        }
        Frozen::Fields(fields) => return write_fields(out, forms, key, fields),
        Frozen::Set(members) => {
            head(out.buf(), forms, kind::SET, key);
            write_number(out.buf(), members.len() as u64);
            members.each(|member| {
                write_string(out.buf(), forms, member.key);
                out.spill();
            });
        }
        Frozen::Members(members) => {
            head(out.buf(), forms, kind::ZSET, key);
            write_number(out.buf(), members.len() as u64);
            members.each(|member, score| {
                write_string(out.buf(), forms, member);
                out.buf().extend(score.to_le_bytes());
                out.spill();
            });
        }
    }
    Ok(())
}

/// The fields of a big hash.
fn write_fields<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    fields: PackedPast,
) -> Result<(), Unwritable> {
    // At or before all deadlines: they are written as what comes after it.
    let earliest = fields.due_hint();
    let kind = match (forms.format, earliest) {
        (_, None) => kind::HASH,
        (Format::Redis7_0, _) => return Err(Unwritable::FieldDeadlines),
        (Format::Valkey9_1, _) => kind::HASH_TIMED_VALKEY,
        (Format::Redis8_10, _) => kind::HASH_TIMED,
    };
    head(out.buf(), forms, kind, key);
    if let Some(at) = earliest.filter(|_| kind == kind::HASH_TIMED) {
        out.buf().extend(at.to_le_bytes());
    }
    write_number(out.buf(), fields.len() as u64);
    fields.each(|field| {
        if let Some(earliest) = earliest.filter(|_| kind == kind::HASH_TIMED) {
            write_number(out.buf(), field.deadline.map_or(0, |at| at - earliest + 1));
        }
        write_string(out.buf(), forms, field.key);
        write_string(out.buf(), forms, field.value);
        if kind == kind::HASH_TIMED_VALKEY {
            let deadline = field.deadline.unwrap_or(u64::MAX);
            out.buf().extend(deadline.to_le_bytes());
        }
        out.spill();
    });
    Ok(())
}

fn write_hash<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    hash: &Hash,
) -> Result<(), Unwritable> {
    let (mut count, mut earliest) = (0u64, None);
    transfer::each_field(hash, |_, _, deadline| {
        count += 1;
        earliest = match (earliest, deadline) {
            (Some(a), Some(b)) => Some(u64::min(a, b)),
            (a, b) => a.or(b),
        };
    });
    match forms.format {
        Format::Redis7_0 if earliest.is_some() => return Err(Unwritable::FieldDeadlines),
        Format::Valkey9_1 if earliest.is_some() => {
            head(out.buf(), forms, kind::HASH_TIMED_VALKEY, key);
            write_number(out.buf(), count);
            transfer::each_field(hash, |field, value, deadline| {
                write_string(out.buf(), forms, field);
                write_string(out.buf(), forms, value);
                out.buf().extend(deadline.unwrap_or(u64::MAX).to_le_bytes());
                out.spill();
            });
            return Ok(());
        }
        _ => {}
    }
    if hash.encoding().starts_with("listpack") {
        let pack = match earliest {
            None => {
                let mut pack = Listpack::new();
                transfer::each_field(hash, |field, value, _| {
                    pack.push_back(field);
                    pack.push_back(value);
                });
                pack
            }
            Some(_) => timed_pack(hash),
        };
        match earliest {
            None => head(out.buf(), forms, kind::HASH_LISTPACK, key),
            Some(at) => {
                head(out.buf(), forms, kind::HASH_LISTPACK_TIMED, key);
                out.buf().extend(at.to_le_bytes());
            }
        }
        write_plain(out.buf(), forms, pack.as_bytes());
        return Ok(());
    }
    match earliest {
        None => head(out.buf(), forms, kind::HASH, key),
        Some(at) => {
            head(out.buf(), forms, kind::HASH_TIMED, key);
            out.buf().extend(at.to_le_bytes());
        }
    }
    write_number(out.buf(), count);
    transfer::each_field(hash, |field, value, deadline| {
        if let Some(earliest) = earliest {
            write_number(out.buf(), deadline.map_or(0, |at| at - earliest + 1));
        }
        write_string(out.buf(), forms, field);
        write_string(out.buf(), forms, value);
        out.spill();
    });
    Ok(())
}

/// The pack of a hash of which fields have deadlines: Redis keeps those that die first in front.
fn timed_pack(hash: &Hash) -> Listpack {
    let mut fields = Vec::new();
    transfer::each_field(hash, |field, value, deadline| {
        fields.push((deadline.unwrap_or(u64::MAX), field.to_vec(), value.to_vec()));
    });
    fields.sort_by_key(|(deadline, ..)| *deadline);
    let mut pack = Listpack::new();
    for (deadline, field, value) in fields {
        pack.push_back(&field);
        pack.push_back(&value);
        let deadline = if deadline == u64::MAX { 0 } else { deadline };
        pack.push_back_int(deadline.cast_signed());
    }
    pack
}

pub(super) fn read<S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    build: Build<'_>,
) -> Result<Object, Damaged> {
    let object = match kind {
        kind::LIST | kind::LIST_ZIPLIST | kind::LIST_OF_ZIPLISTS | kind::LIST_OF_LISTPACKS => {
            Object::List(read_list(from, kind, build)?)
        }
        kind::SET | kind::SET_INTSET | kind::SET_LISTPACK => {
            Object::Set(read_set(from, kind, build)?)
        }
        kind::ZSET_TEXT | kind::ZSET | kind::ZSET_ZIPLIST | kind::ZSET_LISTPACK => {
            Object::SortedSet(read_sorted_set(from, kind, build)?)
        }
        kind::HASH
        | kind::HASH_ZIPMAP
        | kind::HASH_ZIPLIST
        | kind::HASH_LISTPACK
        | kind::HASH_TIMED
        | kind::HASH_LISTPACK_TIMED
        | kind::HASH_TIMED_EARLY
        | kind::HASH_LISTPACK_TIMED_EARLY => Object::Hash(read_hash(from, kind, build)?),
        kind::HASH_NAMED_LISTPACK | kind::HASH_NAMED => {
            Object::Hash(read_named_hash(from, kind, build)?)
        }
        _ => return Err(Damaged),
    };
    Ok(object)
}

/// A listpack that came as a string, all of it checked.
fn pack<S: Source>(from: &mut Cursor<S>) -> Result<Listpack, Damaged> {
    Listpack::from_bytes(from.string_owned()?).map_err(|_| Damaged)
}

/// The elements of a pack as bytes.
fn elements(pack: &Listpack) -> Vec<Cow<'_, [u8]>> {
    let bytes = |item| match item {
        Item::Bytes(bytes) => Cow::Borrowed(bytes),
        Item::Int(_) => Cow::Owned(item.to_vec()),
    };
    pack.iter().map(bytes).collect()
}

fn read_list<S: Source>(from: &mut Cursor<S>, kind: u8, build: Build<'_>) -> Result<List, Damaged> {
    let limit = build.settings.list_limit;
    let mut list = List::new();
    match kind {
        kind::LIST => {
            for _ in 0..from.number()? {
                list.push_back(from.string()?, limit);
            }
        }
        kind::LIST_ZIPLIST => {
            for item in ziplist(from.string()?)? {
                list.push_back(&item, limit);
            }
        }
        kind::LIST_OF_ZIPLISTS => {
            for _ in 0..from.number()? {
                for item in ziplist(from.string()?)? {
                    list.push_back(&item, limit);
                }
            }
        }
        _ => {
            for _ in 0..from.number()? {
                match from.number()? {
                    PLAIN => list.load_plain(from.string_owned()?),
                    PACKED => list.load_listpack(pack(from)?),
                    _ => return Err(Damaged),
                }
            }
            list.settle(limit);
        }
    }
    Ok(list)
}

fn read_set<S: Source>(from: &mut Cursor<S>, kind: u8, build: Build<'_>) -> Result<Set, Damaged> {
    let mut set = Set::default();
    let mut add =
        |member: &[u8]| match transfer::add_member(&mut set, member, build.settings, build.seed) {
            true => Ok(()),
            false => Err(Damaged),
        };
    match kind {
        kind::SET => {
            for _ in 0..from.number()? {
                add(from.string()?)?;
            }
        }
        kind::SET_INTSET => {
            let ints = Intset::from_bytes(from.string_owned()?).map_err(|_| Damaged)?;
            let mut scratch = [0; structure::decimal::TEXT_MAX];
            for int in ints.iter() {
                add(structure::decimal::format(int, &mut scratch))?;
            }
        }
        _ => {
            for member in elements(&pack(from)?) {
                add(&member)?;
            }
        }
    }
    Ok(set)
}

fn read_sorted_set<S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    build: Build<'_>,
) -> Result<SortedSet, Damaged> {
    let mut sorted = SortedSet::default();
    let mut add = |member: &[u8], score: f64| {
        let is_new = !score.is_nan()
            && transfer::add_scored(&mut sorted, member, score, build.settings, build.seed);
        if is_new { Ok(()) } else { Err(Damaged) }
    };
    let mut add_all = |items: Vec<Cow<'_, [u8]>>| {
        let (pairs, rest) = items.as_chunks::<2>();
        for [member, score] in pairs {
            add(member, crate::number::double(score).ok_or(Damaged)?)?;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(Damaged)
        }
    };
    match kind {
        kind::ZSET_ZIPLIST => add_all(ziplist(from.string()?)?)?,
        kind::ZSET_LISTPACK => add_all(elements(&pack(from)?))?,
        _ => {
            let mut member = Vec::new();
            for _ in 0..from.number()? {
                member.clear();
                from.string_to(&mut member)?;
                let score = match kind {
                    kind::ZSET => from.double()?,
                    _ => from.double_text()?,
                };
                add(&member, score)?;
            }
        }
    }
    Ok(sorted)
}

fn read_hash<S: Source>(from: &mut Cursor<S>, kind: u8, build: Build<'_>) -> Result<Hash, Damaged> {
    let mut hash = Hash::default();
    let mut add = |field: &[u8], value: &[u8], deadline: Option<u64>| {
        let (settings, seed) = (build.settings, build.seed);
        if deadline.is_some_and(|at| at > Hash::DEADLINE_MAX) {
            return Err(Damaged);
        }
        match transfer::add_field(&mut hash, (field, value, deadline), settings, seed) {
            true => Ok(()),
            false => Err(Damaged),
        }
    };
    let mut add_all = |items: Vec<Cow<'_, [u8]>>| {
        let (pairs, rest) = items.as_chunks::<2>();
        for [field, value] in pairs {
            add(field, value, None)?;
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(Damaged)
        }
    };
    let (mut field, mut value) = (Vec::new(), Vec::new());
    match kind {
        kind::HASH_ZIPMAP => add_all(zipmap(from.string()?)?)?,
        kind::HASH_ZIPLIST => add_all(ziplist(from.string()?)?)?,
        kind::HASH_LISTPACK => add_all(elements(&pack(from)?))?,
        kind::HASH_LISTPACK_TIMED | kind::HASH_LISTPACK_TIMED_EARLY => {
            if kind == kind::HASH_LISTPACK_TIMED {
                from.word()?;
            }
            let pack = pack(from)?;
            let items = elements(&pack);
            let (triples, rest) = items.as_chunks::<3>();
            for [field, value, at] in triples {
                let at = structure::decimal::parse(at).ok_or(Damaged)?;
                let at = u64::try_from(at).map_err(|_| Damaged)?;
                add(field, value, (at > 0).then_some(at))?;
            }
            if !rest.is_empty() {
                return Err(Damaged);
            }
        }
        kind::HASH_TIMED_VALKEY if build.dialect == Dialect::Valkey => {
            for _ in 0..from.number()? {
                field.clear();
                from.string_to(&mut field)?;
                value.clear();
                from.string_to(&mut value)?;
                let deadline = match from.word()? {
                    u64::MAX => None,
                    at => Some(at),
                };
                add(&field, &value, deadline)?;
            }
        }
        kind::HASH_TIMED | kind::HASH_TIMED_EARLY => {
            // The first ones were written with times that are not relative to anything.
            let earliest = match kind {
                kind::HASH_TIMED => from.word()?,
                _ => 1,
            };
            for _ in 0..from.number()? {
                let deadline = match from.number()? {
                    0 => None,
                    later => Some(earliest.checked_add(later - 1).ok_or(Damaged)?),
                };
                field.clear();
                from.string_to(&mut field)?;
                add(&field, from.string()?, deadline)?;
            }
        }
        _ => {
            for _ in 0..from.number()? {
                field.clear();
                from.string_to(&mut field)?;
                add(&field, from.string()?, None)?;
            }
        }
    }
    Ok(hash)
}

/// A hash whose fields stand before its values.
fn read_named_hash<S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    build: Build<'_>,
) -> Result<Hash, Damaged> {
    let fields: Vec<Vec<u8>> = match from.byte()? {
        0 => elements(&pack(from)?)
            .into_iter()
            .map(Cow::into_owned)
            .collect(),
        1 => {
            let mut fields = Vec::new();
            for _ in 0..from.number()? {
                fields.push(from.string_owned()?);
            }
            fields
        }
        _ => return Err(Damaged),
    };
    read_values(from, &fields, kind == kind::HASH_NAMED_LISTPACK, build)
}

/// A hash whose fields stand elsewhere.
pub(super) fn read_templated_hash<'t, S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    fields: impl Fn(u64) -> Option<&'t [Vec<u8>]>,
    build: Build<'_>,
) -> Result<Hash, Damaged> {
    if kind == kind::HASH_TEMPLATE {
        let fields = fields(from.number()?).ok_or(Damaged)?;
        return read_values(from, fields, false, build);
    }
    let pack = pack(from)?;
    let number = pack.iter().next().and_then(Item::int).ok_or(Damaged)?;
    let number = u64::try_from(number).map_err(|_| Damaged)?;
    of_pack(&pack, fields(number).ok_or(Damaged)?, build)
}

/// The values of fields that are known, in a pack or one by one.
fn read_values<S: Source>(
    from: &mut Cursor<S>,
    fields: &[Vec<u8>],
    is_packed: bool,
    build: Build<'_>,
) -> Result<Hash, Damaged> {
    if is_packed {
        return of_pack(&pack(from)?, fields, build);
    }
    let mut hash = Hash::default();
    for field in fields {
        add_new(&mut hash, field, from.string()?, build)?;
    }
    Ok(hash)
}

/// A hash of fields that are known and a pack of values behind the number that Redis knows the
/// fields by.
fn of_pack(pack: &Listpack, fields: &[Vec<u8>], build: Build<'_>) -> Result<Hash, Damaged> {
    let items = elements(pack);
    let (_, values) = items.split_first().ok_or(Damaged)?;
    if values.len() != fields.len() {
        return Err(Damaged);
    }
    let mut hash = Hash::default();
    for (field, value) in fields.iter().zip(values) {
        add_new(&mut hash, field, value, build)?;
    }
    Ok(hash)
}

fn add_new(hash: &mut Hash, field: &[u8], value: &[u8], build: Build<'_>) -> Result<(), Damaged> {
    match transfer::add_field(hash, (field, value, None), build.settings, build.seed) {
        true => Ok(()),
        false => Err(Damaged),
    }
}
