//! Messages sent twice: XCFGSET, XIDMPRECORD, and what XADD asks about them.
//!
//! # Invariants
//! - A name that is past its time is never found: it is forgotten before anybody looks.
//! - Each recorded message also forgets old names of a few other producers, so that those who fell
//!   silent do not stay for ever.
//!
//! # Why not a sweep on a timer?
//! It would need a list of all streams that remember anything. Who asks sees the same either way.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{Idempotency, IdempotencyLimits, Stream, StreamId};

use super::{edit_stream, id};
use crate::handler::runs;
use crate::{Command, CommandError, Context, number};

/// How many producers or names are looked at beside each recorded message.
const SWEEP: usize = 4;

pub(super) const XCFGSET: Command = Command {
    name: "xcfgset",
    group: Group::Stream,
    since: "8.6.0",
    summary: "Configures how a stream recognizes messages sent twice.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        int("idmp-duration").token("IDMP-DURATION").optional(),
        int("idmp-maxsize").token("IDMP-MAXSIZE").optional(),
    ],
    reply: &[Shape::Ok],
    ..runs(xcfgset)
};

fn xcfgset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let stream = edit_stream(cx, key)?.ok_or(CommandError::NoSuchKey)?;
    if args.len() == 2 {
        return Err("ERR At least one parameter must be specified".into());
    }
    let (mut duration, mut entries) = (None, None);
    for at in (2..args.len()).step_by(2) {
        let value = args.get(at + 1).ok_or(CommandError::Syntax);
        if args.is(at, "IDMP-DURATION") {
            if duration.is_some() {
                return Err("ERR IDMP-DURATION specified multiple times".into());
            }
            let error = "ERR IDMP-DURATION must be between 1 and 86400 seconds";
            duration = Some(within(value?, 86_400, error)?);
        } else if args.is(at, "IDMP-MAXSIZE") {
            if entries.is_some() {
                return Err("ERR IDMP-MAXSIZE specified multiple times".into());
            }
            let error = "ERR IDMP-MAXSIZE must be between 1 and 10000 entries";
            entries = Some(within(value?, 10_000, error)?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let before = stream.idempotency_limits();
    stream.set_idempotency_limits(IdempotencyLimits {
        duration_s: duration.unwrap_or(before.duration_s),
        entries_max: entries.unwrap_or(before.entries_max),
    });
    cx.changed_unwatched(key);
    out.ok();
    Ok(())
}

fn within(text: &[u8], max: u32, error: &'static str) -> Result<u32, CommandError> {
    let value = u32::try_from(number::int(text)?).ok();
    let value = value.filter(|value| (1..=max).contains(value));
    value.ok_or(CommandError::text(error))
}

pub(super) const XIDMPRECORD: Command = Command {
    name: "xidmprecord",
    group: Group::Stream,
    since: "8.6.2",
    summary: "Records that a producer's message stands in a stream under an ID.",
    complexity: "O(1)",
    arity: Arity::exactly(5),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        string("pid"),
        string("iid"),
        string("stream-id"),
    ],
    reply: &[Shape::Ok],
    ..runs(xidmprecord)
};

fn xidmprecord(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, producer, name) = (args.at(1), args.at(2), args.at(3));
    let id = id::parse(args.at(4), 0)?;
    if producer.is_empty() {
        return Err("ERR producer ID must be non-empty".into());
    }
    if name.is_empty() {
        return Err("ERR idempotent ID must be non-empty".into());
    }
    let dead_ms = cx.dead_ms;
    let stream = edit_stream(cx, key)?.ok_or(CommandError::NoSuchKey)?;
    if stream.get(id).is_none() {
        return Err("ERR No such message in stream".into());
    }
    match find(stream, producer, name, dead_ms) {
        Some(known) if known == id => {}
        Some(_) => {
            return Err(
                "ERR IID already exists for this producer with a different stream ID".into(),
            );
        }
        None => {
            record(stream, producer, name, id, dead_ms);
            cx.changed_unwatched(key);
        }
    }
    out.ok();
    Ok(())
}

/// The id that a producer's message got, if it is remembered.
fn find(stream: &mut Stream, producer: &[u8], name: &[u8], now_ms: u64) -> Option<StreamId> {
    let duration_s = stream.idempotency_limits().duration_s;
    stream.idempotency()?;
    let memory = stream.idempotency_mut();
    memory.forget_old(producer, now_ms, duration_s);
    memory.find(producer, name)
}

/// The same, for a message that comes again: it is counted.
pub(super) fn find_duplicate(
    stream: &mut Stream,
    producer: &[u8],
    name: &[u8],
    now_ms: u64,
) -> Option<StreamId> {
    let id = find(stream, producer, name, now_ms)?;
    let memory = stream.idempotency_mut();
    memory.duplicates = memory.duplicates.saturating_add(1);
    Some(id)
}

/// Remembers a producer's message.
pub(super) fn record(stream: &mut Stream, producer: &[u8], name: &[u8], id: StreamId, now_ms: u64) {
    let limits = stream.idempotency_limits();
    let memory = stream.idempotency_mut();
    memory.sweep(now_ms, limits.duration_s, SWEEP);
    memory.record(producer, name, id, limits.entries_max);
}

/// Forgets every name that is past its time.
pub(super) fn forget_old(stream: &mut Stream, now_ms: u64) {
    let duration_s = stream.idempotency_limits().duration_s;
    if stream.idempotency().is_some() {
        let memory: &mut Idempotency = stream.idempotency_mut();
        memory.expire(now_ms, duration_s, None, usize::MAX);
    }
}
