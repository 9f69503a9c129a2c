//! A list: one packed chunk while it is small, then a directory of chunks.
//!
//! The limit of a chunk comes as an argument with every change, in the meaning of Redis's
//! `list-max-listpack-size`, since it may be reconfigured at any time. An item too large for a
//! chunk gets a plain one of its own.
//!
//! # Invariants
//! - `encoding` answers what Redis 8.10 would after the same commands, save for lists whose middle
//!   was changed: there the chunks may be cut and joined at other places.
//! - Pushing and popping at either end is constant time and moves no other item, amortised.
//! - `memory_bytes` is exact and constant time.
//!
//! # Why not a listpack for the small form?
//! A push to the front would move all of it. A chunk has room at both ends, and makes its header
//! up when a file asks for it.

mod change;
mod chunk;
mod directory;
mod iter;
mod limit;
#[cfg(test)]
mod tests;

pub use iter::{ChunkBytes, Chunks, Iter, RevIter};
pub use limit::Limit;

use crate::listpack::{Encoded, Entry, Listpack};
use chunk::{Chunk, Needle, Room};
use directory::Directory;

/// A sequence of strings, changed mostly at its ends.
pub struct List {
    form: Form,
}

#[derive(Clone)]
enum Form {
    Single(Chunk),
    Many(Box<Directory>),
}

const _: () = assert!(size_of::<List>() == 32);

/// The side of an item on which another one is to go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Before,
    After,
}

impl Default for List {
    fn default() -> List {
        List::new()
    }
}

impl Clone for List {
    fn clone(&self) -> List {
        let mut form = self.form.clone();
        if let Form::Many(directory) = &mut form {
            directory.recount();
        }
        List { form }
    }
}

impl std::fmt::Debug for List {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl List {
    /// An empty list.
    pub fn new() -> List {
        List {
            form: Form::Single(Chunk::new()),
        }
    }

    /// The list as it is now, to be read by somebody else while this one goes on changing. They
    /// have in common what does not change: this costs a step a block of some hundred chunks, and
    /// each block's first change copies it.
    #[must_use]
    pub fn freeze(&mut self) -> List {
        let form = match &mut self.form {
            Form::Single(chunk) => Form::Single(chunk.clone()),
            Form::Many(directory) => Form::Many(Box::new(directory.freeze())),
        };
        List { form }
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Single(chunk) => chunk.count(),
            Form::Many(directory) => directory.len(),
        }
    }

    /// Whether there is no item.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What OBJECT ENCODING says.
    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Single(_) => "listpack",
            Form::Many(_) => "quicklist",
        }
    }

    /// The bytes that the list takes on the heap. O(1).
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Single(chunk) => chunk.memory_bytes(),
            Form::Many(directory) => directory.memory_bytes(),
        }
    }

    /// The first item.
    #[inline]
    pub fn front(&self) -> Option<Entry<'_>> {
        match &self.form {
            Form::Single(chunk) => chunk.front(),
            Form::Many(directory) => directory.front()?.front(),
        }
    }

    /// The last item.
    #[inline]
    pub fn back(&self) -> Option<Entry<'_>> {
        match &self.form {
            Form::Single(chunk) => chunk.back(),
            Form::Many(directory) => directory.back()?.back(),
        }
    }

    /// The item `index`.
    pub fn get(&self, index: usize) -> Option<Entry<'_>> {
        if index >= self.len() {
            return None;
        }
        Some(match &self.form {
            Form::Single(chunk) => chunk.get(index),
            Form::Many(directory) => {
                let (place, index) = directory.locate(index);
                directory.chunk(place).get(index)
            }
        })
    }

    /// Puts an item before all others.
    #[inline]
    pub fn push_front(&mut self, item: &[u8], limit: Limit) {
        self.expect(item.len(), 1, limit);
        self.push_front_unchecked(item, limit);
    }

    /// Puts an item behind all others.
    #[inline]
    pub fn push_back(&mut self, item: &[u8], limit: Limit) {
        self.expect(item.len(), 1, limit);
        self.push_back_unchecked(item, limit);
    }

    /// Puts each of `items` before all others: the last one becomes the first. As one command,
    /// which Redis compares with the limit once: the sum of the items' lengths.
    pub fn push_front_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
        limit: Limit,
    ) {
        let items = items.into_iter();
        self.expect_all(items.clone(), limit);
        items.for_each(|item| self.push_front_unchecked(item, limit));
    }

    /// Puts each of `items` behind all others, in their order. As one command.
    pub fn push_back_all<'a>(
        &mut self,
        items: impl IntoIterator<Item = &'a [u8], IntoIter: Clone>,
        limit: Limit,
    ) {
        let items = items.into_iter();
        self.expect_all(items.clone(), limit);
        items.for_each(|item| self.push_back_unchecked(item, limit));
    }

    /// Removes the first `n` items, or all.
    #[inline]
    pub fn drop_front(&mut self, n: usize, limit: Limit) {
        match &mut self.form {
            Form::Single(chunk) => chunk.drop_front(n.min(chunk.count())),
            Form::Many(directory) => {
                let dropped = directory.edit_front(|chunk| {
                    let inside = n < chunk.count();
                    if inside {
                        chunk.drop_front(n);
                    }
                    inside
                });
                if dropped != Some(true) {
                    drop(self.trim(n, 0, limit));
                }
                self.shrink(limit);
            }
        }
    }

    /// Removes the last `n` items, or all.
    #[inline]
    pub fn drop_back(&mut self, n: usize, limit: Limit) {
        match &mut self.form {
            Form::Single(chunk) => chunk.drop_back(n.min(chunk.count())),
            Form::Many(directory) => {
                let dropped = directory.edit_back(|chunk| {
                    let inside = n < chunk.count();
                    if inside {
                        chunk.drop_back(n);
                    }
                    inside
                });
                if dropped != Some(true) {
                    drop(self.trim(0, n, limit));
                }
                self.shrink(limit);
            }
        }
    }

    /// Removes and returns the first item. Where a copy is not wanted: `front`, `drop_front`.
    pub fn pop_front(&mut self, limit: Limit) -> Option<Vec<u8>> {
        let item = self.front()?.to_vec();
        self.drop_front(1, limit);
        Some(item)
    }

    /// Removes and returns the last item. Where a copy is not wanted: `back`, `drop_back`.
    pub fn pop_back(&mut self, limit: Limit) -> Option<Vec<u8>> {
        let item = self.back()?.to_vec();
        self.drop_back(1, limit);
        Some(item)
    }

    /// Removes the first `front` items and the last `back` ones. What was large comes back as a
    /// list that is to be freed in slices, see `free_some`.
    #[must_use = "free it in slices"]
    pub fn trim(&mut self, front: usize, back: usize, limit: Limit) -> Option<List> {
        let front = front.min(self.len());
        let back = back.min(self.len() - front);
        match &mut self.form {
            Form::Single(chunk) => {
                chunk.drop_front(front);
                chunk.drop_back(back);
                None
            }
            Form::Many(directory) => {
                let mut garbage = Directory::new();
                change::trim_front(directory, front, &mut garbage);
                change::trim_back(directory, back, &mut garbage);
                self.shrink(limit);
                let large = garbage.chunks() > 0;
                large.then(|| List {
                    form: Form::Many(Box::new(garbage)),
                })
            }
        }
    }

    /// Replaces the item `index`; false where there is none, and then too the list has the form for
    /// one more.
    pub fn set(&mut self, index: usize, item: &[u8], limit: Limit) -> bool {
        self.expect(item.len(), 1, limit);
        if index >= self.len() {
            return false;
        }
        match &mut self.form {
            Form::Single(chunk) => chunk.replace(index, &Encoded::new(item)),
            Form::Many(directory) => change::set(directory, index, item, limit),
        }
        self.shrink(limit);
        true
    }

    /// Puts `item` beside the first item that equals `pivot`; false where there is none, and then
    /// too the list has the form for one more.
    pub fn insert(&mut self, side: Side, pivot: &[u8], item: &[u8], limit: Limit) -> bool {
        self.expect(item.len(), 1, limit);
        let Some(found) = self.find(pivot) else {
            return false;
        };
        self.insert_at(found + usize::from(side == Side::After), item, limit);
        true
    }

    /// Puts `item` before the item `index`, or behind all where there is none.
    pub fn insert_at(&mut self, index: usize, item: &[u8], limit: Limit) {
        self.expect(item.len(), 1, limit);
        let index = index.min(self.len());
        match &mut self.form {
            Form::Single(chunk) => chunk.insert(index, &Encoded::new(item)),
            Form::Many(directory) => change::insert(directory, index, item, limit),
        }
    }

    /// The index of the first item that equals `value`.
    pub fn find(&self, value: &[u8]) -> Option<usize> {
        let needle = Needle::new(value);
        match &self.form {
            Form::Single(chunk) => needle.find_in(chunk),
            Form::Many(directory) => {
                let (mut before, mut at) = (0, directory.first());
                while let Some(place) = at {
                    let chunk = directory.chunk(place);
                    if let Some(index) = needle.find_in(chunk) {
                        return Some(before + index);
                    }
                    before += chunk.count();
                    at = directory.next(place);
                }
                None
            }
        }
    }

    /// Removes items that equal `value`, as LREM does: the first `count` ones, the last `-count`
    /// ones, or all of them where `count` is 0. Returns how many.
    pub fn remove(&mut self, count: i64, value: &[u8], limit: Limit) -> usize {
        let needle = Needle::new(value);
        let most = match count {
            0 => usize::MAX,
            _ => usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX),
        };
        let removed = match &mut self.form {
            Form::Single(chunk) if count < 0 => chunk.remove_last(&needle, most),
            Form::Single(chunk) => chunk.remove_first(&needle, most),
            Form::Many(directory) if count < 0 => {
                change::remove_last(directory, &needle, most, limit)
            }
            Form::Many(directory) => change::remove_first(directory, &needle, most, limit),
        };
        self.shrink(limit);
        removed
    }

    /// Frees up to `chunks` chunks, each a few KiB or one large item, from the back. Returns true
    /// when nothing is left.
    pub fn free_some(&mut self, chunks: usize) -> bool {
        if let Form::Many(directory) = &mut self.form {
            for _ in 0..chunks {
                let Some(last) = directory.last() else { break };
                directory.remove(last);
            }
            if directory.len() > 0 {
                return false;
            }
        }
        *self = List::new();
        true
    }

    /// How many chunks there are: what `free_some` has to free.
    pub fn chunk_count(&self) -> usize {
        match &self.form {
            Form::Single(_) => 1,
            Form::Many(directory) => directory.chunks(),
        }
    }

    /// Appends a whole listpack as a chunk. For loading; `settle` comes at the end.
    pub fn load_listpack(&mut self, pack: Listpack) {
        if !pack.is_empty() {
            self.load_chunk(Chunk::from_listpack(pack));
        }
    }

    /// Appends an item as a plain chunk. For loading; `settle` comes at the end.
    pub fn load_plain(&mut self, item: Vec<u8>) {
        self.load_chunk(match item.len() {
            0 => Chunk::from_listpack({
                let mut pack = Listpack::new();
                pack.push_back(&item);
                pack
            }),
            _ => Chunk::plain(item),
        });
    }

    /// Chooses the form that a loaded list has, as Redis does.
    pub fn settle(&mut self, limit: Limit) {
        self.expect(0, 0, limit);
        self.rejoin(|chunk| limit.fits(chunk.byte_len(), chunk.count()));
    }

    fn load_chunk(&mut self, chunk: Chunk) {
        if self.is_empty() && !chunk.is_plain() {
            self.form = Form::Single(chunk);
            return;
        }
        self.directory().push_back(chunk);
    }

    /// Becomes a directory if what is about to be added passes the limit.
    #[inline]
    fn expect(&mut self, bytes: usize, items: usize, limit: Limit) {
        if let Form::Single(chunk) = &self.form
            && !limit.fits(
                chunk.byte_len().saturating_add(bytes),
                chunk.count() + items,
            )
        {
            self.directory();
        }
    }

    fn expect_all<'a>(&mut self, items: impl Iterator<Item = &'a [u8]>, limit: Limit) {
        if matches!(self.form, Form::Single(_)) {
            let (mut bytes, mut count) = (0usize, 0);
            for item in items {
                bytes = bytes.saturating_add(item.len());
                count += 1;
            }
            self.expect(bytes, count, limit);
        }
    }

    /// The directory, which a single chunk becomes the only one of.
    #[cold]
    fn directory(&mut self) -> &mut Directory {
        if let Form::Single(chunk) = &mut self.form {
            let chunk = std::mem::replace(chunk, Chunk::new());
            let mut directory = Directory::new();
            if chunk.count() > 0 {
                directory.push_back(chunk);
            }
            self.form = Form::Many(Box::new(directory));
        }
        match &mut self.form {
            Form::Many(directory) => directory,
            Form::Single(_) => unreachable!("replaced above"),
        }
    }

    /// Becomes a single chunk again once that is at most half of the limit.
    #[inline]
    fn shrink(&mut self, limit: Limit) {
        self.rejoin(|chunk| limit.fits_half(chunk.byte_len(), chunk.count()));
    }

    #[inline]
    fn rejoin(&mut self, fits: impl Fn(&Chunk) -> bool) {
        let Form::Many(directory) = &mut self.form else {
            return;
        };
        if directory.chunks() > 1 {
            return;
        }
        let Some(only) = directory.first() else {
            *self = List::new();
            return;
        };
        let chunk = directory.chunk(only);
        if !chunk.is_plain() && fits(chunk) {
            self.form = Form::Single(directory.remove(only));
        }
    }

    #[inline]
    fn push_front_unchecked(&mut self, item: &[u8], limit: Limit) {
        let directory = match &mut self.form {
            Form::Single(chunk) => return chunk.push_front(&Encoded::new(item), Room::Tight),
            Form::Many(directory) => directory,
        };
        if limit.is_plain(item.len()) {
            return directory.push_front(Chunk::plain(item.to_vec()));
        }
        let (item, room) = (Encoded::new(item), limit.room());
        let pushed = directory.edit_front(|chunk| {
            let takes = limit.takes(chunk, item.len());
            if takes {
                chunk.push_front(&item, room);
            }
            takes
        });
        if pushed == Some(true) {
            return;
        }
        if directory.chunks() > 1 {
            directory.edit_front(Chunk::seal);
        }
        let mut chunk = Chunk::new();
        chunk.push_front(&item, room);
        directory.push_front(chunk);
    }

    #[inline]
    fn push_back_unchecked(&mut self, item: &[u8], limit: Limit) {
        let directory = match &mut self.form {
            Form::Single(chunk) => return chunk.push_back(&Encoded::new(item), Room::Tight),
            Form::Many(directory) => directory,
        };
        if limit.is_plain(item.len()) {
            return directory.push_back(Chunk::plain(item.to_vec()));
        }
        let (item, room) = (Encoded::new(item), limit.room());
        let pushed = directory.edit_back(|chunk| {
            let takes = limit.takes(chunk, item.len());
            if takes {
                chunk.push_back(&item, room);
            }
            takes
        });
        if pushed == Some(true) {
            return;
        }
        if directory.chunks() > 1 {
            directory.edit_back(Chunk::seal);
        }
        let mut chunk = Chunk::new();
        chunk.push_back(&item, room);
        directory.push_back(chunk);
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        if let Form::Many(directory) = &self.form {
            directory.check();
        }
        assert_eq!(self.iter().count(), self.len());
        assert_eq!(self.iter_rev().count(), self.len());
    }
}
