//! Replies that chance or the layout of memory decides: pages of scans, and draws.
//!
//! A scan is followed to its end and only all of its pages together are compared. A draw has to
//! come from what is there, so the members are asked for first. Where it depends on the data
//! whether a reply is left open, the data are asked for first, and then the command is left out.

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

/// A reply that may be left open: what to ask first, and how to read the answer.
pub struct Doubt {
    pub question: Vec<Vec<u8>>,
    is_settled: fn(&Reply) -> bool,
}

impl Doubt {
    /// What the command's reply may depend on beside the data.
    pub fn of(args: &[Vec<u8>]) -> Option<Self> {
        let doubt = |question, is_settled| Self {
            question,
            is_settled,
        };
        by_lex(args)
            .map(|question| doubt(question, is_flat))
            .or_else(|| by_distance(args).map(|question| doubt(question, has_no_ties)))
            .or_else(|| by_weight(args))
    }

    /// Whether, after this answer, only one reply is right.
    pub fn is_settled(&self, answer: &Reply) -> bool {
        (self.is_settled)(answer)
    }
}

fn has(args: &[Vec<u8>], token: &str) -> bool {
    args.iter()
        .any(|word| word.eq_ignore_ascii_case(token.as_bytes()))
}

/// For a search of the nearest places: what tells all distances. Of several places equally far
/// away, which are among the first is left open.
fn by_distance(args: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
    let name = args.first()?.to_ascii_lowercase();
    if !name.starts_with(b"geo") || !has(args, "COUNT") || has(args, "ANY") {
        return None;
    }
    let (mut words, mut at) = match name.as_slice() {
        b"geosearchstore" => (vec![b"GEOSEARCH".to_vec()], 2),
        _ => (vec![args[0].clone()], 1),
    };
    while let Some(word) = args.get(at) {
        let upper = word.to_ascii_uppercase();
        at += match upper.as_slice() {
            b"COUNT" | b"STORE" => 2,
            b"STOREDIST" if name != b"geosearchstore" => 2,
            b"STOREDIST" | b"WITHDIST" | b"WITHCOORD" | b"WITHHASH" => 1,
            _ => {
                words.push(word.clone());
                1
            }
        };
    }
    words.push(b"WITHDIST".to_vec());
    Some(words)
}

/// Whether no two places are equally far away.
fn has_no_ties(with_distances: &Reply) -> bool {
    let places = with_distances.elements().unwrap_or_default();
    let mut distances: Vec<&[u8]> = places
        .iter()
        .filter_map(|place| place.elements()?.get(1)?.bytes())
        .collect();
    distances.sort_unstable();
    distances.is_sorted_by(|a, b| a < b)
}

/// For a sort of texts by other keys that is kept: what weighs the same keeps the order that it
/// had, which a list has and other types have not. Partly sorted, a list has none either.
fn by_weight(args: &[Vec<u8>]) -> Option<Doubt> {
    let name = args.first()?.to_ascii_lowercase();
    let is_open = ["ALPHA", "BY", "STORE"]
        .iter()
        .all(|token| has(args, token));
    if name != b"sort" || !is_open {
        return None;
    }
    Some(Doubt {
        question: vec![b"TYPE".to_vec(), args.get(1)?.clone()],
        is_settled: match has(args, "LIMIT") {
            true => |_| false,
            false => |kind| matches!(kind.bytes(), Some(b"list" | b"none")),
        },
    })
}

/// For a command on a range of members by their letters: what tells its set's scores. With scores
/// that differ, which members are in such a range is left open.
fn by_lex(args: &[Vec<u8>]) -> Option<Vec<Vec<u8>>> {
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
fn is_flat(with_scores: &Reply) -> bool {
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
    fn what_may_be_left_open_is_asked_for_first() {
        let asked = |line: &str| {
            let question = Doubt::of(&args(line))?.question;
            let words = question.iter().map(|word| String::from_utf8_lossy(word));
            Some(words.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(
            asked("geosearchstore d s FROMMEMBER a BYRADIUS 1 M COUNT 2 STOREDIST").as_deref(),
            Some("GEOSEARCH s FROMMEMBER a BYRADIUS 1 M WITHDIST")
        );
        assert_eq!(
            asked("GEORADIUS s 0 0 1 KM STORE d COUNT 2 DESC").as_deref(),
            Some("GEORADIUS s 0 0 1 KM DESC WITHDIST")
        );
        assert_eq!(asked("GEORADIUS s 0 0 1 KM COUNT 2 ANY"), None);
        assert_eq!(
            asked("SORT s ALPHA BY w* STORE d").as_deref(),
            Some("TYPE s")
        );
        assert_eq!(asked("SORT s BY w* STORE d"), None);
        let place = |distance: &str| {
            let parts = ["a", distance].map(|text| Reply::Bulk(text.into()));
            Reply::Array(parts.to_vec())
        };
        assert!(has_no_ties(&Reply::Array(vec![place("1.0"), place("2.0")])));
        assert!(!has_no_ties(&Reply::Array(vec![
            place("1.0"),
            place("2.0"),
            place("1.0")
        ])));
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
