//! A table of commands compared with the facts of a real server's, for tests.
//!
//! The facts are a JSON file made by asking that server: its COMMAND and COMMAND DOCS without the
//! sentences. Ours are read back from the replies that [`crate::render`] writes, so the comparison
//! covers the declarations and the rendering together.

use std::collections::BTreeMap;

use resp::{Output, OwnedArgs, Protocol, Writer};
use serde_json::{Map, Value};

use crate::{Table, render};

/// One line for each difference between the table and the facts, for the commands that both have.
///
/// # Errors
/// A sentence if `json` is not such a file.
pub fn differences<H: Copy>(table: &Table<H>, json: &str) -> Result<Vec<String>, String> {
    let facts: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let commands = facts["commands"].as_array().ok_or("no list of commands")?;
    let mut theirs = BTreeMap::new();
    collect(commands, None, &mut theirs);
    let ours = of_table(table)?;
    let mut lines = Vec::new();
    for (name, our) in &ours {
        if let Some(their) = theirs.get(name) {
            compare(name, our, their, &mut lines);
        }
    }
    Ok(lines)
}

/// The full names that the facts have and the table lacks.
///
/// # Errors
/// A sentence if `json` is not such a file.
pub fn missing<H: Copy>(table: &Table<H>, json: &str) -> Result<Vec<String>, String> {
    let facts: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let commands = facts["commands"].as_array().ok_or("no list of commands")?;
    let mut theirs = BTreeMap::new();
    collect(commands, None, &mut theirs);
    Ok(theirs
        .into_keys()
        .filter(|name| table.find_full(name.as_bytes()).is_none())
        .collect())
}

/// Puts each command and subcommand of the file under its full name, documents beside facts.
fn collect(commands: &[Value], container: Option<&Value>, into: &mut BTreeMap<String, Value>) {
    for command in commands {
        let name = command["name"].as_str().unwrap_or_default().to_owned();
        let docs = container.map_or(&command["docs"], |c| &c["docs"]["subcommands"][&name]);
        let mut flat = command.clone();
        flat["docs"] = docs.clone();
        if let Some(subcommands) = command["subcommands"].as_array() {
            collect(subcommands, Some(command), into);
        }
        into.insert(name.to_ascii_lowercase(), strip(flat));
    }
}

/// The table's commands in the file's form.
fn of_table<H: Copy>(table: &Table<H>) -> Result<BTreeMap<String, Value>, String> {
    let empty = OwnedArgs::default();
    let infos = reply(|out| render::info(table, empty.view(), out))?;
    let mut docs = reply(|out| render::docs(table, empty.view(), out))?;
    let mut ours = BTreeMap::new();
    for info in infos.as_array().into_iter().flatten() {
        let name = info[0].as_str().unwrap_or_default();
        let mut document = docs[name].take();
        for sub in info[9].as_array().into_iter().flatten() {
            let sub_name = sub[0].as_str().unwrap_or_default();
            let sub_document = document["subcommands"][sub_name].take();
            ours.insert(sub_name.to_owned(), fields(sub, sub_document));
        }
        ours.insert(name.to_ascii_lowercase(), fields(info, document));
    }
    Ok(ours)
}

/// The parts of one element of COMMAND's reply under the file's names.
fn fields(info: &Value, mut docs: Value) -> Value {
    let names = [
        "name",
        "arity",
        "flags",
        "first_key",
        "last_key",
        "step",
        "acl",
        "tips",
    ];
    let mut map = Map::new();
    for (index, name) in names.iter().enumerate() {
        map.insert((*name).to_owned(), info[index].clone());
    }
    map.insert("key_specs".to_owned(), info[8].clone());
    if let Some(history) = docs.get_mut("history").and_then(Value::as_array_mut) {
        history
            .iter_mut()
            .for_each(|change| *change = change[0].take());
    }
    map.insert("docs".to_owned(), docs);
    strip(Value::Object(map))
}

/// Takes out what is ours to word: summaries, notes, empty complexities, nested documents.
fn strip(mut value: Value) -> Value {
    fn walk(value: &mut Value) {
        match value {
            Value::Object(map) => {
                ["summary", "notes", "subcommands"]
                    .iter()
                    .for_each(|name| drop(map.remove(*name)));
                if map.get("complexity").is_some_and(|text| text == "") {
                    map.remove("complexity");
                }
                map.values_mut().for_each(walk);
            }
            Value::Array(list) => list.iter_mut().for_each(walk),
            _ => {}
        }
    }
    walk(&mut value);
    value
}

fn compare(path: &str, our: &Value, their: &Value, lines: &mut Vec<String>) {
    match (our, their) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a
                .keys()
                .chain(b.keys().filter(|name| !a.contains_key(*name)))
            {
                let (a, b) = (a.get(name), b.get(name));
                let null = Value::Null;
                let path = format!("{path}.{name}");
                compare(&path, a.unwrap_or(&null), b.unwrap_or(&null), lines);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}[{index}]"), a, b, lines);
            }
        }
        _ if our == their => {}
        _ => lines.push(format!("{path}: ours {our}, theirs {their}")),
    }
}

/// What `write` writes in RESP3, as JSON: maps are objects, sets are arrays.
fn reply(write: impl FnOnce(&mut Writer<'_>)) -> Result<Value, String> {
    let mut out = Output::default();
    write(&mut Writer::new(&mut out, Protocol::Resp3));
    let mut bytes = out.since(0);
    let value = read(&mut bytes)?;
    if bytes.is_empty() {
        Ok(value)
    } else {
        Err("bytes after the reply".to_owned())
    }
}

fn read(bytes: &mut &[u8]) -> Result<Value, String> {
    let line = read_line(bytes)?;
    let (kind, text) = line.split_at_checked(1).ok_or("an empty line")?;
    let number = || text.parse::<i64>().map_err(|error| error.to_string());
    let count = || text.parse::<usize>().map_err(|error| error.to_string());
    match kind {
        "+" => Ok(Value::from(text)),
        ":" => Ok(Value::from(number()?)),
        "_" => Ok(Value::Null),
        "$" => {
            let len = count()?;
            let (body, rest) = bytes.split_at_checked(len + 2).ok_or("a short string")?;
            *bytes = rest;
            Ok(Value::from(
                String::from_utf8_lossy(&body[..len]).into_owned(),
            ))
        }
        "*" | "~" => (0..count()?).map(|_| read(bytes)).collect(),
        "%" => {
            let pairs = (0..count()?).map(|_| {
                let name = read(bytes)?;
                Ok((name.as_str().unwrap_or_default().to_owned(), read(bytes)?))
            });
            pairs
                .collect::<Result<Map<_, _>, String>>()
                .map(Value::Object)
        }
        _ => Err(format!("an unexpected line: {line}")),
    }
}

fn read_line<'b>(bytes: &mut &'b [u8]) -> Result<&'b str, String> {
    let end = bytes
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .ok_or("no line")?;
    let line = std::str::from_utf8(&bytes[..end]).map_err(|error| error.to_string())?;
    *bytes = &bytes[end + 2..];
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arg::*;
    use crate::{Acl, Arity, Command, Flags, Group, KeySpec, Shape};

    const FACTS: &str = include_str!("../../../testkit/compat/redis-8.10.json");

    const GETDEL: Command<u8> = Command {
        name: "getdel",
        group: Group::String,
        since: "6.2.0",
        summary: "Returns a string and deletes its key.",
        complexity: "O(1)",
        arity: Arity::exactly(2),
        flags: Flags::WRITE.with(Flags::FAST),
        acl: Acl::STRING,
        keys: &[KeySpec::at(1).rw().access().delete()],
        args: &[key("key")],
        reply: &[Shape::Bulk, Shape::Null],
        ..Command::runs(0)
    };

    #[test]
    fn a_faithful_declaration_has_no_differences() {
        const FAMILY: &[Command<u8>] = &[GETDEL];
        let table = Table::new(&[FAMILY]);
        assert_eq!(differences(&table, FACTS), Ok(Vec::new()));
        let missing = missing(&table, FACTS).expect("the facts are well formed");
        assert!(missing.contains(&"client|kill".to_owned()));
        assert!(!missing.contains(&"getdel".to_owned()));
    }

    #[test]
    fn each_wrong_fact_is_a_line() {
        const FAMILY: &[Command<u8>] = &[Command {
            arity: Arity::at_least(2),
            flags: Flags::WRITE,
            keys: &[KeySpec::at(1).rw().access().delete().last(-1)],
            args: &[key("name")],
            ..GETDEL
        }];
        let lines = differences(&Table::new(&[FAMILY]), FACTS).expect("the facts are well formed");
        for expected in [
            "getdel.arity: ours -2, theirs 2",
            "getdel.last_key: ours -1, theirs 1",
            "getdel.docs.arguments[0].name: ours \"name\", theirs \"key\"",
        ] {
            assert!(
                lines.iter().any(|line| line == expected),
                "{expected}: {lines:#?}"
            );
        }
        assert!(lines.iter().any(|line| line.starts_with("getdel.flags")));
    }

    #[test]
    fn a_file_of_something_else_is_an_error() {
        let table = Table::<u8>::new(&[]);
        assert!(differences(&table, "").is_err());
        assert!(differences(&table, "{}").is_err());
    }
}
