//! The server as a whole: its clock, its end, its files, its part in replication, its modules.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::handler::runs;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::{notice, warning};

/// The family.
pub const COMMANDS: &[Command] = &[
    BGREWRITEAOF,
    BGSAVE,
    LASTSAVE,
    MODULE,
    REPLICAOF,
    ROLE,
    SAVE,
    SHUTDOWN,
    SLAVEOF,
    TIME,
];

const NO_FILES: CommandError =
    CommandError::text("ERR this version keeps its data in memory only: it writes no files");
const NO_REPLICATION: CommandError =
    CommandError::text("ERR this version cannot be a replica: only REPLICAOF NO ONE is possible");
const NO_MODULES: CommandError = CommandError::text(
    "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you \
     can run it from a local connection, otherwise you need to set this option in the \
     configuration file, and then restart the server.",
);

//@DECL BGREWRITEAOF
fn bgrewriteaof(
    _: &mut Context<'_>,
    _: Args<'_>,
    _: &mut Writer<'_>,
) -> Result<(), CommandError> {
    Err(NO_FILES)
}

//@DECL BGSAVE
fn bgsave(_: &mut Context<'_>, args: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    match args.len() {
        1 => Err(NO_FILES),
        2 if args.is(1, "SCHEDULE") => Err(NO_FILES),
        _ => Err(CommandError::Syntax),
    }
}

//@DECL LASTSAVE
fn lastsave(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let started_s = ThreadHost::of(cx).shared.started_us / 1_000_000;
    out.int(i64::try_from(started_s).unwrap_or(i64::MAX));
    Ok(())
}

//@DECL MODULE

//@DECL MODULE_HELP
fn module_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "MODULE <subcommand> [<argument> ...]:",
        "LIST",
        "    The loaded modules: this server has none.",
        "LOAD <path> [<argument> ...]",
        "    Refused.",
        "LOADEX <path> [CONFIG <name> <value> ...] [ARGS ...]",
        "    Refused.",
        "UNLOAD <name>",
        "    Refused.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

//@DECL MODULE_LIST
fn module_list(
    _: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    out.array(0);
    Ok(())
}

//@DECL MODULE_LOAD
fn module_load(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err(NO_MODULES)
}

//@DECL MODULE_LOADEX
fn module_loadex(
    _: &mut Context<'_>,
    _: Args<'_>,
    _: &mut Writer<'_>,
) -> Result<(), CommandError> {
    Err(NO_MODULES)
}

//@DECL MODULE_UNLOAD
fn module_unload(
    _: &mut Context<'_>,
    _: Args<'_>,
    _: &mut Writer<'_>,
) -> Result<(), CommandError> {
    Err(NO_MODULES)
}

//@DECL REPLICAOF
fn replicaof(_: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.is(1, "NO") && args.is(2, "ONE") {
        out.ok();
        return Ok(());
    }
    match engine::number::int(args.at(2)) {
        Ok(0..=65535) => Err(NO_REPLICATION),
        _ => Err(CommandError::text("ERR Invalid master port")),
    }
}

//@DECL ROLE
fn role(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.array(3);
    out.text("master");
    out.int(0);
    out.array(0);
    Ok(())
}

//@DECL SAVE
fn save(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err(NO_FILES)
}

//@DECL SHUTDOWN
fn shutdown(cx: &mut Context<'_>, args: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    let (mut save, mut nosave, mut force, mut abort) = (false, false, false, false);
    for index in 1..args.len() {
        match () {
            () if args.is(index, "SAVE") => save = true,
            () if args.is(index, "NOSAVE") => nosave = true,
            () if args.is(index, "FORCE") => force = true,
            () if args.is(index, "NOW") => {}
            () if args.is(index, "ABORT") => abort = true,
            () => return Err(CommandError::Syntax),
        }
    }
    if save && nosave || abort && args.len() > 2 {
        return Err(CommandError::Syntax);
    }
    if abort {
        return Err(CommandError::text("ERR No shutdown in progress."));
    }
    if save && !force {
        warning!("SHUTDOWN SAVE: there are no files to save to; SHUTDOWN NOSAVE stops");
        return Err(CommandError::text(
            "ERR Errors trying to SHUTDOWN. Check logs.",
        ));
    }
    notice!("User requested shutdown...");
    let host = ThreadHost::of(cx);
    host.shared.shut_down();
    Ok(())
}

//@DECL SLAVEOF
fn slaveof(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    replicaof(cx, args, out)
}

//@DECL TIME
fn time(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_us = crate::sys::unix_us();
    out.array(2);
    out.text(&(now_us / 1_000_000).to_string());
    out.text(&(now_us % 1_000_000).to_string());
    Ok(())
}
