//! Replies to text, in the forms of Redis's tools.
//!
//! Formatted is for people, raw for programs that want the bytes, and CSV and JSON for those that
//! read these. JSON is always valid, which Redis's is not: an error is an object with the member
//! `error`, numbers that JSON lacks are strings, keys of objects are strings, and bytes that are
//! no UTF-8 are replaced, or in the quoted form spelled out.

use crate::words::quote;
use client::Reply;

/// How replies are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Formatted,
    Raw,
    Csv,
    Json,
    QuotedJson,
}

/// What stands between the elements of a raw array, and after a raw reply.
#[derive(Clone, Debug)]
pub struct Delimiters {
    pub element: Vec<u8>,
    pub reply: Vec<u8>,
}

impl Default for Delimiters {
    fn default() -> Self {
        Self {
            element: b"\n".to_vec(),
            reply: b"\n".to_vec(),
        }
    }
}

/// A whole reply, with what ends it.
pub fn render(reply: &Reply, format: Format, delimiters: &Delimiters) -> Vec<u8> {
    let mut out = Vec::new();
    match format {
        Format::Formatted => formatted(reply, "", &mut out),
        Format::Raw => {
            raw(reply, &delimiters.element, &mut out);
            out.extend(&delimiters.reply);
        }
        Format::Csv => {
            csv(reply, &mut out);
            out.push(b'\n');
        }
        Format::Json | Format::QuotedJson => {
            json(reply, format == Format::QuotedJson, &mut out);
            out.push(b'\n');
        }
    }
    out
}

/// A text that is shown as it is whatever the format: INFO and such. JSON stays JSON.
pub fn render_text(reply: &Reply, format: Format, delimiters: &Delimiters) -> Vec<u8> {
    match format {
        Format::Json | Format::QuotedJson => render(reply, format, delimiters),
        _ => {
            let mut out = Vec::new();
            raw(reply, &delimiters.element, &mut out);
            out
        }
    }
}

/// For people: types are told apart, nesting is indented under `prefix`.
pub fn formatted(reply: &Reply, prefix: &str, out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => line(out, b"(error) ", text),
        Reply::Status(text) | Reply::Verbatim(_, text) => line(out, b"", text),
        Reply::Integer(number) => line(out, b"(integer) ", number.to_string().as_bytes()),
        Reply::BigNumber(text) => line(out, b"(integer) ", text),
        Reply::Double(text) => line(out, b"(double) ", text),
        Reply::Boolean(true) => line(out, b"(true)", b""),
        Reply::Boolean(false) => line(out, b"(false)", b""),
        Reply::Null | Reply::NullBulk | Reply::NullArray => line(out, b"(nil)", b""),
        Reply::Bulk(text) => {
            quote(text, out);
            out.push(b'\n');
        }
        Reply::Map(pairs) => formatted_map(pairs, prefix, out),
        Reply::Array(elements) => list(elements, ')', "(empty array)", prefix, out),
        Reply::Push(elements) => list(elements, ')', "(empty push)", prefix, out),
        Reply::Set(elements) => list(elements, '~', "(empty set)", prefix, out),
    }
}

fn line(out: &mut Vec<u8>, kind: &[u8], text: &[u8]) {
    out.extend(kind);
    out.extend(text);
    out.push(b'\n');
}

fn list(elements: &[Reply], mark: char, empty: &str, prefix: &str, out: &mut Vec<u8>) {
    if elements.is_empty() {
        return line(out, empty.as_bytes(), b"");
    }
    let width = elements.len().to_string().len();
    let inner = format!("{prefix}{:1$}", "", width + 2);
    for (at, element) in elements.iter().enumerate() {
        let indent = if at == 0 { "" } else { prefix };
        out.extend(format!("{indent}{:width$}{mark} ", at + 1).bytes());
        formatted(element, &inner, out);
    }
}

fn formatted_map(pairs: &[(Reply, Reply)], prefix: &str, out: &mut Vec<u8>) {
    if pairs.is_empty() {
        return line(out, b"(empty hash)", b"");
    }
    let width = pairs.len().to_string().len();
    let inner = format!("{prefix}{:1$}", "", width + 2);
    for (at, (key, value)) in pairs.iter().enumerate() {
        let indent = if at == 0 { "" } else { prefix };
        out.extend(format!("{indent}{:width$}# ", at + 1).bytes());
        formatted(key, &inner, out);
        out.pop();
        out.extend(b" => ");
        let mut text = Vec::new();
        formatted(value, &inner, &mut text);
        // What takes several lines begins on one of its own.
        let several = text.iter().filter(|byte| **byte == b'\n').count() > 1;
        if several && is_container(value) {
            out.push(b'\n');
            out.extend(inner.bytes());
        }
        out.extend(text);
    }
}

fn is_container(reply: &Reply) -> bool {
    matches!(reply, Reply::Map(_)) || reply.elements().is_some()
}

/// For programs: nothing but the bytes, elements parted by `delimiter`.
pub fn raw(reply: &Reply, delimiter: &[u8], out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => line(out, b"", text),
        Reply::Null | Reply::NullBulk | Reply::NullArray => {}
        Reply::Integer(number) => out.extend(number.to_string().bytes()),
        Reply::Boolean(true) => out.extend(b"(true)"),
        Reply::Boolean(false) => out.extend(b"(false)"),
        Reply::Status(text)
        | Reply::Bulk(text)
        | Reply::Verbatim(_, text)
        | Reply::Double(text)
        | Reply::BigNumber(text) => out.extend(text),
        Reply::Array(elements) | Reply::Set(elements) | Reply::Push(elements) => {
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.extend(delimiter);
                }
                raw(element, delimiter, out);
            }
        }
        Reply::Map(pairs) => {
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.extend(delimiter);
                }
                raw(key, delimiter, out);
                out.push(b' ');
                raw(value, delimiter, out);
            }
        }
    }
}

fn csv(reply: &Reply, out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => {
            out.extend(b"ERROR,");
            quote(text, out);
        }
        Reply::Null | Reply::NullBulk | Reply::NullArray => out.extend(b"NULL"),
        Reply::Boolean(true) => out.extend(b"true"),
        Reply::Boolean(false) => out.extend(b"false"),
        Reply::Status(text) | Reply::Bulk(text) | Reply::Verbatim(_, text) => quote(text, out),
        Reply::Integer(_) | Reply::Double(_) | Reply::BigNumber(_) => raw(reply, b"", out),
        Reply::Array(elements) | Reply::Set(elements) | Reply::Push(elements) => {
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                csv(element, out);
            }
        }
        Reply::Map(pairs) => {
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                csv(key, out);
                out.push(b',');
                csv(value, out);
            }
        }
    }
}

fn json(reply: &Reply, quoted: bool, out: &mut Vec<u8>) {
    match reply {
        Reply::Error(text) => {
            out.extend(b"{\"error\":");
            json_string(text, quoted, out);
            out.push(b'}');
        }
        Reply::Null | Reply::NullBulk | Reply::NullArray => out.extend(b"null"),
        Reply::Boolean(true) => out.extend(b"true"),
        Reply::Boolean(false) => out.extend(b"false"),
        Reply::Integer(number) => out.extend(number.to_string().bytes()),
        Reply::Double(text) | Reply::BigNumber(text) if is_json_number(text) => out.extend(text),
        Reply::Status(text)
        | Reply::Bulk(text)
        | Reply::Verbatim(_, text)
        | Reply::Double(text)
        | Reply::BigNumber(text) => json_string(text, quoted, out),
        Reply::Array(elements) | Reply::Set(elements) | Reply::Push(elements) => {
            out.push(b'[');
            for (at, element) in elements.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                json(element, quoted, out);
            }
            out.push(b']');
        }
        Reply::Map(pairs) => {
            out.push(b'{');
            for (at, (key, value)) in pairs.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                json_key(key, quoted, out);
                out.push(b':');
                json(value, quoted, out);
            }
            out.push(b'}');
        }
    }
}

/// The name of a member: what is no string is named by its own JSON.
fn json_key(key: &Reply, quoted: bool, out: &mut Vec<u8>) {
    let mut text = Vec::new();
    json(key, quoted, &mut text);
    match text.first() {
        Some(b'"') => out.extend(text),
        _ => json_string(&text, quoted, out),
    }
}

fn json_string(bytes: &[u8], quoted: bool, out: &mut Vec<u8>) {
    if quoted {
        // What `quote` writes is ASCII; its outer quotes become those of the string.
        let mut text = Vec::new();
        quote(bytes, &mut text);
        return escape(&String::from_utf8_lossy(&text[1..text.len() - 1]), out);
    }
    escape(&String::from_utf8_lossy(bytes), out);
}

fn escape(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'\\' | b'"' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x08 => out.extend(b"\\b"),
            0x0c => out.extend(b"\\f"),
            0..=0x1f => out.extend(format!("\\u{byte:04x}").bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// By JSON's grammar: an optional minus, digits without a leading zero, fraction, exponent.
fn is_json_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text[0] == b'0') {
        return false;
    }
    let mut rest = &text[whole..];
    if let [b'.', after @ ..] = rest {
        let count = digits(after);
        if count == 0 {
            return false;
        }
        rest = &after[count..];
    }
    if let [b'e' | b'E', after @ ..] = rest {
        let after = match after {
            [b'+' | b'-', after @ ..] => after,
            _ => after,
        };
        let count = digits(after);
        if count == 0 {
            return false;
        }
        rest = &after[count..];
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests;
