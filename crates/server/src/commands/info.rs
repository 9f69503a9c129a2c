//! INFO: what the server is and what it did.
//!
//! The fields are data ([`fields`]), the facts behind them are gathered once ([`facts`]).

pub mod facts;
mod fields;
pub mod lines;

use command::arg::*;
use command::{Acl, Arity, Flags, Group, Shape};
use engine::handler::runs_on_all;
use engine::{Command, CommandError, Context};
use resp::{Args, Writer};

use facts::Facts;
use fields::SECTIONS;
pub use fields::human;

/// The family.
pub const COMMANDS: &[Command] = &[INFO];

const INFO: Command = Command {
    name: "info",
    group: Group::Server,
    since: "1.0.0",
    summary: "Describes the server and counts what it did.",
    complexity: "O(1)",
    arity: Arity::at_least(1),
    flags: Flags::LOADING.with(Flags::STALE),
    acl: Acl::DANGEROUS,
    args: &[string("section").optional().multiple()],
    reply: &[Shape::Verbatim],
    tips: &[
        "nondeterministic_output",
        "request_policy:all_shards",
        "response_policy:special",
    ],
    history: &[("7.0.0", "Takes several sections.")],
    ..runs_on_all(info)
};

/// The names of the fields that are there whatever the server does.
pub fn field_names() -> impl Iterator<Item = &'static str> {
    let fields = SECTIONS.iter().flat_map(|section| section.fields);
    fields.map(|(name, _)| *name)
}

fn info(cx: &mut Context<'_>, args: Args<'_>, out: &mut Writer<'_>) -> Result<(), CommandError> {
    let asked = args.from(1);
    let names = |section: &fields::Section| {
        asked.iter().enumerate().any(|(index, word)| {
            word.eq_ignore_ascii_case(section.name.as_bytes())
                || asked.is(index, "all")
                || asked.is(index, "everything")
                || asked.is(index, "default") && section.in_default
        })
    };
    let is_shown =
        |section: &fields::Section| asked.len() == 0 && section.in_default || names(section);
    let mut facts = Facts::gather(cx);
    let sizes = SECTIONS.iter().find(|section| section.name == "Keysizes");
    if sizes.is_some_and(is_shown) {
        facts = facts.with_sizes(cx);
    }
    let mut text = String::new();
    for section in SECTIONS {
        if is_shown(section) {
            if !text.is_empty() {
                text += "\r\n";
            }
            fields::render(section, &facts, &mut text);
        }
    }
    out.verbatim("txt", text.as_bytes());
    Ok(())
}
