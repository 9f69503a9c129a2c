//! Appending to an array: the cursor, and what was appended last.
//!
//! The array keeps the index that was appended to last. None was, or the cursor was set to 0: then
//! the next one is 0. The one behind the greatest index is no index, and appending fails there.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::array::{Array, INDEX_MAX};
use structure::listpack::Entry;

use super::{INVALID_INDEX, change, edit, number, read, write_element, write_number};
use crate::handler::runs;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

const OVERFLOW: CommandError = CommandError::text("ERR insert index overflow");

/// Where the next element is appended; [`INDEX_MAX`] + 1 where none can be.
pub(super) fn next_index(array: &Array) -> u64 {
    array.cursor().map_or(0, |last| last + 1)
}

pub(super) const ARINSERT: Command = Command {
    name: "arinsert",
    group: Group::Array,
    since: "8.8.0",
    summary: "Appends elements to an array behind its cursor.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), string("value").multiple()],
    reply: &[Shape::Int, Shape::Bulk, Shape::Any],
    ..runs(arinsert)
};

fn arinsert(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let values = args.from(2);
    let last = change(cx, args.at(1), "arinsert", |array| {
        let first = next_index(array);
        let last = first.checked_add(values.len() as u64 - 1);
        let last = last.filter(|&last| last <= INDEX_MAX).ok_or(OVERFLOW)?;
        for (index, value) in (first..=last).zip(values.iter()) {
            array.set(index, value);
        }
        array.set_cursor(Some(last));
        Ok(last)
    })?;
    write_number(out, last);
    Ok(())
}

pub(super) const ARNEXT: Command = Command {
    name: "arnext",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the index that ARINSERT would append to.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int, Shape::Bulk, Shape::Null, Shape::Any],
    ..runs(arnext)
};

fn arnext(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    match read(cx, args.at(1))?.map_or(0, next_index) {
        next if next > INDEX_MAX => out.null(),
        next => write_number(out, next),
    }
    Ok(())
}

pub(super) const ARSEEK: Command = Command {
    name: "arseek",
    group: Group::Array,
    since: "8.8.0",
    summary: "Sets the index that an array is appended to next.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), int("index")],
    reply: &[Shape::Int],
    ..runs(arseek)
};

fn arseek(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, next) = (args.at(1), number(args.at(2)).ok_or(INVALID_INDEX)?);
    let Some(array) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    array.set_cursor(next.checked_sub(1));
    cx.changed(key, Class::ARRAY, "arseek");
    out.int(1);
    Ok(())
}

pub(super) const ARLASTITEMS: Command = Command {
    name: "arlastitems",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the elements that were appended to an array last.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("count"), flag("REV").optional()],
    reply: &[Shape::Array],
    ..runs(arlastitems)
};

fn arlastitems(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let count = structure::decimal::parse(args.at(2));
    let count = count.ok_or("ERR invalid COUNT")?;
    // Where nothing is wanted, nothing else is looked at.
    if count <= 0 {
        out.array(0);
        return Ok(());
    }
    if args.len() > 4 {
        return Err(cx.arity_error());
    }
    let reverse = args.len() == 4;
    if reverse && !args.is(3, "REV") {
        return Err(CommandError::Syntax);
    }
    let Some(array) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    // As many at most as there are elements, so that holes do not make the reply long.
    let count = array.count().min(count.unsigned_abs());
    out.array(usize::try_from(count).unwrap_or(usize::MAX));
    if reverse {
        for at in backward(array, count) {
            write_element(out, array.get(at));
        }
        return Ok(());
    }
    let indexes: Vec<u64> = backward(array, count).collect();
    for &at in indexes.iter().rev() {
        write_element(out, array.get(at));
    }
    Ok(())
}

/// The last `count` indexes that were appended to, the newest first; from the array's end on again
/// where they reach its beginning.
fn backward(array: &Array, count: u64) -> impl Iterator<Item = u64> {
    let end = array.len().saturating_sub(1);
    back_from(array.cursor().unwrap_or(end), end, count)
}

fn back_from(newest: u64, end: u64, count: u64) -> impl Iterator<Item = u64> {
    (0..count).scan(newest, move |at, _| {
        let this = *at;
        *at = this.checked_sub(1).unwrap_or(end);
        Some(this)
    })
}

/// The values that were appended last, the newest first, until one is missing: at most `count`. A
/// cursor behind the array's end stands for what it is when counted round.
pub(super) fn newest(array: &Array, count: u64) -> Vec<Vec<u8>> {
    let len = array.len().max(1);
    let from = array.cursor().map_or(len - 1, |last| last % len);
    let values = back_from(from, len - 1, count.min(array.count()));
    let values = values.map_while(|at| array.get(at));
    values.map(Entry::to_vec).collect()
}
