//! HOTKEYS: asking for the keys that the most time and traffic go to.

use command::arg::*;
use command::{Arity, Flags, Group, Shape};
use engine::handler::runs;
use engine::{Command, CommandError, Context, number};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::hotkeys::Wanted;

/// The family.
pub(super) const COMMANDS: &[Command] = &[HOTKEYS];

/// Keys that are shown unless told otherwise.
const SHOWN_KEYS: usize = 10;

const HOTKEYS: Command = Command {
    name: "hotkeys",
    group: Group::Server,
    since: "8.6.0",
    summary: "Finds the keys that take the most processor time and traffic.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        HOTKEYS_GET,
        HOTKEYS_HELP,
        HOTKEYS_RESET,
        HOTKEYS_START,
        HOTKEYS_STOP,
    ])
};

const HOTKEYS_GET: Command = Command {
    name: "get",
    group: Group::Server,
    since: "8.6.0",
    summary: "Returns the keys that the session found, the heaviest first.",
    complexity: "O(K) where K is the number of keys returned.",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN.with(Flags::NOSCRIPT),
    reply: &[Shape::Array, Shape::Null],
    tips: &[
        "nondeterministic_output",
        "request_policy:special",
        "response_policy:special",
    ],
    ..runs(hotkeys_get)
};

fn hotkeys_get(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let shared = &ThreadHost::of(cx).shared;
    let Some(results) = shared.hotkeys.results(now_ms) else {
        out.null();
        return Ok(());
    };
    let ticks_per_us = shared.ticks_per_us();
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)] // Microseconds.
    let us = |ticks: u64| (ticks as f64 / ticks_per_us) as i64;
    let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let wanted = results.wanted;
    out.array(1);
    out.map(7 + if wanted.cpu { 3 } else { 0 } + if wanted.net { 2 } else { 0 });
    let mut field = |name: &str, value: i64| {
        out.text(name);
        out.int(value);
    };
    field("tracking-active", i64::from(results.is_active));
    field("sample-ratio", int(wanted.ratio));
    out.text("selected-slots");
    out.array(1);
    out.array(2);
    out.int(0);
    out.int(16383);
    let mut field = |name: &str, value: i64| {
        out.text(name);
        out.int(value);
    };
    field("all-commands-all-slots-us", us(results.ticks));
    field("net-bytes-all-commands-all-slots", int(results.bytes));
    field("collection-start-time-unix-ms", int(results.began_ms));
    field("collection-duration-ms", int(results.took_ms));
    if wanted.cpu {
        field("total-cpu-time-user-ms", int(results.cpu_ms.0));
        field("total-cpu-time-sys-ms", int(results.cpu_ms.1));
    }
    if wanted.net {
        field("total-net-bytes", int(results.counted_bytes));
    }
    let mut keys = |name: &str, keys: &[(Box<[u8]>, i64)]| {
        out.text(name);
        out.array(keys.len() * 2);
        for (key, value) in keys {
            out.bulk(key);
            out.int(*value);
        }
    };
    if wanted.cpu {
        let shown = results.by_ticks.into_iter();
        let shown = shown.map(|(key, ticks)| (key, us(ticks)));
        let shown: Vec<_> = shown.filter(|(_, us)| *us > 0).collect();
        keys("by-cpu-time-us", &shown);
    }
    if wanted.net {
        let shown = results.by_bytes.into_iter();
        let shown: Vec<_> = shown.map(|(key, bytes)| (key, int(bytes))).collect();
        keys("by-net-bytes", &shown);
    }
    Ok(())
}

const HOTKEYS_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "8.6.1",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(hotkeys_help)
};

fn hotkeys_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    cx.help(
        out,
        &[
            "HOTKEYS <subcommand> [<arg> ...]. The subcommands are:",
            "START METRICS <count> [CPU] [NET] [COUNT <k>] [DURATION <seconds>] [SAMPLE <ratio>]",
            "    Begins to count which keys take processor time (CPU) and traffic (NET).",
            "    COUNT is how many GET shows, 1 to 64 (10). DURATION ends the session by itself.",
            "    SAMPLE counts one key of so many.",
            "STOP",
            "    Ends the session. GET still shows what it found.",
            "GET",
            "    Returns what the session found.",
            "RESET",
            "    Forgets what the last session found.",
            "HELP",
            "    Lists the subcommands.",
        ],
    );
    Ok(())
}

const HOTKEYS_RESET: Command = Command {
    name: "reset",
    group: Group::Server,
    since: "8.6.0",
    summary: "Forgets what the last session found.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN.with(Flags::NOSCRIPT),
    reply: &[Shape::Ok],
    tips: &["request_policy:special"],
    ..runs(hotkeys_reset)
};

fn hotkeys_reset(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if !ThreadHost::of(cx).shared.hotkeys.reset() {
        return Err(CommandError::text(
            "ERR hotkey tracking session in progress, stop tracking first",
        ));
    }
    out.ok();
    Ok(())
}

const HOTKEYS_START: Command = Command {
    name: "start",
    group: Group::Server,
    since: "8.6.0",
    summary: "Begins to count what keys take.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN.with(Flags::NOSCRIPT),
    args: &[
        block(
            "metrics",
            &[int("count"), flag("CPU").optional(), flag("NET").optional()],
        )
        .token("METRICS"),
        int("k").token("COUNT").optional(),
        int("seconds").token("DURATION").optional(),
        int("ratio").token("SAMPLE").optional(),
        block("slots", &[int("count"), int("slot").multiple()])
            .token("SLOTS")
            .optional(),
    ],
    reply: &[Shape::Ok],
    tips: &["request_policy:special"],
    ..runs(hotkeys_start)
};

fn hotkeys_start(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let shared = &ThreadHost::of(cx).shared;
    let in_progress = CommandError::text("ERR hotkey tracking session already in progress");
    if shared.hotkeys.is_active() {
        return Err(in_progress);
    }
    // Another thread may have begun one meanwhile.
    if !shared.hotkeys.start(wanted(args.from(2))?, now_ms) {
        return Err(in_progress);
    }
    shared.look_again();
    out.ok();
    Ok(())
}

/// What the words behind START ask for.
fn wanted(args: Args<'_>) -> Result<Wanted, CommandError> {
    let mut wanted = Wanted {
        cpu: false,
        net: false,
        keys: SHOWN_KEYS,
        duration_ms: 0,
        ratio: 1,
    };
    let mut at = metrics(args, &mut wanted)?;
    while at < args.len() {
        // Every option has at least one word behind it.
        let Some(word) = args.get(at + 1) else {
            return Err(CommandError::Syntax);
        };
        let within = |min: i64, max: i64, error: &'static str| match number::int(word) {
            Ok(value) if (min..=max).contains(&value) => Ok(value.unsigned_abs()),
            _ => Err(CommandError::text(error)),
        };
        if args.is(at, "COUNT") {
            let keys = within(1, 64, "ERR COUNT must be between 1 and 64")?;
            wanted.keys = usize::try_from(keys).unwrap_or(SHOWN_KEYS);
        } else if args.is(at, "DURATION") {
            let error = "ERR DURATION must be between 1 and 1000000";
            wanted.duration_ms = within(1, 1_000_000, error)? * 1000;
        } else if args.is(at, "SAMPLE") {
            let most = i64::from(i32::MAX);
            wanted.ratio = within(1, most, "ERR SAMPLE ratio must be positive")?;
        } else if args.is(at, "SLOTS") {
            return Err(CommandError::text(
                "ERR SLOTS parameter cannot be used in non-cluster mode",
            ));
        } else {
            return Err(CommandError::Syntax);
        }
        at += 2;
    }
    Ok(wanted)
}

/// Reads METRICS and what belongs to it; returns where the options begin.
fn metrics(args: Args<'_>, wanted: &mut Wanted) -> Result<usize, CommandError> {
    let Some(count) = args.get(1).filter(|_| args.is(0, "METRICS")) else {
        return Err(CommandError::text("ERR METRICS parameter is required"));
    };
    let count: usize = match number::int(count) {
        Ok(1) => 1,
        Ok(2) => 2,
        _ => {
            return Err(CommandError::text("ERR METRICS count must be > 0 and <= 2"));
        }
    };
    let end = 2 + count;
    if args.len() < end {
        return Err(CommandError::text(
            "ERR METRICS count does not match number of metric types provided",
        ));
    }
    for at in 2..end {
        let (metric, name) = if args.is(at, "CPU") {
            (&mut wanted.cpu, "CPU")
        } else if args.is(at, "NET") {
            (&mut wanted.net, "NET")
        } else {
            // What other servers may know is passed over.
            continue;
        };
        if std::mem::replace(metric, true) {
            return Err(CommandError::err(format!(
                "METRICS {name} defined more than once!"
            )));
        }
    }
    if !wanted.cpu && !wanted.net {
        return Err(CommandError::text(
            "ERR METRICS no valid metrics passed. Supported: CPU|NET",
        ));
    }
    Ok(end)
}

const HOTKEYS_STOP: Command = Command {
    name: "stop",
    group: Group::Server,
    since: "8.6.0",
    summary: "Ends the session.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN.with(Flags::NOSCRIPT),
    reply: &[Shape::Ok, Shape::Null],
    tips: &["request_policy:special"],
    ..runs(hotkeys_stop)
};

fn hotkeys_stop(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let shared = &ThreadHost::of(cx).shared;
    if shared.hotkeys.stop(now_ms) {
        shared.look_again();
        out.ok();
    } else {
        out.null();
    }
    Ok(())
}
