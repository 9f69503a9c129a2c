//! Sparse arrays.
//!
//! ```text
//! array:   count, 0 | (1, index appended to last), elements...
//! element: index, then 0, string | 1, integer of 8 | 2, double of 8 | 3, length 1, bytes
//! ```
//! Counts and indexes are lengths. The forms are those that Redis keeps elements in: an integer of
//! 62 bits, a double whose lowest two bits are clear, up to 7 bytes; anything else is a string. We
//! keep no such difference, and write each element in the form that Redis would have it in.

use structure::array::{Array, INDEX_MAX};
use structure::decimal;
use structure::listpack::Entry;

use super::cursor::{Cursor, Source};
use super::string::{write_number, write_string};
use super::{Build, Damaged, Forms, Sink, head, kind};

/// The forms of elements.
const STRING: u8 = 0;
const INT: u8 = 1;
const DOUBLE: u8 = 2;
const SHORT: u8 = 3;

/// The longest short string.
const SHORT_MAX: u8 = 7;
/// The integers that are written as such.
const INT_MAX: i64 = (1 << 61) - 1;
/// Bits of a double that Redis has no room for.
const DOUBLE_LOST: u64 = 3;

/// Writes the type and the array.
pub(super) fn write<K: Sink>(out: &mut K, forms: &mut Forms, key: Option<&[u8]>, array: &Array) {
    let buf = out.buf();
    head(buf, forms, kind::ARRAY, key);
    write_number(buf, array.count());
    write_number(buf, array.cursor().is_some().into());
    if let Some(cursor) = array.cursor() {
        write_number(buf, cursor);
    }
    let mut text = [0; decimal::TEXT_MAX];
    for (index, element) in array.iter() {
        let buf = out.buf();
        write_number(buf, index);
        let int = match element {
            Entry::Int(int) => Some(int),
            Entry::Bytes(bytes) => decimal::parse(bytes),
        };
        match int.filter(|int| (-INT_MAX - 1..=INT_MAX).contains(int)) {
            Some(int) => {
                buf.push(INT);
                buf.extend(int.to_le_bytes());
            }
            None => write_bytes(buf, forms, element.bytes(&mut text)),
        }
        out.spill();
    }
}

fn write_bytes(out: &mut Vec<u8>, forms: &mut Forms, bytes: &[u8]) {
    if let Some(bits) = double_of(bytes) {
        out.push(DOUBLE);
        out.extend(bits.to_le_bytes());
        return;
    }
    match u8::try_from(bytes.len()) {
        Ok(len) if len <= SHORT_MAX => {
            out.push(SHORT);
            out.push(len);
            out.extend_from_slice(bytes);
        }
        _ => {
            out.push(STRING);
            write_string(out, forms, bytes);
        }
    }
}

/// The bits of a double, where `text` is how it is spelt and Redis has room for it.
fn double_of(text: &[u8]) -> Option<u64> {
    // Cheap questions first: most texts are none.
    if !text.contains(&b'.') || text.len() > 32 {
        return None;
    }
    let number = crate::number::double(text).filter(|number| number.is_finite())?;
    let bits = number.to_bits();
    let mut spelt = Vec::new();
    spell(number, &mut spelt);
    (bits & DOUBLE_LOST == 0 && spelt == text).then_some(bits)
}

/// A double as Redis spells one that stands in an array: with a point, even if it is whole.
fn spell(number: f64, out: &mut Vec<u8>) {
    resp::format_double(number, out);
    if out
        .iter()
        .all(|&byte| byte == b'-' || byte.is_ascii_digit())
    {
        out.extend_from_slice(b".0");
    }
}

/// Reads an array behind its type.
pub(super) fn read<S: Source>(from: &mut Cursor<S>, build: Build<'_>) -> Result<Array, Damaged> {
    let mut array = Array::new(build.settings.array_slice_size);
    let count = from.number()?;
    let cursor = match from.number()? {
        0 => None,
        1 => Some(index(from)?),
        _ => return Err(Damaged),
    };
    let mut text = Vec::new();
    for _ in 0..count {
        let at = index(from)?;
        match from.byte()? {
            STRING => {
                array.set(at, from.string()?);
            }
            INT => {
                let int = from.word()?.cast_signed();
                array.set(at, decimal::format(int, &mut [0; decimal::TEXT_MAX]));
            }
            DOUBLE => {
                text.clear();
                let kept = from.word()? & !DOUBLE_LOST;
                spell(f64::from_bits(kept), &mut text);
                array.set(at, &text);
            }
            SHORT => {
                let len = from.byte()?;
                if len > SHORT_MAX {
                    return Err(Damaged);
                }
                array.set(at, from.bytes(len.into())?);
            }
            _ => return Err(Damaged),
        }
    }
    array.set_cursor(cursor);
    Ok(array)
}

fn index<S: Source>(from: &mut Cursor<S>) -> Result<u64, Damaged> {
    from.number().and_then(|index| match index {
        0..=INDEX_MAX => Ok(index),
        _ => Err(Damaged),
    })
}
