//! CLIENT: connections as operators and libraries see and steer them.
//!
//! Any thread may read what a client shows of itself ([`crate::shared::Client`]), but only its own
//! thread touches its session. So what changes another client goes to its thread as a message, and
//! whether it will do something is decided by what the client showed last.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::error::shown;
use engine::handler::runs;
use engine::session::ReplyMode;
use engine::{Command, CommandError, Context, number};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::inbox::Message;
use crate::shared::{Client, flag};

mod filter;
mod line;
mod tracking;

pub(super) use tracking::stop as stop_tracking;

/// The family.
pub(super) const COMMANDS: &[Command] = &[CLIENT];

const CLIENT: Command = Command {
    name: "client",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Inspects and steers the connections of clients.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        tracking::CLIENT_CACHING,
        CLIENT_GETNAME,
        tracking::CLIENT_GETREDIR,
        CLIENT_HELP,
        CLIENT_ID,
        CLIENT_INFO,
        CLIENT_KILL,
        CLIENT_LIST,
        CLIENT_NO_EVICT,
        CLIENT_NO_TOUCH,
        CLIENT_PAUSE,
        CLIENT_REPLY,
        CLIENT_SETINFO,
        CLIENT_SETNAME,
        tracking::CLIENT_TRACKING,
        tracking::CLIENT_TRACKINGINFO,
        CLIENT_UNBLOCK,
        CLIENT_UNPAUSE,
    ])
};

const CLIENT_GETNAME: Command = Command {
    name: "getname",
    group: Group::Connection,
    since: "2.6.9",
    summary: "Returns the name of the connection.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Bulk, Shape::Null],
    ..runs(client_getname)
};

fn client_getname(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let name = own(cx).names.lock().name.clone();
    if name.is_empty() {
        out.null();
    } else {
        out.bulk(&name);
    }
    Ok(())
}

const CLIENT_HELP: Command = Command {
    name: "help",
    group: Group::Connection,
    since: "5.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Array],
    ..runs(client_help)
};

fn client_help(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    cx.help(
        out,
        &[
            "CLIENT <subcommand> [<arg> ...]. The subcommands are:",
            "CACHING (YES|NO)",
            "    Says whether the next command's keys are tracked.",
            "GETNAME",
            "    Returns the name of the connection.",
            "GETREDIR",
            "    Returns the client that receives this connection's invalidations.",
            "ID",
            "    Returns the number of the connection.",
            "INFO",
            "    Describes the connection that asks.",
            "KILL <ip:port>",
            "    Closes the connection from that address.",
            "KILL <option> <value> [<option> <value> ...]",
            "    Closes the connections that fit every option:",
            "    ADDR (<ip:port>|<unixsocket>:0), LADDR (<ip:port>|<unixsocket>:0),",
            "    TYPE (NORMAL|MASTER|REPLICA|PUBSUB), USER <name>, ID <number>,",
            "    MAXAGE <seconds>, SKIPME (YES|NO): whether to spare the one that asks (default).",
            "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)|ID <number> ...]",
            "    Describes the connections, one a line.",
            "NO-EVICT (ON|OFF)",
            "    Protects the connection from being dropped when clients use too much memory.",
            "NO-TOUCH (ON|OFF)",
            "    Says whether this connection's commands leave the last use of keys as it is.",
            "PAUSE <milliseconds> [WRITE|ALL]",
            "    Holds back all commands, or those that write.",
            "REPLY (ON|OFF|SKIP)",
            "    Chooses whether this connection is answered.",
            "SETINFO (LIB-NAME|LIB-VER) <value>",
            "    Records which library the client uses.",
            "SETNAME <name>",
            "    Names the connection.",
            "TRACKING (ON|OFF) [REDIRECT <number>] [BCAST] [PREFIX <prefix> ...] [OPTIN] [OPTOUT]",
            "    [NOLOOP]",
            "    Switches invalidation messages.",
            "TRACKINGINFO",
            "    Describes how this connection tracks keys.",
            "UNBLOCK <number> [TIMEOUT|ERROR]",
            "    Wakes a client that waits in a blocking command.",
            "UNPAUSE",
            "    Ends a pause at once.",
            "HELP",
            "    Lists the subcommands.",
        ],
    );
    Ok(())
}

const CLIENT_ID: Command = Command {
    name: "id",
    group: Group::Connection,
    since: "5.0.0",
    summary: "Returns the number of the connection.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Int],
    ..runs(client_id)
};

fn client_id(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.int(i64::try_from(cx.session.id.number).unwrap_or(i64::MAX));
    Ok(())
}

const CLIENT_INFO: Command = Command {
    name: "info",
    group: Group::Connection,
    since: "6.2.0",
    summary: "Describes the connection that asks.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Verbatim],
    tips: &["nondeterministic_output"],
    ..runs(client_info)
};

fn client_info(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let client = own_now(cx, args);
    let line = line::of(&client, cx.now_ms, cx.shared);
    out.verbatim("txt", &line);
    Ok(())
}

const CLIENT_KILL: Command = Command {
    name: "kill",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Closes connections, by address or by filter.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of(
        "filter",
        &[
            string("old-format").shown("ip:port").deprecated("2.8.12"),
            one_of(
                "new-format",
                &[
                    int("client-id").token("ID").since("2.8.12").optional(),
                    one_of(
                        "client-type",
                        &[
                            flag("NORMAL"),
                            flag("MASTER").since("3.2.0"),
                            flag("SLAVE"),
                            flag("REPLICA").since("5.0.0"),
                            flag("PUBSUB"),
                        ],
                    )
                    .token("TYPE")
                    .since("2.8.12")
                    .optional(),
                    string("username").token("USER").optional(),
                    string("addr").token("ADDR").shown("ip:port").optional(),
                    string("laddr")
                        .token("LADDR")
                        .shown("ip:port")
                        .since("6.2.0")
                        .optional(),
                    one_of("skipme", &[flag("YES"), flag("NO")])
                        .token("SKIPME")
                        .optional(),
                    int("maxage").token("MAXAGE").since("7.4.0").optional(),
                ],
            )
            .multiple(),
        ],
    )],
    reply: &[Shape::Ok, Shape::Int],
    history: &[
        ("2.8.12", "Takes filters instead of an address."),
        ("2.8.12", "Takes `ID`."),
        ("3.2.0", "Knows the type `master`."),
        ("5.0.0", "Knows the type `replica` by its present name."),
        ("6.2.0", "Takes `LADDR`."),
        ("7.4.0", "Takes `MAXAGE`."),
    ],
    ..runs(client_kill)
};

fn client_kill(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let users = &ThreadHost::of(cx).shared.users;
    let (filter, is_old_form) = filter::Filter::to_kill(args, users)?;
    let own = cx.session.id;
    let victims: Vec<_> = {
        let host = ThreadHost::of(cx);
        let mut clients = host.shared.clients.lock();
        let found: Vec<Arc<Client>> = clients
            .values()
            .filter(|client| filter.fits(client, own, host.now_us / 1000))
            .cloned()
            .collect();
        // From now on nobody finds them, though their threads have yet to close them.
        for client in &found {
            clients.remove(&client.id.number);
        }
        found
    };
    for client in &victims {
        ThreadHost::of(cx).send(client.id, Message::Kill(client.id.number));
    }
    match (is_old_form, victims.len()) {
        (true, 0) => return Err(CommandError::text("ERR No such client")),
        (true, _) => out.ok(),
        (false, count) => out.count(count),
    }
    Ok(())
}

const CLIENT_LIST: Command = Command {
    name: "list",
    group: Group::Connection,
    since: "2.4.0",
    summary: "Describes the open connections, one a line.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[
        one_of(
            "client-type",
            &[
                flag("NORMAL"),
                flag("MASTER"),
                flag("REPLICA"),
                flag("PUBSUB"),
            ],
        )
        .token("TYPE")
        .since("5.0.0")
        .optional(),
        int("client-id")
            .token("ID")
            .since("6.2.0")
            .optional()
            .multiple(),
    ],
    reply: &[Shape::Verbatim],
    tips: &["nondeterministic_output"],
    history: &[
        (
            "2.8.12",
            "Each client has a number that is never used again, `id`.",
        ),
        ("5.0.0", "Takes `TYPE`."),
        ("6.0.0", "Shows `user`."),
        (
            "6.2.0",
            "Takes `ID`; shows `argv-mem`, `tot-mem`, `laddr` and `redir`.",
        ),
        ("7.0.0", "Shows `resp`, `multi-mem`, `rbs` and `rbp`."),
        ("7.0.3", "Shows `ssub`."),
        ("7.2.0", "Shows `lib-name` and `lib-ver`."),
        ("7.4.0", "Shows `watch`."),
        ("8.0.0", "Shows `io-thread`."),
    ],
    ..runs(client_list)
};

fn client_list(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let filter = filter::Filter::to_list(args)?;
    let own = cx.session.id;
    own_now(cx, args);
    let clients: Vec<_> = {
        let clients = ThreadHost::of(cx).shared.clients.lock();
        clients.values().cloned().collect()
    };
    let mut lines = Vec::new();
    for client in clients {
        if filter.fits(&client, own, cx.now_ms) {
            lines.extend_from_slice(&line::of(&client, cx.now_ms, cx.shared));
        }
    }
    out.verbatim("txt", &lines);
    Ok(())
}

const CLIENT_NO_EVICT: Command = Command {
    name: "no-evict",
    group: Group::Connection,
    since: "7.0.0",
    summary: "Protects the connection from being dropped when clients use too much memory.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of("enabled", &[flag("ON"), flag("OFF")])],
    reply: &[Shape::Ok],
    ..runs(client_no_evict)
};

fn client_no_evict(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let on = on_or_off(args)?;
    own(cx).set_flag(flag::NO_EVICT, on);
    out.ok();
    Ok(())
}

const CLIENT_NO_TOUCH: Command = Command {
    name: "no-touch",
    group: Group::Connection,
    since: "7.2.0",
    summary: "Says whether this connection's commands count as uses of the keys they touch.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of("enabled", &[flag("ON"), flag("OFF")])],
    reply: &[Shape::Ok],
    ..runs(client_no_touch)
};

fn client_no_touch(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    cx.session.no_touch = on_or_off(args)?;
    out.ok();
    Ok(())
}

const CLIENT_PAUSE: Command = Command {
    name: "pause",
    group: Group::Connection,
    since: "3.0.0",
    summary: "Holds back the commands of all clients for a time.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[
        int("timeout"),
        one_of("mode", &[flag("WRITE"), flag("ALL")])
            .since("6.2.0")
            .optional(),
    ],
    reply: &[Shape::Ok],
    history: &[("6.2.0", "Takes `WRITE` or `ALL`.")],
    ..runs(client_pause)
};

fn client_pause(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(cx.subcommand_error(args));
    }
    let only_writes = match args.get(3) {
        None => false,
        Some(mode) if mode.eq_ignore_ascii_case(b"ALL") => false,
        Some(mode) if mode.eq_ignore_ascii_case(b"WRITE") => true,
        Some(_) => {
            return Err(CommandError::text(
                "ERR CLIENT PAUSE mode must be WRITE or ALL",
            ));
        }
    };
    let wait_ms = number::int(args.at(2))
        .map_err(|_| CommandError::text("ERR timeout is not an integer or out of range"))?;
    let Ok(wait_ms) = u64::try_from(wait_ms) else {
        return Err(CommandError::TimeoutNegative);
    };
    let Some(until_ms) = cx
        .now_ms
        .checked_add(wait_ms)
        .filter(|&until| i64::try_from(until).is_ok())
    else {
        return Err(CommandError::text("ERR timeout is out of range"));
    };
    let pause = &ThreadHost::of(cx).shared.pause;
    let until = if only_writes {
        &pause.writes_until_ms
    } else {
        &pause.all_until_ms
    };
    until.fetch_max(until_ms, Ordering::Release);
    out.ok();
    Ok(())
}

const CLIENT_REPLY: Command = Command {
    name: "reply",
    group: Group::Connection,
    since: "3.2.0",
    summary: "Chooses whether the server answers this connection.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of("action", &[flag("ON"), flag("OFF"), flag("SKIP")])],
    reply: &[Shape::Ok, Shape::Nothing],
    ..runs(client_reply)
};

fn client_reply(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let session = &mut *cx.session;
    if args.is(2, "ON") {
        session.reply_mode = ReplyMode::On;
        out.ok();
    } else if args.is(2, "OFF") {
        session.reply_mode = ReplyMode::Off;
    } else if args.is(2, "SKIP") {
        if session.reply_mode != ReplyMode::Off {
            session.reply_mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(())
}

const CLIENT_SETINFO: Command = Command {
    name: "setinfo",
    group: Group::Connection,
    since: "7.2.0",
    summary: "Records which library the client uses.",
    complexity: "O(1)",
    arity: Arity::exactly(4),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[one_of(
        "attr",
        &[
            string("libname").token("LIB-NAME"),
            string("libver").token("LIB-VER"),
        ],
    )],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    ..runs(client_setinfo)
};

fn client_setinfo(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let value = args.at(3);
    if args.is(2, "LIB-NAME") {
        check_name(value, &shown(args.at(2)))?;
        own(cx).names.lock().library = value.into();
    } else if args.is(2, "LIB-VER") {
        check_name(value, &shown(args.at(2)))?;
        own(cx).names.lock().library_version = value.into();
    } else {
        let option = shown(args.at(2));
        return Err(CommandError::err(format!("Unrecognized option '{option}'")));
    }
    out.ok();
    Ok(())
}

const CLIENT_SETNAME: Command = Command {
    name: "setname",
    group: Group::Connection,
    since: "2.6.9",
    summary: "Names the connection.",
    complexity: "O(1)",
    arity: Arity::exactly(3),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[string("connection-name")],
    reply: &[Shape::Ok],
    tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
    ..runs(client_setname)
};

fn client_setname(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    check_name(args.at(2), "Client names")?;
    own(cx).names.lock().name = args.at(2).into();
    out.ok();
    Ok(())
}

const CLIENT_UNBLOCK: Command = Command {
    name: "unblock",
    group: Group::Connection,
    since: "5.0.0",
    summary: "Wakes a client that waits in a blocking command.",
    complexity: "O(log N)",
    arity: Arity::at_least(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    acl: Acl::CONNECTION,
    args: &[
        int("client-id"),
        one_of("unblock-type", &[flag("TIMEOUT"), flag("ERROR")]).optional(),
    ],
    reply: &[Shape::Int],
    ..runs(client_unblock)
};

fn client_unblock(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 4 {
        return Err(cx.subcommand_error(args));
    }
    let with_error = match args.get(3) {
        None => false,
        Some(reason) if reason.eq_ignore_ascii_case(b"TIMEOUT") => false,
        Some(reason) if reason.eq_ignore_ascii_case(b"ERROR") => true,
        Some(_) => {
            return Err(CommandError::text(
                "ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR",
            ));
        }
    };
    let number = number::int(args.at(2))?;
    let host = ThreadHost::of(cx);
    let client = u64::try_from(number)
        .ok()
        .and_then(|number| host.shared.clients.lock().get(&number).cloned());
    // Whoever takes the bit away is the one that unblocks: a second call finds nobody waiting.
    let waiting = client.filter(|client| client.set_flag(flag::BLOCKED, false));
    out.count(usize::from(waiting.is_some()));
    if let Some(client) = waiting {
        host.send(client.id, Message::Unblock(client.id.number, with_error));
    }
    Ok(())
}

const CLIENT_UNPAUSE: Command = Command {
    name: "unpause",
    group: Group::Connection,
    since: "6.2.0",
    summary: "Ends a pause of the clients at once.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    acl: Acl::CONNECTION,
    reply: &[Shape::Ok],
    ..runs(client_unpause)
};

fn client_unpause(
    cx: &mut Context<'_>,
    _: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let shared = &ThreadHost::of(cx).shared;
    shared.pause.all_until_ms.store(0, Ordering::Release);
    shared.pause.writes_until_ms.store(0, Ordering::Release);
    shared.wake_all();
    out.ok();
    Ok(())
}

/// A client as CLIENT INFO describes it, with a line break.
pub fn line(client: &Client, now_ms: u64, keys: &engine::keyspace::Shared) -> Vec<u8> {
    line::of(client, now_ms, keys)
}

/// The client whose command runs.
fn own(cx: &mut Context<'_>) -> Arc<Client> {
    let client = ThreadHost::of(cx).client.clone();
    client.expect("the server runs CLIENT for its connections only")
}

/// The same, showing how it stands at this very command.
fn own_now(cx: &mut Context<'_>, args: Args<'_>) -> Arc<Client> {
    let client = own(cx);
    client.show(cx.session);
    client.active_ms.store(cx.now_ms, Ordering::Relaxed);
    let bytes = args.iter().map(<[u8]>::len).sum();
    client.argv_bytes.store(bytes, Ordering::Relaxed);
    client
}

fn on_or_off(args: Args<'_>) -> Result<bool, CommandError> {
    if args.is(2, "ON") {
        Ok(true)
    } else if args.is(2, "OFF") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}

/// Refuses a name that would break the lines of CLIENT LIST, which show it up to a zero byte.
pub(super) fn check_name(name: &[u8], what: &str) -> Result<(), CommandError> {
    if shown_part(name).iter().all(u8::is_ascii_graphic) {
        return Ok(());
    }
    Err(CommandError::err(format!(
        "{what} cannot contain spaces, newlines or special characters."
    )))
}

/// The part of a name that CLIENT LIST shows.
pub(super) fn shown_part(name: &[u8]) -> &[u8] {
    name.split(|byte| *byte == 0).next().unwrap_or_default()
}
