//! Commands for keys of any type.
//!
//! This file holds the short ones; each larger subject has a file of its own below. None of them
//! looks inside a value except SORT, DUMP and RESTORE.

mod copy;
mod expiry;
mod migrate;
mod object;
mod payload;
mod scan;
mod sort;
mod wait;

pub use wait::NO_LOG;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

pub(super) use copy::db_index;
pub use object::encoding;

use crate::handler::runs;
use crate::notify::Class;
use crate::object::Kind;
use crate::{Command, CommandError, Context};

/// The family.
pub(super) const COMMANDS: &[Command] = &[
    scan::CLUSTERSCAN,
    copy::COPY,
    DEL,
    payload::DUMP,
    EXISTS,
    expiry::EXPIRE,
    expiry::EXPIREAT,
    expiry::EXPIRETIME,
    scan::KEYS,
    migrate::MIGRATE,
    copy::MOVE,
    object::OBJECT,
    expiry::PERSIST,
    expiry::PEXPIRE,
    expiry::PEXPIREAT,
    expiry::PEXPIRETIME,
    expiry::PTTL,
    scan::RANDOMKEY,
    copy::RENAME,
    copy::RENAMENX,
    payload::RESTORE,
    payload::RESTORE_ASKING,
    scan::SCAN,
    sort::SORT,
    sort::SORT_RO,
    TOUCH,
    expiry::TTL,
    TYPE,
    UNLINK,
    wait::WAIT,
    wait::WAITAOF,
];

const DEL: Command = Command {
    name: "del",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Deletes keys.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).last(-1).rm().delete()],
    args: &[key("key").multiple()],
    reply: &[Shape::Int],
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    ..runs(del)
};

fn del(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let mut removed = 0;
    for key in args.from(1).iter() {
        if cx.remove(key) {
            cx.changed(key, Class::GENERIC, "del");
            removed += 1;
        }
    }
    out.int(removed);
    Ok(())
}

const EXISTS: Command = Command {
    name: "exists",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Counts how many of the given keys exist.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).last(-1).ro()],
    args: &[key("key").multiple()],
    reply: &[Shape::Int],
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    history: &[("3.0.3", "Takes several keys.")],
    ..runs(exists)
};

fn exists(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let keys = args.from(1).iter();
    out.count(keys.filter(|key| cx.look(key).is_some()).count());
    Ok(())
}

const TOUCH: Command = Command {
    name: "touch",
    group: Group::Generic,
    since: "3.2.1",
    summary: "Marks keys as used now and counts those that exist.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).last(-1).ro()],
    args: &[key("key").multiple()],
    reply: &[Shape::Int],
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    ..runs(touch)
};

fn touch(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let keys = args.from(1).iter();
    out.count(keys.filter(|key| cx.read(key).is_some()).count());
    Ok(())
}

const TYPE: Command = Command {
    name: "type",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Names the type of a key's value.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro()],
    args: &[key("key")],
    reply: &[Shape::Simple],
    ..runs(r#type)
};

fn r#type(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let record = cx.look(args.at(1));
    out.simple(record.map_or("none", |record| Kind::of(record.value()).name()));
    Ok(())
}

/// DEL frees big values off the locks too, so the two are one.
const UNLINK: Command = Command {
    name: "unlink",
    group: Group::Generic,
    since: "4.0.0",
    summary: "Deletes keys and frees their memory in the background.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).last(-1).rm().delete()],
    args: &[key("key").multiple()],
    reply: &[Shape::Int],
    tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
    ..runs(unlink)
};

fn unlink(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    del(cx, args, out)
}
