//! Reading from front to back: lengths, strings, fixed numbers.

use structure::decimal;

use super::{Damaged, lzf, string};

/// Where serialized bytes come from.
pub trait Source {
    /// The next `count` bytes, taken.
    ///
    /// # Errors
    /// [`Damaged`] where fewer are left. Nothing is allocated for bytes that are not there.
    fn bytes(&mut self, count: usize) -> Result<&[u8], Damaged>;

    /// Appends the next `count` bytes to `out`.
    ///
    /// # Errors
    /// As [`Source::bytes`].
    fn append(&mut self, count: usize, out: &mut Vec<u8>) -> Result<(), Damaged> {
        out.extend_from_slice(self.bytes(count)?);
        Ok(())
    }
}

impl Source for &[u8] {
    fn bytes(&mut self, count: usize) -> Result<&[u8], Damaged> {
        let (taken, rest) = self.split_at_checked(count).ok_or(Damaged)?;
        *self = rest;
        Ok(taken)
    }
}

/// A place in serialized bytes.
pub struct Cursor<S> {
    source: S,
    string_bytes_max: u64,
    /// The last string, where it does not stand in the source as it is.
    scratch: Vec<u8>,
}

/// A length, or what stands in its place.
pub enum Length {
    /// A length.
    Plain(u64),
    /// An integer or a compressed string follows, by this number.
    Special(u8),
}

impl<S: Source> Cursor<S> {
    /// Reads `source`; strings longer than `string_bytes_max` are refused.
    pub fn new(source: S, string_bytes_max: u64) -> Self {
        Self {
            source,
            string_bytes_max,
            scratch: Vec::new(),
        }
    }

    /// What is read.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// What is read.
    pub fn source_mut(&mut self) -> &mut S {
        &mut self.source
    }

    /// What is read, given back.
    pub fn into_source(self) -> S {
        self.source
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// Where they are not there.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&[u8], Damaged> {
        self.source.bytes(count)
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        self.source.bytes(N)?.try_into().map_err(|_| Damaged)
    }

    /// One byte.
    ///
    /// # Errors
    /// At the end.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Damaged> {
        Ok(self.source.bytes(1)?[0])
    }

    /// Four bytes, little-endian.
    ///
    /// # Errors
    /// At the end.
    pub fn half_word(&mut self) -> Result<u32, Damaged> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    /// Eight bytes, little-endian: a time.
    ///
    /// # Errors
    /// At the end.
    pub fn word(&mut self) -> Result<u64, Damaged> {
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

    /// A length, or the number of what is none.
    ///
    /// # Errors
    /// At the end, and where it has no such form.
    #[inline]
    pub fn length(&mut self) -> Result<Length, Damaged> {
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
    ///
    /// # Errors
    /// As [`Cursor::length`], and where something else stands there.
    pub fn number(&mut self) -> Result<u64, Damaged> {
        match self.length()? {
            Length::Plain(number) => Ok(number),
            Length::Special(_) => Err(Damaged),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// Where there is none, or one that is longer than allowed.
    #[inline]
    pub fn string(&mut self) -> Result<&[u8], Damaged> {
        match self.length()? {
            Length::Plain(len) => {
                let len = self.fitting(len)?;
                self.bytes(len)
            }
            Length::Special(form) => self.special_string(form),
        }
    }

    /// The string of a special form.
    pub(super) fn special_string(&mut self, form: u8) -> Result<&[u8], Damaged> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let done = self.special(form, &mut scratch);
        self.scratch = scratch;
        done.map(|()| &*self.scratch)
    }

    /// Appends a string to `out`.
    ///
    /// # Errors
    /// As [`Cursor::string`].
    pub fn string_to(&mut self, out: &mut Vec<u8>) -> Result<(), Damaged> {
        match self.length()? {
            Length::Plain(len) => {
                let len = self.fitting(len)?;
                self.source.append(len, out)
            }
            Length::Special(form) => self.special(form, out),
        }
    }

    /// A string of its own.
    ///
    /// # Errors
    /// As [`Cursor::string`].
    pub fn string_owned(&mut self) -> Result<Vec<u8>, Damaged> {
        let mut out = Vec::new();
        self.string_to(&mut out)?;
        Ok(out)
    }

    /// The integer of a special form, where it is one.
    pub(super) fn special_int(&mut self, form: u8) -> Result<Option<i64>, Damaged> {
        Ok(match form {
            string::INT_8 => Some(i8::from_le_bytes(self.fixed()?).into()),
            string::INT_16 => Some(i16::from_le_bytes(self.fixed()?).into()),
            string::INT_32 => Some(i32::from_le_bytes(self.fixed()?).into()),
            _ => None,
        })
    }

    pub(super) fn special(&mut self, form: u8, out: &mut Vec<u8>) -> Result<(), Damaged> {
        if let Some(int) = self.special_int(form)? {
            out.extend_from_slice(decimal::format(int, &mut [0; decimal::TEXT_MAX]));
            return Ok(());
        }
        if form != string::COMPRESSED {
            return Err(Damaged);
        }
        let packed = self.number()?;
        let len = self.number()?;
        let (packed, len) = (self.fitting(packed)?, self.fitting(len)?);
        lzf::decompress(self.source.bytes(packed)?, len, out).ok_or(Damaged)
    }

    pub(super) fn fitting(&self, len: u64) -> Result<usize, Damaged> {
        if len > self.string_bytes_max {
            return Err(Damaged);
        }
        usize::try_from(len).map_err(|_| Damaged)
    }
}
