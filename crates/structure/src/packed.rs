//! `PackedTable`: the large form of hashes and sets.
//!
//! A map from bytes to bytes, each element with an optional deadline in milliseconds (hash-field
//! TTL); a set is one with empty values. An extendible-hashing directory leads from the high bits
//! of a hash to a segment of at most 512 elements, which holds its own sorted hash fragments and
//! its own packed records. A full segment splits, two sparse neighbours merge, and a segment
//! compacts its own garbage: no operation touches more than two segments, so the table never
//! pauses to rehash, whatever its size.
//!
//! Hashes come from the caller, from one function for the life of the table; only operations that
//! may split a segment take that function.
//!
//! # Invariants
//! - Segments partition the hash space in order, as `directory` says.
//! - `heap` and `timed` are the sums over all segments.
//! - `due_min[c]` is at or before the earliest deadline in chunk `c` of the segments.
//!
//! # Why not one big open-addressing table?
//! It pauses when it doubles, or carries two tables for a while and pays for both; its scan
//! cursors need care (Redis's count with reversed bits) that hash order gives for free; and the
//! snapshot wants chunks of at most 512 elements anyway.

pub(crate) mod chunks;
pub(crate) mod directory;
pub(crate) mod fragments;
mod past;
mod record;
pub(crate) mod segment;
#[cfg(test)]
mod tests;

use crate::journal::Journaled;
use chunks::{CHUNK, Chunks};
use directory::Directory;
use past::Journal;
pub use past::PackedPast;
pub use record::DEADLINE_MAX;
use segment::{BLOB_MAX, DEPTH_MAX, SEGMENT_MAX, Segment};

/// Segments merge when together they are at most half full, so that neither splits again soon.
const MERGE_MAX: usize = SEGMENT_MAX / 2;
/// Draws before [`PackedTable::random`] counts its way to the element instead.
const DRAWS_MAX: usize = 64;
/// Elements that one call of [`PackedTable::expire_due`] looks at, at most (about).
const EXPIRE_LOOKS_MAX: usize = 16 << 10;

/// A map from bytes to bytes in packed segments. See the module's documentation.
pub struct PackedTable {
    directory: Directory,
    segments: Chunks<Journaled<Segment>>,
    due_min: Vec<u64>,
    len: usize,
    heap: usize,
    timed: usize,
    /// A segment has held more than `SEGMENT_MAX` elements.
    overfull: bool,
}

/// A value and its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRef<'a> {
    pub value: &'a [u8],
    /// Milliseconds; what the epoch is, the caller decides.
    pub deadline: Option<u64>,
}

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryRef<'a> {
    pub key: &'a [u8],
    pub value: &'a [u8],
    pub deadline: Option<u64>,
}

/// What a round of expiry did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expired {
    pub removed: usize,
    /// There may be more that is due: call again.
    pub more: bool,
}

impl Default for PackedTable {
    fn default() -> Self {
        Self::new()
    }
}

impl PackedTable {
    #[must_use]
    pub fn new() -> Self {
        let mut segments = Chunks::new();
        segments.push(Journaled::new(Segment::new(0, 0)));
        Self {
            directory: Directory::new(),
            segments,
            due_min: vec![u64::MAX],
            len: 0,
            heap: 0,
            timed: 0,
            overfull: false,
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes allocated, without what the allocator adds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.directory.memory_bytes()
            + self.segments.memory_bytes()
            + self.due_min.capacity() * 8
            + self.heap
    }

    /// Fetches what a search for `hash` reads first, for a caller with several to make.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.segments
            .get(self.directory.find(hash) as usize)
            .prefetch(hash);
    }

    #[inline]
    #[must_use]
    pub fn get(&self, hash: u64, key: &[u8]) -> Option<ValueRef<'_>> {
        let segment = self.segments.get(self.directory.find(hash) as usize);
        let at = segment.find(hash, key).ok()?;
        let EntryRef {
            value, deadline, ..
        } = entry(segment, at);
        Some(ValueRef { value, deadline })
    }

    #[inline]
    #[must_use]
    pub fn contains(&self, hash: u64, key: &[u8]) -> bool {
        self.segments
            .get(self.directory.find(hash) as usize)
            .find(hash, key)
            .is_ok()
    }

    /// Sets the value and the deadline of `key`; true where it existed.
    ///
    /// `hash` is `hasher(key)`, and `hasher` the same function in every call.
    pub fn insert(
        &mut self,
        hash: u64,
        key: &[u8],
        value: &[u8],
        deadline: Option<u64>,
        hasher: &impl Fn(&[u8]) -> u64,
    ) -> bool {
        let deadline = deadline.map(|d| d.min(DEADLINE_MAX));
        let more = record::near_len(record::len(key, value, deadline));
        loop {
            let id = self.directory.find(hash) as usize;
            let segment = self.segments.get(id);
            let place = segment.find(hash, key);
            if segment.depth < DEPTH_MAX {
                let full = place.is_err() && segment.len() >= SEGMENT_MAX;
                if full || (segment.live_bytes() + more > BLOB_MAX && segment.len() > 1) {
                    self.split(id, hasher);
                    continue;
                }
            }
            let log = |segment: &Segment, journal: &mut Journal| match place {
                Ok(at) => journal.present(segment, at),
                Err(_) => journal.absent(key),
            };
            let existed = self.alter(id, log, |segment| match place {
                Ok(at) => {
                    if !segment.overwrite(at, value, deadline) {
                        segment.replace(at, key, value, deadline);
                    }
                    true
                }
                Err(at) => {
                    segment.insert(at, hash, key, value, deadline);
                    false
                }
            });
            self.len += usize::from(!existed);
            self.overfull |= self.segments.get(id).len() > SEGMENT_MAX;
            self.note_due(id, deadline);
            return existed;
        }
    }

    /// Sets or clears the deadline of `key`; false where there is no such key.
    pub fn set_deadline(
        &mut self,
        hash: u64,
        key: &[u8],
        deadline: Option<u64>,
        hasher: &impl Fn(&[u8]) -> u64,
    ) -> bool {
        let deadline = deadline.map(|d| d.min(DEADLINE_MAX));
        let id = self.directory.find(hash) as usize;
        let Ok(at) = self.segments.get(id).find(hash, key) else {
            return false;
        };
        let (buf, layout) = self.segments.get(id).record(at);
        if layout.deadline(buf) == deadline {
            return true;
        }
        let value = buf[layout.value_start()..layout.end()].to_vec();
        let is_overwritten = self.segments.get_mut(id).change(
            |segment, journal| journal.present(segment, at),
            |segment| segment.overwrite(at, &value, deadline),
        );
        if is_overwritten {
            self.note_due(id, deadline);
        } else {
            self.insert(hash, key, &value, deadline, hasher);
        }
        true
    }

    /// Removes `key`; true where it existed.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> bool {
        let id = self.directory.find(hash) as usize;
        let Ok(at) = self.segments.get(id).find(hash, key) else {
            return false;
        };
        self.remove_at(id, at);
        true
    }

    /// Removes `key` and returns its value.
    pub fn take(&mut self, hash: u64, key: &[u8]) -> Option<Vec<u8>> {
        let value = self.get(hash, key)?.value.to_vec();
        self.remove(hash, key);
        Some(value)
    }

    /// All elements, in no useful order.
    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        self.segments
            .iter()
            .flat_map(|segment| (0..segment.len()).map(move |at| entry(segment, at)))
    }

    /// Calls `f` for about `count` elements and returns the cursor to go on from: 0 when done.
    ///
    /// Start with 0. An element that is in the table from the first call to the last is given at
    /// least once, whatever is inserted and removed meanwhile. Cursors have 48 bits and are
    /// places in hash order. A call stops at `count` elements, except that elements whose hashes
    /// share about 48 bits come together, and earlier after many empty segments.
    pub fn scan<'t>(&'t self, cursor: u64, count: usize, mut f: impl FnMut(EntryRef<'t>)) -> u64 {
        let mut place = cursor & ((1 << 48) - 1);
        let (mut given, mut visited) = (0, 0);
        loop {
            let segment = self.segments.get(self.directory.find(place << 16) as usize);
            let shift = DEPTH_MAX - segment.depth;
            let start = segment.prefix >> 16;
            let first = segment.lower_bound((place >> shift) as u16);
            for at in first..segment.len() {
                let fragment = segment.fragment_at(at);
                if given >= count.max(1) && at > first && segment.fragment_at(at - 1) != fragment {
                    return start | u64::from(fragment) << shift;
                }
                f(entry(segment, at));
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

    /// An element, each with the same probability, given `rng(n)` uniform in `0..n`.
    ///
    /// Segments are drawn alike, then a place among the most that a segment may hold, until the
    /// place is taken: exact, and quick while segments are well filled. Where they are not, the
    /// element is counted out, which is exact as well.
    pub fn random(&self, rng: impl FnMut(u64) -> u64) -> Option<EntryRef<'_>> {
        let (id, at) = self.draw(rng)?;
        Some(entry(self.segments.get(id), at))
    }

    /// Removes an element drawn as [`PackedTable::random`] draws, after giving it to `f`.
    pub fn pop_random<R>(
        &mut self,
        rng: impl FnMut(u64) -> u64,
        f: impl FnOnce(EntryRef<'_>) -> R,
    ) -> Option<R> {
        let (id, at) = self.draw(rng)?;
        let result = f(entry(self.segments.get(id), at));
        self.remove_at(id, at);
        Some(result)
    }

    /// The segment of an element drawn at random, and its place there.
    fn draw(&self, mut rng: impl FnMut(u64) -> u64) -> Option<(usize, usize)> {
        if self.len == 0 {
            return None;
        }
        let segments = self.segments.len();
        let draws = if segments == 1 || self.overfull {
            0
        } else {
            DRAWS_MAX
        };
        for _ in 0..draws {
            let id = rng(segments as u64) as usize;
            let at = rng(SEGMENT_MAX as u64) as usize;
            if at < self.segments.get(id).len() {
                return Some((id, at));
            }
        }
        let mut rest = rng(self.len as u64) as usize;
        for (id, segment) in self.segments.iter().enumerate() {
            if rest < segment.len() {
                return Some((id, rest));
            }
            rest -= segment.len();
        }
        None
    }

    /// Elements that have a deadline.
    #[must_use]
    pub fn timed(&self) -> usize {
        self.timed
    }

    /// No element is due before this. It may be early, never late; `None` without deadlines.
    #[must_use]
    pub fn due_hint(&self) -> Option<u64> {
        if self.timed == 0 {
            None
        } else {
            self.due_min.iter().copied().min()
        }
    }

    /// Removes elements whose deadline is at or before `now`, about `limit` at most, after
    /// giving each to `f`. Looks only at segments whose earliest deadline has passed, and at a
    /// bounded number of elements a call.
    pub fn expire_due(
        &mut self,
        now: u64,
        limit: usize,
        mut f: impl FnMut(EntryRef<'_>),
    ) -> Expired {
        let (mut removed, mut looks) = (0, 0);
        let mut chunk = 0;
        while self.timed > 0 && chunk < self.due_min.len() {
            if self.due_min[chunk] > now {
                chunk += 1;
                continue;
            }
            let due = self
                .segments
                .chunk(chunk)
                .iter()
                .position(|s| s.due_min <= now);
            let Some(within) = due else {
                let due_min = self.segments.chunk(chunk).iter().map(|s| s.due_min).min();
                self.due_min[chunk] = due_min.unwrap_or(u64::MAX);
                chunk += 1;
                continue;
            };
            if removed >= limit || looks >= EXPIRE_LOOKS_MAX {
                return Expired {
                    removed,
                    more: true,
                };
            }
            let id = chunk * CHUNK + within;
            let mut at = self.segments.get(id).len();
            looks += at;
            while at > 0 && removed < limit {
                at -= 1;
                let segment = self.segments.get(id);
                let (buf, layout) = segment.record(at);
                if layout.deadline(buf).is_some_and(|deadline| deadline <= now) {
                    f(entry(segment, at));
                    self.len -= 1;
                    self.alter(
                        id,
                        |segment, journal| journal.present(segment, at),
                        |segment| segment.remove(at),
                    );
                    removed += 1;
                }
            }
            self.segments
                .get_mut(id)
                .change(|_, _| true, Segment::refresh_due);
            self.try_merge(id);
        }
        if self.timed == 0 {
            self.due_min.fill(u64::MAX);
        }
        // A merge may have moved a segment to a chunk already passed.
        Expired {
            removed,
            more: self.due_min.iter().any(|&due| due <= now),
        }
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        let (mut len, mut timed) = (0, 0);
        for entry in self.iter() {
            len += 1;
            if let Some(deadline) = entry.deadline {
                timed += 1;
                assert!(self.due_hint() <= Some(deadline), "a field is due unseen");
            }
        }
        assert_eq!((len, timed), (self.len, self.timed), "elements, timed ones");
        let heap = self.segments.iter().map(|segment| segment.heap_bytes());
        assert_eq!(self.heap, heap.sum::<usize>(), "bytes of segments");
    }

    /// Frees about `budget` allocations of a table that nobody uses any more; true when all is
    /// gone. Empties the table at once; it may be filled again only when all is gone.
    pub fn free_some(&mut self, budget: usize) -> bool {
        // Whatever segments remain from here on, only segment 0 is in use, and it is emptied.
        let first = std::mem::replace(self.segments.get_mut(0), Journaled::new(Segment::new(0, 0)));
        self.heap -= first.heap_bytes();
        drop(first);
        self.directory = Directory::new();
        self.due_min = vec![u64::MAX];
        (self.len, self.timed, self.overfull) = (0, 0, false);
        let mut freed = 0;
        while self.segments.len() > 1 {
            if freed >= budget {
                return false;
            }
            if let Some(segment) = self.segments.pop() {
                self.heap -= segment.heap_bytes();
                freed += segment.allocations();
            }
        }
        true
    }

    /// The elements as they are now, to be read by somebody else while the table goes on changing.
    /// This costs a step a segment; until a segment was read, what a change takes away is kept.
    #[must_use]
    pub fn freeze(&mut self) -> PackedPast {
        PackedPast {
            segments: self.segments.iter_mut().map(Journaled::freeze).collect(),
            len: self.len,
            due_hint: self.due_hint(),
            bytes: self.memory_bytes(),
        }
    }

    /// Changes segment `id` and keeps the table's sums right; `log` says what it takes away.
    #[inline]
    fn alter<R>(
        &mut self,
        id: usize,
        log: impl FnOnce(&Segment, &mut Journal) -> bool,
        change: impl FnOnce(&mut Segment) -> R,
    ) -> R {
        let segment = self.segments.get_mut(id);
        let (heap, timed) = (segment.heap_bytes(), segment.timed as usize);
        let result = segment.change(log, change);
        self.heap = self.heap + segment.heap_bytes() - heap;
        self.timed = self.timed + segment.timed as usize - timed;
        result
    }

    fn note_due(&mut self, id: usize, deadline: Option<u64>) {
        if let Some(deadline) = deadline {
            let due_min = &mut self.due_min[id / CHUNK];
            *due_min = deadline.min(*due_min);
        }
    }

    fn remove_at(&mut self, id: usize, at: usize) {
        self.alter(
            id,
            |segment, journal| journal.present(segment, at),
            |segment| segment.remove(at),
        );
        self.len -= 1;
        // Once in a while is enough, and at the latest when it is empty.
        let left = self.segments.get(id).len();
        if left <= MERGE_MAX / 2 && left.is_multiple_of(16) {
            self.try_merge(id);
        }
    }

    fn split(&mut self, id: usize, hasher: &impl Fn(&[u8]) -> u64) {
        let segment = self.segments.get_mut(id);
        let (prefix, depth, heap) = (segment.prefix, segment.depth, segment.heap_bytes());
        let right = segment.change(|_, _| false, |segment| segment.split(hasher));
        self.heap = self.heap + segment.heap_bytes() + right.heap_bytes() - heap;
        let new = self.segments.len();
        let due_min = right.due_min;
        self.segments.push(Journaled::new(right));
        if new / CHUNK == self.due_min.len() {
            self.due_min.push(u64::MAX);
        }
        self.note_due(new, Some(due_min));
        self.directory.split(
            prefix,
            depth,
            u32::try_from(new).expect("below 2^31 segments"),
        );
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
                || segment.len() + other.len() > MERGE_MAX
                || segment.live_bytes() + other.live_bytes() > BLOB_MAX / 2
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
        let heap = self.segments.get(left).heap_bytes() + self.segments.get(right).heap_bytes();
        let last = self.segments.len() - 1;
        let gone = self.segments.swap_remove(right);
        let left = if left == last { right } else { left };
        if right < last {
            // The last segment has moved into the gap.
            let moved = self.segments.get(right);
            let (prefix, depth, due_min) = (moved.prefix, moved.depth, moved.due_min);
            self.directory.set(
                prefix,
                depth,
                u32::try_from(right).expect("came from a u32"),
            );
            self.note_due(right, Some(due_min));
        }
        self.due_min.truncate(self.segments.len().div_ceil(CHUNK));
        let segment = self.segments.get_mut(left);
        let gone = gone.into_inner();
        segment.change(|_, _| false, |segment| segment.merge(gone));
        let (prefix, depth, due_min) = (segment.prefix, segment.depth, segment.due_min);
        self.heap = self.heap + segment.heap_bytes() - heap;
        self.directory
            .merge(prefix, depth, u32::try_from(left).expect("came from a u32"));
        self.note_due(left, Some(due_min));
        left
    }
}

#[inline]
fn entry(segment: &Segment, at: usize) -> EntryRef<'_> {
    let (buf, layout) = segment.record(at);
    EntryRef {
        key: layout.key(buf),
        value: &buf[layout.value_start()..layout.end()],
        deadline: layout.deadline(buf),
    }
}
