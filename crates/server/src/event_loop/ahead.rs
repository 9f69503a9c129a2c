//! Reading the next connection before the present one's requests are run.
//!
//! Without pipelining each turn has one request, and its key is one of millions: the wait for its
//! bucket and record is the largest part of the loop's own time. So the socket that is ready next
//! is read first, and what its request needs is on its way while this turn runs its request, and
//! while its reply is sent.
//!
//! # Invariants
//! - What was read ahead is for the very next event, whose turn takes it or, where the connection
//!   is gone by then, drops it: it is never kept over a wait.
//! - Nothing of it is run, and nothing of the connection is changed, before its own turn.
//! - An end or an error met ahead is left for the connection's turn, which meets it again.

use super::*;

/// A read of at most so many bytes is taken for one without pipelining. Longer ones prefetch among
/// themselves.
const SHORT_BYTES: usize = 256;

/// What was read ahead.
pub(super) struct Ahead {
    buf: Vec<u8>,
    /// For which event.
    token: Option<u64>,
    /// The key that is asked for: its database and hash.
    key: Option<(u32, u64)>,
}

impl Default for Ahead {
    fn default() -> Self {
        Self {
            buf: Vec::with_capacity(READ_BYTES),
            token: None,
            key: None,
        }
    }
}

impl<L: RawLock> EventLoop<'_, L> {
    /// Puts into `buf` what was read ahead of this event; false if nothing was.
    #[inline]
    pub(super) fn take_ahead(&mut self, token: u64, buf: &mut Vec<u8>) -> bool {
        self.ahead.key = None;
        let is_mine = self.ahead.token.take() == Some(token);
        if is_mine {
            std::mem::swap(buf, &mut self.ahead.buf);
        }
        is_mine
    }

    /// After a read of `got` bytes: reads what the next event is about, where that is a read too.
    #[inline]
    pub(super) fn read_ahead(&mut self, got: usize) {
        let Some(token) = self.next_read.filter(|_| got <= SHORT_BYTES) else {
            return;
        };
        let Some(connection) = self.connections.at(token) else {
            return;
        };
        if !connection.input.is_empty() || connection.is_held {
            return;
        }
        let (fd, db) = (connection.fd(), connection.session.db);
        let mut buf = std::mem::take(&mut self.ahead.buf);
        buf.clear();
        buf.reserve(READ_BYTES);
        if let Some(1..) = self.receive(fd, &mut buf) {
            self.ahead.token = Some(token);
            if let Some(key) = resp::likely_key(&buf) {
                let hash = self.executor.hash(key);
                self.executor.prefetch_bucket(db, hash);
                self.ahead.key = Some((db, hash));
            }
        }
        self.ahead.buf = buf;
    }

    /// Asks for the record behind the bucket that [`EventLoop::read_ahead`] asked for.
    #[inline]
    pub(super) fn prefetch_ahead(&mut self) {
        if let Some((db, hash)) = self.ahead.key {
            self.executor.prefetch_record(db, hash);
        }
    }
}
