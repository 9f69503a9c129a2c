//! A segment: up to 512 neighbours in hash order, and the bytes of their records.
//!
//! ```text
//! fragments [u16; n]   sorted: the 16 hash bits after the segment's own `depth`
//! offsets   [u16; n]   where the record of each stands in `blob`
//! blob                 records in the order they came; dead ones until the next compaction
//! ```
//! Sorted fragments cost 4 bytes an element at any fill, against 3 a slot for open addressing
//! with tags, which needs a fifth of its slots free: about the same memory. They buy a false
//! match once in 128 lookups of a full segment, no tombstones, exact scan order, exactly uniform
//! draws, and a merge of segments that hashes nothing. The price, moving up to 1 KiB of fragments
//! an insertion, is 10 to 20 ns.
//!
//! # Invariants
//! - `fragments` is sorted; equal fragments stand in any order.
//! - Blob bytes that no offset reaches are counted in `dead`.
//! - Offsets are 16 bits wide unless the segment is as deep as it may get, and `blob` never
//!   outgrows them: the table splits a segment first.
//! - `due_min` is at or before the earliest deadline.

use super::fragments::{fragment, grown_capacity, guess, lower_bound};
use super::record::{self, Layout};
use crate::growth::copy_of;
use crate::prefetch::prefetch;

/// Elements that a segment holds at most, except at [`DEPTH_MAX`].
pub(crate) const SEGMENT_MAX: usize = 512;
/// Live record bytes that a segment holds at most, except at [`DEPTH_MAX`].
pub(crate) const BLOB_MAX: usize = 60 << 10;
/// Hash bits that may select a segment. With 16 bits of fragment, a scan cursor has 48.
pub(crate) const DEPTH_MAX: u8 = 32;

pub(crate) struct Segment {
    fragments: Vec<u16>,
    offsets: Offsets,
    blob: Vec<u8>,
    far: Option<Box<Far>>,
    /// First hash of the segment.
    pub(crate) prefix: u64,
    /// No element is due before.
    pub(crate) due_min: u64,
    dead: usize,
    /// Elements that have a deadline.
    pub(crate) timed: u32,
    /// Hash bits that all elements share.
    pub(crate) depth: u8,
}

/// Records too long to stand among the others.
#[derive(Default)]
struct Far {
    records: Vec<Option<Box<[u8]>>>,
    free: Vec<u32>,
    bytes: usize,
}

impl Far {
    fn put(&mut self, bytes: Box<[u8]>) -> usize {
        self.bytes += bytes.len();
        if let Some(index) = self.free.pop() {
            self.records[index as usize] = Some(bytes);
            index as usize
        } else {
            self.records.push(Some(bytes));
            self.records.len() - 1
        }
    }

    fn take(&mut self, index: usize) -> Box<[u8]> {
        let bytes = self.records[index]
            .take()
            .expect("a live record refers to it");
        self.bytes -= bytes.len();
        self.free
            .push(u32::try_from(index).expect("few far records"));
        bytes
    }
}

impl Clone for Far {
    fn clone(&self) -> Self {
        Self {
            records: copy_of(&self.records),
            free: copy_of(&self.free),
            bytes: self.bytes,
        }
    }
}

/// A copy takes as many bytes as the original.
impl Clone for Segment {
    fn clone(&self) -> Self {
        Self {
            fragments: copy_of(&self.fragments),
            offsets: match &self.offsets {
                Offsets::Narrow(offsets) => Offsets::Narrow(copy_of(offsets)),
                Offsets::Wide(offsets) => Offsets::Wide(copy_of(offsets)),
            },
            blob: copy_of(&self.blob),
            far: self.far.clone(),
            ..*self
        }
    }
}

impl Segment {
    pub(crate) fn new(prefix: u64, depth: u8) -> Self {
        Self {
            fragments: Vec::new(),
            offsets: Offsets::Narrow(Vec::new()),
            blob: Vec::new(),
            far: None,
            prefix,
            due_min: u64::MAX,
            dead: 0,
            timed: 0,
            depth,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.fragments.len()
    }

    pub(crate) fn live_bytes(&self) -> usize {
        self.blob.len() - self.dead
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let far = self.far.as_ref().map_or(0, |far| {
            size_of::<Far>() + far.bytes + far.records.capacity() * 16 + far.free.capacity() * 4
        });
        self.fragments.capacity() * 2 + self.offsets.bytes() + self.blob.capacity() + far
    }

    /// Separate allocations that dropping this segment frees.
    pub(crate) fn allocations(&self) -> usize {
        4 + self.far.as_ref().map_or(0, |far| far.records.len())
    }

    #[inline]
    pub(crate) fn fragment_at(&self, at: usize) -> u16 {
        self.fragments[at]
    }

    #[inline]
    pub(crate) fn lower_bound(&self, fragment: u16) -> usize {
        lower_bound(&self.fragments, fragment)
    }

    /// Fetches what a search for `hash` reads first.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        let guess = guess(self.fragments.len(), fragment(hash, self.depth));
        prefetch(self.fragments.as_ptr().wrapping_add(guess));
        self.offsets.prefetch(guess);
    }

    /// Index of `key`, or where it would be inserted.
    #[inline]
    pub(crate) fn find(&self, hash: u64, key: &[u8]) -> Result<usize, usize> {
        let fragment = fragment(hash, self.depth);
        // The offset will be needed as soon as the fragment is found: fetch both at once.
        self.offsets.prefetch(guess(self.fragments.len(), fragment));
        let mut at = lower_bound(&self.fragments, fragment);
        while at < self.fragments.len() && self.fragments[at] == fragment {
            let (buf, layout) = self.record(at);
            if layout.key(buf) == key {
                return Ok(at);
            }
            at += 1;
        }
        Err(at)
    }

    /// The record of element `at`, and the buffer it stands in.
    #[inline]
    pub(crate) fn record(&self, at: usize) -> (&[u8], Layout) {
        let offset = self.offsets.get(at);
        match record::far_index(&self.blob, offset) {
            None => (&self.blob, record::parse(&self.blob, offset)),
            Some(index) => {
                let far = self.far.as_ref().expect("a far record has its store");
                let buf = far.records[index].as_deref().expect("live records stay");
                (buf, record::parse(buf, 0))
            }
        }
    }

    fn record_mut(&mut self, at: usize) -> (&mut [u8], Layout) {
        let offset = self.offsets.get(at);
        match record::far_index(&self.blob, offset) {
            None => {
                let layout = record::parse(&self.blob, offset);
                (&mut self.blob, layout)
            }
            Some(index) => {
                let far = self.far.as_mut().expect("a far record has its store");
                let buf = far.records[index]
                    .as_deref_mut()
                    .expect("live records stay");
                let layout = record::parse(buf, 0);
                (buf, layout)
            }
        }
    }

    /// Inserts a new element at `at`, which [`find`](Self::find) gave.
    pub(crate) fn insert(
        &mut self,
        at: usize,
        hash: u64,
        key: &[u8],
        value: &[u8],
        deadline: Option<u64>,
    ) {
        let offset = self.append(key, value, deadline);
        self.insert_index(at, fragment(hash, self.depth), offset);
    }

    /// Overwrites element `at` in place where the new record has the old one's shape.
    pub(crate) fn overwrite(&mut self, at: usize, value: &[u8], deadline: Option<u64>) -> bool {
        let (buf, layout) = self.record_mut(at);
        if layout.value_len != value.len() || layout.has_deadline != deadline.is_some() {
            return false;
        }
        let start = layout.value_start();
        buf[start..start + value.len()].copy_from_slice(value);
        if let Some(deadline) = deadline {
            layout.set_deadline(buf, deadline);
            self.due_min = self.due_min.min(deadline);
        }
        true
    }

    /// Writes a new record for element `at`.
    pub(crate) fn replace(&mut self, at: usize, key: &[u8], value: &[u8], deadline: Option<u64>) {
        self.discard_record(at);
        // Until the new offset is set, the old one reaches bytes that count as dead: give the
        // element up first, so that a compaction on the way does not look at it.
        let fragment = self.fragments.remove(at);
        self.offsets.remove(at);
        let offset = self.append(key, value, deadline);
        self.insert_index(at, fragment, offset);
    }

    pub(crate) fn remove(&mut self, at: usize) {
        self.discard_record(at);
        self.fragments.remove(at);
        self.offsets.remove(at);
        if self.dead > 256 + self.blob.len() / 4 {
            self.compact(0);
        }
        if self.fragments.capacity() > 16 + self.len() * 2 {
            let capacity = grown_capacity(self.len());
            self.fragments.shrink_to(capacity);
            self.offsets.shrink_to(capacity);
        }
    }

    /// Moves the second half of the hashes to a new segment; both get deeper by one.
    pub(crate) fn split(&mut self, hasher: &impl Fn(&[u8]) -> u64) -> Self {
        let depth = self.depth + 1;
        let mid = self.fragments.partition_point(|&f| f < 1 << 15);
        let mut left = Self::new(self.prefix, depth);
        let mut right = Self::new(self.prefix | 1 << (64 - u32::from(depth)), depth);
        for (half, range) in [(&mut left, 0..mid), (&mut right, mid..self.len())] {
            half.reserve_for(self, range.clone());
            for at in range {
                let (buf, layout) = self.record(at);
                let fragment = fragment(hasher(layout.key(buf)), depth);
                half.take_record(self, at, fragment);
            }
        }
        *self = left;
        right
    }

    /// Takes over the elements of `right`, the other half of one hash range.
    pub(crate) fn merge(&mut self, mut right: Self) {
        debug_assert!(self.depth == right.depth && self.prefix < right.prefix);
        let mut whole = Self::new(self.prefix, self.depth - 1);
        let count = self.len() + right.len();
        whole.fragments.reserve_exact(grown_capacity(count));
        whole.offsets.reserve_exact(grown_capacity(count));
        whole
            .blob
            .reserve_exact(grown_capacity(self.live_bytes() + right.live_bytes()));
        for at in 0..self.len() {
            let fragment = self.fragments[at] >> 1;
            whole.take_record(self, at, fragment);
        }
        for at in 0..right.len() {
            let fragment = right.fragments[at] >> 1 | 1 << 15;
            whole.take_record(&mut right, at, fragment);
        }
        *self = whole;
    }

    /// Recomputes `due_min`, which removals leave too early.
    pub(crate) fn refresh_due(&mut self) {
        let mut due_min = u64::MAX;
        if self.timed > 0 {
            for at in 0..self.len() {
                let (buf, layout) = self.record(at);
                due_min = due_min.min(layout.deadline(buf).unwrap_or(u64::MAX));
            }
        }
        self.due_min = due_min;
    }

    fn reserve_for(&mut self, from: &Self, range: std::ops::Range<usize>) {
        let bytes: usize = range
            .clone()
            .map(|at| record::stored_len(&from.blob, from.offsets.get(at)))
            .sum();
        self.fragments.reserve_exact(grown_capacity(range.len()));
        self.offsets.reserve_exact(grown_capacity(range.len()));
        self.blob.reserve_exact(grown_capacity(bytes));
    }

    /// Appends element `at` of `from`, whose far record moves here.
    fn take_record(&mut self, from: &mut Self, at: usize, fragment: u16) {
        let (buf, layout) = from.record(at);
        if let Some(deadline) = layout.deadline(buf) {
            self.timed += 1;
            self.due_min = self.due_min.min(deadline);
        }
        let start = from.offsets.get(at);
        let offset = self.blob.len();
        if let Some(index) = record::far_index(&from.blob, start) {
            let far = from
                .far
                .as_mut()
                .expect("a far record has its store")
                .take(index);
            let index = self.far.get_or_insert_default().put(far);
            record::write_far(&mut self.blob, index);
        } else {
            let end = start + record::stored_len(&from.blob, start);
            self.blob.extend_from_slice(&from.blob[start..end]);
        }
        // Elements come sorted by all bits but the last; find the place of equals from the end.
        let mut place = self.len();
        while place > 0 && self.fragments[place - 1] > fragment {
            place -= 1;
        }
        self.insert_index(place, fragment, offset);
    }

    /// Makes the record of element `at` dead.
    fn discard_record(&mut self, at: usize) {
        let (_, layout) = self.record(at);
        if layout.has_deadline {
            self.timed -= 1;
            if self.timed == 0 {
                self.due_min = u64::MAX;
            }
        }
        let offset = self.offsets.get(at);
        if let Some(index) = record::far_index(&self.blob, offset) {
            self.far
                .as_mut()
                .expect("a far record has its store")
                .take(index);
        }
        self.dead += record::stored_len(&self.blob, offset);
    }

    /// Writes a record and returns its offset.
    fn append(&mut self, key: &[u8], value: &[u8], deadline: Option<u64>) -> usize {
        let len = record::len(key, value, deadline);
        self.make_room(record::near_len(len));
        let offset = self.blob.len();
        if len > record::NEAR_MAX {
            let mut bytes = Vec::with_capacity(len);
            record::write(&mut bytes, key, value, deadline);
            let index = self
                .far
                .get_or_insert_default()
                .put(bytes.into_boxed_slice());
            record::write_far(&mut self.blob, index);
        } else {
            record::write(&mut self.blob, key, value, deadline);
        }
        if let Some(deadline) = deadline {
            self.timed += 1;
            self.due_min = self.due_min.min(deadline);
        }
        offset
    }

    fn make_room(&mut self, more: usize) {
        let needed = self.blob.len() + more;
        if needed > usize::from(u16::MAX) && self.offsets.is_narrow() {
            if self.live_bytes() + more <= BLOB_MAX {
                return self.compact(more);
            }
            assert!(self.depth == DEPTH_MAX, "segment overfull: {needed} bytes");
            self.offsets.widen();
        }
        if needed > self.blob.capacity() {
            if self.dead > self.blob.len() / 8 {
                self.compact(more);
            } else {
                let slack = self.blob.len() / 10;
                self.blob.reserve_exact((more + slack).next_multiple_of(16));
            }
        }
    }

    /// Copies the live records together, with room for `more` bytes.
    fn compact(&mut self, more: usize) {
        let live = self.live_bytes() + more;
        let mut blob = Vec::with_capacity((live + live / 10).next_multiple_of(16));
        for at in 0..self.len() {
            let start = self.offsets.get(at);
            let end = start + record::stored_len(&self.blob, start);
            self.offsets.set(at, blob.len());
            blob.extend_from_slice(&self.blob[start..end]);
        }
        self.blob = blob;
        self.dead = 0;
        if self.far.as_ref().is_some_and(|far| far.bytes == 0) {
            self.far = None;
        }
    }

    fn insert_index(&mut self, at: usize, fragment: u16, offset: usize) {
        if self.fragments.len() == self.fragments.capacity() {
            let more = grown_capacity(self.len()) - self.len();
            self.fragments.reserve_exact(more);
            self.offsets.reserve_exact(more);
        }
        self.fragments.insert(at, fragment);
        self.offsets.insert(at, offset);
    }
}

/// Offsets into the blob: 16 bits, but in the segments that cannot split any further, which only
/// a broken hash fills.
enum Offsets {
    Narrow(Vec<u16>),
    Wide(Vec<u32>),
}

impl Offsets {
    #[inline]
    fn get(&self, at: usize) -> usize {
        match self {
            Self::Narrow(offsets) => usize::from(offsets[at]),
            Self::Wide(offsets) => offsets[at] as usize,
        }
    }

    #[inline]
    fn prefetch(&self, at: usize) {
        match self {
            Self::Narrow(offsets) => prefetch(offsets.as_ptr().wrapping_add(at)),
            Self::Wide(offsets) => prefetch(offsets.as_ptr().wrapping_add(at)),
        }
    }

    fn set(&mut self, at: usize, offset: usize) {
        match self {
            Self::Narrow(offsets) => offsets[at] = narrow(offset),
            Self::Wide(offsets) => offsets[at] = wide(offset),
        }
    }

    #[inline]
    fn insert(&mut self, at: usize, offset: usize) {
        match self {
            Self::Narrow(offsets) => offsets.insert(at, narrow(offset)),
            Self::Wide(offsets) => offsets.insert(at, wide(offset)),
        }
    }

    #[inline]
    fn remove(&mut self, at: usize) {
        match self {
            Self::Narrow(offsets) => {
                offsets.remove(at);
            }
            Self::Wide(offsets) => {
                offsets.remove(at);
            }
        }
    }

    fn reserve_exact(&mut self, more: usize) {
        match self {
            Self::Narrow(offsets) => offsets.reserve_exact(more),
            Self::Wide(offsets) => offsets.reserve_exact(more),
        }
    }

    fn shrink_to(&mut self, capacity: usize) {
        match self {
            Self::Narrow(offsets) => offsets.shrink_to(capacity),
            Self::Wide(offsets) => offsets.shrink_to(capacity),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Narrow(offsets) => offsets.capacity() * 2,
            Self::Wide(offsets) => offsets.capacity() * 4,
        }
    }

    fn is_narrow(&self) -> bool {
        matches!(self, Self::Narrow(_))
    }

    fn widen(&mut self) {
        if let Self::Narrow(offsets) = self {
            *self = Self::Wide(offsets.iter().map(|&offset| u32::from(offset)).collect());
        }
    }
}

fn narrow(offset: usize) -> u16 {
    u16::try_from(offset).expect("a blob with narrow offsets stays below 64 KiB")
}

fn wide(offset: usize) -> u32 {
    u32::try_from(offset).expect("a blob stays below 4 GiB")
}
