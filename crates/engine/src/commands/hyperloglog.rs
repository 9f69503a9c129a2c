//! HyperLogLogs: strings in the format that [`crate::hyperloglog`] tells of.
//!
//! A dense one is changed in place. A sparse one is changed in a copy of its few bytes, so that a
//! corrupt one is found out before anything has changed; an element that changes nothing, which
//! most do, needs no copy.

mod debug;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::record::{Displaced, Value, ValueRef};

use debug::{PFDEBUG, PFSELFTEST};

use crate::handler::runs;
use crate::hyperloglog::{self, Form, HEADER_BYTES, Invalid, Mark, REGISTERS, dense, sparse};
use crate::keyspace::{Deadline, Editing};
use crate::notify::Class;
use crate::object::Object;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[PFADD, PFCOUNT, PFDEBUG, PFMERGE, PFSELFTEST];

/// Bytes that a few changes add to a sparse one.
const ROOM: usize = 16;

impl From<Invalid> for CommandError {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Foreign => "WRONGTYPE Key is not a valid HyperLogLog string value.".into(),
            Invalid::Corrupt => "INVALIDOBJ Corrupted HLL object detected".into(),
        }
    }
}

/// The bytes of a HyperLogLog, and how its registers are written.
fn bytes_of(value: ValueRef<'_, Object>) -> Result<(&[u8], Form), CommandError> {
    match value {
        ValueRef::Bytes(bytes) => Ok((bytes, hyperloglog::form(bytes)?)),
        ValueRef::Int(_) => Err(Invalid::Foreign.into()),
        ValueRef::Object(_) => Err(CommandError::WrongType),
    }
}

/// Stores a HyperLogLog, in place of the one that was there or as a new key.
fn write(cx: &mut Context<'_>, key: &[u8], bytes: &[u8]) {
    if !cx.exists(key) {
        cx.put(key, Value::Bytes(b""), Deadline::Clear);
    }
    let old = cx.edit(key).and_then(|record| replace(record, bytes));
    old.into_iter().for_each(|old| cx.bury(old));
}

/// Puts other bytes in a string's place; returns what is to be freed.
fn replace(mut record: Editing<'_>, bytes: &[u8]) -> Option<Displaced<Object>> {
    let shrinks = match record.value() {
        ValueRef::Bytes(old) => old.len() > bytes.len(),
        _ => true,
    };
    let displaced = shrinks.then(|| record.set_value(Value::Bytes(b"")));
    if let Some(place) = record.grow_bytes(bytes.len()) {
        place.copy_from_slice(bytes);
    }
    displaced
}

const PFADD: Command = Command {
    name: "pfadd",
    group: Group::Hyperloglog,
    since: "2.8.9",
    summary: "Adds elements to a HyperLogLog.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HYPERLOGLOG,
    keys: &[KeySpec::at(1).rw().insert()],
    args: &[key("key"), string("element").optional().multiple()],
    reply: &[Shape::Int],
    ..runs(pfadd)
};

fn pfadd(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, elements) = (args.at(1), args.from(2));
    let sparse_max = cx.settings.hll_sparse_bytes;
    let (changed, displaced) = if let Some(record) = cx.edit(key) {
        add(record, elements, sparse_max)?
    } else {
        let mut bytes = hyperloglog::empty();
        for element in elements.iter() {
            hyperloglog::raise(&mut bytes, Mark::of(element), sparse_max)?;
        }
        write(cx, key, &bytes);
        (true, None)
    };
    displaced.into_iter().for_each(|old| cx.bury(old));
    if changed {
        cx.changed(key, Class::STRING, "pfadd");
    }
    out.int(i64::from(changed));
    Ok(())
}

/// Adds elements to a key's value: whether that changed it, and what is to be freed.
fn add(
    mut record: Editing<'_>,
    elements: Args<'_>,
    sparse_max: usize,
) -> Result<(bool, Option<Displaced<Object>>), CommandError> {
    let (bytes, form) = bytes_of(record.value())?;
    if form == Form::Sparse {
        let mut changed: Option<Vec<u8>> = None;
        for element in elements.iter() {
            let mark = Mark::of(element);
            if let Some(copy) = &mut changed {
                hyperloglog::raise(copy, mark, sparse_max)?;
                continue;
            }
            let found = sparse::find(&bytes[HEADER_BYTES..], mark.index)?;
            if found.value() < mark.value {
                let mut copy = Vec::with_capacity(bytes.len() + ROOM);
                copy.extend_from_slice(bytes);
                hyperloglog::raise_found(&mut copy, found, mark, sparse_max)?;
                changed = Some(copy);
            }
        }
        return Ok(match changed {
            None => (false, None),
            Some(bytes) => (true, replace(record, &bytes)),
        });
    }
    let bytes = record.grow_bytes(0).ok_or(CommandError::WrongType)?;
    let mut raised = false;
    for element in elements.iter() {
        raised |= dense::raise(&mut bytes[HEADER_BYTES..], Mark::of(element));
    }
    if raised {
        hyperloglog::make_stale(bytes);
    }
    Ok((raised, None))
}

const PFCOUNT: Command = Command {
    name: "pfcount",
    group: Group::Hyperloglog,
    since: "2.8.9",
    summary: "Estimates how many different elements HyperLogLogs have seen together.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY,
    acl: Acl::HYPERLOGLOG,
    keys: &[KeySpec::at(1)
        .last(-1)
        .rw()
        .access()
        .note("The estimate is kept in the value.")],
    args: &[key("key").multiple()],
    reply: &[Shape::Int],
    ..runs(pfcount)
};

fn pfcount(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let count = if args.len() > 2 {
        hyperloglog::count_of(&merged(cx, args.from(1))?.0)
    } else {
        count(cx, args.at(1))?
    };
    out.int(i64::try_from(count).unwrap_or(i64::MAX));
    Ok(())
}

/// The count of one key, which is computed only where the one in the value is out of date.
fn count(cx: &mut Context<'_>, key: &[u8]) -> Result<u64, CommandError> {
    let Some(record) = cx.read(key) else {
        return Ok(0);
    };
    let (bytes, _) = bytes_of(record.value())?;
    if let Some(count) = hyperloglog::cached_count(bytes) {
        return Ok(count);
    }
    let count = hyperloglog::count(bytes)?;
    if let Some(mut record) = cx.edit(key)
        && let Some(bytes) = record.grow_bytes(0)
    {
        hyperloglog::set_cached_count(bytes, count);
    }
    cx.touch(key);
    Ok(count)
}

/// The registers of all keys together, and whether any of them is dense.
fn merged(
    cx: &mut Context<'_>,
    keys: Args<'_>,
) -> Result<(Box<hyperloglog::Registers>, bool), CommandError> {
    let mut registers = Box::new([0; REGISTERS]);
    let mut any_dense = false;
    for key in keys.iter() {
        if let Some(record) = cx.read(key) {
            let (bytes, _) = bytes_of(record.value())?;
            any_dense |= hyperloglog::merge(bytes, &mut registers)? == Form::Dense;
        }
    }
    Ok((registers, any_dense))
}

const PFMERGE: Command = Command {
    name: "pfmerge",
    group: Group::Hyperloglog,
    since: "2.8.9",
    summary: "Adds what HyperLogLogs have seen to another one.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::HYPERLOGLOG,
    keys: &[
        KeySpec::at(1).rw().access().insert(),
        KeySpec::at(2).last(-1).ro().access(),
    ],
    args: &[
        key("destkey"),
        key("sourcekey").spec(1).optional().multiple(),
    ],
    reply: &[Shape::Ok],
    ..runs(pfmerge)
};

fn pfmerge(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (registers, any_dense) = merged(cx, args.from(1))?;
    let target = args.at(1);
    let sparse_max = cx.settings.hll_sparse_bytes;
    let mut bytes = match cx.peek(target) {
        None => hyperloglog::empty(),
        Some(record) => bytes_of(record.value())?.0.to_vec(),
    };
    if any_dense {
        hyperloglog::make_dense(&mut bytes)?;
    }
    hyperloglog::raise_all(&mut bytes, &registers, sparse_max)?;
    write(cx, target, &bytes);
    cx.changed(target, Class::STRING, "pfadd");
    out.ok();
    Ok(())
}
