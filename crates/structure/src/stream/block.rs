//! A block: about a hundred neighbouring entries of a stream, packed into one allocation.
//!
//! ```text
//! bytes:  | names: count, (len, name)* | entry | entry | ...
//!         0                            body     head (first entry that lives)
//!
//! entry:  | len | flags | ms - base.ms | seq | payload | back |
//!           len   bytes from flags to the end of the payload
//!           seq   counted from base.seq where the millisecond is the base's, else as it is
//!           back  bytes from `len` to the end of the payload, readable backwards
//! payload: SHARED: (len, value)*, the names being the block's;
//!          else count, (len, name, len, value)*
//! ```
//! Numbers are varints of seven bits a byte. The names of the block are those of its first entry.
//!
//! # Invariants
//! - Ids in a block ascend, and all lie in `base ..= last`.
//! - Deleting sets a flag; `live` and `dead` count the entries without and with it.
//! - `head` is the offset of the first live entry, so that trimming from the front never searches.
//! - Dead entries are at most about half of a block: beyond that it is rewritten.
//!
//! # Why not an index of offsets?
//! Two bytes an entry are a tenth of a small entry, and walking a hundred lengths costs less than
//! the cache miss that reached the block. Ids are searched from whichever end is nearer.

use super::id::StreamId;

const DEAD: u8 = 1;
const SHARED: u8 = 2;

/// What bounds a block: the options `stream-node-max-bytes` and `stream-node-max-entries`.
/// Zero means no limit of that kind.
#[derive(Clone, Copy, Debug)]
pub struct BlockLimits {
    /// The most bytes a block of several entries may take.
    pub bytes: usize,
    /// The most entries a block may hold.
    pub entries: usize,
}

impl Default for BlockLimits {
    fn default() -> BlockLimits {
        BlockLimits {
            bytes: 4096,
            entries: 100,
        }
    }
}

/// Holds where the options set no limit: searching a block is linear.
const BLOCK_BYTES_MAX: usize = 1 << 16;
const BLOCK_ENTRIES_MAX: usize = 1 << 12;

impl BlockLimits {
    fn bytes_max(self) -> usize {
        if self.bytes == 0 {
            BLOCK_BYTES_MAX
        } else {
            self.bytes.min(BLOCK_BYTES_MAX)
        }
    }

    fn entries_max(self) -> usize {
        if self.entries == 0 {
            BLOCK_ENTRIES_MAX
        } else {
            self.entries.min(BLOCK_ENTRIES_MAX)
        }
    }
}

/// One entry as stored: its id and a view of its fields.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The id.
    pub id: StreamId,
    /// Names and values, in the order in which they were added.
    pub fields: Fields<'a>,
}

/// Iterates over the names and values of an entry.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    /// The names of the block where the entry shares them.
    names: Option<&'a [u8]>,
    payload: &'a [u8],
    left: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = (&'a [u8], &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        let name = match &mut self.names {
            Some(names) => take_bytes(names),
            None => take_bytes(&mut self.payload),
        };
        Some((name, take_bytes(&mut self.payload)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Fields<'_> {}

/// The names and values of an entry to add: name, value, name, value, and so on.
pub trait FieldSource<'f>: Iterator<Item = &'f [u8]> + Clone {}
impl<'f, I: Iterator<Item = &'f [u8]> + Clone> FieldSource<'f> for I {}

/// How an entry will be written into a certain block.
struct Plan {
    shared: bool,
    ms: u64,
    seq: u64,
    fields: usize,
    /// Bytes from the flags to the end of the payload.
    content: usize,
}

impl Plan {
    fn total(&self) -> usize {
        let front = varint_len(self.content as u64) + self.content;
        front + varint_len(front as u64)
    }
}

/// The place of an entry in a block, decoded.
struct Raw {
    id: StreamId,
    flags: u8,
    flags_at: usize,
    payload: usize,
    payload_end: usize,
    /// Where the next entry starts.
    end: usize,
}

#[derive(Debug)]
pub(super) struct Block {
    bytes: Vec<u8>,
    base: StreamId,
    last: StreamId,
    body: usize,
    head: usize,
    live: u32,
    dead: u32,
}

/// A copy takes as many bytes as the original.
impl Clone for Block {
    fn clone(&self) -> Self {
        Self {
            bytes: crate::growth::copy_of(&self.bytes),
            ..*self
        }
    }
}

impl Block {
    /// Starts a block with one entry; `capacity` is what the block is expected to grow to.
    pub(super) fn new<'f>(id: StreamId, fields: impl FieldSource<'f>, capacity: usize) -> Block {
        let names = fields.clone().step_by(2);
        let count = names.clone().count();
        let names_len: usize = names
            .clone()
            .map(|n| varint_len(n.len() as u64) + n.len())
            .sum();
        let body = varint_len(count as u64) + names_len;
        let mut block = Block {
            bytes: Vec::new(),
            base: id,
            last: id,
            body,
            head: body,
            live: 0,
            dead: 0,
        };
        let values = fields.clone().skip(1).step_by(2);
        let values_len: usize = values.map(|v| varint_len(v.len() as u64) + v.len()).sum();
        let plan = Plan {
            shared: true,
            ms: 0,
            seq: 0,
            fields: count,
            content: 3 + values_len,
        };
        block
            .bytes
            .reserve_exact((body + plan.total()).max(capacity));
        put_varint(&mut block.bytes, count as u64);
        for name in names {
            put_bytes(&mut block.bytes, name);
        }
        block.write(&plan, id, fields);
        block
    }

    /// Appends an entry whose id is greater than every id here, unless the block is full for it.
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl FieldSource<'f>,
        limits: BlockLimits,
    ) -> bool {
        if (self.live + self.dead) as usize >= limits.entries_max() {
            return false;
        }
        let plan = self.plan(id, fields.clone());
        let after = self.bytes.len() + plan.total();
        if after > limits.bytes_max() {
            return false;
        }
        if after > self.bytes.capacity() {
            // Doubling, but never past what the block may grow to.
            let wanted = (self.bytes.capacity() * 2)
                .min(limits.bytes_max())
                .max(after);
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
        self.write(&plan, id, fields);
        true
    }

    fn plan<'f>(&self, id: StreamId, fields: impl FieldSource<'f>) -> Plan {
        let ms = id.ms - self.base.ms;
        let seq = if ms == 0 {
            id.seq - self.base.seq
        } else {
            id.seq
        };
        let mut names = &self.bytes[..self.body];
        let mut names_left = take_varint(&mut names);
        let (mut shared, mut count, mut names_len, mut values_len) = (true, 0, 0, 0);
        let mut source = fields;
        while let (Some(name), Some(value)) = (source.next(), source.next()) {
            shared = shared && names_left > 0 && take_bytes(&mut names) == name;
            names_left = names_left.saturating_sub(1);
            count += 1;
            names_len += varint_len(name.len() as u64) + name.len();
            values_len += varint_len(value.len() as u64) + value.len();
        }
        shared = shared && names_left == 0;
        let own = if shared {
            0
        } else {
            varint_len(count as u64) + names_len
        };
        let content = 1 + varint_len(ms) + varint_len(seq) + own + values_len;
        Plan {
            shared,
            ms,
            seq,
            fields: count,
            content,
        }
    }

    fn write<'f>(&mut self, plan: &Plan, id: StreamId, fields: impl FieldSource<'f>) {
        let start = self.bytes.len();
        let bytes = &mut self.bytes;
        put_varint(bytes, plan.content as u64);
        bytes.push(if plan.shared { SHARED } else { 0 });
        put_varint(bytes, plan.ms);
        put_varint(bytes, plan.seq);
        if plan.shared {
            let mut source = fields;
            while let (Some(_), Some(value)) = (source.next(), source.next()) {
                put_bytes(bytes, value);
            }
        } else {
            put_varint(bytes, plan.fields as u64);
            for part in fields.take(plan.fields * 2) {
                put_bytes(bytes, part);
            }
        }
        put_back(bytes, (bytes.len() - start) as u64);
        assert!(
            bytes.len() - start == plan.total(),
            "entry {id} written in another size"
        );
        self.last = id;
        self.live += 1;
    }

    pub(super) fn base(&self) -> StreamId {
        self.base
    }

    pub(super) fn last(&self) -> StreamId {
        self.last
    }

    pub(super) fn live(&self) -> u64 {
        u64::from(self.live)
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Where a walk forwards starts and one backwards ends.
    pub(super) fn head(&self) -> usize {
        self.head
    }

    /// Where a walk backwards starts and one forwards ends.
    pub(super) fn end(&self) -> usize {
        self.bytes.len()
    }

    /// The first live entry at or after the offset, and the offset behind it.
    #[inline]
    pub(super) fn entry_after(&self, mut at: usize) -> Option<(Entry<'_>, usize)> {
        while at < self.bytes.len() {
            let raw = self.raw(at);
            if raw.flags & DEAD == 0 {
                return Some((self.entry(&raw), raw.end));
            }
            at = raw.end;
        }
        None
    }

    /// The last live entry that ends at or before the offset, and the offset where it starts.
    #[inline]
    pub(super) fn entry_before(&self, mut at: usize) -> Option<(Entry<'_>, usize)> {
        while at > self.head {
            at = self.start_of_previous(at);
            let raw = self.raw(at);
            if raw.flags & DEAD == 0 {
                return Some((self.entry(&raw), at));
            }
        }
        None
    }

    /// The offset of the first entry, dead or alive, with an id at or after this one.
    pub(super) fn seek(&self, id: StreamId) -> usize {
        if id > self.last {
            return self.bytes.len();
        }
        if id.ms.saturating_sub(self.base.ms) > self.last.ms.saturating_sub(id.ms) {
            return self.seek_backwards(id);
        }
        let mut at = self.head;
        while at < self.bytes.len() {
            let raw = self.raw(at);
            if raw.id >= id {
                break;
            }
            at = raw.end;
        }
        at
    }

    fn seek_backwards(&self, id: StreamId) -> usize {
        let mut at = self.bytes.len();
        while at > self.head {
            let previous = self.start_of_previous(at);
            if self.raw(previous).id < id {
                break;
            }
            at = previous;
        }
        at
    }

    /// Marks the entry dead; false where there is no live one.
    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        let at = self.seek(id);
        if at >= self.bytes.len() {
            return false;
        }
        let raw = self.raw(at);
        if raw.id != id || raw.flags & DEAD != 0 {
            return false;
        }
        self.kill(at, &raw);
        self.compact_if_worthwhile();
        true
    }

    /// Deletes from the front while the block has entries and `doomed` says so of the next one.
    pub(super) fn trim_front(&mut self, mut doomed: impl FnMut(StreamId) -> bool) -> u64 {
        let before = self.live;
        while self.head < self.bytes.len() {
            let raw = self.raw(self.head);
            if !doomed(raw.id) {
                break;
            }
            self.kill(self.head, &raw);
        }
        self.compact_if_worthwhile();
        u64::from(before - self.live)
    }

    /// Deletes every entry of which `doomed` says so.
    pub(super) fn retain_not(&mut self, mut doomed: impl FnMut(StreamId) -> bool) -> u64 {
        let before = self.live;
        let mut at = self.head;
        while at < self.bytes.len() {
            let raw = self.raw(at);
            if raw.flags & DEAD == 0 && doomed(raw.id) {
                self.kill(at, &raw);
            }
            at = raw.end;
        }
        self.compact_if_worthwhile();
        u64::from(before - self.live)
    }

    fn kill(&mut self, at: usize, raw: &Raw) {
        self.bytes[raw.flags_at] |= DEAD;
        self.live -= 1;
        self.dead += 1;
        if at == self.head {
            self.head = raw.end;
            while self.head < self.bytes.len() {
                let next = self.raw(self.head);
                if next.flags & DEAD == 0 {
                    break;
                }
                self.head = next.end;
            }
        }
    }

    fn compact_if_worthwhile(&mut self) {
        if self.live == 0 || self.dead <= self.live {
            return;
        }
        let mut kept = Vec::with_capacity(self.bytes.len());
        kept.extend_from_slice(&self.bytes[..self.body]);
        let mut at = self.head;
        while at < self.bytes.len() {
            let raw = self.raw(at);
            if raw.flags & DEAD == 0 {
                kept.extend_from_slice(&self.bytes[at..raw.end]);
            }
            at = raw.end;
        }
        kept.shrink_to_fit();
        self.bytes = kept;
        self.head = self.body;
        self.dead = 0;
    }

    #[inline]
    fn entry(&self, raw: &Raw) -> Entry<'_> {
        let mut payload = &self.bytes[raw.payload..raw.payload_end];
        let fields = if raw.flags & SHARED != 0 {
            let mut names = &self.bytes[..self.body];
            let left = take_varint(&mut names) as usize;
            Fields {
                names: Some(names),
                payload,
                left,
            }
        } else {
            let left = take_varint(&mut payload) as usize;
            Fields {
                names: None,
                payload,
                left,
            }
        };
        Entry { id: raw.id, fields }
    }

    #[inline]
    fn raw(&self, at: usize) -> Raw {
        let mut rest = &self.bytes[at..];
        let content = take_varint(&mut rest) as usize;
        let flags_at = self.bytes.len() - rest.len();
        let flags = rest[0];
        rest = &rest[1..];
        let ms = take_varint(&mut rest);
        let seq = take_varint(&mut rest);
        let id = StreamId {
            ms: self.base.ms + ms,
            seq: if ms == 0 { self.base.seq + seq } else { seq },
        };
        let payload = self.bytes.len() - rest.len();
        let payload_end = flags_at + content;
        let end = payload_end + varint_len((payload_end - at) as u64);
        Raw {
            id,
            flags,
            flags_at,
            payload,
            payload_end,
            end,
        }
    }

    fn start_of_previous(&self, end: usize) -> usize {
        let (mut at, mut length, mut shift) = (end, 0, 0);
        loop {
            at -= 1;
            let byte = self.bytes[at];
            length |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return at - length;
            }
            shift += 7;
        }
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_invariants(&self) {
        let (mut at, mut live, mut dead, mut head) = (self.body, 0, 0, None);
        let mut previous = None;
        while at < self.bytes.len() {
            let raw = self.raw(at);
            assert!(
                previous.is_none_or(|p| p < raw.id),
                "ids out of order at {}",
                raw.id
            );
            assert!(
                raw.id >= self.base && raw.id <= self.last,
                "id {} out of bounds",
                raw.id
            );
            assert_eq!(
                self.start_of_previous(raw.end),
                at,
                "back length of {}",
                raw.id
            );
            previous = Some(raw.id);
            if raw.flags & DEAD == 0 {
                live += 1;
                head.get_or_insert(at);
            } else {
                dead += 1;
            }
            at = raw.end;
        }
        assert_eq!(
            (live, dead),
            (self.live, self.dead),
            "counts of block {}",
            self.base
        );
        assert_eq!(head, Some(self.head), "head of block {}", self.base);
    }
}

#[inline]
fn varint_len(value: u64) -> usize {
    if value < 0x80 {
        1
    } else {
        (70 - value.leading_zeros() as usize) / 7
    }
}

#[inline]
fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Writes a number so that it can be read from its end: the last byte holds the low bits.
#[inline]
fn put_back(bytes: &mut Vec<u8>, value: u64) {
    let mut shift = 7 * (varint_len(value) - 1);
    let mut more = 0;
    loop {
        bytes.push((value >> shift) as u8 & 0x7f | more);
        more = 0x80;
        if shift == 0 {
            return;
        }
        shift -= 7;
    }
}

#[inline]
fn put_bytes(bytes: &mut Vec<u8>, part: &[u8]) {
    put_varint(bytes, part.len() as u64);
    bytes.extend_from_slice(part);
}

#[inline]
fn take_varint(bytes: &mut &[u8]) -> u64 {
    let first = bytes[0];
    if first < 0x80 {
        *bytes = &bytes[1..];
        return u64::from(first);
    }
    let (mut value, mut shift, mut at) = (u64::from(first & 0x7f), 7, 1);
    loop {
        let byte = bytes[at];
        at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            *bytes = &bytes[at..];
            return value;
        }
        shift += 7;
    }
}

#[inline]
fn take_bytes<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let len = take_varint(bytes) as usize;
    let (part, rest) = bytes.split_at(len);
    *bytes = rest;
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_both_directions() {
        for value in [0, 1, 127, 128, 16383, 16384, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(bytes.len(), varint_len(value));
            assert_eq!(take_varint(&mut &bytes[..]), value);
            bytes.clear();
            put_back(&mut bytes, value);
            assert_eq!(bytes.len(), varint_len(value));
        }
    }

    #[test]
    fn a_small_entry_with_the_names_of_its_block_is_small() {
        let fields = |v: &'static str| ["sensor", "0000001", "temp", v].map(str::as_bytes);
        let mut block = Block::new(
            StreamId::new(1_700_000_000_000, 0),
            fields("21.5").into_iter(),
            0,
        );
        let before = block.len_bytes();
        let id = StreamId::new(1_700_000_000_900, 0);
        assert!(block.append(id, fields("21.6").into_iter(), BlockLimits::default()));
        assert!(
            block.len_bytes() - before <= 24,
            "{}",
            block.len_bytes() - before
        );
    }
}
