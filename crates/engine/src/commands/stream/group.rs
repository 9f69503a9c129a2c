//! XGROUP: making, moving and removing groups and their consumers.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape};
use resp::{Args, Writer};
use structure::stream::{Stream, StreamId};

use super::{bad_subcommand, edit_stream, id, new_stream, no_group_of_key};
use crate::handler::runs;
use crate::notify::Class;
use crate::object::Object;
use crate::{Command, CommandError, Context, number};

pub(super) const XGROUP: Command = Command {
    name: "xgroup",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Manages the consumer groups of a stream.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        XGROUP_CREATE,
        XGROUP_CREATECONSUMER,
        XGROUP_DELCONSUMER,
        XGROUP_DESTROY,
        XGROUP_HELP,
        XGROUP_SETID,
    ])
};

/// The error of every subcommand where the key is missing.
const NO_KEY: CommandError = CommandError::text(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);

const XGROUP_CREATE: Command = Command {
    name: "create",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Creates a consumer group.",
    complexity: "O(1)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).rw().insert()],
    args: &[
        key("key"),
        string("group"),
        one_of("id-selector", &[string("id"), flag("$").named("new-id")]),
        flag("MKSTREAM").optional(),
        int("entriesread")
            .token("ENTRIESREAD")
            .shown("entries-read")
            .optional(),
    ],
    reply: &[Shape::Ok],
    history: &[("7.0.0", "Takes `ENTRIESREAD`.")],
    ..runs(xgroup_create)
};

fn xgroup_create(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name) = (args.at(2), args.at(3));
    let options = Options::parse(cx, args, true)?;
    let known = match edit_stream(cx, key)? {
        None if !options.makes_stream => return Err(NO_KEY),
        None => None,
        Some(stream) => Some(create(
            stream,
            name,
            position(stream, args.at(4))?,
            &options,
        )),
    };
    let is_new_key = known.is_none();
    let created = match known {
        Some(created) => created,
        None => {
            let mut stream = new_stream(cx);
            let start = position(&stream, args.at(4))?;
            let created = create(&mut stream, name, start, &options);
            cx.put_object(key, Object::Stream(Box::new(stream)));
            created
        }
    };
    if !created {
        return Err("BUSYGROUP Consumer Group name already exists".into());
    }
    // A new group of a stream that was there is no change to those who watch it.
    if is_new_key {
        cx.touch(key);
    } else {
        cx.changed_unwatched(key);
    }
    cx.notify(Class::STREAM, "xgroup-create", key);
    if is_new_key {
        // There is nothing to read yet, but who waits for the key looks at all of its keys again.
        cx.ready(key);
    }
    out.ok();
    Ok(())
}

fn create(stream: &mut Stream, name: &[u8], start: StreamId, options: &Options) -> bool {
    let read = options.entries_read(stream);
    stream.create_group(name, start, read).is_some()
}

/// Where a group is to begin: an id, or `$` for the end.
fn position(stream: &Stream, word: &[u8]) -> Result<StreamId, CommandError> {
    match word {
        b"$" => Ok(stream.last_id()),
        _ => id::parse(word, 0),
    }
}

/// The options of CREATE and SETID.
#[derive(Default)]
struct Options {
    makes_stream: bool,
    entries_read: Option<u64>,
}

impl Options {
    fn parse(cx: &Context<'_>, args: Args<'_>, is_create: bool) -> Result<Self, CommandError> {
        let mut options = Self::default();
        let mut at = 5;
        while at < args.len() {
            if is_create && args.is(at, "MKSTREAM") {
                options.makes_stream = true;
                at += 1;
            } else if at + 1 < args.len() && args.is(at, "ENTRIESREAD") {
                options.entries_read = match number::int(args.at(at + 1))? {
                    -1 => None,
                    read => Some(u64::try_from(read).map_err(|_| {
                        CommandError::text("ERR value for ENTRIESREAD must be positive or -1")
                    })?),
                };
                at += 2;
            } else {
                return Err(bad_subcommand(cx, args.at(1)));
            }
        }
        // What is said twice is one word too many.
        let words_max = if is_create { 8 } else { 7 };
        if args.len() > words_max {
            return Err(bad_subcommand(cx, args.at(1)));
        }
        Ok(options)
    }

    /// The count of read entries, which cannot be more than were ever added.
    fn entries_read(&self, stream: &Stream) -> Option<u64> {
        self.entries_read
            .map(|read| read.min(stream.entries_added()))
    }
}

const XGROUP_SETID: Command = Command {
    name: "setid",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Moves the position from which a group reads.",
    complexity: "O(1)",
    arity: Arity::at_least(5),
    flags: Flags::WRITE,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).rw().update()],
    args: &[
        key("key"),
        string("group"),
        one_of("id-selector", &[string("id"), flag("$").named("new-id")]),
        int("entriesread")
            .token("ENTRIESREAD")
            .shown("entries-read")
            .optional(),
    ],
    reply: &[Shape::Ok],
    history: &[("7.0.0", "Takes `ENTRIESREAD`.")],
    ..runs(xgroup_setid)
};

fn xgroup_setid(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name) = (args.at(2), args.at(3));
    let options = Options::parse(cx, args, false)?;
    let is_replaying = cx.is_replaying();
    let stream = edit_stream(cx, key)?.ok_or(NO_KEY)?;
    if stream.group(name).is_none() {
        return Err(no_group_of_key(key, name));
    }
    // Unlike CREATE, it takes the ends of a range too.
    let start = match args.at(4) {
        b"-" => StreamId::MIN,
        b"+" => StreamId::MAX,
        word => position(stream, word)?,
    };
    // A log says how it was: reading on from a count that was set too high goes past all entries.
    let read = match is_replaying {
        true => options.entries_read,
        false => options.entries_read(stream),
    };
    if let Some(group) = stream.group_mut(name) {
        group.set_last_delivered(start);
        group.entries_read = read;
    }
    cx.changed_unwatched(key);
    if let Some(read) = read.filter(|_| read != options.entries_read) {
        let read = read.to_string();
        let id = args.at(4);
        cx.rewrite(&[
            b"XGROUP",
            b"SETID",
            key,
            name,
            id,
            b"ENTRIESREAD",
            read.as_bytes(),
        ]);
    }
    cx.notify(Class::STREAM, "xgroup-setid", key);
    out.ok();
    Ok(())
}

const XGROUP_CREATECONSUMER: Command = Command {
    name: "createconsumer",
    group: Group::Stream,
    since: "6.2.0",
    summary: "Creates a consumer in a group.",
    complexity: "O(1)",
    arity: Arity::exactly(5),
    flags: Flags::WRITE.with(Flags::DENYOOM),
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).rw().insert()],
    args: &[key("key"), string("group"), string("consumer")],
    reply: &[Shape::Int],
    ..runs(xgroup_createconsumer)
};

fn xgroup_createconsumer(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name, now_ms) = (args.at(2), args.at(3), cx.now_ms);
    let stream = edit_stream(cx, key)?.ok_or(NO_KEY)?;
    let group = stream.group_mut(name);
    let group = group.ok_or_else(|| no_group_of_key(key, name))?;
    let (_, created) = group.add_consumer(args.at(4), now_ms);
    if created {
        consumer_created(cx, key);
    }
    out.int(i64::from(created));
    Ok(())
}

/// Tells that a consumer came into being.
pub(super) fn consumer_created(cx: &mut Context<'_>, key: &[u8]) {
    cx.changed_unwatched(key);
    cx.notify(Class::STREAM, "xgroup-createconsumer", key);
}

const XGROUP_DELCONSUMER: Command = Command {
    name: "delconsumer",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Deletes a consumer and its pending entries.",
    complexity: "O(1)",
    arity: Arity::exactly(5),
    flags: Flags::WRITE,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).rw().delete()],
    args: &[key("key"), string("group"), string("consumer")],
    reply: &[Shape::Int],
    ..runs(xgroup_delconsumer)
};

fn xgroup_delconsumer(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name) = (args.at(2), args.at(3));
    let stream = edit_stream(cx, key)?.ok_or(NO_KEY)?;
    let group = stream.group_mut(name);
    let group = group.ok_or_else(|| no_group_of_key(key, name))?;
    let removed = group.remove_consumer(args.at(4));
    if removed.is_some() {
        cx.changed_unwatched(key);
        cx.notify(Class::STREAM, "xgroup-delconsumer", key);
    }
    out.int(i64::try_from(removed.unwrap_or(0)).unwrap_or(i64::MAX));
    Ok(())
}

const XGROUP_DESTROY: Command = Command {
    name: "destroy",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Deletes a consumer group.",
    complexity: "O(N)",
    arity: Arity::exactly(4),
    flags: Flags::WRITE,
    acl: Acl::STREAM,
    keys: &[KeySpec::at(2).rw().delete()],
    args: &[key("key"), string("group")],
    reply: &[Shape::Int],
    ..runs(xgroup_destroy)
};

fn xgroup_destroy(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (key, name) = (args.at(2), args.at(3));
    let stream = edit_stream(cx, key)?.ok_or(NO_KEY)?;
    let removed = stream.remove_group(name);
    out.int(i64::from(removed.is_some()));
    if let Some(group) = removed {
        // It may be big: a stream of its own carries it to where it is freed in slices.
        let husk = Box::new(Object::Stream(Box::new(Stream::of_group(group))));
        cx.bury(structure::record::Displaced::Object(husk));
        cx.changed_unwatched(key);
        cx.notify(Class::STREAM, "xgroup-destroy", key);
        cx.gone(key);
    }
    Ok(())
}

const XGROUP_HELP: Command = Command {
    name: "help",
    group: Group::Stream,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::STREAM,
    reply: &[Shape::Array],
    ..runs(xgroup_help)
};

fn xgroup_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    cx.help(
        out,
        &[
            "XGROUP <subcommand> [<arg> ...]. The subcommands:",
            "CREATE <key> <group> <id|$> [MKSTREAM] [ENTRIESREAD <count>]",
            "    Makes a group that reads on from the ID, or from the end ($).",
            "    MKSTREAM makes the stream too where it is missing.",
            "    ENTRIESREAD says how many entries count as read.",
            "CREATECONSUMER <key> <group> <consumer>",
            "    Makes a consumer.",
            "DELCONSUMER <key> <group> <consumer>",
            "    Removes a consumer and what is pending for it.",
            "DESTROY <key> <group>",
            "    Removes a group.",
            "HELP",
            "    Shows these lines.",
            "SETID <key> <group> <id|$> [ENTRIESREAD <count>]",
            "    Moves the position from which a group reads on.",
        ],
    );
    Ok(())
}
