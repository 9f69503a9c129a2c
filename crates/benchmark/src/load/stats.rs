//! What a run measures: counts and histograms a class of requests, a thread, and in all.

use hdrhistogram::Histogram;
use std::time::Duration;

/// The longest time that is told apart, in microseconds: an hour.
const US_MAX: u64 = 3_600_000_000;
/// Seconds of which a series is kept; what comes later is counted in the last.
const SECONDS_MAX: usize = 86_400;

/// Times in microseconds, to three digits.
pub fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, US_MAX, 3).expect("bounds that it can hold")
}

/// What is known of one class of requests, such as all the GETs.
#[derive(Debug, Clone)]
pub struct Class {
    /// Replies.
    pub count: u64,
    /// Replies that were not null.
    pub hits: u64,
    /// Replies that were a null.
    pub misses: u64,
    /// Error replies.
    pub errors: u64,
    /// Bytes of replies.
    pub bytes_in: u64,
    /// Bytes of requests.
    pub bytes_out: u64,
    /// From when a request was to be sent to its reply: in a closed loop it was sent then.
    pub latency: Histogram<u64>,
    /// From when it was sent to its reply; kept in an open loop only.
    pub service: Histogram<u64>,
    /// By the second of the reply, where asked for.
    pub seconds: Vec<Second>,
}

impl Default for Class {
    fn default() -> Self {
        Self {
            count: 0,
            hits: 0,
            misses: 0,
            errors: 0,
            bytes_in: 0,
            bytes_out: 0,
            latency: histogram(),
            service: histogram(),
            seconds: Vec::new(),
        }
    }
}

impl Class {
    /// Replies of this kind came now.
    pub fn record(&mut self, latency_us: u64, service_us: Option<u64>, count: u64) {
        self.latency.saturating_record_n(latency_us, count);
        if let Some(service_us) = service_us {
            self.service.saturating_record_n(service_us, count);
        }
    }

    /// The same for the series.
    pub fn record_second(&mut self, second: u64, latency_us: u64, count: u64) {
        let at = usize::try_from(second)
            .unwrap_or(SECONDS_MAX)
            .min(SECONDS_MAX - 1);
        if self.seconds.len() <= at {
            self.seconds.resize_with(at + 1, Second::default);
        }
        let second = &mut self.seconds[at];
        second.count += count;
        second.latency.saturating_record_n(latency_us, count);
    }

    /// Adds what another thread, or another run, has counted.
    pub fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.hits += other.hits;
        self.misses += other.misses;
        self.errors += other.errors;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
        let bounds = "the same bounds everywhere";
        self.latency.add(&other.latency).expect(bounds);
        self.service.add(&other.service).expect(bounds);
        if self.seconds.len() < other.seconds.len() {
            self.seconds
                .resize_with(other.seconds.len(), Second::default);
        }
        for (mine, theirs) in self.seconds.iter_mut().zip(&other.seconds) {
            mine.count += theirs.count;
            mine.bytes_in += theirs.bytes_in;
            mine.bytes_out += theirs.bytes_out;
            mine.latency
                .add(&theirs.latency)
                .expect("it grows as needed");
        }
    }
}

/// One second of a class.
#[derive(Debug, Clone)]
pub struct Second {
    /// Replies in it.
    pub count: u64,
    /// Bytes of replies.
    pub bytes_in: u64,
    /// Bytes of requests.
    pub bytes_out: u64,
    /// Their times in microseconds, to two digits.
    pub latency: Histogram<u64>,
}

impl Default for Second {
    fn default() -> Self {
        Self {
            count: 0,
            bytes_in: 0,
            bytes_out: 0,
            latency: Histogram::new(2).expect("two digits"),
        }
    }
}

/// What a whole run has measured.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// By class.
    pub classes: Vec<Class>,
    /// From the first request to the last reply.
    pub took: Duration,
    /// Processor time of the busiest thread of the generator, as a part of the time it had.
    pub busiest: f64,
    /// Processor time of all the generator's threads.
    pub cpu: Duration,
    /// Open loop: requests sent more than a millisecond after they were due.
    pub late: u64,
    /// Open loop: of these, those that a free connection was there for: the generator's own fault.
    pub late_by_generator: u64,
    /// Open loop: requests that were due before the end and never sent.
    pub missed: u64,
    /// Requests that were sent and not answered before the run was given up.
    pub unanswered: u64,
    /// It was ended before its time, by the user.
    pub is_interrupted: bool,
    /// Connections that broke and were made anew.
    pub connection_errors: u64,
    /// The first error reply.
    pub error: Option<String>,
}

impl Outcome {
    /// All classes in one.
    pub fn total(&self) -> Class {
        let mut total = Class::default();
        for class in &self.classes {
            total.add(class);
        }
        total
    }

    /// Replies of all classes.
    pub fn count(&self) -> u64 {
        self.classes.iter().map(|class| class.count).sum()
    }

    /// Requests a second.
    pub fn rate(&self) -> f64 {
        per_second(self.count() as f64, self.took)
    }

    /// What to tell about the generator itself, when it may have been the limit.
    pub fn generator_note(&self) -> Option<String> {
        if self.late_by_generator * 1000 > self.count() {
            return Some(format!(
                "{} requests left more than 1 ms late though a connection was free: the load \
                 generator was a limit; give it more threads or processors",
                self.late_by_generator
            ));
        }
        (self.busiest > 0.9).then(|| {
            format!(
                "a thread of the load generator was busy {:.0}% of the time: the server may \
                 be faster than this shows; give it more threads or processors",
                self.busiest.min(1.0) * 100.0
            )
        })
    }
}

/// A count over a time; 0 over no time.
pub fn per_second(count: f64, took: Duration) -> f64 {
    match took.as_secs_f64() {
        seconds if seconds > 0.0 => count / seconds,
        _ => 0.0,
    }
}
