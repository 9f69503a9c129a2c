//! Numbers in the fields of hashes. The deadline of the field stays.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::decimal;

use super::change;
use crate::extended::Extended;
use crate::handler::runs;
use crate::number;
use crate::object::hash::Ttl;
use crate::{Command, CommandError, Context};

pub(super) const HINCRBY: Command = Command {
    name: "hincrby",
    group: Group::Hash,
    since: "2.0.0",
    summary: "Adds a number to an integer in a field of a hash.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), string("field"), int("increment")],
    reply: &[Shape::Int],
    ..runs(hincrby)
};

fn hincrby(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, field) = (args.at(1), args.at(2));
    let more = number::int(args.at(3))?;
    let terms = cx.terms();
    let sum = change(cx, args, "hincrby", |hash| {
        let mut digits = [0; decimal::TEXT_MAX];
        let old = match hash.get(terms, field) {
            None => 0,
            Some(found) => decimal::parse(found.value.bytes(&mut digits))
                .ok_or(CommandError::text("ERR hash value is not an integer"))?,
        };
        let sum = old.checked_add(more).ok_or(CommandError::Overflow)?;
        hash.set(terms, field, decimal::format(sum, &mut digits), Ttl::Keep);
        Ok(sum)
    })?;
    cx.notify_fields("hincrby", key, [field]);
    out.int(sum);
    Ok(())
}

pub(super) const HINCRBYFLOAT: Command = Command {
    name: "hincrbyfloat",
    group: Group::Hash,
    since: "2.6.0",
    summary: "Adds a number to a floating-point value in a field of a hash.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().access().update()],
    args: &[key("key"), string("field"), double("increment")],
    reply: &[Shape::Bulk],
    ..runs(hincrbyfloat)
};

fn hincrbyfloat(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, field) = (args.at(1), args.at(2));
    let more = Extended::parse(args.at(3)).ok_or(CommandError::NotFloat)?;
    if more.is_infinite() {
        return Err("ERR value is NaN or Infinity".into());
    }
    let (terms, mut is_timed) = (cx.terms(), false);
    let text = change(cx, args, "hincrbyfloat", |hash| {
        let old = match hash.get(terms, field) {
            None => Extended::ZERO,
            Some(found) => {
                is_timed = found.deadline.is_some();
                Extended::parse(found.value.bytes(&mut [0; decimal::TEXT_MAX]))
                    .ok_or(CommandError::text("ERR hash value is not a float"))?
            }
        };
        let sum = old.plus(more);
        if sum.is_infinite() || old.is_infinite() {
            return Err("ERR increment would produce NaN or Infinity".into());
        }
        let text = sum.format();
        hash.set(terms, field, text.as_bytes(), Ttl::Keep);
        Ok(text)
    })?;
    cx.notify_fields("hincrbyfloat", key, [field]);
    let text_bytes = text.as_bytes();
    match is_timed {
        true => cx.rewrite(&[
            b"HSETEX", key, b"KEEPTTL", b"FIELDS", b"1", field, text_bytes,
        ]),
        // Older servers know this, and deadlines of fields they do not have.
        false => cx.rewrite(&[b"HSET", key, field, text_bytes]),
    }
    out.text(&text);
    Ok(())
}
