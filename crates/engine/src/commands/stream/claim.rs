//! Taking over what is pending: XCLAIM by ids, XAUTOCLAIM by age.
//!
//! # Invariants
//! - An entry that was deleted is never answered: it stops being pending instead.
//! - XAUTOCLAIM looks at a bounded number of pending entries, whatever it finds.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{self, ConsumerIndex, DELIVERIES_MAX, EntriesView, PendingEntry, StreamId};

use super::group::consumer_created;
use super::id::{IdText, parse_start, write_entry, write_id};
use super::{edit_stream, id, no_group, shown};
use crate::handler::runs;
use crate::{Command, CommandError, Context, number};

pub(super) const XCLAIM: Command = Command {
    name: "xclaim",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Takes over pending entries of a group by their IDs.",
    complexity: "O(log N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        string("group"),
        string("consumer"),
        string("min-idle-time"),
        string("id").multiple(),
        int("ms").token("IDLE").optional(),
        unix_time("unix-time-milliseconds").token("TIME").optional(),
        int("count").token("RETRYCOUNT").optional(),
        flag("FORCE").optional(),
        flag("JUSTID").optional(),
        string("lastid").token("LASTID").optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(xclaim)
};

fn xclaim(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, name, now_ms) = (args.at(1), args.at(2), cx.now_ms);
    let is_replaying = cx.is_replaying();
    cx.tell_if_missing(key);
    let stream = edit_stream(cx, key)?.ok_or_else(|| no_group(key, name))?;
    let found = stream.group_and_entries(name);
    let (group, entries) = found.ok_or_else(|| no_group(key, name))?;
    let min_idle_ms = number::int(args.at(4))
        .map_err(|_| CommandError::text("ERR Invalid min-idle-time argument for XCLAIM"))?;
    let min_idle_ms = u64::try_from(min_idle_ms).unwrap_or(0);
    let claim = Claim::parse(args, now_ms, is_replaying)?;

    let mut changed = Changed::default();
    if let Some(last) = claim.last_id
        && last > group.last_delivered()
    {
        group.set_last_delivered(last);
        changed.position = true;
    }
    let (consumer, created) = group.add_consumer(args.at(3), now_ms);
    changed.consumer = created;
    let mark = out.begin_array();
    let mut count = 0;
    for word in args.from(5).iter().take(claim.ids) {
        let id = id::parse(word, 0)?;
        let pending = group.pending(id);
        let Some(entry) = entries.get(id) else {
            if group.acknowledge(id).is_some() {
                changed.deleted.push(id);
            }
            continue;
        };
        let deliveries = match pending {
            None if !claim.force => continue,
            None => 1,
            Some(pending) if !is_idle(&pending, min_idle_ms, now_ms) => continue,
            Some(pending) => pending.deliveries,
        };
        let deliveries = match claim.deliveries {
            Some(deliveries) => deliveries,
            None if claim.just_ids => deliveries,
            None => deliveries.saturating_add(1).min(DELIVERIES_MAX),
        };
        group.hold(id, consumer, claim.delivered_ms, deliveries);
        changed.claimed.push((id, deliveries));
        if claim.just_ids {
            write_id(out, id);
        } else {
            write_entry(out, entry);
        }
        count += 1;
    }
    out.end_array(mark, count);
    saw(group, consumer, now_ms, count > 0);
    let last = group.last_delivered();
    changed.tell(cx, args, claim.delivered_ms, last);
    Ok(())
}

/// Whether a pending entry is old enough to be claimed. A released one always is.
fn is_idle(pending: &PendingEntry, min_idle_ms: u64, now_ms: u64) -> bool {
    pending.consumer.is_none() || now_ms.saturating_sub(pending.delivered_ms) >= min_idle_ms
}

/// Notes that a consumer was there, and whether it got anything.
pub(super) fn saw(
    group: &mut stream::Group,
    consumer: ConsumerIndex,
    now_ms: u64,
    was_active: bool,
) {
    if let Some(consumer) = group.consumer_mut(consumer) {
        consumer.seen_ms = now_ms;
        if was_active {
            consumer.active_ms = Some(now_ms);
        }
    }
}

/// The words of XCLAIM behind the ids.
struct Claim {
    /// How many ids there are.
    ids: usize,
    delivered_ms: u64,
    deliveries: Option<u64>,
    force: bool,
    just_ids: bool,
    last_id: Option<StreamId>,
}

impl Claim {
    fn parse(args: Args<'_>, now_ms: u64, is_replaying: bool) -> Result<Self, CommandError> {
        let words = args.from(5).iter();
        let ids = words.take_while(|word| id::parse(word, 0).is_ok()).count();
        let mut claim = Self {
            ids,
            delivered_ms: now_ms,
            deliveries: None,
            force: false,
            just_ids: false,
            last_id: None,
        };
        let invalid = |option: &str| {
            CommandError::err(format!("Invalid {option} option argument for XCLAIM"))
        };
        let mut at = 5 + ids;
        while at < args.len() {
            let value = args.get(at + 1);
            if args.is(at, "FORCE") {
                claim.force = true;
                at += 1;
                continue;
            } else if args.is(at, "JUSTID") {
                claim.just_ids = true;
                at += 1;
                continue;
            }
            let Some(value) = value else {
                return Err(unrecognized(args.at(at)));
            };
            if args.is(at, "IDLE") {
                let idle_ms = number::int(value).map_err(|_| invalid("IDLE"))?;
                let then_ms = u64::try_from(idle_ms).ok();
                let then_ms = then_ms.and_then(|idle_ms| now_ms.checked_sub(idle_ms));
                claim.delivered_ms = at_most_now(then_ms, now_ms);
            } else if args.is(at, "TIME") {
                let time_ms = number::int(value).map_err(|_| invalid("TIME"))?;
                let time_ms = u64::try_from(time_ms).ok();
                claim.delivered_ms = match time_ms {
                    // What a log says was so, though the clock may have been set back since.
                    Some(time_ms) if is_replaying => time_ms,
                    _ => at_most_now(time_ms, now_ms),
                };
            } else if args.is(at, "RETRYCOUNT") {
                let count = number::int(value).map_err(|_| invalid("RETRYCOUNT"))?;
                claim.deliveries = u64::try_from(count).ok();
            } else if args.is(at, "LASTID") {
                claim.last_id = Some(id::parse(value, 0)?);
            } else {
                return Err(unrecognized(args.at(at)));
            }
            at += 2;
        }
        Ok(claim)
    }
}

/// A time, or now where it lies ahead or before all time.
fn at_most_now(time_ms: Option<u64>, now_ms: u64) -> u64 {
    time_ms
        .filter(|time_ms| *time_ms <= now_ms)
        .unwrap_or(now_ms)
}

fn unrecognized(word: &[u8]) -> CommandError {
    let word = shown(word);
    CommandError::err(format!("Unrecognized XCLAIM option '{word}'"))
}

/// What a claim changed, to be told and logged when nothing is borrowed any more.
#[derive(Default)]
struct Changed {
    /// Whether the consumer is new.
    consumer: bool,
    /// Whether LASTID moved the group.
    position: bool,
    /// What stopped being pending, its entry being gone.
    deleted: Vec<StreamId>,
    /// What was claimed, with its deliveries.
    claimed: Vec<(StreamId, u64)>,
}

impl Changed {
    fn tell(&self, cx: &mut Context<'_>, args: Args<'_>, delivered_ms: u64, last: StreamId) {
        let key = args.at(1);
        if self.consumer {
            consumer_created(cx, key);
        }
        let is_group_changed =
            self.position || !self.claimed.is_empty() || !self.deleted.is_empty();
        if is_group_changed {
            cx.changed_unwatched(key);
        }
        if !cx.is_logged() || !(self.consumer || is_group_changed) {
            return;
        }
        let (group, consumer) = (args.at(2), args.at(3));
        let holder = (group, consumer);
        if self.consumer && self.claimed.is_empty() {
            cx.rewrite(&[b"XGROUP", b"CREATECONSUMER", key, group, consumer]);
        }
        if self.position && self.claimed.is_empty() {
            // There is no entry 0-0: only the position counts.
            log_claim(cx, key, holder, StreamId::MIN, delivered_ms, 0, last);
        }
        for id in &self.deleted {
            cx.rewrite(&[b"XACK", key, group, IdText::new(*id).as_bytes()]);
        }
        for (id, deliveries) in &self.claimed {
            log_claim(cx, key, holder, *id, delivered_ms, *deliveries, last);
        }
    }
}

/// Logs that a consumer holds an entry now.
pub(super) fn log_claim(
    cx: &mut Context<'_>,
    key: &[u8],
    (group, consumer): (&[u8], &[u8]),
    id: StreamId,
    delivered_ms: u64,
    deliveries: u64,
    last: StreamId,
) {
    let (id, last) = (IdText::new(id), IdText::new(last));
    let (delivered_ms, deliveries) = (delivered_ms.to_string(), deliveries.to_string());
    cx.rewrite(&[
        b"XCLAIM",
        key,
        group,
        consumer,
        b"0",
        id.as_bytes(),
        b"TIME",
        delivered_ms.as_bytes(),
        b"RETRYCOUNT",
        deliveries.as_bytes(),
        b"FORCE",
        b"JUSTID",
        b"LASTID",
        last.as_bytes(),
    ]);
}

pub(super) const XAUTOCLAIM: Command = Command {
    name: "xautoclaim",
    group: Group::Stream,
    since: "6.2.0",
    summary: "Takes over a group's entries that have been pending too long.",
    complexity: "O(1)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[
        key("key"),
        string("group"),
        string("consumer"),
        string("min-idle-time"),
        string("start"),
        int("count").token("COUNT").optional(),
        flag("JUSTID").optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    history: &[(
        "7.0.0",
        "Returns the IDs of deleted entries that it dropped from the pending ones.",
    )],
    ..runs(xautoclaim)
};

/// How many pending entries are looked at for each one that may be claimed.
const LOOKS: i64 = 10;
/// The greatest COUNT: so many ids would still fit into memory's addresses.
const COUNT_MAX: i64 = i64::MAX / 16;

fn xautoclaim(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name, now_ms) = (args.at(1), args.at(2), cx.now_ms);
    cx.tell_if_missing(key);
    let min_idle_ms = number::int(args.at(4))
        .map_err(|_| CommandError::text("ERR Invalid min-idle-time argument for XAUTOCLAIM"))?;
    let start = parse_start(args.at(5))?;
    let (mut count, mut just_ids, mut at) = (100, false, 6);
    while at < args.len() {
        if args.is(at, "JUSTID") {
            just_ids = true;
            at += 1;
        } else if args.is(at, "COUNT") && at + 1 < args.len() {
            count = structure::decimal::parse(args.at(at + 1))
                .filter(|count| (1..=COUNT_MAX).contains(count))
                .ok_or("ERR COUNT must be > 0")?;
            at += 2;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let stream = edit_stream(cx, key)?.ok_or_else(|| no_group(key, name))?;
    let found = stream.group_and_entries(name);
    let (group, entries) = found.ok_or_else(|| no_group(key, name))?;
    let (consumer, created) = group.add_consumer(args.at(3), now_ms);
    let min_idle_ms = u64::try_from(min_idle_ms).unwrap_or(0);
    let scan = Scan::of(group, entries, start, count, |pending| {
        is_idle(pending, min_idle_ms, now_ms)
    });

    out.array(3);
    write_id(out, scan.next);
    out.array(scan.claimed.len());
    let mut changed = Changed {
        consumer: created,
        ..Changed::default()
    };
    for pending in &scan.claimed {
        let more = u64::from(!just_ids);
        let deliveries = pending.deliveries.saturating_add(more).min(DELIVERIES_MAX);
        group.hold(pending.id, consumer, now_ms, deliveries);
        changed.claimed.push((pending.id, deliveries));
        match entries.get(pending.id).filter(|_| !just_ids) {
            Some(entry) => write_entry(out, entry),
            None => write_id(out, pending.id),
        }
    }
    out.array(scan.deleted.len());
    for id in &scan.deleted {
        group.acknowledge(*id);
        write_id(out, *id);
    }
    saw(group, consumer, now_ms, !scan.claimed.is_empty());
    let last = group.last_delivered();
    changed.deleted = scan.deleted;
    changed.tell(cx, args, now_ms, last);
    Ok(())
}

/// What XAUTOCLAIM found.
struct Scan {
    claimed: Vec<PendingEntry>,
    deleted: Vec<StreamId>,
    /// Where the next scan goes on; `0-0` at the end.
    next: StreamId,
}

impl Scan {
    fn of(
        group: &stream::Group,
        entries: EntriesView<'_>,
        start: StreamId,
        count: i64,
        is_idle: impl Fn(&PendingEntry) -> bool,
    ) -> Self {
        let mut scan = Self {
            claimed: Vec::new(),
            deleted: Vec::new(),
            next: StreamId::MIN,
        };
        let (mut count, mut looks) = (count, count.saturating_mul(LOOKS));
        for pending in group.pending_range(start, StreamId::MAX, None) {
            if count == 0 || looks == 0 {
                scan.next = pending.id;
                break;
            }
            looks -= 1;
            if entries.get(pending.id).is_none() {
                scan.deleted.push(pending.id);
            } else if is_idle(&pending) {
                scan.claimed.push(pending);
            } else {
                continue;
            }
            count -= 1;
        }
        scan
    }
}
