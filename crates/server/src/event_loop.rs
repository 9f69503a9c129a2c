//! One thread's loop: wait, read, run, write.
//!
//! A turn takes what epoll reports. For a readable connection it makes one read, decodes all whole
//! requests, runs them in windows whose keys were prefetched, and makes one write. Between turns it
//! takes its inbox, ends waits whose time is up, removes dead keys and frees what was left behind,
//! each with bounded work.
//!
//! # Invariants
//! - Nothing is read, written or freed while a stripe is locked, but small values.
//! - A connection that is held (its client waits, is paused, or has replies to take first) is not
//!   served; what it sends meanwhile stays in its buffer, and is bounded by the query limit.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::executor::{Executor, Request};
use engine::keyspace::{Keyspace, Phase};
use engine::session::Session;
use engine::settings::{Eviction, Order, Settings};
use resp::{Args, Batch, Limits, Output, OwnedArgs};
use structure::stripes::RawLock;

use crate::alloc::Spare;
use crate::config::{Config, MaxmemoryPolicy};
use crate::connection::Connection;
use crate::host::ThreadHost;
use crate::inbox::Message;
use crate::listener::Listener;
use crate::persistence::{self, Loading, Replaying};
use crate::shared::{Network, Shared, flag};
use crate::sys::{self, Epoll, Signals};
use crate::{notice, verbose, warning};

mod ahead;
mod client_memory;
mod clients;
mod connections;
mod logging;
mod periodic;
mod requests;
mod saving;
mod tls;

use connections::Connections;

/// Bytes that one read may take.
const READ_BYTES: usize = 64 * 1024;
/// Tokens of what is no connection; theirs are far smaller.
const TOKEN_INBOX: u64 = u64::MAX;
const TOKEN_SIGNALS: u64 = u64::MAX - 1;
const TOKEN_LISTENERS: u64 = u64::MAX - 1024;
/// Tokens of connections with TLS are no smaller than this; those of plain ones are.
const TOKEN_TLS: u64 = 1 << 63;
/// Bytes of frames that are handed over before the end of a turn, while they are still near.
const FRAME_BYTES: usize = 64 * 1024;
/// Elements freed a turn while the loop is idle otherwise.
const FREE_BUDGET: usize = 512;

/// A thread's loop.
pub struct EventLoop<'k, L: RawLock> {
    shared: Arc<Shared>,
    host: ThreadHost,
    executor: Executor<'k, L>,
    settings: Settings,
    config_version: u64,
    users_version: u64,
    epoll: Epoll,
    connections: Connections,
    listeners: Arc<Vec<Arc<Listener>>>,
    listening_version: u64,
    signals: Option<Signals>,
    /// When waits end: milliseconds and client.
    deadlines: BTreeSet<(u64, u64)>,
    /// The snapshot that is being loaded.
    loading: Option<Loading>,
    /// The log that is being loaded.
    replaying: Option<Replaying<'k, L>>,
    /// Clients whose replies wait for the log, and for which frame, in ascending order.
    held: VecDeque<(u64, u64)>,
    /// Whether the log counts this loop among those that keep replies.
    is_holder: bool,
    /// Clients that wait until something is on the disk, or done.
    awaiting: Vec<u64>,
    /// Whether the disk is to be asked, once it was told of this turn's changes.
    wants_sync: bool,
    /// When it may be asked again: Unix milliseconds.
    next_sync_ms: u64,
    /// Whether commands that write are refused because the log cannot be written.
    refuses_unlogged: bool,
    /// Clients that monitor.
    monitors: BTreeSet<u64>,
    /// Connections that hold whole requests and may go on.
    resumable: Vec<u64>,
    /// Connections that got something to send from elsewhere.
    dirty: Vec<u64>,
    /// What is done about memory that became free.
    spare: Spare,
    /// Connections that a pause holds.
    paused: Vec<u64>,
    /// Whether a pause held all commands, and writes, when the first of `paused` came or they were
    /// looked at last.
    pause_seen: (bool, bool),
    buf: Vec<u8>,
    /// What was read of the connection whose turn is next.
    ahead: ahead::Ahead,
    /// That connection, where its event is one of reading only.
    next_read: Option<u64>,
    /// Counting the sizes of keys.
    sizes: crate::keysizes::Pass,
    /// What there is of TLS.
    tls: tls::TlsTurn,
    /// The requests of the connection whose turn it is, and their replies: lent to the turn, which
    /// moves a pointer.
    batch: Option<Box<Batch>>,
    out: Option<Box<Output>>,
    now_ms: u64,
    next_tick_ms: u64,
    next_check_ms: u64,
    /// When accepting goes on after it failed; 0 while it does.
    accepts_again_ms: u64,
    next_thread: usize,
    /// At which of this thread's stripes removing dead keys goes on.
    expire_from: usize,
    ticks_per_us: f64,
    /// From how many ticks on a command goes to the slow log.
    slow_ticks: u64,
    /// This loop's part of a snapshot under way.
    saving: Option<saving::Saving>,
    /// How many snapshots this loop has seen begin.
    snapshots_seen: u64,
    next_save_check_ms: u64,
    /// When anything came from a client last: Unix milliseconds.
    active_ms: u64,
}

/// Adds to a counter that only the client's own thread writes: a plain store, no locked one.
#[inline]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

impl<'k, L: RawLock> EventLoop<'k, L> {
    /// The loop of thread `thread` on `keyspace`.
    ///
    /// # Errors
    /// Where epoll cannot be set up.
    pub fn new(
        keyspace: &'k Keyspace<L>,
        shared: Arc<Shared>,
        thread: u16,
        signals: Option<Signals>,
        seed: u64,
    ) -> std::io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(
            shared.inboxes[usize::from(thread)].fd(),
            TOKEN_INBOX,
            true,
            false,
        )?;
        if let Some(signals) = &signals {
            epoll.add(signals.fd(), TOKEN_SIGNALS, true, false)?;
        }
        let stats = shared.stats[usize::from(thread)].clone();
        let host = ThreadHost::new(thread, shared.clone(), seed);
        let settings = settings_of(&host.config);
        let mut event_loop = Self {
            host,
            executor: Executor::new(keyspace, stats),
            settings,
            config_version: 0,
            users_version: 0,
            epoll,
            connections: Connections::default(),
            listeners: Arc::default(),
            listening_version: 0,
            signals,
            deadlines: BTreeSet::new(),
            loading: None,
            replaying: None,
            held: VecDeque::new(),
            is_holder: false,
            awaiting: Vec::new(),
            wants_sync: false,
            next_sync_ms: 0,
            refuses_unlogged: false,
            monitors: BTreeSet::new(),
            resumable: Vec::new(),
            dirty: Vec::new(),
            paused: Vec::new(),
            spare: Spare::default(),
            pause_seen: (false, false),
            buf: Vec::with_capacity(READ_BYTES),
            ahead: ahead::Ahead::default(),
            next_read: None,
            sizes: crate::keysizes::Pass::default(),
            tls: tls::TlsTurn::default(),
            batch: None,
            out: Some(Box::new(Output::with_capacity(READ_BYTES))),
            now_ms: 0,
            next_tick_ms: 0,
            next_check_ms: 0,
            accepts_again_ms: 0,
            next_thread: 0,
            expire_from: 0,
            ticks_per_us: 1000.0,
            slow_ticks: u64::MAX,
            saving: None,
            snapshots_seen: 0,
            next_save_check_ms: 0,
            active_ms: 0,
            shared,
        };
        event_loop.adopt_listeners();
        Ok(event_loop)
    }

    /// Runs until the server stops.
    pub fn run(&mut self) {
        while !self.shared.shutdown.load(Ordering::Acquire) {
            let wait_ms = self.wait_ms();
            let ready = match self.epoll.wait(wait_ms) {
                Ok(ready) => ready,
                Err(error) => panic!("epoll_wait failed: {error}"),
            };
            let now_us = sys::unix_us();
            let began = structure::ticks::now();
            self.now_ms = now_us / 1000;
            self.host.refresh(now_us);
            if self.config_version != self.shared.config_version.load(Ordering::Acquire) {
                self.adopt_config();
                self.adopt_users(None);
            }
            self.refuse_writes();
            self.refuse_unlogged();
            for index in 0..ready {
                let event = self.epoll.event(index);
                if !self.host.said_early.is_empty() {
                    self.run_early();
                }
                match event.token {
                    TOKEN_INBOX => self.take_inbox(),
                    TOKEN_SIGNALS => self.take_signals(),
                    token if token >= TOKEN_TLS => {
                        self.take_other(token, event.readable, event.writable);
                    }
                    token => {
                        self.active_ms = self.now_ms;
                        if event.writable {
                            self.flush_at(token);
                        }
                        if event.readable {
                            self.next_read = self.next_read(index + 1, ready);
                            self.read(token);
                        }
                        if self.executor.frames().len_bytes() >= FRAME_BYTES {
                            self.hand_over();
                        }
                    }
                }
            }
            self.settle();
            if self.loading.is_some() {
                self.load();
            }
            if self.replaying.is_some() {
                self.replay();
            }
            self.hand_over();
            if !self.shared.keys.is_serving() && self.host.thread == 0 {
                self.reload_log();
            }
            self.network().cycles.add(1);
            if ready > 0 {
                let ticks = structure::ticks::now().wrapping_sub(began);
                self.network().busy_ticks.add(ticks);
                self.network().busy_cycles.add(1);
            }
        }
        self.hand_over();
        self.release_last();
        self.close_all();
        self.hand_over();
        if self.host.thread == 0 {
            persistence::snapshot::abandon(&self.shared);
        }
    }

    /// The connection of event `index` of `ready`, if it is one that needs a plain read alone.
    #[inline]
    fn next_read(&self, index: usize, ready: usize) -> Option<u64> {
        let event = (index < ready).then(|| self.epoll.event(index))?;
        let is_plain = event.token < TOKEN_TLS;
        (is_plain && event.readable && !event.writable).then_some(event.token)
    }

    /// This thread's counters.
    fn network(&self) -> &Network {
        &self.shared.network[usize::from(self.host.thread)]
    }

    /// What is done once a turn, whatever happened in it.
    fn settle(&mut self) {
        if !self.host.said_early.is_empty() {
            self.run_early();
        }
        if self.now_ms >= self.next_tick_ms {
            self.tick();
        }
        self.end_waits();
        self.release_paused();
        if !self.held.is_empty() {
            self.release_held();
        }
        if !self.awaiting.is_empty() {
            self.release_awaiting();
        }
        while !self.resumable.is_empty() || !self.host.local.is_empty() {
            self.deliver_local();
            for number in std::mem::take(&mut self.resumable) {
                self.resume(number);
            }
        }
        for number in std::mem::take(&mut self.dirty) {
            self.flush(number);
        }
        if !self.executor.graveyard().is_empty() {
            self.executor.graveyard().free_some(FREE_BUDGET);
            self.publish_graveyard();
        }
        if self.saving.is_some() || self.snapshots_seen != self.shared.snapshots.begun() {
            self.save_some();
        }
    }

    /// How long the next wait may be.
    fn wait_ms(&mut self) -> i32 {
        let has_work =
            !self.executor.graveyard().is_empty() || self.is_loading() || self.may_release();
        if has_work || !self.resumable.is_empty() {
            return 0;
        }
        let mut until = self.next_tick_ms;
        if let Some(&(deadline, _)) = self.deadlines.first() {
            until = until.min(deadline + 1);
        }
        if !self.paused.is_empty()
            && let Some(end) = self.shared.pause.next_end_ms(self.now_ms)
        {
            until = until.min(end);
        }
        // Only a client that waits for a moment needs the time to the millisecond.
        let now = if self.deadlines.is_empty() {
            self.now_ms
        } else {
            sys::unix_us().div_ceil(1000)
        };
        let wait_ms = i32::try_from(until.saturating_sub(now)).unwrap_or(i32::MAX);
        match self.saving_wait_ms() {
            Some(most) => wait_ms.min(most),
            None => wait_ms,
        }
    }

    fn adopt_config(&mut self) {
        self.config_version = self.shared.config_version.load(Ordering::Acquire);
        self.host.config = self.shared.config();
        self.settings = settings_of(&self.host.config);
        self.note_slow_ticks();
        self.adopt_listeners();
    }

    /// Loads a snapshot, some keys each turn, before the loop serves commands as usual.
    pub fn begin_loading(&mut self, loading: Loading) {
        self.loading = Some(loading);
    }

    fn is_loading(&self) -> bool {
        self.loading.is_some() || self.replaying.is_some()
    }

    fn load(&mut self) {
        let Some(loading) = &mut self.loading else {
            return;
        };
        let stripes = &self.executor.keyspace().stripes;
        let step = loading.step(|with| with(&mut stripes.acquire(stripes.all()).held()));
        match step {
            Ok(false) => {}
            Ok(true) => {
                self.loading = None;
                match self.begin_log() {
                    Ok(()) => self.loaded(),
                    Err(error) => self.shared.fail(error),
                }
            }
            Err(error) => {
                self.loading = None;
                self.shared.fail(error);
            }
        }
    }

    fn take_signals(&mut self) {
        while let Some(signal) = self.signals.as_ref().and_then(Signals::take) {
            let config = self.shared.config();
            let (name, flags) = if signal == libc::SIGINT {
                ("SIGINT", config.shutdown_on_sigint)
            } else {
                ("SIGTERM", config.shutdown_on_sigterm)
            };
            notice!("Received {name} scheduling shutdown...");
            let wanted = match (flags.save, flags.nosave) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            };
            let stripes = &self.executor.keyspace().stripes;
            let mut guard = stripes.acquire(stripes.all());
            let held = &mut guard.held();
            sys::interrupts_end(true);
            if persistence::stop(&self.shared, &config, held, wanted, flags.force).is_err() {
                sys::interrupts_end(false);
                warning!(
                    "{name} received but errors trying to shut down the server, check the logs for \
                     more information"
                );
            }
        }
    }
}

/// What the engine reads of a configuration.
pub fn settings_of(config: &Config) -> Settings {
    let size = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    Settings {
        databases: config.databases,
        notify: config.notify_keyspace_events,
        tracking_keys_max: config.tracking_table_max_keys,
        maxmemory: config.maxmemory_bytes,
        eviction: eviction_of(config.maxmemory_policy),
        eviction_samples: config.maxmemory_samples,
        lfu: matches!(
            config.maxmemory_policy,
            MaxmemoryPolicy::AllkeysLfu | MaxmemoryPolicy::VolatileLfu
        ),
        lfu_log_factor: config.lfu_log_factor,
        lfu_decay_minutes: config.lfu_decay_time_min,
        string_bytes_max: config.proto_max_bulk_len_bytes,
        hash_listpack_entries: size(config.hash_max_listpack_entries),
        hash_listpack_value: size(config.hash_max_listpack_value_bytes),
        hll_sparse_bytes: size(config.hll_sparse_max_bytes),
        list_limit: structure::list::Limit::new(i64::from(config.list_max_listpack_size)),
        set_intset_entries: size(config.set_max_intset_entries),
        set_listpack_entries: size(config.set_max_listpack_entries),
        set_listpack_value: size(config.set_max_listpack_value_bytes),
        zset_listpack_entries: size(config.zset_max_listpack_entries),
        zset_listpack_value: size(config.zset_max_listpack_value_bytes),
        stream_node_bytes: size(config.stream_node_max_bytes),
        stream_node_entries: size(config.stream_node_max_entries),
        stream_idmp_duration: u64::from(config.stream_idmp_duration_s),
        stream_idmp_maxsize: u64::from(config.stream_idmp_maxsize),
        array_slice_size: config.array_slice_size,
        array_sparse_kmax: config.array_sparse_kmax,
    }
}

fn eviction_of(policy: MaxmemoryPolicy) -> Eviction {
    match policy {
        MaxmemoryPolicy::NoEviction => Eviction::None,
        MaxmemoryPolicy::VolatileLru => Eviction::Timed(Order::LastUse),
        MaxmemoryPolicy::VolatileLfu => Eviction::Timed(Order::Frequency),
        MaxmemoryPolicy::VolatileRandom => Eviction::Timed(Order::Random),
        MaxmemoryPolicy::VolatileTtl => Eviction::Timed(Order::Deadline),
        MaxmemoryPolicy::VolatileLrm => Eviction::Timed(Order::LastChange),
        MaxmemoryPolicy::AllkeysLru => Eviction::All(Order::LastUse),
        MaxmemoryPolicy::AllkeysLfu => Eviction::All(Order::Frequency),
        MaxmemoryPolicy::AllkeysRandom => Eviction::All(Order::Random),
        MaxmemoryPolicy::AllkeysLrm => Eviction::All(Order::LastChange),
    }
}
