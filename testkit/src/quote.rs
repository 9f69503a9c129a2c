//! Command lines as a person types them, with the tool's quoting.

use std::collections::BTreeMap;

/// Longest argument that `{text*count}` may make.
const REPEAT_MAX: usize = 64 << 20;

/// What a script has captured so far, by name.
pub type Captured = BTreeMap<String, String>;

/// Splits a line into arguments. Double quotes know `\n`, `\r`, `\t`, `\a`, `\b`, `\xHH`, `\"` and
/// `\\`; single quotes know `\'`. An error says what is wrong with the line.
pub fn split(line: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut rest = line.trim();
    let mut args = Vec::new();
    while !rest.is_empty() {
        let (arg, after) = match rest.as_bytes()[0] {
            b'"' => double_quoted(&rest[1..])?,
            b'\'' => single_quoted(&rest[1..])?,
            _ => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (rest.as_bytes()[..end].to_vec(), &rest[end..])
            }
        };
        if !(after.is_empty() || after.starts_with(char::is_whitespace)) {
            return Err(format!(
                "a closing quote must be followed by a blank: {line}"
            ));
        }
        args.push(arg);
        rest = after.trim_start();
    }
    Ok(args)
}

fn double_quoted(text: &str) -> Result<(Vec<u8>, &str), String> {
    let bytes = text.as_bytes();
    let mut arg = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', _) => return Ok((arg, &text[at + 1..])),
            (b'\\', Some(b'x')) => {
                let digits = text.get(at + 2..at + 4).ok_or("\\x needs two digits")?;
                arg.push(u8::from_str_radix(digits, 16).map_err(|e| format!("\\x{digits}: {e}"))?);
                at += 4;
                continue;
            }
            (b'\\', Some(escaped)) => {
                arg.push(match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'a' => 7,
                    b'b' => 8,
                    other => *other,
                });
                at += 2;
                continue;
            }
            _ => arg.push(*byte),
        }
        at += 1;
    }
    Err(format!("a quote is not closed: \"{text}"))
}

fn single_quoted(text: &str) -> Result<(Vec<u8>, &str), String> {
    let bytes = text.as_bytes();
    let mut arg = Vec::new();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'\'', _) => return Ok((arg, &text[at + 1..])),
            (b'\\', Some(b'\'')) => {
                arg.push(b'\'');
                at += 1;
            }
            _ => arg.push(*byte),
        }
        at += 1;
    }
    Err(format!("a quote is not closed: '{text}"))
}

/// Fills in `{$name}` (something captured) and `{text*count}` (text, that many times).
pub fn fill(arg: &[u8], captured: &Captured) -> Result<Vec<u8>, String> {
    let Ok(text) = std::str::from_utf8(arg) else {
        return Ok(arg.to_vec());
    };
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.extend_from_slice(&rest.as_bytes()[..open]);
        let Some(close) = rest[open..].find('}').map(|at| at + open) else {
            rest = &rest[open..];
            break;
        };
        let inside = &rest[open + 1..close];
        if let Some(name) = inside.strip_prefix('$') {
            let value = captured
                .get(name)
                .ok_or_else(|| format!("nothing captured as {name}"))?;
            out.extend_from_slice(value.as_bytes());
        } else if let Some((word, count)) = repeated(inside) {
            if word.len().saturating_mul(count) > REPEAT_MAX {
                return Err(format!("{{{inside}}} is longer than {REPEAT_MAX} bytes"));
            }
            out.extend_from_slice(&word.as_bytes().repeat(count));
        } else {
            out.extend_from_slice(&rest.as_bytes()[open..=close]);
        }
        rest = &rest[close + 1..];
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

fn repeated(inside: &str) -> Option<(&str, usize)> {
    let (word, count) = inside.rsplit_once('*')?;
    Some((word, count.parse().ok()?)).filter(|_| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        let args = split(line).expect("a good line");
        args.iter()
            .map(|arg| String::from_utf8_lossy(arg).into_owned())
            .collect()
    }

    #[test]
    fn quotes_and_escapes_are_the_tools() {
        assert_eq!(
            words(r#" SET  k "a b\n\x41\"" 'it\'s "x"' "" "#),
            ["SET", "k", "a b\nA\"", "it's \"x\"", ""]
        );
        assert_eq!(split(r#""\xff\x00""#), Ok(vec![vec![0xff, 0]]));
        assert!(split(r#"SET "a"#).is_err());
        assert!(split(r#"SET "a"b"#).is_err());
        assert!(split(r"SET 'a").is_err());
    }

    #[test]
    fn braces_are_filled_in() {
        let captured = Captured::from([("id".to_owned(), "1-0".to_owned())]);
        let fill = |text: &str| {
            fill(text.as_bytes(), &captured).map(|bytes| String::from_utf8(bytes).expect("text"))
        };
        assert_eq!(fill("x{$id}y"), Ok("x1-0y".to_owned()));
        assert_eq!(fill("{ab*3}"), Ok("ababab".to_owned()));
        assert_eq!(fill("{tag}key{"), Ok("{tag}key{".to_owned()));
        assert!(fill("{$none}").is_err());
        assert!(fill("{a*99999999999}").is_err());
    }
}
