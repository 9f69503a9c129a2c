//! AUTH, HELLO and RESET: who a connection is, and which protocol it speaks.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::acl::Place;
use engine::commands::{pubsub, transactions};
use engine::error::shown;
use engine::handler::runs;
use engine::session::ReplyMode;
use engine::{Command, CommandError, Context, number};
use resp::{Args, Protocol, Writer};

use crate::config::REDIS_VERSION;
use crate::host::ThreadHost;
use crate::shared::flag;
use crate::users::{DEFAULT, Users};

/// The family.
pub(super) const COMMANDS: &[Command] = &[AUTH, HELLO, RESET];

/// The user or the password is wrong.
pub const WRONG_PASSWORD: CommandError =
    CommandError::text("WRONGPASS invalid username-password pair or user is disabled.");

const AUTH: Command = Command {
    name: "auth",
    group: Group::Connection,
    since: "1.0.0",
    summary: "Identifies the connection as a user.",
    complexity: "O(N)",
    arity: Arity::at_least(2),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::NO_AUTH)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::CONNECTION,
    args: &[
        string("username").since("6.0.0").optional(),
        string("password"),
    ],
    reply: &[Shape::Ok],
    history: &[("6.0.0", "Takes a user's name before the password.")],
    ..runs(auth)
};

fn auth(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let (user, password) = login_of(args, &ThreadHost::of(cx).shared.users)?;
    log_in(cx, args, user, password)?;
    out.ok();
    Ok(())
}

/// The user and the password of AUTH.
///
/// # Errors
/// Where its words have none, or no password is needed.
pub fn login_of<'a>(args: Args<'a>, users: &Users) -> Result<(&'a [u8], &'a [u8]), CommandError> {
    match args.len() {
        2 if users.default_has_no_password() => Err(CommandError::text(
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
        )),
        2 => Ok((DEFAULT, args.at(1))),
        3 => Ok((args.at(1), args.at(2))),
        _ => Err(CommandError::Syntax),
    }
}

/// Makes the connection one of this user. On an error it stays what it was.
fn log_in(
    cx: &mut Context<'_>,
    args: Args<'_>,
    user: &[u8],
    password: &[u8],
) -> Result<(), CommandError> {
    let place = match cx.may_block {
        true => Place::TopLevel,
        false => Place::Transaction,
    };
    let host = cx
        .host
        .as_any()
        .downcast_mut::<ThreadHost>()
        .expect("the server runs its commands with its own host");
    let Some(known) = host.shared.users.authenticate(user, password) else {
        host.note_refusal(cx.session, ("auth", place), args.at(0), user);
        return Err(WRONG_PASSWORD);
    };
    cx.session.authenticated = true;
    cx.session.set_user(known);
    if let Some(client) = &host.client {
        client.names.lock().user = user.into();
    }
    Ok(())
}

const HELLO: Command = Command {
    name: "hello",
    group: Group::Connection,
    since: "6.0.0",
    summary: "Chooses the protocol, optionally logs in, and describes the server.",
    complexity: "O(1)",
    arity: Arity::at_least(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::NO_AUTH)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::CONNECTION,
    args: &[block(
        "arguments",
        &[
            int("protover"),
            block("auth", &[string("username"), string("password")])
                .token("AUTH")
                .optional(),
            string("clientname").token("SETNAME").optional(),
        ],
    )
    .optional()],
    reply: &[Shape::Map],
    history: &[("6.2.0", "The version of the protocol may be left out.")],
    ..runs(hello)
};

fn hello(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let hello = Hello::parse(args, cx.session.protocol)?;
    if let Some((user, password)) = hello.login {
        log_in(cx, args, user, password)?;
    }
    if !cx.session.authenticated {
        return Err(HELLO_UNKNOWN);
    }
    if let (Some(name), Some(client)) = (hello.name, &ThreadHost::of(cx).client) {
        client.names.lock().name = name.into();
    }
    cx.session.protocol = hello.protocol;
    hello.welcome(cx.session.id.number, out);
    Ok(())
}

/// HELLO from a client that has not logged in and does not do so with it.
pub const HELLO_UNKNOWN: CommandError = CommandError::text(
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
     <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP \
     protocol version at the same time",
);

/// What a HELLO asks for.
pub struct Hello<'a> {
    /// The protocol to speak.
    pub protocol: Protocol,
    /// The user and the password.
    pub login: Option<(&'a [u8], &'a [u8])>,
    /// The client's name.
    pub name: Option<&'a [u8]>,
}

impl<'a> Hello<'a> {
    /// Reads the words of a client that speaks `protocol` so far.
    ///
    /// # Errors
    /// Where they ask for nothing that there is.
    pub fn parse(args: Args<'a>, protocol: Protocol) -> Result<Self, CommandError> {
        let protocol = match args.get(1).map(number::int) {
            None => protocol,
            Some(Err(_)) => {
                return Err(CommandError::text(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
            Some(Ok(2)) => Protocol::Resp2,
            Some(Ok(3)) => Protocol::Resp3,
            Some(Ok(_)) => {
                return Err(CommandError::text("NOPROTO unsupported protocol version"));
            }
        };
        let (mut login, mut name) = (None, None);
        let mut at = 2;
        while at < args.len() {
            if args.is(at, "AUTH") && at + 2 < args.len() {
                login = Some((args.at(at + 1), args.at(at + 2)));
                at += 3;
            } else if args.is(at, "SETNAME") && at + 1 < args.len() {
                super::client::check_name(args.at(at + 1), "Client names")?;
                name = Some(args.at(at + 1));
                at += 2;
            } else {
                let option = shown(args.at(at));
                return Err(CommandError::err(format!(
                    "Syntax error in HELLO option '{option}'"
                )));
            }
        }
        Ok(Self {
            protocol,
            login,
            name,
        })
    }

    /// The reply to client `number`.
    pub fn welcome(&self, number: u64, out: &mut Writer<'_>) {
        out.set_protocol(self.protocol);
        out.map(7);
        out.text("server");
        out.text("redis");
        out.text("version");
        out.text(REDIS_VERSION);
        out.text("proto");
        out.int(match self.protocol {
            Protocol::Resp2 => 2,
            Protocol::Resp3 => 3,
        });
        out.text("id");
        out.int(i64::try_from(number).unwrap_or(i64::MAX));
        out.text("mode");
        out.text("standalone");
        out.text("role");
        out.text("master");
        out.text("modules");
        out.array(0);
    }
}

const RESET: Command = Command {
    name: "reset",
    group: Group::Connection,
    since: "6.2.0",
    summary: "Puts the connection back into the state of a new one.",
    complexity: "O(1)",
    arity: Arity::exactly(1),
    flags: Flags::NOSCRIPT
        .with(Flags::LOADING)
        .with(Flags::STALE)
        .with(Flags::FAST)
        .with(Flags::NO_AUTH)
        .with(Flags::ALLOW_BUSY),
    acl: Acl::CONNECTION,
    reply: &[Shape::Simple],
    ..runs(reset)
};

/// The stripes of the watched keys are locked.
fn reset(cx: &mut Context<'_>, _: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    cx.session.multi = None;
    transactions::forget_watches(cx);
    pubsub::forget_subscriptions(cx);
    super::monitor::stop(cx);
    super::client::stop_tracking(cx);
    let users = &ThreadHost::of(cx).shared.users;
    let (is_open, default) = (users.is_open(), users.default_user());
    let session = &mut *cx.session;
    session.db = 0;
    session.protocol = Protocol::Resp2;
    session.reply_mode = ReplyMode::On;
    session.no_touch = false;
    session.fieldsets = None;
    session.authenticated = is_open;
    session.set_user(default);
    if let Some(client) = &ThreadHost::of(cx).client {
        let mut names = client.names.lock();
        names.name = Box::default();
        names.user = DEFAULT.into();
        drop(names);
        client.set_flag(flag::NO_EVICT, false);
    }
    out.set_protocol(Protocol::Resp2);
    out.simple("RESET");
    Ok(())
}
