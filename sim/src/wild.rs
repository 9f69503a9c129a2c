//! Random calls of every command of the engine, made from the commands' own declarations.
//!
//! A declaration says what words a command takes, so a call of it is a walk through that grammar:
//! options are taken or left, alternatives drawn, counts of keys put right afterwards. Most calls
//! are valid; the rest (a wrong type, an id that is none) are refused.
//!
//! # Invariants
//! - Keys are from a few pools, one a type, so that commands meet each other's keys; none is a key
//!   of [`crate::tame`], whose contents are known.
//! - No call waits longer than some seconds of the fake clock, or for ever but now and then.

use command::Group;
use command::arg::{Arg, ArgKind};
use engine::{Entry, Table};

use crate::random::Random;

/// Commands with a meaning beyond the keyspace, which the simulation sends in other ways or not.
const EXCLUDED: &[&str] = &[
    "exec",
    "multi",
    "discard",
    "watch",
    "unwatch",
    "quit",
    "select",
    "migrate",
    "flushall",
    "flushdb",
    "swapdb",
    "subscribe",
    "unsubscribe",
    "psubscribe",
    "punsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "publish",
    "spublish",
];
/// Keys of each type.
const KEYS: usize = 5;
/// Times that what may be repeated is, at most.
const REPEATS_MAX: usize = 3;

/// Commands by name that are called at random.
pub fn commands(table: &Table) -> Vec<u16> {
    let mut ids = Vec::new();
    for entry in table.commands() {
        if EXCLUDED.contains(&entry.command.name) {
            continue;
        }
        let subcommands = table.subcommands(entry);
        ids.extend(subcommands.iter().map(|entry| entry.id));
        if entry.run.is_some() {
            ids.push(entry.id);
        }
    }
    ids
}

/// A random call of a command.
pub fn call(entry: &Entry, now_ms: u64, random: &mut Random) -> Vec<Vec<u8>> {
    let words = entry.full_name.split('|');
    let mut call = Call {
        group: entry.command.group,
        words: words.map(|word| word.to_uppercase().into_bytes()).collect(),
        count_at: None,
        times: 1,
        now_ms,
        random,
    };
    for arg in entry.command.args {
        call.arg(arg);
    }
    call.words
}

struct Call<'r> {
    group: Group,
    words: Vec<Vec<u8>>,
    /// A word that says how many of the next argument there are.
    count_at: Option<usize>,
    /// How many there were of the last argument that may be repeated.
    times: usize,
    now_ms: u64,
    random: &'r mut Random,
}

impl Call<'_> {
    fn arg(&mut self, arg: &Arg) {
        if arg.is_optional && self.random.percent(60) {
            return;
        }
        let times = match arg.is_multiple {
            // As many ids as keys.
            true if self.group == Group::Stream && matches!(arg.name, "id" | "ID") => self.times,
            true => 1 + self.random.below(REPEATS_MAX),
            false => 1,
        };
        if arg.is_multiple {
            self.times = times;
        }
        let counts = arg.is_multiple.then(|| self.count_at.take()).flatten();
        if let Some(at) = counts {
            self.words[at] = times.to_string().into_bytes();
        }
        for time in 0..times {
            if let Some(token) = arg.token
                && (time == 0 || arg.is_token_repeated)
            {
                self.words.push(token.as_bytes().to_vec());
            }
            self.value(arg);
        }
    }

    fn value(&mut self, arg: &Arg) {
        match arg.kind {
            ArgKind::Flag => {}
            ArgKind::OneOf => {
                let choice = self.random.below(arg.args.len().max(1));
                if let Some(arg) = arg.args.get(choice) {
                    self.forced(arg);
                }
            }
            ArgKind::Block => arg.args.iter().for_each(|arg| self.arg(arg)),
            ArgKind::Int if arg.name.starts_with("num") => {
                self.count_at = Some(self.words.len());
                self.words.push(b"1".to_vec());
            }
            _ => {
                let word = self.word(arg);
                self.words.push(word);
            }
        }
    }

    /// One alternative: it was chosen, so it is not left out.
    fn forced(&mut self, arg: &Arg) {
        let required = Arg {
            is_optional: false,
            ..*arg
        };
        self.arg(&required);
    }

    fn word(&mut self, arg: &Arg) -> Vec<u8> {
        let random = &mut *self.random;
        if arg.name == "timeout" {
            let text = random.one(&["0.01", "0.5", "3", "0"]);
            return text.into();
        }
        match arg.kind {
            ArgKind::Key => self.key(),
            ArgKind::Int => int(arg.name, random),
            ArgKind::Double => {
                let texts = ["0", "1.5", "-3", "2", "1e3", "inf", "7.25", "-0.1"];
                random.one(&texts).into()
            }
            ArgKind::UnixTime => {
                let at = match arg.name.contains("milli") || random.percent(50) {
                    true => self.now_ms + random.between(0, 5000) - 200,
                    false => self.now_ms / 1000 + random.between(0, 10),
                };
                at.to_string().into_bytes()
            }
            ArgKind::Pattern => random.one(&["*", "w:*", "*[0-2]", "?:l*", "f#"]).into(),
            _ => string(arg.name, random),
        }
    }

    fn key(&mut self) -> Vec<u8> {
        let own = match self.group {
            Group::List => "l",
            Group::Set => "s",
            Group::SortedSet | Group::Geo => "z",
            Group::Hash => "h",
            Group::Stream => "x",
            Group::String | Group::Bitmap => "t",
            _ => "",
        };
        let kind = match own.is_empty() || self.random.percent(8) {
            true => self.random.one(&["l", "s", "z", "h", "x", "t"]),
            false => own,
        };
        format!("w:{kind}:{}", self.random.below(KEYS)).into_bytes()
    }
}

fn int(name: &str, random: &mut Random) -> Vec<u8> {
    let number = match random.below(12) {
        0 => i64::MAX,
        1 => i64::MIN,
        2 => -1,
        3 => 0,
        4 | 5 => i64::try_from(random.between(10, 4000)).unwrap_or(0),
        _ => i64::try_from(random.between(0, 12)).unwrap_or(0) - 3,
    };
    match name {
        "seconds" => random.between(1, 9).to_string().into_bytes(),
        "milliseconds" => random.between(1, 5000).to_string().into_bytes(),
        "cursor" if random.percent(70) => b"0".to_vec(),
        _ => number.to_string().into_bytes(),
    }
}

fn string(name: &str, random: &mut Random) -> Vec<u8> {
    match name {
        "encoding" => random.one(&["u8", "i5", "u63", "i64", "u1"]).into(),
        "offset" => random.one(&["0", "#1", "7", "100", "#30"]).into(),
        "group" => format!("g{}", random.below(2)).into_bytes(),
        "consumer" => format!("c{}", random.below(3)).into_bytes(),
        "field" | "member" | "element" => format!("f{}", random.below(60)).into_bytes(),
        "min" | "max" | "start" | "stop" | "end" if random.percent(70) => {
            let texts = [
                "-inf", "+inf", "(1", "[a", "5", "-", "+", "[f3", "(f7", "0", "-1", "3",
            ];
            random.one(&texts).into()
        }
        _ if name.contains("id") && random.percent(90) => {
            let texts = ["*", "0", "$", ">", "+", "-", "0-1", "5-*", "0-0"];
            random.one(&texts).into()
        }
        _ => match random.below(8) {
            0 => random.between(0, 300).to_string().into_bytes(),
            1 => vec![b'x'; random.below(900)],
            2 => b"3.25".to_vec(),
            3 => Vec::new(),
            _ => format!("f{}", random.below(60)).into_bytes(),
        },
    }
}
