//! Positions of a list: reading, finding, replacing and cutting.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::list::{List, Side};
use structure::listpack::Entry;

use super::{bury, edit, index_of, range_of, read, taken};
use crate::handler::runs;
use crate::notify::Class;
use crate::number;
use crate::object::write_entry;
use crate::{Command, CommandError, Context};

pub(super) const LINDEX: Command = Command {
    name: "lindex",
    group: Group::List,
    since: "1.0.0",
    summary: "Returns the element of a list at a position.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY,
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("index")],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(lindex)
};

fn lindex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let Some(list) = read(cx, args.at(1))? else {
        out.null();
        return Ok(());
    };
    let index = number::int(args.at(2))?;
    match index_of(index, list.len()).and_then(|at| list.get(at)) {
        Some(entry) => write_entry(out, entry),
        None => out.null(),
    }
    Ok(())
}

pub(super) const LINSERT: Command = Command {
    name: "linsert",
    group: Group::List,
    since: "2.2.0",
    summary: "Inserts an element before or after another one in a list.",
    complexity: "O(N)",
    arity: Arity::exactly(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[
        key("key"),
        one_of("where", &[flag("BEFORE"), flag("AFTER")]),
        string("pivot"),
        string("element"),
    ],
    reply: &[Shape::Int],
    ..runs(linsert)
};

fn linsert(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let side = if args.is(2, "BEFORE") {
        Side::Before
    } else if args.is(2, "AFTER") {
        Side::After
    } else {
        return Err(CommandError::Syntax);
    };
    let (key, limit) = (args.at(1), cx.settings.list_limit);
    let Some(list) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    if !list.insert(side, args.at(3), args.at(4), limit) {
        out.int(-1);
        return Ok(());
    }
    out.count(list.len());
    cx.changed(key, Class::LIST, "linsert");
    cx.ready(key);
    Ok(())
}

pub(super) const LLEN: Command = Command {
    name: "llen",
    group: Group::List,
    since: "1.0.0",
    summary: "Returns the length of a list.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(llen)
};

fn llen(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.count(read(cx, args.at(1))?.map_or(0, List::len));
    Ok(())
}

pub(super) const LPOS: Command = Command {
    name: "lpos",
    group: Group::List,
    since: "6.0.6",
    summary: "Finds the positions of an element in a list.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        string("element"),
        int("rank").token("RANK").optional(),
        int("num-matches").token("COUNT").optional(),
        int("len").token("MAXLEN").optional(),
    ],
    reply: &[Shape::Int, Shape::Array, Shape::Null],
    ..runs(lpos)
};

fn lpos(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let search = Search::parse(args)?;
    let value = args.at(2);
    let Some(list) = read(cx, args.at(1))? else {
        match search.count {
            Some(_) => out.array(0),
            None => out.null(),
        }
        return Ok(());
    };
    if search.is_plain() {
        match list.find(value) {
            Some(at) => out.count(at),
            None => out.null(),
        }
        return Ok(());
    }
    let Some(count) = search.count else {
        let mut first = None;
        search.run(list, value, 1, |at| first = Some(at));
        match first {
            Some(at) => out.count(at),
            None => out.null(),
        }
        return Ok(());
    };
    let mark = out.begin_array();
    let mut found = 0;
    let most = if count == 0 { usize::MAX } else { count };
    search.run(list, value, most, |at| {
        out.count(at);
        found += 1;
    });
    out.end_array(mark, found);
    Ok(())
}

/// The options of LPOS.
struct Search {
    /// Which match to begin with, from 1; negative ones count from the end.
    rank: i64,
    /// How many matches, all where it is 0; none of it where one position is asked for.
    count: Option<usize>,
    /// How many elements to compare at most; 0 for all.
    compared_max: usize,
}

impl Search {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut search = Self {
            rank: 1,
            count: None,
            compared_max: 0,
        };
        for at in (3..args.len()).step_by(2) {
            let Some(value) = args.get(at + 1) else {
                return Err(CommandError::Syntax);
            };
            if args.is(at, "RANK") {
                search.rank = match int_with_opposite(value)? {
                    0 => return Err(CommandError::text(RANK_ZERO)),
                    rank => rank,
                };
            } else if args.is(at, "COUNT") {
                let error = CommandError::text("ERR COUNT can't be negative");
                search.count = Some(number::count(value, error)?);
            } else if args.is(at, "MAXLEN") {
                let error = CommandError::text("ERR MAXLEN can't be negative");
                search.compared_max = number::count(value, error)?;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        Ok(search)
    }

    /// Whether the first match anywhere is asked for.
    fn is_plain(&self) -> bool {
        self.rank == 1 && self.count.is_none() && self.compared_max == 0
    }

    /// Gives up to `most` positions to `each`.
    fn run(&self, list: &List, value: &[u8], most: usize, mut each: impl FnMut(usize)) {
        let needle = Entry::of(value);
        let compared = match self.compared_max {
            0 => usize::MAX,
            max => max,
        };
        let skip = usize::try_from(self.rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
        let wanted = |(at, entry)| (entry == needle).then_some(at);
        if self.rank > 0 {
            let found = list.iter().enumerate().take(compared).filter_map(wanted);
            found.skip(skip).take(most).for_each(each);
        } else {
            let last = list.len().saturating_sub(1);
            let found = list.iter_rev().enumerate().take(compared);
            let found = found.filter_map(wanted);
            found
                .skip(skip)
                .take(most)
                .for_each(|back| each(last - back));
        }
    }
}

const RANK_ZERO: &str = "ERR RANK can't be zero: use 1 to start from the first match, 2 from the \
                         second ... or use negative to start from the end of the list";

/// An integer whose opposite is one too.
fn int_with_opposite(text: &[u8]) -> Result<i64, CommandError> {
    match number::int(text)? {
        i64::MIN => Err(CommandError::text(
            "ERR value is out of range, value must between -9223372036854775807 and \
             9223372036854775807",
        )),
        int => Ok(int),
    }
}

pub(super) const LRANGE: Command = Command {
    name: "lrange",
    group: Group::List,
    since: "1.0.0",
    summary: "Returns the elements of a list within a range of positions.",
    complexity: "O(S+N)",
    arity: Arity::exactly(4),
    flags: Flags::READONLY,
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("start"), int("stop")],
    reply: &[Shape::Array],
    ..runs(lrange)
};

fn lrange(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (start, stop) = (number::int(args.at(2))?, number::int(args.at(3))?);
    let Some(list) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    let Some((first, count)) = range_of(start, stop, list.len()) else {
        out.array(0);
        return Ok(());
    };
    out.array(count);
    for entry in list.range(first, count) {
        write_entry(out, entry);
    }
    Ok(())
}

pub(super) const LREM: Command = Command {
    name: "lrem",
    group: Group::List,
    since: "1.0.0",
    summary: "Removes the elements of a list that equal a value.",
    complexity: "O(N+M)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE,
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), int("count"), string("element")],
    reply: &[Shape::Int],
    ..runs(lrem)
};

fn lrem(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, limit) = (args.at(1), cx.settings.list_limit);
    let count = int_with_opposite(args.at(2))?;
    let Some(list) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let removed = list.remove(count, args.at(3), limit);
    let empty = list.is_empty();
    if removed > 0 {
        cx.of_elements(key, removed);
        taken(cx, key, "lrem", empty);
    }
    out.count(removed);
    Ok(())
}

pub(super) const LSET: Command = Command {
    name: "lset",
    group: Group::List,
    since: "1.0.0",
    summary: "Replaces the element of a list at a position.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), int("index"), string("element")],
    reply: &[Shape::Ok],
    ..runs(lset)
};

fn lset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, limit) = (args.at(1), cx.settings.list_limit);
    let list = edit(cx, key)?.ok_or(CommandError::NoSuchKey)?;
    let index = number::int(args.at(2))?;
    let at = index_of(index, list.len()).unwrap_or(usize::MAX);
    if !list.set(at, args.at(3), limit) {
        return Err(CommandError::IndexRange);
    }
    cx.changed(key, Class::LIST, "lset");
    out.ok();
    Ok(())
}

pub(super) const LTRIM: Command = Command {
    name: "ltrim",
    group: Group::List,
    since: "1.0.0",
    summary: "Removes the elements of a list outside a range of positions.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE,
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), int("start"), int("stop")],
    reply: &[Shape::Ok],
    ..runs(ltrim)
};

fn ltrim(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, limit) = (args.at(1), cx.settings.list_limit);
    let (start, stop) = (number::int(args.at(2))?, number::int(args.at(3))?);
    let Some(list) = edit(cx, key)? else {
        out.ok();
        return Ok(());
    };
    let len = list.len();
    let (front, back) = match range_of(start, stop, len) {
        Some((first, count)) => (first, len - first - count),
        None => (len, 0),
    };
    let garbage = list.trim(front, back, limit);
    let empty = list.is_empty();
    bury(cx, garbage);
    cx.of_elements(key, front + back);
    taken(cx, key, "ltrim", empty);
    out.ok();
    Ok(())
}
