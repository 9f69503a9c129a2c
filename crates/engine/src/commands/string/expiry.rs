//! Deadlines as arguments: EX, PX, EXAT and PXAT.

use resp::Args;

use crate::notify::Class;
use crate::{CommandError, Context};

/// What a deadline's number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    ms: u64,
    from_now: bool,
}

/// A deadline that a command was given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expiry<'a> {
    /// The option that it came with.
    pub(super) unit: Unit,
    number: &'a [u8],
}

impl<'a> Expiry<'a> {
    /// The deadline whose option stands at word `at`, with its number behind it.
    pub(super) fn parse(args: Args<'a>, at: usize) -> Option<Self> {
        let (ms, from_now) = match () {
            () if args.is(at, "EX") => (1000, true),
            () if args.is(at, "PX") => (1, true),
            () if args.is(at, "EXAT") => (1000, false),
            () if args.is(at, "PXAT") => (1, false),
            () => return None,
        };
        let number = args.get(at + 1)?;
        Some(Self {
            unit: Unit { ms, from_now },
            number,
        })
    }

    /// In so many seconds.
    pub(super) fn seconds(number: &'a [u8]) -> Self {
        let (ms, from_now) = (1000, true);
        Self {
            unit: Unit { ms, from_now },
            number,
        }
    }

    /// In so many milliseconds.
    pub(super) fn milliseconds(number: &'a [u8]) -> Self {
        let (ms, from_now) = (1, true);
        Self {
            unit: Unit { ms, from_now },
            number,
        }
    }

    /// The time that is meant: Unix milliseconds. `name` is the command's.
    pub(super) fn at(self, now_ms: u64, name: &'static str) -> Result<u64, CommandError> {
        let number = crate::number::int(self.number)?;
        let base = if self.unit.from_now { now_ms } else { 0 };
        u64::try_from(number)
            .ok()
            .filter(|&number| number > 0)
            .and_then(|number| number.checked_mul(self.unit.ms)?.checked_add(base))
            .filter(|&at| i64::try_from(at).is_ok())
            .ok_or(CommandError::InvalidExpire(name))
    }
}

/// A number as text, for the log.
pub(super) fn digits(number: u64) -> String {
    number.to_string()
}

/// Gives a key that is there a deadline, with all that follows; one that has passed removes it.
pub(super) fn set_deadline(cx: &mut Context<'_>, key: &[u8], at: u64) {
    if at <= cx.dead_ms {
        if super::delete(cx, key) {
            cx.rewrite(&[b"DEL", key]);
        }
    } else if cx.set_deadline(key, Some(at)) {
        cx.rewrite(&[b"PEXPIREAT", key, digits(at).as_bytes()]);
        cx.changed(key, Class::GENERIC, "expire");
    }
}

/// Takes a key's deadline away, if it has one.
pub(super) fn clear_deadline(cx: &mut Context<'_>, key: &[u8]) {
    let has = cx
        .peek(key)
        .is_some_and(|record| record.deadline().is_some());
    if has && cx.set_deadline(key, None) {
        cx.rewrite(&[b"PERSIST", key]);
        cx.changed(key, Class::GENERIC, "persist");
    }
}
