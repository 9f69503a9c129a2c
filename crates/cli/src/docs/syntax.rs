//! A command's syntax: as a line, as a tree, and what of it is still to come after some words.

use client::Reply;

/// How deep groups are read; what is deeper is taken for a word.
const DEPTH_MAX: usize = 12;

/// The arguments of COMMAND DOCS as a line.
pub fn of_arguments(arguments: &[Reply]) -> String {
    let parts: Vec<String> = arguments.iter().map(of_argument).collect();
    parts.join(" ")
}

fn of_argument(argument: &Reply) -> String {
    let text = |field: &str| argument.field(field).and_then(super::plain);
    let flags = argument.field("flags").and_then(Reply::elements);
    let has = |flag: &str| {
        let flags = flags.unwrap_or_default();
        flags.iter().any(|f| f.bytes() == Some(flag.as_bytes()))
    };
    let inner = argument.field("arguments").and_then(Reply::elements);
    let parts: Vec<String> = inner.unwrap_or_default().iter().map(of_argument).collect();
    let kind = text("type").unwrap_or_default();
    let (token, optional) = (text("token"), has("optional"));
    let body = match kind.as_str() {
        "pure-token" => String::new(),
        "oneof" if token.is_some() || !optional => format!("<{}>", parts.join(" | ")),
        "oneof" => parts.join(" | "),
        "block" => parts.join(" "),
        _ => text("display_text").or(text("name")).unwrap_or_default(),
    };
    let one = match &token {
        Some(token) if body.is_empty() => token.clone(),
        Some(token) if token.is_empty() => format!("\"\" {body}"),
        Some(token) => format!("{token} {body}"),
        None => body.clone(),
    };
    let whole = match (has("multiple"), has("multiple_token")) {
        (true, true) => format!("{one} [{one} ...]"),
        (true, false) => format!("{one} [{body} ...]"),
        (false, _) => one,
    };
    match optional {
        true => format!("[{whole}]"),
        false => whole,
    }
}

/// One part of a syntax.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    /// In capitals it stands for itself, otherwise for a value.
    Word(String),
    Group {
        optional: bool,
        repeated: bool,
        ways: Vec<Vec<Node>>,
    },
}

/// A syntax that can be walked along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Syntax(Vec<Node>);

impl Syntax {
    /// Reads a line; one that is not well formed gives as much as can be read.
    pub fn read(text: &str) -> Self {
        let mut spaced = String::with_capacity(text.len() * 2);
        for c in text.chars() {
            match c {
                '[' | ']' | '<' | '>' | '|' => spaced.extend([' ', c, ' ']),
                c => spaced.push(c),
            }
        }
        let mut words = spaced.split_whitespace();
        let (mut ways, _) = ways(&mut words, DEPTH_MAX);
        Self(ways.swap_remove(0))
    }

    /// What may follow these words, or `None` where they do not fit.
    pub fn after(&self, words: &[&str]) -> Option<String> {
        let rest = walk(&self.0, words)?;
        let parts: Vec<String> = rest.iter().map(show).collect();
        Some(parts.join(" "))
    }
}

/// Ways up to the closing bracket, and whether the last ended in dots.
fn ways<'a>(words: &mut impl Iterator<Item = &'a str>, depth: usize) -> (Vec<Vec<Node>>, bool) {
    let mut all = vec![Vec::new()];
    let mut repeated = false;
    while let Some(word) = words.next() {
        let last = all.len() - 1;
        match word {
            "]" | ">" => break,
            "|" => all.push(Vec::new()),
            "..." => repeated = true,
            "[" | "<" if depth > 0 => {
                let (ways, repeated) = ways(words, depth - 1);
                all[last].push(Node::Group {
                    optional: word == "[",
                    repeated,
                    ways,
                });
            }
            word => all[last].push(Node::Word(word.to_owned())),
        }
    }
    (all, repeated)
}

fn is_token(word: &str) -> bool {
    !word.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Whether a word may be the first of this.
fn begins(node: &Node, word: &str) -> bool {
    match node {
        Node::Word(name) => !is_token(name) || name.eq_ignore_ascii_case(word),
        Node::Group { ways, .. } => ways
            .iter()
            .any(|way| way.first().is_some_and(|first| begins(first, word))),
    }
}

/// Whether a word is the very token that this begins with.
fn names(node: &Node, word: &str) -> bool {
    match node {
        Node::Word(name) => is_token(name) && name.eq_ignore_ascii_case(word),
        Node::Group { ways, .. } => ways
            .iter()
            .any(|way| way.first().is_some_and(|first| names(first, word))),
    }
}

/// What is left of these parts after the words, which may be more than they take.
fn walk(nodes: &[Node], words: &[&str]) -> Option<Vec<Node>> {
    match step(nodes, words)? {
        Step::Over(_) => Some(Vec::new()),
        Step::Within(rest) => Some(rest),
    }
}

enum Step {
    /// All parts were passed; so many words are left.
    Over(usize),
    /// The words ended here.
    Within(Vec<Node>),
}

fn step(nodes: &[Node], words: &[&str]) -> Option<Step> {
    let mut at = 0;
    let mut words = words;
    while at < nodes.len() {
        let Some(word) = words.first() else {
            return Some(Step::Within(nodes[at..].to_vec()));
        };
        match &nodes[at] {
            Node::Word(name) if is_token(name) && !name.eq_ignore_ascii_case(word) => return None,
            Node::Word(_) => words = &words[1..],
            Node::Group {
                optional: false,
                ways,
                ..
            } => match step(choose(ways, word)?, words)? {
                Step::Over(left) => words = &words[words.len() - left..],
                Step::Within(mut rest) => {
                    rest.extend_from_slice(&nodes[at + 1..]);
                    return Some(Step::Within(rest));
                }
            },
            Node::Group {
                repeated: true,
                ways,
                ..
            } => {
                let later = &nodes[at + 1..];
                while let Some(word) = words.first() {
                    // A token of what follows ends the repetition.
                    if later.iter().any(|node| names(node, word)) {
                        break;
                    }
                    let Some(way) = choose(ways, word) else { break };
                    match step(way, words)? {
                        Step::Over(left) if left < words.len() => {
                            words = &words[words.len() - left..];
                        }
                        Step::Over(_) => break,
                        Step::Within(mut rest) => {
                            rest.extend_from_slice(&nodes[at..]);
                            return Some(Step::Within(rest));
                        }
                    }
                }
                if words.is_empty() {
                    return Some(Step::Within(nodes[at..].to_vec()));
                }
            }
            Node::Group { .. } => match options(nodes, at, words)? {
                (Step::Over(left), end) => {
                    words = &words[words.len() - left..];
                    at = end;
                    continue;
                }
                (within, _) => return Some(within),
            },
        }
        at += 1;
    }
    Some(Step::Over(words.len()))
}

/// Passes optional parts that stand side by side, in any order. Says where they end.
fn options(nodes: &[Node], at: usize, words: &[&str]) -> Option<(Step, usize)> {
    let is_option = |node: &Node| {
        matches!(
            node,
            Node::Group {
                optional: true,
                repeated: false,
                ..
            }
        )
    };
    let end = nodes[at..].iter().position(|node| !is_option(node));
    let end = end.map_or(nodes.len(), |length| at + length);
    let mut unused: Vec<&Node> = nodes[at..end].iter().collect();
    let mut words = words;
    loop {
        let left = |unused: &[&Node]| {
            let mut rest: Vec<Node> = unused.iter().map(|node| (*node).clone()).collect();
            rest.extend_from_slice(&nodes[end..]);
            rest
        };
        let Some(word) = words.first() else {
            return Some((Step::Within(left(&unused)), end));
        };
        let named = unused.iter().position(|node| names(node, word));
        let chosen = named.or_else(|| {
            // A value goes to an option only where nothing that must follow wants it.
            let wanted = nodes.get(end).is_some_and(|node| begins(node, word));
            let takes = |node: &&Node| begins(node, word);
            unused.iter().position(takes).filter(|_| !wanted)
        });
        let Some(chosen) = chosen else {
            return Some((Step::Over(words.len()), end));
        };
        let Node::Group { ways, .. } = unused.remove(chosen) else {
            return None;
        };
        match step(choose(ways, word)?, words)? {
            Step::Over(left) => words = &words[words.len() - left..],
            Step::Within(mut rest) => {
                rest.extend(left(&unused));
                return Some((Step::Within(rest), end));
            }
        }
    }
}

/// The way that a word leads into: one that begins with it, or one that takes any.
fn choose<'a>(ways: &'a [Vec<Node>], word: &str) -> Option<&'a [Node]> {
    let first = |test: fn(&Node, &str) -> bool| {
        let mut ways = ways.iter();
        ways.find(|way| way.first().is_some_and(|node| test(node, word)))
    };
    first(names).or_else(|| first(begins)).map(Vec::as_slice)
}

fn show(node: &Node) -> String {
    match node {
        Node::Word(word) => word.clone(),
        Node::Group {
            optional,
            repeated,
            ways,
        } => {
            let ways: Vec<String> = ways
                .iter()
                .map(|way| way.iter().map(show).collect::<Vec<_>>().join(" "))
                .collect();
            let dots = if *repeated { " ..." } else { "" };
            let inner = ways.join(" | ") + dots;
            match optional {
                true => format!("[{inner}]"),
                false => format!("<{inner}>"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn after(syntax: &str, words: &str, rest: &str) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let found = Syntax::read(syntax).after(&words);
        assert_eq!(found.as_deref(), Some(rest), "{syntax:?} {words:?}");
    }

    const SET: &str = "key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]";

    #[test]
    fn words_take_their_parts_away() {
        after(SET, "", SET);
        after(
            SET,
            "k",
            "value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]",
        );
        after(
            SET,
            "k v get",
            "[NX | XX] [EX seconds | PX milliseconds | KEEPTTL]",
        );
        after(SET, "k v ex", "seconds [NX | XX] [GET]");
        after(SET, "k v ex 10 nx get", "");
        after(SET, "k v nonsense", "");
    }

    #[test]
    fn what_repeats_may_go_on() {
        after("key [key ...]", "a", "[key ...]");
        after("key [key ...]", "a b c", "[key ...]");
        after(
            "key value [key value ...]",
            "a 1 b",
            "value [key value ...]",
        );
        let read = "[COUNT count] STREAMS key [key ...] id [id ...]";
        after(read, "count", "count STREAMS key [key ...] id [id ...]");
        after(read, "streams a", "[key ...] id [id ...]");
        let range = "key min max [BYSCORE | BYLEX] [LIMIT offset count]";
        after(range, "k 0 1 limit 5", "count [BYSCORE | BYLEX]");
        let store = "destination numkeys key [key ...] [WEIGHTS weight [weight ...]]";
        after(store, "d 1 a weights", "weight [weight ...]");
    }

    #[test]
    fn a_choice_is_made_by_its_token() {
        let trim = "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]";
        after(trim, "k maxlen", "[= | ~] threshold [LIMIT count]");
        after(trim, "k maxlen ~", "threshold [LIMIT count]");
        after(trim, "k maxlen 5", "[LIMIT count]");
        assert_eq!(Syntax::read(trim).after(&["k", "nonsense"]), None);
    }

    #[test]
    fn what_is_not_well_formed_is_read_all_the_same() {
        for text in [
            "[",
            "]",
            "| |",
            "[[[[[[[[[[[[[[[[[[[[a",
            "<>",
            "[] x",
            "...",
        ] {
            for words in [&[][..], &["a"], &["a", "b", "c"]] {
                let _ = Syntax::read(text).after(words);
            }
        }
    }
}
