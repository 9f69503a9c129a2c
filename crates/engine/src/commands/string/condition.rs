//! Conditions on what a key holds: NX, XX, and comparing a string with a value or its digest.
//!
//! A digest is the 64-bit XXH3 of a string's bytes, as 16 hexadecimal digits, so that a client can
//! compare a long value without sending it.

use resp::Args;
use structure::decimal::TEXT_MAX;
use structure::record::ValueRef;

use super::bytes_of;
use crate::CommandError;
use crate::object::Object;

/// What must hold before a command does anything.
#[derive(Clone, Copy, Debug)]
pub(super) enum Condition<'a> {
    /// NX: there is no such key.
    Missing,
    /// XX: there is.
    There,
    /// IFEQ, or IFNE where false: the string is this one. A key that is not there is another.
    Value(&'a [u8], bool),
    /// IFDEQ, or IFDNE where false: the same with the string's digest.
    Digest(&'a [u8], bool),
}

impl<'a> Condition<'a> {
    /// A condition on a string at word `at`, and how many words it takes.
    pub(super) fn parse(args: Args<'a>, at: usize) -> Option<(Self, usize)> {
        let operand = args.get(at + 1)?;
        let condition = match () {
            () if args.is(at, "IFEQ") => Self::Value(operand, true),
            () if args.is(at, "IFNE") => Self::Value(operand, false),
            () if args.is(at, "IFDEQ") => Self::Digest(operand, true),
            () if args.is(at, "IFDNE") => Self::Digest(operand, false),
            () => return None,
        };
        Some((condition, 2))
    }

    /// As [`Condition::parse`], with NX and XX too.
    pub(super) fn parse_any(args: Args<'a>, at: usize) -> Option<(Self, usize)> {
        if args.is(at, "NX") {
            Some((Self::Missing, 1))
        } else if args.is(at, "XX") {
            Some((Self::There, 1))
        } else {
            Self::parse(args, at)
        }
    }

    /// Whether the two are the same option, which may stand twice.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(_, a), Self::Value(_, b)) | (Self::Digest(_, a), Self::Digest(_, b)) => {
                a == b
            }
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }

    /// Whether it holds for what a key has, `None` where there is no such key.
    pub(super) fn holds(self, value: Option<ValueRef<'_, Object>>) -> Result<bool, CommandError> {
        let Some(value) = value else {
            return Ok(matches!(
                self,
                Self::Missing | Self::Value(_, false) | Self::Digest(_, false)
            ));
        };
        let mut digits = [0; TEXT_MAX];
        match self {
            Self::Missing => Ok(false),
            Self::There => Ok(true),
            Self::Value(other, wanted) => Ok((bytes_of(value, &mut digits)? == other) == wanted),
            Self::Digest(other, wanted) => {
                let bytes = bytes_of(value, &mut digits)?;
                if other.len() != 16 {
                    return Err("ERR must be exactly 16 hexadecimal characters".into());
                }
                let is_same = digest(bytes).as_bytes().eq_ignore_ascii_case(other);
                Ok(is_same == wanted)
            }
        }
    }
}

/// The digest of a string.
pub(super) fn digest(bytes: &[u8]) -> String {
    format!("{:016x}", xxhash_rust::xxh3::xxh3_64(bytes))
}
