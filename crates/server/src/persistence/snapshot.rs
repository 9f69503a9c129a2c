//! Snapshots in the background: the loops serialize in slices, a thread of its own writes.
//!
//! [`start`] fixes the moment while all stripes are held. Each loop then takes slices of its own
//! stripes between looks at the sockets and puts what they gave into the job's queue. The writer
//! empties the queue into a temporary file, which takes the place of the old one when it is
//! durable.
//!
//! # Invariants
//! - One job at a time, whatever its target: the next starts when all stripes were passed and the
//!   file is there, or was given up.
//! - The queue holds [`QUEUE_BYTES_MAX`] and one slice a thread at most: a loop that finds it full
//!   leaves the rest for later, and the writer wakes it.
//! - No loop waits for the writer.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use engine::access;
use engine::dump::{Unwritable, write_number};
use engine::keyspace::{Shared as Keys, Stripe};
use engine::object::Object;
use engine::snapshot::{Cut, EntryWriter, Piece, Progress};
use parking_lot::{Condvar, Mutex};
use persist::rdb::{About, Encoder, SaveError, Saver, Uses};
use persist::storage::{Disk, StorageFile};
use structure::record::RecordRef;
use structure::stripes::Held;

use super::pace;
use crate::config::Config;
use crate::scripting::functions::Snapshot as Functions;
use crate::shared::Shared;
use crate::{notice, warning};

/// Bytes that wait to be written from which on loops make no more.
const QUEUE_BYTES_MAX: usize = 4 << 20;
/// What stands before the number of a database in the file.
const SELECT: u8 = 0xfe;
/// Seconds before a snapshot is tried again by itself after one that failed.
const RETRY_S: u64 = 5;

/// Is told how it went: the length of the file, or why there is none and whether it was given up.
pub type Done = Box<dyn FnOnce(Result<u64, (SaveError, bool)>) + Send>;

/// What is made of a snapshot.
pub enum Target {
    /// The snapshot file.
    Rdb,
    /// The base of an append-only log.
    AofBase {
        /// What the file's name is within.
        directory: PathBuf,
        /// The file's name.
        file: String,
        /// Runs on the writer's thread. The file has its name by then, but the directory that it is
        /// in was not synced.
        done: Done,
    },
}

/// The snapshots of a server: the one under way, if any.
#[derive(Default)]
pub struct Snapshots {
    job: Mutex<Option<Arc<Job>>>,
    /// How many jobs began: loops compare it with what they know.
    begun: AtomicU64,
    /// Whether a snapshot is to follow the job under way.
    pub is_scheduled: AtomicBool,
}

/// A snapshot under way.
pub struct Job {
    is_rdb: bool,
    uses: Uses,
    /// What the cut found.
    pub cut: Cut,
    /// The functions at the cut.
    functions: Arc<Functions>,
    /// How far it is.
    pub progress: Arc<Progress>,
    /// When it began: Unix microseconds.
    pub began_us: u64,
    /// Loops that have stripes to pass.
    loops_left: AtomicUsize,
    queue: Mutex<Queue>,
    filled: Condvar,
    /// Bytes in the queue and with the writer, big values counted as if they shared nothing.
    queued_bytes_max: AtomicUsize,
    /// Bytes in the queue and with the writer.
    queued_bytes: AtomicUsize,
    /// Set where nobody waits for the file any more.
    is_abandoned: AtomicBool,
    /// Set where no thread could be started, or it was stopped: nobody writes.
    has_no_writer: AtomicBool,
    is_finished: AtomicBool,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Queue {
    pieces: Vec<Piece>,
    /// Whether all stripes were passed.
    is_whole: bool,
    /// Whether a loop waits for room.
    is_stalled: bool,
}

/// Why no snapshot was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Busy {
    /// A snapshot is under way.
    Snapshot,
    /// The base of a log is being made.
    Base,
}

impl Snapshots {
    /// The job under way.
    pub fn job(&self) -> Option<Arc<Job>> {
        self.job.lock().clone()
    }

    /// What is under way.
    pub fn busy(&self) -> Option<Busy> {
        let job = self.job.lock();
        job.as_ref().map(|job| {
            if job.is_rdb {
                Busy::Snapshot
            } else {
                Busy::Base
            }
        })
    }

    /// How many jobs have begun.
    #[inline]
    pub fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }
}

/// Gives up the job under way, if any, and waits until its temporary file is gone: the server
/// stops, or saves all in the foreground, which the older snapshot must not replace. What the loops
/// have still to pass they pass for nothing.
pub fn abandon(shared: &Shared) {
    let Some(job) = shared.snapshots.job() else {
        return;
    };
    job.progress.cancelled.store(true, Ordering::Relaxed);
    job.is_abandoned.store(true, Ordering::Release);
    let queue = job.queue.lock();
    job.filled.notify_all();
    drop(queue);
    let writer = job.writer.lock().take();
    if let Some(writer) = writer {
        // A panic of its has ended the process already.
        let _ = writer.join();
    }
    job.has_no_writer.store(true, Ordering::SeqCst);
    let is_whole = job.queue.lock().is_whole;
    if is_whole {
        finish(shared, &job, false);
    }
    shared.wake_all();
}

impl Job {
    /// Whether there is room for more. Where there is none, the loop that asks is woken later.
    pub fn has_room(&self) -> bool {
        if self.progress.cancelled.load(Ordering::Relaxed) {
            return true;
        }
        if self.queued_bytes_max.load(Ordering::Acquire) < QUEUE_BYTES_MAX {
            return true;
        }
        let mut queue = self.queue.lock();
        // The writer counts down before it looks whether anybody waits.
        let is_full = self.queued_bytes_max.load(Ordering::Acquire) >= QUEUE_BYTES_MAX;
        queue.is_stalled |= is_full;
        !is_full
    }

    /// Takes what a slice gave.
    pub fn put(&self, pieces: &mut Vec<Piece>) {
        let (bytes, bytes_max) = sums(pieces);
        self.queued_bytes.fetch_add(bytes, Ordering::AcqRel);
        self.queued_bytes_max.fetch_add(bytes_max, Ordering::AcqRel);
        self.queue.lock().pieces.append(pieces);
        self.filled.notify_one();
    }

    /// One loop has passed all of its stripes.
    pub fn loop_done(&self, shared: &Shared) {
        if self.loops_left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        self.queue.lock().is_whole = true;
        self.filled.notify_one();
        if self.has_no_writer.load(Ordering::SeqCst) {
            finish(shared, self, false);
        }
    }

    /// Bytes that exist only because of this snapshot.
    pub fn memory_bytes(&self) -> u64 {
        self.progress.held_bytes.load(Ordering::Relaxed)
            + self.queued_bytes.load(Ordering::Relaxed) as u64
    }

    /// The next pieces; `None` when all were taken, or nobody wants them any more.
    fn take(&self) -> Option<Vec<Piece>> {
        let mut queue = self.queue.lock();
        loop {
            if self.is_abandoned.load(Ordering::Acquire) {
                return None;
            }
            if !queue.pieces.is_empty() {
                return Some(std::mem::take(&mut queue.pieces));
            }
            if queue.is_whole {
                return None;
            }
            self.filled.wait(&mut queue);
        }
    }

    /// Pieces were written, or thrown away.
    fn taken(&self, (bytes, bytes_max): (usize, usize), shared: &Shared) {
        self.queued_bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.queued_bytes_max.fetch_sub(bytes_max, Ordering::AcqRel);
        let is_stalled = std::mem::take(&mut self.queue.lock().is_stalled);
        if is_stalled {
            shared.wake_all();
        }
    }
}

/// Begins a snapshot of what is there now. All stripes are held, and no transaction runs where the
/// target is a log's base. Returns the number of the last effect that is in it.
///
/// # Errors
/// Where one is under way.
pub fn start(
    shared: &Arc<Shared>,
    keys: &Keys,
    held: &mut Held<'_, Stripe>,
    target: Target,
) -> Result<u64, Busy> {
    let snapshots = &shared.snapshots;
    let mut slot = snapshots.job.lock();
    if let Some(job) = &*slot {
        return Err(if job.is_rdb {
            Busy::Snapshot
        } else {
            Busy::Base
        });
    }
    let config = shared.config();
    let began_us = crate::sys::unix_us();
    let uses = super::uses(&config, began_us / 1_000_000);
    let progress = Arc::new(Progress::default());
    let make = || -> Box<dyn EntryWriter> {
        Box::new(Entries {
            encoder: Encoder::marking(config.rdb_format, config.rdbcompression, uses),
            uses,
        })
    };
    let cut = engine::snapshot::cut(held, keys, &progress, &make);
    let is_rdb = matches!(target, Target::Rdb);
    let job = Arc::new(Job {
        is_rdb,
        uses,
        cut,
        functions: shared.scripts.libraries.now(),
        progress,
        began_us,
        loops_left: AtomicUsize::new(shared.inboxes.len()),
        queue: Mutex::default(),
        filled: Condvar::new(),
        queued_bytes_max: AtomicUsize::new(0),
        queued_bytes: AtomicUsize::new(0),
        is_abandoned: AtomicBool::new(false),
        has_no_writer: AtomicBool::new(false),
        is_finished: AtomicBool::new(false),
        writer: Mutex::new(None),
    });
    if is_rdb {
        let status = &shared.persistence;
        status.saves.fetch_add(1, Ordering::Relaxed);
        status
            .last_try_s
            .store(began_us / 1_000_000, Ordering::Relaxed);
        notice!("Background saving started");
    }
    *slot = Some(job.clone());
    snapshots.begun.fetch_add(1, Ordering::Release);
    drop(slot);
    let (for_writer, its_job) = (shared.clone(), job.clone());
    let writer = std::thread::Builder::new()
        .name("snapshot".to_owned())
        .spawn(move || write_all(&for_writer, &its_job, &config, target));
    match writer {
        Ok(writer) => *job.writer.lock() = Some(writer),
        Err(error) => {
            warning!("Can't save in background: {error}");
            job.progress.cancelled.store(true, Ordering::Relaxed);
            job.has_no_writer.store(true, Ordering::SeqCst);
        }
    }
    shared.wake_all();
    Ok(job.cut.lsn)
}

/// What the writer's thread does.
fn write_all(shared: &Arc<Shared>, job: &Job, config: &Config, target: Target) {
    crate::sys::step_back();
    let name = match &target {
        Target::Rdb => super::file_name(config),
        Target::AofBase { file, .. } => file.clone(),
    };
    let disk = match &target {
        Target::Rdb => Disk::new(&config.dir),
        Target::AofBase { directory, .. } => Disk::new(directory),
    };
    let syncs = match &target {
        Target::Rdb => config.rdb_save_incremental_fsync,
        Target::AofBase { .. } => config.aof_rewrite_incremental_fsync,
    };
    let about = super::about(shared, !job.is_rdb);
    let encoder = Encoder::new(config.rdb_format, config.rdbcompression, job.uses);
    let fill = |saver: &mut Saver<_>| {
        saver.after_write(pace::after_write(shared, syncs));
        fill(saver, &about, job, shared)
    };
    let result = persist::rdb::save(&disk, &name, encoder, config.rdbchecksum, fill);
    if result.is_err() {
        // The stripes must be passed all the same before there can be another cut.
        job.progress.cancelled.store(true, Ordering::Relaxed);
        shared.wake_all();
        while let Some(pieces) = job.take() {
            job.taken(sums(&pieces), shared);
        }
    }
    let is_abandoned = job.is_abandoned.load(Ordering::Acquire);
    let is_ok = result.is_ok();
    match (target, result) {
        (Target::Rdb, Err(_)) if is_abandoned => {}
        (Target::Rdb, Ok(len)) => {
            let keys = job.cut.keys;
            notice!("BGSAVE done, {keys} keys saved, 0 keys skipped, {len} bytes written.");
            notice!("DB saved on disk");
            notice!("Background saving terminated with success");
        }
        (Target::Rdb, Err(error)) => {
            warning!("Can't write the snapshot {name}: {error}");
            warning!("Background saving error");
        }
        (Target::AofBase { done, .. }, result) => {
            done(result.map_err(|error| (error, is_abandoned)));
        }
    }
    if is_ok || !is_abandoned {
        finish(shared, job, is_ok);
    }
}

/// Writes the parts of the file as they come.
fn fill<W: StorageFile>(
    saver: &mut Saver<W>,
    about: &About<'_>,
    job: &Job,
    shared: &Shared,
) -> Result<(), SaveError> {
    saver.begin(about);
    for library in job.functions.libraries.values() {
        saver.library(&library.source)?;
    }
    let (mut seen, mut db) = (Vec::new(), None);
    while let Some(pieces) = job.take() {
        check_values(job)?;
        let of_batch = sums(&pieces);
        for piece in pieces {
            if db != Some(piece.db) {
                db = Some(piece.db);
                let sizes = job.cut.dbs.iter().find(|(db, ..)| *db == piece.db);
                match sizes {
                    Some(&(db, keys, timed)) if !seen.contains(&db) => {
                        seen.push(db);
                        saver.db(db, keys, timed);
                    }
                    _ => {
                        let mut select = vec![SELECT];
                        write_number(&mut select, piece.db.into());
                        saver.raw(&select)?;
                    }
                }
            }
            saver.marked(&piece.bytes, &piece.marks)?;
            for big in piece.big {
                let access = before(job.uses, big.access);
                saver.big(big, access)?;
            }
        }
        job.taken(of_batch, shared);
    }
    if job.is_abandoned.load(Ordering::Acquire) {
        return Err(std::io::Error::other("it was given up").into());
    }
    check_values(job)
}

/// Whether all values so far have a form in the file.
fn check_values(job: &Job) -> Result<(), SaveError> {
    match job.progress.unwritable.lock().take() {
        Some((db, key, why)) => Err(SaveError::Value { db, key, why }),
        None => Ok(()),
    }
}

/// Bytes of pieces, and with their big values.
fn sums(pieces: &[Piece]) -> (usize, usize) {
    let sums = pieces
        .iter()
        .map(|piece| (piece.bytes.len(), piece.bytes_max()));
    sums.fold((0, 0), |sum, (bytes, bytes_max)| {
        (sum.0 + bytes, sum.1 + bytes_max)
    })
}

/// A job has ended: what it leaves for INFO, and room for the next one.
fn finish(shared: &Shared, job: &Job, is_ok: bool) {
    if job.is_finished.swap(true, Ordering::AcqRel) {
        return;
    }
    let now_us = crate::sys::unix_us();
    let is_abandoned = job.is_abandoned.load(Ordering::Acquire);
    if job.is_rdb && (is_ok || !is_abandoned) {
        let status = &shared.persistence;
        if is_ok {
            status.saved(job.cut.changes, now_us / 1_000_000);
        } else {
            status.bgsave_failed();
        }
        let held = job.progress.held_bytes_max.load(Ordering::Relaxed);
        status.last_held_bytes.store(held, Ordering::Relaxed);
        let took_s = now_us.saturating_sub(job.began_us) / 1_000_000;
        let took_s = i64::try_from(took_s).unwrap_or(i64::MAX);
        status.last_took_s.store(took_s, Ordering::Relaxed);
    }
    *shared.snapshots.job.lock() = None;
    shared.wake_all();
}

/// Entries in the form of the file.
struct Entries {
    encoder: Encoder,
    uses: Uses,
}

impl EntryWriter for Entries {
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        _: u32,
        record: RecordRef<'_, Object>,
    ) -> Result<(), Unwritable> {
        let mut entry = persist::rdb::Entry::from(record);
        entry.access = before(self.uses, entry.access);
        self.encoder.entry(out, entry)
    }

    fn take_marks(&mut self) -> Vec<usize> {
        self.encoder.forms().take_marks()
    }
}

/// Access bits, where they say a time after the cut, with the time of the cut: reading a key is no
/// change, so a record may be seen with bits from later.
fn before(uses: Uses, access: u32) -> u32 {
    const DAY_S: u32 = 86_400;
    match uses {
        Uses::None => access,
        Uses::Idle { now_s } => {
            let now = access::seconds(now_s * 1000);
            let is_later = access.wrapping_sub(now) & 0xff_ffff < DAY_S;
            if is_later { now } else { access }
        }
        Uses::Frequency { now_s, .. } => {
            let minute = access::minute(now_s * 1000);
            let is_later = (access >> 8).wrapping_sub(minute) & 0xffff < DAY_S / 60;
            if is_later {
                minute << 8 | access & 0xff
            } else {
                access
            }
        }
    }
}

impl Shared {
    /// Whether a `save` point is reached at which the data set is to be saved, with so many
    /// changes since the start.
    pub fn is_save_due(&self, config: &Config, changes: u64, now_s: u64) -> Option<(u64, i64)> {
        let status = &self.persistence;
        let is_retry = status.last_save_failed.load(Ordering::Relaxed);
        let last_try_s = status.last_try_s.load(Ordering::Relaxed);
        if is_retry && now_s.saturating_sub(last_try_s) <= RETRY_S {
            return None;
        }
        let changes = changes.saturating_sub(status.changes_saved.load(Ordering::Relaxed));
        let passed_s = now_s.saturating_sub(status.last_save_s.load(Ordering::Relaxed));
        let passed_s = i64::try_from(passed_s).unwrap_or(i64::MAX);
        let point = config.save.iter().find(|point| {
            let wanted = u64::try_from(point.changes).unwrap_or(0);
            changes >= wanted && passed_s > point.seconds
        })?;
        Some((changes, point.seconds))
    }

    /// Whether writes are refused because the last snapshot failed.
    pub fn refuses_writes(&self, config: &Config) -> bool {
        self.persistence.last_save_failed.load(Ordering::Relaxed)
            && config.stop_writes_on_bgsave_error
            && !config.save.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_after_the_cut_count_as_the_cut() {
        let idle = Uses::Idle { now_s: 0x100_0010 };
        assert_eq!(before(idle, 0x11), 0x10);
        assert_eq!(before(idle, 0x0f), 0x0f);
        assert_eq!(before(idle, 0xff_fff0), 0xff_fff0);
        let frequency = Uses::Frequency {
            now_s: 600,
            decay_minutes: 1,
        };
        assert_eq!(before(frequency, 11 << 8 | 7), 10 << 8 | 7);
        assert_eq!(before(frequency, 9 << 8 | 7), 9 << 8 | 7);
    }
}
