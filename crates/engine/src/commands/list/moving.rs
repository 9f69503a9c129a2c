//! From one list to another: one element or several, at once or after a wait.
//!
//! # Invariants
//! - The destination's type is checked before anything is taken.
//! - Elements are added before they are taken where there are two lists, and taken before they are
//!   added where there is one: listeners hear it in that order, as from Redis.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;
use structure::list::{Limit, List};
use structure::listpack::Entry;

use super::{End, bury, count_above_zero, edit, taken, wait};
use crate::handler::runs;
use crate::notify::Class;
use crate::number::timeout_ms;
use crate::object::{Kind, Object};
use crate::{Command, CommandError, Context};

pub(super) const BLMOVE: Command = Command {
    name: "blmove",
    group: Group::List,
    since: "6.2.0",
    summary: "Moves an element from one list to another, waiting until there is one.",
    complexity: "O(1)",
    arity: Arity::exactly(6),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::BLOCKING),
    acl: Acl::LIST,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[
        key("source"),
        key("destination").spec(1),
        one_of("wherefrom", &[flag("LEFT"), flag("RIGHT")]),
        one_of("whereto", &[flag("LEFT"), flag("RIGHT")]),
        double("timeout"),
    ],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(blmove)
};

fn blmove(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let ends = (End::parse(args, 3)?, End::parse(args, 4)?);
    let deadline_ms = timeout_ms(args.at(5), cx.now_ms)?;
    if move_one(cx, args, ends, out)? {
        let (from, to) = (ends.0.word(), ends.1.word());
        cx.rewrite(&[b"LMOVE", args.at(1), args.at(2), from, to]);
    } else if cx.may_block {
        wait(cx, 1..2, deadline_ms);
    } else {
        out.null();
    }
    Ok(())
}

pub(super) const BLMOVEM: Command = Command {
    name: "blmovem",
    group: Group::List,
    since: "8.10.0",
    summary: "Moves several elements from one list to another, waiting until there are some.",
    complexity: "O(N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::BLOCKING),
    acl: Acl::LIST,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[
        key("source"),
        key("destination").spec(1),
        one_of("wherefrom", &[flag("LEFT"), flag("RIGHT")]),
        one_of("whereto", &[flag("LEFT"), flag("RIGHT")]),
        double("timeout"),
        block(
            "how-many",
            &[
                one_of(
                    "selector",
                    &[int("count").token("COUNT"), int("exactly").token("EXACTLY")],
                ),
                one_of("ordering", &[flag("OBO"), flag("BULK")]),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Array, Shape::Null],
    ..runs(blmovem)
};

fn blmovem(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let ends = (End::parse(args, 3)?, End::parse(args, 4)?);
    let deadline_ms = timeout_ms(args.at(5), cx.now_ms)?;
    let amount = Amount::parse(args, 6)?;
    if move_many(cx, args, ends, amount, out)? {
        let (from, to) = (ends.0.word(), ends.1.word());
        let mut words = vec![&b"LMOVEM"[..], args.at(1), args.at(2), from, to];
        words.extend(args.from(6).iter());
        cx.rewrite(&words);
    } else if cx.may_block {
        wait(cx, 1..2, deadline_ms);
    } else {
        out.null_array();
    }
    Ok(())
}

pub(super) const BRPOPLPUSH: Command = Command {
    name: "brpoplpush",
    group: Group::List,
    since: "2.2.0",
    summary: "Moves the last element of a list to the front of another, \
              waiting until there is one.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::BLOCKING),
    acl: Acl::LIST,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[key("source"), key("destination").spec(1), double("timeout")],
    reply: &[Shape::Bulk, Shape::Null],
    history: &[("6.0.0", "Takes fractions of a second.")],
    deprecated: Some(("6.2.0", "`BLMOVE` with the `RIGHT` and `LEFT` arguments")),
    ..runs(brpoplpush)
};

fn brpoplpush(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let deadline_ms = timeout_ms(args.at(3), cx.now_ms)?;
    if move_one(cx, args, (End::Right, End::Left), out)? {
        cx.rewrite(&[b"RPOPLPUSH", args.at(1), args.at(2)]);
    } else if cx.may_block {
        wait(cx, 1..2, deadline_ms);
    } else {
        out.null();
    }
    Ok(())
}

pub(super) const LMOVE: Command = Command {
    name: "lmove",
    group: Group::List,
    since: "6.2.0",
    summary: "Moves an element from one end of a list to an end of another.",
    complexity: "O(1)",
    arity: Arity::exactly(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::LIST,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[
        key("source"),
        key("destination").spec(1),
        one_of("wherefrom", &[flag("LEFT"), flag("RIGHT")]),
        one_of("whereto", &[flag("LEFT"), flag("RIGHT")]),
    ],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(lmove)
};

fn lmove(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let ends = (End::parse(args, 3)?, End::parse(args, 4)?);
    if !move_one(cx, args, ends, out)? {
        out.null();
    }
    Ok(())
}

pub(super) const LMOVEM: Command = Command {
    name: "lmovem",
    group: Group::List,
    since: "8.10.0",
    summary: "Moves several elements from one end of a list to an end of another.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::LIST,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[
        key("source"),
        key("destination").spec(1),
        one_of("wherefrom", &[flag("LEFT"), flag("RIGHT")]),
        one_of("whereto", &[flag("LEFT"), flag("RIGHT")]),
        block(
            "how-many",
            &[
                one_of(
                    "selector",
                    &[int("count").token("COUNT"), int("exactly").token("EXACTLY")],
                ),
                one_of("ordering", &[flag("OBO"), flag("BULK")]),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Array, Shape::Null],
    ..runs(lmovem)
};

fn lmovem(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let ends = (End::parse(args, 3)?, End::parse(args, 4)?);
    let amount = Amount::parse(args, 5)?;
    if !move_many(cx, args, ends, amount, out)? {
        out.null_array();
    }
    Ok(())
}

pub(super) const RPOPLPUSH: Command = Command {
    name: "rpoplpush",
    group: Group::List,
    since: "1.2.0",
    summary: "Moves the last element of a list to the front of another.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::LIST,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[key("source"), key("destination").spec(1)],
    reply: &[Shape::Bulk, Shape::Null],
    deprecated: Some(("6.2.0", "`LMOVE` with the `RIGHT` and `LEFT` arguments")),
    ..runs(rpoplpush)
};

fn rpoplpush(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if !move_one(cx, args, (End::Right, End::Left), out)? {
        out.null();
    }
    Ok(())
}

/// The key at position 2, if a list may be put there.
fn check_destination(cx: &mut Context<'_>, args: Args<'_>) -> Result<(), CommandError> {
    match cx.kind(args.at(2)) {
        None | Some(Kind::List) => Ok(()),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Moves one element from the list at position 1 to the list at position 2, and replies with it.
/// False where there is none: nothing was written.
fn move_one(
    cx: &mut Context<'_>,
    args: Args<'_>,
    (from, to): (End, End),
    out: &mut Writer<'_>,
) -> Result<bool, CommandError> {
    let (source, destination) = (args.at(1), args.at(2));
    let limit = cx.settings.list_limit;
    let Some(list) = edit(cx, source)? else {
        return Ok(false);
    };
    let Some(entry) = from.of(list) else {
        return Ok(false);
    };
    let mut items = Items::default();
    items.push(entry);
    if source == destination {
        if list.len() > 1 {
            // Whether it takes the small form is asked when the element is back.
            from.drop_one(list, Limit::new(1));
            items.put(list, to, limit);
        }
        list.drop_front(0, limit);
        // One element in one list: the event of adding comes first.
        cx.changed(source, Class::LIST, to.push_event());
        cx.changed(source, Class::LIST, from.pop_event());
        cx.ready(source);
    } else {
        check_destination(cx, args)?;
        add(cx, destination, &items, to)?;
        if let Some(list) = edit(cx, source)? {
            from.drop_one(list, limit);
            let empty = list.is_empty();
            taken(cx, source, from.pop_event(), empty);
        }
    }
    items.iter().for_each(|item| out.bulk(item));
    Ok(true)
}

/// How many elements LMOVEM moves, and how they are laid down.
#[derive(Clone, Copy)]
struct Amount {
    count: usize,
    /// Fewer than `count` will not do.
    exactly: bool,
    /// They keep the order that they had, rather than being moved one by one.
    bulk: bool,
}

impl Amount {
    /// Reads what may begin at `first`.
    fn parse(args: Args<'_>, first: usize) -> Result<Self, CommandError> {
        if args.len() == first {
            return Ok(Self {
                count: 1,
                exactly: false,
                bulk: false,
            });
        }
        let exactly = args.is(first, "EXACTLY");
        if args.len() != first + 3 || !(exactly || args.is(first, "COUNT")) {
            return Err(CommandError::Syntax);
        }
        let count = count_above_zero(args.at(first + 1))?;
        let bulk = args.is(first + 2, "BULK");
        if !bulk && !args.is(first + 2, "OBO") {
            return Err(CommandError::Syntax);
        }
        Ok(Self {
            count,
            exactly,
            bulk,
        })
    }
}

/// Moves several elements from the list at position 1 to the list at position 2, and replies with
/// them in the order in which they stand there. False where there are not enough: nothing was
/// written.
fn move_many(
    cx: &mut Context<'_>,
    args: Args<'_>,
    (from, to): (End, End),
    amount: Amount,
    out: &mut Writer<'_>,
) -> Result<bool, CommandError> {
    let (source, destination) = (args.at(1), args.at(2));
    let limit = cx.settings.list_limit;
    let Some(list) = edit(cx, source)? else {
        return Ok(false);
    };
    let count = amount.count.min(list.len());
    if amount.exactly && count < amount.count {
        return Ok(false);
    }
    // In the order in which they will stand in the destination.
    let outermost_first = match (amount.bulk, from, to) {
        (true, End::Left, _) | (false, _, End::Right) => true,
        (true, End::Right, _) | (false, _, End::Left) => false,
    };
    let mut items = Items::default();
    match (from, outermost_first) {
        (End::Left, true) => list.range(0, count).for_each(|e| items.push(e)),
        (End::Left, false) => list.range_rev(count - 1, count).for_each(|e| items.push(e)),
        (End::Right, true) => End::Right.each(list, count, |e| items.push(e)),
        (End::Right, false) => {
            let first = list.len() - count;
            list.range(first, count).for_each(|e| items.push(e));
        }
    }
    if source == destination {
        // Whether it takes the small form is asked when the elements are back: a large list is not
        // without any in between.
        let spare = usize::from(count == list.len() && list.encoding() == "quicklist");
        let garbage = from.cut(list, count - spare, Limit::new(1));
        items.put(list, to, limit);
        match to {
            End::Left => list.drop_back(spare, Limit::new(1)),
            End::Right => list.drop_front(spare, Limit::new(1)),
        }
        list.drop_front(0, limit);
        bury(cx, garbage);
        cx.changed(source, Class::LIST, from.pop_event());
        cx.changed(source, Class::LIST, to.push_event());
        cx.ready(source);
    } else {
        check_destination(cx, args)?;
        add(cx, destination, &items, to)?;
        if let Some(list) = edit(cx, source)? {
            let garbage = from.cut(list, count, limit);
            let empty = list.is_empty();
            bury(cx, garbage);
            taken(cx, source, from.pop_event(), empty);
        }
    }
    out.array(count);
    items.iter().for_each(|item| out.bulk(item));
    Ok(true)
}

/// Adds elements to a list, which is made where it is missing.
fn add(cx: &mut Context<'_>, key: &[u8], items: &Items, to: End) -> Result<(), CommandError> {
    let limit = cx.settings.list_limit;
    match edit(cx, key)? {
        Some(list) => items.put(list, to, limit),
        None => {
            let mut list = List::new();
            items.put(&mut list, to, limit);
            cx.put_object(key, Object::List(list));
        }
    }
    cx.changed(key, Class::LIST, to.push_event());
    cx.ready(key);
    Ok(())
}

/// Copies of elements on their way, in one buffer.
#[derive(Default)]
struct Items {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Items {
    fn push(&mut self, entry: Entry<'_>) {
        self.bytes
            .extend_from_slice(entry.bytes(&mut [0; TEXT_MAX]));
        self.ends.push(self.bytes.len());
    }

    fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len()).map(|index| self.get(index))
    }

    /// Puts them at an end of `list`, in their order.
    fn put(&self, list: &mut List, to: End, limit: structure::list::Limit) {
        let indexes = 0..self.ends.len();
        match to {
            End::Left => list.push_front_all(indexes.rev().map(|at| self.get(at)), limit),
            End::Right => list.push_back_all(indexes.map(|at| self.get(at)), limit),
        }
    }
}
