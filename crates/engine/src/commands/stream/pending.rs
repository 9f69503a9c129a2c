//! What is pending in a group: XPENDING shows it, XACK removes it, XNACK gives it back.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{self, ConsumerIndex, DELIVERIES_MAX, PendingEntry};

use super::id::{parse_all, parse_end, parse_start, write_id};
use super::{edit_stream, id, no_group, read_stream, shown};
use crate::handler::runs;
use crate::{Command, CommandError, Context, number};

pub(super) const XACK: Command = Command {
    name: "xack",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Marks a group's pending entries as processed.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), string("group"), string("id").multiple()],
    reply: &[Shape::Int],
    ..runs(xack)
};

fn xack(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, name) = (args.at(1), args.at(2));
    cx.tell_if_missing(key);
    let stream = edit_stream(cx, key)?;
    let Some(group) = stream.and_then(|stream| stream.group_mut(name)) else {
        out.int(0);
        return Ok(());
    };
    for word in args.from(3).iter() {
        id::parse(word, 0)?;
    }
    let words = args.from(3);
    let ids = words.iter().filter_map(|word| id::parse(word, 0).ok());
    let removed = ids.filter(|id| group.acknowledge(*id).is_some()).count();
    if removed > 0 {
        cx.changed_unwatched(key);
    }
    out.count(removed);
    Ok(())
}

pub(super) const XNACK: Command = Command {
    name: "xnack",
    group: Group::Stream,
    since: "8.8.0",
    summary: "Gives pending entries back to the group without acknowledging them.",
    complexity: "O(1)",
    arity: Arity::at_least(7),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        string("group"),
        one_of("mode", &[flag("SILENT"), flag("FAIL"), flag("FATAL")]),
        block("ids", &[int("numids"), string("id").multiple()]).token("IDS"),
        int("count").token("RETRYCOUNT").optional(),
        flag("FORCE").optional(),
    ],
    reply: &[Shape::Int],
    ..runs(xnack)
};

fn xnack(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, name) = (args.at(1), args.at(2));
    let stream = edit_stream(cx, key)?.ok_or_else(|| no_group(key, name))?;
    let found = stream.group_and_entries(name);
    let (group, entries) = found.ok_or_else(|| no_group(key, name))?;
    let release = Release::parse(args)?;
    let ids = parse_all(release.ids.iter().copied())?;
    let mut released = 0;
    for id in ids {
        let deliveries = match group.pending(id) {
            Some(pending) => match release.mode {
                Mode::Silent => pending.deliveries.saturating_sub(1),
                Mode::Fail => pending.deliveries,
                Mode::Fatal => DELIVERIES_MAX,
            },
            None if !release.force || entries.get(id).is_none() => continue,
            None => match release.mode {
                Mode::Silent | Mode::Fail => 0,
                Mode::Fatal => DELIVERIES_MAX,
            },
        };
        group.release(id, release.deliveries.unwrap_or(deliveries));
        released += 1;
    }
    if released > 0 {
        cx.changed_unwatched(key);
        // Who waits to claim what is pending may have it now.
        cx.ready(key);
    }
    out.count(released);
    Ok(())
}

/// How XNACK counts the delivery that failed.
#[derive(Clone, Copy)]
enum Mode {
    /// As if it had not been.
    Silent,
    /// As a delivery.
    Fail,
    /// As the last one that makes sense.
    Fatal,
}

/// The words of XNACK.
struct Release<'a> {
    mode: Mode,
    ids: Vec<&'a [u8]>,
    deliveries: Option<u64>,
    force: bool,
}

impl<'a> Release<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let modes = [
            ("SILENT", Mode::Silent),
            ("FAIL", Mode::Fail),
            ("FATAL", Mode::Fatal),
        ];
        let mode = modes.into_iter().find(|(word, _)| args.is(3, word));
        let (_, mode) = mode.ok_or("ERR mode must be SILENT, FAIL, or FATAL")?;
        let mut release = Self {
            mode,
            ids: Vec::new(),
            deliveries: None,
            force: false,
        };
        let mut at = 4;
        while at < args.len() {
            let more = args.len() - at - 1;
            if args.is(at, "IDS") && more > 0 {
                let count = structure::decimal::parse(args.at(at + 1))
                    .and_then(|count| usize::try_from(count).ok())
                    .filter(|count| *count > 0)
                    .ok_or("ERR numids must be a positive integer")?;
                if count > more - 1 {
                    return Err("ERR number of IDs doesn't match numids".into());
                }
                release.ids = args.from(at + 2).iter().take(count).collect();
                at += 2 + count;
            } else if args.is(at, "RETRYCOUNT") && more > 0 {
                let count = u64::try_from(number::int(args.at(at + 1))?);
                release.deliveries =
                    Some(count.map_err(|_| "ERR Invalid RETRYCOUNT value, must be >= 0")?);
                at += 2;
            } else if args.is(at, "FORCE") {
                release.force = true;
                at += 1;
            } else {
                let word = shown(args.at(at));
                return Err(CommandError::err(format!(
                    "Unrecognized XNACK option '{word}'"
                )));
            }
        }
        if release.ids.is_empty() {
            return Err("ERR syntax error, expected IDS keyword".into());
        }
        Ok(release)
    }
}

pub(super) const XPENDING: Command = Command {
    name: "xpending",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Describes the pending entries of a group.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("group"),
        block(
            "filters",
            &[
                int("min-idle-time").token("IDLE").since("6.2.0").optional(),
                string("start"),
                string("end"),
                int("count"),
                string("consumer").optional(),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    history: &[(
        "6.2.0",
        "Takes `IDLE`, and ranges that leave their ends out.",
    )],
    ..runs(xpending)
};

fn xpending(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name, now_ms) = (args.at(1), args.at(2), cx.now_ms);
    let rows = match args.len() {
        3 => None,
        6..=9 => Some(Rows::parse(args)?),
        _ => return Err(CommandError::Syntax),
    };
    let stream = read_stream(cx, key)?;
    let group = stream.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| no_group(key, name))?;
    match rows {
        None => write_summary(group, out),
        Some(rows) => rows.write(group, now_ms, out),
    }
    Ok(())
}

fn write_summary(group: &stream::Group, out: &mut Writer<'_>) {
    out.array(4);
    out.int(i64::try_from(group.pending_len()).unwrap_or(i64::MAX));
    let Some((first, last)) = group.pending_bounds() else {
        out.null();
        out.null();
        out.null_array();
        return;
    };
    write_id(out, first);
    write_id(out, last);
    let mark = out.begin_array();
    let mut count = 0;
    for (_, consumer) in group.consumers() {
        if consumer.pending() > 0 {
            out.array(2);
            out.bulk(consumer.name());
            out.bulk_int(i64::try_from(consumer.pending()).unwrap_or(i64::MAX));
            count += 1;
        }
    }
    out.end_array(mark, count);
}

/// Which pending entries XPENDING is to list.
struct Rows<'a> {
    idle_ms_min: u64,
    start: structure::stream::StreamId,
    end: structure::stream::StreamId,
    count: usize,
    consumer: Option<&'a [u8]>,
}

impl<'a> Rows<'a> {
    fn parse(args: Args<'a>) -> Result<Self, CommandError> {
        let (mut idle_ms_min, mut at) = (0, 3);
        if args.is(3, "IDLE") {
            idle_ms_min = u64::try_from(number::int(args.at(4))?).unwrap_or(0);
            if args.len() < 8 {
                return Err(CommandError::Syntax);
            }
            at = 5;
        }
        let count = usize::try_from(number::int(args.at(at + 2))?).unwrap_or(0);
        Ok(Self {
            idle_ms_min,
            start: parse_start(args.at(at))?,
            end: parse_end(args.at(at + 1))?,
            count,
            consumer: args.get(at + 3),
        })
    }

    fn write(&self, group: &stream::Group, now_ms: u64, out: &mut Writer<'_>) {
        let consumer = match self.consumer.map(|name| group.find_consumer(name)) {
            Some(None) => return out.array(0),
            Some(Some(index)) => Some(index),
            None => None,
        };
        let old = |pending: &PendingEntry| {
            pending.consumer.is_none()
                || now_ms.saturating_sub(pending.delivered_ms) >= self.idle_ms_min
        };
        let mark = out.begin_array();
        let mut count = 0;
        let range = group.pending_range(self.start, self.end, consumer);
        for pending in range.filter(old).take(self.count) {
            out.array(4);
            write_id(out, pending.id);
            out.bulk(consumer_name(group, pending.consumer));
            out.int(match pending.consumer {
                Some(_) => millis(now_ms.saturating_sub(pending.delivered_ms)),
                None => -1,
            });
            out.int(millis(pending.deliveries));
            count += 1;
        }
        out.end_array(mark, count);
    }
}

/// The name of a holder; empty where there is none.
pub(super) fn consumer_name(group: &stream::Group, index: Option<ConsumerIndex>) -> &[u8] {
    index
        .and_then(|index| group.consumer(index))
        .map_or(b"", |consumer| consumer.name())
}

/// A count or a time as replies have it.
pub(super) fn millis(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
