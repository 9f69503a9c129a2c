//! Loading a snapshot: one thread reads the file and makes records, another puts them into the
//! keyspace.
//!
//! At start the loop of the first thread is the other one: it takes batches for some milliseconds,
//! looks at its sockets, and goes on. So nobody but that loop touches a keyspace without locks, and
//! clients hear at once that the server is loading.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use engine::dump::{Build, Dialect};
use engine::keyspace::{Phase, Stripe};
use engine::settings::Settings;
use persist::rdb::{Error, Options, Part, Reader, Value};
use structure::hash::Seed;
use structure::record::{Record, Value as Kept};
use structure::stripes::Held;

use super::insert::{Loaded, insert};
use crate::config::Config;
use crate::shared::Shared;
use crate::{notice, supervisor, sys, warning};

/// Keys of a batch.
const BATCH_KEYS: usize = 1024;
/// Bytes of values after which a batch is full.
const BATCH_BYTES: usize = 4 << 20;
/// Batches that may wait.
const BATCHES_WAITING: usize = 16;
/// Microseconds that one step takes before the sockets are looked at again.
const STEP_US: u64 = 4000;
/// Milliseconds that a step waits for a batch.
const WAIT_MS: u64 = 2;

/// What the reading thread says.
enum News {
    Batch(Vec<Loaded>),
    /// A library of functions.
    Library(Vec<u8>),
    /// The end, and what there is to say of it.
    End(Result<Summary, String>),
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default)]
struct Summary {
    keys: u64,
    expired: u64,
    empty: u64,
    skipped: u64,
}

/// How the reading thread tells how far it is.
#[derive(Default)]
struct Progress {
    bytes: AtomicU64,
    keys: AtomicU64,
}

/// A snapshot that is being loaded while the server runs.
pub struct Loading {
    news: Receiver<News>,
    progress: Arc<Progress>,
    shared: Arc<Shared>,
    path: String,
    bytes: u64,
    started_us: u64,
    next_line_us: u64,
}

/// What reading needs, on any thread.
struct Job {
    file: File,
    settings: Settings,
    seed: Seed,
    options: Options,
    now_ms: u64,
}

impl Job {
    fn new(file: File, shared: &Shared, config: &Config) -> Self {
        Self {
            file,
            settings: crate::event_loop::settings_of(config),
            seed: shared.keys.seed,
            options: Options {
                checksum: config.rdbchecksum,
                skip_unsupported: config.rdb_skip_unsupported,
            },
            now_ms: sys::unix_us() / 1000,
        }
    }
}

impl Loading {
    /// Begins to load the configured snapshot; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn begin(shared: &Arc<Shared>) -> Result<Option<Self>, String> {
        let config = shared.config();
        if config.dbfilename.is_empty() {
            return Ok(None);
        }
        Self::begin_with(shared, &config.dir.join(super::file_name(&config)))
    }

    /// Begins to load the snapshot that a file begins with; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be opened.
    pub fn begin_with(shared: &Arc<Shared>, path: &Path) -> Result<Option<Self>, String> {
        let config = shared.config();
        let shown = path.display().to_string();
        let cannot = |error: io::Error| {
            format!("Can't open the snapshot '{shown}': {error}. Fix that, or move it away.")
        };
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(cannot)?,
        };
        let bytes = file.metadata().map_err(cannot)?.len();
        let job = Job::new(file, shared, &config);
        let (tell, news) = sync_channel(BATCHES_WAITING);
        let progress = Arc::new(Progress::default());
        let of_reader = progress.clone();
        std::thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || {
                let read = read(&job, &tell, &of_reader);
                // Nobody listens where the server ends first.
                let _ = tell.send(News::End(read));
            })
            .map_err(|error| format!("Can't start the loading thread: {error}"))?;
        let started_us = sys::unix_us();
        shared
            .persistence
            .begin_loading(bytes, started_us / 1_000_000);
        shared.keys.set_phase(Phase::Loading);
        notice!("Loading the snapshot '{shown}', {bytes} bytes");
        Ok(Some(Self {
            news,
            progress,
            shared: shared.clone(),
            path: shown,
            bytes,
            started_us,
            next_line_us: started_us + 1_000_000,
        }))
    }

    /// Puts some keys into the keyspace, of which all stripes are locked while `with` runs; true
    /// when loading has ended.
    ///
    /// # Errors
    /// Where the file cannot be loaded: the server must end.
    pub fn step(
        &mut self,
        mut with: impl FnMut(&mut dyn FnMut(&mut Held<'_, Stripe>)),
    ) -> Result<bool, String> {
        let end = sys::unix_us() + STEP_US;
        loop {
            let wait = Duration::from_millis(WAIT_MS);
            let batch = match self.news.recv_timeout(wait) {
                Ok(News::Batch(batch)) => batch,
                Ok(News::Library(source)) => {
                    take_library(&self.shared, &self.shared.config(), &source)
                        .map_err(|error| self.refused(&error))?;
                    continue;
                }
                Ok(News::End(read)) => return self.finish(read).map(|()| true),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.refused("the loading thread is gone"));
                }
            };
            let mut batch = Some(batch);
            let mut inserted = Ok(());
            let keys = self.shared.keys.clone();
            let now_ms = sys::unix_us() / 1000;
            with(&mut |held| {
                if let Some(batch) = batch.take() {
                    inserted = insert(&keys, held, batch, false, now_ms);
                }
            });
            inserted.map_err(|error| self.refused(&error))?;
            if sys::unix_us() >= end {
                break;
            }
        }
        self.show_progress();
        Ok(false)
    }

    /// Where the snapshot ends in its file, once it was loaded.
    pub fn end(&self) -> u64 {
        self.progress.bytes.load(Ordering::Relaxed)
    }

    fn show_progress(&mut self) {
        let bytes = self.progress.bytes.load(Ordering::Relaxed);
        let keys = self.progress.keys.load(Ordering::Relaxed);
        let status = &self.shared.persistence;
        status.loaded_bytes.store(bytes, Ordering::Relaxed);
        status.keys_loaded.store(keys, Ordering::Relaxed);
        let now_us = sys::unix_us();
        if now_us >= self.next_line_us {
            self.next_line_us = now_us + 1_000_000;
            #[allow(clippy::cast_precision_loss)] // A share of it.
            let percent = bytes as f64 * 100.0 / self.bytes.max(1) as f64;
            let progress = format!("Loading: {percent:.1} %, {keys} keys so far");
            notice!("{progress}");
            supervisor::loading(&self.shared.config(), &progress);
        }
    }

    fn finish(&mut self, read: Result<Summary, String>) -> Result<(), String> {
        let summary = read.map_err(|error| self.refused(&error))?;
        note(&self.shared, summary);
        #[allow(clippy::cast_precision_loss)] // For people to read.
        let seconds = (sys::unix_us() - self.started_us) as f64 / 1e6;
        notice!(
            "DB loaded from disk: {seconds:.3} seconds, {} keys",
            summary.keys
        );
        Ok(())
    }

    fn refused(&self, error: &str) -> String {
        format!(
            "Can't load the snapshot '{}': {error}. Nothing was changed in it; start with another \
             file, or move it away to start with no data.",
            self.path
        )
    }
}

fn note(shared: &Shared, summary: Summary) {
    let status = &shared.persistence;
    status.keys_loaded.store(summary.keys, Ordering::Relaxed);
    status
        .keys_expired
        .store(summary.expired, Ordering::Relaxed);
    if summary.skipped > 0 {
        warning!("{} parts of the snapshot were left out", summary.skipped);
    }
    if summary.empty > 0 {
        warning!("{} empty keys of the snapshot were left out", summary.empty);
    }
}

/// Takes a library of functions over, in place of one of its name.
fn take_library(shared: &Shared, config: &Config, source: &[u8]) -> Result<(), String> {
    match shared.scripts.libraries.load(source, true) {
        Ok(_) => Ok(()),
        Err(error) if config.rdb_skip_unsupported => {
            warning!("The snapshot has functions that cannot be loaded: {error}: left out");
            Ok(())
        }
        Err(error) => Err(format!(
            "it has functions that cannot be loaded ({error}): with 'tidemill-rdb-skip-unsupported \
             yes' they are left out"
        )),
    }
}

/// Loads the configured snapshot while everybody waits: every stripe is locked. What is not in it
/// stays; a key that is there already is replaced, or an error.
///
/// # Errors
/// Why it was not loaded, or only in part.
pub fn load_at_once(
    shared: &Shared,
    config: &Config,
    held: &mut Held<'_, Stripe>,
    replace: bool,
) -> Result<(), String> {
    let path = config.dir.join(super::file_name(config));
    let said = |error: &dyn std::fmt::Display| {
        format!("Can't load the snapshot '{}': {error}", path.display())
    };
    let file = File::open(&path).map_err(|error| said(&error))?;
    let job = Job::new(file, shared, config);
    let progress = Progress::default();
    let summary = std::thread::scope(|scope| {
        let (tell, news) = sync_channel(BATCHES_WAITING);
        let (job, progress) = (&job, &progress);
        scope.spawn(move || {
            let read = read(job, &tell, progress);
            let _ = tell.send(News::End(read));
        });
        loop {
            match news.recv() {
                Ok(News::Batch(batch)) => {
                    insert(&shared.keys, held, batch, replace, job.now_ms)?;
                }
                Ok(News::Library(source)) => take_library(shared, config, &source)?,
                Ok(News::End(read)) => return read,
                Err(_) => return Err("the loading thread is gone".to_owned()),
            }
        }
    });
    let summary = summary.map_err(|error| said(&error))?;
    note(shared, summary);
    let changes = (0..held.count()).map(|index| held.get(index).stats.changes);
    let changes = changes.sum();
    let status = &shared.persistence;
    status.changes_saved.store(changes, Ordering::Relaxed);
    Ok(())
}

/// Reads the whole file, and sends what is in it.
fn read(job: &Job, tell: &SyncSender<News>, progress: &Progress) -> Result<Summary, String> {
    let build = Build {
        settings: &job.settings,
        seed: &job.seed,
        dialect: Dialect::Redis,
    };
    let said = |error: Error| error.to_string();
    let mut reader = Reader::new(&job.file, build, job.options).map_err(said)?;
    let mut summary = Summary::default();
    let mut batch = Vec::with_capacity(BATCH_KEYS);
    let mut bytes = 0;
    let now_s = job.now_ms / 1000;
    loop {
        match reader.next_part().map_err(said)? {
            Part::Key(key) => {
                if key.db >= job.settings.databases {
                    return Err(format!(
                        "it has keys in database {}, and there are only {}: start with a higher \
                         'databases'",
                        key.db, job.settings.databases
                    ));
                }
                if key.deadline.is_some_and(|at| at <= job.now_ms) {
                    summary.expired += 1;
                    continue;
                }
                summary.keys += 1;
                let hash = structure::hash::hash(&job.seed, key.key);
                let value = match key.value {
                    Value::Int(int) => Kept::Int(int),
                    Value::Bytes(text) => match structure::decimal::parse(text) {
                        Some(int) => Kept::Int(int),
                        None => Kept::Bytes(text),
                    },
                    Value::Long(text) => {
                        bytes += text.len();
                        Kept::Long(Box::new(text))
                    }
                    Value::Object(object) => {
                        bytes += object.memory_bytes();
                        Kept::Object(object)
                    }
                };
                let mut record = Record::new(key.key, value, key.deadline);
                record.set_access(super::access_bits(&job.settings, now_s, key.used));
                batch.push(Loaded {
                    db: key.db,
                    hash,
                    record,
                });
            }
            Part::Library(source) => {
                if tell.send(News::Library(source.to_vec())).is_err() {
                    return Ok(summary);
                }
            }
            Part::Skipped(what) => {
                warning!("The snapshot has {what}: left out");
                summary.skipped += 1;
            }
            Part::Aux { name, value } => note_fact(name, value),
            Part::Db(_) | Part::Sizes { .. } => {}
            Part::End => break,
        }
        if batch.len() == BATCH_KEYS || bytes >= BATCH_BYTES {
            bytes = 0;
            progress.bytes.store(reader.offset(), Ordering::Relaxed);
            progress.keys.store(summary.keys, Ordering::Relaxed);
            let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH_KEYS));
            if tell.send(News::Batch(full)).is_err() {
                return Ok(summary);
            }
        }
    }
    summary.empty = reader.empty_keys();
    summary.skipped += reader.left_out();
    progress.bytes.store(reader.offset(), Ordering::Relaxed);
    let _ = tell.send(News::Batch(batch));
    Ok(summary)
}

fn note_fact(name: &[u8], value: &[u8]) {
    if let b"redis-ver" | b"valkey-ver" = name {
        let name = name.escape_ascii();
        notice!(
            "The snapshot was written by: {name} {}",
            value.escape_ascii()
        );
    }
}
