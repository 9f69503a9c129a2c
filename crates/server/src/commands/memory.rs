//! MEMORY: what memory is used for.

use std::cell::Cell;
use std::fmt::Write;
use std::sync::atomic::Ordering;

use command::arg::*;
use command::{Arity, Flags, Group, KeySpec, Shape};
use engine::handler::{runs, runs_on_all};
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};
use structure::record::ValueRef;

use super::info::facts::{Facts, rss_bytes};
use super::info::human;
use crate::host::ThreadHost;

/// The family.
pub const COMMANDS: &[Command] = &[MEMORY];

/// Bytes that a key costs in the table, beside its record.
const SLOT_BYTES: usize = 8;
/// Below this nothing is worth a remark.
const SMALL_BYTES: usize = 5 << 20;

const MEMORY: Command = Command {
    name: "memory",
    group: Group::Server,
    since: "4.0.0",
    summary: "Shows what memory is used for.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        MEMORY_DOCTOR,
        MEMORY_HELP,
        MEMORY_MALLOC_STATS,
        MEMORY_PURGE,
        MEMORY_STATS,
        MEMORY_USAGE,
    ])
};

const MEMORY_DOCTOR: Command = Command {
    name: "doctor",
    group: Group::Server,
    since: "4.0.0",
    summary: "Explains in words what memory is used for.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    reply: &[Shape::Verbatim],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    ..runs_on_all(memory_doctor)
};

fn memory_doctor(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let facts = Facts::gather(cx);
    let used = facts.used_bytes;
    let mut text = String::new();
    if used < SMALL_BYTES {
        text += "Too little memory is in use to say anything about it.\n";
        out.verbatim("txt", text.as_bytes());
        return Ok(());
    }
    let peak = facts.peak().0;
    if peak / 2 > used {
        let _ = writeln!(
            text,
            "* Peak: {} were in use once, {} are now. What was freed may not go back to the system \
             at once.",
            human(peak as u64),
            human(used as u64)
        );
    }
    if facts.rss_bytes / 2 > used as u64 {
        let _ = writeln!(
            text,
            "* Fragmentation: the system gave {}, {} are in use.",
            human(facts.rss_bytes),
            human(used as u64)
        );
    }
    if facts.clients.buffer_bytes / 4 > used / 5 {
        let _ = writeln!(
            text,
            "* Clients: {} wait in their buffers. CLIENT LIST shows whose they are.",
            human(facts.clients.buffer_bytes as u64)
        );
    }
    if text.is_empty() {
        text += "Nothing looks wrong with the memory.\n";
    }
    out.verbatim("txt", text.as_bytes());
    Ok(())
}

const MEMORY_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "4.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(memory_help)
};

fn memory_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let lines = [
        "MEMORY <subcommand> [<argument> ...]:",
        "DOCTOR",
        "    Says what looks wrong.",
        "MALLOC-STATS",
        "    What the allocator says of itself.",
        "PURGE",
        "    Gives free memory back to the system.",
        "STATS",
        "    What memory is used for, in figures.",
        "USAGE <key> [SAMPLES <count>]",
        "    The bytes of a key and its value. They are counted, not sampled.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const MEMORY_MALLOC_STATS: Command = Command {
    name: "malloc-stats",
    group: Group::Server,
    since: "4.0.0",
    summary: "Returns the statistics of the allocator.",
    arity: Arity::exactly(2),
    reply: &[Shape::Verbatim],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    ..runs(memory_malloc_stats)
};

fn memory_malloc_stats(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let used = ThreadHost::of(cx).shared.used_bytes();
    let text = format!(
        "mimalloc: {used} bytes allocated, {} at the peak, {} resident\n",
        crate::alloc::peak_bytes(),
        rss_bytes()
    );
    out.verbatim("txt", text.as_bytes());
    Ok(())
}

const MEMORY_PURGE: Command = Command {
    name: "purge",
    group: Group::Server,
    since: "4.0.0",
    summary: "Gives unused memory back to the operating system.",
    arity: Arity::exactly(2),
    reply: &[Shape::Ok],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..runs(memory_purge)
};

fn memory_purge(
    _: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    crate::alloc::purge();
    out.ok();
    Ok(())
}

const MEMORY_STATS: Command = Command {
    name: "stats",
    group: Group::Server,
    since: "4.0.0",
    summary: "Returns what memory is used for, in figures.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    reply: &[Shape::Map],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    ..runs_on_all(memory_stats)
};

#[allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)] // Bytes of one machine.
fn memory_stats(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let facts = Facts::gather(cx);
    let used = facts.used_bytes;
    let startup = facts.shared.startup_bytes.load(Ordering::Relaxed) as usize;
    let keys: usize = facts.dbs.iter().map(|db| db.keys).sum();
    let net = used.saturating_sub(startup);
    let mark = out.begin_array();
    let pairs = Cell::new(facts.dbs.len());
    let int = |out: &mut Writer<'_>, name: &str, value: usize| {
        out.text(name);
        out.int(value as i64);
        pairs.set(pairs.get() + 1);
    };
    int(out, "peak.allocated", facts.peak().0);
    int(out, "total.allocated", used);
    int(out, "startup.allocated", startup);
    int(out, "replication.backlog", 0);
    int(out, "replica.fullsync.buffer", 0);
    int(out, "clients.slaves", 0);
    int(out, "clients.normal", facts.clients.buffer_bytes);
    for name in [
        "clients.normal.shared",
        "clients.normal.unshared",
        "cluster.links",
        "aof.buffer",
    ] {
        int(out, name, 0);
    }
    int(out, "lua.caches", facts.scripts.eval_bytes);
    int(out, "functions.caches", facts.scripts.function_bytes);
    int(out, "script.VMs", facts.scripts.vm_total());
    int(out, "hash.templates", 0);
    for db in &facts.dbs {
        out.text(&format!("db.{}", db.number));
        out.map(2);
        out.text("overhead.hashtable.main");
        out.count(db.table_bytes);
        out.text("overhead.hashtable.expires");
        out.int(0);
    }
    int(out, "overhead.db.hashtable.lut", facts.table_bytes);
    int(out, "overhead.db.hashtable.rehashing", 0);
    int(out, "overhead.total", facts.overhead_bytes());
    int(out, "db.dict.rehashing.count", 0);
    int(out, "keys.count", keys);
    int(
        out,
        "keys.bytes-per-key",
        net.checked_div(keys).unwrap_or(0),
    );
    int(out, "dataset.bytes", facts.dataset_bytes());
    let ratio = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    let rss = facts.rss_bytes as usize;
    let double = |out: &mut Writer<'_>, name: &str, value: f64| {
        out.text(name);
        out.double(value);
        pairs.set(pairs.get() + 1);
    };
    double(
        out,
        "dataset.percentage",
        100.0 * ratio(facts.dataset_bytes(), net),
    );
    double(out, "peak.percentage", 100.0 * ratio(used, facts.peak().0));
    int(out, "allocator.allocated", used);
    int(out, "allocator.active", rss);
    int(out, "allocator.resident", rss);
    int(out, "allocator.muzzy", 0);
    double(out, "allocator-fragmentation.ratio", ratio(rss, used));
    int(
        out,
        "allocator-fragmentation.bytes",
        rss.saturating_sub(used),
    );
    double(out, "allocator-rss.ratio", 1.0);
    int(out, "allocator-rss.bytes", 0);
    double(out, "rss-overhead.ratio", 1.0);
    int(out, "rss-overhead.bytes", 0);
    double(out, "fragmentation", ratio(rss, used));
    int(out, "fragmentation.bytes", rss.saturating_sub(used));
    out.end_map(mark, pairs.get());
    Ok(())
}

const MEMORY_USAGE: Command = Command {
    name: "usage",
    group: Group::Server,
    since: "4.0.0",
    summary: "Estimates the bytes that a key and its value take.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    keys: &[KeySpec::at(2).ro()],
    args: &[key("key"), int("count").token("SAMPLES").optional()],
    reply: &[Shape::Int, Shape::Null],
    ..runs(memory_usage)
};

fn memory_usage(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut rest = args.from(3);
    while rest.len() > 0 {
        if !rest.is(0, "SAMPLES") || rest.len() < 2 {
            return Err(CommandError::Syntax);
        }
        if engine::number::int(rest.at(1))? < 0 {
            return Err(CommandError::Syntax);
        }
        rest = rest.from(2);
    }
    let Some(record) = cx.peek(args.at(2)) else {
        out.null();
        return Ok(());
    };
    let held = match record.value() {
        ValueRef::Object(object) => object.memory_bytes(),
        ValueRef::Bytes(_) | ValueRef::Int(_) => record.long_bytes(),
    };
    out.count(SLOT_BYTES + record.allocated_bytes() + held);
    Ok(())
}
