//! Writing lengths and strings.
//!
//! ```text
//! length: 00llllll | 01llllll l | 10000000 llll | 10000001 llllllll    (big-endian)
//! string: length, bytes | 11000000 i | 11000001 ii | 11000010 iiii     (little-endian)
//!         | 11000011 length, length, compressed
//! ```

use super::{Cursor, Damaged, Forms, Length, Sink};

/// A string that is an integer of 8 bits.
pub(super) const INT_8: u8 = 0;
/// One of 16 bits.
pub(super) const INT_16: u8 = 1;
/// One of 32 bits.
pub(super) const INT_32: u8 = 2;
/// A compressed string.
pub(super) const COMPRESSED: u8 = 3;

const SPECIAL: u8 = 0xc0;

/// The longest text of an integer of 32 bits.
const INT_TEXT_MAX: usize = 11;
/// The longest string that is never compressed.
const UNCOMPRESSED_MAX: usize = 20;
/// What compression must gain to be worth it.
const GAIN_MIN: usize = 4;

/// Writes a length, or a number in its form.
pub fn write_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..0x40 => out.extend(&number.to_be_bytes()[7..]),
        0x40..0x4000 => out.extend(&(number | 0x4000).to_be_bytes()[6..]),
        0x4000..=0xffff_ffff => {
            out.push(0x80);
            out.extend(&number.to_be_bytes()[4..]);
        }
        _ => {
            out.push(0x81);
            out.extend(number.to_be_bytes());
        }
    }
}

/// Writes a string: short integers in fewer bytes, long strings compressed where that is asked for
/// and gains something.
pub fn write_string(out: &mut Vec<u8>, forms: &mut Forms, bytes: &[u8]) {
    if bytes.len() <= INT_TEXT_MAX
        && let Some(int) = structure::decimal::parse(bytes)
    {
        return write_int(out, int);
    }
    write_plain(out, forms, bytes);
}

/// Writes a string that is an integer.
pub fn write_int(out: &mut Vec<u8>, int: i64) {
    if let Ok(int) = i8::try_from(int) {
        out.push(SPECIAL | INT_8);
        out.extend(int.to_le_bytes());
    } else if let Ok(int) = i16::try_from(int) {
        out.push(SPECIAL | INT_16);
        out.extend(int.to_le_bytes());
    } else if let Ok(int) = i32::try_from(int) {
        out.push(SPECIAL | INT_32);
        out.extend(int.to_le_bytes());
    } else {
        let mut scratch = [0; structure::decimal::TEXT_MAX];
        let text = structure::decimal::format(int, &mut scratch);
        write_number(out, text.len() as u64);
        out.extend_from_slice(text);
    }
}

/// Writes a string that is no integer, or is to be kept as it is.
pub fn write_plain(out: &mut Vec<u8>, forms: &mut Forms, bytes: &[u8]) {
    if bytes.len() > UNCOMPRESSED_MAX
        && let Some(marks) = &mut forms.marks
    {
        marks.push(out.len());
    }
    if bytes.len() > UNCOMPRESSED_MAX
        && let Some(compressor) = &mut forms.compressor
    {
        let packed = &mut forms.packed;
        packed.clear();
        if compressor
            .compress(bytes, bytes.len() - GAIN_MIN, packed)
            .is_some()
        {
            out.push(SPECIAL | COMPRESSED);
            write_number(out, packed.len() as u64);
            write_number(out, bytes.len() as u64);
            out.extend_from_slice(packed);
            return;
        }
    }
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends `bytes` to `out` with the strings compressed that begin at `marks`, in ascending order.
///
/// # Errors
/// [`Damaged`] where there is none at a mark.
pub fn compress_marked<K: Sink>(
    out: &mut K,
    forms: &mut Forms,
    bytes: &[u8],
    marks: &[usize],
) -> Result<(), Damaged> {
    let mut at = 0;
    for &mark in marks {
        let before = bytes.get(at..mark).ok_or(Damaged)?;
        out.buf().extend_from_slice(before);
        let mut from = Cursor::new(&bytes[mark..], u64::MAX);
        let Length::Plain(len) = from.length()? else {
            return Err(Damaged);
        };
        let len = from.fitting(len)?;
        write_plain(out.buf(), forms, from.bytes(len)?);
        at = bytes.len() - from.source().len();
        out.spill();
    }
    out.buf().extend_from_slice(&bytes[at..]);
    Ok(())
}
