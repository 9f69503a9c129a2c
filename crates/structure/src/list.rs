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
use directory::{Directory, Place};

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
                trim_front(directory, front, &mut garbage);
                trim_back(directory, back, &mut garbage);
                self.shrink(limit);
                let large = garbage.chunks() > 0;
                large.then(|| List {
                    form: Form::Many(Box::new(garbage)),
                })
            }
        }
    }

    /// Replaces the item `index`; false where there is none.
    pub fn set(&mut self, index: usize, item: &[u8], limit: Limit) -> bool {
        if index >= self.len() {
            return false;
        }
        self.expect(item.len(), 1, limit);
        match &mut self.form {
            Form::Single(chunk) => chunk.replace(index, &Encoded::new(item)),
            Form::Many(directory) => set_in_many(directory, index, item, limit),
        }
        self.shrink(limit);
        true
    }

    /// Puts `item` beside the first item that equals `pivot`; false where there is none.
    pub fn insert(&mut self, side: Side, pivot: &[u8], item: &[u8], limit: Limit) -> bool {
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
            Form::Many(directory) => insert_in_many(directory, index, item, limit),
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
            Form::Many(directory) if count < 0 => remove_last(directory, &needle, most, limit),
            Form::Many(directory) => remove_first(directory, &needle, most, limit),
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

    /// Checks the invariants; O(n).
    #[cfg(test)]
    fn check(&self) {
        if let Form::Many(directory) = &self.form {
            directory.check();
        }
        assert_eq!(self.iter().count(), self.len());
        assert_eq!(self.iter_rev().count(), self.len());
    }
}

fn trim_front(directory: &mut Directory, n: usize, garbage: &mut Directory) {
    let mut n = directory.shed_front(n, garbage);
    while let Some(first) = directory.first() {
        let count = directory.chunk(first).count();
        if n < count {
            directory.edit(first, |chunk| chunk.drop_front(n));
            return;
        }
        directory.remove(first);
        n -= count;
    }
}

fn trim_back(directory: &mut Directory, n: usize, garbage: &mut Directory) {
    let mut n = directory.shed_back(n, garbage);
    while let Some(last) = directory.last() {
        let count = directory.chunk(last).count();
        if n < count {
            directory.edit(last, |chunk| chunk.drop_back(n));
            return;
        }
        directory.remove(last);
        n -= count;
    }
}

fn set_in_many(directory: &mut Directory, index: usize, item: &[u8], limit: Limit) {
    let (place, within) = directory.locate(index);
    let chunk = directory.chunk(place);
    if !chunk.is_plain() && !limit.is_plain(item.len()) {
        let encoded = Encoded::new(item);
        let bytes = chunk.byte_len() - chunk.entry_len(within) + encoded.len();
        if limit.fits(bytes, chunk.count()) || chunk.count() == 1 {
            directory.edit(place, |chunk| chunk.replace(within, &encoded));
            return;
        }
    }
    if chunk.count() == 1 {
        let new = match limit.is_plain(item.len()) {
            true => Chunk::plain(item.to_vec()),
            false => packed(item),
        };
        directory.edit(place, |chunk| *chunk = new);
        join_around(directory, place, limit);
        return;
    }
    directory.edit(place, |chunk| chunk.remove(within));
    insert_in_many(directory, index, item, limit);
}

fn insert_in_many(directory: &mut Directory, index: usize, item: &[u8], limit: Limit) {
    // The chunk that holds the item before the new one, or the first one's chunk.
    let Some((mut place, within)) = (match index {
        0 => directory.first().map(|first| (first, 0)),
        _ => Some(directory.locate(index - 1)).map(|(place, within)| (place, within + 1)),
    }) else {
        directory.push_back(if limit.is_plain(item.len()) {
            Chunk::plain(item.to_vec())
        } else {
            packed(item)
        });
        return;
    };
    let count = directory.chunk(place).count();
    let plain = limit.is_plain(item.len());
    if !plain {
        let encoded = Encoded::new(item);
        if limit.takes(directory.chunk(place), encoded.len()) {
            directory.edit(place, |chunk| chunk.insert(within, &encoded));
            return;
        }
        if within == count
            && let Some(next) = directory.next(place)
            && limit.takes(directory.chunk(next), encoded.len())
        {
            directory.edit(next, |chunk| chunk.insert(0, &encoded));
            return;
        }
    }
    let new = if plain {
        Chunk::plain(item.to_vec())
    } else {
        packed(item)
    };
    if within > 0 {
        if within < count {
            let tail = directory.edit(place, |chunk| chunk.split_off(within));
            place = directory.insert(
                Place {
                    chunk: place.chunk + 1,
                    ..place
                },
                tail,
            );
        } else {
            place.chunk += 1;
        }
    }
    // `place` is now where the new chunk goes.
    place = directory.insert(place, new);
    join_around(directory, place, limit);
}

/// A packed chunk of one item.
fn packed(item: &[u8]) -> Chunk {
    let mut chunk = Chunk::new();
    chunk.push_back(&Encoded::new(item), Room::Tight);
    chunk
}

/// Joins the chunk at `place` with its neighbours in the block, where a chunk can hold both.
fn join_around(directory: &mut Directory, place: Place, limit: Limit) {
    let right = Place {
        chunk: place.chunk + 1,
        ..place
    };
    if directory.next(place) == Some(right) {
        join(directory, place, right, limit);
    }
    if let Some(left) = directory.prev(place)
        && left.block == place.block
    {
        join(directory, left, place, limit);
    }
}

fn join(directory: &mut Directory, left: Place, right: Place, limit: Limit) {
    let (a, b) = (directory.chunk(left), directory.chunk(right));
    if limit.takes_all(a, b) {
        // Appended first: removing may move the blocks.
        let b = directory.edit(right, |chunk| std::mem::replace(chunk, Chunk::new()));
        directory.edit(left, |chunk| chunk.append(&b));
        directory.remove(right);
    }
}

fn remove_first(
    directory: &mut Directory,
    needle: &Needle<'_>,
    most: usize,
    limit: Limit,
) -> usize {
    let (mut removed, mut swept) = (0, false);
    for block in 0..directory.blocks() {
        let before = removed;
        for chunk in 0..directory.block_chunks(block) {
            let place = Place { block, chunk };
            removed += directory.edit(place, |chunk| chunk.remove_first(needle, most - removed));
            if removed == most {
                break;
            }
        }
        if removed > before {
            swept |= directory.sweep(block, |left, right| limit.takes_all(left, right));
        }
        if removed == most {
            break;
        }
    }
    if swept {
        directory.join_all_blocks();
    }
    removed
}

fn remove_last(directory: &mut Directory, needle: &Needle<'_>, most: usize, limit: Limit) -> usize {
    let (mut removed, mut swept) = (0, false);
    for block in (0..directory.blocks()).rev() {
        let before = removed;
        for chunk in (0..directory.block_chunks(block)).rev() {
            let place = Place { block, chunk };
            removed += directory.edit(place, |chunk| chunk.remove_last(needle, most - removed));
            if removed == most {
                break;
            }
        }
        if removed > before {
            swept |= directory.sweep(block, |left, right| limit.takes_all(left, right));
        }
        if removed == most {
            break;
        }
    }
    if swept {
        directory.join_all_blocks();
    }
    removed
}
