//! What the line editor asks for while a line is typed: completion, hints, colours.

use crate::command::Runner;
use crate::docs::{Docs, Syntax};
use crate::help;
use crate::highlight::{BOLD, CYAN, DIM, GREEN, RED, RESET, YELLOW};
use crate::words;
use client::Reply;
use console::{Term, measure_text_width, truncate_str};
use rustyline::completion::{Completer, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};
use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// Keys that are offered at most.
const KEYS_MAX: usize = 100;
/// Calls of SCAN that one completion may cost.
const SCANS_MAX: usize = 20;
const SCAN_COUNT: &str = "1000";

/// The words of the tool itself.
const OWN: &[&str] = &["help", "quit", "exit", "clear", "connect"];
const SETTINGS: &[&str] = &[":set hints", ":set nohints", ":set pager", ":set nopager"];
const VIEWS: &[&str] = &[":watch", ":streams", ":tree"];

pub struct PromptHelper {
    pub docs: Docs,
    pub hints: Cell<bool>,
    pub runner: Rc<RefCell<Runner>>,
    /// How wide the prompt is.
    pub prompt_width: Cell<usize>,
    /// The line as it was last seen.
    pub line: RefCell<String>,
}

impl PromptHelper {
    /// The words before the cursor that are whole, and where the one that is typed begins.
    fn parts(line: &str) -> (Vec<String>, usize) {
        let start = line.rfind(char::is_whitespace).map_or(0, |at| {
            at + line[at..].chars().next().map_or(1, char::len_utf8)
        });
        let before = words::split(&line.as_bytes()[..start]).unwrap_or_default();
        let before = before
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned());
        (before.collect(), start)
    }

    fn names(&self, before: &[String], word: &str) -> Vec<String> {
        let upper = word.to_ascii_uppercase();
        let lower = !word.chars().any(|c| c.is_ascii_uppercase());
        let cased = |name: &str| match lower && !word.is_empty() {
            true => name.to_ascii_lowercase(),
            false => name.to_owned(),
        };
        let container = before.first().map(|word| word.to_ascii_uppercase() + " ");
        let container = container.unwrap_or_default();
        let all = self.docs.all().iter();
        let names = all.filter_map(|doc| doc.name.strip_prefix(&container));
        let names = names.filter(|name| !name.contains(' ') && name.starts_with(&upper));
        names.map(cased).collect()
    }

    fn candidates(&self, before: &[String], word: &str) -> Vec<String> {
        let starts = |text: &&&str| text.starts_with(word);
        let first = before.first().map(|word| word.to_ascii_lowercase());
        match (first.as_deref(), before.len()) {
            (None, _) => {
                let mut all = self.names(&[], word);
                let own = OWN.iter().chain(VIEWS).filter(starts);
                all.extend(
                    own.filter(|_| !word.is_empty())
                        .map(|own| (*own).to_owned()),
                );
                all
            }
            (Some(":set"), 1) => {
                let values = SETTINGS
                    .iter()
                    .filter_map(|text| text.strip_prefix(":set "));
                let values = values.filter(|value| value.starts_with(word));
                values.map(str::to_owned).collect()
            }
            (Some("help" | "?"), 1) if word.starts_with('@') => {
                let groups = help::groups(&self.docs).into_iter();
                let groups = groups.map(|group| format!("@{group}"));
                groups.filter(|group| group.starts_with(word)).collect()
            }
            (Some("help" | "?"), _) => self.names(&before[1..], word),
            (Some(":watch"), _) => {
                let inner = before[1..]
                    .iter()
                    .skip_while(|word| word.parse::<f64>().is_ok());
                let inner: Vec<String> = inner.cloned().collect();
                self.candidates(&inner, word)
            }
            (Some(name), 1) if self.docs.has_subcommands(name) => self.names(before, word),
            _ => {
                let mut all = self.tokens(before, word);
                all.extend(self.keys(before, word));
                all
            }
        }
    }

    /// What may come after whole words.
    fn after(&self, before: &[String]) -> Option<String> {
        let (doc, name_words) = self.docs.of_line(before)?;
        let typed: Vec<&str> = before[name_words..].iter().map(String::as_str).collect();
        Syntax::read(&doc.syntax).after(&typed)
    }

    /// Words in capitals that may come here.
    fn tokens(&self, before: &[String], word: &str) -> Vec<String> {
        if word.is_empty() {
            return Vec::new();
        }
        let after = self.after(before).unwrap_or_default();
        let lower = !word.chars().any(|c| c.is_ascii_uppercase());
        let words = after.split(|c: char| c.is_whitespace() || "[]<>|".contains(c));
        let is_token = |text: &&str| {
            text.len() > 1
                && text
                    .bytes()
                    .all(|byte| byte.is_ascii_uppercase() || byte == b'-')
        };
        let mut found: Vec<String> = words
            .filter(is_token)
            .filter(|token| token.starts_with(&word.to_ascii_uppercase()))
            .map(|token| match lower {
                true => token.to_ascii_lowercase(),
                false => token.to_owned(),
            })
            .collect();
        found.sort();
        found.dedup();
        found
    }

    /// Keys that begin with the word, where a key may come and asking changes nothing.
    fn keys(&self, before: &[String], word: &str) -> Vec<String> {
        let Ok(mut runner) = self.runner.try_borrow_mut() else {
            return Vec::new();
        };
        let after = self.after(before).unwrap_or_default();
        let next = after
            .trim_start_matches('[')
            .split([' ', ']', '|'])
            .next()
            .unwrap_or("");
        let is_key = ["key", "source", "destination", "dst", "src"]
            .iter()
            .any(|name| next.contains(name));
        let free = runner.session.as_fd().is_some()
            && !runner.session.in_multi
            && !runner.subscribed
            && runner.is_heard();
        if !is_key || !free || word.starts_with(['"', '\'']) {
            return Vec::new();
        }
        let pattern: String = word
            .chars()
            .flat_map(|c| match c {
                '*' | '?' | '[' | ']' | '\\' | '^' => vec!['\\', c],
                c => vec![c],
            })
            .chain(['*'])
            .collect();
        let mut keys = Vec::new();
        let mut cursor = "0".to_owned();
        for _ in 0..SCANS_MAX {
            let call = ["SCAN", &cursor, "MATCH", &pattern, "COUNT", SCAN_COUNT];
            let Ok(reply) = runner.session.call(&call) else {
                runner.session.disconnect();
                break;
            };
            let Some([next, found]) = reply.elements() else {
                break;
            };
            let found = found.elements().unwrap_or_default().iter();
            keys.extend(found.filter_map(Reply::bytes).map(as_typed));
            cursor = next.text().unwrap_or_default();
            if cursor == "0" || keys.len() >= KEYS_MAX {
                break;
            }
        }
        keys.sort();
        keys.dedup();
        keys.truncate(KEYS_MAX);
        keys
    }
}

/// A key as it has to be typed.
fn as_typed(key: &[u8]) -> String {
    let plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    match !key.is_empty() && key.iter().all(plain) {
        true => String::from_utf8_lossy(key).into_owned(),
        false => words::quoted(key),
    }
}

impl Completer for PromptHelper {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let line = line.get(..pos).unwrap_or(line);
        let (before, start) = Self::parts(line);
        let found = self.candidates(&before, &line[start..]).into_iter();
        let pairs = found.map(|text| Pair {
            display: text.clone(),
            replacement: text + " ",
        });
        Ok((start, pairs.collect()))
    }
}

impl Hinter for PromptHelper {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        line.clone_into(&mut self.line.borrow_mut());
        if !self.hints.get() || pos < line.len() || line.trim().is_empty() {
            return None;
        }
        let typed = words::split(line.as_bytes())?;
        let mut typed: Vec<String> = typed
            .iter()
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        while typed
            .first()
            .is_some_and(|word| word.parse::<f64>().is_ok() || word == ":watch")
        {
            typed.remove(0);
        }
        let hint = self.after(&typed).filter(|hint| !hint.is_empty())?;
        let hint = match line.ends_with(char::is_whitespace) {
            true => hint,
            false => format!(" {hint}"),
        };
        // A hint never takes another line of the screen.
        let taken = self.prompt_width.get() + measure_text_width(line);
        let room = usize::from(Term::stdout().size().1).saturating_sub(taken + 1);
        (room > 3).then(|| truncate_str(&hint, room, "...").into_owned())
    }
}

impl Highlighter for PromptHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        Cow::Owned(coloured(line, &self.docs))
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        Cow::Owned(format!("{DIM}{hint}{RESET}"))
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        true
    }
}

/// A command line in colours: its name, tokens of its syntax, numbers, quoted strings.
fn coloured(line: &str, docs: &Docs) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let found = docs.of_line(&words);
    let mut out = String::with_capacity(line.len() * 2);
    let (mut rest, mut index) = (line, 0);
    while !rest.is_empty() {
        let blank = rest.len() - rest.trim_start().len();
        out += &rest[..blank];
        rest = &rest[blank..];
        let end = word_end(rest);
        let word = &rest[..end];
        rest = &rest[end..];
        let is_token = |doc: &crate::docs::Doc| {
            let mut parts = doc
                .syntax
                .split(|c: char| c.is_whitespace() || "[]<>|".contains(c));
            let upper = word.to_ascii_uppercase();
            word.len() > 1 && parts.any(|part| part == upper)
        };
        let colour = match &found {
            _ if word.is_empty() => "",
            Some((_, words)) if index < *words => BOLD,
            None if index == 0 && word.starts_with([':', '?']) || OWN.contains(&word) => BOLD,
            // A name is unknown once something follows it.
            None if index == 0 && !rest.is_empty() && word.parse::<f64>().is_err() => RED,
            _ if word.starts_with(['"', '\'']) => GREEN,
            _ if word.parse::<f64>().is_ok() => CYAN,
            Some((doc, _)) if is_token(doc) => YELLOW,
            _ => "",
        };
        match colour {
            "" => out += word,
            colour => out += &format!("{colour}{word}{RESET}"),
        }
        index += 1;
    }
    out
}

/// Where the word at the front ends; a quoted one has its quotes.
fn word_end(text: &str) -> usize {
    let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) else {
        return text.find(char::is_whitespace).unwrap_or(text.len());
    };
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

impl Validator for PromptHelper {}

impl Helper for PromptHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_coloured_by_what_its_words_are() {
        let docs = Docs::offline();
        assert_eq!(
            coloured("set k \"a b\" ex 10", &docs),
            "\x1b[1mset\x1b[0m k \x1b[32m\"a b\"\x1b[0m \x1b[33mex\x1b[0m \x1b[36m10\x1b[0m"
        );
        assert_eq!(coloured("nosuch ", &docs), "\x1b[31mnosuch\x1b[0m ");
        assert_eq!(
            coloured("config get x", &docs),
            "\x1b[1mconfig\x1b[0m \x1b[1mget\x1b[0m x"
        );
        for odd in ["", "  ", "\"", "a \"b \\\" c", "\u{e9} \u{3000}x"] {
            coloured(odd, &docs);
        }
    }

    #[test]
    fn keys_are_typed_in_quotes_where_they_must_be() {
        assert_eq!(as_typed(b"user:1"), "user:1");
        assert_eq!(as_typed(b"a b"), "\"a b\"");
        assert_eq!(as_typed(b""), "\"\"");
    }

    #[test]
    fn the_word_that_is_typed_begins_after_the_last_blank() {
        let (before, start) = PromptHelper::parts("get \"a b\" us");
        assert_eq!((before.len(), start), (2, 10));
        assert_eq!(PromptHelper::parts("ge"), (vec![], 0));
    }
}
