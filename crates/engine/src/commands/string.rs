//! Strings.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};
use structure::record::{Value, ValueRef};

use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[GET, SET];

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
    match cx.read(args.at(1)).map(|record| record.value()) {
        None => out.null(),
        Some(ValueRef::Bytes(bytes)) => out.bulk(bytes),
        Some(ValueRef::Int(int)) => out.bulk_int(int),
        Some(ValueRef::Object(_)) => return Err(CommandError::WrongType),
    }
    Ok(())
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
    let (key, text) = (args.at(1), args.at(2));
    let value = match structure::decimal::parse(text) {
        Some(int) => Value::Int(int),
        None => Value::Bytes(text),
    };
    cx.put(key, value, Deadline::Clear);
    cx.changed(key, Class::STRING, "set");
    out.ok();
    Ok(())
}
