//! The thread that writes the append-only log.
//!
//! Loops put their frames into a queue at the end of a turn, with one lock; the thread puts them in
//! order, writes and syncs ([`persist::log`]), and says how far the disk is. A loop keeps replies
//! until what came before them is written, and under `appendfsync always` until the disk has it
//! ([`Hold`]), and goes on meanwhile; under `always` the thread waits a little for those whom it
//! just answered, so that one sync is for all ([`Group`]).
//!
//! # Invariants
//! - Nobody but this thread waits for the disk.
//! - While writing fails, or too much waits to be written, no command that writes is begun: what
//!   waits is bounded by [`QUEUE_BYTES_MAX`] and one turn of each loop.
//! - Frames are taken as long as the stripes may make them: whether the log is read changes only
//!   while all stripes are held.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, AtomicUsize, Ordering, fence};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use engine::host::{ClientId, Durable};
use engine::keyspace::Stripe;
use engine::log::Frames;
use parking_lot::{Condvar, Mutex};
use persist::log::{Base, Event, Log, Options, Policy};
use persist::manifest::{Entry, Kind, Layout, Manifest};
use persist::rdb;
use persist::storage::{Disk, Storage};
use structure::stripes::Held;

use super::backup;
use super::snapshot::{self, Busy, Target};
use crate::config::{AppendFsync, Config};
use crate::shared::Shared;
use crate::{notice, sys, warning};

/// Bytes that wait to be written from which on commands that write have to wait.
const QUEUE_BYTES_MAX: u64 = 64 << 20;
/// Milliseconds for which frames gather where nobody waits for them, and between attempts to write
/// what is left at the end.
const GATHER_MS: u64 = 2;
/// Microseconds for which the other clients' frames are waited for at most.
const GROUP_US_MAX: u64 = 2000;
/// Milliseconds after which a sync counts as delayed.
const SYNC_LATE_MS: u64 = 2000;
/// Seconds before a rewrite is tried again after the first one that failed; twice as many after
/// each other one.
const RETRY_S: u64 = 1;
/// Seconds at most.
const RETRY_S_MAX: u64 = 600;
/// Attempts to write what is left when the server stops.
const LAST_ATTEMPTS: u32 = 3;

/// What the thread is told beside frames.
enum Order {
    Options(Options),
    TurnAfter(u64),
    Rebase(Base),
    Abandon,
    Sync,
    /// Ends the increment after this frame, for a backup; who waits for that.
    Seal(u64, Option<ClientId>),
    Swept(Vec<String>),
    /// Write all up to this frame, and end.
    Stop(u64),
}

/// What replies wait for.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Hold {
    /// Nothing: what is written does not count yet, or any more.
    Nothing,
    /// That the system has what came before them, so that the end of the process loses nothing that
    /// was answered. Not while a sync is under way, which may take long, nor while writing fails.
    Written,
    /// That the disk has it.
    Durable,
}

/// Who is answered after a sync mostly sends the next command at once. Were the next sync begun
/// before that has come, clients would fall into two groups that wait for each other's syncs, each
/// served half as often. So what came with the last sync, and what came during it, is waited for
/// before the next: a share of the time that a sync takes at most, and only as long as more comes.
#[derive(Clone, Copy, Default)]
struct Group {
    /// Frames of the last sync.
    frames: usize,
    /// How long it took.
    sync: Duration,
}

impl Group {
    /// How long the others are waited for at most.
    fn patience(self) -> Duration {
        (self.sync / 2).min(Duration::from_micros(GROUP_US_MAX))
    }

    /// After how long in which nothing comes they are not waited for any more.
    fn silence(self) -> Duration {
        self.patience() / 4
    }
}

#[derive(Default)]
struct Queue {
    frames: Vec<Frames>,
    /// How many frames those have together.
    count: usize,
    /// At how many the thread wants to be woken, beside the first.
    wanted: usize,
    spares: Vec<Frames>,
    orders: Vec<Order>,
}

/// The log as the rest of the server sees it.
#[derive(Default)]
pub struct LogThread {
    queue: Mutex<Queue>,
    filled: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The directory that the log's is in: what `dir` was when it began.
    place: Mutex<PathBuf>,
    /// Held by who replaces the manifest while there is no thread that does.
    files: Mutex<()>,
    /// Whether the log is written.
    pub is_on: AtomicBool,
    /// Whether it has a base, so that what is on the disk counts.
    has_base: AtomicBool,
    /// Whether it was told to end.
    is_stopping: AtomicBool,
    /// Whether its files are to be removed when it ends.
    is_removed: AtomicBool,
    /// What replies wait for: a [`Hold`].
    hold: AtomicU8,
    /// How many loops keep replies.
    pub holders: AtomicUsize,
    /// The last frame that the system has; all of them where nobody is to wait for it.
    written_lsn: AtomicU64,
    /// The last frame on the disk.
    durable_lsn: AtomicU64,
    /// Whether the last attempt to write failed.
    has_failed: AtomicBool,
    /// What the system said then.
    failure: Mutex<String>,
    is_congested: AtomicBool,
    /// Bytes that wait to be written or synced.
    pub pending_bytes: AtomicU64,
    /// Bytes of all files.
    pub size_bytes: AtomicU64,
    /// Bytes after the last rewrite.
    pub base_bytes: AtomicU64,
    /// Syncs that took too long.
    pub delayed_syncs: AtomicU64,
    /// How often writes had to wait because too much waited to be written.
    pub congestions: AtomicU64,
    /// When the rewrite under way began: Unix seconds; 0 where there is none.
    pub rewrite_since_s: AtomicU64,
    /// Whether a rewrite is to follow the snapshot under way.
    pub is_scheduled: AtomicBool,
    /// When a rewrite may begin by itself again after one that failed: Unix seconds.
    pub retry_s: AtomicU64,
    /// Clients that wait until what they wrote is on the disk.
    pub waiting: AtomicUsize,
    /// Rewrites begun.
    pub rewrites: AtomicU64,
    /// Rewrites that failed since one did not.
    pub rewrite_failures: AtomicU64,
    /// Seconds that the last rewrite took, and one more; 0 where there was none.
    pub rewrite_took_s: AtomicI64,
}

/// How the log is written, as configured.
fn options(config: &Config) -> Options {
    Options {
        policy: match config.appendfsync {
            AppendFsync::Always => Policy::Always,
            AppendFsync::EverySecond => Policy::EverySecond,
            AppendFsync::No => Policy::Never,
        },
        timestamps: config.aof_timestamp_enabled,
    }
}

/// Where the files are, as configured.
pub fn layout(config: &Config) -> Layout {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Layout {
        directory: text(&config.appenddirname),
        file: text(&config.appendfilename),
    }
}

impl LogThread {
    /// Whether a reply that is ready after frame `lsn` must wait for the log.
    #[inline]
    pub fn must_hold(&self, lsn: u64) -> bool {
        let hold = self.hold.load(Ordering::Relaxed);
        if hold == Hold::Nothing as u8 {
            return false;
        }
        let passed = match hold == Hold::Written as u8 {
            true => &self.written_lsn,
            false => &self.durable_lsn,
        };
        lsn > passed.load(Ordering::Acquire)
    }

    fn is_always(&self) -> bool {
        self.hold.load(Ordering::Relaxed) == Hold::Durable as u8
    }

    /// Wakes the loops if one of them keeps replies. A loop counts itself before it looks how far
    /// the log is for the last time, and that is said before this looks for loops; so one of the
    /// two sees the other.
    fn wake_holders(&self, shared: &Shared) {
        fence(Ordering::SeqCst);
        if self.holders.load(Ordering::Relaxed) > 0 {
            shared.wake_all();
        }
    }

    /// Has nobody wait while a sync is under way.
    fn let_go(&self, shared: &Shared) {
        if self.hold.load(Ordering::Relaxed) == Hold::Written as u8 {
            self.written_lsn.store(u64::MAX, Ordering::Release);
            self.wake_holders(shared);
        }
    }

    /// The last frame on the disk that would be there after a crash.
    #[inline]
    pub fn durable_lsn(&self) -> u64 {
        self.durable_lsn.load(Ordering::Acquire)
    }

    /// Whether it has a base, so that what is on the disk counts.
    pub fn has_base(&self) -> bool {
        self.has_base.load(Ordering::Acquire)
    }

    /// What the disk has, where a log is wanted.
    pub fn durable(&self) -> Durable {
        let counts = self.is_on.load(Ordering::Acquire)
            && self.has_base.load(Ordering::Acquire)
            && !self.is_stopping();
        match counts {
            true => Durable::UpTo(self.durable_lsn()),
            false => Durable::Nothing,
        }
    }

    /// Whether it was told to end.
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    /// Whether the log is elsewhere than `dir` says now.
    pub fn is_elsewhere(&self, config: &Config) -> bool {
        self.is_on.load(Ordering::Acquire) && *self.place.lock() != config.dir
    }

    /// Where the log's files are.
    fn disk(&self) -> Disk {
        Disk::new(self.place.lock().clone())
    }

    /// Whether writing fails at present.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Acquire)
    }

    /// Whether commands that write have to wait.
    #[inline]
    pub fn is_congested(&self) -> bool {
        self.is_congested.load(Ordering::Relaxed)
    }

    /// What the system said when writing failed last.
    pub fn failure(&self) -> String {
        self.failure.lock().clone()
    }

    /// Takes the frames of a loop, and leaves it room for the next ones.
    pub fn put(&self, frames: &mut Frames) {
        if !self.is_on.load(Ordering::Acquire) {
            return frames.clear();
        }
        let mut queue = self.queue.lock();
        let spare = queue.spares.pop().unwrap_or_default();
        let before = queue.count;
        queue.count += frames.len();
        queue.frames.push(std::mem::replace(frames, spare));
        let is_full = before < queue.wanted && queue.count >= queue.wanted;
        drop(queue);
        if before == 0 || is_full {
            self.filled.notify_one();
        }
    }

    fn order(&self, order: Order) {
        self.queue.lock().orders.push(order);
        self.filled.notify_one();
    }

    /// Adopts a changed configuration.
    pub fn configure(&self, config: &Config) {
        self.order(Order::Options(options(config)));
        self.note_policy(config);
    }

    /// Replies wait where there is something to wait for.
    fn note_policy(&self, config: &Config) {
        let counts = config.appendonly
            && self.is_on.load(Ordering::Relaxed)
            && self.has_base.load(Ordering::Relaxed);
        let hold = match config.appendfsync {
            _ if !counts => Hold::Nothing,
            AppendFsync::Always => Hold::Durable,
            AppendFsync::EverySecond | AppendFsync::No => Hold::Written,
        };
        self.hold.store(hold as u8, Ordering::Release);
    }

    /// Ends the increment after frame `lsn` and seals the backup.
    pub fn seal_after(&self, lsn: u64, client: Option<ClientId>) {
        self.order(Order::Seal(lsn, client));
    }

    /// Asks for what was written to be forced to the disk soon, whatever the policy.
    pub fn ask_for_sync(&self) {
        self.order(Order::Sync);
    }

    /// Waits for frames, orders or the time.
    fn take(
        &self,
        wait: Option<Duration>,
        gathers: bool,
        group: Option<Group>,
    ) -> (Vec<Frames>, Vec<Order>) {
        let mut queue = self.queue.lock();
        let expected = queue.count + group.map_or(0, |group| group.frames);
        if queue.frames.is_empty() && queue.orders.is_empty() {
            match wait {
                Some(wait) => {
                    self.filled.wait_for(&mut queue, wait);
                }
                None => self.filled.wait(&mut queue),
            }
        }
        if gathers && queue.orders.is_empty() {
            let wait = Duration::from_millis(GATHER_MS);
            parking_lot::MutexGuard::unlocked(&mut queue, || std::thread::sleep(wait));
        }
        if let Some(group) = group {
            self.gather(&mut queue, expected, group);
        }
        let frames = std::mem::take(&mut queue.frames);
        queue.count = 0;
        (frames, std::mem::take(&mut queue.orders))
    }

    /// Waits for the frames of clients that were just answered; see [`Group`].
    fn gather(
        &self,
        queue: &mut parking_lot::MutexGuard<'_, Queue>,
        expected: usize,
        group: Group,
    ) {
        let until = Instant::now() + group.patience();
        queue.wanted = expected;
        while (1..expected).contains(&queue.count) && queue.orders.is_empty() {
            let before = queue.count;
            let end = until.min(Instant::now() + group.silence());
            self.filled.wait_until(queue, end);
            if queue.count == before || Instant::now() >= until {
                break;
            }
        }
        queue.wanted = 0;
    }

    fn give_back(&self, spares: impl Iterator<Item = Frames>) {
        self.queue.lock().spares.extend(spares);
    }
}

/// What a log begins with.
pub enum Begin {
    /// The log of a manifest goes on.
    After(Manifest),
    /// A base is still to be made; until it is there the files of the manifest stand.
    WithoutBase(Manifest),
}

/// Begins to write the log, with frames after the last one there is now. All stripes are held, or
/// nothing runs yet; the log before has ended.
///
/// # Errors
/// Where the files cannot be made.
pub fn start(shared: &Arc<Shared>, begin: Begin) -> Result<(), String> {
    let config = shared.config();
    let lsn = shared.keys.lsn.load(Ordering::Relaxed);
    let layout = layout(&config);
    let files = shared.log.files.lock();
    let disk = Disk::new(&config.dir);
    shared.log.place.lock().clone_from(&config.dir);
    let now_ms = sys::unix_us() / 1000;
    let has_base = matches!(begin, Begin::After(_));
    let mut size = 0;
    let opened = match begin {
        Begin::After(manifest) => {
            for entry in manifest.files() {
                let file = disk.open(&layout.path(&entry.name));
                let bytes = file.and_then(|file| persist::storage::StorageFile::len(&file));
                size += bytes.unwrap_or(0);
            }
            Log::open(disk, layout, manifest, options(&config), lsn, now_ms)
        }
        Begin::WithoutBase(old) => {
            Log::open_without_base(disk, layout, old, options(&config), lsn, now_ms)
        }
    };
    let mut log = opened.map_err(|error| format!("Can't open the append-only file: {error}"))?;
    log.note_sizes(size, size);
    let thread = &shared.log;
    if let Some(last) = thread.thread.lock().take() {
        let _ = last.join();
    }
    *thread.queue.lock() = Queue::default();
    thread.written_lsn.store(lsn, Ordering::Release);
    thread.durable_lsn.store(lsn, Ordering::Release);
    thread.base_bytes.store(size, Ordering::Relaxed);
    thread.size_bytes.store(size, Ordering::Relaxed);
    thread.has_failed.store(false, Ordering::Release);
    thread.is_stopping.store(false, Ordering::Release);
    thread.is_removed.store(false, Ordering::Release);
    thread.has_base.store(has_base, Ordering::Release);
    thread.retry_s.store(0, Ordering::Relaxed);
    thread.is_on.store(true, Ordering::Release);
    drop(files);
    thread.note_policy(&config);
    shared.keys.log_is_read.store(true, Ordering::Relaxed);
    let of_thread = shared.clone();
    let spawned = std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || run(&of_thread, log));
    let handle = spawned.map_err(|error| format!("Can't start the log's thread: {error}"))?;
    *thread.thread.lock() = Some(handle);
    if has_base {
        sweep(shared, &config);
    }
    Ok(())
}

/// Begins a log while the server runs: what is there now becomes its base in the background. Does
/// nothing where a log is still ending; whoever looks later begins it then. All stripes are held.
///
/// # Errors
/// Where the files cannot be made.
pub fn begin(
    shared: &Arc<Shared>,
    keys: &engine::keyspace::Shared,
    held: &mut Held<'_, Stripe>,
) -> Result<(), String> {
    if shared.log.is_on.load(Ordering::Acquire) {
        if shared.log.is_stopping() {
            shared.log.is_scheduled.store(true, Ordering::Relaxed);
        }
        return Ok(());
    }
    let config = shared.config();
    if !config.appendonly && !shared.backup.owns_log.load(Ordering::Relaxed) {
        return Ok(());
    }
    let old = Manifest::load(&Disk::new(&config.dir), &layout(&config))
        .map_err(|error| error.to_string())?;
    start(shared, Begin::WithoutBase(old.unwrap_or_default()))?;
    if rewrite(shared, keys, held).is_err() {
        shared.log.is_scheduled.store(true, Ordering::Relaxed);
        notice!("The AOF begins when the snapshot under way is written");
    }
    Ok(())
}

/// Ends the log of a backup that is over, and removes its files. All stripes are held.
pub fn remove(shared: &Shared) {
    shared.log.is_removed.store(true, Ordering::Release);
    stop(shared);
}

/// Ends the log. All stripes are held.
pub fn stop(shared: &Shared) {
    shared.keys.log_is_read.store(false, Ordering::Relaxed);
    let thread = &shared.log;
    thread.is_stopping.store(true, Ordering::Release);
    thread.is_scheduled.store(false, Ordering::Relaxed);
    if shared.snapshots.busy() == Some(Busy::Base) {
        notice!("The AOF ends: its rewrite is given up");
        snapshot::abandon(shared);
    }
    let lsn = shared.keys.lsn.load(Ordering::Relaxed);
    thread.order(Order::Stop(lsn));
}

/// Waits for the end of the thread: no loop runs any more.
pub fn join(shared: &Shared) {
    if shared.log.is_on.load(Ordering::Acquire) {
        notice!("Calling fsync() on the AOF file.");
        match shared.backup.owns_log.load(Ordering::Relaxed) {
            true => remove(shared),
            false => stop(shared),
        }
    }
    if let Some(thread) = shared.log.thread.lock().take() {
        let _ = thread.join();
    }
}

fn run(shared: &Arc<Shared>, mut log: Log<Disk>) {
    let thread = &shared.log;
    let mut until = None;
    let mut attempts = 0;
    let mut new_base = None;
    let mut must_sync = false;
    let mut sealing = None;
    let mut group = Group::default();
    loop {
        let now_ms = sys::unix_us() / 1000;
        let wait = log.wait_ms(now_ms).map(Duration::from_millis);
        let is_always = thread.is_always();
        let is_awaited = thread.hold.load(Ordering::Relaxed) != Hold::Nothing as u8;
        let gathers = !is_awaited && until.is_none();
        let of_last = (is_always && until.is_none()).then_some(group);
        let wait = if until.is_some() {
            Some(Duration::from_millis(GATHER_MS))
        } else {
            wait
        };
        let (frames, orders) = thread.take(wait, gathers, of_last);
        let count = frames.iter().map(Frames::len).sum();
        frames.into_iter().for_each(|frames| log.add(frames));
        for order in orders {
            match order {
                Order::Options(options) => log.set_options(options),
                Order::TurnAfter(lsn) => log.turn_after(lsn),
                Order::Rebase(base) => new_base = Some(base),
                Order::Abandon => log.abandon(),
                Order::Sync => must_sync = true,
                Order::Seal(lsn, client) => {
                    log.end_after(lsn);
                    sealing = Some(client);
                }
                Order::Swept(removed) => {
                    if let Err(error) = log.swept(&removed) {
                        warning!("Can't write the AOF manifest: {error}");
                    }
                }
                Order::Stop(lsn) => until = Some(lsn),
            }
        }
        let began_us = sys::unix_us();
        let before = (log.written_lsn(), log.durable_lsn());
        let began = Instant::now();
        let syncs = until.is_some() || must_sync;
        log.turn_saying(began_us / 1000, syncs, &mut || thread.let_go(shared));
        must_sync &= log.failure().is_some();
        group = Group {
            frames: count,
            sync: began.elapsed(),
        };
        // It may be there before the frames that it holds.
        if let Some(base) = new_base.take_if(|_| log.may_rebase()) {
            rebase(shared, &mut log, &base);
        }
        if let Some(client) = sealing.take_if(|_| !log.is_turning()) {
            backup::seal(shared, Some(&mut log), client);
        }
        publish(shared, &mut log, began_us, before);
        if let Some(lsn) = until {
            attempts += u32::from(log.failure().is_some());
            // Without a base nothing of it counts.
            if log.durable_lsn() >= lsn || !log.has_base() {
                break;
            }
            if attempts > LAST_ATTEMPTS * 500 {
                let lost = lsn - log.durable_lsn();
                warning!("The log ends without its last {lost} changes: they could not be written");
                break;
            }
        }
    }
    if let Some(client) = sealing {
        backup::seal(shared, None, client);
    }
    match thread.is_removed.swap(false, Ordering::AcqRel) {
        true => {
            if let Err(error) = log.remove() {
                warning!("Can't remove the AOF that was written for a backup: {error}");
            }
        }
        false => log.discard(),
    }
    thread.hold.store(Hold::Nothing as u8, Ordering::Release);
    thread.has_failed.store(false, Ordering::Release);
    thread.is_congested.store(false, Ordering::Relaxed);
    thread.is_on.store(false, Ordering::Release);
    shared.wake_all();
}

/// Tells the others how the log stands.
fn publish(shared: &Shared, log: &mut Log<Disk>, began_us: u64, before: (u64, u64)) {
    let thread = &shared.log;
    let now_us = sys::unix_us();
    let took_ms = now_us.saturating_sub(began_us) / 1000;
    let threshold_ms = shared.config().latency_monitor_threshold_ms;
    if threshold_ms > 0 && took_ms >= threshold_ms {
        let event = match thread.is_always() {
            true => "aof-fsync-always",
            false => "aof-write",
        };
        shared
            .latency
            .lock()
            .note(event, now_us / 1_000_000, took_ms);
    }
    if took_ms >= SYNC_LATE_MS {
        thread.delayed_syncs.fetch_add(1, Ordering::Relaxed);
        warning!("Asynchronous AOF fsync is taking too long (disk is busy?): {took_ms} ms");
    }
    thread.give_back(std::iter::from_fn(|| log.spare()));
    let events = log.take_events();
    for event in events {
        match event {
            Event::Began(name) => notice!("Creating AOF incr file {name}"),
            // Attempts that fail again say nothing new.
            Event::Failed(..) if thread.has_failed() => {}
            Event::Failed(what, name, error) => {
                warning!(
                    "Error writing to the AOF file {name} ({what}): {error}. Writes are refused \
                     until it works again."
                );
            }
            Event::NotTurned(name, error) => warning!(
                "Can't begin the AOF file {name}: {error}. It is not rewritten; the file before it \
                 goes on."
            ),
            Event::Recovered(waited) => warning!(
                "AOF write error looks solved: {waited} changes that waited are on the disk, and \
                 the server can write again."
            ),
            Event::Rebased(name) => notice!("The AOF's base is now {name}"),
            _ => {}
        }
    }
    let pending = log.pending_bytes() as u64;
    thread.pending_bytes.store(pending, Ordering::Relaxed);
    thread.size_bytes.store(log.size_bytes(), Ordering::Relaxed);
    thread.base_bytes.store(log.base_bytes(), Ordering::Relaxed);
    let failure = log.failure().map(str::to_owned);
    let has_failed = failure.is_some();
    if let Some(failure) = failure {
        *thread.failure.lock() = failure;
    }
    if has_failed && shared.backup.owns_log.load(Ordering::Relaxed) {
        backup::fail(shared, "the log cannot be written");
    }
    let was_failed = thread.has_failed.swap(has_failed, Ordering::AcqRel);
    let is_congested = pending > QUEUE_BYTES_MAX && !has_failed;
    let was_congested = thread.is_congested.swap(is_congested, Ordering::AcqRel);
    if is_congested && !was_congested {
        thread.congestions.fetch_add(1, Ordering::Relaxed);
        warning!("{pending} bytes wait for the AOF: writes wait until the disk has caught up");
    }
    let (written, durable) = (log.written_lsn(), log.durable_lsn());
    let passed = match has_failed {
        true => u64::MAX,
        false => written,
    };
    thread.written_lsn.store(passed, Ordering::Release);
    if log.has_base() {
        thread.durable_lsn.store(durable, Ordering::Release);
        if !thread.has_base.swap(true, Ordering::AcqRel) {
            thread.note_policy(&shared.config());
            shared.wake_all();
        }
    }
    let is_waited_for = durable > before.1 && thread.waiting.load(Ordering::Relaxed) > 0;
    if is_waited_for || was_failed != has_failed || was_congested != is_congested {
        shared.wake_all();
    } else if (written, durable) != before {
        thread.wake_holders(shared);
    }
}

/// Begins a rewrite of the log; where none is written, what there is now becomes one, with nothing
/// after its base. All stripes are held.
///
/// # Errors
/// Where a snapshot is under way.
pub fn rewrite(
    shared: &Arc<Shared>,
    keys: &engine::keyspace::Shared,
    held: &mut Held<'_, Stripe>,
) -> Result<(), Busy> {
    let config = shared.config();
    let layout = layout(&config);
    let has_log = shared.log.is_on.load(Ordering::Acquire);
    let directory = match has_log {
        true => shared.log.place.lock().clone(),
        false => config.dir.clone(),
    };
    let disk = Disk::new(&directory);
    if !has_log && let Err(error) = disk.make_directory(&layout.directory) {
        warning!("Can't make the AOF's directory: {error}");
    }
    let file = layout.path(&temporary_base("rdb"));
    let (of_done, path) = (shared.clone(), file.clone());
    let done = Box::new(move |written: Result<u64, (rdb::SaveError, bool)>| {
        let made = written.and_then(|bytes| {
            in_its_form(&of_done, &config, &disk, path, bytes).map_err(|error| (error, false))
        });
        match made {
            Ok(base) if has_log => of_done.log.order(Order::Rebase(base)),
            Ok(base) => adopt_alone(&of_done, &disk, &layout, &base),
            Err((error, is_abandoned)) => given_up(&of_done, &error, is_abandoned),
        }
    });
    snapshot::start(
        shared,
        keys,
        held,
        Target::AofBase {
            directory,
            file,
            done,
        },
    )?;
    let lsn = shared.keys.lsn.load(Ordering::Relaxed);
    let thread = &shared.log;
    if has_log {
        thread.order(Order::TurnAfter(lsn));
    }
    thread.is_scheduled.store(false, Ordering::Relaxed);
    let now_s = sys::unix_us() / 1_000_000;
    thread.rewrite_since_s.store(now_s, Ordering::Relaxed);
    thread.rewrites.fetch_add(1, Ordering::Relaxed);
    notice!("Background append only file rewriting started");
    Ok(())
}

/// What a base is called while it is written.
fn temporary_base(form: &str) -> String {
    format!("temp-rewriteaof-bg-{}.{form}", std::process::id())
}

/// Makes commands of a snapshot that is to be the log's base, where that is asked for.
fn in_its_form(
    shared: &Shared,
    config: &Config,
    disk: &Disk,
    snapshot: String,
    bytes: u64,
) -> Result<Base, rdb::SaveError> {
    if config.aof_use_rdb_preamble {
        return Ok(Base {
            path: snapshot,
            is_snapshot: true,
            bytes,
        });
    }
    let path = layout(config).path(&temporary_base("aof"));
    let options = persist::commands::Options {
        settings: &crate::event_loop::settings_of(config),
        seed: &shared.keys.seed,
        format: config.rdb_format,
        at_s: config
            .aof_timestamp_enabled
            .then(|| sys::unix_us() / 1_000_000),
    };
    let written = persist::commands::write(disk, &snapshot, &path, &options);
    let _ = disk.remove(&snapshot);
    Ok(Base {
        path,
        is_snapshot: false,
        bytes: written?,
    })
}

/// Makes `base` a log of its own, in the place of what was there.
fn adopt_alone(shared: &Shared, disk: &Disk, layout: &Layout, base: &Base) {
    let _files = shared.log.files.lock();
    if shared.log.is_on.load(Ordering::Acquire) {
        notice!("An AOF has begun, which gets a base of its own: this one is given up");
        let _ = disk.remove(&base.path);
        return rewrite_ended(shared, false);
    }
    let adopted = put_base(disk, layout, base).and_then(|mut manifest| {
        let said = |error: std::io::Error| error.to_string();
        manifest.store(disk, layout).map_err(said)?;
        for entry in std::mem::take(&mut manifest.history) {
            // What cannot be removed is overwritten some day.
            let _ = disk.remove(&layout.path(&entry.name));
        }
        manifest.store(disk, layout).map_err(said)
    });
    if let Err(error) = &adopted {
        warning!("Can't adopt the AOF's base: {error}");
    }
    rewrite_ended(shared, adopted.is_ok());
}

/// Gives `base` its name, and makes a manifest in which it stands alone.
fn put_base(disk: &Disk, layout: &Layout, base: &Base) -> Result<Manifest, String> {
    let old = Manifest::load(disk, layout).map_err(|error| error.to_string())?;
    let mut manifest = old.unwrap_or_default();
    let seq = manifest.base.as_ref().map_or(0, |base| base.seq) + 1;
    let name = layout.base(seq, base.is_snapshot);
    let replaced: Vec<Entry> = manifest
        .base
        .take()
        .into_iter()
        .chain(std::mem::take(&mut manifest.increments))
        .collect();
    manifest.retire(replaced);
    disk.rename(&base.path, &layout.path(&name))
        .and_then(|()| disk.sync_directory(&layout.directory))
        .map_err(|error| error.to_string())?;
    manifest.base = Some(Entry {
        name,
        seq,
        kind: Kind::Base,
    });
    Ok(manifest)
}

/// There is no new base.
fn given_up(shared: &Shared, error: &rdb::SaveError, is_abandoned: bool) {
    let thread = &shared.log;
    if thread.is_on.load(Ordering::Acquire) {
        thread.order(Order::Abandon);
    }
    if is_abandoned {
        thread.rewrite_since_s.store(0, Ordering::Relaxed);
        backup::base_failed(shared);
        // It made way for a snapshot that everybody waits for, unless the log ends.
        let again = !thread.is_stopping.load(Ordering::Acquire);
        return thread.is_scheduled.store(again, Ordering::Relaxed);
    }
    warning!("Can't write the AOF's base: {error}");
    rewrite_ended(shared, false);
}

fn rewrite_ended(shared: &Shared, is_ok: bool) {
    let thread = &shared.log;
    let since_s = thread.rewrite_since_s.swap(0, Ordering::Relaxed);
    let took_s = (sys::unix_us() / 1_000_000).saturating_sub(since_s);
    let took_s = i64::try_from(took_s).unwrap_or(i64::MAX - 1);
    thread.rewrite_took_s.store(took_s + 1, Ordering::Relaxed);
    match is_ok {
        true => {
            thread.rewrite_failures.store(0, Ordering::Relaxed);
            notice!("Background AOF rewrite finished successfully");
        }
        false => {
            backup::base_failed(shared);
            let failures = 1 + thread.rewrite_failures.fetch_add(1, Ordering::Relaxed);
            let rest_s = (RETRY_S << failures.min(10)).min(RETRY_S_MAX);
            let now_s = sys::unix_us() / 1_000_000;
            thread.retry_s.store(now_s + rest_s, Ordering::Relaxed);
            warning!("Background AOF rewrite terminated with error: again in {rest_s} s");
        }
    }
}

fn rebase(shared: &Arc<Shared>, log: &mut Log<Disk>, base: &Base) {
    match log.rebase(base) {
        Ok(()) => {
            backup::base_is_there(shared, log);
            rewrite_ended(shared, true);
            sweep_files(shared, log.history());
        }
        Err(error) => {
            warning!("Can't adopt the AOF's base: {error}");
            log.abandon();
            rewrite_ended(shared, false);
        }
    }
}

/// Removes files of the past on a thread of its own: a big one takes its time.
fn sweep(shared: &Arc<Shared>, config: &Config) {
    let layout = layout(config);
    let disk = shared.log.disk();
    if let Ok(Some(manifest)) = Manifest::load(&disk, &layout) {
        let paths = manifest.history.iter();
        let paths = paths.map(|entry| layout.path(&entry.name)).collect();
        sweep_files(shared, paths);
    }
}

fn sweep_files(shared: &Arc<Shared>, paths: Vec<String>) {
    if paths.is_empty() {
        return;
    }
    let (shared, disk) = (shared.clone(), shared.log.disk());
    let remove = move || {
        let removed = paths.into_iter().filter(|path| match disk.remove(path) {
            Ok(()) => {
                notice!("Removing the history file {path} in the background");
                true
            }
            Err(error) => error.kind() == std::io::ErrorKind::NotFound,
        });
        let removed = removed.collect();
        shared.log.order(Order::Swept(removed));
    };
    // Where no thread can be had, the next start removes them.
    let _ = std::thread::Builder::new()
        .name("sweep".to_owned())
        .spawn(remove);
}

/// Writes what is there now as the base of a new log. All stripes are held, so everybody waits.
///
/// # Errors
/// Where it cannot be written.
pub fn first_base(shared: &Shared, held: &Held<'_, Stripe>) -> Result<Manifest, String> {
    let config = shared.config();
    let layout = layout(&config);
    let disk = Disk::new(&config.dir);
    let said = |error: &dyn std::fmt::Display| format!("Can't write the AOF's base: {error}");
    disk.make_directory(&layout.directory)
        .and_then(|()| disk.sync_directory(""))
        .map_err(|error| said(&error))?;
    let temporary = layout.path(&temporary_base("rdb"));
    let bytes = rdb::save(
        &disk,
        &temporary,
        super::encoder(&config),
        config.rdbchecksum,
        |saver| {
            saver.begin(&super::about(shared, true));
            for library in shared.scripts.libraries.now().libraries.values() {
                saver.library(&library.source)?;
            }
            super::save_keys(saver, held).map(drop)
        },
    )
    .map_err(|error| said(&error))?;
    let base = in_its_form(shared, &config, &disk, temporary, bytes);
    let base = base.map_err(|error| said(&error))?;
    put_base(&disk, &layout, &base).map_err(|error| said(&error))
}
