//! The disk as the rest of the crate sees it.

use std::io;

mod disk;
#[cfg(test)]
pub mod simulated;

pub use disk::Disk;

/// A directory of files.
///
/// Names are plain: relative to the directory, no more than one directory deep (`appendonlydir/x`).
/// Nothing is durable before a `sync` of the file, and of its directory for a name that is new,
/// renamed or gone, returned without error.
pub trait Storage: Send {
    /// A file opened for appending or reading.
    type File: StorageFile;

    /// Makes a file, empty even where one of the name was there, for appending.
    ///
    /// # Errors
    /// What the system says.
    fn create(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for appending; it must be there.
    ///
    /// # Errors
    /// What the system says.
    fn append(&self, name: &str) -> io::Result<Self::File>;

    /// Opens a file for reading from its beginning.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Gives a file another name; a file that had it is gone, in one step.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Gives a file a second name, which must be free.
    ///
    /// # Errors
    /// What the system says.
    fn link(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// What the system says.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// The names in a directory (`""`: this one), in no order; none where it is not there.
    ///
    /// # Errors
    /// What the system says.
    fn list(&self, directory: &str) -> io::Result<Vec<String>>;

    /// Makes a directory, unless it is there.
    ///
    /// # Errors
    /// What the system says.
    fn make_directory(&self, name: &str) -> io::Result<()>;

    /// Writes a file from byte `from` on once more, as the system shows it, and makes that durable.
    ///
    /// A sync that failed leaves bytes that the system shows and takes for written, though they are
    /// on no disk; a later sync, also another process's, says nothing of them. This one does.
    ///
    /// # Errors
    /// What the system says.
    fn write_again(&self, name: &str, from: u64) -> io::Result<()>;

    /// Makes the names in a directory (`""`: this one) durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_directory(&self, name: &str) -> io::Result<()>;
}

/// An open file.
pub trait StorageFile: io::Read + io::Write + Send {
    /// Makes all that was written durable. After an error nothing is known of what was written
    /// since the last success: trying again does not tell.
    ///
    /// # Errors
    /// What the system says.
    fn sync(&mut self) -> io::Result<()>;

    /// Says that `len` bytes from `from` on, which were synced, will not be read soon: the system
    /// need not keep them in memory.
    fn forget(&self, _from: u64, _len: u64) {}

    /// Bytes in the file.
    ///
    /// # Errors
    /// What the system says.
    fn len(&self) -> io::Result<u64>;

    /// Whether nothing is in it.
    ///
    /// # Errors
    /// What the system says.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file; what is written next follows there.
    ///
    /// # Errors
    /// What the system says.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}
