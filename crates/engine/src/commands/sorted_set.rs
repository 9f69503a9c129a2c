//! Sorted sets.
//!
//! Here stand the commands on single members; ranges, pops, draws and what combines several sets
//! have files of their own.

mod algebra;
mod draws;
mod pops;
mod ranges;

pub(super) use ranges::store;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::notify::Class;
use crate::number;
use crate::object::{Object, SortedSet, Terms};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    pops::BZMPOP,
    pops::BZPOPMAX,
    pops::BZPOPMIN,
    ZADD,
    ZCARD,
    ranges::ZCOUNT,
    algebra::ZDIFF,
    algebra::ZDIFFSTORE,
    ZINCRBY,
    algebra::ZINTER,
    algebra::ZINTERCARD,
    algebra::ZINTERSTORE,
    ranges::ZLEXCOUNT,
    pops::ZMPOP,
    ZMSCORE,
    pops::ZPOPMAX,
    pops::ZPOPMIN,
    draws::ZRANDMEMBER,
    ranges::ZRANGE,
    ranges::ZRANGEBYLEX,
    ranges::ZRANGEBYSCORE,
    ranges::ZRANGESTORE,
    ZRANK,
    ZREM,
    ranges::ZREMRANGEBYLEX,
    ranges::ZREMRANGEBYRANK,
    ranges::ZREMRANGEBYSCORE,
    ranges::ZREVRANGE,
    ranges::ZREVRANGEBYLEX,
    ranges::ZREVRANGEBYSCORE,
    ZREVRANK,
    draws::ZSCAN,
    ZSCORE,
    algebra::ZUNION,
    algebra::ZUNIONSTORE,
];

/// Pairs of one ZADD whose scores need no memory of their own.
const PAIRS_FEW: usize = 8;

/// The sorted set under a key, to be read.
#[inline]
pub(super) fn read<'c>(
    cx: &'c mut Context<'_>,
    key: &[u8],
) -> Result<Option<&'c SortedSet>, CommandError> {
    match cx.read_object(key)? {
        None => Ok(None),
        Some(Object::SortedSet(set)) => Ok(Some(set)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The sorted set under a key, to be changed.
#[inline]
fn edit<'c>(
    cx: &'c mut Context<'_>,
    key: &[u8],
) -> Result<Option<&'c mut SortedSet>, CommandError> {
    match cx.edit_object(key)? {
        None => Ok(None),
        Some(Object::SortedSet(set)) => Ok(Some(set)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Reads a score, or another double of the same grammar; whatever passes the greatest double is
/// none, and so is what is too small to be told from zero.
#[inline]
pub(super) fn score(text: &[u8]) -> Option<f64> {
    if let Some(int) = structure::decimal::parse(text) {
        #[allow(clippy::cast_precision_loss)] // Rounded as the text would be.
        return Some(int as f64);
    }
    number::double(text)
}

/// Reports that members were removed, and removes the key if none is left.
fn removed(cx: &mut Context<'_>, key: &[u8], event: &str, empty: bool) {
    cx.changed(key, Class::SORTED_SET, event);
    if empty {
        cx.remove_empty(key);
    }
}

/// The options of ZADD.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    pub(super) nx: bool,
    pub(super) xx: bool,
    gt: bool,
    lt: bool,
    pub(super) ch: bool,
    incr: bool,
}

/// What ZADD did.
#[derive(Default)]
pub(super) struct Tally {
    added: usize,
    updated: usize,
    /// The last score that was set.
    score: Option<f64>,
}

impl Tally {
    /// What is answered.
    pub(super) fn count(&self, options: Options) -> usize {
        self.added + if options.ch { self.updated } else { 0 }
    }
}

impl Options {
    /// Whether a member takes its score whatever it had.
    fn is_plain(self) -> bool {
        !(self.nx || self.xx || self.gt || self.lt || self.incr)
    }

    /// Reads the options; returns where the pairs begin.
    fn parse(args: Args<'_>) -> (Self, usize) {
        let mut options = Self::default();
        let mut at = 2;
        while let Some(word) = args.get(at) {
            // A score, nearly always.
            if !word.first().is_some_and(u8::is_ascii_alphabetic) {
                break;
            }
            match () {
                () if args.is(at, "NX") => options.nx = true,
                () if args.is(at, "XX") => options.xx = true,
                () if args.is(at, "GT") => options.gt = true,
                () if args.is(at, "LT") => options.lt = true,
                () if args.is(at, "CH") => options.ch = true,
                () if args.is(at, "INCR") => options.incr = true,
                () => break,
            }
            at += 1;
        }
        (options, at)
    }

    fn check(self, pairs: usize) -> Result<(), CommandError> {
        if self.nx && self.xx {
            return Err("ERR XX and NX options at the same time are not compatible".into());
        }
        if [self.gt, self.lt, self.nx].iter().filter(|is| **is).count() > 1 {
            return Err(CommandError::text(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.incr && pairs > 1 {
            return Err("ERR INCR option supports a single increment-element pair".into());
        }
        Ok(())
    }

    /// Sets or raises one member's score.
    fn apply(
        self,
        set: &mut SortedSet,
        terms: Terms<'_>,
        member: &[u8],
        score: f64,
        tally: &mut Tally,
    ) -> Result<(), CommandError> {
        let Some(old) = set.score(terms, member) else {
            if !self.xx {
                set.insert(terms, member, score);
                tally.added += 1;
                tally.score = Some(score);
            }
            return Ok(());
        };
        if self.nx {
            return Ok(());
        }
        let new = if self.incr { old + score } else { score };
        if new.is_nan() {
            return Err("ERR resulting score is not a number (NaN)".into());
        }
        if self.gt && new <= old || self.lt && new >= old {
            return Ok(());
        }
        tally.score = Some(new);
        if new != old {
            set.insert(terms, member, new);
            tally.updated += 1;
        }
        Ok(())
    }
}

const ZADD: Command = Command {
    name: "zadd",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Adds members to a sorted set or changes their scores.",
    complexity: "O(log(N))",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        one_of("condition", &[flag("NX"), flag("XX")])
            .since("3.0.2")
            .optional(),
        one_of("comparison", &[flag("GT"), flag("LT")])
            .since("6.2.0")
            .optional(),
        flag("CH").named("change").since("3.0.2").optional(),
        flag("INCR").named("increment").since("3.0.2").optional(),
        block("data", &[double("score"), string("member")]).multiple(),
    ],
    reply: &[Shape::Int, Shape::Double, Shape::Null],
    history: &[
        ("2.4.0", "Takes several members."),
        ("3.0.2", "Takes `NX`, `XX`, `CH` and `INCR`."),
        ("6.2.0", "Takes `GT` and `LT`."),
    ],
    ..runs(zadd)
};

fn zadd(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (options, first) = Options::parse(args);
    add(cx, args, out, options, first)
}

/// ZADD and ZINCRBY, with the pairs from word `first` on.
#[inline]
fn add(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    options: Options,
    first: usize,
) -> Result<(), CommandError> {
    let words = args.len() - first;
    if words == 0 || !words.is_multiple_of(2) {
        return Err(CommandError::Syntax);
    }
    let pairs = words / 2;
    options.check(pairs)?;
    let (mut few, mut many) = ([0.0; PAIRS_FEW], Vec::new());
    let scores: &mut [f64] = if pairs <= PAIRS_FEW {
        &mut few[..pairs]
    } else {
        many.resize(pairs, 0.0);
        &mut many
    };
    for (index, slot) in scores.iter_mut().enumerate() {
        *slot = score(args.at(first + 2 * index)).ok_or(CommandError::NotFloat)?;
    }
    let tally = put(cx, args.at(1), options, scores, |index| {
        args.at(first + 1 + 2 * index)
    })?;
    if options.incr {
        match tally.score {
            Some(score) => out.double(score),
            None => out.null(),
        }
    } else {
        out.count(tally.count(options));
    }
    Ok(())
}

/// Adds members with their scores, or changes these, and tells whoever listens or waits.
#[inline]
pub(super) fn put<'a>(
    cx: &mut Context<'_>,
    key: &[u8],
    options: Options,
    scores: &[f64],
    member: impl Fn(usize) -> &'a [u8],
) -> Result<Tally, CommandError> {
    let terms = cx.terms();
    let (tally, is_new) = match edit(cx, key)? {
        Some(set) => {
            set.expect_members(terms, scores.len());
            (fill(set, terms, options, scores, member)?, false)
        }
        None if options.xx => (Tally::default(), false),
        None => {
            let mut set = SortedSet::sized(terms, scores.len(), member(0).len());
            let tally = fill(&mut set, terms, options, scores, member)?;
            cx.put_object(key, Object::SortedSet(set));
            (tally, true)
        }
    };
    if tally.added + tally.updated > 0 {
        let event = if options.incr { "zincr" } else { "zadd" };
        cx.changed(key, Class::SORTED_SET, event);
        cx.of_elements(key, tally.added + tally.updated);
    }
    if is_new {
        cx.ready(key);
    }
    Ok(tally)
}

#[inline]
fn fill<'a>(
    set: &mut SortedSet,
    terms: Terms<'_>,
    options: Options,
    scores: &[f64],
    member: impl Fn(usize) -> &'a [u8],
) -> Result<Tally, CommandError> {
    let mut tally = Tally::default();
    let plain = options.is_plain();
    for (index, &score) in scores.iter().enumerate() {
        let member = member(index);
        if set.is_full() {
            return Err("ERR the sorted set has no room for more members".into());
        }
        if !plain {
            options.apply(set, terms, member, score, &mut tally)?;
            continue;
        }
        match set.insert(terms, member, score) {
            None => tally.added += 1,
            Some(old) => tally.updated += usize::from(old != score),
        }
    }
    Ok(tally)
}

const ZINCRBY: Command = Command {
    name: "zincrby",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Adds a number to the score of a member of a sorted set.",
    complexity: "O(log(N))",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), int("increment"), string("member")],
    reply: &[Shape::Double],
    ..runs(zincrby)
};

fn zincrby(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let options = Options {
        incr: true,
        ..Options::default()
    };
    // Redis reads the words as ZADD's, and finds no pair behind an option.
    if Options::parse(args).1 > 2 {
        return Err(CommandError::Syntax);
    }
    add(cx, args, out, options, 2)
}

const ZCARD: Command = Command {
    name: "zcard",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Counts the members of a sorted set.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(zcard)
};

fn zcard(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let len = read(cx, args.at(1))?.map_or(0, SortedSet::len);
    out.count(len);
    Ok(())
}

const ZSCORE: Command = Command {
    name: "zscore",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Returns the score of a member of a sorted set.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member")],
    reply: &[Shape::Double, Shape::Null],
    ..runs(zscore)
};

fn zscore(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    match read(cx, args.at(1))?.and_then(|set| set.score(terms, args.at(2))) {
        Some(score) => out.double(score),
        None => out.null(),
    }
    Ok(())
}

const ZMSCORE: Command = Command {
    name: "zmscore",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Returns the scores of several members of a sorted set.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member").multiple()],
    reply: &[Shape::Array],
    ..runs(zmscore)
};

fn zmscore(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let set = read(cx, args.at(1))?;
    out.array(args.len() - 2);
    for member in args.from(2).iter() {
        match set.and_then(|set| set.score(terms, member)) {
            Some(score) => out.double(score),
            None => out.null(),
        }
    }
    Ok(())
}

fn rank(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    rev: bool,
) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(cx.arity_error());
    }
    let with_score = args.len() == 4;
    if with_score && !args.is(3, "WITHSCORE") {
        return Err(CommandError::Syntax);
    }
    let terms = cx.terms();
    let set = read(cx, args.at(1))?;
    let Some((set, (rank, score))) = set.and_then(|s| Some((s, s.rank(terms, args.at(2))?))) else {
        if with_score {
            out.null_array();
        } else {
            out.null();
        }
        return Ok(());
    };
    let rank = if rev { set.len() - 1 - rank } else { rank };
    if with_score {
        out.array(2);
    }
    out.count(rank);
    if with_score {
        out.double(score);
    }
    Ok(())
}

const ZRANK: Command = Command {
    name: "zrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Returns the rank of a member of a sorted set, lowest score first.",
    complexity: "O(log(N))",
    arity: Arity::at_least(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member"), flag("WITHSCORE").optional()],
    reply: &[Shape::Int, Shape::Array, Shape::Null],
    history: &[("7.2.0", "Takes `WITHSCORE`.")],
    ..runs(zrank)
};

fn zrank(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    rank(cx, args, out, false)
}

const ZREVRANK: Command = Command {
    name: "zrevrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Returns the rank of a member of a sorted set, highest score first.",
    complexity: "O(log(N))",
    arity: Arity::at_least(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member"), flag("WITHSCORE").optional()],
    reply: &[Shape::Int, Shape::Array, Shape::Null],
    history: &[("7.2.0", "Takes `WITHSCORE`.")],
    ..runs(zrevrank)
};

fn zrevrank(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    rank(cx, args, out, true)
}

const ZREM: Command = Command {
    name: "zrem",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Removes members from a sorted set.",
    complexity: "O(M*log(N))",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), string("member").multiple()],
    reply: &[Shape::Int],
    history: &[("2.4.0", "Takes several members.")],
    ..runs(zrem)
};

fn zrem(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    let Some(set) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let mut count = 0;
    for member in args.from(2).iter() {
        count += usize::from(set.remove(terms, member).is_some());
        if set.is_empty() {
            break;
        }
    }
    let empty = set.is_empty();
    if count > 0 {
        cx.of_elements(key, count);
        removed(cx, key, "zrem", empty);
    }
    out.count(count);
    Ok(())
}
