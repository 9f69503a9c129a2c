//! Reading the small collections of Redis before version 7: ziplists, and the zipmaps before them.
//!
//! ```text
//! ziplist: | bytes 4 | last 4 | count 2 | entry | ... | ff |           (little-endian)
//! entry:   | bytes of the entry before, 1 or fe and 4 | form | content |
//! form:    00llllll | 01llllll l | 10______ llll          a string     (big-endian)
//!          c0 ii | d0 iiii | e0 iiiiiiii | f0 iii | fe i | f1 to fd    an integer
//! zipmap:  | count 1 | key, value, ... | ff |
//! key:     | length, 1 or fe and 4 | bytes |      value: | length | unused 1 | bytes | unused |
//! ```

use std::borrow::Cow;

use super::Damaged;

/// Bytes before the first entry.
const HEADER: usize = 10;

/// Takes `count` bytes from the front.
fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Damaged> {
    let (taken, behind) = rest.split_at_checked(count).ok_or(Damaged)?;
    *rest = behind;
    Ok(taken)
}

fn take_number(rest: &mut &[u8], count: usize) -> Result<u32, Damaged> {
    let mut bytes = [0; 4];
    bytes[..count].copy_from_slice(take(rest, count)?);
    Ok(u32::from_le_bytes(bytes))
}

/// The entries of a ziplist, all of them checked.
pub(super) fn ziplist(bytes: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, Damaged> {
    let mut rest = bytes;
    let total = take_number(&mut rest, 4)? as usize;
    let last = take_number(&mut rest, 4)? as usize;
    let count = take_number(&mut rest, 2)? as usize;
    let mut entries = Vec::new();
    let (mut at, mut before) = (HEADER, HEADER);
    while rest.first() != Some(&0xff) {
        let start = rest.len();
        let mut back = take_number(&mut rest, 1)? as usize;
        if back == 0xfe {
            back = take_number(&mut rest, 4)? as usize;
        }
        if back != at - before {
            return Err(Damaged);
        }
        entries.push(entry(&mut rest)?);
        (before, at) = (at, at + start - rest.len());
    }
    let counted = count == 0xffff || count == entries.len();
    if rest.len() != 1 || total != bytes.len() || last != before || !counted {
        return Err(Damaged);
    }
    Ok(entries)
}

fn entry<'a>(rest: &mut &'a [u8]) -> Result<Cow<'a, [u8]>, Damaged> {
    let form = take(rest, 1)?[0];
    let int = match form {
        0x00..=0x3f => return Ok(take(rest, form.into())?.into()),
        0x40..=0x7f => {
            let len = usize::from(form & 0x3f) << 8 | usize::from(take(rest, 1)?[0]);
            return Ok(take(rest, len)?.into());
        }
        0x80..=0xbf => {
            let len = take_number(rest, 4)?.swap_bytes();
            return Ok(take(rest, len as usize)?.into());
        }
        0xc0 => signed(take(rest, 2)?),
        0xd0 => signed(take(rest, 4)?),
        0xe0 => signed(take(rest, 8)?),
        0xf0 => signed(take(rest, 3)?),
        0xfe => signed(take(rest, 1)?),
        0xf1..=0xfd => i64::from(form & 0x0f) - 1,
        _ => return Err(Damaged),
    };
    Ok(int.to_string().into_bytes().into())
}

/// A little-endian integer of up to eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let mut all = [0; 8];
    all[8 - bytes.len()..].copy_from_slice(bytes);
    i64::from_le_bytes(all) >> (64 - 8 * bytes.len())
}

/// The keys and values of a zipmap, in turn.
pub(super) fn zipmap(bytes: &[u8]) -> Result<Vec<Cow<'_, [u8]>>, Damaged> {
    let mut rest = bytes;
    take(&mut rest, 1)?;
    let mut entries = Vec::new();
    while rest.first() != Some(&0xff) {
        let is_value = entries.len() % 2 == 1;
        let mut len = take_number(&mut rest, 1)? as usize;
        if len == 0xfe {
            len = take_number(&mut rest, 4)? as usize;
        }
        let unused = match is_value {
            true => take_number(&mut rest, 1)? as usize,
            false => 0,
        };
        entries.push(take(&mut rest, len)?.into());
        take(&mut rest, unused)?;
    }
    if rest.len() != 1 || entries.len() % 2 == 1 {
        return Err(Damaged);
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_all_forms_are_read() {
        let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 0, 6, 0];
        let parts: [&[u8]; 6] = [
            &[0, 1, b'a'],
            &[3, 0xfe, 0xff],
            &[3, 0xf1],
            &[2, 0xc0, 0x00, 0x80],
            &[4, 0xf0, 0xff, 0xff, 0x7f],
            &[5, 0x40, 2, b'x', b'y'],
        ];
        let last = bytes.len() + parts[..5].iter().map(|part| part.len()).sum::<usize>();
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes.push(0xff);
        let total = bytes.len();
        bytes[0] = u8::try_from(total).unwrap();
        bytes[4] = u8::try_from(last).unwrap();
        let want: [&[u8]; 6] = [b"a", b"-1", b"0", b"-32768", b"8388607", b"xy"];
        assert_eq!(ziplist(&bytes).unwrap(), want);
        for end in 0..total {
            assert_eq!(ziplist(&bytes[..end]), Err(Damaged), "cut at {end}");
        }
        bytes[8] = 5;
        assert_eq!(ziplist(&bytes), Err(Damaged), "the count is wrong");
    }

    #[test]
    fn zipmaps_are_read() {
        let bytes = [1, 1, b'k', 2, 1, b'v', b'w', 0, 0xff];
        assert_eq!(zipmap(&bytes).unwrap(), [&b"k"[..], b"vw"]);
        for end in 0..bytes.len() {
            assert_eq!(zipmap(&bytes[..end]), Err(Damaged), "cut at {end}");
        }
    }
}
