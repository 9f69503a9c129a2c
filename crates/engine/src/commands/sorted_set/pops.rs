//! ZPOPMIN and its relatives, those that wait among them.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::{edit, removed};
use crate::blocking::{Awaits, Block};
use crate::handler::runs;
use crate::number;
use crate::object::{Kind, write_entry};
use crate::{Command, CommandError, Context};

/// The event and the command that popping is logged as.
fn names(rev: bool) -> (&'static str, &'static [u8]) {
    if rev {
        ("zpopmax", b"ZPOPMAX")
    } else {
        ("zpopmin", b"ZPOPMIN")
    }
}

/// Pops up to `count` members of a key that has some and writes them, as pairs where `pairs`.
/// False, and nothing written, where there is no such key.
fn pop(
    cx: &mut Context<'_>,
    key: &[u8],
    out: &mut Writer<'_>,
    rev: bool,
    count: usize,
    head: impl FnOnce(&mut Writer<'_>, usize),
    pairs: bool,
) -> Result<bool, CommandError> {
    let terms = cx.terms();
    let Some(set) = edit(cx, key)? else {
        return Ok(false);
    };
    let count = count.min(set.len());
    head(out, count);
    for _ in 0..count {
        set.pop(terms, rev, |member, score| {
            if pairs {
                out.array(2);
            }
            write_entry(out, member);
            out.double(score);
        });
    }
    let empty = set.is_empty();
    if count > 0 {
        cx.of_elements(key, count);
        removed(cx, key, names(rev).0, empty);
    }
    Ok(true)
}

fn zpop(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    rev: bool,
) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(CommandError::Syntax);
    }
    let counted = args.len() == 3;
    let count = if counted {
        let error = CommandError::text("ERR value is out of range, must be positive");
        number::count(args.at(2), error)?
    } else {
        1
    };
    let pairs = counted && out.is_resp3();
    let head = |out: &mut Writer<'_>, count: usize| {
        out.array(if pairs { count } else { 2 * count });
    };
    if !pop(cx, args.at(1), out, rev, count, head, pairs)? {
        out.array(0);
    }
    Ok(())
}

pub(super) const ZPOPMIN: Command = Command {
    name: "zpopmin",
    group: Group::SortedSet,
    since: "5.0.0",
    summary: "Removes the lowest members of a sorted set.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[key("key"), int("count").optional()],
    reply: &[Shape::Array],
    ..runs(zpopmin)
};

fn zpopmin(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    zpop(cx, args, out, false)
}

pub(super) const ZPOPMAX: Command = Command {
    name: "zpopmax",
    group: Group::SortedSet,
    since: "5.0.0",
    summary: "Removes the highest members of a sorted set.",
    complexity: "O(log(N)+M)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[key("key"), int("count").optional()],
    reply: &[Shape::Array],
    ..runs(zpopmax)
};

fn zpopmax(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    zpop(cx, args, out, true)
}

/// Waits for the keys, or answers at once inside a transaction.
fn wait(
    cx: &mut Context<'_>,
    out: &mut Writer<'_>,
    deadline_ms: Option<u64>,
    keys: std::ops::Range<usize>,
) {
    if !cx.may_block {
        return out.null_array();
    }
    cx.block(Block {
        deadline_ms,
        kind: Kind::SortedSet,
        on_missing: false,
        keys: keys.collect(),
        replace: Vec::new(),
        awaits: Awaits::Keys,
    });
}

fn bzpop(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    rev: bool,
) -> Result<(), CommandError> {
    let last = args.len() - 1;
    let deadline_ms = number::timeout_ms(args.at(last), cx.now_ms)?;
    for key in (1..last).map(|at| args.at(at)) {
        let head = |out: &mut Writer<'_>, _| {
            out.array(3);
            out.bulk(key);
        };
        if pop(cx, key, out, rev, 1, head, false)? {
            cx.rewrite(&[names(rev).1, key]);
            return Ok(());
        }
    }
    wait(cx, out, deadline_ms, 1..last);
    Ok(())
}

pub(super) const BZPOPMIN: Command = Command {
    name: "bzpopmin",
    group: Group::SortedSet,
    since: "5.0.0",
    summary: "Removes the lowest member of the first sorted set that has any, \
              waiting until one has.",
    complexity: "O(log(N))",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::BLOCKING).with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).last(-2).rw().access().delete()],
    args: &[key("key").multiple(), double("timeout")],
    reply: &[Shape::Array, Shape::Null],
    history: &[("6.0.0", "Takes fractions of a second.")],
    ..runs(bzpopmin)
};

fn bzpopmin(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    bzpop(cx, args, out, false)
}

pub(super) const BZPOPMAX: Command = Command {
    name: "bzpopmax",
    group: Group::SortedSet,
    since: "5.0.0",
    summary: "Removes the highest member of the first sorted set that has any, \
              waiting until one has.",
    complexity: "O(log(N))",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::BLOCKING).with(Flags::FAST),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).last(-2).rw().access().delete()],
    args: &[key("key").multiple(), double("timeout")],
    reply: &[Shape::Array, Shape::Null],
    history: &[("6.0.0", "Takes fractions of a second.")],
    ..runs(bzpopmax)
};

fn bzpopmax(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    bzpop(cx, args, out, true)
}

/// What ZMPOP asks for.
struct Many {
    keys: std::ops::Range<usize>,
    rev: bool,
    count: usize,
}

impl Many {
    /// Reads the words from the number of keys, at `first`, on.
    fn parse(args: Args<'_>, first: usize) -> Result<Self, CommandError> {
        let error = CommandError::text("ERR numkeys should be greater than 0");
        let number = number::count(args.at(first), error.clone())?;
        if number == 0 {
            return Err(error);
        }
        let end = number.saturating_add(first + 1);
        if end >= args.len() {
            return Err(CommandError::Syntax);
        }
        let rev = args.is(end, "MAX");
        if !rev && !args.is(end, "MIN") {
            return Err(CommandError::Syntax);
        }
        let mut count = None;
        let mut at = end + 1;
        while at < args.len() {
            if count.is_some() || !args.is(at, "COUNT") || at + 1 >= args.len() {
                return Err(CommandError::Syntax);
            }
            let error = CommandError::text("ERR count should be greater than 0");
            let given = number::count(args.at(at + 1), error.clone())?;
            count = Some(Some(given).filter(|count| *count > 0).ok_or(error)?);
            at += 2;
        }
        Ok(Self {
            keys: first + 1..end,
            rev,
            count: count.unwrap_or(1),
        })
    }

    /// Pops from the first key that has members. False where none has.
    fn pop(
        &self,
        cx: &mut Context<'_>,
        args: Args<'_>,
        out: &mut Writer<'_>,
    ) -> Result<bool, CommandError> {
        for key in self.keys.clone().map(|at| args.at(at)) {
            let mut popped = 0;
            let head = |out: &mut Writer<'_>, count: usize| {
                popped = count;
                out.array(2);
                out.bulk(key);
                out.array(count);
            };
            if pop(cx, key, out, self.rev, self.count, head, true)? {
                cx.rewrite(&[names(self.rev).1, key, popped.to_string().as_bytes()]);
                return Ok(true);
            }
        }
        Ok(false)
    }
}

pub(super) const ZMPOP: Command = Command {
    name: "zmpop",
    group: Group::SortedSet,
    since: "7.0.0",
    summary: "Removes lowest or highest members from the first sorted set that has any.",
    complexity: "O(K)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE,
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(1).counted().rw().access().delete()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        one_of("where", &[flag("MIN"), flag("MAX")]),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array, Shape::Null],
    ..runs(zmpop)
};

fn zmpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let many = Many::parse(args, 1)?;
    if !many.pop(cx, args, out)? {
        out.null_array();
    }
    Ok(())
}

pub(super) const BZMPOP: Command = Command {
    name: "bzmpop",
    group: Group::SortedSet,
    since: "7.0.0",
    summary: "Removes lowest or highest members from the first sorted set that has any, \
              waiting until one has.",
    complexity: "O(K)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::BLOCKING),
    acl: Acl::SORTEDSET,
    keys: &[KeySpec::at(2).counted().rw().access().delete()],
    args: &[
        double("timeout"),
        int("numkeys"),
        key("key").multiple(),
        one_of("where", &[flag("MIN"), flag("MAX")]),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array, Shape::Null],
    ..runs(bzmpop)
};

fn bzmpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    // Its timeout is looked at last, as BLMPOP does.
    let many = Many::parse(args, 2)?;
    let deadline_ms = number::timeout_ms(args.at(1), cx.now_ms)?;
    if !many.pop(cx, args, out)? {
        wait(cx, out, deadline_ms, many.keys);
    }
    Ok(())
}
