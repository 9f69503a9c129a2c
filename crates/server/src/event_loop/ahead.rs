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
//! - Nothing is read ahead of a script: while one runs for too long, requests are looked for in
//!   the sockets ([`crate::scripting::busy`]).
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

/// Whether what was read may be a script, or a transaction that has one: EVAL, EXEC, FCALL and
/// their kin. Who waits for its end is answered out of the sockets.
#[inline]
fn may_take_long(got: &[u8]) -> bool {
    // The usual form, with a name of less than ten letters; what has another is not worth a look.
    let &[
        b'*',
        _,
        b'\r',
        b'\n',
        b'$',
        _,
        b'\r',
        b'\n',
        first,
        ref rest @ ..,
    ] = got
    else {
        return true;
    };
    // Behind a second one anything may follow.
    matches!(first | 0x20, b'e' | b'f') || rest.contains(&b'*')
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

    /// After `got` was read: reads what the next event is about, where that is a read too.
    #[inline]
    pub(super) fn read_ahead(&mut self, got: &[u8]) {
        let Some(token) = self.next_read.filter(|_| got.len() <= SHORT_BYTES) else {
            return;
        };
        if may_take_long(got) {
            return;
        }
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
