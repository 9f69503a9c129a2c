//! The connection's own commands that need no more than its session.
//!
//! AUTH, HELLO, RESET and CLIENT reach into the server and are declared there.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::{Command, CommandError, Context, number};

/// The family.
pub(super) const COMMANDS: &[Command] = &[ECHO, PING, QUIT, SELECT];

const ECHO: Command = Command {
    name: "echo",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Returns the message it was given.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
    acl: Acl::CONNECTION,
    args: &[string("message")],
    reply: &[Shape::Bulk],
    ..runs(echo)
};

fn echo(_: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.bulk(args.at(1));
    Ok(())
}

const PING: Command = Command {
    name: "ping",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Answers PONG, or the message it was given.",
    complexity: "O(1)",
    arity: Arity::at_least(1),
    flags: Flags::FAST,
    acl: Acl::CONNECTION,
    args: &[string("message").optional()],
    reply: &[Shape::Simple, Shape::Bulk],
    tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
    ..runs(ping)
};

fn ping(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len() > 2 {
        return Err(cx.arity_error());
    }
    if cx.session.is_subscriber() {
        // A RESP2 subscriber gets it in the form of a message.
        out.array(2);
        out.text("pong");
        out.bulk(args.at(1));
    } else if args.len() == 1 {
        out.raw(b"+PONG\r\n");
    } else {
        out.bulk(args.at(1));
    }
    Ok(())
}

const QUIT: Command = Command {
    name: "quit",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Closes the connection.",
    complexity: "O(1)",
    arity: Arity::at_least(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::NO_AUTH)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::CONNECTION,
    reply: &[Shape::Ok],
    deprecated: Some(("7.2.0", "just closing the connection")),
    ..runs(quit)
};

fn quit(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    cx.session.closing = true;
    out.ok();
    Ok(())
}

const SELECT: Command = Command {
    name: "select",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Chooses the database of the connection.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE).with(Flags::FAST),
    acl: Acl::CONNECTION,
    args: &[int("index")],
    reply: &[Shape::Ok],
    ..runs(select)
};

fn select(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let index = number::int(args.at(1))?;
    let index = i32::try_from(index).map_err(|_| {
        CommandError::text(
            "ERR value is out of range, value must between -2147483648 and 2147483647",
        )
    })?;
    match u32::try_from(index) {
        Ok(index) if index < cx.settings.databases => cx.session.db = index,
        _ => return Err(CommandError::text("ERR DB index is out of range")),
    }
    out.ok();
    Ok(())
}
