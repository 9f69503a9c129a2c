//! What a connection still has to send: a chain of owned and shared segments.
//!
//! Replies are appended to `tail`. A message that many connections receive is encoded once and
//! stands in each chain as a shared segment. `consume` drops what the socket took.

use std::collections::VecDeque;
use std::sync::Arc;

/// A tail longer than this is sealed between commands, so that it never grows by copying far.
const TAIL_BYTES_MAX: usize = 256 * 1024;

/// One piece of a chain.
#[derive(Debug, Clone)]
pub enum Segment {
    /// Bytes of this connection alone.
    Owned(Vec<u8>),
    /// Bytes that other connections send too.
    Shared(Arc<[u8]>),
}

impl Segment {
    fn bytes(&self) -> &[u8] {
        match self {
            Segment::Owned(bytes) => bytes,
            Segment::Shared(bytes) => bytes,
        }
    }
}

/// A chain of bytes to send.
#[derive(Debug, Default)]
pub struct Output {
    sealed: VecDeque<Segment>,
    pub(crate) tail: Vec<u8>,
    /// Bytes at the front that were sent already.
    sent: usize,
    /// Bytes in `sealed`, those sent included.
    sealed_bytes: usize,
    /// Bytes of shared segments in `sealed`, those sent included.
    shared_bytes: usize,
}

impl Output {
    /// An empty chain with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            tail: Vec::with_capacity(capacity),
            ..Self::default()
        }
    }

    /// Bytes not sent yet.
    #[inline]
    pub fn len(&self) -> usize {
        self.sealed_bytes + self.tail.len() - self.sent
    }

    /// Whether nothing is left to send.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends bytes of this connection alone.
    #[inline]
    pub fn push(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
    }

    /// Appends a shared segment. Short ones are copied: a segment costs more than they do.
    pub fn push_shared(&mut self, bytes: &Arc<[u8]>) {
        if bytes.len() < 256 {
            return self.push(bytes);
        }
        self.seal_tail();
        self.sealed_bytes += bytes.len();
        self.shared_bytes += bytes.len();
        self.sealed.push_back(Segment::Shared(bytes.clone()));
    }

    /// Ends a command: a long tail becomes a segment of its own.
    #[inline]
    pub fn end_command(&mut self) {
        if self.tail.len() > TAIL_BYTES_MAX {
            self.seal_tail();
        }
    }

    fn seal_tail(&mut self) {
        if !self.tail.is_empty() {
            self.sealed_bytes += self.tail.len();
            self.sealed
                .push_back(Segment::Owned(std::mem::take(&mut self.tail)));
        }
    }

    /// Moves everything of `other` to the end of this chain, leaving `other` empty with its buffer.
    pub fn append(&mut self, other: &mut Output) {
        if other.sealed.is_empty() {
            self.push(&other.tail[other.sent..]);
            other.clear();
            return;
        }
        self.seal_tail();
        if other.sent > 0 {
            other.compact();
        }
        self.sealed_bytes += other.sealed_bytes;
        self.shared_bytes += other.shared_bytes;
        self.sealed.append(&mut other.sealed);
        self.tail = std::mem::take(&mut other.tail);
        other.clear();
    }

    /// Copies away the part of the first segment that was sent.
    fn compact(&mut self) {
        if let Some(first) = self.sealed.front_mut() {
            let rest = first.bytes()[self.sent..].to_vec();
            self.sealed_bytes -= self.sent;
            if let Segment::Shared(bytes) = first {
                self.shared_bytes -= bytes.len();
            }
            *first = Segment::Owned(rest);
        } else {
            self.tail.drain(..self.sent);
        }
        self.sent = 0;
    }

    /// Where the reply of the next command begins: a mark for [`Output::truncate`].
    #[inline]
    pub fn mark(&self) -> usize {
        self.sealed_bytes + self.tail.len()
    }

    /// Takes back what was written since `mark`, as long as nothing of it was sealed.
    #[inline]
    pub fn truncate(&mut self, mark: usize) {
        self.tail.truncate(mark.saturating_sub(self.sealed_bytes));
    }

    /// What was written since `mark`.
    pub fn since(&self, mark: usize) -> &[u8] {
        self.tail
            .get(mark.saturating_sub(self.sealed_bytes)..)
            .unwrap_or_default()
    }

    /// Gives `each` the pieces to send, in order, until it returns false.
    pub fn slices<'a>(&'a self, mut each: impl FnMut(&'a [u8]) -> bool) {
        let mut skip = self.sent;
        for piece in self
            .sealed
            .iter()
            .map(Segment::bytes)
            .chain([&self.tail[..]])
        {
            let rest = &piece[skip.min(piece.len())..];
            skip -= skip.min(piece.len());
            if !rest.is_empty() && !each(rest) {
                return;
            }
        }
    }

    /// All there is to send, where it is one piece.
    #[inline]
    pub fn only(&self) -> Option<&[u8]> {
        self.sealed.is_empty().then(|| &self.tail[self.sent..])
    }

    /// Drops `count` bytes from the front: the socket took them.
    pub fn consume(&mut self, count: usize) {
        self.sent += count;
        while let Some(first) = self.sealed.front() {
            let len = first.bytes().len();
            if self.sent < len {
                return;
            }
            self.sent -= len;
            self.sealed_bytes -= len;
            if let Segment::Shared(_) = first {
                self.shared_bytes -= len;
            }
            self.sealed.pop_front();
        }
        if self.sent >= self.tail.len() {
            self.sent = 0;
            self.tail.clear();
        }
    }

    /// Empties the chain; its buffer stays.
    pub fn clear(&mut self) {
        self.sealed.clear();
        self.tail.clear();
        self.sent = 0;
        self.sealed_bytes = 0;
        self.shared_bytes = 0;
    }

    /// Gives the buffer back when nothing is left and it is longer than `keep_bytes`.
    pub fn shrink(&mut self, keep_bytes: usize) {
        if self.is_empty() && self.tail.capacity() > keep_bytes {
            self.tail = Vec::new();
        }
    }

    /// Bytes held on the heap by this connection alone.
    pub fn memory_bytes(&self) -> usize {
        let sealed: usize = self
            .sealed
            .iter()
            .map(|segment| segment.bytes().len())
            .sum();
        sealed + self.sealed.capacity() * size_of::<Segment>() + self.tail.capacity()
    }

    /// Bytes of segments that other connections send too, whole even where part of one is sent.
    pub fn shared_bytes(&self) -> usize {
        self.shared_bytes
    }

    /// How many segments wait.
    pub fn segments(&self) -> usize {
        self.sealed.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(output: &Output) -> Vec<u8> {
        let mut seen = Vec::new();
        output.slices(|piece| {
            seen.extend_from_slice(piece);
            true
        });
        seen
    }

    #[test]
    fn keeps_the_order_of_owned_and_shared_pieces_at_every_cut() {
        let long: Arc<[u8]> = vec![b'x'; 300].into();
        for cut in 0..=610 {
            let mut output = Output::default();
            output.push(b"hello");
            output.push_shared(&long);
            output.push(b"world");
            output.push_shared(&long);
            let want = [b"hello".as_slice(), &long, b"world", &long].concat();
            assert_eq!(all(&output), want);
            output.consume(cut);
            assert_eq!(all(&output), want[cut..]);
            assert_eq!(output.len(), want.len() - cut);
            let mut whole = Output::default();
            whole.push(b"before");
            whole.append(&mut output);
            assert_eq!(all(&whole), [b"before", &want[cut..]].concat());
            assert!(output.is_empty());
        }
    }

    #[test]
    fn truncate_takes_back_to_the_mark() {
        let mut output = Output::default();
        output.push(b"abc");
        let mark = output.mark();
        output.push(b"def");
        assert_eq!(output.since(mark), b"def");
        output.truncate(mark);
        assert_eq!(all(&output), b"abc");
    }
}
