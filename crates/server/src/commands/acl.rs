//! ACL: the one user there is, `default`, who may do everything.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::error::{SHOWN_BYTES_MAX, shown_up_to};
use engine::handler::runs;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use crate::host::ThreadHost;

/// The family.
pub const COMMANDS: &[Command] = &[ACL];

const ACL: Command = Command {
    name: "acl",
    group: Group::Server,
    since: "6.0.0",
    summary: "Manages users and what they may do.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        ACL_CAT,
        ACL_GETUSER,
        ACL_HELP,
        ACL_LIST,
        ACL_USERS,
        ACL_WHOAMI,
    ])
};

const ACL_CAT: Command = Command {
    name: "cat",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the categories of commands, or the commands of one.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    args: &[string("category").optional()],
    reply: &[Shape::Array],
    ..runs(acl_cat)
};

fn acl_cat(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    match args.len() {
        2 => {
            out.array(Acl::NAMES.len());
            Acl::NAMES.iter().for_each(|name| out.text(name));
        }
        3 => {
            let Some(category) = Acl::named(args.at(2)) else {
                let shown = shown_up_to(args.at(2), SHOWN_BYTES_MAX);
                return Err(CommandError::err(format!("Unknown category '{shown}'")));
            };
            let entries = cx.shared.table.entries().iter();
            let found: Vec<_> = entries.filter(|entry| entry.acl.has(category)).collect();
            out.array(found.len());
            found.iter().for_each(|entry| out.text(&entry.full_name));
        }
        _ => return Err(cx.unknown_subcommand(args)),
    }
    Ok(())
}

/// Flags of the one user.
fn flags(cx: &mut Context<'_>) -> &'static [&'static str] {
    match ThreadHost::of(cx).shared.config().requirepass {
        None => &["on", "nopass", "sanitize-payload"],
        Some(_) => &["on", "sanitize-payload"],
    }
}

const ACL_GETUSER: Command = Command {
    name: "getuser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Describes a user's rights.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    args: &[string("username")],
    reply: &[Shape::Map, Shape::Null],
    history: &[
        ("6.2.0", "Shows rules for channels."),
        (
            "7.0.0",
            "Shows selectors, and describes keys and channels as rules.",
        ),
    ],
    ..runs(acl_getuser)
};

fn acl_getuser(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.at(2) != b"default" {
        out.null();
        return Ok(());
    }
    let flags = flags(cx);
    out.map(6);
    out.text("flags");
    out.set(flags.len());
    flags.iter().for_each(|flag| out.text(flag));
    out.text("passwords");
    out.array(0);
    for (name, rule) in [("commands", "+@all"), ("keys", "~*"), ("channels", "&*")] {
        out.text(name);
        out.text(rule);
    }
    out.text("selectors");
    out.array(0);
    Ok(())
}

const ACL_HELP: Command = Command {
    name: "help",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the subcommands.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::LOADING.with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(acl_help)
};

fn acl_help(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let lines = [
        "ACL <subcommand> [<argument> ...]:",
        "CAT [<category>]",
        "    The categories of commands, or the commands of one.",
        "GETUSER <user>",
        "    What a user may do.",
        "LIST",
        "    The users with their rights, as rules.",
        "USERS",
        "    The names of the users.",
        "WHOAMI",
        "    The user of this connection.",
        "HELP",
        "    This text.",
    ];
    cx.help(out, &lines);
    Ok(())
}

const ACL_LIST: Command = Command {
    name: "list",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the users with their rights, as rules.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(acl_list)
};

fn acl_list(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let flags = flags(cx).join(" ");
    out.array(1);
    out.text(&format!("user default {flags} ~* &* +@all"));
    Ok(())
}

const ACL_USERS: Command = Command {
    name: "users",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the names of the users.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: Flags::ADMIN
        .with(Flags::NOSCRIPT)
        .with(Flags::LOADING)
        .with(Flags::STALE),
    reply: &[Shape::Array],
    ..runs(acl_users)
};

fn acl_users(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.array(1);
    out.text("default");
    Ok(())
}

const ACL_WHOAMI: Command = Command {
    name: "whoami",
    group: Group::Server,
    since: "6.0.0",
    summary: "Returns the user of the connection.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE),
    reply: &[Shape::Bulk],
    ..runs(acl_whoami)
};

fn acl_whoami(_: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.text("default");
    Ok(())
}
