//! Strings: reading and storing whole values.
//!
//! A string that is the canonical text of a 64-bit integer is stored as one. What works on several
//! keys, on parts, on numbers and on deadlines has files of its own in this folder.
//!
//! GET and SET without options touch the key's record once and allocate nothing.

mod condition;
mod counter;
mod expiry;
mod lcs;
mod part;
mod several;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};
use structure::decimal::{self, TEXT_MAX};
use structure::record::{Value, ValueRef};

use condition::Condition;
use counter::{DECR, DECRBY, INCR, INCRBY, INCRBYFLOAT, INCREX};
use expiry::Expiry;
use lcs::LCS;
use part::{APPEND, GETRANGE, SETRANGE, STRLEN, SUBSTR};
use several::{MGET, MSET, MSETEX, MSETNX};

use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::object::Object;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    APPEND,
    DECR,
    DECRBY,
    DELEX,
    DELIFEQ,
    DIGEST,
    GET,
    GETDEL,
    GETEX,
    GETRANGE,
    GETSET,
    INCR,
    INCRBY,
    INCRBYFLOAT,
    INCREX,
    LCS,
    MGET,
    MSET,
    MSETEX,
    MSETNX,
    PSETEX,
    SET,
    SETEX,
    SETNX,
    SETRANGE,
    STRLEN,
    SUBSTR,
];

/// The value that a text is stored as.
#[inline]
fn value_of(text: &[u8]) -> Value<'_, Object> {
    match decimal::parse(text) {
        Some(int) => Value::Int(int),
        None => Value::Bytes(text),
    }
}

/// A string's bytes; those of an integer are written to `digits`.
#[inline]
pub(super) fn bytes_of<'a>(
    value: ValueRef<'a, Object>,
    digits: &'a mut [u8; TEXT_MAX],
) -> Result<&'a [u8], CommandError> {
    match value {
        ValueRef::Bytes(bytes) => Ok(bytes),
        ValueRef::Int(int) => Ok(decimal::format(int, digits)),
        ValueRef::Object(_) => Err(CommandError::WrongType),
    }
}

/// Writes a key's string, or a null; whether the key is there.
#[inline]
fn write_string(
    cx: &mut Context<'_>,
    key: &[u8],
    out: &mut Writer<'_>,
) -> Result<bool, CommandError> {
    match cx.read(key).map(|record| record.value()) {
        None => {
            out.null();
            return Ok(false);
        }
        Some(ValueRef::Bytes(bytes)) => out.bulk(bytes),
        Some(ValueRef::Int(int)) => out.bulk_int(int),
        Some(ValueRef::Object(_)) => return Err(CommandError::WrongType),
    }
    Ok(true)
}

/// Removes a key, if it is there, and says so.
fn delete(cx: &mut Context<'_>, key: &[u8]) -> bool {
    let removed = cx.remove(key);
    if removed {
        cx.changed(key, Class::GENERIC, "del");
    }
    removed
}

const GET: Command = Command {
    name: "get",
    group: Group::String,
    since: "1.0.0",
    summary: "Returns a string.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(get)
};

fn get(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    write_string(cx, args.at(1), out).map(drop)
}

const SET: Command = Command {
    name: "set",
    group: Group::String,
    since: "1.0.0",
    summary: "Stores a string, whatever the key held before.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1)
        .rw()
        .access()
        .update()
        .variable()
        .note("The old value is read only with `GET`.")],
    special: Special::Set,
    args: &[
        key("key"),
        string("value"),
        one_of(
            "condition",
            &[
                flag("NX"),
                flag("XX"),
                string("ifeq-value").token("IFEQ").since("8.4.0"),
                string("ifne-value").token("IFNE").since("8.4.0"),
                string("ifdeq-digest").token("IFDEQ").since("8.4.0"),
                string("ifdne-digest").token("IFDNE").since("8.4.0"),
            ],
        )
        .since("2.6.12")
        .optional(),
        flag("GET").since("6.2.0").optional(),
        one_of(
            "expiration",
            &[
                int("seconds").token("EX").since("2.6.12"),
                int("milliseconds").token("PX").since("2.6.12"),
                unix_time("unix-time-seconds").token("EXAT").since("6.2.0"),
                unix_time("unix-time-milliseconds")
                    .token("PXAT")
                    .since("6.2.0"),
                flag("KEEPTTL").since("6.0.0"),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Ok, Shape::Null, Shape::Bulk],
    history: &[
        ("2.6.12", "Takes `EX`, `PX`, `NX` and `XX`."),
        ("6.0.0", "Takes `KEEPTTL`."),
        ("6.2.0", "Takes `GET`, `EXAT` and `PXAT`."),
        ("7.0.0", "Takes `NX` and `GET` together."),
        ("8.4.0", "Takes `IFEQ`, `IFNE`, `IFDEQ` and `IFDNE`."),
    ],
    ..runs(set)
};

fn set(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len() > 3 {
        return set_with_options(cx, args, out);
    }
    let key = args.at(1);
    cx.put(key, value_of(args.at(2)), Deadline::Clear);
    cx.changed(key, Class::STRING, "set");
    out.ok();
    Ok(())
}

/// What stands behind SET's value.
#[derive(Default)]
struct SetOptions<'a> {
    condition: Option<Condition<'a>>,
    expiry: Option<Expiry<'a>>,
    keep_deadline: bool,
    get: bool,
}

impl<'a> SetOptions<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = 3;
        while at < args.len() {
            let taken = if args.is(at, "GET") {
                options.get = true;
                1
            } else if args.is(at, "KEEPTTL") && options.expiry.is_none() {
                options.keep_deadline = true;
                1
            } else if let Some(expiry) = Expiry::parse(args, at)
                && !options.keep_deadline
                && options.expiry.is_none_or(|other| other.unit == expiry.unit)
            {
                options.expiry = Some(expiry);
                2
            } else if let Some((condition, taken)) = Condition::parse_any(args, at)
                && options
                    .condition
                    .is_none_or(|other| other.is_like(&condition))
            {
                options.condition = Some(condition);
                taken
            } else {
                return Err(CommandError::Syntax);
            };
            at += taken;
        }
        Ok(options)
    }
}

#[cold]
fn set_with_options(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, text) = (args.at(1), args.at(2));
    let options = SetOptions::parse(args)?;
    let deadline = options
        .expiry
        .map(|expiry| expiry.at(cx.now_ms, "set"))
        .transpose()?;
    if options.get {
        write_string(cx, key, out)?;
    }
    if let Some(condition) = options.condition
        && !condition.holds(cx.peek(key).map(|record| record.value()))?
    {
        if !options.get {
            out.null();
        }
        return Ok(());
    }
    match deadline {
        Some(at) => put_until(cx, key, text, at),
        None => {
            let keep = [Deadline::Clear, Deadline::Keep][usize::from(options.keep_deadline)];
            cx.put(key, value_of(text), keep);
            cx.changed(key, Class::STRING, "set");
        }
    }
    if !options.get {
        out.ok();
    }
    Ok(())
}

/// Stores a string that is to die at a time. If that has passed, the key goes at once.
fn put_until(cx: &mut Context<'_>, key: &[u8], text: &[u8], at: u64) {
    if at <= cx.dead_ms {
        if delete(cx, key) {
            cx.rewrite(&[b"DEL", key]);
        }
        return;
    }
    cx.put(key, value_of(text), Deadline::At(at));
    cx.rewrite(&[b"SET", key, text, b"PXAT", expiry::digits(at).as_bytes()]);
    cx.changed(key, Class::STRING, "set");
    cx.notify(Class::GENERIC, "expire", key);
}

const SETEX: Command = Command {
    name: "setex",
    group: Group::String,
    since: "2.0.0",
    summary: "Stores a string with a time to live in seconds.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ow().update()],
    args: &[key("key"), int("seconds"), string("value")],
    reply: &[Shape::Ok],
    deprecated: Some(("2.6.12", "`SET` with the `EX` argument")),
    ..runs(setex)
};

fn setex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    set_for(cx, args, Expiry::seconds(args.at(2)), "setex", out)
}

const PSETEX: Command = Command {
    name: "psetex",
    group: Group::String,
    since: "2.6.0",
    summary: "Stores a string with a time to live in milliseconds.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ow().update()],
    args: &[key("key"), int("milliseconds"), string("value")],
    reply: &[Shape::Ok],
    deprecated: Some(("2.6.12", "`SET` with the `PX` argument")),
    ..runs(psetex)
};

fn psetex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    set_for(cx, args, Expiry::milliseconds(args.at(2)), "psetex", out)
}

fn set_for(
    cx: &mut Context<'_>,
    args: Args<'_>,
    expiry: Expiry<'_>,
    name: &'static str,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let at = expiry.at(cx.now_ms, name)?;
    put_until(cx, args.at(1), args.at(3), at);
    out.ok();
    Ok(())
}

const SETNX: Command = Command {
    name: "setnx",
    group: Group::String,
    since: "1.0.0",
    summary: "Stores a string if the key does not exist.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ow().insert()],
    args: &[key("key"), string("value")],
    reply: &[Shape::Int],
    deprecated: Some(("2.6.12", "`SET` with the `NX` argument")),
    ..runs(setnx)
};

fn setnx(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let is_new = !cx.exists(key);
    if is_new {
        cx.put(key, value_of(args.at(2)), Deadline::Clear);
        cx.changed(key, Class::STRING, "set");
    }
    out.int(i64::from(is_new));
    Ok(())
}

const GETSET: Command = Command {
    name: "getset",
    group: Group::String,
    since: "1.0.0",
    summary: "Stores a string and returns the one it replaced.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), string("value")],
    reply: &[Shape::Bulk, Shape::Null],
    deprecated: Some(("6.2.0", "`SET` with the `!GET` argument")),
    ..runs(getset)
};

fn getset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    write_string(cx, key, out)?;
    cx.put(key, value_of(args.at(2)), Deadline::Clear);
    cx.changed(key, Class::STRING, "set");
    Ok(())
}

const GETDEL: Command = Command {
    name: "getdel",
    group: Group::String,
    since: "6.2.0",
    summary: "Returns a string and deletes its key.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[key("key")],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(getdel)
};

fn getdel(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    if write_string(cx, key, out)? {
        delete(cx, key);
    }
    Ok(())
}

const GETEX: Command = Command {
    name: "getex",
    group: Group::String,
    since: "6.2.0",
    summary: "Returns a string and sets or clears its time to live.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1)
        .rw()
        .access()
        .update()
        .note("The time to live changes.")],
    args: &[
        key("key"),
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
    ],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(getex)
};

fn getex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let (mut expiry, mut persist, mut at) = (None::<Expiry<'_>>, false, 2);
    while at < args.len() {
        if args.is(at, "PERSIST") && expiry.is_none() {
            persist = true;
            at += 1;
        } else if let Some(other) = Expiry::parse(args, at)
            && !persist
            && expiry.is_none_or(|expiry| expiry.unit == other.unit)
        {
            expiry = Some(other);
            at += 2;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if !write_string(cx, key, out)? {
        return Ok(());
    }
    let at = expiry
        .map(|expiry| expiry.at(cx.now_ms, "getex"))
        .transpose()?;
    if let Some(at) = at {
        expiry::set_deadline(cx, key, at);
    } else if persist {
        expiry::clear_deadline(cx, key);
    }
    Ok(())
}

const DELEX: Command = Command {
    name: "delex",
    group: Group::String,
    since: "8.4.0",
    summary: "Deletes a string if its value meets a condition.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().delete().variable()],
    special: Special::Delex,
    args: &[
        key("key"),
        one_of(
            "condition",
            &[
                string("ifeq-value").token("IFEQ"),
                string("ifne-value").token("IFNE"),
                string("ifdeq-digest").token("IFDEQ"),
                string("ifdne-digest").token("IFDNE"),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Int],
    ..runs(delex)
};

fn delex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    if args.len() == 2 {
        out.int(i64::from(delete(cx, key)));
        return Ok(());
    }
    if args.len() != 4 {
        return Err(cx.arity_error());
    }
    // The condition is read last: a key that is not there is not deleted, whatever it says.
    let holds = match cx.read(key).map(|record| record.value()) {
        None => false,
        Some(ValueRef::Object(_)) => {
            return Err("ERR Key should be of string type if conditions are specified".into());
        }
        value => match Condition::parse(args, 2) {
            Some((condition, _)) => condition.holds(value)?,
            None => return Err("ERR Invalid condition. Use IFEQ, IFNE, IFDEQ, or IFDNE".into()),
        },
    };
    out.int(i64::from(holds && delete(cx, key)));
    Ok(())
}

const DELIFEQ: Command = Command {
    name: "delifeq",
    group: Group::String,
    since: "9.0.0",
    summary: "Deletes a string if it has a value, as in Valkey.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rm().delete()],
    args: &[key("key"), string("value")],
    reply: &[Shape::Int],
    ..runs(delifeq)
};

fn delifeq(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, wanted) = (args.at(1), args.at(2));
    let holds = match cx.edit(key) {
        None => false,
        Some(record) => bytes_of(record.value(), &mut [0; TEXT_MAX])? == wanted,
    };
    out.int(i64::from(holds && delete(cx, key)));
    Ok(())
}

const DIGEST: Command = Command {
    name: "digest",
    group: Group::String,
    since: "8.4.0",
    summary: "Returns a hash of a string's value.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(digest)
};

fn digest(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    match cx.read(args.at(1)).map(|record| record.value()) {
        None => out.null(),
        Some(value) => out.text(&condition::digest(bytes_of(value, &mut [0; TEXT_MAX])?)),
    }
    Ok(())
}
