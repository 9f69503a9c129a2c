//! What is known of commands: their syntax, and a sentence about each.
//!
//! The server says it (COMMAND DOCS); until it has, and where it does not, there is a copy of
//! Tidemill's own table, which `cargo xtask gen` renders.

mod syntax;

use client::Reply;
pub use syntax::Syntax;

/// The copy: a line a command, its fields parted by tabs.
const COPY: &str = include_str!("commands.tsv");

/// One command, or one that stands behind another, such as `CONFIG GET`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doc {
    /// In capitals.
    pub name: String,
    pub group: String,
    pub since: String,
    /// What follows the name.
    pub syntax: String,
    pub summary: String,
}

/// All commands, by name.
#[derive(Clone, Debug)]
pub struct Docs(Vec<Doc>);

impl Docs {
    /// The copy.
    pub fn offline() -> Self {
        let docs = COPY.lines().filter_map(|line| {
            let mut fields = line.split('\t').map(str::to_owned);
            let mut next = || fields.next();
            Some(Doc {
                name: next()?,
                group: next()?,
                since: next()?,
                syntax: next()?,
                summary: next()?,
            })
        });
        Self::sorted(docs.collect())
    }

    /// From the reply to COMMAND DOCS, of either protocol, if it is one.
    pub fn read(reply: &Reply) -> Option<Self> {
        let mut docs = Vec::new();
        collect(reply, None, &mut docs);
        (!docs.is_empty()).then(|| Self::sorted(docs))
    }

    fn sorted(mut docs: Vec<Doc>) -> Self {
        docs.sort_by(|a, b| a.name.cmp(&b.name));
        Self(docs)
    }

    pub fn all(&self) -> &[Doc] {
        &self.0
    }

    /// The command of that name.
    pub fn named(&self, name: &str) -> Option<&Doc> {
        let name = name.to_ascii_uppercase();
        let found = self.0.binary_search_by(|doc| doc.name.as_str().cmp(&name));
        found.ok().map(|at| &self.0[at])
    }

    /// The command that a line begins with, and how many of its words are its name.
    pub fn of_line<'a>(&self, words: &[impl AsRef<str> + 'a]) -> Option<(&Doc, usize)> {
        let first = words.first()?.as_ref();
        if let Some(second) = words.get(1) {
            let both = format!("{first} {}", second.as_ref());
            if let Some(doc) = self.named(&both) {
                return Some((doc, 2));
            }
        }
        Some((self.named(first)?, 1))
    }

    /// Whether other commands stand behind this one.
    pub fn has_subcommands(&self, name: &str) -> bool {
        let prefix = format!("{} ", name.to_ascii_uppercase());
        let at = self.0.partition_point(|doc| doc.name < prefix);
        self.0
            .get(at)
            .is_some_and(|doc| doc.name.starts_with(&prefix))
    }
}

/// The pairs of a map, which RESP2 has as a flat array.
fn pairs(reply: &Reply) -> Vec<(&Reply, &Reply)> {
    match reply {
        Reply::Map(pairs) => pairs.iter().map(|(key, value)| (key, value)).collect(),
        other => {
            let flat = other.elements().unwrap_or_default();
            flat.chunks_exact(2)
                .map(|pair| (&pair[0], &pair[1]))
                .collect()
        }
    }
}

/// A text without what a terminal would obey.
pub fn plain(reply: &Reply) -> Option<String> {
    Some(reply.text()?.replace(char::is_control, " "))
}

/// The decoder bounds how deep replies are nested, and so this.
fn collect(reply: &Reply, container: Option<&str>, docs: &mut Vec<Doc>) {
    for (name, facts) in pairs(reply) {
        let Some(name) = plain(name) else { continue };
        // Behind its container a command's name has both parts, with a bar between.
        let name = name
            .rsplit('|')
            .next()
            .unwrap_or(&name)
            .to_ascii_uppercase();
        let name = match container {
            Some(container) => format!("{container} {name}"),
            None => name,
        };
        let text = |field: &str| facts.field(field).and_then(plain).unwrap_or_default();
        let arguments = facts.field("arguments").and_then(Reply::elements);
        docs.push(Doc {
            group: text("group"),
            since: text("since"),
            summary: text("summary"),
            syntax: arguments.map_or_else(String::new, syntax::of_arguments),
            name: name.clone(),
        });
        if let Some(subcommands) = facts.field("subcommands") {
            collect(subcommands, Some(&name), docs);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_has_every_command() {
        let docs = Docs::offline();
        let get = docs.named("get").expect("there is such a command");
        assert_eq!((get.group.as_str(), get.syntax.as_str()), ("string", "key"));
        assert!(docs.has_subcommands("config"));
        assert!(!docs.has_subcommands("get"));
        let (doc, words) = docs.of_line(&["config", "get", "x"]).expect("a command");
        assert_eq!((doc.name.as_str(), words), ("CONFIG GET", 2));
    }

    #[test]
    fn the_reply_of_a_server_is_read_in_both_protocols() {
        let bulk = |text: &str| Reply::Bulk(text.into());
        let argument = |maps: bool| {
            let fields = vec![
                (bulk("name"), bulk("key")),
                (bulk("type"), bulk("key")),
                (
                    bulk("flags"),
                    Reply::Array(vec![Reply::Status("multiple".into())]),
                ),
            ];
            shaped(maps, fields)
        };
        fn shaped(maps: bool, fields: Vec<(Reply, Reply)>) -> Reply {
            match maps {
                true => Reply::Map(fields),
                false => Reply::Array(fields.into_iter().flat_map(|(k, v)| [k, v]).collect()),
            }
        }
        for maps in [true, false] {
            let sub = shaped(maps, vec![(bulk("summary"), bulk("Sub."))]);
            let facts = vec![
                (bulk("summary"), bulk("Main.")),
                (bulk("since"), bulk("1.0.0")),
                (bulk("group"), bulk("generic")),
                (bulk("arguments"), Reply::Array(vec![argument(maps)])),
                (
                    bulk("subcommands"),
                    shaped(maps, vec![(bulk("main|sub"), sub)]),
                ),
            ];
            let reply = shaped(maps, vec![(bulk("main"), shaped(maps, facts))]);
            let docs = Docs::read(&reply).expect("documents");
            assert_eq!(
                docs.named("main").map(|d| d.syntax.as_str()),
                Some("key [key ...]")
            );
            assert_eq!(
                docs.named("MAIN SUB").map(|d| d.summary.as_str()),
                Some("Sub.")
            );
        }
        assert!(Docs::read(&Reply::Error("ERR".into())).is_none());
    }
}
