//! How saving and loading stand: what INFO and LASTSAVE tell.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use engine::host::ClientId;
use parking_lot::Mutex;

/// Numbers that one thread writes and any may read.
#[derive(Debug, Default)]
pub struct Status {
    /// When the last snapshot was written, or the server started: Unix seconds.
    pub last_save_s: AtomicU64,
    /// Changes before the last snapshot.
    pub changes_saved: AtomicU64,
    /// Whether the last snapshot in the background failed, and none was written since.
    pub last_save_failed: AtomicBool,
    /// Snapshots begun.
    pub saves: AtomicU64,
    /// Snapshots in the background that failed since one was written.
    pub failures: AtomicU64,
    /// When the last one in the background began: Unix seconds.
    pub last_try_s: AtomicU64,
    /// Seconds that the last one in the background took; -1 where there was none.
    pub last_took_s: AtomicI64,
    /// Bytes that writers had handed over at most while it was made.
    pub last_held_bytes: AtomicU64,
    /// When loading began: Unix seconds.
    pub loading_since_s: AtomicU64,
    /// Bytes to be loaded.
    pub loading_bytes: AtomicU64,
    /// Bytes loaded.
    pub loaded_bytes: AtomicU64,
    /// Bytes that the server used when the snapshot was written.
    pub loading_used_bytes: AtomicU64,
    /// Keys loaded, by the last or the present load.
    pub keys_loaded: AtomicU64,
    /// Keys left out because their time was up.
    pub keys_expired: AtomicU64,
    /// Who waits for the log to be loaded again: DEBUG LOADAOF.
    pub reloads_log_for: Mutex<Option<ClientId>>,
    /// Why the server ends.
    pub fatal: Mutex<Option<String>>,
}

impl Status {
    /// That of a server that starts at `now_s`.
    pub fn new(now_s: u64) -> Self {
        Self {
            last_save_s: AtomicU64::new(now_s),
            last_took_s: AtomicI64::new(-1),
            ..Self::default()
        }
    }

    /// A snapshot is begun.
    pub fn save_begins(&self) {
        self.saves.fetch_add(1, Ordering::Relaxed);
    }

    /// A snapshot was written: it holds the first `changes` changes.
    pub fn saved(&self, changes: u64, now_s: u64) {
        self.changes_saved.store(changes, Ordering::Relaxed);
        self.last_save_s.store(now_s, Ordering::Relaxed);
        self.last_save_failed.store(false, Ordering::Relaxed);
        self.failures.store(0, Ordering::Relaxed);
    }

    /// A snapshot could not be written in the background.
    pub fn bgsave_failed(&self) {
        self.last_save_failed.store(true, Ordering::Relaxed);
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Loading begins.
    pub fn begin_loading(&self, bytes: u64, now_s: u64) {
        self.loading_since_s.store(now_s, Ordering::Relaxed);
        self.loading_bytes.store(bytes, Ordering::Relaxed);
        self.loaded_bytes.store(0, Ordering::Relaxed);
        self.loading_used_bytes.store(0, Ordering::Relaxed);
        self.keys_loaded.store(0, Ordering::Relaxed);
        self.keys_expired.store(0, Ordering::Relaxed);
    }
}
