//! `cmsgpack`: MessagePack.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{Answer, Raised, failure, int, result, results, text};
use super::number;
use super::state::TEXT_BYTES_MAX;

/// Tables nested deeper than this are packed as nil.
const PACK_DEPTH_MAX: usize = 16;
/// Deeper nesting is not unpacked.
const UNPACK_DEPTH_MAX: usize = 400;

fn pack_int(value: i64, out: &mut Vec<u8>) {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Each range fits.
    match value {
        0..=0x7f => out.push(value as u8),
        0x80..=0xff => out.extend_from_slice(&[0xcc, value as u8]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend_from_slice(&(value as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend_from_slice(&(value as u32).to_be_bytes());
        }
        0x1_0000_0000.. => {
            out.push(0xcf);
            out.extend_from_slice(&value.to_be_bytes());
        }
        -0x20..=-1 => out.push(value as u8),
        -0x80..=-0x21 => out.extend_from_slice(&[0xd0, value as u8]),
        -0x8000..=-0x81 => {
            out.push(0xd1);
            out.extend_from_slice(&(value as i16).to_be_bytes());
        }
        -0x8000_0000..=-0x8001 => {
            out.push(0xd2);
            out.extend_from_slice(&(value as i32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend_from_slice(&value.to_be_bytes());
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::float_cmp
)]
fn pack_number(value: f64, out: &mut Vec<u8>) {
    let int = number::to_int(value);
    if int as f64 == value {
        return pack_int(int, out);
    }
    let short = value as f32;
    if f64::from(short) == value {
        out.push(0xca);
        out.extend_from_slice(&short.to_be_bytes());
    } else {
        out.push(0xcb);
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// The header of something with `len` parts: `short` holds up to `short_max` in its lowest bits.
fn pack_header(len: usize, (short, short_max): (u8, usize), long: &[u8], out: &mut Vec<u8>) {
    #[allow(clippy::cast_possible_truncation)] // Each range fits.
    match len {
        _ if len <= short_max => out.push(short | len as u8),
        0..=0xff if long.len() == 3 => out.extend_from_slice(&[long[0], len as u8]),
        0..=0xffff => {
            out.push(long[long.len() - 2]);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        _ => {
            out.push(long[long.len() - 1]);
            out.extend_from_slice(&u32::try_from(len).unwrap_or(u32::MAX).to_be_bytes());
        }
    }
}

fn pack(value: &Value, depth: usize, out: &mut Vec<u8>) -> mlua::Result<()> {
    if out.len() > TEXT_BYTES_MAX {
        return Err(mlua::Error::MemoryError("not enough memory".to_owned()));
    }
    match value {
        Value::String(text) => {
            let text = text.as_bytes();
            pack_header(text.len(), (0xa0, 31), &[0xd9, 0xda, 0xdb], out);
            out.extend_from_slice(&text);
        }
        Value::Integer(value) => pack_int(*value, out),
        Value::Number(value) => pack_number(*value, out),
        Value::Boolean(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Value::Table(table) if depth < PACK_DEPTH_MAX => return pack_table(table, depth, out),
        _ => out.push(0xc0),
    }
    Ok(())
}

fn pack_table(table: &Table, depth: usize, out: &mut Vec<u8>) -> mlua::Result<()> {
    // Lua's stack has no room for all pairs of a big table at once.
    let (mut count, mut greatest) = (0, Some(0));
    table.for_each(|key: Value, _: Value| {
        greatest = match (&key, greatest) {
            (Value::Integer(key @ 1..), Some(greatest)) => Some((*key).max(greatest)),
            _ => None,
        };
        count += 1;
        Ok(())
    })?;
    let is_list = greatest.and_then(|key| usize::try_from(key).ok()) == Some(count);
    if is_list {
        pack_header(count, (0x90, 15), &[0xdc, 0xdd], out);
        for index in 1..=count {
            pack(&table.raw_get(index)?, depth + 1, out)?;
        }
        return Ok(());
    }
    pack_header(count, (0x80, 15), &[0xde, 0xdf], out);
    for pair in table.pairs() {
        let (key, value): (Value, Value) = pair?;
        pack(&key, depth + 1, out)?;
        pack(&value, depth + 1, out)?;
    }
    Ok(())
}

/// Why bytes are not unpacked.
enum Bad {
    Missing,
    Format,
    Depth,
    NilKey,
    Lua(mlua::Error),
}

impl From<mlua::Error> for Bad {
    fn from(error: mlua::Error) -> Self {
        Self::Lua(error)
    }
}

impl Bad {
    fn text(self) -> mlua::Result<&'static str> {
        Ok(match self {
            Self::Missing => "Missing bytes in input.",
            Self::Format => "Bad data format in input.",
            Self::Depth => "stack overflow (in function mp_decode_to_lua_array)",
            Self::NilKey => "table index is nil",
            Self::Lua(error) => return Err(error),
        })
    }
}

struct Unpacker<'a> {
    lua: &'a Lua,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Unpacker<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Bad> {
        let end = self.at.checked_add(count).ok_or(Bad::Missing)?;
        let taken = self.bytes.get(self.at..end).ok_or(Bad::Missing)?;
        self.at = end;
        Ok(taken)
    }

    /// An unsigned number of `size` bytes.
    fn unsigned(&mut self, size: usize) -> Result<u64, Bad> {
        let bytes = self.take(size)?;
        Ok(bytes
            .iter()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn count(&mut self, size: usize) -> Result<usize, Bad> {
        usize::try_from(self.unsigned(size)?).map_err(|_| Bad::Missing)
    }

    fn string(&mut self, len: usize) -> Result<Value, Bad> {
        let bytes = self.take(len)?;
        Ok(Value::String(self.lua.create_string(bytes)?))
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // As Lua has it.
    fn value(&mut self, depth: usize) -> Result<Value, Bad> {
        let first = self.take(1)?[0];
        let int = |value: i64| Value::Number(value as f64);
        Ok(match first {
            0x00..=0x7f => int(first.into()),
            0xe0..=0xff => int(first.cast_signed().into()),
            0xc0 => Value::Nil,
            0xc2 | 0xc3 => Value::Boolean(first == 0xc3),
            0xca => {
                let bits = self.unsigned(4)? as u32;
                Value::Number(f32::from_bits(bits).into())
            }
            0xcb => Value::Number(f64::from_bits(self.unsigned(8)?)),
            0xcc => int(self.unsigned(1)?.cast_signed()),
            0xcd => int(self.unsigned(2)?.cast_signed()),
            0xce => int(self.unsigned(4)?.cast_signed()),
            0xcf | 0xd3 => int(self.unsigned(8)?.cast_signed()),
            0xd0 => int((self.unsigned(1)? as u8).cast_signed().into()),
            0xd1 => int((self.unsigned(2)? as u16).cast_signed().into()),
            0xd2 => int((self.unsigned(4)? as u32).cast_signed().into()),
            0xa0..=0xbf => self.string((first & 31).into())?,
            0xd9 => {
                let len = self.count(1)?;
                self.string(len)?
            }
            0xda => {
                let len = self.count(2)?;
                self.string(len)?
            }
            0xdb => {
                let len = self.count(4)?;
                self.string(len)?
            }
            0x90..=0x9f => self.list((first & 15).into(), depth)?,
            0xdc => {
                let count = self.count(2)?;
                self.list(count, depth)?
            }
            0xdd => {
                let count = self.count(4)?;
                self.list(count, depth)?
            }
            0x80..=0x8f => self.map((first & 15).into(), depth)?,
            0xde => {
                let count = self.count(2)?;
                self.map(count, depth)?
            }
            0xdf => {
                let count = self.count(4)?;
                self.map(count, depth)?
            }
            0xc1 | 0xc4..=0xc9 | 0xd4..=0xd8 => return Err(Bad::Format),
        })
    }

    fn list(&mut self, count: usize, depth: usize) -> Result<Value, Bad> {
        if depth >= UNPACK_DEPTH_MAX {
            return Err(Bad::Depth);
        }
        let table = self.lua.create_table()?;
        for index in 1..=count {
            let value = self.value(depth + 1)?;
            if !value.is_nil() {
                table.raw_set(index, value)?;
            }
        }
        Ok(Value::Table(table))
    }

    fn map(&mut self, count: usize, depth: usize) -> Result<Value, Bad> {
        if depth >= UNPACK_DEPTH_MAX {
            return Err(Bad::Depth);
        }
        let table = self.lua.create_table()?;
        for _ in 0..count {
            let key = self.value(depth + 1)?;
            let value = self.value(depth + 1)?;
            match key {
                Value::Nil => return Err(Bad::NilKey),
                Value::Number(number) if number.is_nan() => return Err(Bad::NilKey),
                key => table.raw_set(key, value)?,
            }
        }
        Ok(Value::Table(table))
    }
}

/// Unpacks up to `limit` values from `offset` on: all of them, without the place where reading
/// ended, where both are 0.
fn unpack(lua: &Lua, bytes: &[u8], limit: i64, offset: i64) -> Answer {
    let len = bytes.len();
    if offset < 0 || limit < 0 {
        let text = format!("Invalid request to unpack with offset of {offset} and limit of {len}.");
        return failure(lua, &text);
    }
    let Some(start) = usize::try_from(offset).ok().filter(|start| *start <= len) else {
        let text = format!("Start offset {offset} greater than input length {len}.");
        return failure(lua, &text);
    };
    let is_whole = limit == 0 && offset == 0;
    let limit = if is_whole { i64::MAX } else { limit };
    let mut from = Unpacker {
        lua,
        bytes,
        at: start,
    };
    let mut values = if is_whole {
        Vec::new()
    } else {
        vec![Value::Nil]
    };
    let mut count = 0;
    while from.at < len && count < limit {
        match from.value(0) {
            Ok(value) => values.push(value),
            // Lua's own words, which do not say where.
            Err(Bad::NilKey) => return Err(Raised::text(b"table index is nil".to_vec())),
            Err(bad) => return failure(lua, bad.text()?),
        }
        count += 1;
    }
    if let Some(first) = values.first_mut().filter(|_| !is_whole) {
        let end = i64::try_from(from.at).unwrap_or(i64::MAX);
        *first = Value::Integer(if from.at == len { -1 } else { end });
    }
    results(values)
}

/// The library.
///
/// # Errors
/// Where memory is short.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.raw_set("_NAME", "cmsgpack")?;
    table.raw_set("_VERSION", "lua-cmsgpack 0.4.0")?;
    table.raw_set("_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")?;
    table.raw_set("_DESCRIPTION", "MessagePack C implementation for Lua")?;
    let function = |lua: &Lua, args: MultiValue| -> Answer {
        if args.is_empty() {
            let text = "bad argument #0 to 'pack' (MessagePack pack needs input.)";
            return failure(lua, text);
        }
        let mut out = Vec::new();
        for arg in &args {
            pack(arg, 0, &mut out)?;
        }
        result(Value::String(lua.create_string(out)?))
    };
    table.raw_set("pack", lua.create_function(function)?)?;
    let function = |lua: &Lua, args: MultiValue| match text(&args, 1, "unpack") {
        Ok(bytes) => unpack(lua, &bytes, 0, 0),
        Err(text) => failure(lua, &text),
    };
    table.raw_set("unpack", lua.create_function(function)?)?;
    let offset = |args: &MultiValue, at: usize, name: &str| match args.get(at - 1) {
        None | Some(Value::Nil) => Ok(0),
        Some(_) => int(args, at, name),
    };
    let function = move |lua: &Lua, args: MultiValue| {
        const NAME: &str = "unpack_one";
        match text(&args, 1, NAME).and_then(|bytes| Ok((bytes, offset(&args, 2, NAME)?))) {
            Ok((bytes, offset)) => unpack(lua, &bytes, 1, offset),
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("unpack_one", lua.create_function(function)?)?;
    let function = move |lua: &Lua, args: MultiValue| {
        const NAME: &str = "unpack_limit";
        let parsed = text(&args, 1, NAME)
            .and_then(|bytes| Ok((bytes, int(&args, 2, NAME)?, offset(&args, 3, NAME)?)));
        match parsed {
            Ok((bytes, limit, offset)) => unpack(lua, &bytes, limit, offset),
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("unpack_limit", lua.create_function(function)?)?;
    Ok(table)
}
