//! OBJECT: how a value is kept, and how it is used.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::record::{RecordRef, ValueRef};

use crate::access::{self, aged};
use crate::handler::runs;
use crate::{Command, CommandError, Context, Object};

/// Strings are `embstr` where they and their key are no longer than this, unless something changed
/// them in place. Redis 8.10 keeps the key in the same 64 bytes.
const EMBEDDED_BYTES_MAX: usize = 41;

const NO_FREQUENCY: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please note that \
     when switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

const NO_IDLE_TIME: CommandError = CommandError::text(
    "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that when \
     switching between policies at runtime LRU and LFU data will take some time to adjust.",
);

pub(super) const OBJECT: Command = Command {
    name: "object",
    group: Group::Generic,
    since: "2.2.3",
    summary: "Shows how a key's value is kept.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        OBJECT_ENCODING,
        OBJECT_FREQ,
        OBJECT_HELP,
        OBJECT_IDLETIME,
        OBJECT_REFCOUNT,
    ])
};

const OBJECT_ENCODING: Command = Command {
    name: "encoding",
    group: Group::Generic,
    since: "2.2.3",
    summary: "Names the internal representation of a key's value.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(2).ro()],
    args: &[key("key")],
    reply: &[Shape::Bulk, Shape::Null],
    tips: &["nondeterministic_output"],
    ..runs(object_encoding)
};

fn object_encoding(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let Some(record) = cx.look_quietly(args.at(2)) else {
        out.null();
        return Ok(());
    };
    out.text(encoding(record));
    Ok(())
}

/// How a value is stored, in Redis's words.
pub fn encoding(record: RecordRef<'_, Object>) -> &'static str {
    match record.value() {
        ValueRef::Int(_) => "int",
        ValueRef::Bytes(bytes)
            if bytes.len() + record.key().len() <= EMBEDDED_BYTES_MAX && !record.is_raw() =>
        {
            "embstr"
        }
        ValueRef::Bytes(_) => "raw",
        ValueRef::Object(object) => object.encoding(),
    }
}

const OBJECT_FREQ: Command = Command {
    name: "freq",
    group: Group::Generic,
    since: "4.0.0",
    summary: "Returns how often a key was used, on the logarithmic scale of the eviction policy.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(2).ro()],
    args: &[key("key")],
    reply: &[Shape::Int, Shape::Null],
    tips: &["nondeterministic_output"],
    ..runs(object_freq)
};

fn object_freq(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (lfu, decay) = (cx.settings.lfu, cx.settings.lfu_decay_minutes);
    let minute = access::minute(cx.now_ms);
    match cx.look_quietly(args.at(2)).map(|record| record.access()) {
        None => out.null(),
        Some(_) if !lfu => return Err(NO_FREQUENCY),
        Some(access) => out.int(aged(access, minute, decay).into()),
    }
    Ok(())
}

const OBJECT_HELP: Command = Command {
    name: "help",
    group: Group::Generic,
    since: "6.2.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::KEYSPACE,
    reply: &[Shape::Array],
    ..runs(object_help)
};

fn object_help(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    const LINES: [&str; 11] = [
        "OBJECT <subcommand> <key>. The subcommands:",
        "ENCODING <key>",
        "    The name of the value's representation in memory.",
        "FREQ <key>",
        "    How often the key was used, on a logarithmic scale. LFU policies only.",
        "IDLETIME <key>",
        "    Seconds since the key was last used. All other policies.",
        "REFCOUNT <key>",
        "    How many owners the value has, which is always one.",
        "HELP",
        "    Print this text.",
    ];
    out.array(LINES.len());
    LINES.iter().for_each(|line| out.simple(line));
    Ok(())
}

const OBJECT_IDLETIME: Command = Command {
    name: "idletime",
    group: Group::Generic,
    since: "2.2.3",
    summary: "Returns how many seconds ago a key was last used.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(2).ro()],
    args: &[key("key")],
    reply: &[Shape::Int, Shape::Null],
    tips: &["nondeterministic_output"],
    ..runs(object_idletime)
};

fn object_idletime(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (lfu, now) = (cx.settings.lfu, access::seconds(cx.now_ms));
    match cx.look_quietly(args.at(2)).map(|record| record.access()) {
        None => out.null(),
        Some(_) if lfu => return Err(NO_IDLE_TIME),
        Some(access) => out.int((now.wrapping_sub(access) & 0xff_ffff).into()),
    }
    Ok(())
}

const OBJECT_REFCOUNT: Command = Command {
    name: "refcount",
    group: Group::Generic,
    since: "2.2.3",
    summary: "Returns how many owners a key's value has.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(2).ro()],
    args: &[key("key")],
    reply: &[Shape::Int, Shape::Null],
    tips: &["nondeterministic_output"],
    ..runs(object_refcount)
};

fn object_refcount(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    match cx.look_quietly(args.at(2)) {
        None => out.null(),
        Some(_) => out.int(1),
    }
    Ok(())
}
