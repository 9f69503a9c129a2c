//! Bits of strings: GETBIT, SETBIT, BITCOUNT, BITPOS and BITOP. BITFIELD has a file of its own.
//!
//! Bit 0 is the highest bit of the first byte. A string that is an integer counts as its digits.

mod field;
mod operation;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::record::Value;

use field::{BITFIELD, BITFIELD_RO};
use operation::BITOP;

use super::string::bytes_of;
use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    BITCOUNT,
    BITFIELD,
    BITFIELD_RO,
    BITOP,
    BITPOS,
    GETBIT,
    SETBIT,
];

/// A bit's place, as an argument; no string has bits from `proto-max-bulk-len` bytes on.
fn offset(cx: &Context<'_>, text: &[u8], unit_bits: u64) -> Result<u64, CommandError> {
    const BAD: CommandError =
        CommandError::text("ERR bit offset is not an integer or out of range");
    let (text, unit_bits) = match text.split_first() {
        Some((b'#', rest)) if unit_bits > 1 => (rest, unit_bits),
        _ => (text, 1),
    };
    let offset = crate::number::int(text).map_err(|_| BAD)?;
    u64::try_from(offset)
        .ok()
        .and_then(|offset| offset.checked_mul(unit_bits))
        .filter(|offset| offset / 8 < cx.settings.string_bytes_max)
        .ok_or(BAD)
}

/// The bit at `offset`; there are only zeros behind the end.
fn bit(bytes: &[u8], offset: u64) -> bool {
    usize::try_from(offset / 8)
        .ok()
        .and_then(|at| bytes.get(at))
        .is_some_and(|byte| byte & (0x80 >> (offset % 8)) != 0)
}

/// Calls `change` with a key's bytes, at least `len` of them: a new key is made, zeros are added.
/// Returns what `change` did, and whether there are more bytes than before.
fn with_bytes<T>(
    cx: &mut Context<'_>,
    key: &[u8],
    len: usize,
    change: impl FnOnce(&mut [u8]) -> T,
) -> Result<(T, bool), CommandError> {
    let old = if let Some(record) = cx.edit(key) {
        Some(bytes_of(record.value(), &mut [0; TEXT_MAX])?.len())
    } else {
        None
    };
    if old.is_none() {
        cx.put(key, Value::Bytes(b""), Deadline::Clear);
    }
    let mut record = cx.edit(key).ok_or(CommandError::NoSuchKey)?;
    let bytes = record.grow_bytes(len).ok_or(CommandError::WrongType)?;
    Ok((change(bytes), old.is_none_or(|old| len > old)))
}

const GETBIT: Command = Command {
    name: "getbit",
    group: Group::Bitmap,
    since: "2.2.0",
    summary: "Returns one bit of a string.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::BITMAP,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("offset")],
    reply: &[Shape::Int],
    ..runs(getbit)
};

fn getbit(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let offset = offset(cx, args.at(2), 1)?;
    let is_set = match cx.read(args.at(1)) {
        None => false,
        Some(record) => bit(bytes_of(record.value(), &mut [0; TEXT_MAX])?, offset),
    };
    out.int(i64::from(is_set));
    Ok(())
}

const SETBIT: Command = Command {
    name: "setbit",
    group: Group::Bitmap,
    since: "2.2.0",
    summary: "Sets or clears one bit of a string.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::BITMAP,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), int("offset"), int("value")],
    reply: &[Shape::Int],
    ..runs(setbit)
};

fn setbit(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let offset = offset(cx, args.at(2), 1)?;
    let on = match args.at(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err("ERR bit is not an integer or out of range".into()),
    };
    let at = usize::try_from(offset / 8).unwrap_or(usize::MAX);
    let mask = 0x80u8 >> (offset % 8);
    let (old, grew) = with_bytes(cx, key, at + 1, |bytes| {
        let old = bytes[at] & mask != 0;
        bytes[at] = if on {
            bytes[at] | mask
        } else {
            bytes[at] & !mask
        };
        old
    })?;
    if grew || old != on {
        cx.changed(key, Class::STRING, "setbit");
    }
    out.int(i64::from(old));
    Ok(())
}

/// A range of bits, both ends included and counted from the end where negative.
#[derive(Clone, Copy)]
struct Range {
    start: i64,
    end: i64,
    bits: bool,
}

impl Range {
    /// The unit at word `at`, the last one there may be.
    fn unit(args: Args<'_>, at: usize) -> Result<bool, CommandError> {
        match args.len() {
            len if len <= at => Ok(false),
            len if len == at + 1 && args.is(at, "BIT") => Ok(true),
            len if len == at + 1 && args.is(at, "BYTE") => Ok(false),
            _ => Err(CommandError::Syntax),
        }
    }

    /// Whether both ends are counted from the string's end, and in the wrong order. Only BITCOUNT
    /// minds it before the ends are made to fit the string.
    fn is_inverted(self) -> bool {
        self.start < 0 && self.end < 0 && self.start > self.end
    }

    /// The bits of `bytes` that are meant: the first, and the one behind the last.
    fn of(self, bytes: &[u8]) -> Option<(u64, u64)> {
        let unit = if self.bits { 1 } else { 8 };
        let total = bytes.len() as u64 * 8 / unit;
        let place = |index: i64| match index {
            ..0 => total.saturating_sub(index.unsigned_abs()),
            _ => index.unsigned_abs(),
        };
        let (start, end) = (
            place(self.start),
            place(self.end).saturating_add(1).min(total),
        );
        (start < end).then(|| (start * unit, end * unit))
    }
}

/// The byte at `at`, with `fill` in the place of bits outside of `from..to`.
fn masked(bytes: &[u8], at: usize, (from, to): (u64, u64), fill: u8) -> u8 {
    let first = at as u64 * 8;
    let mut mask = 0xffu8;
    if from > first {
        mask &= 0xff >> (from - first);
    }
    if to < first + 8 {
        mask &= !(0xff >> (to - first));
    }
    bytes[at] & mask | fill & !mask
}

const BITCOUNT: Command = Command {
    name: "bitcount",
    group: Group::Bitmap,
    since: "2.6.0",
    summary: "Counts the bits that are set in a string.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::BITMAP,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block(
            "range",
            &[
                int("start"),
                int("end"),
                one_of("unit", &[flag("BYTE"), flag("BIT")])
                    .since("7.0.0")
                    .optional(),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes `BYTE` and `BIT`.")],
    ..runs(bitcount)
};

fn bitcount(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let range = match args.len() {
        2 => Range {
            start: 0,
            end: -1,
            bits: false,
        },
        4 | 5 => {
            let (start, end) = (
                crate::number::int(args.at(2))?,
                crate::number::int(args.at(3))?,
            );
            let bits = Range::unit(args, 4)?;
            Range { start, end, bits }
        }
        _ => return Err(CommandError::Syntax),
    };
    let count = match cx.read(args.at(1)) {
        None => 0,
        Some(record) => {
            let mut digits = [0; TEXT_MAX];
            let bytes = bytes_of(record.value(), &mut digits)?;
            match range.is_inverted() {
                true => 0,
                false => count_ones(bytes, range),
            }
        }
    };
    out.int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

#[allow(clippy::cast_possible_truncation)] // Places inside a slice.
fn count_ones(bytes: &[u8], range: Range) -> u64 {
    let Some((from, to)) = range.of(bytes) else {
        return 0;
    };
    let (first, last) = ((from / 8) as usize, ((to - 1) / 8) as usize);
    let ones = |byte: u8| u64::from(byte.count_ones());
    let mut count = ones(masked(bytes, first, (from, to), 0));
    if last > first {
        count += ones(masked(bytes, last, (from, to), 0));
        let (words, rest) = bytes[first + 1..last].as_chunks::<8>();
        let of_words = words
            .iter()
            .map(|word| u64::from_ne_bytes(*word).count_ones());
        count += of_words.map(u64::from).sum::<u64>();
        count += rest.iter().copied().map(ones).sum::<u64>();
    }
    count
}

const BITPOS: Command = Command {
    name: "bitpos",
    group: Group::Bitmap,
    since: "2.8.7",
    summary: "Finds the first bit of a value in a string.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::BITMAP,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("bit"),
        block(
            "range",
            &[
                int("start"),
                block(
                    "end-unit-block",
                    &[
                        int("end"),
                        one_of("unit", &[flag("BYTE"), flag("BIT")])
                            .since("7.0.0")
                            .optional(),
                    ],
                )
                .optional(),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes `BYTE` and `BIT`.")],
    ..runs(bitpos)
};

fn bitpos(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let wanted = match crate::number::int(args.at(2))? {
        0 => false,
        1 => true,
        _ => return Err("ERR The bit argument must be 1 or 0.".into()),
    };
    if args.len() > 6 {
        return Err(CommandError::Syntax);
    }
    let number = |at| args.get(at).map(crate::number::int).transpose();
    let start = number(3)?.unwrap_or(0);
    // What the ends are counted in is read before the second of them.
    let bits = Range::unit(args, 5)?;
    let end = number(4)?;
    let mut digits = [0; TEXT_MAX];
    let bytes = match cx.read(args.at(1)) {
        None => {
            out.int(if wanted { -1 } else { 0 });
            return Ok(());
        }
        Some(record) => bytes_of(record.value(), &mut digits)?,
    };
    let range = Range {
        start,
        end: end.unwrap_or(-1),
        bits,
    };
    let found = range.of(bytes).and_then(|(from, to)| {
        // Behind the end of a string without a given end there are zeros.
        let behind = (!wanted && end.is_none()).then_some(to);
        first_bit(bytes, wanted, (from, to)).or(behind)
    });
    out.int(found.map_or(-1, |at| i64::try_from(at).unwrap_or(i64::MAX)));
    Ok(())
}

#[allow(clippy::cast_possible_truncation)] // Places inside a slice.
fn first_bit(bytes: &[u8], wanted: bool, (from, to): (u64, u64)) -> Option<u64> {
    // What is looked for is made a one; bits outside of the range are zeros then.
    let flip = if wanted { 0 } else { 0xff };
    let place = |at: usize| {
        let byte = masked(bytes, at, (from, to), flip) ^ flip;
        (byte != 0).then(|| at as u64 * 8 + u64::from(byte.leading_zeros()))
    };
    let (first, last) = ((from / 8) as usize, ((to - 1) / 8) as usize);
    if let Some(found) = place(first) {
        return Some(found);
    }
    let inner = bytes.get(first + 1..last).unwrap_or_default();
    let at = inner.iter().position(|&byte| byte != flip);
    match at {
        Some(at) => place(first + 1 + at),
        None => place(last),
    }
}
