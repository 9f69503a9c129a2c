//! Sparse arrays.
//!
//! Here stand the commands that name indexes one by one; those for ranges, for the cursor, for
//! searching and for looking inside have files of their own.
//!
//! # Invariants
//! - An array without an element is removed.
//! - Words are checked before the first effect: a command whose last index is wrong sets nothing.

mod cursor;
mod grep;
mod info;
mod operation;
mod range;
mod ring;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::array::{Array, INDEX_MAX};
use structure::listpack::Entry;

use crate::handler::runs;
use crate::notify::Class;
use crate::object::{Object, write_entry};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    info::ARCOUNT,
    ARDEL,
    range::ARDELRANGE,
    ARGET,
    range::ARGETRANGE,
    grep::ARGREP,
    info::ARINFO,
    cursor::ARINSERT,
    cursor::ARLASTITEMS,
    info::ARLEN,
    ARMGET,
    ARMSET,
    cursor::ARNEXT,
    operation::AROP,
    ring::ARRING,
    range::ARSCAN,
    cursor::ARSEEK,
    ARSET,
];

const INVALID_INDEX: CommandError = CommandError::text("ERR invalid array index");

/// A number of 64 bits, as `strtoull` reads it: blanks and a sign may lead, and a number below
/// those of a signed 64-bit integer stands for what is left above zero.
fn number(text: &[u8]) -> Option<u64> {
    if let Some(int) = structure::decimal::parse(text) {
        return u64::try_from(int).ok();
    }
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = text.trim_ascii_start();
    // What `trim_ascii_start` does not take for a blank.
    let blanks = text.iter().take_while(|b| matches!(b, b' ' | 9..=13));
    let text = &text[blanks.count()..];
    let (negative, digits) = match text.split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, text),
    };
    if digits.is_empty() {
        return None;
    }
    let size = digits.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum.checked_mul(10)?.checked_add(digit.into())
    })?;
    Some(if negative { size.wrapping_neg() } else { size })
}

/// An index.
fn index(text: &[u8]) -> Result<u64, CommandError> {
    number(text)
        .filter(|&index| index <= INDEX_MAX)
        .ok_or(INVALID_INDEX)
}

/// The array under a key, to be read.
#[inline]
fn read<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c Array>, CommandError> {
    match cx.read_object(key)? {
        None => Ok(None),
        Some(Object::Array(array)) => Ok(Some(array)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The array under a key, to be changed.
#[inline]
fn edit<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c mut Array>, CommandError> {
    match cx.edit_object(key)? {
        None => Ok(None),
        Some(Object::Array(array)) => Ok(Some(array)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The array under a key, to be changed, or a new one if there is none; then a report.
#[inline]
fn change<R>(
    cx: &mut Context<'_>,
    key: &[u8],
    event: &str,
    change: impl FnOnce(&mut Array) -> Result<R, CommandError>,
) -> Result<R, CommandError> {
    let result = match edit(cx, key)? {
        Some(array) => change(array)?,
        None => {
            let mut array = Array::new(cx.settings.array_slice_size);
            let result = change(&mut array)?;
            cx.put_object(key, Object::Array(Box::new(array)));
            result
        }
    };
    cx.changed(key, Class::ARRAY, event);
    Ok(result)
}

/// Reports that elements went, and removes the array if none is left.
fn removed(cx: &mut Context<'_>, key: &[u8], event: &str, empty: bool) {
    cx.changed(key, Class::ARRAY, event);
    if empty {
        cx.remove_empty(key);
    }
}

/// Replies with a number that may be past those of a signed 64-bit integer.
fn write_number(out: &mut Writer<'_>, number: u64) {
    match i64::try_from(number) {
        Ok(number) => out.int(number),
        Err(_) => out.big_number(&number.to_string()),
    }
}

/// Replies with an element, or with null.
#[inline]
fn write_element(out: &mut Writer<'_>, element: Option<Entry<'_>>) {
    match element {
        Some(entry) => write_entry(out, entry),
        None => out.null(),
    }
}

/// Replies with an element and its index.
fn write_pair(out: &mut Writer<'_>, index: u64, element: Entry<'_>) {
    out.array(2);
    write_number(out, index);
    write_entry(out, element);
}

const ARSET: Command = Command {
    name: "arset",
    group: Group::Array,
    since: "8.8.0",
    summary: "Sets the elements of an array from an index on.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key"), int("index"), string("value").multiple()],
    reply: &[Shape::Int],
    ..runs(arset)
};

fn arset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (first, values) = (index(args.at(2))?, args.from(3));
    let last = first.checked_add(values.len() as u64 - 1);
    let last = last.filter(|&last| last <= INDEX_MAX);
    let last = last.ok_or("ERR array index overflow")?;
    let added = change(cx, args.at(1), "arset", |array| {
        let pairs = (first..=last).zip(values.iter());
        Ok(pairs.filter(|&(at, value)| array.set(at, value)).count())
    })?;
    out.count(added);
    Ok(())
}

const ARMSET: Command = Command {
    name: "armset",
    group: Group::Array,
    since: "8.8.0",
    summary: "Sets several elements of an array, each under its index.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        block("data", &[int("index"), string("value")]).multiple(),
    ],
    reply: &[Shape::Int],
    ..runs(armset)
};

fn armset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(cx.arity_error());
    }
    for at in (2..args.len()).step_by(2) {
        index(args.at(at))?;
    }
    let added = change(cx, args.at(1), "armset", |array| {
        let mut added = 0;
        for at in (2..args.len()).step_by(2) {
            added += usize::from(array.set(index(args.at(at))?, args.at(at + 1)));
        }
        Ok(added)
    })?;
    out.count(added);
    Ok(())
}

const ARGET: Command = Command {
    name: "arget",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the element of an array at an index.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("index")],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(arget)
};

fn arget(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let array = read(cx, args.at(1))?;
    let index = index(args.at(2))?;
    write_element(out, array.and_then(|array| array.get(index)));
    Ok(())
}

const ARMGET: Command = Command {
    name: "armget",
    group: Group::Array,
    since: "8.8.0",
    summary: "Returns the elements of an array at several indexes.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), int("index").multiple()],
    reply: &[Shape::Array],
    ..runs(armget)
};

fn armget(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let array = read(cx, args.at(1))?;
    let words = args.from(2);
    for word in words.iter() {
        index(word)?;
    }
    out.array(words.len());
    for word in words.iter() {
        let index = index(word)?;
        write_element(out, array.and_then(|array| array.get(index)));
    }
    Ok(())
}

const ARDEL: Command = Command {
    name: "ardel",
    group: Group::Array,
    since: "8.8.0",
    summary: "Deletes the elements of an array at some indexes.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::ARRAY,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), int("index").multiple()],
    reply: &[Shape::Int],
    ..runs(ardel)
};

fn ardel(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, words) = (args.at(1), args.from(2));
    for word in words.iter() {
        index(word)?;
    }
    let Some(array) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let mut count = 0;
    for word in words.iter() {
        count += usize::from(array.remove(index(word)?));
    }
    let empty = array.is_empty();
    if count > 0 {
        removed(cx, key, "ardel", empty);
    }
    out.count(count);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_the_c_library_reads_them() {
        for (text, read) in [
            (&b"0"[..], Some(0)),
            (b"00017", Some(17)),
            (b"+5", Some(5)),
            (b" \t\n\x0b\x0c\r5", Some(5)),
            (b"-0", Some(0)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"-18446744073709551615", Some(1)),
            (b"-9223372036854775809", Some(i64::MAX as u64)),
            (b" -5", Some(u64::MAX - 4)),
            (b"5\0", Some(5)),
            (b"5\0x", Some(5)),
            (b"\0", None),
            (b"-5", None),
            (b"18446744073709551616", None),
            (b"-18446744073709551616", None),
            (b"5 ", None),
            (b"", None),
            (b"+", None),
            (b"0x1", None),
        ] {
            assert_eq!(number(text), read, "{text:?}");
        }
    }
}
