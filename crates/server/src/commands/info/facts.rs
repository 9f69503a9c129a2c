//! What INFO, MEMORY and LATENCY tell: gathered once, while every stripe is locked.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::Context;
use engine::pubsub::ChannelKind;
use engine::stats::{Counter, KeyspaceStats};

use crate::config::Config;
use crate::host::ThreadHost;
use crate::keysizes::{self, Histogram};
use crate::samples::Rates;
use crate::scripting::Registry;
use crate::shared::{Client, Network, Shared, flag};
use crate::sys::{self, CpuOf, CpuTime};

/// Records looked at to estimate how long keys have to live.
const TTL_SAMPLES: usize = 64;

/// The facts at one moment.
pub struct Facts {
    /// The server.
    pub shared: Arc<Shared>,
    /// Its configuration.
    pub config: Arc<Config>,
    /// Unix microseconds.
    pub now_us: u64,
    /// Ticks of the processor's clock in a microsecond.
    pub ticks_per_us: f64,
    /// Counters of all stripes.
    pub keyspace: KeyspaceStats,
    /// Each database that holds keys.
    pub dbs: Vec<DbFacts>,
    /// Bytes of all tables, without what they hold.
    pub table_bytes: usize,
    /// Keys that some client watches.
    pub watched_keys: usize,
    /// Keys that some client waits for.
    pub blocking_keys: usize,
    /// Those of them that must hear when a key goes away.
    pub blocking_on_nokey: usize,
    /// What clients hold.
    pub clients: ClientFacts,
    /// Scripts and functions.
    pub scripts: ScriptFacts,
    /// Rates.
    pub rates: Rates,
    /// Bytes in use.
    pub used_bytes: usize,
    /// Bytes that the system gave us.
    pub rss_bytes: u64,
    /// Channels, and patterns, and shard channels that somebody listens to.
    pub channels: [usize; 3],
    /// Processor time of this thread.
    pub thread_cpu: CpuTime,
    /// The sizes of keys, where they are asked for.
    pub sizes: Option<Histogram>,
}

/// Scripts and functions.
pub struct ScriptFacts {
    /// Bytes of the Lua states for EVAL.
    pub vm_eval: usize,
    /// Bytes of the Lua states for functions.
    pub vm_functions: usize,
    /// Bytes of scripts.
    pub eval_bytes: usize,
    /// Bytes of libraries.
    pub function_bytes: usize,
    /// Scripts that are kept.
    pub cached: usize,
    /// Scripts forgotten for want of room.
    pub evicted: u64,
    /// Functions.
    pub functions: usize,
    /// Libraries.
    pub libraries: usize,
}

impl ScriptFacts {
    fn of(registry: &Registry) -> Self {
        let [vm_eval, vm_functions] = registry.vm_bytes();
        let libraries = registry.libraries.now();
        Self {
            vm_eval,
            vm_functions,
            eval_bytes: registry.bytes(),
            function_bytes: libraries.bytes(),
            cached: registry.count(),
            evicted: registry.evicted(),
            functions: libraries.function_count(),
            libraries: libraries.libraries.len(),
        }
    }

    /// Bytes of all Lua states.
    pub fn vm_total(&self) -> usize {
        self.vm_eval + self.vm_functions
    }
}

/// One database.
pub struct DbFacts {
    /// Its number.
    pub number: u32,
    /// Its keys.
    pub keys: usize,
    /// Those that have a deadline.
    pub timed: usize,
    /// How many hashes have fields with a deadline.
    pub timed_hashes: usize,
    /// About how long these have to live, in milliseconds.
    pub ttl_ms: u64,
    /// Bytes of its tables.
    pub table_bytes: usize,
}

/// What is added up over all clients.
#[derive(Default)]
pub struct ClientFacts {
    /// Those that listen to channels.
    pub pubsub: usize,
    /// Those that watch keys.
    pub watching: usize,
    /// The longest query buffer.
    pub input_bytes_max: usize,
    /// The longest output.
    pub output_bytes_max: usize,
    /// Bytes of all buffers.
    pub buffer_bytes: usize,
    /// Clients of each thread.
    pub by_thread: Vec<usize>,
}

impl Facts {
    /// Gathers everything. Every stripe must be locked.
    pub fn gather(cx: &mut Context<'_>) -> Self {
        let shared = ThreadHost::of(cx).shared.clone();
        let mut keyspace = KeyspaceStats::default();
        let (mut watched_keys, mut blocking_keys, mut blocking_on_nokey) = (0, 0, 0);
        for index in 0..cx.keyspace.count() {
            let stripe = cx.keyspace.get(index);
            keyspace.add(&stripe.stats);
            watched_keys += stripe.watchers.len();
            blocking_keys += stripe.waiters.len();
            blocking_on_nokey += stripe.waiters.len_on_missing();
        }
        let dbs = databases(cx);
        let ticks_per_us = shared.ticks_per_us();
        let rates = shared.samples.lock().rates(ticks_per_us);
        let pubsub = &cx.shared.pubsub;
        Self {
            config: shared.config(),
            now_us: sys::unix_us(),
            ticks_per_us,
            keyspace,
            table_bytes: dbs.iter().map(|db| db.table_bytes).sum(),
            dbs,
            watched_keys,
            blocking_keys,
            blocking_on_nokey,
            clients: clients(&shared),
            scripts: ScriptFacts::of(&shared.scripts),
            rates,
            used_bytes: shared.used_bytes(),
            rss_bytes: rss_bytes(),
            channels: [
                pubsub.channel_count(ChannelKind::Global),
                pubsub.pattern_count(),
                pubsub.channel_count(ChannelKind::Shard),
            ],
            thread_cpu: sys::cpu_time(CpuOf::Thread),
            sizes: None,
            shared,
        }
    }

    /// Adds the sizes of keys: counted now, or where there are many as the last pass found them.
    /// Every stripe must be locked.
    pub fn with_sizes(mut self, cx: &mut Context<'_>) -> Self {
        let keys: usize = self.dbs.iter().map(|db| db.keys).sum();
        self.sizes = Some(match keys <= keysizes::AT_ONCE_MAX {
            true => keysizes::at_once(cx),
            false => self.shared.keysizes.found(cx.now_ms),
        });
        self
    }

    /// A counter of the network, over all threads.
    pub fn network(&self, counter: impl Fn(&Network) -> &Counter) -> u64 {
        self.shared.network_sum(counter)
    }

    /// Seconds since the start.
    pub fn uptime_s(&self) -> u64 {
        self.now_us.saturating_sub(self.shared.started_us) / 1_000_000
    }

    /// Ticks as microseconds.
    pub fn us(&self, ticks: u64) -> f64 {
        #[allow(clippy::cast_precision_loss)] // A duration, shown in microseconds.
        let ticks = ticks as f64;
        ticks / self.ticks_per_us
    }

    /// The most bytes ever in use, and when: Unix seconds.
    pub fn peak(&self) -> (usize, u64) {
        let (at_s, bytes) = *self.shared.memory_peak.lock();
        (bytes, at_s)
    }

    /// Bytes that hold no data: tables, buffers, what was there at the start.
    pub fn overhead_bytes(&self) -> usize {
        let startup = self.shared.startup_bytes.load(Ordering::Relaxed);
        let startup = usize::try_from(startup).unwrap_or(usize::MAX);
        startup
            .saturating_add(self.table_bytes)
            .saturating_add(self.clients.buffer_bytes)
    }

    /// Bytes of the data.
    pub fn dataset_bytes(&self) -> usize {
        self.used_bytes.saturating_sub(self.overhead_bytes())
    }

    /// Errors of all threads by their code.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        let mut all = BTreeMap::new();
        for (code, count) in self.shared.stats.iter().flat_map(|stats| stats.errors()) {
            *all.entry(code).or_insert(0) += count;
        }
        all
    }
}

/// The databases that hold keys.
fn databases(cx: &mut Context<'_>) -> Vec<DbFacts> {
    let stripes = 0..cx.keyspace.count();
    let count = stripes
        .clone()
        .map(|index| cx.keyspace.get(index).db_count())
        .max();
    let mut all = Vec::new();
    for number in 0..count.unwrap_or(0) {
        let mut facts = DbFacts {
            number,
            keys: 0,
            timed: 0,
            timed_hashes: 0,
            ttl_ms: 0,
            table_bytes: 0,
        };
        let (mut ttl_sum, mut ttl_count) = (0u64, 0u64);
        for index in stripes.clone() {
            let Some(db) = cx.keyspace.get(index).db(number) else {
                continue;
            };
            facts.keys += db.table.len();
            facts.timed += db.timed();
            facts.timed_hashes += db.timed_hashes();
            facts.table_bytes += db.memory_bytes();
            if db.timed() == 0 || ttl_count >= TTL_SAMPLES as u64 {
                continue;
            }
            for _ in 0..4 {
                let draw = |below: u64| cx.host.random() % below.max(1);
                let record = db.table.random(draw);
                if let Some(at) = record.and_then(|record| record.deadline()) {
                    ttl_sum = ttl_sum.saturating_add(at.saturating_sub(cx.now_ms));
                    ttl_count += 1;
                }
            }
        }
        facts.ttl_ms = ttl_sum.checked_div(ttl_count).unwrap_or(0);
        if facts.keys > 0 {
            all.push(facts);
        }
    }
    all
}

fn clients(shared: &Shared) -> ClientFacts {
    let mut facts = ClientFacts {
        by_thread: vec![0; shared.inboxes.len()],
        ..ClientFacts::default()
    };
    for client in shared.clients.lock().values() {
        let query = client.query_bytes.load(Ordering::Relaxed);
        let output = client.output_bytes.load(Ordering::Relaxed);
        let flags = client.flags.load(Ordering::Relaxed);
        facts.input_bytes_max = facts.input_bytes_max.max(query);
        facts.output_bytes_max = facts.output_bytes_max.max(output);
        facts.buffer_bytes += query + output + size_of::<Client>();
        facts.pubsub += usize::from(flags & flag::PUBSUB != 0);
        facts.watching += usize::from(client.watches.load(Ordering::Relaxed) > 0);
        if let Some(count) = facts.by_thread.get_mut(usize::from(client.id.thread)) {
            *count += 1;
        }
    }
    facts
}

/// Bytes that the process has in memory; 0 where the system does not say.
pub fn rss_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    pages.unwrap_or(0) * sys::page_bytes()
}

/// Bytes of memory that the machine has; 0 where the system does not say.
pub fn system_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("MemTotal:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    kib.unwrap_or(0) * 1024
}
