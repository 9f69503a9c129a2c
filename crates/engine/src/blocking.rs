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
//! - What a ready key costs follows from who is served: those who wait for another type are not
//!   looked at, and of a stream's group, only until one of its consumers finds nothing.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use resp::{OwnedArgs, Protocol};
use structure::stripes::StripeSet;

use crate::acl::User;
use crate::host::{ClientId, Durable};
use crate::keyspace::DbKey;
use crate::object::Kind;
use crate::tracking::Tracking;

/// A client that waits.
#[derive(Debug)]
pub struct Waiter {
    /// Who waits.
    pub client: ClientId,
    /// Its user, whose rights are looked at again when it is served.
    pub user: Arc<User>,
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
    /// Its place among all: those who came later have a higher one.
    pub ticket: u64,
    /// The consumer group that it reads for: where one of its consumers finds nothing, none does.
    pub group: Option<Box<[u8]>>,
    /// Keys that it may fill with what it gets.
    pub fills: Vec<Box<[u8]>>,
    /// How its client tracks keys.
    pub tracking: Option<Box<Tracking>>,
    /// What it waits for.
    pub awaits: Awaits,
    /// When to run it again should nothing wake it; [`u64::MAX`] where only others can.
    retry_ms: AtomicU64,
    state: AtomicU8,
}

/// What a client waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Awaits {
    /// Keys.
    #[default]
    Keys,
    /// Replicas that have what it wrote: WAIT.
    Replicas,
    /// What it wrote, up to this frame of the log, on the disk and on replicas: WAITAOF.
    Disk {
        /// The frame.
        lsn: u64,
        /// Whether replicas are waited for, too.
        replicas: bool,
        /// Whether this server's disk is.
        local: bool,
    },
    /// Something that the host does: it knows what, and answers.
    Host,
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
    /// What is waited for.
    pub awaits: Awaits,
}

impl Block {
    /// A wait for something that no key brings.
    pub fn without_keys(awaits: Awaits, deadline_ms: Option<u64>) -> Self {
        Self {
            deadline_ms,
            kind: Kind::String,
            on_missing: false,
            keys: Vec::new(),
            replace: Vec::new(),
            awaits,
        }
    }
}

impl Waiter {
    /// A waiter that waits.
    pub fn new(
        (client, user): (ClientId, Arc<User>),
        command: u16,
        args: OwnedArgs,
        (db, protocol): (u32, Protocol),
        block: &Block,
        stripes: StripeSet,
        keys: Vec<(u64, Box<[u8]>)>,
        ticket: u64,
        fills: Vec<Box<[u8]>>,
    ) -> Self {
        let group = group_of(&args);
        Self {
            client,
            user,
            command,
            args,
            db,
            protocol,
            kind: block.kind,
            on_missing: block.on_missing,
            deadline_ms: block.deadline_ms,
            stripes,
            keys,
            ticket,
            group,
            fills,
            tracking: None,
            awaits: block.awaits,
            retry_ms: AtomicU64::new(u64::MAX),
            state: AtomicU8::new(State::Waiting as u8),
        }
    }

    /// What the client gets when its time is up: null, in RESP2 as an array whatever key it waited
    /// for; or how many have what it wrote.
    pub fn timeout_reply(&self, resp3: bool, durable: Durable) -> &'static [u8] {
        match self.awaits {
            Awaits::Replicas => b":0\r\n",
            Awaits::Disk { lsn, .. } if durable.has(lsn) => b"*2\r\n:1\r\n:0\r\n",
            Awaits::Disk { .. } => b"*2\r\n:0\r\n:0\r\n",
            Awaits::Keys | Awaits::Host if resp3 => b"_\r\n",
            Awaits::Keys | Awaits::Host => b"*-1\r\n",
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

/// The group of an XREADGROUP, whose options may come in any order.
fn group_of(args: &OwnedArgs) -> Option<Box<[u8]>> {
    let args = args.view();
    if !args.is(0, "XREADGROUP") {
        return None;
    }
    let (mut group, mut at) = (None, 1);
    while at < args.len() && !args.is(at, "STREAMS") {
        if args.is(at, "GROUP") {
            group = args.get(at + 1).map(Box::from);
            at += 3;
        } else {
            at += if args.is(at, "NOACK") { 1 } else { 2 };
        }
    }
    group
}

/// Those who wait for the same of one key, by their tickets.
struct Line {
    kind: Kind,
    on_missing: bool,
    group: Option<Box<[u8]>>,
    waiters: BTreeMap<u64, Arc<Waiter>>,
}

impl Line {
    fn is_of(&self, waiter: &Waiter) -> bool {
        (self.kind, self.on_missing) == (waiter.kind, waiter.on_missing)
            && self.group == waiter.group
    }
}

/// All who wait for one key.
#[derive(Default)]
struct Waiting {
    lines: Vec<Line>,
    /// The stripes that they need, and how many of them need each.
    stripes: BTreeMap<usize, usize>,
    /// The keys that they may fill, and how many of them may fill each.
    fills: BTreeMap<Box<[u8]>, usize>,
}

impl Waiting {
    fn count(&mut self, waiter: &Waiter) {
        for stripe in waiter.stripes.iter() {
            *self.stripes.entry(stripe).or_default() += 1;
        }
        for key in &waiter.fills {
            *self.fills.entry(key.clone()).or_default() += 1;
        }
    }

    fn discount(&mut self, waiter: &Waiter) {
        for stripe in waiter.stripes.iter() {
            take_one(&mut self.stripes, &stripe);
        }
        for key in &waiter.fills {
            take_one(&mut self.fills, key);
        }
    }
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, usize>, of: &K) {
    if let Some(count) = counts.get_mut(of) {
        *count -= 1;
        if *count == 0 {
            counts.remove(of);
        }
    }
}

/// The waiters of one stripe, by database and key.
#[derive(Default)]
pub struct WaitTable {
    keys: HashMap<DbKey, Waiting>,
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
            .filter(|waiting| waiting.lines.iter().any(|line| line.on_missing))
            .count()
    }

    /// Adds a waiter to those of a key.
    pub fn add(&mut self, key: &[u8], waiter: Arc<Waiter>) {
        let waiting = self.keys.entry((waiter.db, key.into())).or_default();
        let lines = &mut waiting.lines;
        let at = lines.iter().position(|line| line.is_of(&waiter));
        let at = at.unwrap_or_else(|| {
            lines.push(Line {
                kind: waiter.kind,
                on_missing: waiter.on_missing,
                group: waiter.group.clone(),
                waiters: BTreeMap::new(),
            });
            lines.len() - 1
        });
        // A command may name a key twice.
        let is_new = lines[at].waiters.insert(waiter.ticket, waiter.clone());
        if is_new.is_none() {
            waiting.count(&waiter);
        }
    }

    /// Removes a waiter from those of a key.
    pub fn remove(&mut self, key: &[u8], waiter: &Waiter) {
        let slot = (waiter.db, key.into());
        let Some(waiting) = self.keys.get_mut(&slot) else {
            return;
        };
        let lines = &mut waiting.lines;
        if let Some(at) = lines.iter().position(|line| line.is_of(waiter)) {
            let was_there = lines[at].waiters.remove(&waiter.ticket).is_some();
            if lines[at].waiters.is_empty() {
                lines.swap_remove(at);
            }
            if was_there {
                waiting.discount(waiter);
            }
        }
        if waiting.lines.is_empty() {
            self.keys.remove(&slot);
        }
    }

    /// The first of those who came after `ticket` and can do something with a key that holds a
    /// value of type `kind`, or none. Groups in `idle` found nothing.
    pub fn next(
        &self,
        key: &DbKey,
        kind: Option<Kind>,
        idle: &[Box<[u8]>],
        ticket: u64,
    ) -> Option<&Arc<Waiter>> {
        let lines = self.keys.get(key)?.lines.iter().filter(|line| {
            (line.on_missing || Some(line.kind) == kind)
                && line
                    .group
                    .as_ref()
                    .is_none_or(|group| !idle.contains(group))
        });
        let first = |line: &'_ Line| -> Option<u64> {
            let (first, _) = line.waiters.range(ticket + 1..).next()?;
            Some(*first)
        };
        let (first, line) = lines
            .filter_map(|line| Some((first(line)?, line)))
            .min_by_key(|(first, _)| *first)?;
        line.waiters.get(&first)
    }

    /// The stripes that those need who wait for a key.
    pub fn stripes_of(&self, key: &DbKey) -> impl Iterator<Item = usize> {
        let waiting = self.keys.get(key).into_iter();
        waiting.flat_map(|waiting| waiting.stripes.keys().copied())
    }

    /// The keys that those may fill who wait for a key.
    pub fn filled_by(&self, key: &DbKey) -> impl Iterator<Item = &[u8]> {
        let waiting = self.keys.get(key).into_iter();
        waiting.flat_map(|waiting| waiting.fills.keys().map(|key| &**key))
    }

    /// All who wait, with the key that they wait for: for those of several keys once for each.
    pub fn all(&self) -> impl Iterator<Item = (&DbKey, &Arc<Waiter>)> {
        self.keys.iter().flat_map(|(key, waiting)| {
            let waiters = waiting.lines.iter().flat_map(|line| line.waiters.values());
            waiters.map(move |waiter| (key, waiter))
        })
    }

    /// Panics where an invariant does not hold. Reads everything.
    pub fn check_invariants(&self) {
        for waiting in self.keys.values() {
            let mut counted = Waiting::default();
            for line in &waiting.lines {
                assert!(!line.waiters.is_empty(), "a line of nobody");
                for (ticket, waiter) in &line.waiters {
                    assert_eq!(*ticket, waiter.ticket);
                    assert!(line.is_of(waiter), "a waiter in a line of others");
                    counted.count(waiter);
                }
            }
            assert_eq!(counted.stripes, waiting.stripes, "stripes of waiters");
            assert_eq!(counted.fills, waiting.fills, "keys that waiters fill");
        }
    }

    /// All keys of a database that are waited for, sorted: a run can be repeated exactly.
    pub fn keys_of(&self, db: u32) -> Vec<Box<[u8]>> {
        let mut keys: Vec<Box<[u8]>> = self
            .keys
            .keys()
            .filter(|(other, _)| *other == db)
            .map(|(_, key)| key.clone())
            .collect();
        keys.sort_unstable();
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const KINDS: [Kind; 3] = [Kind::List, Kind::SortedSet, Kind::Stream];

    fn waiter(ticket: u64, kind: usize, group: u8) -> Arc<Waiter> {
        let is_group = KINDS[kind] == Kind::Stream && group > 0;
        let name = format!("g{group}");
        let words = if is_group {
            format!("XREADGROUP COUNT 1 NOACK GROUP {name} GROUP STREAMS key >")
        } else {
            "BLPOP key 0".to_owned()
        };
        let block = Block {
            deadline_ms: None,
            kind: KINDS[kind],
            on_missing: is_group,
            keys: vec![1],
            replace: Vec::new(),
            awaits: Awaits::Keys,
        };
        let id = ClientId {
            thread: 0,
            number: ticket,
        };
        let waiter = Waiter::new(
            (id, crate::acl::unrestricted()),
            0,
            OwnedArgs::from_words(words.split(' ').map(str::as_bytes)),
            (0, Protocol::Resp2),
            &block,
            StripeSet::one((ticket % 5) as usize),
            vec![(0, Box::from(*b"key"))],
            ticket,
            vec![format!("to{}", ticket % 3).into_bytes().into()],
        );
        let group = is_group.then(|| name.into_bytes().into_boxed_slice());
        assert_eq!(waiter.group, group);
        Arc::new(waiter)
    }

    proptest! {
        #[test]
        fn those_who_can_be_served_come_in_order(
            steps in proptest::collection::vec((0usize..3, 0u8..3, any::<u8>()), 1..100),
            idle in 0u8..3,
        ) {
            let (mut table, mut plain) = (WaitTable::default(), Vec::<Arc<Waiter>>::new());
            let idle = [format!("g{idle}").into_bytes().into_boxed_slice()];
            let key: DbKey = (0, Box::from(*b"key"));
            for (ticket, (kind, group, draw)) in (1..).zip(steps) {
                if draw % 3 == 0 && !plain.is_empty() {
                    let gone = plain.remove(usize::from(draw) % plain.len());
                    table.remove(b"key", &gone);
                } else {
                    let new = waiter(ticket, kind, group);
                    plain.push(new.clone());
                    table.add(b"key", new);
                }
                prop_assert_eq!(table.is_empty(), plain.is_empty());
                let stripes: BTreeSet<_> = plain.iter().flat_map(|w| w.stripes.iter()).collect();
                prop_assert!(table.stripes_of(&key).eq(stripes));
                let filled: BTreeSet<_> = plain.iter().map(|w| &*w.fills[0]).collect();
                prop_assert!(table.filled_by(&key).eq(filled));
                for found in [None, Some(Kind::Hash), Some(KINDS[kind])] {
                    let fits = |w: &&Arc<Waiter>| {
                        (w.on_missing || Some(w.kind) == found)
                            && w.group.as_ref().is_none_or(|group| *group != idle[0])
                    };
                    let expected: Vec<_> = plain.iter().filter(fits).map(|w| w.ticket).collect();
                    let (mut seen, mut last) = (Vec::new(), 0);
                    while let Some(next) = table.next(&key, found, &idle, last) {
                        last = next.ticket;
                        seen.push(last);
                    }
                    prop_assert_eq!(seen, expected);
                }
            }
        }
    }
}
