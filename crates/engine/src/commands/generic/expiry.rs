//! Deadlines: setting, showing and removing them.
//!
//! # Invariants
//! - A deadline that has passed already deletes the key at once, and says `del`, not `expired`.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use crate::error::shown;
use crate::handler::runs;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

/// What a time counts from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Since {
    Now,
    Epoch,
}

/// What a time counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    Millis,
}

/// NX, XX, GT and LT.
#[derive(Clone, Copy, Default)]
struct Conditions {
    missing: bool,
    present: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut all = Self::default();
        for (index, word) in args.iter().enumerate() {
            if args.is(index, "NX") {
                all.missing = true;
            } else if args.is(index, "XX") {
                all.present = true;
            } else if args.is(index, "GT") {
                all.later = true;
            } else if args.is(index, "LT") {
                all.earlier = true;
            } else {
                let word = shown(word);
                return Err(CommandError::err(format!("Unsupported option {word}")));
            }
        }
        if all.missing && (all.present || all.later || all.earlier) {
            return Err(
                "ERR NX and XX, GT or LT options at the same time are not compatible".into(),
            );
        }
        if all.later && all.earlier {
            return Err("ERR GT and LT options at the same time are not compatible".into());
        }
        Ok(all)
    }

    /// No deadline counts as one in the infinite future.
    fn hold(self, old: Option<u64>, new: i64) -> bool {
        let old = old.map(|at| i64::try_from(at).unwrap_or(i64::MAX));
        !(self.missing && old.is_some()
            || self.present && old.is_none()
            || self.later && old.is_none_or(|old| new <= old)
            || self.earlier && old.is_some_and(|old| new >= old))
    }
}

/// The Unix milliseconds that the word means; may lie in the past, even before 1970.
fn at_ms(cx: &Context<'_>, word: &[u8], from: Since, unit: Unit) -> Result<i64, CommandError> {
    let invalid = || CommandError::InvalidExpire(cx.entry.command.name);
    let mut value = crate::number::int(word)?;
    if unit == Unit::Seconds {
        value = value.checked_mul(1000).ok_or_else(invalid)?;
    }
    if from == Since::Now {
        value = value.checked_add_unsigned(cx.now_ms).ok_or_else(invalid)?;
    }
    Ok(value)
}

fn set(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    from: Since,
    unit: Unit,
) -> Result<(), CommandError> {
    let conditions = Conditions::parse(args.from(3))?;
    let key = args.at(1);
    let at = at_ms(cx, args.at(2), from, unit)?;
    let Some(old) = cx.edit(key).map(|record| record.deadline()) else {
        out.int(0);
        return Ok(());
    };
    if !conditions.hold(old, at) {
        out.int(0);
        return Ok(());
    }
    let at = u64::try_from(at).unwrap_or(0);
    if at <= cx.dead_ms {
        cx.remove(key);
        cx.changed(key, Class::GENERIC, "del");
        cx.rewrite(&[b"DEL", key]);
    } else {
        cx.set_deadline(key, Some(at));
        cx.changed(key, Class::GENERIC, "expire");
        cx.rewrite(&[b"PEXPIREAT", key, at.to_string().as_bytes()]);
    }
    out.int(1);
    Ok(())
}

/// Answers -2 without a key, -1 without a deadline, else what `shown` makes of it.
fn show(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    shown: impl Fn(u64, u64) -> u64,
) -> Result<(), CommandError> {
    let now_ms = cx.now_ms;
    out.int(match cx.look(args.at(1)).map(|record| record.deadline()) {
        None => -2,
        Some(None) => -1,
        Some(Some(at)) => i64::try_from(shown(at, now_ms)).unwrap_or(i64::MAX),
    });
    Ok(())
}

pub(super) const EXPIRE: Command = Command {
    name: "expire",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Gives a key a time to live in seconds.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        int("seconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .since("7.0.0")
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes the conditions `NX`, `XX`, `GT` and `LT`.")],
    ..runs(expire)
};

fn expire(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    set(cx, args, out, Since::Now, Unit::Seconds)
}

pub(super) const EXPIREAT: Command = Command {
    name: "expireat",
    group: Group::Generic,
    since: "1.2.0",
    summary: "Gives a key a deadline in Unix seconds.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        unix_time("unix-time-seconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .since("7.0.0")
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes the conditions `NX`, `XX`, `GT` and `LT`.")],
    ..runs(expireat)
};

fn expireat(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    set(cx, args, out, Since::Epoch, Unit::Seconds)
}

pub(super) const PEXPIRE: Command = Command {
    name: "pexpire",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Gives a key a time to live in milliseconds.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        int("milliseconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .since("7.0.0")
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes the conditions `NX`, `XX`, `GT` and `LT`.")],
    ..runs(pexpire)
};

fn pexpire(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    set(cx, args, out, Since::Now, Unit::Millis)
}

pub(super) const PEXPIREAT: Command = Command {
    name: "pexpireat",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Gives a key a deadline in Unix milliseconds.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        unix_time("unix-time-milliseconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .since("7.0.0")
        .optional(),
    ],
    reply: &[Shape::Int],
    history: &[("7.0.0", "Takes the conditions `NX`, `XX`, `GT` and `LT`.")],
    ..runs(pexpireat)
};

fn pexpireat(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    set(cx, args, out, Since::Epoch, Unit::Millis)
}

pub(super) const EXPIRETIME: Command = Command {
    name: "expiretime",
    group: Group::Generic,
    since: "7.0.0",
    summary: "Returns a key's deadline in Unix seconds.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(expiretime)
};

fn expiretime(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    show(cx, args, out, |at, _| (at + 500) / 1000)
}

pub(super) const PEXPIRETIME: Command = Command {
    name: "pexpiretime",
    group: Group::Generic,
    since: "7.0.0",
    summary: "Returns a key's deadline in Unix milliseconds.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(pexpiretime)
};

fn pexpiretime(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    show(cx, args, out, |at, _| at)
}

pub(super) const TTL: Command = Command {
    name: "ttl",
    group: Group::Generic,
    since: "1.0.0",
    summary: "Returns a key's time to live in seconds.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int],
    tips: &["nondeterministic_output"],
    history: &[("2.8.0", "A key that does not exist gives -2.")],
    ..runs(ttl)
};

fn ttl(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    show(cx, args, out, |at, now| {
        (at.saturating_sub(now) + 500) / 1000
    })
}

pub(super) const PTTL: Command = Command {
    name: "pttl",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Returns a key's time to live in milliseconds.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Int],
    tips: &["nondeterministic_output"],
    history: &[("2.8.0", "A key that does not exist gives -2.")],
    ..runs(pttl)
};

fn pttl(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    show(cx, args, out, u64::saturating_sub)
}

pub(super) const PERSIST: Command = Command {
    name: "persist",
    group: Group::Generic,
    since: "2.2.0",
    summary: "Takes a key's time to live away.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[key("key")],
    reply: &[Shape::Int],
    ..runs(persist)
};

fn persist(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let timed = cx
        .edit(key)
        .is_some_and(|record| record.deadline().is_some());
    if timed {
        cx.set_deadline(key, None);
        cx.changed(key, Class::GENERIC, "persist");
    }
    out.int(timed.into());
    Ok(())
}
