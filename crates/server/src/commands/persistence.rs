//! Saving: snapshots and the append-only file.

use std::sync::atomic::Ordering;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::persistence::snapshot::{self, Busy, Target};
use crate::persistence::{self, log_thread};

/// The family.
pub const COMMANDS: &[Command] = &[BGREWRITEAOF, BGSAVE, LASTSAVE, SAVE];

const REWRITING: CommandError =
    CommandError::text("ERR Background append only file rewriting already in progress");

const SAVING: CommandError = CommandError::text("ERR Background save already in progress");

const BGREWRITEAOF: Command = Command {
    name: "bgrewriteaof",
    group: Group::Server,
    since: "1.0.0",
    summary: "Rewrites the append-only file in the background.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::NO_ASYNC_LOADING),
    reply: &[Shape::Simple],
    ..runs_on_all(bgrewriteaof)
};

fn bgrewriteaof(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let shared = ThreadHost::of(cx).shared.clone();
    let config = shared.config();
    if config.appendonly && !shared.log.is_stopping() && shared.log.is_elsewhere(&config) {
        // The log goes where `dir` is now: this one ends, and another begins there with a base.
        log_thread::stop(&shared);
    }
    let is_ending = shared.log.is_on.load(Ordering::Acquire) && shared.log.is_stopping();
    if is_ending || shared.backup.holds_rewrites() {
        // Another log follows, which begins with a base, or the backup's end.
        shared.log.is_scheduled.store(true, Ordering::Relaxed);
        out.simple("Background append only file rewriting scheduled");
        return Ok(());
    }
    match log_thread::rewrite(&shared, cx.shared, &mut cx.keyspace) {
        Ok(()) => out.simple("Background append only file rewriting started"),
        Err(Busy::Base) => return Err(REWRITING),
        Err(Busy::Snapshot) => {
            shared.log.is_scheduled.store(true, Ordering::Relaxed);
            out.simple("Background append only file rewriting scheduled");
        }
    }
    Ok(())
}

const BGSAVE: Command = Command {
    name: "bgsave",
    group: Group::Server,
    since: "1.0.0",
    summary: "Writes a snapshot to disk in the background.",
    complexity: "O(1)",
    arity: Arity::at_least(1),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::NO_ASYNC_LOADING),
    args: &[flag("SCHEDULE").since("3.2.2").optional()],
    reply: &[Shape::Simple],
    history: &[("3.2.2", "Takes `SCHEDULE`.")],
    ..runs_on_all(bgsave)
};

fn bgsave(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let may_wait = match args.len() {
        1 => false,
        2 if args.is(1, "SCHEDULE") => true,
        _ => return Err(CommandError::Syntax),
    };
    let shared = ThreadHost::of(cx).shared.clone();
    let begun = snapshot::start(&shared, cx.shared, &mut cx.keyspace, Target::Rdb);
    match begun {
        Ok(_) => out.simple("Background saving started"),
        Err(Busy::Snapshot) => {
            return Err(CommandError::text(
                "ERR Background save already in progress",
            ));
        }
        Err(Busy::Base) if may_wait => {
            shared.snapshots.is_scheduled.store(true, Ordering::Relaxed);
            out.simple("Background saving scheduled");
        }
        Err(Busy::Base) => {
            return Err(CommandError::text(
                "ERR Another child process is active (AOF?): can't BGSAVE right now. Use BGSAVE \
                 SCHEDULE in order to schedule a BGSAVE whenever possible.",
            ));
        }
    }
    Ok(())
}

const LASTSAVE: Command = Command {
    name: "lastsave",
    group: Group::Server,
    since: "1.0.0",
    summary: "Returns when the last snapshot was written, in Unix seconds.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
    acl: Acl::ADMIN.with(Acl::DANGEROUS),
    reply: &[Shape::Int],
    tips: &["nondeterministic_output"],
    ..runs(lastsave)
};

fn lastsave(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let status = &ThreadHost::of(cx).shared.persistence;
    let saved_s = status.last_save_s.load(Ordering::Relaxed);
    out.int(i64::try_from(saved_s).unwrap_or(i64::MAX));
    Ok(())
}

const SAVE: Command = Command {
    name: "save",
    group: Group::Server,
    since: "1.0.0",
    summary: "Writes a snapshot to disk while everyone waits.",
    complexity: "O(N)",
    arity: Arity::exactly(1),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::NO_ASYNC_LOADING)
        .with(Flags::NO_MULTI),
    reply: &[Shape::Ok],
    ..runs_on_all(save)
};

fn save(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let host = ThreadHost::of(cx);
    let (shared, config) = (host.shared.clone(), host.config.clone());
    if shared.snapshots.busy() == Some(Busy::Snapshot) {
        return Err(SAVING);
    }
    match persistence::save(&shared, &config, &cx.keyspace) {
        Ok(()) => {
            out.ok();
            Ok(())
        }
        Err(_) => Err(CommandError::text("ERR")),
    }
}
