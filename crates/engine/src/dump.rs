//! Values as bytes, in the form that Redis's files and its DUMP have.
//!
//! ```text
//! payload: | type 1 | value | version 2, little-endian | CRC-64 of all before 8, little-endian |
//! ```
//! Writing uses the forms of Redis 8.10, or those of an older server where [`Forms`] says so;
//! reading takes those of every version since 2.6. Reading and writing are generic over where bytes
//! come from ([`Source`]) and where they go ([`Sink`]), so that a value bigger than any buffer
//! passes through a small one.
//!
//! # Invariants
//! - A payload is taken whole or refused whole: nothing is changed before its last byte was
//!   checked.
//! - Memory for what is read is bounded by the payload's length: counts in it are believed only as
//!   far as bytes follow, and a compressed string grows at most as far as its form can.
//! - What is read is built by the same calls as commands use, so the configured limits, not the
//!   sender's, choose how it is kept.

mod array;
mod collection;
mod cursor;
mod libraries;
mod lzf;
mod stream;
mod string;
mod ziplist;

use crc::{CRC_64_REDIS, Crc, Table};
use structure::hash::Seed;
use structure::record::ValueRef;

pub use libraries::{dump_libraries, load_libraries};

use crate::object::{Kind, Object, OwnedValue};
use crate::settings::Settings;
use lzf::Compressor;

pub use collection::write_frozen;
pub use cursor::{Cursor, Length, Source};
pub use string::{compress_marked, write_int, write_number, write_plain, write_string};

/// The newest version that we write and read.
pub const VERSION: u16 = 15;

/// The version of Valkey's own.
const VALKEY_VERSION: u16 = 80;
/// Bytes of version and checksum.
const FOOTER: usize = 10;

/// The checksum of payloads and files.
pub static CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The types of values, as their first byte says.
#[allow(missing_docs)] // Their names.
pub mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET_TEXT: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET: u8 = 5;
    pub const MODULE_EARLY: u8 = 6;
    pub const MODULE: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    pub const LIST_OF_ZIPLISTS: u8 = 14;
    pub const STREAM_1: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    pub const LIST_OF_LISTPACKS: u8 = 18;
    pub const STREAM_2: u8 = 19;
    pub const SET_LISTPACK: u8 = 20;
    pub const STREAM_3: u8 = 21;
    /// Valkey's hash with deadlines, which has the number of Redis's first one.
    pub const HASH_TIMED_VALKEY: u8 = 22;
    pub const HASH_TIMED_EARLY: u8 = 22;
    pub const HASH_LISTPACK_TIMED_EARLY: u8 = 23;
    pub const HASH_TIMED: u8 = 24;
    pub const HASH_LISTPACK_TIMED: u8 = 25;
    pub const STREAM_4: u8 = 26;
    pub const STREAM_5: u8 = 27;
    pub const ARRAY: u8 = 28;
    pub const HASH_NAMED_LISTPACK: u8 = 29;
    pub const HASH_TEMPLATE_LISTPACK: u8 = 30;
    pub const HASH_NAMED: u8 = 31;
    pub const HASH_TEMPLATE: u8 = 32;
}

/// Why a payload was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A version from the future, or a wrong checksum.
    Footer,
    /// The checksum is right and the content is not.
    Content,
}

/// The content is damaged, or more than can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// Whose numbers of types are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Redis's.
    #[default]
    Redis,
    /// Those of Valkey's own versions, from 80 on.
    Valkey,
}

/// The server that must understand what is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Redis 8.10.
    #[default]
    Redis8_10,
    /// Redis 7.0.
    Redis7_0,
    /// Valkey 9.1.
    Valkey9_1,
}

/// How values are written.
pub struct Forms {
    format: Format,
    compressor: Option<Compressor>,
    /// The last compressed string.
    packed: Vec<u8>,
    /// Where long strings begin that somebody else is to compress.
    marks: Option<Vec<usize>>,
}

impl Forms {
    /// Values for `format`, long strings compressed or not.
    pub fn new(format: Format, compress: bool) -> Self {
        Self {
            format,
            compressor: compress.then(Compressor::new),
            packed: Vec::new(),
            marks: None,
        }
    }

    /// Values for `format` of which long strings are left as they are, and their places noted:
    /// somebody else compresses them ([`compress_marked`]).
    pub fn marking(format: Format) -> Self {
        Self {
            marks: Some(Vec::new()),
            ..Self::new(format, false)
        }
    }

    /// Where in the buffer strings begin that are to be compressed, since the last call.
    pub fn take_marks(&mut self) -> Vec<usize> {
        self.marks.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The server that must understand what is written.
    pub fn format(&self) -> Format {
        self.format
    }

    fn compresses(&self) -> bool {
        self.compressor.is_some() || self.marks.is_some()
    }
}

/// Where serialized bytes go.
pub trait Sink {
    /// What is appended to.
    fn buf(&mut self) -> &mut Vec<u8>;

    /// Called between elements: what stands in the buffer may leave it.
    fn spill(&mut self) {}
}

impl Sink for Vec<u8> {
    fn buf(&mut self) -> &mut Vec<u8> {
        self
    }
}

/// Why a value has no form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritable {
    /// A part is bigger than its form can be.
    TooBig,
    /// An array, which the format does not know.
    Array,
    /// A hash of which fields have deadlines, which the format does not know.
    FieldDeadlines,
    /// A stream's group with entries that were released, which the format does not know.
    Released,
    /// A stream that remembers producers, which the format does not know.
    Producers,
}

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::TooBig => "a part of the value is too big for any form",
            Self::Array => "the format has no arrays",
            Self::FieldDeadlines => "the format has no deadlines of fields",
            Self::Released => "the format has no released entries of consumer groups",
            Self::Producers => "the format has no producers of streams",
        })
    }
}

/// What reading needs to know.
#[derive(Clone, Copy)]
pub struct Build<'a> {
    /// The configuration: how values are kept.
    pub settings: &'a Settings,
    /// The secret of the hash function.
    pub seed: &'a Seed,
    /// Whose types they are.
    pub dialect: Dialect,
}

/// A value that was read.
#[derive(Debug)]
pub enum Loaded<'a> {
    /// A string that is a canonical integer.
    Int(i64),
    /// A string that may be one.
    Bytes(&'a [u8]),
    /// Anything else.
    Object(Box<Object>),
}

/// Writes a type, and a key where one belongs between type and value.
fn head(out: &mut Vec<u8>, forms: &mut Forms, kind: u8, key: Option<&[u8]>) {
    out.push(kind);
    if let Some(key) = key {
        string::write_string(out, forms, key);
    }
}

/// Writes the type, the key if there is one, and the value. Where it fails, a part may have been
/// written.
///
/// # Errors
/// [`Unwritable`] where it has no such form.
pub fn write_value<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    value: ValueRef<'_, Object>,
) -> Result<(), Unwritable> {
    match value {
        ValueRef::Int(int) => {
            let buf = out.buf();
            head(buf, forms, kind::STRING, key);
            string::write_int(buf, int);
        }
        ValueRef::Bytes(bytes) => {
            let buf = out.buf();
            head(buf, forms, kind::STRING, key);
            string::write_string(buf, forms, bytes);
        }
        ValueRef::Object(object) => return write_object(out, forms, key, object),
    }
    Ok(())
}

fn write_object<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    key: Option<&[u8]>,
    object: &Object,
) -> Result<(), Unwritable> {
    match object {
        Object::Stream(stream) => stream::write(out, forms, key, stream),
        Object::Array(_) if forms.format != Format::Redis8_10 => Err(Unwritable::Array),
        Object::Array(array) => {
            array::write(out, forms, key, array);
            Ok(())
        }
        _ => collection::write(out, forms, key, object),
    }
}

/// The payload of a value; `None` for one whose parts are too big for their form.
pub fn dump(value: ValueRef<'_, Object>) -> Option<Vec<u8>> {
    dump_for(Format::Redis8_10, value).ok()
}

/// The payload of a value for whoever reads `format`.
///
/// # Errors
/// [`Unwritable`] where it has no form there.
pub fn dump_for(format: Format, value: ValueRef<'_, Object>) -> Result<Vec<u8>, Unwritable> {
    let version = match format {
        Format::Redis8_10 => VERSION,
        Format::Redis7_0 => 10,
        // What Valkey has in common with Redis 7.2: payloads do not say whose they are.
        Format::Valkey9_1 => 11,
    };
    let mut out = Vec::new();
    let mut forms = Forms::new(format, false);
    write_value(&mut out, &mut forms, None, value)?;
    out.extend_from_slice(&version.to_le_bytes());
    let sum = CHECKSUM.checksum(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    Ok(out)
}

/// The value of a payload. Where a log is played, which may be Valkey's, those of Valkey count,
/// too.
///
/// # Errors
/// [`Refused`] says which half was wrong.
pub fn load(
    payload: &[u8],
    settings: &Settings,
    seed: &Seed,
    is_logged: bool,
) -> Result<OwnedValue, Refused> {
    let end = payload.len().checked_sub(FOOTER).ok_or(Refused::Footer)?;
    let (content, footer) = payload.split_at(end);
    let build = Build {
        settings,
        seed,
        dialect: check_footer(payload, footer, is_logged)?,
    };
    value(content, build).map_err(|Damaged| Refused::Content)
}

/// Compares the version and the checksum that a payload ends with. A checksum of zero is none: in
/// the log of Redis 8.10 payloads have that.
fn check_footer(payload: &[u8], footer: &[u8], is_logged: bool) -> Result<Dialect, Refused> {
    let (version, sum) = footer.split_at(2);
    let dialect = match u16::from_le_bytes([version[0], version[1]]) {
        ..=VERSION => Dialect::Redis,
        VALKEY_VERSION if is_logged => Dialect::Valkey,
        _ => return Err(Refused::Footer),
    };
    let is_right = || {
        let summed = &payload[..payload.len() - sum.len()];
        *sum == [0; 8] || sum == CHECKSUM.checksum(summed).to_le_bytes()
    };
    match is_right() {
        true => Ok(dialect),
        false => Err(Refused::Footer),
    }
}

fn value(content: &[u8], build: Build<'_>) -> Result<OwnedValue, Damaged> {
    let mut from = Cursor::new(content, build.settings.string_bytes_max);
    let kind = from.byte()?;
    let value = match read_value(&mut from, kind, build)? {
        Loaded::Int(int) => OwnedValue::Int(int),
        Loaded::Bytes(bytes) => OwnedValue::string(bytes.to_vec()),
        Loaded::Object(object) if object.is_empty() && object.kind() != Kind::Stream => {
            return Err(Damaged);
        }
        Loaded::Object(object) => OwnedValue::Object(object),
    };
    if from.source().is_empty() {
        Ok(value)
    } else {
        Err(Damaged)
    }
}

/// Reads a value of a type. What is empty is given out as it is, though it must not be kept.
///
/// # Errors
/// [`Damaged`] where there is none.
pub fn read_value<'f, S: Source>(
    from: &'f mut Cursor<S>,
    kind: u8,
    build: Build<'_>,
) -> Result<Loaded<'f>, Damaged> {
    let object = match kind {
        kind::STRING => return read_string(from),
        kind::STREAM_1 | kind::STREAM_2 | kind::STREAM_3 | kind::STREAM_4 | kind::STREAM_5 => {
            Object::Stream(Box::new(stream::read(from, kind, build)?))
        }
        kind::ARRAY => Object::Array(Box::new(array::read(from, build)?)),
        _ => collection::read(from, kind, build)?,
    };
    Ok(Loaded::Object(Box::new(object)))
}

/// Reads a hash whose fields stand elsewhere in a file, under a number for which `fields` finds
/// them.
///
/// # Errors
/// [`Damaged`] where there is none.
pub fn read_templated<'t, S: Source>(
    from: &mut Cursor<S>,
    kind: u8,
    fields: impl Fn(u64) -> Option<&'t [Vec<u8>]>,
    build: Build<'_>,
) -> Result<Box<Object>, Damaged> {
    let hash = collection::read_templated_hash(from, kind, fields, build)?;
    Ok(Box::new(Object::Hash(hash)))
}

#[inline]
fn read_string<S: Source>(from: &mut Cursor<S>) -> Result<Loaded<'_>, Damaged> {
    Ok(match from.length()? {
        Length::Plain(len) => {
            let len = from.fitting(len)?;
            Loaded::Bytes(from.bytes(len)?)
        }
        Length::Special(form) => match from.special_int(form)? {
            Some(int) => Loaded::Int(int),
            None => Loaded::Bytes(from.special_string(form)?),
        },
    })
}

#[cfg(test)]
mod tests;
