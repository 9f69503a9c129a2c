//! A run of up to [`LEN_MAX`] elements of an array: their indexes and their values, packed.
//!
//! ```text
//! data: | gaps: len x gap_bytes | lengths: len, mixed values only | values |
//!
//! gap_bytes 0           no gaps are kept: the indexes are base, base + 1, ...
//!           1, 2, 4, 8  each element's index less base, in so many bytes
//! int_bytes 0           mixed values: a length each, 0x80 for one that is kept in `longs`
//!           1, 2, 4, 8  all values are integers, of so many bytes each
//! ```
//!
//! # Invariants
//! - Indexes ascend; `base` is at or below the first of them, and is the first where no gaps are
//!   kept. Indexes without holes keep no gaps.
//! - All integers of a leaf fit its `int_bytes`; a text is kept as an integer only where it is that
//!   integer's one spelling.
//! - As many lengths are `LONG` as `longs` has values, in the same order.

use crate::decimal;
use crate::listpack::Entry;

/// Elements that a leaf can have.
pub(super) const LEN_MAX: usize = 128;
/// The longest value that is kept in a leaf's own bytes.
const SHORT_MAX: usize = 64;
/// The length that stands for a value kept elsewhere.
const LONG: u8 = 0x80;

/// The values of a leaf that are too long for its bytes.
struct Longs {
    values: Vec<Box<[u8]>>,
}

/// A run of elements.
pub(super) struct Leaf {
    base: u64,
    data: Vec<u8>,
    longs: Option<Box<Longs>>,
    len: u8,
    gap_bytes: u8,
    int_bytes: u8,
}

/// Bytes that hold a number, of 1, 2, 4 and 8.
const fn unsigned_bytes(number: u64) -> u8 {
    match number {
        0..=0xff => 1,
        0x100..=0xffff => 2,
        0x1_0000..=0xffff_ffff => 4,
        _ => 8,
    }
}

/// Bytes that hold an integer, of 1, 2, 4 and 8.
const fn signed_bytes(int: i64) -> u8 {
    match int {
        -0x80..=0x7f => 1,
        -0x8000..=0x7fff => 2,
        -0x8000_0000..=0x7fff_ffff => 4,
        _ => 8,
    }
}

/// Reads an unsigned number of `bytes.len()` bytes, 1, 2, 4 or 8.
#[inline]
fn read_unsigned(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        _ => {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }
    }
}

/// Reads a signed number of `bytes.len()` bytes, 1, 2, 4 or 8.
#[inline]
fn read_signed(bytes: &[u8]) -> i64 {
    let shift = 64 - 8 * bytes.len();
    (read_unsigned(bytes) << shift).cast_signed() >> shift
}

impl Leaf {
    /// A leaf of one element.
    pub(super) fn of(index: u64, value: &[u8]) -> Self {
        let mut leaf = Self {
            base: index,
            data: Vec::new(),
            longs: None,
            len: 0,
            gap_bytes: 0,
            int_bytes: decimal::parse(value).map_or(0, signed_bytes),
        };
        leaf.insert(0, index, value);
        leaf
    }

    /// How many elements it has.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.into()
    }

    /// At or below the first index.
    #[inline]
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    /// The index of an element.
    #[inline]
    pub(super) fn index(&self, slot: usize) -> u64 {
        self.base + self.gap(slot)
    }

    /// The last index.
    #[inline]
    pub(super) fn last(&self) -> u64 {
        self.index(self.len() - 1)
    }

    /// Whether its indexes have no holes.
    #[inline]
    pub(super) fn is_solid(&self) -> bool {
        self.gap_bytes == 0
    }

    #[inline]
    fn gap(&self, slot: usize) -> u64 {
        match usize::from(self.gap_bytes) {
            0 => slot as u64,
            width => read_unsigned(&self.data[slot * width..][..width]),
        }
    }

    /// Where an index stands, or where it belongs.
    #[inline]
    pub(super) fn find(&self, index: u64) -> Result<usize, usize> {
        let Some(gap) = index.checked_sub(self.base) else {
            return Err(0);
        };
        let len = self.len();
        if self.is_solid() {
            return match usize::try_from(gap) {
                Ok(slot) if slot < len => Ok(slot),
                _ => Err(len),
            };
        }
        let (mut low, mut high) = (0, len);
        while low < high {
            let middle = usize::midpoint(low, high);
            match self.gap(middle).cmp(&gap) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Bytes of all gaps: where the rest begins.
    #[inline]
    fn gaps_end(&self) -> usize {
        self.len() * usize::from(self.gap_bytes)
    }

    #[inline]
    fn lengths(&self) -> &[u8] {
        &self.data[self.gaps_end()..][..self.len()]
    }

    /// Where a mixed value begins in the data. `slot` may be the number of elements.
    #[inline]
    fn value_at(&self, slot: usize) -> usize {
        let lengths = self.lengths();
        let before: usize = lengths[..slot]
            .iter()
            .map(|&len| if len < LONG { usize::from(len) } else { 0 })
            .sum();
        self.gaps_end() + lengths.len() + before
    }

    /// How many values before a slot are kept elsewhere.
    fn longs_before(&self, slot: usize) -> usize {
        let lengths = &self.lengths()[..slot];
        lengths.iter().filter(|&&len| len == LONG).count()
    }

    /// Where the value of an element begins, for [`Leaf::value_from`]. Nothing where all values are
    /// integers.
    #[inline]
    pub(super) fn start(&self, slot: usize) -> usize {
        match self.int_bytes {
            0 => self.value_at(slot),
            _ => 0,
        }
    }

    /// Bytes from where the value of an element begins to where the next one does.
    #[inline]
    pub(super) fn stride(&self, slot: usize) -> usize {
        match self.int_bytes {
            0 => match self.lengths()[slot] {
                LONG => 0,
                len => len.into(),
            },
            _ => 0,
        }
    }

    /// The value of an element that begins at `start`.
    #[inline]
    pub(super) fn value_from(&self, slot: usize, start: usize) -> Entry<'_> {
        if self.int_bytes > 0 || self.lengths()[slot] == LONG {
            return self.value(slot);
        }
        Entry::Bytes(&self.data[start..start + self.stride(slot)])
    }

    /// The value of an element.
    #[inline]
    pub(super) fn value(&self, slot: usize) -> Entry<'_> {
        let width = usize::from(self.int_bytes);
        if width > 0 {
            let at = self.gaps_end() + slot * width;
            return Entry::Int(read_signed(&self.data[at..at + width]));
        }
        match self.lengths()[slot] {
            LONG => {
                let longs = self.longs.as_ref().expect("a value is kept there");
                Entry::Bytes(&longs.values[self.longs_before(slot)])
            }
            len => Entry::Bytes(&self.data[self.value_at(slot)..][..len.into()]),
        }
    }

    /// Makes room for more bytes, and for a few that may follow.
    fn reserve(&mut self, extra: usize) {
        let spare = self.data.capacity() - self.data.len();
        if spare < extra {
            self.data.reserve_exact(extra.max(self.data.len() / 8));
        }
    }

    /// Puts bytes in between.
    fn splice(&mut self, at: usize, bytes: &[u8]) {
        self.reserve(bytes.len());
        let end = self.data.len();
        self.data.extend_from_slice(bytes);
        if at < end {
            self.data.copy_within(at..end, at + bytes.len());
            self.data[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn cut(&mut self, at: usize, len: usize) {
        self.data.drain(at..at + len);
    }

    /// Makes the integers wide enough for a value, or the values mixed where it is none.
    fn admit(&mut self, value: &[u8]) {
        let width = self.int_bytes;
        if width == 0 {
            return;
        }
        match decimal::parse(value).map(signed_bytes) {
            Some(needed) if needed <= width => {}
            needed => self.recode(needed.unwrap_or(0)),
        }
    }

    /// Rewrites integers in another width, or as texts for 0.
    fn recode(&mut self, int_bytes: u8) {
        let (width, at) = (usize::from(self.int_bytes), self.gaps_end());
        let old = self.data.split_off(at);
        let ints = old.chunks_exact(width).map(read_signed);
        if int_bytes > 0 {
            self.data.reserve_exact(self.len() * usize::from(int_bytes));
            ints.for_each(|int| {
                self.data
                    .extend_from_slice(&int.to_le_bytes()[..int_bytes.into()]);
            });
        } else {
            let (mut lengths, mut texts) = (Vec::new(), Vec::new());
            let mut digits = [0; decimal::TEXT_MAX];
            for int in ints {
                let text = decimal::format(int, &mut digits);
                #[allow(clippy::cast_possible_truncation)] // At most 20.
                lengths.push(text.len() as u8);
                texts.extend_from_slice(text);
            }
            self.data.reserve_exact(lengths.len() + texts.len());
            self.data.extend_from_slice(&lengths);
            self.data.extend_from_slice(&texts);
        }
        self.int_bytes = int_bytes;
    }

    /// Puts a value where none is yet: its length is in place already.
    fn put_value(&mut self, slot: usize, value: &[u8]) {
        if value.len() > SHORT_MAX {
            let before = self.longs_before(slot);
            let longs = self
                .longs
                .get_or_insert_with(|| Box::new(Longs { values: Vec::new() }));
            longs.values.insert(before, value.into());
        } else {
            let at = self.value_at(slot);
            self.splice(at, value);
        }
    }

    /// Takes a mixed value out; its length stays behind.
    fn take_value(&mut self, slot: usize) {
        match self.lengths()[slot] {
            LONG => {
                let before = self.longs_before(slot);
                let longs = self.longs.as_mut().expect("a value is kept there");
                longs.values.remove(before);
                if longs.values.is_empty() {
                    self.longs = None;
                }
            }
            len => self.cut(self.value_at(slot), len.into()),
        }
    }

    /// Replaces the value of an element.
    pub(super) fn replace(&mut self, slot: usize, value: &[u8]) {
        self.admit(value);
        let width = usize::from(self.int_bytes);
        if width > 0 {
            let int = decimal::parse(value).expect("admitted as an integer");
            let at = self.gaps_end() + slot * width;
            self.data[at..at + width].copy_from_slice(&int.to_le_bytes()[..width]);
            return;
        }
        let at = self.gaps_end() + slot;
        let new = length_of(value);
        if new == self.data[at] && new != LONG {
            let start = self.value_at(slot);
            self.data[start..start + value.len()].copy_from_slice(value);
            return;
        }
        self.take_value(slot);
        self.data[at] = new;
        self.put_value(slot, value);
    }

    /// Adds an element before the one at `slot`, where its index belongs.
    ///
    /// # Panics
    /// When the leaf is full.
    pub(super) fn insert(&mut self, slot: usize, index: u64, value: &[u8]) {
        assert!(self.len() < LEN_MAX, "a full leaf");
        self.admit(value);
        self.make_gap(slot, index);
        let width = usize::from(self.int_bytes);
        if width > 0 {
            let int = decimal::parse(value).expect("admitted as an integer");
            let at = (self.len() + 1) * usize::from(self.gap_bytes) + slot * width;
            self.splice(at, &int.to_le_bytes()[..width]);
            self.len += 1;
        } else {
            let at = (self.len() + 1) * usize::from(self.gap_bytes) + slot;
            self.splice(at, &[length_of(value)]);
            self.len += 1;
            self.put_value(slot, value);
        }
        self.settle();
    }

    /// Makes the indexes ready for one more: `base`, and the gaps with one in place at `slot`.
    fn make_gap(&mut self, slot: usize, index: u64) {
        if self.is_solid() {
            if slot == self.len() && index == self.base + slot as u64 {
                return;
            }
            if slot == 0 && index + 1 == self.base {
                self.base = index;
                return;
            }
        }
        let base = self.base.min(index);
        let needed = unsigned_bytes(self.last().max(index) - base);
        if base != self.base || needed > self.gap_bytes {
            self.write_gaps(base, needed.max(self.gap_bytes));
        }
        let width = usize::from(self.gap_bytes);
        let gap = (index - self.base).to_le_bytes();
        self.splice(slot * width, &gap[..width]);
    }

    /// Writes all gaps anew, from another base and in another width; 0 drops them.
    fn write_gaps(&mut self, base: u64, gap_bytes: u8) {
        let (end, width) = (self.gaps_end(), usize::from(gap_bytes));
        let gaps = (0..self.len()).map(|slot| (self.index(slot) - base).to_le_bytes());
        let gaps: Vec<u8> = match width {
            0 => Vec::new(),
            1 => gaps.map(|gap| gap[0]).collect(),
            2 => gaps.flat_map(|gap| [gap[0], gap[1]]).collect(),
            4 => gaps
                .flat_map(|gap| [gap[0], gap[1], gap[2], gap[3]])
                .collect(),
            _ => gaps.flatten().collect(),
        };
        self.reserve(gaps.len().saturating_sub(end));
        self.data.splice(..end, gaps);
        (self.base, self.gap_bytes) = (base, gap_bytes);
    }

    /// Drops gaps that say nothing.
    fn settle(&mut self) {
        if self.is_solid() || self.len == 0 {
            return;
        }
        let first = self.index(0);
        if self.last() - first == u64::from(self.len) - 1 {
            self.write_gaps(first, 0);
        }
    }

    /// Removes an element.
    pub(super) fn remove(&mut self, slot: usize) {
        if self.is_solid() {
            if slot == 0 {
                self.base = self.base.wrapping_add(1);
            } else if slot + 1 < self.len() {
                self.write_gaps(self.base, 1);
            }
        }
        let (ints, gaps) = (usize::from(self.int_bytes), usize::from(self.gap_bytes));
        if ints > 0 {
            self.cut(self.gaps_end() + slot * ints, ints);
        } else {
            self.take_value(slot);
            self.cut(self.gaps_end() + slot, 1);
        }
        self.cut(slot * gaps, gaps);
        self.len -= 1;
        self.settle();
        if self.data.capacity() > 32 && self.data.len() < self.data.capacity() / 2 {
            self.shrink();
        }
    }

    /// Gives back bytes that it does not need.
    pub(super) fn shrink(&mut self) {
        self.data.shrink_to_fit();
    }

    /// Moves the elements from `slot` on to a leaf of their own.
    pub(super) fn split_off(&mut self, slot: usize) -> Self {
        let mut text = [0; decimal::TEXT_MAX];
        let value = self.value(slot);
        let mut right = Self::of(self.index(slot), value.bytes(&mut text));
        for at in slot + 1..self.len() {
            let value = self.value(at);
            right.insert(right.len(), self.index(at), value.bytes(&mut text));
        }
        while self.len() > slot {
            self.remove(self.len() - 1);
        }
        self.shrink();
        right.shrink();
        right
    }

    /// Takes over the elements of the leaf behind it.
    pub(super) fn absorb(&mut self, right: &Self) {
        let mut text = [0; decimal::TEXT_MAX];
        for slot in 0..right.len() {
            let value = right.value(slot);
            self.insert(self.len(), right.index(slot), value.bytes(&mut text));
        }
    }

    /// Bytes on the heap.
    pub(super) fn memory_bytes(&self) -> usize {
        let longs = self.longs.as_ref().map_or(0, |longs| {
            let values = longs.values.iter().map(|value| value.len());
            size_of::<Longs>()
                + longs.values.capacity() * size_of::<Box<[u8]>>()
                + values.sum::<usize>()
        });
        self.data.capacity() + longs
    }

    /// Checks what the module's header says.
    #[cfg(any(test, debug_assertions))]
    pub(super) fn check(&self) {
        assert!(self.len > 0 && self.len() <= LEN_MAX, "{}", self.len);
        let indexes: Vec<_> = (0..self.len()).map(|slot| self.index(slot)).collect();
        assert!(indexes.is_sorted_by(|a, b| a < b), "{indexes:?}");
        assert!(self.base <= indexes[0]);
        let spread = self.last() - indexes[0] + 1;
        assert_eq!(self.is_solid(), spread == u64::from(self.len));
        let values = if self.int_bytes > 0 {
            assert!(self.longs.is_none());
            self.gaps_end() + self.len() * usize::from(self.int_bytes)
        } else {
            let longs = self.longs.as_ref().map_or(0, |longs| longs.values.len());
            assert_eq!(self.longs_before(self.len()), longs);
            self.value_at(self.len())
        };
        assert_eq!(self.data.len(), values);
    }
}

/// What stands in the lengths for a value.
fn length_of(value: &[u8]) -> u8 {
    match u8::try_from(value.len()) {
        Ok(len) if value.len() <= SHORT_MAX => len,
        _ => LONG,
    }
}
