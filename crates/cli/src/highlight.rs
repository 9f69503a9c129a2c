//! Colours: of replies by their types, and of command lines as they are typed.

use crate::render::formatted;
use client::Reply;

pub const RESET: &str = "\x1b[0m";
pub const BOLD: &str = "\x1b[1m";
pub const DIM: &str = "\x1b[90m";
pub const RED: &str = "\x1b[31m";
pub const GREEN: &str = "\x1b[32m";
pub const YELLOW: &str = "\x1b[33m";
pub const CYAN: &str = "\x1b[36m";

/// A reply for people, each value in the colour of its type. Colours begin and end within a line,
/// so that what is read without them is the plain form to the byte.
pub fn reply(reply: &Reply) -> Vec<u8> {
    let mut plain = Vec::new();
    formatted(reply, "", &mut plain);
    if matches!(reply, Reply::Status(_) | Reply::Verbatim(..)) {
        return plain;
    }
    let mut out = Vec::with_capacity(plain.len() * 2);
    for line in plain.split_inclusive(|byte| *byte == b'\n') {
        colour_line(line, &mut out);
    }
    out
}

/// One line: numbers and their marks, then a value, then perhaps ` => ` and another.
fn colour_line(line: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    loop {
        let spaces = rest.iter().take_while(|byte| **byte == b' ').count();
        let digits = rest[spaces..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let end = spaces + digits;
        match rest.get(end..end + 2) {
            Some([b')' | b'#' | b'~', b' ']) if digits > 0 => {
                paint(DIM, &rest[..end + 2], out);
                rest = &rest[end + 2..];
            }
            _ => break,
        }
    }
    let length = value_length(rest);
    let (value, after) = rest.split_at(length);
    match value.first() {
        Some(b'"') => paint(GREEN, value, out),
        Some(b'(') if value.starts_with(b"(error)") => paint(RED, value, out),
        Some(b'(') if value.starts_with(b"(nil)") || value.starts_with(b"(empty") => {
            paint(DIM, value, out);
        }
        Some(b'(') => paint(CYAN, value, out),
        _ => out.extend(value),
    }
    match after.strip_prefix(b" => ") {
        Some(second) if length > 0 => {
            paint(DIM, b" => ", out);
            colour_line(second, out);
        }
        _ => out.extend(after),
    }
}

/// How long the value at the front is: a quoted string to its quote, others to the arrow or end.
fn value_length(text: &[u8]) -> usize {
    if text.first() == Some(&b'"') {
        let mut at = 1;
        while at < text.len() {
            match text[at] {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        return text.len();
    }
    let arrow = text.windows(4).position(|window| window == b" => ");
    let end = text.len() - usize::from(text.last() == Some(&b'\n'));
    arrow.unwrap_or(end)
}

fn paint(colour: &str, text: &[u8], out: &mut Vec<u8>) {
    out.extend(colour.bytes());
    out.extend(text);
    out.extend(RESET.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_colours(bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let mut plain = String::new();
        let mut rest = text.as_str();
        while let Some(at) = rest.find("\x1b[") {
            plain.push_str(&rest[..at]);
            let end = rest[at..].find('m').expect("a colour ends");
            rest = &rest[at + end + 1..];
        }
        plain + rest
    }

    #[test]
    fn colours_add_nothing_else() {
        let text = |text: &str| Reply::Bulk(text.into());
        let odd = Reply::Array(vec![
            text("a => \"b\" \\"),
            Reply::Integer(5),
            Reply::Null,
            Reply::Error("ERR => x".into()),
            Reply::Status("1) \"x".into()),
            Reply::Map(vec![
                (text("k"), Reply::Array(vec![text("v"), Reply::Map(vec![])])),
                (Reply::Integer(1), Reply::Set(vec![])),
            ]),
        ]);
        let mut plain = Vec::new();
        formatted(&odd, "", &mut plain);
        let coloured = reply(&odd);
        assert_eq!(without_colours(&coloured).into_bytes(), plain);
        let shown = String::from_utf8_lossy(&coloured).into_owned();
        assert!(shown.contains("\x1b[36m(integer) 5\x1b[0m"), "{shown}");
    }
}
