//! Counters: of the keyspace in each stripe, of each command in each thread. Plain numbers that are
//! added up when somebody asks.

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

/// What a thread counts of one command.
#[derive(Clone, Copy, Debug, Default)]
pub struct CommandStats {
    /// Calls that ran.
    pub calls: u64,
    /// Ticks they took.
    pub ticks: u64,
    /// Calls refused before they ran.
    pub rejected: u64,
    /// Calls that ran and ended with an error.
    pub failed: u64,
}
