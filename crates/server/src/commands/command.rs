//! COMMAND: what the table of commands says about itself.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape, render};
use engine::handler::runs;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

/// The family.
pub const COMMANDS: &[Command] = &[COMMAND];

//@DECL COMMAND
fn command(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len() > 1 {
        return Err(cx.unknown_subcommand(args));
    }
    render::all(&cx.shared.table, out);
    Ok(())
}

//@DECL COMMAND_COUNT
fn command_count(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::count(&cx.shared.table, out);
    Ok(())
}

//@DECL COMMAND_DOCS
fn command_docs(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::docs(&cx.shared.table, args.from(2), out);
    Ok(())
}

//@DECL COMMAND_GETKEYS
fn command_getkeys(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::keys(&cx.shared.table, args.from(2), out)
        .map_err(|error| CommandError::err(error.text()))
}

//@DECL COMMAND_GETKEYSANDFLAGS
fn command_getkeysandflags(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::keys_and_flags(&cx.shared.table, args.from(2), out)
        .map_err(|error| CommandError::err(error.text()))
}

//@DECL COMMAND_HELP
fn command_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "COMMAND [<subcommand> [<argument> ...]]:",
        "(without a subcommand)",
        "    Every command with its arity, flags, keys and categories.",
        "COUNT",
        "    How many commands there are.",
        "DOCS [<command> ...]",
        "    What commands do and take.",
        "GETKEYS <command> [<argument> ...]",
        "    The keys of a command line.",
        "GETKEYSANDFLAGS <command> [<argument> ...]",
        "    The keys of a command line, and what is done with each.",
        "INFO [<command> ...]",
        "    As without a subcommand, for some commands.",
        "LIST [FILTERBY (MODULE <name> | ACLCAT <category> | PATTERN <pattern>)]",
        "    The names of commands.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

//@DECL COMMAND_INFO
fn command_info(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::info(&cx.shared.table, args.from(2), out);
    Ok(())
}

//@DECL COMMAND_LIST
fn command_list(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let glob = engine::glob::matches;
    render::list(&cx.shared.table, args.from(2), glob, out).map_err(|_| CommandError::Syntax)
}
