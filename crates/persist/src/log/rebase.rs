//! A new base in place of the old one and of the increments that it holds already.
//!
//! 1. [`Log::turn_after`]: frames after the cut go to a new increment. The manifest has the old
//!    base and all increments, so a crash now loses nothing.
//! 2. Somebody writes the base as of the cut to a temporary file, and forces it to the disk.
//! 3. [`Log::rebase`]: the file gets its name, the manifest names it and the increments since.
//! 4. What is history is removed, by whoever has the time, and forgotten ([`Log::swept`]).

use std::io;

use super::{Event, Log};
use crate::manifest::{Entry, Kind};
use crate::storage::Storage;

/// A base that is on the disk under a temporary name.
#[derive(Clone, Debug)]
pub struct Base {
    /// Its name, as the storage knows it.
    pub path: String,
    /// Whether it is a snapshot rather than commands.
    pub is_snapshot: bool,
    /// Its bytes.
    pub bytes: u64,
}

impl<S: Storage> Log<S> {
    /// Lets frames after number `lsn` go to a new increment. Frames up to there may still come.
    pub fn turn_after(&mut self, lsn: u64) {
        self.turn_covers = lsn >= self.taken_lsn;
        self.turn_at = Some(lsn.max(self.taken_lsn));
    }

    /// Whether a base for the last turn can take its place now: after the turn, or where writing
    /// fails and the base has all that could not be written up to the turn.
    pub fn may_rebase(&self) -> bool {
        !self.is_turning() || self.covered().is_some()
    }

    /// Up to which frame nothing needs to be written any more once the base is there.
    fn covered(&self) -> Option<u64> {
        self.turn_at
            .filter(|_| self.turn_covers && self.failure.is_some())
    }

    /// Whether frames still go to the increment that a turn is to end.
    pub fn is_turning(&self) -> bool {
        self.turn_at.is_some()
    }

    /// Puts `base`, which has everything up to the last turn, in the place of what was before.
    ///
    /// # Errors
    /// What the system says; the log goes on from the old base.
    pub fn rebase(&mut self, base: &Base) -> io::Result<()> {
        let covered = self.covered();
        let fresh = match covered {
            Some(_) => {
                let entry = self.next_entry();
                let file = self.storage.create(&self.layout.path(&entry.name))?;
                Some((entry, file))
            }
            None => None,
        };
        let first_seq = match &fresh {
            Some((entry, _)) => Some(entry.seq),
            None => self.pending.filter(|_| !self.is_turning()),
        };
        let Some(first_seq) = first_seq else {
            return Err(io::Error::other("no increment was begun for this base"));
        };
        let replaced = self.manifest.base.as_ref().map_or(0, |base| base.seq);
        let seq = replaced.max(self.last_base) + 1;
        let entry = Entry {
            name: self.layout.base(seq, base.is_snapshot),
            seq,
            kind: Kind::Base,
        };
        let mut manifest = self.manifest.clone();
        let (old, increments) = manifest
            .increments
            .drain(..)
            .partition::<Vec<_>, _>(|increment| increment.seq < first_seq);
        manifest.increments = increments;
        manifest
            .increments
            .extend(fresh.iter().map(|(entry, _)| entry.clone()));
        let replaced = manifest.base.take();
        manifest.retire(replaced.into_iter().chain(old));
        let name = entry.name.clone();
        manifest.base = Some(entry.clone());
        self.last_base = seq;
        self.storage.rename(&base.path, &self.layout.path(&name))?;
        // Whatever fails from here on, a manifest that names this base may be on the disk. So no
        // other base gets its name, and the file stays until a manifest without it is there.
        self.is_named = true;
        let stored = self
            .storage
            .sync_directory(&self.layout.directory)
            .and_then(|()| manifest.store(&self.storage, &self.layout));
        if let Err(error) = stored {
            self.manifest.retire([entry]);
            if let Some((entry, _)) = fresh {
                // Nothing else may get its name, and the file before cannot go on: the manifest on
                // the disk may not name it any more.
                self.last_increment = entry.seq;
                self.manifest.retire([entry]);
                if let Some(failure) = &mut self.failure {
                    failure.is_unsure = true;
                }
            }
            return Err(error);
        }
        self.manifest = manifest;
        self.has_base = true;
        self.pending = None;
        if let (Some(lsn), Some((entry, file))) = (covered, fresh) {
            self.go_on_after(lsn, entry, file);
        }
        self.other_bytes = base.bytes + self.turned_bytes;
        self.turned_bytes = 0;
        self.base_bytes = self.size_bytes();
        self.events.push(Event::Rebased(name));
        Ok(())
    }

    /// A base has every frame up to `lsn`, those that could not be written, too: the log goes on in
    /// a file that has nothing in it.
    fn go_on_after(&mut self, lsn: u64, entry: Entry, file: S::File) {
        self.merger.pass(lsn);
        self.events.push(Event::Began(entry.name.clone()));
        self.name = entry.name;
        self.file = Some(file);
        self.recent.clear();
        self.forget_recent();
        (self.db, self.db_before, self.marked_s) = (None, None, 0);
        (self.durable_bytes, self.turned_bytes) = (0, 0);
        (self.turn_at, self.turns_always) = (None, false);
        let waited = lsn - self.durable_lsn;
        (self.taken_lsn, self.written_lsn, self.durable_lsn) = (lsn, lsn, lsn);
        self.failure = None;
        self.events.push(Event::Recovered(waited));
    }

    /// Gives up on a base: the increments go on from the old one. A turn that has not come is off,
    /// so that it is not taken for that of the next base.
    pub fn abandon(&mut self) {
        self.pending = None;
        (self.turn_at, self.turns_always) = (None, false);
        self.turned_bytes = 0;
    }

    /// Paths of the files that may be removed.
    pub fn history(&self) -> Vec<String> {
        let history = self.manifest.history.iter();
        history.map(|entry| self.layout.path(&entry.name)).collect()
    }

    /// Forgets files of the past that were removed.
    ///
    /// # Errors
    /// Where the manifest cannot be written: they are removed once more at the next start.
    pub fn swept(&mut self, removed: &[String]) -> io::Result<()> {
        let mut manifest = self.manifest.clone();
        manifest
            .history
            .retain(|entry| !removed.contains(&self.layout.path(&entry.name)));
        self.store(&manifest)?;
        self.manifest = manifest;
        Ok(())
    }
}
