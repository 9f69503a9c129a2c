//! COMMAND: what the table of commands says about itself.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape, render};
use engine::handler::runs;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

/// The family.
pub const COMMANDS: &[Command] = &[COMMAND];

const COMMAND: Command = Command {
    name: "command",
    group: Group::Server,
    since: "2.8.13",
    summary: "Describes all commands.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    run: runs(command).run,
    ..Command::container(&[
        COMMAND_COUNT,
        COMMAND_DOCS,
        COMMAND_GETKEYS,
        COMMAND_GETKEYSANDFLAGS,
        COMMAND_HELP,
        COMMAND_INFO,
        COMMAND_LIST,
    ])
};

fn command(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len() > 1 {
        return Err(cx.unknown_subcommand(args));
    }
    render::all(&cx.shared.table, out);
    Ok(())
}

const COMMAND_COUNT: Command = Command {
    name: "count",
    group: Group::Server,
    since: "2.8.13",
    summary: "Counts the commands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Int],
    ..runs(command_count)
};

fn command_count(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::count(&cx.shared.table, out);
    Ok(())
}

const COMMAND_DOCS: Command = Command {
    name: "docs",
    group: Group::Server,
    since: "7.0.0",
    summary: "Documents commands.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[string("command-name").optional().multiple()],
    reply: &[Shape::Map],
    tips: &["nondeterministic_output_order"],
    ..runs(command_docs)
};

fn command_docs(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::docs(&cx.shared.table, args.from(2), out);
    Ok(())
}

const COMMAND_GETKEYS: Command = Command {
    name: "getkeys",
    group: Group::Server,
    since: "2.8.13",
    summary: "Returns the keys of a command line.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[string("command"), string("arg").optional().multiple()],
    reply: &[Shape::Array],
    ..runs(command_getkeys)
};

fn command_getkeys(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::keys(&cx.shared.table, args.from(2), out)
        .map_err(|error| CommandError::err(error.text()))
}

const COMMAND_GETKEYSANDFLAGS: Command = Command {
    name: "getkeysandflags",
    group: Group::Server,
    since: "7.0.0",
    summary: "Returns the keys of a command line and what it does with each.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[string("command"), string("arg").optional().multiple()],
    reply: &[Shape::Array],
    ..runs(command_getkeysandflags)
};

fn command_getkeysandflags(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::keys_and_flags(&cx.shared.table, args.from(2), out)
        .map_err(|error| CommandError::err(error.text()))
}

const COMMAND_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Array],
    ..runs(command_help)
};

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

const COMMAND_INFO: Command = Command {
    name: "info",
    group: Group::Server,
    since: "2.8.13",
    summary: "Describes the commands it is given.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[string("command-name").optional().multiple()],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    history: &[("7.0.0", "Without a name it describes every command.")],
    ..runs(command_info)
};

fn command_info(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    render::info(&cx.shared.table, args.from(2), out);
    Ok(())
}

const COMMAND_LIST: Command = Command {
    name: "list",
    group: Group::Server,
    since: "7.0.0",
    summary: "Lists the names of commands.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of(
        "filterby",
        &[
            string("module-name").token("MODULE"),
            string("category").token("ACLCAT"),
            pattern("pattern").token("PATTERN"),
        ],
    )
    .token("FILTERBY")
    .optional()],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    ..runs(command_list)
};

fn command_list(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let glob = engine::glob::matches;
    render::list(&cx.shared.table, args.from(2), glob, out).map_err(|_| CommandError::Syntax)
}
