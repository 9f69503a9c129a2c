//! What all threads of the server share, beside the keyspace.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use engine::host::ClientId;
use engine::keyspace::Shared as Keys;
use engine::stats::{Counter, ThreadStats};
use parking_lot::{Mutex, RwLock};

use crate::config::Config;
use crate::inbox::{Inbox, Message, Peer};
use crate::scripting::Registry;

/// The server's shared state.
pub struct Shared {
    /// What the engine shares.
    pub keys: Arc<Keys>,
    config: RwLock<Arc<Config>>,
    /// Grows with each change of the configuration.
    pub config_version: AtomicU64,
    /// Held while a CONFIG SET is carried out.
    pub config_change: Mutex<()>,
    /// One inbox a thread.
    pub inboxes: Vec<Inbox>,
    /// Counters of each thread.
    pub stats: Vec<Arc<ThreadStats>>,
    /// Counters of each thread's network.
    pub network: Vec<Network>,
    /// Every client, by number.
    pub clients: Mutex<BTreeMap<u64, Arc<Client>>>,
    /// The number of the next client.
    pub next_client: AtomicU64,
    /// How many clients there are.
    pub client_count: AtomicUsize,
    /// How many clients monitor.
    pub monitors: AtomicUsize,
    /// Rates.
    pub samples: Mutex<crate::samples::Samples>,
    /// The latency monitor.
    pub latency: Mutex<crate::latency::Latency>,
    /// Bytes in use when the server was ready.
    pub startup_bytes: AtomicU64,
    /// When memory was at its peak: Unix seconds, and the peak then.
    pub memory_peak: Mutex<(u64, usize)>,
    /// Names the data set to replicas: 40 hexadecimal digits.
    pub replication_id: Mutex<String>,
    /// The slow log.
    pub slowlog: Mutex<SlowLog>,
    /// Where the server listens.
    pub listening: crate::listener::Listening,
    /// What new connections with TLS are served with.
    pub tls: crate::tls::Current,
    /// INFO keysizes.
    pub keysizes: crate::keysizes::Keysizes,
    /// HOTKEYS.
    pub hotkeys: crate::hotkeys::Hotkeys,
    /// The users.
    pub users: crate::users::Users,
    /// Scripts and functions.
    pub scripts: Registry,
    /// CLIENT PAUSE.
    pub pause: Pause,
    /// The append-only log.
    pub log: crate::persistence::log_thread::LogThread,
    /// The backup.
    pub backup: crate::persistence::backup::Backup,
    /// How saving and loading stand.
    pub persistence: crate::persistence::Status,
    /// Snapshots in the background.
    pub snapshots: crate::persistence::Snapshots,
    /// Set when the server is to stop.
    pub shutdown: AtomicBool,
    /// When the server started: Unix microseconds.
    pub started_us: u64,
    /// The processor's clock then.
    pub started_ticks: u64,
    /// 40 hexadecimal digits, new at each start.
    pub run_id: String,
    /// DEBUG SET-ACTIVE-EXPIRE.
    pub active_expire: AtomicBool,
    /// DEBUG PAUSE-CRON.
    pub cron_paused: AtomicBool,
    /// Values that wait to be freed, by thread.
    pub lazyfree_pending: Vec<AtomicU64>,
    /// Values freed off the locks, by thread.
    pub lazyfreed: Vec<AtomicU64>,
}

/// What a thread counts of its connections.
#[derive(Default)]
pub struct Network {
    /// Connections that it served.
    pub connections: Counter,
    /// Connections refused: too many, or protected mode.
    pub rejected: Counter,
    /// Bytes read.
    pub input_bytes: Counter,
    /// Bytes written.
    pub output_bytes: Counter,
    /// Reads.
    pub reads: Counter,
    /// Writes.
    pub writes: Counter,
    /// Clients dropped for a query buffer past its limit.
    pub query_limit_drops: Counter,
    /// Clients dropped for an output buffer past its limit.
    pub output_limit_drops: Counter,
    /// Clients closed because all together took too much memory.
    pub evicted: Counter,
    /// Turns of the event loop.
    pub cycles: Counter,
    /// Those in which something came.
    pub busy_cycles: Counter,
    /// Ticks of the processor's clock in those, without waiting.
    pub busy_ticks: Counter,
    /// Batches whose keys were prefetched.
    pub prefetch_batches: Counter,
    /// Commands in them.
    pub prefetch_entries: Counter,
}

impl Network {
    fn reset(&self) {
        let counters = [
            &self.connections,
            &self.rejected,
            &self.input_bytes,
            &self.output_bytes,
            &self.reads,
            &self.writes,
            &self.query_limit_drops,
            &self.output_limit_drops,
            &self.evicted,
            &self.cycles,
            &self.busy_cycles,
            &self.busy_ticks,
            &self.prefetch_batches,
            &self.prefetch_entries,
        ];
        counters.iter().for_each(|counter| counter.reset());
    }
}

/// CLIENT PAUSE.
#[derive(Default)]
pub struct Pause {
    /// Until when everything waits: Unix milliseconds; 0 when there is no such pause.
    pub all_until_ms: AtomicU64,
    /// Until when writes wait.
    pub writes_until_ms: AtomicU64,
}

impl Pause {
    /// Whether all commands wait, and whether writes do.
    pub fn at(&self, now_ms: u64) -> (bool, bool) {
        let all = self.all_until_ms.load(Ordering::Relaxed) > now_ms;
        let writes = self.writes_until_ms.load(Ordering::Relaxed) > now_ms;
        (all, all || writes)
    }

    /// When the first of the pauses ends that last at `now_ms`.
    pub fn next_end_ms(&self, now_ms: u64) -> Option<u64> {
        [&self.all_until_ms, &self.writes_until_ms]
            .iter()
            .map(|until| until.load(Ordering::Relaxed))
            .filter(|&until| until > now_ms)
            .min()
    }
}

/// What others may see of a client. Its own thread writes; everybody reads.
pub struct Client {
    /// Who it is.
    pub id: ClientId,
    /// Where it is.
    pub peer: Peer,
    /// Its descriptor.
    pub fd: i32,
    /// When it came: Unix milliseconds.
    pub created_ms: u64,
    /// Names that it gave.
    pub names: Mutex<Names>,
    /// When it was last heard of: Unix milliseconds.
    pub active_ms: AtomicU64,
    /// Its database.
    pub db: AtomicU32,
    /// Channels, patterns and shard channels that it listens to.
    pub subscriptions: [AtomicU32; 3],
    /// Commands queued by MULTI; -1 outside.
    pub multi: AtomicI64,
    /// Keys that it watches.
    pub watches: AtomicU32,
    /// Who gets its invalidations: 0 for itself, -1 where there are none.
    pub redirect: AtomicI64,
    /// Bytes of its query buffer.
    pub query_bytes: AtomicUsize,
    /// Bytes that its query buffer has room for beside those.
    pub query_free: AtomicUsize,
    /// Bytes of the words of the command that it waits in, or of the one that asks.
    pub argv_bytes: AtomicUsize,
    /// Bytes of the commands queued by MULTI.
    pub multi_bytes: AtomicUsize,
    /// Bytes that wait to be sent.
    pub output_bytes: AtomicUsize,
    /// Those of them that other clients get too.
    pub output_shared: AtomicUsize,
    /// Segments that wait to be sent.
    pub output_segments: AtomicUsize,
    /// Bytes read and written so far.
    pub total_in: AtomicU64,
    /// Bytes written so far.
    pub total_out: AtomicU64,
    /// Commands so far.
    pub commands: AtomicU64,
    /// Reads of its socket.
    pub reads: AtomicU64,
    /// Reads that brought at least one command.
    pub batches: AtomicU64,
    /// Its last command, as numbered in the table.
    pub last_command: AtomicU16,
    /// 2 or 3.
    pub protocol: AtomicU8,
    /// Bits of [`flag`].
    pub flags: AtomicU32,
}

/// What a client gave as its names.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// CLIENT SETNAME.
    pub name: Box<[u8]>,
    /// CLIENT SETINFO LIB-NAME.
    pub library: Box<[u8]>,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: Box<[u8]>,
    /// The user that it authenticated as.
    pub user: Box<[u8]>,
}

/// Bits of a client's state.
pub mod flag {
    /// It waits for a key.
    pub const BLOCKED: u32 = 1 << 0;
    /// It monitors.
    pub const MONITOR: u32 = 1 << 1;
    /// It is subscribed.
    pub const PUBSUB: u32 = 1 << 2;
    /// It is inside MULTI.
    pub const MULTI: u32 = 1 << 3;
    /// A watched key of its was changed.
    pub const DIRTY: u32 = 1 << 4;
    /// CLIENT NO-EVICT.
    pub const NO_EVICT: u32 = 1 << 5;
    /// CLIENT NO-TOUCH.
    pub const NO_TOUCH: u32 = 1 << 6;
    /// It is closed once its output is sent.
    pub const CLOSING: u32 = 1 << 7;
    /// It has not authenticated.
    pub const UNAUTHENTICATED: u32 = 1 << 8;
    /// It came over a Unix socket.
    pub const UNIX: u32 = 1 << 9;
    /// CLIENT TRACKING.
    pub const TRACKING: u32 = 1 << 10;
    /// Whoever was to get its invalidations is gone.
    pub const BROKEN_REDIRECT: u32 = 1 << 11;
    /// It tracks in broadcast mode.
    pub const BROADCAST: u32 = 1 << 12;
    /// It is to be closed, because clients take too much memory.
    pub const EVICTED: u32 = 1 << 13;
    /// Those that nothing in its session shows.
    pub const KEPT: u32 = NO_EVICT | UNIX | EVICTED;
}

/// The slow log: the newest first.
#[derive(Default)]
pub struct SlowLog {
    /// Entries.
    pub entries: VecDeque<SlowEntry>,
    /// The number of the next entry.
    pub next: u64,
    /// Microseconds of all commands that were ever logged.
    pub took_us_sum: u64,
    /// Microseconds of the slowest one.
    pub took_us_max: u64,
}

/// A command that took long.
#[derive(Clone, Debug)]
pub struct SlowEntry {
    /// Its number.
    pub number: u64,
    /// When it ran: Unix seconds.
    pub at_s: u64,
    /// Microseconds that it took.
    pub took_us: u64,
    /// Its words, cut short.
    pub words: Vec<Vec<u8>>,
    /// How many words it had.
    pub words_count: usize,
    /// The client's address.
    pub address: String,
    /// The client's name.
    pub name: Box<[u8]>,
}

impl Client {
    /// A client that just came.
    pub fn new(id: ClientId, peer: Peer, fd: i32, now_ms: u64) -> Self {
        let flags = if peer.is_unix { flag::UNIX } else { 0 };
        Self {
            id,
            peer,
            fd,
            created_ms: now_ms,
            names: Mutex::new(Names {
                user: (*b"default").into(),
                ..Names::default()
            }),
            active_ms: AtomicU64::new(now_ms),
            db: AtomicU32::new(0),
            subscriptions: Default::default(),
            multi: AtomicI64::new(-1),
            watches: AtomicU32::new(0),
            redirect: AtomicI64::new(-1),
            query_bytes: AtomicUsize::new(0),
            query_free: AtomicUsize::new(0),
            argv_bytes: AtomicUsize::new(0),
            multi_bytes: AtomicUsize::new(0),
            output_bytes: AtomicUsize::new(0),
            output_shared: AtomicUsize::new(0),
            output_segments: AtomicUsize::new(0),
            total_in: AtomicU64::new(0),
            total_out: AtomicU64::new(0),
            commands: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            batches: AtomicU64::new(0),
            last_command: AtomicU16::new(u16::MAX),
            protocol: AtomicU8::new(2),
            flags: AtomicU32::new(flags),
        }
    }

    /// Sets or clears a bit of [`flag`]; returns whether it was set.
    pub fn set_flag(&self, bit: u32, on: bool) -> bool {
        let old = if on {
            self.flags.fetch_or(bit, Ordering::Relaxed)
        } else {
            self.flags.fetch_and(!bit, Ordering::Relaxed)
        };
        old & bit != 0
    }
}

impl Shared {
    /// The shared state of a server with `threads` threads.
    ///
    /// # Errors
    /// Where the inboxes cannot be made.
    pub fn new(
        keys: Arc<Keys>,
        config: Config,
        threads: usize,
        run_id: String,
    ) -> std::io::Result<Self> {
        let commands = keys.table.len();
        let mut inboxes = Vec::new();
        for _ in 0..threads {
            inboxes.push(Inbox::new()?);
        }
        Ok(Self {
            keys,
            config: RwLock::new(Arc::new(config)),
            config_version: AtomicU64::new(1),
            config_change: Mutex::default(),
            inboxes,
            stats: (0..threads)
                .map(|_| Arc::new(ThreadStats::new(commands)))
                .collect(),
            network: (0..threads).map(|_| Network::default()).collect(),
            clients: Mutex::default(),
            next_client: AtomicU64::new(1),
            client_count: AtomicUsize::new(0),
            monitors: AtomicUsize::new(0),
            samples: Mutex::default(),
            latency: Mutex::default(),
            startup_bytes: AtomicU64::new(0),
            memory_peak: Mutex::default(),
            replication_id: Mutex::new(run_id.chars().rev().collect()),
            slowlog: Mutex::default(),
            listening: crate::listener::Listening::default(),
            tls: crate::tls::Current::default(),
            keysizes: crate::keysizes::Keysizes::new(threads),
            hotkeys: crate::hotkeys::Hotkeys::new(threads),
            users: crate::users::Users::default(),
            scripts: Registry::default(),
            pause: Pause::default(),
            log: crate::persistence::log_thread::LogThread::default(),
            backup: crate::persistence::backup::Backup::default(),
            persistence: crate::persistence::Status::new(crate::sys::unix_us() / 1_000_000),
            snapshots: crate::persistence::Snapshots::default(),
            shutdown: AtomicBool::new(false),
            started_us: crate::sys::unix_us(),
            started_ticks: structure::ticks::now(),
            run_id,
            active_expire: AtomicBool::new(true),
            cron_paused: AtomicBool::new(false),
            lazyfree_pending: (0..threads).map(|_| AtomicU64::new(0)).collect(),
            lazyfreed: (0..threads).map(|_| AtomicU64::new(0)).collect(),
        })
    }

    /// The configuration now.
    pub fn config(&self) -> Arc<Config> {
        self.config.read().clone()
    }

    /// Replaces the configuration, and tells all threads.
    pub fn set_config(&self, config: Config) {
        *self.config.write() = Arc::new(config);
        self.config_version.fetch_add(1, Ordering::Release);
        self.wake_all();
    }

    /// Tells all threads that users were changed.
    pub fn users_changed(&self) {
        self.look_again();
    }

    /// Has all threads take over again what they keep of the shared state.
    pub fn look_again(&self) {
        self.config_version.fetch_add(1, Ordering::Release);
        self.wake_all();
    }

    /// Makes every thread look at the shared state.
    pub fn wake_all(&self) {
        self.inboxes
            .iter()
            .for_each(|inbox| inbox.send(Message::Look));
    }

    /// Tells the thread of a client.
    pub fn tell(&self, id: ClientId, message: Message) {
        if let Some(inbox) = self.inboxes.get(usize::from(id.thread)) {
            inbox.send(message);
        }
    }

    /// Stops the server.
    pub fn shut_down(&self) {
        self.shutdown.store(true, Ordering::Release);
        self.wake_all();
    }

    /// How many ticks of the processor's clock a microsecond has, measured since the start.
    pub fn ticks_per_us(&self) -> f64 {
        let us = crate::sys::unix_us().saturating_sub(self.started_us).max(1);
        let ticks = structure::ticks::now().wrapping_sub(self.started_ticks);
        #[allow(clippy::cast_precision_loss)] // A ratio.
        let ratio = ticks as f64 / us as f64;
        ratio.max(1.0)
    }

    /// Commands that were run so far.
    pub fn commands_processed(&self) -> u64 {
        let commands = self.stats.iter().flat_map(|stats| &stats.commands);
        commands.map(|command| command.calls.get()).sum()
    }

    /// Bytes in use; notes where that is a new peak.
    pub fn used_bytes(&self) -> usize {
        let used = crate::alloc::used_bytes();
        let mut peak = self.memory_peak.lock();
        if used > peak.1 {
            *peak = (crate::sys::unix_us() / 1_000_000, used);
        }
        used
    }

    /// Starts all counters of INFO again at 0.
    pub fn reset_stats(&self) {
        self.stats.iter().for_each(|stats| stats.reset());
        self.network.iter().for_each(Network::reset);
        self.samples.lock().reset();
        self.scripts.reset_stats();
        let mut slowlog = self.slowlog.lock();
        (slowlog.took_us_sum, slowlog.took_us_max) = (0, 0);
        self.lazyfreed
            .iter()
            .for_each(|freed| freed.store(0, Ordering::Relaxed));
    }

    /// Adds up a counter over all threads.
    pub fn network_sum(&self, counter: impl Fn(&Network) -> &Counter) -> u64 {
        self.network
            .iter()
            .map(|network| counter(network).get())
            .sum()
    }

    /// Something that changes while clients are active.
    pub fn activity(&self) -> u64 {
        self.network_sum(|network| &network.reads)
    }
}
