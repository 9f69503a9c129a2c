//! Ranges of sorted sets, by rank, by score and by name: read, counted, stored and removed.
//!
//! Each of the three is turned into a range of ranks, in ascending order, and all else is the same.

use std::ops::Range;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::{edit, read, removed};
use crate::handler::runs;
use crate::notify::Class;
use crate::number;
use crate::object::sorted_set::{LexBound, ScoreBound};
use crate::object::{Object, SortedSet, write_entry};
use crate::{Command, CommandError, Context};

/// What a range is measured by.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Rank,
    Score,
    Lex,
}

/// The ends of a range, read but not yet looked up.
#[derive(Clone, Copy)]
enum Ends<'a> {
    Rank(i64, i64),
    Score(ScoreBound, ScoreBound),
    Lex(LexBound<'a>, LexBound<'a>),
}

impl<'a> Ends<'a> {
    fn parse(by: By, min: &'a [u8], max: &'a [u8]) -> Result<Self, CommandError> {
        Ok(match by {
            By::Rank => Self::Rank(number::int(min)?, number::int(max)?),
            By::Score => Self::Score(score_bound(min)?, score_bound(max)?),
            By::Lex => Self::Lex(lex_bound(min)?, lex_bound(max)?),
        })
    }

    /// The ranks in ascending order. Ends given as ranks count from the other side where `rev`.
    fn ranks(self, set: &SortedSet, rev: bool) -> Range<usize> {
        match self {
            Self::Rank(start, stop) => {
                let ranks = between(start, stop, set.len());
                if rev {
                    set.len() - ranks.end..set.len() - ranks.start
                } else {
                    ranks
                }
            }
            Self::Score(min, max) => set.ranks_by_score(min, max),
            Self::Lex(min, max) => set.ranks_by_lex(min, max),
        }
    }
}

/// Ranks from `start` to `stop`, both inclusive, negative ones from the end.
fn between(start: i64, stop: i64, len: usize) -> Range<usize> {
    let place = |at: i64| match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => len.checked_sub(usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX)),
    };
    let start = place(start).unwrap_or(0).min(len);
    let end = place(stop).map_or(0, |stop| stop.saturating_add(1).min(len));
    start..end.max(start)
}

fn score_bound(text: &[u8]) -> Result<ScoreBound, CommandError> {
    let error = CommandError::text("ERR min or max is not a float");
    match text {
        [b'(', rest @ ..] => number::bound(rest).map(ScoreBound::Excl).ok_or(error),
        _ => number::bound(text).map(ScoreBound::Incl).ok_or(error),
    }
}

fn lex_bound(text: &[u8]) -> Result<LexBound<'_>, CommandError> {
    match text {
        b"-" => Ok(LexBound::Min),
        b"+" => Ok(LexBound::Max),
        [b'(', rest @ ..] => Ok(LexBound::Excl(rest)),
        [b'[', rest @ ..] => Ok(LexBound::Incl(rest)),
        _ => Err("ERR min or max not valid string range item".into()),
    }
}

/// A range as ZRANGE and its relatives ask for it.
struct Query<'a> {
    ends: Ends<'a>,
    rev: bool,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

impl<'a> Query<'a> {
    /// Reads the words from `first` on: two ends and the options. What the command's name says
    /// already is given, and may not be said again.
    fn parse(
        args: Args<'a>,
        first: usize,
        mut by: Option<By>,
        mut rev: Option<bool>,
        is_store: bool,
    ) -> Result<Self, CommandError> {
        let (mut with_scores, mut limit) = (false, None);
        let mut at = first + 2;
        while at < args.len() {
            if !is_store && args.is(at, "WITHSCORES") {
                with_scores = true;
            } else if args.is(at, "LIMIT") && at + 2 < args.len() {
                limit = Some((number::int(args.at(at + 1))?, number::int(args.at(at + 2))?));
                at += 2;
            } else if rev.is_none() && args.is(at, "REV") {
                rev = Some(true);
            } else if by.is_none() && args.is(at, "BYLEX") {
                by = Some(By::Lex);
            } else if by.is_none() && args.is(at, "BYSCORE") {
                by = Some(By::Score);
            } else {
                return Err(CommandError::Syntax);
            }
            at += 1;
        }
        let (by, rev) = (by.unwrap_or(By::Rank), rev.unwrap_or(false));
        if limit.is_some_and(|(_, count)| count != -1) && by == By::Rank {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if with_scores && by == By::Lex {
            return Err(CommandError::text(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let limit = limit.filter(|_| by != By::Rank);
        let (mut min, mut max) = (args.at(first), args.at(first + 1));
        if rev && by != By::Rank {
            (min, max) = (max, min);
        }
        Ok(Self {
            ends: Ends::parse(by, min, max)?,
            rev,
            with_scores,
            limit,
        })
    }

    fn ranks(&self, set: &SortedSet) -> Range<usize> {
        let mut ranks = self.ends.ranks(set, self.rev);
        if let Some((offset, count)) = self.limit {
            let Ok(offset) = usize::try_from(offset) else {
                return 0..0;
            };
            let offset = offset.min(ranks.len());
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            if self.rev {
                ranks.end -= offset;
                ranks.start = ranks.start.max(ranks.end.saturating_sub(count));
            } else {
                ranks.start += offset;
                ranks.end = ranks.end.min(ranks.start.saturating_add(count));
            }
        }
        ranks
    }
}

fn reply(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    by: Option<By>,
    rev: Option<bool>,
) -> Result<(), CommandError> {
    let query = Query::parse(args, 2, by, rev, false)?;
    let Some(set) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    let ranks = query.ranks(set);
    let pairs = query.with_scores && out.is_resp3();
    out.array(ranks.len() * (1 + usize::from(query.with_scores && !pairs)));
    set.each(ranks, query.rev, |member, score| {
        if pairs {
            out.array(2);
        }
        write_entry(out, member);
        if query.with_scores {
            out.double(score);
        }
    });
    Ok(())
}

pub(super) const ZRANGE: Command = Command {
    name: "zrange",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Returns the members of a sorted set within a range of ranks, scores or names.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("start"),
        string("stop"),
        one_of("sortby", &[flag("BYSCORE"), flag("BYLEX")])
            .since("6.2.0")
            .optional(),
        flag("REV").since("6.2.0").optional(),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .since("6.2.0")
            .optional(),
        flag("WITHSCORES").optional(),
    ],
    reply: &[Shape::Array],
    history: &[("6.2.0", "Takes `REV`, `BYSCORE`, `BYLEX` and `LIMIT`.")],
    ..runs(zrange)
};

fn zrange(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    reply(cx, args, out, None, None)
}

pub(super) const ZREVRANGE: Command = Command {
    name: "zrevrange",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Returns the members of a sorted set within a range of ranks, highest score first.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("start"),
        int("stop"),
        flag("WITHSCORES").optional(),
    ],
    reply: &[Shape::Array],
    deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` argument")),
    ..runs(zrevrange)
};

fn zrevrange(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    reply(cx, args, out, Some(By::Rank), Some(true))
}

pub(super) const ZRANGEBYSCORE: Command = Command {
    name: "zrangebyscore",
    group: Group::SortedSet,
    since: "1.0.5",
    summary: "Returns the members of a sorted set within a range of scores.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        double("min"),
        double("max"),
        flag("WITHSCORES").since("2.0.0").optional(),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
    ],
    reply: &[Shape::Array],
    history: &[("2.0.0", "Takes `WITHSCORES`.")],
    deprecated: Some(("6.2.0", "`ZRANGE` with the `BYSCORE` argument")),
    ..runs(zrangebyscore)
};

fn zrangebyscore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    reply(cx, args, out, Some(By::Score), Some(false))
}

pub(super) const ZREVRANGEBYSCORE: Command = Command {
    name: "zrevrangebyscore",
    group: Group::SortedSet,
    since: "2.2.0",
    summary: "Returns the members of a sorted set within a range of scores, highest score first.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        double("max"),
        double("min"),
        flag("WITHSCORES").optional(),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
    ],
    reply: &[Shape::Array],
    history: &[("2.1.6", "Takes ranges that leave their ends out.")],
    deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYSCORE` arguments")),
    ..runs(zrevrangebyscore)
};

fn zrevrangebyscore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    reply(cx, args, out, Some(By::Score), Some(true))
}

pub(super) const ZRANGEBYLEX: Command = Command {
    name: "zrangebylex",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "Returns the members of a sorted set within a range of names.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("min"),
        string("max"),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
    ],
    reply: &[Shape::Array],
    deprecated: Some(("6.2.0", "`ZRANGE` with the `BYLEX` argument")),
    ..runs(zrangebylex)
};

fn zrangebylex(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    reply(cx, args, out, Some(By::Lex), Some(false))
}

pub(super) const ZREVRANGEBYLEX: Command = Command {
    name: "zrevrangebylex",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "Returns the members of a sorted set within a range of names, last name first.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("max"),
        string("min"),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
    ],
    reply: &[Shape::Array],
    deprecated: Some(("6.2.0", "`ZRANGE` with the `REV` and `BYLEX` arguments")),
    ..runs(zrevrangebylex)
};

fn zrevrangebylex(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    reply(cx, args, out, Some(By::Lex), Some(true))
}

pub(super) const ZRANGESTORE: Command = Command {
    name: "zrangestore",
    group: Group::SortedSet,
    since: "6.2.0",
    summary: "Stores the members of a sorted set within a range of ranks, scores or names.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ow().update(), KeySpec::at(2).ro().access()],
    args: &[
        key("dst"),
        key("src").spec(1),
        string("min"),
        string("max"),
        one_of("sortby", &[flag("BYSCORE"), flag("BYLEX")]).optional(),
        flag("REV").optional(),
        block("limit", &[int("offset"), int("count")])
            .token("LIMIT")
            .optional(),
    ],
    reply: &[Shape::Int],
    ..runs(zrangestore)
};

fn zrangestore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let query = Query::parse(args, 3, None, None, true)?;
    let terms = cx.terms();
    let mut result = SortedSet::default();
    if let Some(set) = read(cx, args.at(2))? {
        let ranks = query.ranks(set);
        if matches!(query.ends, Ends::Rank(..)) {
            result = SortedSet::sized(terms, ranks.len(), 0);
        }
        set.each(ranks, query.rev, |member, score| {
            result.insert(terms, member.bytes(&mut [0; 20]), score);
        });
    }
    store(cx, args.at(1), result, "zrangestore", out);
    Ok(())
}

/// Stores a result and replies with its size; an empty one removes the key.
pub(in crate::commands) fn store(
    cx: &mut Context<'_>,
    key: &[u8],
    result: SortedSet,
    event: &str,
    out: &mut Writer<'_>,
) {
    out.count(result.len());
    if !result.is_empty() {
        cx.put_object(key, Object::SortedSet(result));
        cx.changed(key, Class::SORTED_SET, event);
        cx.ready(key);
    } else if cx.displace(key) {
        cx.changed(key, Class::GENERIC, "del");
    }
}

fn count(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    by: By,
) -> Result<(), CommandError> {
    let ends = Ends::parse(by, args.at(2), args.at(3))?;
    let count = read(cx, args.at(1))?.map_or(0, |set| ends.ranks(set, false).len());
    out.count(count);
    Ok(())
}

pub(super) const ZCOUNT: Command = Command {
    name: "zcount",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Counts the members of a sorted set within a range of scores.",
    complexity: "O(log(N))",
    arity: Arity::exactly(4),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), double("min"), double("max")],
    reply: &[Shape::Int],
    ..runs(zcount)
};

fn zcount(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    count(cx, args, out, By::Score)
}

pub(super) const ZLEXCOUNT: Command = Command {
    name: "zlexcount",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "Counts the members of a sorted set within a range of names.",
    complexity: "O(log(N))",
    arity: Arity::exactly(4),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("min"), string("max")],
    reply: &[Shape::Int],
    ..runs(zlexcount)
};

fn zlexcount(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    count(cx, args, out, By::Lex)
}

fn remove(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    by: By,
    event: &str,
) -> Result<(), CommandError> {
    let ends = Ends::parse(by, args.at(2), args.at(3))?;
    let (key, terms) = (args.at(1), cx.terms());
    let Some(set) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let ranks = ends.ranks(set, false);
    if ranks.len() == set.len() {
        // All of them: the set is freed later, in slices.
        out.count(ranks.len());
        cx.changed(key, Class::SORTED_SET, event);
        cx.of_elements(key, ranks.len());
        cx.remove_empty(key);
        return Ok(());
    }
    let count = set.remove_ranks(terms, ranks);
    if count > 0 {
        cx.of_elements(key, count);
        removed(cx, key, event, false);
    }
    out.count(count);
    Ok(())
}

pub(super) const ZREMRANGEBYRANK: Command = Command {
    name: "zremrangebyrank",
    group: Group::SortedSet,
    since: "2.0.0",
    summary: "Removes the members of a sorted set within a range of ranks.",
    complexity: "O(log(N)+M)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), int("start"), int("stop")],
    reply: &[Shape::Int],
    ..runs(zremrangebyrank)
};

fn zremrangebyrank(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    remove(cx, args, out, By::Rank, "zremrangebyrank")
}

pub(super) const ZREMRANGEBYSCORE: Command = Command {
    name: "zremrangebyscore",
    group: Group::SortedSet,
    since: "1.2.0",
    summary: "Removes the members of a sorted set within a range of scores.",
    complexity: "O(log(N)+M)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), double("min"), double("max")],
    reply: &[Shape::Int],
    ..runs(zremrangebyscore)
};

fn zremrangebyscore(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    remove(cx, args, out, By::Score, "zremrangebyscore")
}

pub(super) const ZREMRANGEBYLEX: Command = Command {
    name: "zremrangebylex",
    group: Group::SortedSet,
    since: "2.8.9",
    summary: "Removes the members of a sorted set within a range of names.",
    complexity: "O(log(N)+M)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), string("min"), string("max")],
    reply: &[Shape::Int],
    ..runs(zremrangebylex)
};

fn zremrangebylex(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    remove(cx, args, out, By::Lex, "zremrangebylex")
}
