//! Walking a list: items forward and backward, and the chunks as a file wants them.

use super::chunk::Chunk;
use super::directory::{Directory, Place};
use super::{Form, List};
use crate::listpack::{END, Entry, HEADER, prev, read};

impl List {
    /// The items, from the first to the last.
    pub fn iter(&self) -> Iter<'_> {
        self.range(0, usize::MAX)
    }

    /// The items, from the last to the first.
    pub fn iter_rev(&self) -> RevIter<'_> {
        self.range_rev(self.len().saturating_sub(1), usize::MAX)
    }

    /// Up to `count` items, from the item `start` on towards the last.
    pub fn range(&self, start: usize, count: usize) -> Iter<'_> {
        let left = count.min(self.len().saturating_sub(start));
        if left == 0 {
            return Iter {
                bytes: &[],
                at: 0,
                left: 0,
                rest: Rest::none(),
            };
        }
        let (chunk, index, rest) = self.enter(start);
        if chunk.is_plain() {
            let bytes = chunk.entries();
            return Iter {
                bytes,
                at: PLAIN,
                left,
                rest,
            };
        }
        Iter {
            bytes: chunk.entries(),
            at: chunk.offset(index),
            left,
            rest,
        }
    }

    /// Up to `count` items, from the item `start` on towards the first.
    pub fn range_rev(&self, start: usize, count: usize) -> RevIter<'_> {
        if start >= self.len() || count == 0 {
            return RevIter {
                bytes: &[],
                end: 0,
                left: 0,
                rest: Rest::none(),
            };
        }
        let left = count.min(start + 1);
        let (chunk, index, rest) = self.enter(start);
        let end = if chunk.is_plain() {
            PLAIN
        } else {
            chunk.offset(index + 1)
        };
        RevIter {
            bytes: chunk.entries(),
            end,
            left,
            rest,
        }
    }

    /// The chunks, for a file.
    pub fn chunks(&self) -> Chunks<'_> {
        match &self.form {
            Form::Single(chunk) => Chunks {
                single: (chunk.count() > 0).then_some(chunk),
                many: None,
            },
            Form::Many(many) => Chunks {
                single: None,
                many: many.first().map(|at| (&**many, at)),
            },
        }
    }

    /// The chunk of the item `index`, which must exist, its index there, and where that chunk is.
    fn enter(&self, index: usize) -> (&Chunk, usize, Rest<'_>) {
        match &self.form {
            Form::Single(chunk) => (chunk, index, Rest::none()),
            Form::Many(directory) => {
                let (place, index) = directory.locate(index);
                (
                    directory.chunk(place),
                    index,
                    Rest {
                        from: Some((directory, place)),
                    },
                )
            }
        }
    }
}

/// The offset that says: the bytes are a plain item, yet to be returned.
const PLAIN: usize = usize::MAX;

/// The way on from a chunk.
#[derive(Clone)]
struct Rest<'a> {
    from: Option<(&'a Directory, Place)>,
}

impl<'a> Rest<'a> {
    fn none() -> Rest<'a> {
        Rest { from: None }
    }

    fn next(&mut self) -> Option<&'a Chunk> {
        let (directory, place) = self.from?;
        let place = directory.next(place)?;
        self.from = Some((directory, place));
        Some(directory.chunk(place))
    }

    fn prev(&mut self) -> Option<&'a Chunk> {
        let (directory, place) = self.from?;
        let place = directory.prev(place)?;
        self.from = Some((directory, place));
        Some(directory.chunk(place))
    }
}

/// Items of a list, towards the last.
#[derive(Clone)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    at: usize,
    left: usize,
    rest: Rest<'a>,
}

impl<'a> Iter<'a> {
    #[cold]
    fn step(&mut self) -> Option<Entry<'a>> {
        if self.at != PLAIN {
            let chunk = self.rest.next()?;
            self.bytes = chunk.entries();
            if !chunk.is_plain() {
                let (entry, next) = read(self.bytes, 0);
                self.at = next;
                return Some(entry);
            }
        }
        self.at = self.bytes.len();
        Some(Entry::Bytes(self.bytes))
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        if self.at >= self.bytes.len() {
            return self.step();
        }
        let (entry, next) = read(self.bytes, self.at);
        self.at = next;
        Some(entry)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Iter<'_> {}

/// Items of a list, towards the first.
#[derive(Clone)]
pub struct RevIter<'a> {
    bytes: &'a [u8],
    end: usize,
    left: usize,
    rest: Rest<'a>,
}

impl<'a> RevIter<'a> {
    #[inline]
    fn read_before(&mut self, end: usize) -> Entry<'a> {
        self.end = prev(self.bytes, end);
        read(self.bytes, self.end).0
    }

    #[cold]
    fn step(&mut self) -> Option<Entry<'a>> {
        if self.end != PLAIN {
            let chunk = self.rest.prev()?;
            self.bytes = chunk.entries();
            if !chunk.is_plain() {
                return Some(self.read_before(self.bytes.len()));
            }
        }
        self.end = 0;
        Some(Entry::Bytes(self.bytes))
    }
}

impl<'a> Iterator for RevIter<'a> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        self.left = self.left.checked_sub(1)?;
        if self.end == 0 || self.end == PLAIN {
            return self.step();
        }
        Some(self.read_before(self.end))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for RevIter<'_> {}

/// The chunks of a list, from the first to the last.
#[derive(Clone)]
pub struct Chunks<'a> {
    single: Option<&'a Chunk>,
    many: Option<(&'a Directory, Place)>,
}

/// What a file stores of a chunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChunkBytes<'a> {
    /// One large item.
    Plain(&'a [u8]),
    /// A listpack in parts: these two, and an end byte.
    Packed {
        header: [u8; HEADER],
        entries: &'a [u8],
    },
}

impl ChunkBytes<'_> {
    /// The number of bytes that `write` writes.
    pub fn byte_len(&self) -> usize {
        match self {
            ChunkBytes::Plain(item) => item.len(),
            ChunkBytes::Packed { header, entries } => header.len() + entries.len() + 1,
        }
    }

    /// Appends the plain item, or the whole listpack.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            ChunkBytes::Plain(item) => out.extend_from_slice(item),
            ChunkBytes::Packed { header, entries } => {
                out.extend_from_slice(header);
                out.extend_from_slice(entries);
                out.push(END);
            }
        }
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = ChunkBytes<'a>;

    fn next(&mut self) -> Option<ChunkBytes<'a>> {
        let chunk = match self.many {
            Some((directory, place)) => {
                self.many = directory.next(place).map(|next| (directory, next));
                directory.chunk(place)
            }
            None => self.single.take()?,
        };
        Some(match chunk.is_plain() {
            true => ChunkBytes::Plain(chunk.entries()),
            false => ChunkBytes::Packed {
                header: chunk.header(),
                entries: chunk.entries(),
            },
        })
    }
}
