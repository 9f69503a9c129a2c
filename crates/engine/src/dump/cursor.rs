//! Reading a payload from front to back: lengths, strings, fixed numbers.

use std::borrow::Cow;

use super::{Damaged, lzf, string};

/// A place in a payload.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    string_bytes_max: u64,
}

/// A length, or what stands in its place.
pub(super) enum Length {
    Plain(u64),
    /// An integer or a compressed string follows, by this number.
    Special(u8),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], string_bytes_max: u64) -> Self {
        Self {
            rest: bytes,
            string_bytes_max,
        }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn bytes(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(Damaged)?;
        self.rest = rest;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(Damaged)?;
        self.rest = rest;
        Ok(*taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.fixed::<1>()?[0])
    }

    /// Eight bytes, little-endian: a time.
    pub(super) fn word(&mut self) -> Result<u64, Damaged> {
        Ok(u64::from_le_bytes(self.fixed()?))
    }

    /// Eight bytes, big-endian: half of a stream's id.
    pub(super) fn word_big(&mut self) -> Result<u64, Damaged> {
        Ok(u64::from_be_bytes(self.fixed()?))
    }

    /// Eight bytes: a score.
    pub(super) fn double(&mut self) -> Result<f64, Damaged> {
        Ok(f64::from_le_bytes(self.fixed()?))
    }

    /// A score as text: a length byte, of which three values mean a number that has no digits.
    pub(super) fn double_text(&mut self) -> Result<f64, Damaged> {
        match self.byte()? {
            253 => Ok(f64::NAN),
            254 => Ok(f64::INFINITY),
            255 => Ok(f64::NEG_INFINITY),
            len => crate::number::double(self.bytes(len.into())?).ok_or(Damaged),
        }
    }

    pub(super) fn length(&mut self) -> Result<Length, Damaged> {
        let first = self.byte()?;
        Ok(match (first >> 6, first) {
            (0, _) => Length::Plain(first.into()),
            (1, _) => Length::Plain(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            (2, 0x80) => Length::Plain(u32::from_be_bytes(self.fixed()?).into()),
            (2, 0x81) => Length::Plain(u64::from_be_bytes(self.fixed()?)),
            (2, _) => return Err(Damaged),
            _ => Length::Special(first & 0x3f),
        })
    }

    /// A number in the form of a length.
    pub(super) fn number(&mut self) -> Result<u64, Damaged> {
        match self.length()? {
            Length::Plain(number) => Ok(number),
            Length::Special(_) => Err(Damaged),
        }
    }

    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>, Damaged> {
        match self.length()? {
            Length::Plain(len) => Ok(self.bytes(self.fitting(len)?)?.into()),
            Length::Special(string::INT_8) => {
                Ok(decimal(i8::from_le_bytes(self.fixed()?).into()).into())
            }
            Length::Special(string::INT_16) => {
                Ok(decimal(i16::from_le_bytes(self.fixed()?).into()).into())
            }
            Length::Special(string::INT_32) => {
                Ok(decimal(i32::from_le_bytes(self.fixed()?).into()).into())
            }
            Length::Special(string::COMPRESSED) => {
                let packed = self.number()?;
                let len = self.number()?;
                let (packed, len) = (self.fitting(packed)?, self.fitting(len)?);
                Ok(lzf::decompress(self.bytes(packed)?, len)
                    .ok_or(Damaged)?
                    .into())
            }
            Length::Special(_) => Err(Damaged),
        }
    }

    fn fitting(&self, len: u64) -> Result<usize, Damaged> {
        if len > self.string_bytes_max {
            return Err(Damaged);
        }
        usize::try_from(len).map_err(|_| Damaged)
    }
}

fn decimal(int: i64) -> Vec<u8> {
    int.to_string().into_bytes()
}
