//! The value of a directive: read from words, shown by CONFIG GET, written into a file.
//!
//! A value is kept in the form that it is compared and shown in, not as it was typed: `1KB` and
//! `1024` are the same value. The values that need more than a line are in `compound`.
//!
//! # Invariants
//! - What [`Value::show`] gives is accepted by [`Value::parse`] and gives the same value again
//!   (but for event letters that Redis does not show beside an `A`).
//! - The words that [`Value::lines`] gives do the same when a file holds them.

use super::compound::{self, OutputLimit, SavePoint};
use super::directive::{Directive, Kind, TextCheck};
use std::borrow::Cow;
use std::path::Path;

/// Why a value was refused, in the words that clients get.
pub type Reason = Cow<'static, str>;

/// A directive's value.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Switch(bool),
    Integer(i64),
    Bytes(u64),
    /// A percentage of another value.
    Percent(u8),
    /// The number of a word in the directive's list.
    Choice(u8),
    /// The bits of words in the directive's list.
    Flags(u32),
    Text(Box<[u8]>),
    Addresses(Box<[Box<[u8]>]>),
    SavePoints(Box<[SavePoint]>),
    /// Normal clients, replicas, subscribers.
    OutputLimits([OutputLimit; 3]),
    Percentiles(Box<[f64]>),
    OomScores([i32; 3]),
    Events(u32),
}

/// Words allowed where one directive takes many; a bound, not a choice of Redis.
const WORDS_MAX: usize = 4096;
const ADDRESSES_MAX: usize = 16;
const WRONG_COUNT: Reason = Cow::Borrowed("wrong number of arguments");

impl Value {
    /// Reads the words that follow a directive's name. One word with blanks counts as several
    /// where the directive takes several. `old` is what the words are applied to, which matters
    /// for lists that are set class by class.
    pub fn parse(directive: &Directive, words: &[&[u8]], old: &Value) -> Result<Value, Reason> {
        if words.len() > WORDS_MAX {
            return Err(WRONG_COUNT);
        }
        let spread: Vec<&[u8]> = match words {
            [[]] => Vec::new(),
            [one] => one.split(|byte| *byte == b' ').take(WORDS_MAX).collect(),
            _ => words.to_vec(),
        };
        match directive.kind {
            Kind::Flags(list) => flags(list, if words.is_empty() { words } else { &spread }),
            Kind::Addresses => addresses(&spread),
            Kind::SavePoints => compound::save_points(&spread).map(Value::SavePoints),
            Kind::OutputLimits => match old {
                Value::OutputLimits(old) => compound::output_limits(&spread, *old),
                _ => compound::output_limits(&spread, compound::NO_LIMITS),
            }
            .map(Value::OutputLimits),
            Kind::Percentiles => compound::percentiles(&spread).map(Value::Percentiles),
            Kind::OomScores => compound::oom_scores(&spread).map(Value::OomScores),
            Kind::Primary => primary(words),
            _ => match words {
                [word] => single(directive, word),
                _ => Err(WRONG_COUNT),
            },
        }
    }

    /// The text that CONFIG GET answers.
    pub fn show(&self, kind: Kind) -> Vec<u8> {
        match (self, kind) {
            (Value::Switch(on), _) => if *on { "yes" } else { "no" }.into(),
            (Value::Integer(number), Kind::Octal) => format!("{number:o}").into_bytes(),
            (Value::Integer(number), _) => number.to_string().into_bytes(),
            (Value::Bytes(bytes), _) => bytes.to_string().into_bytes(),
            (Value::Percent(percent), _) => format!("{percent}%").into_bytes(),
            (Value::Choice(number), Kind::Choice(list)) => {
                let word = list.iter().find(|(_, each)| each == number);
                word.map_or("", |(word, _)| word).into()
            }
            (Value::Flags(bits), Kind::Flags(list)) => show_flags(list, *bits).into_bytes(),
            (Value::Text(text), _) => text.to_vec(),
            (Value::Addresses(list), _) => list.join(&b' '),
            (Value::SavePoints(points), _) => compound::show_save_points(points).into_bytes(),
            (Value::OutputLimits(limits), _) => compound::show_output_limits(limits).into_bytes(),
            (Value::Percentiles(list), _) => compound::show_percentiles(list).into_bytes(),
            (Value::OomScores([a, b, c]), _) => format!("{a} {b} {c}").into_bytes(),
            (Value::Events(bits), _) => compound::show_events(*bits).into_bytes(),
            (Value::Choice(_) | Value::Flags(_), _) => Vec::new(),
        }
    }

    /// The lines that set this value in a file, each without the directive's name. Empty where
    /// the default is already right and several lines are usual.
    pub fn lines(&self, kind: Kind) -> Vec<Vec<u8>> {
        match (self, kind) {
            (Value::Text(_), Kind::Primary) => vec![self.show(kind)],
            (Value::Text(text), _) => vec![super::line::quote(text)],
            (Value::Events(bits), _) => {
                vec![super::line::quote(compound::spell_events(*bits).as_bytes())]
            }
            (Value::Bytes(bytes), _) => vec![show_unit(*bytes).into_bytes()],
            (Value::Addresses(list), _) if list.is_empty() => vec![b"\"\"".to_vec()],
            (Value::Addresses(list), _) => {
                let plain = |word: &[u8]| word.iter().all(|byte| matches!(byte, b'!'..=b'~'));
                let quoted = |word: &[u8]| word.contains(&b'"') || word.contains(&b'\'');
                let word = |word: &[u8]| match plain(word) && !quoted(word) {
                    true => word.to_vec(),
                    false => super::line::quote(word),
                };
                vec![
                    list.iter()
                        .map(|each| word(each))
                        .collect::<Vec<_>>()
                        .join(&b' '),
                ]
            }
            (Value::SavePoints(points), _) if points.is_empty() => vec![b"\"\"".to_vec()],
            (Value::SavePoints(points), _) => points
                .iter()
                .map(|point| compound::show_save_points(&[*point]).into())
                .collect(),
            (Value::OutputLimits(limits), _) => compound::limit_lines(limits),
            (Value::Percentiles(list), _) if list.is_empty() => vec![b"\"\"".to_vec()],
            _ => vec![self.show(kind)],
        }
    }
}

/// Reads a number as Redis does for integers: no plus sign, no leading zero, no blank.
pub fn integer(word: &[u8]) -> Option<i64> {
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    let strict = match digits {
        [b'0'] => word.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !strict {
        return None;
    }
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// Reads bytes with a unit. Digits may be absent and count as 0; what does not fit becomes the
/// greatest number, and a minus sign is refused.
pub fn bytes(word: &[u8]) -> Option<u64> {
    let digits = word.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit: u64 = match word[digits..].to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    let number = word[..digits].iter().fold(0u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Some(number.saturating_mul(unit))
}

/// Bytes with the greatest unit that leaves no rest.
pub fn show_unit(bytes: u64) -> String {
    match bytes {
        0 => "0".to_string(),
        _ if bytes.is_multiple_of(1 << 30) => format!("{}gb", bytes >> 30),
        _ if bytes.is_multiple_of(1 << 20) => format!("{}mb", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{}kb", bytes >> 10),
        _ => bytes.to_string(),
    }
}

fn between(min: impl std::fmt::Display, max: impl std::fmt::Display) -> Reason {
    format!("argument must be between {min} and {max} inclusive").into()
}

fn single(directive: &Directive, word: &[u8]) -> Result<Value, Reason> {
    match directive.kind {
        Kind::Switch if word.eq_ignore_ascii_case(b"yes") => Ok(Value::Switch(true)),
        Kind::Switch if word.eq_ignore_ascii_case(b"no") => Ok(Value::Switch(false)),
        Kind::Switch => Err("argument must be 'yes' or 'no'".into()),
        Kind::Integer { min, max } | Kind::PowerOfTwo { min, max } => {
            let number = integer(word).ok_or("argument couldn't be parsed into an integer")?;
            if !(min..=max).contains(&number) {
                return Err(between(min, max));
            }
            if matches!(directive.kind, Kind::PowerOfTwo { .. }) && number.count_ones() != 1 {
                return Err(format!("{} must be a power of two", directive.name).into());
            }
            let (low, high) = directive.clamp.unwrap_or((min, max));
            Ok(Value::Integer(number.clamp(low, high)))
        }
        Kind::Octal => octal(word),
        Kind::Memory { min, max } => {
            let number = bytes(word).ok_or("argument must be a memory value")?;
            if !(min..=max).contains(&number) {
                return Err(between(min, max));
            }
            let low = directive
                .clamp
                .map_or(0, |(low, _)| u64::try_from(low).unwrap_or(0));
            Ok(Value::Bytes(number.max(low)))
        }
        Kind::MemoryOrPercent => memory_or_percent(word),
        Kind::Choice(list) => {
            let found = list
                .iter()
                .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
            match found {
                Some((_, number)) => Ok(Value::Choice(*number)),
                None => Err(one_of(list.iter().map(|(name, _)| *name))),
            }
        }
        Kind::Text(check) => {
            check_text(directive.name, check, word)?;
            Ok(Value::Text(word.into()))
        }
        Kind::Directory => directory(word),
        Kind::Events => compound::events(word).map(Value::Events),
        Kind::Flags(_)
        | Kind::Addresses
        | Kind::SavePoints
        | Kind::OutputLimits
        | Kind::Percentiles
        | Kind::OomScores
        | Kind::Primary => Err(WRONG_COUNT),
    }
}

fn one_of<'a>(names: impl Iterator<Item = &'a str>) -> Reason {
    let names: Vec<&str> = names.collect();
    format!(
        "argument(s) must be one of the following: {}",
        names.join(", ")
    )
    .into()
}

fn octal(word: &[u8]) -> Result<Value, Reason> {
    let negative = word.first() == Some(&b'-');
    let digits = if negative { &word[1..] } else { word };
    let text = std::str::from_utf8(digits)
        .ok()
        .filter(|text| !text.starts_with('+'));
    let number = text.and_then(|text| i64::from_str_radix(text, 8).ok());
    match number {
        Some(number) if (negative && number != 0) || number > 0o777 => Err(between(0, 777)),
        Some(number) => Ok(Value::Integer(number)),
        None => Err("argument couldn't be parsed as an octal number".into()),
    }
}

fn memory_or_percent(word: &[u8]) -> Result<Value, Reason> {
    let wrong = || Reason::from("argument must be a memory or percent value");
    if let Some(share) = word.strip_suffix(b"%") {
        let percent = integer(share)
            .filter(|percent| *percent >= 0)
            .ok_or_else(wrong)?;
        let percent = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
        return percent
            .map(Value::Percent)
            .ok_or("percentage argument must be less or equal to 100".into());
    }
    let number = bytes(word).ok_or_else(wrong)?;
    match i64::try_from(number) {
        Ok(_) => Ok(Value::Bytes(number)),
        Err(_) => Err(between(0, i64::MAX)),
    }
}

fn flags(list: &'static [(&'static str, u32)], words: &[&[u8]]) -> Result<Value, Reason> {
    if words.is_empty() {
        return Err(one_of(list.iter().map(|(name, _)| *name)));
    }
    let mut bits = 0;
    for word in words {
        let found = list
            .iter()
            .find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
        let (_, more) = found.ok_or_else(|| one_of(list.iter().map(|(name, _)| *name)))?;
        bits |= more;
    }
    Ok(Value::Flags(bits))
}

fn show_flags(list: &[(&str, u32)], bits: u32) -> String {
    if let Some((name, _)) = list.iter().find(|(_, each)| *each == bits) {
        return (*name).to_string();
    }
    let set = |each: u32| each != 0 && bits & each == each;
    let names: Vec<&str> = list
        .iter()
        .filter(|(_, each)| set(*each))
        .map(|(name, _)| *name)
        .collect();
    names.join(" ")
}

fn addresses(words: &[&[u8]]) -> Result<Value, Reason> {
    if words.len() > ADDRESSES_MAX {
        return Err("Too many bind addresses specified.".into());
    }
    if words
        .iter()
        .any(|word| word.is_empty() || word.contains(&b' '))
    {
        return Err("Failed to bind to specified addresses.".into());
    }
    Ok(Value::Addresses(
        words.iter().map(|word| Box::from(*word)).collect(),
    ))
}

fn primary(words: &[&[u8]]) -> Result<Value, Reason> {
    let [host, port] = words else {
        return Err(WRONG_COUNT);
    };
    if host.eq_ignore_ascii_case(b"no") && port.eq_ignore_ascii_case(b"one") {
        return Ok(Value::Text(Box::default()));
    }
    if !integer(port).is_some_and(|port| (0..=65535).contains(&port)) {
        return Err("Invalid master port".into());
    }
    Ok(Value::Text(
        [host, port].map(|word| word.to_vec()).join(&b' ').into(),
    ))
}

fn directory(word: &[u8]) -> Result<Value, Reason> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let path = Path::new(std::ffi::OsStr::from_bytes(word));
    let absolute = std::fs::canonicalize(path).map_err(|error| system_text(&error))?;
    if !absolute.is_dir() {
        return Err("Not a directory".into());
    }
    Ok(Value::Text(absolute.into_os_string().into_vec().into()))
}

/// The system's words for an error, without the number that Rust appends.
pub fn system_text(error: &std::io::Error) -> Reason {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_string().into(),
        None => text.into(),
    }
}

fn check_text(name: &str, check: TextCheck, word: &[u8]) -> Result<(), Reason> {
    match check {
        TextCheck::Any => Ok(()),
        TextCheck::FileNameNonEmpty | TextCheck::DirNameNonEmpty if word.is_empty() => {
            Err(format!("{name} can't be empty").into())
        }
        TextCheck::FileName | TextCheck::FileNameNonEmpty if word.contains(&b'/') => {
            Err(format!("{name} can't be a path, just a filename").into())
        }
        TextCheck::DirNameNonEmpty if word.contains(&b'/') => {
            Err(format!("{name} can't be a path, just a dirname").into())
        }
        TextCheck::FileName | TextCheck::FileNameNonEmpty | TextCheck::DirNameNonEmpty => Ok(()),
        TextCheck::HostName if word.len() >= 256 => {
            Err("Hostnames must be less than 256 characters".into())
        }
        TextCheck::HostAddress if word.len() >= 46 => {
            Err(format!("Hostnames for {name} must be less than 46 characters").into())
        }
        TextCheck::HostName | TextCheck::HostAddress => {
            let address = std::str::from_utf8(word)
                .ok()
                .and_then(|word| word.parse().ok());
            if let (TextCheck::HostAddress, Some(std::net::IpAddr::V6(_))) = (check, address) {
                return Ok(());
            }
            let good = |byte: &u8| byte.is_ascii_alphanumeric() || b"-.".contains(byte);
            word.iter()
                .all(good)
                .then_some(())
                .ok_or("Hostnames may only contain alphanumeric characters, hyphens or dots".into())
        }
        TextCheck::PeerNames => {
            let blank = |byte: &u8| byte.is_ascii_whitespace() && *byte != b' ' || *byte == 0x0b;
            let bad = "must not contain whitespace other than spaces separating names; use an \
                       empty string to disable it";
            match word.iter().any(blank) {
                true => Err(format!("{name} {bad}").into()),
                false => Ok(()),
            }
        }
        TextCheck::NodeName => {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._/`".contains(byte);
            let good = |byte: &u8| plain(byte) || !byte.is_ascii();
            let bad = "Announced human node name contained invalid character";
            word.iter().all(good).then_some(()).ok_or(bad.into())
        }
        TextCheck::TitleTemplate => compound::title_template(word),
        TextCheck::Locale if matches!(word, b"" | b"C" | b"POSIX") => Ok(()),
        TextCheck::Locale => Err("Invalid locale name".into()),
        TextCheck::Preload => {
            let path = word
                .strip_prefix(b"aof:")
                .or_else(|| word.strip_prefix(b"rdb:"));
            match path {
                None if word.is_empty() => Ok(()),
                Some(path) if path.starts_with(b"/") => {
                    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
                    let bad = "preload-file must end with an extension";
                    name.contains(&b'.').then_some(()).ok_or(bad.into())
                }
                _ => Err("argument must be in the format '[aof|rdb]:[filename]'".into()),
            }
        }
    }
}
