//! The ends of a list: pushing, popping, and waiting for something to pop.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::list::List;

use super::{End, bury, count_above_zero, edit, taken, wait};
use crate::handler::runs;
use crate::notify::Class;
use crate::number::{self, timeout_ms};
use crate::object::{Object, write_entry};
use crate::{Command, CommandError, Context};

pub(super) const BLMPOP: Command = Command {
    name: "blmpop",
    group: Group::List,
    since: "7.0.0",
    summary: "Removes elements from the first list that has any, waiting until one has.",
    complexity: "O(N+M)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::BLOCKING),
    acl: Acl::LIST,
    keys: &[KeySpec::at(2).counted().rw().access().delete()],
    args: &[
        double("timeout"),
        int("numkeys"),
        key("key").multiple(),
        one_of("where", &[flag("LEFT"), flag("RIGHT")]),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array, Shape::Null],
    ..runs(blmpop)
};

fn blmpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let pop = MultiPop::parse(args, 2)?;
    let deadline_ms = timeout_ms(args.at(1), cx.now_ms)?;
    if pop.run(cx, args, out)? {
        // Nothing to wait for.
    } else if cx.may_block {
        wait(cx, pop.keys.clone(), deadline_ms);
    } else {
        out.null_array();
    }
    Ok(())
}

pub(super) const BLPOP: Command = Command {
    name: "blpop",
    group: Group::List,
    since: "2.0.0",
    summary: "Removes the first element of the first list that has any, waiting until one has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::BLOCKING),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).last(-2).rw().access().delete()],
    args: &[key("key").multiple(), double("timeout")],
    reply: &[Shape::Array, Shape::Null],
    history: &[("6.0.0", "Takes fractions of a second.")],
    ..runs(blpop)
};

fn blpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    blocking_pop(cx, args, out, End::Left)
}

pub(super) const BRPOP: Command = Command {
    name: "brpop",
    group: Group::List,
    since: "2.0.0",
    summary: "Removes the last element of the first list that has any, waiting until one has.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::BLOCKING),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).last(-2).rw().access().delete()],
    args: &[key("key").multiple(), double("timeout")],
    reply: &[Shape::Array, Shape::Null],
    history: &[("6.0.0", "Takes fractions of a second.")],
    ..runs(brpop)
};

fn brpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    blocking_pop(cx, args, out, End::Right)
}

fn blocking_pop(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    end: End,
) -> Result<(), CommandError> {
    let keys = 1..args.len() - 1;
    let deadline_ms = timeout_ms(args.at(keys.end), cx.now_ms)?;
    for at in keys.clone() {
        let (key, limit) = (args.at(at), cx.settings.list_limit);
        let Some(list) = edit(cx, key)? else {
            continue;
        };
        out.array(2);
        out.bulk(key);
        pop_one(list, end, limit, out);
        let empty = list.is_empty();
        taken(cx, key, end.pop_event(), empty);
        cx.rewrite(&[end.pop_command(), key]);
        return Ok(());
    }
    if cx.may_block {
        wait(cx, keys, deadline_ms);
    } else {
        out.null_array();
    }
    Ok(())
}

pub(super) const LMPOP: Command = Command {
    name: "lmpop",
    group: Group::List,
    since: "7.0.0",
    summary: "Removes elements from the first list that has any.",
    complexity: "O(N+M)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE,
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).counted().rw().access().delete()],
    args: &[
        int("numkeys"),
        key("key").multiple(),
        one_of("where", &[flag("LEFT"), flag("RIGHT")]),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array, Shape::Null],
    ..runs(lmpop)
};

fn lmpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if !MultiPop::parse(args, 1)?.run(cx, args, out)? {
        out.null_array();
    }
    Ok(())
}

/// The words of LMPOP and BLMPOP.
struct MultiPop {
    /// Where the keys stand.
    keys: std::ops::Range<usize>,
    end: End,
    count: usize,
}

impl MultiPop {
    /// Reads what begins at `first` with the number of keys.
    fn parse(args: Args<'_>, first: usize) -> Result<Self, CommandError> {
        let error = CommandError::text("ERR numkeys should be greater than 0");
        let keys = match number::count(args.at(first), error.clone())? {
            0 => return Err(error),
            keys => keys,
        };
        let side = match (first + 1).checked_add(keys) {
            Some(side) if side < args.len() => side,
            _ => return Err(CommandError::Syntax),
        };
        let end = End::parse(args, side)?;
        let count = match args.len() - side {
            1 => 1,
            2.. if !args.is(side + 1, "COUNT") => return Err(CommandError::Syntax),
            2 => return Err(CommandError::Syntax),
            more => {
                let count = count_above_zero(args.at(side + 2))?;
                if more > 3 {
                    return Err(CommandError::Syntax);
                }
                count
            }
        };
        Ok(Self {
            keys: first + 1..side,
            end,
            count,
        })
    }

    /// Pops from the first list that is there. False where none is: nothing was written.
    fn run(
        &self,
        cx: &mut Context<'_>,
        args: Args<'_>,
        out: &mut Writer<'_>,
    ) -> Result<bool, CommandError> {
        for at in self.keys.clone() {
            let key = args.at(at);
            if edit(cx, key)?.is_none() {
                continue;
            }
            out.array(2);
            out.bulk(key);
            let popped = pop_many(cx, key, self.end, self.count, out)?;
            let digits = popped.to_string();
            cx.rewrite(&[self.end.pop_command(), key, digits.as_bytes()]);
            return Ok(true);
        }
        Ok(false)
    }
}

pub(super) const LPOP: Command = Command {
    name: "lpop",
    group: Group::List,
    since: "1.0.0",
    summary: "Removes the first elements of a list.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[key("key"), int("count").since("6.2.0").optional()],
    reply: &[Shape::Bulk, Shape::Null, Shape::Array],
    history: &[("6.2.0", "Takes a count.")],
    ..runs(lpop)
};

fn lpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    pop(cx, args, out, End::Left)
}

pub(super) const RPOP: Command = Command {
    name: "rpop",
    group: Group::List,
    since: "1.0.0",
    summary: "Removes the last elements of a list.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[key("key"), int("count").since("6.2.0").optional()],
    reply: &[Shape::Bulk, Shape::Null, Shape::Array],
    history: &[("6.2.0", "Takes a count.")],
    ..runs(rpop)
};

fn rpop(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    pop(cx, args, out, End::Right)
}

fn pop(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    end: End,
) -> Result<(), CommandError> {
    let key = args.at(1);
    if args.len() == 2 {
        let limit = cx.settings.list_limit;
        let Some(list) = edit(cx, key)? else {
            out.null();
            return Ok(());
        };
        pop_one(list, end, limit, out);
        let empty = list.is_empty();
        taken(cx, key, end.pop_event(), empty);
        return Ok(());
    }
    if args.len() > 3 {
        return Err(cx.arity_error());
    }
    let error = CommandError::text("ERR value is out of range, must be positive");
    let count = number::count(args.at(2), error)?;
    match edit(cx, key)? {
        None => out.null_array(),
        Some(_) if count == 0 => out.array(0),
        Some(_) => {
            pop_many(cx, key, end, count, out)?;
        }
    }
    Ok(())
}

/// Replies with one element and removes it.
#[inline]
fn pop_one(list: &mut List, end: End, limit: structure::list::Limit, out: &mut Writer<'_>) {
    match end.of(list) {
        Some(entry) => write_entry(out, entry),
        // No list is empty; the reply keeps its shape whatever happens.
        None => out.null(),
    }
    end.drop_one(list, limit);
}

/// Replies with up to `count` elements as an array and removes them. Returns how many.
fn pop_many(
    cx: &mut Context<'_>,
    key: &[u8],
    end: End,
    count: usize,
    out: &mut Writer<'_>,
) -> Result<usize, CommandError> {
    let limit = cx.settings.list_limit;
    let Some(list) = edit(cx, key)? else {
        return Ok(0);
    };
    let count = count.min(list.len());
    out.array(count);
    end.each(list, count, |entry| write_entry(out, entry));
    let garbage = end.cut(list, count, limit);
    let empty = list.is_empty();
    bury(cx, garbage);
    cx.of_elements(key, count);
    taken(cx, key, end.pop_event(), empty);
    Ok(count)
}

pub(super) const LPUSH: Command = Command {
    name: "lpush",
    group: Group::List,
    since: "1.0.0",
    summary: "Adds elements to the front of a list.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("element").multiple()],
    reply: &[Shape::Int],
    history: &[("2.4.0", "Takes several elements.")],
    ..runs(lpush)
};

fn lpush(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    push(cx, args, out, End::Left, false)
}

pub(super) const LPUSHX: Command = Command {
    name: "lpushx",
    group: Group::List,
    since: "2.2.0",
    summary: "Adds elements to the front of a list that exists.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("element").multiple()],
    reply: &[Shape::Int],
    history: &[("4.0.0", "Takes several elements.")],
    ..runs(lpushx)
};

fn lpushx(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    push(cx, args, out, End::Left, true)
}

pub(super) const RPUSH: Command = Command {
    name: "rpush",
    group: Group::List,
    since: "1.0.0",
    summary: "Adds elements to the end of a list.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("element").multiple()],
    reply: &[Shape::Int],
    history: &[("2.4.0", "Takes several elements.")],
    ..runs(rpush)
};

fn rpush(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    push(cx, args, out, End::Right, false)
}

pub(super) const RPUSHX: Command = Command {
    name: "rpushx",
    group: Group::List,
    since: "2.2.0",
    summary: "Adds elements to the end of a list that exists.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::LIST,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("element").multiple()],
    reply: &[Shape::Int],
    history: &[("4.0.0", "Takes several elements.")],
    ..runs(rpushx)
};

fn rpushx(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    push(cx, args, out, End::Right, true)
}

#[inline]
fn push(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    end: End,
    must_exist: bool,
) -> Result<(), CommandError> {
    let (key, limit) = (args.at(1), cx.settings.list_limit);
    let add = |list: &mut List| {
        let items = || (2..args.len()).map(move |at| args.at(at));
        match (args.len(), end) {
            (3, _) => end.push(list, args.at(2), limit),
            (_, End::Left) => list.push_front_all(items(), limit),
            (_, End::Right) => list.push_back_all(items(), limit),
        }
        list.len()
    };
    let len = match edit(cx, key)? {
        Some(list) => add(list),
        None if must_exist => {
            out.int(0);
            return Ok(());
        }
        None => {
            let mut list = List::new();
            let len = add(&mut list);
            cx.put_object(key, Object::List(list));
            len
        }
    };
    cx.changed(key, Class::LIST, end.push_event());
    cx.of_elements(key, args.len() - 2);
    cx.ready(key);
    out.count(len);
    Ok(())
}
