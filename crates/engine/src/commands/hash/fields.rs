//! HGETDEL, HGETEX and HSETEX: fields read or written together with what becomes of them.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};

use super::expiry::{Unit, check_kind, deadline, fields_at, unknown_argument};
use super::{edit, removed_fields, write_value};
use crate::handler::runs;
use crate::notify::Class;
use crate::object::hash::Ttl;
use crate::object::{Hash, Object};
use crate::{Command, CommandError, Context};

pub(super) const HGETDEL: Command = Command {
    name: "hgetdel",
    group: Group::Hash,
    since: "8.0.0",
    summary: "Returns the values of fields of a hash and deletes the fields.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().access().delete()],
    args: &[
        key("key"),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hgetdel)
};

fn hgetdel(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    check_kind(cx, key)?;
    let (fields, listening) = (fields_at(args, 2)?, cx.hears_fields());
    let mut hash = edit(cx, args)?;
    out.array(fields.len());
    let (mut removed, mut gone) = (0, Vec::new());
    for field in fields.iter() {
        write_value(out, hash.as_deref(), terms, field);
        if let Some(hash) = &mut hash
            && hash.remove(terms, field)
        {
            removed += 1;
            if listening {
                gone.push(field);
            }
        }
    }
    let empty = hash.is_some_and(|hash| hash.is_empty());
    if removed > 0 {
        if cx.is_logged() {
            let mut words: Vec<&[u8]> = vec![b"HDEL", key];
            words.extend(fields.iter());
            cx.rewrite(&words);
        }
        removed_fields(cx, key, &gone, empty);
    }
    Ok(())
}

/// What HGETEX and HSETEX say beside their fields.
#[derive(Default)]
struct Options {
    /// The new deadline.
    at: Option<u64>,
    /// PERSIST or KEEPTTL.
    flag: bool,
    /// FNX (false) or FXX (true).
    must_exist: Option<bool>,
    /// NX (false) or XX (true), which are about the key.
    key_must_exist: Option<bool>,
    /// Where the fields begin, and how many there are.
    fields: Option<(usize, usize)>,
}

/// Reads the options, which stand in any order. `words` is how many words a field takes.
fn options(
    cx: &Context<'_>,
    args: Args<'_>,
    words: usize,
    (flag, command): (&str, &'static str),
) -> Result<Options, CommandError> {
    let mut options = Options::default();
    let mut timed = false;
    let mut at = 2;
    while at < args.len() {
        if args.is(at, "FIELDS") {
            if options.fields.is_some() {
                return Err("ERR FIELDS keyword specified multiple times".into());
            }
            let count = args.get(at + 1).ok_or_else(|| cx.arity_error())?;
            let count = structure::decimal::parse(count).unwrap_or(0);
            // As many as an `int` of C can say.
            let count = i32::try_from(count).unwrap_or(0);
            let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
                return Err("ERR invalid number of fields".into());
            };
            let end = count.checked_mul(words).and_then(|n| n.checked_add(at + 2));
            let Some(end) = end.filter(|end| *end <= args.len()) else {
                return Err("ERR wrong number of arguments".into());
            };
            options.fields = Some((at + 2, count));
            at = end;
        } else if let Some(unit) = unit_of(args, at) {
            if timed || options.flag {
                return Err(only_one(flag));
            }
            let missing = CommandError::text("ERR missing expire time");
            let text = args.get(at + 1).ok_or(missing)?;
            timed = true;
            options.at = Some(deadline(cx, text, unit, command)?);
            at += 2;
        } else if args.is(at, flag) {
            if timed || options.flag {
                return Err(only_one(flag));
            }
            options.flag = true;
            at += 1;
        } else if words == 2 && (args.is(at, "FNX") || args.is(at, "FXX")) {
            if options.must_exist.is_some() {
                return Err("ERR Only one of FXX or FNX arguments can be specified".into());
            }
            options.must_exist = Some(args.is(at, "FXX"));
            at += 1;
        } else if words == 2 && (args.is(at, "NX") || args.is(at, "XX")) {
            let wanted = args.is(at, "XX");
            if options
                .key_must_exist
                .is_some_and(|before| before != wanted)
            {
                return Err(CommandError::Syntax);
            }
            options.key_must_exist = Some(wanted);
            at += 1;
        } else {
            return Err(unknown_argument(args.at(at)));
        }
    }
    Ok(options)
}

fn only_one(flag: &str) -> CommandError {
    CommandError::err(format!(
        "Only one of EX, PX, EXAT, PXAT or {flag} arguments can be specified"
    ))
}

fn unit_of(args: Args<'_>, at: usize) -> Option<Unit> {
    let all = [
        ("EX", false, false),
        ("PX", true, false),
        ("EXAT", false, true),
        ("PXAT", true, true),
    ];
    all.iter()
        .find(|(word, _, _)| args.is(at, word))
        .map(|&(_, ms, absolute)| Unit { ms, absolute })
}

/// The error where no FIELDS stand.
fn no_fields() -> CommandError {
    CommandError::text("ERR Mandatory argument FIELDS is missing or not at the right position")
}

pub(super) const HGETEX: Command = Command {
    name: "hgetex",
    group: Group::Hash,
    since: "8.0.0",
    summary: "Returns the values of fields of a hash and sets or clears their time to live.",
    complexity: "O(N)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1)
        .rw()
        .access()
        .update()
        .note("The time to live changes.")],
    args: &[
        key("key"),
        one_of(
            "expiration",
            &[
                int("seconds").token("EX"),
                int("milliseconds").token("PX"),
                unix_time("unix-time-seconds").token("EXAT"),
                unix_time("unix-time-milliseconds").token("PXAT"),
                flag("PERSIST"),
            ],
        )
        .optional(),
        block("fields", &[int("numfields"), string("field").multiple()]).token("FIELDS"),
    ],
    reply: &[Shape::Array],
    ..runs(hgetex)
};

fn hgetex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    check_kind(cx, key)?;
    let options = options(cx, args, 1, ("PERSIST", "hgetex"))?;
    let (first, count) = options.fields.ok_or_else(no_fields)?;
    let fields = || (first..first + count).map(|index| args.at(index));
    let listening = cx.hears_fields();
    let mut hash = edit(cx, args)?;
    if (options.at.is_some() || options.flag)
        && let Some(hash) = &mut hash
    {
        hash.begin_timing();
    }
    out.array(count);
    let dead = options.at.is_some_and(|at| at <= terms.now_ms);
    let (mut changed, mut told) = (0, Vec::new());
    for field in fields() {
        write_value(out, hash.as_deref(), terms, field);
        let Some(hash) = &mut hash else {
            continue;
        };
        let had = hash.get(terms, field).map(|found| found.deadline);
        let change = match (options.at, had) {
            (Some(_), _) if dead => hash.remove(terms, field),
            (Some(at), _) => hash.set_deadline(terms, field, Some(at)),
            (None, Some(Some(_))) => options.flag && hash.set_deadline(terms, field, None),
            (None, _) => false,
        };
        changed += usize::from(change);
        if change && listening {
            told.push(field);
        }
    }
    let empty = hash.is_some_and(|hash| hash.is_empty());
    if changed == 0 {
        return Ok(());
    }
    if cx.is_logged() {
        let (at, number) = (options.at.unwrap_or(0).to_string(), count.to_string());
        let mut words: Vec<&[u8]> = match options.at {
            Some(_) if dead => vec![b"HDEL", key],
            Some(_) => vec![b"HPEXPIREAT", key, at.as_bytes()],
            None => vec![b"HPERSIST", key],
        };
        if !dead {
            words.extend([b"FIELDS", number.as_bytes()]);
        }
        for field in fields() {
            words.push(field);
        }
        cx.rewrite(&words);
    }
    match options.at {
        Some(_) if dead => removed_fields(cx, key, &told, empty),
        Some(_) => {
            cx.fields_timed(key);
            cx.changed(key, Class::HASH, "hexpire");
            cx.notify_fields("hexpire", key, told);
        }
        None => {
            cx.changed(key, Class::HASH, "hpersist");
            cx.notify_fields("hpersist", key, told);
        }
    }
    Ok(())
}

pub(super) const HSETEX: Command = Command {
    name: "hsetex",
    group: Group::Hash,
    since: "8.0.0",
    summary: "Stores fields of a hash with one condition and one time to live.",
    complexity: "O(N)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
    acl: Acl::HASH,
    keys: &[KeySpec::at(1).rw().update()],
    args: &[
        key("key"),
        one_of("key-condition", &[flag("NX"), flag("XX")]).optional(),
        one_of("condition", &[flag("FNX"), flag("FXX")]).optional(),
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
        block(
            "fields",
            &[
                int("numfields"),
                block("data", &[string("field"), string("value")]).multiple(),
            ],
        )
        .token("FIELDS"),
    ],
    reply: &[Shape::Int],
    ..runs(hsetex)
};

fn hsetex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, terms) = (args.at(1), cx.terms());
    let mut options = options(cx, args, 2, ("KEEPTTL", "hsetex"))?;
    // A deadline of 0 is one that is past; in a field it would be none.
    options.at = options.at.map(|at| at.max(1));
    let (first, count) = options.fields.ok_or_else(no_fields)?;
    let pairs = || {
        (first..first + 2 * count)
            .step_by(2)
            .map(|at| (args.at(at), args.at(at + 1)))
    };
    let hash = edit(cx, args)?;
    let key_must_exist = options.key_must_exist;
    if key_must_exist.is_some_and(|must_exist| must_exist != hash.is_some()) {
        out.int(0);
        return Ok(());
    }
    if let Some(must_exist) = options.must_exist {
        let exists = |field| hash.as_ref().is_some_and(|h| h.get(terms, field).is_some());
        if !pairs().all(|(field, _)| exists(field) == must_exist) {
            out.int(0);
            return Ok(());
        }
    }
    let ttl = match options.at {
        Some(at) => Ttl::At(at),
        None if options.flag => Ttl::Keep,
        None => Ttl::Clear,
    };
    let dead = options.at.is_some_and(|at| at <= terms.now_ms);
    let mut fresh = Hash::default();
    let is_new = hash.is_none();
    let hash = hash.unwrap_or(&mut fresh);
    hash.expect_pairs(terms, count);
    for (field, value) in pairs() {
        hash.set(terms, field, value, ttl);
        if dead {
            hash.expire_due(options.at.unwrap_or(0), usize::MAX, |_| {});
        }
    }
    let empty = hash.is_empty();
    if is_new && !empty {
        cx.put_object(key, Object::Hash(fresh));
    }
    if options.at.is_some() {
        cx.fields_timed(key);
    }
    // Redis knows no NX and XX: a replica of that kind is told what came of them.
    let is_rewritten = options.at.is_some() || key_must_exist.is_some();
    if dead && cx.is_logged() {
        let words = [b"HDEL", key].into_iter();
        let words: Vec<_> = words.chain(pairs().map(|(field, _)| field)).collect();
        cx.rewrite(&words);
    } else if is_rewritten && cx.is_logged() {
        let (at, number) = (options.at.map(|at| at.to_string()), count.to_string());
        let mut words: Vec<&[u8]> = vec![b"HSETEX", key];
        match &at {
            Some(at) => words.extend([b"PXAT", at.as_bytes()]),
            None if options.flag => words.push(b"KEEPTTL"),
            None => {}
        }
        words.extend([b"FIELDS", number.as_bytes()]);
        words.extend(pairs().flat_map(|(field, value)| [field, value]));
        cx.rewrite(&words);
    }
    let fields = || pairs().map(|(field, _)| field);
    if is_new && empty {
        cx.notify(Class::NEW, "new", key);
    }
    cx.changed(key, Class::HASH, "hset");
    cx.notify_fields("hset", key, fields());
    if dead {
        cx.notify(Class::HASH, "hdel", key);
        cx.notify_fields("hdel", key, fields());
        if empty && is_new {
            cx.notify(Class::GENERIC, "del", key);
        } else if empty {
            cx.remove_empty(key);
        }
    } else if options.at.is_some() {
        cx.notify(Class::HASH, "hexpire", key);
        cx.notify_fields("hexpire", key, fields());
    }
    out.int(1);
    Ok(())
}
