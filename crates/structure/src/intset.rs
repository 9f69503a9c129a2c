//! An intset: a small set of integers, sorted, in one buffer.
//!
//! ```text
//! +-----------------+----------+---------+---------+- - -
//! | width: 2, 4, 8  | elements | integer | integer |        all little endian,
//! | u32             | u32      | `width` | `width` |        the smallest first
//! +-----------------+----------+---------+---------+- - -
//! ```
//!
//! The bytes are the ones that an RDB file holds. The width is that of the widest integer ever
//! added; it never shrinks, as in Redis.
//!
//! # Invariants
//! - The integers rise strictly.
//! - The buffer is exactly the header and the elements that it tells of.

#[cfg(test)]
mod tests;

use crate::growth;
use crate::listpack::Damaged;

/// The bytes before the first integer.
const HEADER: usize = 8;

/// A sorted set of integers in one buffer.
#[derive(Clone, PartialEq, Eq)]
pub struct Intset {
    bytes: Vec<u8>,
}

const _: () = assert!(size_of::<Intset>() == 24);

impl Default for Intset {
    fn default() -> Intset {
        Intset::new()
    }
}

impl std::fmt::Debug for Intset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// The width that `n` needs.
#[inline]
fn width_of(n: i64) -> usize {
    match n {
        -0x8000..=0x7FFF => 2,
        -0x8000_0000..=0x7FFF_FFFF => 4,
        _ => 8,
    }
}

/// The integer `index` of those of `width` bytes in `slots`.
#[inline]
fn read(slots: &[u8], width: usize, index: usize) -> i64 {
    let at = index * width;
    let slot = &slots[at..at + width];
    match *slot {
        [a, b] => i64::from(i16::from_le_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_le_bytes([a, b, c, d])),
        _ => i64::from_le_bytes(slot.try_into().expect("a width is 2, 4 or 8")),
    }
}

impl Intset {
    /// An empty set.
    pub fn new() -> Intset {
        let mut bytes = Vec::with_capacity(growth::capacity_for(HEADER + 2));
        bytes.extend_from_slice(&2u32.to_le_bytes());
        bytes.extend_from_slice(&0u32.to_le_bytes());
        Intset { bytes }
    }

    /// Takes over the bytes of an intset after checking every one of them.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Intset, Damaged> {
        let (header, slots) = bytes.split_first_chunk::<HEADER>().ok_or(Damaged)?;
        let [w0, w1, w2, w3, l0, l1, l2, l3] = *header;
        let width = match u32::from_le_bytes([w0, w1, w2, w3]) {
            width @ (2 | 4 | 8) => width as usize,
            _ => return Err(Damaged),
        };
        let len = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        if slots.len() % width != 0 || slots.len() / width != len {
            return Err(Damaged);
        }
        let rising = |index: usize| read(slots, width, index - 1) < read(slots, width, index);
        if !(1..len).all(rising) {
            return Err(Damaged);
        }
        Ok(Intset { bytes })
    }

    /// The bytes, as an RDB file holds them.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of integers.
    #[inline]
    pub fn len(&self) -> usize {
        self.slots().len() / self.width()
    }

    /// Whether there is no integer.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER
    }

    /// The bytes that the buffer takes on the heap.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The integer `index`, the smallest being 0.
    #[inline]
    pub fn get(&self, index: usize) -> Option<i64> {
        (index < self.len()).then(|| read(self.slots(), self.width(), index))
    }

    /// Whether `n` is in the set.
    #[inline]
    pub fn contains(&self, n: i64) -> bool {
        self.search(n).is_ok()
    }

    /// The index of `n`, or the one at which it would stand.
    #[inline]
    pub fn search(&self, n: i64) -> Result<usize, usize> {
        match self.width() {
            2 => search::<2>(self.slots(), n),
            4 => search::<4>(self.slots(), n),
            _ => search::<8>(self.slots(), n),
        }
    }

    /// Adds `n`; returns whether it was new.
    ///
    /// # Panics
    /// Beyond `u32::MAX` integers; callers turn far smaller sets into other structures.
    pub fn insert(&mut self, n: i64) -> bool {
        let width = self.width();
        if width_of(n) > width {
            self.widen(n);
            return true;
        }
        let Err(index) = self.search(n) else {
            return false;
        };
        let (at, len) = (HEADER + index * width, self.bytes.len());
        growth::reserve(&mut self.bytes, len + width);
        self.bytes.resize(len + width, 0);
        self.bytes.copy_within(at..len, at + width);
        self.bytes[at..at + width].copy_from_slice(&n.to_le_bytes()[..width]);
        self.note_len();
        true
    }

    /// Removes `n`; returns whether it was there.
    pub fn remove(&mut self, n: i64) -> bool {
        let Ok(index) = self.search(n) else {
            return false;
        };
        self.remove_at(index);
        true
    }

    /// Removes and returns the integer `index`.
    pub fn remove_at(&mut self, index: usize) -> Option<i64> {
        let n = self.get(index)?;
        let width = self.width();
        let at = HEADER + index * width;
        self.bytes.copy_within(at + width.., at);
        self.bytes.truncate(self.bytes.len() - width);
        growth::relax(&mut self.bytes);
        self.note_len();
        Some(n)
    }

    /// The integers, from the smallest to the largest.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter {
            slots: self.slots(),
            width: self.width(),
        }
    }

    /// Whether the integers take eight bytes each: one was added that has no room in four.
    #[inline]
    pub fn is_wide(&self) -> bool {
        self.width() == 8
    }

    /// The bytes that each integer takes.
    #[inline]
    fn width(&self) -> usize {
        usize::from(self.bytes[0])
    }

    #[inline]
    fn slots(&self) -> &[u8] {
        &self.bytes[HEADER..]
    }

    /// Writes the number of integers into the header.
    fn note_len(&mut self) {
        let len = u32::try_from(self.len()).expect("an intset has under 2^32 integers");
        self.bytes[4..HEADER].copy_from_slice(&len.to_le_bytes());
    }

    /// Adds `n`, which is wider than all others, hence the smallest or the largest.
    fn widen(&mut self, n: i64) {
        let width = width_of(n);
        let mut wide = Vec::new();
        growth::reserve(&mut wide, HEADER + (self.len() + 1) * width);
        wide.extend_from_slice(&(width as u32).to_le_bytes());
        wide.extend_from_slice(&0u32.to_le_bytes());
        let (before, after) = if n < 0 {
            (Some(n), None)
        } else {
            (None, Some(n))
        };
        for n in before.into_iter().chain(self.iter()).chain(after) {
            wide.extend_from_slice(&n.to_le_bytes()[..width]);
        }
        self.bytes = wide;
        self.note_len();
    }
}

/// Searches integers of `WIDTH` bytes, which the compiler then reads in one instruction each.
fn search<const WIDTH: usize>(slots: &[u8], n: i64) -> Result<usize, usize> {
    let (slots, _) = slots.as_chunks::<WIDTH>();
    // Ascending inserts are common, and end here.
    if slots.last().is_none_or(|last| read(last, WIDTH, 0) < n) {
        return Err(slots.len());
    }
    slots.binary_search_by(|slot| read(slot, WIDTH, 0).cmp(&n))
}

impl<'a> IntoIterator for &'a Intset {
    type Item = i64;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

/// The integers of an intset, from either end.
#[derive(Clone)]
pub struct Iter<'a> {
    slots: &'a [u8],
    width: usize,
}

impl Iterator for Iter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let (slot, rest) = self.slots.split_at_checked(self.width)?;
        self.slots = rest;
        Some(read(slot, self.width, 0))
    }

    fn nth(&mut self, n: usize) -> Option<i64> {
        let skipped = n.saturating_mul(self.width).min(self.slots.len());
        self.slots = &self.slots[skipped..];
        self.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let len = self.slots.len() / self.width;
        (len, Some(len))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    #[inline]
    fn next_back(&mut self) -> Option<i64> {
        let (rest, slot) = self
            .slots
            .split_at_checked(self.slots.len().checked_sub(self.width)?)?;
        self.slots = rest;
        Some(read(slot, self.width, 0))
    }
}

impl ExactSizeIterator for Iter<'_> {}
