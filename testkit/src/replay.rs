//! A second engine that plays the first one's log again, and what the two must agree on.
//!
//! The second one has other secrets for its hashes, other random numbers, another number of
//! stripes and a clock that is ahead: whatever an effect took from these shows as a difference.
//!
//! # Invariants
//! - Everything that a client could read is compared: values, deadlines of keys and fields,
//!   counters, groups and what is pending. Only what no log says is left out: when something was
//!   last used or seen, and how a value is kept in memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use engine::keyspace::Keyspace;
use engine::object::{Object, transfer};
use engine::replay::Replayer;
use engine::settings::Settings;

use resp::{Args, Batch, Decoder, Limits, OwnedArgs};
use structure::decimal::TEXT_MAX;
use structure::hash::Seed;
use structure::record::ValueRef;
use structure::stream::{Group, Stream, StreamId};
use structure::stripes::{NoLock, RawLock, StripeSet};

use crate::in_process::Logged;

/// How far the clock of the replay is ahead: 40 days.
const AHEAD_MS: u64 = 40 * 86_400_000;

const LIMITS: Limits = Limits {
    bulk_bytes_max: 1 << 30,
    authenticated: true,
};

/// An engine that knows only what a log says.
pub struct Replay {
    keyspace: Keyspace<NoLock>,
    /// The number of the last frame that was played.
    last: u64,
}

impl Default for Replay {
    fn default() -> Self {
        let table = engine::Table::new(engine::commands::FAMILIES);
        Self {
            keyspace: Keyspace::new(table, 16, Seed::new([77, 3_000_000_019])),
            last: 0,
        }
    }
}

impl Replay {
    /// Plays what follows in the log.
    ///
    /// # Errors
    /// A frame is missing, or one cannot be played.
    pub fn play(&mut self, log: &[Logged], settings: &Settings) -> Result<(), String> {
        let mut replayer = Replayer::new(&self.keyspace, settings);
        for Logged { frame, bytes } in log {
            if frame.lsn != self.last + 1 {
                return Err(format!("frame {} follows {}", frame.lsn, self.last));
            }
            self.last = frame.lsn;
            let now_ms = frame.at_ms + AHEAD_MS;
            let mut play = |args: Args<'_>| {
                let played = replayer.play(args, now_ms);
                played.map_err(|problem| format!("{problem}, playing {}", shown(bytes)))
            };
            let select = [b"SELECT".to_vec(), frame.db.to_string().into_bytes()];
            play(OwnedArgs::from_words(select.iter().map(Vec::as_slice)).view())?;
            let mut batch = Batch::default();
            let end = Decoder::default().decode(bytes, LIMITS, usize::MAX, &mut batch);
            if end.ok() != Some(bytes.len()) {
                return Err(format!("no whole commands: {}", shown(bytes)));
            }
            (0..batch.len()).try_for_each(|index| play(batch.args(index, bytes)))?;
            if replayer.is_in_transaction() || replayer.db() != frame.db_after {
                return Err(format!(
                    "the frame does not end where it says: {}",
                    shown(bytes)
                ));
            }
        }
        replayer.rest();
        Ok(())
    }

    /// What differs between this and the engine that wrote the log, at a time on its clock.
    pub fn differs<L: RawLock>(&self, from: &Keyspace<L>, now_ms: u64) -> Option<String> {
        let (there, here) = (contents(from, now_ms), contents(&self.keyspace, now_ms));
        let keys = there.keys().chain(here.keys());
        keys.into_iter().find_map(|key| {
            let (there, here) = (there.get(key), here.get(key));
            let (db, name) = (key.0, shown(&key.1));
            let none = &"nothing".to_owned();
            (there != here).then(|| {
                format!(
                    "the replay differs at {name} of database {db}:\n{}\nbecame\n{}",
                    there.unwrap_or(none),
                    here.unwrap_or(none)
                )
            })
        })
    }
}

/// Bytes of a log as text.
pub fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace("\\r\\n", " ")
}

/// Every key with all that is to be compared of it, as text.
fn contents<L: RawLock>(keyspace: &Keyspace<L>, now_ms: u64) -> BTreeMap<(u32, Vec<u8>), String> {
    let mut all = BTreeMap::new();
    for index in 0..keyspace.stripes.count() {
        let mut guard = keyspace.stripes.acquire(StripeSet::one(index));
        let held = guard.held();
        let stripe = held.get(index);
        for number in 0..stripe.db_count() {
            for record in stripe.db(number).iter().flat_map(|db| db.table.iter()) {
                let mut text = format!("deadline {:?}: ", record.deadline());
                describe(&mut text, record.value(), now_ms);
                all.insert((number, record.key().to_vec()), text);
            }
        }
    }
    all
}

fn describe(text: &mut String, value: ValueRef<'_, Object>, now_ms: u64) {
    match value {
        ValueRef::Int(int) => {
            let _ = write!(text, "string {int}");
        }
        ValueRef::Bytes(bytes) => {
            let _ = write!(text, "string {}", bytes.escape_ascii());
        }
        ValueRef::Object(Object::List(list)) => {
            *text += "list";
            for entry in list.iter() {
                let _ = write!(text, " {}", entry.bytes(&mut [0; TEXT_MAX]).escape_ascii());
            }
        }
        ValueRef::Object(Object::Set(set)) => {
            let mut members = Vec::new();
            transfer::each_member(set, |member| {
                members.push(member.escape_ascii().to_string())
            });
            members.sort();
            let _ = write!(text, "set {}", members.join(" "));
        }
        ValueRef::Object(Object::SortedSet(sorted)) => {
            *text += "sorted set";
            transfer::each_scored(sorted, |member, score| {
                let _ = write!(text, " {}={:x}", member.escape_ascii(), score.to_bits());
            });
        }
        ValueRef::Object(Object::Hash(hash)) => {
            let mut fields = Vec::new();
            transfer::each_field(hash, |field, value, deadline| {
                let (field, value) = (field.escape_ascii(), value.escape_ascii());
                fields.push(format!("{field}={value} until {deadline:?}"));
            });
            fields.sort();
            let _ = write!(text, "hash {}", fields.join(", "));
        }
        ValueRef::Object(Object::Stream(stream)) => describe_stream(text, stream, now_ms),
        ValueRef::Object(array @ Object::Array(_)) => {
            let bytes = engine::dump::dump(ValueRef::Object(array)).unwrap_or_default();
            let _ = write!(text, "array {}", bytes.escape_ascii());
        }
    }
}

fn describe_stream(text: &mut String, stream: &Stream, now_ms: u64) {
    let _ = write!(text, "stream {:?}", stream.progress());
    for entry in stream.range(StreamId::MIN, StreamId::MAX) {
        let _ = write!(text, "\n {}-{}", entry.id.ms, entry.id.seq);
        for (name, value) in entry.fields {
            let _ = write!(text, " {}={}", name.escape_ascii(), value.escape_ascii());
        }
    }
    stream
        .groups()
        .for_each(|group| describe_group(text, group));
    let limits = stream.idempotency_limits();
    let _ = write!(text, "\n {limits:?}");
    // What is past its time is as good as forgotten.
    let oldest_ms = now_ms.saturating_sub(u64::from(limits.duration_s) * 1000);
    if let Some(memory) = stream.idempotency() {
        let _ = write!(text, " added {} again {}", memory.added, memory.duplicates);
        for (producer, message, id) in memory.iter().filter(|(.., id)| id.ms > oldest_ms) {
            let (producer, message) = (producer.escape_ascii(), message.escape_ascii());
            let _ = write!(text, "\n {producer} {message} {}-{}", id.ms, id.seq);
        }
    }
}

fn describe_group(text: &mut String, group: &Group) {
    let (name, last) = (group.name().escape_ascii(), group.last_delivered());
    let (ms, seq, read) = (last.ms, last.seq, group.entries_read);
    let _ = write!(text, "\n group {name} at {ms}-{seq} read {read:?}");
    for (_, consumer) in group.consumers() {
        let (name, pending) = (consumer.name().escape_ascii(), consumer.pending());
        let _ = write!(text, "\n  consumer {name} has {pending}");
    }
    for entry in group.pending_range(StreamId::MIN, StreamId::MAX, None) {
        let holder = entry.consumer.and_then(|index| group.consumer(index));
        let holder = holder.map_or(&b""[..], |consumer| consumer.name());
        let _ = write!(
            text,
            "\n  pending {}-{} for '{}' since {} times {}",
            entry.id.ms,
            entry.id.seq,
            holder.escape_ascii(),
            entry.delivered_ms,
            entry.deliveries
        );
    }
    // In the order in which they may be claimed.
    for entry in group.claimable(Some(u64::MAX), usize::MAX, |_| true) {
        let _ = write!(text, "\n  next {}-{}", entry.id.ms, entry.id.seq);
    }
}
