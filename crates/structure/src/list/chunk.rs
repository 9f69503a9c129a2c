//! A chunk of a list: the entries of a listpack with room at both ends, or one large item.
//!
//! ```text
//! packed:  | gap | entry | entry | - - - | entry | spare capacity |
//!          0     start                   buf.len()      buf.capacity()
//! plain:   | the item's bytes |
//! ```
//!
//! A listpack proper has its header in front, so pushing to its front moves all of it. Here the
//! header and the end byte are made up when a file wants them, and both ends have slack in
//! proportion to the contents: a push writes its entry and a pop moves a number.
//!
//! # Invariants
//! - `buf[start..]` is `count` canonical entries; `start` is `PLAIN` in a plain chunk, where
//!   `count` is 1.
//! - Slack is at most in proportion to the contents once the chunk is sealed.

use crate::growth;
use crate::listpack::{Encoded, Entry, FRAME, HEADER, Listpack};
use crate::listpack::{header, next, prev, read, skip, skip_back};

/// The `start` that marks a plain chunk.
const PLAIN: u32 = u32::MAX;

pub(super) struct Chunk {
    buf: Vec<u8>,
    start: u32,
    count: u32,
}

/// A copy takes as many bytes as the original.
impl Clone for Chunk {
    fn clone(&self) -> Self {
        Self {
            buf: growth::copy_of(&self.buf),
            ..*self
        }
    }
}

const _: () = assert!(size_of::<Chunk>() == 32);

/// How much room to make at once, beside what is needed now.
#[derive(Clone, Copy)]
pub(super) enum Room {
    /// A quarter of the contents: for the many lists that are one small chunk.
    Tight,
    /// As much as the contents, and what a chunk usually comes to, up to this many bytes in all:
    /// for the ends of long lists, which will be filled.
    Wide(usize),
}

/// The first room of a chunk at the end of a long list.
const WIDE_MIN: usize = 512;

impl Room {
    fn beside(self, used: usize) -> usize {
        match self {
            Room::Tight => used / 4,
            Room::Wide(most) => used.max(WIDE_MIN).min(most.saturating_sub(used)),
        }
    }
}

impl Chunk {
    /// A packed chunk without entries.
    pub fn new() -> Chunk {
        Chunk {
            buf: Vec::new(),
            start: 0,
            count: 0,
        }
    }

    /// A chunk of one large item.
    pub fn plain(item: Vec<u8>) -> Chunk {
        Chunk {
            buf: item,
            start: PLAIN,
            count: 1,
        }
    }

    /// Takes over the buffer of a listpack.
    pub fn from_listpack(pack: Listpack) -> Chunk {
        let count = u32::try_from(pack.len()).expect("an entry takes two bytes of under 4 GiB");
        let mut buf = pack.into_bytes();
        buf.pop();
        Chunk {
            buf,
            start: HEADER as u32,
            count,
        }
    }

    #[inline]
    pub fn is_plain(&self) -> bool {
        self.start == PLAIN
    }

    /// The number of items.
    #[inline]
    pub fn count(&self) -> usize {
        self.count as usize
    }

    /// The size as a listpack, or of the plain item.
    #[inline]
    pub fn byte_len(&self) -> usize {
        if self.is_plain() {
            self.buf.len()
        } else {
            self.entries().len() + FRAME
        }
    }

    /// The bytes on the heap.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        self.buf.capacity()
    }

    /// The entries, or the plain item's bytes.
    #[inline]
    pub fn entries(&self) -> &[u8] {
        if self.is_plain() {
            &self.buf
        } else {
            &self.buf[self.start as usize..]
        }
    }

    /// The header that the entries have in a listpack.
    pub fn header(&self) -> [u8; HEADER] {
        header(self.entries().len(), self.count())
    }

    #[inline]
    pub fn front(&self) -> Option<Entry<'_>> {
        match self.is_plain() {
            true => Some(Entry::Bytes(&self.buf)),
            false => (self.count > 0).then(|| read(&self.buf, self.start as usize).0),
        }
    }

    #[inline]
    pub fn back(&self) -> Option<Entry<'_>> {
        match self.is_plain() {
            true => Some(Entry::Bytes(&self.buf)),
            false => (self.count > 0).then(|| read(&self.buf, prev(&self.buf, self.buf.len())).0),
        }
    }

    /// The item `index`, which must exist.
    pub fn get(&self, index: usize) -> Entry<'_> {
        match self.is_plain() {
            true => Entry::Bytes(&self.buf),
            false => read(&self.buf, self.seek(index)).0,
        }
    }

    /// Where the entry `index` is in `entries()`; at most `count`.
    pub fn offset(&self, index: usize) -> usize {
        match self.is_plain() {
            true => index * self.buf.len(),
            false => self.seek(index) - self.start as usize,
        }
    }

    #[inline]
    pub fn push_back(&mut self, item: &Encoded<'_>, room: Room) {
        let len = item.len();
        if self.buf.capacity() - self.buf.len() < len {
            self.make_room_behind(len, room);
        }
        item.append(&mut self.buf);
        self.count += 1;
    }

    #[inline]
    pub fn push_front(&mut self, item: &Encoded<'_>, room: Room) {
        let len = item.len();
        if (self.start as usize) < len {
            self.make_room_before(len, room);
        }
        let end = self.start as usize;
        item.write(&mut self.buf[end - len..end]);
        self.start = (end - len) as u32;
        self.count += 1;
    }

    /// Removes the first `n` items, which must exist.
    #[inline]
    pub fn drop_front(&mut self, n: usize) {
        if n == self.count() {
            *self = Chunk::new();
        } else if n > 0 {
            self.start = self.seek(n) as u32;
            self.count -= n as u32;
            self.relax();
        }
    }

    /// Removes the last `n` items, which must exist.
    #[inline]
    pub fn drop_back(&mut self, n: usize) {
        if n == self.count() {
            *self = Chunk::new();
        } else if n > 0 {
            self.buf.truncate(self.seek(self.count() - n));
            self.count -= n as u32;
            self.relax();
        }
    }

    /// Puts `item` before the entry `index`, or behind the last one.
    pub fn insert(&mut self, index: usize, item: &Encoded<'_>) {
        let at = self.seek(index);
        item.write(self.splice(at, 0, item.len()));
        self.count += 1;
    }

    /// The size that the entry `index` has.
    pub fn entry_len(&self, index: usize) -> usize {
        let at = self.seek(index);
        next(&self.buf, at) - at
    }

    pub fn replace(&mut self, index: usize, item: &Encoded<'_>) {
        let at = self.seek(index);
        let old = next(&self.buf, at) - at;
        item.write(self.splice(at, old, item.len()));
    }

    pub fn remove(&mut self, index: usize) {
        if self.is_plain() {
            *self = Chunk::new();
            return;
        }
        let at = self.seek(index);
        let old = next(&self.buf, at) - at;
        self.splice(at, old, 0);
        self.count -= 1;
        self.relax();
    }

    /// Cuts off and returns the entries from `index` on.
    pub fn split_off(&mut self, index: usize) -> Chunk {
        let at = self.seek(index);
        let tail = Chunk {
            buf: self.buf[at..].to_vec(),
            start: 0,
            count: self.count - index as u32,
        };
        self.buf.truncate(at);
        self.count = index as u32;
        self.relax();
        tail
    }

    /// Appends the entries of another packed chunk.
    pub fn append(&mut self, other: &Chunk) {
        let needed = other.entries().len();
        if self.buf.capacity() - self.buf.len() < needed {
            self.make_room_behind(needed, Room::Tight);
        }
        self.buf.extend_from_slice(other.entries());
        self.count += other.count;
    }

    /// Removes up to `most` items equal to `needle`, the first ones; returns how many.
    pub fn remove_first(&mut self, needle: &Needle<'_>, most: usize) -> usize {
        if self.is_plain() {
            return self.remove_plain(needle);
        }
        let (mut at, end) = (self.start as usize, self.buf.len());
        // Entries before `write` are settled; those from `keep` to `at` stay and are to be moved.
        let (mut write, mut keep, mut removed) = (at, at, 0);
        while at < end && removed < most {
            let after = next(&self.buf, at);
            if needle.encoded.is_at(&self.buf, at) {
                self.buf.copy_within(keep..at, write);
                write += at - keep;
                keep = after;
                removed += 1;
            }
            at = after;
        }
        if removed > 0 {
            self.buf.copy_within(keep.., write);
            self.buf.truncate(write + end - keep);
            self.settle_removal(removed);
        }
        removed
    }

    /// Removes up to `most` items equal to `needle`, the last ones; returns how many.
    pub fn remove_last(&mut self, needle: &Needle<'_>, most: usize) -> usize {
        if self.is_plain() {
            return self.remove_plain(needle);
        }
        let (start, mut at) = (self.start as usize, self.buf.len());
        // The mirror image: entries from `write` on are settled, those from `at` to `keep` stay.
        let (mut write, mut keep, mut removed) = (at, at, 0);
        while at > start && removed < most {
            let before = prev(&self.buf, at);
            if needle.encoded.is_at(&self.buf, before) {
                write -= keep - at;
                self.buf.copy_within(at..keep, write);
                keep = before;
                removed += 1;
            }
            at = before;
        }
        if removed > 0 {
            write -= keep - start;
            self.buf.copy_within(start..keep, write);
            self.start = write as u32;
            self.settle_removal(removed);
        }
        removed
    }

    /// Gives back slack beyond an eighth: the chunk is no longer at an end of its list.
    pub fn seal(&mut self) {
        let used = if self.is_plain() {
            self.buf.len()
        } else {
            self.entries().len()
        };
        if self.buf.capacity() - used > used / 8 + 16 {
            self.rebuild(0, 0);
        }
    }

    fn remove_plain(&mut self, needle: &Needle<'_>) -> usize {
        if self.buf != needle.value {
            return 0;
        }
        *self = Chunk::new();
        1
    }

    fn settle_removal(&mut self, removed: usize) {
        self.count -= removed as u32;
        match self.count {
            0 => *self = Chunk::new(),
            _ => self.relax(),
        }
    }

    /// Where the entry `index` is in `buf`; walks from the nearer end.
    #[inline]
    fn seek(&self, index: usize) -> usize {
        let count = self.count();
        assert!(
            index <= count && !self.is_plain(),
            "item {index} of {count}"
        );
        match index <= count / 2 {
            true => skip(&self.buf, self.start as usize, index),
            false => skip_back(&self.buf, self.buf.len(), count - index),
        }
    }

    /// Makes the `old` bytes at `at` into `new` bytes, moving the shorter side.
    fn splice(&mut self, at: usize, old: usize, new: usize) -> &mut [u8] {
        let (start, len) = (self.start as usize, self.buf.len());
        let in_front = at - start < len - (at + old);
        if new <= old {
            let less = old - new;
            if in_front {
                self.buf.copy_within(start..at, start + less);
                self.start += less as u32;
                return &mut self.buf[at + less..at + less + new];
            }
            self.buf.copy_within(at + old.., at + new);
            self.buf.truncate(len - less);
            return &mut self.buf[at..at + new];
        }
        let more = new - old;
        if in_front && start >= more {
            self.buf.copy_within(start..at, start - more);
            self.start -= more as u32;
            return &mut self.buf[at - more..at - more + new];
        }
        if self.buf.capacity() - len < more {
            self.make_room_behind(more, Room::Tight);
        }
        let at = at - start + self.start as usize;
        let len = self.buf.len();
        self.buf.resize(len + more, 0);
        self.buf.copy_within(at + old..len, at + new);
        &mut self.buf[at..at + new]
    }

    #[cold]
    fn make_room_behind(&mut self, needed: usize, room: Room) {
        let used = self.entries().len();
        let (gap, extra) = (self.start as usize, room.beside(used + needed));
        let spare = self.buf.capacity() - self.buf.len();
        if gap + spare >= needed + used / 4 {
            // A queue: what was popped in front serves behind.
            self.shift_to((gap + spare - needed) / 2);
        } else if gap == 0 {
            let total = (used + needed + extra).next_multiple_of(16);
            self.buf.reserve_exact(total - used);
        } else {
            self.rebuild(gap.min(extra), needed + extra);
        }
    }

    #[cold]
    fn make_room_before(&mut self, needed: usize, room: Room) {
        let used = self.entries().len();
        let (gap, extra) = (self.start as usize, room.beside(used + needed));
        let spare = self.buf.capacity() - self.buf.len();
        if gap + spare >= needed + used / 4 {
            self.shift_to(needed + (gap + spare - needed) / 2);
        } else {
            self.rebuild(needed + extra, spare.min(extra));
        }
    }

    /// Moves the contents within the buffer, to `start`. Both ends then have an eighth of the
    /// contents free, so pushes to either, or to both in turn, pay for the move.
    fn shift_to(&mut self, start: usize) {
        let (old, used) = (self.start as usize, self.entries().len());
        self.buf.resize((start + used).max(self.buf.len()), 0);
        self.buf.copy_within(old..old + used, start);
        self.buf.truncate(start + used);
        self.start = start as u32;
    }

    /// Moves the contents into a new buffer with these rooms at its ends.
    fn rebuild(&mut self, before: usize, behind: usize) {
        let total = before + self.entries().len() + behind;
        let rounding = total.next_multiple_of(16) - total;
        // The rounding goes to the side that grows.
        let before = if before > behind {
            before + rounding
        } else {
            before
        };
        let mut buf = Vec::with_capacity(total + rounding);
        buf.resize(before, 0);
        buf.extend_from_slice(self.entries());
        self.buf = buf;
        if !self.is_plain() {
            self.start = u32::try_from(before).expect("a chunk stays under 4 GiB");
        }
    }

    /// Gives memory back once less than half of it is in use.
    #[inline]
    fn relax(&mut self) {
        if self.buf.capacity() > 2 * growth::capacity_for(self.entries().len()) + 32 {
            self.rebuild(0, 0);
        }
    }
}

/// A value to look for in chunks of either kind.
pub(super) struct Needle<'a> {
    value: &'a [u8],
    encoded: Encoded<'a>,
}

impl<'a> Needle<'a> {
    pub fn new(value: &'a [u8]) -> Needle<'a> {
        Needle {
            value,
            encoded: Encoded::new(value),
        }
    }

    /// Where the first item equal to this one is.
    pub fn find_in(&self, chunk: &Chunk) -> Option<usize> {
        if chunk.is_plain() {
            return (chunk.buf == self.value).then_some(0);
        }
        let (mut at, mut index) = (chunk.start as usize, 0);
        while at < chunk.buf.len() {
            if self.encoded.is_at(&chunk.buf, at) {
                return Some(index);
            }
            at = next(&chunk.buf, at);
            index += 1;
        }
        None
    }
}
