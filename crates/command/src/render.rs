//! COMMAND and its subcommands, from the table.
//!
//! The replies have the shapes of a real server in both protocols: sets for flags, categories,
//! tips and key specs, maps for documents and key specs. Handlers call these functions and nothing
//! else; what they cannot decide (how globs match, the text around an error) they pass in or add.
//!
//! # Invariants
//! - Nothing here is cached: COMMAND is called once a connection, at most.
//! - Commands appear in the order of their ids, so that replies are the same every time.

use resp::{Args, Writer};

use crate::keys::{KeyAt, Unparsable};
use crate::{Acl, Arg, Begin, Command, Entry, Find, Flags, KeyPlan, KeySpec, Table};

/// Why a command line has no keys to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoKeys {
    UnknownCommand,
    HasNone,
    Arity,
    Unparsable,
}

impl NoKeys {
    /// The words of the error, without its code.
    pub const fn text(self) -> &'static str {
        match self {
            Self::UnknownCommand => "Invalid command specified",
            Self::HasNone => "The command has no key arguments",
            Self::Arity => "Invalid number of arguments specified for command",
            Self::Unparsable => "Invalid arguments specified for command",
        }
    }
}

/// The words after COMMAND LIST are not a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFilter;

/// COMMAND: every command with its subcommands.
pub fn all<H: Copy>(table: &Table<H>, out: &mut Writer<'_>) {
    out.array(table.commands().count());
    for entry in table.commands() {
        describe(table, entry, out);
    }
}

/// COMMAND COUNT: how many commands there are, subcommands not counted.
pub fn count<H: Copy>(table: &Table<H>, out: &mut Writer<'_>) {
    out.count(table.commands().count());
}

/// COMMAND INFO: the named commands, null for an unknown one; all without names.
pub fn info<H: Copy>(table: &Table<H>, names: Args<'_>, out: &mut Writer<'_>) {
    if names.len() == 0 {
        return all(table, out);
    }
    out.array(names.len());
    for name in names.iter() {
        match table.find_full(name) {
            Some(entry) => describe(table, entry, out),
            None => out.null(),
        }
    }
}

/// COMMAND DOCS: the documents of the named commands, leaving unknown ones out; of all without
/// names.
pub fn docs<H: Copy>(table: &Table<H>, names: Args<'_>, out: &mut Writer<'_>) {
    if names.len() == 0 {
        out.map(table.commands().count());
        return table
            .commands()
            .for_each(|entry| document(table, entry, out));
    }
    let known = || names.iter().filter_map(|name| table.find_full(name));
    out.map(known().count());
    known().for_each(|entry| document(table, entry, out));
}

/// COMMAND LIST: the full names, subcommands too. `filter` is what follows LIST: nothing, or
/// FILTERBY and one of MODULE, ACLCAT and PATTERN with a word. `glob` matches a pattern, given
/// first and in lower case, with a name.
///
/// # Errors
/// [`NotAFilter`] if `filter` is something else: a syntax error.
pub fn list<H: Copy>(
    table: &Table<H>,
    filter: Args<'_>,
    glob: impl Fn(&[u8], &[u8]) -> bool,
    out: &mut Writer<'_>,
) -> Result<(), NotAFilter> {
    if filter.len() == 0 {
        names(table, |_| true, out);
        return Ok(());
    }
    if filter.len() != 3 || !filter.is(0, "FILTERBY") {
        return Err(NotAFilter);
    }
    let word = filter.at(2);
    if filter.is(1, "MODULE") {
        names(table, |_| false, out);
    } else if filter.is(1, "ACLCAT") {
        let category = Acl::named(word);
        names(
            table,
            |entry| category.is_some_and(|c| entry.acl.has(c)),
            out,
        );
    } else if filter.is(1, "PATTERN") {
        let pattern = word.to_ascii_lowercase();
        let matches = |name: &str| glob(&pattern, name.to_ascii_lowercase().as_bytes());
        names(table, |entry| matches(&entry.full_name), out);
    } else {
        return Err(NotAFilter);
    }
    Ok(())
}

/// COMMAND GETKEYS: the keys of a command line.
///
/// # Errors
/// [`NoKeys`], before anything is written.
pub fn keys<H: Copy>(table: &Table<H>, line: Args<'_>, out: &mut Writer<'_>) -> Result<(), NoKeys> {
    let found = find_keys(table, line)?;
    out.array(found.len());
    found.iter().for_each(|key| out.bulk(line.at(key.index)));
    Ok(())
}

/// COMMAND GETKEYSANDFLAGS: the keys of a command line, and what it does with each.
///
/// # Errors
/// [`NoKeys`], before anything is written.
pub fn keys_and_flags<H: Copy>(
    table: &Table<H>,
    line: Args<'_>,
    out: &mut Writer<'_>,
) -> Result<(), NoKeys> {
    let found = find_keys(table, line)?;
    out.array(found.len());
    for key in found {
        out.array(2);
        out.bulk(line.at(key.index));
        simple_set(out, key.flags.len(), key.flags.names());
    }
    Ok(())
}

fn find_keys<H: Copy>(table: &Table<H>, line: Args<'_>) -> Result<Vec<KeyAt>, NoKeys> {
    let entry = table.resolve(&line).map_err(|_| NoKeys::UnknownCommand)?;
    if entry.key_plan == KeyPlan::None {
        return Err(NoKeys::HasNone);
    }
    if !entry.arity_allows(line.len()) {
        return Err(NoKeys::Arity);
    }
    let mut found = Vec::new();
    match entry.command.each_key(&line, &mut |key| found.push(key)) {
        Ok(()) if !found.is_empty() || entry.flags.has(Flags::NO_MANDATORY_KEYS) => Ok(found),
        Ok(()) | Err(Unparsable) => Err(NoKeys::Unparsable),
    }
}

fn names<H: Copy>(table: &Table<H>, keep: impl Fn(&Entry<H>) -> bool, out: &mut Writer<'_>) {
    let mark = out.begin_array();
    let mut count = 0;
    for entry in table.entries().iter().filter(|entry| keep(entry)) {
        out.text(&entry.full_name);
        count += 1;
    }
    out.end_array(mark, count);
}

/// One element of COMMAND's reply.
fn describe<H: Copy>(table: &Table<H>, entry: &Entry<H>, out: &mut Writer<'_>) {
    let command = entry.command;
    out.array(10);
    out.text(&entry.full_name);
    out.int(i64::from(command.arity.signed()));
    simple_set(out, entry.flags.len(), entry.flags.names());
    let (first, last, step) = command.key_range();
    [first, last, step]
        .into_iter()
        .for_each(|n| out.int(i64::from(n)));
    out.set(entry.acl.len());
    entry
        .acl
        .names()
        .for_each(|name| out.simple(&format!("@{name}")));
    out.set(command.tips.len());
    command.tips.iter().for_each(|tip| out.text(tip));
    out.set(command.keys.len());
    command
        .keys
        .iter()
        .for_each(|spec| describe_spec(spec, out));
    let subcommands = table.subcommands(entry);
    // No subcommands are an empty set, but some are an array: so real servers have it.
    if subcommands.is_empty() {
        return out.set(0);
    }
    out.array(subcommands.len());
    subcommands
        .iter()
        .for_each(|entry| describe(table, entry, out));
}

fn describe_spec(spec: &KeySpec, out: &mut Writer<'_>) {
    out.map(if spec.note.is_empty() { 3 } else { 4 });
    if !spec.note.is_empty() {
        text_pair(out, "notes", spec.note);
    }
    out.text("flags");
    simple_set(out, spec.flags.len(), spec.flags.names());
    out.text("begin_search");
    match spec.begin {
        Begin::Index(index) => rule(out, "index", &[("index", i64::from(index))]),
        Begin::Keyword { word, from } => {
            rule_header(out, "keyword", 2);
            text_pair(out, "keyword", word);
            int_pair(out, "startfrom", i64::from(from));
        }
        Begin::Unknown => rule(out, "unknown", &[]),
    }
    out.text("find_keys");
    match spec.find {
        Find::Range { last, step, limit } => {
            let parts = [
                ("lastkey", i64::from(last)),
                ("keystep", i64::from(step)),
                ("limit", i64::from(limit)),
            ];
            rule(out, "range", &parts);
        }
        Find::Counted { count, first, step } => {
            let parts = [
                ("keynumidx", i64::from(count)),
                ("firstkey", i64::from(first)),
                ("keystep", i64::from(step)),
            ];
            rule(out, "keynum", &parts);
        }
        Find::Unknown => rule(out, "unknown", &[]),
    }
}

fn rule(out: &mut Writer<'_>, kind: &str, parts: &[(&str, i64)]) {
    rule_header(out, kind, parts.len());
    parts
        .iter()
        .for_each(|(name, value)| int_pair(out, name, *value));
}

fn rule_header(out: &mut Writer<'_>, kind: &str, parts: usize) {
    out.map(2);
    text_pair(out, "type", kind);
    out.text("spec");
    out.map(parts);
}

/// One pair of COMMAND DOCS' reply: the full name and the document.
fn document<H: Copy>(table: &Table<H>, entry: &Entry<H>, out: &mut Writer<'_>) {
    let command: &Command<H> = entry.command;
    out.text(&entry.full_name);
    let map = out.begin_array();
    let mut pairs = 3;
    text_pair(out, "summary", command.summary);
    text_pair(out, "since", command.since);
    text_pair(out, "group", command.group.name());
    if !command.complexity.is_empty() {
        pairs += 1;
        text_pair(out, "complexity", command.complexity);
    }
    if let Some(module) = command.module {
        pairs += 1;
        text_pair(out, "module", module);
    }
    let marks = [
        (command.deprecated.is_some(), "deprecated"),
        (command.system, "syscmd"),
    ];
    let marks = marks
        .into_iter()
        .filter(|(is_set, _)| *is_set)
        .map(|(_, name)| name);
    if marks.clone().count() > 0 {
        pairs += 1;
        out.text("doc_flags");
        simple_set(out, marks.clone().count(), marks);
    }
    if let Some((since, instead)) = command.deprecated {
        pairs += 2;
        text_pair(out, "deprecated_since", since);
        text_pair(out, "replaced_by", instead);
    }
    if !command.history.is_empty() {
        pairs += 1;
        out.text("history");
        out.set(command.history.len());
        for (version, change) in command.history {
            out.array(2);
            out.text(version);
            out.text(change);
        }
    }
    if !command.args.is_empty() {
        pairs += 1;
        out.text("arguments");
        document_args(command.args, out);
    }
    let subcommands = table.subcommands(entry);
    if !subcommands.is_empty() {
        pairs += 1;
        out.text("subcommands");
        out.map(subcommands.len());
        subcommands
            .iter()
            .for_each(|entry| document(table, entry, out));
    }
    out.end_map(map, pairs);
}

/// The grammar is a constant, so the recursion is as deep as somebody wrote it.
fn document_args(args: &[Arg], out: &mut Writer<'_>) {
    out.array(args.len());
    for arg in args {
        let map = out.begin_array();
        let mut pairs = 2;
        text_pair(out, "name", &arg.name());
        text_pair(out, "type", arg.kind.name());
        if let Some(display) = arg.display() {
            pairs += 1;
            text_pair(out, "display_text", &display);
        }
        if let Some(index) = arg.key_spec {
            pairs += 1;
            int_pair(out, "key_spec_index", i64::from(index));
        }
        let texts = [
            ("token", arg.token),
            ("summary", arg.summary),
            ("since", arg.since),
            ("deprecated_since", arg.deprecated),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                pairs += 1;
                text_pair(out, name, text);
            }
        }
        let flags = [
            (arg.is_optional, "optional"),
            (arg.is_multiple, "multiple"),
            (arg.is_token_repeated, "multiple_token"),
        ];
        let flags = flags
            .into_iter()
            .filter(|(is_set, _)| *is_set)
            .map(|(_, name)| name);
        if flags.clone().count() > 0 {
            pairs += 1;
            out.text("flags");
            simple_set(out, flags.clone().count(), flags);
        }
        if !arg.args.is_empty() {
            pairs += 1;
            out.text("arguments");
            document_args(arg.args, out);
        }
        out.end_map(map, pairs);
    }
}

fn text_pair(out: &mut Writer<'_>, name: &str, value: &str) {
    out.text(name);
    out.text(value);
}

fn int_pair(out: &mut Writer<'_>, name: &str, value: i64) {
    out.text(name);
    out.int(value);
}

fn simple_set<'n>(out: &mut Writer<'_>, count: usize, names: impl Iterator<Item = &'n str>) {
    out.set(count);
    names.for_each(|name| out.simple(name));
}

#[cfg(test)]
mod tests;
