//! The members of a sorted set, each stored once, with its score.
//!
//! ```text
//! member   len 1 | score 8 | member len              len <= 240
//! far      0xFE  | score 8 | index 4                 the member stands in `far`
//! free     0xFF  | units 1 | - 2 | previous 4 | next 4
//! ```
//! Records stand in pages of 16 KiB, in units of 4 bytes, and are referred to by 32 bits: page
//! and unit. Freed space is listed by size and reused by the next record of that size. Where
//! sizes shift or the set shrinks, more than a third may end up free: then a page that is free
//! enough is evacuated, a few records an operation, and goes back to the allocator.
//!
//! # Invariants
//! - A page is records and free slots without gaps, from 0 to its length.
//! - Every free slot is in the list of its size, except in the page under evacuation, where none
//!   is: nothing may move in there any more.
//! - `free_units` of a page is the sum of its free slots, in units.
//!
//! # Why is the score here and not beside the reference in the tree?
//! Both would cost 8 bytes a member. It has to be found from the member (ZSCORE, ZADD), and the
//! tree gets by with 16 bits of it.

use crate::growth::copy_of;
use crate::packed::chunks::Chunks;
use crate::prefetch::prefetch;
use crate::share::Share;

const UNIT: usize = 4;
const PAGE_BYTES: usize = 16 << 10;
const PAGE_UNITS_BITS: u32 = 12;
/// Pages that 32-bit references reach.
const PAGES_MAX: usize = (1 << (32 - PAGE_UNITS_BITS)) - 1;
const HEAD: usize = 9;
const NEAR_MAX: usize = 240;
const FAR: u8 = 0xFE;
const FREE: u8 = 0xFF;
const FAR_UNITS: usize = 4;
/// Sizes in units that occur: from an empty member to one of `NEAR_MAX`.
const UNITS_MIN: usize = HEAD.div_ceil(UNIT);
const SIZES: usize = (HEAD + NEAR_MAX).div_ceil(UNIT) - UNITS_MIN + 1;
const NIL: u32 = u32::MAX;
/// Free bytes that are not worth an evacuation.
const IDLE_BYTES: usize = 2 * PAGE_BYTES;
/// Pages or free slots passed over in one step of an evacuation.
const STEPS_MAX: usize = 64;

struct Page {
    bytes: Vec<u8>,
    free_units: u32,
}

/// A copy takes as many bytes as the original.
impl Clone for Page {
    fn clone(&self) -> Self {
        Self {
            bytes: copy_of(&self.bytes),
            free_units: self.free_units,
        }
    }
}

pub(crate) struct MemberStore {
    pages: Vec<Share<Page>>,
    /// Numbers of pages that have been given back.
    vacant: Vec<u32>,
    /// Heads of the lists of free slots, by size.
    free: [u32; SIZES],
    /// The page that new records are appended to.
    tail: u32,
    /// The page under evacuation and how far that is, or `NIL`.
    victim: u32,
    hand: usize,
    /// Where the search for the next victim goes on.
    next_victim: u32,
    used_bytes: usize,
    free_bytes: usize,
    heap: usize,
    far: Chunks<Option<Box<[u8]>>>,
    far_vacant: Vec<u32>,
}

impl MemberStore {
    pub(crate) fn new() -> Self {
        Self {
            pages: Vec::new(),
            vacant: Vec::new(),
            free: [NIL; SIZES],
            tail: NIL,
            victim: NIL,
            hand: 0,
            next_victim: 0,
            used_bytes: 0,
            free_bytes: 0,
            heap: 0,
            far: Chunks::new(),
            far_vacant: Vec::new(),
        }
    }

    /// Fetches the start of the record at `at`.
    #[inline]
    pub(crate) fn prefetch(&self, at: u32) {
        let (page, start) = place(at);
        prefetch(self.pages[page].bytes.as_ptr().wrapping_add(start));
    }

    #[inline]
    pub(crate) fn score(&self, at: u32) -> f64 {
        let bytes = self.record(at)[1..HEAD].try_into().expect("eight bytes");
        f64::from_le_bytes(bytes)
    }

    #[inline]
    pub(crate) fn member(&self, at: u32) -> &[u8] {
        let record = self.record(at);
        let len = usize::from(record[0]);
        if len <= NEAR_MAX {
            &record[HEAD..HEAD + len]
        } else {
            self.far
                .get(far_index(record))
                .as_deref()
                .expect("a live record refers to it")
        }
    }

    pub(crate) fn set_score(&mut self, at: u32, score: f64) {
        self.record_mut(at)[1..HEAD].copy_from_slice(&score.to_le_bytes());
    }

    /// True where `insert` could fail for want of references: at 16 GiB of members.
    pub(crate) fn is_full(&self) -> bool {
        self.pages.len() >= PAGES_MAX && self.vacant.is_empty()
    }

    pub(crate) fn insert(&mut self, member: &[u8], score: f64) -> u32 {
        let near = member.len() <= NEAR_MAX;
        let units = if near {
            (HEAD + member.len()).div_ceil(UNIT)
        } else {
            FAR_UNITS
        };
        let at = self.allocate(units);
        let record = self.record_mut(at);
        record[1..HEAD].copy_from_slice(&score.to_le_bytes());
        if near {
            record[0] = member.len() as u8;
            record[HEAD..HEAD + member.len()].copy_from_slice(member);
        } else {
            record[0] = FAR;
            let index = self.far_insert(member.into());
            self.record_mut(at)[HEAD..HEAD + 4].copy_from_slice(&index.to_le_bytes());
        }
        at
    }

    pub(crate) fn remove(&mut self, at: u32) {
        let record = self.record(at);
        if record[0] == FAR {
            let index = far_index(record);
            let member = self
                .far
                .get_mut(index)
                .take()
                .expect("a live record refers to it");
            self.heap -= member.len();
            self.far_vacant.push(index as u32);
        }
        self.release(at);
    }

    /// A live record that should move, to let its page go; `None` when there is nothing to do
    /// now. Takes a bounded number of steps. Follow it by [`relocate`](Self::relocate).
    pub(crate) fn next_to_move(&mut self) -> Option<u32> {
        if self.victim == NIL && !self.pick_victim() {
            return None;
        }
        for _ in 0..STEPS_MAX {
            let bytes = &self.pages[self.victim as usize].bytes;
            if self.hand >= bytes.len() {
                self.drop_victim();
                return None;
            }
            let at = self.victim << PAGE_UNITS_BITS | (self.hand / UNIT) as u32;
            if bytes[self.hand] != FREE {
                return Some(at);
            }
            self.hand += slot_units(&bytes[self.hand..]) * UNIT;
        }
        None
    }

    /// Copies the record at `from` elsewhere and returns where. Both live until `from` is given
    /// to [`release`](Self::release).
    pub(crate) fn relocate(&mut self, from: u32) -> u32 {
        let units = slot_units(self.record(from));
        let to = self.allocate(units);
        let (source, target) = (place(from), place(to));
        debug_assert!(source.0 != target.0, "moved within the page that should go");
        let mut copy = [0; SIZES * UNIT + UNITS_MIN * UNIT];
        let copy = &mut copy[..units * UNIT];
        copy.copy_from_slice(&self.pages[source.0].bytes[source.1..source.1 + copy.len()]);
        self.pages[target.0].get_mut().bytes[target.1..target.1 + copy.len()].copy_from_slice(copy);
        to
    }

    /// Frees the slot at `at`.
    pub(crate) fn release(&mut self, at: u32) {
        let (page, start) = place(at);
        let units = slot_units(&self.pages[page].bytes[start..]);
        let into = self.pages[page].get_mut();
        into.free_units += units as u32;
        into.bytes[start] = FREE;
        into.bytes[start + 1] = units as u8;
        self.free_bytes += units * UNIT;
        if page == self.victim as usize {
            return;
        }
        let head = self.free[units - UNITS_MIN];
        self.set_links(at, NIL, head);
        if head != NIL {
            self.set_link(head, 4, at);
        }
        self.free[units - UNITS_MIN] = at;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Page>()
            + (self.vacant.capacity() + self.far_vacant.capacity()) * 4
            + self.far.memory_bytes()
            + self.heap
    }

    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self) {
        let pages: usize = self.pages.iter().map(|page| page.bytes.capacity()).sum();
        let far = self.far.iter().flatten().map(|member| member.len());
        assert_eq!(self.heap, pages + far.sum::<usize>(), "bytes of members");
    }

    /// The store as it is now: to be read, not to be changed.
    pub(crate) fn freeze(&mut self) -> Self {
        Self {
            pages: self.pages.iter_mut().map(Share::share).collect(),
            far: self.far.map(|far| far.clone()),
            vacant: Vec::new(),
            far_vacant: Vec::new(),
            ..*self
        }
    }

    /// All members with their scores, in no useful order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], f64)> {
        (0u32..)
            .zip(&self.pages)
            .flat_map(|(number, page)| {
                let mut start = 0;
                std::iter::from_fn(move || {
                    let slot = page.bytes.get(start..).filter(|rest| !rest.is_empty())?;
                    let at = number << PAGE_UNITS_BITS | (start / UNIT) as u32;
                    start += slot_units(slot) * UNIT;
                    Some((slot[0] != FREE).then_some(at))
                })
            })
            .flatten()
            .map(|at| (self.member(at), self.score(at)))
    }

    /// Frees about `budget` allocations of a store that is not used any more.
    pub(crate) fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget {
            if let Some(page) = self.pages.pop() {
                self.heap -= page.bytes.capacity();
            } else if let Some(far) = self.far.pop() {
                self.heap -= far.map_or(0, |member| member.len());
            } else {
                *self = Self::new();
                return true;
            }
        }
        false
    }

    #[inline]
    fn record(&self, at: u32) -> &[u8] {
        let (page, start) = place(at);
        &self.pages[page].bytes[start..]
    }

    fn record_mut(&mut self, at: u32) -> &mut [u8] {
        let (page, start) = place(at);
        &mut self.pages[page].get_mut().bytes[start..]
    }

    fn allocate(&mut self, units: usize) -> u32 {
        let head = self.free[units - UNITS_MIN];
        if head != NIL {
            self.unlink(head, units);
            let page = self.pages[place(head).0].get_mut();
            page.free_units -= units as u32;
            self.free_bytes -= units * UNIT;
            return head;
        }
        let bytes = units * UNIT;
        if self.tail == NIL || self.pages[self.tail as usize].bytes.len() + bytes > PAGE_BYTES {
            self.tail = self.new_page();
        }
        let used_bytes = self.used_bytes;
        let page = &mut self.pages[self.tail as usize].get_mut().bytes;
        let start = page.len();
        if start + bytes > page.capacity() {
            // Small sets grow their only page in steps.
            let capacity = (used_bytes / 8).next_multiple_of(256).max(512) + start;
            let before = page.capacity();
            page.reserve_exact(capacity.min(PAGE_BYTES) - start);
            self.heap += page.capacity() - before;
        }
        page.resize(start + bytes, 0);
        self.used_bytes += bytes;
        self.tail << PAGE_UNITS_BITS | (start / UNIT) as u32
    }

    fn new_page(&mut self) -> u32 {
        let page = Share::new(Page {
            bytes: Vec::new(),
            free_units: 0,
        });
        if let Some(number) = self.vacant.pop() {
            self.pages[number as usize] = page;
            return number;
        }
        assert!(
            self.pages.len() < PAGES_MAX,
            "sorted set holds more than 16 GiB of members"
        );
        self.pages.push(page);
        (self.pages.len() - 1) as u32
    }

    /// Looks for a page that is worth evacuating, and takes its free slots out of the lists.
    fn pick_victim(&mut self) -> bool {
        if self.free_bytes < IDLE_BYTES || self.free_bytes * 3 < self.used_bytes {
            return false;
        }
        for _ in 0..STEPS_MAX {
            let number = self.next_victim;
            self.next_victim = (number + 1) % self.pages.len() as u32;
            let page = &self.pages[number as usize];
            // Somewhere is a page with at least the average share of a third.
            let free_bytes = page.free_units as usize * UNIT;
            if number == self.tail || free_bytes * 3 < page.bytes.len() || page.bytes.is_empty() {
                continue;
            }
            let (mut start, end) = (0, page.bytes.len());
            while start < end {
                let record = &self.pages[number as usize].bytes[start..];
                let (free, units) = (record[0] == FREE, slot_units(record));
                if free {
                    self.unlink(number << PAGE_UNITS_BITS | (start / UNIT) as u32, units);
                }
                start += units * UNIT;
            }
            self.victim = number;
            self.hand = 0;
            return true;
        }
        false
    }

    fn drop_victim(&mut self) {
        let page = self.pages[self.victim as usize].get_mut();
        let bytes = std::mem::take(&mut page.bytes);
        debug_assert_eq!(page.free_units as usize * UNIT, bytes.len());
        page.free_units = 0;
        self.used_bytes -= bytes.len();
        self.free_bytes -= bytes.len();
        self.heap -= bytes.capacity();
        self.vacant.push(self.victim);
        self.victim = NIL;
    }

    fn far_insert(&mut self, member: Box<[u8]>) -> u32 {
        self.heap += member.len();
        if let Some(index) = self.far_vacant.pop() {
            *self.far.get_mut(index as usize) = Some(member);
            return index;
        }
        self.far.push(Some(member));
        u32::try_from(self.far.len() - 1).expect("each has a record, which 32 bits refer to")
    }

    fn unlink(&mut self, at: u32, units: usize) {
        let (previous, next) = (self.link(at, 4), self.link(at, 8));
        if previous == NIL {
            self.free[units - UNITS_MIN] = next;
        } else {
            self.set_link(previous, 8, next);
        }
        if next != NIL {
            self.set_link(next, 4, previous);
        }
    }

    fn link(&self, at: u32, offset: usize) -> u32 {
        let bytes = self.record(at)[offset..offset + 4]
            .try_into()
            .expect("four bytes");
        u32::from_le_bytes(bytes)
    }

    fn set_link(&mut self, at: u32, offset: usize, to: u32) {
        self.record_mut(at)[offset..offset + 4].copy_from_slice(&to.to_le_bytes());
    }

    fn set_links(&mut self, at: u32, previous: u32, next: u32) {
        self.set_link(at, 4, previous);
        self.set_link(at, 8, next);
    }
}

#[inline]
fn place(at: u32) -> (usize, usize) {
    let unit = at & ((1 << PAGE_UNITS_BITS) - 1);
    ((at >> PAGE_UNITS_BITS) as usize, unit as usize * UNIT)
}

fn slot_units(record: &[u8]) -> usize {
    match record[0] {
        FREE => usize::from(record[1]),
        FAR => FAR_UNITS,
        len => (HEAD + usize::from(len)).div_ceil(UNIT),
    }
}

fn far_index(record: &[u8]) -> usize {
    let bytes = record[HEAD..HEAD + 4].try_into().expect("four bytes");
    u32::from_le_bytes(bytes) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn reuses_space_and_gives_pages_back() {
        let mut store = MemberStore::new();
        let mut live = BTreeMap::new();
        let mut state = 9u64;
        let mut draw = move |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut peak = 0;
        for step in 0..120_000u64 {
            // Grow, then churn, then shrink; sizes drift upwards.
            let grow = match step / 40_000 {
                0 => 9,
                1 => 5,
                _ => 1,
            };
            if draw(10) < grow {
                let len = draw(20 + step / 4_000) + if step % 50 == 0 { 300 } else { 0 };
                let member: Vec<u8> = (0..len).map(|_| draw(256) as u8).collect();
                let at = store.insert(&member, step as f64);
                assert!(live.insert(at, (member, step as f64)).is_none());
            } else if let Some((&at, _)) = live
                .range(draw(1 << 20) as u32..)
                .next()
                .or(live.first_key_value())
            {
                live.remove(&at);
                store.remove(at);
            }
            for _ in 0..2 {
                let Some(from) = store.next_to_move() else {
                    break;
                };
                let to = store.relocate(from);
                store.release(from);
                let moved = live.remove(&from).unwrap();
                assert!(live.insert(to, moved).is_none());
            }
            peak = peak.max(store.memory_bytes());
            if step % 10_000 == 9_999 {
                for (&at, (member, score)) in &live {
                    assert_eq!((store.member(at), store.score(at)), (&member[..], *score));
                }
                assert!(store.free_bytes <= store.used_bytes / 2 + IDLE_BYTES);
            }
        }
        assert!(
            store.memory_bytes() < peak / 2,
            "{} of {peak}",
            store.memory_bytes()
        );
        while !store.free_some(3) {}
        assert_eq!(store.heap, 0);
    }
}
