//! The members of a sorted set, each stored once, with its score.
//!
//! ```text
//! member   len 1 | score 8 | member len              len <= 240
//! far      0xFE  | score 8 | index 4                 the member is the page's `far`
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

use std::sync::Arc;

use super::page::{Journal, PAGE_BYTES, Page, far_bytes};
use crate::journal::{Journaled, Past};
use crate::prefetch::prefetch;

const UNIT: usize = 4;
const PAGE_UNITS_BITS: u32 = 12;
/// Pages that 32-bit references reach.
const PAGES_MAX: usize = (1 << (32 - PAGE_UNITS_BITS)) - 1;
const HEAD: usize = 9;
const NEAR_MAX: usize = 240;
const FAR: u8 = 0xFE;
const FREE: u8 = 0xFF;
/// Bytes of a free slot that say what it is.
const FREE_HEAD: usize = 2;
const FAR_UNITS: usize = 4;
/// Sizes in units that occur: from an empty member to one of `NEAR_MAX`.
const UNITS_MIN: usize = HEAD.div_ceil(UNIT);
const SIZES: usize = (HEAD + NEAR_MAX).div_ceil(UNIT) - UNITS_MIN + 1;
const NIL: u32 = u32::MAX;
/// Free bytes that are not worth an evacuation.
const IDLE_BYTES: usize = 2 * PAGE_BYTES;
/// Pages or free slots passed over in one step of an evacuation.
const STEPS_MAX: usize = 64;

pub(crate) struct MemberStore {
    pages: Vec<Journaled<Page>>,
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
}

/// The members at one moment.
pub(crate) struct MembersPast {
    pages: Vec<Past<Page>>,
    bytes: usize,
}

impl MembersPast {
    /// Bytes that it would take if it had nothing in common with anybody.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Gives all members with their scores to `f`, in no useful order. Holds one page at a time;
    /// those behind it remember nothing any more.
    pub(crate) fn each(self, mut f: impl FnMut(&[u8], f64)) {
        for past in self.pages {
            let (mut page, journal) = past.read();
            journal.undo(&mut page);
            let mut rest = &page.bytes[..];
            while !rest.is_empty() {
                let (record, behind) = rest.split_at(slot_units(rest) * UNIT);
                rest = behind;
                if record[0] != FREE {
                    f(member_of(&page, record), score_of(record));
                }
            }
        }
    }
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
        score_of(self.record(at))
    }

    #[inline]
    pub(crate) fn member(&self, at: u32) -> &[u8] {
        let (page, start) = place(at);
        let page = &self.pages[page];
        member_of(page, &page.bytes[start..])
    }

    pub(crate) fn set_score(&mut self, at: u32, score: f64) {
        let (page, start) = place(at);
        self.pages[page].change(
            |page, journal| journal.keep(page, start + 1, HEAD - 1),
            |page| page.bytes[start + 1..start + HEAD].copy_from_slice(&score.to_le_bytes()),
        );
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
        let far: Option<Arc<[u8]>> = (!near).then(|| member.into());
        self.heap += far.as_ref().map_or(0, far_bytes);
        self.write(at, |page, start| {
            let index = far.map(|member| page.far_insert(member));
            let record = &mut page.bytes[start..];
            record[1..HEAD].copy_from_slice(&score.to_le_bytes());
            if let Some(index) = index {
                record[0] = FAR;
                record[HEAD..HEAD + 4].copy_from_slice(&index.to_le_bytes());
            } else {
                record[0] = member.len() as u8;
                record[HEAD..HEAD + member.len()].copy_from_slice(member);
            }
        });
        at
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
    /// to [`remove`](Self::remove).
    pub(crate) fn relocate(&mut self, from: u32) -> u32 {
        let units = slot_units(self.record(from));
        let to = self.allocate(units);
        let (page, start) = place(from);
        debug_assert!(page != place(to).0, "moved within the page that should go");
        let page = &self.pages[page];
        let mut copy = [0; SIZES * UNIT + UNITS_MIN * UNIT];
        let copy = &mut copy[..units * UNIT];
        copy.copy_from_slice(&page.bytes[start..start + copy.len()]);
        let far = (copy[0] == FAR).then(|| page.far(far_index(copy)).clone());
        self.heap += far.as_ref().map_or(0, far_bytes);
        self.write(to, |page, start| {
            if let Some(member) = far {
                let index = page.far_insert(member);
                copy[HEAD..HEAD + 4].copy_from_slice(&index.to_le_bytes());
            }
            page.bytes[start..start + copy.len()].copy_from_slice(copy);
        });
        to
    }

    /// Frees the slot at `at`.
    pub(crate) fn remove(&mut self, at: u32) {
        let (number, start) = place(at);
        let record = self.record(at);
        let units = slot_units(record);
        let far = (record[0] == FAR).then(|| far_index(record));
        let log = |page: &Page, journal: &mut Journal| {
            journal.keep(page, start, units * UNIT)
                && far.is_none_or(|index| journal.keep_far(page, index))
        };
        let member = self.pages[number].change(log, |page| {
            page.free_units += units as u32;
            page.bytes[start] = FREE;
            page.bytes[start + 1] = units as u8;
            far.map(|index| page.far_remove(index))
        });
        self.heap -= member.as_ref().map_or(0, far_bytes);
        self.free_bytes += units * UNIT;
        if number == self.victim as usize {
            return;
        }
        let head = self.free[units - UNITS_MIN];
        self.set_link(at, 4, NIL);
        self.set_link(at, 8, head);
        if head != NIL {
            self.set_link(head, 4, at);
        }
        self.free[units - UNITS_MIN] = at;
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.pages.capacity() * size_of::<Journaled<Page>>()
            + self.vacant.capacity() * 4
            + self.heap
    }

    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self) {
        let pages: usize = self.pages.iter().map(|page| page.bytes.capacity()).sum();
        let far: usize = self.pages.iter().map(|page| page.far_bytes()).sum();
        assert_eq!(self.heap, pages + far, "bytes of members");
    }

    /// The members as they are now, to be read by somebody else while the store goes on changing.
    pub(crate) fn freeze(&mut self) -> MembersPast {
        MembersPast {
            pages: self.pages.iter_mut().map(Journaled::freeze).collect(),
            bytes: self.memory_bytes(),
        }
    }

    /// Frees about `budget` allocations of a store that is not used any more.
    pub(crate) fn free_some(&mut self, budget: usize) -> bool {
        let mut freed = 0;
        while freed < budget {
            let Some(page) = self.pages.pop() else {
                *self = Self::new();
                return true;
            };
            self.heap -= page.bytes.capacity() + page.far_bytes();
            freed += 1 + page.far_slots();
        }
        false
    }

    #[inline]
    fn record(&self, at: u32) -> &[u8] {
        let (page, start) = place(at);
        &self.pages[page].bytes[start..]
    }

    /// Writes into a slot that was just allocated: that it was free, or not there, is remembered.
    fn write(&mut self, at: u32, write: impl FnOnce(&mut Page, usize)) {
        let (page, start) = place(at);
        self.pages[page].change(|_, _| true, |page| write(page, start));
    }

    fn allocate(&mut self, units: usize) -> u32 {
        let head = self.free[units - UNITS_MIN];
        if head != NIL {
            self.unlink(head, units);
            let (page, start) = place(head);
            self.pages[page].change(
                |page, journal| journal.keep(page, start, FREE_HEAD),
                |page| page.free_units -= units as u32,
            );
            self.free_bytes -= units * UNIT;
            return head;
        }
        let bytes = units * UNIT;
        if self.tail == NIL || self.pages[self.tail as usize].bytes.len() + bytes > PAGE_BYTES {
            self.tail = self.new_page();
        }
        let used_bytes = self.used_bytes;
        let page = &mut self.pages[self.tail as usize];
        let start = page.bytes.len();
        let grown_bytes = page.change(
            |_, _| true,
            |page| {
                let before = page.bytes.capacity();
                if start + bytes > before {
                    // Small sets grow their only page in steps.
                    let capacity = (used_bytes / 8).next_multiple_of(256).max(512) + start;
                    page.bytes.reserve_exact(capacity.min(PAGE_BYTES) - start);
                }
                page.bytes.resize(start + bytes, 0);
                page.bytes.capacity() - before
            },
        );
        self.heap += grown_bytes;
        self.used_bytes += bytes;
        self.tail << PAGE_UNITS_BITS | (start / UNIT) as u32
    }

    fn new_page(&mut self) -> u32 {
        let page = Journaled::new(Page::new());
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
        let nothing = Journaled::new(Page::new());
        let page = std::mem::replace(&mut self.pages[self.victim as usize], nothing);
        debug_assert_eq!(page.free_units as usize * UNIT, page.bytes.len());
        self.used_bytes -= page.bytes.len();
        self.free_bytes -= page.bytes.len();
        self.heap -= page.bytes.capacity();
        self.vacant.push(self.victim);
        self.victim = NIL;
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

    /// Sets a link in a free slot, whose links nobody remembers.
    fn set_link(&mut self, at: u32, offset: usize, to: u32) {
        self.write(at, |page, start| {
            let link = start + offset;
            page.bytes[link..link + 4].copy_from_slice(&to.to_le_bytes());
        });
    }
}

#[inline]
fn place(at: u32) -> (usize, usize) {
    let unit = at & ((1 << PAGE_UNITS_BITS) - 1);
    ((at >> PAGE_UNITS_BITS) as usize, unit as usize * UNIT)
}

#[inline]
fn score_of(record: &[u8]) -> f64 {
    f64::from_le_bytes(record[1..HEAD].try_into().expect("eight bytes"))
}

/// The member of a record of `page`.
#[inline]
fn member_of<'a>(page: &'a Page, record: &'a [u8]) -> &'a [u8] {
    let len = usize::from(record[0]);
    if len <= NEAR_MAX {
        &record[HEAD..HEAD + len]
    } else {
        page.far(far_index(record))
    }
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
                store.remove(from);
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
