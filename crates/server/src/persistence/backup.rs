//! BACKUP: a whole log under second names in a directory of its own, while the server runs.
//!
//! ```text
//! idle ─START─▶ pending ─▶ snapshotting ─▶ incrementing ─SEAL─▶ sealed ─CLEANUP─▶ idle
//!                  │ a rewrite     │ its base     │ the increments
//!                  │ can begin     │ is pinned    │ are pinned
//!                  └───────────────┴──────────────┴─ABORT, an error─▶ failed ─START, CLEANUP─▶
//! ```
//!
//! Where `appendonly` is no, a log is written for the backup alone, and removed after it.
//!
//! # Invariants
//! - While increments gather no rewrite begins: the base that was pinned stays that of the log.
//! - Files are linked and removed by threads that wait for nobody: a worker's, or the log's.
//! - A log for the backup alone refuses no writes and holds no replies: if it fails, so does the
//!   backup.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::host::ClientId;
use parking_lot::Mutex;
use persist::log::Log;
use persist::storage::{Disk, Storage};

use crate::config::Config;
use crate::inbox::Message;
use crate::shared::Shared;
use crate::{notice, sys, warning};

/// Where a backup stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// There is none.
    #[default]
    Idle,
    /// It waits for a snapshot to end.
    Pending,
    /// Its base is written.
    Snapshotting,
    /// Changes gather.
    Incrementing,
    /// The last increment ends; from outside this is as before.
    Sealing,
    /// It is there.
    Sealed,
    /// It was given up.
    Failed,
}

impl State {
    /// What STATUS calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Pending => "pending",
            Self::Snapshotting => "snapshotting",
            Self::Incrementing | Self::Sealing => "incrementing",
            Self::Sealed => "sealed",
            Self::Failed => "failed",
        }
    }

    /// Whether it is neither over nor to come.
    pub fn is_under_way(self) -> bool {
        matches!(
            self,
            Self::Pending | Self::Snapshotting | Self::Incrementing | Self::Sealing
        )
    }
}

/// A backup.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// Where it stands.
    pub state: State,
    /// Why it failed.
    pub error: String,
    /// When its base was begun: Unix seconds.
    pub start_s: u64,
    /// When it was sealed.
    pub end_s: u64,
    /// Names of its files.
    pub files: Vec<String>,
}

/// The server's backup.
#[derive(Default)]
pub struct Backup {
    facts: Mutex<Facts>,
    /// Held by who looks at the directory or removes files in it.
    work: Mutex<()>,
    /// Whether the first thread should look.
    pub wants_look: AtomicBool,
    /// Whether the log is written for the backup alone.
    pub owns_log: AtomicBool,
}

/// The directory, inside `dir`.
///
/// # Errors
/// Where it is not one of its own: its files are removed by CLEANUP.
fn directory(config: &Config) -> Result<String, String> {
    let name = String::from_utf8_lossy(&config.backupdirname).into_owned();
    match name == "." || name == ".." || config.backupdirname == config.appenddirname {
        true => Err("backupdirname must name a directory of its own".to_owned()),
        false => Ok(name),
    }
}

impl Backup {
    /// How it stands.
    pub fn facts(&self) -> Facts {
        self.facts.lock().clone()
    }

    /// Where it stands.
    pub fn state(&self) -> State {
        self.facts.lock().state
    }

    /// Whether rewrites have to wait for it.
    pub fn holds_rewrites(&self) -> bool {
        matches!(self.state(), State::Incrementing | State::Sealing)
    }

    /// Goes from one state to the next, unless something else came.
    fn step(&self, from: State, to: impl FnOnce(&mut Facts)) -> bool {
        let mut facts = self.facts.lock();
        let is_there = facts.state == from;
        if is_there {
            to(&mut facts);
        }
        is_there
    }
}

/// Paths of a backup's files.
pub fn paths(config: &Config, facts: &Facts) -> Vec<String> {
    let name = String::from_utf8_lossy(&config.backupdirname);
    let directory = config.dir.join(&*name);
    let path = |file: &String| directory.join(file).display().to_string();
    facts.files.iter().map(path).collect()
}

/// START: a backup is to begin as soon as a snapshot can. Waits for the disk.
///
/// # Errors
/// What the client is told.
pub fn begin(shared: &Shared) -> Result<(), String> {
    let backup = &shared.backup;
    let _alone = backup.work.lock();
    match backup.state() {
        State::Idle | State::Failed => {}
        State::Sealed => return Err("A sealed backup exists, CLEANUP it first".to_owned()),
        _ => return Err("A backup is already in progress, ABORT it first".to_owned()),
    }
    let config = shared.config();
    let directory = directory(&config)?;
    let disk = Disk::new(&config.dir);
    let ready = disk
        .make_directory(&directory)
        .and_then(|()| disk.sync_directory(""));
    ready.map_err(|error| format!("Can't create the backup directory {directory}: {error}"))?;
    let is_empty = std::fs::read_dir(config.dir.join(&directory))
        .map(|mut entries| entries.next().is_none())
        .map_err(|error| format!("Can't read the backup directory {directory}: {error}"))?;
    if !is_empty {
        return Err(format!(
            "Backup directory {directory} is not empty, CLEANUP it first"
        ));
    }
    *backup.facts.lock() = Facts {
        state: State::Pending,
        ..Facts::default()
    };
    backup.wants_look.store(true, Ordering::Release);
    shared.wake_all();
    Ok(())
}

/// ABORT: gives up what was not sealed. Waits for the disk.
///
/// # Errors
/// What the client is told.
pub fn abort(shared: &Shared) -> Result<(), String> {
    let _alone = shared.backup.work.lock();
    match fail(shared, "aborted by user") {
        true => Ok(()),
        false => Err("No backup in progress".to_owned()),
    }
}

/// CLEANUP: removes whatever files are in the directory. Waits for the disk.
///
/// # Errors
/// What the client is told.
pub fn clean_up(shared: &Shared) -> Result<(), String> {
    let backup = &shared.backup;
    let _alone = backup.work.lock();
    if backup.state().is_under_way() {
        return Err("Backup is in progress".to_owned());
    }
    let config = shared.config();
    let directory = config.dir.join(directory(&config)?);
    let said = |error: std::io::Error| format!("Can't clean up {}: {error}", directory.display());
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(said(error)),
    };
    for entry in entries.into_iter().flatten() {
        let entry = entry.map_err(said)?;
        if !entry.file_type().map_err(said)?.is_dir() {
            std::fs::remove_file(entry.path()).map_err(said)?;
        }
    }
    *backup.facts.lock() = Facts::default();
    Ok(())
}

/// Gives up a backup under way, and removes its files. False where none is.
pub fn fail(shared: &Shared, why: &str) -> bool {
    let Some(files) = give_up(shared, why) else {
        return false;
    };
    remove(&shared.config(), &files);
    true
}

/// As [`fail`], for whoever must not wait for the disk.
pub fn fail_aside(shared: &Arc<Shared>, why: &str) {
    if let Some(files) = give_up(shared, why).filter(|files| !files.is_empty()) {
        let config = shared.config();
        aside(shared, None, move || {
            remove(&config, &files);
            Ok(())
        });
    }
}

/// Gives up a backup under way; the files that are to be removed.
fn give_up(shared: &Shared, why: &str) -> Option<Vec<String>> {
    let backup = &shared.backup;
    let files = {
        let mut facts = backup.facts.lock();
        if !facts.state.is_under_way() {
            return None;
        }
        facts.state = State::Failed;
        why.clone_into(&mut facts.error);
        std::mem::take(&mut facts.files)
    };
    warning!("BACKUP: failed: {why}");
    // The first thread ends a log that nobody else wants.
    backup.wants_look.store(true, Ordering::Release);
    shared.wake_all();
    Some(files)
}

fn remove(config: &Config, files: &[String]) {
    let name = String::from_utf8_lossy(&config.backupdirname);
    let directory = config.dir.join(&*name);
    for file in files {
        // What stays is seen by the next START.
        let _ = std::fs::remove_file(directory.join(file));
    }
}

/// The rewrite for a backup begins. All stripes are held.
pub fn snapshot_begins(shared: &Shared) {
    let start_s = sys::unix_us() / 1_000_000;
    shared.backup.step(State::Pending, |facts| {
        facts.state = State::Snapshotting;
        facts.start_s = start_s;
    });
}

/// The log has a new base: where it was made for a backup, it is pinned. Runs on the log's thread.
pub fn base_is_there(shared: &Shared, log: &Log<Disk>) {
    let backup = &shared.backup;
    if backup.state() != State::Snapshotting {
        return;
    }
    let pinned = directory(&shared.config())
        .and_then(|directory| log.pin_base(&directory).map_err(|error| error.to_string()));
    match pinned {
        Ok(name) => {
            notice!("BACKUP: snapshot pinned ({name}), now accumulating writes");
            let file = name.clone();
            let is_wanted = backup.step(State::Snapshotting, |facts| {
                facts.state = State::Incrementing;
                facts.files.push(file);
            });
            if !is_wanted {
                remove(&shared.config(), &[name]);
            }
        }
        Err(error) => drop(fail(
            shared,
            &format!("the snapshot cannot be pinned: {error}"),
        )),
    }
}

/// There is no new base.
pub fn base_failed(shared: &Shared) {
    if shared.backup.state() == State::Snapshotting {
        fail(shared, "the snapshot could not be written");
    }
}

/// SEAL: ends the increment at the last change there is now. The log's thread answers `client`.
///
/// # Errors
/// What the client is told.
pub fn begin_seal(shared: &Shared, client: Option<ClientId>) -> Result<(), String> {
    let is_ready = shared
        .backup
        .step(State::Incrementing, |facts| facts.state = State::Sealing);
    if !is_ready {
        return Err("No backup ready to seal (must be in the incrementing state)".to_owned());
    }
    let lsn = shared.keys.lsn.load(Ordering::Acquire);
    shared.log.seal_after(lsn, client);
    Ok(())
}

/// The increment has ended, or will not any more: pins what there is. Runs on the log's thread.
pub fn seal(shared: &Shared, log: Option<&mut Log<Disk>>, client: Option<ClientId>) {
    let sealed = match log {
        _ if shared.backup.state() != State::Sealing => Err("it was given up".to_owned()),
        None => Err("the log has ended".to_owned()),
        Some(log) => directory(&shared.config())
            .and_then(|directory| log.seal(&directory).map_err(|error| error.to_string())),
    };
    let sealed = sealed.inspect_err(|error| {
        fail(shared, &format!("it cannot be sealed: {error}"));
    });
    let reply = match sealed {
        Ok(names) => {
            let end_s = sys::unix_us() / 1_000_000;
            shared.backup.step(State::Sealing, |facts| {
                facts.state = State::Sealed;
                facts.end_s = end_s;
                facts.files.extend(names);
            });
            notice!("BACKUP: sealed");
            shared.backup.wants_look.store(true, Ordering::Release);
            shared.wake_all();
            "+OK\r\n".to_owned()
        }
        Err(error) => format!("-ERR The backup cannot be sealed: {error}\r\n"),
    };
    if let Some(client) = client {
        shared.tell(client, Message::Done(client.number, reply.into_bytes()));
    }
}

/// Removes a sealed backup whose time is up.
pub fn expire(shared: &Arc<Shared>, ttl_s: u64, now_s: u64) {
    let facts = shared.backup.facts();
    if facts.state != State::Sealed || now_s < facts.end_s.saturating_add(ttl_s) {
        return;
    }
    notice!("BACKUP: auto cleaning sealed backup after {ttl_s} seconds");
    let of_worker = shared.clone();
    aside(shared, None, move || clean_up(&of_worker));
}

/// Does what waits for the disk on a thread of its own, and answers `client`.
pub fn aside(
    shared: &Arc<Shared>,
    client: Option<ClientId>,
    work: impl FnOnce() -> Result<(), String> + Send + 'static,
) {
    let of_worker = shared.clone();
    let run = move || {
        let reply = match work() {
            Ok(()) => "+OK\r\n".to_owned(),
            Err(error) => format!("-ERR {error}\r\n"),
        };
        if let Some(client) = client {
            of_worker.tell(client, Message::Done(client.number, reply.into_bytes()));
        }
    };
    let spawned = std::thread::Builder::new()
        .name("backup".to_owned())
        .spawn(run);
    if let Err(error) = spawned
        && let Some(client) = client
    {
        let reply = format!("-ERR no thread can be had: {error}\r\n").into_bytes();
        shared.tell(client, Message::Done(client.number, reply));
    }
}
