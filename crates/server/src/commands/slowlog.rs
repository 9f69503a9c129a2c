//! SLOWLOG: the commands that took longest, newest first.

use command::arg::*;
use command::{Arity, Flags, Group, Shape};
use engine::handler::runs;
use engine::{Command, CommandError, Context, Entry, number};
use resp::{Args, Writer};

use super::secrets;
use crate::config::Config;
use crate::host::ThreadHost;

/// The family.
pub(super) const COMMANDS: &[Command] = &[SLOWLOG];

/// Entries that GET returns unless told otherwise.
const SHOWN_ENTRIES: usize = 10;

const SLOWLOG: Command = Command {
    name: "slowlog",
    group: Group::Server,
    since: "2.2.12",
    summary: "Shows commands that took too long.",
    arity: Arity::at_least(2),
    ..Command::container(&[SLOWLOG_GET, SLOWLOG_HELP, SLOWLOG_LEN, SLOWLOG_RESET])
};

const SLOWLOG_GET: Command = Command {
    name: "get",
    group: Group::Server,
    since: "2.2.12",
    summary: "Returns the latest slow commands.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE),
    args: &[int("count").optional()],
    reply: &[Shape::Array],
    tips: &["request_policy:all_nodes", "nondeterministic_output"],
    history: &[
        ("4.0.0", "Shows the address and the name of the client."),
        ("8.10.0", "Shows more about each slow command."),
    ],
    ..runs(slowlog_get)
};

fn slowlog_get(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(cx.subcommand_error(args));
    }
    let count = match args.get(2).map(number::int) {
        None => SHOWN_ENTRIES,
        Some(Ok(-1)) => usize::MAX,
        Some(Ok(count @ 0..)) => usize::try_from(count).unwrap_or(usize::MAX),
        Some(_) => {
            return Err(CommandError::text(
                "ERR count should be greater than or equal to -1",
            ));
        }
    };
    let log = ThreadHost::of(cx).shared.slowlog.lock();
    out.array(count.min(log.entries.len()));
    let int = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for entry in log.entries.iter().take(count) {
        out.array(7);
        out.int(int(entry.number));
        out.int(int(entry.at_s));
        out.int(int(entry.took_us));
        out.array(entry.words.len());
        entry.words.iter().for_each(|word| out.bulk(word));
        out.text(&entry.address);
        out.bulk(&entry.name);
        out.count(entry.words_count);
    }
    Ok(())
}

const SLOWLOG_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "6.2.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(slowlog_help)
};

fn slowlog_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    cx.help(
        out,
        &[
            "SLOWLOG <subcommand> [<arg> ...]. The subcommands are:",
            "GET [<count>]",
            "    Returns the newest entries: 10, <count>, or all with -1. Each holds its number,",
            "    when it ran, the microseconds it took, its words, the client's address and name,",
            "    and how many words there were.",
            "LEN",
            "    Counts the entries.",
            "RESET",
            "    Forgets all entries.",
            "HELP",
            "    Lists the subcommands.",
        ],
    );
    Ok(())
}

const SLOWLOG_LEN: Command = Command {
    name: "len",
    group: Group::Server,
    since: "2.2.12",
    summary: "Counts the slow commands on record.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE),
    reply: &[Shape::Int],
    tips: &[
        "request_policy:all_nodes",
        "response_policy:agg_sum",
        "nondeterministic_output",
    ],
    ..runs(slowlog_len)
};

fn slowlog_len(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    out.count(ThreadHost::of(cx).shared.slowlog.lock().entries.len());
    Ok(())
}

const SLOWLOG_RESET: Command = Command {
    name: "reset",
    group: Group::Server,
    since: "2.2.12",
    summary: "Forgets the slow commands on record.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN.with(Flags::LOADING).with(Flags::STALE),
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    ..runs(slowlog_reset)
};

fn slowlog_reset(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    ThreadHost::of(cx).shared.slowlog.lock().entries.clear();
    out.ok();
    Ok(())
}

/// A command's words as the slow log keeps them: few, short, and without secrets.
pub fn shown_words(config: &Config, entry: &Entry, args: Args<'_>) -> Vec<Vec<u8>> {
    let words_max = usize::try_from(config.slowlog_entry_max_argc).unwrap_or(usize::MAX);
    let bytes_max =
        usize::try_from(config.slowlog_entry_max_string_len_bytes).unwrap_or(usize::MAX);
    let hidden = secrets::positions(entry, args);
    let mut words = Vec::new();
    for (index, word) in args.iter().enumerate() {
        if index + 1 == words_max && args.len() > words_max {
            let more = args.len() - index;
            words.push(format!("... ({more} more arguments)").into_bytes());
            break;
        }
        if hidden.contains(&index) {
            words.push(secrets::SHOWN.to_vec());
            continue;
        }
        let mut shown = word[..word.len().min(bytes_max)].to_vec();
        if word.len() > bytes_max {
            let more = word.len() - bytes_max;
            shown.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
        }
        words.push(shown);
    }
    words
}
