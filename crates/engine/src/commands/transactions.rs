//! MULTI, EXEC and WATCH.
//!
//! Queueing is the executor's: a session with `multi` set has its commands kept, not run. WATCH
//! marks keys in their stripes; whoever changes one breaks the session's flag.

use std::sync::Arc;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::session::{Multi, Watch};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[DISCARD, EXEC, MULTI, UNWATCH, WATCH];

const DISCARD: Command = Command {
    name: "discard",
    group: Group::Transactions,
    since: "2.0.0",
    summary: "Drops the queued commands and ends the transaction.",
    complexity: "O(N)",
    arity: Arity::exactly(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::TRANSACTION,
    reply: &[Shape::Ok],
    ..runs(discard)
};

fn discard(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if cx.session.multi.take().is_none() {
        return Err("ERR DISCARD without MULTI".into());
    }
    forget_watches(cx);
    out.ok();
    Ok(())
}

const EXEC: Command = Command {
    name: "exec",
    group: Group::Transactions,
    since: "1.2.0",
    summary: "Runs the queued commands as one step.",
    arity: Arity::exactly(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::SKIP_SLOWLOG),
    acl: Acl::TRANSACTION,
    reply: &[Shape::Array, Shape::Null],
    ..runs(exec)
};

/// The executor runs EXEC itself: only it can call other handlers. This is reached by nobody.
fn exec(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err("ERR EXEC without MULTI".into())
}

const MULTI: Command = Command {
    name: "multi",
    group: Group::Transactions,
    since: "1.2.0",
    summary: "Starts to queue commands for a transaction.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::TRANSACTION,
    reply: &[Shape::Ok],
    ..runs(multi)
};

fn multi(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if cx.session.multi.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    cx.session.multi = Some(Box::new(Multi::default()));
    out.ok();
    Ok(())
}

const UNWATCH: Command = Command {
    name: "unwatch",
    group: Group::Transactions,
    since: "2.2.0",
    summary: "Forgets the watched keys.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::TRANSACTION,
    reply: &[Shape::Ok],
    ..runs(unwatch)
};

fn unwatch(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    forget_watches(cx);
    out.ok();
    Ok(())
}

/// Ends all watches. The stripes of the watched keys are locked.
pub fn forget_watches(cx: &mut Context<'_>) {
    for watch in std::mem::take(&mut cx.session.watches) {
        let flag = cx.session.watch_broken.clone();
        cx.stripe(watch.hash)
            .watchers
            .remove(watch.db, &watch.key, &flag);
    }
    cx.session.watch_broken = Arc::default();
}

const WATCH: Command = Command {
    name: "watch",
    group: Group::Transactions,
    since: "2.2.0",
    summary: "Makes the next transaction fail if one of the keys changes.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::TRANSACTION,
    keys: &[KeySpec::at(1).last(-1).ro()],
    args: &[key("key").multiple()],
    reply: &[Shape::Ok],
    ..runs(watch)
};

fn watch(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if cx.session.multi.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let db = cx.session.db;
    for key in args.from(1).iter() {
        let hash = cx.hash(key);
        let known = |watch: &Watch| watch.db == db && &*watch.key == key;
        if cx.session.watches.iter().any(known) {
            continue;
        }
        let now_ms = cx.now_ms;
        let flag = cx.session.watch_broken.clone();
        let stripe = cx.stripe(hash);
        let was_dead = stripe
            .db(db)
            .is_some_and(|db| db.is_dead(hash, key, now_ms));
        stripe.watchers.add(db, key, &flag, was_dead);
        cx.session.watches.push(Watch {
            db,
            key: key.into(),
            hash,
            was_dead,
        });
    }
    out.ok();
    Ok(())
}
