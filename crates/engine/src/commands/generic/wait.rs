//! WAIT and WAITAOF: there are no replicas and there is no log yet, so the answers are known.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
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
    number::int(args.at(1))?;
    timeout_block_ms(args.at(2), cx.now_ms)?;
    out.int(0);
    Ok(())
}

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
    if !number::int(args.at(2)).is_ok_and(|replicas| replicas >= 0) {
        return Err("ERR value is out of range, must be positive".into());
    }
    timeout_block_ms(args.at(3), cx.now_ms)?;
    if local > 0 {
        return Err(
            "ERR WAITAOF cannot be used when numlocal is set but appendonly is disabled.".into(),
        );
    }
    out.array(2);
    out.int(0);
    out.int(0);
    Ok(())
}
