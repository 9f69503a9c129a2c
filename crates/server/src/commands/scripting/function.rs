//! Functions: FUNCTION, FCALL and FCALL_RO.

use std::sync::Arc;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use engine::dump::{dump_libraries, load_libraries};
use engine::error::shown;
use engine::glob;
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use super::{NOTE_RO, NOTE_RW, RUNNER, check_flush};
use crate::host::ThreadHost;
use crate::scripting::functions::{Library, Policy};
use crate::scripting::run;
use crate::shared::Shared;

pub(super) const FCALL: Command = Command {
    name: "fcall",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Calls a function of a library.",
    arity: Arity::at_least(3),
    flags: RUNNER,
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::at(2)
        .counted()
        .rw()
        .access()
        .update()
        .note(NOTE_RW)],
    args: &[
        string("function"),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Any],
    ..runs_on_all(fcall)
};

fn fcall(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    run::fcall(cx, args, out, false)
}

pub(super) const FCALL_RO: Command = Command {
    name: "fcall_ro",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Calls a function of a library that only reads.",
    arity: Arity::at_least(3),
    flags: RUNNER.with(Flags::READONLY),
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::at(2).counted().ro().access().note(NOTE_RO)],
    args: &[
        string("function"),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Any],
    ..runs_on_all(fcall_ro)
};

fn fcall_ro(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    run::fcall(cx, args, out, true)
}

pub(super) const FUNCTION: Command = Command {
    name: "function",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Manages libraries of functions.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        FUNCTION_DELETE,
        FUNCTION_DUMP,
        FUNCTION_FLUSH,
        FUNCTION_HELP,
        FUNCTION_KILL,
        FUNCTION_LIST,
        FUNCTION_LOAD,
        FUNCTION_RESTORE,
        FUNCTION_STATS,
    ])
};

/// Where the libraries are that a command changes. Such a command may stand in a log, and who plays
/// one has only a keyspace.
fn store(cx: &mut Context<'_>) -> Result<Arc<Shared>, CommandError> {
    match ThreadHost::find(cx) {
        Some(host) => Ok(host.shared.clone()),
        None => Err(CommandError::err(
            "there is no place for libraries of functions here",
        )),
    }
}

const FUNCTION_DELETE: Command = Command {
    name: "delete",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Deletes a library.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::NOSCRIPT),
    acl: Acl::SCRIPTING,
    args: &[string("library-name")],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..runs_on_all(function_delete)
};

fn function_delete(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store(cx)?.scripts.libraries.delete(args.at(2))?;
    cx.changed_aside();
    out.ok();
    Ok(())
}

const FUNCTION_DUMP: Command = Command {
    name: "dump",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Returns all libraries as one payload.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    reply: &[Shape::Bulk],
    ..runs(function_dump)
};

fn function_dump(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let now = ThreadHost::of(cx).shared.scripts.libraries.now();
    let sources = now.libraries.values().map(|library| &*library.source);
    out.bulk(&dump_libraries(sources));
    Ok(())
}

const FUNCTION_FLUSH: Command = Command {
    name: "flush",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Deletes all libraries.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::NOSCRIPT),
    acl: Acl::SCRIPTING,
    args: &[one_of("flush-type", &[flag("ASYNC"), flag("SYNC")]).optional()],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..runs_on_all(function_flush)
};

fn function_flush(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(cx.subcommand_error(args));
    }
    check_flush(args, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    store(cx)?.scripts.libraries.flush();
    crate::scripting::forget(crate::scripting::Kind::Functions);
    cx.changed_aside();
    out.ok();
    Ok(())
}

const FUNCTION_HELP: Command = Command {
    name: "help",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::SCRIPTING,
    reply: &[Shape::Array],
    ..runs(function_help)
};

fn function_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "FUNCTION <subcommand> [<argument> ...]:",
        "DELETE <library>",
        "    Deletes a library.",
        "DUMP",
        "    All libraries as one payload, for RESTORE.",
        "FLUSH [ASYNC|SYNC]",
        "    Deletes all libraries.",
        "KILL",
        "    Ends the function that runs for too long, unless it has written already.",
        "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
        "    The libraries and their functions.",
        "LOAD [REPLACE] <code>",
        "    Makes a library of the code, whose first line is #!lua name=<library>.",
        "RESTORE <payload> [APPEND|FLUSH|REPLACE]",
        "    Loads the libraries of a payload. By default none of them may exist already.",
        "STATS",
        "    The function that runs, if one does for long, and how many there are.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const FUNCTION_KILL: Command = Command {
    name: "kill",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Ends the function that runs for too long.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::ALLOW_BUSY),
    acl: Acl::SCRIPTING,
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
    ..runs(function_kill)
};

fn function_kill(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    ThreadHost::of(cx).shared.scripts.running.end(true)?;
    out.ok();
    Ok(())
}

const FUNCTION_LIST: Command = Command {
    name: "list",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Lists the libraries.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    args: &[
        string("library-name-pattern")
            .token("LIBRARYNAME")
            .optional(),
        flag("WITHCODE").optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    ..runs(function_list)
};

fn function_list(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (mut pattern, mut with_code, mut at) = (None, false, 2);
    while let Some(word) = args.get(at) {
        if args.is(at, "WITHCODE") && !with_code {
            with_code = true;
        } else if args.is(at, "LIBRARYNAME") && pattern.is_none() {
            at += 1;
            let Some(word) = args.get(at) else {
                return Err(CommandError::err("library name argument was not given"));
            };
            pattern = Some(word);
        } else {
            let word = shown(word);
            return Err(CommandError::err(format!("Unknown argument {word}")));
        }
        at += 1;
    }
    let now = ThreadHost::of(cx).shared.scripts.libraries.now();
    let libraries = now
        .libraries
        .values()
        .filter(|library| pattern.is_none_or(|pattern| glob::matches(pattern, &library.name)));
    let libraries: Vec<_> = libraries.collect();
    out.array(libraries.len());
    for library in libraries {
        show_library(library, with_code, out);
    }
    Ok(())
}

fn show_library(library: &Library, with_code: bool, out: &mut Writer<'_>) {
    out.map(if with_code { 4 } else { 3 });
    out.text("library_name");
    out.bulk(&library.name);
    out.text("engine");
    out.text("LUA");
    out.text("functions");
    out.array(library.functions.len());
    for function in &library.functions {
        out.map(3);
        out.text("name");
        out.bulk(&function.name);
        out.text("description");
        match &function.description {
            Some(text) => out.bulk(text),
            None => out.null(),
        }
        out.text("flags");
        out.set(function.flags.names().count());
        function.flags.names().for_each(|name| out.simple(name));
    }
    if with_code {
        out.text("library_code");
        out.bulk(&library.source);
    }
}

const FUNCTION_LOAD: Command = Command {
    name: "load",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Makes a library.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::NOSCRIPT),
    acl: Acl::SCRIPTING,
    args: &[flag("REPLACE").optional(), string("function-code")],
    reply: &[Shape::Bulk],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..runs_on_all(function_load)
};

fn function_load(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut may_replace = false;
    for at in 2..args.len() - 1 {
        if !args.is(at, "REPLACE") {
            let word = shown(args.at(at));
            return Err(CommandError::err(format!("Unknown option given: {word}")));
        }
        may_replace = true;
    }
    let libraries = &store(cx)?.scripts.libraries;
    let name = libraries.load(args.at(args.len() - 1), may_replace)?;
    cx.changed_aside();
    out.bulk(&name);
    Ok(())
}

const FUNCTION_RESTORE: Command = Command {
    name: "restore",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Loads the libraries of a payload.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::NOSCRIPT),
    acl: Acl::SCRIPTING,
    args: &[
        string("serialized-value"),
        one_of("policy", &[flag("FLUSH"), flag("APPEND"), flag("REPLACE")]).optional(),
    ],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..runs_on_all(function_restore)
};

fn function_restore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(cx.subcommand_error(args));
    }
    let policy = match args.get(3) {
        None => Policy::Append,
        Some(_) if args.is(3, "APPEND") => Policy::Append,
        Some(_) if args.is(3, "REPLACE") => Policy::Replace,
        Some(_) if args.is(3, "FLUSH") => Policy::Flush,
        Some(_) => {
            return Err(CommandError::err(
                "Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
    };
    let is_logged = cx.is_replaying();
    let sources = load_libraries(args.at(2), cx.settings.string_bytes_max, is_logged)
        .map_err(|_| CommandError::err("DUMP payload version or checksum are wrong"))?;
    let libraries = &store(cx)?.scripts.libraries;
    libraries.restore(&sources, policy)?;
    cx.changed_aside();
    out.ok();
    Ok(())
}

const FUNCTION_STATS: Command = Command {
    name: "stats",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Shows which function runs, and how many there are.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::ALLOW_BUSY),
    acl: Acl::SCRIPTING,
    reply: &[Shape::Map],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    ..runs(function_stats)
};

fn function_stats(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let host = ThreadHost::of(cx);
    let registry = &host.shared.scripts;
    out.map(2);
    out.text("running_script");
    match &*registry.running.slow.lock() {
        Some(slow) if slow.is_function => {
            out.map(3);
            out.text("name");
            out.bulk(&slow.name);
            out.text("command");
            out.array(slow.words.len());
            slow.words.iter().for_each(|word| out.bulk(word));
            out.text("duration_ms");
            let us = crate::sys::unix_us().saturating_sub(slow.began_us);
            out.int(i64::try_from(us / 1000).unwrap_or(i64::MAX));
        }
        _ => out.null(),
    }
    let now = registry.libraries.now();
    out.text("engines");
    out.map(1);
    out.text("LUA");
    out.map(2);
    out.text("libraries_count");
    out.count(now.libraries.len());
    out.text("functions_count");
    out.count(now.function_count());
    Ok(())
}
