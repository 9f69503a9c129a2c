//! One segment of the table: buckets of eight slots, and a short stash.
//!
//! ```text
//!  0        8                                                56      60      61        62      63
//! +--------+------------------------------------------------+-------+-------+---------+-------+
//! | 8 tags | 8 pointers, 6 bytes each                       | spare | used  |displaced|stashed|
//! +--------+------------------------------------------------+-------+-------+---------+-------+
//! ```
//! A tag is the low byte of the hash. `used` has a bit for each slot that holds a record.

use std::ptr::NonNull;

use crate::prefetch::prefetch;
use crate::record::{Record, RecordRef};

pub(super) const SLOTS: u32 = 8;

/// Eight slots in one cache line.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
pub(super) struct Bucket {
    tags: [u8; 8],
    pointers: [[u8; 6]; 8],
    _spare: [u8; 5],
    used: u8,
    /// Records of this home that stand in the next bucket.
    displaced: u8,
    /// Records of this home that stand in the stash; 255 means 255 or more.
    stashed: u8,
}

const _: () = assert!(size_of::<Bucket>() == 64);

const EMPTY: Bucket = Bucket {
    tags: [0; 8],
    pointers: [[0; 6]; 8],
    _spare: [0; 5],
    used: 0,
    displaced: 0,
    stashed: 0,
};

#[allow(clippy::cast_possible_truncation)] // The low byte is meant.
#[inline]
fn tag(hash: u64) -> u8 {
    hash as u8
}

/// Whether two keys are the same. Short ones, the usual case, are compared without a call.
#[inline]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    let word = |bytes: &[u8]| {
        bytes
            .first_chunk::<8>()
            .map(|chunk| u64::from_le_bytes(*chunk))
    };
    let last = |bytes: &[u8]| {
        bytes
            .last_chunk::<8>()
            .map(|chunk| u64::from_le_bytes(*chunk))
    };
    match a.len() {
        8..=16 => word(a) == word(b) && last(a) == last(b),
        17..=24 => word(a) == word(b) && word(&a[8..]) == word(&b[8..]) && last(a) == last(b),
        _ => a == b,
    }
}

impl Bucket {
    /// The slots that hold a record and may match `tag`, as the high bits of bytes. May name a few
    /// too many, never too few.
    #[inline]
    fn matches(&self, tag: u8) -> u64 {
        const LOW: u64 = 0x0101_0101_0101_0101;
        const HIGH: u64 = 0x8080_8080_8080_8080;
        let difference = u64::from_le_bytes(self.tags) ^ (LOW * u64::from(tag));
        difference.wrapping_sub(LOW) & !difference & HIGH
    }

    #[inline]
    pub(super) fn pointer(&self, slot: u32) -> NonNull<u8> {
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&self.pointers[slot as usize]);
        #[allow(clippy::cast_possible_truncation)] // Tidemill's targets have 64-bit pointers.
        let ptr = std::ptr::with_exposed_provenance_mut(u64::from_le_bytes(bytes) as usize);
        NonNull::new(ptr).expect("a used slot holds an address")
    }

    fn set_pointer(&mut self, slot: u32, ptr: NonNull<u8>) {
        let address = ptr.as_ptr().expose_provenance() as u64;
        assert!(
            address >> 48 == 0,
            "user addresses have 48 bits on every target"
        );
        self.pointers[slot as usize].copy_from_slice(&address.to_le_bytes()[..6]);
    }

    /// The record in the first slot whose tag matches, unread.
    #[inline]
    pub(super) fn first_match(&self, hash: u64) -> Option<NonNull<u8>> {
        let mut matches = self.matches(tag(hash));
        while matches != 0 {
            let slot = matches.trailing_zeros() / 8;
            if self.used >> slot & 1 != 0 {
                return Some(self.pointer(slot));
            }
            matches &= matches - 1;
        }
        None
    }

    /// The slot of `key` in this bucket.
    #[inline]
    pub(super) fn find<T>(&self, hash: u64, key: &[u8]) -> Option<u32> {
        let mut matches = self.matches(tag(hash));
        while matches != 0 {
            let slot = matches.trailing_zeros() / 8;
            if self.used >> slot & 1 != 0 && is_same(self.record::<T>(slot).key(), key) {
                return Some(slot);
            }
            matches &= matches - 1;
        }
        None
    }

    /// Asks for the records whose tags match to be brought near.
    #[inline]
    pub(super) fn prefetch_matches(&self, hash: u64) {
        let mut matches = self.matches(tag(hash));
        while matches != 0 {
            let slot = matches.trailing_zeros() / 8;
            if self.used >> slot & 1 != 0 {
                prefetch(self.pointer(slot).as_ptr());
            }
            matches &= matches - 1;
        }
    }

    /// The first slot with the tag of `hash` whose record `is_it` accepts.
    #[inline]
    fn find_tagged<T>(
        &self,
        hash: u64,
        is_it: &mut impl FnMut(RecordRef<'_, T>) -> bool,
    ) -> Option<u32> {
        let mut matches = self.matches(tag(hash));
        while matches != 0 {
            let slot = matches.trailing_zeros() / 8;
            let is_used = self.used >> slot & 1 != 0 && self.tags[slot as usize] == tag(hash);
            if is_used && is_it(self.record::<T>(slot)) {
                return Some(slot);
            }
            matches &= matches - 1;
        }
        None
    }

    /// The record in `slot`, which must be in use.
    #[inline]
    fn record<T>(&self, slot: u32) -> RecordRef<'_, T> {
        assert!(self.used >> slot & 1 != 0, "slot {slot} is empty");
        // SAFETY: a used slot's six bytes are the address of a live record, put there by `put`.
        // It is changed or freed only with the segment borrowed mutably, which ends this borrow.
        unsafe { Record::view_raw(self.pointer(slot)) }
    }

    /// Whether every record of this home stands in this bucket.
    #[inline]
    pub(super) fn all_at_home(&self) -> bool {
        self.displaced == 0 && self.stashed == 0
    }

    fn free_slot(&self) -> Option<u32> {
        let slot = (!self.used).trailing_zeros();
        (slot < SLOTS).then_some(slot)
    }

    fn put(&mut self, slot: u32, hash: u64, ptr: NonNull<u8>) {
        self.tags[slot as usize] = tag(hash);
        self.set_pointer(slot, ptr);
        self.used |= 1 << slot;
    }

    fn slots(&self) -> impl Iterator<Item = u32> + use<> {
        let used = self.used;
        (0..SLOTS).filter(move |slot| used >> slot & 1 != 0)
    }
}

/// A record that found no room in its home bucket nor in the next.
struct Stashed<T> {
    home: u32,
    hash: u64,
    record: Record<T>,
}

/// Where in a segment a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// A bucket and a slot of it.
    Bucket(u32, u32),
    /// An index into the stash.
    Stash(u32),
}

/// A run of buckets that share the first bits of the hash.
pub(super) struct Segment<T> {
    /// A boxed slice, kept as a pointer because the directory has copies of it.
    buckets: NonNull<Bucket>,
    bucket_count: u32,
    stash: Vec<Stashed<T>>,
    live: u32,
    depth: u32,
}

// SAFETY: a segment owns its buckets and the records in them.
unsafe impl<T: Send> Send for Segment<T> {}
// SAFETY: through a shared segment only reads are possible.
unsafe impl<T: Sync> Sync for Segment<T> {}

impl<T> Segment<T> {
    #[inline]
    fn slice(&self) -> &[Bucket] {
        // SAFETY: the pointer and the count are those of a boxed slice that this segment owns.
        unsafe { std::slice::from_raw_parts(self.buckets.as_ptr(), self.bucket_count as usize) }
    }

    #[inline]
    fn slice_mut(&mut self) -> &mut [Bucket] {
        // SAFETY: as above; the segment is borrowed mutably, and so is its table.
        unsafe { std::slice::from_raw_parts_mut(self.buckets.as_ptr(), self.bucket_count as usize) }
    }

    pub(super) fn new(buckets: u32, depth: u32) -> Self {
        let boxed = vec![EMPTY; buckets as usize].into_boxed_slice();
        let first = NonNull::from(Box::leak(boxed)).cast();
        Self {
            buckets: first,
            bucket_count: buckets,
            stash: Vec::new(),
            live: 0,
            depth,
        }
    }

    /// The first bucket. The address stays while the segment lives, wherever the segment moves.
    pub(super) fn buckets(&self) -> NonNull<Bucket> {
        self.buckets
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    pub(super) fn len(&self) -> usize {
        self.live as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == 0
    }

    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(self.slice()) + self.stash.capacity() * size_of::<Stashed<T>>()
    }

    /// Whether the records of two such segments fit well into one.
    pub(super) fn is_sparse(&self) -> bool {
        (self.live as usize) < self.slice().len() * SLOTS as usize / 5
    }

    pub(super) fn stash_len(&self) -> usize {
        self.stash.len()
    }

    fn next(&self, home: u32) -> u32 {
        if home as usize + 1 == self.slice().len() {
            0
        } else {
            home + 1
        }
    }

    /// Whether a record of this home would have to go to the stash.
    pub(super) fn both_full(&self, home: u32) -> bool {
        let next = self.next(home);
        self.slice()[home as usize].free_slot().is_none()
            && self.slice()[next as usize].free_slot().is_none()
    }

    /// The place of `key` outside its home bucket.
    pub(super) fn find_away(&self, home: u32, hash: u64, key: &[u8]) -> Option<Place> {
        let bucket = &self.slice()[home as usize];
        if bucket.displaced > 0 {
            let next = self.next(home);
            if let Some(slot) = self.slice()[next as usize].find::<T>(hash, key) {
                return Some(Place::Bucket(next, slot));
            }
        }
        if bucket.stashed > 0 {
            let is_it = |s: &Stashed<T>| s.hash == hash && s.record.key() == key;
            let index = self.stash.iter().position(is_it)?;
            return Some(Place::Stash(u32::try_from(index).ok()?));
        }
        None
    }

    #[inline]
    pub(super) fn record(&self, place: Place) -> RecordRef<'_, T> {
        match place {
            Place::Bucket(bucket, slot) => self.slice()[bucket as usize].record(slot),
            Place::Stash(index) => self.stash[index as usize].record.view(),
        }
    }

    /// Takes the record out of its place, which still counts as used.
    ///
    /// # Safety
    /// The place is used, and is put back to or forgotten before the segment is used again.
    #[inline]
    pub(super) unsafe fn take(&self, place: Place) -> Record<T> {
        match place {
            Place::Bucket(bucket, slot) => {
                // SAFETY: a used slot's address came from `into_raw`; by the contract it is not
                // taken twice.
                unsafe { Record::from_raw(self.slice()[bucket as usize].pointer(slot)) }
            }
            // SAFETY: by the contract the entry is not dropped before `put_back` or `forget`.
            Place::Stash(index) => unsafe { std::ptr::read(&self.stash[index as usize].record) },
        }
    }

    /// Puts a record that was taken back into its place.
    ///
    /// # Safety
    /// `place` was taken with [`Segment::take`], and nothing has happened since.
    #[inline]
    pub(super) unsafe fn put_back(&mut self, place: Place, record: Record<T>) {
        match place {
            Place::Bucket(bucket, slot) => {
                self.slice_mut()[bucket as usize].set_pointer(slot, record.into_raw());
            }
            Place::Stash(index) => {
                // SAFETY: the old record was taken, so it must be overwritten without a drop.
                unsafe { std::ptr::write(&mut self.stash[index as usize].record, record) }
            }
        }
    }

    /// Adds a record whose home bucket is `home`.
    pub(super) fn insert(&mut self, home: u32, hash: u64, record: Record<T>) {
        let next = self.next(home);
        self.live += 1;
        if let Some(slot) = self.slice()[home as usize].free_slot() {
            self.slice_mut()[home as usize].put(slot, hash, record.into_raw());
        } else if let Some(slot) = self.slice()[next as usize].free_slot() {
            self.slice_mut()[next as usize].put(slot, hash, record.into_raw());
            self.slice_mut()[home as usize].displaced += 1;
        } else {
            self.stash.push(Stashed { home, hash, record });
            let bucket = &mut self.slice_mut()[home as usize];
            bucket.stashed = bucket.stashed.saturating_add(1);
        }
    }

    /// Forgets a record of `home` that was taken from `place`, and lets a record that had to go
    /// elsewhere move up.
    pub(super) fn forget(&mut self, home: u32, place: Place) {
        self.live -= 1;
        match place {
            Place::Stash(index) => {
                let stashed = self.stash.swap_remove(index as usize);
                // The record was taken; only its shell is left here.
                std::mem::forget(stashed.record);
                self.unstash(home);
            }
            Place::Bucket(bucket, slot) => {
                self.slice_mut()[bucket as usize].used &= !(1 << slot);
                if bucket != home {
                    self.slice_mut()[home as usize].displaced -= 1;
                }
                self.refill(bucket);
            }
        }
    }

    /// Recounts the stashed records of a home.
    fn unstash(&mut self, home: u32) {
        let count = self.stash.iter().filter(|s| s.home == home).count();
        self.slice_mut()[home as usize].stashed = u8::try_from(count).unwrap_or(u8::MAX);
    }

    /// Moves a stashed record of this home into the slot that came free.
    fn refill(&mut self, bucket: u32) {
        if self.slice_mut()[bucket as usize].stashed == 0 {
            return;
        }
        let Some(index) = self.stash.iter().position(|s| s.home == bucket) else {
            return;
        };
        let stashed = self.stash.swap_remove(index);
        self.live -= 1;
        self.insert(bucket, stashed.hash, stashed.record);
        self.unstash(bucket);
    }

    /// Shows `each` the records whose home is `home`, and perhaps a few of the bucket before it.
    pub(super) fn each_of_home<'s>(
        &'s self,
        home: u32,
        hash: impl Fn(&[u8]) -> u32,
        mut each: impl FnMut(RecordRef<'s, T>),
    ) {
        let bucket = &self.slice()[home as usize];
        for slot in bucket.slots() {
            let record = bucket.record(slot);
            if hash(record.key()) == home {
                each(record);
            }
        }
        if bucket.displaced > 0 {
            let next = &self.slice()[self.next(home) as usize];
            for slot in next.slots() {
                let record = next.record(slot);
                if hash(record.key()) == home {
                    each(record);
                }
            }
        }
        if bucket.stashed > 0 {
            for stashed in self.stash.iter().filter(|s| s.home == home) {
                each(stashed.record.view());
            }
        }
    }

    /// Adds to `found` the addresses of all records whose home is `home`, and perhaps of a few
    /// others.
    pub(super) fn near(&self, home: u32, found: &mut Vec<NonNull<u8>>) {
        let bucket = &self.slice()[home as usize];
        found.extend(bucket.slots().map(|slot| bucket.pointer(slot)));
        if bucket.displaced > 0 {
            let next = &self.slice()[self.next(home) as usize];
            found.extend(next.slots().map(|slot| next.pointer(slot)));
        }
        if bucket.stashed > 0 {
            let stashed = self.stash.iter().filter(|s| s.home == home);
            found.extend(stashed.map(|s| s.record.view().raw()));
        }
    }

    /// Asks for the records of a bucket to be brought near, if there is such a bucket.
    #[inline]
    pub(super) fn prefetch_records(&self, bucket: u32) {
        if let Some(bucket) = self.slice().get(bucket as usize) {
            bucket
                .slots()
                .for_each(|slot| prefetch(bucket.pointer(slot).as_ptr()));
        }
    }

    /// Shows `each` the records that may have the home bucket `home` and the tag of `hash`.
    pub(super) fn each_tagged<'s>(
        &'s self,
        home: u32,
        hash: u64,
        mut each: impl FnMut(RecordRef<'s, T>),
    ) {
        let bucket = &self.slice()[home as usize];
        let wanted = tag(hash);
        let mut look = |bucket: &'s Bucket| {
            for slot in bucket
                .slots()
                .filter(|&slot| bucket.tags[slot as usize] == wanted)
            {
                each(bucket.record(slot));
            }
        };
        look(bucket);
        if bucket.displaced > 0 {
            look(&self.slice()[self.next(home) as usize]);
        }
        if bucket.stashed > 0 {
            for stashed in self.stash.iter().filter(|s| s.home == home) {
                each(stashed.record.view());
            }
        }
    }

    /// The place of the first record that may have the home bucket `home` and the tag of `hash`,
    /// and for which `is_it` is true.
    #[inline]
    pub(super) fn find_tagged(
        &self,
        home: u32,
        hash: u64,
        mut is_it: impl FnMut(RecordRef<'_, T>) -> bool,
    ) -> Option<Place> {
        let bucket = &self.slice()[home as usize];
        if let Some(slot) = bucket.find_tagged(hash, &mut is_it) {
            return Some(Place::Bucket(home, slot));
        }
        if bucket.displaced > 0 {
            let next = self.next(home);
            if let Some(slot) = self.slice()[next as usize].find_tagged(hash, &mut is_it) {
                return Some(Place::Bucket(next, slot));
            }
        }
        if bucket.stashed > 0 {
            let is_it = |s: &Stashed<T>| {
                s.home == home && tag(s.hash) == tag(hash) && is_it(s.record.view())
            };
            let index = self.stash.iter().position(is_it)?;
            return Some(Place::Stash(u32::try_from(index).ok()?));
        }
        None
    }

    /// Asks for the records that may have the home bucket `home` and the tag of `hash` to be
    /// brought near.
    #[inline]
    pub(super) fn prefetch_tagged(&self, home: u32, hash: u64) {
        let bucket = &self.slice()[home as usize];
        bucket.prefetch_matches(hash);
        if bucket.displaced > 0 {
            self.slice()[self.next(home) as usize].prefetch_matches(hash);
        }
    }

    /// How many slots a uniform draw chooses from.
    pub(super) fn slots(&self) -> usize {
        self.slice().len() * SLOTS as usize + super::STASH_MAX.max(self.stash.len())
    }

    /// The record in slot `index`, counted over buckets and stash.
    pub(super) fn slot_at(&self, index: usize) -> Option<RecordRef<'_, T>> {
        let in_buckets = self.slice().len() * SLOTS as usize;
        if index >= in_buckets {
            return Some(self.stash.get(index - in_buckets)?.record.view());
        }
        let bucket = &self.slice()[index / SLOTS as usize];
        let slot = u32::try_from(index % SLOTS as usize).ok()?;
        (bucket.used >> slot & 1 != 0).then(|| bucket.record(slot))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = RecordRef<'_, T>> {
        let in_buckets = self
            .slice()
            .iter()
            .flat_map(|bucket| bucket.slots().map(move |slot| bucket.record(slot)));
        in_buckets.chain(self.stash.iter().map(|stashed| stashed.record.view()))
    }

    /// Takes all records out.
    pub(super) fn drain(&mut self) -> Vec<Record<T>> {
        let mut records = Vec::with_capacity(self.live as usize);
        for bucket in self.slice_mut() {
            for slot in bucket.slots() {
                // SAFETY: the slot is used, and marked unused below before anyone can look.
                records.push(unsafe { Record::from_raw(bucket.pointer(slot)) });
            }
            (bucket.used, bucket.displaced, bucket.stashed) = (0, 0, 0);
        }
        records.extend(self.stash.drain(..).map(|stashed| stashed.record));
        self.live = 0;
        records
    }

    /// Gives `each` up to `budget` records and returns how many. Counts of homes are not kept: the
    /// segment is on its way out.
    pub(super) fn free_some(&mut self, budget: usize, each: &mut impl FnMut(Record<T>)) -> usize {
        let mut freed = 0;
        while freed < budget
            && let Some(stashed) = self.stash.pop()
        {
            each(stashed.record);
            freed += 1;
        }
        for bucket in self.slice_mut() {
            for slot in bucket.slots() {
                if freed == budget {
                    self.live -= u32::try_from(freed).unwrap_or(self.live);
                    return freed;
                }
                bucket.used &= !(1 << slot);
                // SAFETY: the slot was used and is marked unused: nobody reads it again.
                each(unsafe { Record::from_raw(bucket.pointer(slot)) });
                freed += 1;
            }
        }
        self.live -= u32::try_from(freed).unwrap_or(self.live);
        freed
    }

    /// Walks all records; `home_of` says where each belongs.
    pub(super) fn check_invariants(&self, home_of: impl Fn(&[u8]) -> u32) {
        let mut away = vec![(0u32, 0u32); self.slice().len()];
        let mut live = self.stash.len();
        for (number, bucket) in self.slice().iter().enumerate() {
            for slot in bucket.slots() {
                live += 1;
                let home = home_of(bucket.record::<T>(slot).key()) as usize;
                if home != number {
                    assert_eq!(self.next(u32::try_from(home).unwrap()) as usize, number);
                    away[home].0 += 1;
                }
            }
        }
        for stashed in &self.stash {
            assert_eq!(home_of(stashed.record.key()), stashed.home);
            away[stashed.home as usize].1 += 1;
        }
        for (bucket, (displaced, stashed)) in self.slice().iter().zip(away) {
            assert_eq!(u32::from(bucket.displaced), displaced);
            assert_eq!(u32::from(bucket.stashed), stashed.min(255));
        }
        assert_eq!(live, self.live as usize);
    }
}

impl<T> Drop for Segment<T> {
    fn drop(&mut self) {
        self.free_some(usize::MAX, &mut drop);
        let slice = NonNull::slice_from_raw_parts(self.buckets, self.bucket_count as usize);
        // SAFETY: `new` leaked this box; the directory's copies of the pointer are not used again.
        drop(unsafe { Box::from_raw(slice.as_ptr()) });
    }
}
