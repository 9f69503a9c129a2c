//! Words of a configuration line: splitting with quotes, and quoting for writing back.
//!
//! Blanks separate words. Double quotes take `\n \r \t \b \a`, `\xHH` and backslash before any
//! other byte; single quotes take only `\'`. A quote may open inside a word but must be followed
//! by a blank or the end where it closes. A `#` starts a comment only as the first byte of a line,
//! which is the caller's business.
//!
//! # Invariant
//! For any bytes, `split(quote(bytes))` is that one word again (a property test).

/// Splits a line into words; `None` where quotes do not balance.
pub fn split(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
        rest = &rest[blanks..];
        if rest.is_empty() {
            return Some(words);
        }
        let (word, after) = word(rest)?;
        words.push(word);
        rest = after;
    }
}

/// A line of plain words, each quoted only where it would not be read as it is.
pub fn in_line(line: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\'' | b'\\');
    let word = |word: &[u8]| match word.iter().all(is_plain) {
        true => word.to_vec(),
        false => quote(word),
    };
    let words: Vec<_> = line.split(|byte| *byte == b' ').map(word).collect();
    words.join(&b' ')
}

/// Writes bytes as one double-quoted word.
pub fn quote(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 2);
    out.push(b'"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0x08 => out.extend(b"\\b"),
            0x07 => out.extend(b"\\a"),
            b' '..=b'~' => out.push(*byte),
            _ => out.extend(format!("\\x{byte:02x}").bytes()),
        }
    }
    out.push(b'"');
    out
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

/// Takes one word off `line`, which starts with a byte that is not blank.
fn word(line: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut word = Vec::new();
    let mut rest = line;
    while let Some((first, after)) = rest.split_first() {
        match first {
            byte if is_blank(*byte) => break,
            b'"' => {
                rest = double_quoted(after, &mut word)?;
                return closed(rest).then_some((word, rest));
            }
            b'\'' => {
                rest = single_quoted(after, &mut word)?;
                return closed(rest).then_some((word, rest));
            }
            byte => {
                word.push(*byte);
                rest = after;
            }
        }
    }
    Some((word, rest))
}

fn closed(rest: &[u8]) -> bool {
    rest.first().is_none_or(|byte| is_blank(*byte))
}

fn double_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'"', after @ ..] => return Some(after),
            [b'\\', b'x', high, low, after @ ..]
                if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex(*high) << 4 | hex(*low));
                rest = after;
            }
            [b'\\', escaped, after @ ..] => {
                word.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => *other,
                });
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn single_quoted<'a>(mut rest: &'a [u8], word: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        match rest {
            [b'\'', after @ ..] => return Some(after),
            [b'\\', b'\'', after @ ..] => {
                word.push(b'\'');
                rest = after;
            }
            [byte, after @ ..] => {
                word.push(*byte);
                rest = after;
            }
            [] => return None,
        }
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => digit - b'A' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(line: &str) -> Option<Vec<String>> {
        let words = split(line.as_bytes())?;
        Some(
            words
                .into_iter()
                .map(|word| String::from_utf8(word).expect("text"))
                .collect(),
        )
    }

    #[test]
    fn words_are_split_at_blanks_and_quotes() {
        let some = |list: &[&str]| Some(list.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(words(""), some(&[]));
        assert_eq!(words(" \t port\t 7000 \r\n"), some(&["port", "7000"]));
        assert_eq!(words(r#"save "" x"#), some(&["save", "", "x"]));
        assert_eq!(
            words(r#"a "\x41\n\"b" 'it\'s "x'"#),
            some(&["a", "A\n\"b", "it's \"x"])
        );
        assert_eq!(words(r#"ab"c d" e"#), some(&["abc d", "e"]));
        assert_eq!(words(r#"a "b\xzz""#), some(&["a", "bxzz"]));
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in ["a \"b", "a 'b", "\"a\"b", "a'b", "'a'b", "\"\\"] {
            assert_eq!(words(line), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn a_quoted_word_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(split(&quote(&bytes)), Some(vec![bytes]));
        }

        #[test]
        fn any_line_is_split_or_refused(bytes: Vec<u8>) {
            let _ = split(&bytes);
        }
    }
}
