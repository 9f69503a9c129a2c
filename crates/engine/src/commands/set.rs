//! Sets.
//!
//! Single members stand here, draws in `draws`, and what combines several sets in `algebra`.

mod algebra;
mod draws;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal::TEXT_MAX;

use crate::glob;
use crate::handler::runs;
use crate::notify::Class;
use crate::number;
use crate::object::{Kind, Object, Set, write_entry};
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    SADD,
    SCARD,
    algebra::SDIFF,
    algebra::SDIFFCARD,
    algebra::SDIFFSTORE,
    algebra::SINTER,
    algebra::SINTERCARD,
    algebra::SINTERSTORE,
    SISMEMBER,
    SMEMBERS,
    SMISMEMBER,
    SMOVE,
    draws::SPOP,
    draws::SRANDMEMBER,
    SREM,
    SSCAN,
    algebra::SUNION,
    algebra::SUNIONCARD,
    algebra::SUNIONSTORE,
];

/// The set under a key, to be read.
fn read<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c Set>, CommandError> {
    match cx.read_object(key)? {
        None => Ok(None),
        Some(Object::Set(set)) => Ok(Some(set)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The set under a key, to be changed.
#[inline]
fn edit<'c>(cx: &'c mut Context<'_>, key: &[u8]) -> Result<Option<&'c mut Set>, CommandError> {
    match cx.edit_object(key)? {
        None => Ok(None),
        Some(Object::Set(set)) => Ok(Some(set)),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Reports that members were taken, and removes the key where that were all.
fn taken(cx: &mut Context<'_>, key: &[u8], event: &str, empty: bool) {
    cx.changed(key, Class::SET, event);
    if empty {
        cx.remove_empty(key);
    }
}

const SADD: Command = Command {
    name: "sadd",
    group: Group::Set,
    since: "1.0.0",
    summary: "Adds members to a set.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::SET,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("member").multiple()],
    reply: &[Shape::Int],
    history: &[("2.4.0", "Takes several members.")],
    ..runs(sadd)
};

fn sadd(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (settings, seed) = (cx.settings, &cx.shared.seed);
    let (key, members) = (args.at(1), args.len() - 2);
    let add = |set: &mut Set| {
        let mut added = 0;
        for at in 2..args.len() {
            added += usize::from(set.insert(args.at(at), settings, seed));
        }
        added
    };
    let added = match edit(cx, key)? {
        Some(set) => {
            if members > 1 {
                set.expect(members, settings, seed);
            }
            add(set)
        }
        None => {
            let mut set = Set::for_members(args.at(2), members, settings);
            let added = add(&mut set);
            cx.put_object(key, Object::Set(set));
            added
        }
    };
    if added > 0 {
        cx.changed(key, Class::SET, "sadd");
        cx.of_elements(key, added);
    }
    out.count(added);
    Ok(())
}

const SCARD: Command = Command {
    name: "scard",
    group: Group::Set,
    since: "1.0.0",
    summary: "Counts the members of a set.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SET,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(scard)
};

fn scard(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.count(read(cx, args.at(1))?.map_or(0, Set::len));
    Ok(())
}

const SISMEMBER: Command = Command {
    name: "sismember",
    group: Group::Set,
    since: "1.0.0",
    summary: "Says whether a set has a member.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SET,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key"), string("member")],
    reply: &[Shape::Int],
    ..runs(sismember)
};

fn sismember(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let seed = &cx.shared.seed;
    let set = read(cx, args.at(1))?;
    out.int(i64::from(
        set.is_some_and(|set| set.contains(args.at(2), seed)),
    ));
    Ok(())
}

const SMEMBERS: Command = Command {
    name: "smembers",
    group: Group::Set,
    since: "1.0.0",
    summary: "Returns the members of a set.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Set],
    tips: &["nondeterministic_output_order"],
    ..runs(smembers)
};

fn smembers(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let set = read(cx, args.at(1))?;
    out.set(set.map_or(0, Set::len));
    if let Some(set) = set {
        set.iter().for_each(|entry| write_entry(out, entry));
    }
    Ok(())
}

const SMISMEMBER: Command = Command {
    name: "smismember",
    group: Group::Set,
    since: "6.2.0",
    summary: "Says of each given member whether a set has it.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::SET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key"), string("member").multiple()],
    reply: &[Shape::Array],
    ..runs(smismember)
};

fn smismember(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let seed = &cx.shared.seed;
    let set = read(cx, args.at(1))?;
    let members = args.from(2);
    out.array(members.len());
    for member in members.iter() {
        out.int(i64::from(set.is_some_and(|set| set.contains(member, seed))));
    }
    Ok(())
}

const SMOVE: Command = Command {
    name: "smove",
    group: Group::Set,
    since: "1.0.0",
    summary: "Moves a member from one set to another.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::SET,
    keys: &[
        KeySpec::at(1).rw().access().delete(),
        KeySpec::at(2).rw().insert(),
    ],
    args: &[key("source"), key("destination").spec(1), string("member")],
    reply: &[Shape::Int],
    ..runs(smove)
};

fn smove(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (settings, seed) = (cx.settings, &cx.shared.seed);
    let (source, destination, member) = (args.at(1), args.at(2), args.at(3));
    if edit(cx, source)?.is_none() {
        out.int(0);
        return Ok(());
    }
    if !matches!(cx.kind(destination), None | Some(Kind::Set)) {
        return Err(CommandError::WrongType);
    }
    let Some(set) = edit(cx, source)? else {
        return Ok(());
    };
    if source == destination {
        out.int(i64::from(set.contains(member, seed)));
        return Ok(());
    }
    if !set.remove(member, seed) {
        out.int(0);
        return Ok(());
    }
    let empty = set.is_empty();
    taken(cx, source, "srem", empty);
    let added = match edit(cx, destination)? {
        Some(set) => set.insert(member, settings, seed),
        None => {
            let mut set = Set::for_members(member, 1, settings);
            set.insert(member, settings, seed);
            cx.put_object(destination, Object::Set(set));
            true
        }
    };
    if added {
        cx.changed(destination, Class::SET, "sadd");
    }
    out.int(1);
    Ok(())
}

const SREM: Command = Command {
    name: "srem",
    group: Group::Set,
    since: "1.0.0",
    summary: "Removes members from a set.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::SET,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), string("member").multiple()],
    reply: &[Shape::Int],
    history: &[("2.4.0", "Takes several members.")],
    ..runs(srem)
};

fn srem(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let seed = &cx.shared.seed;
    let key = args.at(1);
    let Some(set) = edit(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let mut removed = 0;
    for member in args.from(2).iter() {
        removed += usize::from(set.remove(member, seed));
    }
    let empty = set.is_empty();
    if removed > 0 {
        cx.of_elements(key, removed);
        taken(cx, key, "srem", empty);
    }
    out.count(removed);
    Ok(())
}

const SSCAN: Command = Command {
    name: "sscan",
    group: Group::Set,
    since: "2.8.0",
    summary: "Steps through the members of a set.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::READONLY,
    acl: Acl::SET,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        int("cursor"),
        pattern("pattern").token("MATCH").optional(),
        int("count").token("COUNT").optional(),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(sscan)
};

fn sscan(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let cursor = number::cursor(args.at(2))?;
    // Redis looks the key up before it reads the options.
    if read(cx, args.at(1))?.is_none() {
        out.array(2);
        out.bulk(b"0");
        out.array(0);
        return Ok(());
    }
    let (mut pattern, mut count) = (None, 10);
    for at in (3..args.len()).step_by(2) {
        if args.is(at, "NOVALUES") {
            return Err("ERR NOVALUES option can only be used in HSCAN".into());
        }
        let Some(value) = args.get(at + 1) else {
            return Err(CommandError::Syntax);
        };
        if args.is(at, "COUNT") {
            count = usize::try_from(number::int(value)?).map_err(|_| CommandError::Syntax)?;
            if count == 0 {
                return Err(CommandError::Syntax);
            }
        } else if args.is(at, "MATCH") {
            pattern = (value != b"*").then_some(value);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let Some(Object::Set(set)) = cx.view_object(args.at(1))? else {
        return Ok(());
    };
    // The cursor stands before the members, and is known only after them.
    let mut members = Vec::new();
    let next = set.scan(cursor, count, |entry| {
        let mut digits = [0; TEXT_MAX];
        if pattern.is_none_or(|pattern| glob::matches(pattern, entry.bytes(&mut digits))) {
            members.push(entry);
        }
    });
    out.array(2);
    out.text(&next.to_string());
    out.array(members.len());
    members
        .into_iter()
        .for_each(|entry| write_entry(out, entry));
    Ok(())
}
