//! LATENCY: what took long, and how long commands take.

use std::fmt::Write;

use command::arg::*;
use command::{Arity, Flags, Group, Shape};
use engine::error::shown;
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use super::info::facts::Facts;
use super::info::lines::Durations;
use crate::host::ThreadHost;
use crate::latency::Series;

/// The family.
pub const COMMANDS: &[Command] = &[LATENCY];

const LATENCY: Command = Command {
    name: "latency",
    group: Group::Server,
    since: "2.8.13",
    summary: "Shows events that took too long.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        LATENCY_DOCTOR,
        LATENCY_GRAPH,
        LATENCY_HELP,
        LATENCY_HISTOGRAM,
        LATENCY_HISTORY,
        LATENCY_LATEST,
        LATENCY_RESET,
    ])
};

const LATENCY_DOCTOR: Command = Command {
    name: "doctor",
    group: Group::Server,
    since: "2.8.13",
    summary: "Explains in words what made the server slow.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Verbatim],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..runs(latency_doctor)
};

fn latency_doctor(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let shared = &ThreadHost::of(cx).shared;
    let threshold_ms = shared.config().latency_monitor_threshold_ms;
    let latency = shared.latency.lock();
    let mut text = String::new();
    if threshold_ms == 0 && latency.events().len() == 0 {
        text += "Nothing is watched: CONFIG SET latency-monitor-threshold <milliseconds> turns the \
                 latency monitor on.\n";
    } else if latency.events().len() == 0 {
        let _ = writeln!(text, "No event took {threshold_ms} milliseconds or longer.");
    }
    for (number, (event, series)) in latency.events().enumerate() {
        let count = series.samples.len() as u64;
        let sum: u64 = series.samples.iter().map(|(_, ms)| ms).sum();
        let average = sum.checked_div(count).unwrap_or(0);
        let spread: u64 = series
            .samples
            .iter()
            .map(|(_, ms)| ms.abs_diff(average))
            .sum();
        let _ = writeln!(
            text,
            "{}. {event}: {count} latency spikes (average {average}ms, mean deviation {}ms). Worst \
             all time event {}ms. {}",
            number + 1,
            spread.checked_div(count).unwrap_or(0),
            series.worst_ms,
            advice(event)
        );
    }
    out.verbatim("txt", text.as_bytes());
    Ok(())
}

fn advice(event: &str) -> &'static str {
    match event {
        "command" => "SLOWLOG GET shows which commands were slow: ask for less at once.",
        "fast-command" => {
            "Such commands are slow only where the machine is: look for swapping and for others \
             that use its processors."
        }
        "expire-cycle" => "Many keys end at the same time: spread their times to live.",
        _ => "",
    }
}

const LATENCY_GRAPH: Command = Command {
    name: "graph",
    group: Group::Server,
    since: "2.8.13",
    summary: "Draws the latest samples of an event.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("event")],
    reply: &[Shape::Verbatim],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..runs(latency_graph)
};

fn latency_graph(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let latency = ThreadHost::of(cx).shared.latency.lock();
    let name = String::from_utf8_lossy(args.at(2)).to_lowercase();
    let Some(series) = latency.event(args.at(2)) else {
        let name = shown(args.at(2));
        return Err(CommandError::err(format!(
            "No samples available for event '{name}'"
        )));
    };
    let samples = || series.samples.iter().map(|(_, ms)| *ms);
    let (high, low) = (samples().max().unwrap_or(0), samples().min().unwrap_or(0));
    let text = format!(
        "{name} - high {high} ms, low {low} ms (all time high {} ms)\n{}\n{}",
        series.worst_ms,
        "-".repeat(80),
        series.graph()
    );
    out.verbatim("txt", text.as_bytes());
    Ok(())
}

const LATENCY_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "2.8.13",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(latency_help)
};

fn latency_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "LATENCY <subcommand> [<argument> ...]:",
        "DOCTOR",
        "    What took long, in words, and what to do about it.",
        "GRAPH <event>",
        "    The samples of an event as a drawing.",
        "HISTOGRAM [<command> ...]",
        "    How long the calls of commands took.",
        "HISTORY <event>",
        "    The samples of an event.",
        "LATEST",
        "    The latest sample of each event.",
        "RESET [<event> ...]",
        "    Forgets the samples of some events, or of all.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const LATENCY_HISTOGRAM: Command = Command {
    name: "histogram",
    group: Group::Server,
    since: "7.0.0",
    summary: "Returns the distribution of the time that commands took.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("command").optional().multiple()],
    reply: &[Shape::Map],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..runs_on_all(latency_histogram)
};

fn latency_histogram(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let facts = Facts::gather(cx);
    let table = &facts.shared.keys.table;
    let mut ids = Vec::new();
    if args.len() == 2 {
        ids.extend(0..table.len());
    }
    for name in args.from(2).iter() {
        let Some(entry) = table.find_full(name) else {
            continue;
        };
        ids.push(usize::from(entry.id));
        ids.extend(
            table
                .subcommands(entry)
                .iter()
                .map(|sub| usize::from(sub.id)),
        );
    }
    let shown = ids.into_iter().map(|id| (id, Durations::of(&facts, id)));
    let shown: Vec<_> = shown.filter(|(_, durations)| durations.count > 0).collect();
    out.map(shown.len());
    for (id, durations) in shown {
        out.text(&table.entries()[id].full_name);
        out.map(2);
        out.text("calls");
        out.int(int(durations.count));
        out.text("histogram_usec");
        let buckets = durations.cumulative_us(facts.ticks_per_us);
        out.map(buckets.len());
        for (us, count) in buckets {
            out.int(int(us));
            out.int(int(count));
        }
    }
    Ok(())
}

fn int(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

const LATENCY_HISTORY: Command = Command {
    name: "history",
    group: Group::Server,
    since: "2.8.13",
    summary: "Returns the latest samples of an event.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("event")],
    reply: &[Shape::Array],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..runs(latency_history)
};

fn latency_history(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let latency = ThreadHost::of(cx).shared.latency.lock();
    let none = Series::default();
    let series = latency.event(args.at(2)).unwrap_or(&none);
    out.array(series.samples.len());
    for (at_s, ms) in &series.samples {
        out.array(2);
        out.int(int(*at_s));
        out.int(int(*ms));
    }
    Ok(())
}

const LATENCY_LATEST: Command = Command {
    name: "latest",
    group: Group::Server,
    since: "2.8.13",
    summary: "Returns the latest sample of each event.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Array],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_nodes",
        "response_policy:special",
    ],
    ..runs(latency_latest)
};

fn latency_latest(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let latency = ThreadHost::of(cx).shared.latency.lock();
    out.array(latency.events().len());
    for (event, series) in latency.events() {
        let (at_s, ms) = series.samples.back().copied().unwrap_or_default();
        out.array(4);
        out.text(event);
        [at_s, ms, series.worst_ms]
            .iter()
            .for_each(|value| out.int(int(*value)));
    }
    Ok(())
}

const LATENCY_RESET: Command = Command {
    name: "reset",
    group: Group::Server,
    since: "2.8.13",
    summary: "Forgets the samples of events.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("event").optional().multiple()],
    reply: &[Shape::Int],
    tips: &["request_policy:all_nodes", "response_policy:agg_sum"],
    ..runs(latency_reset)
};

fn latency_reset(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut latency = ThreadHost::of(cx).shared.latency.lock();
    let events = args.from(2);
    out.count(match events.len() {
        0 => latency.reset(None),
        _ => events.iter().map(|event| latency.reset(Some(event))).sum(),
    });
    Ok(())
}
