//! Glob matching of names, for CONFIG GET and for `include`.
//!
//! `*`, `?`, `[abc]`, `[^a-z]` and backslash, as Redis reads them. The matcher remembers only the
//! last star, so the work is bounded by the product of both lengths whatever the pattern is.

/// Whether bytes hold a character that makes them a pattern.
pub fn is_pattern(text: &[u8]) -> bool {
    text.iter().any(|byte| matches!(byte, b'*' | b'?' | b'['))
}

/// Whether the whole of `text` matches; letters compare without case where `fold` says so.
pub fn matches(pattern: &[u8], text: &[u8], fold: bool) -> bool {
    let (mut at, mut pos) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while pos < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, pos));
            at += 1;
            continue;
        }
        if let Some(taken) = one(&pattern[at..], text[pos], fold) {
            at += taken;
            pos += 1;
            continue;
        }
        match &mut star {
            Some((after, from)) => {
                *from += 1;
                (at, pos) = (*after, *from);
            }
            None => return false,
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

/// Matches one byte against the head of a pattern; gives the pattern bytes that this took.
fn one(pattern: &[u8], byte: u8, fold: bool) -> Option<usize> {
    let same = |a: u8| {
        if fold {
            a.eq_ignore_ascii_case(&byte)
        } else {
            a == byte
        }
    };
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'[', ..] => class(pattern, byte, fold),
        [b'\\', literal, ..] => same(*literal).then_some(2),
        [literal, ..] => same(*literal).then_some(1),
    }
}

fn class(pattern: &[u8], byte: u8, fold: bool) -> Option<usize> {
    let lower = |byte: u8| {
        if fold {
            byte.to_ascii_lowercase()
        } else {
            byte
        }
    };
    let byte = lower(byte);
    let mut at = 1;
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut hit = false;
    loop {
        match &pattern[at.min(pattern.len())..] {
            // A class that never closes takes the rest of the pattern.
            [] => break,
            [b']', ..] => {
                at += 1;
                break;
            }
            [b'\\', literal, ..] => {
                hit |= lower(*literal) == byte;
                at += 2;
            }
            [low, b'-', high, ..] => {
                let (low, high) = (lower(*low).min(lower(*high)), lower(*low).max(lower(*high)));
                hit |= (low..=high).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                hit |= lower(*literal) == byte;
                at += 1;
            }
        }
    }
    (hit != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        let yes = |pattern: &str, text: &str| {
            assert!(
                matches(pattern.as_bytes(), text.as_bytes(), true),
                "{pattern} {text}"
            );
        };
        let no = |pattern: &str, text: &str| {
            assert!(
                !matches(pattern.as_bytes(), text.as_bytes(), true),
                "{pattern} {text}"
            );
        };
        yes("*", "");
        yes("max*", "maxmemory");
        yes("MAX*Y", "maxmemory");
        yes("d[bi]*", "dbfilename");
        yes("d[^a-h]r", "dir");
        yes("?ort", "port");
        yes("a\\*b", "a*b");
        yes("*a*b*", "xxaxxbxx");
        no("", "a");
        no("max", "maxmemory");
        no("d[^i]r", "dir");
        no("*a*b", "ba");
        no("[", "b");
    }

    proptest! {
        #[test]
        fn any_pattern_ends(pattern: Vec<u8>, text: Vec<u8>, fold: bool) {
            let _ = matches(&pattern, &text, fold);
        }

        #[test]
        fn a_star_takes_anything(text: Vec<u8>) {
            prop_assert!(matches(b"*", &text, false));
            prop_assert!(matches(b"**", &text, true));
        }
    }
}
