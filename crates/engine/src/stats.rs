//! Counters: of the keyspace in each stripe, of each command in each thread. Plain numbers that are
//! added up when somebody asks.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// What a stripe counts. Added up under the stripes' locks.
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyspaceStats {
    /// Reads that found their key.
    pub hits: u64,
    /// Reads that did not.
    pub misses: u64,
    /// Keys removed because their time was up.
    pub expired: u64,
    /// Those of `expired` that the wheel found.
    pub expired_active: u64,
    /// Fields of hashes removed because their time was up.
    pub expired_fields: u64,
    /// Those of `expired_fields` that nobody asked for.
    pub expired_fields_active: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Changes since the start: `rdb_changes_since_last_save` counts from here.
    pub changes: u64,
}

impl KeyspaceStats {
    /// Adds the counters of `other`.
    pub fn add(&mut self, other: &Self) {
        self.hits += other.hits;
        self.misses += other.misses;
        self.expired += other.expired;
        self.expired_active += other.expired_active;
        self.expired_fields += other.expired_fields;
        self.expired_fields_active += other.expired_fields_active;
        self.evicted += other.evicted;
        self.changes += other.changes;
    }
}

/// A counter with one writer. Others read it at any time and may see it a little late.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds `more`. Only the owning thread may: it is no atomic addition, and costs no more than
    /// a plain one.
    #[inline]
    pub fn add(&self, more: u64) {
        self.0.store(
            self.0.load(Ordering::Relaxed).wrapping_add(more),
            Ordering::Relaxed,
        );
    }

    /// The count so far.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Starts again at 0: CONFIG RESETSTAT. An addition at the same moment may win.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
}

/// What a thread counts of one command.
#[derive(Debug, Default)]
pub struct CommandStats {
    /// Calls that ran.
    pub calls: Counter,
    /// Ticks they took.
    pub ticks: Counter,
    /// Calls refused before they ran.
    pub rejected: Counter,
    /// Calls that ran and ended with an error.
    pub failed: Counter,
    /// How long the calls took; made by the first one.
    histogram: OnceLock<Box<Histogram>>,
}

impl CommandStats {
    /// Counts one call that took `ticks`.
    #[inline]
    pub fn ran(&self, ticks: u64) {
        self.ran_together(1, ticks);
    }

    /// Counts calls that took `ticks` together.
    #[inline]
    pub fn ran_together(&self, calls: u64, ticks: u64) {
        self.calls.add(calls);
        self.ticks.add(ticks);
        let each = ticks.checked_div(calls).unwrap_or(0);
        self.histogram.get_or_init(Box::default).add(each, calls);
    }

    /// How long the calls took; `None` where there was none.
    pub fn histogram(&self) -> Option<&Histogram> {
        self.histogram.get().map(|histogram| &**histogram)
    }

    fn reset(&self) {
        self.calls.reset();
        self.ticks.reset();
        self.rejected.reset();
        self.failed.reset();
        if let Some(histogram) = self.histogram.get() {
            histogram.reset();
        }
    }
}

/// Buckets that each power of two is cut into, as a power of two.
const FINE_BITS: u32 = 3;
/// Powers of two that are told apart: past 2^41 ticks (many minutes) everything is one bucket.
const POWERS: usize = 42;
const BUCKETS: usize = POWERS << FINE_BITS;

/// A distribution of durations in ticks: eight buckets a power of two, so that a bucket is at most
/// an eighth wide of what it holds.
#[derive(Debug)]
pub struct Histogram([Counter; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([const { Counter(AtomicU64::new(0)) }; BUCKETS])
    }
}

impl Histogram {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // A bucket's number is small.
    fn bucket(ticks: u64) -> usize {
        let fine = 1u64 << FINE_BITS;
        if ticks < fine {
            return ticks as usize;
        }
        let power = ticks.ilog2();
        let within = (ticks >> (power - FINE_BITS)) & (fine - 1);
        let bucket = (u64::from(power - FINE_BITS + 1) << FINE_BITS) + within;
        (bucket as usize).min(BUCKETS - 1)
    }

    /// The most ticks that a bucket stands for.
    fn most(bucket: usize) -> u64 {
        let fine = 1usize << FINE_BITS;
        if bucket < fine {
            return bucket as u64;
        }
        let shift = (bucket >> FINE_BITS) - 1;
        let within = (bucket & (fine - 1)) | fine;
        (((within + 1) as u64) << shift) - 1
    }

    #[inline]
    fn add(&self, ticks: u64, calls: u64) {
        self.0[Self::bucket(ticks)].add(calls);
    }

    /// The buckets that hold something, the shortest first: the most ticks of each, and how many
    /// calls took so long.
    pub fn counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let counts = self.0.iter().map(Counter::get).enumerate();
        counts
            .filter(|(_, count)| *count > 0)
            .map(|(bucket, count)| (Self::most(bucket), count))
    }

    fn reset(&self) {
        self.0.iter().for_each(Counter::reset);
    }
}

/// Codes of errors that are counted apart.
const ERROR_CODES_MAX: usize = 128;

/// What a thread counts.
#[derive(Debug)]
pub struct ThreadStats {
    /// By command, as numbered in the table.
    pub commands: Box<[CommandStats]>,
    /// Replies that were errors.
    pub error_replies: Counter,
    errors: Mutex<BTreeMap<String, u64>>,
}

impl ThreadStats {
    /// Counters for a table of `commands` commands.
    pub fn new(commands: usize) -> Self {
        Self {
            commands: (0..commands).map(|_| CommandStats::default()).collect(),
            error_replies: Counter::default(),
            errors: Mutex::default(),
        }
    }

    /// Counts an error by its code.
    pub fn count_error(&self, code: &str) {
        self.error_replies.add(1);
        let mut errors = self.errors.lock();
        if let Some(count) = errors.get_mut(code) {
            *count += 1;
        } else if errors.len() < ERROR_CODES_MAX {
            errors.insert(code.to_owned(), 1);
        }
    }

    /// Errors by their code.
    pub fn errors(&self) -> BTreeMap<String, u64> {
        self.errors.lock().clone()
    }

    /// Starts all counters again: CONFIG RESETSTAT.
    pub fn reset(&self) {
        self.commands.iter().for_each(CommandStats::reset);
        self.error_replies.reset();
        self.errors.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_holds_what_is_put_into_it() {
        let mut last = 0;
        for power in 0..60 {
            for add in [0u64, 1, 3] {
                let ticks = (1u64 << power) + add;
                let bucket = Histogram::bucket(ticks);
                assert!(bucket >= last || ticks < 8, "buckets ascend");
                last = last.max(bucket);
                if bucket + 1 < BUCKETS {
                    assert!(Histogram::most(bucket) >= ticks, "{ticks}");
                    assert!(
                        bucket == 0 || Histogram::most(bucket - 1) < ticks,
                        "{ticks}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_reset_forgets_everything() {
        let stats = ThreadStats::new(1);
        stats.commands[0].ran(100);
        stats.commands[0].ran(100);
        stats.count_error("ERR");
        let counts: Vec<_> = stats.commands[0]
            .histogram()
            .expect("it ran")
            .counts()
            .collect();
        assert_eq!(counts, [(103, 2)]);
        stats.reset();
        assert_eq!(stats.commands[0].calls.get(), 0);
        assert_eq!(
            stats.commands[0]
                .histogram()
                .expect("it ran")
                .counts()
                .count(),
            0
        );
        assert!(stats.errors().is_empty());
    }
}
