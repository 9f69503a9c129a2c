//! Sparse arrays: values under indexes of 64 bits.
//!
//! The elements stand in ascending order in [`Leaf`]s of up to 128, and the leaves in branches of
//! up to 256. A run without holes keeps no indexes, a run of integers only their bytes; indexes far
//! apart cost what their distance needs. So a dense array is as small as its packed values, and a
//! lone element at the end of the index space costs no more than one at its beginning.
//!
//! Beside its elements an array has a cursor, the index that was appended to last, and knows how
//! Redis would cut it: into slices of equal numbers of indexes. Those are only counted here, since
//! clients can ask.
//!
//! # Invariants
//! - Indexes are below [`INDEX_MAX`] or it; leaves and branches are never empty.
//! - A leaf's base is above every index of the leaf before it.
//! - `count`, `slices` and `blocks` are exact.
//!
//! # Why not slices as Redis has them?
//! Eight bytes an element, and some 100 for each that stands alone in its slice. Here a small
//! integer takes 1.5 and a lone element about 12.

mod leaf;

#[cfg(test)]
mod tests;

use crate::listpack::Entry;
use leaf::{LEN_MAX, Leaf};

/// The greatest index.
pub const INDEX_MAX: u64 = u64::MAX - 1;

/// Leaves in a branch.
const BRANCH_MAX: usize = 256;
/// Slices that one directory can have in Redis; above, it makes blocks of as many.
const BLOCK_SLICES: u64 = 2048;
/// Places in Redis's directory of blocks at first.
const BLOCKS_MIN: u64 = 4;

/// A sparse array.
pub struct Array {
    branches: Vec<Branch>,
    count: u64,
    /// The index that was appended to last.
    cursor: Option<u64>,
    /// Slices that have an element.
    slices: u64,
    /// Blocks of slices that have an element.
    blocks: u64,
    /// Places in a directory of blocks; 0 while there is none.
    block_places: u64,
    /// Indexes in a slice, as a power of two.
    slice_bits: u8,
}

struct Branch {
    leaves: Vec<Leaf>,
}

/// Where an element stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    branch: usize,
    leaf: usize,
    slot: usize,
}

impl Branch {
    fn base(&self) -> u64 {
        self.leaves[0].base()
    }

    /// The leaf that an index belongs to.
    #[inline]
    fn find(&self, index: u64) -> usize {
        let leaves = &self.leaves;
        // Full leaves without holes stand where division says.
        let distance = index.saturating_sub(self.base()) / LEN_MAX as u64;
        if let Ok(guess) = usize::try_from(distance)
            && guess < leaves.len()
            && leaves[guess].base() <= index
            && leaves.get(guess + 1).is_none_or(|next| next.base() > index)
        {
            return guess;
        }
        let above = leaves.partition_point(|leaf| leaf.base() <= index);
        above.saturating_sub(1)
    }
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "array of {} in {}", self.count, self.len())
    }
}

impl Array {
    /// An empty array that counts slices of `slice_size` indexes, a power of two.
    pub fn new(slice_size: u32) -> Self {
        #[allow(clippy::cast_possible_truncation)] // At most 31.
        Self {
            branches: Vec::new(),
            count: 0,
            cursor: None,
            slices: 0,
            blocks: 0,
            block_places: 0,
            slice_bits: slice_size.trailing_zeros().min(31) as u8,
        }
    }

    /// How many elements it has.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// One more than its greatest index; 0 for an empty one.
    pub fn len(&self) -> u64 {
        let last = self.branches.last().and_then(|branch| branch.leaves.last());
        last.map_or(0, |leaf| leaf.last() + 1)
    }

    /// The index that was appended to last.
    pub fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// Sets the index that was appended to last.
    pub fn set_cursor(&mut self, cursor: Option<u64>) {
        self.cursor = cursor;
    }

    /// Indexes in a slice.
    pub fn slice_size(&self) -> u32 {
        1 << self.slice_bits
    }

    /// Slices that have an element.
    pub fn slices(&self) -> u64 {
        self.slices
    }

    /// Places in the directory that Redis keeps of it, of slices or of blocks.
    pub fn directory_size(&self) -> u64 {
        match self.block_places {
            0 => (self.len().div_ceil(self.slice_size().into())).next_power_of_two(),
            places => places,
        }
    }

    /// Blocks of slices that have an element, if Redis keeps them in blocks.
    pub fn directory_blocks(&self) -> u64 {
        if self.block_places == 0 {
            0
        } else {
            self.blocks
        }
    }

    /// The value under an index.
    #[inline]
    pub fn get(&self, index: u64) -> Option<Entry<'_>> {
        let (branch, leaf) = self.leaf_of(index)?;
        let leaf = &self.branches[branch].leaves[leaf];
        Some(leaf.value(leaf.find(index).ok()?))
    }

    /// The branch and the leaf that an index belongs to; `None` where there are none at all.
    #[inline]
    fn leaf_of(&self, index: u64) -> Option<(usize, usize)> {
        if self.branches.is_empty() {
            return None;
        }
        let above = self.branches.partition_point(|b| b.base() <= index);
        let branch = above.saturating_sub(1);
        Some((branch, self.branches[branch].find(index)))
    }

    /// Sets the value under an index; true where there was none.
    ///
    /// # Panics
    /// When the index is above [`INDEX_MAX`].
    pub fn set(&mut self, index: u64, value: &[u8]) -> bool {
        assert!(index <= INDEX_MAX, "no index: {index}");
        let Some((branch, at)) = self.leaf_of(index) else {
            let leaves = vec![Leaf::of(index, value)];
            self.branches = vec![Branch { leaves }];
            self.counted(index, (None, None));
            return true;
        };
        let leaf = &mut self.branches[branch].leaves[at];
        let slot = match leaf.find(index) {
            Ok(slot) => {
                leaf.replace(slot, value);
                return false;
            }
            Err(slot) => slot,
        };
        let place = Place {
            branch,
            leaf: at,
            slot,
        };
        let beside = self.beside(place, false);
        self.add(place, index, value);
        self.counted(index, beside);
        true
    }

    /// Adds an element in the order of indexes, before the one at `place`.
    fn add(&mut self, place: Place, index: u64, value: &[u8]) {
        let Place { branch, leaf, slot } = place;
        let leaves = &mut self.branches[branch].leaves;
        if leaves[leaf].len() < LEN_MAX {
            leaves[leaf].insert(slot, index, value);
            return;
        }
        if slot == LEN_MAX {
            // Behind a full leaf: into the next one where that has room, else into a new one.
            if let Some(next) = leaves.get_mut(leaf + 1)
                && next.len() < LEN_MAX
            {
                next.insert(0, index, value);
                return;
            }
            leaves[leaf].shrink();
            self.add_leaf(branch, leaf + 1, Leaf::of(index, value));
            return;
        }
        let mut right = leaves[leaf].split_off(LEN_MAX / 2);
        match slot.checked_sub(LEN_MAX / 2) {
            Some(slot) if slot > 0 => right.insert(slot, index, value),
            _ => leaves[leaf].insert(slot, index, value),
        }
        self.add_leaf(branch, leaf + 1, right);
    }

    fn add_leaf(&mut self, branch: usize, at: usize, leaf: Leaf) {
        let is_last = branch + 1 == self.branches.len();
        let leaves = &mut self.branches[branch].leaves;
        if leaves.len() < BRANCH_MAX {
            if leaves.len() == leaves.capacity() {
                leaves.reserve_exact((leaves.len() / 4).max(1));
            }
            leaves.insert(at, leaf);
            return;
        }
        let cut = if is_last && at == BRANCH_MAX {
            BRANCH_MAX
        } else {
            BRANCH_MAX / 2
        };
        let mut right = leaves.split_off(cut);
        if at < cut {
            leaves.insert(at, leaf);
        } else {
            right.insert(at - cut, leaf);
        }
        self.branches.insert(branch + 1, Branch { leaves: right });
    }

    /// The indexes before and behind a place; with `taken` the element there is passed over.
    fn beside(&self, place: Place, taken: bool) -> (Option<u64>, Option<u64>) {
        let leaves = &self.branches[place.branch].leaves;
        let leaf = &leaves[place.leaf];
        let before = match place.slot.checked_sub(1) {
            Some(slot) => Some(leaf.index(slot)),
            None => match place.leaf.checked_sub(1) {
                Some(at) => Some(leaves[at].last()),
                None => place.branch.checked_sub(1).map(|at| {
                    let leaf = self.branches[at].leaves.last();
                    leaf.expect("no branch is empty").last()
                }),
            },
        };
        let next = place.slot + usize::from(taken);
        let behind = if next < leaf.len() {
            Some(leaf.index(next))
        } else {
            let leaf = leaves.get(place.leaf + 1);
            let leaf = leaf.or_else(|| self.branches.get(place.branch + 1)?.leaves.first());
            leaf.map(|leaf| leaf.index(0))
        };
        (before, behind)
    }

    /// Slices and blocks, 0 or 1 of each, that have `index` and neither of its neighbours.
    fn alone(&self, index: u64, (before, behind): (Option<u64>, Option<u64>)) -> (u64, u64) {
        let alone = |bits: u8| {
            let same = |other: Option<u64>| other.is_some_and(|o| o >> bits == index >> bits);
            u64::from(!same(before) && !same(behind))
        };
        let slice = alone(self.slice_bits);
        if slice == 0 {
            return (0, 0);
        }
        (slice, alone(self.block_bits()))
    }

    fn block_bits(&self) -> u8 {
        self.slice_bits + 11
    }

    /// Counts a new element between two others.
    fn counted(&mut self, index: u64, beside: (Option<u64>, Option<u64>)) {
        let (slices, blocks) = self.alone(index, beside);
        self.count += 1;
        self.slices += slices;
        self.blocks += blocks;
        if self.block_places == 0 && index >> self.slice_bits >= BLOCK_SLICES {
            self.block_places = BLOCKS_MIN;
        }
        if self.block_places > 0 {
            self.block_places = self.block_places.max(self.blocks.next_power_of_two());
        }
    }

    /// Removes the element under an index; true where there was one.
    pub fn remove(&mut self, index: u64) -> bool {
        let Some((branch, leaf)) = self.leaf_of(index) else {
            return false;
        };
        let Ok(slot) = self.branches[branch].leaves[leaf].find(index) else {
            return false;
        };
        let place = Place { branch, leaf, slot };
        let (slices, blocks) = self.alone(index, self.beside(place, true));
        self.count -= 1;
        self.slices -= slices;
        self.blocks -= blocks;
        let leaves = &mut self.branches[branch].leaves;
        if leaves[leaf].len() == 1 {
            leaves.remove(leaf);
            if leaves.is_empty() {
                self.branches.remove(branch);
            }
            return true;
        }
        leaves[leaf].remove(slot);
        self.merge(branch, leaf);
        true
    }

    /// Joins a leaf that became small with one beside it.
    fn merge(&mut self, branch: usize, leaf: usize) {
        let leaves = &mut self.branches[branch].leaves;
        if leaves[leaf].len() > LEN_MAX / 4 {
            return;
        }
        for left in [leaf.wrapping_sub(1), leaf] {
            if left < leaves.len()
                && left + 1 < leaves.len()
                && leaves[left].len() + leaves[left + 1].len() <= LEN_MAX / 2
            {
                let right = leaves.remove(left + 1);
                leaves[left].absorb(&right);
                return;
            }
        }
    }

    /// Removes the elements from one index to another; returns how many there were.
    pub fn remove_range(&mut self, from: u64, to: u64) -> u64 {
        let before = self.count;
        while let Some(place) = self.seek(from) {
            let leaf = &self.branches[place.branch].leaves[place.leaf];
            let first = leaf.index(place.slot);
            if first > to {
                break;
            }
            if place.slot > 0 || leaf.last() > to {
                self.remove(first);
                continue;
            }
            self.remove_leaves(place, to);
        }
        before - self.count
    }

    /// Removes the leaves of a branch from a place on that end at or before `to`: one at least.
    fn remove_leaves(&mut self, place: Place, to: u64) {
        let leaves = &self.branches[place.branch].leaves[place.leaf..];
        let whole = leaves.partition_point(|leaf| leaf.last() <= to);
        let (slice_bits, block_bits) = (self.slice_bits, self.block_bits());
        let (mut count, mut slices, mut blocks) = (0, 0, 0);
        let mut before = self.beside(place, false).0;
        for leaf in &leaves[..whole] {
            count += leaf.len() as u64;
            for slot in 0..leaf.len() {
                let index = leaf.index(slot);
                let differs = |bits: u8| before.is_none_or(|b| b >> bits != index >> bits);
                slices += u64::from(differs(slice_bits));
                blocks += u64::from(differs(block_bits));
                before = Some(index);
            }
        }
        // The last slice lives on where an element follows in it, unless it was not counted above
        // because it lives on anyhow.
        let end = Place {
            branch: place.branch,
            leaf: place.leaf + whole - 1,
            slot: leaves[whole - 1].len() - 1,
        };
        let behind = self.beside(end, true).1;
        let (first, last) = (self.beside(place, false).0, before);
        let goes_on = |bits: u8| {
            let of = |index: Option<u64>| index.map(|index| index >> bits);
            u64::from(of(last) == of(behind) && of(last) != of(first))
        };
        self.slices -= slices - goes_on(slice_bits);
        self.blocks -= blocks - goes_on(block_bits);
        self.count -= count;
        let leaves = &mut self.branches[place.branch].leaves;
        leaves.drain(place.leaf..place.leaf + whole);
        if leaves.is_empty() {
            self.branches.remove(place.branch);
        }
    }

    /// The first element at or behind an index.
    fn seek(&self, index: u64) -> Option<Place> {
        let (branch, leaf) = self.leaf_of(index)?;
        let (Ok(slot) | Err(slot)) = self.branches[branch].leaves[leaf].find(index);
        let place = Place { branch, leaf, slot };
        self.settled(place)
    }

    /// The place itself, or the next leaf's first where it is behind its leaf.
    #[inline]
    fn settled(&self, mut place: Place) -> Option<Place> {
        let leaves = &self.branches.get(place.branch)?.leaves;
        if place.slot < leaves[place.leaf].len() {
            return Some(place);
        }
        place.slot = 0;
        place.leaf += 1;
        if place.leaf == leaves.len() {
            place.leaf = 0;
            place.branch += 1;
        }
        (place.branch < self.branches.len()).then_some(place)
    }

    #[inline]
    fn leaf(&self, place: Place) -> &Leaf {
        &self.branches[place.branch].leaves[place.leaf]
    }

    /// The last element at or before an index.
    fn seek_back(&self, index: u64) -> Option<Place> {
        let (branch, leaf) = self.leaf_of(index)?;
        let place = |slot| Place { branch, leaf, slot };
        match self.branches[branch].leaves[leaf].find(index) {
            Ok(slot) => Some(place(slot)),
            Err(slot) => self.previous(place(slot)),
        }
    }

    /// The element before a place.
    #[inline]
    fn previous(&self, mut place: Place) -> Option<Place> {
        if place.slot == 0 {
            if place.leaf == 0 {
                place.branch = place.branch.checked_sub(1)?;
                place.leaf = self.branches[place.branch].leaves.len();
            }
            place.leaf -= 1;
            place.slot = self.branches[place.branch].leaves[place.leaf].len();
        }
        place.slot -= 1;
        Some(place)
    }

    /// The elements from one index to another, both included: descending where the first is the
    /// greater one.
    pub fn range(&self, from: u64, to: u64) -> Range<'_> {
        let at = if from <= to {
            self.seek(from)
        } else {
            self.seek_back(from)
        };
        let start = at.map_or(0, |place| self.leaf(place).start(place.slot));
        Range {
            array: self,
            at,
            start,
            to,
            descends: from > to,
        }
    }

    /// All elements, in the order of indexes.
    pub fn iter(&self) -> Range<'_> {
        self.range(0, INDEX_MAX)
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        let branches = self.branches.iter().map(|branch| {
            let leaves = branch.leaves.iter().map(Leaf::memory_bytes);
            branch.leaves.capacity() * size_of::<Leaf>() + leaves.sum::<usize>()
        });
        self.branches.capacity() * size_of::<Branch>() + branches.sum::<usize>()
    }

    /// Frees about `budget` elements, and leaves nothing that can be relied on. True when none is
    /// left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..(budget / LEN_MAX).max(1) {
            let Some(branch) = self.branches.last_mut() else {
                break;
            };
            branch.leaves.pop();
            if branch.leaves.is_empty() {
                self.branches.pop();
            }
        }
        self.branches.is_empty()
    }

    /// Panics where what the module's header says does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        let mut before = None;
        let (mut count, mut slices, mut blocks) = (0, 0, 0);
        for branch in &self.branches {
            assert!((1..=BRANCH_MAX).contains(&branch.leaves.len()));
            for leaf in &branch.leaves {
                leaf.check();
                assert!(before.is_none_or(|before| before < leaf.base()));
                for slot in 0..leaf.len() {
                    let index = leaf.index(slot);
                    let differs = |bits: u8| before.is_none_or(|b| b >> bits != index >> bits);
                    slices += u64::from(differs(self.slice_bits));
                    blocks += u64::from(differs(self.block_bits()));
                    before = Some(index);
                    count += 1;
                }
            }
        }
        assert_eq!(
            (self.count, self.slices, self.blocks),
            (count, slices, blocks)
        );
        assert_eq!(self.len(), before.map_or(0, |last| last + 1));
    }
}

impl Clone for Array {
    fn clone(&self) -> Self {
        let mut copy = Self::new(self.slice_size());
        let mut text = [0; crate::decimal::TEXT_MAX];
        for (index, value) in self.iter() {
            copy.set(index, value.bytes(&mut text));
        }
        copy.cursor = self.cursor;
        copy.block_places = self.block_places;
        copy
    }
}

/// Elements of an array, one after the other.
pub struct Range<'a> {
    array: &'a Array,
    at: Option<Place>,
    /// Where the value of that element begins in its leaf.
    start: usize,
    to: u64,
    descends: bool,
}

impl<'a> Iterator for Range<'a> {
    type Item = (u64, Entry<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let place = self.at?;
        let leaf = self.array.leaf(place);
        let index = leaf.index(place.slot);
        let value = leaf.value_from(place.slot, self.start);
        if self.descends {
            if index < self.to {
                return None;
            }
            if let Some(slot) = place.slot.checked_sub(1) {
                self.start -= leaf.stride(slot);
                self.at = Some(Place { slot, ..place });
            } else {
                self.leap(self.array.previous(place));
            }
        } else {
            if index > self.to {
                return None;
            }
            let slot = place.slot + 1;
            if slot < leaf.len() {
                self.start += leaf.stride(place.slot);
                self.at = Some(Place { slot, ..place });
            } else {
                self.leap(self.array.settled(Place { slot, ..place }));
            }
        }
        Some((index, value))
    }
}

impl Range<'_> {
    /// Goes on in another leaf.
    fn leap(&mut self, at: Option<Place>) {
        let start = at.map_or(0, |place| self.array.leaf(place).start(place.slot));
        (self.at, self.start) = (at, start);
    }
}
