//! The load engine: threads, connections, pipelines, and a clock that cannot be fooled.
//!
//! [`run`] sends what its [`Source`]s make and measures the replies. Each thread has an epoll of
//! its own, sockets that do not block, and its share of the connections; threads share one counter
//! of requests and one flag. Nothing is allocated once a run is under way, and replies are counted
//! as they are read ([`scan`]), never built.
//!
//! In a **closed loop** a connection sends its next batch when the last is answered. In an **open
//! loop** requests are due at times that do not depend on the server, at equal distances or as
//! arrivals that know nothing of each other. A request that finds no free connection waits, and its
//! latency counts from when it was due: a server that stalls for a second is charged with all who
//! would have come in that second.
//!
//! # Invariants
//! - Exactly as many requests are sent as were asked for, whatever the pipeline.
//! - Due times are drawn when they are used, so what waits costs no memory.
//! - The generator's own processor time is measured, so a report can say that it was the limit.

mod batch;
mod connection;
pub mod random;
pub mod scan;
mod stats;
mod target;
mod template;
mod thread;

pub use batch::{Batch, Source};
pub use stats::{Class, Outcome, histogram, per_second};
pub use target::{Address, Target};
pub use template::Template;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

/// When requests are sent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// A whole batch again as soon as the last one is answered.
    Batches,
    /// One more for every one that is answered, so that the pipeline stays full.
    Window,
    /// So many a second, over all threads, at equal distances.
    Fixed(f64),
    /// The same on average, at random distances.
    Poisson(f64),
}

impl Pace {
    /// Whether requests have times at which they are due.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Fixed(_) | Self::Poisson(_))
    }
}

/// How many requests there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// In all.
    Total(u64),
    /// On each connection.
    PerConnection(u64),
    /// As many as fit in the time.
    None,
}

/// One run.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The server.
    pub target: Target,
    /// Threads of the generator, at least one.
    pub threads: usize,
    /// Connections in all, at least one.
    pub connections: usize,
    /// Requests in flight on a connection at most, at least one.
    pub pipeline: usize,
    /// How many requests.
    pub limit: Limit,
    /// No request is sent after this.
    pub duration: Option<Duration>,
    /// When they are sent.
    pub pace: Pace,
    /// A connection is closed and made anew after this many requests.
    pub reconnect_after: Option<u64>,
    /// Go on after a connection broke, with a new one.
    pub survives: bool,
    /// End the run at the first error reply.
    pub stops_at_error: bool,
    /// Classes of requests that the sources tell apart.
    pub classes: usize,
    /// Keep figures by the second.
    pub series: bool,
}

impl Plan {
    /// A closed loop on one thread.
    pub fn new(target: Target, connections: usize, pipeline: usize, limit: Limit) -> Self {
        Self {
            target,
            threads: 1,
            connections,
            pipeline,
            limit,
            duration: None,
            pace: Pace::Batches,
            reconnect_after: None,
            survives: false,
            stops_at_error: false,
            classes: 1,
            series: false,
        }
    }
}

/// What can be seen of a run while it is under way, and the way to end it.
#[derive(Debug, Default)]
pub struct Watch {
    /// Replies so far.
    pub replies: AtomicU64,
    /// The sum of their latencies in microseconds.
    pub latency_us: AtomicU64,
    /// Set to end it.
    pub stop: AtomicBool,
}

/// What the threads of a run share.
struct Shared<'a> {
    watch: &'a Watch,
    /// Requests that may still be taken, with [`Limit::Total`].
    left: AtomicU64,
    failure: Mutex<Option<String>>,
    ready: Barrier,
    started: Mutex<Option<Instant>>,
}

impl Shared<'_> {
    /// Takes up to `wanted` requests from the common stock.
    fn take(&self, wanted: u64) -> u64 {
        let mut left = self.left.load(Ordering::Relaxed);
        loop {
            let taken = wanted.min(left);
            match self.left.compare_exchange_weak(
                left,
                left - taken,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return taken,
                Err(now) => left = now,
            }
        }
    }

    fn fail(&self, why: String) {
        let mut failure = self.failure.lock().unwrap_or_else(|e| e.into_inner());
        failure.get_or_insert(why);
        self.watch.stop.store(true, Ordering::Relaxed);
    }
}

/// A run that could not be finished, and what it had measured.
#[derive(Debug)]
pub struct Failure {
    /// One line for the user.
    pub why: String,
}

/// Runs a plan with one source a thread; `interrupted` is the user's wish to stop.
pub fn run(
    plan: &Plan,
    sources: Vec<Box<dyn Source + '_>>,
    watch: &Watch,
    interrupted: &AtomicBool,
) -> Result<Outcome, Failure> {
    assert_eq!(sources.len(), plan.threads, "a source for each thread");
    let at = (plan.target.resolve()).map_err(|why| Failure { why })?;
    let shared = Shared {
        watch,
        left: AtomicU64::new(match plan.limit {
            Limit::Total(requests) => requests,
            _ => u64::MAX,
        }),
        failure: Mutex::new(None),
        ready: Barrier::new(plan.threads),
        started: Mutex::new(None),
    };
    let parts: Vec<thread::Part> = std::thread::scope(|scope| {
        let handles: Vec<_> = sources
            .into_iter()
            .enumerate()
            .map(|(number, source)| {
                let (shared, at) = (&shared, &at);
                scope.spawn(move || thread::run(plan, at, number, source, shared, interrupted))
            })
            .collect();
        let joined = handles.into_iter().map(|handle| handle.join());
        joined
            .map(|part| part.expect("a thread of the load panicked"))
            .collect()
    });
    let failure = shared
        .failure
        .into_inner()
        .unwrap_or_else(|e| e.into_inner());
    if let Some(why) = failure {
        return Err(Failure { why });
    }
    let mut outcome = Outcome {
        classes: vec![Class::default(); plan.classes],
        is_interrupted: interrupted.load(Ordering::Relaxed),
        ..Outcome::default()
    };
    for part in parts {
        for (sum, class) in outcome.classes.iter_mut().zip(&part.outcome.classes) {
            sum.add(class);
        }
        outcome.took = outcome.took.max(part.outcome.took);
        outcome.busiest = outcome.busiest.max(part.outcome.busiest);
        outcome.cpu += part.outcome.cpu;
        outcome.late += part.outcome.late;
        outcome.late_by_generator += part.outcome.late_by_generator;
        outcome.missed += part.outcome.missed;
        outcome.unanswered += part.outcome.unanswered;
        outcome.connection_errors += part.outcome.connection_errors;
        outcome.error = outcome.error.or(part.outcome.error);
    }
    Ok(outcome)
}
