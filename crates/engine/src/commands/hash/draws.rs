//! Fields of a hash drawn at random, and stepped through.

use std::collections::HashSet;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::listpack::Entry;

use super::{read, reclaim};
use crate::commands::element_scan;
use crate::glob;
use crate::handler::runs;
use crate::object::hash::Field;
use crate::object::{Hash, write_entry};
use crate::random::Draws;
use crate::{Command, CommandError, Context};

/// The most draws with repetition in one command. Redis has no such limit, and fills the memory.
const DRAWS_MAX: u64 = 1 << 24;

pub(super) const HRANDFIELD: Command = Command {
    name: "hrandfield",
    group: Group::Hash,
    since: "6.2.0",
    summary: "Returns random fields of a hash.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("options", &[int("count"), flag("WITHVALUES").optional()]).optional(),
    ],
    reply: &[Shape::Bulk, Shape::Null, Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(hrandfield)
};

fn hrandfield(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let mut draws = Draws::new(cx.host.random());
    reclaim(cx, args.at(1), None);
    if args.len() == 2 {
        let hash = read(cx, args.at(1))?;
        match hash.and_then(|hash| hash.random(now_ms, |n| draws.below(n))) {
            Some((field, _)) => write_entry(out, field),
            None => out.null(),
        }
        return Ok(());
    }
    let (count, with_values) = element_scan::count_and_flag(args, "WITHVALUES")?;
    let Some(hash) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    let give = |out: &mut Writer<'_>, field, found: Field<'_>| {
        if with_values && out.is_resp3() {
            out.array(2);
        }
        write_entry(out, field);
        if with_values {
            write_entry(out, found.value);
        }
    };
    let flat = 1 + usize::from(with_values && !out.is_resp3());
    let living = hash.living(now_ms);
    if count < 0 && living > 0 {
        let count = count.unsigned_abs();
        if count > DRAWS_MAX {
            return Err(CommandError::Range);
        }
        out.array(usize::try_from(count).unwrap_or(0) * flat);
        for _ in 0..count {
            if let Some((field, found)) = hash.random(now_ms, |n| draws.below(n)) {
                give(out, field, found);
            }
        }
        return Ok(());
    }
    let count = usize::try_from(count).unwrap_or(0).min(living);
    out.array(count * flat);
    distinct(hash, count, now_ms, &mut draws, |field, found| {
        give(out, field, found);
    });
    Ok(())
}

/// Gives `count` different living fields to `each`, any such choice as likely as the others.
fn distinct<'h>(
    hash: &'h Hash,
    count: usize,
    now_ms: u64,
    draws: &mut Draws,
    mut each: impl FnMut(Entry<'h>, Field<'h>),
) {
    let living = hash.living(now_ms);
    if count >= living {
        return hash.each(now_ms, each);
    }
    if count * 3 > living {
        // Most are chosen: a shuffle of all stops after the first of them.
        let mut all = Vec::with_capacity(living);
        hash.each(now_ms, |field, found| all.push((field, found)));
        for at in 0..count {
            let other = at + usize::try_from(draws.below((all.len() - at) as u64)).unwrap_or(0);
            all.swap(at, other);
            each(all[at].0, all[at].1);
        }
        return;
    }
    let mut seen = HashSet::with_capacity(count);
    while seen.len() < count {
        let Some((field, found)) = hash.random(now_ms, |n| draws.below(n)) else {
            return;
        };
        if seen.insert(field) {
            each(field, found);
        }
    }
}

pub(super) const HSCAN: Command = Command {
    name: "hscan",
    group: Group::Hash,
    since: "2.8.0",
    summary: "Steps through the fields of a hash and their values.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("cursor"),
        pattern("pattern").token("MATCH").optional(),
        int("count").token("COUNT").optional(),
        flag("NOVALUES").optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(hscan)
};

fn hscan(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let cursor = crate::number::cursor(args.at(2))?;
    let Some(hash) = read(cx, args.at(1))? else {
        element_scan::nothing(out);
        return Ok(());
    };
    let options = element_scan::options(args, true)?;
    out.array(2);
    let mut given = Vec::new();
    // The cursor stands before the fields, and is known only after them.
    let next = hash.scan(cursor, options.count, now_ms, |field, found| {
        let mut digits = [0; TEXT_MAX];
        let name = field.bytes(&mut digits);
        if options
            .pattern
            .is_none_or(|pattern| glob::matches(pattern, name))
        {
            given.push((field, found.value));
        }
    });
    out.text(&next.to_string());
    out.array(given.len() * (2 - usize::from(options.names_only)));
    for (field, value) in given {
        write_entry(out, field);
        if !options.names_only {
            write_entry(out, value);
        }
    }
    Ok(())
}
