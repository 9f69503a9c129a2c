//! Glob patterns as KEYS, SCAN and PSUBSCRIBE have them: `*`, `?`, `[a-z]`, `[^a]`, `\` escapes.
//!
//! The match is iterative with one point to come back to (the last star), so a pattern of many
//! stars costs at most its length times the text's, never an exponential.

/// Whether `text` matches `pattern`, byte for byte.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    matches_folded(pattern, text, false)
}

/// As [`matches`]; with `fold`, letters match whatever their case.
pub fn matches_folded(pattern: &[u8], text: &[u8], fold: bool) -> bool {
    if text.is_empty() {
        // Even stars want a byte to begin with, but for callers that know a lone one by itself.
        return pattern.is_empty();
    }
    let (mut p, mut t) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    loop {
        if p < pattern.len() && pattern[p] == b'*' {
            while p < pattern.len() && pattern[p] == b'*' {
                p += 1;
            }
            if p == pattern.len() {
                return true;
            }
            back = Some((p, t));
            continue;
        }
        if t < text.len() {
            if p < pattern.len()
                && let (true, next) = one(pattern, p, text[t], fold)
            {
                (p, t) = (next, t + 1);
                continue;
            }
        } else if p >= pattern.len() {
            return true;
        }
        match back {
            Some((after, from)) if from < text.len() => {
                back = Some((after, from + 1));
                (p, t) = (after, from + 1);
            }
            _ => return false,
        }
    }
}

/// Whether `byte` matches the pattern's element at `p`, and where the next element begins.
fn one(pattern: &[u8], p: usize, byte: u8, fold: bool) -> (bool, usize) {
    let same = |a: u8, b: u8| a == b || fold && a.eq_ignore_ascii_case(&b);
    match pattern[p] {
        b'?' => (true, p + 1),
        b'[' => class(pattern, p + 1, byte, fold),
        b'\\' if p + 1 < pattern.len() => (same(pattern[p + 1], byte), p + 2),
        other => (same(other, byte), p + 1),
    }
}

/// The class that begins behind its `[`. One that is never closed ends with the pattern.
fn class(pattern: &[u8], mut p: usize, byte: u8, fold: bool) -> (bool, usize) {
    let lower = |b: u8| if fold { b.to_ascii_lowercase() } else { b };
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    while p < pattern.len() {
        match pattern[p] {
            b'\\' if p + 1 < pattern.len() => {
                found |= lower(pattern[p + 1]) == lower(byte);
                p += 2;
            }
            b']' => return (found != negated, p + 1),
            low if p + 2 < pattern.len() && pattern[p + 1] == b'-' => {
                let (low, high) = (lower(low), lower(pattern[p + 2]));
                let (low, high) = (low.min(high), low.max(high));
                found |= (low..=high).contains(&lower(byte));
                p += 3;
            }
            other => {
                found |= lower(other) == lower(byte);
                p += 1;
            }
        }
    }
    (found != negated, p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_redis_documents() {
        for (pattern, text, want) in [
            ("*", "", false),
            ("h?llo", "hello", true),
            ("h*llo", "heeeello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hbllo", true),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("[abc", "a", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("", "", true),
            ("", "a", false),
            ("*a", "ba", true),
            ("[a-]", "-", false),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                want,
                "{pattern} {text}"
            );
        }
        assert!(matches_folded(b"FOO[A-C]", b"foob", true));
    }

    #[test]
    fn many_stars_are_not_exponential() {
        let pattern = b"*a".repeat(200);
        assert!(!matches(&pattern, &[b'b'; 20_000]));
    }
}
