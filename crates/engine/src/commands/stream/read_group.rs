//! XREADGROUP: reading as one consumer of a group.
//!
//! A word `>` asks for what no consumer of the group has had yet, any id for what is pending for
//! this one after it. With CLAIM, what has been pending too long comes before the new.
//!
//! # Invariants
//! - Every stream is checked before any group changes: an error has no effect.
//! - A delivered entry is pending unless NOACK; claimed ones stay pending whatever was asked.
//! - A client that waits in vain has still been seen.
//!
//! # Why does a client that waits to claim look again by the clock?
//! An entry becomes claimable without anybody doing anything. The client is run again when the
//! oldest pending entry comes of age, and at least once each idle time, for those delivered since.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};
use structure::stream::{self, ConsumerIndex, DELIVERIES_MAX, EntriesView, StreamId};

use super::claim::{log_claim, saw};
use super::group::consumer_created;
use super::id::{self, IdText, write_fields, write_id};
use super::pending::millis;
use super::read::{Options, Reply};
use super::{edit_stream, shown};
use crate::handler::runs;
use crate::object::Object;
use crate::{Command, CommandError, Context};

pub(super) const XREADGROUP: Command = Command {
    name: "xreadgroup",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Returns new or pending entries of several streams to a consumer of a group.",
    arity: Arity::at_least(7),
    flags: Flags::WRITE.with(Flags::BLOCKING),
    acl: Acl::STREAM,
    keys: &[KeySpec::after("STREAMS", 4)
        .last(-1)
        .limit(2)
        .ro()
        .access()
        .incomplete()
        .note("A word before the option may be STREAMS too.")],
    special: Special::Streams,
    args: &[
        block("group-block", &[string("group"), string("consumer")]).token("GROUP"),
        int("count").token("COUNT").optional(),
        int("maxcount").token("MAXCOUNT").since("8.10.0").optional(),
        int("maxsize").token("MAXSIZE").since("8.10.0").optional(),
        int("milliseconds").token("BLOCK").optional(),
        int("min-idle-time")
            .token("CLAIM")
            .since("8.4.0")
            .optional(),
        flag("NOACK").optional(),
        block("streams", &[key("key").multiple(), string("id").multiple()]).token("STREAMS"),
    ],
    reply: &[Shape::Map, Shape::Null],
    history: &[
        ("8.4.0", "Takes `CLAIM`."),
        ("8.10.0", "Takes `MAXCOUNT` and `MAXSIZE`."),
    ],
    ..runs(xreadgroup)
};

/// The least time between two looks of a client that waits to claim.
const LOOK_MS_MIN: u64 = 10;

fn xreadgroup(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut options = Options::parse(cx, args, true)?;
    let names = options.group.unwrap_or_default();
    if options.streams == 1 {
        cx.tell_if_missing(options.stream(args, 0).0);
    } else {
        for index in 0..options.streams {
            let (key, word) = options.stream(args, index);
            cx.tell_if_missing(key);
            let stream = match cx.view_object(key)? {
                None => None,
                Some(Object::Stream(stream)) => Some(stream),
                Some(_) => return Err(CommandError::WrongType),
            };
            let group = stream.and_then(|stream| stream.group(names.0));
            group.ok_or_else(|| no_group(key, names.0))?;
            From::parse(word)?;
        }
    }
    let mut reply = Reply::begin(&options, out);
    let mut look_ms = None;
    for index in 0..options.streams {
        if !reply.has_room(out) {
            break;
        }
        let (key, word) = options.stream(args, index);
        // Computed once: finding, counting and telling all ask for it.
        cx.known_hash = Some((key.as_ptr(), cx.hash(key)));
        let now_ms = cx.now_ms;
        let is_logged = cx.is_logged();
        let found = edit_stream(cx, key)?.and_then(|stream| stream.group_and_entries(names.0));
        let (group, entries) = found.ok_or_else(|| no_group(key, names.0))?;
        let from = From::parse(word)?;
        let (consumer, created) = group.add_consumer(names.1, now_ms);
        let mut delivery = Delivery {
            key,
            group,
            entries,
            consumer,
            now_ms,
            log: is_logged.then(Vec::new),
            look_ms: None,
        };
        let changed = match from {
            From::New => delivery.deliver(&options, &mut reply, out),
            From::After(id) => {
                delivery.repeat(id, &mut reply, out);
                // Redis claims nothing from the streams behind it either.
                options.claim_ms = None;
                false
            }
        };
        look_ms = look_ms.into_iter().chain(delivery.look_ms).min();
        let log = delivery.log.take().filter(|log| !log.is_empty());
        let (last, read) = (group.last_delivered(), group.entries_read);
        if created {
            consumer_created(cx, key);
            if is_logged {
                cx.rewrite(&[b"XGROUP", b"CREATECONSUMER", key, names.0, names.1]);
            }
        }
        if changed {
            cx.changed_unwatched(key);
        }
        if let Some(log) = log {
            log_delivery(cx, key, names, &log, last);
        }
        if changed && is_logged {
            log_position(cx, key, names.0, last, read);
        }
    }
    if !reply.is_empty() {
        reply.end(out);
    } else if let Some(deadline_ms) = options.block.filter(|_| cx.may_block) {
        cx.block(options.waiting(deadline_ms, true, Vec::new()));
        if let Some(look_ms) = look_ms {
            cx.retry_at(look_ms);
        }
    } else {
        out.null_array();
    }
    Ok(())
}

fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    let (key, group) = (shown(key), shown(group));
    CommandError::Text(
        format!(
            "NOGROUP No such key '{key}' or consumer group '{group}' \
             in XREADGROUP with GROUP option"
        )
        .into(),
    )
}

/// From where a stream is read.
#[derive(Clone, Copy)]
enum From {
    /// `>`: what is new to the group.
    New,
    /// What is pending for the consumer, after this id.
    After(StreamId),
}

impl From {
    #[inline]
    fn parse(word: &[u8]) -> Result<Self, CommandError> {
        match word {
            b">" => Ok(Self::New),
            b"$" | b"+" => {
                let word = shown(word);
                Err(CommandError::err(format!(
                    "The {word} ID is meaningless in the context of XREADGROUP: you want to read \
                     the history of this consumer by specifying a proper ID, or use the > ID to \
                     get new messages. The {word} ID would just return an empty result set."
                )))
            }
            _ => Ok(match id::parse(word, 0)? {
                // Nothing can be pending after it: to Redis it is what `>` says.
                StreamId::MAX => Self::New,
                id => Self::After(id),
            }),
        }
    }
}

/// One stream's part of the reply, while its group is being changed.
struct Delivery<'a> {
    key: &'a [u8],
    group: &'a mut stream::Group,
    entries: EntriesView<'a>,
    consumer: ConsumerIndex,
    now_ms: u64,
    /// What became pending for the consumer, with its deliveries, if anybody wants to know.
    log: Option<Vec<(StreamId, u64)>>,
    /// When something may be there to claim.
    look_ms: Option<u64>,
}

impl Delivery<'_> {
    /// Delivers what is new, and with CLAIM what has been pending too long. True where the group
    /// changed.
    #[inline]
    fn deliver(&mut self, options: &Options<'_>, reply: &mut Reply, out: &mut Writer<'_>) -> bool {
        let claimed = match options.claim_ms {
            Some(min_idle_ms) => self.claimable(min_idle_ms, reply.left(0)),
            None => Vec::new(),
        };
        let mut unread = self.entries.unread(self.group);
        let first = match claimed.is_empty() {
            true => unread.next(),
            false => None,
        };
        if claimed.is_empty() && first.is_none() {
            saw(self.group, self.consumer, self.now_ms, false);
            return false;
        }
        let mark = reply.begin_stream(self.key, out);
        let mut count = 0;
        for pending in &claimed {
            if !reply.takes(count, out) {
                break;
            }
            count += usize::from(self.claim(*pending, reply, out));
        }
        let was_active = count > 0 || !options.no_ack;
        let mut next = first;
        let mut moved = false;
        while reply.takes(count, out) {
            let Some(entry) = next.take().or_else(|| unread.next()) else {
                break;
            };
            let id = entry.id;
            if options.claim_ms.is_some() {
                out.array(4);
                write_id(out, id);
                write_fields(out, entry.fields);
                out.int(0);
                out.int(0);
                reply.counted();
            } else {
                reply.entry(entry, out);
            }
            count += 1;
            moved = true;
            self.group.advance(id, &self.entries.progress);
            if !options.no_ack {
                self.group.hold(id, self.consumer, self.now_ms, 1);
                if let Some(log) = &mut self.log {
                    log.push((id, 1));
                }
            }
        }
        if moved {
            self.entries.bookmark(self.group, &unread);
        }
        reply.end_stream(mark, count, out);
        saw(
            self.group,
            self.consumer,
            self.now_ms,
            was_active && count > 0,
        );
        count > 0
    }

    /// What may be claimed, its entries being there; notes when to look again.
    fn claimable(&mut self, min_idle_ms: u64, count: usize) -> Vec<stream::PendingEntry> {
        let entries = self.entries;
        let oldest_ms = self.now_ms.checked_sub(min_idle_ms);
        let is_there = |id| entries.get(id).is_some();
        let claimed = self.group.claimable(oldest_ms, count, is_there);
        if claimed.is_empty() {
            let next = self.group.claimable(Some(u64::MAX), 1, is_there);
            let of_age = next
                .first()
                .map(|pending| pending.delivered_ms.saturating_add(min_idle_ms));
            let later = self.now_ms.saturating_add(min_idle_ms);
            let soonest = self.now_ms.saturating_add(LOOK_MS_MIN);
            self.look_ms = Some(of_age.map_or(later, |ms| ms.min(later)).max(soonest));
        }
        claimed
    }

    /// Delivers a pending entry to the consumer.
    fn claim(
        &mut self,
        pending: stream::PendingEntry,
        reply: &mut Reply,
        out: &mut Writer<'_>,
    ) -> bool {
        let Some(entry) = self.entries.get(pending.id) else {
            return false;
        };
        out.array(4);
        write_id(out, entry.id);
        write_fields(out, entry.fields);
        out.int(millis(self.now_ms.saturating_sub(pending.delivered_ms)));
        out.int(millis(pending.deliveries));
        reply.counted();
        let deliveries = pending.deliveries.saturating_add(1).min(DELIVERIES_MAX);
        self.group
            .hold(entry.id, self.consumer, self.now_ms, deliveries);
        if let Some(log) = &mut self.log {
            log.push((entry.id, deliveries));
        }
        true
    }

    /// Delivers again what is pending for the consumer. Its stream always has a part in the reply.
    fn repeat(&mut self, after: StreamId, reply: &mut Reply, out: &mut Writer<'_>) {
        saw(self.group, self.consumer, self.now_ms, false);
        let mark = reply.begin_stream(self.key, out);
        let mut repeated = Vec::new();
        if let Some(start) = after.next() {
            let range = self
                .group
                .pending_range(start, StreamId::MAX, Some(self.consumer));
            for pending in range {
                if !reply.takes(repeated.len(), out) {
                    break;
                }
                reply.counted();
                out.array(2);
                write_id(out, pending.id);
                match self.entries.get(pending.id) {
                    Some(entry) => write_fields(out, entry.fields),
                    None => out.null_array(),
                }
                repeated.push((pending.id, pending.deliveries));
            }
        }
        for (id, deliveries) in &repeated {
            if self.entries.get(*id).is_some() {
                let deliveries = deliveries.saturating_add(1).min(DELIVERIES_MAX);
                self.group.hold(*id, self.consumer, self.now_ms, deliveries);
                if let Some(log) = &mut self.log {
                    log.push((*id, deliveries));
                }
            }
        }
        reply.end_stream(mark, repeated.len(), out);
    }
}

/// Logs what became pending for a consumer.
#[cold]
fn log_delivery(
    cx: &mut Context<'_>,
    key: &[u8],
    names: (&[u8], &[u8]),
    log: &[(StreamId, u64)],
    last: StreamId,
) {
    let now_ms = cx.now_ms;
    for (id, deliveries) in log {
        log_claim(cx, key, names, *id, now_ms, *deliveries, last);
    }
}

/// Logs how far a group has read.
#[cold]
fn log_position(cx: &mut Context<'_>, key: &[u8], group: &[u8], last: StreamId, read: Option<u64>) {
    let last = IdText::new(last);
    let read = read.map_or_else(|| "-1".to_owned(), |read| read.to_string());
    cx.rewrite(&[
        b"XGROUP",
        b"SETID",
        key,
        group,
        last.as_bytes(),
        b"ENTRIESREAD",
        read.as_bytes(),
    ]);
}
