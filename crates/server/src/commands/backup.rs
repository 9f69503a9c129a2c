//! BACKUP: copies of the whole log that can be taken away while the server runs.

use command::{Arity, Flags, Group, Shape};
use engine::blocking::{Awaits, Block};
use engine::handler::runs;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::persistence::backup;
use crate::shared::Shared;

/// The family.
pub const COMMANDS: &[Command] = &[BACKUP];

const BACKUP: Command = Command {
    name: "backup",
    group: Group::Server,
    since: "8.10.0",
    summary: "Makes backups of the whole data set.",
    arity: Arity::exactly(2),
    ..Command::container(&[
        BACKUP_ABORT,
        BACKUP_CLEANUP,
        BACKUP_HELP,
        BACKUP_LIST,
        BACKUP_SEAL,
        BACKUP_START,
        BACKUP_STATUS,
    ])
};

const CHANGES: Flags = Flags::ADMIN.with(Flags::NOSCRIPT);
const TELLS: Flags = Flags::ADMIN.with(Flags::STALE);

const BACKUP_ABORT: Command = Command {
    name: "abort",
    group: Group::Server,
    since: "8.10.0",
    summary: "Gives up a backup that was not sealed.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES,
    reply: &[Shape::Ok],
    ..runs(backup_abort)
};

fn backup_abort(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    aside(cx, out, backup::abort)
}

const BACKUP_CLEANUP: Command = Command {
    name: "cleanup",
    group: Group::Server,
    since: "8.10.0",
    summary: "Removes the files of a backup that is over.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES,
    reply: &[Shape::Ok],
    ..runs(backup_cleanup)
};

fn backup_cleanup(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    aside(cx, out, backup::clean_up)
}

const BACKUP_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "8.10.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(backup_help)
};

fn backup_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "BACKUP <subcommand>:",
        "START",
        "    Begins a backup in the directory 'backupdirname': a base, and what changes after it.",
        "SEAL",
        "    Ends it: its files stay as they are from now on.",
        "ABORT",
        "    Gives up a backup that was not sealed.",
        "CLEANUP",
        "    Removes all files in the directory.",
        "STATUS",
        "    How it stands.",
        "LIST",
        "    The paths of its files so far.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const BACKUP_LIST: Command = Command {
    name: "list",
    group: Group::Server,
    since: "8.10.0",
    summary: "Lists the files of the backup that do not change any more.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: TELLS,
    reply: &[Shape::Array],
    ..runs(backup_list)
};

fn backup_list(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let host = ThreadHost::of(cx);
    let paths = backup::paths(&host.config, &host.shared.backup.facts());
    out.array(paths.len());
    paths.iter().for_each(|path| out.text(path));
    Ok(())
}

const BACKUP_SEAL: Command = Command {
    name: "seal",
    group: Group::Server,
    since: "8.10.0",
    summary: "Ends a backup, whose files then stay as they are.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES,
    reply: &[Shape::Ok],
    ..runs(backup_seal)
};

fn backup_seal(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let shared = ThreadHost::of(cx).shared.clone();
    let client = cx.may_block.then_some(cx.session.id);
    backup::begin_seal(&shared, client).map_err(CommandError::err)?;
    match client {
        Some(_) => cx.block(Block::without_keys(Awaits::Host, None)),
        None => out.ok(),
    }
    Ok(())
}

const BACKUP_START: Command = Command {
    name: "start",
    group: Group::Server,
    since: "8.10.0",
    summary: "Begins a backup in the configured directory.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: CHANGES,
    reply: &[Shape::Ok],
    ..runs(backup_start)
};

fn backup_start(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    aside(cx, out, backup::begin)
}

const BACKUP_STATUS: Command = Command {
    name: "status",
    group: Group::Server,
    since: "8.10.0",
    summary: "Says how the backup stands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: TELLS,
    reply: &[Shape::Map],
    ..runs(backup_status)
};

fn backup_status(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let facts = ThreadHost::of(cx).shared.backup.facts();
    let seconds = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    out.map(4);
    out.text("state");
    out.text(facts.state.name());
    out.text("error");
    out.text(&facts.error);
    out.text("start_time");
    out.int(seconds(facts.start_s));
    out.text("end_time");
    out.int(seconds(facts.end_s));
    Ok(())
}

/// Does what waits for the disk while the client waits for it; at once in a transaction.
fn aside(
    cx: &mut Context<'_>,
    out: &mut Writer<'_>,
    work: fn(&Shared) -> Result<(), String>,
) -> Result<(), CommandError> {
    let shared = ThreadHost::of(cx).shared.clone();
    if !cx.may_block {
        work(&shared).map_err(CommandError::err)?;
        out.ok();
        return Ok(());
    }
    cx.block(Block::without_keys(Awaits::Host, None));
    let of_work = shared.clone();
    backup::aside(&shared, Some(cx.session.id), move || work(&of_work));
    Ok(())
}
