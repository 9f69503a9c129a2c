//! Messaging end to end: from a producer, through the server, to whoever receives.
//!
//! Producers send at a rate, open loop: latency counts from when a message was due. Consumers share
//! the messages (groups of a stream, or a list) or get every one (pub/sub, and one group beside the
//! other). Every message has a number, so loss, duplicates and disorder are counted, not guessed;
//! what a crash costs over each transport can be seen by letting consumers crash.
//!
//! # Why blocking clients, a thread each?
//! What is measured here is the server's way with a message, at rates at which messages have
//! meaning; a consumer that sleeps or crashes is a few lines this way.

mod consumer;
mod ledger;

use crate::interrupt;
use crate::load::{Address, Target};
use clap::{Parser, ValueEnum};
use client::Reply;
use consumer::Consumer;
use hdrhistogram::Histogram;
use ledger::{Ledger, Stamp};
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Threads, and so producers, consumers and groups times consumers, at most.
const THREADS_MAX: usize = 1_000;
/// Messages of a run at most: each costs a byte a reader.
const MESSAGES_MAX: u64 = 100_000_000;

/// What carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Over {
    /// A stream with consumer groups: XADD, XREADGROUP, XACK, XAUTOCLAIM
    Streams,
    /// A list: RPUSH, BLMPOP
    Lists,
    /// PUBLISH, SUBSCRIBE
    Pubsub,
    /// SPUBLISH, SSUBSCRIBE
    Sharded,
}

impl Over {
    fn is_pubsub(self) -> bool {
        matches!(self, Self::Pubsub | Self::Sharded)
    }
}

#[derive(Debug, Parser)]
#[command(
    bin_name = "tidemill-benchmark messages",
    about = "End-to-end latency, loss, duplicates and order of messages",
    disable_help_flag = true,
    args_override_self = true
)]
struct Line {
    /// The server's host
    #[arg(short = 'h', long, default_value = "127.0.0.1")]
    host: String,
    /// The server's port
    #[arg(short, long, default_value_t = 6379)]
    port: u16,
    /// The server as redis://user:password@host:port/db
    #[arg(short, long)]
    uri: Option<String>,
    /// Log in with this password
    #[arg(short = 'a', long)]
    password: Option<String>,
    /// What carries the messages
    #[arg(long, value_enum, default_value = "streams")]
    over: Over,
    /// Producers
    #[arg(long, default_value_t = 1)]
    producers: usize,
    /// Consumers of each group; over pub/sub each gets every message
    #[arg(long, default_value_t = 1)]
    consumers: usize,
    /// Groups of a stream, each of which gets every message
    #[arg(long, default_value_t = 1)]
    groups: usize,
    /// Messages a second, of all producers
    #[arg(long, default_value_t = 1000.0)]
    rate: f64,
    /// Messages in all
    #[arg(short = 'n', long, default_value_t = 10_000)]
    messages: u64,
    /// Bytes of a message, at least what its number and time need
    #[arg(short = 'd', long, default_value_t = 64)]
    size: usize,
    /// Messages that a consumer takes at once at most
    #[arg(long, default_value_t = 10)]
    batch: u32,
    /// Consumers of each group that are slow
    #[arg(long, default_value_t = 0)]
    slow_consumers: usize,
    /// Milliseconds that a slow consumer needs for a message
    #[arg(long, default_value_t = 10)]
    slow_ms: u64,
    /// A consumer crashes at every so many batches: half of what it took is done, none of it is
    /// acknowledged, its connection is gone. 0 is never
    #[arg(long, default_value_t = 0)]
    crash_every: u64,
    /// Streams: what nobody acknowledged for so many milliseconds is claimed
    #[arg(long, default_value_t = 200)]
    claim_idle_ms: u64,
    /// Seconds without a message after which what is missing counts as lost
    #[arg(long, default_value_t = 2.0)]
    drain: f64,
    /// Write the figures here
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// This text
    #[arg(long, action = clap::ArgAction::Help)]
    help: Option<bool>,
}

/// What is to be run, checked.
struct Plan {
    target: Target,
    over: Over,
    producers: usize,
    consumers: usize,
    groups: usize,
    rate: f64,
    messages: u64,
    size: usize,
    batch: u32,
    slow_consumers: usize,
    slow_ms: u64,
    crash_every: u64,
    claim_idle_ms: u64,
    drain: Duration,
}

impl Line {
    fn checked(&self) -> Result<Plan, String> {
        let mut target = Target::at(Address::Tcp(self.host.clone(), self.port));
        target.password.clone_from(&self.password);
        if let Some(uri) = &self.uri {
            target.apply_uri(uri)?;
        }
        let all = self
            .consumers
            .saturating_mul(self.groups)
            .saturating_add(self.producers);
        if self.producers == 0 || self.consumers == 0 || self.groups == 0 || all > THREADS_MAX {
            return Err(format!(
                "producers, consumers and groups are at least 1, and {THREADS_MAX} together"
            ));
        }
        if self.groups > 1 && self.over != Over::Streams {
            return Err("--groups are those of a stream".to_owned());
        }
        if !(self.rate > 0.0 && self.rate <= 1e9 && (0.0..=3600.0).contains(&self.drain)) {
            return Err("--rate is above 0, --drain from 0 to 3600".to_owned());
        }
        if self.messages == 0 || self.messages > MESSAGES_MAX || self.size > 512 << 20 {
            return Err(format!(
                "messages are 1 to {MESSAGES_MAX} and have 512 MiB at most"
            ));
        }
        if self.batch == 0 || self.slow_consumers > self.consumers {
            return Err("--batch is at least 1, --slow-consumers at most --consumers".to_owned());
        }
        Ok(Plan {
            target,
            over: self.over,
            producers: self.producers,
            consumers: self.consumers,
            groups: self.groups,
            rate: self.rate,
            messages: self.messages,
            size: self.size,
            batch: self.batch,
            slow_consumers: self.slow_consumers,
            slow_ms: self.slow_ms,
            crash_every: self.crash_every,
            claim_idle_ms: self.claim_idle_ms,
            drain: Duration::from_secs_f64(self.drain),
        })
    }
}

/// What producers and consumers share.
struct Shared<'a> {
    plan: &'a Plan,
    key: String,
    origin: OnceLock<Instant>,
    over: AtomicBool,
    crashes: AtomicU64,
    claimed: AtomicU64,
    disconnects: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Shared<'_> {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed) || interrupt::is_set()
    }

    fn elapsed(&self) -> Duration {
        self.origin.get_or_init(Instant::now).elapsed()
    }

    fn note(&self, result: Result<(), String>) {
        if let Err(why) = result {
            let mut failure = self.failure.lock().unwrap_or_else(|e| e.into_inner());
            failure.get_or_insert(why);
            self.over.store(true, Ordering::Relaxed);
        }
    }
}

/// Runs it; `args` begins with the word that chose this face.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    let line = match Line::try_parse_from(args) {
        Ok(line) => line,
        Err(error) => {
            let _ = error.print();
            return Ok(ExitCode::from(u8::from(error.use_stderr())));
        }
    };
    let plan = line.checked()?;
    interrupt::flag();
    let shared = Shared {
        key: format!("tidemill-benchmark:{{{}}}", std::process::id()),
        plan: &plan,
        origin: OnceLock::new(),
        over: AtomicBool::new(false),
        crashes: AtomicU64::new(0),
        claimed: AtomicU64::new(0),
        disconnects: AtomicU64::new(0),
        failure: Mutex::new(None),
    };
    prepare(&shared)?;
    let shares: Vec<usize> = (0..plan.producers)
        .map(|number| {
            let (all, parts) = (plan.messages, plan.producers as u64);
            let share = all / parts + u64::from((number as u64) < all % parts);
            usize::try_from(share).expect("checked with the options")
        })
        .collect();
    let readers = match plan.over.is_pubsub() {
        true => plan.consumers,
        false => plan.groups,
    };
    let ledgers: Vec<Mutex<Ledger>> = (0..readers)
        .map(|_| Mutex::new(Ledger::new(&shares)))
        .collect();
    let sent = run(&shared, &shares, &ledgers);
    // The key is left on a server that has failed: there is nobody to ask.
    let _ = plan
        .target
        .client()
        .map(|mut client| client.call(&["UNLINK", &shared.key]));
    let failure = shared
        .failure
        .lock()
        .unwrap_or_else(|e| e.into_inner())
        .take();
    if let Some(why) = failure {
        return Err(why);
    }
    let ledgers: Vec<Ledger> = ledgers
        .into_iter()
        .map(|ledger| ledger.into_inner().unwrap_or_else(|e| e.into_inner()))
        .collect();
    // That nobody reads it is no reason to fail after the work is done.
    let _ = std::io::stdout().write_all(render(&shared, &sent, &ledgers).as_bytes());
    if let Some(path) = &line.json {
        let text = to_json(&shared, &sent, &ledgers);
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(match interrupt::is_set() {
        true => ExitCode::from(130),
        false => ExitCode::SUCCESS,
    })
}

fn prepare(shared: &Shared<'_>) -> Result<(), String> {
    let plan = shared.plan;
    let mut client = plan.target.client()?;
    let mut call = |words: &[&str]| match client.call(words) {
        Ok(Reply::Error(text)) => Err(format!(
            "Error from server: {}",
            String::from_utf8_lossy(&text)
        )),
        Ok(_) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    call(&["DEL", &shared.key])?;
    if plan.over == Over::Streams {
        for group in 0..plan.groups {
            call(&[
                "XGROUP",
                "CREATE",
                &shared.key,
                &format!("g{group}"),
                "0",
                "MKSTREAM",
            ])?;
        }
    }
    Ok(())
}

/// How many were sent, how long that took, and how many were refused.
struct Sent {
    messages: u64,
    errors: u64,
    took: Duration,
}

fn run(shared: &Shared<'_>, shares: &[usize], ledgers: &[Mutex<Ledger>]) -> Sent {
    let plan = shared.plan;
    let consumers = plan.consumers * plan.groups;
    let ready = Barrier::new(consumers + 1);
    let sent = AtomicU64::new(0);
    let errors = AtomicU64::new(0);
    let mut took = Duration::ZERO;
    std::thread::scope(|scope| {
        for number in 0..consumers {
            let (group, index) = (number / plan.consumers, number % plan.consumers);
            let reader = if plan.over.is_pubsub() { index } else { group };
            let consumer = Consumer {
                shared,
                ledger: &ledgers[reader],
                group: format!("g{group}"),
                name: format!("c{index}"),
                is_slow: index < plan.slow_consumers,
                ready: &ready,
            };
            scope.spawn(move || shared.note(consumer.run()));
        }
        // Who publishes before all listen has lost something that was not the server's to keep.
        ready.wait();
        shared.elapsed();
        let producers: Vec<_> = (shares.iter().enumerate())
            .map(|(number, &share)| {
                let (sent, errors) = (&sent, &errors);
                scope.spawn(move || shared.note(produce(shared, number, share, sent, errors)))
            })
            .collect();
        for producer in producers {
            let _ = producer.join();
        }
        took = shared.elapsed();
        let all = sent.load(Ordering::Relaxed);
        await_receipt(shared, ledgers, all);
        shared.over.store(true, Ordering::Relaxed);
    });
    Sent {
        messages: sent.into_inner(),
        errors: errors.into_inner(),
        took,
    }
}

/// Waits until every reader has everything, or nothing has come for a while.
fn await_receipt(shared: &Shared<'_>, ledgers: &[Mutex<Ledger>], sent: u64) {
    let began = Instant::now();
    while !shared.is_over() {
        let mut is_whole = true;
        let mut last = began;
        for ledger in ledgers {
            let ledger = ledger.lock().unwrap_or_else(|e| e.into_inner());
            is_whole &= ledger.received >= sent;
            last = last.max(ledger.last);
        }
        if is_whole || last.elapsed() > shared.plan.drain {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn produce(
    shared: &Shared<'_>,
    producer: usize,
    share: usize,
    sent: &AtomicU64,
    errors: &AtomicU64,
) -> Result<(), String> {
    let plan = shared.plan;
    let mut client = plan.target.client()?;
    let gap = 1e9 * plan.producers as f64 / plan.rate;
    for number in 0..share {
        if shared.is_over() {
            break;
        }
        let due_ns = (gap * (number as f64 + producer as f64 / plan.producers as f64)) as u64;
        let wait = Duration::from_nanos(due_ns).saturating_sub(shared.elapsed());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
        let stamp = Stamp {
            producer,
            number,
            due_ns,
        };
        let message = stamp.encode(plan.size);
        let key = shared.key.as_bytes();
        let reply = match plan.over {
            Over::Streams => client.call(&[b"XADD", key, b"*", b"m", &message]),
            Over::Lists => client.call(&[b"RPUSH", key, &message]),
            Over::Pubsub => client.call(&[b"PUBLISH", key, &message]),
            Over::Sharded => client.call(&[b"SPUBLISH", key, &message]),
        };
        match reply {
            Ok(Reply::Error(_)) => errors.fetch_add(1, Ordering::Relaxed),
            Ok(_) => sent.fetch_add(1, Ordering::Relaxed),
            Err(error) => return Err(format!("producer {producer}: {error}")),
        };
    }
    Ok(())
}

/// Average, least, three percentiles and most, in milliseconds.
fn times(latency: &Histogram<u64>) -> [f64; 6] {
    if latency.is_empty() {
        return [0.0; 6];
    }
    let at = |quantile| latency.value_at_quantile(quantile) as f64 / 1000.0;
    [
        latency.mean() / 1000.0,
        latency.min() as f64 / 1000.0,
        at(0.5),
        at(0.95),
        at(0.99),
        latency.max() as f64 / 1000.0,
    ]
}

fn reader_name(plan: &Plan, number: usize) -> String {
    match plan.over {
        Over::Streams => format!("group g{number}"),
        Over::Lists => "consumers".to_owned(),
        Over::Pubsub | Over::Sharded => format!("subscriber c{number}"),
    }
}

fn render(shared: &Shared<'_>, sent: &Sent, ledgers: &[Ledger]) -> String {
    let plan = shared.plan;
    let mut out = String::new();
    let over = match plan.over {
        Over::Streams => "a stream",
        Over::Lists => "a list",
        Over::Pubsub => "pub/sub",
        Over::Sharded => "sharded pub/sub",
    };
    // Writing to a string cannot fail.
    let _ = writeln!(out, "====== messages over {over} ======");
    let _ = writeln!(
        out,
        "  {} messages of {} bytes sent in {:.2} seconds, {} a second asked for, {} refused",
        sent.messages,
        plan.size,
        sent.took.as_secs_f64(),
        plan.rate,
        sent.errors
    );
    let _ = writeln!(
        out,
        "  {} producers, {} consumers, {} slow; crashes: {}, claimed: {}, dropped by the server: \
         {}",
        plan.producers,
        plan.consumers * plan.groups,
        plan.slow_consumers * plan.groups,
        shared.crashes.load(Ordering::Relaxed),
        shared.claimed.load(Ordering::Relaxed),
        shared.disconnects.load(Ordering::Relaxed)
    );
    let _ = writeln!(
        out,
        "\n{:<16} {:>9} {:>7} {:>9} {:>8}",
        "", "received", "lost", "repeated", "disorder"
    );
    for (number, ledger) in ledgers.iter().enumerate() {
        let _ = writeln!(
            out,
            "{:<16} {:>9} {:>7} {:>9} {:>8}",
            reader_name(plan, number),
            ledger.received,
            sent.messages.saturating_sub(ledger.received),
            ledger.duplicates,
            ledger.out_of_order
        );
    }
    let _ = write!(out, "\nfrom due to received, msec\n{:<16}", "");
    for name in ["avg", "min", "p50", "p95", "p99", "max"] {
        let _ = write!(out, " {name:>9}");
    }
    for (number, ledger) in ledgers.iter().enumerate() {
        let _ = write!(out, "\n{:<16}", reader_name(plan, number));
        for time in times(&ledger.latency) {
            let _ = write!(out, " {time:>9.3}");
        }
    }
    out.push('\n');
    let strange: u64 = ledgers.iter().map(|ledger| ledger.strange).sum();
    if strange > 0 {
        let _ = writeln!(out, "\n{strange} messages were not of this run");
    }
    out
}

fn to_json(shared: &Shared<'_>, sent: &Sent, ledgers: &[Ledger]) -> String {
    let readers = ledgers.iter().enumerate().map(|(number, ledger)| {
        let [avg, min, p50, p95, p99, max] = times(&ledger.latency);
        json!({
            "reader": reader_name(shared.plan, number),
            "received": ledger.received,
            "lost": sent.messages.saturating_sub(ledger.received),
            "repeated": ledger.duplicates,
            "disorder": ledger.out_of_order,
            "latency_ms": {
                "avg": avg, "min": min, "p50": p50, "p95": p95, "p99": p99, "max": max,
            },
        })
    });
    let all = json!({
        "sent": sent.messages,
        "refused": sent.errors,
        "seconds": sent.took.as_secs_f64(),
        "crashes": shared.crashes.load(Ordering::Relaxed),
        "claimed": shared.claimed.load(Ordering::Relaxed),
        "dropped": shared.disconnects.load(Ordering::Relaxed),
        "readers": readers.collect::<Vec<_>>(),
    });
    serde_json::to_string_pretty(&all).expect("plain values")
}
