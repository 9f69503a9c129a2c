//! What the engine needs of whoever runs it: delivery to clients, randomness, ticks.

use std::any::Any;
use std::sync::Arc;

use crate::acl::{Denial, Place};
use crate::handler::Entry;
use crate::pubsub::Push;
use crate::session::Session;

/// A client, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId {
    /// The thread that serves it.
    pub thread: u16,
    /// Its number, never used again.
    pub number: u64,
}

/// What the disk has of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// No log is written.
    NoLog,
    /// One is begun that has no base yet.
    Nothing,
    /// Everything up to this frame.
    UpTo(u64),
}

impl Durable {
    /// Whether the disk has frame `lsn` and what came before.
    pub fn has(self, lsn: u64) -> bool {
        matches!(self, Self::UpTo(last) if last >= lsn)
    }
}

/// The surroundings of the engine. Called with stripes locked: it must neither wait nor call back.
pub trait Host {
    /// Sends a published message or another push to a client.
    fn push(&mut self, to: ClientId, message: &Arc<Push>);

    /// Tells a client that keys have changed which `about` tracks: itself, unless that has its
    /// messages sent to another.
    fn invalidate(&mut self, _to: ClientId, _about: ClientId, _: &Arc<Push>) {}

    /// A blocked client was served: `reply` is its reply, in its own protocol.
    fn serve(&mut self, to: ClientId, reply: &[u8]);

    /// 64 random bits.
    fn random(&mut self) -> u64;

    /// A clock that only goes forward, in units of its own; see [`Host::ticks_per_us`].
    fn ticks(&mut self) -> u64;

    /// How many ticks a microsecond has.
    fn ticks_per_us(&self) -> f64;

    /// A command ran inside EXEC, took so many ticks and replied with so many bytes.
    fn ran_in_transaction(&mut self, _: &Entry, _: resp::Args<'_>, _: u64, _: usize) {}

    /// A session's user was refused a command.
    fn denied(&mut self, _: &Session, _: &Entry, _: resp::Args<'_>, _: Denial, _: Place) {}

    /// Tells monitors about a command.
    fn monitor(&mut self, session: &Session, entry: &Entry, args: resp::Args<'_>);

    /// Whether anybody monitors.
    fn is_monitored(&self) -> bool;

    /// Bytes of memory in use, for `maxmemory`. A host that does not count says 0.
    fn used_bytes(&mut self) -> u64 {
        0
    }

    /// What the disk has.
    fn durable(&mut self) -> Durable {
        Durable::NoLog
    }

    /// The host itself, for handlers that belong to it.
    fn as_any(&mut self) -> &mut dyn Any;
}

/// A host with nobody around: nobody hears of anything, and no time passes.
pub struct Alone {
    random: u64,
}

impl Alone {
    /// One whose random numbers follow from `seed`.
    pub fn new(seed: u64) -> Self {
        Self { random: seed }
    }
}

impl Host for Alone {
    fn push(&mut self, _: ClientId, _: &Arc<Push>) {}

    fn serve(&mut self, _: ClientId, _: &[u8]) {}

    fn random(&mut self) -> u64 {
        self.random = self
            .random
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        self.random ^ self.random >> 33
    }

    fn ticks(&mut self) -> u64 {
        0
    }

    fn ticks_per_us(&self) -> f64 {
        1.0
    }

    fn monitor(&mut self, _: &Session, _: &Entry, _: resp::Args<'_>) {}

    fn is_monitored(&self) -> bool {
        false
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}
