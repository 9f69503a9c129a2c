//! Replies as the command line tool shows them to a person.
//!
//! The notation is redis-cli's without colours, so expectations can be pasted from a terminal. It
//! is stricter in two places where redis-cli shows different replies alike: a verbatim string is
//! `(verbatim txt) "..."`, and a big number is `(big number) 1`.

use client::Reply;
use std::fmt::Write;

/// The text of a reply: one line, or for containers one a leaf.
pub fn render(reply: &Reply) -> String {
    let mut out = String::new();
    write_reply(reply, "", &mut out);
    out
}

/// The three nulls look alike to a person; a script that must tell them apart asks for this.
pub fn null_name(reply: &Reply) -> Option<&'static str> {
    match reply {
        Reply::Null => Some("(null)"),
        Reply::NullBulk => Some("(nil bulk)"),
        Reply::NullArray => Some("(nil array)"),
        _ => None,
    }
}

fn write_reply(reply: &Reply, indent: &str, out: &mut String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match reply {
        Reply::Status(bytes) => out.push_str(&text(bytes)),
        Reply::Error(bytes) => {
            out.push_str("(error) ");
            out.push_str(&text(bytes));
        }
        Reply::Integer(number) => {
            let _ = write!(out, "(integer) {number}");
        }
        Reply::Bulk(bytes) => write_quoted(bytes, out),
        Reply::Null | Reply::NullBulk | Reply::NullArray => out.push_str("(nil)"),
        Reply::Boolean(true) => out.push_str("(true)"),
        Reply::Boolean(false) => out.push_str("(false)"),
        Reply::Double(bytes) => {
            out.push_str("(double) ");
            out.push_str(&text(bytes));
        }
        Reply::BigNumber(bytes) => {
            out.push_str("(big number) ");
            out.push_str(&text(bytes));
        }
        Reply::Verbatim(format, bytes) => {
            let _ = write!(out, "(verbatim {}) ", text(format));
            write_quoted(bytes, out);
        }
        Reply::Array(elements) => write_list(elements, ')', "(empty array)", indent, out),
        Reply::Set(elements) => write_list(elements, '~', "(empty set)", indent, out),
        Reply::Push(elements) => write_list(elements, '>', "(empty push)", indent, out),
        Reply::Map(pairs) => write_map(pairs, indent, out),
    }
}

fn write_list(elements: &[Reply], mark: char, empty: &str, indent: &str, out: &mut String) {
    if elements.is_empty() {
        out.push_str(empty);
        return;
    }
    let width = elements.len().to_string().len();
    let deeper = format!("{indent}{}", " ".repeat(width + 2));
    for (at, element) in elements.iter().enumerate() {
        if at > 0 {
            out.push('\n');
            out.push_str(indent);
        }
        let _ = write!(out, "{:>width$}{mark} ", at + 1);
        write_reply(element, &deeper, out);
    }
}

fn write_map(pairs: &[(Reply, Reply)], indent: &str, out: &mut String) {
    if pairs.is_empty() {
        out.push_str("(empty hash)");
        return;
    }
    let width = pairs.len().to_string().len();
    let deeper = format!("{indent}{}", " ".repeat(width + 2));
    for (at, (key, value)) in pairs.iter().enumerate() {
        if at > 0 {
            out.push('\n');
            out.push_str(indent);
        }
        let _ = write!(out, "{:>width$}# ", at + 1);
        write_reply(key, &deeper, out);
        out.push_str(" => ");
        if matches!(value, Reply::Array(e) | Reply::Set(e) | Reply::Push(e) if !e.is_empty())
            || matches!(value, Reply::Map(pairs) if !pairs.is_empty())
        {
            out.push('\n');
            out.push_str(&deeper);
        }
        write_reply(value, &deeper, out);
    }
}

/// A string in double quotes, its unprintable bytes escaped.
pub fn write_quoted(bytes: &[u8], out: &mut String) {
    out.push('"');
    for byte in bytes {
        match byte {
            b'\\' => out.push_str("\\\\"),
            b'"' => out.push_str("\\\""),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            7 => out.push_str("\\a"),
            8 => out.push_str("\\b"),
            32..127 => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\x{byte:02x}");
            }
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    #[test]
    fn nested_arrays_are_indented_by_their_numbers() {
        let entry = Reply::Array(vec![bulk("1-0"), Reply::Array(vec![bulk("f"), bulk("v")])]);
        let reply = Reply::Array(vec![Reply::Array(vec![
            bulk("s"),
            Reply::Array(vec![entry]),
        ])]);
        let expected =
            "1) 1) \"s\"\n   2) 1) 1) \"1-0\"\n         2) 1) \"f\"\n            2) \"v\"";
        assert_eq!(render(&reply), expected);
    }

    #[test]
    fn ten_elements_are_right_aligned() {
        let reply = Reply::Array((1..=10).map(Reply::Integer).collect());
        let text = render(&reply);
        assert!(text.starts_with(" 1) (integer) 1\n 2) "), "{text}");
        assert!(text.ends_with("\n10) (integer) 10"), "{text}");
    }

    #[test]
    fn bytes_are_escaped() {
        assert_eq!(
            render(&Reply::Bulk(b"a\"\\\n\r\t\x07\x08\x00\xff".to_vec())),
            r#""a\"\\\n\r\t\a\b\x00\xff""#
        );
    }
}
