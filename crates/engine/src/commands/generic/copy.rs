//! Moving and copying whole values: COPY, MOVE, RENAME and RENAMENX.
//!
//! A value that moves keeps its record's deadline and access bits; nothing of it is copied. What
//! it replaces is removed first, so that listeners hear of a new key, then of an overwritten one.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::record::Record;

use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::object::{Kind, OwnedValue};
use crate::{Command, CommandError, Context};

const SAME: CommandError = CommandError::text("ERR source and destination objects are the same");

/// A database's number.
pub(in crate::commands) fn db_index(cx: &Context<'_>, word: &[u8]) -> Result<u32, CommandError> {
    let index = crate::number::int(word)?;
    if i32::try_from(index).is_err() {
        return Err(
            "ERR value is out of range, value must between -2147483648 and 2147483647".into(),
        );
    }
    match u32::try_from(index) {
        Ok(index) if index < cx.settings.databases => Ok(index),
        _ => Err(CommandError::DbRange),
    }
}

/// Removes what stands in the way of a new value, and says what type it had.
pub(super) fn clear(cx: &mut Context<'_>, key: &[u8]) -> Option<Kind> {
    let record = cx.take(key)?;
    let kind = Kind::of(record.value());
    cx.bury(record.into_displaced());
    Some(kind)
}

/// The events of a value that replaced one of type `old`.
pub(super) fn replaced(cx: &mut Context<'_>, key: &[u8], old: Option<Kind>, new: Kind) {
    let Some(old) = old else { return };
    cx.notify(Class::OVERWRITTEN, "overwritten", key);
    if old != new {
        cx.notify(Class::TYPE_CHANGED, "type_changed", key);
    }
}

pub(super) const COPY: Command = Command {
    name: "copy",
    group: Group::Generic,
    since: "6.2.0",
    summary: "Copies a key's value to another key.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro().access(), KeySpec::at(2).ow().update()],
    args: &[
        key("source"),
        key("destination").spec(1),
        int("destination-db").token("DB").optional(),
        flag("REPLACE").optional(),
    ],
    reply: &[Shape::Int],
    ..runs(copy)
};

fn copy(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (from, to) = (args.at(1), args.at(2));
    let here = cx.session.db;
    let (mut there, mut replace, mut index) = (here, false, 3);
    while index < args.len() {
        if args.is(index, "REPLACE") {
            replace = true;
            index += 1;
        } else if args.is(index, "DB") && index + 1 < args.len() {
            there = db_index(cx, args.at(index + 1))?;
            index += 2;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if here == there && from == to {
        return Err(SAME);
    }
    let (settings, seed) = (cx.settings, cx.shared.seed);
    let copied = cx.read(from).map(|record| {
        let deadline = record.deadline().map_or(Deadline::Clear, Deadline::At);
        (
            OwnedValue::duplicate(record.value(), settings, &seed),
            deadline,
        )
    });
    let Some((value, deadline)) = copied else {
        out.int(0);
        return Ok(());
    };
    cx.session.db = there;
    let done = replace || !cx.exists(to);
    if done {
        let kind = value.kind();
        let old = clear(cx, to);
        cx.put_owned(to, value, deadline);
        cx.changed(to, Class::GENERIC, "copy_to");
        replaced(cx, to, old, kind);
        cx.ready(to);
    }
    cx.session.db = here;
    out.int(done.into());
    Ok(())
}

pub(super) const MOVE: Command = Command {
    name: "move",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Moves a key to another database.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), int("db")],
    reply: &[Shape::Int],
    ..runs(r#move)
};

fn r#move(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let (here, there) = (cx.session.db, db_index(cx, args.at(2))?);
    if here == there {
        return Err(SAME);
    }
    let found = cx.edit(key).is_some();
    cx.session.db = there;
    let taken = cx.exists(key);
    cx.session.db = here;
    let moved = if found && !taken { cx.take(key) } else { None };
    let Some(record) = moved else {
        out.int(0);
        return Ok(());
    };
    cx.session.db = there;
    cx.put_record(key, record);
    cx.notify(Class::NEW, "new", key);
    cx.session.db = here;
    cx.gone(key);
    cx.changed(key, Class::GENERIC, "move_from");
    cx.session.db = there;
    cx.changed(key, Class::GENERIC, "move_to");
    cx.ready(key);
    cx.session.db = here;
    out.int(1);
    Ok(())
}

/// Gives a record that was taken out another key.
fn rename_to(cx: &mut Context<'_>, from: &[u8], to: &[u8], record: Record<crate::object::Object>) {
    let kind = Kind::of(record.value());
    let old = clear(cx, to);
    cx.put_record(to, record.rekeyed(to));
    cx.notify(Class::NEW, "new", to);
    cx.gone(from);
    cx.changed(from, Class::GENERIC, "rename_from");
    cx.changed(to, Class::GENERIC, "rename_to");
    replaced(cx, to, old, kind);
    cx.ready(to);
}

pub(super) const RENAME: Command = Command {
    name: "rename",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Gives a key a new name, replacing a key that has it.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).ow().update(),
    ],
    args: &[key("key"), key("newkey").spec(1)],
    reply: &[Shape::Ok],
    ..runs(rename)
};

fn rename(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (from, to) = (args.at(1), args.at(2));
    if cx.edit(from).is_none() {
        return Err(CommandError::NoSuchKey);
    }
    if from != to
        && let Some(record) = cx.take(from)
    {
        rename_to(cx, from, to, record);
    }
    out.ok();
    Ok(())
}

pub(super) const RENAMENX: Command = Command {
    name: "renamenx",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Gives a key a new name unless another key has it.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).ow().insert(),
    ],
    args: &[key("key"), key("newkey").spec(1)],
    reply: &[Shape::Int],
    history: &[("3.2.0", "Two equal names are no longer an error.")],
    ..runs(renamenx)
};

fn renamenx(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (from, to) = (args.at(1), args.at(2));
    if cx.edit(from).is_none() {
        return Err(CommandError::NoSuchKey);
    }
    if from == to || cx.exists(to) {
        out.int(0);
        return Ok(());
    }
    if let Some(record) = cx.take(from) {
        rename_to(cx, from, to, record);
    }
    out.int(1);
    Ok(())
}
