//! A base of the log as commands instead of a snapshot (`aof-use-rdb-preamble no`).
//!
//! It is made from a snapshot that was written first, key by key: memory is bounded by the longest
//! value. Whoever reads nothing but commands can take it.
//!
//! # Invariants
//! - Played into an empty server, the commands make what the snapshot holds, but for when keys were
//!   used last, which commands cannot say.
//!
//! # Why are streams restored?
//! Commands cannot say everything of a stream: when consumers were last seen, which entries wait in
//! a group though they are gone, which producers there were. RESTORE has it all.

use std::io::{self, Write};

use engine::dump::{Build, Dialect, Format, Unwritable, dump_for};
use engine::log::{write_command, write_select};
use engine::number::write_digits;
use engine::object::Object;
use engine::object::transfer::{each_field, each_member, each_scored};
use engine::settings::Settings;
use structure::decimal::TEXT_MAX;
use structure::hash::Seed;
use structure::record::ValueRef;
use xxhash_rust::xxh3::Xxh3;

use crate::aof::{SUM, TIMESTAMP};
use crate::rdb::{self, Part, SaveError, Value};
use crate::storage::{Storage, StorageFile};

/// Elements that one command adds.
const ELEMENTS: usize = 64;
/// Bytes that are written at once, with a checksum behind them.
const WRITE_BYTES: usize = 1024 * 1024;

/// How the commands are written.
pub struct Options<'a> {
    /// The configuration: how values are kept while they are read.
    pub settings: &'a Settings,
    /// The secret of the hash function.
    pub seed: &'a Seed,
    /// Who must understand what RESTORE brings.
    pub format: Format,
    /// The time to begin with: Unix seconds.
    pub at_s: Option<u64>,
}

/// Writes what the snapshot `from` holds as commands to a new file `to`, and forces it to the disk.
/// Returns its length.
///
/// # Errors
/// Where something cannot be read, written or said; there is no file `to` then.
pub fn write<S: Storage>(
    storage: &S,
    from: &str,
    to: &str,
    options: &Options<'_>,
) -> Result<u64, SaveError> {
    let written = write_to(storage, from, to, options);
    if written.is_err() {
        let _ = storage.remove(to);
    }
    written
}

fn write_to<S: Storage>(
    storage: &S,
    from: &str,
    to: &str,
    options: &Options<'_>,
) -> Result<u64, SaveError> {
    let read = |error: rdb::Error| io::Error::other(format!("{from}: {error}"));
    let build = Build {
        settings: options.settings,
        seed: options.seed,
        dialect: Dialect::Redis,
    };
    let strict = rdb::Options {
        checksum: true,
        skip_unsupported: false,
    };
    let mut reader = rdb::Reader::new(storage.open(from)?, build, strict).map_err(read)?;
    let mut file = Output {
        file: storage.create(to)?,
        sum: Xxh3::new(),
        buf: Vec::with_capacity(WRITE_BYTES),
        written: 0,
    };
    if let Some(at_s) = options.at_s {
        file.buf.extend_from_slice(TIMESTAMP);
        file.buf.extend_from_slice(format!("{at_s}\r\n").as_bytes());
    }
    let mut db = None;
    loop {
        match reader.next_part().map_err(read)? {
            Part::End => break,
            Part::Library(source) => command(&mut file.buf, &[b"FUNCTION", b"LOAD", source]),
            Part::Key(key) => {
                if db != Some(key.db) {
                    db = Some(key.db);
                    write_select(&mut file.buf, key.db);
                }
                value(&mut file, key.key, &key.value, options.format)?.map_err(|why| {
                    SaveError::Value {
                        db: key.db,
                        key: key.key.to_vec(),
                        why,
                    }
                })?;
                if let Some(deadline) = key.deadline {
                    let deadline = deadline.to_string();
                    let words = [b"PEXPIREAT", key.key, deadline.as_bytes()];
                    command(&mut file.buf, &words);
                }
            }
            Part::Aux { .. } | Part::Db(_) | Part::Sizes { .. } | Part::Skipped(_) => {}
        }
        file.spill()?;
    }
    file.flush()?;
    file.file.sync()?;
    Ok(file.written)
}

/// The file in the making.
struct Output<F> {
    file: F,
    sum: Xxh3,
    buf: Vec<u8>,
    written: u64,
}

impl<F: Write> Output<F> {
    fn spill(&mut self) -> io::Result<()> {
        match self.buf.len() < WRITE_BYTES {
            true => Ok(()),
            false => self.flush(),
        }
    }

    /// Writes what there is, and its checksum.
    fn flush(&mut self) -> io::Result<()> {
        if self.buf.is_empty() {
            return Ok(());
        }
        self.sum.update(&self.buf);
        let sum = self.sum.digest();
        self.sum.reset();
        self.buf.extend_from_slice(SUM);
        self.buf
            .extend_from_slice(format!("{sum:016x}\r\n").as_bytes());
        self.file.write_all(&self.buf)?;
        self.written += self.buf.len() as u64;
        self.buf.clear();
        Ok(())
    }
}

fn command(out: &mut Vec<u8>, words: &[&[u8]]) {
    write_command(out, words.iter().copied());
}

/// Writes the commands that make a value.
fn value<F: Write>(
    out: &mut Output<F>,
    key: &[u8],
    value: &Value<'_>,
    format: Format,
) -> io::Result<Result<(), Unwritable>> {
    let object = match value {
        Value::Int(int) => {
            command(&mut out.buf, &[b"SET", key, int.to_string().as_bytes()]);
            return Ok(Ok(()));
        }
        Value::Bytes(text) => {
            command(&mut out.buf, &[b"SET", key, text]);
            return Ok(Ok(()));
        }
        Value::Long(text) => {
            command(&mut out.buf, &[b"SET", key, text]);
            return Ok(Ok(()));
        }
        Value::Object(object) => object,
    };
    let mut many = Many::new(out, key);
    match &**object {
        Object::List(list) => {
            let mut text = [0; TEXT_MAX];
            list.iter()
                .for_each(|entry| many.add("RPUSH", &[entry.bytes(&mut text)]));
        }
        Object::Set(set) => each_member(set, |member| many.add("SADD", &[member])),
        Object::SortedSet(sorted) => each_scored(sorted, |member, score| {
            let mut digits = Vec::with_capacity(24);
            write_digits(score, &mut digits);
            many.add("ZADD", &[&digits, member]);
        }),
        Object::Hash(fields) => {
            each_field(fields, |field, value, _| many.add("HMSET", &[field, value]));
            many.end();
            each_field(fields, |field, _, deadline| {
                if let Some(deadline) = deadline {
                    let deadline = deadline.to_string();
                    many.one(&[
                        b"HPEXPIREAT",
                        key,
                        deadline.as_bytes(),
                        b"FIELDS",
                        b"1",
                        field,
                    ]);
                }
            });
        }
        Object::Array(_) if format != Format::Redis8_10 => return Ok(Err(Unwritable::Array)),
        Object::Array(array) => {
            let mut text = [0; TEXT_MAX];
            for (index, entry) in array.iter() {
                let index = index.to_string();
                many.add("ARMSET", &[index.as_bytes(), entry.bytes(&mut text)]);
            }
            many.end();
            if let Some(next) = array.cursor().map(|last| last.saturating_add(1)) {
                many.one(&[b"ARSEEK", key, next.to_string().as_bytes()]);
            }
        }
        Object::Stream(_) => {
            let payload = match dump_for(format, ValueRef::Object(object)) {
                Ok(payload) => payload,
                Err(why) => return Ok(Err(why)),
            };
            many.one(&[b"RESTORE", key, b"0", &payload]);
        }
    }
    many.end();
    many.result.map(Ok)
}

/// Commands that each add some elements to one key.
struct Many<'o, 'k, F> {
    out: &'o mut Output<F>,
    key: &'k [u8],
    name: &'static str,
    /// Words of elements.
    words: Vec<Vec<u8>>,
    elements: usize,
    result: io::Result<()>,
}

impl<'o, 'k, F: Write> Many<'o, 'k, F> {
    fn new(out: &'o mut Output<F>, key: &'k [u8]) -> Self {
        Self {
            out,
            key,
            name: "",
            words: Vec::new(),
            elements: 0,
            result: Ok(()),
        }
    }

    /// Adds an element with the command `name`.
    fn add(&mut self, name: &'static str, element: &[&[u8]]) {
        self.name = name;
        self.words.extend(element.iter().map(|word| word.to_vec()));
        self.elements += 1;
        if self.elements == ELEMENTS {
            self.end();
        }
    }

    /// Writes the elements that have not been.
    fn end(&mut self) {
        if self.elements > 0 {
            let words = [self.name.as_bytes(), self.key];
            let words: Vec<&[u8]> = words
                .into_iter()
                .chain(self.words.iter().map(Vec::as_slice))
                .collect();
            command(&mut self.out.buf, &words);
            self.words.clear();
            self.elements = 0;
            self.spill();
        }
    }

    /// Writes one command as it is.
    fn one(&mut self, words: &[&[u8]]) {
        command(&mut self.out.buf, words);
        self.spill();
    }

    fn spill(&mut self) {
        if self.result.is_ok() {
            self.result = self.out.spill();
        }
    }
}
