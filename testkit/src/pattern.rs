//! Expected text against actual text, with holes for what differs from run to run.
//!
//! A hole in an expected line is `{*}` (anything), `{int}`, `{float}`, `{id}` (a stream's),
//! `{1..9}` (an integer in a range, ends included) or `{$name}` (what was captured). `{name=*}` and
//! so on capture what the hole matched.

use crate::quote::Captured;

/// Matches a whole line; what its holes capture is added to `captured` only on success.
pub fn matches(pattern: &str, line: &str, captured: &mut Captured) -> bool {
    let mut found = Vec::new();
    let matched = walk(pattern, line, captured, &mut found);
    if matched {
        captured.extend(found);
    }
    matched
}

enum Hole<'a> {
    Anything,
    Integer,
    Float,
    StreamId,
    Range(i64, i64),
    Captured(&'a str),
}

fn hole(inside: &str) -> Option<(Option<&str>, Hole<'_>)> {
    if let Some(name) = inside.strip_prefix('$') {
        return Some((None, Hole::Captured(name)));
    }
    let (name, kind) = match inside.split_once('=') {
        Some((name, kind)) => (Some(name), kind),
        None => (None, inside),
    };
    let hole = match kind {
        "*" => Hole::Anything,
        "int" => Hole::Integer,
        "float" => Hole::Float,
        "id" => Hole::StreamId,
        _ => {
            let (low, high) = kind.split_once("..")?;
            Hole::Range(low.parse().ok()?, high.parse().ok()?)
        }
    };
    Some((name, hole))
}

impl Hole<'_> {
    fn fits(&self, text: &str, captured: &Captured) -> bool {
        match self {
            Self::Anything => true,
            Self::Integer => text.parse::<i128>().is_ok(),
            Self::Float => text.parse::<f64>().is_ok(),
            Self::StreamId => text
                .split_once('-')
                .is_some_and(|(ms, seq)| ms.parse::<u64>().is_ok() && seq.parse::<u64>().is_ok()),
            Self::Range(low, high) => text
                .parse::<i64>()
                .is_ok_and(|number| (low..=high).contains(&&number)),
            Self::Captured(name) => captured.get(*name).is_some_and(|value| value == text),
        }
    }
}

/// Recurses once a hole of the pattern, which a person wrote on one line.
fn walk(pattern: &str, line: &str, captured: &Captured, found: &mut Vec<(String, String)>) -> bool {
    let mut from = 0;
    let (open, close, name, hole) = loop {
        let Some(open) = pattern[from..].find('{').map(|at| at + from) else {
            return pattern == line;
        };
        let Some(close) = pattern[open..].find('}').map(|at| at + open) else {
            return pattern == line;
        };
        match hole(&pattern[open + 1..close]) {
            Some((name, hole)) => break (open, close, name, hole),
            None => from = open + 1,
        }
    };
    let Some(rest) = line.strip_prefix(&pattern[..open]) else {
        return false;
    };
    let ends = (0..=rest.len())
        .rev()
        .filter(|end| rest.is_char_boundary(*end));
    for end in ends {
        if !hole.fits(&rest[..end], captured) {
            continue;
        }
        let kept = found.len();
        if let Some(name) = name {
            found.push((name.to_owned(), rest[..end].to_owned()));
        }
        if walk(&pattern[close + 1..], &rest[end..], captured, found) {
            return true;
        }
        found.truncate(kept);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_match_what_they_say() {
        let yes = |pattern: &str, line: &str| matches(pattern, line, &mut Captured::new());
        assert!(yes("OK", "OK"));
        assert!(!yes("OK", "OKAY"));
        assert!(yes("(integer) {90..100}", "(integer) 100"));
        assert!(!yes("(integer) {90..100}", "(integer) 101"));
        assert!(yes("\"{id}\"", "\"1526919030474-55\""));
        assert!(!yes("\"{id}\"", "\"1526919030474\""));
        assert!(yes("a{*}b{int}", "a x b-3"));
        assert!(yes("{float}s", "1.5s"));
        assert!(yes("{tag}x", "{tag}x"));
        assert!(yes("{", "{"));
    }

    #[test]
    fn captures_are_kept_on_success_only() {
        let mut captured = Captured::new();
        assert!(!matches("{a=int}x", "5y", &mut captured));
        assert!(captured.is_empty());
        assert!(matches("\"{a=id}\"", "\"5-1\"", &mut captured));
        assert_eq!(captured["a"], "5-1");
        assert!(matches("<{$a}>", "<5-1>", &mut captured));
        assert!(!matches("<{$a}>", "<5-2>", &mut captured));
    }
}
