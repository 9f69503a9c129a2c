//! Stream ids in commands: read from words, written into replies.
//!
//! # Invariants
//! - What is read here names any of the 2^128 ids; whether it makes sense is the caller's question.
//! - Writing allocates nothing: the text is built in place, at most [`TEXT_MAX`] bytes.

use resp::Writer;
use structure::stream::{Entry, Fields, StreamId};

use crate::CommandError;

/// The error for a word that is no id.
pub(super) const INVALID: CommandError =
    CommandError::text("ERR Invalid stream ID specified as stream command argument");

/// Room for the longest id: two numbers of 20 digits and the dash.
const TEXT_MAX: usize = 41;

/// A number as the halves of ids are written: digits, with leading blanks and a plus sign allowed.
fn number(text: &[u8]) -> Option<u64> {
    let text = match text.first()? {
        b'0'..=b'9' => text,
        _ => {
            let text = text.trim_ascii_start();
            text.strip_prefix(b"+").unwrap_or(text)
        }
    };
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// An id: `ms-seq`, or `ms` alone with the given second half.
///
/// # Errors
/// [`INVALID`] for anything else.
pub(super) fn parse(text: &[u8], seq_missing: u64) -> Result<StreamId, CommandError> {
    let halves = match text.iter().position(|&byte| byte == b'-') {
        Some(dash) => number(&text[..dash]).zip(number(&text[dash + 1..])),
        None => number(text).zip(Some(seq_missing)),
    };
    match halves {
        Some((ms, seq)) => Ok(StreamId { ms, seq }),
        // A zero byte ends the word, as it ends a text of C.
        None => match text.iter().position(|&byte| byte == 0) {
            Some(end) => parse(&text[..end], seq_missing),
            None => Err(INVALID),
        },
    }
}

/// The millisecond of `ms-*`, if that is what the word is.
pub(super) fn parse_open(text: &[u8]) -> Option<u64> {
    number(text.strip_suffix(b"-*")?)
}

/// All ids of `words`.
///
/// # Errors
/// [`INVALID`] where one is none.
pub(super) fn parse_all<'a>(
    words: impl Iterator<Item = &'a [u8]>,
) -> Result<Vec<StreamId>, CommandError> {
    words.map(|word| parse(word, 0)).collect()
}

/// The lower end of a range: `-`, `+`, an id, or `(` and an id that is left out.
///
/// # Errors
/// Redis's texts for what is none of these.
pub(super) fn parse_start(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        [b'(', rest @ ..] => parse(rest, 0)?
            .next()
            .ok_or("ERR invalid start ID for the interval".into()),
        _ => parse(text, 0),
    }
}

/// The upper end of a range, likewise.
///
/// # Errors
/// As [`parse_start`].
pub(super) fn parse_end(text: &[u8]) -> Result<StreamId, CommandError> {
    match text {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        [b'(', rest @ ..] => parse(rest, u64::MAX)?
            .prev()
            .ok_or("ERR invalid end ID for the interval".into()),
        _ => parse(text, u64::MAX),
    }
}

/// The text of an id.
pub(super) struct IdText {
    bytes: [u8; TEXT_MAX],
    len: usize,
}

impl IdText {
    /// The text of `id`.
    #[inline]
    pub(super) fn new(id: StreamId) -> Self {
        let mut bytes = [0; TEXT_MAX];
        let mut digits = itoa::Buffer::new();
        let ms = digits.format(id.ms).as_bytes();
        bytes[..ms.len()].copy_from_slice(ms);
        let mut len = ms.len() + 1;
        bytes[len - 1] = b'-';
        if id.seq < 10 {
            #[allow(clippy::cast_possible_truncation)] // A digit.
            let digit = b'0' + id.seq as u8;
            bytes[len] = digit;
            len += 1;
        } else {
            let seq = digits.format(id.seq).as_bytes();
            bytes[len..len + seq.len()].copy_from_slice(seq);
            len += seq.len();
        }
        Self { bytes, len }
    }

    /// The bytes.
    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Writes an id.
#[inline]
pub(super) fn write_id(out: &mut Writer<'_>, id: StreamId) {
    out.bulk(IdText::new(id).as_bytes());
}

/// Writes the names and values of an entry as one array.
#[inline]
pub(super) fn write_fields(out: &mut Writer<'_>, fields: Fields<'_>) {
    out.array(fields.len() * 2);
    for (name, value) in fields {
        out.bulk(name);
        out.bulk(value);
    }
}

/// Writes an entry: its id and its fields.
#[inline]
pub(super) fn write_entry(out: &mut Writer<'_>, entry: Entry<'_>) {
    out.array(2);
    write_id(out, entry.id);
    write_fields(out, entry.fields);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        for (text, want) in [
            ("5", Some((5, 9))),
            ("5-7", Some((5, 7))),
            ("005-07", Some((5, 7))),
            (" +5", Some((5, 9))),
            (
                "18446744073709551615-18446744073709551615",
                Some((u64::MAX, u64::MAX)),
            ),
            ("18446744073709551616", None),
            ("5-", None),
            ("-5", None),
            ("", None),
            ("5-7-9", None),
            ("5-*", None),
            ("0x1", None),
        ] {
            let id = want.map(|(ms, seq)| StreamId { ms, seq });
            assert_eq!(parse(text.as_bytes(), 9).ok(), id, "{text:?}");
        }
        assert_eq!(parse_open(b"5-*"), Some(5));
        assert_eq!(parse_open(b"*-*"), None);
        assert!(parse_start(b"(18446744073709551615-18446744073709551615").is_err());
        assert!(parse_end(b"(0-0").is_err());
        assert!(parse_start(b"(-").is_err());
    }

    #[test]
    fn ids_are_written_in_full() {
        for id in [
            StreamId::MIN,
            StreamId::MAX,
            StreamId::new(1_700_000_000_000, 12),
        ] {
            assert_eq!(IdText::new(id).as_bytes(), id.to_string().as_bytes());
        }
    }
}
