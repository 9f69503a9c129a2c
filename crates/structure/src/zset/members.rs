//! The member table of a sorted set: from a member's hash to its record.
//!
//! The same segments by hash order as in [`PackedTable`](crate::packed::PackedTable), but a
//! segment holds references to records of the one member store instead of records of its own.
//! 6 bytes a member, and again no operation touches more than two segments.
//!
//! The table does not see members: callers bring the comparison and the rehash.

use crate::packed::chunks::Chunks;
use crate::packed::directory::Directory;
use crate::packed::fragments::{fragment, grown_capacity, guess, lower_bound};
use crate::packed::segment::{DEPTH_MAX, SEGMENT_MAX};
use crate::prefetch::prefetch;

struct Segment {
    fragments: Vec<u16>,
    refs: Vec<u32>,
    prefix: u64,
    depth: u8,
}

impl Segment {
    fn new(prefix: u64, depth: u8, capacity: usize) -> Self {
        Self {
            fragments: Vec::with_capacity(capacity),
            refs: Vec::with_capacity(capacity),
            prefix,
            depth,
        }
    }

    fn heap_bytes(&self) -> usize {
        self.fragments.capacity() * 2 + self.refs.capacity() * 4
    }

    fn insert(&mut self, at: usize, fragment: u16, record: u32) {
        if self.fragments.len() == self.fragments.capacity() {
            let more = grown_capacity(self.fragments.len()) - self.fragments.len();
            self.fragments.reserve_exact(more);
            self.refs.reserve_exact(more);
        }
        self.fragments.insert(at, fragment);
        self.refs.insert(at, record);
    }
}

pub(crate) struct MemberTable {
    directory: Directory,
    segments: Chunks<Segment>,
    heap: usize,
}

impl MemberTable {
    pub(crate) fn new() -> Self {
        let mut segments = Chunks::new();
        segments.push(Segment::new(0, 0, 0));
        Self {
            directory: Directory::new(),
            segments,
            heap: 0,
        }
    }

    /// The record of the member with this hash that `same` agrees to.
    #[inline]
    pub(crate) fn find(&self, hash: u64, same: impl Fn(u32) -> bool) -> Option<u32> {
        let segment = self.segments.get(self.directory.find(hash) as usize);
        let at = position(segment, hash, same)?;
        Some(segment.refs[at])
    }

    /// Fetches what a search for `hash` reads first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let segment = self.segments.get(self.directory.find(hash) as usize);
        let guess = guess(segment.refs.len(), fragment(hash, segment.depth));
        prefetch(segment.fragments.as_ptr().wrapping_add(guess));
        prefetch(segment.refs.as_ptr().wrapping_add(guess));
    }

    /// Inserts the record of a member that is not in the table. `rehash` gives the hash of a
    /// record's member.
    pub(crate) fn insert(&mut self, hash: u64, record: u32, rehash: impl Fn(u32) -> u64) {
        loop {
            let id = self.directory.find(hash) as usize;
            let segment = self.segments.get_mut(id);
            if segment.refs.len() >= SEGMENT_MAX && segment.depth < DEPTH_MAX {
                self.split(id, &rehash);
                continue;
            }
            let heap = segment.heap_bytes();
            let fragment = fragment(hash, segment.depth);
            let at = lower_bound(&segment.fragments, fragment);
            segment.insert(at, fragment, record);
            self.heap = self.heap + segment.heap_bytes() - heap;
            return;
        }
    }

    /// Makes the entry of `from` refer to `to`.
    pub(crate) fn replace(&mut self, hash: u64, from: u32, to: u32) {
        let segment = self.segments.get_mut(self.directory.find(hash) as usize);
        let at = position(segment, hash, |record| record == from).expect("the record is listed");
        segment.refs[at] = to;
    }

    pub(crate) fn remove(&mut self, hash: u64, record: u32) {
        let id = self.directory.find(hash) as usize;
        let segment = self.segments.get_mut(id);
        let at = position(segment, hash, |other| other == record).expect("the record is listed");
        segment.fragments.remove(at);
        segment.refs.remove(at);
        let left = segment.refs.len();
        if segment.refs.capacity() > 16 + left * 2 {
            let heap = segment.heap_bytes();
            segment.fragments.shrink_to(grown_capacity(left));
            segment.refs.shrink_to(grown_capacity(left));
            self.heap = self.heap + segment.heap_bytes() - heap;
        }
        if left <= SEGMENT_MAX / 4 && left.is_multiple_of(16) {
            self.try_merge(id);
        }
    }

    /// As [`PackedTable::scan`](crate::packed::PackedTable::scan).
    pub(crate) fn scan(&self, cursor: u64, count: usize, mut f: impl FnMut(u32)) -> u64 {
        let mut place = cursor & ((1 << 48) - 1);
        let (mut given, mut visited) = (0, 0);
        loop {
            let segment = self.segments.get(self.directory.find(place << 16) as usize);
            let shift = DEPTH_MAX - segment.depth;
            let start = segment.prefix >> 16;
            let first = lower_bound(&segment.fragments, (place >> shift) as u16);
            for at in first..segment.refs.len() {
                let fragment = segment.fragments[at];
                if given >= count.max(1) && at > first && segment.fragments[at - 1] != fragment {
                    return start | u64::from(fragment) << shift;
                }
                f(segment.refs[at]);
                given += 1;
            }
            place = start + (1 << (48 - segment.depth));
            if place >> 48 != 0 {
                return 0;
            }
            visited += 1;
            if given >= count || visited >= count.saturating_add(16) {
                return place;
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.directory.memory_bytes() + self.segments.memory_bytes() + self.heap
    }

    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self, len: usize) {
        let heap = self.segments.iter().map(Segment::heap_bytes);
        assert_eq!(self.heap, heap.sum::<usize>(), "bytes of segments");
        let refs = self.segments.iter().map(|segment| segment.refs.len());
        assert_eq!(refs.sum::<usize>(), len, "references");
    }

    /// Frees about `budget` allocations of a table that is not used any more.
    pub(crate) fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget.div_ceil(2) {
            if self.segments.len() == 1 {
                *self = Self::new();
                return true;
            }
            self.segments.pop();
        }
        false
    }

    fn split(&mut self, id: usize, rehash: &impl Fn(u32) -> u64) {
        let segment = self.segments.get_mut(id);
        let (prefix, depth, heap) = (segment.prefix, segment.depth, segment.heap_bytes());
        let mid = segment.fragments.partition_point(|&f| f < 1 << 15);
        let deeper = depth + 1;
        let half = 1 << (64 - u32::from(deeper));
        let make = |prefix, range: std::ops::Range<usize>| {
            let mut made = Segment::new(prefix, deeper, grown_capacity(range.len()));
            for at in range {
                let record = segment.refs[at];
                let fragment = fragment(rehash(record), deeper);
                // They come sorted by all bits but the last.
                let mut place = made.refs.len();
                while place > 0 && made.fragments[place - 1] > fragment {
                    place -= 1;
                }
                made.insert(place, fragment, record);
            }
            made
        };
        let left = make(prefix, 0..mid);
        let right = make(prefix | half, mid..segment.refs.len());
        self.heap = self.heap + left.heap_bytes() + right.heap_bytes() - heap;
        *segment = left;
        let new = u32::try_from(self.segments.len()).expect("below 2^31 segments");
        self.segments.push(right);
        self.directory.split(prefix, depth, new);
    }

    /// Merges segment `id` with the other half of its range while both are sparse.
    fn try_merge(&mut self, mut id: usize) {
        loop {
            let segment = self.segments.get(id);
            if segment.depth == 0 {
                return;
            }
            let half = 1u64 << (64 - u32::from(segment.depth));
            let other_id = self.directory.find(segment.prefix ^ half) as usize;
            let other = self.segments.get(other_id);
            if other.depth != segment.depth
                || segment.refs.len() + other.refs.len() > SEGMENT_MAX / 2
            {
                return;
            }
            let first = segment.prefix & half == 0;
            let (left, right) = if first {
                (id, other_id)
            } else {
                (other_id, id)
            };
            id = self.merge(left, right);
        }
    }

    /// Merges `right` into `left` and returns where the result is.
    fn merge(&mut self, left: usize, right: usize) -> usize {
        let last = self.segments.len() - 1;
        let gone = self.segments.swap_remove(right);
        let left = if left == last { right } else { left };
        if right < last {
            let moved = self.segments.get(right);
            let number = u32::try_from(right).expect("came from a u32");
            self.directory.set(moved.prefix, moved.depth, number);
        }
        let segment = self.segments.get_mut(left);
        let count = segment.refs.len() + gone.refs.len();
        let mut whole = Segment::new(segment.prefix, segment.depth - 1, grown_capacity(count));
        whole
            .fragments
            .extend(segment.fragments.iter().map(|f| f >> 1));
        whole
            .fragments
            .extend(gone.fragments.iter().map(|f| f >> 1 | 1 << 15));
        whole.refs.extend_from_slice(&segment.refs);
        whole.refs.extend_from_slice(&gone.refs);
        let heap = segment.heap_bytes() + gone.heap_bytes();
        self.heap = self.heap + whole.heap_bytes() - heap;
        let (prefix, depth) = (whole.prefix, whole.depth);
        *segment = whole;
        self.directory
            .merge(prefix, depth, u32::try_from(left).expect("came from a u32"));
        left
    }
}

#[inline]
fn position(segment: &Segment, hash: u64, same: impl Fn(u32) -> bool) -> Option<usize> {
    let fragment = fragment(hash, segment.depth);
    // The reference will be needed as soon as the fragment is found: fetch both at once.
    let guess = guess(segment.refs.len(), fragment);
    prefetch(segment.refs.as_ptr().wrapping_add(guess));
    let mut at = lower_bound(&segment.fragments, fragment);
    while at < segment.refs.len() && segment.fragments[at] == fragment {
        if same(segment.refs[at]) {
            return Some(at);
        }
        at += 1;
    }
    None
}
