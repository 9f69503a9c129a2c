//! Numbers in strings: INCR and its family.
//!
//! Integers are kept as 64 bits and counted in place. Fractions are counted as
//! [`Extended`] numbers and stored as the text that is answered.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::{self, TEXT_MAX};
use structure::record::{Value, ValueRef};

use super::bytes_of;
use super::expiry::{self, Expiry};
use crate::extended::Extended;
use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::number::int as parse_int;
use crate::object::Object;
use crate::{Command, CommandError, Context};

pub(super) const INCR: Command = Command {
    name: "incr",
    group: Group::String,
    since: "1.0.0",
    summary: "Adds one to an integer.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(incr)
};

fn incr(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    add(cx, args.at(1), 1, out)
}

pub(super) const DECR: Command = Command {
    name: "decr",
    group: Group::String,
    since: "1.0.0",
    summary: "Subtracts one from an integer.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(decr)
};

fn decr(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    add(cx, args.at(1), -1, out)
}

pub(super) const INCRBY: Command = Command {
    name: "incrby",
    group: Group::String,
    since: "1.0.0",
    summary: "Adds a number to an integer.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), int("increment")],
    reply: &[Shape::Int],
    ..runs(incrby)
};

fn incrby(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    add(cx, args.at(1), parse_int(args.at(2))?, out)
}

pub(super) const DECRBY: Command = Command {
    name: "decrby",
    group: Group::String,
    since: "1.0.0",
    summary: "Subtracts a number from an integer.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), int("decrement")],
    reply: &[Shape::Int],
    ..runs(decrby)
};

fn decrby(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let more = parse_int(args.at(2))?
        .checked_neg()
        .ok_or(CommandError::text("ERR decrement would overflow"))?;
    add(cx, args.at(1), more, out)
}

/// The integer that a string is.
#[inline]
fn integer_of(value: ValueRef<'_, Object>) -> Result<i64, CommandError> {
    match value {
        ValueRef::Int(int) => Ok(int),
        ValueRef::Bytes(bytes) => decimal::parse(bytes).ok_or(CommandError::NotInteger),
        ValueRef::Object(_) => Err(CommandError::WrongType),
    }
}

#[inline]
fn add(
    cx: &mut Context<'_>,
    key: &[u8],
    more: i64,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let sum = if let Some(mut record) = cx.edit(key) {
        let old = integer_of(record.value())?;
        let sum = old.checked_add(more).ok_or(CommandError::Overflow)?;
        // A string that reads as an integer is short: nothing that takes time is left behind.
        drop(record.set_value(Value::Int(sum)));
        sum
    } else {
        cx.put(key, Value::Int(more), Deadline::Clear);
        more
    };
    cx.changed(key, Class::STRING, "incrby");
    out.int(sum);
    Ok(())
}

pub(super) const INCRBYFLOAT: Command = Command {
    name: "incrbyfloat",
    group: Group::String,
    since: "2.6.0",
    summary: "Adds a number to a floating-point value.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), double("increment")],
    reply: &[Shape::Bulk],
    ..runs(incrbyfloat)
};

fn incrbyfloat(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let key = args.at(1);
    let old = match cx.edit(key) {
        None => Extended::ZERO,
        Some(record) => fraction_of(record.value())?,
    };
    let more = Extended::parse(args.at(2)).ok_or(CommandError::NotFloat)?;
    let sum = old.plus(more);
    if sum.is_infinite() || old.is_infinite() || more.is_infinite() {
        return Err("ERR increment would produce NaN or Infinity".into());
    }
    let text = sum.format();
    replace(cx, key, Value::Bytes(text.as_bytes()));
    cx.rewrite(&[b"SET", key, text.as_bytes(), b"KEEPTTL"]);
    cx.changed(key, Class::STRING, "incrbyfloat");
    out.text(&text);
    Ok(())
}

/// The number that a string is.
fn fraction_of(value: ValueRef<'_, Object>) -> Result<Extended, CommandError> {
    let mut digits = [0; TEXT_MAX];
    Extended::parse(bytes_of(value, &mut digits)?).ok_or(CommandError::NotFloat)
}

/// Stores a number where one was, or as a new key. The deadline stays.
fn replace(cx: &mut Context<'_>, key: &[u8], value: Value<'_, Object>) {
    let displaced = if let Some(mut record) = cx.edit(key) {
        record.set_value(value)
    } else {
        cx.put(key, value, Deadline::Clear);
        return;
    };
    cx.bury(displaced);
}

pub(super) const INCREX: Command = Command {
    name: "increx",
    group: Group::String,
    since: "8.8.0",
    summary: "Adds to a number within bounds and sets its time to live.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[
        key("key"),
        one_of(
            "increment",
            &[
                double("float").token("BYFLOAT"),
                int("integer").token("BYINT"),
            ],
        )
        .optional(),
        flag("SATURATE")
            .summary("Stops at the bound instead of refusing.")
            .optional(),
        string("lowerbound")
            .token("LBOUND")
            .summary("The lowest result allowed.")
            .optional(),
        string("upperbound")
            .token("UBOUND")
            .summary("The highest result allowed.")
            .optional(),
        one_of(
            "expiration",
            &[
                int("seconds").token("EX"),
                int("milliseconds").token("PX"),
                unix_time("unix-time-seconds").token("EXAT"),
                unix_time("unix-time-milliseconds").token("PXAT"),
                flag("PERSIST"),
            ],
        )
        .optional(),
        flag("ENX")
            .summary("Sets the time to live only if the key has none.")
            .optional(),
    ],
    reply: &[Shape::Array],
    ..runs(increx)
};

fn increx(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args)?;
    match options.step {
        Step::Int(step) => increx_int(cx, args.at(1), step, &options, out),
        Step::Fraction(step) => increx_fraction(cx, args.at(1), step, &options, out),
    }
}

/// How much is added.
#[derive(Clone, Copy)]
enum Step {
    Int(i64),
    Fraction(Extended),
}

/// What stands behind INCREX's key.
struct Options<'a> {
    step: Step,
    low: Option<&'a [u8]>,
    high: Option<&'a [u8]>,
    saturate: bool,
    expiry: Option<Expiry<'a>>,
    persist: bool,
    if_none: bool,
}

impl<'a> Options<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let mut step = None;
        let mut options = Self {
            step: Step::Int(1),
            low: None,
            high: None,
            saturate: false,
            expiry: None,
            persist: false,
            if_none: false,
        };
        let mut at = 2;
        while at < args.len() {
            let operand = args.get(at + 1);
            let ends = options.expiry.is_some() || options.persist;
            if args.is(at, "SATURATE") && !options.saturate {
                options.saturate = true;
            } else if args.is(at, "ENX") && !options.if_none && !options.persist {
                options.if_none = true;
            } else if args.is(at, "PERSIST") && !ends && !options.if_none {
                options.persist = true;
            } else if let Some(operand) = operand {
                at += 1;
                if args.is(at - 1, "BYINT") && step.is_none() {
                    let int = parse_int(operand).map_err(|_| bad("Increment", true))?;
                    step = Some(Step::Int(int));
                } else if args.is(at - 1, "BYFLOAT") && step.is_none() {
                    let more = Extended::parse(operand).ok_or_else(|| bad("Increment", false))?;
                    if more.is_infinite() {
                        return Err("ERR BYFLOAT increment cannot be Infinity".into());
                    }
                    step = Some(Step::Fraction(more));
                } else if args.is(at - 1, "LBOUND") && options.low.is_none() {
                    options.low = Some(operand);
                } else if args.is(at - 1, "UBOUND") && options.high.is_none() {
                    options.high = Some(operand);
                } else if let Some(expiry) = Expiry::parse(args, at - 1)
                    && !ends
                {
                    options.expiry = Some(expiry);
                } else {
                    return Err(CommandError::Syntax);
                }
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        options.step = step.unwrap_or(options.step);
        Ok(options)
    }

    /// Both bounds, read by `parse`.
    fn bounds<T: Ord>(
        &self,
        (low, high): (T, T),
        parse: impl Fn(&[u8]) -> Option<T>,
        is_int: bool,
    ) -> Result<(T, T), CommandError> {
        let read = |text: Option<&[u8]>, name, default| match text {
            None => Ok(default),
            Some(text) => parse(text).ok_or_else(|| bad(name, is_int)),
        };
        let (low, high) = (
            read(self.low, "LBOUND", low)?,
            read(self.high, "UBOUND", high)?,
        );
        if low > high {
            return Err("ERR LBOUND can't be greater than UBOUND".into());
        }
        Ok((low, high))
    }

    /// The deadline that is asked for.
    fn deadline(&self, now_ms: u64) -> Result<Option<u64>, CommandError> {
        if self.if_none && self.expiry.is_none() {
            return Err("ERR ENX flag requires an expiration".into());
        }
        self.expiry
            .map(|expiry| expiry.at(now_ms, "increx"))
            .transpose()
    }

    /// Stores the number that came out, then does what was asked about the deadline.
    fn store(
        &self,
        cx: &mut Context<'_>,
        key: &[u8],
        value: Value<'_, Object>,
        event: &str,
        deadline: Option<u64>,
    ) {
        let timed = cx
            .peek(key)
            .is_some_and(|record| record.deadline().is_some());
        let deadline = deadline.filter(|_| !(self.if_none && timed));
        if deadline.is_some_and(|at| at <= cx.dead_ms) {
            if super::delete(cx, key) {
                cx.rewrite(&[b"DEL", key]);
            }
            return;
        }
        if let Value::Bytes(text) = &value {
            cx.rewrite(&[b"SET", key, text, b"KEEPTTL"]);
        } else if let Value::Int(int) = &value {
            let mut digits = [0; TEXT_MAX];
            cx.rewrite(&[b"SET", key, decimal::format(*int, &mut digits), b"KEEPTTL"]);
        }
        replace(cx, key, value);
        cx.changed(key, Class::STRING, event);
        if let Some(at) = deadline {
            expiry::set_deadline(cx, key, at);
        } else if self.persist {
            expiry::clear_deadline(cx, key);
        }
    }
}

fn bad(what: &str, is_int: bool) -> CommandError {
    CommandError::err(match is_int {
        true => format!("{what} is not an integer or out of range"),
        false => format!("{what} is not a valid float"),
    })
}

fn increx_int(
    cx: &mut Context<'_>,
    key: &[u8],
    step: i64,
    options: &Options<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let bounds = options.bounds((i64::MIN, i64::MAX), decimal::parse, true)?;
    let deadline = options.deadline(cx.now_ms)?;
    let old = match cx.edit(key) {
        None => 0,
        Some(record) => integer_of(record.value())?,
    };
    let exact = i128::from(old) + i128::from(step);
    let within = exact.clamp(i128::from(bounds.0), i128::from(bounds.1));
    let is_done = exact == within || options.saturate;
    #[allow(clippy::cast_possible_truncation)] // Between two 64-bit bounds.
    let new = if is_done { within as i64 } else { old };
    let applied = new
        .checked_sub(old)
        .ok_or(CommandError::text("ERR applied increment would overflow"))?;
    if is_done {
        options.store(cx, key, Value::Int(new), "incrby", deadline);
    }
    out.array(2);
    out.int(new);
    out.int(applied);
    Ok(())
}

fn increx_fraction(
    cx: &mut Context<'_>,
    key: &[u8],
    step: Extended,
    options: &Options<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let all = (Extended::MAX.negated(), Extended::MAX);
    let bounds = options.bounds(all, Extended::parse, false)?;
    let deadline = options.deadline(cx.now_ms)?;
    let old = match cx.edit(key) {
        None => Extended::ZERO,
        Some(record) => fraction_of(record.value())?,
    };
    if old.is_infinite() {
        return Err("ERR value cannot be Infinity".into());
    }
    let exact = old.plus(step);
    let within = exact
        .clamp(bounds.0, bounds.1)
        .clamp(Extended::MAX.negated(), Extended::MAX);
    let is_done = exact == within || options.saturate;
    let new = if is_done { within } else { old };
    let text = new.format();
    if is_done {
        let value = Value::Bytes(text.as_bytes());
        options.store(cx, key, value, "incrbyfloat", deadline);
    }
    out.array(2);
    for text in [text, new.plus(old.negated()).format()] {
        if out.is_resp3() {
            out.raw(format!(",{text}\r\n").as_bytes());
        } else {
            out.text(&text);
        }
    }
    Ok(())
}
