//! Changes to a long list away from its ends: which chunks are cut, joined and dropped.
//!
//! # Invariants
//! - No change leaves an empty chunk or an empty block behind.
//! - A change touches the chunk it falls into and its neighbours; only LREM walks further.

use super::Limit;
use super::chunk::{Chunk, Needle, Room};
use super::directory::{Directory, Place};
use crate::listpack::Encoded;

pub(super) fn trim_front(directory: &mut Directory, n: usize, garbage: &mut Directory) {
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

pub(super) fn trim_back(directory: &mut Directory, n: usize, garbage: &mut Directory) {
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

pub(super) fn set(directory: &mut Directory, index: usize, item: &[u8], limit: Limit) {
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
    insert(directory, index, item, limit);
}

pub(super) fn insert(directory: &mut Directory, index: usize, item: &[u8], limit: Limit) {
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

pub(super) fn remove_first(
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

pub(super) fn remove_last(
    directory: &mut Directory,
    needle: &Needle<'_>,
    most: usize,
    limit: Limit,
) -> usize {
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
