//! What falls due by itself: dead keys, and dead fields of hashes, that nobody reads.
//!
//! Each call locks one stripe and does a bounded amount; who calls looks at the clock in between.
//!
//! # Invariants
//! - A key or a field that dies here has the same effects as one that a command finds dead, but is
//!   counted as `active`.

use std::sync::atomic::Ordering;

use structure::stripes::{Guard, RawLock, StripeSet};

use super::Executor;
use crate::context::Context;
use crate::host::{ClientId, Host};
use crate::keyspace::Stripe;
use crate::notify::Class;
use crate::session::Session;
use crate::settings::Settings;

/// Hints of hashes that one call looks at.
const HASHES_MAX: usize = 64;
/// Dead fields that one call removes, about.
const FIELDS_MAX: usize = 256;
/// In whose name things happen by the clock.
const NOBODY: ClientId = ClientId {
    thread: 0,
    number: 0,
};

impl<'k, L: RawLock> Executor<'k, L> {
    /// Removes keys whose time is up in stripe `index`; returns whether more is due.
    pub fn expire(
        &mut self,
        index: usize,
        budget: usize,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) -> bool {
        let keyspace = self.keyspace;
        let mut guard = keyspace.stripes.acquire(StripeSet::one(index));
        let mut held = guard.held();
        let stripe = held.get_mut(index);
        let is_heard = !stripe.waiters.is_empty()
            || !stripe.watchers.is_empty()
            || keyspace.shared.tracking.is_on()
            || settings.notify & Class::EXPIRED.0 != 0
            || keyspace.shared.log_is_read.load(Ordering::Relaxed);
        if !is_heard {
            let (graveyard, mut count) = (&mut self.effects.graveyard, 0);
            let looked = stripe.take_dead(now_ms, budget, |_, _, record| {
                graveyard.bury(record.into_displaced());
                count += 1;
            });
            stripe.stats.expired += count;
            stripe.stats.expired_active += count;
            stripe.stats.changes += count;
            return looked >= budget;
        }
        let mut dead = Vec::new();
        let looked = stripe.take_dead(now_ms, budget, |db, hash, record| {
            dead.push((db, hash, record));
        });
        let mut session = Session::new(NOBODY, true);
        for (db, hash, record) in dead {
            session.db = db;
            let mut cx = self.clockwork(&mut session, &mut guard, settings, host, now_ms);
            cx.expired(hash, record, true);
            self.log_losses(now_ms);
        }
        self.serve_ready(&mut guard, settings, host, now_ms);
        drop(guard);
        self.end(settings, host, now_ms);
        looked >= budget
    }

    /// Removes dead fields of hashes of stripe `index`, a bounded number; returns whether there may
    /// be more.
    pub fn expire_fields(
        &mut self,
        index: usize,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) -> bool {
        let keyspace = self.keyspace;
        let mut guard = keyspace.stripes.acquire(StripeSet::one(index));
        let mut session = Session::new(NOBODY, true);
        let (mut looks, mut fields) = (HASHES_MAX, 0);
        let mut is_found = true;
        while is_found && looks > 0 && fields < FIELDS_MAX {
            let due = guard.held().get_mut(index).due_hash(now_ms, &mut looks);
            is_found = due.is_some();
            if let Some((db, hash, key)) = due {
                session.db = db;
                let mut cx = self.clockwork(&mut session, &mut guard, settings, host, now_ms);
                cx.known_hash = Some((key.as_ptr(), hash));
                // Each hash costs something, however few of its fields are dead.
                fields += 1 + cx.expire_fields(&key, FIELDS_MAX - fields, true);
                self.log_losses(now_ms);
            }
        }
        self.serve_ready(&mut guard, settings, host, now_ms);
        drop(guard);
        self.end(settings, host, now_ms);
        is_found || looks == 0
    }

    /// The surroundings of what happens by the clock, in nobody's name.
    fn clockwork<'a>(
        &'a mut self,
        session: &'a mut Session,
        guard: &'a mut Guard<'k, Stripe, L>,
        settings: &'a Settings,
        host: &'a mut dyn Host,
        now_ms: u64,
    ) -> Context<'a> {
        let shared = &*self.keyspace.shared;
        Context {
            session,
            keyspace: guard.held(),
            shared,
            settings,
            host,
            entry: shared.table.find_own(b"del").expect("DEL is in the table"),
            now_ms,
            dead_ms: now_ms,
            may_block: false,
            effects: &mut self.effects,
            known_hash: None,
        }
    }
}

#[cfg(test)]
mod tests;
