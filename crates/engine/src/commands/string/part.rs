//! Parts of strings: APPEND, GETRANGE, SETRANGE and STRLEN.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::record::Value;

use super::{bytes_of, value_of};
use crate::handler::runs;
use crate::keyspace::{Deadline, Editing};
use crate::notify::Class;
use crate::{Command, CommandError, Context};

/// How long a string is that may be changed.
pub(in crate::commands) fn length_of(record: &Editing<'_>) -> Result<usize, CommandError> {
    bytes_of(record.value(), &mut [0; TEXT_MAX]).map(<[u8]>::len)
}

/// Whether a string may be so long.
pub(in crate::commands) fn check_length(
    cx: &Context<'_>,
    offset: usize,
    more: usize,
) -> Result<usize, CommandError> {
    let max = usize::try_from(cx.settings.string_bytes_max).unwrap_or(usize::MAX);
    offset
        .checked_add(more)
        .filter(|&len| len <= max)
        .ok_or(CommandError::StringTooLong)
}

pub(super) const APPEND: Command = Command {
    name: "append",
    group: Group::String,
    since: "2.0.0",
    summary: "Adds bytes to the end of a string.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("value")],
    reply: &[Shape::Int],
    ..runs(append)
};

fn append(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, text) = (args.at(1), args.at(2));
    let max = usize::try_from(cx.settings.string_bytes_max).unwrap_or(usize::MAX);
    let len = if let Some(mut record) = cx.edit(key) {
        let old = length_of(&record)?;
        let len = old.saturating_add(text.len());
        if len > max && !text.is_empty() {
            return Err(CommandError::StringTooLong);
        }
        let bytes = record.grow_bytes(len).ok_or(CommandError::WrongType)?;
        bytes[old..len].copy_from_slice(text);
        len
    } else {
        cx.put(key, value_of(text), Deadline::Clear);
        text.len()
    };
    cx.changed(key, Class::STRING, "append");
    out.count(len);
    Ok(())
}

pub(super) const GETRANGE: Command = Command {
    name: "getrange",
    group: Group::String,
    since: "2.4.0",
    summary: "Returns part of a string.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::READONLY,
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("start"), int("end")],
    reply: &[Shape::Bulk],
    ..runs(getrange)
};

fn getrange(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (start, end) = (
        crate::number::int(args.at(2))?,
        crate::number::int(args.at(3))?,
    );
    let mut digits = [0; TEXT_MAX];
    let bytes = match cx.read(args.at(1)) {
        None => &[],
        Some(record) => bytes_of(record.value(), &mut digits)?,
    };
    out.bulk(clip(bytes, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both included and counted from the end where negative.
fn clip(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let place = |index: i64| {
        let distance = usize::try_from(index.unsigned_abs()).unwrap_or(usize::MAX);
        match index {
            ..0 => bytes.len().saturating_sub(distance),
            _ => distance,
        }
    };
    let end = place(end).saturating_add(1).min(bytes.len());
    bytes.get(place(start)..end).unwrap_or_default()
}

pub(super) const SUBSTR: Command = Command {
    name: "substr",
    group: Group::String,
    since: "1.0.0",
    summary: "Returns part of a string.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::READONLY,
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("start"), int("end")],
    reply: &[Shape::Bulk],
    deprecated: Some(("2.0.0", "`GETRANGE`")),
    ..runs(substr)
};

fn substr(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    getrange(cx, args, out)
}

pub(super) const SETRANGE: Command = Command {
    name: "setrange",
    group: Group::String,
    since: "2.2.0",
    summary: "Overwrites part of a string.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), int("offset"), string("value")],
    reply: &[Shape::Int],
    ..runs(setrange)
};

fn setrange(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, text) = (args.at(1), args.at(3));
    let offset = usize::try_from(crate::number::int(args.at(2))?)
        .map_err(|_| CommandError::text("ERR offset is out of range"))?;
    let old = match cx.edit(key) {
        None => None,
        Some(record) => Some(length_of(&record)?),
    };
    if text.is_empty() {
        out.count(old.unwrap_or(0));
        return Ok(());
    }
    let end = check_length(cx, offset, text.len())?;
    if old.is_none() {
        cx.put(key, Value::Bytes(b""), Deadline::Clear);
    }
    if let Some(mut record) = cx.edit(key)
        && let Some(bytes) = record.grow_bytes(end)
    {
        bytes[offset..end].copy_from_slice(text);
    }
    cx.changed(key, Class::STRING, "setrange");
    out.count(end.max(old.unwrap_or(0)));
    Ok(())
}

pub(super) const STRLEN: Command = Command {
    name: "strlen",
    group: Group::String,
    since: "2.2.0",
    summary: "Returns the length of a string in bytes.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(strlen)
};

fn strlen(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let len = match cx.read(args.at(1)) {
        None => 0,
        Some(record) => bytes_of(record.value(), &mut [0; TEXT_MAX])?.len(),
    };
    out.count(len);
    Ok(())
}
