//! The parts of INFO that list things: threads, commands, errors, databases.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::keyspace::Phase;

use super::facts::Facts;

/// How the log stands, while there is one, and how far loading is, while the server loads.
pub fn persistence(facts: &Facts, text: &mut String) {
    let log = &facts.shared.log;
    if log.is_on.load(Ordering::Relaxed) {
        let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let _ = write!(
            text,
            "aof_current_size:{}\r\naof_base_size:{}\r\naof_pending_rewrite:0\r\n\
             aof_buffer_length:{}\r\naof_pending_bio_fsync:0\r\naof_delayed_fsync:{}\r\n\
             aof_queue_stalls:{}\r\n",
            number(&log.size_bytes),
            number(&log.base_bytes),
            number(&log.pending_bytes),
            number(&log.delayed_syncs),
            number(&log.congestions)
        );
    }
    loading(facts, text);
}

fn loading(facts: &Facts, text: &mut String) {
    if facts.shared.keys.phase() != Phase::Loading {
        return;
    }
    let status = &facts.shared.persistence;
    let number = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (total, done) = (
        number(&status.loading_bytes).max(1),
        number(&status.loaded_bytes),
    );
    let since_s = number(&status.loading_since_s);
    let took_s = (facts.now_us / 1_000_000).saturating_sub(since_s);
    let eta_s = match done {
        0 => 1,
        done => took_s.saturating_mul(total.saturating_sub(done)) / done,
    };
    #[allow(clippy::cast_precision_loss)] // A share.
    let percent = done as f64 * 100.0 / total as f64;
    let _ = write!(
        text,
        "loading_start_time:{since_s}\r\nloading_total_bytes:{total}\r\n\
         loading_rdb_used_mem:{}\r\nloading_loaded_bytes:{done}\r\n\
         loading_loaded_perc:{percent:.2}\r\nloading_eta_seconds:{eta_s}\r\n",
        number(&status.loading_used_bytes)
    );
}

/// `listener0`, `listener1`, `listener2`: where the server listens, by kind.
pub fn listeners(facts: &Facts, text: &mut String) {
    let config = &facts.config;
    let hosts = config.bind.iter().map(|address| {
        let optional = if address.optional { "-" } else { "" };
        format!("bind={optional}{},", address.host)
    });
    let hosts: String = hosts.collect();
    if config.port != 0 {
        let port = config.port;
        let _ = write!(text, "listener0:name=tcp,{hosts}port={port}\r\n");
    }
    if let Some(path) = &config.unixsocket {
        let path = path.display();
        let _ = write!(text, "listener1:name=unix,bind={path}\r\n");
    }
    if config.tls.port != 0 {
        let port = config.tls.port;
        let _ = write!(text, "listener2:name=tls,{hosts}port={port}\r\n");
    }
}

/// How the session of HOTKEYS stands, where there is one.
pub fn hotkeys(facts: &Facts, text: &mut String) {
    let Some(results) = facts.shared.hotkeys.results(facts.now_us / 1000) else {
        return;
    };
    let _ = write!(
        text,
        "hotkeys-tracking-active:{}\r\nhotkeys-cmd-cpu-time:{:.0}\r\n",
        u8::from(results.is_active),
        facts.us(results.own_ticks) / 1000.0
    );
}

/// What each thread did.
pub fn threads(facts: &Facts, text: &mut String) {
    for (number, network) in facts.shared.network.iter().enumerate() {
        let _ = write!(
            text,
            "io_thread_{number}:clients={},reads={},writes={}\r\n",
            facts.clients.by_thread.get(number).unwrap_or(&0),
            network.reads.get(),
            network.writes.get()
        );
    }
}

/// What each command was called and took.
pub fn commands(facts: &Facts, text: &mut String) {
    for (id, entry) in facts.shared.keys.table.entries().iter().enumerate() {
        let (mut calls, mut ticks, mut rejected, mut failed) = (0, 0, 0, 0);
        for stats in facts.shared.stats.iter().map(|stats| &stats.commands[id]) {
            calls += stats.calls.get();
            ticks += stats.ticks.get();
            rejected += stats.rejected.get();
            failed += stats.failed.get();
        }
        if calls + rejected + failed == 0 {
            continue;
        }
        let us = facts.us(ticks);
        #[allow(clippy::cast_precision_loss)] // Two decimals are shown.
        let each = if calls == 0 { 0.0 } else { us / calls as f64 };
        let _ = write!(
            text,
            "cmdstat_{}:calls={calls},usec={us:.0},usec_per_call={each:.2},\
             rejected_calls={rejected},failed_calls={failed}\r\n",
            entry.full_name
        );
    }
}

/// How often each code of error was answered.
pub fn errors(facts: &Facts, text: &mut String) {
    for (code, count) in facts.errors() {
        let _ = write!(text, "errorstat_{code}:count={count}\r\n");
    }
}

/// The percentiles of each command's duration.
pub fn latencies(facts: &Facts, text: &mut String) {
    if !facts.config.latency_tracking {
        return;
    }
    for (id, entry) in facts.shared.keys.table.entries().iter().enumerate() {
        let durations = Durations::of(facts, id);
        if durations.count == 0 {
            continue;
        }
        let shown: Vec<String> = facts
            .config
            .latency_percentiles
            .iter()
            .map(|percentile| {
                let us = facts.us(durations.percentile(*percentile));
                format!("p{percentile}={us:.3}")
            })
            .collect();
        let (name, shown) = (&entry.full_name, shown.join(","));
        let _ = write!(text, "latency_percentiles_usec_{name}:{shown}\r\n");
    }
}

/// The databases that hold keys.
pub fn keyspace(facts: &Facts, text: &mut String) {
    for db in &facts.dbs {
        let _ = write!(
            text,
            "db{}:keys={},expires={},avg_ttl={},subexpiry={}\r\n",
            db.number, db.keys, db.timed, db.ttl_ms, db.timed_hashes
        );
    }
}

/// How long strings are, and how many elements collections have.
pub fn keysizes(facts: &Facts, text: &mut String) {
    if let Some(sizes) = &facts.sizes {
        sizes.show(text);
    }
}

/// How long the calls of one command took, on all threads.
pub struct Durations {
    /// Calls by the most ticks that they took.
    ticks: BTreeMap<u64, u64>,
    /// All calls.
    pub count: u64,
}

impl Durations {
    /// Those of the command with this number.
    pub fn of(facts: &Facts, id: usize) -> Self {
        let mut ticks = BTreeMap::new();
        let mut all = 0;
        let stats = facts.shared.stats.iter().map(|stats| &stats.commands[id]);
        for (most, count) in stats
            .filter_map(|stats| stats.histogram())
            .flat_map(|one| one.counts())
        {
            *ticks.entry(most).or_insert(0) += count;
            all += count;
        }
        Self { ticks, count: all }
    }

    /// The ticks that this share of the calls, in percent, stayed within.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    #[allow(clippy::cast_sign_loss)] // A share of a count.
    pub fn percentile(&self, percent: f64) -> u64 {
        let wanted = (self.count as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (most, count) in &self.ticks {
            seen += count;
            if seen >= wanted {
                return *most;
            }
        }
        self.ticks.last_key_value().map_or(0, |(most, _)| *most)
    }

    /// Calls that took at most so many microseconds, at about each power of two (in units of
    /// 1024 nanoseconds) where the number grows.
    #[allow(clippy::cast_precision_loss)] // Nanoseconds of a command.
    pub fn cumulative_us(&self, ticks_per_us: f64) -> Vec<(u64, u64)> {
        let mut shown: Vec<(u64, u64)> = Vec::new();
        let mut seen = 0;
        for (most, count) in &self.ticks {
            seen += count;
            let ns = *most as f64 * 1000.0 / ticks_per_us;
            // As the real server's histogram, which keeps seven bits behind the highest one.
            let bound_ns = |power: u32| (1024u64 << power) + (8u64 << power) - 1;
            let power = (0..40).find(|power| ns <= bound_ns(*power) as f64);
            let us = bound_ns(power.unwrap_or(40)) / 1000;
            match shown.last_mut() {
                Some((last, total)) if *last == us => *total = seen,
                _ => shown.push((us, seen)),
            }
        }
        shown
    }
}
