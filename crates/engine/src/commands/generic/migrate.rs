//! MIGRATE: its words are checked and its keys looked for, but no connection can be opened yet.

use command::arg::*;
use command::{Acl, Arity, Flags, Group, KeySpec, Shape, Special};
use resp::{Args, Writer};

use crate::handler::runs;
use crate::{Command, CommandError, Context};

pub(super) const MIGRATE: Command = Command {
    name: "migrate",
    group: Group::Generic,
    since: "2.6.0",
    summary: "Moves keys to another server in one step.",
    arity: Arity::at_least(6),
    flags: Flags::WRITE,
    acl: Acl::KEYSPACE.with(Acl::DANGEROUS),
    keys: &[
        KeySpec::at(3).rw().access().delete(),
        KeySpec::after("KEYS", -2)
            .last(-1)
            .rw()
            .access()
            .delete()
            .incomplete(),
    ],
    special: Special::Migrate,
    args: &[
        string("host"),
        int("port"),
        one_of(
            "key-selector",
            &[key("key"), flag("").named("empty-string")],
        ),
        int("destination-db"),
        int("timeout"),
        flag("COPY").since("3.0.0").optional(),
        flag("REPLACE").since("3.0.0").optional(),
        one_of(
            "authentication",
            &[
                string("auth")
                    .token("AUTH")
                    .shown("password")
                    .since("4.0.7"),
                block("auth2", &[string("username"), string("password")])
                    .token("AUTH2")
                    .since("6.0.0"),
            ],
        )
        .optional(),
        key("keys")
            .token("KEYS")
            .shown("key")
            .spec(1)
            .since("3.0.6")
            .optional()
            .multiple(),
    ],
    reply: &[Shape::Simple],
    tips: &["nondeterministic_output"],
    history: &[
        ("3.0.0", "Takes `COPY` and `REPLACE`."),
        ("3.0.6", "Takes several keys with `KEYS`."),
        ("4.0.7", "Takes `AUTH`."),
        ("6.0.0", "Takes `AUTH2`."),
    ],
    ..runs(migrate)
};

fn migrate(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let mut keys = args.from(3);
    let mut single = true;
    let mut index = 6;
    while index < args.len() {
        let more = args.len() - index - 1;
        if args.is(index, "COPY") || args.is(index, "REPLACE") {
            index += 1;
        } else if args.is(index, "AUTH") && more >= 1 {
            index += 2;
        } else if args.is(index, "AUTH2") && more >= 2 {
            index += 3;
        } else if args.is(index, "KEYS") {
            if !args.at(3).is_empty() {
                return Err(
                    "ERR When using MIGRATE KEYS option, the key argument must be set to the \
                     empty string"
                        .into(),
                );
            }
            (keys, single) = (args.from(index + 1), false);
            break;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    crate::number::int(args.at(5))?;
    crate::number::int(args.at(4))?;
    let count = if single { 1 } else { keys.len() };
    if !keys.iter().take(count).any(|key| cx.exists(key)) {
        out.simple("NOKEY");
        return Ok(());
    }
    Err("IOERR this server cannot open connections to others yet".into())
}
