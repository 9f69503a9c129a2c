//! BITFIELD: integers of any width inside a string.
//!
//! The operations are parsed as a whole, then carried out in order on one copy of the lookup: a
//! string that is only read never grows.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;

use super::{bit, offset, with_bytes};
use crate::commands::string::bytes_of;
use crate::handler::runs;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

pub(super) const BITFIELD: Command = Command {
    name: "bitfield",
    group: Group::Bitmap,
    since: "3.2.0",
    summary: "Reads, sets and adds to integers of any width inside a string.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::BITMAP,
    keys: &[KeySpec::at(1)
        .rw()
        .access()
        .update()
        .variable()
        .note("Depends on the operations it is given.")],
    special: Special::Bitfield,
    args: &[
        key("key"),
        one_of(
            "operation",
            &[
                block("get-block", &[string("encoding"), int("offset")]).token("GET"),
                block(
                    "write",
                    &[
                        one_of("overflow-block", &[flag("WRAP"), flag("SAT"), flag("FAIL")])
                            .token("OVERFLOW")
                            .optional(),
                        one_of(
                            "write-operation",
                            &[
                                block(
                                    "set-block",
                                    &[string("encoding"), int("offset"), int("value")],
                                )
                                .token("SET"),
                                block(
                                    "incrby-block",
                                    &[string("encoding"), int("offset"), int("increment")],
                                )
                                .token("INCRBY"),
                            ],
                        ),
                    ],
                ),
            ],
        )
        .optional()
        .multiple(),
    ],
    reply: &[Shape::Array],
    ..runs(bitfield)
};

fn bitfield(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let operations = parse(cx, args)?;
    let last_bit = |operation: &Operation| operation.offset + u64::from(operation.field.bits) - 1;
    let written = operations.iter().filter(|operation| operation.is_write());
    let Some(last) = written.map(last_bit).max() else {
        return read_all(cx, args.at(1), &operations, out);
    };
    let key = args.at(1);
    let len = usize::try_from(last / 8 + 1).unwrap_or(usize::MAX);
    out.array(operations.len());
    let ((wrote, changed), grew) = with_bytes(cx, key, len, |bytes| {
        let (mut wrote, mut changed) = (false, false);
        for operation in &operations {
            let effect = operation.run(bytes, out);
            wrote |= effect != Effect::None;
            changed |= effect == Effect::Changed;
        }
        (wrote, changed)
    })?;
    if changed || grew && wrote {
        cx.changed(key, Class::STRING, "setbit");
    } else if grew {
        // Nothing but zeros at its end, of which nobody hears.
        cx.changed_unwatched(key);
    }
    Ok(())
}

pub(super) const BITFIELD_RO: Command = Command {
    name: "bitfield_ro",
    group: Group::Bitmap,
    since: "6.0.0",
    summary: "Reads integers of any width inside a string.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::BITMAP,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("get-block", &[string("encoding"), int("offset")])
            .token("GET")
            .optional()
            .multiple_token(),
    ],
    reply: &[Shape::Array],
    ..runs(bitfield_ro)
};

fn bitfield_ro(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let operations = parse(cx, args)?;
    if operations.iter().any(Operation::is_write) {
        return Err("ERR BITFIELD_RO only supports the GET subcommand".into());
    }
    read_all(cx, args.at(1), &operations, out)
}

fn read_all(
    cx: &mut Context<'_>,
    key: &[u8],
    operations: &[Operation],
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut digits = [0; TEXT_MAX];
    let bytes = match cx.read(key) {
        None => &[],
        Some(record) => bytes_of(record.value(), &mut digits)?,
    };
    out.array(operations.len());
    for operation in operations {
        out.int(operation.field.read(bytes, operation.offset));
    }
    Ok(())
}

/// An integer's shape.
#[derive(Clone, Copy)]
struct Field {
    signed: bool,
    /// At most 64, or 63 without a sign.
    bits: u32,
}

/// What a result past the field's range does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

/// What an operation did to the bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    /// It read, or failed.
    None,
    /// It wrote what was there.
    Same,
    Changed,
}

#[derive(Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Add(i64),
}

struct Operation {
    action: Action,
    field: Field,
    offset: u64,
    overflow: Overflow,
}

fn parse(cx: &Context<'_>, args: Args<'_>) -> Result<Vec<Operation>, CommandError> {
    let mut operations = Vec::new();
    let mut overflow = Overflow::Wrap;
    let mut at = 2;
    while at < args.len() {
        let left = args.len() - at - 1;
        if args.is(at, "OVERFLOW") && left >= 1 {
            overflow = match () {
                () if args.is(at + 1, "WRAP") => Overflow::Wrap,
                () if args.is(at + 1, "SAT") => Overflow::Saturate,
                () if args.is(at + 1, "FAIL") => Overflow::Fail,
                () => return Err("ERR Invalid OVERFLOW type specified".into()),
            };
            at += 2;
            continue;
        }
        let words = match () {
            () if args.is(at, "GET") && left >= 2 => 3,
            () if args.is(at, "SET") && left >= 3 => 4,
            () if args.is(at, "INCRBY") && left >= 3 => 4,
            () => return Err(CommandError::Syntax),
        };
        let field = Field::parse(args.at(at + 1))?;
        let offset =
            offset(cx, args.at(at + 2), u64::from(field.bits).max(2)).and_then(|place| {
                match (field.bits, args.at(at + 2)) {
                    (1, [b'#', ..]) => super::offset(cx, &args.at(at + 2)[1..], 1),
                    _ => Ok(place),
                }
            })?;
        let action = match words {
            3 => Action::Get,
            _ => {
                let number = crate::number::int(args.at(at + 3))?;
                if args.is(at, "SET") {
                    Action::Set(number)
                } else {
                    Action::Add(number)
                }
            }
        };
        operations.push(Operation {
            action,
            field,
            offset,
            overflow,
        });
        at += words;
    }
    Ok(operations)
}

impl Field {
    fn parse(text: &[u8]) -> Result<Self, CommandError> {
        let field = text.split_first().and_then(|(kind, bits)| {
            let signed = match kind {
                b'i' => true,
                b'u' => false,
                _ => return None,
            };
            let bits = bits.split(|byte| *byte == 0).next().unwrap_or_default();
            let bits = structure::decimal::parse(bits)?;
            let bits = u32::try_from(bits).ok()?;
            let bits_max = if signed { 64 } else { 63 };
            (1..=bits_max)
                .contains(&bits)
                .then_some(Self { signed, bits })
        });
        field.ok_or(CommandError::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported \
             but i64 is.",
        ))
    }

    /// The range of its integers.
    fn range(self) -> (i128, i128) {
        if self.signed {
            let half = 1i128 << (self.bits - 1);
            (-half, half - 1)
        } else {
            (0, (1i128 << self.bits) - 1)
        }
    }

    /// The integer at `offset`; there are only zeros behind the end.
    fn read(self, bytes: &[u8], offset: u64) -> i64 {
        let mut value = 0u64;
        for index in 0..u64::from(self.bits) {
            value = value << 1 | u64::from(bit(bytes, offset + index));
        }
        if self.signed {
            let unused = 64 - self.bits;
            return (value << unused).cast_signed() >> unused;
        }
        value.cast_signed()
    }

    fn write(self, bytes: &mut [u8], offset: u64, value: i64) {
        for index in 0..u64::from(self.bits) {
            let place = offset + index;
            let shift = u64::from(self.bits) - 1 - index;
            let mask = 0x80u8 >> (place % 8);
            if let Some(byte) = usize::try_from(place / 8)
                .ok()
                .and_then(|at| bytes.get_mut(at))
            {
                match value >> shift & 1 {
                    0 => *byte &= !mask,
                    _ => *byte |= mask,
                }
            }
        }
    }

    /// `value` brought into the range, or `None` where it must not be.
    fn fit(self, value: i128, overflow: Overflow) -> Option<i64> {
        let (low, high) = self.range();
        if (low..=high).contains(&value) {
            return i64::try_from(value).ok();
        }
        match overflow {
            Overflow::Fail => None,
            Overflow::Saturate => i64::try_from(value.clamp(low, high)).ok(),
            Overflow::Wrap => {
                let span = high - low + 1;
                i64::try_from((value - low).rem_euclid(span) + low).ok()
            }
        }
    }
}

impl Operation {
    fn is_write(&self) -> bool {
        !matches!(self.action, Action::Get)
    }

    /// Carries it out and writes its reply.
    fn run(&self, bytes: &mut [u8], out: &mut Writer<'_>) -> Effect {
        let old = self.field.read(bytes, self.offset);
        let (value, answers_old) = match self.action {
            Action::Get => {
                out.int(old);
                return Effect::None;
            }
            // An unsigned field takes a negative number as the bits that it has.
            Action::Set(value) if !self.field.signed => (i128::from(value.cast_unsigned()), true),
            Action::Set(value) => {
                // Redis takes what is further below the range than 64 bits can say for too high.
                let (value, (_, high)) = (i128::from(value), self.field.range());
                let is_far_below = self.field.bits < 64 && high - value > i128::from(i64::MAX);
                let goes_up = is_far_below && self.overflow == Overflow::Saturate;
                (if goes_up { high } else { value }, true)
            }
            Action::Add(more) => (i128::from(old) + i128::from(more), false),
        };
        let Some(new) = self.field.fit(value, self.overflow) else {
            out.null();
            return Effect::None;
        };
        self.field.write(bytes, self.offset, new);
        out.int(if answers_old { old } else { new });
        match new == old {
            true => Effect::Same,
            false => Effect::Changed,
        }
    }
}
