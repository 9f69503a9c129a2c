//! What the real servers have and ours has not: `cargo xtask compat`.
//!
//! The facts of the real servers are in `testkit/compat/*.json`. Ours are read from the table of
//! commands, the configuration's table and INFO's fields, so nothing has to run. The commands that
//! are there stand in `testkit/compat/have.txt`, a generated file: `cargo xtask gen` refuses to
//! take one away, so that the list only grows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::steps::{Done, StepResult};
use crate::tool::root;

/// The commands that are there, one a line.
pub const RECORD: &str = "testkit/compat/have.txt";

/// The servers compared with, the first of which ours follows.
const SERVERS: [&str; 2] = ["redis-8.10", "valkey-9.1"];

fn table() -> engine::Table {
    let ours = engine::commands::FAMILIES.iter();
    let families: Vec<_> = ours.chain(server::commands::FAMILIES).copied().collect();
    engine::Table::new(&families)
}

/// The full names of our commands, containers among them.
fn have(table: &engine::Table) -> BTreeSet<String> {
    let entries = table.entries().iter();
    entries.map(|entry| entry.full_name.to_string()).collect()
}

/// The record's text for the commands that are there.
pub fn record_text() -> String {
    let mut text = String::new();
    for name in have(&table()) {
        text.push_str(&name);
        text.push('\n');
    }
    text
}

/// Whether every command of the record is there.
///
/// # Errors
/// Those that are not, in one sentence.
pub fn none_is_gone() -> Result<(), String> {
    // Before the first record there is nothing to lose.
    let text = std::fs::read_to_string(root().join(RECORD)).unwrap_or_default();
    let have = have(&table());
    let gone: Vec<_> = text.lines().filter(|name| !have.contains(*name)).collect();
    match gone.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "commands of {RECORD} went away: {}",
            gone.join(", ")
        )),
    }
}

/// The step of continuous integration. That the record is up to date, the tidy test sees.
pub fn check() -> StepResult {
    none_is_gone()?;
    print()?;
    Ok(Done::Ran)
}

/// Prints the tables.
pub fn print() -> Result<(), String> {
    let table = table();
    for server in SERVERS {
        let path = root().join(format!("testkit/compat/{server}.json"));
        let json = std::fs::read_to_string(&path).map_err(|error| error.to_string())?;
        let facts: Value = serde_json::from_str(&json).map_err(|error| error.to_string())?;
        println!("== {server}");
        commands(&table, &facts, &json)?;
        configuration(&facts["config"]);
        let fields = server::commands::info_fields().map(str::to_owned).collect();
        let sections = facts["info"].as_object().into_iter().flatten();
        let theirs = sections.flat_map(|(_, fields)| fields.as_array().into_iter().flatten());
        let theirs = theirs.filter_map(Value::as_str).map(str::to_owned);
        names("INFO", &fields, theirs);
        println!();
    }
    Ok(())
}

fn commands(table: &engine::Table, facts: &Value, json: &str) -> Result<(), String> {
    let mut total = 0;
    for command in facts["commands"].as_array().into_iter().flatten() {
        total += 1 + command["subcommands"].as_array().map_or(0, Vec::len);
    }
    let missing = command::facts::missing(table, json)?;
    let differences = command::facts::differences(table, json)?;
    // What is said about a command by documents only, and says nothing about what it does.
    let (said, differ): (Vec<_>, Vec<_>) = differences
        .into_iter()
        .partition(|line| line.contains(".docs.") || line.contains(".docs:"));
    println!(
        "commands: {} of {total}, {} facts differ, {} of their documents",
        total - missing.len(),
        differ.len(),
        said.len()
    );
    missing.iter().for_each(|name| println!("  - {name}"));
    differ.iter().for_each(|line| println!("  ! {line}"));
    Ok(())
}

/// The directives, and where the default is another one.
fn configuration(theirs: &Value) {
    let ours: BTreeMap<_, _> = server::config::Config::default()
        .get(&[b"*"])
        .into_iter()
        .map(|(name, value)| (text(&name), text(&value)))
        .collect();
    let theirs = || theirs.as_object().into_iter().flatten();
    let have = ours.keys().cloned().collect();
    names(
        "configuration",
        &have,
        theirs().map(|(name, _)| name.clone()),
    );
    for (name, their) in theirs() {
        let their = their.as_str().unwrap_or_default();
        if let Some(our) = ours.get(name).filter(|our| *our != their) {
            println!("  ! {name}: ours {our:?}, theirs {their:?}");
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// One line of numbers, and a line for each name that is missing.
fn names(what: &str, ours: &BTreeSet<String>, theirs: impl Iterator<Item = String>) {
    let theirs: BTreeSet<_> = theirs.collect();
    let missing: Vec<_> = theirs.difference(ours).collect();
    println!(
        "{what}: {} of {}",
        theirs.len() - missing.len(),
        theirs.len()
    );
    missing.iter().for_each(|name| println!("  - {name}"));
}
