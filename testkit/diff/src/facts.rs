//! What a real server says about its commands, read from `testkit/compat/*.json`.
//!
//! The generator knows no command by heart: names, groups, flags and argument trees come from
//! here, so a command that is new in the facts and known to our server is tried at once.

use serde_json::Value;

/// One command, or one subcommand of a container.
#[derive(Debug, Clone)]
pub struct Command {
    /// Its words, in lower case: `["xgroup", "create"]`.
    pub words: Vec<String>,
    /// The group of its documentation: `sorted-set`.
    pub group: String,
    /// Words it takes, itself included; negative for at least so many.
    pub arity: i64,
    /// It changes nothing.
    pub is_readonly: bool,
    /// It may wait for data.
    pub is_blocking: bool,
    /// Where its first key stands, or 0.
    pub first_key: i64,
    /// The real server gives no order to its reply's elements.
    pub is_unordered: bool,
    /// The trees of its arguments, in their order.
    pub args: Vec<Arg>,
    /// Whether the facts describe the arguments at all.
    pub has_args: bool,
}

impl Command {
    /// The words with a bar between them, as `COMMAND` has them.
    pub fn name(&self) -> String {
        self.words.join("|")
    }
}

/// What an argument is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Key,
    String,
    Integer,
    Double,
    Pattern,
    UnixTime,
    /// A word that says something by being there.
    Token,
    /// One of its children.
    OneOf,
    /// All of its children.
    Block,
}

/// A node of the tree of arguments.
#[derive(Debug, Clone)]
pub struct Arg {
    pub name: String,
    pub kind: Kind,
    /// The word that stands before it, or that it is.
    pub token: Option<String>,
    pub optional: bool,
    pub multiple: bool,
    /// The token is said again before each repetition.
    pub multiple_token: bool,
    pub children: Vec<Arg>,
}

/// Reads the facts' text. An error says what is missing.
pub fn parse(text: &str) -> Result<Vec<Command>, String> {
    let json: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let mut commands = Vec::new();
    for entry in list(&json["commands"]) {
        let docs = &entry["docs"];
        let subcommands = list(&entry["subcommands"]);
        if subcommands.is_empty() {
            commands.push(command(entry, docs)?);
        }
        for sub in subcommands {
            let name = text_of(&sub["name"]);
            commands.push(command(sub, &docs["subcommands"][name])?);
        }
    }
    Ok(commands)
}

fn command(entry: &Value, docs: &Value) -> Result<Command, String> {
    let name = entry["name"].as_str().ok_or("a command without a name")?;
    let has = |list_name: &str, word: &str| list(&entry[list_name]).iter().any(|w| w == word);
    Ok(Command {
        words: name.to_lowercase().split('|').map(str::to_owned).collect(),
        group: text_of(&docs["group"]).to_owned(),
        arity: entry["arity"].as_i64().unwrap_or(-1),
        is_readonly: has("flags", "readonly"),
        is_blocking: has("flags", "blocking"),
        first_key: entry["first_key"].as_i64().unwrap_or(0),
        is_unordered: has("tips", "nondeterministic_output_order"),
        args: list(&docs["arguments"])
            .iter()
            .map(|arg| argument(arg, name))
            .collect::<Result<_, _>>()?,
        has_args: docs["arguments"].is_array(),
    })
}

fn argument(json: &Value, command: &str) -> Result<Arg, String> {
    let flag = |word: &str| list(&json["flags"]).iter().any(|w| w == word);
    let kind = match text_of(&json["type"]) {
        "key" => Kind::Key,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "double" => Kind::Double,
        "pattern" => Kind::Pattern,
        "unix-time" => Kind::UnixTime,
        "pure-token" => Kind::Token,
        "oneof" => Kind::OneOf,
        "block" => Kind::Block,
        other => return Err(format!("{command}: an argument of type {other:?}")),
    };
    Ok(Arg {
        name: text_of(&json["name"]).to_owned(),
        kind,
        token: json["token"].as_str().map(str::to_owned),
        optional: flag("optional"),
        multiple: flag("multiple"),
        multiple_token: flag("multiple_token"),
        children: list(&json["arguments"])
            .iter()
            .map(|child| argument(child, command))
            .collect::<Result<_, _>>()?,
    })
}

fn list(json: &Value) -> &[Value] {
    json.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn text_of(json: &Value) -> &str {
    json.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_files_of_facts_are_read() {
        for text in [
            include_str!("../../compat/redis-8.10.json"),
            include_str!("../../compat/valkey-9.1.json"),
        ] {
            let commands = parse(text).expect("facts");
            let find = |name: &str| {
                let found = commands.iter().find(|command| command.name() == name);
                found.unwrap_or_else(|| panic!("no {name}"))
            };
            assert!(find("blpop").is_blocking);
            assert!(find("smembers").is_unordered);
            assert!(find("get").is_readonly && !find("set").is_readonly);
            assert_eq!(find("xgroup|create").args[0].kind, Kind::Key);
            let condition = &find("set").args[2];
            assert!(condition.optional && condition.kind == Kind::OneOf);
            assert_eq!(condition.children[0].token.as_deref(), Some("NX"));
        }
    }
}
