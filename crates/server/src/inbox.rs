//! What one thread tells another: an inbox a thread, and an eventfd that wakes its owner.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::host::ClientId;
use engine::pubsub::Push;
use parking_lot::Mutex;
use socket2::Socket;

use crate::sys::Waker;

/// A message to a thread.
pub enum Message {
    /// A new connection to serve: it was accepted on the listener of this kind.
    Accept(Socket, Peer, Option<Early>),
    /// A message for one of its clients.
    Push(u64, Arc<Push>),
    /// Keys have changed that a client caches: it is told itself, or another in its place.
    Invalidate {
        /// Who is told.
        to: u64,
        /// Who caches them.
        about: ClientId,
        /// Which keys.
        push: Arc<Push>,
    },
    /// The client that was to get a client's invalidations is gone: both their numbers.
    Astray(u64, u64),
    /// The reply of a client of its that was blocked.
    Served(u64, Vec<u8>),
    /// Close a client.
    Kill(u64),
    /// What a client waited for was done: its reply.
    Done(u64, Vec<u8>),
    /// End a client's wait; with an error, or as if its time were up.
    Unblock(u64, bool),
    /// A line for its monitors.
    Monitor(Arc<[u8]>),
    /// Tell this asker what INFO says.
    Info(crate::metrics::Asker),
    /// Something in the shared state changed: look at it.
    Look,
}

/// What a connection said before a loop had it: while a script ran.
pub struct Early {
    /// The client's number.
    pub number: u64,
    /// Requests that were answered and are still to be run.
    pub requests: Vec<u8>,
}

/// The other end of a connection.
#[derive(Clone, Debug)]
pub struct Peer {
    /// `127.0.0.1:50000`, or the socket's path with `:0`.
    pub address: String,
    /// The address it connected to.
    pub local_address: String,
    /// Whether it is on this machine: loopback or a Unix socket.
    pub is_local: bool,
    /// Whether it came over a Unix socket.
    pub is_unix: bool,
    /// Whether it speaks TLS.
    pub is_tls: bool,
}

/// A thread's inbox.
pub struct Inbox {
    messages: Mutex<VecDeque<Message>>,
    woken: AtomicBool,
    waker: Waker,
}

impl Inbox {
    /// An empty inbox.
    ///
    /// # Errors
    /// As `eventfd(2)`.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            messages: Mutex::default(),
            woken: AtomicBool::new(false),
            waker: Waker::new()?,
        })
    }

    /// Adds a message; wakes the owner unless somebody did already.
    pub fn send(&self, message: Message) {
        self.messages.lock().push_back(message);
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Takes all messages so far.
    pub fn take(&self) -> VecDeque<Message> {
        self.waker.clear();
        self.woken.store(false, Ordering::Release);
        std::mem::take(&mut *self.messages.lock())
    }

    /// To be watched for reading.
    pub fn fd(&self) -> std::os::fd::RawFd {
        self.waker.fd()
    }
}
