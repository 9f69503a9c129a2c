//! When two replies say the same.
//!
//! Most must be equal to the byte and the type. Where the real server promises no order, elements
//! are compared as a bag; where time passes, numbers may lie a little apart; where chance decides,
//! only the shape is compared here, and the player looks closer.

use client::Reply;

/// How far apart moments may lie, in milliseconds.
const CLOSE_MS: i64 = 4_000;
/// Integers above it are taken for Unix milliseconds.
const MOMENT_MS: i64 = 1_000_000_000_000;

/// How the replies of a command are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Exact,
    /// The elements in any order.
    AnyOrder,
    /// Keys and values, in RESP2 by turns, in any order.
    Pairs,
    /// Integers may lie so far apart where neither is negative.
    Within(i64),
    /// Streams' facts and pending entries: times and idle times may lie apart.
    Stream,
    /// The same kind of reply with as many elements.
    Shape,
    /// Entries of ACL LOG: what does not number clients or tell times.
    Refusals,
    /// Errors must be equal, all else goes.
    Errors,
}

/// How to compare the replies of a call. `is_unordered`: the facts say so.
pub fn how(args: &[Vec<u8>], is_unordered: bool) -> How {
    let word = |at: usize| {
        let bytes = args.get(at).map(Vec::as_slice).unwrap_or_default();
        String::from_utf8_lossy(bytes).to_lowercase()
    };
    let has = |token: &str| {
        args.iter()
            .any(|arg| arg.eq_ignore_ascii_case(token.as_bytes()))
    };
    let (first, second) = (word(0), word(1));
    match (first.as_str(), second.as_str()) {
        ("hgetall", _) => How::Pairs,
        ("ttl" | "expiretime" | "httl" | "hexpiretime", _) => How::Within(CLOSE_MS / 1000),
        ("pttl" | "pexpiretime" | "hpttl" | "hpexpiretime", _) => How::Within(CLOSE_MS),
        ("object", "idletime") => How::Within(CLOSE_MS / 1000),
        ("xpending" | "xinfo", _) => How::Stream,
        ("xreadgroup", _) if has("CLAIM") => How::Stream,
        ("srandmember" | "hrandfield" | "zrandmember" | "spop" | "dump", _) => How::Shape,
        ("randomkey", _) => How::Shape,
        ("acl", "log") => How::Refusals,
        ("acl", "cat" | "users" | "list") => How::AnyOrder,
        ("function", "list") => How::Shape,
        ("hello" | "scan" | "sscan" | "hscan" | "zscan", _) => How::Errors,
        ("pubsub", "channels" | "shardchannels") => How::AnyOrder,
        // Nothing is sorted by a pattern without a star, and by others much weighs the same.
        ("sort" | "sort_ro", _) if has("BY") => match has("LIMIT") {
            true => How::Shape,
            false => How::AnyOrder,
        },
        (
            "georadius"
            | "georadius_ro"
            | "georadiusbymember"
            | "georadiusbymember_ro"
            | "geosearch",
            _,
        ) if !has("ASC") && !has("DESC") && !has("COUNT") => How::AnyOrder,
        _ if is_unordered => How::AnyOrder,
        _ => How::Exact,
    }
}

/// The ids that each side made up, in the order in which it did.
#[derive(Debug, Default)]
pub struct Ids {
    pub ours: Vec<Vec<u8>>,
    pub theirs: Vec<Vec<u8>>,
}

impl Ids {
    fn are_same(&self, ours: &[u8], theirs: &[u8]) -> bool {
        let mut pairs = self.ours.iter().zip(&self.theirs);
        ours == theirs || pairs.any(|(a, b)| a == ours && b == theirs)
    }
}

/// Whether the two say the same.
pub fn same(how: How, ours: &Reply, theirs: &Reply, ids: &Ids) -> bool {
    if let (Reply::Error(a), Reply::Error(b)) = (ours, theirs) {
        return a == b;
    }
    if ours.is_error() != theirs.is_error() {
        return false;
    }
    match how {
        How::Exact => equal(ours, theirs, ids),
        How::AnyOrder => any_order(ours, theirs, ids),
        How::Pairs => match (ours, theirs) {
            (Reply::Array(a), Reply::Array(b)) => bag(&flat_pairs(a), &flat_pairs(b), ids),
            _ => any_order(ours, theirs, ids),
        },
        How::Within(distance) => within(ours, theirs, distance),
        How::Stream => stream(ours, theirs, ids, b"", false),
        How::Shape => shape(ours, theirs),
        How::Refusals => match (ours.elements(), theirs.elements()) {
            (Some(a), Some(b)) => a.iter().map(refusal).eq(b.iter().map(refusal)),
            _ => ours == theirs,
        },
        How::Errors => true,
    }
}

/// What two servers agree on of an entry of ACL LOG.
fn refusal(entry: &Reply) -> Vec<(Reply, Reply)> {
    let fields = match entry {
        Reply::Map(fields) => fields.clone(),
        other => {
            let flat = other.elements().unwrap_or_default().chunks_exact(2);
            flat.map(|pair| (pair[0].clone(), pair[1].clone()))
                .collect()
        }
    };
    let is_kept = |name: &Reply| {
        let name = name.bytes().unwrap_or_default();
        [&b"count"[..], b"reason", b"context", b"object", b"username"].contains(&name)
    };
    fields
        .into_iter()
        .filter(|(name, _)| is_kept(name))
        .collect()
}

fn equal(ours: &Reply, theirs: &Reply, ids: &Ids) -> bool {
    match (ours, theirs) {
        (Reply::Bulk(a), Reply::Bulk(b)) => ids.are_same(a, b),
        (Reply::Array(a), Reply::Array(b))
        | (Reply::Set(a), Reply::Set(b))
        | (Reply::Push(a), Reply::Push(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b, ids))
        }
        (Reply::Map(a), Reply::Map(b)) => {
            let mut pairs = a.iter().zip(b);
            a.len() == b.len()
                && pairs.all(|(a, b)| equal(&a.0, &b.0, ids) && equal(&a.1, &b.1, ids))
        }
        _ => ours == theirs,
    }
}

fn any_order(ours: &Reply, theirs: &Reply, ids: &Ids) -> bool {
    match (ours, theirs) {
        (Reply::Array(a), Reply::Array(b)) | (Reply::Set(a), Reply::Set(b)) => bag(a, b, ids),
        (Reply::Map(a), Reply::Map(b)) => bag(&pairs(a), &pairs(b), ids),
        _ => equal(ours, theirs, ids),
    }
}

/// Whether both hold the same, each as often.
pub fn bag(ours: &[Reply], theirs: &[Reply], ids: &Ids) -> bool {
    let mut left: Vec<&Reply> = theirs.iter().collect();
    ours.len() == theirs.len()
        && ours
            .iter()
            .all(|a| match left.iter().position(|b| equal(a, b, ids)) {
                Some(at) => {
                    left.swap_remove(at);
                    true
                }
                None => false,
            })
}

fn pairs(map: &[(Reply, Reply)]) -> Vec<Reply> {
    map.iter()
        .map(|(k, v)| Reply::Array(vec![k.clone(), v.clone()]))
        .collect()
}

fn flat_pairs(flat: &[Reply]) -> Vec<Reply> {
    flat.chunks(2)
        .map(|pair| Reply::Array(pair.to_vec()))
        .collect()
}

fn within(ours: &Reply, theirs: &Reply, distance: i64) -> bool {
    match (ours, theirs) {
        (Reply::Integer(a), Reply::Integer(b)) => {
            a == b || *a >= 0 && *b >= 0 && a.abs_diff(*b) <= distance.unsigned_abs()
        }
        (Reply::Array(a), Reply::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| within(a, b, distance))
        }
        _ => ours == theirs,
    }
}

/// `name` is the text before it; `is_idle` that its place in an array says that it is a time.
fn stream(ours: &Reply, theirs: &Reply, ids: &Ids, name: &[u8], is_idle: bool) -> bool {
    match (ours, theirs) {
        (Reply::Integer(a), Reply::Integer(b)) => {
            let is_shape = matches!(name, b"radix-tree-keys" | b"radix-tree-nodes");
            let is_idle = is_idle || matches!(name, b"idle" | b"inactive");
            let is_moment = *a > MOMENT_MS && *b > MOMENT_MS;
            a == b
                || is_shape
                || (is_idle || is_moment) && a.abs_diff(*b) <= CLOSE_MS.unsigned_abs()
        }
        (Reply::Array(a), Reply::Array(b)) => {
            let mut name: &[u8] = b"";
            a.len() == b.len()
                && a.iter().zip(b).enumerate().all(|(at, (ours, theirs))| {
                    let is_same = stream(ours, theirs, ids, name, a.len() == 4 && at == 2);
                    name = ours.bytes().unwrap_or_default();
                    is_same
                })
        }
        (Reply::Map(a), Reply::Map(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|(a, b)| {
                    let name = a.0.bytes().unwrap_or_default();
                    a.0 == b.0 && stream(&a.1, &b.1, ids, name, false)
                })
        }
        _ => equal(ours, theirs, ids),
    }
}

/// The same kind, with as many elements.
fn shape(ours: &Reply, theirs: &Reply) -> bool {
    let length = |reply: &Reply| match reply {
        Reply::Map(pairs) => Some(pairs.len()),
        _ => reply.elements().map(<[Reply]>::len),
    };
    std::mem::discriminant(ours) == std::mem::discriminant(theirs) && length(ours) == length(theirs)
}

/// Whether a text is a stream's id.
pub fn is_id(text: &[u8]) -> bool {
    let mut parts = text.split(|byte| *byte == b'-');
    let is_number = |part: Option<&[u8]>| {
        part.is_some_and(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
    };
    is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    fn array(words: &[&str]) -> Reply {
        Reply::Array(words.iter().map(|word| bulk(word)).collect())
    }

    fn how_of(line: &str) -> How {
        let args: Vec<Vec<u8>> = line.split(' ').map(|word| word.into()).collect();
        how(&args, false)
    }

    #[test]
    fn order_matters_unless_it_does_not() {
        let ids = Ids::default();
        let (ab, ba) = (array(&["a", "b"]), array(&["b", "a"]));
        assert!(!same(How::Exact, &ab, &ba, &ids));
        assert!(same(How::AnyOrder, &ab, &ba, &ids));
        assert!(!same(How::AnyOrder, &array(&["a", "a"]), &ab, &ids));
        let (flat, other) = (array(&["f", "1", "g", "2"]), array(&["g", "2", "f", "1"]));
        assert!(same(How::Pairs, &flat, &other, &ids));
        assert!(!same(
            How::Pairs,
            &flat,
            &array(&["g", "1", "f", "2"]),
            &ids
        ));
    }

    #[test]
    fn kinds_of_replies_matter() {
        let ids = Ids::default();
        assert!(!same(How::Exact, &Reply::Null, &Reply::NullBulk, &ids));
        assert!(!same(How::Exact, &bulk("1"), &Reply::Integer(1), &ids));
        assert!(!same(
            How::Errors,
            &Reply::Error("ERR a".into()),
            &Reply::Error("ERR b".into()),
            &ids
        ));
        assert!(!same(How::Shape, &array(&["a"]), &array(&["a", "b"]), &ids));
        assert!(same(How::Shape, &array(&["a"]), &array(&["b"]), &ids));
    }

    #[test]
    fn ids_that_servers_made_are_those_of_the_same_call() {
        let ids = Ids {
            ours: vec!["7-0".into()],
            theirs: vec!["8-0".into()],
        };
        assert!(same(How::Exact, &array(&["7-0"]), &array(&["8-0"]), &ids));
        assert!(!same(How::Exact, &array(&["7-0"]), &array(&["9-0"]), &ids));
        assert!(is_id(b"1-2") && !is_id(b"1") && !is_id(b"1-2-3") && !is_id(b"-"));
    }

    #[test]
    fn times_may_lie_apart_and_counts_may_not() {
        let ids = Ids::default();
        let ttl = how_of("ttl k");
        assert!(same(ttl, &Reply::Integer(99), &Reply::Integer(100), &ids));
        assert!(!same(ttl, &Reply::Integer(-1), &Reply::Integer(1), &ids));
        let pending = |idle, count| {
            let row = vec![
                bulk("1-1"),
                bulk("c1"),
                Reply::Integer(idle),
                Reply::Integer(count),
            ];
            Reply::Array(vec![Reply::Array(row)])
        };
        let how = how_of("xpending x g - + 10");
        assert!(same(how, &pending(3, 1), &pending(9, 1), &ids));
        assert!(!same(how, &pending(3, 1), &pending(3, 2), &ids));
    }
}
