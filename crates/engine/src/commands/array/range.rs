//! Ranges of an array. The first index may be the greater one: then the range goes down.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::{edit, index, read, removed, write_element, write_pair};
use crate::handler::runs;
use crate::{Command, CommandError, Context, number};

/// Indexes that one ARGETRANGE may ask for.
const ITEMS_MAX: u64 = 1_000_000;

pub(super) const ARGETRANGE: Command = Command {
    name: "argetrange",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns what stands at the indexes of a range.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::READONLY,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("start"), int("end")],
    reply: &[Shape::Array],
    ..runs(argetrange)
};

fn argetrange(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (from, to) = (index(args.at(2))?, index(args.at(3))?);
    let array = read(cx, args.at(1))?;
    let count = from.abs_diff(to) + 1;
    if count > ITEMS_MAX {
        return Err("ERR range exceeds maximum of 1000000 items".into());
    }
    out.array(usize::try_from(count).unwrap_or(usize::MAX));
    let mut elements = array
        .map(|array| array.range(from, to))
        .into_iter()
        .flatten();
    let mut next = elements.next();
    for step in 0..count {
        let at = if from <= to { from + step } else { from - step };
        match next {
            Some((index, element)) if index == at => {
                write_element(out, Some(element));
                next = elements.next();
            }
            _ => write_element(out, None),
        }
    }
    Ok(())
}

pub(super) const ARSCAN: Command = Command {
    name: "arscan",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the elements of a range with their indexes.",
    complexity: "O(P)",
    arity: Arity::at_least(4),
    flags: Flags::READONLY,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("start"),
        int("end"),
        int("limit").token("LIMIT").optional(),
    ],
    reply: &[Shape::Array],
    ..runs(arscan)
};

fn arscan(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (from, to) = (index(args.at(2))?, index(args.at(3))?);
    if args.len() != 4 && args.len() != 6 {
        return Err(cx.arity_error());
    }
    let limit = match args.get(5) {
        None => usize::MAX,
        Some(_) if !args.is(4, "LIMIT") => return Err(CommandError::Syntax),
        Some(word) => limit(word)?,
    };
    let Some(array) = read(cx, args.at(1))? else {
        out.array(0);
        return Ok(());
    };
    let (mark, mut count) = (out.begin_array(), 0);
    for (index, element) in array.range(from, to).take(limit) {
        write_pair(out, index, element);
        count += 1;
    }
    out.end_array(mark, count);
    Ok(())
}

/// How many elements to return at most.
pub(super) fn limit(word: &[u8]) -> Result<usize, CommandError> {
    match number::int(word)? {
        limit if limit <= 0 => Err("ERR LIMIT must be positive".into()),
        limit => Ok(usize::try_from(limit).unwrap_or(usize::MAX)),
    }
}

pub(super) const ARDELRANGE: Command = Command {
    name: "ardelrange",
    group: Group::Array,
    since: "8.8.0",
    summary: "Deletes the elements of ranges.",
    complexity: "",
    arity: Arity::at_least(4),
    flags: Flags::WRITE,
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[
        key("key"),
        block("range", &[int("start"), int("end")]).multiple(),
    ],
    reply: &[Shape::Int],
    ..runs(ardelrange)
};

fn ardelrange(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(cx.arity_error());
    }
    let (key, words) = (args.at(1), args.from(2));
    for word in words.iter() {
        index(word)?;
    }
    let Some(array) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let mut count = 0;
    for at in (0..words.len()).step_by(2) {
        let (a, b) = (index(words.at(at))?, index(words.at(at + 1))?);
        count += array.remove_range(a.min(b), a.max(b));
    }
    let empty = array.is_empty();
    if count > 0 {
        removed(cx, key, "ardelrange", empty);
    }
    out.int(count.cast_signed());
    Ok(())
}
