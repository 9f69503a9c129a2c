//! From the files of the log to what must be played: which, in which order, and cut back to where.
//!
//! # Invariants
//! - Only the last file may be cut back, only at its end, only to the end of a whole transaction,
//!   and what was dropped is said.
//! - What is played is on the disk: the process before may have died after a sync that failed, and
//!   then the system shows bytes that are not.
//! - Damage in the middle is refused: the error says the file, the place and what to do.
//!
//! # Why look through the last file before it is played?
//! What was played cannot be taken back, and a checksum stands behind what it is about.

use std::fmt;
use std::io::{self, Read};

use crate::aof::{self, Fault, Reason};
use crate::log::RECENT_BYTES_MAX;
use crate::manifest::{Entry, Kind, Layout, Manifest, ManifestError};
use crate::storage::{Storage, StorageFile};

/// How a file that begins so is a snapshot.
const SNAPSHOT: &[&[u8]] = &[b"REDIS", b"VALKEY"];

/// What may be dropped.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// `aof-load-truncated`: a torn end of the last file.
    pub truncated: bool,
    /// `aof-load-corrupt-tail-max-size`: bytes of damage at its end.
    pub corrupt_bytes_max: u64,
    /// Whether the files stay as they are: what would be cut off is not played.
    pub read_only: bool,
}

/// One file to play.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name in the log's directory.
    pub name: String,
    /// Its name as the storage knows it.
    pub path: String,
    /// What it is for.
    pub kind: Kind,
    /// Whether it begins with a snapshot. Commands may follow that in a base.
    pub is_snapshot: bool,
    /// Its bytes, after it was cut back.
    pub bytes: u64,
    /// Whether no file follows.
    pub is_last: bool,
}

/// A log that can be played.
#[derive(Debug)]
pub struct Recovered {
    /// The manifest.
    pub manifest: Manifest,
    /// The files in order.
    pub parts: Vec<Part>,
    /// What was done on the way, for the server's own log.
    pub notes: Vec<String>,
}

/// Why a log cannot be played.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecoverError {
    /// The manifest is wrong.
    Manifest(ManifestError),
    /// A file of the manifest cannot be looked at.
    Missing(String, io::Error),
    /// The system says no.
    Io(String, io::Error),
    /// A file is cut off, and that is not allowed.
    Cut(String, Fault),
    /// A file is cut off that is not the last one.
    CutInside(String, Fault),
    /// A file is damaged: its path, where, and its size.
    Damaged(String, Fault, u64),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const FIX: &str = "make a backup of your AOF file, then use tidemill-check-aof --fix \
            <filename.manifest>";
        match self {
            Self::Manifest(error) => write!(f, "{error}"),
            Self::Missing(path, error) => {
                write!(
                    f,
                    "Unable to obtain the AOF file {path} length. stat: {error}"
                )
            }
            Self::Io(path, error) => {
                write!(
                    f,
                    "Unrecoverable error reading the append only file {path}: {error}"
                )
            }
            Self::Cut(path, fault) => write!(
                f,
                "Unexpected end of file reading the append only file {path} at offset {}: {}. You \
                 can: 1) {FIX}. 2) Alternatively you can set the 'aof-load-truncated' \
                 configuration option to yes and restart the server.",
                fault.valid, fault.reason
            ),
            Self::CutInside(path, fault) => write!(
                f,
                "Unexpected end of file reading the append only file {path} at offset {}: {}. It \
                 is not the last file, so what follows would be played on other data: {FIX}.",
                fault.valid, fault.reason
            ),
            Self::Damaged(path, fault, size) => write!(
                f,
                "Bad file format reading the append only file {path} at offset {} (whole up to \
                 {}): {}. {FIX}. Where this is the last file you can also set the \
                 'aof-load-corrupt-tail-max-size' configuration option to {} and restart the \
                 server.",
                fault.at,
                fault.valid,
                fault.reason,
                size.saturating_sub(fault.valid)
            ),
        }
    }
}

impl std::error::Error for RecoverError {}

impl RecoverError {
    /// A fault met while playing `part`.
    pub fn while_playing(part: &Part, fault: Fault) -> Self {
        match fault.reason {
            Reason::Io(error) => Self::Io(part.path.clone(), error),
            _ if fault.is_cut() && !part.is_last => Self::CutInside(part.path.clone(), fault),
            _ if fault.is_cut() => Self::Cut(part.path.clone(), fault),
            _ => Self::Damaged(part.path.clone(), fault, part.bytes),
        }
    }
}

/// Finds the log and makes it ready to be played; `None` where there is none.
///
/// # Errors
/// Where something of it is missing or damaged beyond what `options` allow. Nothing was changed.
pub fn recover<S: Storage>(
    storage: &S,
    layout: &Layout,
    options: Options,
) -> Result<Option<Recovered>, RecoverError> {
    let mut notes = Vec::new();
    let manifest = Manifest::load(storage, layout).map_err(RecoverError::Manifest)?;
    let Some(manifest) = upgraded(storage, layout, manifest, &mut notes)? else {
        return Ok(None);
    };
    recover_files(storage, layout, manifest, options, notes).map(Some)
}

/// Makes the files of a log ready to be played.
///
/// # Errors
/// As [`recover`].
pub fn recover_files<S: Storage>(
    storage: &S,
    layout: &Layout,
    manifest: Manifest,
    options: Options,
    mut notes: Vec<String>,
) -> Result<Recovered, RecoverError> {
    let mut parts = Vec::new();
    for entry in manifest.files() {
        let path = layout.path(&entry.name);
        let missing = |error| RecoverError::Missing(entry.name.clone(), error);
        let mut file = storage.open(&path).map_err(missing)?;
        let bytes = file.len().map_err(missing)?;
        let mut head = Vec::new();
        let io = |error| RecoverError::Io(path.clone(), error);
        (&mut file).take(6).read_to_end(&mut head).map_err(io)?;
        let is_snapshot = SNAPSHOT.iter().any(|magic| head.starts_with(magic));
        parts.push(Part {
            name: entry.name.clone(),
            path,
            kind: entry.kind,
            is_snapshot,
            bytes,
            is_last: false,
        });
    }
    // Increments without anything in them come of a start and a stop: what stands before the first
    // of a row of them at the end was the last thing written.
    let last = parts.iter().rposition(|part| part.bytes > 0);
    for part in parts.iter_mut().skip(last.unwrap_or(0)) {
        part.is_last = true;
    }
    if let Some(last) = last.map(|at| &mut parts[at])
        && !last.is_snapshot
    {
        cut_back(storage, last, 0, options, &mut notes)?;
    }
    // What the process before left to the system is on the disk before anything that follows it.
    let left = parts.iter().filter(|part| part.is_last);
    for part in left.filter(|_| !options.read_only) {
        let io = |error| RecoverError::Io(part.path.clone(), error);
        let mut file = storage.append(&part.path).map_err(io)?;
        file.sync().map_err(io)?;
    }
    let manifest = without_empty(manifest, &mut parts);
    Ok(Recovered {
        manifest,
        parts,
        notes,
    })
}

/// Makes increments without anything in them, as each start and stop leaves one, history.
fn without_empty(mut manifest: Manifest, parts: &mut Vec<Part>) -> Manifest {
    parts.retain(|part| part.bytes > 0 || part.kind != Kind::Increment);
    let is_kept = |entry: &Entry| parts.iter().any(|part| part.name == entry.name);
    let (kept, empty) = manifest
        .increments
        .drain(..)
        .partition::<Vec<_>, _>(is_kept);
    manifest.increments = kept;
    manifest.retire(empty);
    manifest
}

/// Looks through the commands of the last file, which begin at byte `origin`, cuts the file back to
/// where it is whole, and makes sure that what is left is on the disk.
///
/// # Errors
/// Where it is damaged beyond what `options` allow.
pub fn cut_back<S: Storage>(
    storage: &S,
    part: &mut Part,
    origin: u64,
    options: Options,
    notes: &mut Vec<String>,
) -> Result<(), RecoverError> {
    let io = |error| RecoverError::Io(part.path.clone(), error);
    let open = || {
        let mut file = storage.open(&part.path)?;
        io::copy(&mut (&mut file).take(origin), &mut io::sink())?;
        Ok(file)
    };
    let found = aof::scan(open, origin, part.bytes, None).map_err(io)?;
    // What the last process wrote since its last sync, at most: so much without being longer made
    // it sync, then one more batch. A sync that failed may have left any of it on no disk.
    let last = found.last_batch.unwrap_or(part.bytes).min(found.valid);
    let unsure = last.saturating_sub(RECENT_BYTES_MAX as u64).max(origin);
    let Some(fault) = found.fault else {
        if options.read_only {
            return Ok(());
        }
        return storage.write_again(&part.path, unsure).map_err(io);
    };
    let dropped = part.bytes.saturating_sub(found.valid);
    let name = &part.name;
    if fault.is_cut() && options.truncated {
        if let Reason::EndInTransaction = fault.reason {
            notes.push(format!(
                "Revert incomplete MULTI/EXEC transaction in AOF file {name}"
            ));
        }
        notes.push(format!(
            "!!! Warning: short read while loading the AOF file {name}!!! ({}, at offset {})",
            fault.reason, fault.at
        ));
    } else if !fault.is_cut()
        && !matches!(fault.reason, Reason::Io(_))
        && dropped <= options.corrupt_bytes_max
    {
        notes.push(format!(
            "!!! Warning: corrupt AOF file tail!!! ({name}: {}, at offset {})",
            fault.reason, fault.at
        ));
    } else {
        return Err(RecoverError::while_playing(part, fault));
    }
    if options.read_only {
        notes.push(format!(
            "{dropped} bytes of the AOF {name} from offset {} on are not loaded",
            found.valid
        ));
        part.bytes = found.valid;
        return Ok(());
    }
    notes.push(format!(
        "!!! Truncating the AOF {name} at offset {}: {dropped} bytes are dropped !!!",
        found.valid
    ));
    let mut file = storage.append(&part.path).map_err(io)?;
    file.truncate(found.valid)
        .and_then(|()| file.sync())
        .and_then(|()| storage.write_again(&part.path, unsure))
        .map_err(io)?;
    part.bytes = found.valid;
    Ok(())
}

/// Takes over a log that is one file, as servers before Redis 7 wrote it.
fn upgraded<S: Storage>(
    storage: &S,
    layout: &Layout,
    manifest: Option<Manifest>,
    notes: &mut Vec<String>,
) -> Result<Option<Manifest>, RecoverError> {
    let io = |name: &str| {
        let name = name.to_owned();
        move |error| RecoverError::Io(name, error)
    };
    let old = &layout.file;
    let is_there = |name: &str| storage.open(name).is_ok_and(|file| file.len().is_ok());
    if let Some(manifest) = &manifest {
        // A crash may have come between the manifest and the move.
        let names_old = manifest.files().count() == 1
            && manifest.base.as_ref().is_some_and(|base| base.name == *old);
        if !names_old || is_there(&layout.path(old)) || !is_there(old) {
            return Ok(Some(manifest.clone()));
        }
    } else if layout.directory.is_empty() || !is_there(old) {
        return Ok(None);
    }
    let entry = Entry {
        name: old.clone(),
        seq: 1,
        kind: Kind::Base,
    };
    let manifest = Manifest {
        base: Some(entry),
        ..Manifest::default()
    };
    let directory = &layout.directory;
    storage.make_directory(directory).map_err(io(directory))?;
    storage.sync_directory("").map_err(io(directory))?;
    manifest
        .store(storage, layout)
        .map_err(io(&layout.manifest()))?;
    storage.rename(old, &layout.path(old)).map_err(io(old))?;
    storage
        .sync_directory(directory)
        .and_then(|()| storage.sync_directory(""))
        .map_err(io(directory))?;
    notes.push(format!(
        "Successfully migrated an old-style AOF file ({old}) into the AOF directory ({directory})."
    ));
    Ok(Some(manifest))
}
