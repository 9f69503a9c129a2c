//! Walking a database: KEYS, SCAN and RANDOMKEY.
//!
//! A cursor is a stripe and a place in it, in hash order: `| 0 | stripe 8 | place 48 |`. Tables
//! keep their keys in hash order whatever they grow or shrink to, so a cursor stays good for ever,
//! and a key that is there from the first call to the last is shown.
//!
//! # Invariants
//! - SCAN stops at about COUNT keys, and earlier when it met little but emptiness; a database of
//!   at most COUNT keys comes back whole, with cursor 0.
//! - RANDOMKEY draws every key of a database with the same chance.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::record::RecordRef;

use crate::glob;
use crate::handler::{runs, runs_on_all};
use crate::keyspace::is_past;
use crate::object::{Kind, Object};
use crate::{Command, CommandError, Context};

/// Bits of a place within a stripe.
const PLACE_BITS: u32 = 48;

/// Calls into a table, for one SCAN that finds nothing: each looks at about eighty buckets.
const FRUITLESS_MAX: usize = 64;

/// Dead keys that RANDOMKEY removes before it takes the first living one it meets.
const DRAWS_MAX: usize = 100;

pub(super) const KEYS: Command = Command {
    name: "keys",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Lists the keys that match a pattern.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE.with(Acl::DANGEROUS),
    args: &[pattern("pattern")],
    reply: &[Shape::Array],
    tips: &["request_policy:all_shards", "nondeterministic_output_order"],
    ..runs_on_all(keys)
};

fn keys(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let pattern = args.at(1);
    let everything = pattern == b"*";
    let mark = out.begin_array();
    let mut count = 0;
    for index in 0..cx.keyspace.count() {
        let Some(db) = cx.keyspace.get(index).db(cx.session.db) else {
            continue;
        };
        for record in db.table.iter() {
            let key = record.key();
            if (everything || glob::matches(pattern, key)) && !is_past(record, cx.now_ms) {
                out.bulk(key);
                count += 1;
            }
        }
    }
    out.end_array(mark, count);
    Ok(())
}

/// What SCAN is asked to show.
struct Filter<'a> {
    pattern: Option<&'a [u8]>,
    /// A type's name, which may be none that exists.
    kind: Option<&'a [u8]>,
    now_ms: u64,
}

impl Filter<'_> {
    fn shows(&self, record: RecordRef<'_, Object>) -> bool {
        let is_kind = |kind: &[u8]| {
            Kind::of(record.value())
                .name()
                .as_bytes()
                .eq_ignore_ascii_case(kind)
        };
        !is_past(record, self.now_ms)
            && self.kind.is_none_or(is_kind)
            && self
                .pattern
                .is_none_or(|pattern| glob::matches(pattern, record.key()))
    }
}

pub(super) const SCAN: Command = Command {
    name: "scan",
    group: Group::Generic,
    since: "2.8.0",
    summary: "Steps through the keys of the database.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    args: &[
        int("cursor"),
        pattern("pattern").token("MATCH").optional(),
        int("count").token("COUNT").optional(),
        string("type").token("TYPE").since("6.0.0").optional(),
    ],
    reply: &[Shape::Array],
    tips: &[
        "nondeterministic_output",
        "request_policy:special",
        "response_policy:special",
    ],
    history: &[("6.0.0", "Takes `TYPE`.")],
    ..runs_on_all(scan)
};

fn scan(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let from = crate::number::cursor(args.at(1))?;
    let mut wanted = 10;
    let mut filter = Filter {
        pattern: None,
        kind: None,
        now_ms: cx.now_ms,
    };
    let mut index = 2;
    while index < args.len() {
        if args.is(index, "NOVALUES") {
            return Err("ERR NOVALUES option can only be used in HSCAN".into());
        }
        let value = args.get(index + 1).ok_or(CommandError::Syntax)?;
        if args.is(index, "COUNT") {
            let count = crate::number::int(value)?;
            wanted = usize::try_from(count).unwrap_or(0);
            if wanted == 0 {
                return Err(CommandError::Syntax);
            }
        } else if args.is(index, "MATCH") {
            filter.pattern = (value != b"*").then_some(value);
        } else if args.is(index, "TYPE") {
            filter.kind = Some(value);
        } else {
            return Err(CommandError::Syntax);
        }
        index += 2;
    }
    let (mut found, next) = walk(cx, from, wanted);
    found.retain(|record| filter.shows(*record));
    out.array(2);
    out.text(&next.to_string());
    out.array(found.len());
    found.iter().for_each(|record| out.bulk(record.key()));
    Ok(())
}

/// About `wanted` records from a cursor on, and where to go on; 0 at the end.
fn walk<'c>(cx: &'c Context<'_>, from: u64, wanted: usize) -> (Vec<RecordRef<'c, Object>>, u64) {
    let (db, stripes) = (cx.session.db, cx.keyspace.count());
    let tables = || (0..stripes).filter_map(|index| cx.keyspace.get(index).db(db));
    let is_small = tables().map(|db| db.table.len()).sum::<usize>() <= wanted;
    let mut found = Vec::new();
    let mut place = from & ((1 << PLACE_BITS) - 1);
    let mut stripe = usize::try_from(from >> PLACE_BITS).unwrap_or(usize::MAX);
    let mut fruitless = 0;
    while stripe < stripes {
        let left = if is_small {
            usize::MAX
        } else {
            wanted.saturating_sub(found.len())
        };
        if left == 0 || fruitless > FRUITLESS_MAX {
            return (found, (stripe as u64) << PLACE_BITS | place);
        }
        let before = found.len();
        let table = cx.keyspace.get(stripe).db(db).map(|db| &db.table);
        let next = table.and_then(|table| {
            fruitless += usize::from(!table.is_empty());
            table.scan(place, left, |record| found.push(record))
        });
        if is_small || found.len() > before {
            fruitless = 0;
        }
        (stripe, place) = match next {
            Some(next) => (stripe, next),
            None => (stripe + 1, 0),
        };
    }
    (found, 0)
}

pub(super) const CLUSTERSCAN: Command = Command {
    name: "clusterscan",
    group: Group::Cluster,
    since: "9.1.0",
    summary: "Steps through the keys of a cluster, as in Valkey.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).not_key()],
    args: &[
        string("cursor"),
        pattern("match-pattern").token("MATCH").optional(),
        int("count").token("COUNT").optional(),
        string("type").token("TYPE").optional(),
        int("slot").token("SLOT").optional(),
    ],
    reply: &[Shape::Array],
    tips: &[
        "nondeterministic_output",
        "request_policy:special",
        "response_policy:special",
    ],
    ..runs(clusterscan)
};

/// There is no cluster here, so that there is nothing to scan.
fn clusterscan(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err("ERR This instance has cluster support disabled".into())
}

pub(super) const RANDOMKEY: Command = Command {
    name: "randomkey",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Returns one key of the database at random.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    reply: &[Shape::Bulk, Shape::Null],
    tips: &[
        "request_policy:all_shards",
        "response_policy:special",
        "nondeterministic_output",
    ],
    ..runs_on_all(randomkey)
};

fn randomkey(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (db, now_ms) = (cx.session.db, cx.now_ms);
    for _ in 0..DRAWS_MAX {
        let Some(record) = draw(cx) else {
            out.null();
            return Ok(());
        };
        if !is_past(record, now_ms) {
            out.bulk(record.key());
            return Ok(());
        }
        let key = record.key().to_vec();
        cx.expire(cx.hash(&key), &key);
    }
    let living = (0..cx.keyspace.count())
        .filter_map(|index| cx.keyspace.get(index).db(db))
        .flat_map(|db| db.table.iter())
        .find(|record| !is_past(*record, now_ms));
    match living {
        Some(record) => out.bulk(record.key()),
        None => out.null(),
    }
    Ok(())
}

/// Any record of the session's database, each as likely as any other.
fn draw<'c>(cx: &'c mut Context<'_>) -> Option<RecordRef<'c, Object>> {
    let (db, stripes) = (cx.session.db, cx.keyspace.count());
    let host = &mut *cx.host;
    let keyspace = &cx.keyspace;
    let len = |index: usize| keyspace.get(index).db(db).map_or(0, |db| db.table.len());
    let total = (0..stripes).map(len).sum::<usize>() as u64;
    let mut left = host.random().checked_rem(total)?;
    let stripe = (0..stripes).find(|&index| match left.checked_sub(len(index) as u64) {
        Some(rest) => {
            left = rest;
            false
        }
        None => true,
    })?;
    let table = &keyspace.get(stripe).db(db)?.table;
    table.random(|below| host.random() % below)
}
