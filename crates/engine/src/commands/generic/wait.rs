//! WAIT and WAITAOF: until what the connection wrote is where it should be. There are no replicas
//! yet, so whoever waits for some waits until the time is up.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use resp::{Args, Writer};

use crate::blocking::{Awaits, Block};
use crate::handler::runs;
use crate::host::Durable;
use crate::number::{self, timeout_block_ms};
use crate::{Command, CommandError, Context};

pub(super) const WAIT: Command = Command {
    name: "wait",
    group: Group::Generic,
    since: "3.0.0",
    summary: "Waits until replicas have acknowledged the connection's writes.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::BLOCKING,
    acl: Acl::CONNECTION,
    args: &[int("numreplicas"), int("timeout")],
    reply: &[Shape::Int],
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    ..runs(wait)
};

fn wait(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let replicas = number::int(args.at(1))?;
    let deadline_ms = timeout_block_ms(args.at(2), cx.now_ms)?;
    if replicas > 0 && cx.may_block {
        cx.block(Block::without_keys(Awaits::Replicas, deadline_ms));
    } else {
        out.int(0);
    }
    Ok(())
}

/// What WAITAOF answers where there is no log to wait for, or no more.
pub const NO_LOG: &str =
    "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.";

pub(super) const WAITAOF: Command = Command {
    name: "waitaof",
    group: Group::Generic,
    since: "7.2.0",
    summary: "Waits until the connection's writes are durable here and on replicas.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::BLOCKING,
    acl: Acl::CONNECTION,
    args: &[int("numlocal"), int("numreplicas"), int("timeout")],
    reply: &[Shape::Array],
    tips: &["request_policy:all_shards", "response_policy:agg_min"],
    ..runs(waitaof)
};

fn waitaof(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let local = number::int(args.at(1))?;
    if !(0..=1).contains(&local) {
        return Err("ERR value is out of range, value must between 0 and 1".into());
    }
    let replicas = number::int(args.at(2)).ok().filter(|count| *count >= 0);
    let replicas = replicas.ok_or("ERR value is out of range, must be positive")?;
    let deadline_ms = timeout_block_ms(args.at(3), cx.now_ms)?;
    let durable = cx.host.durable();
    if local > 0 && durable == Durable::NoLog {
        return Err(NO_LOG.into());
    }
    let lsn = cx.session.wrote_lsn;
    let is_durable = durable.has(lsn);
    if (replicas > 0 || local > 0 && !is_durable) && cx.may_block {
        let awaits = Awaits::Disk {
            lsn,
            replicas: replicas > 0,
            local: local > 0,
        };
        cx.block(Block::without_keys(awaits, deadline_ms));
        return Ok(());
    }
    out.array(2);
    out.int(i64::from(is_durable));
    out.int(0);
    Ok(())
}
