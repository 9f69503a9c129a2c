//! What every table of commands must hold: called by the tests of the crates that declare commands.
//!
//! Each check returns its complaints, one a line; [`all`] runs every check. A crate's test is
//! `assert_eq!(command::check::all(FAMILIES), Vec::<String>::new())`.

use std::collections::HashSet;

use crate::arg::ArgKind;
use crate::{Arg, Begin, Command, Find, Flags, KeyFlags};

/// A family of commands: what one file declares.
pub type Family<H> = &'static [Command<H>];

/// The complaints of every check.
pub fn all<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let checks = [unique_names, sorted, texts, flags, containers, args, keys];
    checks.iter().flat_map(|check| check(families)).collect()
}

/// No two commands, and no two subcommands of one container, have one name.
pub fn unique_names<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut complain =
        |name: String| (!seen.insert(name.clone())).then(|| format!("{name}: twice"));
    each(families)
        .filter_map(|(name, _)| complain(name))
        .collect()
}

/// Each family, and the subcommands of each container, stand in the order of their names.
pub fn sorted<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let lists = families.iter().copied();
    let nested = lists
        .clone()
        .flat_map(|family| family.iter().map(|c| c.subcommands));
    let pairs = lists.chain(nested).flat_map(|list| list.windows(2));
    pairs
        .filter(|pair| pair[0].name > pair[1].name)
        .map(|pair| format!("{}: stands after {}", pair[1].name, pair[0].name))
        .collect()
}

/// Names are lower case; summaries, changes and notes are one sentence that ends in a full stop;
/// versions are versions; each command says what it replies.
pub fn texts<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, command) in each(families) {
        let is_lower = command
            .name
            .bytes()
            .all(|b| b.is_ascii_graphic() && b != b'|')
            && (command.name == command.name.to_ascii_lowercase()
                || command.flags.has(Flags::MODULE));
        if command.name.is_empty() || !is_lower {
            complaints.push(format!("{name}: not a name"));
        }
        let changes = command.history.iter().map(|(_, change)| *change);
        let notes = command
            .keys
            .iter()
            .map(|spec| spec.note)
            .filter(|note| !note.is_empty());
        for text in changes.chain(notes).chain([command.summary]) {
            if !is_sentence(text) {
                complaints.push(format!("{name}: not one sentence: {text:?}"));
            }
        }
        let versions = command.history.iter().map(|(version, _)| *version);
        let deprecated = command.deprecated.iter().map(|(version, _)| *version);
        for version in versions.chain(deprecated).chain([command.since]) {
            if !is_version(version) {
                complaints.push(format!("{name}: not a version: {version:?}"));
            }
        }
        if !command.complexity.is_empty() && !command.complexity.starts_with("O(") {
            complaints.push(format!(
                "{name}: not a complexity: {:?}",
                command.complexity
            ));
        }
        if command.run.is_some() && command.reply.is_empty() {
            complaints.push(format!("{name}: does not say what it replies"));
        }
    }
    complaints
}

/// A command writes or only reads, not both; a command that may refuse for memory writes or sends.
pub fn flags<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let exclusive = Flags::WRITE.with(Flags::READONLY);
    each(families)
        .filter(|(_, command)| {
            command.flags.has(exclusive) || command.flags.has(Flags::MOVABLEKEYS)
        })
        .map(|(name, command)| format!("{name}: not its flags: {:?}", command.flags))
        .collect()
}

/// Containers hold subcommands one level deep; every other command runs.
pub fn containers<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let nested = families
        .iter()
        .flat_map(|family| family.iter())
        .flat_map(|c| c.subcommands);
    let too_deep = nested.filter(|subcommand| !subcommand.subcommands.is_empty());
    let mut complaints: Vec<_> = too_deep
        .map(|c| format!("{}: nested too deep", c.name))
        .collect();
    for (name, command) in each(families) {
        if command.subcommands.is_empty() && command.run.is_none() {
            complaints.push(format!("{name}: does nothing"));
        }
    }
    complaints
}

/// Groups have parts, flags have tokens, keys are found by a key spec that exists.
pub fn args<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, command) in each(families) {
        each_arg(command.args, &mut |arg| {
            let is_group = matches!(arg.kind, ArgKind::OneOf | ArgKind::Block);
            let is_flag = arg.kind == ArgKind::Flag;
            if is_group == arg.args.is_empty() || is_flag && arg.token.is_none() {
                complaints.push(format!("{name}: malformed argument {}", arg.name()));
            }
            if arg
                .key_spec
                .is_some_and(|spec| usize::from(spec) >= command.keys.len())
            {
                complaints.push(format!("{name}: no key spec finds {}", arg.name()));
            }
        });
    }
    complaints
}

/// Fixed key positions are within the shortest call, and every key spec belongs to an argument.
pub fn keys<H: Copy>(families: &[Family<H>]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (name, command) in each(families) {
        for (index, spec) in command.keys.iter().enumerate() {
            let reach = match (spec.begin, spec.find) {
                (Begin::Index(at), Find::Range { last, .. }) => {
                    usize::from(at) + last.max(0) as usize
                }
                (Begin::Index(at), Find::Counted { count, .. }) => {
                    usize::from(at) + usize::from(count)
                }
                _ => 0,
            };
            // A later range may be empty: SDIFFSTORE's sources, SUNSUBSCRIBE's channels.
            let may_be_empty = index > 0 || spec.flags.has(KeyFlags::NOT_KEY);
            if reach >= command.arity.least() && !may_be_empty {
                complaints.push(format!(
                    "{name}: the shortest call has no word for key spec {index}"
                ));
            }
            let mut is_used = false;
            each_arg(command.args, &mut |arg| {
                is_used |= arg.key_spec.map(usize::from) == Some(index);
            });
            if !is_used && !command.args.is_empty() && !spec.flags.has(KeyFlags::NOT_KEY) {
                complaints.push(format!("{name}: no argument belongs to key spec {index}"));
            }
        }
    }
    complaints
}

/// Every command and subcommand with its full name.
fn each<H: Copy>(
    families: &[Family<H>],
) -> impl Iterator<Item = (String, &'static Command<H>)> + '_ {
    families
        .iter()
        .flat_map(|family| family.iter())
        .flat_map(|command| {
            let nested = command.subcommands.iter();
            let nested = nested.map(move |sub| (format!("{}|{}", command.name, sub.name), sub));
            std::iter::once((command.name.to_owned(), command)).chain(nested)
        })
}

fn each_arg(args: &[Arg], visit: &mut dyn FnMut(&Arg)) {
    for arg in args {
        visit(arg);
        each_arg(arg.args, visit);
    }
}

fn is_sentence(text: &str) -> bool {
    let Some(body) = text.strip_suffix('.') else {
        return false;
    };
    !body.contains(". ") && !body.ends_with('.') && body.starts_with(|c: char| c.is_uppercase())
}

fn is_version(text: &str) -> bool {
    let parts: Vec<_> = text.split('.').collect();
    parts.len() == 3 && parts.iter().all(|part| part.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arg::*;
    use crate::{Arity, KeySpec, Shape};

    const GOOD: Command<u8> = Command {
        name: "get",
        since: "1.0.0",
        summary: "Returns a string.",
        complexity: "O(1)",
        arity: Arity::exactly(2),
        flags: Flags::READONLY,
        keys: &[KeySpec::at(1).ro()],
        args: &[key("key")],
        reply: &[Shape::Bulk],
        ..Command::runs(1)
    };

    #[test]
    fn a_good_table_has_no_complaints() {
        const FAMILY: &[Command<u8>] = &[
            GOOD,
            Command {
                name: "set",
                ..GOOD
            },
        ];
        assert_eq!(all(&[FAMILY]), Vec::<String>::new());
    }

    #[test]
    fn each_check_finds_its_mistake() {
        const BAD: &[Command<u8>] = &[
            Command {
                name: "zz",
                flags: Flags::WRITE.with(Flags::READONLY),
                ..GOOD
            },
            Command {
                name: "aa",
                summary: "no sentence",
                args: &[key("key").spec(1)],
                ..GOOD
            },
            Command {
                name: "aa",
                since: "seven",
                arity: Arity::exactly(1),
                run: None,
                ..GOOD
            },
        ];
        let complaints = all(&[BAD]);
        let expected = [
            "aa: twice",
            "aa: stands after zz",
            "aa: not one sentence",
            "aa: not a version",
            "zz: not its flags",
            "aa: does nothing",
            "aa: no key spec finds key",
            "aa: the shortest call has no word for key spec 0",
            "aa: no argument belongs to key spec 0",
        ];
        for start in expected {
            assert!(
                complaints.iter().any(|c| c.starts_with(start)),
                "{start}: {complaints:#?}"
            );
        }
    }
}
