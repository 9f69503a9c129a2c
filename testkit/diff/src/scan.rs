//! Replies that chance or the layout of memory decides: pages of scans, and draws.
//!
//! A scan is followed to its end and only all of its pages together are compared. A draw has to
//! come from what is there, so the members are asked for first.

use crate::side::{Side, Silence};
use client::Reply;

/// Pages that a scan may have before it is said to never end.
const PAGES_MAX: usize = 20_000;

/// All of a scan.
pub struct Gathered {
    /// The first reply: an error, or the kinds of a page.
    pub first: Reply,
    /// What the pages held, each element (with its value) once.
    pub elements: Vec<Reply>,
}

/// Whether these words are a scan from its start.
pub fn is_scan(args: &[Vec<u8>]) -> bool {
    cursor(args).is_some_and(|at| args.get(at).is_some_and(|word| word == b"0"))
}

/// Where the cursor stands.
fn cursor(args: &[Vec<u8>]) -> Option<usize> {
    match args.first()?.to_ascii_lowercase().as_slice() {
        b"scan" => Some(1),
        b"sscan" | b"hscan" | b"zscan" => Some(2),
        _ => None,
    }
}

/// Follows a scan to its end.
pub fn gather(side: &mut Side, connection: usize, args: &[Vec<u8>]) -> Result<Gathered, Silence> {
    let mut args = args.to_vec();
    let at = cursor(&args).unwrap_or(1);
    let name = args[0].to_ascii_lowercase();
    let has_values = match name.as_slice() {
        b"hscan" => !args
            .iter()
            .any(|word| word.eq_ignore_ascii_case(b"NOVALUES")),
        name => {
            name == b"zscan"
                && !args
                    .iter()
                    .any(|word| word.eq_ignore_ascii_case(b"NOSCORES"))
        }
    };
    let first = side.call(connection, &args)?;
    let mut elements: Vec<Reply> = Vec::new();
    let mut page = first.clone();
    for _ in 0..PAGES_MAX {
        let Reply::Array(parts) = &page else {
            return Ok(Gathered { first, elements });
        };
        let [Reply::Bulk(next), Reply::Array(found)] = parts.as_slice() else {
            return Ok(Gathered { first, elements });
        };
        let step = if has_values { 2 } else { 1 };
        for element in found.chunks(step) {
            let element = Reply::Array(element.to_vec());
            if !elements.contains(&element) {
                elements.push(element);
            }
        }
        if next == b"0" {
            return Ok(Gathered { first, elements });
        }
        args[at].clone_from(next);
        page = side.call(connection, &args)?;
    }
    Err(Silence::Hangs)
}

/// The command that tells what a draw is made from.
pub fn source(args: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let key = args.get(1).cloned().unwrap_or_default();
    let words: Vec<&[u8]> = match args.first()?.to_ascii_lowercase().as_slice() {
        b"srandmember" | b"spop" => vec![b"SMEMBERS", &key],
        b"hrandfield" => vec![b"HKEYS", &key],
        b"zrandmember" => vec![b"ZRANGE", &key, b"0", b"-1"],
        b"randomkey" => vec![b"KEYS", b"*"],
        _ => return None,
    };
    Some(words.into_iter().map(<[u8]>::to_vec).collect())
}

/// For a command on a range of members by their letters: what tells its set's scores. With scores
/// that differ, which members are in such a range is left open.
pub fn by_lex(args: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let name = args.first()?.to_ascii_lowercase();
    let has_bylex = args.iter().any(|word| word.eq_ignore_ascii_case(b"BYLEX"));
    let key = match name.as_slice() {
        b"zrangebylex" | b"zrevrangebylex" | b"zremrangebylex" | b"zlexcount" => args.get(1)?,
        b"zrange" if has_bylex => args.get(1)?,
        b"zrangestore" if has_bylex => args.get(2)?,
        _ => return None,
    };
    let words: [&[u8]; 5] = [b"ZRANGE", key, b"0", b"-1", b"WITHSCORES"];
    Some(words.into_iter().map(<[u8]>::to_vec).collect())
}

/// Whether all scores are the same.
pub fn is_flat(with_scores: &Reply) -> bool {
    let Reply::Array(elements) = with_scores else {
        return true;
    };
    let mut scores = match elements.first().and_then(Reply::elements) {
        Some(_) => elements
            .iter()
            .filter_map(|pair| pair.elements()?.get(1))
            .collect::<Vec<_>>(),
        None => elements.iter().skip(1).step_by(2).collect(),
    }
    .into_iter();
    let first = scores.next();
    scores.all(|score| Some(score) == first)
}

/// Whether each string that was drawn is a member, or, beside one, a score or value.
pub fn drawn_from(drawn: &Reply, members: &Reply) -> Result<(), String> {
    let Some(members) = members.elements() else {
        return Ok(());
    };
    let is_member = |reply: &Reply| members.iter().any(|member| member.bytes() == reply.bytes());
    let wrong = match drawn {
        Reply::Bulk(_) => (!is_member(drawn)).then_some(drawn),
        Reply::Array(elements) => {
            // With scores or values, they alternate (RESP2) or come in pairs (RESP3).
            let stray: Vec<&Reply> = elements
                .iter()
                .map(|element| {
                    element
                        .elements()
                        .and_then(<[Reply]>::first)
                        .unwrap_or(element)
                })
                .filter(|element| !is_member(element))
                .collect();
            (stray.len() * 2 > elements.len()).then(|| stray[0])
        }
        _ => None,
    };
    match wrong {
        Some(stray) => Err(format!("{stray:?} was drawn and is no member")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<Vec<u8>> {
        line.split(' ').map(|word| word.into()).collect()
    }

    #[test]
    fn scans_from_their_start_are_known() {
        assert!(is_scan(&args("SCAN 0 COUNT 1")));
        assert!(is_scan(&args("hscan h 0")));
        assert!(
            !is_scan(&args("SCAN 5")) && !is_scan(&args("GET 0")) && !is_scan(&args("SSCAN s"))
        );
    }

    #[test]
    fn a_draw_is_of_members() {
        let bulk = |text: &str| Reply::Bulk(text.into());
        let members = Reply::Set(vec![bulk("a"), bulk("b")]);
        assert!(drawn_from(&bulk("a"), &members).is_ok());
        assert!(drawn_from(&bulk("c"), &members).is_err());
        assert!(drawn_from(&Reply::NullBulk, &members).is_ok());
        assert!(drawn_from(&Reply::Array(vec![bulk("a"), bulk("1")]), &members).is_ok());
        assert!(drawn_from(&Reply::Array(vec![bulk("c"), bulk("d")]), &members).is_err());
    }
}
