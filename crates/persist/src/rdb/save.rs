//! Writing a file so that it is there whole or not at all.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use crc::{Digest, Table};
use engine::dump::{CHECKSUM, Damaged, Sink, Unwritable, compress_marked, write_frozen};
use engine::snapshot::Big;

use super::write::{Encoder, Entry};
use crate::storage::{Storage, StorageFile};

/// Bytes that are written at once.
const WRITE_BYTES: usize = 64 * 1024;

/// Is called after each write of so many bytes: to sync the file, or to let others have the core.
pub type AfterWrite<W> = Box<dyn FnMut(&mut W, usize) -> std::io::Result<()>>;

/// Why no file was written.
#[derive(Debug)]
pub enum SaveError {
    /// The system.
    Io(std::io::Error),
    /// A value for which the format has no form.
    Value {
        /// Its database.
        db: u32,
        /// Its key.
        key: Vec<u8>,
        /// Why it has none.
        why: Unwritable,
    },
}

impl std::fmt::Display for SaveError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Value { db, key, why } => {
                let key = key.escape_ascii();
                write!(f, "key '{key}' of database {db} cannot be saved: {why}")
            }
        }
    }
}

impl std::error::Error for SaveError {}

impl From<std::io::Error> for SaveError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

/// A file in the making.
pub struct Saver<W> {
    to: Output<W>,
    encoder: Encoder,
    db: u32,
}

/// A buffer before a file, and the checksum of what went through it.
struct Output<W> {
    file: W,
    buf: Vec<u8>,
    digest: Option<Digest<'static, u64, Table<16>>>,
    written: u64,
    error: Option<std::io::Error>,
    after_write: Option<AfterWrite<W>>,
}

impl<W: Write> Output<W> {
    fn flush(&mut self) {
        if let Some(digest) = &mut self.digest {
            digest.update(&self.buf);
        }
        if self.error.is_none() {
            self.written += self.buf.len() as u64;
            self.error = self.file.write_all(&self.buf).err();
            if self.error.is_none()
                && let Some(after_write) = &mut self.after_write
            {
                self.error = after_write(&mut self.file, self.buf.len()).err();
            }
        }
        self.buf.clear();
    }
}

impl<W: Write> Sink for Output<W> {
    fn buf(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    fn spill(&mut self) {
        if self.buf.len() >= WRITE_BYTES {
            self.flush();
        }
    }
}

impl<W: Write> Saver<W> {
    /// Writes to `file` what `encoder` makes of it, with a checksum or without.
    pub fn new(file: W, encoder: Encoder, checksum: bool) -> Self {
        Self {
            to: Output {
                file,
                buf: Vec::with_capacity(2 * WRITE_BYTES),
                digest: checksum.then(|| CHECKSUM.digest()),
                written: 0,
                error: None,
                after_write: None,
            },
            encoder,
            db: 0,
        }
    }

    /// Has `after_write` called from now on.
    pub fn after_write(&mut self, after_write: AfterWrite<W>) {
        self.to.after_write = Some(after_write);
    }

    /// The beginning.
    pub fn begin(&mut self, about: &super::About<'_>) {
        self.encoder.begin(&mut self.to, about);
    }

    /// A library of functions; all of them come before the keys.
    ///
    /// # Errors
    /// Where it could not be written.
    pub fn library(&mut self, source: &[u8]) -> Result<(), SaveError> {
        self.encoder.library(&mut self.to, source);
        self.after()
    }

    /// The keys that follow belong to database `db`, which has so many of them.
    pub fn db(&mut self, db: u32, keys: u64, timed: u64) {
        self.db = db;
        self.encoder.db(&mut self.to, db);
        self.encoder.sizes(&mut self.to, keys, timed);
    }

    /// A key with its value.
    ///
    /// # Errors
    /// Where it has no form, or could not be written.
    #[inline]
    pub fn entry(&mut self, entry: Entry<'_>) -> Result<(), SaveError> {
        if let Err(why) = self.encoder.entry(&mut self.to, entry) {
            return Err(SaveError::Value {
                db: self.db,
                key: entry.key.to_vec(),
                why,
            });
        }
        self.after()
    }

    /// A key with a big value.
    ///
    /// # Errors
    /// As [`Saver::entry`].
    pub fn big(&mut self, big: Big, access: u32) -> Result<(), SaveError> {
        let (to, encoder) = (&mut self.to, &mut self.encoder);
        encoder.entry_facts(&mut to.buf, big.deadline, access);
        match write_frozen(to, encoder.forms(), Some(&big.key), big.value) {
            Ok(()) => self.after(),
            Err(why) => Err(SaveError::Value {
                db: self.db,
                key: big.key.into(),
                why,
            }),
        }
    }

    /// Parts that are bytes already, in which the strings that begin at `marks` are still to be
    /// compressed.
    ///
    /// # Errors
    /// Where they could not be written, or no string begins at a mark.
    pub fn marked(&mut self, bytes: &[u8], marks: &[usize]) -> Result<(), SaveError> {
        let forms = self.encoder.forms();
        compress_marked(&mut self.to, forms, bytes, marks)
            .map_err(|Damaged| std::io::Error::other("no string begins at a mark"))?;
        self.after()
    }

    /// Parts that are bytes already.
    ///
    /// # Errors
    /// Where they could not be written.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), SaveError> {
        self.to.buf.extend_from_slice(bytes);
        self.after()
    }

    #[inline]
    fn after(&mut self) -> Result<(), SaveError> {
        self.to.spill();
        match self.to.error.take() {
            None => Ok(()),
            Some(error) => Err(error.into()),
        }
    }

    /// Bytes so far.
    pub fn len_bytes(&self) -> u64 {
        self.to.written + self.to.buf.len() as u64
    }

    /// The end. Returns the file and its length; nothing is durable yet.
    ///
    /// # Errors
    /// Where it could not be written.
    pub fn end(mut self) -> Result<(W, u64), SaveError> {
        self.encoder.end(&mut self.to);
        self.to.flush();
        let sum = self.to.digest.take().map_or(0, |digest| digest.finalize());
        self.to.buf.extend(sum.to_le_bytes());
        self.to.flush();
        match self.to.error {
            None => Ok((self.to.file, self.to.written)),
            Some(error) => Err(error.into()),
        }
    }
}

/// A name for a file in the making that no other of this process has: a snapshot and the base of a
/// log may be written at the same time.
pub fn temporary_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("temp-{}-{number}.rdb", std::process::id())
}

/// Makes the file `name`: all that `fill` writes, or nothing. A file that had the name is replaced
/// when the new one is durable. Returns its length.
///
/// # Errors
/// What failed; the old file is as it was.
pub fn save<S: Storage>(
    storage: &S,
    name: &str,
    encoder: Encoder,
    checksum: bool,
    fill: impl FnOnce(&mut Saver<S::File>) -> Result<(), SaveError>,
) -> Result<u64, SaveError> {
    let temporary = temporary_name();
    let written = write(storage, &temporary, encoder, checksum, fill).and_then(|len| {
        storage.rename(&temporary, name)?;
        storage.sync_directory("")?;
        Ok(len)
    });
    if written.is_err() {
        let _ = storage.remove(&temporary);
    }
    written
}

fn write<S: Storage>(
    storage: &S,
    temporary: &str,
    encoder: Encoder,
    checksum: bool,
    fill: impl FnOnce(&mut Saver<S::File>) -> Result<(), SaveError>,
) -> Result<u64, SaveError> {
    let mut saver = Saver::new(storage.create(temporary)?, encoder, checksum);
    fill(&mut saver)?;
    let (mut file, len) = saver.end()?;
    file.sync()?;
    Ok(len)
}
