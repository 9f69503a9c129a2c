//! Before a command that may wake clients: what these need is locked as well.
//!
//! A client that waits for several keys, or moves what it gets, needs stripes that the command
//! which serves it does not. Were they sought only once the key is ready, the key would have to be
//! let go where one of them is taken, and somebody else could pop what the client has waited for.
//! Before its effects a command can still back off, so the stripes of those that it may wake are
//! taken then.
//!
//! # Invariants
//! - A command's key that it makes ready goes to those who wait for it before any other client sees
//!   it, however many they are, and so on along what these fill in turn.
//! - It costs nothing while nobody waits, and little where nobody waits in the command's stripes.
//!   What it costs else follows from the stripes and keys that waiters name, not from their number.
//!
//! # What is left
//! Keys of other databases (COPY, MOVE, SELECT inside MULTI), what is past `WOKEN_KEYS_MAX` keys,
//! and clients that wait for a key to go away: these are served as soon as their stripes can be
//! locked, in order, but not always before somebody else.

use std::collections::HashSet;

use command::{Flags, Group};
use resp::Args;
use structure::stripes::{Guard, RawLock, StripeSet};

use super::{Executor, Request};
use crate::handler::Entry;
use crate::keyspace::{DbKey, Stripe};
use crate::session::Session;

/// Keys of a command whose waiters are looked for.
const WOKEN_KEYS_MAX: usize = 4096;

impl<'k, L: RawLock> Executor<'k, L> {
    /// Locks what the clients who wait for the command's keys need as well, so that nobody sees a
    /// key between its becoming ready and their being served.
    #[cold]
    pub(super) fn with_waiters(
        &self,
        session: &Session,
        entry: &Entry,
        request: &Request<'_>,
        mut guard: Guard<'k, Stripe, L>,
    ) -> Guard<'k, Stripe, L> {
        loop {
            let mut set = self.stripes_of_waiters(session, entry, request, &mut guard);
            if guard.set().has_all(&set) {
                return guard;
            }
            // Others may come to wait before all is locked: what is locked grows each time, so it
            // comes to an end.
            if !guard.try_add(&set) {
                set.add_all(guard.set());
                drop(guard);
                guard = self.keyspace.stripes.acquire(set);
            }
        }
    }

    /// The stripes that those need who wait for the command's keys, and those who wait for what
    /// they fill in turn, as far as the lines can be seen.
    fn stripes_of_waiters(
        &self,
        session: &Session,
        entry: &Entry,
        request: &Request<'_>,
        guard: &mut Guard<'k, Stripe, L>,
    ) -> StripeSet {
        let shared = &self.keyspace.shared;
        let held = guard.held();
        let mut set = StripeSet::EMPTY;
        if held.set().iter().all(|at| held.get(at).waiters.is_empty()) {
            return set;
        }
        let entries = shared.table.entries();
        let mut keys: Vec<DbKey> = Vec::new();
        let note = |keys: &mut Vec<DbKey>, db: u32, entry: &Entry, args: Args<'_>| {
            // Words that do not say where the keys are had everything locked.
            let _ = entry.each_key_index(&args, &mut |at| {
                if keys.len() < WOKEN_KEYS_MAX {
                    keys.push((db, args.at(at).into()));
                }
            });
        };
        note(&mut keys, session.db, entry, request.args);
        if entry.command.name == "exec" {
            for (id, args) in session.multi.iter().flat_map(|multi| &multi.queued) {
                let entry = &entries[usize::from(*id)];
                note(&mut keys, session.db, entry, args.view());
            }
        }
        let mut seen = HashSet::new();
        while let Some(key) = keys.pop() {
            let index = shared.stripe(shared.hash(&key.1));
            if !held.has(index) || held.get(index).waiters.is_empty() {
                continue;
            }
            let waiters = &held.get(index).waiters;
            waiters.stripes_of(&key).for_each(|stripe| set.add(stripe));
            for filled in waiters.filled_by(&key) {
                let filled = (key.0, Box::from(filled));
                if keys.len() < WOKEN_KEYS_MAX && seen.insert(filled.clone()) {
                    keys.push(filled);
                }
            }
        }
        set
    }
}

/// Whether the command may fill a key that somebody waits for. Those who wait for a key to go away
/// are served as soon as their stripes can be locked.
#[inline]
pub(super) fn may_wake(entry: &Entry) -> bool {
    match entry.command.group {
        Group::Generic | Group::Geo | Group::List | Group::SortedSet | Group::Stream => {
            entry.flags.has(Flags::WRITE) && (!entry.flags.has(Flags::BLOCKING) || fills(entry))
        }
        Group::Transactions => entry.command.name == "exec",
        _ => false,
    }
}

/// The keys that a command which waits may fill with what it gets.
pub(super) fn filled_keys(entry: &Entry, args: Args<'_>) -> Vec<Box<[u8]>> {
    let mut keys = Vec::new();
    if fills(entry) {
        // Words that do not say where the keys are had everything locked.
        let _ = entry.each_key_index(&args, &mut |at| keys.push(args.at(at).into()));
    }
    keys
}

/// Whether a command that waits for one key fills another with what it gets.
fn fills(entry: &Entry) -> bool {
    matches!(entry.command.name, "blmove" | "blmovem" | "brpoplpush")
}
