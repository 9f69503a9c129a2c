//! A listpack: a short sequence of strings and integers in one buffer.
//!
//! ```text
//! +----------------+--------------+-------+-------+- - -+-------+------+
//! | bytes in all   | elements     | entry | entry |     | entry | 0xFF |
//! | u32, little e. | u16, 65535=? |       |       |     |       |      |
//! +----------------+--------------+-------+-------+- - -+-------+------+
//! ```
//!
//! Every small hash, list, set and sorted set is one of these. The bytes are the ones that an RDB
//! file holds, so saving copies them and loading checks them once. What an entry looks like is
//! told in `listpack/codec.rs`.
//!
//! # Invariants
//! - The buffer is whole and canonical at all times: `from_bytes` rewrites what other writers
//!   spelt differently. So a search encodes its needle once and then compares bytes.
//! - The header's count is exact below 65535, which means "count them yourself".
//!
//! # Why not a pointer of 8 bytes, with the length in the header only?
//! It would save 16 bytes a collection at the price of `unsafe` in every access. The engine can
//! still store the bytes in its own record.

mod codec;
#[cfg(test)]
mod tests;

pub use codec::Entry;
pub(crate) use codec::{END, Encoded, check, next, prev, read, skip, skip_back};

use crate::growth;

/// The bytes before the first entry.
pub(crate) const HEADER: usize = 6;

/// The header and the end byte: what a listpack takes beside its entries.
pub(crate) const FRAME: usize = HEADER + 1;

/// The header's count that stands for "65535 or more".
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The header of a listpack whose entries take `entry_bytes` and are `count`.
pub(crate) fn header(entry_bytes: usize, count: usize) -> [u8; HEADER] {
    let total = u32::try_from(entry_bytes + FRAME).expect("a listpack stays under 4 GiB");
    let count = u16::try_from(count).unwrap_or(COUNT_UNKNOWN);
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&total.to_le_bytes());
    header[4..].copy_from_slice(&count.to_le_bytes());
    header
}

/// Bytes that are no listpack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl std::fmt::Display for Damaged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the packed bytes are damaged")
    }
}

impl std::error::Error for Damaged {}

/// Where an entry begins. It holds until the listpack is next changed; one that is used later
/// reads a wrong entry or panics, and never reads outside of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position(usize);

/// A sequence of strings and integers in one buffer.
#[derive(Clone, PartialEq, Eq)]
pub struct Listpack {
    bytes: Vec<u8>,
}

const _: () = assert!(size_of::<Listpack>() == 24);

impl Default for Listpack {
    fn default() -> Listpack {
        Listpack::new()
    }
}

impl std::fmt::Debug for Listpack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Listpack {
    /// The most bytes that a listpack should take; callers ask `can_hold` before they add.
    pub const BYTES_MAX: usize = 1 << 30;

    /// An empty listpack.
    pub fn new() -> Listpack {
        Listpack::with_capacity(FRAME)
    }

    /// An empty listpack with room for `capacity` bytes in all.
    pub fn with_capacity(capacity: usize) -> Listpack {
        let mut bytes = Vec::with_capacity(capacity.max(FRAME));
        bytes.extend_from_slice(&header(0, 0));
        bytes.push(END);
        Listpack { bytes }
    }

    /// Takes over the bytes of a listpack after checking every one of them.
    ///
    /// Entries that are valid and not in their shortest form are rewritten. The time and memory
    /// are linear in the bytes, whatever they hold.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Listpack, Damaged> {
        let (canonical, count) = inspect(&bytes).ok_or(Damaged)?;
        if canonical {
            let mut pack = Listpack { bytes };
            pack.set_header(count);
            return Ok(pack);
        }
        let mut pack = Listpack::with_capacity(bytes.len());
        let mut at = HEADER;
        while let Some(found) = check(&bytes[..bytes.len() - 1], at) {
            match found.entry {
                Entry::Int(n) => pack.push_back_int(n),
                Entry::Bytes(value) => pack.push_back(value),
            }
            at = found.next;
        }
        Ok(pack)
    }

    /// The bytes, as an RDB file holds them.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The bytes, as an RDB file holds them.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The number of elements. O(1) below 65535 elements, O(n) from there on.
    #[inline]
    pub fn len(&self) -> usize {
        match self.count() {
            COUNT_UNKNOWN => self.iter().count(),
            count => usize::from(count),
        }
    }

    /// Whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == FRAME
    }

    /// The bytes in use, header and end included: what Redis's limits count.
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that the buffer takes on the heap.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Whether strings of `extra` bytes can be added within `BYTES_MAX`.
    #[inline]
    pub fn can_hold(&self, extra: usize) -> bool {
        self.bytes.len().saturating_add(extra) <= Self::BYTES_MAX
    }

    /// Appends an element.
    ///
    /// # Panics
    /// Like everything that adds: if the listpack would pass 4 GiB. See `can_hold`.
    #[inline]
    pub fn push_back(&mut self, value: &[u8]) {
        self.append(&Encoded::new(value));
    }

    /// Appends an integer.
    #[inline]
    pub fn push_back_int(&mut self, n: i64) {
        self.append(&Encoded::int(n));
    }

    /// Puts an element before all others. Moves the whole buffer.
    #[inline]
    pub fn push_front(&mut self, value: &[u8]) {
        self.insert_at(HEADER, &Encoded::new(value));
    }

    /// Puts an element before the one at `position`; returns where it is.
    pub fn insert_before(&mut self, position: Position, value: &[u8]) -> Position {
        self.insert_at(position.0, &Encoded::new(value));
        position
    }

    /// Puts an element after the one at `position`; returns where it is.
    pub fn insert_after(&mut self, position: Position, value: &[u8]) -> Position {
        let at = next(&self.bytes, position.0);
        self.insert_at(at, &Encoded::new(value));
        Position(at)
    }

    /// Replaces the element at `position`, which stays where it is.
    pub fn replace(&mut self, position: Position, value: &[u8]) {
        let old = next(&self.bytes, position.0) - position.0;
        let encoded = Encoded::new(value);
        encoded.write(self.splice(position.0, old, encoded.len()));
    }

    /// Removes the element at `position`; returns where the one after it is now.
    pub fn remove(&mut self, position: Position) -> Option<Position> {
        self.remove_range(position, 1)
    }

    /// Removes up to `count` elements from `position` on; returns where the one after them is now.
    pub fn remove_range(&mut self, position: Position, count: usize) -> Option<Position> {
        let (start, end) = (position.0, self.end());
        let (mut at, mut removed) = (start, 0);
        while removed < count && at < end {
            at = next(&self.bytes, at);
            removed += 1;
        }
        let known = self.count();
        self.splice(start, at - start, 0);
        if known != COUNT_UNKNOWN {
            self.set_count(known - u16::try_from(removed).expect("no more than were counted"));
        }
        self.at_entry(start)
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        self.splice(HEADER, self.bytes.len() - FRAME, 0);
        self.set_count(0);
    }

    /// Gives back the memory that is not in use.
    pub fn shrink_to_fit(&mut self) {
        self.bytes.shrink_to_fit();
    }

    /// Where the first element is.
    #[inline]
    pub fn first(&self) -> Option<Position> {
        self.at_entry(HEADER)
    }

    /// Where the last element is.
    #[inline]
    pub fn last(&self) -> Option<Position> {
        (!self.is_empty()).then(|| Position(prev(&self.bytes, self.end())))
    }

    /// Where the element after the one at `position` is.
    #[inline]
    pub fn next(&self, position: Position) -> Option<Position> {
        self.at_entry(next(&self.bytes, position.0))
    }

    /// Where the element before the one at `position` is.
    #[inline]
    pub fn prev(&self, position: Position) -> Option<Position> {
        (position.0 > HEADER).then(|| Position(prev(&self.bytes, position.0)))
    }

    /// The element at `position`.
    #[inline]
    pub fn get(&self, position: Position) -> Entry<'_> {
        read(&self.bytes, position.0).0
    }

    /// Where the element `index` is, from 0 on. Walks from the nearer end.
    pub fn seek(&self, index: usize) -> Option<Position> {
        let len = self.len();
        if index >= len {
            return None;
        }
        Some(Position(match index <= len / 2 {
            true => skip(&self.bytes, HEADER, index),
            false => skip_back(&self.bytes, self.end(), len - index),
        }))
    }

    /// Where the element `index` from the back is; the last one is 0.
    pub fn seek_back(&self, index: usize) -> Option<Position> {
        self.seek(self.len().checked_sub(index)?.checked_sub(1)?)
    }

    /// Where `value` first is among the elements 0, `skip` + 1, 2 * (`skip` + 1) and so on: with
    /// `skip` 1, among the fields of a hash.
    #[inline]
    pub fn find(&self, value: &[u8], skip: usize) -> Option<Position> {
        self.find_from(self.first()?, value, skip)
    }

    /// As `find`, counting from the element at `from` on.
    pub fn find_from(&self, from: Position, value: &[u8], skip: usize) -> Option<Position> {
        let needle = Encoded::new(value);
        let (mut at, end) = (from.0, self.end());
        while at < end {
            if needle.is_at(&self.bytes, at) {
                return Some(Position(at));
            }
            at = next(&self.bytes, at);
            let mut left = skip;
            while left > 0 && at < end {
                at = next(&self.bytes, at);
                left -= 1;
            }
        }
        None
    }

    /// The elements, from either end.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            bytes: &self.bytes,
            front: HEADER,
            back: self.end(),
        }
    }

    /// The elements from the one at `position` on.
    #[inline]
    pub fn iter_from(&self, position: Position) -> Iter<'_> {
        Iter {
            bytes: &self.bytes,
            front: position.0,
            back: self.end(),
        }
    }

    /// Where the end byte is.
    #[inline]
    fn end(&self) -> usize {
        self.bytes.len() - 1
    }

    #[inline]
    fn at_entry(&self, at: usize) -> Option<Position> {
        (at < self.end()).then_some(Position(at))
    }

    #[inline]
    fn count(&self) -> u16 {
        u16::from_le_bytes([self.bytes[4], self.bytes[5]])
    }

    #[inline]
    fn set_count(&mut self, count: u16) {
        self.bytes[4..HEADER].copy_from_slice(&count.to_le_bytes());
    }

    fn set_header(&mut self, count: usize) {
        let header = header(self.bytes.len() - FRAME, count);
        self.bytes[..HEADER].copy_from_slice(&header);
    }

    #[inline]
    fn append(&mut self, encoded: &Encoded<'_>) {
        let total = self.bytes.len() + encoded.len();
        let told = u32::try_from(total).expect("a listpack stays under 4 GiB");
        growth::reserve(&mut self.bytes, total);
        self.bytes.pop();
        encoded.append(&mut self.bytes);
        self.bytes.push(END);
        self.bytes[..4].copy_from_slice(&told.to_le_bytes());
        self.set_count(self.count().saturating_add(1));
    }

    #[inline]
    fn insert_at(&mut self, at: usize, encoded: &Encoded<'_>) {
        encoded.write(self.splice(at, 0, encoded.len()));
        self.set_count(self.count().saturating_add(1));
    }

    /// Makes the `old` bytes at `at` into `new` bytes, whose contents are then to be written. The
    /// header's size is kept right; its count is not.
    #[inline]
    fn splice(&mut self, at: usize, old: usize, new: usize) -> &mut [u8] {
        let len = self.bytes.len();
        let total = len - old + new;
        if total > len {
            growth::reserve(&mut self.bytes, total);
            self.bytes.resize(total, 0);
        }
        self.bytes.copy_within(at + old..len, at + new);
        if total < len {
            self.bytes.truncate(total);
            growth::relax(&mut self.bytes);
        }
        let total = u32::try_from(total).expect("a listpack stays under 4 GiB");
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        &mut self.bytes[at..at + new]
    }
}

/// Checks the bytes of a listpack. Returns whether they are canonical, and the elements' number.
fn inspect(bytes: &[u8]) -> Option<(bool, usize)> {
    let (header, entries) = bytes.split_first_chunk::<HEADER>()?;
    let total = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    if u32::try_from(bytes.len()) != Ok(total) || entries.last() != Some(&END) {
        return None;
    }
    // The end byte stays outside, so that no entry can reach over it.
    let whole = &bytes[..bytes.len() - 1];
    let (mut at, mut count, mut canonical) = (HEADER, 0, true);
    while at < whole.len() {
        let found = check(whole, at)?;
        canonical &= found.canonical;
        count += 1;
        at = found.next;
    }
    let told = u16::from_le_bytes([header[4], header[5]]);
    (told == COUNT_UNKNOWN || usize::from(told) == count).then_some((canonical, count))
}

impl<'a> IntoIterator for &'a Listpack {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The elements of a listpack, from either end.
#[derive(Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl Iter<'_> {
    /// Where the element is that `next` will return.
    #[inline]
    pub fn position(&self) -> Option<Position> {
        (self.front < self.back).then_some(Position(self.front))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        if self.front >= self.back {
            return None;
        }
        let (entry, next) = read(self.bytes, self.front);
        self.front = next;
        Some(entry)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        self.back = prev(self.bytes, self.back);
        Some(read(self.bytes, self.back).0)
    }
}
