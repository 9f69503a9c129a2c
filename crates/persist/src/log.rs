//! The writer of the log: frames of several threads in, one durable stream out.
//!
//! A state machine over a [`Storage`], without threads and without a clock: its owner brings frames
//! ([`Log::add`]) and the time ([`Log::turn`]), and reads how far the disk is
//! ([`Log::durable_lsn`]). Frames of different threads are put in the order of their numbers; as
//! numbers have no gaps, it is known which comes next.
//!
//! ```text
//! frames ─▶ Merger ─▶ recent ─▶ file ─▶ sync ─▶ durable
//!                     (bytes since the last sync, kept until the next)
//! ```
//!
//! # Invariants
//! - What was written since the last sync that returned without error is kept in memory, so that it
//!   can be written again elsewhere.
//! - After a failed write the file is cut back to the last whole batch, which the system has, and
//!   goes on there.
//! - After a failed sync nothing is known of what was written since the last success: all that was
//!   kept goes to a new increment, and when it is there the old file is cut back to what is surely
//!   on the disk. A sync is never tried again as if that told anything.
//! - A new increment is in the manifest before anything in it counts as durable.
//! - A log without a base ([`Log::open_without_base`]) promises nothing: until it has one, the disk
//!   holds the manifest of the log before.
//!
//! # Why not stop, as Redis does?
//! Under `always` it ends the process where the disk fails. Reads could have gone on, and most such
//! failures (a full disk) end.

use std::io::{self, ErrorKind, Write};

use engine::log::Frames;
use xxhash_rust::xxh3::xxh3_64;

use crate::aof::{LEN, SUM};
use crate::manifest::{Entry, Kind, Layout, Manifest};
use crate::storage::{Storage, StorageFile};

mod backup;
mod merger;
mod rebase;
use merger::Merger;
pub use rebase::Base;

#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;

/// Milliseconds between syncs under `everysec`.
const SYNC_MS: u64 = 1000;
/// Bytes since the last sync from which on another one is made in any case: they are in memory.
pub(crate) const RECENT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes that are written at once.
const WRITE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Milliseconds between attempts to write again after a failure.
const RETRY_MS: u64 = 500;

/// When what was written is forced to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Before anybody is told that it was written.
    Always,
    /// Every second.
    EverySecond,
    /// When the system likes.
    Never,
}

/// How the log is written.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `appendfsync`.
    pub policy: Policy,
    /// `aof-timestamp-enabled`.
    pub timestamps: bool,
}

/// Something that whoever runs the log should say.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An increment of this name was begun.
    Began(String),
    /// Writing, forcing or beginning a file failed: what, which file, why.
    Failed(&'static str, String, io::Error),
    /// The file that a rewrite wants for what comes later cannot be made: which one, why. The one
    /// before goes on.
    NotTurned(String, io::Error),
    /// What had failed works again; so many frames had waited.
    Recovered(u64),
    /// A base took the place of what was before.
    Rebased(String),
    /// A file of the past was removed.
    Removed(String),
}

/// Why nothing is written at present.
#[derive(Debug)]
struct Failure {
    /// When to try again: milliseconds of the owner's clock.
    retry_ms: u64,
    /// Whether a sync failed, or it is not known which files there are: the file that is written
    /// cannot go on.
    is_unsure: bool,
    /// What the system said.
    kind: ErrorKind,
    text: String,
}

/// The log.
pub struct Log<S: Storage> {
    storage: S,
    layout: Layout,
    manifest: Manifest,
    /// Whether the manifest is on the disk: not before there is a base.
    has_base: bool,
    /// Whether the manifest on the disk may name files of this log.
    is_named: bool,
    options: Options,
    merger: Merger,
    /// The increment that is written.
    file: Option<S::File>,
    /// Its name.
    name: String,
    /// Its bytes that are known to be on the disk.
    durable_bytes: u64,
    /// Bytes since then, as they stand in the file or are to be written there.
    recent: Vec<u8>,
    /// How many of those were written.
    written: usize,
    /// Where lines of lengths and checksums stand in `recent`.
    remarks: Vec<(usize, usize)>,
    /// The database that the stream is in where `recent` begins.
    db_before: Option<u32>,
    /// The database that the stream is in; none where the next frame must say.
    db: Option<u32>,
    /// The time of the last mark: Unix seconds.
    marked_s: u64,
    /// The last frame in `recent`.
    taken_lsn: u64,
    /// The last frame that was written.
    written_lsn: u64,
    durable_lsn: u64,
    synced_ms: u64,
    failure: Option<Failure>,
    /// Frames up to here go to the file that is there now, later ones to a new one.
    turn_at: Option<u64>,
    /// Whether that is a new one even where nothing is in the old one.
    turns_always: bool,
    /// Whether a base that was made for this turn has every frame taken so far.
    turn_covers: bool,
    /// The number of the last base that was tried in this life.
    last_base: u64,
    /// The number of the last increment that a manifest may name though it was not stored for
    /// certain.
    last_increment: u64,
    /// The number of the first increment after a turn that no base has followed yet.
    pending: Option<u64>,
    events: Vec<Event>,
    /// Bytes of all files but the one that is written.
    other_bytes: u64,
    /// Those of them that were written since the turn.
    turned_bytes: u64,
    base_bytes: u64,
}

impl<S: Storage> Log<S> {
    /// Goes on with a log: begins a new increment for frames after `lsn`.
    ///
    /// # Errors
    /// Where the increment or the manifest cannot be written.
    pub fn open(
        storage: S,
        layout: Layout,
        manifest: Manifest,
        options: Options,
        lsn: u64,
        now_ms: u64,
    ) -> io::Result<Self> {
        let mut log = Self::new(storage, layout, manifest, options, lsn, now_ms);
        log.storage.make_directory(&log.layout.directory)?;
        log.begin()?;
        Ok(log)
    }

    /// Begins a log whose base is still to come, with frames after `lsn`. Until [`Log::rebase`] the
    /// disk holds the log of `old` as it was; then that is history.
    ///
    /// # Errors
    /// Where the increment cannot be written.
    pub fn open_without_base(
        storage: S,
        layout: Layout,
        mut old: Manifest,
        options: Options,
        lsn: u64,
        now_ms: u64,
    ) -> io::Result<Self> {
        let last_base = old.base.as_ref().map_or(0, |base| base.seq);
        let files: Vec<Entry> = old.files().cloned().collect();
        (old.base, old.increments) = (None, Vec::new());
        old.retire(files);
        let mut log = Self::new(storage, layout, old, options, lsn, now_ms);
        (log.has_base, log.is_named) = (false, false);
        log.last_base = last_base;
        log.storage.make_directory(&log.layout.directory)?;
        log.storage.sync_directory("")?;
        log.begin()?;
        Ok(log)
    }

    fn new(
        storage: S,
        layout: Layout,
        manifest: Manifest,
        options: Options,
        lsn: u64,
        now_ms: u64,
    ) -> Self {
        Self {
            storage,
            layout,
            manifest,
            has_base: true,
            is_named: true,
            options,
            merger: Merger::new(lsn + 1),
            file: None,
            name: String::new(),
            durable_bytes: 0,
            recent: Vec::new(),
            written: 0,
            remarks: Vec::new(),
            db_before: None,
            db: None,
            marked_s: 0,
            taken_lsn: lsn,
            written_lsn: lsn,
            durable_lsn: lsn,
            synced_ms: now_ms,
            failure: None,
            turn_at: None,
            turns_always: false,
            turn_covers: false,
            last_base: 0,
            last_increment: 0,
            pending: None,
            events: Vec::new(),
            other_bytes: 0,
            turned_bytes: 0,
            base_bytes: 0,
        }
    }

    /// Whether the log has a base, without which nothing in it counts.
    pub fn has_base(&self) -> bool {
        self.has_base
    }

    /// Gives up a log that never got a base: its increments are removed, as far as they can be.
    pub fn discard(mut self) {
        self.file = None;
        if !self.is_named {
            for entry in &self.manifest.increments {
                // What stays is overwritten by the next log.
                let _ = self.storage.remove(&self.layout.path(&entry.name));
            }
        }
    }

    /// Takes frames of one thread, which are in the order of their numbers; hands back an empty
    /// container for the next ones.
    pub fn add(&mut self, frames: Frames) {
        self.merger.add(frames);
    }

    /// An empty container whose frames were written.
    pub fn spare(&mut self) -> Option<Frames> {
        self.merger.spare()
    }

    /// Changes when and how to write.
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// The last frame that is on the disk.
    pub fn durable_lsn(&self) -> u64 {
        self.durable_lsn
    }

    /// The last frame that was given to the system.
    pub fn written_lsn(&self) -> u64 {
        self.written_lsn
    }

    /// What the system said when writing failed, as long as it has not worked since.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_ref().map(|failure| failure.text.as_str())
    }

    /// Whether a full disk is why nothing is written.
    pub fn is_full(&self) -> bool {
        let kind = self.failure.as_ref().map(|failure| failure.kind);
        kind == Some(ErrorKind::StorageFull)
    }

    /// Bytes that wait for the system or for the disk.
    pub fn pending_bytes(&self) -> usize {
        self.merger.bytes() + self.recent.len()
    }

    /// Bytes of all files of the log.
    pub fn size_bytes(&self) -> u64 {
        self.other_bytes + self.durable_bytes + self.written as u64
    }

    /// Bytes of the log when the base was last written.
    pub fn base_bytes(&self) -> u64 {
        self.base_bytes
    }

    /// Tells how big the files are that were there before.
    pub fn note_sizes(&mut self, other_bytes: u64, base_bytes: u64) {
        (self.other_bytes, self.base_bytes) = (other_bytes, base_bytes);
    }

    /// The files.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The storage.
    pub fn storage(&self) -> &S {
        &self.storage
    }

    /// Takes what is to be said.
    pub fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// How long nothing needs to be done if nothing comes; none where that is for ever.
    pub fn wait_ms(&self, now_ms: u64) -> Option<u64> {
        if let Some(failure) = &self.failure {
            return Some(failure.retry_ms.saturating_sub(now_ms));
        }
        let due_ms = self.synced_ms + SYNC_MS;
        let is_due = self.options.policy == Policy::EverySecond && !self.recent.is_empty();
        is_due.then(|| due_ms.saturating_sub(now_ms))
    }

    /// Writes what came, and forces it to the disk if it is time. `must_sync` says that it is.
    pub fn turn(&mut self, now_ms: u64, must_sync: bool) {
        self.turn_saying(now_ms, must_sync, &mut || {});
    }

    /// [`Self::turn`] that says when forcing what is written to the disk begins, which may take
    /// long.
    pub fn turn_saying(&mut self, now_ms: u64, must_sync: bool, on_sync: &mut dyn FnMut()) {
        if let Some(failure) = &self.failure {
            if now_ms < failure.retry_ms {
                return;
            }
            if let Err((what, error)) = self.recover(now_ms) {
                return self.fail(what, error, now_ms);
            }
        }
        loop {
            let took = self.take();
            if let Err((what, error)) = self.put(now_ms, took.is_none(), must_sync, on_sync) {
                return self.fail(what, error, now_ms);
            }
            if took.is_none() {
                return;
            }
        }
    }

    /// Takes a batch of frames into `recent`, between a line of its length and one of its checksum.
    fn take(&mut self) -> Option<u64> {
        let start = self.recent.len();
        write_len(0, &mut self.recent);
        let head = start..self.recent.len();
        let mut stream = Stream {
            db: &mut self.db,
            marked_s: &mut self.marked_s,
            timestamps: self.options.timestamps,
        };
        let took =
            self.merger
                .take_into(&mut self.recent, WRITE_BYTES_MAX, self.turn_at, &mut stream);
        let Some(lsn) = took else {
            self.recent.truncate(start);
            return None;
        };
        self.taken_lsn = lsn;
        let len = self.recent.len() - head.end;
        let mut line = Vec::new();
        write_len(len, &mut line);
        self.recent[head.clone()].copy_from_slice(&line);
        self.remarks.push((head.start, head.end));
        let from = self.recent.len();
        write_sum(&self.recent[start..], &mut line);
        self.recent.extend_from_slice(&line);
        self.remarks.push((from, self.recent.len()));
        Some(lsn)
    }

    /// Writes `recent` to its end, forces it to the disk if it is time, turns to a new file if that
    /// was asked for. What can wait for it is forced to the disk once all that came is written,
    /// which `is_last` says.
    fn put(
        &mut self,
        now_ms: u64,
        is_last: bool,
        must_sync: bool,
        on_sync: &mut dyn FnMut(),
    ) -> Result<(), (&'static str, io::Error)> {
        let is_late = now_ms >= self.synced_ms + SYNC_MS;
        let turns = self.turn_at == Some(self.taken_lsn);
        let is_asked = match self.options.policy {
            Policy::Always => true,
            Policy::EverySecond => is_late && is_last,
            Policy::Never => false,
        };
        let is_asked = is_asked || self.recent.len() > RECENT_BYTES_MAX;
        let syncs =
            self.taken_lsn > self.durable_lsn && (is_asked || must_sync && is_last || turns);
        self.write()?;
        if syncs {
            on_sync();
            self.sync(now_ms)?;
        }
        if turns {
            self.turned_bytes = 0;
            let ended = self.durable_bytes + self.recent.len() as u64;
            // One that has nothing in it yet will do.
            if ended > 0 || self.turns_always {
                let entry = self.next_entry();
                match self.storage.create(&self.layout.path(&entry.name)) {
                    Ok(file) => self.adopt(entry, file).map_err(|error| ("begin", error))?,
                    Err(error) => {
                        (self.turn_at, self.turns_always) = (None, false);
                        self.events.push(Event::NotTurned(entry.name, error));
                        return Ok(());
                    }
                }
            }
            self.other_bytes += ended;
            (self.turn_at, self.turns_always) = (None, false);
            self.pending = Some(self.manifest.last_seq());
        }
        Ok(())
    }

    /// Writes what of `recent` was not.
    fn write(&mut self) -> Result<(), (&'static str, io::Error)> {
        let Some(file) = &mut self.file else {
            return Err(("write", ErrorKind::NotFound.into()));
        };
        while self.written < self.recent.len() {
            match file.write(&self.recent[self.written..]) {
                Ok(0) => return Err(("write", ErrorKind::WriteZero.into())),
                Ok(wrote) => self.written += wrote,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(("write", error)),
            }
        }
        self.written_lsn = self.taken_lsn;
        Ok(())
    }

    fn sync(&mut self, now_ms: u64) -> Result<(), (&'static str, io::Error)> {
        if let Some(file) = &mut self.file {
            file.sync().map_err(|error| ("sync", error))?;
        }
        self.synced_ms = now_ms;
        self.durable_lsn = self.written_lsn;
        self.forget_recent();
        Ok(())
    }

    fn forget_recent(&mut self) {
        self.durable_bytes += self.recent.len() as u64;
        self.recent.clear();
        self.remarks.clear();
        self.db_before = self.db;
        self.written = 0;
        if self.recent.capacity() > 2 * WRITE_BYTES_MAX {
            self.recent.shrink_to(WRITE_BYTES_MAX);
        }
    }

    /// Begins the next increment; it is in the manifest when this returns without error.
    fn begin(&mut self) -> io::Result<()> {
        let entry = self.next_entry();
        let file = self.storage.create(&self.layout.path(&entry.name))?;
        self.adopt(entry, file)
    }

    /// Writes the manifest, where the log has a base.
    fn store(&self, manifest: &Manifest) -> io::Result<()> {
        match self.has_base {
            true => manifest.store(&self.storage, &self.layout),
            false => Ok(()),
        }
    }

    fn next_entry(&self) -> Entry {
        let seq = self.manifest.last_seq().max(self.last_increment) + 1;
        Entry {
            name: self.layout.increment(seq),
            seq,
            kind: Kind::Increment,
        }
    }

    /// Goes on in a file that was just made.
    fn adopt(&mut self, entry: Entry, file: S::File) -> io::Result<()> {
        let mut manifest = self.manifest.clone();
        let name = entry.name.clone();
        manifest.increments.push(entry);
        self.storage.sync_directory(&self.layout.directory)?;
        self.store(&manifest)?;
        self.manifest = manifest;
        self.file = Some(file);
        self.events.push(Event::Began(name.clone()));
        self.name = name;
        self.durable_bytes = 0;
        (self.db, self.db_before) = (None, None);
        self.marked_s = 0;
        Ok(())
    }

    fn fail(&mut self, what: &'static str, error: io::Error, now_ms: u64) {
        let was_unsure = self.failure.as_ref().is_some_and(|last| last.is_unsure);
        let is_unsure = was_unsure || !matches!(what, "write" | "truncate");
        if !is_unsure {
            // On a full disk half a batch takes room that a rewrite could free more with. Where it
            // cannot be cut off now, that is tried again before anything is written.
            let _ = self.cut_to_whole();
        }
        self.failure = Some(Failure {
            retry_ms: now_ms + RETRY_MS,
            is_unsure,
            kind: error.kind(),
            text: plain(&error),
        });
        let event = Event::Failed(what, self.name.clone(), error);
        self.events.push(event);
    }

    /// After a failure: tries to write what waits.
    fn recover(&mut self, now_ms: u64) -> Result<(), (&'static str, io::Error)> {
        let is_unsure = self.failure.as_ref().is_some_and(|last| last.is_unsure);
        let waited = match is_unsure {
            true => self.begin_again(now_ms)?,
            false => self.write_on(now_ms)?,
        };
        self.failure = None;
        self.events.push(Event::Recovered(waited));
        Ok(())
    }

    /// Cuts the file back to the last whole batch in it.
    fn cut_to_whole(&mut self) -> io::Result<()> {
        let sums = self.remarks.iter().skip(1).step_by(2);
        let ends = sums.map(|&(_, end)| end);
        let whole = ends.take_while(|&end| end <= self.written).last();
        let whole = whole.unwrap_or(0);
        if let Some(file) = self.file.as_mut().filter(|_| self.written > whole) {
            file.truncate(self.durable_bytes + whole as u64)?;
            self.written = whole;
        }
        Ok(())
    }

    /// Goes on in the file, after the last whole batch in it. Returns how many frames waited.
    fn write_on(&mut self, now_ms: u64) -> Result<u64, (&'static str, io::Error)> {
        self.cut_to_whole().map_err(|error| ("truncate", error))?;
        let waited = self.taken_lsn - self.written_lsn;
        self.write()?;
        if self.options.policy == Policy::Always {
            self.sync(now_ms)?;
        }
        Ok(waited)
    }

    /// Writes all that is not surely on the disk to a new file, and cuts the old one back to what
    /// is. Until the new one is there the old one has what the system has. Returns how many frames
    /// waited.
    fn begin_again(&mut self, now_ms: u64) -> Result<u64, (&'static str, io::Error)> {
        let entry = self.next_entry();
        let path = self.layout.path(&entry.name);
        let begin = |error| ("begin", error);
        let mut file = self.storage.create(&path).map_err(begin)?;
        let kept = self.kept();
        if let Err(error) = file.write_all(&kept).and_then(|()| file.sync()) {
            // The file stays, as the manifest may name it already; the next attempt makes it anew.
            // Its room may be what a rewrite needs.
            let _ = file.truncate(0);
            return Err(("write", error));
        }
        if let Some(mut old) = self.file.take() {
            let cut = old.truncate(self.durable_bytes).and_then(|()| old.sync());
            if let Err(error) = cut {
                self.file = Some(old);
                return Err(("truncate", error));
            }
            self.other_bytes += self.durable_bytes;
            (self.written, self.durable_bytes) = (0, 0);
        }
        let (db, marked_s) = (self.db, self.marked_s);
        self.adopt(entry, file).map_err(begin)?;
        if !kept.is_empty() {
            (self.db, self.marked_s) = (db, marked_s);
        }
        self.recent.clear();
        self.forget_recent();
        self.durable_bytes = kept.len() as u64;
        let waited = self.taken_lsn - self.durable_lsn;
        (self.written_lsn, self.durable_lsn) = (self.taken_lsn, self.taken_lsn);
        self.synced_ms = now_ms;
        Ok(waited)
    }

    /// What a new increment begins with after a failure: what was kept, with one checksum.
    fn kept(&self) -> Vec<u8> {
        if self.recent.is_empty() {
            return Vec::new();
        }
        let mut kept = Vec::with_capacity(self.recent.len() + 64);
        if let Some(db) = self.db_before {
            select(db, &mut kept);
        }
        let mut from = 0;
        for &(start, end) in &self.remarks {
            kept.extend_from_slice(&self.recent[from..start]);
            from = end;
        }
        kept.extend_from_slice(&self.recent[from..]);
        let mut line = Vec::new();
        write_sum(&kept, &mut line);
        kept.extend_from_slice(&line);
        kept
    }
}

/// What stands between frames.
struct Stream<'a> {
    db: &'a mut Option<u32>,
    marked_s: &'a mut u64,
    timestamps: bool,
}

impl Stream<'_> {
    fn before(&mut self, db: u32, at_ms: u64, out: &mut Vec<u8>) {
        let at_s = at_ms / 1000;
        if self.timestamps && at_s > *self.marked_s {
            *self.marked_s = at_s;
            out.extend_from_slice(format!("#TS:{at_s}\r\n").as_bytes());
        }
        if *self.db != Some(db) {
            select(db, out);
        }
    }
}

fn select(db: u32, out: &mut Vec<u8>) {
    let db = db.to_string();
    let text = format!("*2\r\n$6\r\nSELECT\r\n${}\r\n{db}\r\n", db.len());
    out.extend_from_slice(text.as_bytes());
}

/// Appends the line before a batch of `len` bytes; it is always as long.
fn write_len(len: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(LEN);
    out.extend_from_slice(format!("{len:016x}\r\n").as_bytes());
}

/// Makes the line after `bytes`.
fn write_sum(bytes: &[u8], line: &mut Vec<u8>) {
    line.clear();
    line.extend_from_slice(SUM);
    line.extend_from_slice(format!("{:016x}\r\n", xxh3_64(bytes)).as_bytes());
}

/// The system's words without the number.
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
