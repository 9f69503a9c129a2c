//! What combines several sorted sets, and sets, whose members count as of score 1.
//!
//! # Invariants
//! - Every key is looked up, and its type checked, before the options are read, as Redis does.
//! - Scores are combined from the smallest set to the biggest. A sum that is no number is 0, and
//!   so is such a weighted score, but for those that an intersection adds to its first.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::listpack::Entry;

use super::ranges::store;
use super::score;
use crate::handler::runs;
use crate::number;
use crate::object::{Object, Set, SortedSet, Terms, write_entry};
use crate::{Command, CommandError, Context};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// How the scores of one member become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Aggregate {
    Sum,
    Min,
    Max,
    /// The sum of the weights.
    Count,
}

impl Aggregate {
    fn combine(self, old: f64, new: f64) -> f64 {
        match self {
            Self::Sum | Self::Count => number_or_zero(old + new),
            Self::Min if new < old => new,
            Self::Max if new > old => new,
            // A new score that is no number changes nothing.
            Self::Min | Self::Max => old,
        }
    }

    /// May be no number: infinity times zero.
    fn weighted(self, weight: f64, score: f64) -> f64 {
        match self {
            Self::Count => weight,
            _ => weight * score,
        }
    }
}

fn number_or_zero(value: f64) -> f64 {
    if value.is_nan() { 0.0 } else { value }
}

/// One input.
#[derive(Clone, Copy)]
enum Source<'c> {
    Missing,
    Sorted(&'c SortedSet),
    Set(&'c Set),
}

impl<'c> Source<'c> {
    fn len(self) -> usize {
        match self {
            Self::Missing => 0,
            Self::Sorted(set) => set.len(),
            Self::Set(set) => set.len(),
        }
    }

    fn score(self, terms: Terms<'_>, member: &[u8]) -> Option<f64> {
        match self {
            Self::Missing => None,
            Self::Sorted(set) => set.score(terms, member),
            Self::Set(set) => set.contains(member, terms.seed).then_some(1.0),
        }
    }

    fn each(self, mut f: impl FnMut(Entry<'c>, f64)) {
        match self {
            Self::Missing => {}
            Self::Sorted(set) => set.each(0..set.len(), false, f),
            Self::Set(set) => set.iter().for_each(|member| f(member, 1.0)),
        }
    }
}

/// The keys whose number stands at word `at`.
fn keys(
    cx: &Context<'_>,
    args: Args<'_>,
    at: usize,
) -> Result<std::ops::Range<usize>, CommandError> {
    let count = number::int(args.at(at))?;
    if count < 1 {
        let name = cx.command_name();
        return Err(CommandError::err(format!(
            "at least 1 input key is needed for '{name}' command"
        )));
    }
    let end = usize::try_from(count)
        .ok()
        .and_then(|count| count.checked_add(at + 1));
    match end.filter(|end| *end <= args.len()) {
        Some(end) => Ok(at + 1..end),
        None => Err(CommandError::Syntax),
    }
}

fn sources<'c>(
    cx: &'c mut Context<'_>,
    args: Args<'_>,
    keys: std::ops::Range<usize>,
) -> Result<Vec<Source<'c>>, CommandError> {
    for at in keys.clone() {
        match cx.read_object(args.at(at))? {
            None | Some(Object::SortedSet(_) | Object::Set(_)) => {}
            Some(_) => return Err(CommandError::WrongType),
        }
    }
    let cx = &*cx;
    keys.map(|at| match cx.view_object(args.at(at))? {
        None => Ok(Source::Missing),
        Some(Object::SortedSet(set)) => Ok(Source::Sorted(set)),
        Some(Object::Set(set)) => Ok(Source::Set(set)),
        Some(_) => Err(CommandError::WrongType),
    })
    .collect()
}

/// The options behind the keys.
struct Options {
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
}

impl Options {
    fn parse(
        args: Args<'_>,
        mut at: usize,
        sources: usize,
        operation: Operation,
        is_store: bool,
    ) -> Result<Self, CommandError> {
        let mut options = Self {
            weights: vec![1.0; sources],
            aggregate: Aggregate::Sum,
            with_scores: false,
        };
        let combines = operation != Operation::Difference;
        while at < args.len() {
            let left = args.len() - at - 1;
            if combines && args.is(at, "WEIGHTS") && left >= sources {
                for weight in &mut options.weights {
                    at += 1;
                    let error = CommandError::text("ERR weight value is not a float");
                    *weight = score(args.at(at)).ok_or(error)?;
                }
            } else if combines && args.is(at, "AGGREGATE") && left >= 1 {
                at += 1;
                options.aggregate = match () {
                    () if args.is(at, "SUM") => Aggregate::Sum,
                    () if args.is(at, "MIN") => Aggregate::Min,
                    () if args.is(at, "MAX") => Aggregate::Max,
                    () if args.is(at, "COUNT") => Aggregate::Count,
                    () => return Err(CommandError::Syntax),
                };
            } else if !is_store && args.is(at, "WITHSCORES") {
                options.with_scores = true;
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        Ok(options)
    }
}

/// The result; zeros have their signs in it.
fn combine(
    operation: Operation,
    sources: &[Source<'_>],
    options: &Options,
    terms: Terms<'_>,
) -> SortedSet {
    let mut result = SortedSet::default();
    let aggregate = options.aggregate;
    let mut inputs: Vec<_> = sources
        .iter()
        .copied()
        .zip(options.weights.iter().copied())
        .collect();
    if operation != Operation::Difference {
        inputs.sort_by_key(|(source, _)| source.len());
    }
    let Some((&(first, weight), others)) = inputs.split_first() else {
        return result;
    };
    match operation {
        Operation::Union => {
            for (source, weight) in inputs {
                source.each(|member, score| {
                    let mut digits = [0; TEXT_MAX];
                    let member = member.bytes(&mut digits);
                    let mut score = number_or_zero(aggregate.weighted(weight, score));
                    if let Some(old) = result.score(terms, member) {
                        score = aggregate.combine(old, score);
                    }
                    result.insert_signed(terms, member, score);
                });
            }
        }
        Operation::Intersection => first.each(|member, score| {
            let mut digits = [0; TEXT_MAX];
            let member = member.bytes(&mut digits);
            let start = Some(number_or_zero(aggregate.weighted(weight, score)));
            let score = others.iter().fold(start, |sum, (source, weight)| {
                let found = source.score(terms, member)?;
                Some(aggregate.combine(sum?, aggregate.weighted(*weight, found)))
            });
            if let Some(score) = score {
                result.insert_signed(terms, member, score);
            }
        }),
        Operation::Difference => first.each(|member, score| {
            let mut digits = [0; TEXT_MAX];
            let member = member.bytes(&mut digits);
            if !others
                .iter()
                .any(|(source, _)| source.score(terms, member).is_some())
            {
                result.insert_signed(terms, member, score);
            }
        }),
    }
    result
}

fn reply(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    operation: Operation,
) -> Result<(), CommandError> {
    let (terms, keys) = (cx.terms(), keys(cx, args, 1)?);
    let (count, end) = (keys.len(), keys.end);
    let sources = sources(cx, args, keys)?;
    let options = Options::parse(args, end, count, operation, false)?;
    let result = combine(operation, &sources, &options, terms);
    let pairs = options.with_scores && out.is_resp3();
    out.array(result.len() * (1 + usize::from(options.with_scores && !pairs)));
    result.each(0..result.len(), false, |member, score| {
        if pairs {
            out.array(2);
        }
        write_entry(out, member);
        if options.with_scores {
            out.double(score);
        }
    });
    Ok(())
}

fn store_result(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    operation: Operation,
    event: &str,
) -> Result<(), CommandError> {
    let (terms, keys) = (cx.terms(), keys(cx, args, 2)?);
    let (count, end) = (keys.len(), keys.end);
    let sources = sources(cx, args, keys)?;
    let options = Options::parse(args, end, count, operation, true)?;
    let mut result = combine(operation, &sources, &options, terms);
    drop(sources);
    result.settle();
    store(cx, args.at(1), result, event, out);
    Ok(())
}

pub(super) const ZUNION: Command = Command {
    name: "zunion",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Returns the members that any of the sorted sets has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        int("weight").token("WEIGHTS").optional().multiple(),
        one_of(
            "aggregate",
            &[
                flag("SUM"),
                flag("MIN"),
                flag("MAX"),
                flag("COUNT").since("8.8.0"),
            ],
        )
        .token("AGGREGATE")
        .optional(),
        flag("WITHSCORES").optional(),
    ],
    reply: &[Shape::Array],
    history: &[("8.8.0", "Takes `AGGREGATE COUNT`.")],
    ..runs(zunion)
};

fn zunion(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, Operation::Union)
}

pub(super) const ZINTER: Command = Command {
    name: "zinter",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Returns the members that all sorted sets have.",
    complexity: "O(N*K)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        int("weight").token("WEIGHTS").optional().multiple(),
        one_of(
            "aggregate",
            &[
                flag("SUM"),
                flag("MIN"),
                flag("MAX"),
                flag("COUNT").since("8.8.0"),
            ],
        )
        .token("AGGREGATE")
        .optional(),
        flag("WITHSCORES").optional(),
    ],
    reply: &[Shape::Array],
    history: &[("8.8.0", "Takes `AGGREGATE COUNT`.")],
    ..runs(zinter)
};

fn zinter(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, Operation::Intersection)
}

pub(super) const ZDIFF: Command = Command {
    name: "zdiff",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Returns the members of the first sorted set that no other has.",
    complexity: "O(L + (N-K)*log(N))",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        flag("WITHSCORES").optional(),
    ],
    reply: &[Shape::Array],
    ..runs(zdiff)
};

fn zdiff(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, Operation::Difference)
}

pub(super) const ZUNIONSTORE: Command = Command {
    name: "zunionstore",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Stores the members that any of the sorted sets has.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SORTEDSET,
    keys: &[
        KeySpec::at(1).ow().update(),
        KeySpec::at(2).counted().ro().access(),
    ],
    args: &[
        key("destination"),
        int("numkeys"),
        key("key").spec(1).multiple(),
        int("weight").token("WEIGHTS").optional().multiple(),
        one_of(
            "aggregate",
            &[
                flag("SUM"),
                flag("MIN"),
                flag("MAX"),
                flag("COUNT").since("8.8.0"),
            ],
        )
        .token("AGGREGATE")
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("8.8.0", "Takes `AGGREGATE COUNT`.")],
    ..runs(zunionstore)
};

fn zunionstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store_result(cx, args, out, Operation::Union, "zunionstore")
}

pub(super) const ZINTERSTORE: Command = Command {
    name: "zinterstore",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Stores the members that all sorted sets have.",
    complexity: "O(N*K)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SORTEDSET,
    keys: &[
        KeySpec::at(1).ow().update(),
        KeySpec::at(2).counted().ro().access(),
    ],
    args: &[
        key("destination"),
        int("numkeys"),
        key("key").spec(1).multiple(),
        int("weight").token("WEIGHTS").optional().multiple(),
        one_of(
            "aggregate",
            &[
                flag("SUM"),
                flag("MIN"),
                flag("MAX"),
                flag("COUNT").since("8.8.0"),
            ],
        )
        .token("AGGREGATE")
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("8.8.0", "Takes `AGGREGATE COUNT`.")],
    ..runs(zinterstore)
};

fn zinterstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store_result(cx, args, out, Operation::Intersection, "zinterstore")
}

pub(super) const ZDIFFSTORE: Command = Command {
    name: "zdiffstore",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Stores the members of the first sorted set that no other has.",
    complexity: "O(L + (N-K)*log(N))",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SORTEDSET,
    keys: &[
        KeySpec::at(1).ow().update(),
        KeySpec::at(2).counted().ro().access(),
    ],
    args: &[
        key("destination"),
        int("numkeys"),
        key("key").spec(1).multiple(),
    ],
    reply: &[Shape::Int],
    ..runs(zdiffstore)
};

fn zdiffstore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    store_result(cx, args, out, Operation::Difference, "zdiffstore")
}

pub(super) const ZINTERCARD: Command = Command {
    name: "zintercard",
    group: Group::SortedSet,
    since: "7.0.0",
    summary: "Counts the members that all sorted sets have.",
    complexity: "O(N*K)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).counted().ro().access()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        int("limit").token("LIMIT").optional(),
    ],
    reply: &[Shape::Int],
    ..runs(zintercard)
};

fn zintercard(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (terms, keys) = (cx.terms(), keys(cx, args, 1)?);
    let end = keys.end;
    let mut sources = sources(cx, args, keys)?;
    let mut limit = 0;
    for at in (end..args.len()).step_by(2) {
        if !args.is(at, "LIMIT") || at + 1 >= args.len() {
            return Err(CommandError::Syntax);
        }
        let error = CommandError::text("ERR LIMIT can't be negative");
        limit = number::count(args.at(at + 1), error)?;
    }
    sources.sort_by_key(|source| source.len());
    let limit = if limit == 0 { usize::MAX } else { limit };
    let mut count = 0;
    if let Some((first, others)) = sources.split_first() {
        first.each(|member, _| {
            let mut digits = [0; TEXT_MAX];
            let member = member.bytes(&mut digits);
            if count < limit
                && others
                    .iter()
                    .all(|other| other.score(terms, member).is_some())
            {
                count += 1;
            }
        });
    }
    out.count(count);
    Ok(())
}
