//! Writing lengths and strings.
//!
//! ```text
//! length: 00llllll | 01llllll l | 10000000 llll | 10000001 llllllll    (big-endian)
//! string: length, bytes | 11000000 i | 11000001 ii | 11000010 iiii     (little-endian)
//!         | 11000011 length, length, compressed
//! ```

/// A string that is an integer of 8 bits.
pub(super) const INT_8: u8 = 0;
/// One of 16 bits.
pub(super) const INT_16: u8 = 1;
/// One of 32 bits.
pub(super) const INT_32: u8 = 2;
/// A compressed string: we read it and never write it.
pub(super) const COMPRESSED: u8 = 3;

const SPECIAL: u8 = 0xc0;

/// Writes a length, or a number in its form.
pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
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

/// Writes a string, short integers in fewer bytes.
pub(super) fn write(out: &mut Vec<u8>, bytes: &[u8]) {
    match structure::decimal::parse(bytes) {
        Some(int) => write_int(out, int),
        None => write_plain(out, bytes),
    }
}

/// Writes a string that is an integer.
pub(super) fn write_int(out: &mut Vec<u8>, int: i64) {
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
        write_plain(out, int.to_string().as_bytes());
    }
}

/// Writes a string as it is.
pub(super) fn write_plain(out: &mut Vec<u8>, bytes: &[u8]) {
    write_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}
