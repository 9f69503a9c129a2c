//! `docs/commands/*.md`: a page for each group of commands, and an index.
//!
//! Everything comes from the declarations: a command that exists is documented, one that does not
//! exist is not.

use std::collections::BTreeMap;
use std::fmt::Write;

use command::{Arg, ArgKind};
use engine::Command;

/// Columns of a line of text.
const WIDTH: usize = 120;

const NOTICE: &str = "<!-- Rendered by `cargo xtask gen` from the table of commands. -->\n";

/// Every page with its path.
pub fn pages() -> Vec<(String, String)> {
    let mut groups: BTreeMap<&str, Vec<&'static Command>> = BTreeMap::new();
    let families = engine::commands::FAMILIES
        .iter()
        .chain(server::commands::FAMILIES);
    for command in families.copied().flatten() {
        let group = groups.entry(command.group.name()).or_default();
        group.push(command);
    }
    let mut index = format!("{NOTICE}\n# Commands\n\nEvery command of this version, by group.\n");
    let mut pages = Vec::new();
    for (group, commands) in &mut groups {
        commands.sort_by_key(|command| command.name);
        let _ = write!(index, "\n## [{}]({group}.md)\n\n", title(group));
        for command in &*commands {
            let name = command.name.to_uppercase();
            let link = format!("- [{name}]({group}.md#{}): ", command.name);
            wrap(&mut index, &(link + command.summary), "  ");
        }
        pages.push((format!("docs/commands/{group}.md"), page(group, commands)));
    }
    pages.push(("docs/commands/README.md".to_owned(), index));
    pages
}

/// The copy of all this that the command line tool has: a line a command, fields parted by tabs.
pub fn table() -> (String, String) {
    let mut lines = Vec::new();
    let families = engine::commands::FAMILIES
        .iter()
        .chain(server::commands::FAMILIES);
    for command in families.copied().flatten() {
        lines.push(line("", command));
        for sub in command.subcommands {
            lines.push(line(command.name, sub));
        }
    }
    lines.sort();
    ("crates/cli/src/commands.tsv".to_owned(), lines.concat())
}

fn line(container: &str, command: &Command) -> String {
    let name = format!("{container} {}", command.name).to_uppercase();
    let arguments: Vec<String> = command.args.iter().map(syntax).collect();
    let group = command.group.name();
    let fields = [
        name.trim_start(),
        group,
        command.since,
        &arguments.join(" "),
        command.summary,
    ];
    fields.join("\t") + "\n"
}

fn title(group: &str) -> String {
    let (first, rest) = group.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

fn page(group: &str, commands: &[&Command]) -> String {
    let mut out = format!("{NOTICE}\n# {} commands\n", title(group));
    for command in commands {
        describe(&mut out, "", command);
        for sub in command.subcommands {
            describe(&mut out, command.name, sub);
        }
    }
    out
}

fn describe(out: &mut String, container: &str, command: &Command) {
    let level = if container.is_empty() { "##" } else { "###" };
    let name = format!("{container} {}", command.name)
        .trim()
        .to_uppercase();
    let _ = write!(out, "\n{level} {name}\n\n");
    wrap(out, command.summary, "");
    if command.run.is_some() {
        let _ = write!(out, "\n```\n");
        let words: Vec<String> = command.args.iter().map(syntax).collect();
        let line = format!("{name} {}", words.join(" "));
        wrap(out, line.trim_end(), "    ");
        let _ = writeln!(out, "```");
    }
    let mut facts = format!("Since {}.", command.since);
    if !command.complexity.is_empty() {
        let _ = write!(facts, " Complexity: {}.", command.complexity);
    }
    if let Some((since, instead)) = command.deprecated {
        let _ = write!(facts, " Deprecated since {since}: use {instead}.");
    }
    out.push('\n');
    wrap(out, &facts, "");
    for (index, (version, change)) in command.history.iter().enumerate() {
        if index == 0 {
            out.push('\n');
        }
        wrap(out, &format!("- {version}: {change}"), "  ");
    }
}

/// Breaks a paragraph into lines; those after the first are indented.
fn wrap(out: &mut String, text: &str, indent: &str) {
    let mut line = String::new();
    for word in text.split(' ') {
        if !line.is_empty() && line.len() + 1 + word.len() > WIDTH {
            let _ = writeln!(out, "{line}");
            line = indent.to_owned() + word;
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line += word;
        }
    }
    let _ = writeln!(out, "{line}");
}

/// An argument as a line of syntax shows it.
fn syntax(arg: &Arg) -> String {
    let inner = match arg.kind {
        ArgKind::Flag => String::new(),
        ArgKind::OneOf => {
            let parts: Vec<String> = arg.args.iter().map(syntax).collect();
            parts.join(" | ")
        }
        ArgKind::Block => {
            let parts: Vec<String> = arg.args.iter().map(syntax).collect();
            parts.join(" ")
        }
        _ => match arg.display() {
            Some(display) => display.into_owned(),
            None => arg.name().into_owned(),
        },
    };
    let is_group = matches!(arg.kind, ArgKind::OneOf | ArgKind::Block);
    let inner = if is_group && arg.args.len() > 1 && (arg.token.is_some() || !arg.is_optional) {
        match arg.kind {
            ArgKind::OneOf => format!("<{inner}>"),
            _ => inner,
        }
    } else {
        inner
    };
    let inner_repeated = match arg.is_multiple && !arg.is_token_repeated {
        true => format!("{inner} [{inner} ...]"),
        false => inner,
    };
    let mut whole = match arg.token {
        Some(token) if inner_repeated.is_empty() => token.to_owned(),
        Some(token) => format!("{token} {inner_repeated}"),
        None => inner_repeated,
    };
    if arg.is_multiple && arg.is_token_repeated {
        whole = format!("{whole} [{whole} ...]");
    }
    match arg.is_optional {
        true => format!("[{whole}]"),
        false => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use command::arg::*;

    #[test]
    fn syntax_reads_as_in_a_manual() {
        const CONDITION: Arg = one_of("condition", &[flag("NX"), flag("XX")]).optional();
        const PAIRS: Arg = block("data", &[key("key"), string("value")]).multiple();
        assert_eq!(syntax(&CONDITION), "[NX | XX]");
        assert_eq!(syntax(&key("key").multiple()), "key [key ...]");
        assert_eq!(
            syntax(&int("seconds").token("EX").optional()),
            "[EX seconds]"
        );
        assert_eq!(syntax(&PAIRS), "key value [key value ...]");
    }

    #[test]
    fn every_group_has_a_page() {
        let pages = pages();
        assert!(
            pages
                .iter()
                .any(|(path, _)| path == "docs/commands/string.md")
        );
        let (_, server) = pages
            .iter()
            .find(|(path, _)| path == "docs/commands/server.md")
            .expect("there is such a page");
        assert!(server.contains("### CONFIG GET\n"));
    }
}
