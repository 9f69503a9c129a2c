//! The server as a whole: its clock, its end, its part in replication, its modules.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::notice;
use crate::persistence::NotStopped;

/// The family.
pub const COMMANDS: &[Command] = &[MODULE, REPLICAOF, ROLE, SHUTDOWN, SLAVEOF, TIME];

const NO_REPLICATION: CommandError =
    CommandError::text("ERR this version cannot be a replica: only REPLICAOF NO ONE is possible");
const NO_MODULES: CommandError = CommandError::text(
    "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", you \
     can run it from a local connection, otherwise you need to set this option in the \
     configuration file, and then restart the server.",
);

const MODULE: Command = Command {
    name: "module",
    group: Group::Server,
    since: "4.0.0",
    summary: "Manages modules.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        MODULE_HELP,
        MODULE_LIST,
        MODULE_LOAD,
        MODULE_LOADEX,
        MODULE_UNLOAD,
    ])
};

const MODULE_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(module_help)
};

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

const MODULE_LIST: Command = Command {
    name: "list",
    group: Group::Server,
    since: "4.0.0",
    summary: "Lists the loaded modules.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN.with(Flags::NOSCRIPT),
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    ..runs(module_list)
};

fn module_list(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.array(0);
    Ok(())
}

const MODULE_LOAD: Command = Command {
    name: "load",
    group: Group::Server,
    since: "4.0.0",
    summary: "Loads a module.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::NO_ASYNC_LOADING),
    args: &[string("path"), string("arg").optional().multiple()],
    reply: &[Shape::Ok],
    ..runs(module_load)
};

fn module_load(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err(NO_MODULES)
}

const MODULE_LOADEX: Command = Command {
    name: "loadex",
    group: Group::Server,
    since: "7.0.0",
    summary: "Loads a module with settings and arguments.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::NO_ASYNC_LOADING),
    args: &[
        string("path"),
        block("configs", &[string("name"), string("value")])
            .token("CONFIG")
            .optional()
            .multiple_token(),
        string("args").token("ARGS").optional().multiple(),
    ],
    reply: &[Shape::Ok],
    ..runs(module_loadex)
};

fn module_loadex(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err(NO_MODULES)
}

const MODULE_UNLOAD: Command = Command {
    name: "unload",
    group: Group::Server,
    since: "4.0.0",
    summary: "Unloads a module.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::NO_ASYNC_LOADING),
    args: &[string("name")],
    reply: &[Shape::Ok],
    ..runs(module_unload)
};

fn module_unload(_: &mut Context<'_>, _: Args<'_>, _: &mut Writer<'_>) -> Result<(), CommandError> {
    Err(NO_MODULES)
}

const REPLICAOF: Command = Command {
    name: "replicaof",
    group: Group::Server,
    since: "5.0.0",
    summary: "Makes the server a replica of another one, or a primary.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::STALE)
        .with(Flags::NO_ASYNC_LOADING),
    args: &[one_of(
        "args",
        &[
            block("host-port", &[string("host"), int("port")]),
            block("no-one", &[flag("NO"), flag("ONE")]),
        ],
    )],
    reply: &[Shape::Ok],
    ..runs(replicaof)
};

fn replicaof(
    _: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.is(1, "NO") && args.is(2, "ONE") {
        out.ok();
        return Ok(());
    }
    match engine::number::int(args.at(2)) {
        Ok(0..=65535) => Err(NO_REPLICATION),
        _ => Err(CommandError::text("ERR Invalid master port")),
    }
}

const ROLE: Command = Command {
    name: "role",
    group: Group::Server,
    since: "2.8.12",
    summary: "Returns the server's part in replication.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST),
    acl: Acl::ADMIN.with(Acl::DANGEROUS),
    reply: &[Shape::Array],
    ..runs(role)
};

fn role(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.array(3);
    out.text("master");
    out.int(0);
    out.array(0);
    Ok(())
}

const SHUTDOWN: Command = Command {
    name: "shutdown",
    group: Group::Server,
    since: "1.0.0",
    summary: "Stops the server, writing the data to disk as configured.",
    complexity: "O(N)",
    arity: Arity::at_least(1),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::NO_MULTI)
        .with(Flags::ALLOW_BUSY),
    args: &[
        one_of("save-selector", &[flag("NOSAVE"), flag("SAVE")]).optional(),
        flag("NOW").since("7.0.0").optional(),
        flag("FORCE").since("7.0.0").optional(),
        flag("ABORT").since("7.0.0").optional(),
    ],
    reply: &[Shape::Ok, Shape::Nothing],
    history: &[("7.0.0", "Takes `NOW`, `FORCE` and `ABORT`.")],
    ..runs_on_all(shutdown)
};

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
    notice!("User requested shutdown...");
    let host = ThreadHost::of(cx);
    let (shared, config) = (host.shared.clone(), host.config.clone());
    let wanted = match (save, nosave) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    };
    match crate::persistence::stop(&shared, &config, &mut cx.keyspace, wanted, force) {
        Ok(()) => Ok(()),
        Err(NotStopped) => Err(CommandError::text(
            "ERR Errors trying to SHUTDOWN. Check logs.",
        )),
    }
}

const SLAVEOF: Command = Command {
    name: "slaveof",
    group: Group::Server,
    since: "1.0.0",
    summary: "Makes the server a replica of another one, or a primary.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::STALE)
        .with(Flags::NO_ASYNC_LOADING),
    args: &[one_of(
        "args",
        &[
            block("host-port", &[string("host"), int("port")]),
            block("no-one", &[flag("NO"), flag("ONE")]),
        ],
    )],
    reply: &[Shape::Ok],
    deprecated: Some(("5.0.0", "`REPLICAOF`")),
    ..runs(slaveof)
};

fn slaveof(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    replicaof(cx, args, out)
}

const TIME: Command = Command {
    name: "time",
    group: Group::Server,
    since: "2.6.0",
    summary: "Returns the time of day in seconds and microseconds.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(time)
};

fn time(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_us = crate::sys::unix_us();
    out.array(2);
    out.text(&(now_us / 1_000_000).to_string());
    out.text(&(now_us % 1_000_000).to_string());
    Ok(())
}
