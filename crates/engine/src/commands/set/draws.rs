//! Members drawn at random.
//!
//! # Invariants
//! - Each member is as likely as the others, and each set of members where several are drawn.
//! - What was popped is logged by its name.

use std::collections::HashSet;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::listpack::Entry;

use super::{edit, read, taken};
use crate::handler::runs;
use crate::number;
use crate::object::{Set, write_entry};
use crate::random::Draws;
use crate::{Command, CommandError, Context};

/// The most draws with repetition in one command. Redis has no such limit, and fills the memory.
const DRAWS_MAX: u64 = 1 << 24;

pub(super) const SPOP: Command = Command {
    name: "spop",
    group: Group::Set,
    since: "1.0.0",
    summary: "Removes random members from a set and returns them.",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::SET,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[key("key"), int("count").since("3.2.0").optional()],
    reply: &[Shape::Bulk, Shape::Null, Shape::Set],
    tips: &["nondeterministic_output"],
    history: &[("3.2.0", "Takes a count.")],
    ..runs(spop)
};

fn spop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let mut draws = Draws::new(cx.host.random());
    if args.len() == 2 {
        let is_logged = cx.is_logged();
        let Some(set) = edit(cx, key)? else {
            out.null();
            return Ok(());
        };
        let popped = set.pop_random(
            |n| draws.below(n),
            |entry| {
                write_entry(out, entry);
                is_logged.then(|| entry.to_vec())
            },
        );
        let empty = set.is_empty();
        taken(cx, key, "spop", empty);
        if let Some(Some(member)) = popped {
            cx.rewrite(&[b"SREM", key, &member]);
        }
        return Ok(());
    }
    let error = CommandError::text("ERR value is out of range, must be positive");
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let count = number::count(args.at(2), error)?;
    pop_many(cx, key, count, &mut draws, out)
}

fn pop_many(
    cx: &mut Context<'_>,
    key: &[u8],
    count: usize,
    draws: &mut Draws,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let is_logged = cx.is_logged();
    let Some(set) = edit(cx, key)? else {
        out.set(0);
        return Ok(());
    };
    if count == 0 {
        out.set(0);
        return Ok(());
    }
    if count >= set.len() {
        out.set(set.len());
        set.iter().for_each(|entry| write_entry(out, entry));
        // The whole value goes, to be freed later.
        let members = set.len();
        cx.of_elements(key, members);
        taken(cx, key, "spop", true);
        cx.rewrite(&[b"DEL", key]);
        return Ok(());
    }
    out.set(count);
    let mut popped = Vec::new();
    for _ in 0..count {
        set.pop_random(
            |n| draws.below(n),
            |entry| {
                write_entry(out, entry);
                if is_logged {
                    popped.push(entry.to_vec());
                }
            },
        );
    }
    cx.of_elements(key, count);
    taken(cx, key, "spop", false);
    if is_logged {
        let mut words = vec![&b"SREM"[..], key];
        words.extend(popped.iter().map(Vec::as_slice));
        cx.rewrite(&words);
    }
    Ok(())
}

pub(super) const SRANDMEMBER: Command = Command {
    name: "srandmember",
    group: Group::Set,
    since: "1.0.0",
    summary: "Returns random members of a set.",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("count").since("2.6.0").optional()],
    reply: &[Shape::Bulk, Shape::Null, Shape::Array],
    tips: &["nondeterministic_output"],
    history: &[("2.6.0", "Takes a count.")],
    ..runs(srandmember)
};

fn srandmember(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let mut draws = Draws::new(cx.host.random());
    if args.len() == 2 {
        match read(cx, args.at(1))?.and_then(|set| set.random(|n| draws.below(n))) {
            Some(entry) => write_entry(out, entry),
            None => out.null(),
        }
        return Ok(());
    }
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let count = match number::int(args.at(2))? {
        // Redis refuses what has no opposite, in these words.
        i64::MIN => {
            return Err(CommandError::text(
                "ERR value is out of range, value must between -9223372036854775807 and \
                 9223372036854775807",
            ));
        }
        count => count,
    };
    let Some(set) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    if count < 0 {
        let count = count.unsigned_abs();
        if count > DRAWS_MAX {
            return Err(CommandError::Range);
        }
        out.array(usize::try_from(count).unwrap_or(0));
        for _ in 0..count {
            if let Some(entry) = set.random(|n| draws.below(n)) {
                write_entry(out, entry);
            }
        }
        return Ok(());
    }
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(set.len());
    out.array(count);
    distinct(set, count, &mut draws, |entry| write_entry(out, entry));
    Ok(())
}

/// Gives `count` different members to `each`; `count` is at most the number of members.
fn distinct<'s>(set: &'s Set, count: usize, draws: &mut Draws, mut each: impl FnMut(Entry<'s>)) {
    // Few of many: draw until there are enough. At most two in three draws repeat one.
    if count < set.len() / 3 && set.len() > 64 {
        let mut drawn = HashSet::with_capacity(count);
        while drawn.len() < count {
            let Some(entry) = set.random(|n| draws.below(n)) else {
                return;
            };
            if drawn.insert(entry) {
                each(entry);
            }
        }
        return;
    }
    // One walk: a member is taken with the odds of what is wanted to what is left.
    let (mut wanted, mut left) = (count as u64, set.len() as u64);
    for entry in set.iter() {
        if wanted == 0 {
            return;
        }
        if draws.below(left) < wanted {
            each(entry);
            wanted -= 1;
        }
        left -= 1;
    }
}
