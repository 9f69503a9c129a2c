//! Several sets at once: what all of them have, any of them, or only the first.
//!
//! Members go to a sink one by one: to the reply, to a count with a limit, or into a new set. The
//! new set is whole before its key is touched, since that key may be one of the sources.
//!
//! # Why are there no plans that depend on the sizes?
//! Redis copies the first set of a difference and removes what the others have, where that compares
//! less. Here a comparison is one lookup by hash, and a copy costs more than it saves.

use std::ops::ControlFlow;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::hash::{Seed, hash};
use structure::listpack::Entry;

use super::read;
use crate::handler::runs;
use crate::notify::Class;
use crate::number;
use crate::object::{Object, Set, write_entry};
use crate::{Command, CommandError, Context};

/// How sets are combined.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Difference,
    Intersection,
    Union,
}

pub(super) const SDIFF: Command = Command {
    name: "sdiff",
    group: Group::Set,
    since: "1.0.0",
    summary: "Returns the members of the first set that no other set has.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).last(-1).ro().access()],
    args: &[key("key").multiple()],
    reply: &[Shape::Set],
    tips: &["nondeterministic_output_order"],
    ..runs(sdiff)
};

fn sdiff(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, Operation::Difference)
}

pub(super) const SDIFFCARD: Command = Command {
    name: "sdiffcard",
    group: Group::Set,
    since: "8.10.0",
    summary: "Counts the members of the first set that no other set has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        int("limit").token("LIMIT").optional(),
    ],
    reply: &[Shape::Int],
    ..runs(sdiffcard)
};

fn sdiffcard(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    count(cx, args, out, Operation::Difference)
}

pub(super) const SDIFFSTORE: Command = Command {
    name: "sdiffstore",
    group: Group::Set,
    since: "1.0.0",
    summary: "Stores the members of the first set that no other set has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SET,
    keys: &[
        KeySpec::at(1).ow().update(),
        KeySpec::at(2).last(-1).ro().access(),
    ],
    args: &[key("destination"), key("key").spec(1).multiple()],
    reply: &[Shape::Int],
    ..runs(sdiffstore)
};

fn sdiffstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store(cx, args, out, Operation::Difference, "sdiffstore")
}

pub(super) const SINTER: Command = Command {
    name: "sinter",
    group: Group::Set,
    since: "1.0.0",
    summary: "Returns the members that all sets have.",
    complexity: "O(N*M)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).last(-1).ro().access()],
    args: &[key("key").multiple()],
    reply: &[Shape::Set],
    tips: &["nondeterministic_output_order"],
    ..runs(sinter)
};

fn sinter(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, Operation::Intersection)
}

pub(super) const SINTERCARD: Command = Command {
    name: "sintercard",
    group: Group::Set,
    since: "7.0.0",
    summary: "Counts the members that all sets have.",
    complexity: "O(N*M)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        int("limit").token("LIMIT").optional(),
    ],
    reply: &[Shape::Int],
    ..runs(sintercard)
};

fn sintercard(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    count(cx, args, out, Operation::Intersection)
}

pub(super) const SINTERSTORE: Command = Command {
    name: "sinterstore",
    group: Group::Set,
    since: "1.0.0",
    summary: "Stores the members that all sets have.",
    complexity: "O(N*M)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SET,
    keys: &[
        KeySpec::at(1).ow().update(),
        KeySpec::at(2).last(-1).ro().access(),
    ],
    args: &[key("destination"), key("key").spec(1).multiple()],
    reply: &[Shape::Int],
    ..runs(sinterstore)
};

fn sinterstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store(cx, args, out, Operation::Intersection, "sinterstore")
}

pub(super) const SUNION: Command = Command {
    name: "sunion",
    group: Group::Set,
    since: "1.0.0",
    summary: "Returns the members that any of the sets has.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).last(-1).ro().access()],
    args: &[key("key").multiple()],
    reply: &[Shape::Set],
    tips: &["nondeterministic_output_order"],
    ..runs(sunion)
};

fn sunion(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, Operation::Union)
}

pub(super) const SUNIONCARD: Command = Command {
    name: "sunioncard",
    group: Group::Set,
    since: "8.10.0",
    summary: "Counts the members that any of the sets has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        flag("APPROX").optional(),
        int("limit").token("LIMIT").optional(),
    ],
    reply: &[Shape::Int],
    ..runs(sunioncard)
};

fn sunioncard(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    count(cx, args, out, Operation::Union)
}

pub(super) const SUNIONSTORE: Command = Command {
    name: "sunionstore",
    group: Group::Set,
    since: "1.0.0",
    summary: "Stores the members that any of the sets has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SET,
    keys: &[
        KeySpec::at(1).ow().update(),
        KeySpec::at(2).last(-1).ro().access(),
    ],
    args: &[key("destination"), key("key").spec(1).multiple()],
    reply: &[Shape::Int],
    ..runs(sunionstore)
};

fn sunionstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store(cx, args, out, Operation::Union, "sunionstore")
}

/// The sets under keys; every key is looked up as Redis does, so that each type is checked and each
/// use counted.
fn sources<'c>(
    cx: &'c mut Context<'_>,
    args: Args<'_>,
    keys: std::ops::Range<usize>,
) -> Result<Vec<Option<&'c Set>>, CommandError> {
    for at in keys.clone() {
        read(cx, args.at(at))?;
    }
    let cx = &*cx;
    keys.map(|at| match cx.view_object(args.at(at))? {
        None => Ok(None),
        Some(Object::Set(set)) => Ok(Some(set)),
        Some(_) => Err(CommandError::WrongType),
    })
    .collect()
}

fn reply(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    operation: Operation,
) -> Result<(), CommandError> {
    let seed = &cx.shared.seed;
    let sets = sources(cx, args, 1..args.len())?;
    let mark = out.begin_array();
    let mut members = 0;
    combine(operation, &sets, seed, &mut |entry| {
        write_entry(out, entry);
        members += 1;
        ControlFlow::Continue(())
    });
    out.end_set(mark, members);
    Ok(())
}

fn store(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    operation: Operation,
    event: &str,
) -> Result<(), CommandError> {
    let (settings, seed) = (cx.settings, &cx.shared.seed);
    let destination = args.at(1);
    let sets = sources(cx, args, 2..args.len())?;
    let mut result = Set::new();
    let mut insert = |entry: Entry<'_>| {
        result.insert_entry(entry, settings, seed);
        ControlFlow::Continue(())
    };
    if operation == Operation::Union {
        // The new set itself finds out what came twice.
        for entry in sets.iter().flatten().flat_map(|set| set.iter()) {
            let _ = insert(entry);
        }
    } else {
        combine(operation, &sets, seed, &mut insert);
    }
    // Redis reckons what two sets share in the form of the smallest: a listpack but for integers.
    let smallest = sets.iter().flatten().min_by_key(|set| set.len());
    let is_packed = smallest.is_some_and(|set| set.encoding() != "intset");
    if operation == Operation::Intersection && is_packed {
        result.settle(settings);
    }
    drop(sets);
    out.count(result.len());
    if !result.is_empty() {
        cx.put_object(destination, Object::Set(result));
        cx.changed(destination, Class::SET, event);
    } else if cx.displace(destination) {
        cx.changed(destination, Class::GENERIC, "del");
    }
    Ok(())
}

fn count(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    operation: Operation,
) -> Result<(), CommandError> {
    let error = CommandError::text("ERR numkeys should be greater than 0");
    let keys = match number::count(args.at(1), error.clone())? {
        0 => return Err(error),
        keys => keys,
    };
    if keys > args.len() - 2 {
        return Err(CommandError::text(
            "ERR Number of keys can't be greater than number of args",
        ));
    }
    let (mut limit, mut approximate) = (0, false);
    let mut at = 2 + keys;
    while at < args.len() {
        if operation == Operation::Union && args.is(at, "APPROX") {
            approximate = true;
            at += 1;
        } else if args.is(at, "LIMIT") && at + 1 < args.len() {
            let error = CommandError::text("ERR LIMIT can't be negative");
            limit = number::count(args.at(at + 1), error)?;
            at += 2;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let limit = if limit == 0 { usize::MAX } else { limit };
    let seed = &cx.shared.seed;
    let sets = sources(cx, args, 2..2 + keys)?;
    if approximate {
        out.count(approximate_union(&sets, seed).min(limit));
        return Ok(());
    }
    let mut members = 0;
    combine(operation, &sets, seed, &mut |_| {
        members += 1;
        if members < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    out.count(members);
    Ok(())
}

type Sink<'a> = &'a mut dyn FnMut(Entry<'_>) -> ControlFlow<()>;

/// Gives every member of the result to `sink` once, until that breaks off.
fn combine(operation: Operation, sets: &[Option<&Set>], seed: &Seed, sink: Sink<'_>) {
    let _ = match operation {
        Operation::Difference => difference(sets, seed, sink),
        Operation::Intersection => intersection(sets, seed, sink),
        Operation::Union => union(sets, seed, sink),
    };
}

fn difference(sets: &[Option<&Set>], seed: &Seed, sink: Sink<'_>) -> ControlFlow<()> {
    let [Some(first), others @ ..] = sets else {
        return ControlFlow::Continue(());
    };
    let mut others: Vec<_> = others.iter().flatten().collect();
    if others.iter().any(|other| std::ptr::eq(**other, *first)) {
        return ControlFlow::Continue(());
    }
    // The largest is the likeliest to have a member.
    others.sort_by_key(|set| std::cmp::Reverse(set.len()));
    for entry in first.iter() {
        if !others.iter().any(|other| other.contains_entry(entry, seed)) {
            sink(entry)?;
        }
    }
    ControlFlow::Continue(())
}

fn intersection(sets: &[Option<&Set>], seed: &Seed, sink: Sink<'_>) -> ControlFlow<()> {
    let Some(mut sets) = sets.iter().copied().collect::<Option<Vec<_>>>() else {
        return ControlFlow::Continue(());
    };
    // The smallest has the fewest members to look for, and the next the fewest of those.
    sets.sort_by_key(|set| set.len());
    sets.dedup_by(|a, b| std::ptr::eq(*a, *b));
    let Some((smallest, others)) = sets.split_first() else {
        return ControlFlow::Continue(());
    };
    for entry in smallest.iter() {
        if others.iter().all(|other| other.contains_entry(entry, seed)) {
            sink(entry)?;
        }
    }
    ControlFlow::Continue(())
}

/// So many sets are searched for a member of another; where there are more, what was given is kept.
const SEARCHED_MAX: usize = 4;

fn union(sets: &[Option<&Set>], seed: &Seed, sink: Sink<'_>) -> ControlFlow<()> {
    let mut sets: Vec<_> = sets.iter().copied().flatten().collect();
    // The largest is given without a question.
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let mut given = structure::packed::PackedTable::new();
    let hasher = |member: &[u8]| hash(seed, member);
    for (at, set) in sets.iter().enumerate() {
        for entry in set.iter() {
            let searched = &sets[..at.min(SEARCHED_MAX)];
            if searched.iter().any(|set| set.contains_entry(entry, seed)) {
                continue;
            }
            if at > SEARCHED_MAX || (at == SEARCHED_MAX && sets.len() > at + 1) {
                let mut digits = [0; TEXT_MAX];
                let member = entry.bytes(&mut digits);
                if given.insert(hasher(member), member, b"", None, &hasher) {
                    continue;
                }
            }
            sink(entry)?;
        }
    }
    ControlFlow::Continue(())
}

/// The size of a union to within far less than Redis's estimate: members are told apart by 64 bits
/// of hash, at eight bytes a member that the largest set does not have.
fn approximate_union(sets: &[Option<&Set>], seed: &Seed) -> usize {
    let mut sets: Vec<_> = sets.iter().copied().flatten().collect();
    sets.sort_by_key(|set| std::cmp::Reverse(set.len()));
    let Some((largest, others)) = sets.split_first() else {
        return 0;
    };
    let mut hashes: Vec<u64> = others
        .iter()
        .flat_map(|set| set.iter())
        .filter(|entry| !largest.contains_entry(*entry, seed))
        .map(|entry| hash(seed, entry.bytes(&mut [0; TEXT_MAX])))
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    largest.len() + hashes.len()
}
