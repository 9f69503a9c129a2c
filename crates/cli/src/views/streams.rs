//! `--streams` and `:streams`: every stream with its groups and consumers, what is pending, how old
//! the oldest of that is, and how far behind each group is.

use crate::command::{Runner, refused};
use crate::highlight::{BOLD, DIM, RESET, YELLOW};
use crate::modes::scan::Walk;
use crate::options::Options;
use crate::out::{Failure, Outcome, put};
use crate::session::Session;
use crate::words::quoted;
use crate::{pager, wait};
use client::Reply;

/// Shows the streams whose keys match, or those that are named.
pub fn run(
    runner: &mut Runner,
    pattern: Option<Vec<u8>>,
    named: Option<(Vec<Vec<u8>>, &Options)>,
) -> Outcome {
    wait::catch();
    runner.session.patient = true;
    let outcome = look(runner, pattern, named);
    runner.session.patient = false;
    outcome
}

fn look(
    runner: &mut Runner,
    pattern: Option<Vec<u8>>,
    named: Option<(Vec<Vec<u8>>, &Options)>,
) -> Outcome {
    let mut keys = Vec::new();
    match named {
        Some((named, _)) if !named.is_empty() => keys = named,
        other => {
            let mut walk = match other {
                Some((_, options)) => Walk::new(options)?,
                None => Walk::matching(pattern),
            };
            walk.of_type("stream");
            while !wait::interrupted()
                && let Some(found) = walk.next(&mut runner.session)?
            {
                keys.extend(found);
            }
            keys.sort();
            keys.dedup();
        }
    }
    let mut text = String::new();
    for key in &keys {
        let stream = Stream::ask(&mut runner.session, key)?;
        text += &stream.map_or_else(String::new, |stream| stream.show(runner.style.colour));
    }
    if keys.is_empty() {
        text += "no streams\n";
    }
    match runner.style.page {
        true => pager::show(text.as_bytes()),
        false => put(text),
    }
    Ok(())
}

struct Stream {
    key: Vec<u8>,
    length: i64,
    last: String,
    groups: Vec<Group>,
}

struct Group {
    name: String,
    pending: i64,
    /// Entries that nobody was given yet; unknown after some ways of changing a group.
    lag: Option<i64>,
    last_delivered: String,
    /// The oldest entry that was given and not acknowledged: its id, who has it, since when.
    oldest: Option<(String, String, i64)>,
    consumers: Vec<Consumer>,
}

struct Consumer {
    name: String,
    pending: i64,
    idle_ms: i64,
}

fn number(reply: &Reply, field: &str) -> Option<i64> {
    reply.field(field).and_then(Reply::integer)
}

/// A text as it may be shown: what is no plain character is spelled out.
fn text(reply: &Reply, field: &str) -> String {
    let bytes = reply.field(field).and_then(Reply::bytes);
    bytes.map_or_else(String::new, spelled)
}

fn spelled(bytes: &[u8]) -> String {
    let quoted = quoted(bytes);
    quoted[1..quoted.len() - 1].to_owned()
}

impl Stream {
    /// `None` where the key is gone or was never a stream.
    fn ask(session: &mut Session, key: &[u8]) -> Result<Option<Self>, Failure> {
        let info = session.call(&[b"XINFO".as_slice(), b"STREAM", key])?;
        match &info {
            Reply::Error(text) if text.ends_with(b"no such key") => return Ok(None),
            Reply::Error(_) => return Err(refused(&info)),
            _ => {}
        }
        let groups = session.call(&[b"XINFO".as_slice(), b"GROUPS", key])?;
        let groups = groups.elements().unwrap_or_default().iter();
        let groups: Result<Vec<Group>, Failure> = groups
            .map(|group| Group::ask(session, key, group))
            .collect();
        Ok(Some(Self {
            key: key.to_vec(),
            length: number(&info, "length").unwrap_or(0),
            last: text(&info, "last-generated-id"),
            groups: groups?,
        }))
    }

    fn show(&self, colour: bool) -> String {
        let paint = |code: &'static str| if colour { code } else { "" };
        let (bold, dim, yellow, reset) = (paint(BOLD), paint(DIM), paint(YELLOW), paint(RESET));
        let key = spelled(&self.key);
        let (length, last) = (self.length, &self.last);
        let mut text = format!("{bold}{key}{reset}: {length} entries, {dim}last {last}{reset}\n");
        for group in &self.groups {
            let lag = group
                .lag
                .map_or_else(|| "unknown".to_owned(), |lag| lag.to_string());
            text += &format!(
                "  group {bold}{}{reset}: {} consumers, pending {}, lag {lag}, {dim}at {}{reset}\n",
                group.name,
                group.consumers.len(),
                group.pending,
                group.last_delivered,
            );
            if let Some((id, consumer, idle_ms)) = &group.oldest {
                let idle = duration(*idle_ms);
                text += &format!(
                    "    {yellow}oldest unacknowledged{reset} {id}: \
                     {consumer} has had it for {idle}\n"
                );
            }
            for consumer in &group.consumers {
                text += &format!(
                    "    consumer {}: pending {}, idle {}\n",
                    consumer.name,
                    consumer.pending,
                    duration(consumer.idle_ms),
                );
            }
        }
        text
    }
}

impl Group {
    fn ask(session: &mut Session, key: &[u8], facts: &Reply) -> Result<Self, Failure> {
        let name = text(facts, "name");
        let bytes = facts
            .field("name")
            .and_then(Reply::bytes)
            .unwrap_or_default();
        let consumers = session.call(&[b"XINFO".as_slice(), b"CONSUMERS", key, bytes])?;
        let consumers = consumers.elements().unwrap_or_default().iter();
        let consumers = consumers.map(|facts| Consumer {
            name: text(facts, "name"),
            pending: number(facts, "pending").unwrap_or(0),
            idle_ms: number(facts, "idle").unwrap_or(0),
        });
        let oldest = [b"XPENDING".as_slice(), key, bytes, b"-", b"+", b"1"];
        let oldest = session.call(&oldest)?;
        let oldest = oldest.elements().and_then(<[Reply]>::first);
        let oldest = oldest.and_then(|entry| match entry.elements()? {
            [id, consumer, idle, _] => {
                let shown = |reply: &Reply| reply.bytes().map(spelled);
                Some((shown(id)?, shown(consumer)?, idle.integer()?))
            }
            _ => None,
        });
        Ok(Self {
            pending: number(facts, "pending").unwrap_or(0),
            lag: number(facts, "lag"),
            last_delivered: text(facts, "last-delivered-id"),
            consumers: consumers.collect(),
            oldest,
            name,
        })
    }
}

/// A length of time in its biggest unit.
fn duration(millis: i64) -> String {
    const UNITS: [(i64, &str); 4] = [
        (86_400_000, "d"),
        (3_600_000, "h"),
        (60_000, "m"),
        (1_000, "s"),
    ];
    let unit = UNITS.iter().find(|(length, _)| millis >= *length);
    match unit {
        Some((length, name)) => format!("{:.1}{name}", millis as f64 / *length as f64),
        None => format!("{millis}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_fitting_unit() {
        let shown = [5, 1_500, 90_000, 5_400_000, 129_600_000].map(duration);
        assert_eq!(shown, ["5ms", "1.5s", "1.5m", "1.5h", "1.5d"]);
    }
}
