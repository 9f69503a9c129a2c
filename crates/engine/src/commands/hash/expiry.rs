//! Deadlines of the fields of hashes: HEXPIRE, HTTL, HPERSIST and their relatives.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::{edit, read, removed_fields};
use crate::error::shown;
use crate::handler::runs;
use crate::notify::Class;
use crate::number;
use crate::object::{Hash, Kind};
use crate::{Command, CommandError, Context};

/// How a time is given.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    /// In milliseconds, not seconds.
    pub ms: bool,
    /// From the beginning of 1970, not from now.
    pub absolute: bool,
}

/// Reads a time and turns it into a deadline in Unix milliseconds.
pub(super) fn deadline(
    cx: &Context<'_>,
    text: &[u8],
    unit: Unit,
    command: &'static str,
) -> Result<u64, CommandError> {
    let time = number::int(text)?;
    let time = u64::try_from(time)
        .map_err(|_| CommandError::text("ERR invalid expire time, must be >= 0"))?;
    let scale = if unit.ms { 1 } else { 1000 };
    let base = if unit.absolute { 0 } else { cx.now_ms };
    time.checked_mul(scale)
        .and_then(|ms| ms.checked_add(base))
        .filter(|at| *at <= Hash::DEADLINE_MAX)
        .ok_or(CommandError::InvalidExpire(command))
}

/// Refuses a key of another type: these commands look at it before their words.
pub(super) fn check_kind(cx: &mut Context<'_>, key: &[u8]) -> Result<(), CommandError> {
    match cx.kind(key) {
        None | Some(Kind::Hash) => Ok(()),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// The fields behind `FIELDS count` at word `at`, which must be all that follows.
pub(super) fn fields_at<'a>(args: Args<'a>, at: usize) -> Result<Args<'a>, CommandError> {
    if !args.is(at, "FIELDS") {
        return Err("ERR Mandatory argument FIELDS is missing or not at the right position".into());
    }
    let count = structure::decimal::parse(args.at(at + 1)).filter(|count| *count > 0);
    let count = count.ok_or(CommandError::text(
        "ERR Number of fields must be a positive integer",
    ))?;
    let fields = args.from(at + 2);
    if usize::try_from(count) != Ok(fields.len()) {
        return Err("ERR The `numfields` parameter must match the number of arguments".into());
    }
    Ok(fields)
}

/// A condition of HEXPIRE.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    /// The field has no deadline.
    Nx,
    /// It has one.
    Xx,
    /// It has an earlier one.
    Gt,
    /// It has a later one, or none.
    Lt,
}

impl Condition {
    fn parse(args: Args<'_>, at: usize) -> Option<Self> {
        let all = [
            ("NX", Self::Nx),
            ("XX", Self::Xx),
            ("GT", Self::Gt),
            ("LT", Self::Lt),
        ];
        all.iter()
            .find(|(word, _)| args.is(at, word))
            .map(|(_, condition)| *condition)
    }

    fn allows(self, old: Option<u64>, new: u64) -> bool {
        match self {
            Self::Nx => old.is_none(),
            Self::Xx => old.is_some(),
            Self::Gt => old.is_some_and(|old| new > old),
            Self::Lt => old.is_none_or(|old| new < old),
        }
    }
}

/// Where fields begin among the words, and how many there are.
type Places = Option<(usize, usize)>;

/// The options of HEXPIRE, in any order: a condition and the fields.
fn condition_and_fields(args: Args<'_>) -> Result<(Option<Condition>, Places), CommandError> {
    let (mut condition, mut fields) = (None, None);
    let mut at = 3;
    while at < args.len() {
        if args.is(at, "FIELDS") {
            if fields.is_some() {
                return Err("ERR FIELDS keyword specified multiple times".into());
            }
            if at + 2 >= args.len() {
                let text = "ERR FIELDS requires at least numfields and one field argument";
                return Err(text.into());
            }
            let count = structure::decimal::parse(args.at(at + 1)).unwrap_or(0);
            let Some(count) = i32::try_from(count)
                .ok()
                .and_then(|count| usize::try_from(count).ok())
                .filter(|count| *count > 0)
            else {
                return Err("ERR Parameter `numFields` should be greater than 0".into());
            };
            if count > args.len().saturating_sub(at + 2) {
                return Err("ERR wrong number of arguments".into());
            }
            fields = Some((at + 2, count));
            at += 2 + count;
        } else if let Some(found) = Condition::parse(args, at) {
            if condition.is_some_and(|before| before != found) {
                return Err("ERR Multiple condition flags specified".into());
            }
            condition = Some(found);
            at += 1;
        } else {
            return Err(unknown_argument(args.at(at)));
        }
    }
    Ok((condition, fields))
}

/// The error for a word that is no option.
pub(super) fn unknown_argument(word: &[u8]) -> CommandError {
    CommandError::err(format!("unknown argument: {}", shown(word)))
}

fn expire(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    unit: Unit,
    command: &'static str,
) -> Result<(), CommandError> {
    let key = args.at(1);
    check_kind(cx, key)?;
    let at = deadline(cx, args.at(2), unit, command)?;
    let (condition, fields) = condition_and_fields(args)?;
    let Some((first, count)) = fields else {
        return Err("ERR Mandatory argument FIELDS is missing or not at the right position".into());
    };
    let fields = || (first..first + count).map(|index| args.at(index));
    let (terms, listening) = (cx.terms(), cx.hears_fields() || cx.is_logged());
    out.array(count);
    let Some(hash) = edit(cx, args)? else {
        fields().for_each(|_| out.int(-2));
        return Ok(());
    };
    // Even where no field gets a deadline.
    hash.begin_timing();
    let dead = at <= terms.now_ms;
    let (mut changed, mut told) = (0, Vec::new());
    for field in fields() {
        let Some(found) = hash.get(terms, field) else {
            out.int(-2);
            continue;
        };
        if condition.is_some_and(|condition| !condition.allows(found.deadline, at)) {
            out.int(0);
            continue;
        }
        changed += 1;
        if listening {
            told.push(field);
        }
        if dead {
            hash.remove(terms, field);
            out.int(2);
        } else {
            hash.set_deadline(terms, field, Some(at));
            out.int(1);
        }
    }
    let empty = hash.is_empty();
    if changed == 0 {
        return Ok(());
    }
    if dead {
        let hash = cx.hash(key);
        cx.stripe(hash).stats.expired_fields += changed;
        if cx.is_logged() {
            let words = [b"HDEL", key].into_iter();
            let words: Vec<_> = words.chain(told.iter().copied()).collect();
            cx.rewrite(&words);
        }
        removed_fields(cx, key, &told, empty);
        return Ok(());
    }
    cx.fields_timed(key);
    if cx.is_logged() {
        let (at, number) = (at.to_string(), count.to_string());
        let mut words: Vec<&[u8]> = vec![b"HPEXPIREAT", key, at.as_bytes()];
        match condition {
            None => {}
            Some(Condition::Nx) => words.push(b"NX"),
            Some(Condition::Xx) => words.push(b"XX"),
            Some(Condition::Gt) => words.push(b"GT"),
            Some(Condition::Lt) => words.push(b"LT"),
        }
        words.extend([b"FIELDS", number.as_bytes()]);
        for field in fields() {
            words.push(field);
        }
        cx.rewrite(&words);
    }
    cx.changed(key, Class::HASH, "hexpire");
    cx.notify_fields("hexpire", key, told);
    Ok(())
}

pub(super) const HEXPIRE: Command = Command {
    name: "hexpire",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Gives fields of a hash a time to live in seconds.",
    complexity: "O(N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        int("seconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .optional(),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hexpire)
};

fn hexpire(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (ms, absolute) = (false, false);
    expire(cx, args, out, Unit { ms, absolute }, "hexpire")
}

pub(super) const HEXPIREAT: Command = Command {
    name: "hexpireat",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Gives fields of a hash a deadline in Unix seconds.",
    complexity: "O(N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        unix_time("unix-time-seconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .optional(),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hexpireat)
};

fn hexpireat(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (ms, absolute) = (false, true);
    expire(cx, args, out, Unit { ms, absolute }, "hexpireat")
}

pub(super) const HPEXPIRE: Command = Command {
    name: "hpexpire",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Gives fields of a hash a time to live in milliseconds.",
    complexity: "O(N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        int("milliseconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .optional(),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hpexpire)
};

fn hpexpire(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (ms, absolute) = (true, false);
    expire(cx, args, out, Unit { ms, absolute }, "hpexpire")
}

pub(super) const HPEXPIREAT: Command = Command {
    name: "hpexpireat",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Gives fields of a hash a deadline in Unix milliseconds.",
    complexity: "O(N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        unix_time("unix-time-milliseconds"),
        one_of(
            "condition",
            &[flag("NX"), flag("XX"), flag("GT"), flag("LT")],
        )
        .optional(),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hpexpireat)
};

fn hpexpireat(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (ms, absolute) = (true, true);
    expire(cx, args, out, Unit { ms, absolute }, "hpexpireat")
}

/// Replies with one number a field: -2 where it is not there, -1 where it has no deadline.
fn tell(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
    number: impl Fn(u64, u64) -> u64,
) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    let hash = read(cx, key)?;
    let fields = fields_at(args, 2)?;
    out.array(fields.len());
    for field in fields.iter() {
        let found = hash.and_then(|hash| hash.get(terms, field));
        out.int(match found.map(|found| found.deadline) {
            None => -2,
            Some(None) => -1,
            Some(Some(at)) => i64::try_from(number(at, terms.now_ms)).unwrap_or(i64::MAX),
        });
    }
    Ok(())
}

pub(super) const HTTL: Command = Command {
    name: "httl",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Returns the time to live of fields of a hash in seconds.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(httl)
};

fn httl(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    tell(cx, args, out, |at, now_ms| (at - now_ms).div_ceil(1000))
}

pub(super) const HPTTL: Command = Command {
    name: "hpttl",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Returns the time to live of fields of a hash in milliseconds.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    tips: &["nondeterministic_output"],
    ..runs(hpttl)
};

fn hpttl(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    tell(cx, args, out, |at, now_ms| at - now_ms)
}

pub(super) const HEXPIRETIME: Command = Command {
    name: "hexpiretime",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Returns the deadlines of fields of a hash in Unix seconds.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hexpiretime)
};

fn hexpiretime(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    tell(cx, args, out, |at, _| at.div_ceil(1000))
}

pub(super) const HPEXPIRETIME: Command = Command {
    name: "hpexpiretime",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Returns the deadlines of fields of a hash in Unix milliseconds.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::READONLY.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[
        key("key"),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hpexpiretime)
};

fn hpexpiretime(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    tell(cx, args, out, |at, _| at)
}

pub(super) const HPERSIST: Command = Command {
    name: "hpersist",
    group: Group::Hash,
    since: "7.4.0",
    summary: "Takes the time to live of fields of a hash away.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hpersist)
};

fn hpersist(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    check_kind(cx, key)?;
    let (fields, listening) = (fields_at(args, 2)?, cx.hears_fields());
    out.array(fields.len());
    let Some(hash) = edit(cx, args)? else {
        fields.iter().for_each(|_| out.int(-2));
        return Ok(());
    };
    let (mut changed, mut told) = (false, Vec::new());
    for field in fields.iter() {
        match hash.get(terms, field).map(|found| found.deadline) {
            None => out.int(-2),
            Some(None) => out.int(-1),
            Some(Some(_)) => {
                hash.set_deadline(terms, field, None);
                changed = true;
                if listening {
                    told.push(field);
                }
                out.int(1);
            }
        }
    }
    if changed {
        cx.changed(key, Class::HASH, "hpersist");
        cx.notify_fields("hpersist", key, told);
    }
    Ok(())
}
