//! Hashes.
//!
//! Here stand the commands that read and write fields; draws and scans, numbers, and the deadlines
//! of fields have files of their own.
//!
//! # Invariants
//! - Fields whose time is up are removed before a command looks, a bounded number at a time; what
//!   is left of them is hidden by the [`Hash`].

mod draws;
mod expiry;
mod fields;
mod import;
mod number;

use std::sync::atomic::Ordering;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::notify::Class;
use crate::object::hash::Ttl;
use crate::object::{Hash, Object, Terms, write_entry};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    HDEL,
    HEXISTS,
    expiry::HEXPIRE,
    expiry::HEXPIREAT,
    expiry::HEXPIRETIME,
    HGET,
    HGETALL,
    fields::HGETDEL,
    fields::HGETEX,
    import::HIMPORT,
    number::HINCRBY,
    number::HINCRBYFLOAT,
    HKEYS,
    HLEN,
    HMGET,
    HMSET,
    expiry::HPERSIST,
    expiry::HPEXPIRE,
    expiry::HPEXPIREAT,
    expiry::HPEXPIRETIME,
    expiry::HPTTL,
    draws::HRANDFIELD,
    draws::HSCAN,
    HSET,
    fields::HSETEX,
    HSETNX,
    HSTRLEN,
    expiry::HTTL,
    HVALS,
];

/// Dead fields that one command removes from a hash before it looks, about.
const RECLAIMED_MAX: usize = 1024;

/// The hash under a key, to be read. Dead fields stay, unseen, for the reclaiming that follows by
/// itself: a read of the whole hash shall break nobody's WATCH.
#[inline]
fn read<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c Hash>, CommandError> {
    match cx.read_object(key)? {
        None => Ok(None),
        Some(Object::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The same for a command that names the fields it reads from position 2 on: those of them that are
/// dead go at once, and the key with the last.
#[inline]
fn read_named<'c>(
    cx: &'c mut Context<'_>,
    args: Args<'_>,
) -> Result<Option<&'c Hash>, CommandError> {
    let key = args.at(1);
    if cx.shared.field_deadlines.load(Ordering::Relaxed) && has_due(cx, key) {
        reclaim_named(cx, key, args);
    }
    read(cx, key)
}

/// The hash under the key at position 1, to be changed.
#[inline]
fn edit<'c>(cx: &'c mut Context<'_>, args: Args<'_>) -> Result<Option<&'c mut Hash>, CommandError> {
    let key = args.at(1);
    reclaim(cx, key, Some(args));
    match cx.edit_object(key)? {
        None => Ok(None),
        Some(Object::Hash(hash)) => Ok(Some(hash)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The hash under the key at position 1, to be changed, or a new one if there is none; then a
/// report.
#[inline]
fn change<R>(
    cx: &mut Context<'_>,
    args: Args<'_>,
    event: &str,
    change: impl FnOnce(&mut Hash) -> Result<R, CommandError>,
) -> Result<R, CommandError> {
    let key = args.at(1);
    let result = match edit(cx, args)? {
        Some(hash) => change(hash)?,
        None => {
            let mut hash = Hash::default();
            let result = change(&mut hash)?;
            cx.put_object(key, Object::Hash(hash));
            result
        }
    };
    cx.changed(key, Class::HASH, event);
    Ok(result)
}

/// Removes fields whose time is up: a bounded number, and all that the words of a command that
/// changes the hash may name, so that the log has it before the command that finds them dead.
#[inline]
fn reclaim(cx: &mut Context<'_>, key: &[u8], words: Option<Args<'_>>) {
    if cx.shared.field_deadlines.load(Ordering::Relaxed) {
        reclaim_due(cx, key, words);
    }
}

#[cold]
fn reclaim_due(cx: &mut Context<'_>, key: &[u8], words: Option<Args<'_>>) {
    if !has_due(cx, key) {
        return;
    }
    cx.expire_fields(key, RECLAIMED_MAX, false);
    if let Some(words) = words.filter(|_| cx.is_logged()) {
        reclaim_named(cx, key, words);
    }
}

/// Whether a hash may have dead fields.
#[cold]
fn has_due(cx: &mut Context<'_>, key: &[u8]) -> bool {
    let dead_ms = cx.dead_ms;
    match cx.view_object(key) {
        Ok(Some(Object::Hash(hash))) => hash.due_hint().is_some_and(|due| due <= dead_ms),
        _ => false,
    }
}

#[cold]
fn reclaim_named(cx: &mut Context<'_>, key: &[u8], words: Args<'_>) {
    for word in words.from(2).iter() {
        cx.expire_field(key, word);
    }
}

const HSET: Command = Command {
    name: "hset",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Stores fields of a hash.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        block("data", &[string("field"), string("value")]).multiple(),
    ],
    reply: &[Shape::Int],
    history: &[("4.0.0", "Takes several fields with their values.")],
    ..runs(hset)
};

fn hset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let added = set_pairs(cx, args)?;
    out.count(added);
    Ok(())
}

/// Sets the fields of HSET and HMSET; returns how many are new.
#[inline]
fn set_pairs(cx: &mut Context<'_>, args: Args<'_>) -> Result<usize, CommandError> {
    if !args.len().is_multiple_of(2) {
        return Err(cx.arity_error());
    }
    let (key, terms) = (args.at(1), cx.terms());
    let added = change(cx, args, "hset", |hash| Ok(fill(hash, terms, args, 2)))?;
    cx.notify_fields("hset", key, args.from(2).iter().step_by(2));
    cx.of_elements(key, args.len() / 2 - 1);
    Ok(added)
}

/// Sets the pairs that begin at word `first`; returns how many fields are new.
#[inline]
fn fill(hash: &mut Hash, terms: Terms<'_>, args: Args<'_>, first: usize) -> usize {
    let mut added = 0;
    hash.expect_pairs(terms, (args.len() - first) / 2);
    for at in (first..args.len()).step_by(2) {
        added += usize::from(!hash.set(terms, args.at(at), args.at(at + 1), Ttl::Clear));
    }
    added
}

const HMSET: Command = Command {
    name: "hmset",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Stores several fields of a hash.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        block("data", &[string("field"), string("value")]).multiple(),
    ],
    reply: &[Shape::Ok],
    deprecated: Some(("4.0.0", "`HSET` with multiple field-value pairs")),
    ..runs(hmset)
};

fn hmset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    set_pairs(cx, args)?;
    out.ok();
    Ok(())
}

const HSETNX: Command = Command {
    name: "hsetnx",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Stores a field of a hash if it does not exist.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("field"), string("value")],
    reply: &[Shape::Int],
    ..runs(hsetnx)
};

fn hsetnx(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, field, value) = (args.at(1), args.at(2), args.at(3));
    let terms = cx.terms();
    if let Some(hash) = edit(cx, args)?
        && hash.get(terms, field).is_some()
    {
        out.int(0);
        return Ok(());
    }
    change(cx, args, "hset", |hash| {
        Ok(hash.set(terms, field, value, Ttl::Clear))
    })?;
    cx.notify_fields("hset", key, [field]);
    out.int(1);
    Ok(())
}

const HGET: Command = Command {
    name: "hget",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Returns the value of a field of a hash.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("field")],
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(hget)
};

fn hget(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let hash = read_named(cx, args)?;
    write_value(out, hash, terms, args.at(2));
    Ok(())
}

/// Replies with the value of a field, or with null.
#[inline]
fn write_value(out: &mut Writer<'_>, hash: Option<&Hash>, terms: Terms<'_>, field: &[u8]) {
    match hash.and_then(|hash| hash.get(terms, field)) {
        Some(found) => write_entry(out, found.value),
        None => out.null(),
    }
}

const HMGET: Command = Command {
    name: "hmget",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Returns the values of several fields of a hash.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("field").multiple()],
    reply: &[Shape::Array],
    ..runs(hmget)
};

fn hmget(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let hash = read_named(cx, args)?;
    out.array(args.len() - 2);
    for field in args.from(2).iter() {
        write_value(out, hash, terms, field);
    }
    Ok(())
}

const HDEL: Command = Command {
    name: "hdel",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Deletes fields of a hash.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), string("field").multiple()],
    reply: &[Shape::Int],
    history: &[("2.4.0", "Takes several fields.")],
    ..runs(hdel)
};

fn hdel(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    let listening = cx.hears_fields();
    let Some(hash) = edit(cx, args)? else {
        out.int(0);
        return Ok(());
    };
    let (mut removed, mut gone) = (0, Vec::new());
    for field in args.from(2).iter() {
        if hash.remove(terms, field) {
            removed += 1;
            if listening {
                gone.push(field);
            }
        }
        if hash.is_empty() {
            break;
        }
    }
    let empty = hash.is_empty();
    if removed > 0 {
        cx.of_elements(key, removed);
        removed_fields(cx, key, &gone, empty);
    }
    out.count(removed);
    Ok(())
}

/// Reports that fields were removed, and removes the key if none is left. `gone` may be empty where
/// nobody hears of fields.
fn removed_fields(cx: &mut Context<'_>, key: &[u8], gone: &[&[u8]], empty: bool) {
    cx.changed(key, Class::HASH, "hdel");
    cx.notify_fields("hdel", key, gone.iter().copied());
    if empty {
        cx.remove_empty(key);
    } else if cx.shared.field_deadlines.load(Ordering::Relaxed) {
        cx.fields_changed(key);
    }
}

const HEXISTS: Command = Command {
    name: "hexists",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Says whether a hash has a field.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key"), string("field")],
    reply: &[Shape::Int],
    ..runs(hexists)
};

fn hexists(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let found = read_named(cx, args)?.is_some_and(|hash| hash.get(terms, args.at(2)).is_some());
    out.int(i64::from(found));
    Ok(())
}

const HLEN: Command = Command {
    name: "hlen",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Counts the fields of a hash.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(hlen)
};

fn hlen(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let len = read(cx, args.at(1))?.map_or(0, Hash::len);
    out.count(len);
    Ok(())
}

const HSTRLEN: Command = Command {
    name: "hstrlen",
    group: Group::Hash,
    since: "3.2.0",
    summary: "Returns the length of the value of a field of a hash.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key"), string("field")],
    reply: &[Shape::Int],
    ..runs(hstrlen)
};

fn hstrlen(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let terms = cx.terms();
    let found = read_named(cx, args)?.and_then(|hash| hash.get(terms, args.at(2)));
    out.count(found.map_or(0, |found| found.value.byte_len()));
    Ok(())
}

const HGETALL: Command = Command {
    name: "hgetall",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Returns the fields of a hash and their values.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY,
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Map],
    tips: &["nondeterministic_output_order"],
    ..runs(hgetall)
};

fn hgetall(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let Some(hash) = read(cx, args.at(1))? else {
        out.map(0);
        return Ok(());
    };
    out.map(hash.living(now_ms));
    hash.each(now_ms, |field, found| {
        write_entry(out, field);
        write_entry(out, found.value);
    });
    Ok(())
}

const HKEYS: Command = Command {
    name: "hkeys",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Returns the fields of a hash.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY,
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    ..runs(hkeys)
};

fn hkeys(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let hash = read(cx, args.at(1))?;
    out.array(hash.map_or(0, |hash| hash.living(now_ms)));
    if let Some(hash) = hash {
        hash.each(now_ms, |field, _| write_entry(out, field));
    }
    Ok(())
}

const HVALS: Command = Command {
    name: "hvals",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Returns the values of a hash.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY,
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output_order"],
    ..runs(hvals)
};

fn hvals(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    let hash = read(cx, args.at(1))?;
    out.array(hash.map_or(0, |hash| hash.living(now_ms)));
    if let Some(hash) = hash {
        hash.each(now_ms, |_, found| write_entry(out, found.value));
    }
    Ok(())
}
