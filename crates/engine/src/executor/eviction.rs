//! Making room: `maxmemory`, before any stripe is locked for a command.
//!
//! The caller asks for room before it runs a window of requests. While memory is past its limit,
//! one stripe after another, drawn at random, is locked alone; a few of its keys are sampled and
//! the one that the policy likes least goes. Where nothing can be evicted, commands that need
//! memory are refused until there is room again.
//!
//! # Invariants
//! - No stripe is held while room is made but the one that is looked at.
//! - One call evicts at most `EVICTED_MAX` keys; the rest is left for the next call, and commands
//!   run meanwhile. Only a call that found nothing to evict makes the server full.
//!
//! # Why not an exact order?
//! A list through all keys costs 16 bytes a key and a write to its neighbours with each use. The
//! keys are spread over the stripes by their hashes, so a sample of one stripe is a sample of all.

use structure::record::RecordRef;
use structure::stripes::{RawLock, StripeSet};

use super::{Executor, limits};
use crate::Object;
use crate::access::{self, aged};
use crate::context::Context;
use crate::host::{ClientId, Host};
use crate::keyspace::Stripe;
use crate::session::Session;
use crate::settings::{Eviction, Order, Settings};

/// Keys that one call evicts at most.
const EVICTED_MAX: usize = 256;
/// Draws a sample, for keys with a deadline among many without.
const DRAWS_FACTOR: u32 = 16;
/// Elements of big evicted values freed before memory is looked at again.
const FREED_MAX: usize = 64 * 1024;

impl<L: RawLock> Executor<'_, L> {
    /// Evicts keys while memory is past `maxmemory`, with bounded work. To be called before a
    /// window of requests, where a limit is set.
    pub fn make_room(&mut self, settings: &Settings, host: &mut dyn Host, now_ms: u64) {
        self.limits &= !limits::FULL;
        self.effects.is_full = false;
        for _ in 0..EVICTED_MAX {
            if settings.maxmemory == 0 || host.used_bytes() <= settings.maxmemory {
                return;
            }
            // What was evicted before, and is still to be freed, is memory as well.
            if !self.effects.graveyard.is_empty() {
                self.guard = None;
                self.effects.graveyard.free_some(FREED_MAX);
                continue;
            }
            if !self.evict_one(settings, host, now_ms) {
                self.limits |= limits::FULL;
                self.effects.is_full = true;
                return;
            }
        }
    }

    /// Evicts one key. False where no stripe has one that may go.
    fn evict_one(&mut self, settings: &Settings, host: &mut dyn Host, now_ms: u64) -> bool {
        let Some(order) = settings.eviction.order() else {
            return false;
        };
        self.guard = None;
        let count = self.keyspace.stripes.count();
        let first = usize::try_from(host.random() % count as u64).unwrap_or(0);
        for step in 0..count {
            let index = (first + step) % count;
            if self.evict_from(index, order, settings, host, now_ms) {
                return true;
            }
        }
        false
    }

    fn evict_from(
        &mut self,
        index: usize,
        order: Order,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) -> bool {
        let keyspace = self.keyspace;
        let mut guard = keyspace.stripes.acquire(StripeSet::one(index));
        let found = sample(guard.held().get(index), order, settings, host, now_ms);
        let (Some((db, key)), Some(entry)) = (found, keyspace.shared.table.find_own(b"del")) else {
            return false;
        };
        let id = ClientId {
            thread: 0,
            number: 0,
        };
        let mut session = Session::new(id, true);
        session.db = db;
        let mut cx = Context {
            session: &mut session,
            keyspace: guard.held(),
            shared: &keyspace.shared,
            settings,
            host,
            entry,
            now_ms,
            dead_ms: now_ms,
            may_block: false,
            effects: &mut self.effects,
            known_hash: None,
        };
        let evicted = cx.evict(keyspace.shared.hash(&key), &key);
        self.log_losses(now_ms);
        self.serve_ready(&mut guard, settings, host, now_ms);
        drop(guard);
        self.end(settings, host, now_ms);
        evicted
    }
}

/// The key to evict among a few of a stripe: its database and its name.
fn sample(
    stripe: &Stripe,
    order: Order,
    settings: &Settings,
    host: &mut dyn Host,
    now_ms: u64,
) -> Option<(u32, Box<[u8]>)> {
    let timed_only = matches!(settings.eviction, Eviction::Timed(_));
    let mut worst: Option<(u64, u32, &[u8])> = None;
    for number in 0..stripe.db_count() {
        let Some(db) = stripe.db(number) else {
            continue;
        };
        if db.table.is_empty() || timed_only && db.timed() == 0 {
            continue;
        }
        let mut seen = 0;
        let skips = |record: RecordRef<'_, Object>| timed_only && record.deadline().is_none();
        for _ in 0..settings.eviction_samples * DRAWS_FACTOR {
            let draw = |below: u64| host.random() % below.max(1);
            let Some(record) = db.table.random(draw) else {
                break;
            };
            if skips(record) {
                continue;
            }
            let score = score(record, order, settings, host, now_ms);
            if worst.is_none_or(|(worst, _, _)| score > worst) {
                worst = Some((score, number, record.key()));
            }
            seen += 1;
            if seen >= settings.eviction_samples {
                break;
            }
        }
        if seen == 0 {
            // Few keys have a deadline here: the first one that is found must do.
            let found = db.table.iter().find(|record| !skips(*record));
            if let (Some(record), None) = (found, worst) {
                worst = Some((0, number, record.key()));
            }
        }
    }
    worst.map(|(_, db, key)| (db, key.into()))
}

/// How much a key deserves to go: the highest first.
fn score(
    record: RecordRef<'_, Object>,
    order: Order,
    settings: &Settings,
    host: &mut dyn Host,
    now_ms: u64,
) -> u64 {
    match order {
        Order::LastUse | Order::LastChange => {
            u64::from(access::seconds(now_ms).wrapping_sub(record.access()) & 0xff_ffff)
        }
        Order::Frequency => {
            let minute = access::minute(now_ms);
            u64::from(255 - aged(record.access(), minute, settings.lfu_decay_minutes).min(255))
        }
        Order::Deadline => u64::MAX - record.deadline().unwrap_or(u64::MAX),
        Order::Random => host.random(),
    }
}

#[cfg(test)]
mod tests {
    use std::any::Any;
    use std::sync::Arc;

    use resp::{Args, Output, OwnedArgs};
    use structure::hash::Seed;
    use structure::stripes::NoLock;

    use super::*;
    use crate::Table;
    use crate::handler::Entry;
    use crate::keyspace::Keyspace;
    use crate::pubsub::Push;
    use crate::stats::ThreadStats;

    /// A host whose memory shrinks by one with each look.
    struct Shrinking {
        used: u64,
        random: u64,
    }

    impl Host for Shrinking {
        fn push(&mut self, _: ClientId, _: &Arc<Push>) {}
        fn serve(&mut self, _: ClientId, _: &[u8]) {}
        fn random(&mut self) -> u64 {
            self.random = self
                .random
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(1);
            self.random ^ (self.random >> 33)
        }
        fn ticks(&mut self) -> u64 {
            0
        }
        fn ticks_per_us(&self) -> f64 {
            1.0
        }
        fn monitor(&mut self, _: &Session, _: &Entry, _: Args<'_>) {}
        fn is_monitored(&self) -> bool {
            false
        }
        fn used_bytes(&mut self) -> u64 {
            self.used = self.used.saturating_sub(1);
            self.used
        }
        fn as_any(&mut self) -> &mut dyn Any {
            self
        }
    }

    struct Bench {
        keyspace: Keyspace<NoLock>,
        settings: Settings,
        host: Shrinking,
    }

    impl Bench {
        fn new(eviction: Eviction) -> Self {
            let table = Table::new(crate::commands::FAMILIES);
            Self {
                keyspace: Keyspace::new(table, 64, Seed::new([1, 2])),
                settings: Settings {
                    maxmemory: 1,
                    eviction,
                    ..Settings::default()
                },
                host: Shrinking { used: 0, random: 7 },
            }
        }

        /// Runs lines on one executor, with `used` bytes in use before the first; returns the
        /// replies.
        fn run(&mut self, used: u64, lines: &[&str]) -> String {
            let stats = Arc::new(ThreadStats::new(self.keyspace.shared.table.len()));
            let mut executor = Executor::new(&self.keyspace, stats);
            let id = ClientId {
                thread: 0,
                number: 1,
            };
            let mut session = Session::new(id, true);
            let mut out = Output::default();
            self.host.used = used;
            executor.make_room(&self.settings, &mut self.host, 1000);
            for line in lines {
                let args = OwnedArgs::from_words(line.split(' ').map(str::as_bytes));
                let request = executor.prepare(args.view());
                executor.execute(
                    &mut session,
                    &request,
                    &self.settings,
                    &mut self.host,
                    1000,
                    &mut out,
                );
            }
            executor.end(&self.settings, &mut self.host, 1000);
            String::from_utf8_lossy(out.since(0)).into_owned()
        }

        fn fill(&mut self) {
            for number in 0..200 {
                let plain = format!("SET plain:{number} v");
                let timed = format!("SET timed:{number} v PX 100000");
                self.run(0, &[&plain, &timed]);
            }
        }

        /// Keys without a deadline, and with one.
        fn counts(&mut self) -> (usize, usize) {
            let mut guard = self.keyspace.stripes.acquire(self.keyspace.stripes.all());
            let held = guard.held();
            let dbs = (0..held.count()).filter_map(|index| held.get(index).db(0));
            dbs.fold((0, 0), |(plain, timed), db| {
                (plain + db.table.len() - db.timed(), timed + db.timed())
            })
        }
    }

    #[test]
    fn without_eviction_only_commands_that_need_memory_are_refused() {
        let mut bench = Bench::new(Eviction::None);
        bench.run(0, &["SET k v"]);
        let replies = bench.run(100, &["SET k w", "GET k", "DEL k"]);
        let refusal = "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
        assert_eq!(replies, format!("{refusal}$1\r\nv\r\n:1\r\n"));
        assert_eq!(bench.run(0, &["SET k w"]), "+OK\r\n");
    }

    #[test]
    fn keys_go_until_there_is_room() {
        for order in [
            Order::LastUse,
            Order::LastChange,
            Order::Frequency,
            Order::Random,
        ] {
            let mut bench = Bench::new(Eviction::All(order));
            bench.fill();
            assert_eq!(bench.counts(), (200, 200));
            assert_eq!(bench.run(52, &["SET k v"]), "+OK\r\n");
            let (plain, timed) = bench.counts();
            assert_eq!(plain + timed, 401 - 50, "{order:?}");
        }
    }

    #[test]
    fn what_goes_to_make_room_is_in_the_log() {
        let mut bench = Bench::new(Eviction::All(Order::Random));
        bench.fill();
        let shared = &bench.keyspace.shared;
        let is_read = &shared.log_is_read;
        is_read.store(true, std::sync::atomic::Ordering::Relaxed);
        let stats = Arc::new(ThreadStats::new(shared.table.len()));
        let mut executor = Executor::new(&bench.keyspace, stats);
        bench.host.used = 52;
        executor.make_room(&bench.settings, &mut bench.host, 1000);
        let frames = executor.take_frames();
        drop(executor);
        let (plain, timed) = bench.counts();
        assert_eq!(frames.iter().count(), 400 - plain - timed);
        assert!(plain + timed < 400);
        for (frame, bytes) in frames.iter() {
            let gone = bytes.starts_with(b"*2\r\n$3\r\nDEL\r\n");
            assert!(gone && frame.at_ms == 1000, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn keys_without_a_deadline_stay_where_only_timed_ones_may_go() {
        for order in [Order::LastUse, Order::Deadline, Order::Random] {
            let mut bench = Bench::new(Eviction::Timed(order));
            bench.fill();
            bench.run(152, &["GET k"]);
            assert_eq!(bench.counts(), (200, 50), "{order:?}");
            // Now more must go than may.
            let replies = bench.run(1000, &["SET k v"]);
            assert!(replies.starts_with("-OOM"), "{replies}");
            assert_eq!(bench.counts(), (200, 0));
        }
    }
}
