//! The whole keyspace of both servers, compared when a sequence has ended.
//!
//! Each key's type, encoding, deadline and contents, and what XINFO tells of a stream: what no
//! reply of the sequence may have shown.

use crate::compare::{How, Ids, how, same};
use crate::side::{Side, Silence};
use client::{Reply, encode};
use testkit::render;

/// Databases that sequences use.
const DATABASES: usize = 3;

/// What the walk found to differ.
#[derive(Debug)]
pub struct Found {
    /// The database.
    pub db: usize,
    /// The question, as a command.
    pub question: Vec<Vec<u8>>,
    pub ours: String,
    pub theirs: String,
}

/// A side that did not answer.
pub struct Silent {
    pub is_ours: bool,
    pub silence: Silence,
}

/// Compares all that there is, up to the first difference that has no excuse.
pub fn walk(
    ours: &mut Side,
    theirs: &mut Side,
    ids: &Ids,
    is_excused: &mut dyn FnMut(&Found) -> bool,
) -> Result<Option<Found>, Silent> {
    for db in 0..DATABASES {
        let select = words(&["SELECT", &db.to_string()]);
        let keys = words(&["KEYS", "*"]);
        let answers = both(ours, theirs, &[select, keys.clone()])?;
        let (our_keys, their_keys) = &answers[1];
        let mut names = names(their_keys);
        if !same(How::AnyOrder, our_keys, their_keys, ids) {
            let found = found(db, keys, our_keys, their_keys);
            if !is_excused(&found) {
                return Ok(Some(found));
            }
            let mine = self::names(our_keys);
            names.retain(|name| mine.contains(name));
        }
        names.sort();
        if names.is_empty() {
            continue;
        }
        let heads: Vec<_> = names.iter().flat_map(|name| head(name)).collect();
        if let Some(found) = compare(ours, theirs, db, &heads, ids, is_excused)? {
            return Ok(Some(found));
        }
        let types: Vec<_> = names
            .iter()
            .map(|name| vec![b"TYPE".to_vec(), name.clone()])
            .collect();
        let types = both(ours, theirs, &types)?;
        let bodies: Vec<_> = names
            .iter()
            .zip(types)
            .flat_map(|(name, (_, kind))| body(name, kind.bytes().unwrap_or_default()))
            .collect();
        if let Some(found) = compare(ours, theirs, db, &bodies, ids, is_excused)? {
            return Ok(Some(found));
        }
        let fields: Vec<_> = bodies
            .iter()
            .zip(both(ours, theirs, &bodies)?)
            .filter_map(|(question, (_, reply))| field_deadlines(question, &reply))
            .collect();
        if let Some(found) = compare(ours, theirs, db, &fields, ids, is_excused)? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn words(words: &[&str]) -> Vec<Vec<u8>> {
    words.iter().map(|word| word.as_bytes().to_vec()).collect()
}

fn question(before: &[&str], key: &[u8], after: &[&str]) -> Vec<Vec<u8>> {
    let mut all = words(before);
    all.push(key.to_vec());
    all.extend(words(after));
    all
}

/// What is asked of every key.
fn head(key: &[u8]) -> Vec<Vec<Vec<u8>>> {
    vec![
        question(&["TYPE"], key, &[]),
        question(&["OBJECT", "ENCODING"], key, &[]),
        question(&["PEXPIRETIME"], key, &[]),
    ]
}

/// What is asked of a key of this type.
fn body(key: &[u8], kind: &[u8]) -> Vec<Vec<Vec<u8>>> {
    match kind {
        // Not all of it: SETBIT makes strings of 256 MiB.
        b"string" => vec![
            question(&["STRLEN"], key, &[]),
            question(&["GETRANGE"], key, &["0", "65535"]),
            question(&["GETRANGE"], key, &["-65536", "-1"]),
            question(&["BITCOUNT"], key, &[]),
        ],
        b"list" => vec![question(&["LRANGE"], key, &["0", "-1"])],
        b"set" => vec![question(&["SMEMBERS"], key, &[])],
        b"hash" => vec![question(&["HGETALL"], key, &[])],
        b"zset" => vec![question(&["ZRANGE"], key, &["0", "-1", "WITHSCORES"])],
        b"stream" => vec![
            question(&["XRANGE"], key, &["-", "+"]),
            question(&["XINFO", "STREAM"], key, &["FULL", "COUNT", "0"]),
            question(&["XINFO", "STREAM"], key, &[]),
        ],
        b"array" => vec![
            question(
                &["ARSCAN"],
                key,
                &["0", "18446744073709551614", "LIMIT", "10000"],
            ),
            question(&["ARINFO"], key, &[]),
        ],
        _ => Vec::new(),
    }
}

fn field_deadlines(asked: &[Vec<u8>], reply: &Reply) -> Option<Vec<Vec<u8>>> {
    let (Reply::Map(pairs), [command, key]) = (reply, asked) else {
        return None;
    };
    if command != b"HGETALL" || pairs.is_empty() {
        return None;
    }
    let mut names: Vec<Vec<u8>> = pairs
        .iter()
        .filter_map(|(k, _)| Some(k.bytes()?.to_vec()))
        .collect();
    names.sort();
    let mut all = question(
        &["HPEXPIRETIME"],
        key,
        &["FIELDS", &names.len().to_string()],
    );
    all.extend(names);
    Some(all)
}

fn compare(
    ours: &mut Side,
    theirs: &mut Side,
    db: usize,
    questions: &[Vec<Vec<u8>>],
    ids: &Ids,
    is_excused: &mut dyn FnMut(&Found) -> bool,
) -> Result<Option<Found>, Silent> {
    let answers = both(ours, theirs, questions)?;
    for (question, (ours, theirs)) in questions.iter().zip(answers) {
        if !same(how_in_the_end(question), &ours, &theirs, ids) {
            let found = found(db, question.clone(), &ours, &theirs);
            if !is_excused(&found) {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

fn how_in_the_end(question: &[Vec<u8>]) -> How {
    match question[0].as_slice() {
        b"SMEMBERS" | b"KEYS" => How::AnyOrder,
        b"ARINFO" => How::Shape,
        _ => how(question, false),
    }
}

/// Whether two servers agree on what a walk of two others found to differ.
pub fn agree(ours: &mut Side, theirs: &mut Side, ids: &Ids, asked: &Found) -> Result<bool, Silent> {
    let select = words(&["SELECT", &asked.db.to_string()]);
    let answers = both(ours, theirs, &[select, asked.question.clone()])?;
    let (a, b) = &answers[1];
    Ok(same(how_in_the_end(&asked.question), a, b, ids))
}

fn names(keys: &Reply) -> Vec<Vec<u8>> {
    let keys = keys.elements().unwrap_or_default().iter();
    keys.filter_map(Reply::bytes).map(<[u8]>::to_vec).collect()
}

fn found(db: usize, question: Vec<Vec<u8>>, ours: &Reply, theirs: &Reply) -> Found {
    Found {
        db,
        question,
        ours: render(ours),
        theirs: render(theirs),
    }
}

/// Asks both sides everything at once.
fn both(
    ours: &mut Side,
    theirs: &mut Side,
    questions: &[Vec<Vec<u8>>],
) -> Result<Vec<(Reply, Reply)>, Silent> {
    let mut bytes = Vec::new();
    questions
        .iter()
        .for_each(|question| encode(question, &mut bytes));
    let silent = |is_ours| {
        move |error: client::Error| Silent {
            is_ours,
            silence: error.into(),
        }
    };
    ours.control.send_bytes(&bytes).map_err(silent(true))?;
    theirs.control.send_bytes(&bytes).map_err(silent(false))?;
    let mut answers = Vec::with_capacity(questions.len());
    for _ in questions {
        let a = ours.control.receive().map_err(silent(true))?;
        let b = theirs.control.receive().map_err(silent(false))?;
        answers.push((a, b));
    }
    Ok(answers)
}
