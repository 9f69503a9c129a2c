//! Values as bytes, in the form that Redis's files and its DUMP have.
//!
//! ```text
//! payload: | type 1 | value | version 2, little-endian | CRC-64 of all before 8, little-endian |
//! ```
//! Writing uses the forms of Redis 8.10; reading takes those of every version since 2.6.
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
mod lzf;
mod stream;
mod string;
mod ziplist;

use crc::{CRC_64_REDIS, Crc, Table};
use structure::hash::Seed;
use structure::record::ValueRef;

use crate::object::{Object, OwnedValue};
use crate::settings::Settings;
use cursor::Cursor;

/// The newest version that we write and read.
const VERSION: u16 = 15;

/// Bytes of version and checksum.
const FOOTER: usize = 10;

static CHECKSUM: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_REDIS);

/// The types of values, as their first byte says.
mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    pub const ZSET_TEXT: u8 = 3;
    pub const HASH: u8 = 4;
    pub const ZSET: u8 = 5;
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
    pub const HASH_TIMED: u8 = 24;
    pub const HASH_LISTPACK_TIMED: u8 = 25;
    pub const STREAM_4: u8 = 26;
    pub const STREAM_5: u8 = 27;
    pub const ARRAY: u8 = 28;
    pub const HASH_NAMED_LISTPACK: u8 = 29;
    pub const HASH_NAMED: u8 = 31;
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
struct Damaged;

/// What reading needs to know.
#[derive(Clone, Copy)]
struct Build<'a> {
    settings: &'a Settings,
    seed: &'a Seed,
}

/// The payload of a value; `None` for one whose parts are too big for their form.
pub fn dump(value: ValueRef<'_, Object>) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match value {
        ValueRef::Int(int) => {
            out.push(kind::STRING);
            string::write_int(&mut out, int);
        }
        ValueRef::Bytes(bytes) => {
            out.push(kind::STRING);
            string::write(&mut out, bytes);
        }
        ValueRef::Object(Object::Stream(stream)) => stream::write(&mut out, stream)?,
        ValueRef::Object(Object::Array(array)) => array::write(&mut out, array),
        ValueRef::Object(object) => collection::write(&mut out, object)?,
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let sum = CHECKSUM.checksum(&out);
    out.extend_from_slice(&sum.to_le_bytes());
    Some(out)
}

/// The value of a payload.
///
/// # Errors
/// [`Refused`] says which half was wrong.
pub fn load(payload: &[u8], settings: &Settings, seed: &Seed) -> Result<OwnedValue, Refused> {
    let end = payload.len().checked_sub(FOOTER).ok_or(Refused::Footer)?;
    let (content, footer) = payload.split_at(end);
    let (version, sum) = footer.split_at(2);
    let summed = CHECKSUM.checksum(&payload[..end + 2]);
    if u16::from_le_bytes([version[0], version[1]]) > VERSION || sum != summed.to_le_bytes() {
        return Err(Refused::Footer);
    }
    let build = Build { settings, seed };
    value(content, build).map_err(|Damaged| Refused::Content)
}

fn value(content: &[u8], build: Build<'_>) -> Result<OwnedValue, Damaged> {
    let mut from = Cursor::new(content, build.settings.string_bytes_max);
    let kind = from.byte()?;
    let value = match kind {
        kind::STRING => OwnedValue::string(from.string()?.into_owned()),
        kind::STREAM_1 | kind::STREAM_2 | kind::STREAM_3 | kind::STREAM_4 | kind::STREAM_5 => {
            let stream = stream::read(&mut from, kind, build)?;
            OwnedValue::Object(Box::new(Object::Stream(Box::new(stream))))
        }
        kind::ARRAY => {
            let array = array::read(&mut from, build)?;
            OwnedValue::Object(Box::new(Object::Array(Box::new(array))))
        }
        _ => OwnedValue::Object(Box::new(collection::read(&mut from, kind, build)?)),
    };
    if from.is_at_end() {
        Ok(value)
    } else {
        Err(Damaged)
    }
}

#[cfg(test)]
mod tests;
