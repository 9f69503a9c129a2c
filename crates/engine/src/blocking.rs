//! Clients that wait for a key: BLPOP, XREAD BLOCK and their like.
//!
//! A client that finds nothing registers a [`Waiter`] under each of its keys, inside their locks.
//! Whoever then makes a key ready claims the first waiter, runs its command again in its name and
//! hands the reply over, before anybody else sees the key. A timeout or a disconnect cancels.
//!
//! # Invariants
//! - A waiter leaves [`State::Waiting`] once, by compare-and-swap, and whoever did that swap alone
//!   answers the client. Nothing is popped for a client that was cancelled.
//! - A waiter's command runs with all stripes of its keys locked, and is claimed only then.
//! - Waiters of one key are served in the order in which they came.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use resp::{OwnedArgs, Protocol};
use structure::stripes::StripeSet;

use crate::host::ClientId;
use crate::keyspace::DbKey;
use crate::object::Kind;

/// A client that waits.
#[derive(Debug)]
pub struct Waiter {
    /// Who waits.
    pub client: ClientId,
    /// Its command: an index into the table.
    pub command: u16,
    /// Its words.
    pub args: OwnedArgs,
    /// Its database.
    pub db: u32,
    /// The protocol of its reply.
    pub protocol: Protocol,
    /// The type that its keys must have to be of use.
    pub kind: Kind,
    /// Whether it must also hear when a key goes away or changes its type.
    pub on_missing: bool,
    /// When it gives up: Unix milliseconds.
    pub deadline_ms: Option<u64>,
    /// The stripes of all its keys.
    pub stripes: StripeSet,
    /// The keys that it waits for, with their hashes.
    pub keys: Vec<(u64, Box<[u8]>)>,
    /// When to run it again should nothing wake it; [`u64::MAX`] where only others can.
    retry_ms: AtomicU64,
    state: AtomicU8,
}

/// Where a waiter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// It waits.
    Waiting = 0,
    /// Somebody answers it.
    Claimed = 1,
    /// It gave up.
    Cancelled = 2,
}

/// What a handler asks for when it found nothing.
#[derive(Debug)]
pub struct Block {
    /// When to give up: Unix milliseconds.
    pub deadline_ms: Option<u64>,
    /// The type that is waited for.
    pub kind: Kind,
    /// Whether to wake when a key goes away.
    pub on_missing: bool,
    /// The positions of the keys that are waited for among the command's words.
    pub keys: Vec<usize>,
    /// Words to store in place of the command's own: `$` resolved to an id, for example.
    pub replace: Vec<(usize, Vec<u8>)>,
}

impl Waiter {
    /// A waiter that waits.
    pub fn new(
        client: ClientId,
        command: u16,
        args: OwnedArgs,
        (db, protocol): (u32, Protocol),
        block: &Block,
        stripes: StripeSet,
        keys: Vec<(u64, Box<[u8]>)>,
    ) -> Self {
        Self {
            client,
            command,
            args,
            db,
            protocol,
            kind: block.kind,
            on_missing: block.on_missing,
            deadline_ms: block.deadline_ms,
            stripes,
            keys,
            retry_ms: AtomicU64::new(u64::MAX),
            state: AtomicU8::new(State::Waiting as u8),
        }
    }

    /// What the client gets when its time is up: null, in RESP2 as an array whatever it waited for.
    pub fn timeout_reply(&self, resp3: bool) -> &'static [u8] {
        match resp3 {
            true => b"_\r\n",
            false => b"*-1\r\n",
        }
    }

    /// When it must be looked at should nothing wake it: to give up, or to be run again.
    pub fn due_ms(&self) -> Option<u64> {
        let retry_ms = self.retry_ms.load(Ordering::Acquire);
        let due_ms = retry_ms.min(self.deadline_ms.unwrap_or(u64::MAX));
        (due_ms < u64::MAX).then_some(due_ms)
    }

    /// Sets when to run it again should nothing wake it. Only its own client's thread does, so that
    /// the thread may keep an alarm at [`Waiter::due_ms`].
    pub fn set_retry(&self, retry_ms: Option<u64>) {
        let retry_ms = retry_ms.unwrap_or(u64::MAX);
        self.retry_ms.store(retry_ms, Ordering::Release);
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Waiting,
            1 => State::Claimed,
            _ => State::Cancelled,
        }
    }

    /// Claims it, to answer it. False where somebody else did, or it gave up.
    pub fn claim(&self) -> bool {
        self.swap(State::Waiting, State::Claimed)
    }

    /// Gives a claim back: its command found nothing after all. Only the claimer may, and only
    /// while it holds the stripes of all of the waiter's keys.
    pub fn release(&self) {
        self.state.store(State::Waiting as u8, Ordering::Release);
    }

    /// Gives up. False where it is being answered.
    pub fn cancel(&self) -> bool {
        self.swap(State::Waiting, State::Cancelled)
    }

    fn swap(&self, from: State, to: State) -> bool {
        self.state
            .compare_exchange(from as u8, to as u8, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }
}

/// The waiters of one stripe, by database and key.
#[derive(Default)]
pub struct WaitTable {
    keys: HashMap<DbKey, VecDeque<Arc<Waiter>>>,
}

impl WaitTable {
    /// Whether nobody waits for any key here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys are waited for.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// How many keys are waited for by somebody who also hears of them going away.
    pub fn len_on_missing(&self) -> usize {
        self.keys
            .values()
            .filter(|waiters| waiters.iter().any(|w| w.on_missing))
            .count()
    }

    /// Adds a waiter to the end of a key's line.
    pub fn add(&mut self, key: &[u8], waiter: Arc<Waiter>) {
        self.keys
            .entry((waiter.db, key.into()))
            .or_default()
            .push_back(waiter);
    }

    /// Removes a waiter from a key's line.
    pub fn remove(&mut self, key: &[u8], waiter: &Arc<Waiter>) {
        let slot = (waiter.db, key.into());
        if let Some(line) = self.keys.get_mut(&slot) {
            line.retain(|other| !Arc::ptr_eq(other, waiter));
            if line.is_empty() {
                self.keys.remove(&slot);
            }
        }
    }

    /// Those who wait for a key, in order.
    pub fn line(&self, db: u32, key: &[u8]) -> Vec<Arc<Waiter>> {
        // A lookup by borrowed parts of a pair needs an owned key; lines are rare.
        let slot = (db, Box::from(key));
        self.keys
            .get(&slot)
            .map(|line| line.iter().cloned().collect())
            .unwrap_or_default()
    }

    /// The first of those who wait for a key, `max` at most, in order.
    pub fn first(&self, key: &DbKey, max: usize) -> impl Iterator<Item = &Arc<Waiter>> {
        self.keys.get(key).into_iter().flatten().take(max)
    }

    /// Whether anybody waits for a key.
    pub fn has(&self, db: u32, key: &[u8]) -> bool {
        !self.keys.is_empty() && self.keys.contains_key(&(db, Box::from(key)))
    }

    /// All keys of a database that are waited for.
    pub fn keys_of(&self, db: u32) -> Vec<Box<[u8]>> {
        self.keys
            .keys()
            .filter(|(other, _)| *other == db)
            .map(|(_, key)| key.clone())
            .collect()
    }
}
