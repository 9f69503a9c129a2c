//! The keyspace's hash table: buckets of one cache line, grown by splitting segments.
//!
//! ```text
//! directory (by the high bits of the hash)      segment: a run of 64-byte buckets
//! +-----+                                       +----------------------------------------+
//! | 000 |--------------------------------+----> | 8 tags | 8 pointers of 6 bytes | counts |
//! | 001 |-------------------------------/       | ...                                    |
//! | 010 |--------> another segment              +----------------------------------------+
//! ```
//!
//! A record lives in its home bucket, in the bucket after it, or in the segment's short stash. The
//! home bucket counts how many of its own live elsewhere, so a lookup nearly always reads one line
//! here and one of the record. A segment whose stash is full splits in two; two sparse neighbours
//! merge. Each moves a few hundred records at most: no pause however large the table.
//!
//! # Invariants
//! - `bucket.displaced` is the number of records whose home it is and that stand in the bucket
//!   after it; `bucket.stashed` the number that stand in the stash.
//! - Directory, home bucket and scan order all follow the hash from its high bits down, so a
//!   position in hash order means the same before and after any split or merge.
//! - A segment with local depth `d` stands in `2^(depth - d)` neighbouring directory entries.
//! - Every record is in the segment that its hash leads to.
//!
//! # Why not one array that doubles?
//! Doubling 100 million slots pauses for seconds, or needs two tables and a probe in each while
//! records creep over; at worst half of it is empty.

use std::ptr::NonNull;

use crate::hash::{Seed, hash};
use crate::prefetch::prefetch;
use crate::record::{Record, RecordRef, Value};

mod pass;
mod segment;

use pass::Pass;
pub use pass::{Shown, Witness};
use segment::{Place, Segment};

/// Stash entries a segment may have before it splits.
const STASH_MAX: usize = 32;

/// Directory bits at most: a bound for keys whose hashes collide however deep the table looks.
const DEPTH_MAX: u32 = 30;

/// A hash table from keys to values `T` or strings, with deadlines. What every lookup needs comes
/// first, on one cache line.
#[repr(C, align(64))]
pub struct Table<T> {
    directory: Vec<Entry>,
    /// Bits of the hash in `directory`'s index.
    depth: u32,
    /// High bits of the hash that are the same for every key here (they chose the stripe).
    skip: u32,
    buckets_per_segment: u32,
    /// Records with another mark must be shown to the pass before they change.
    mark: u8,
    /// Changes with every change of what locations may point to.
    version: u64,
    len: usize,
    pass: Option<Box<Pass<T>>>,
    segments: Vec<Segment<T>>,
    seed: Seed,
}

/// A directory entry: what a lookup needs of a segment, without touching the segment.
#[derive(Clone, Copy)]
struct Entry {
    buckets: NonNull<segment::Bucket>,
    segment: u32,
    depth: u32,
}

// SAFETY: `buckets` points into a segment that the same table owns.
unsafe impl<T: Send> Send for Table<T> {}
// SAFETY: shared access reads only.
unsafe impl<T: Sync> Sync for Table<T> {}

/// Where a record was found. Valid until the table changes.
#[derive(Clone, Copy)]
struct Spot {
    segment: u32,
    home: u32,
    place: Place,
    /// The record itself.
    address: NonNull<u8>,
}

/// Where a key stands, as of one version of its table.
#[derive(Clone, Copy)]
pub struct Location {
    address: NonNull<u8>,
    version: u64,
}

impl<T> Table<T> {
    /// An empty table for keys whose hashes share their first `skip` bits. `buckets_per_segment`
    /// is best given a different value in each of several tables that grow together, so that they
    /// do not all split at once. Nothing is allocated before the first insert.
    pub fn new(seed: Seed, skip: u32, buckets_per_segment: u32) -> Self {
        assert!(skip <= 16 && (4..=4096).contains(&buckets_per_segment));
        Self {
            directory: Vec::new(),
            depth: 0,
            skip,
            buckets_per_segment,
            mark: 0,
            version: 0,
            len: 0,
            pass: None,
            segments: Vec::new(),
            seed,
        }
    }

    /// How many keys there are, dead ones that nobody removed yet counted.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the table itself, without the records.
    pub fn memory_bytes(&self) -> usize {
        self.directory.capacity() * size_of::<Entry>()
            + self
                .segments
                .iter()
                .map(Segment::memory_bytes)
                .sum::<usize>()
            + self.segments.capacity() * size_of::<Segment<T>>()
    }

    #[inline]
    fn entry(&self, hash: u64) -> Option<&Entry> {
        // Two shifts: with a depth of 0 a single one would be by 64.
        let index = (hash << self.skip) >> 1 >> (63 - self.depth);
        self.directory.get(usize::try_from(index).ok()?)
    }

    /// The home bucket in a segment of local depth `depth`: a fixed-point product, so that it
    /// grows with the hash.
    #[inline]
    fn home(&self, hash: u64, depth: u32) -> u32 {
        let bits = (hash << (self.skip + depth)) >> 32;
        #[allow(clippy::cast_possible_truncation)] // Below `buckets_per_segment`.
        {
            ((bits * u64::from(self.buckets_per_segment)) >> 32) as u32
        }
    }

    /// Asks for the bucket of `hash` to be brought near.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        if let Some(entry) = self.entry(hash) {
            let home = self.home(hash, entry.depth);
            prefetch(entry.buckets.as_ptr().wrapping_add(home as usize));
        }
    }

    /// Asks for the record that `hash` probably means to be brought near.
    #[inline]
    pub fn prefetch_record(&self, hash: u64) {
        if let Some(entry) = self.entry(hash) {
            let home = self.home(hash, entry.depth);
            // SAFETY: `home` is below the number of buckets of the segment, which is alive.
            let bucket = unsafe { entry.buckets.add(home as usize).as_ref() };
            if let Some(ptr) = bucket.first_match(hash) {
                prefetch(ptr.as_ptr());
            } else if !bucket.all_at_home() {
                prefetch(entry.buckets.as_ptr().wrapping_add(home as usize + 1));
            }
        }
    }

    #[inline]
    fn spot(&self, hash: u64, key: &[u8]) -> Option<Spot> {
        let entry = self.entry(hash)?;
        let home = self.home(hash, entry.depth);
        // SAFETY: `home` is below the number of buckets of the segment, which is alive.
        // The table is borrowed, so nobody changes the bucket.
        let bucket = unsafe { entry.buckets.add(home as usize).as_ref() };
        if let Some(slot) = bucket.find::<T>(hash, key) {
            return Some(Spot {
                segment: entry.segment,
                home,
                place: Place::Bucket(home, slot),
                address: bucket.pointer(slot),
            });
        }
        if bucket.all_at_home() {
            return None;
        }
        let segment = &self.segments[entry.segment as usize];
        let place = segment.find_away(home, hash, key)?;
        Some(Spot {
            segment: entry.segment,
            home,
            place,
            address: segment.record(place).raw(),
        })
    }

    /// The record of `key`.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<RecordRef<'_, T>> {
        let spot = self.spot(hash, key)?;
        // SAFETY: the address is that of a live record of this table, which stays borrowed.
        Some(unsafe { Record::view_raw(spot.address) })
    }

    /// Says that the record at `address` is about to change or to go: a pass that has not shown it
    /// does so now.
    #[inline]
    fn about_to_change(&mut self, address: NonNull<u8>) {
        self.version += 1;
        // SAFETY: callers pass the address of a live record of this table.
        if unsafe { Record::<T>::view_raw(address) }.mark() != self.mark {
            self.show(address);
        }
    }

    /// The record of `key`, to be changed.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<RecordMut<'_, T>> {
        let spot = self.spot(hash, key)?;
        self.about_to_change(spot.address);
        let segment = &mut self.segments[spot.segment as usize];
        // SAFETY: the address is that of a live record; it goes back when the result is dropped.
        let record = unsafe { Record::from_raw(spot.address) };
        Some(RecordMut {
            record: std::mem::ManuallyDrop::new(record),
            address: spot.address,
            segment,
            place: spot.place,
        })
    }

    /// Adds `key`, which must not be present.
    pub fn insert(&mut self, hash: u64, key: &[u8], value: Value<'_, T>, deadline: Option<u64>) {
        self.insert_record(hash, Record::new(key, value, deadline));
    }

    /// Adds a record whose key must not be present.
    pub fn insert_record(&mut self, hash: u64, mut record: Record<T>) {
        debug_assert!(
            self.find(hash, record.key()).is_none(),
            "the key is present"
        );
        record.set_mark(self.mark);
        if self.segments.is_empty() {
            let segment = Segment::new(self.buckets_per_segment, 0);
            self.directory = vec![Entry {
                buckets: segment.buckets(),
                segment: 0,
                depth: 0,
            }];
            self.segments.push(segment);
        }
        loop {
            let entry = *self
                .entry(hash)
                .expect("the directory has an entry for each prefix");
            let home = self.home(hash, entry.depth);
            let segment = &mut self.segments[entry.segment as usize];
            if segment.stash_len() >= STASH_MAX && segment.both_full(home) && self.split(hash) {
                continue;
            }
            self.version += 1;
            self.segments[entry.segment as usize].insert(home, hash, record);
            self.len += 1;
            return;
        }
    }

    /// Takes the record of `key` out.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Record<T>> {
        let spot = self.spot(hash, key)?;
        Some(self.remove_at(hash, spot))
    }

    fn remove_at(&mut self, hash: u64, spot: Spot) -> Record<T> {
        self.about_to_change(spot.address);
        let segment = &mut self.segments[spot.segment as usize];
        // SAFETY: the caller just found the spot.
        let record = unsafe { segment.take(spot.place) };
        segment.forget(spot.home, spot.place);
        self.len -= 1;
        if segment.is_sparse() {
            self.shrink(hash);
        }
        record
    }

    /// Splits the segment that `hash` leads to. False where it cannot: the directory has grown out
    /// of proportion, which only colliding hashes can cause.
    fn split(&mut self, hash: u64) -> bool {
        let entry = *self
            .entry(hash)
            .expect("the directory has an entry for each prefix");
        if entry.depth == self.depth {
            let sane = 64 + 16 * self.segments.len();
            if self.depth >= DEPTH_MAX.min(47 - self.skip) || self.directory.len() >= sane {
                return false;
            }
            self.directory = self
                .directory
                .iter()
                .flat_map(|&entry| [entry, entry])
                .collect();
            self.depth += 1;
        }
        let depth = entry.depth + 1;
        let old = &mut self.segments[entry.segment as usize];
        let records = old.drain();
        let mut low = Segment::new(self.buckets_per_segment, depth);
        let mut high = Segment::new(self.buckets_per_segment, depth);
        self.deal(
            records,
            |hash| hash << (self.skip + depth - 1) >> 63 != 0,
            &mut low,
            &mut high,
        );
        self.segments[entry.segment as usize] = low;
        let at = u32::try_from(self.segments.len()).expect("fewer than 2^32 segments");
        self.segments.push(high);
        let (first, width) = self.span(hash, entry.depth);
        for index in first..first + width {
            let segment = if index < first + width / 2 {
                entry.segment
            } else {
                at
            };
            self.point(index, segment, depth);
        }
        true
    }

    /// Puts each record into `low` or `high`.
    fn deal(
        &self,
        records: Vec<Record<T>>,
        is_high: impl Fn(u64) -> bool,
        low: &mut Segment<T>,
        high: &mut Segment<T>,
    ) {
        for record in &records {
            prefetch(record.key().as_ptr());
        }
        for record in records {
            let hash = hash(&self.seed, record.key());
            let to = if is_high(hash) { &mut *high } else { &mut *low };
            to.insert(self.home(hash, to.depth()), hash, record);
        }
    }

    /// The first directory entry of the segment of `hash` with local depth `depth`, and how many.
    fn span(&self, hash: u64, depth: u32) -> (usize, usize) {
        let width = 1usize << (self.depth - depth);
        #[allow(clippy::cast_possible_truncation)] // Below the directory's length.
        let index = ((hash << self.skip) >> 1 >> (63 - self.depth)) as usize;
        (index & !(width - 1), width)
    }

    fn point(&mut self, index: usize, segment: u32, depth: u32) {
        let buckets = self.segments[segment as usize].buckets();
        self.directory[index] = Entry {
            buckets,
            segment,
            depth,
        };
    }

    /// Merges the sparse segment of `hash` with its sparse buddy; frees all where none is left.
    fn shrink(&mut self, hash: u64) {
        if self.len == 0 {
            self.directory = Vec::new();
            self.segments = Vec::new();
            self.depth = 0;
            return;
        }
        let entry = *self
            .entry(hash)
            .expect("the directory has an entry for each prefix");
        if entry.depth == 0 {
            return;
        }
        let (first, width) = self.span(hash, entry.depth);
        let buddy = self.directory[first ^ width];
        if buddy.depth != entry.depth || !self.segments[buddy.segment as usize].is_sparse() {
            return;
        }
        let depth = entry.depth - 1;
        let mut records = self.segments[entry.segment as usize].drain();
        records.append(&mut self.segments[buddy.segment as usize].drain());
        let mut merged = Segment::new(self.buckets_per_segment, depth);
        let mut none = Segment::new(0, depth);
        self.deal(records, |_| false, &mut merged, &mut none);
        self.segments[entry.segment as usize] = merged;
        let first = first & !width;
        for index in first..first + 2 * width {
            self.point(index, entry.segment, depth);
        }
        self.drop_segment(buddy.segment);
        self.halve_directory();
    }

    /// Removes an unused segment; the last one takes its number.
    fn drop_segment(&mut self, segment: u32) {
        self.segments.swap_remove(segment as usize);
        if (segment as usize) < self.segments.len() {
            let moved = u32::try_from(self.segments.len()).expect("fewer than 2^32 segments");
            for entry in self
                .directory
                .iter_mut()
                .filter(|entry| entry.segment == moved)
            {
                entry.segment = segment;
            }
        }
    }

    /// Halves the directory while no segment needs all of its bits and it is mostly repetition.
    fn halve_directory(&mut self) {
        while self.directory.len() >= 8 * self.segments.len()
            && self.directory.iter().all(|entry| entry.depth < self.depth)
        {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
        }
    }

    /// Shows `each` the records whose place in hash order is at or after `from`, until it has seen
    /// about `count` buckets' worth, and returns where to go on, or `None` at the end.
    ///
    /// A position is the hash without its `skip` first bits, cut to 48 bits. A record that is
    /// present from the first call to the last is shown, whatever happens in between; one may be
    /// shown twice only where it was removed and added again.
    pub fn scan<'t>(
        &'t self,
        from: u64,
        count: usize,
        mut each: impl FnMut(RecordRef<'t, T>),
    ) -> Option<u64> {
        let mut position = from & SCAN_MASK;
        let mut seen = 0;
        loop {
            let entry = self.entry(position << 16 >> self.skip)?;
            let segment = &self.segments[entry.segment as usize];
            let home = self.home(position << 16 >> self.skip, entry.depth);
            let home_of = |key: &[u8]| self.home(hash(&self.seed, key), entry.depth);
            segment.each_of_home(home, home_of, |record| {
                let hash = hash(&self.seed, record.key());
                if (hash << self.skip) >> 16 >= position {
                    seen += 1;
                    each(record);
                }
            });
            position = self.after(position, entry.depth, home)?;
            if seen >= count {
                return Some(position);
            }
            // An empty stretch costs as well: it counts a little.
            seen += usize::from(home % 8 == 7);
        }
    }

    /// The first position behind bucket `home` of the segment of `position`.
    fn after(&self, position: u64, depth: u32, home: u32) -> Option<u64> {
        // Buckets divide a segment's 2^32 sub-positions evenly: bucket b begins at
        // ceil(b 2^32 / n).
        let next = u64::from(home) + 1;
        let n = u64::from(self.buckets_per_segment);
        let prefix_bits = depth;
        let prefix = if prefix_bits == 0 {
            0
        } else {
            position >> (48 - prefix_bits)
        };
        if next >= n {
            let next_prefix = prefix + 1;
            return (next_prefix < 1 << prefix_bits).then(|| next_prefix << (48 - prefix_bits));
        }
        let sub = (next << 32).div_ceil(n);
        // `sub` is 32 bits below the prefix; positions end at bit 0 of 48.
        let low_bits = 48 - prefix_bits;
        let offset = if low_bits >= 32 {
            sub << (low_bits - 32)
        } else {
            sub.div_ceil(1 << (32 - low_bits))
        };
        let start = prefix << low_bits;
        let after = start + offset;
        if after > SCAN_MASK {
            None
        } else {
            Some(after.max(position + 1))
        }
    }

    /// A record drawn uniformly. `draw(n)` gives a number below `n`. `None` when empty.
    pub fn random(&self, mut draw: impl FnMut(u64) -> u64) -> Option<RecordRef<'_, T>> {
        if self.len == 0 {
            return None;
        }
        loop {
            let index = usize::try_from(draw(self.segments.len() as u64)).ok()?;
            let segment = &self.segments[index];
            let slots = self.segments.iter().map(Segment::slots).max().unwrap_or(0);
            if let Some(record) = segment.slot_at(usize::try_from(draw(slots as u64)).ok()?) {
                return Some(record);
            }
        }
    }

    /// All records, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = RecordRef<'_, T>> {
        self.segments.iter().flat_map(Segment::iter)
    }

    /// 32 bits by which a key is found again without its name: 24 of its place in hash order, and
    /// its tag. A few other keys may share them.
    #[inline]
    pub fn hint(&self, hash: u64) -> u32 {
        #[allow(clippy::cast_possible_truncation)] // 24 and 8 bits.
        {
            ((hash << self.skip) >> 40 << 8) as u32 | u32::from(hash as u8)
        }
    }

    /// The lowest hash that a hint stands for, but with the tag in place.
    #[inline]
    fn hinted(&self, hint: u32) -> u64 {
        (u64::from(hint >> 8) << 40 >> self.skip) | u64::from(hint & 0xff)
    }

    /// Asks for the bucket of a hint to be brought near.
    pub fn prefetch_hinted_bucket(&self, hint: u32) {
        self.prefetch_bucket(self.hinted(hint));
    }

    /// Asks for the records of a hint to be brought near, once its bucket has come.
    pub fn prefetch_hinted_record(&self, hint: u32) {
        let low = self.hinted(hint);
        if let Some(entry) = self.entry(low) {
            let home = self.home(low, entry.depth);
            self.segments[entry.segment as usize].prefetch_tagged(home, low);
        }
    }

    /// Shows `each` the records that a hint may mean, with their hashes.
    pub fn with_hint<'t>(&'t self, hint: u32, mut each: impl FnMut(u64, RecordRef<'t, T>)) {
        let low = self.hinted(hint);
        let Some(entry) = self.entry(low) else { return };
        let segment = &self.segments[entry.segment as usize];
        // All hashes of a hint share a home bucket, or two neighbours, while a segment covers more
        // than a 2^24th of the table, which has far fewer segments.
        let last = low | (0xff_ffff_ffff >> self.skip);
        for home in self.home(low, entry.depth)..=self.home(last, entry.depth) {
            segment.each_tagged(home, low, |record| {
                let hash = hash(&self.seed, record.key());
                if self.hint(hash) == hint && self.home(hash, entry.depth) == home {
                    each(hash, record);
                }
            });
        }
    }

    /// Takes out the records that a hint may mean and that `is_wanted` accepts, and gives each with
    /// its hash to `each`. A record may be shown to `is_wanted` more than once.
    pub fn take_hinted(
        &mut self,
        hint: u32,
        mut is_wanted: impl FnMut(RecordRef<'_, T>) -> bool,
        mut each: impl FnMut(u64, Record<T>),
    ) {
        while let Some((hash, spot)) = self.spot_hinted(hint, &mut is_wanted) {
            each(hash, self.remove_at(hash, spot));
        }
    }

    /// The first record that a hint may mean and that `is_wanted` accepts, with its hash.
    #[inline]
    fn spot_hinted(
        &self,
        hint: u32,
        is_wanted: &mut impl FnMut(RecordRef<'_, T>) -> bool,
    ) -> Option<(u64, Spot)> {
        let low = self.hinted(hint);
        let entry = self.entry(low)?;
        let segment = &self.segments[entry.segment as usize];
        let last = low | (0xff_ffff_ffff >> self.skip);
        for home in self.home(low, entry.depth)..=self.home(last, entry.depth) {
            let mut found = 0;
            let place = segment.find_tagged(home, low, |record| {
                found = hash(&self.seed, record.key());
                self.hint(found) == hint
                    && self.home(found, entry.depth) == home
                    && is_wanted(record)
            });
            if let Some(place) = place {
                let spot = Spot {
                    segment: entry.segment,
                    home,
                    place,
                    address: segment.record(place).raw(),
                };
                return Some((found, spot));
            }
        }
        None
    }

    /// Where `key` stands, for the calls below. It holds until the table changes.
    #[inline]
    pub fn locate(&self, hash: u64, key: &[u8]) -> Option<Location> {
        let address = self.spot(hash, key)?.address;
        let version = self.version;
        Some(Location { address, version })
    }

    /// The record at a location.
    ///
    /// # Panics
    /// Where the table has changed since.
    #[inline]
    pub fn view(&self, at: Location) -> RecordRef<'_, T> {
        assert_eq!(at.version, self.version, "the table has changed");
        // SAFETY: nothing has changed since `locate` found this live record.
        unsafe { Record::view_raw(at.address) }
    }

    /// Changes the access bits of the record at a location: `update` gives the new from the old.
    ///
    /// # Panics
    /// Where the table has changed since.
    #[inline]
    pub fn touch(&mut self, at: Location, update: impl FnOnce(u32) -> u32) {
        assert_eq!(at.version, self.version, "the table has changed");
        // SAFETY: nothing has changed since `locate` found this live record, which we hold
        // mutably through the table; setting the access bits never moves it.
        let record = unsafe { Record::<T>::from_raw(at.address) };
        std::mem::ManuallyDrop::new(record).update_access(update);
    }

    /// Removes up to `budget` records and drops them. True when none is left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        self.free_with(budget, drop)
    }

    /// Removes up to `budget` records and gives them to `each`. True when none is left. Until then
    /// the table may only be freed further.
    pub fn free_with(&mut self, budget: usize, mut each: impl FnMut(Record<T>)) -> bool {
        let mut left = budget;
        self.version += 1;
        while let Some(segment) = self.segments.last_mut() {
            let freed = segment.free_some(left, &mut each);
            self.len -= freed;
            left -= freed;
            if left == 0 && !segment.is_empty() {
                return false;
            }
            self.directory = Vec::new();
            self.segments.pop();
        }
        true
    }

    /// Walks everything and panics where an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut total = 0;
        for (index, entry) in self.directory.iter().enumerate() {
            let segment = &self.segments[entry.segment as usize];
            assert_eq!(segment.depth(), entry.depth);
            assert_eq!(segment.buckets(), entry.buckets);
            let width = 1usize << (self.depth - entry.depth);
            assert_eq!(self.directory[index & !(width - 1)].segment, entry.segment);
        }
        for (number, segment) in self.segments.iter().enumerate() {
            segment.check_invariants(|key| {
                let hash = hash(&self.seed, key);
                assert_eq!(self.entry(hash).unwrap().segment as usize, number);
                self.home(hash, segment.depth())
            });
            total += segment.len();
        }
        assert_eq!(total, self.len);
        self.check_marks();
    }
}

/// Scan positions have 48 bits.
const SCAN_MASK: u64 = (1 << 48) - 1;

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        self.free_some(usize::MAX);
    }
}

/// A record that may be changed in place. It goes back into its slot when this is dropped.
pub struct RecordMut<'t, T> {
    record: std::mem::ManuallyDrop<Record<T>>,
    /// Where the record was when it was taken.
    address: NonNull<u8>,
    segment: &'t mut Segment<T>,
    place: Place,
}

impl<T> std::ops::Deref for RecordMut<'_, T> {
    type Target = Record<T>;
    fn deref(&self) -> &Record<T> {
        &self.record
    }
}

impl<T> std::ops::DerefMut for RecordMut<'_, T> {
    fn deref_mut(&mut self) -> &mut Record<T> {
        &mut self.record
    }
}

impl<T> Drop for RecordMut<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the record is not used after this.
        let address = unsafe { std::mem::ManuallyDrop::take(&mut self.record) }.into_raw();
        if address != self.address {
            // SAFETY: the slot at `place` is the one that the record came from; its old address
            // was freed when the record moved.
            unsafe { self.segment.put_back(self.place, Record::from_raw(address)) }
        }
    }
}

impl<'t, T> RecordMut<'t, T> {
    /// The object, for as long as the table is borrowed.
    pub fn into_object(mut self) -> Option<&'t mut T> {
        let object: *mut T = self.record.object_mut()?;
        // SAFETY: the object is a box of its own that the table owns; the table stays borrowed
        // mutably for `'t`, so nobody else reaches it.
        Some(unsafe { &mut *object })
    }
}

#[cfg(test)]
mod tests;
