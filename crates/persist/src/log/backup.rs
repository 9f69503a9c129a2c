//! A backup: a base, the increments after it and a manifest under second names in another
//! directory, where they stay as they are whatever the log does.
//!
//! 1. A rewrite makes a base; [`Log::pin_base`] gives it a second name.
//! 2. The log goes on. No other rewrite may come in between.
//! 3. [`Log::end_after`] ends the increment; [`Log::seal`] gives all increments second names and
//!    writes a manifest, which makes a log of that directory.

use std::io;

use super::Log;
use crate::manifest::{Entry, Layout, Manifest};
use crate::storage::Storage;

impl<S: Storage> Log<S> {
    /// Gives the base a second name in `directory`; returns the name there.
    ///
    /// # Errors
    /// What the system says.
    pub fn pin_base(&self, directory: &str) -> io::Result<String> {
        let base = self.manifest.base.as_ref();
        let base = base.ok_or_else(|| io::Error::other("the log has no base"))?;
        self.pin(base, directory)?;
        self.storage.sync_directory(directory)?;
        Ok(base.name.clone())
    }

    /// Lets frames after number `lsn` go to a new increment, even where there is none before them.
    pub fn end_after(&mut self, lsn: u64) {
        self.turn_after(lsn);
        self.turns_always = true;
    }

    /// Gives all increments before the last turn second names in `directory`, where the base has
    /// one, and writes a manifest of them; returns the names there.
    ///
    /// # Errors
    /// What the system says: then there is no manifest.
    pub fn seal(&mut self, directory: &str) -> io::Result<Vec<String>> {
        let Some(first) = self.pending.filter(|_| !self.is_turning()) else {
            return Err(io::Error::other("the increment has not ended"));
        };
        self.abandon();
        let ended = |entry: &&Entry| entry.seq < first;
        let sealed = Manifest {
            base: self.manifest.base.clone(),
            increments: self
                .manifest
                .increments
                .iter()
                .filter(ended)
                .cloned()
                .collect(),
            history: Vec::new(),
        };
        for entry in &sealed.increments {
            self.pin(entry, directory)?;
        }
        let layout = Layout {
            directory: directory.to_owned(),
            file: self.layout.file.clone(),
        };
        sealed.store(&self.storage, &layout)?;
        let names = sealed.increments.iter().map(|entry| entry.name.clone());
        Ok(names.chain([format!("{}.manifest", layout.file)]).collect())
    }

    fn pin(&self, entry: &Entry, directory: &str) -> io::Result<()> {
        let from = self.layout.path(&entry.name);
        self.storage
            .link(&from, &format!("{directory}/{}", entry.name))
    }

    /// Ends the log and removes its files; what has a second name stays there.
    ///
    /// # Errors
    /// What the system says. Whatever is left is no log without its manifest.
    pub fn remove(mut self) -> io::Result<()> {
        self.file = None;
        match self.storage.remove(&self.layout.manifest()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => self.storage.sync_directory(&self.layout.directory)?,
        }
        for entry in self.manifest.files().chain(&self.manifest.history) {
            match self.storage.remove(&self.layout.path(&entry.name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
