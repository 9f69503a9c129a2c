//! The directory of a long list: its chunks, in blocks that know how many items they hold.
//!
//! An index is found by adding up the blocks' counts, then one block's chunks: for ten million
//! short items that is some three hundred and two hundred and fifty-six additions. Chunks join and
//! leave at both ends in constant time, and elsewhere move at most one block's entries.
//!
//! # Invariants
//! - No block is empty, and none holds more than `BLOCK_CHUNKS`. No chunk is empty between calls
//!   of the list's own methods.
//! - `len`, `chunks`, `bytes` and each block's `items` are exact at all times: every change of a
//!   chunk goes through `edit`.
//!
//! # Why not a tree?
//! Two levels reach 65536 chunks with 256 blocks, half a gigabyte of items at the usual limit; a
//! third level would cost every push and every step of every iteration, to help nobody.

use super::chunk::Chunk;
use crate::share::Share;
use std::collections::VecDeque;

/// The most chunks in a block.
const BLOCK_CHUNKS: usize = 256;

struct Block {
    items: usize,
    chunks: VecDeque<Chunk>,
}

/// A copy takes as many bytes as the original.
impl Clone for Block {
    fn clone(&self) -> Self {
        let mut chunks = VecDeque::with_capacity(self.chunks.capacity());
        chunks.extend(self.chunks.iter().cloned());
        Self {
            items: self.items,
            chunks,
        }
    }
}

pub(super) struct Directory {
    blocks: VecDeque<Share<Block>>,
    len: usize,
    chunks: usize,
    /// Heap bytes of the chunks and of the blocks' tables.
    bytes: usize,
}

/// A chunk's place. Ordered as the chunks are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Place {
    pub block: usize,
    pub chunk: usize,
}

impl Block {
    /// Heap bytes of the table and of all chunks.
    fn all_bytes(&self) -> usize {
        self.table_bytes() + self.chunks.iter().map(Chunk::memory_bytes).sum::<usize>()
    }

    fn table_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>()
    }
}

/// Changes a chunk and brings the numbers that depend on it up to date.
#[inline]
fn note<R>(
    chunk: &mut Chunk,
    change: impl FnOnce(&mut Chunk) -> R,
    counts: [&mut usize; 2],
    total_bytes: &mut usize,
) -> R {
    let (count, bytes) = (chunk.count(), chunk.memory_bytes());
    let result = change(chunk);
    let (new_count, new_bytes) = (chunk.count(), chunk.memory_bytes());
    for total in counts {
        *total = *total - count + new_count;
    }
    *total_bytes = *total_bytes - bytes + new_bytes;
    result
}

impl Clone for Directory {
    fn clone(&self) -> Directory {
        let blocks = self.blocks.iter();
        Directory {
            blocks: blocks.map(|block| Share::new((**block).clone())).collect(),
            ..*self
        }
    }
}

impl Directory {
    /// The directory as it is now, its blocks in common until they change.
    pub fn freeze(&mut self) -> Directory {
        Directory {
            blocks: self.blocks.iter_mut().map(Share::share).collect(),
            ..*self
        }
    }

    pub fn new() -> Directory {
        Directory {
            blocks: VecDeque::new(),
            len: 0,
            chunks: 0,
            bytes: 0,
        }
    }

    /// The number of items.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The number of chunks.
    #[inline]
    pub fn chunks(&self) -> usize {
        self.chunks
    }

    pub fn memory_bytes(&self) -> usize {
        size_of::<Directory>() + self.blocks.capacity() * size_of::<Share<Block>>() + self.bytes
    }

    /// The place of the first chunk. There may be none.
    pub fn first(&self) -> Option<Place> {
        (!self.blocks.is_empty()).then_some(Place { block: 0, chunk: 0 })
    }

    /// The place of the last chunk.
    pub fn last(&self) -> Option<Place> {
        let block = self.blocks.len().checked_sub(1)?;
        Some(Place {
            block,
            chunk: self.blocks[block].chunks.len() - 1,
        })
    }

    pub fn next(&self, place: Place) -> Option<Place> {
        if place.chunk + 1 < self.blocks[place.block].chunks.len() {
            return Some(Place {
                chunk: place.chunk + 1,
                ..place
            });
        }
        (place.block + 1 < self.blocks.len()).then_some(Place {
            block: place.block + 1,
            chunk: 0,
        })
    }

    pub fn prev(&self, place: Place) -> Option<Place> {
        if place.chunk > 0 {
            return Some(Place {
                chunk: place.chunk - 1,
                ..place
            });
        }
        let block = place.block.checked_sub(1)?;
        Some(Place {
            block,
            chunk: self.blocks[block].chunks.len() - 1,
        })
    }

    #[inline]
    pub fn chunk(&self, place: Place) -> &Chunk {
        &self.blocks[place.block].chunks[place.chunk]
    }

    #[inline]
    pub fn front(&self) -> Option<&Chunk> {
        self.blocks.front()?.chunks.front()
    }

    #[inline]
    pub fn back(&self) -> Option<&Chunk> {
        self.blocks.back()?.chunks.back()
    }

    /// Changes a chunk. This and its two siblings are the only way to do so.
    pub fn edit<R>(&mut self, place: Place, change: impl FnOnce(&mut Chunk) -> R) -> R {
        let block = self.blocks[place.block].get_mut();
        let chunk = &mut block.chunks[place.chunk];
        note(
            chunk,
            change,
            [&mut block.items, &mut self.len],
            &mut self.bytes,
        )
    }

    /// Changes the first chunk, if there is one.
    #[inline]
    pub fn edit_front<R>(&mut self, change: impl FnOnce(&mut Chunk) -> R) -> Option<R> {
        let block = self.blocks.front_mut()?.get_mut();
        let chunk = block.chunks.front_mut()?;
        Some(note(
            chunk,
            change,
            [&mut block.items, &mut self.len],
            &mut self.bytes,
        ))
    }

    /// Changes the last chunk, if there is one.
    #[inline]
    pub fn edit_back<R>(&mut self, change: impl FnOnce(&mut Chunk) -> R) -> Option<R> {
        let block = self.blocks.back_mut()?.get_mut();
        let chunk = block.chunks.back_mut()?;
        Some(note(
            chunk,
            change,
            [&mut block.items, &mut self.len],
            &mut self.bytes,
        ))
    }

    /// The place of the item `index`, which must exist, and its index within its chunk.
    pub fn locate(&self, index: usize) -> (Place, usize) {
        assert!(index < self.len, "item {index} of {}", self.len);
        if index < self.len / 2 {
            self.locate_forward(index)
        } else {
            self.locate_backward(index)
        }
    }

    fn locate_forward(&self, mut index: usize) -> (Place, usize) {
        for (at, block) in self.blocks.iter().enumerate() {
            if index >= block.items {
                index -= block.items;
                continue;
            }
            for (chunk, found) in block.chunks.iter().enumerate() {
                if index < found.count() {
                    return (Place { block: at, chunk }, index);
                }
                index -= found.count();
            }
        }
        unreachable!("the blocks hold fewer items than they count")
    }

    fn locate_backward(&self, index: usize) -> (Place, usize) {
        // The number of items from the one sought to the end, itself included.
        let mut from_end = self.len - index;
        for (at, block) in self.blocks.iter().enumerate().rev() {
            if from_end > block.items {
                from_end -= block.items;
                continue;
            }
            for (chunk, found) in block.chunks.iter().enumerate().rev() {
                if from_end <= found.count() {
                    return (Place { block: at, chunk }, found.count() - from_end);
                }
                from_end -= found.count();
            }
        }
        unreachable!("the blocks hold fewer items than they count")
    }

    pub fn push_front(&mut self, chunk: Chunk) {
        if self
            .blocks
            .front()
            .is_none_or(|block| block.chunks.len() == BLOCK_CHUNKS)
        {
            self.blocks.push_front(Share::new(Block {
                items: 0,
                chunks: VecDeque::new(),
            }));
        }
        self.insert(Place { block: 0, chunk: 0 }, chunk);
    }

    pub fn push_back(&mut self, chunk: Chunk) {
        if self
            .blocks
            .back()
            .is_none_or(|block| block.chunks.len() == BLOCK_CHUNKS)
        {
            self.blocks.push_back(Share::new(Block {
                items: 0,
                chunks: VecDeque::new(),
            }));
        }
        let block = self.blocks.len() - 1;
        self.insert(
            Place {
                block,
                chunk: self.blocks[block].chunks.len(),
            },
            chunk,
        );
    }

    /// Puts `chunk` where another one is, or behind the last of a block; returns its place, which
    /// differs where the block was full and had to be cut.
    pub fn insert(&mut self, mut place: Place, chunk: Chunk) -> Place {
        if self.blocks[place.block].chunks.len() == BLOCK_CHUNKS {
            self.cut_block(place.block);
            let kept = self.blocks[place.block].chunks.len();
            if place.chunk > kept {
                place = Place {
                    block: place.block + 1,
                    chunk: place.chunk - kept,
                };
            }
        }
        let block = self.blocks[place.block].get_mut();
        let table = block.table_bytes();
        self.len += chunk.count();
        self.chunks += 1;
        block.items += chunk.count();
        self.bytes += chunk.memory_bytes();
        block.chunks.insert(place.chunk, chunk);
        self.bytes = self.bytes - table + block.table_bytes();
        place
    }

    /// Removes and returns a chunk.
    pub fn remove(&mut self, place: Place) -> Chunk {
        let block = self.blocks[place.block].get_mut();
        let chunk = block
            .chunks
            .remove(place.chunk)
            .expect("a chunk at its place");
        block.items -= chunk.count();
        self.len -= chunk.count();
        self.chunks -= 1;
        self.bytes -= chunk.memory_bytes();
        if block.chunks.is_empty() {
            self.bytes -= block.table_bytes();
            self.blocks.remove(place.block);
            self.relax_table();
        } else if block.chunks.len() <= BLOCK_CHUNKS / 4 {
            self.join_blocks(place.block);
        }
        chunk
    }

    /// The number of blocks.
    pub fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The number of chunks in a block.
    pub fn block_chunks(&self, block: usize) -> usize {
        self.blocks[block].chunks.len()
    }

    /// Removes a block's empty chunks, and joins neighbours of which `joins` says that they should
    /// be. Returns whether the block became small: then `join_all_blocks` is due, before anything
    /// else, since the block may be empty.
    pub fn sweep(&mut self, block: usize, joins: impl Fn(&Chunk, &Chunk) -> bool) -> bool {
        let block = self.blocks[block].get_mut();
        let (chunks, bytes) = (block.chunks.len(), block.all_bytes());
        block.chunks.retain(|chunk| chunk.count() > 0);
        let old = &mut block.chunks;
        if (1..old.len()).any(|at| joins(&old[at - 1], &old[at])) {
            let mut joined: VecDeque<Chunk> = VecDeque::with_capacity(old.len());
            for chunk in old.drain(..) {
                match joined.back_mut() {
                    Some(last) if joins(last, &chunk) => last.append(&chunk),
                    _ => joined.push_back(chunk),
                }
            }
            block.chunks = joined;
        }
        self.chunks = self.chunks - chunks + block.chunks.len();
        self.bytes = self.bytes - bytes + block.all_bytes();
        block.chunks.len() <= BLOCK_CHUNKS / 4
    }

    /// Joins all neighbouring blocks that fill half a block at most, and drops the empty ones.
    pub fn join_all_blocks(&mut self) {
        let mut kept: VecDeque<Share<Block>> = VecDeque::with_capacity(self.blocks.len());
        for mut block in self.blocks.drain(..) {
            self.bytes -= block.table_bytes();
            match kept.back_mut() {
                Some(last) if last.chunks.len() + block.chunks.len() <= BLOCK_CHUNKS / 2 => {
                    let last = last.get_mut();
                    last.items += block.items;
                    last.chunks.append(&mut block.get_mut().chunks);
                }
                _ if block.chunks.is_empty() => {}
                _ => kept.push_back(block),
            }
        }
        self.bytes += kept.iter().map(|block| block.table_bytes()).sum::<usize>();
        self.blocks = kept;
        self.relax_table();
    }

    /// Moves whole blocks that lie within the first `n` items to `garbage`; returns how many of
    /// the `n` items are left to remove.
    pub fn shed_front(&mut self, mut n: usize, garbage: &mut Directory) -> usize {
        while let Some(block) = self.blocks.pop_front_if(|block| block.items <= n) {
            n -= block.items;
            self.hand_over(block, garbage);
        }
        n
    }

    /// As `shed_front`, for the last `n` items.
    pub fn shed_back(&mut self, mut n: usize, garbage: &mut Directory) -> usize {
        while let Some(block) = self.blocks.pop_back_if(|block| block.items <= n) {
            n -= block.items;
            self.hand_over(block, garbage);
        }
        n
    }

    fn hand_over(&mut self, block: Share<Block>, garbage: &mut Directory) {
        let bytes = block.all_bytes();
        self.len -= block.items;
        self.chunks -= block.chunks.len();
        self.bytes -= bytes;
        garbage.len += block.items;
        garbage.chunks += block.chunks.len();
        garbage.bytes += bytes;
        garbage.blocks.push_back(block);
        self.relax_table();
    }

    /// Cuts a full block in two.
    fn cut_block(&mut self, at: usize) {
        let block = self.blocks[at].get_mut();
        let table = block.table_bytes();
        let chunks = block.chunks.split_off(BLOCK_CHUNKS / 2);
        let items = chunks.iter().map(Chunk::count).sum();
        block.items -= items;
        block.chunks.shrink_to_fit();
        let tail = Block { items, chunks };
        self.bytes = self.bytes - table + block.table_bytes() + tail.table_bytes();
        self.blocks.insert(at + 1, Share::new(tail));
    }

    /// Joins a block that became small with a neighbour, where both fill half a block at most.
    fn join_blocks(&mut self, at: usize) {
        for left in [Some(at), at.checked_sub(1)].into_iter().flatten() {
            let Some(right) = self.blocks.get(left + 1) else {
                continue;
            };
            if self.blocks[left].chunks.len() + right.chunks.len() > BLOCK_CHUNKS / 2 {
                continue;
            }
            let mut right = self.blocks.remove(left + 1).expect("seen above");
            let left = self.blocks[left].get_mut();
            let tables = left.table_bytes() + right.table_bytes();
            left.items += right.items;
            left.chunks.append(&mut right.get_mut().chunks);
            self.bytes = self.bytes - tables + left.table_bytes();
            self.relax_table();
            return;
        }
    }

    fn relax_table(&mut self) {
        if self.blocks.capacity() > 4 * self.blocks.len() + 8 {
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }

    /// Counts everything again: a clone's buffers have other capacities.
    pub fn recount(&mut self) {
        self.bytes = self.blocks.iter().map(|block| block.all_bytes()).sum();
        let chunks = self.blocks.iter().flat_map(|block| &block.chunks);
        (self.chunks, self.len) = chunks.fold((0, 0), |(chunks, len), chunk| {
            (chunks + 1, len + chunk.count())
        });
    }

    /// Checks every invariant that the header tells; O(chunks).
    #[cfg(any(test, debug_assertions))]
    pub fn check(&self) {
        for block in &self.blocks {
            assert!((1..=BLOCK_CHUNKS).contains(&block.chunks.len()));
            assert_eq!(
                block.items,
                block.chunks.iter().map(Chunk::count).sum::<usize>()
            );
            assert!(block.chunks.iter().all(|chunk| chunk.count() > 0));
        }
        let mut twin = self.clone();
        // A clone has other capacities: count those of the original.
        let bytes = self.blocks.iter().map(|block| block.all_bytes());
        assert_eq!(self.bytes, bytes.sum::<usize>());
        twin.recount();
        assert_eq!((self.len, self.chunks), (twin.len, twin.chunks));
    }
}
