//! Looking at the entries of one stream: XLEN, XRANGE, XREVRANGE; and XSETID, which sets its
//! counters.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{Entry, StreamId};

use super::id::{parse, parse_end, parse_start, write_entry};
use super::{edit_stream, read_stream};
use crate::handler::runs;
use crate::notify::Class;
use crate::{Command, CommandError, Context, number};

pub(super) const XLEN: Command = Command {
    name: "xlen",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Returns the number of entries in a stream.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(xlen)
};

fn xlen(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let length = read_stream(cx, args.at(1))?.map_or(0, |stream| stream.len());
    out.int(i64::try_from(length).unwrap_or(i64::MAX));
    Ok(())
}

pub(super) const XRANGE: Command = Command {
    name: "xrange",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Returns the entries of a stream within a range of IDs.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("start"),
        string("end"),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array],
    history: &[("6.2.0", "Takes ranges that leave their ends out.")],
    ..runs(xrange)
};

fn xrange(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (start, end) = (parse_start(args.at(2))?, parse_end(args.at(3))?);
    range(cx, args, (start, end), false, out)
}

pub(super) const XREVRANGE: Command = Command {
    name: "xrevrange",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Returns the entries of a stream within a range of IDs, newest first.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("end"),
        string("start"),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array],
    history: &[("6.2.0", "Takes ranges that leave their ends out.")],
    ..runs(xrevrange)
};

fn xrevrange(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (start, end) = (parse_start(args.at(3))?, parse_end(args.at(2))?);
    range(cx, args, (start, end), true, out)
}

fn range(
    cx: &mut Context<'_>,
    args: Args<'_>,
    (start, end): (StreamId, StreamId),
    backwards: bool,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut count = None;
    for at in (4..args.len()).step_by(2) {
        if !args.is(at, "COUNT") || at + 1 >= args.len() {
            return Err(CommandError::Syntax);
        }
        count = Some(number::int(args.at(at + 1))?);
    }
    let count = count.map(|count| usize::try_from(count).unwrap_or(0));
    match read_stream(cx, args.at(1))? {
        None => out.array(0),
        Some(_) if count == Some(0) => out.null_array(),
        Some(stream) => {
            let count = count.unwrap_or(usize::MAX);
            if backwards {
                write_entries(out, stream.range_back(start, end).take(count));
            } else {
                write_entries(out, stream.range(start, end).take(count));
            }
        }
    }
    Ok(())
}

/// Writes entries as one array.
pub(super) fn write_entries<'a>(out: &mut Writer<'_>, entries: impl Iterator<Item = Entry<'a>>) {
    let mark = out.begin_array();
    let mut count = 0;
    for entry in entries {
        write_entry(out, entry);
        count += 1;
    }
    out.end_array(mark, count);
}

pub(super) const XSETID: Command = Command {
    name: "xsetid",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Sets the last ID of a stream; replicas and loading use it.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        string("last-id"),
        int("entries-added")
            .token("ENTRIESADDED")
            .since("7.0.0")
            .optional(),
        string("max-deleted-id")
            .token("MAXDELETEDID")
            .since("7.0.0")
            .optional(),
    ],
    reply: &[Shape::Ok],
    history: &[("7.0.0", "Takes `ENTRIESADDED` and `MAXDELETEDID`.")],
    ..runs(xsetid)
};

fn xsetid(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let id = parse(args.at(2), 0)?;
    let (mut added, mut max_deleted) = (None, None);
    for at in (3..args.len()).step_by(2) {
        let value = args.get(at + 1).ok_or(CommandError::Syntax)?;
        if args.is(at, "ENTRIESADDED") {
            let count = u64::try_from(number::int(value)?);
            added =
                Some(count.map_err(|_| CommandError::text("ERR entries_added must be positive"))?);
        } else if args.is(at, "MAXDELETEDID") {
            let deleted = parse(value, 0)?;
            if id < deleted {
                return Err(
                    "ERR The ID specified in XSETID is smaller than the provided \
                            max_deleted_entry_id"
                        .into(),
                );
            }
            // 0-0 names no entry: it says as much as no MAXDELETEDID.
            max_deleted = Some(deleted).filter(|deleted| *deleted != StreamId::MIN);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let stream = edit_stream(cx, key)?.ok_or(CommandError::NoSuchKey)?;
    if id < stream.max_deleted_id() {
        return Err(
            "ERR The ID specified in XSETID is smaller than current max_deleted_entry_id".into(),
        );
    }
    if stream.last().is_some_and(|last| id < last.id) {
        return Err(
            "ERR The ID specified in XSETID is smaller than the target stream top item".into(),
        );
    }
    if added.is_some_and(|added| added < stream.len()) {
        return Err(
            "ERR The entries_added specified in XSETID is smaller than the target stream \
                    length"
                .into(),
        );
    }
    stream.set_counters(id, added, max_deleted);
    cx.changed_unwatched(key);
    cx.notify(Class::STREAM, "xsetid", key);
    out.ok();
    Ok(())
}
