//! DUMP and RESTORE: values as bytes. The bytes themselves are [`crate::dump`]'s.

use command::arg::*;
use command::{Acl, Arg, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::record::DEADLINE_MS_MAX;

use super::copy::{clear, replaced};
use crate::access;
use crate::dump::{self, Refused};
use crate::handler::runs;
use crate::keyspace::Deadline;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

pub(super) const DUMP: Command = Command {
    name: "dump",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Returns a key's value in serialized form.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::READONLY,
    acl: Acl::KEYSPACE,
    keys: &[KeySpec::at(1).ro().access()],
    args: &[key("key")],
    reply: &[Shape::Bulk, Shape::Null],
    tips: &["nondeterministic_output"],
    ..runs(dump)
};

fn dump(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    match cx.read(args.at(1)) {
        None => out.null(),
        Some(record) => {
            let payload = dump::dump(record.value()).ok_or("ERR the value is too big to dump")?;
            out.bulk(&payload);
        }
    }
    Ok(())
}

/// RESTORE's options.
#[derive(Default)]
struct Options {
    replace: bool,
    absolute: bool,
    idle_s: Option<i64>,
    frequency: Option<i64>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut index = 4;
        while index < args.len() {
            let more = index + 1 < args.len();
            if args.is(index, "REPLACE") {
                options.replace = true;
            } else if args.is(index, "ABSTTL") {
                options.absolute = true;
            } else if args.is(index, "IDLETIME") && more && options.frequency.is_none() {
                let idle = crate::number::int(args.at(index + 1))?;
                if idle < 0 {
                    return Err("ERR Invalid IDLETIME value, must be >= 0".into());
                }
                options.idle_s = Some(idle);
                index += 1;
            } else if args.is(index, "FREQ") && more && options.idle_s.is_none() {
                let frequency = crate::number::int(args.at(index + 1))?;
                if !(0..=255).contains(&frequency) {
                    return Err("ERR Invalid FREQ value, must be >= 0 and <= 255".into());
                }
                options.frequency = Some(frequency);
                index += 1;
            } else {
                return Err(CommandError::Syntax);
            }
            index += 1;
        }
        Ok(options)
    }

    /// The access bits of the new record, if they are given and of the kind that is kept.
    fn access(&self, cx: &Context<'_>) -> Option<u32> {
        if cx.settings.lfu {
            let frequency = u32::try_from(self.frequency?).ok()?;
            return Some(access::minute(cx.now_ms) << 8 | frequency);
        }
        Some(access::idle(cx.now_ms, self.idle_s?.unsigned_abs()))
    }
}

const RESTORE_ARGS: &[Arg] = &[
    key("key"),
    int("ttl"),
    string("serialized-value"),
    flag("REPLACE").since("3.0.0").optional(),
    flag("ABSTTL").since("5.0.0").optional(),
    int("seconds").token("IDLETIME").since("5.0.0").optional(),
    int("frequency").token("FREQ").since("5.0.0").optional(),
];

const RESTORE_HISTORY: &[(&str, &str)] = &[
    ("3.0.0", "Takes `REPLACE`."),
    ("5.0.0", "Takes `ABSTTL`."),
    ("5.0.0", "Takes `IDLETIME` and `FREQ`."),
];

pub(super) const RESTORE: Command = Command {
    name: "restore",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Creates a key from a value in serialized form.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::KEYSPACE.with(Acl::DANGEROUS),
    keys: &[KeySpec::at(1).ow().update()],
    args: RESTORE_ARGS,
    reply: &[Shape::Ok],
    history: RESTORE_HISTORY,
    ..runs(restore)
};

fn restore(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let options = Options::parse(args)?;
    let key = args.at(1);
    if !options.replace && cx.exists(key) {
        return Err("BUSYKEY Target key name already exists.".into());
    }
    let ttl = crate::number::int(args.at(2))?;
    let ttl = u64::try_from(ttl)
        .map_err(|_| CommandError::text("ERR Invalid TTL value, must be >= 0"))?;
    let is_logged = cx.is_replaying();
    let value = dump::load(args.at(3), cx.settings, &cx.shared.seed, is_logged);
    let value = value.map_err(|refused| {
        CommandError::text(match refused {
            Refused::Footer => "ERR DUMP payload version or checksum are wrong",
            Refused::Content => "ERR Bad data format",
        })
    })?;
    let deadline = match (ttl, options.absolute) {
        (0, _) => Deadline::Clear,
        (ttl, true) => Deadline::At(ttl),
        // A time to live that leads beyond all time has no future: to Redis it is past.
        (ttl, false) => Deadline::At(match ttl.saturating_add(cx.now_ms) {
            at if at > DEADLINE_MS_MAX => 0,
            at => at,
        }),
    };
    if let Deadline::At(at) = deadline
        && at <= cx.dead_ms
    {
        if cx.remove(key) {
            cx.changed(key, Class::GENERIC, "del");
            cx.rewrite(&[b"DEL", key]);
        }
        out.ok();
        return Ok(());
    }
    let old = clear(cx, key);
    let kind = value.kind();
    cx.put_owned(key, value, deadline);
    if let Some(access) = options.access(cx)
        && let Some(mut record) = cx.edit(key)
    {
        record.set_access(access);
    }
    cx.changed(key, Class::GENERIC, "restore");
    if let (Deadline::At(at), false) = (deadline, options.absolute) {
        let at = at.to_string();
        let mut words: Vec<&[u8]> = args.iter().collect();
        words[0] = cx.entry.first_word().as_bytes();
        words[2] = at.as_bytes();
        words.push(b"ABSTTL");
        cx.rewrite(&words);
    }
    replaced(cx, key, old, kind);
    cx.ready(key);
    out.ok();
    Ok(())
}

/// RESTORE for a slot that is being imported: what nodes of a cluster send each other.
pub(super) const RESTORE_ASKING: Command = Command {
    name: "restore-asking",
    group: Group::Server,
    since: "3.0.0",
    summary: "Creates a key of a slot that is being imported.",
    flags: Flags::WRITE.with(Flags::DENYOOM).with(Flags::ASKING),
    system: true,
    ..RESTORE
};
