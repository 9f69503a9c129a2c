//! What modes that look at keys share: kinds of values, requests for many keys at once, progress.

use crate::command::refused;
use crate::out::{Failure, to_terminal};
use crate::session::Session;
use client::{Reply, encode};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A kind of value: its name, how long one is, and in what that is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    pub length: Option<&'static str>,
    pub unit: &'static str,
}

const fn kind(name: &'static str, length: &'static str, unit: &'static str) -> Kind {
    Kind {
        name,
        length: Some(length),
        unit,
    }
}

/// The kinds that every server has, in the order of the summary.
pub const KINDS: [Kind; 6] = [
    kind("string", "STRLEN", "bytes"),
    kind("list", "LLEN", "items"),
    kind("set", "SCARD", "members"),
    kind("zset", "ZCARD", "members"),
    kind("hash", "HLEN", "fields"),
    kind("stream", "XLEN", "entries"),
];

/// Kinds that only some servers have.
const RARE: [Kind; 3] = [
    kind("array", "ARCOUNT", "elements"),
    kind("vectorset", "VCARD", "elements"),
    Kind {
        name: "other",
        length: None,
        unit: "elements",
    },
];

/// The kind of that name; what is not known is one of its own, whose length nobody knows.
pub fn kind_named(name: &[u8]) -> Kind {
    let mut known = KINDS.iter().chain(&RARE);
    let found = known.find(|kind| kind.name.as_bytes() == name);
    *found.unwrap_or(&RARE[RARE.len() - 1])
}

/// Commands that are on their way at once: neither side then waits for room to write.
const AT_ONCE: usize = 256;

/// Sends commands many at a time and takes the replies, which are as many.
pub fn all_at_once(session: &mut Session, commands: &[Vec<&[u8]>]) -> Result<Vec<Reply>, Failure> {
    let mut replies = Vec::with_capacity(commands.len());
    for some in commands.chunks(AT_ONCE) {
        let mut bytes = Vec::new();
        some.iter().for_each(|command| encode(command, &mut bytes));
        session.send_bytes(&bytes)?;
        for _ in some {
            replies.push(session.reply()?);
        }
    }
    Ok(replies)
}

/// The kinds of keys; a key that is gone has none.
pub fn kinds(session: &mut Session, keys: &[Vec<u8>]) -> Result<Vec<Option<Kind>>, Failure> {
    let asked: Vec<Vec<&[u8]>> = keys
        .iter()
        .map(|key| vec![b"TYPE", key.as_slice()])
        .collect();
    let replies = all_at_once(session, &asked)?;
    let kinds = replies.iter().map(|reply| match reply.bytes() {
        Some(b"none") => Ok(None),
        Some(name) => Ok(Some(kind_named(name))),
        None => Err(refused(reply)),
    });
    kinds.collect()
}

/// The length of each key; 0 where it is gone, or became another kind meanwhile.
pub fn lengths(session: &mut Session, keys: &[(&[u8], Kind)]) -> Result<Vec<u64>, Failure> {
    let known: Vec<Vec<&[u8]>> = keys
        .iter()
        .filter_map(|(key, kind)| Some(vec![kind.length?.as_bytes(), *key]))
        .collect();
    let mut replies = all_at_once(session, &known)?.into_iter();
    let lengths = keys.iter().map(|(_, kind)| {
        let reply = kind.length.and_then(|_| replies.next());
        reply
            .and_then(|reply| reply.integer())
            .map_or(0, |length| u64::try_from(length).unwrap_or(0))
    });
    Ok(lengths.collect())
}

/// The memory of each key; 0 where it is gone.
pub fn memory(
    session: &mut Session,
    keys: &[&[u8]],
    samples: Option<i64>,
) -> Result<Vec<u64>, Failure> {
    let samples = samples.map(|count| count.to_string());
    let asked: Vec<Vec<&[u8]>> = keys
        .iter()
        .map(|key| {
            let mut call: Vec<&[u8]> = vec![b"MEMORY", b"USAGE", key];
            if let Some(samples) = &samples {
                call.extend([b"SAMPLES".as_slice(), samples.as_bytes()]);
            }
            call
        })
        .collect();
    let replies = all_at_once(session, &asked)?;
    let sizes = replies.iter().map(|reply| match reply {
        Reply::Error(_) => Err(refused(reply)),
        other => Ok(other
            .integer()
            .and_then(|size| u64::try_from(size).ok())
            .unwrap_or(0)),
    });
    sizes.collect()
}

/// A bar under what is printed, at a terminal; nothing anywhere else.
pub fn progress(total: u64, unit: &str) -> ProgressBar {
    let target = match to_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(Some(total), target);
    let template = format!("{{wide_bar}} {{human_pos}} of {{human_len}} {unit}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("##-"));
    }
    bar
}

/// A share as a percentage, 0 of nothing.
pub fn percent(part: u64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        _ => part as f64 * 100.0 / whole as f64,
    }
}

/// Bytes with a binary unit, as Redis's tools round them.
pub fn human(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.2}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_for_people() {
        assert_eq!(human(1023), "1023B");
        assert_eq!(human(1536), "1.50K");
        assert_eq!(human(1_164_000), "1.11M");
        assert_eq!(human(u64::MAX), "16384.00P");
    }

    #[test]
    fn kinds_are_found_by_name() {
        assert_eq!(kind_named(b"zset").length, Some("ZCARD"));
        assert_eq!(kind_named(b"ReJSON-RL").name, "other");
    }
}
