//! Deleting entries: XDEL, XDELEX, XACKDEL one by one, XTRIM from the front.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{Deletion, References};

use super::edit_stream;
use super::id::parse_all;
use super::options::{self, Trim, references_word};
use crate::handler::runs;
use crate::notify::Class;
use crate::{Command, CommandError, Context};

pub(super) const XDEL: Command = Command {
    name: "xdel",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Deletes entries from a stream.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[key("key"), string("id").multiple()],
    reply: &[Shape::Int],
    ..runs(xdel)
};

fn xdel(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let Some(stream) = edit_stream(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let ids = parse_all(args.from(2).iter())?;
    let deleted = ids.iter().filter(|id| stream.delete(**id)).count();
    if deleted > 0 {
        cx.changed(key, Class::STREAM, "xdel");
        cx.of_elements(key, deleted);
    }
    out.count(deleted);
    Ok(())
}

pub(super) const XDELEX: Command = Command {
    name: "xdelex",
    group: Group::Stream,
    since: "8.2.0",
    summary: "Deletes entries from a stream and says what becomes of references to them.",
    complexity: "O(1)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[
        key("key"),
        one_of(
            "condition",
            &[flag("KEEPREF"), flag("DELREF"), flag("ACKED")],
        )
        .optional(),
        block("ids", &[int("numids"), string("id").multiple()]).token("IDS"),
    ],
    reply: &[Shape::Array],
    ..runs(xdelex)
};

fn xdelex(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    edit_stream(cx, key)?;
    let (references, ids) = Chosen::parse(args, 2)?.split();
    let Some(stream) = edit_stream(cx, key)? else {
        return missing(out, ids.len());
    };
    let ids = parse_all(ids.iter())?;
    let deletions = ids.into_iter().map(|id| stream.delete_with(id, references));
    let (mut deleted, mut touched) = (false, false);
    write_deletions(out, deletions, |deletion| {
        deleted |= deletion == Deletion::Deleted;
        touched |= deletion == Deletion::Missing && references == References::Delete;
    });
    if deleted {
        cx.changed(key, Class::STREAM, "xdel");
    } else if touched {
        // References to entries that were gone already may have been removed.
        cx.changed_unwatched(key);
    }
    Ok(())
}

pub(super) const XACKDEL: Command = Command {
    name: "xackdel",
    group: Group::Stream,
    since: "8.2.0",
    summary: "Marks a group's pending entries as processed and deletes them from the stream.",
    complexity: "O(1)",
    arity: Arity::at_least(6),
    flags: Flags::WRITE.with(Flags::FAST),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().update().delete()],
    args: &[
        key("key"),
        string("group"),
        one_of(
            "condition",
            &[flag("KEEPREF"), flag("DELREF"), flag("ACKED")],
        )
        .optional(),
        block("ids", &[int("numids"), string("id").multiple()]).token("IDS"),
    ],
    reply: &[Shape::Array],
    ..runs(xackdel)
};

fn xackdel(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (key, group) = (args.at(1), args.at(2));
    edit_stream(cx, key)?;
    cx.tell_if_missing(key);
    let (references, ids) = Chosen::parse(args, 3)?.split();
    let stream = edit_stream(cx, key)?.filter(|stream| stream.group(group).is_some());
    let Some(stream) = stream else {
        return missing(out, ids.len());
    };
    let ids = parse_all(ids.iter())?;
    let before = stream.len();
    let mut acknowledged = false;
    let deletions = ids
        .into_iter()
        .map(|id| stream.acknowledge_delete(group, id, references));
    write_deletions(out, deletions, |deletion| {
        acknowledged |= deletion != Deletion::Missing;
    });
    if stream.len() < before {
        cx.changed(key, Class::STREAM, "xdel");
    } else if acknowledged {
        cx.changed_unwatched(key);
    }
    Ok(())
}

/// The entries that XDELEX and XACKDEL name, and what becomes of references to them.
#[derive(Default)]
struct Chosen<'a> {
    references: Option<References>,
    ids: Vec<&'a [u8]>,
}

impl<'a> Chosen<'a> {
    fn parse(args: Args<'a>, first: usize) -> Result<Self, CommandError> {
        let mut chosen = Self::default();
        let mut at = first;
        while at < args.len() {
            if let Some(references) = options::references(args.at(at)) {
                if chosen.references.replace(references).is_some() {
                    return Err(CommandError::Syntax);
                }
                at += 1;
            } else if args.is(at, "IDS") && at + 1 < args.len() {
                let count = structure::decimal::parse(args.at(at + 1))
                    .and_then(|count| usize::try_from(count).ok())
                    .filter(|count| *count > 0)
                    .ok_or(CommandError::text(
                        "ERR Number of IDs must be a positive integer",
                    ))?;
                let first = at + 2;
                if count > args.len() - first {
                    return Err(
                        "ERR The `numids` parameter must match the number of arguments".into(),
                    );
                }
                chosen.ids = args.from(first).iter().take(count).collect();
                at = first + count;
            } else {
                return Err(CommandError::Syntax);
            }
        }
        if chosen.ids.is_empty() {
            return Err(CommandError::Syntax);
        }
        Ok(chosen)
    }

    fn split(self) -> (References, IdWords<'a>) {
        (self.references.unwrap_or_default(), IdWords(self.ids))
    }
}

/// The words of ids.
struct IdWords<'a>(Vec<&'a [u8]>);

impl<'a> IdWords<'a> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        self.0.iter().copied()
    }
}

fn missing(out: &mut Writer<'_>, ids: usize) -> Result<(), CommandError> {
    out.array(ids);
    (0..ids).for_each(|_| out.int(-1));
    Ok(())
}

fn write_deletions(
    out: &mut Writer<'_>,
    deletions: impl ExactSizeIterator<Item = Deletion>,
    mut note: impl FnMut(Deletion),
) {
    out.array(deletions.len());
    for deletion in deletions {
        note(deletion);
        out.int(match deletion {
            Deletion::Missing => -1,
            Deletion::Deleted => 1,
            Deletion::Referenced => 2,
        });
    }
}

pub(super) const XTRIM: Command = Command {
    name: "xtrim",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Deletes the oldest entries of a stream.",
    complexity: "O(N)",
    arity: Arity::at_least(4),
    flags: Flags::WRITE,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(1).rw().delete()],
    args: &[
        key("key"),
        block(
            "trim",
            &[
                one_of("strategy", &[flag("MAXLEN"), flag("MINID").since("6.2.0")]),
                one_of(
                    "operator",
                    &[flag("=").named("equal"), flag("~").named("approximately")],
                )
                .optional(),
                string("threshold"),
                int("count").token("LIMIT").since("6.2.0").optional(),
                one_of(
                    "condition",
                    &[flag("KEEPREF"), flag("DELREF"), flag("ACKED")],
                )
                .optional(),
            ],
        ),
    ],
    reply: &[Shape::Int],
    tips: &["nondeterministic_output"],
    history: &[
        ("6.2.0", "Takes `MINID` and `LIMIT`."),
        ("8.2.0", "Takes `KEEPREF`, `DELREF` and `ACKED`."),
    ],
    ..runs(xtrim)
};

fn xtrim(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let key = args.at(1);
    let mut trim = Trim::default();
    let mut at = 2;
    while at < args.len() {
        match trim.parse(args, at)? {
            0 => return Err(CommandError::Syntax),
            words => at += words,
        }
    }
    trim.check()?;
    if !trim.is_asked() {
        return Err(CommandError::Syntax);
    }
    let limit = Trim::limit_default(cx);
    let Some(stream) = edit_stream(cx, key)? else {
        out.int(0);
        return Ok(());
    };
    let removed = trim.apply(stream, limit);
    let length = stream.len();
    if removed > 0 {
        cx.changed(key, Class::STREAM, "xtrim");
        if cx.is_logged() {
            log_trim(cx, key, length, &trim);
        }
    }
    out.int(i64::try_from(removed).unwrap_or(i64::MAX));
    Ok(())
}

/// Logs what trimming came to: down to so many entries, exactly.
#[cold]
fn log_trim(cx: &mut Context<'_>, key: &[u8], length: u64, trim: &Trim) {
    let length = length.to_string();
    let mut words = vec![b"XTRIM", key, b"MAXLEN", b"=", length.as_bytes()];
    words.extend(references_word(trim.references()));
    cx.rewrite(&words);
}
