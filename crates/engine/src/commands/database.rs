//! Whole databases: DBSIZE, FLUSHALL, FLUSHDB and SWAPDB.
//!
//! Every stripe is locked, and in each a table changes hands: that takes microseconds whatever the
//! number of keys. What was in it is freed later, in slices, so ASYNC and SYNC are the same.
//!
//! # Invariants
//! - A transaction fails if a key that it watches was there before or is there after.
//! - Clients that wait for a key hear of its coming, and those who asked for it of its going.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use resp::{Args, Writer};

use super::generic::db_index;
use crate::handler::runs_on_all;
use crate::keyspace::Stripe;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[DBSIZE, FLUSHALL, FLUSHDB, SWAPDB];

const DBSIZE: Command = Command {
    name: "dbsize",
    group: Group::Server,
    since: "1.0.0",
    summary: "Counts the keys of the database.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    reply: &[Shape::Int],
    tips: &["request_policy:all_shards", "response_policy:agg_sum"],
    ..runs_on_all(dbsize)
};

fn dbsize(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let db = cx.session.db;
    let len = |index| cx.keyspace.get(index).db(db).map_or(0, |db| db.table.len());
    out.count((0..cx.keyspace.count()).map(len).sum());
    Ok(())
}

/// ASYNC or SYNC, or nothing.
fn check_mode(args: Args<'_>) -> Result<(), CommandError> {
    match args.len() {
        1 => Ok(()),
        2 if args.is(1, "ASYNC") || args.is(1, "SYNC") => Ok(()),
        _ => Err(CommandError::Syntax),
    }
}

const FLUSHALL: Command = Command {
    name: "flushall",
    group: Group::Server,
    since: "1.0.0",
    summary: "Deletes the keys of all databases.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE.with(Acl::DANGEROUS),
    args: &[one_of(
        "flush-type",
        &[flag("ASYNC").since("4.0.0"), flag("SYNC").since("6.2.0")],
    )
    .optional()],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    history: &[
        ("4.0.0", "Takes `ASYNC`."),
        (
            "6.2.0",
            "Takes `SYNC`, and follows `lazyfree-lazy-user-flush` without either.",
        ),
    ],
    ..runs_on_all(flushall)
};

fn flushall(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    check_mode(args)?;
    for index in 0..cx.keyspace.count() {
        for db in 0..cx.keyspace.get(index).db_count() {
            flush(cx, index, db);
        }
    }
    cx.changed_all();
    out.ok();
    Ok(())
}

const FLUSHDB: Command = Command {
    name: "flushdb",
    group: Group::Server,
    since: "1.0.0",
    summary: "Deletes the keys of the database.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE.with(Acl::DANGEROUS),
    args: &[one_of(
        "flush-type",
        &[flag("ASYNC").since("4.0.0"), flag("SYNC").since("6.2.0")],
    )
    .optional()],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    history: &[
        ("4.0.0", "Takes `ASYNC`."),
        (
            "6.2.0",
            "Takes `SYNC`, and follows `lazyfree-lazy-user-flush` without either.",
        ),
    ],
    ..runs_on_all(flushdb)
};

fn flushdb(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    check_mode(args)?;
    for index in 0..cx.keyspace.count() {
        flush(cx, index, cx.session.db);
    }
    cx.changed_all();
    out.ok();
    Ok(())
}

/// Empties one database's share of a stripe.
pub fn flush(cx: &mut Context<'_>, index: usize, db: u32) {
    let shared = cx.shared;
    let stripe = cx.keyspace.get_mut(index);
    if stripe.db(db).is_none_or(|db| db.table.is_empty()) {
        return;
    }
    let there = |stripe: &Stripe, key: &[u8]| holds(stripe, db, shared.hash(key), key);
    stripe.watchers.touch_gone(db, |key| there(stripe, key));
    let waited = stripe.waiters.keys_of(db);
    let gone = waited.into_iter().filter(|key| there(stripe, key));
    let gone = gone.map(|key| (db, shared.hash(&key), key));
    cx.effects.ready.extend(gone);
    let count = stripe.flush_db(db, &mut cx.effects.graveyard);
    stripe.stats.changes += count as u64;
}

fn holds(stripe: &Stripe, db: u32, hash: u64, key: &[u8]) -> bool {
    stripe
        .db(db)
        .is_some_and(|db| db.table.find(hash, key).is_some())
}

const SWAPDB: Command = Command {
    name: "swapdb",
    group: Group::Server,
    since: "4.0.0",
    summary: "Swaps two databases in one step.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE.with(Acl::DANGEROUS),
    args: &[int("index1"), int("index2")],
    reply: &[Shape::Ok],
    ..runs_on_all(swapdb)
};

fn swapdb(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let first = swapped(cx, args.at(1), "ERR invalid first DB index")?;
    let second = swapped(cx, args.at(2), "ERR invalid second DB index")?;
    let (first, second) = (first?, second?);
    if first != second {
        for index in 0..cx.keyspace.count() {
            swap(cx, index, first, second);
        }
        cx.changed_all();
    }
    out.ok();
    Ok(())
}

/// What SWAPDB says of a word that is no number comes before what it says of one out of range.
fn swapped(
    cx: &Context<'_>,
    word: &[u8],
    not_a_number: &'static str,
) -> Result<Result<u32, CommandError>, CommandError> {
    match db_index(cx, word) {
        Err(CommandError::DbRange) => Ok(Err(CommandError::DbRange)),
        Err(_) => Err(not_a_number.into()),
        found => Ok(found),
    }
}

/// Exchanges two databases' shares of a stripe.
fn swap(cx: &mut Context<'_>, index: usize, first: u32, second: u32) {
    let shared = cx.shared;
    let stripe = cx.keyspace.get_mut(index);
    if stripe.db_count() <= first.min(second) {
        return;
    }
    let either = |key: &[u8]| {
        let hash = shared.hash(key);
        holds(stripe, first, hash, key) || holds(stripe, second, hash, key)
    };
    for db in [first, second] {
        stripe.watchers.touch_where(db, either);
        let waited = stripe.waiters.keys_of(db);
        let told = waited.into_iter().filter(|key| either(key));
        let told = told.map(|key| (db, shared.hash(&key), key));
        cx.effects.ready.extend(told);
    }
    stripe.swap_dbs(first, second);
    stripe.stats.changes += 1;
}
