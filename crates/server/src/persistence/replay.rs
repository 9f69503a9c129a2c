//! Loading the append-only log: its base, then its increments, some milliseconds at a time.
//!
//! The loop of the first thread plays them, as it loads snapshots: it looks at its sockets in
//! between, and clients hear at once that the server is loading. Another thread reads ahead
//! ([`super::reading`]).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::keyspace::{Keyspace, Phase, Stripe};
use engine::replay::Replayer;
use persist::manifest::{Entry, Kind, Layout, Manifest};
use persist::recover::{self, Options, Part, RecoverError, Recovered, recover};
use persist::storage::Disk;
use structure::stripes::{Held, RawLock};

use super::reading::{Next, Reading};
use super::{Loading, log_thread};
use crate::config::Config;
use crate::host::ThreadHost;
use crate::shared::Shared;
use crate::{notice, sys, warning};

/// Microseconds that one step takes before the sockets are looked at again.
const STEP_US: u64 = 4000;

/// A log that is being loaded.
pub struct Replaying<'k, L: RawLock> {
    shared: Arc<Shared>,
    /// Where the files are.
    folder: PathBuf,
    /// What may be dropped.
    options: Options,
    manifest: Manifest,
    parts: VecDeque<Part>,
    /// The snapshot that the present part begins with.
    snapshot: Option<Loading>,
    reading: Option<Reading>,
    part: Option<Part>,
    replayer: Replayer<'k, L>,
    units: u64,
    /// Bytes of parts that were played to their end.
    bytes: u64,
    started_us: u64,
    next_line_us: u64,
}

/// What may be dropped, as configured.
fn options(config: &Config) -> Options {
    Options {
        truncated: config.aof_load_truncated,
        corrupt_bytes_max: config.aof_load_corrupt_tail_max_size_bytes,
        read_only: false,
    }
}

impl<'k, L: RawLock> Replaying<'k, L> {
    /// Finds the log; `None` where there is none.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    pub fn begin(shared: &Arc<Shared>, keyspace: &'k Keyspace<L>) -> Result<Option<Self>, String> {
        let config = shared.config();
        let disk = Disk::new(&config.dir);
        let found = recover(&disk, &log_thread::layout(&config), options(&config));
        let Some(found) = found.map_err(|error| error.to_string())? else {
            return Ok(None);
        };
        let folder = config.dir.clone();
        Ok(Some(Self::of(
            shared,
            keyspace,
            folder,
            options(&config),
            found,
        )))
    }

    /// Finds a log elsewhere, which stays as it is: a manifest, or one file.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    pub fn begin_elsewhere(
        shared: &Arc<Shared>,
        keyspace: &'k Keyspace<L>,
        path: &Path,
    ) -> Result<Self, String> {
        let config = shared.config();
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let options = Options {
            read_only: true,
            ..options(&config)
        };
        let disk = Disk::new(&folder);
        let layout = Layout {
            directory: String::new(),
            file: name.trim_end_matches(".manifest").to_owned(),
        };
        let manifest = match name.ends_with(".manifest") {
            true => Manifest::load(&disk, &layout).map_err(|error| error.to_string())?,
            false => Some(Manifest {
                base: Some(Entry {
                    name,
                    seq: 1,
                    kind: Kind::Base,
                }),
                ..Manifest::default()
            }),
        };
        let manifest = manifest.ok_or("No such file or directory")?;
        let found = recover::recover_files(&disk, &layout, manifest, options, Vec::new());
        let found = found.map_err(|error| error.to_string())?;
        Ok(Self::of(shared, keyspace, folder, options, found))
    }

    /// Whether the log is one from elsewhere.
    pub fn is_from_elsewhere(&self) -> bool {
        self.options.read_only
    }

    fn of(
        shared: &Arc<Shared>,
        keyspace: &'k Keyspace<L>,
        folder: PathBuf,
        options: Options,
        found: Recovered,
    ) -> Self {
        let config = shared.config();
        found.notes.iter().for_each(|note| warning!("{note}"));
        let settings = crate::event_loop::settings_of(&config);
        let started_us = sys::unix_us();
        let bytes = found.parts.iter().map(|part| part.bytes).sum();
        shared
            .persistence
            .begin_loading(bytes, started_us / 1_000_000);
        shared.keys.set_phase(Phase::Loading);
        let host = ThreadHost::new(0, shared.clone(), 1);
        Self {
            folder,
            options,
            shared: shared.clone(),
            manifest: found.manifest,
            parts: found.parts.into(),
            snapshot: None,
            reading: None,
            part: None,
            replayer: Replayer::with_host(keyspace, &settings, Box::new(host)),
            units: 0,
            bytes: 0,
            started_us,
            next_line_us: started_us + 1_000_000,
        }
    }

    /// Plays for some milliseconds; the manifest when all was played. Where a snapshot is loaded,
    /// all stripes are locked while `with` runs.
    ///
    /// # Errors
    /// Where the log cannot be loaded: the server must end.
    pub fn step(
        &mut self,
        with: impl FnMut(&mut dyn FnMut(&mut Held<'_, Stripe>)),
    ) -> Result<Option<Manifest>, String> {
        let now_us = sys::unix_us();
        if let Some(snapshot) = &mut self.snapshot {
            self.replayer.rest();
            if snapshot.step(with)? {
                let end = snapshot.end();
                self.snapshot = None;
                self.begin_commands(end)?;
            }
        } else if self.reading.is_some() {
            while sys::unix_us() < now_us + STEP_US && self.play(now_us / 1000)? {}
            self.replayer.rest();
        } else if let Some(part) = self.parts.pop_front() {
            self.begin_part(part)?;
        } else {
            self.finish();
            return Ok(Some(std::mem::take(&mut self.manifest)));
        }
        if now_us >= self.next_line_us && self.reading.is_some() {
            self.next_line_us = now_us + 1_000_000;
            notice!("Loading: {} changes so far", self.units);
        }
        Ok(None)
    }

    fn begin_part(&mut self, part: Part) -> Result<(), String> {
        if part.is_snapshot {
            let path = self.folder.join(&part.path);
            self.snapshot = Loading::begin_with(&self.shared, &path)?;
            if self.snapshot.is_none() {
                return Err(format!("The file {} is gone", part.path));
            }
            self.part = Some(part);
            return Ok(());
        }
        self.part = Some(part);
        self.begin_commands(0)
    }

    /// Plays the commands of the present part, which begin at byte `origin`.
    fn begin_commands(&mut self, origin: u64) -> Result<(), String> {
        let Some(part) = &mut self.part else {
            return Ok(());
        };
        if part.is_last && part.is_snapshot {
            let mut notes = Vec::new();
            let disk = Disk::new(&self.folder);
            recover::cut_back(&disk, part, origin, self.options, &mut notes)
                .map_err(|error| error.to_string())?;
            notes.iter().for_each(|note| warning!("{note}"));
        }
        let opened = File::open(self.folder.join(&part.path)).and_then(|mut file| {
            file.seek(SeekFrom::Start(origin))?;
            Ok(file.take(part.bytes.saturating_sub(origin)))
        });
        let file = opened.map_err(|error| format!("Can't open {}: {error}", part.path))?;
        let reading = Reading::begin(file, origin, &self.shared.keys);
        let cannot = |error| format!("Can't start the loading thread: {error}");
        self.reading = Some(reading.map_err(cannot)?);
        Ok(())
    }

    /// Plays some commands; false at the end of the part.
    fn play(&mut self, now_ms: u64) -> Result<bool, String> {
        let (Some(reading), Some(part)) = (&mut self.reading, &self.part) else {
            return Ok(false);
        };
        match reading.next() {
            Next::Commands => {}
            Next::Nothing => {
                // It may take longer: nothing is kept locked.
                self.replayer.rest();
                return Ok(true);
            }
            Next::End(Ok(())) => {
                notice!("DB loaded from file {}", part.name);
                self.bytes += part.bytes;
                self.reading = None;
                self.part = None;
                return Ok(false);
            }
            Next::End(Err(fault)) => {
                return Err(RecoverError::while_playing(part, fault).to_string());
            }
            Next::Gone => return Err("The loading thread is gone".to_owned()),
        }
        let played = self.replayer.play_window(reading.window(), now_ms);
        played.map_err(|(index, error)| {
            format!(
                "The append-only file {} has a change that cannot be made, after offset {}: \
                 {error}. Nothing was changed in it.",
                part.path,
                reading.place(index),
            )
        })?;
        if let Some((units, end)) = reading.played() {
            self.units += units;
            let status = &self.shared.persistence;
            let done = self.bytes + end;
            status.loaded_bytes.store(done, Ordering::Relaxed);
        }
        Ok(true)
    }

    fn finish(&mut self) {
        #[allow(clippy::cast_precision_loss)] // For people to read.
        let seconds = (sys::unix_us() - self.started_us) as f64 / 1e6;
        notice!(
            "DB loaded from append only file: {seconds:.3} seconds, {} changes",
            self.units
        );
    }
}
