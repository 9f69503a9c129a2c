//! XINFO: what a stream, its groups and their consumers look like from inside.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{self, Entry, PendingEntry, Stream, StreamId};

use super::id::{write_entry, write_id};
use super::pending::{consumer_name, millis};
use super::range::write_entries;
use super::{bad_subcommand, edit_stream, no_group_of_key, producer, read_stream};
use crate::handler::runs;
use crate::{Command, CommandError, Context, number};

pub(super) const XINFO: Command = Command {
    name: "xinfo",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes streams, groups and consumers.",
    arity: Arity::at_least(2),
    ..Command::container(&[XINFO_CONSUMERS, XINFO_GROUPS, XINFO_HELP, XINFO_STREAM])
};

const XINFO_STREAM: Command = Command {
    name: "stream",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes a stream.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).ro().access()],
    args: &[
        key("key"),
        block(
            "full-block",
            &[flag("FULL"), int("count").token("COUNT").optional()],
        )
        .optional(),
    ],
    reply: &[Shape::Map],
    history: &[
        ("6.0.0", "Takes `FULL`."),
        (
            "7.0.0",
            "Shows `max-deleted-entry-id`, `entries-added`, `recorded-first-entry-id`, \
             `entries-read` and `lag`.",
        ),
        (
            "7.2.0",
            "Shows `active-time`, and gives `seen-time` its present meaning.",
        ),
        ("8.6.0", "Shows how messages sent twice are recognized."),
        ("8.8.0", "Shows entries given back by `XNACK`."),
    ],
    ..runs(xinfo_stream)
};

/// Entries that FULL shows unless told.
const FULL_COUNT: usize = 10;

fn xinfo_stream(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, now_ms) = (args.at(2), cx.now_ms);
    let stream = read_stream(cx, key)?.ok_or(CommandError::NoSuchKey)?;
    let remembers = stream.idempotency().is_some();
    let count = full_count(cx, args)?;
    if remembers && let Some(stream) = edit_stream(cx, key)? {
        producer::forget_old(stream, now_ms);
    }
    let Some(stream) = read_stream(cx, key)? else {
        return Err(CommandError::NoSuchKey);
    };
    match count {
        None => write_stream(stream, out),
        Some(count) => write_full(stream, count, out),
    }
    Ok(())
}

/// With FULL, how many entries to show of each kind.
fn full_count(cx: &Context<'_>, args: Args<'_>) -> Result<Option<usize>, CommandError> {
    match args.len() {
        3 => Ok(None),
        4 if args.is(3, "FULL") => Ok(Some(FULL_COUNT)),
        6 if args.is(3, "FULL") && args.is(4, "COUNT") => {
            let count = usize::try_from(number::int(args.at(5))?).unwrap_or(0);
            Ok(Some(if count == 0 { usize::MAX } else { count }))
        }
        _ => Err(bad_subcommand(cx, args.at(1))),
    }
}

fn write_counters(stream: &Stream, out: &mut Writer<'_>) {
    let blocks = stream.blocks();
    let limits = stream.idempotency_limits();
    let (mut producers, mut tracked, mut added, mut duplicates) = (0, 0, 0, 0);
    if let Some(memory) = stream.idempotency() {
        producers = memory.producers() as u64;
        tracked = memory.tracked();
        (added, duplicates) = (memory.added, memory.duplicates);
    }
    field(out, "length", stream.len());
    field(out, "radix-tree-keys", blocks as u64);
    // There is no such tree here: about as many nodes as it would have.
    field(
        out,
        "radix-tree-nodes",
        if blocks > 1 { blocks as u64 + 2 } else { 1 },
    );
    id_field(out, "last-generated-id", stream.last_id());
    id_field(out, "max-deleted-entry-id", stream.max_deleted_id());
    field(out, "entries-added", stream.entries_added());
    id_field(out, "recorded-first-entry-id", stream.first_id());
    field(out, "idmp-duration", u64::from(limits.duration_s));
    field(out, "idmp-maxsize", u64::from(limits.entries_max));
    field(out, "pids-tracked", producers);
    field(out, "iids-tracked", tracked);
    field(out, "iids-added", added);
    field(out, "iids-duplicates", duplicates);
}

/// How many fields [`write_counters`] writes.
const COUNTERS: usize = 13;

fn write_stream(stream: &Stream, out: &mut Writer<'_>) {
    let entry = |out: &mut Writer<'_>, name: &str, entry: Option<Entry<'_>>| {
        out.text(name);
        match entry {
            Some(entry) => write_entry(out, entry),
            None => out.null(),
        }
    };
    out.map(COUNTERS + 3);
    write_counters(stream, out);
    field(out, "groups", stream.groups().len() as u64);
    entry(out, "first-entry", stream.first());
    entry(out, "last-entry", stream.last());
}

fn write_full(stream: &Stream, count: usize, out: &mut Writer<'_>) {
    let progress = stream.progress();
    out.map(COUNTERS + 2);
    write_counters(stream, out);
    out.text("entries");
    write_entries(out, stream.range(StreamId::MIN, StreamId::MAX).take(count));
    out.text("groups");
    out.array(stream.groups().len());
    for group in stream.groups() {
        out.map(8);
        out.text("name");
        out.bulk(group.name());
        id_field(out, "last-delivered-id", group.last_delivered());
        optional_field(out, "entries-read", group.entries_read);
        optional_field(out, "lag", progress.lag(group));
        field(out, "pel-count", group.pending_len());
        field(out, "nacked-count", group.released_len());
        out.text("pending");
        let pending = group.pending_range(StreamId::MIN, StreamId::MAX, None);
        write_pending(out, pending.take(count), |out, pending| {
            out.array(4);
            write_id(out, pending.id);
            out.bulk(consumer_name(group, pending.consumer));
        });
        write_full_consumers(group, count, out);
    }
}

fn write_full_consumers(group: &stream::Group, count: usize, out: &mut Writer<'_>) {
    out.text("consumers");
    out.array(group.consumers_len());
    for (index, consumer) in group.consumers() {
        out.map(5);
        out.text("name");
        out.bulk(consumer.name());
        field(out, "seen-time", consumer.seen_ms);
        out.text("active-time");
        out.int(consumer.active_ms.map_or(-1, millis));
        field(out, "pel-count", consumer.pending());
        out.text("pending");
        let pending = group.pending_range(StreamId::MIN, StreamId::MAX, Some(index));
        write_pending(out, pending.take(count), |out, pending| {
            out.array(3);
            write_id(out, pending.id);
        });
    }
}

fn write_pending(
    out: &mut Writer<'_>,
    pending: impl Iterator<Item = PendingEntry>,
    begin: impl Fn(&mut Writer<'_>, &PendingEntry),
) {
    let mark = out.begin_array();
    let mut count = 0;
    for pending in pending {
        begin(out, &pending);
        out.int(millis(pending.delivered_ms));
        out.int(millis(pending.deliveries));
        count += 1;
    }
    out.end_array(mark, count);
}

fn field(out: &mut Writer<'_>, name: &str, value: u64) {
    out.text(name);
    out.int(millis(value));
}

fn optional_field(out: &mut Writer<'_>, name: &str, value: Option<u64>) {
    out.text(name);
    match value {
        Some(value) => out.int(millis(value)),
        None => out.null(),
    }
}

fn id_field(out: &mut Writer<'_>, name: &str, id: StreamId) {
    out.text(name);
    write_id(out, id);
}

const XINFO_GROUPS: Command = Command {
    name: "groups",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes the consumer groups of a stream.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Array],
    history: &[("7.0.0", "Shows `entries-read` and `lag`.")],
    ..runs(xinfo_groups)
};

fn xinfo_groups(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let stream = read_stream(cx, args.at(2))?.ok_or(CommandError::NoSuchKey)?;
    let progress = stream.progress();
    out.array(stream.groups().len());
    for group in stream.groups() {
        out.map(6);
        out.text("name");
        out.bulk(group.name());
        field(out, "consumers", group.consumers_len() as u64);
        field(out, "pending", group.pending_len());
        id_field(out, "last-delivered-id", group.last_delivered());
        optional_field(out, "entries-read", group.entries_read);
        optional_field(out, "lag", progress.lag(group));
    }
    Ok(())
}

const XINFO_CONSUMERS: Command = Command {
    name: "consumers",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes the consumers of a group.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).ro().access()],
    args: &[key("key"), string("group")],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    history: &[("7.2.0", "Shows `inactive`.")],
    ..runs(xinfo_consumers)
};

fn xinfo_consumers(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name, now_ms) = (args.at(2), args.at(3), cx.now_ms);
    let stream = read_stream(cx, key)?.ok_or(CommandError::NoSuchKey)?;
    let group = stream.group(name);
    let group = group.ok_or_else(|| no_group_of_key(key, name))?;
    out.array(group.consumers_len());
    for (_, consumer) in group.consumers() {
        out.map(4);
        out.text("name");
        out.bulk(consumer.name());
        field(out, "pending", consumer.pending());
        field(out, "idle", now_ms.saturating_sub(consumer.seen_ms));
        out.text("inactive");
        out.int(match consumer.active_ms {
            Some(active_ms) => millis(now_ms.saturating_sub(active_ms)),
            None => -1,
        });
    }
    Ok(())
}

const XINFO_HELP: Command = Command {
    name: "help",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::STREAM,
    reply: &[Shape::Array],
    ..runs(xinfo_help)
};

fn xinfo_help(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    cx.help(
        out,
        &[
            "XINFO <subcommand> [<arg> ...]. The subcommands:",
            "CONSUMERS <key> <group>",
            "    Describes the consumers of a group.",
            "GROUPS <key>",
            "    Describes the groups of a stream.",
            "HELP",
            "    Shows these lines.",
            "STREAM <key> [FULL [COUNT <count>]]",
            "    Describes a stream; FULL shows its entries and groups too.",
        ],
    );
    Ok(())
}
