//! Scripts: EVAL and its kin, and what is kept of scripts. Functions are in [`function`].

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::scripting::registry::{hex, parse_sha};
use crate::scripting::run::{self, By};

mod function;

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    EVAL,
    EVAL_RO,
    EVALSHA,
    EVALSHA_RO,
    function::FCALL,
    function::FCALL_RO,
    function::FUNCTION,
    SCRIPT,
];

/// What commands that run scripts have in common.
const RUNNER: Flags = Flags::NOSCRIPT
    .with(Flags::STALE)
    .with(Flags::SKIP_MONITOR)
    .with(Flags::NO_MANDATORY_KEYS)
    .with(Flags::SCRIPT_RUNNER);

/// Notes of the key specs.
const NOTE_RW: &str = "What becomes of the keys is up to the script.";
const NOTE_RO: &str = "What is read of the keys is up to the script.";

const EVAL: Command = Command {
    name: "eval",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Runs a Lua script.",
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
        string("script"),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Any],
    ..runs_on_all(eval)
};

/// Scripts may stand in a log, and who plays one may have only a keyspace.
fn must_have_host(cx: &mut Context<'_>) -> Result<(), CommandError> {
    match ThreadHost::find(cx) {
        Some(_) => Ok(()),
        None => Err(CommandError::text(
            "NOSCRIPT there is no place for scripts here",
        )),
    }
}

fn eval(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    must_have_host(cx)?;
    run::eval(cx, args, out, By::Source, false)
}

const EVAL_RO: Command = Command {
    name: "eval_ro",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Runs a Lua script that only reads.",
    arity: Arity::at_least(3),
    flags: RUNNER.with(Flags::READONLY),
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::at(2).counted().ro().access().note(NOTE_RO)],
    args: &[
        string("script"),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Any],
    ..runs_on_all(eval_ro)
};

fn eval_ro(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    run::eval(cx, args, out, By::Source, true)
}

const EVALSHA: Command = Command {
    name: "evalsha",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Runs a Lua script that the server keeps, by its SHA1.",
    arity: Arity::at_least(3),
    flags: RUNNER,
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::at(2).counted().rw().access().update()],
    args: &[
        string("sha1"),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Any],
    ..runs_on_all(evalsha)
};

fn evalsha(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    must_have_host(cx)?;
    run::eval(cx, args, out, By::Sha, false)
}

const EVALSHA_RO: Command = Command {
    name: "evalsha_ro",
    group: Group::Scripting,
    since: "7.0.0",
    summary: "Runs a Lua script that the server keeps and that only reads, by its SHA1.",
    arity: Arity::at_least(3),
    flags: RUNNER.with(Flags::READONLY),
    acl: Acl::SCRIPTING,
    keys: &[KeySpec::at(2).counted().ro().access()],
    args: &[
        string("sha1"),
        int("numkeys"),
        key("key").optional().multiple(),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Any],
    ..runs_on_all(evalsha_ro)
};

fn evalsha_ro(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    run::eval(cx, args, out, By::Sha, true)
}

const SCRIPT: Command = Command {
    name: "script",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Manages the scripts that the server keeps.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        SCRIPT_DEBUG,
        SCRIPT_EXISTS,
        SCRIPT_FLUSH,
        SCRIPT_HELP,
        SCRIPT_KILL,
        SCRIPT_LOAD,
        SCRIPT_SHOW,
    ])
};

const SCRIPT_DEBUG: Command = Command {
    name: "debug",
    group: Group::Scripting,
    since: "3.2.0",
    summary: "Takes the modes of a debugger, of which there is none.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    args: &[one_of("mode", &[flag("YES"), flag("SYNC"), flag("NO")])],
    reply: &[Shape::Ok],
    ..runs(script_debug)
};

fn script_debug(
    _: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.is(2, "NO") {
        out.ok();
        return Ok(());
    }
    if args.is(2, "YES") || args.is(2, "SYNC") {
        return Err(CommandError::err("There is no debugger for scripts here"));
    }
    Err(CommandError::err("Use SCRIPT DEBUG YES/SYNC/NO"))
}

const SCRIPT_EXISTS: Command = Command {
    name: "exists",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Says which scripts the server keeps.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    args: &[string("sha1").multiple()],
    reply: &[Shape::Array],
    tips: &[
        "request_policy:all_shards",
        "response_policy:agg_logical_and",
    ],
    ..runs(script_exists)
};

fn script_exists(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let registry = &ThreadHost::of(cx).shared.scripts;
    out.array(args.len() - 2);
    for word in args.from(2).iter() {
        let found = parse_sha(word).and_then(|sha| registry.find(&sha));
        out.int(found.is_some().into());
    }
    Ok(())
}

/// SYNC or ASYNC, which are the same here, or nothing.
fn check_flush(args: Args<'_>, refusal: &'static str) -> Result<(), CommandError> {
    match args.len() {
        2 => Ok(()),
        3 if args.is(2, "SYNC") || args.is(2, "ASYNC") => Ok(()),
        _ => Err(CommandError::text(refusal)),
    }
}

const SCRIPT_FLUSH: Command = Command {
    name: "flush",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Forgets all scripts.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::NOSCRIPT,
    acl: Acl::SCRIPTING,
    args: &[one_of("flush-type", &[flag("ASYNC"), flag("SYNC")])
        .since("6.2.0")
        .optional()],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    history: &[("6.2.0", "Takes ASYNC and SYNC.")],
    ..runs(script_flush)
};

fn script_flush(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    check_flush(args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
    must_have_host(cx)?;
    ThreadHost::of(cx).shared.scripts.flush();
    crate::scripting::forget(crate::scripting::Kind::Eval);
    out.ok();
    Ok(())
}

const SCRIPT_HELP: Command = Command {
    name: "help",
    group: Group::Scripting,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::SCRIPTING,
    reply: &[Shape::Array],
    ..runs(script_help)
};

fn script_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "SCRIPT <subcommand> [<argument> ...]:",
        "DEBUG NO",
        "    Does nothing: there is no debugger.",
        "EXISTS <sha1> [<sha1> ...]",
        "    For each SHA1, 1 where the server keeps the script and 0 where it does not.",
        "FLUSH [ASYNC|SYNC]",
        "    Forgets all scripts.",
        "KILL",
        "    Ends the script that runs for too long, unless it has written already.",
        "LOAD <script>",
        "    Keeps a script until SCRIPT FLUSH; answers its SHA1.",
        "SHOW <sha1>",
        "    The text of a script.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const SCRIPT_KILL: Command = Command {
    name: "kill",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Ends the script that runs for too long.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::ALLOW_BUSY),
    acl: Acl::SCRIPTING,
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
    ..runs(script_kill)
};

fn script_kill(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    ThreadHost::of(cx).shared.scripts.running.end(false)?;
    out.ok();
    Ok(())
}

const SCRIPT_LOAD: Command = Command {
    name: "load",
    group: Group::Scripting,
    since: "2.6.0",
    summary: "Keeps a script for EVALSHA.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT.with(Flags::STALE),
    acl: Acl::SCRIPTING,
    args: &[string("script")],
    reply: &[Shape::Bulk],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    ..runs(script_load)
};

fn script_load(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    must_have_host(cx)?;
    let script = run::load(cx, args.at(2))?;
    out.text(&hex(&script.sha));
    Ok(())
}

const SCRIPT_SHOW: Command = Command {
    name: "show",
    group: Group::Scripting,
    since: "8.0.0",
    summary: "Returns the text of a script that the server keeps.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT.with(Flags::STALE),
    acl: Acl::SCRIPTING,
    args: &[string("sha1")],
    reply: &[Shape::Bulk],
    ..runs(script_show)
};

fn script_show(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let registry = &ThreadHost::of(cx).shared.scripts;
    match parse_sha(args.at(2)).and_then(|sha| registry.find(&sha)) {
        Some(script) => out.bulk(&script.source),
        None => return Err(CommandError::text("NOSCRIPT No matching script.")),
    }
    Ok(())
}
