//! This loop's part of the append-only log: handing over frames, holding replies, who waits for the
//! disk, loading.

use super::*;
use crate::persistence::Replaying;
use crate::persistence::backup::{self, State};
use crate::persistence::log_thread::{self, Begin};
use std::sync::atomic::fence;
use std::time::{Duration, Instant};

use engine::CommandError;
use engine::blocking::Awaits;
use engine::host::{Durable, Host};

use crate::config::AppendFsync;

/// Milliseconds between two requests to force what was written to the disk.
const SYNC_ASK_MS: u64 = 50;
/// How long replies wait for the log at most when the server ends.
const LAST_REPLIES: Duration = Duration::from_secs(1);
/// How often it is looked whether they may go.
const LAST_LOOK: Duration = Duration::from_micros(500);

impl<L: RawLock> EventLoop<'_, L> {
    /// Hands over what commands of this turn changed.
    #[inline]
    pub(super) fn hand_over(&mut self) {
        if !self.executor.frames().is_empty() {
            self.shared.log.put(self.executor.frames());
        }
        if self.wants_sync {
            self.wants_sync = false;
            self.shared.log.ask_for_sync();
        }
    }

    /// A client began to wait for something that no key brings.
    #[cold]
    pub(super) fn note_wait(&mut self, number: u64) {
        self.awaiting.push(number);
        self.shared.log.waiting.fetch_add(1, Ordering::Relaxed);
    }

    /// Answers those whose changes the disk has now, and asks the disk where nobody else would.
    #[cold]
    pub(super) fn release_awaiting(&mut self) {
        let durable = self.host.durable();
        let mut is_late = false;
        for number in std::mem::take(&mut self.awaiting) {
            let Some(mut connection) = self.connections.take(number) else {
                self.shared.log.waiting.fetch_sub(1, Ordering::Relaxed);
                continue;
            };
            let waiter = connection.session.waiting.as_ref();
            let (waits, is_done) = match waiter.map_or(Awaits::Keys, |waiter| waiter.awaits) {
                Awaits::Keys => (false, false),
                Awaits::Replicas | Awaits::Host => (true, false),
                Awaits::Disk {
                    lsn,
                    replicas,
                    local,
                } => {
                    let has_it = durable.has(lsn);
                    is_late |= !has_it;
                    let is_off = durable == Durable::NoLog;
                    (true, local && is_off || !replicas && has_it)
                }
            };
            if is_done {
                let mut output = std::mem::take(&mut connection.output);
                self.unblock(&mut connection, false, &mut output);
                connection.output = output;
                self.dirty.push(number);
            }
            if waits && !is_done {
                self.awaiting.push(number);
            } else {
                self.shared.log.waiting.fetch_sub(1, Ordering::Relaxed);
            }
            self.connections.put(connection);
        }
        let nobody_syncs = self.host.config.appendfsync == AppendFsync::No;
        if is_late && nobody_syncs && self.now_ms >= self.next_sync_ms {
            self.next_sync_ms = self.now_ms + SYNC_ASK_MS;
            self.wants_sync = true;
        }
    }

    /// Whether what a connection gets now must wait for the log; then it is kept back.
    #[inline]
    pub(super) fn holds(&mut self, connection: &mut Connection) -> bool {
        let lsn = self.shared.keys.lsn.load(Ordering::Acquire);
        self.shared.log.must_hold(lsn) && self.hold(connection, lsn)
    }

    #[cold]
    fn hold(&mut self, connection: &mut Connection, lsn: u64) -> bool {
        let log = &self.shared.log;
        // While the disk fails, reads go on: only who wrote, or waits already, has to wait.
        let waits = connection.held_lsn != 0;
        if log.has_failed() && !waits && self.executor.frames().is_empty() {
            return false;
        }
        connection.held_lsn = lsn;
        if !waits {
            if !std::mem::replace(&mut self.is_holder, true) {
                log.holders.fetch_add(1, Ordering::SeqCst);
            }
            self.held.push_back((lsn, connection.session.id.number));
        }
        true
    }

    /// Whether replies are kept that may go by now. To be asked last before waiting.
    pub(super) fn may_release(&self) -> bool {
        self.held.front().is_some_and(|&(lsn, _)| {
            fence(Ordering::SeqCst);
            !self.shared.log.must_hold(lsn)
        })
    }

    /// Sends replies before which all is as far as it must be.
    pub(super) fn release_held(&mut self) {
        self.release_some();
        if self.held.is_empty() && std::mem::take(&mut self.is_holder) {
            self.shared.log.holders.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Before this loop ends: sends the replies that wait for the log, which is still written.
    pub(super) fn release_last(&mut self) {
        let end = Instant::now() + LAST_REPLIES;
        while !self.held.is_empty() && !self.shared.log.has_failed() && Instant::now() < end {
            std::thread::sleep(LAST_LOOK);
            self.release_held();
        }
    }

    fn release_some(&mut self) {
        for _ in 0..self.held.len() {
            let Some((lsn, number)) = self.held.pop_front() else {
                return;
            };
            if self.shared.log.must_hold(lsn) {
                self.held.push_front((lsn, number));
                return;
            }
            let Some(connection) = self.connections.get_mut(number) else {
                continue;
            };
            if self.shared.log.must_hold(connection.held_lsn) {
                self.held.push_back((connection.held_lsn, number));
            } else {
                connection.held_lsn = 0;
                self.flush(number);
            }
        }
    }

    /// Has commands that write refused while the log cannot be written, or no more.
    #[inline]
    pub(super) fn refuse_unlogged(&mut self) {
        // One that is written for a backup alone makes the backup fail.
        let has_failed = self.shared.log.has_failed() && self.host.config.appendonly;
        if has_failed != self.refuses_unlogged {
            self.refuses_unlogged = has_failed;
            let text = format!(
                "MISCONF Errors writing to the AOF file: {}",
                self.shared.log.failure()
            );
            let error = has_failed.then(|| CommandError::Text(text.into()));
            self.executor.refuse_unlogged(error);
        }
    }

    /// Loads the rest of the log, some of it each turn.
    pub(super) fn replay(&mut self) {
        let Some(mut replaying) = self.replaying.take() else {
            return;
        };
        let stripes = &self.executor.keyspace().stripes;
        let step = replaying.step(|with| with(&mut stripes.acquire(stripes.all()).held()));
        match step {
            Ok(None) => self.replaying = Some(replaying),
            Ok(Some(manifest)) => {
                let is_from_elsewhere = replaying.is_from_elsewhere();
                drop(replaying);
                let is_kept = self.shared.config().appendonly;
                let started = match is_kept {
                    true if is_from_elsewhere => self.begin_log(),
                    true => log_thread::start(&self.shared, Begin::After(manifest)),
                    false => Ok(()),
                };
                match started {
                    Ok(()) => self.loaded(),
                    Err(error) => self.shared.fail(error),
                }
            }
            Err(error) => self.shared.fail(error),
        }
    }

    /// A snapshot was loaded in place of a log that is not there: a log begins with it.
    pub(super) fn begin_log(&mut self) -> Result<(), String> {
        if !self.host.config.appendonly || self.shared.log.is_on.load(Ordering::Relaxed) {
            return Ok(());
        }
        let shared = self.shared.clone();
        self.executor.with_all(|held| {
            let manifest = log_thread::first_base(&shared, held)?;
            log_thread::start(&shared, Begin::After(manifest))
        })
    }

    /// There is nothing to load.
    ///
    /// # Errors
    /// Where the log cannot be begun.
    pub fn begin_empty(&mut self) -> Result<(), String> {
        self.begin_log()?;
        self.loaded();
        Ok(())
    }

    /// The data is there.
    pub(super) fn loaded(&mut self) {
        self.shared.keys.set_phase(Phase::Serving);
        if let Some(client) = self.shared.persistence.reloads_log_for.lock().take() {
            notice!("Append Only File loaded by DEBUG LOADAOF");
            let done = Message::Done(client.number, b"+OK\r\n".to_vec());
            return self.host.send(client, done);
        }
        crate::start::announce(&self.shared.config());
    }

    /// Begins to load the log before the loop serves commands as usual; false where there is none.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    pub fn begin_replaying(&mut self) -> Result<bool, String> {
        let found = Replaying::begin(&self.shared, self.executor.keyspace())?;
        self.replaying = found;
        Ok(self.replaying.is_some())
    }

    /// DEBUG LOADAOF has emptied everything: once the log before has ended, loads it. A log that
    /// cannot be loaded ends the server, as it does at start.
    #[cold]
    pub(super) fn reload_log(&mut self) {
        let waiting = *self.shared.persistence.reloads_log_for.lock();
        let Some(client) = waiting else { return };
        if self.is_loading() || self.shared.log.is_on.load(Ordering::Acquire) {
            return;
        }
        match self.begin_replaying() {
            Ok(true) => {}
            Ok(false) => {
                *self.shared.persistence.reloads_log_for.lock() = None;
                if let Err(error) = self.begin_log() {
                    return self.shared.fail(error);
                }
                self.shared.keys.set_phase(Phase::Serving);
                warning!("DEBUG LOADAOF: there is no append-only file");
                let error = b"-ERR Error trying to load the AOF files, check server logs.\r\n";
                self.host
                    .send(client, Message::Done(client.number, error.to_vec()));
            }
            Err(error) => self.shared.fail(error),
        }
    }

    /// Begins to load a log that is elsewhere, before the loop serves commands as usual.
    ///
    /// # Errors
    /// Where it cannot be loaded.
    pub fn begin_preloading(&mut self, path: &std::path::Path) -> Result<(), String> {
        let keyspace = self.executor.keyspace();
        self.replaying = Some(Replaying::begin_elsewhere(&self.shared, keyspace, path)?);
        Ok(())
    }

    /// Rewrites the log where it has grown by the configured share, or that was asked for.
    pub(super) fn rewrite_if_due(&mut self) {
        let log = &self.shared.log;
        let config = &self.host.config;
        if config.appendonly && !log.is_on.load(Ordering::Acquire) {
            return self.begin_log_late();
        }
        let is_rewriting = log.rewrite_since_s.load(Ordering::Relaxed) != 0;
        if self.shared.backup.holds_rewrites() {
            return;
        }
        if !config.appendonly
            && log.is_scheduled.load(Ordering::Relaxed)
            && !log.is_on.load(Ordering::Acquire)
            && self.shared.snapshots.busy().is_none()
        {
            return self.rewrite();
        }
        if !log.is_on.load(Ordering::Relaxed)
            || log.is_stopping()
            || is_rewriting
            || log.has_failed()
        {
            return;
        }
        let size = log.size_bytes.load(Ordering::Relaxed);
        let base = log.base_bytes.load(Ordering::Relaxed).max(1);
        let share = u64::from(config.auto_aof_rewrite_percentage);
        let growth = size.saturating_sub(base).saturating_mul(100) / base;
        let has_grown =
            share > 0 && size > config.auto_aof_rewrite_min_size_bytes && growth >= share;
        // After one that failed, the next waits a while.
        let may_begin = self.now_ms / 1000 >= log.retry_s.load(Ordering::Relaxed);
        let is_wanted = has_grown || !log.has_base();
        let is_scheduled = log.is_scheduled.load(Ordering::Relaxed);
        if !(is_scheduled || is_wanted && may_begin) || self.shared.snapshots.busy().is_some() {
            return;
        }
        if !is_scheduled && has_grown {
            notice!("Starting automatic rewriting of AOF on {growth}% growth");
        }
        self.rewrite();
    }

    fn rewrite(&mut self) {
        let (shared, keys) = (self.shared.clone(), self.shared.keys.clone());
        // Where another snapshot came first, the next look tries again.
        let _ = self
            .executor
            .with_all(|held| log_thread::rewrite(&shared, &keys, held));
    }

    /// The log was turned on while another was ending, which has ended now.
    #[cold]
    fn begin_log_late(&mut self) {
        let (shared, keys) = (self.shared.clone(), self.shared.keys.clone());
        let begun = self
            .executor
            .with_all(|held| log_thread::begin(&shared, &keys, held));
        if let Err(error) = begun {
            // Without it nothing that is written would be kept.
            shared.fail(error);
        }
    }

    /// Begins what a backup waits for, and ends the log of one that is over.
    #[cold]
    pub(super) fn look_after_backup(&mut self) {
        let (shared, keys) = (self.shared.clone(), self.shared.keys.clone());
        let (backup, log) = (&shared.backup, &shared.log);
        let config = shared.config();
        let state = backup.state();
        let is_log_free = backup.owns_log.load(Ordering::Relaxed) && !state.is_under_way();
        if is_log_free {
            if log.is_on.load(Ordering::Acquire) && log.is_stopping() {
                return;
            }
            self.executor.with_all(|_| {
                backup.owns_log.store(false, Ordering::Relaxed);
                if log.is_on.load(Ordering::Acquire) && !shared.config().appendonly {
                    log_thread::remove(&shared);
                }
            });
        }
        let must_wait = log.is_on.load(Ordering::Acquire) && log.is_stopping();
        if state != State::Pending || must_wait || shared.snapshots.busy().is_some() {
            backup
                .wants_look
                .store(state == State::Pending, Ordering::Release);
            return;
        }
        backup.wants_look.store(false, Ordering::Release);
        let begun = self.executor.with_all(|held| {
            backup::snapshot_begins(&shared);
            if log.is_on.load(Ordering::Acquire) {
                let begun = log_thread::rewrite(&shared, &keys, held);
                return begun.map_err(|_| "a snapshot is under way".to_owned());
            }
            backup.owns_log.store(!config.appendonly, Ordering::Relaxed);
            log_thread::begin(&shared, &keys, held)
        });
        if let Err(error) = begun {
            backup::fail_aside(&shared, &error);
        }
    }
}
