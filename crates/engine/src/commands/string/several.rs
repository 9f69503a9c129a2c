//! Several strings in one step: MGET and the MSET family.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::record::ValueRef;

use super::expiry::{self, Expiry};
use super::value_of;
use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

pub(super) const MGET: Command = Command {
    name: "mget",
    group: Group::String,
    since: "1.0.0",
    summary: "Returns the strings of several keys.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).last(-1).ro().access()],
    args: &[key("key").multiple()],
    reply: &[Shape::Array],
    tips: &["request_policy:multi_shard"],
    ..runs(mget)
};

fn mget(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let keys = args.from(1);
    out.array(keys.len());
    for key in keys.iter() {
        match cx.read(key).map(|record| record.value()) {
            Some(ValueRef::Bytes(bytes)) => out.bulk(bytes),
            Some(ValueRef::Int(int)) => out.bulk_int(int),
            Some(ValueRef::Object(_)) | None => out.null(),
        }
    }
    Ok(())
}

pub(super) const MSET: Command = Command {
    name: "mset",
    group: Group::String,
    since: "1.0.1",
    summary: "Stores several strings in one step.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).last(-1).step(2).ow().update()],
    args: &[block("data", &[key("key"), string("value")]).multiple()],
    reply: &[Shape::Ok],
    tips: &[
        "request_policy:multi_shard",
        "response_policy:all_succeeded",
    ],
    ..runs(mset)
};

fn mset(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len().is_multiple_of(2) {
        return Err(cx.arity_error());
    }
    put_pairs(cx, args.from(1));
    out.ok();
    Ok(())
}

fn put_pairs(cx: &mut Context<'_>, pairs: Args<'_>) {
    for at in (0..pairs.len()).step_by(2) {
        let key = pairs.at(at);
        cx.put(key, value_of(pairs.at(at + 1)), Deadline::Clear);
        cx.changed(key, Class::STRING, "set");
    }
}

pub(super) const MSETNX: Command = Command {
    name: "msetnx",
    group: Group::String,
    since: "1.0.1",
    summary: "Stores several strings in one step if none of their keys exists.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).last(-1).step(2).ow().insert()],
    args: &[block("data", &[key("key"), string("value")]).multiple()],
    reply: &[Shape::Int],
    ..runs(msetnx)
};

fn msetnx(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len().is_multiple_of(2) {
        return Err(cx.arity_error());
    }
    let pairs = args.from(1);
    let are_new = (0..pairs.len())
        .step_by(2)
        .all(|at| !cx.exists(pairs.at(at)));
    if are_new {
        put_pairs(cx, pairs);
    }
    out.int(i64::from(are_new));
    Ok(())
}

pub(super) const MSETEX: Command = Command {
    name: "msetex",
    group: Group::String,
    since: "8.4.0",
    summary: "Stores several strings in one step, with one condition and one time to live.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STRING,
    keys: &[KeySpec::at(1).counted().step(2).ow().update()],
    args: &[
        int("numkeys"),
        block("data", &[key("key"), string("value")]).multiple(),
        one_of("condition", &[flag("NX"), flag("XX")]).optional(),
        one_of(
            "expiration",
            &[
                int("seconds").token("EX"),
                int("milliseconds").token("PX"),
                unix_time("unix-time-seconds").token("EXAT"),
                unix_time("unix-time-milliseconds").token("PXAT"),
                flag("KEEPTTL"),
            ],
        )
        .optional(),
    ],
    reply: &[Shape::Int],
    tips: &[
        "request_policy:multi_shard",
        "response_policy:all_succeeded",
    ],
    ..runs(msetex)
};

fn msetex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let count = crate::number::int(args.at(1)).ok();
    let count = count.and_then(|count| i32::try_from(count).ok());
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = count
        .filter(|&count| count > 0)
        .ok_or(CommandError::text("ERR invalid numkeys value"))?;
    if count > (args.len() - 2) / 2 {
        return Err("ERR wrong number of key-value pairs".into());
    }
    let (mut wanted, mut expiry, mut keep) = (None, None::<Expiry<'_>>, false);
    let mut at = 2 + 2 * count;
    while at < args.len() {
        let condition = [("NX", false), ("XX", true)]
            .into_iter()
            .find(|(word, _)| args.is(at, word));
        if let Some((_, there)) = condition
            && wanted.is_none_or(|other| other == there)
        {
            wanted = Some(there);
            at += 1;
        } else if args.is(at, "KEEPTTL") && expiry.is_none() {
            keep = true;
            at += 1;
        } else if let Some(other) = Expiry::parse(args, at)
            && !keep
            && expiry.is_none_or(|expiry| expiry.unit == other.unit)
        {
            expiry = Some(other);
            at += 2;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let deadline = expiry
        .map(|expiry| expiry.at(cx.now_ms, "msetex"))
        .transpose()?;
    let keys = (0..count).map(|index| args.at(2 + 2 * index));
    if let Some(there) = wanted
        && !keys.clone().all(|key| cx.exists(key) == there)
    {
        out.int(0);
        return Ok(());
    }
    let what = match (deadline, keep) {
        (Some(at), _) => Deadline::At(at),
        (None, true) => Deadline::Keep,
        (None, false) => Deadline::Clear,
    };
    for (index, key) in keys.enumerate() {
        let text = args.at(3 + 2 * index);
        cx.put(key, value_of(text), what);
        if deadline.is_some() {
            cx.notify(Class::GENERIC, "expire", key);
        }
        cx.changed(key, Class::STRING, "set");
    }
    if let Some(at) = deadline.filter(|_| cx.is_logged()) {
        let at = expiry::digits(at);
        let mut words: Vec<&[u8]> = vec![b"MSETEX"];
        words.extend(args.from(1).iter().take(1 + 2 * count));
        words.extend([&b"PXAT"[..], at.as_bytes()]);
        cx.rewrite(&words);
    }
    out.int(1);
    Ok(())
}
