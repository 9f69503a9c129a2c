//! What Valkey alone knows, played on ours and on Redis so that they stay alike.
//!
//! Redis refuses such a call, and would then decide nothing that comes after it. So it is asked
//! the call without what it does not know: if ours refuses, in what words Redis would refuse, and
//! if ours changes something, to change the same.

use super::{Arena, Args, Step_, ours, theirs};
use crate::sequence::{Step, line};
use client::Reply;

/// What Redis says of such a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Own {
    /// It refuses what is left of it, as ours does.
    Agreed,
    /// It does what ours does when it is asked what is left, and tells the same.
    Alike,
    /// It cannot say, and has what ours has.
    Unknown,
    /// It has something else now.
    Apart,
}

impl Arena {
    /// Plays a call of Valkey's own; nothing if it is none, or cannot be played now.
    pub fn own(&mut self, step: &Step) -> Step_<Option<Own>> {
        let Some((args, _)) = self.ready(step).filter(|(args, _)| is_own(args)) else {
            return Ok(None);
        };
        let reply = self.ours.call(step.connection, &args).map_err(ours)?;
        let name = args[0].to_ascii_lowercase();
        let asked = match (&reply, name.as_slice()) {
            (Reply::Error(_), _) => known_words(&args),
            (Reply::Integer(1), b"delifeq") => Some(vec![b"DEL".to_vec(), args[1].clone()]),
            (Reply::Integer(1), b"hsetex") => known_words(&args),
            _ => None,
        };
        let answer = match &asked {
            Some(asked) => Some(self.theirs.call(step.connection, asked).map_err(theirs)?),
            None => None,
        };
        let own = match (&reply, answer) {
            (Reply::Error(a), Some(Reply::Error(b))) if *a == b => Own::Agreed,
            (Reply::Error(_), Some(answer)) if !answer.is_error() => Own::Apart,
            (Reply::Integer(1), Some(answer)) if answer == reply => Own::Alike,
            (Reply::Integer(1), Some(_)) => Own::Apart,
            _ => Own::Unknown,
        };
        if name == b"geosearchstore" && !reply.is_error() {
            self.copy(step.connection, &args[1])?;
        }
        if own != Own::Apart {
            let command = line(args.iter().map(Vec::as_slice));
            self.settle(step.connection, &self.name(&args), &command)?;
        }
        Ok(Some(own))
    }

    /// Gives the real server what ours has at a key; nobody shall hear of it.
    fn copy(&mut self, connection: usize, key: &[u8]) -> Step_<()> {
        let words = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Args>();
        let dump = words(&[b"DUMP", key]);
        let command = match self.ours.call(connection, &dump).map_err(ours)? {
            Reply::Bulk(payload) => words(&[b"RESTORE", key, b"0", &payload, b"REPLACE"]),
            _ => words(&[b"DEL", key]),
        };
        self.theirs.call(connection, &command).map_err(theirs)?;
        for at in 0..self.connections.len() {
            if self.connections[at].is_subscribed && at != connection {
                let token = self.token();
                self.ours.fence(at, &token).map_err(ours)?;
                self.theirs.fence(at, &token).map_err(theirs)?;
            }
        }
        Ok(())
    }
}

/// Whether only Valkey knows such a call.
pub fn is_own(args: &[Vec<u8>]) -> bool {
    let has = |token: &str| {
        let mut words = args.iter();
        words.any(|word| word.eq_ignore_ascii_case(token.as_bytes()))
    };
    let name = args.first().map(|name| name.to_ascii_lowercase());
    match name.unwrap_or_default().as_slice() {
        b"delifeq" | b"clusterscan" => true,
        b"hsetex" => {
            let mut options = args.iter().skip(2).take_while(|word| !is_fields(word));
            options.any(|word| is_condition(word))
        }
        b"zscan" => has("NOSCORES"),
        b"geosearch" | b"geosearchstore" => has("BYPOLYGON"),
        _ => false,
    }
}

fn is_fields(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"FIELDS")
}

fn is_condition(word: &[u8]) -> bool {
    word.eq_ignore_ascii_case(b"NX") || word.eq_ignore_ascii_case(b"XX")
}

/// The call without the words that only Valkey knows; nothing where nothing would be left.
fn known_words(args: &[Vec<u8>]) -> Option<Args> {
    let of = |word: &str| {
        let mut words = args.iter();
        words.position(|one| one.eq_ignore_ascii_case(word.as_bytes()))
    };
    match args[0].to_ascii_lowercase().as_slice() {
        b"hsetex" => {
            let fields = of("FIELDS").unwrap_or(args.len());
            let (options, rest) = args.split_at(fields);
            let options = options.iter().enumerate();
            let options = options.filter(|(at, word)| *at < 2 || !is_condition(word));
            let options = options.map(|(_, word)| word);
            Some(options.chain(rest).cloned().collect())
        }
        b"zscan" => {
            let words = args.iter();
            let words = words.filter(|word| !word.eq_ignore_ascii_case(b"NOSCORES"));
            Some(words.cloned().collect())
        }
        b"geosearch" | b"geosearchstore" => {
            let at = of("BYPOLYGON")?;
            let count = args
                .get(at + 1)
                .and_then(|word| std::str::from_utf8(word).ok());
            let count = count
                .and_then(|word| word.parse::<usize>().ok())
                .unwrap_or(0);
            let end = count
                .saturating_mul(2)
                .saturating_add(at + 2)
                .min(args.len());
            let circle: &[&str] = match of("FROMMEMBER").or(of("FROMLONLAT")) {
                Some(_) => &["BYRADIUS", "1", "m"],
                None => &["FROMLONLAT", "0", "0", "BYRADIUS", "1", "m"],
            };
            let circle = circle.iter().map(|word| word.as_bytes().to_vec());
            let (before, after) = (args[..at].iter().cloned(), args[end..].iter().cloned());
            Some(before.chain(circle).chain(after).collect())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Args {
        line.split(' ').map(|word| word.into()).collect()
    }

    #[test]
    fn calls_of_valkey_are_told_from_others() {
        assert!(is_own(&args("DELIFEQ s a")) && is_own(&args("hsetex h xx FIELDS 1 a b")));
        assert!(!is_own(&args("HSETEX h FXX FIELDS 1 NX XX")) && !is_own(&args("ZSCAN z 0")));
        assert!(is_own(&args("GEOSEARCH o BYPOLYGON 3 0 0 1 1 2 2")));
    }

    #[test]
    fn what_redis_knows_is_left() {
        let left = |line: &str| known_words(&args(line)).map(|words| words.concat());
        let joined = |line: &str| Some(line.replace(' ', "").into_bytes());
        assert_eq!(
            left("HSETEX h NX EX 5 FIELDS 1 NX v"),
            joined("HSETEX h EX 5 FIELDS 1 NX v")
        );
        assert_eq!(
            left("GEOSEARCH o BYPOLYGON 3 0 0 1 1 2 2 ASC"),
            joined("GEOSEARCH o FROMLONLAT 0 0 BYRADIUS 1 m ASC")
        );
        assert_eq!(
            left("GEOSEARCH o FROMMEMBER a BYPOLYGON 9 0"),
            joined("GEOSEARCH o FROMMEMBER a BYRADIUS 1 m")
        );
        assert_eq!(left("DELIFEQ s a"), None);
    }
}
