//! Members of a sorted set drawn at random, and stepped through.

use std::collections::HashSet;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;

use super::read;
use crate::commands::element_scan;
use crate::glob;
use crate::handler::runs;
use crate::object::write_entry;
use crate::random::Draws;
use crate::{Command, CommandError, Context};

/// The most draws with repetition in one command. Redis has no such limit, and fills the memory.
const DRAWS_MAX: u64 = 1 << 24;

pub(super) const ZRANDMEMBER: Command = Command {
    name: "zrandmember",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Returns random members of a sorted set.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("options", &[int("count"), flag("WITHSCORES").optional()]).optional(),
    ],
    reply: &[Shape::Bulk, Shape::Null, Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(zrandmember)
};

fn zrandmember(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut draws = Draws::new(cx.host.random());
    let mut below = |n: usize| usize::try_from(draws.below(n as u64)).unwrap_or(0);
    if args.len() == 2 {
        let set = read(cx, args.at(1))?.filter(|set| !set.is_empty());
        match set.and_then(|set| set.by_rank(below(set.len()))) {
            Some((member, _)) => write_entry(out, member),
            None => out.null(),
        }
        return Ok(());
    }
    let (count, with_scores) = element_scan::count_and_flag(args, "WITHSCORES")?;
    let Some(set) = read(cx, args.at(1))?.filter(|set| !set.is_empty()) else {
        out.array(0);
        return Ok(());
    };
    let len = set.len();
    let ranks: Vec<usize> = if count < 0 {
        if count.unsigned_abs() > DRAWS_MAX {
            return Err(CommandError::Range);
        }
        (0..count.unsigned_abs()).map(|_| below(len)).collect()
    } else {
        distinct(usize::try_from(count).unwrap_or(0).min(len), len, below)
    };
    let pairs = with_scores && out.is_resp3();
    out.array(ranks.len() * (1 + usize::from(with_scores && !pairs)));
    for (member, score) in ranks.into_iter().filter_map(|rank| set.by_rank(rank)) {
        if pairs {
            out.array(2);
        }
        write_entry(out, member);
        if with_scores {
            out.double(score);
        }
    }
    Ok(())
}

/// `count` different numbers below `len`, any such choice as likely as the others.
fn distinct(count: usize, len: usize, mut below: impl FnMut(usize) -> usize) -> Vec<usize> {
    if count * 3 > len {
        let mut all: Vec<usize> = (0..len).collect();
        if count < len {
            for at in 0..count {
                all.swap(at, at + below(len - at));
            }
            all.truncate(count);
        }
        return all;
    }
    let mut seen = HashSet::with_capacity(count);
    let mut chosen = Vec::with_capacity(count);
    while chosen.len() < count {
        let at = below(len);
        if seen.insert(at) {
            chosen.push(at);
        }
    }
    chosen
}

pub(super) const ZSCAN: Command = Command {
    name: "zscan",
    group: Group::SortedSet,
    since: "2.8.0",
    summary: "Steps through the members of a sorted set and their scores.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("cursor"),
        pattern("pattern").token("MATCH").optional(),
        int("count").token("COUNT").optional(),
        flag("NOSCORES").optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(zscan)
};

fn zscan(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let cursor = crate::number::cursor(args.at(2))?;
    let Some(set) = read(cx, args.at(1))? else {
        element_scan::nothing(out);
        return Ok(());
    };
    let options = element_scan::options(args, false)?;
    out.array(2);
    let mut given = Vec::new();
    // The cursor stands before the members, and is known only after them.
    let next = set.scan(cursor, options.count, |member, score| {
        let mut digits = [0; TEXT_MAX];
        let name = member.bytes(&mut digits);
        if options
            .pattern
            .is_none_or(|pattern| glob::matches(pattern, name))
        {
            given.push((member, score));
        }
    });
    out.text(&next.to_string());
    out.array(given.len() * (2 - usize::from(options.names_only)));
    let mut text = Vec::new();
    for (member, score) in given {
        write_entry(out, member);
        if !options.names_only {
            text.clear();
            set.write_scanned(score, &mut text);
            out.bulk(&text);
        }
    }
    Ok(())
}
