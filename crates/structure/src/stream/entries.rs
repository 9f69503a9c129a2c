//! The entries of a stream: blocks in the order of their ids.
//!
//! # Invariants
//! - `tail` is the block that appending goes to; every other block is sealed, keyed by its base.
//! - Blocks do not overlap: the last id of one is below the base of the next.
//! - No block is empty.
//! - `live` and `heap_bytes` are the sums over the blocks.
//!
//! # Why a tree of blocks and not a deque?
//! A deque is a little faster to search, but growing one of a million blocks copies them all at
//! once, and deleting from its middle moves half of them. With the tail held apart the tree is
//! touched once in a hundred appends.

use std::collections::BTreeMap;
use std::collections::btree_map;
use std::mem::size_of;

use super::block::{Block, BlockLimits, Entry, FieldSource};
use super::id::StreamId;
use crate::share::Share;

/// What a sealed block costs beside its bytes: the node of the tree is about two thirds full.
const BLOCK_OVERHEAD: usize = (size_of::<Share<Block>>() + size_of::<StreamId>()) * 3 / 2;

#[derive(Debug, Default)]
pub(super) struct Entries {
    sealed: BTreeMap<StreamId, Share<Block>>,
    tail: Option<Block>,
    live: u64,
    heap_bytes: usize,
    /// Changes whenever offsets in blocks may have.
    moves: u64,
}

/// A place between two entries, to go on reading from without searching. It is only a hint: a
/// place that no longer stands is found by id instead.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    base: StreamId,
    at: usize,
    moves: u64,
}

impl Clone for Entries {
    fn clone(&self) -> Self {
        let sealed = self.sealed.iter();
        Self {
            sealed: sealed
                .map(|(base, block)| (*base, Share::new((**block).clone())))
                .collect(),
            tail: self.tail.clone(),
            ..*self
        }
    }
}

impl Entries {
    /// The entries as they are now, sealed blocks in common until they change.
    pub(super) fn freeze(&mut self) -> Self {
        let sealed = self.sealed.iter_mut();
        Self {
            sealed: sealed.map(|(base, block)| (*base, block.share())).collect(),
            tail: self.tail.clone(),
            ..*self
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.live
    }

    pub(super) fn blocks(&self) -> usize {
        self.sealed.len() + usize::from(self.tail.is_some())
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.heap_bytes + self.sealed.len() * BLOCK_OVERHEAD
    }

    /// Appends; the id is greater than every id ever held.
    pub(super) fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl FieldSource<'f>,
        limits: BlockLimits,
    ) {
        self.live += 1;
        let Some(tail) = &mut self.tail else {
            let block = Block::new(id, fields, 0);
            self.heap_bytes += block.memory_bytes();
            self.tail = Some(block);
            return;
        };
        let before = tail.memory_bytes();
        if tail.append(id, fields.clone(), limits) {
            self.heap_bytes += tail.memory_bytes() - before;
            return;
        }
        tail.shrink();
        self.heap_bytes -= before - tail.memory_bytes();
        // The next block will probably end up as long as this one.
        let expected = if limits.bytes == 0 {
            0
        } else {
            tail.len_bytes().min(limits.bytes)
        };
        let block = Block::new(id, fields, expected);
        self.heap_bytes += block.memory_bytes();
        if let Some(full) = self.tail.replace(block) {
            self.sealed.insert(full.base(), Share::new(full));
        }
    }

    pub(super) fn first(&self) -> Option<Entry<'_>> {
        let block = self
            .sealed
            .first_key_value()
            .map(|(_, b)| &**b)
            .or(self.tail.as_ref())?;
        block.entry_after(block.head()).map(|(entry, _)| entry)
    }

    pub(super) fn last(&self) -> Option<Entry<'_>> {
        let block = self
            .tail
            .as_ref()
            .or_else(|| self.sealed.last_key_value().map(|(_, b)| &**b))?;
        block.entry_before(block.end()).map(|(entry, _)| entry)
    }

    pub(super) fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        let block = self.block_of(id)?;
        let (entry, _) = block.entry_after(block.seek(id))?;
        (entry.id == id).then_some(entry)
    }

    fn block_of(&self, id: StreamId) -> Option<&Block> {
        match &self.tail {
            Some(tail) if tail.base() <= id => Some(tail),
            _ => {
                let block = self.sealed.range(..=id).next_back();
                block.map(|(_, block)| &**block)
            }
        }
    }

    pub(super) fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        if start > end {
            return Range {
                sealed: self.sealed.range(..StreamId::MIN),
                tail: None,
                at: None,
                end,
            };
        }
        let in_tail = self.tail.as_ref().is_some_and(|tail| tail.base() <= start);
        let first = if in_tail { None } else { self.block_of(start) };
        let from = if in_tail {
            StreamId::MAX
        } else {
            first.map_or(start, Block::base)
        };
        let mut range = Range {
            sealed: self.sealed.range(from..),
            tail: self.tail.as_ref(),
            at: None,
            end,
        };
        range.at = range
            .next_block()
            .map(|block| (block, block.seek(start).max(block.head())));
        range
    }

    /// The entries from the place on; none where the place no longer stands.
    pub(super) fn resume(&self, place: Place, end: StreamId) -> Option<Range<'_>> {
        if place.moves != self.moves {
            return None;
        }
        let nothing = self.sealed.range(..StreamId::MIN);
        if let Some(tail) = self.tail.as_ref().filter(|tail| tail.base() == place.base) {
            return Some(Range {
                sealed: nothing,
                tail: None,
                at: Some((tail, place.at)),
                end,
            });
        }
        let mut sealed = self.sealed.range(place.base..);
        let (base, block) = sealed.next()?;
        let at = Some((&**block, place.at));
        (*base == place.base).then_some(Range {
            sealed,
            tail: self.tail.as_ref(),
            at,
            end,
        })
    }

    /// The place where the range has arrived, if it has not ended.
    pub(super) fn place(&self, range: &Range<'_>) -> Option<Place> {
        range.at.map(|(block, at)| Place {
            base: block.base(),
            at,
            moves: self.moves,
        })
    }

    pub(super) fn range_back(&self, start: StreamId, end: StreamId) -> RangeBack<'_> {
        if start > end {
            return RangeBack {
                sealed: self.sealed.range(..StreamId::MIN),
                at: None,
                start,
                end,
            };
        }
        let mut range = RangeBack {
            sealed: self.sealed.range(..=end),
            at: None,
            start,
            end,
        };
        let block = match &self.tail {
            Some(tail) if tail.base() <= end => Some(tail),
            _ => range.sealed.next_back().map(|(_, block)| &**block),
        };
        range.at = block.map(|block| {
            let after = end.next().map_or(block.end(), |next| block.seek(next));
            (block, after.max(block.head()))
        });
        range
    }

    pub(super) fn delete(&mut self, id: StreamId) -> bool {
        self.edit(id, |block| u64::from(block.delete(id))) == 1
    }

    /// Lets `change` delete from the block that would hold the id; answers how many it deleted.
    fn edit(&mut self, id: StreamId, change: impl FnOnce(&mut Block) -> u64) -> u64 {
        let in_tail = self.tail.as_ref().is_some_and(|tail| tail.base() <= id);
        let block = if in_tail {
            self.tail.as_mut()
        } else {
            self.sealed
                .range_mut(..=id)
                .next_back()
                .map(|(_, block)| block.get_mut())
        };
        let Some(block) = block else { return 0 };
        let before = block.memory_bytes();
        let removed = change(block);
        self.live -= removed;
        self.moves += 1;
        let (base, live, after) = (block.base(), block.live(), block.memory_bytes());
        if live > 0 {
            self.heap_bytes = self.heap_bytes - before + after;
            return removed;
        }
        self.heap_bytes -= before;
        if in_tail {
            self.tail = None;
        } else {
            self.sealed.remove(&base);
        }
        removed
    }

    /// The id where the first block starts, how many live entries it has, and its last id.
    pub(super) fn first_block(&self) -> Option<(StreamId, u64, StreamId)> {
        let block = self
            .sealed
            .first_key_value()
            .map(|(_, b)| &**b)
            .or(self.tail.as_ref())?;
        Some((block.base(), block.live(), block.last()))
    }

    /// The like of the first block whose base is above the id.
    pub(super) fn block_after(&self, base: StreamId) -> Option<(StreamId, u64, StreamId)> {
        let from = base.next()?;
        let block = self
            .sealed
            .range(from..)
            .next()
            .map(|(_, b)| &**b)
            .or(self.tail.as_ref())?;
        (block.base() > base).then(|| (block.base(), block.live(), block.last()))
    }

    /// Drops the first block; answers how many entries it had.
    pub(super) fn drop_first_block(&mut self) -> u64 {
        let block = self
            .sealed
            .pop_first()
            .map(|(_, block)| block)
            .or_else(|| self.tail.take().map(Share::new));
        let Some(block) = block else { return 0 };
        self.heap_bytes -= block.memory_bytes();
        self.live -= block.live();
        block.live()
    }

    /// Deletes from the front of the first block while `doomed` says so.
    pub(super) fn trim_first_block(&mut self, doomed: impl FnMut(StreamId) -> bool) -> u64 {
        let Some(mut first) = self.sealed.first_entry() else {
            return self.edit(StreamId::MAX, |tail| tail.trim_front(doomed));
        };
        let before = first.get().memory_bytes();
        let removed = first.get_mut().get_mut().trim_front(doomed);
        self.live -= removed;
        self.heap_bytes = self.heap_bytes + first.get().memory_bytes() - before;
        self.moves += 1;
        if first.get().live() == 0 {
            self.heap_bytes -= first.remove().memory_bytes();
        }
        removed
    }

    /// Deletes from the block with this base every entry of which `doomed` says so.
    pub(super) fn thin_block(
        &mut self,
        base: StreamId,
        doomed: impl FnMut(StreamId) -> bool,
    ) -> u64 {
        self.edit(base, |block| block.retain_not(doomed))
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_invariants(&self) {
        let (mut live, mut heap, mut previous) = (0, 0, None);
        let sealed = self.sealed.values().map(|block| &**block);
        for block in sealed.chain(self.tail.as_ref()) {
            block.check_invariants();
            assert!(
                previous.is_none_or(|last| last < block.base()),
                "blocks overlap"
            );
            previous = Some(block.last());
            live += block.live();
            heap += block.memory_bytes();
        }
        assert_eq!(live, self.live, "live entries");
        assert_eq!(heap, self.heap_bytes, "bytes of blocks");
    }
}

/// Entries of a range of ids, ascending.
#[derive(Clone, Debug)]
pub struct Range<'a> {
    sealed: btree_map::Range<'a, StreamId, Share<Block>>,
    tail: Option<&'a Block>,
    at: Option<(&'a Block, usize)>,
    end: StreamId,
}

impl<'a> Range<'a> {
    fn next_block(&mut self) -> Option<&'a Block> {
        self.sealed
            .next()
            .map(|(_, block)| &**block)
            .or_else(|| self.tail.take())
    }
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let (block, at) = self.at?;
            if let Some((entry, next)) = block.entry_after(at) {
                if entry.id > self.end {
                    self.at = None;
                    return None;
                }
                self.at = Some((block, next));
                return Some(entry);
            }
            self.at = self.next_block().map(|block| (block, block.head()));
        }
    }
}

/// Entries of a range of ids, descending.
#[derive(Clone, Debug)]
pub struct RangeBack<'a> {
    sealed: btree_map::Range<'a, StreamId, Share<Block>>,
    at: Option<(&'a Block, usize)>,
    start: StreamId,
    end: StreamId,
}

impl<'a> Iterator for RangeBack<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let (block, at) = self.at?;
            if let Some((entry, at)) = block.entry_before(at) {
                debug_assert!(entry.id <= self.end);
                if entry.id < self.start {
                    self.at = None;
                    return None;
                }
                self.at = Some((block, at));
                return Some(entry);
            }
            self.at = self
                .sealed
                .next_back()
                .map(|(_, block)| (&**block, block.end()));
        }
    }
}
