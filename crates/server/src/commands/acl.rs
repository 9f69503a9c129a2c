//! ACL: users, their rights, and what they were refused.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::acl::{Bounds, Selector};
use engine::error::{SHOWN_BYTES_MAX, shown, shown_up_to};
use engine::handler::runs;
use engine::{Command, CommandError, Context, number};
use resp::{Args, Writer};

use crate::host::ThreadHost;
use crate::users::{DEFAULT, LoadError, Mistake};
use crate::{sys, warning};

/// The family.
pub const COMMANDS: &[Command] = &[ACL];

/// Bits that a password of ACL GENPASS has where nothing else is said.
const PASSWORD_BITS: i64 = 256;
/// Bits that it may have.
const PASSWORD_BITS_MAX: i64 = 4096;
/// Refusals that ACL LOG shows where nothing else is said.
const SHOWN_REFUSALS: i64 = 10;

const OPERATORS: Flags = Flags::ADMIN
    .with(Flags::NOSCRIPT)
    .with(Flags::LOADING)
    .with(Flags::STALE);
const EVERYBODY: Flags = Flags::NOSCRIPT.with(Flags::LOADING).with(Flags::STALE);
const ON_ALL_NODES: &[&str] = &["request_policy:all_nodes", "response_policy:all_succeeded"];

const ACL: Command = Command {
    name: "acl",
    group: Group::Server,
    since: "6.0.0",
    summary: "Manages users and what they may do.",
    arity: Arity::at_least(2),
    ..Command::container(&[
        ACL_CAT,
        ACL_DELUSER,
        ACL_DRYRUN,
        ACL_GENPASS,
        ACL_GETUSER,
        ACL_HELP,
        ACL_LIST,
        ACL_LOAD,
        ACL_LOG,
        ACL_SAVE,
        ACL_SETUSER,
        ACL_USERS,
        ACL_WHOAMI,
    ])
};

impl From<Mistake> for CommandError {
    fn from(mistake: Mistake) -> Self {
        Self::Text(mistake.to_string().into())
    }
}

impl From<LoadError> for CommandError {
    fn from(error: LoadError) -> Self {
        Self::err(error)
    }
}

/// What rules are read against.
fn bounds<'a>(table: &'a engine::Table, host: &ThreadHost) -> Bounds<'a> {
    Bounds {
        table,
        all_channels: host.shared.config().acl_pubsub_default,
    }
}

/// Tells all threads that users were changed, and lets the client have the change at once.
fn note_change(cx: &mut Context<'_>) {
    ThreadHost::of(cx).shared.users_changed();
    cx.session.take_rights();
}

/// The clients of a user who is gone are found by nobody any more; their threads close them.
fn hide_clients(host: &ThreadHost, user: &[u8]) {
    let mut clients = host.shared.clients.lock();
    clients.retain(|_, client| *client.names.lock().user != *user);
}

const ACL_CAT: Command = Command {
    name: "cat",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the categories of commands, or the commands of one.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: EVERYBODY,
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
        _ => return Err(cx.subcommand_error(args)),
    }
    Ok(())
}

const ACL_DELUSER: Command = Command {
    name: "deluser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Removes users and closes their connections.",
    complexity: "O(1)",
    arity: Arity::at_least(3),
    flags: OPERATORS,
    args: &[string("username").multiple()],
    reply: &[Shape::Int],
    tips: ON_ALL_NODES,
    ..runs(acl_deluser)
};

fn acl_deluser(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let names = args.from(2);
    if names.iter().any(|name| name == DEFAULT) {
        return Err("ERR The 'default' user cannot be removed".into());
    }
    let host = ThreadHost::of(cx);
    let mut removed = 0;
    for name in names.iter() {
        if host.shared.users.remove(name) {
            removed += 1;
            hide_clients(host, name);
        }
    }
    if removed > 0 {
        note_change(cx);
    }
    out.count(removed);
    Ok(())
}

const ACL_DRYRUN: Command = Command {
    name: "dryrun",
    group: Group::Server,
    since: "7.0.0",
    summary: "Says whether a user may run a command, without running it.",
    complexity: "O(1)",
    arity: Arity::at_least(4),
    flags: OPERATORS,
    args: &[
        string("username"),
        string("command"),
        string("arg").optional().multiple(),
    ],
    reply: &[Shape::Ok, Shape::Bulk],
    ..runs(acl_dryrun)
};

fn acl_dryrun(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let (name, words) = (args.at(2), args.from(3));
    let Some(rights) = ThreadHost::of(cx).shared.users.rights(name) else {
        let name = shown(name);
        return Err(CommandError::err(format!("User '{name}' not found")));
    };
    let Ok(entry) = cx.shared.table.resolve(&words) else {
        let command = shown(words.at(0));
        return Err(CommandError::err(format!("Command '{command}' not found")));
    };
    if !entry.arity_allows(words.len()) || entry.run.is_none() {
        return Err(CommandError::Arity(entry.full_name.clone()));
    }
    match rights.check(cx.session.db, entry, words) {
        Ok(()) => out.ok(),
        Err(denial) => out.bulk(&denial.story(name, entry, words)),
    }
    Ok(())
}

const ACL_GENPASS: Command = Command {
    name: "genpass",
    group: Group::Server,
    since: "6.0.0",
    summary: "Makes up a password that nobody can guess.",
    complexity: "O(1)",
    arity: Arity::at_least(2),
    flags: EVERYBODY,
    args: &[int("bits").optional()],
    reply: &[Shape::Bulk],
    ..runs(acl_genpass)
};

fn acl_genpass(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(cx.subcommand_error(args));
    }
    let bits = args.get(2).map_or(Ok(PASSWORD_BITS), number::int)?;
    if !(1..=PASSWORD_BITS_MAX).contains(&bits) {
        return Err(CommandError::err(format!(
            "ACL GENPASS argument must be the number of bits for the output password, a positive \
             number up to {PASSWORD_BITS_MAX}"
        )));
    }
    let digits = usize::try_from(bits).unwrap_or_default().div_ceil(4);
    let mut bytes = vec![0; digits.div_ceil(2)];
    sys::random(&mut bytes).map_err(|error| {
        warning!("Can't read random bytes: {error}");
        CommandError::text("ERR no random bytes to be had from the system")
    })?;
    let mut password: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    password.truncate(digits);
    out.text(&password);
    Ok(())
}

const ACL_GETUSER: Command = Command {
    name: "getuser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Describes a user's rights.",
    complexity: "O(N)",
    arity: Arity::exactly(3),
    flags: OPERATORS,
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
    let Some(account) = ThreadHost::of(cx).shared.users.account(args.at(2)) else {
        out.null();
        return Ok(());
    };
    let databases = account.own().show_databases();
    out.map(6 + usize::from(databases.is_some()));
    out.text("flags");
    let flags = account.show_flags();
    out.set(flags.len());
    flags.iter().for_each(|flag| out.text(flag));
    out.text("passwords");
    let passwords = account.show_passwords();
    out.array(passwords.len());
    passwords.iter().for_each(|password| out.text(password));
    describe(account.own(), out);
    out.text("selectors");
    out.array(account.selectors().len());
    for selector in account.selectors() {
        out.map(3 + usize::from(selector.show_databases().is_some()));
        describe(selector, out);
    }
    Ok(())
}

/// Three pairs, and one more where not every database is allowed.
fn describe(selector: &Selector, out: &mut Writer<'_>) {
    let mut pair = |name: &str, rules: &[u8]| {
        out.text(name);
        out.bulk(rules);
    };
    pair("commands", &selector.show_commands());
    pair("keys", &selector.show_keys());
    pair("channels", &selector.show_channels());
    if let Some(databases) = selector.show_databases() {
        pair("databases", &databases);
    }
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
        "DELUSER <user> [<user> ...]",
        "    Removes users and closes their connections.",
        "DRYRUN <user> <command> [<argument> ...]",
        "    Whether the user may run the command, which is not run.",
        "GENPASS [<bits>]",
        "    A password that nobody can guess, of 256 bits or as many as you say.",
        "GETUSER <user>",
        "    What a user may do.",
        "LIST",
        "    The users with their rights, as rules.",
        "LOAD",
        "    Reads the users from the ACL file again.",
        "LOG [<count> | RESET]",
        "    What was refused lately; RESET forgets it.",
        "SAVE",
        "    Writes the users to the ACL file.",
        "SETUSER <user> <rule> [<rule> ...]",
        "    Makes or changes a user: all rules, or none if one is wrong.",
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
    flags: OPERATORS,
    reply: &[Shape::Array],
    ..runs(acl_list)
};

fn acl_list(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let lines = ThreadHost::of(cx).shared.users.lines();
    out.array(lines.len());
    lines.iter().for_each(|line| out.bulk(line));
    Ok(())
}

const NO_FILE: CommandError = CommandError::text(
    "ERR This Redis instance is not configured to use an ACL file. You may want to specify users \
     via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis \
     configuration file set) in order to store users in the Redis configuration.",
);

const ACL_LOAD: Command = Command {
    name: "load",
    group: Group::Server,
    since: "6.0.0",
    summary: "Reads the users from the ACL file again.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: OPERATORS,
    reply: &[Shape::Ok],
    ..runs(acl_load)
};

fn acl_load(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let keys = cx.shared;
    let host = ThreadHost::of(cx);
    let config = host.shared.config();
    let Some(file) = &config.aclfile else {
        return Err(NO_FILE);
    };
    let gone = host.shared.users.load(file, &bounds(&keys.table, host))?;
    for name in &gone {
        hide_clients(host, name);
    }
    note_change(cx);
    out.ok();
    Ok(())
}

const ACL_LOG: Command = Command {
    name: "log",
    group: Group::Server,
    since: "6.0.0",
    summary: "Shows what was refused to users lately, or forgets it.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: OPERATORS,
    args: &[one_of("operation", &[int("count"), flag("RESET")]).optional()],
    reply: &[Shape::Array, Shape::Ok],
    history: &[(
        "7.2.0",
        "Shows an entry's number, and when it was made and changed.",
    )],
    ..runs(acl_log)
};

fn acl_log(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    if args.len() > 3 {
        return Err(cx.subcommand_error(args));
    }
    let now_ms = cx.now_ms;
    let users = &ThreadHost::of(cx).shared.users;
    if args.len() == 3 && args.is(2, "RESET") {
        users.log.lock().clear();
        out.ok();
        return Ok(());
    }
    let count = args.get(2).map_or(Ok(SHOWN_REFUSALS), number::int)?;
    let count = usize::try_from(count).unwrap_or(0);
    let refusals = users.log.lock().newest(count);
    out.array(refusals.len());
    for refusal in &refusals {
        let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        out.map(10);
        out.text("count");
        out.int(number(refusal.count));
        for (name, value) in [
            ("reason", refusal.reason.as_bytes()),
            ("context", refusal.context.as_bytes()),
            ("object", &refusal.object),
            ("username", &refusal.user),
        ] {
            out.text(name);
            out.bulk(value);
        }
        out.text("age-seconds");
        #[allow(clippy::cast_precision_loss)] // Milliseconds of an age.
        out.double(now_ms.saturating_sub(refusal.last_ms) as f64 / 1000.0);
        out.text("client-info");
        out.bulk(&refusal.client);
        for (name, value) in [
            ("entry-id", refusal.number),
            ("timestamp-created", refusal.first_ms),
            ("timestamp-last-updated", refusal.last_ms),
        ] {
            out.text(name);
            out.int(number(value));
        }
    }
    Ok(())
}

const ACL_SAVE: Command = Command {
    name: "save",
    group: Group::Server,
    since: "6.0.0",
    summary: "Writes the users to the ACL file.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: OPERATORS,
    reply: &[Shape::Ok],
    tips: ON_ALL_NODES,
    ..runs(acl_save)
};

fn acl_save(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let shared = &ThreadHost::of(cx).shared;
    let Some(file) = &shared.config().aclfile else {
        return Err(NO_FILE);
    };
    let _one_at_a_time = shared.config_change.lock();
    if let Err(error) = shared.users.save(file) {
        warning!("ACL SAVE failed: {error}");
        return Err(
            "ERR There was an error trying to save the ACLs. Please check the server logs for \
             more information"
                .into(),
        );
    }
    out.ok();
    Ok(())
}

const ACL_SETUSER: Command = Command {
    name: "setuser",
    group: Group::Server,
    since: "6.0.0",
    summary: "Makes or changes a user.",
    complexity: "O(N)",
    arity: Arity::at_least(3),
    flags: OPERATORS,
    args: &[string("username"), string("rule").optional().multiple()],
    reply: &[Shape::Ok],
    tips: ON_ALL_NODES,
    history: &[
        ("6.2.0", "Takes rules for channels."),
        (
            "7.0.0",
            "Takes selectors, and rules for reading or writing keys only.",
        ),
    ],
    ..runs(acl_setuser)
};

fn acl_setuser(
    cx: &mut Context<'_>,
    args: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), CommandError> {
    let keys = cx.shared;
    let host = ThreadHost::of(cx);
    let rules: Vec<&[u8]> = args.from(3).iter().collect();
    host.shared
        .users
        .set(args.at(2), &rules, &bounds(&keys.table, host))?;
    note_change(cx);
    out.ok();
    Ok(())
}

const ACL_USERS: Command = Command {
    name: "users",
    group: Group::Server,
    since: "6.0.0",
    summary: "Lists the names of the users.",
    complexity: "O(N)",
    arity: Arity::exactly(2),
    flags: OPERATORS,
    reply: &[Shape::Array],
    ..runs(acl_users)
};

fn acl_users(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let names = ThreadHost::of(cx).shared.users.names();
    out.array(names.len());
    names.iter().for_each(|name| out.bulk(name));
    Ok(())
}

const ACL_WHOAMI: Command = Command {
    name: "whoami",
    group: Group::Server,
    since: "6.0.0",
    summary: "Returns the user of the connection.",
    complexity: "O(1)",
    arity: Arity::exactly(2),
    flags: EVERYBODY,
    reply: &[Shape::Bulk],
    ..runs(acl_whoami)
};

fn acl_whoami(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    out.bulk(cx.session.user().name());
    Ok(())
}
