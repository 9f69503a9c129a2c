//! Users: rules made up for ACL SETUSER, and what is asked about the users that came of them.
//!
//! Only connection 1 becomes such a user, and whoever a client may be is never removed, since that
//! would close its connection. The default user stays as it is.

use crate::random::Random;
use crate::sequence::Word;

/// Users that sequences make; the player removes them.
pub const USERS: &[&str] = &["u1", "u2", "u3"];
/// The one that nobody becomes.
const NOBODY: &str = "u3";

const RULES: &[&str] = &[
    "on",
    "on",
    "on",
    "off",
    "nopass",
    "nopass",
    "resetpass",
    "reset",
    ">pw",
    ">pw",
    ">other",
    "<pw",
    "<nosuch",
    "<other",
    "allkeys",
    "allkeys",
    "~*",
    "~*",
    "resetkeys",
    "allcommands",
    "allcommands",
    "nocommands",
    "+@all",
    "-@all",
    "allchannels",
    "resetchannels",
    "&*",
    "&ch*",
    "&news",
    "~a*",
    "~k1",
    "~",
    "~a b",
    "%R~*",
    "%W~*",
    "%R~k*",
    "%W~k*",
    "%RW~x",
    "%WR~y",
    "%R~k1",
    "%W~k1",
    "%~x",
    "%X~x",
    "%R",
    "%",
    "clearselectors",
    "(+get ~a*)",
    "(%R~k* +@read)",
    "(+set %W~k*)",
    "(+@all -@write allkeys)",
    "(on)",
    "(",
    ")",
    "()",
    "(+get",
    "(~k* &ch* +@all)",
    "(+nosuch)",
    "(allkeys allcommands resetchannels)",
    "+nosuch",
    "-nosuch",
    "+@nosuch",
    "-@nosuch",
    "+get|x",
    "-get|x",
    "+config|get",
    "-config|get",
    "+config|nosuch",
    "-config|set",
    "+config",
    "-config",
    "+object|encoding",
    "+xinfo|stream",
    "-xinfo|groups",
    "+client|id",
    "-client",
    "+select|0",
    "+select|1",
    "-select|0",
    "+acl|whoami",
    "-acl",
    "+acl",
    "+",
    "-",
    "+@",
    "|",
    "+|",
    "+config|",
    "#zz",
    "!zz",
    "nosuch",
    "",
    "sanitize-payload",
    "skip-sanitize-payload",
    "sanitize",
    "+eval",
    "+@scripting",
    "-@scripting",
    "-@dangerous",
    "#30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4",
    "!30c952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4",
    "#30C952fab122c3f9759f02a6d95c3758b246b4fee239957b2d4fee46e26170c4",
    "!0000000000000000000000000000000000000000000000000000000000000000",
    "ON",
    "AllKeys",
    "+GET",
    "-Set",
    "+@READ",
    "+multi",
    "+exec",
    "-ping",
    "+@transaction",
    "+@connection",
];
const CATEGORIES: &[&str] = &[
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
    "all",
];

/// Categories of which ours has every command.
const COMPLETE: &[&str] = &[
    "hash",
    "list",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "transaction",
    "nosuch",
];

/// One rule. `names`: commands that both servers have.
fn rule(random: &mut Random, names: &[String]) -> String {
    let sign = random.word(&["+", "-"]);
    match random.below(10) {
        0..=1 if !names.is_empty() => format!("{sign}{}", random.pick(names)),
        2 => format!("{sign}@{}", random.word(CATEGORIES)),
        3 if !names.is_empty() => {
            let name = random.pick(names).clone();
            let keys = random.word(&["~*", "%R~k*", "%W~k*", "~a", "&ch"]);
            format!("(+{name} {keys} {sign}@{})", random.word(CATEGORIES))
        }
        _ => random.word(RULES).to_owned(),
    }
}

/// What a made-up call of AUTH names, and whether it may succeed.
pub fn auth(random: &mut Random) -> Vec<Word> {
    let user = random.word(&["u1", "u1", "u2", "u2", "default", "nosuch"]);
    let password = random.word(&["pw", "pw", "other", "wrong", ""]);
    match random.below(8) {
        0 => vec![
            "HELLO".into(),
            random.word(&["2", "3"]).into(),
            "AUTH".into(),
            user.into(),
            password.into(),
        ],
        1 => vec!["AUTH".into(), password.into()],
        _ => vec!["AUTH".into(), user.into(), password.into()],
    }
}

/// One call of ACL. `call` is a command for DRYRUN.
pub fn call(random: &mut Random, names: &[String], call: Option<Vec<Word>>) -> Vec<Word> {
    let user = random.word(USERS);
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| Word::from(*word))
            .collect::<Vec<_>>()
    };
    match random.below(20) {
        0..=7 => {
            let mut made = words(&["ACL", "SETUSER", user]);
            for _ in 0..random.between(1, 6) {
                made.push(rule(random, names).into());
            }
            made
        }
        8 => words(&["ACL", "SETUSER", user, "on", ">pw", "+@all", "~k*"]),
        9..=11 => words(&["ACL", "GETUSER", user]),
        12 => words(&[
            "ACL",
            random.word(&["LIST", "USERS", "WHOAMI", "CAT", "HELP2"]),
        ]),
        13 => words(&["ACL", "CAT", random.word(COMPLETE)]),
        14..=16 => match call {
            Some(call) => words(&["ACL", "DRYRUN", user])
                .into_iter()
                .chain(call)
                .collect(),
            None => words(&["ACL", "DRYRUN", user, "GET", "k1"]),
        },
        17 => match random.percent(50) {
            true => words(&["ACL", "DELUSER", NOBODY]),
            false => words(&["ACL", "DELUSER", random.word(&["nosuch", "default"])]),
        },
        18 => words(&["ACL", "LOG"]),
        _ => words(&["ACL", "LOG", random.word(&["RESET", "1", "2", "x", "-1"])]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_be_logged_in_is_never_removed() {
        let mut random = Random::new(1, 1);
        for _ in 0..2000 {
            let words = call(&mut random, &[], None);
            let text = |at: usize| words.get(at).and_then(Word::plain).unwrap_or_default();
            if text(1) == b"DELUSER" {
                assert!(![b"u1".as_slice(), b"u2"].contains(&text(2)));
            }
        }
    }
}
