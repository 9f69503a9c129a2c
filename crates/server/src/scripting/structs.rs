//! `struct`: values to and from bytes as C lays them out, described by a format.
//!
//! `b` `h` `l` `T` `i`n: integers (upper case without sign), `f` `d`: floats, `x`: a padding byte,
//! `c`n: n bytes, `s`: up to a zero byte, `<` `>`: byte order, `!`n: alignment.

use mlua::{Lua, MultiValue, Table, Value};

use super::arguments::{Answer, failure, int, number, result, results, text, wrong};

/// The widest integer, in bytes.
const INT_BYTES_MAX: usize = 32;
/// `!` without a number.
const NATIVE_ALIGN: usize = 8;

/// What a format says.
struct Format<'f> {
    rest: &'f [u8],
    is_big: bool,
    align: usize,
    function: &'static str,
}

/// One item: its letter, how many bytes it takes, and how many stand before it.
struct Item {
    letter: u8,
    size: usize,
    padding: usize,
}

impl<'f> Format<'f> {
    fn new(format: &'f [u8], function: &'static str) -> Self {
        Self {
            rest: format,
            is_big: false,
            align: 1,
            function,
        }
    }

    fn digits(&mut self) -> Result<Option<usize>, String> {
        let mut number: Option<usize> = None;
        while let Some(digit) = self.rest.first().filter(|byte| byte.is_ascii_digit()) {
            let more = number.unwrap_or(0) * 10 + usize::from(digit - b'0');
            if more > i32::MAX as usize {
                return Err("integral size overflow".to_owned());
            }
            number = Some(more);
            self.rest = &self.rest[1..];
        }
        Ok(number)
    }

    /// The next item, of something that has `len` bytes so far.
    fn next(&mut self, len: usize) -> Result<Option<Item>, String> {
        loop {
            let Some((&letter, rest)) = self.rest.split_first() else {
                return Ok(None);
            };
            self.rest = rest;
            let size = match letter {
                b'b' | b'B' | b'x' => 1,
                b'h' | b'H' => 2,
                b'f' => 4,
                b'l' | b'L' | b'T' | b'd' => 8,
                b'c' => self.digits()?.unwrap_or(1),
                b's' => 0,
                b'i' | b'I' => {
                    let size = self.digits()?.unwrap_or(4);
                    if size > INT_BYTES_MAX {
                        return Err(format!(
                            "integral size {size} is larger than limit of {INT_BYTES_MAX}"
                        ));
                    }
                    size
                }
                b' ' => continue,
                b'<' | b'>' => {
                    self.is_big = letter == b'>';
                    continue;
                }
                b'!' => {
                    let align = self.digits()?.unwrap_or(NATIVE_ALIGN);
                    if !align.is_power_of_two() {
                        return Err(format!("alignment {align} is not a power of 2"));
                    }
                    self.align = align;
                    continue;
                }
                _ if self.function == "size" && letter.is_ascii_alphanumeric() => continue,
                _ => {
                    let why = format!("invalid format option '{}'", char::from(letter));
                    return Err(wrong(1, self.function, &why));
                }
            };
            let unit = size.min(self.align);
            let padding = if matches!(letter, b'c' | b's') || unit < 2 || !unit.is_power_of_two() {
                0
            } else {
                len.wrapping_neg() & (unit - 1)
            };
            return Ok(Some(Item {
                letter,
                size,
                padding,
            }));
        }
    }
}

/// A number as an unsigned one of 64 bits, as C converts it.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // As C does.
fn to_unsigned(value: f64) -> u64 {
    if value < 0.0 {
        super::number::to_int(value).cast_unsigned()
    } else if value >= 18_446_744_073_709_551_616.0 {
        0
    } else {
        value as u64
    }
}

fn push_int(value: u64, size: usize, is_big: bool, out: &mut Vec<u8>) {
    let mut bytes = [0; INT_BYTES_MAX];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    let bytes = &mut bytes[..size];
    if is_big {
        bytes.reverse();
    }
    out.extend_from_slice(bytes);
}

fn push_ordered(bytes: &mut [u8], is_big: bool, out: &mut Vec<u8>) {
    if is_big {
        bytes.reverse();
    }
    out.extend_from_slice(bytes);
}

fn pack(args: &MultiValue) -> Result<Vec<u8>, String> {
    const NAME: &str = "pack";
    let format = text(args, 1, NAME)?;
    let mut format = Format::new(&format, NAME);
    let (mut out, mut at) = (Vec::new(), 2);
    // What is missing counts as nil here.
    let missing = |error: String| error.replace("got no value", "got nil");
    while let Some(item) = format.next(out.len())? {
        out.resize(out.len() + item.padding, 0);
        match item.letter {
            b'x' => {
                out.push(0);
                continue;
            }
            b's' | b'c' => {
                let value = text(args, at, NAME).map_err(missing)?;
                let size = match (item.letter, item.size) {
                    (b's', _) | (_, 0) => value.len(),
                    (_, size) => size,
                };
                let Some(part) = value.get(..size) else {
                    return Err(wrong(at + 1, NAME, "string too short"));
                };
                out.extend_from_slice(part);
                if item.letter == b's' {
                    out.push(0);
                }
            }
            b'f' => {
                #[allow(clippy::cast_possible_truncation)] // It is to be a float.
                let value = number(args, at, NAME).map_err(missing)? as f32;
                push_ordered(&mut value.to_le_bytes(), format.is_big, &mut out);
            }
            b'd' => {
                let value = number(args, at, NAME).map_err(missing)?;
                push_ordered(&mut value.to_le_bytes(), format.is_big, &mut out);
            }
            _ => {
                let value = to_unsigned(number(args, at, NAME).map_err(missing)?);
                push_int(value, item.size, format.is_big, &mut out);
            }
        }
        at += 1;
    }
    Ok(out)
}

/// An integer out of its bytes.
#[allow(clippy::cast_precision_loss)] // Lua's numbers are doubles.
fn read_int(bytes: &[u8], is_big: bool, is_signed: bool) -> f64 {
    let shift = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
    let value = if is_big {
        bytes.iter().fold(0, shift)
    } else {
        bytes.iter().rev().fold(0, shift)
    };
    if !is_signed {
        return value as f64;
    }
    let bits = bytes.len() * 8;
    if (1..64).contains(&bits) && value >> (bits - 1) & 1 == 1 {
        (value | u64::MAX << (bits - 1)).cast_signed() as f64
    } else {
        value.cast_signed() as f64
    }
}

fn array<const N: usize>(bytes: &[u8], is_big: bool) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    if is_big {
        array.reverse();
    }
    array
}

fn unpack(lua: &Lua, args: &MultiValue) -> mlua::Result<Result<Vec<Value>, String>> {
    const NAME: &str = "unpack";
    let parsed = text(args, 1, NAME).and_then(|format| Ok((format, text(args, 2, NAME)?)));
    let (format, data) = match parsed {
        Ok(parsed) => parsed,
        Err(text) => return Ok(Err(text)),
    };
    let start = match args.get(2) {
        None | Some(Value::Nil) => 1,
        Some(_) => match int(args, 3, NAME) {
            Ok(0) => return Ok(Err(wrong(3, NAME, "offset must be 1 or greater"))),
            Ok(start) => start,
            Err(text) => return Ok(Err(text)),
        },
    };
    let mut at = usize::try_from(start.saturating_sub(1)).unwrap_or(usize::MAX / 2);
    let mut format = Format::new(&format, NAME);
    let mut values: Vec<Value> = Vec::new();
    loop {
        let item = match format.next(at) {
            Ok(Some(item)) => item,
            Ok(None) => break,
            Err(text) => return Ok(Err(text)),
        };
        at = at.saturating_add(item.padding);
        let mut size = item.size;
        if item.letter == b'c' && size == 0 {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Saturates.
            let previous = match values.pop() {
                Some(Value::Number(previous)) => previous as usize,
                Some(Value::Integer(previous)) => usize::try_from(previous).unwrap_or(usize::MAX),
                _ => return Ok(Err("format 'c0' needs a previous size".to_owned())),
            };
            size = previous;
        }
        let Some(bytes) = at.checked_add(size).and_then(|end| data.get(at..end)) else {
            return Ok(Err(wrong(2, NAME, "data string too short")));
        };
        at += size;
        match item.letter {
            b'x' => {}
            b'c' => values.push(Value::String(lua.create_string(bytes)?)),
            b's' => {
                let Some(len) = data[at..].iter().position(|&byte| byte == 0) else {
                    return Ok(Err("unfinished string in data".to_owned()));
                };
                values.push(Value::String(lua.create_string(&data[at..at + len])?));
                at += len + 1;
            }
            b'f' => {
                let value = f32::from_le_bytes(array(bytes, format.is_big));
                values.push(Value::Number(value.into()));
            }
            b'd' => {
                let value = f64::from_le_bytes(array(bytes, format.is_big));
                values.push(Value::Number(value));
            }
            letter => {
                let value = read_int(bytes, format.is_big, letter.is_ascii_lowercase());
                values.push(Value::Number(value));
            }
        }
    }
    values.push(Value::Integer(
        i64::try_from(at).unwrap_or(i64::MAX).saturating_add(1),
    ));
    Ok(Ok(values))
}

fn size(args: &MultiValue) -> Result<usize, String> {
    const NAME: &str = "size";
    let format = text(args, 1, NAME)?;
    let mut format = Format::new(&format, NAME);
    let mut len = 0usize;
    while let Some(item) = format.next(len)? {
        if item.letter == b's' || item.letter == b'c' && item.size == 0 {
            let option = if item.letter == b's' { "s" } else { "c0" };
            let why = format!("option '{option}' has no fixed size");
            return Err(wrong(1, NAME, &why));
        }
        len = len.saturating_add(item.padding).saturating_add(item.size);
    }
    Ok(len)
}

/// The library.
///
/// # Errors
/// Where memory is short.
pub fn functions(lua: &Lua) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    let function = |lua: &Lua, args: MultiValue| -> Answer {
        match pack(&args) {
            Ok(bytes) => result(Value::String(lua.create_string(bytes)?)),
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("pack", lua.create_function(function)?)?;
    let function = |lua: &Lua, args: MultiValue| -> Answer {
        match unpack(lua, &args)? {
            Ok(values) => results(values),
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("unpack", lua.create_function(function)?)?;
    let function = |lua: &Lua, args: MultiValue| -> Answer {
        match size(&args) {
            Ok(size) => result(Value::Integer(i64::try_from(size).unwrap_or(i64::MAX))),
            Err(text) => failure(lua, &text),
        }
    };
    table.raw_set("size", lua.create_function(function)?)?;
    Ok(table)
}
