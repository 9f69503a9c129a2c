//! What happens by the clock: dead keys, idle clients, output limits, the end of a pause.

use super::*;
use crate::persistence::backup;
use engine::keyspace::Stripe;

/// Milliseconds between ticks, at most, while some key of this thread's stripes has a deadline:
/// another thread may add one that is due soon.
const TICK_MS: u64 = 16;
/// Milliseconds between ticks otherwise.
const IDLE_TICK_MS: u64 = 100;
/// Hints of one stripe looked at in one go, so that a stripe is locked for microseconds only.
const EXPIRE_BUDGET: usize = 128;
/// Microseconds that a tick may spend on dead keys before the sockets are looked at again.
const EXPIRE_US_MAX: u64 = 500;
/// Where commands count as slow that take fewer microseconds, each one is timed by itself.
const TOGETHER_US: i64 = 1000;
/// Slices of the counting of keys' sizes that a tick takes.
const SIZE_SLICES: usize = 4;
/// Milliseconds between looks at all connections.
const CHECK_MS: u64 = 200;

impl<L: RawLock> EventLoop<'_, L> {
    /// One tick. What it could not finish goes on at once in the next turn.
    pub(super) fn tick(&mut self) {
        if self.host.thread == 0 {
            self.shared
                .samples
                .lock()
                .note(&self.shared, self.host.now_us);
            if self.shared.hotkeys.stop_if_due(self.now_ms) {
                self.shared.look_again();
            }
        }
        self.shared
            .scripts
            .note_vm_bytes(self.host.thread, crate::scripting::bytes());
        self.spare.look();
        self.accept_again();
        if self.shared.cron_paused.load(Ordering::Relaxed) || !self.shared.keys.is_serving() {
            self.next_tick_ms = self.now_ms + IDLE_TICK_MS;
            return;
        }
        if self.host.thread == 0 {
            self.save_if_due();
            self.rewrite_if_due();
            if self.shared.backup.wants_look.load(Ordering::Acquire) {
                self.look_after_backup();
            }
            let ttl_s = self.host.config.backup_sealed_ttl_s;
            if ttl_s > 0 {
                backup::expire(&self.shared, ttl_s, self.now_ms / 1000);
            }
        }
        if self.settings.maxmemory > 0 {
            self.executor
                .make_room(&self.settings, &mut self.host, self.now_ms);
        }
        let began_us = sys::unix_us();
        let is_behind = self.expire_keys();
        let took_ms = sys::unix_us().saturating_sub(began_us) / 1000;
        let limit_ms = self.host.config.latency_monitor_threshold_ms;
        if limit_ms > 0 && took_ms >= limit_ms {
            let mut latency = self.shared.latency.lock();
            latency.note("expire-cycle", self.now_ms / 1000, took_ms);
        }
        let wait = match self.next_due_ms() {
            _ if is_behind => 0,
            Some(due) if due > self.now_ms => (due - self.now_ms).min(TICK_MS),
            // Nothing is removed at present.
            Some(_) => TICK_MS,
            None => IDLE_TICK_MS,
        };
        let wait = match self.count_sizes() {
            true => wait.min(TICK_MS),
            false => wait,
        };
        self.next_tick_ms = self.now_ms + wait;
        if self.now_ms >= self.next_check_ms {
            self.next_check_ms = self.now_ms + CHECK_MS;
            self.check_connections();
            self.ticks_per_us = self.shared.ticks_per_us();
            self.note_slow_ticks();
        }
    }

    /// How many stripes this thread looks after: number `n` of them is `thread + n * threads`.
    pub(super) fn own_stripes(&self) -> usize {
        let count = self.executor.keyspace().stripes.count();
        count
            .saturating_sub(usize::from(self.host.thread))
            .div_ceil(self.shared.inboxes.len())
    }

    /// Stripe number `own` of those that this thread looks after.
    pub(super) fn own_stripe(&self, own: usize) -> usize {
        usize::from(self.host.thread) + own * self.shared.inboxes.len()
    }

    /// Counts the sizes of some keys for INFO keysizes; true where there are more to count.
    fn count_sizes(&mut self) -> bool {
        if !self.shared.keysizes.is_wanted(self.now_ms) || !self.sizes.is_due(self.now_ms) {
            return false;
        }
        let keyspace = self.executor.keyspace();
        let (own, thread) = (self.own_stripes(), usize::from(self.host.thread));
        for _ in 0..SIZE_SLICES {
            let (sizes, shared, now_ms) = (&mut self.sizes, &self.shared, self.now_ms);
            let index = thread + sizes.stripe() * shared.inboxes.len();
            // One that is in use has its turn at the next tick.
            let step = |stripe: &Stripe| sizes.step(stripe, own, thread, &shared.keysizes, now_ms);
            if keyspace.stripes.peek(index, step).is_none() || !self.sizes.is_due(now_ms) {
                break;
            }
        }
        true
    }

    /// Removes dead keys and dead fields; true where time ran out before all were gone.
    fn expire_keys(&mut self) -> bool {
        // During a pause of writes the data stands still.
        let is_paused = self.pause().1 || self.shared.log.has_failed();
        // A script that runs for long holds the stripes: who waits for them answers nobody.
        let running = &self.shared.scripts.running;
        if is_paused
            || running.is_long.load(Ordering::Relaxed)
            || !self.shared.active_expire.load(Ordering::Relaxed)
        {
            return false;
        }
        let shared = &self.executor.keyspace().shared;
        let has_timed_fields = shared.field_deadlines.load(Ordering::Relaxed);
        let end = sys::unix_us() + EXPIRE_US_MAX;
        let count = self.own_stripes();
        for _ in 0..count {
            // Another tick begins with the stripe after it, so that none is left behind for good.
            let index = self.own_stripe(self.expire_from);
            self.expire_from = (self.expire_from + 1) % count;
            while self.executor.expire(
                index,
                EXPIRE_BUDGET,
                &self.settings,
                &mut self.host,
                self.now_ms,
            ) {
                if sys::unix_us() >= end {
                    return true;
                }
            }
            while has_timed_fields
                && self
                    .executor
                    .expire_fields(index, &self.settings, &mut self.host, self.now_ms)
            {
                if sys::unix_us() >= end {
                    return true;
                }
            }
        }
        false
    }

    /// When keys of this thread's stripes may be due next; at once where a stripe is in use.
    fn next_due_ms(&self) -> Option<u64> {
        let stripes = &self.executor.keyspace().stripes;
        let due = |own| match stripes.peek(self.own_stripe(own), Stripe::next_due_ms) {
            Some(due) => due,
            None => Some(self.now_ms + TICK_MS),
        };
        (0..self.own_stripes()).filter_map(due).min()
    }

    /// Lets paused clients go on when a pause is over. Those that another one holds come back.
    pub(super) fn release_paused(&mut self) {
        if self.paused.is_empty() {
            return;
        }
        let pause = self.pause();
        if pause != self.pause_seen {
            self.pause_seen = pause;
            self.resumable.append(&mut self.paused);
        }
    }

    /// Looks at every connection: idle for too long, or over its output limit for too long.
    fn check_connections(&mut self) {
        let timeout_ms = u64::from(self.host.config.timeout_s) * 1000;
        let mut dead = Vec::new();
        for number in self.connections.numbers() {
            let Some(mut connection) = self.connections.take(number) else {
                continue;
            };
            let flags = connection.client.flags.load(Ordering::Relaxed);
            let idle_ms = self
                .now_ms
                .saturating_sub(connection.client.active_ms.load(Ordering::Relaxed));
            let may_idle = flags & (flag::BLOCKED | flag::PUBSUB | flag::MONITOR) != 0;
            if timeout_ms > 0 && idle_ms > timeout_ms && !may_idle {
                verbose!("Closing idle client");
                connection.is_dead = true;
            }
            if self.is_late(&connection) {
                verbose!("Closing a client whose TLS handshake takes too long");
                connection.is_dead = true;
            }
            if !connection.output.is_empty() {
                self.check_output(&mut connection);
            }
            if connection.is_dead {
                dead.push(number);
            }
            self.connections.put(connection);
        }
        for number in dead {
            if let Some(connection) = self.connections.take(number) {
                self.close(connection);
            }
        }
        self.evict_clients();
    }

    /// Works out from how many ticks on a command is slow.
    pub(super) fn note_slow_ticks(&mut self) {
        let slow_us = self.host.config.slowlog_log_slower_than_us;
        let monitored_us = self.host.config.latency_monitor_threshold_ms * 1000;
        let us = match i64::try_from(monitored_us) {
            Ok(monitored_us) if monitored_us > 0 && slow_us >= 0 => slow_us.min(monitored_us),
            Ok(monitored_us) if monitored_us > 0 => monitored_us,
            _ => slow_us,
        };
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        #[allow(clippy::cast_sign_loss)] // Not negative, and saturating.
        let ticks = match u64::try_from(us) {
            // What took no time at all did not run.
            Ok(us) => ((us as f64 * self.ticks_per_us) as u64).max(1),
            Err(_) => u64::MAX,
        };
        let (ticks, counts_keys) = match self.shared.hotkeys.is_active() {
            true => (1, true),
            false => (ticks, false),
        };
        self.executor
            .time_each(counts_keys || (0..TOGETHER_US).contains(&us));
        self.slow_ticks = ticks;
        self.host.slow_ticks = ticks;
    }

    /// Shows how much waits to be freed.
    pub(super) fn publish_graveyard(&mut self) {
        let thread = usize::from(self.host.thread);
        let graveyard = self.executor.graveyard();
        let (pending, freed) = (graveyard.pending() as u64, graveyard.freed());
        self.shared.lazyfree_pending[thread].store(pending, Ordering::Relaxed);
        self.shared.lazyfreed[thread].store(freed, Ordering::Relaxed);
    }
}
