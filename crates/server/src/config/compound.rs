//! Values of several parts: save points, output limits, percentiles, scores and event letters.
//!
//! Each has a reader from words and a writer back. Redis wraps seconds and changes around at 32
//! bits; here a number that does not fit is refused instead.

use super::value::{Reason, bytes};

/// Write a snapshot after so many seconds with so many changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SavePoint {
    pub seconds: i64,
    pub changes: i32,
}

/// When a client of one class is closed for output that it does not read. 0 is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputLimit {
    /// Bytes at which it is closed at once.
    pub hard_bytes: u64,
    /// Bytes at which it is closed once `soft_s` seconds have passed.
    pub soft_bytes: u64,
    pub soft_s: i32,
}

pub const NO_LIMITS: [OutputLimit; 3] = [OutputLimit {
    hard_bytes: 0,
    soft_bytes: 0,
    soft_s: 0,
}; 3];

/// Names of the classes in the order in which they are shown.
const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];
/// The default limits, for telling which classes a file must mention.
const DEFAULT_LIMITS: [OutputLimit; 3] = [
    NO_LIMITS[0],
    OutputLimit {
        hard_bytes: 256 << 20,
        soft_bytes: 64 << 20,
        soft_s: 60,
    },
    OutputLimit {
        hard_bytes: 32 << 20,
        soft_bytes: 8 << 20,
        soft_s: 60,
    },
];

/// Bits of `notify-keyspace-events`.
pub mod event {
    /// Publish to the channel named after the key.
    pub const KEYSPACE: u32 = 1;
    /// Publish to the channel named after the event.
    pub const KEYEVENT: u32 = 1 << 1;
    pub const GENERIC: u32 = 1 << 2;
    pub const STRING: u32 = 1 << 3;
    pub const LIST: u32 = 1 << 4;
    pub const SET: u32 = 1 << 5;
    pub const HASH: u32 = 1 << 6;
    pub const ZSET: u32 = 1 << 7;
    pub const EXPIRED: u32 = 1 << 8;
    pub const EVICTED: u32 = 1 << 9;
    pub const STREAM: u32 = 1 << 10;
    pub const KEY_MISS: u32 = 1 << 11;
    pub const MODULE: u32 = 1 << 13;
    pub const NEW: u32 = 1 << 14;
    pub const OVERWRITTEN: u32 = 1 << 15;
    pub const TYPE_CHANGED: u32 = 1 << 16;
    pub const ARRAY: u32 = 1 << 17;
    /// Channels for the fields of hashes: `S`, `T`, `I` and `V`.
    pub const SUBKEY_SPACE: u32 = 1 << 18;
    pub const SUBKEY_EVENT: u32 = 1 << 19;
    pub const SUBKEY_SPACE_ITEM: u32 = 1 << 20;
    pub const SUBKEY_SPACE_EVENT: u32 = 1 << 21;
    /// What the letter `A` stands for.
    pub const ALL: u32 =
        GENERIC | STRING | LIST | SET | HASH | ZSET | EXPIRED | EVICTED | STREAM | MODULE | ARRAY;
}

/// Letters that `A` stands for or hides when shown, then those that are always shown.
const CLASS_LETTERS: &[(u8, u32)] = &[
    (b'g', event::GENERIC),
    (b'$', event::STRING),
    (b'l', event::LIST),
    (b's', event::SET),
    (b'h', event::HASH),
    (b'z', event::ZSET),
    (b'x', event::EXPIRED),
    (b'e', event::EVICTED),
    (b't', event::STREAM),
    (b'd', event::MODULE),
    (b'a', event::ARRAY),
    (b'n', event::NEW),
    (b'o', event::OVERWRITTEN),
    (b'c', event::TYPE_CHANGED),
];
const OTHER_LETTERS: &[(u8, u32)] = &[
    (b'K', event::KEYSPACE),
    (b'E', event::KEYEVENT),
    (b'm', event::KEY_MISS),
    (b'S', event::SUBKEY_SPACE),
    (b'T', event::SUBKEY_EVENT),
    (b'I', event::SUBKEY_SPACE_ITEM),
    (b'V', event::SUBKEY_SPACE_EVENT),
];

pub fn save_points(words: &[&[u8]]) -> Result<Box<[SavePoint]>, Reason> {
    let wrong = || Reason::from("Invalid save parameters");
    let point = |pair: &[&[u8]]| {
        let seconds = loose_integer(pair[0]).filter(|seconds| *seconds >= 1)?;
        let changes = loose_integer(pair[1]).filter(|changes| *changes >= 0)?;
        Some(SavePoint {
            seconds,
            changes: i32::try_from(changes).ok()?,
        })
    };
    if !words.len().is_multiple_of(2) {
        return Err(wrong());
    }
    words
        .chunks_exact(2)
        .map(point)
        .collect::<Option<_>>()
        .ok_or_else(wrong)
}

pub fn show_save_points(points: &[SavePoint]) -> String {
    let pair = |point: &SavePoint| format!("{} {}", point.seconds, point.changes);
    points.iter().map(pair).collect::<Vec<_>>().join(" ")
}

pub fn output_limits(words: &[&[u8]], old: [OutputLimit; 3]) -> Result<[OutputLimit; 3], Reason> {
    if !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.".into());
    }
    let mut limits = old;
    for part in words.chunks_exact(4) {
        let class = match part[0].to_ascii_lowercase().as_slice() {
            b"normal" => 0,
            b"slave" | b"replica" => 1,
            b"pubsub" => 2,
            _ => {
                return Err("Invalid client class specified in buffer limit configuration.".into());
            }
        };
        let limit = || {
            let soft_s = loose_integer(part[3]).filter(|seconds| *seconds >= 0)?;
            Some(OutputLimit {
                hard_bytes: bytes(part[1])?,
                soft_bytes: bytes(part[2])?,
                soft_s: i32::try_from(soft_s).ok()?,
            })
        };
        limits[class] = limit()
            .ok_or("Error in hard, soft or soft_seconds setting in buffer limit configuration.")?;
    }
    Ok(limits)
}

pub fn show_output_limits(limits: &[OutputLimit; 3]) -> String {
    let class = |(name, limit): (&&str, &OutputLimit)| {
        format!(
            "{name} {} {} {}",
            limit.hard_bytes, limit.soft_bytes, limit.soft_s
        )
    };
    CLASSES
        .iter()
        .zip(limits)
        .map(class)
        .collect::<Vec<_>>()
        .join(" ")
}

/// One line for each class whose limit is not the default.
pub fn limit_lines(limits: &[OutputLimit; 3]) -> Vec<Vec<u8>> {
    let line = |name: &str, limit: &OutputLimit| {
        let unit = super::value::show_unit;
        let (hard, soft) = (unit(limit.hard_bytes), unit(limit.soft_bytes));
        format!("{name} {hard} {soft} {}", limit.soft_s).into_bytes()
    };
    let names = ["normal", "replica", "pubsub"];
    let classes = names.iter().zip(limits).zip(DEFAULT_LIMITS);
    classes
        .filter(|((_, limit), default)| **limit != *default)
        .map(|((name, limit), _)| line(name, limit))
        .collect()
}

pub fn percentiles(words: &[&[u8]]) -> Result<Box<[f64]>, Reason> {
    let one = |word: &&[u8]| {
        let number = std::str::from_utf8(word)
            .ok()
            .and_then(|word| word.parse::<f64>().ok());
        match number.filter(|number| !number.is_nan()) {
            Some(number) if (0.0..=100.0).contains(&number) => Ok(number.abs()),
            Some(_) => Err(Reason::from(
                "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]",
            )),
            None => Err("Invalid latency-tracking-info-percentiles parameters".into()),
        }
    };
    words.iter().map(one).collect()
}

pub fn show_percentiles(list: &[f64]) -> String {
    let one = |number: &f64| {
        let text = format!("{number:.6}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    };
    list.iter().map(one).collect::<Vec<_>>().join(" ")
}

pub fn oom_scores(words: &[&[u8]]) -> Result<[i32; 3], Reason> {
    let words: &[&[u8]; 3] = words
        .try_into()
        .map_err(|_| Reason::from("wrong number of arguments"))?;
    let mut scores = [0; 3];
    for (score, word) in scores.iter_mut().zip(words) {
        let number = loose_integer(word).filter(|number| (-2000..=2000).contains(number));
        *score = number
            .and_then(|number| i32::try_from(number).ok())
            .ok_or("Invalid oom-score-adj-values, elements must be between -2000 and 2000.")?;
    }
    Ok(scores)
}

pub fn events(word: &[u8]) -> Result<u32, Reason> {
    let mut bits = 0;
    for letter in word {
        let mut known = CLASS_LETTERS.iter().chain(OTHER_LETTERS);
        bits |= match known.find(|(each, _)| each == letter) {
            Some((_, bit)) => *bit,
            None if *letter == b'A' => event::ALL,
            None => {
                let text = "Invalid event class character. Use 'Ag$lshzxeKEtmdnocaSTIV'.";
                return Err(text.into());
            }
        };
    }
    Ok(bits)
}

/// The letters as CONFIG GET shows them: `n`, `o` and `c` are left out beside an `A`.
pub fn show_events(bits: u32) -> String {
    if bits & event::ALL == event::ALL {
        format!("A{}", letters(bits, OTHER_LETTERS))
    } else {
        letters(bits, CLASS_LETTERS) + &letters(bits, OTHER_LETTERS)
    }
}

/// All letters one by one, so that a file holds what was set.
pub fn spell_events(bits: u32) -> String {
    let (all, rest) = match bits & event::ALL == event::ALL {
        true => ("A", bits & !event::ALL),
        false => ("", bits),
    };
    format!(
        "{all}{}{}",
        letters(rest, CLASS_LETTERS),
        letters(rest, OTHER_LETTERS)
    )
}

fn letters(bits: u32, list: &[(u8, u32)]) -> String {
    list.iter()
        .filter(|(_, bit)| bits & bit != 0)
        .map(|(letter, _)| *letter as char)
        .collect()
}

/// Checks that every `{variable}` of a process title is known, and that there is some text.
pub fn title_template(word: &[u8]) -> Result<(), Reason> {
    const VARIABLES: &[&[u8]] = &[
        b"title",
        b"listen-addr",
        b"server-mode",
        b"port",
        b"tls-port",
        b"unixsocket",
        b"config-file",
    ];
    let wrong = || Reason::from("template format is invalid or contains unknown variables");
    let mut rest = word;
    if rest.is_empty() {
        return Err(wrong());
    }
    while let Some(open) = rest.iter().position(|byte| *byte == b'{') {
        let after = &rest[open + 1..];
        let close = after
            .iter()
            .position(|byte| *byte == b'}')
            .ok_or_else(wrong)?;
        if !VARIABLES.contains(&&after[..close]) {
            return Err(wrong());
        }
        rest = &after[close + 1..];
    }
    Ok(())
}

/// Reads a number as C does: a plus sign and leading zeros are fine.
fn loose_integer(word: &[u8]) -> Option<i64> {
    std::str::from_utf8(word).ok()?.parse().ok()
}
