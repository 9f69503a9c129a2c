//! One connection: its socket, what it sent and what it still gets.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::session::Session;
use engine::tracking::{Mode, Tracking};
use resp::{Decoder, Output, Protocol};
use socket2::Socket;

use crate::config::OutputLimit;
use crate::shared::{Client, flag};
use crate::sys::{self, PIECES_MAX};
use crate::tls::Tls;

/// What TLS keeps for a connection, measured over 500 that were idle.
const TLS_BYTES: usize = 12 * 1024;

/// A connection and its client.
pub struct Connection {
    socket: Socket,
    /// What epoll knows it by, and its place among its thread's connections.
    pub token: u64,
    /// The engine's view of the client.
    pub session: Session,
    /// What others may see.
    pub client: Arc<Client>,
    /// Bytes of a request whose end has not come, or of requests that must wait.
    pub input: Vec<u8>,
    /// How much at the front of `input` was run already: moved away only now and then.
    pub input_done: usize,
    /// Where the decoder stands in `input`.
    pub decoder: Decoder,
    /// What the socket did not take yet.
    pub output: Output,
    /// Whether the socket is watched for room to write.
    pub awaits_room: bool,
    /// Whether what it sends is kept and not run: its client waits, is paused, or `is_full`.
    pub is_held: bool,
    /// Whether its requests wait until the replies that it has are sent; it is held meanwhile.
    pub is_full: bool,
    /// Since when its output is over the soft limit: Unix milliseconds; 0 when it is not.
    pub over_soft_since_ms: u64,
    /// Until the log is as far as this frame, what it gets is kept back; 0 where nothing is. It
    /// stands among those that its loop keeps as long as this is not 0.
    pub held_lsn: u64,
    /// Whether the socket failed or is at its end: nobody takes replies any more.
    pub has_hung_up: bool,
    /// Set when the connection is to be closed at once.
    pub is_dead: bool,
    /// What stands between it and its socket, where it has TLS.
    pub tls: Option<Box<Tls>>,
}

impl Connection {
    /// A fresh connection.
    pub fn new(
        socket: Socket,
        session: Session,
        client: Arc<Client>,
        tls: Option<Box<Tls>>,
    ) -> Self {
        Self {
            socket,
            token: 0,
            session,
            client,
            input: Vec::new(),
            input_done: 0,
            decoder: Decoder::default(),
            output: Output::default(),
            awaits_room: false,
            is_held: false,
            is_full: false,
            over_soft_since_ms: 0,
            held_lsn: 0,
            has_hung_up: false,
            is_dead: false,
            tls,
        }
    }

    /// Its descriptor.
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Writes what waits, and then `fresh`, with one call; what the socket does not take stays in
    /// `output`. Returns how many bytes went.
    pub fn flush(&mut self, fresh: &mut Output) -> usize {
        debug_assert!(self.tls.is_none(), "sent past TLS");
        if !self.output.is_empty() {
            self.output.append(fresh);
        }
        let from = if self.output.is_empty() {
            &mut *fresh
        } else {
            &mut self.output
        };
        if from.is_empty() {
            return 0;
        }
        let sent = match send(self.socket.as_raw_fd(), from) {
            Ok(sent) => sent,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => 0,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => 0,
            Err(_) => {
                self.has_hung_up = true;
                self.is_dead = true;
                fresh.clear();
                self.output.clear();
                return 0;
            }
        };
        from.consume(sent);
        if self.output.is_empty() && !fresh.is_empty() {
            self.output.append(fresh);
        }
        self.output.shrink(16 * 1024);
        sent
    }

    /// Whether its output is past `limit`: at once for the hard limit, after its time for the soft.
    pub fn is_over(&mut self, limit: OutputLimit, now_ms: u64) -> bool {
        let bytes = self.output.len() as u64;
        if limit.hard_bytes != 0 && bytes >= limit.hard_bytes {
            return true;
        }
        if limit.soft_bytes == 0 || bytes < limit.soft_bytes {
            self.over_soft_since_ms = 0;
            return false;
        }
        if self.over_soft_since_ms == 0 {
            self.over_soft_since_ms = now_ms;
        }
        now_ms - self.over_soft_since_ms >= u64::from(limit.soft_s.max(0).unsigned_abs()) * 1000
    }

    /// Shows others how the client stands.
    pub fn publish(&self, now_ms: u64) {
        self.client.active_ms.store(now_ms, Ordering::Relaxed);
        self.client.show(&self.session);
    }

    /// Shows others how much the client sent that is not served, and how much it has yet to get.
    pub fn publish_buffers(&self) {
        let (client, input, output) = (&self.client, &self.input, &self.output);
        let relaxed = Ordering::Relaxed;
        client
            .query_bytes
            .store(input.len() - self.input_done, relaxed);
        let free = input.capacity() - input.len();
        client.query_free.store(free, relaxed);
        client.output_bytes.store(output.len(), relaxed);
        client.output_shared.store(output.shared_bytes(), relaxed);
        client.output_segments.store(output.segments(), relaxed);
    }
}

/// Sends as much of `output` as one call takes.
#[inline]
fn send(fd: RawFd, output: &Output) -> std::io::Result<usize> {
    if let Some(piece) = output.only() {
        return sys::write(fd, &[piece]);
    }
    send_pieces(fd, output)
}

/// Apart from `send`, which must not clear this much of the stack for one short reply.
#[inline(never)]
fn send_pieces(fd: RawFd, output: &Output) -> std::io::Result<usize> {
    let mut pieces: [&[u8]; PIECES_MAX] = [&[]; PIECES_MAX];
    let mut count = 0;
    output.slices(|piece| {
        pieces[count] = piece;
        count += 1;
        count < PIECES_MAX
    });
    sys::write(fd, &pieces[..count])
}

impl Client {
    /// Bytes that it takes: its buffers, its queued commands, and what there is for any client.
    pub fn memory_bytes(&self) -> usize {
        let counted = [
            &self.query_bytes,
            &self.query_free,
            &self.output_bytes,
            &self.multi_bytes,
            &self.argv_bytes,
        ];
        let counted = counted.iter().map(|bytes| bytes.load(Ordering::Relaxed));
        let tls = if self.peer.is_tls { TLS_BYTES } else { 0 };
        size_of::<Connection>() + size_of::<Self>() + tls + counted.sum::<usize>()
    }

    /// Shows others what the session says.
    pub fn show(&self, session: &Session) {
        let relaxed = Ordering::Relaxed;
        self.db.store(session.db, relaxed);
        self.last_command.store(session.last_command, relaxed);
        let protocol = if session.protocol == Protocol::Resp3 {
            3
        } else {
            2
        };
        self.protocol.store(protocol, relaxed);
        let is_plain = session.multi.is_none()
            && session.watches.is_empty()
            && session.subscriptions.is_none()
            && session.waiting.is_none()
            && session.tracking.is_none()
            && session.authenticated
            && !session.monitors
            && !session.no_touch
            && !session.closing;
        let flags = self.flags.load(relaxed);
        if is_plain && flags & !flag::KEPT == 0 && self.watches.load(relaxed) == 0 {
            return;
        }
        self.show_special(session, flags & flag::KEPT);
    }

    #[cold]
    fn show_special(&self, session: &Session, mut flags: u32) {
        let relaxed = Ordering::Relaxed;
        let mut set = |on: bool, bit: u32| flags |= if on { bit } else { 0 };
        set(session.waiting.is_some(), flag::BLOCKED);
        set(session.monitors, flag::MONITOR);
        set(session.subscriptions.is_some(), flag::PUBSUB);
        set(session.multi.is_some(), flag::MULTI);
        set(session.watch_broken.load(relaxed), flag::DIRTY);
        set(session.no_touch, flag::NO_TOUCH);
        set(session.closing, flag::CLOSING);
        set(!session.authenticated, flag::UNAUTHENTICATED);
        let tracking = session.tracking.as_deref();
        set(tracking.is_some(), flag::TRACKING);
        set(
            tracking.is_some_and(|tracking| tracking.is_broken),
            flag::BROKEN_REDIRECT,
        );
        set(
            tracking.is_some_and(|tracking| tracking.mode == Mode::Broadcast),
            flag::BROADCAST,
        );
        self.redirect.store(Tracking::told(tracking), relaxed);
        self.flags.store(flags, relaxed);
        let multi = session.multi.as_ref();
        let queued = multi.map_or(-1, |multi| i64::try_from(multi.queued.len()).unwrap_or(0));
        self.multi.store(queued, relaxed);
        let multi_bytes = multi.map_or(0, |multi| multi.bytes);
        self.multi_bytes.store(multi_bytes, relaxed);
        let argv_bytes = session
            .waiting
            .as_ref()
            .map_or(0, |waiter| waiter.args.memory_bytes());
        self.argv_bytes.store(argv_bytes, relaxed);
        let watches = u32::try_from(session.watches.len()).unwrap_or(u32::MAX);
        self.watches.store(watches, relaxed);
        let lens = session
            .subscriptions
            .as_ref()
            .map_or([0; 3], |subscriptions| {
                [
                    subscriptions.channels.len(),
                    subscriptions.patterns.len(),
                    subscriptions.shard_channels.len(),
                ]
            });
        for (cell, len) in self.subscriptions.iter().zip(lens) {
            cell.store(u32::try_from(len).unwrap_or(u32::MAX), relaxed);
        }
    }
}
