//! Counters: of the keyspace in each stripe, of each command in each thread. Plain numbers that are
//! added up when somebody asks.

use std::collections::BTreeMap;
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
        for command in &self.commands {
            command.calls.reset();
            command.ticks.reset();
            command.rejected.reset();
            command.failed.reset();
        }
        self.error_replies.reset();
        self.errors.lock().clear();
    }
}
