//! Lines to arguments and back, by the rules of Redis's tools.
//!
//! Words are parted by white space. In double quotes a backslash begins an escape: the usual
//! letters, `\xHH`, and otherwise the character itself. In single quotes only `\'` is one. A
//! closing quote ends its word.

/// The words of a line, or `None` where a quote is not closed or something follows a closing one.
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line.trim_ascii_start();
    while !rest.is_empty() {
        let (word, after) = next(rest)?;
        words.push(word);
        rest = after.trim_ascii_start();
    }
    Some(words)
}

/// One argument that is quoted, or stands without quotes as it is; `None` where a quote is open.
pub fn unquote(text: &[u8]) -> Option<Vec<u8>> {
    match text.first() {
        Some(b'"' | b'\'') => {}
        _ if text.iter().any(|byte| matches!(byte, b'"' | b'\'')) => return None,
        _ => return Some(text.to_vec()),
    }
    let mut words = split(text)?;
    match words.len() {
        1 => words.pop(),
        _ => None,
    }
}

/// Appends text in double quotes, everything but printable ASCII escaped.
pub fn quote(bytes: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in bytes {
        match byte {
            b'\\' | b'"' => out.extend([b'\\', byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x07 => out.extend(b"\\a"),
            0x08 => out.extend(b"\\b"),
            b' '..=b'~' => out.push(byte),
            _ => out.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    out.push(b'"');
}

/// The same as text.
pub fn quoted(bytes: &[u8]) -> String {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    quote(bytes, &mut out);
    out.into_iter().map(char::from).collect()
}

/// The word at the front, and what follows it.
fn next(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = text;
    loop {
        match rest {
            [] => return Some((word, rest)),
            [byte, ..] if byte.is_ascii_whitespace() => return Some((word, rest)),
            [quote @ (b'"' | b'\''), after @ ..] => {
                let after = match quote {
                    b'"' => double_quoted(after, &mut word)?,
                    _ => single_quoted(after, &mut word)?,
                };
                let ends = after.first().is_none_or(u8::is_ascii_whitespace);
                return ends.then_some((word, after));
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
        }
    }
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(digit(*high) << 4 | digit(*low));
                after
            }
            [b'\\', byte, after @ ..] => {
                word.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                after
            }
            [byte, after @ ..] => {
                word.push(*byte);
                after
            }
        }
    }
}

fn digit(hex: u8) -> u8 {
    match hex {
        b'0'..=b'9' => hex - b'0',
        _ => (hex | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = split(line.as_bytes())?;
        Some(
            words
                .iter()
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect(),
        )
    }

    #[test]
    fn quotes_group_and_escapes_are_undone() {
        assert_eq!(
            words(r#"  set "a b" 'c "d' e"f"  "#),
            Some(["set", "a b", "c \"d", "ef"].map(String::from).to_vec())
        );
        assert_eq!(
            split(br#""\x00\xfF\n\q\"" '\n\''"#),
            Some(vec![b"\x00\xff\nq\"".to_vec(), b"\\n'".to_vec()])
        );
        assert_eq!(words(""), Some(vec![]));
        assert_eq!(words("\"\""), Some(vec![String::new()]));
    }

    #[test]
    fn what_is_not_closed_is_refused() {
        for line in ["\"a", "'a", "a\"b", "\"a\"b", "'a'b", "\"a\\"] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    #[test]
    fn what_is_quoted_reads_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(split(quoted(&bytes).as_bytes()), Some(vec![bytes]));
        assert_eq!(quoted(b"\x07\x08\x1b~\x7f"), r#""\a\b\x1b~\x7f""#);
    }

    #[test]
    fn one_argument_may_be_quoted() {
        assert_eq!(unquote(b"\"a\\x00\""), Some(b"a\0".to_vec()));
        assert_eq!(unquote(b"a b"), Some(b"a b".to_vec()));
        assert_eq!(unquote(b"ab\"c"), None);
        assert_eq!(unquote(b"\"a\" b"), None);
    }
}
