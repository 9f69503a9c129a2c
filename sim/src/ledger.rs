//! Where every element is: pushed by whom, held where, popped once.
//!
//! After each step the ledger looks at all tame keys and at all replies of that step, and accounts
//! for every difference. It predicts nothing: which client gets an element is the engine's choice,
//! but an element must be where the replies say it went.
//!
//! # Invariants (of the engine, checked here)
//! - What is held was pushed by a command that said so, and stands in one place only.
//! - What a pop returned was held, is no more, and is never returned by a second pop.
//! - What is gone was popped, or was under a key that a command or its deadline removed.
//! - A group gives each entry of a stream to one consumer, once, and leaves none out.

use std::collections::{HashMap, HashSet};

use engine::Object;
use structure::listpack::Entry;
use structure::record::ValueRef;
use structure::stream::StreamId;
use testkit::{InProcess, Reply};

use crate::checks::with_stripe;
use crate::random::Random;
use crate::tame::{DATABASES, KEYS};

/// A command that ran, and what it answered. Those of an EXEC stand for themselves.
pub struct Event {
    /// Who sent it.
    pub client: usize,
    /// Its words.
    pub words: Vec<Vec<u8>>,
    /// Its reply.
    pub reply: Reply,
}

impl Event {
    /// Word `index` as text; empty where there is none.
    pub fn word(&self, index: usize) -> &str {
        let word = self.words.get(index).map(|word| std::str::from_utf8(word));
        word.and_then(Result::ok).unwrap_or_default()
    }
}

/// The state of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// A command with it was made.
    Made,
    Held,
    Popped,
    /// It went with its key, or was trimmed away.
    Removed,
}

/// Looks between two at which groups have passed over entries.
const GROUP_CHECK_LOOKS: usize = 32;

/// The account of all elements.
pub struct Ledger {
    states: Vec<State>,
    /// Held elements and where they were at the last look: key and database.
    held: Vec<(usize, usize)>,
    /// The deadline of each key at each database at the last look.
    deadlines: Vec<Option<u64>>,
    /// The groups of the tame streams.
    pub groups: Groups,
    looks: usize,
}

impl Default for Ledger {
    fn default() -> Self {
        Self {
            states: Vec::new(),
            held: Vec::new(),
            deadlines: vec![None; KEYS.len() * DATABASES],
            groups: Groups::default(),
            looks: 0,
        }
    }
}

/// What may have removed elements in a step.
#[derive(Default)]
struct Removals {
    all: bool,
    keys: HashSet<String>,
}

impl Ledger {
    /// A new element's number.
    pub fn fresh(&mut self) -> usize {
        self.states.push(State::Made);
        self.states.len() - 1
    }

    /// How many elements are held.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// The number of some element that is held, if one is.
    pub fn any(&self, random: &mut Random) -> usize {
        match self.held.len() {
            0 => 0,
            len => self.held[random.below(len)].0,
        }
    }

    /// Accounts for a step: what ran in it, and whether time passed meanwhile.
    ///
    /// # Errors
    /// What does not add up.
    pub fn account(
        &mut self,
        engine: &InProcess,
        events: &[Event],
        time_passed: bool,
    ) -> Result<(), String> {
        let now_ms = engine.now_ms();
        let mut pushed = HashSet::new();
        let mut popped = HashSet::new();
        let mut removals = Removals::default();
        for event in events {
            if event.reply.is_error() {
                continue;
            }
            note_removals(event, time_passed, &mut removals);
            if pushes(event) {
                let words = event.words.iter().skip(2);
                pushed.extend(words.filter_map(|word| element(word)));
            }
            if pops(event) {
                for id in elements(&event.reply) {
                    if self.states.get(id) == Some(&State::Popped) || !popped.insert(id) {
                        return Err(format!("e{id} was popped twice"));
                    }
                }
            }
            self.groups.note(event)?;
        }
        if events.len() > 1 && !removals.keys.is_empty() {
            // What one command moved, another may have removed.
            let moves = events.iter().filter(|event| moves(event));
            let keys = moves.flat_map(|event| [event.word(1), event.word(2)]);
            removals.keys.extend(keys.map(str::to_owned));
        }
        let before = std::mem::take(&mut self.held);
        let deadlines = self.look(engine)?;
        let mut here = vec![false; self.states.len()];
        for &(id, slot) in &self.held {
            if std::mem::replace(&mut here[id], true) {
                return Err(format!("e{id} is held twice, once in {}", place(slot)));
            }
            if popped.contains(&id) {
                return Err(format!("e{id} was popped and is still in {}", place(slot)));
            }
            match self.states[id] {
                State::Held => {}
                State::Made if pushed.contains(&id) => self.states[id] = State::Held,
                state => return Err(format!("e{id} is in {}, but was {state:?}", place(slot))),
            }
        }
        for &id in &popped {
            let was_there = match self.states.get(id) {
                Some(State::Held) => true,
                Some(State::Made) => pushed.contains(&id),
                _ => false,
            };
            if !was_there {
                return Err(format!("e{id} was popped, but was not there"));
            }
            self.states[id] = State::Popped;
        }
        for (id, slot) in before {
            if here[id] || self.states[id] == State::Popped {
                continue;
            }
            let expired = self.deadlines[slot].is_some_and(|at| at <= now_ms);
            let removed = removals.all || removals.keys.contains(KEYS[slot / DATABASES]);
            if !expired && !removed {
                return Err(format!("e{id} was lost from {}", place(slot)));
            }
            self.states[id] = State::Removed;
        }
        for id in pushed {
            if self.states[id] == State::Made {
                if !time_passed && !removals.all && removals.keys.is_empty() {
                    return Err(format!("e{id} was pushed and is nowhere"));
                }
                self.states[id] = State::Removed;
            }
        }
        self.deadlines = deadlines;
        Ok(())
    }

    /// Finds everything that is held, and the keys' deadlines.
    fn look(&mut self, engine: &InProcess) -> Result<Vec<Option<u64>>, String> {
        let mut deadlines = vec![None; self.deadlines.len()];
        let shared = &engine.keyspace().shared;
        self.looks += 1;
        let turn = self.looks % GROUP_CHECK_LOOKS;
        for (number, key) in KEYS.iter().enumerate() {
            let hash = shared.hash(key.as_bytes());
            with_stripe(engine, shared.stripe(hash), |stripe| {
                for db in 0..DATABASES {
                    let slot = number * DATABASES + db;
                    let table = stripe.db(u32::try_from(db).unwrap_or(0));
                    let Some(record) = table.and_then(|db| db.table.find(hash, key.as_bytes()))
                    else {
                        continue;
                    };
                    deadlines[slot] = record.deadline();
                    if let ValueRef::Object(object) = record.value() {
                        let is_dead = record.deadline().is_some_and(|at| at <= engine.now_ms());
                        let held = &mut self.held;
                        each_element(object, |id| held.push((id, slot)));
                        if let (Object::Stream(stream), false, 0) = (object, is_dead, turn) {
                            self.groups.check(stream)?;
                        }
                    }
                }
                Ok::<(), String>(())
            })?;
        }
        match self.held.iter().find(|(id, _)| *id >= self.states.len()) {
            Some((id, slot)) => Err(format!("e{id} in {} was never made", place(*slot))),
            None => Ok(deadlines),
        }
    }
}

fn place(slot: usize) -> String {
    format!(
        "{} of database {}",
        KEYS[slot / DATABASES],
        slot % DATABASES
    )
}

/// The number of an element.
fn element(word: &[u8]) -> Option<usize> {
    let digits = word
        .strip_prefix(b"e")
        .filter(|digits| !digits.is_empty())?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn each_element(object: &Object, mut each: impl FnMut(usize)) {
    let mut see = |entry: Entry<'_>| {
        if let Entry::Bytes(bytes) = entry
            && let Some(id) = element(bytes)
        {
            each(id);
        }
    };
    match object {
        Object::List(list) => list.iter().for_each(see),
        Object::Set(set) => set.iter().for_each(see),
        Object::SortedSet(sorted) => sorted.each(0..usize::MAX, false, |entry, _| see(entry)),
        Object::Hash(_) | Object::Array(_) => {}
        Object::Stream(stream) => {
            for mut entry in stream.range(StreamId::MIN, StreamId::MAX) {
                if let Some((_, value)) = entry.fields.next() {
                    see(Entry::Bytes(value));
                }
            }
        }
    }
}

/// All elements in a reply, in order.
fn elements(reply: &Reply) -> Vec<usize> {
    let mut found = Vec::new();
    collect(reply, &mut found);
    found
}

fn collect(reply: &Reply, found: &mut Vec<usize>) {
    match reply {
        Reply::Bulk(bytes) => found.extend(element(bytes)),
        Reply::Map(pairs) => {
            for (key, value) in pairs {
                collect(key, found);
                collect(value, found);
            }
        }
        _ => {
            let parts = reply.elements().unwrap_or_default();
            parts.iter().for_each(|part| collect(part, found));
        }
    }
}

fn pops(event: &Event) -> bool {
    matches!(
        event.word(0),
        "LPOP"
            | "RPOP"
            | "BLPOP"
            | "BRPOP"
            | "LMPOP"
            | "BLMPOP"
            | "SPOP"
            | "ZPOPMIN"
            | "ZPOPMAX"
            | "ZMPOP"
            | "BZPOPMIN"
            | "BZPOPMAX"
            | "BZMPOP"
    ) && event.words.iter().any(|word| word.starts_with(b"m:"))
}

fn pushes(event: &Event) -> bool {
    matches!(
        event.word(0),
        "LPUSH" | "RPUSH" | "LPUSHX" | "RPUSHX" | "LSET" | "ZADD" | "SADD" | "XADD"
    ) && event.reply.integer() != Some(0)
        && event.word(1).starts_with("m:")
}

fn moves(event: &Event) -> bool {
    matches!(
        event.word(0),
        "RENAME" | "RENAMENX" | "LMOVE" | "BLMOVE" | "BRPOPLPUSH" | "LMOVEM" | "BLMOVEM" | "SMOVE"
    )
}

/// What a command that ran, or time, may have removed.
fn note_removals(event: &Event, time_passed: bool, removals: &mut Removals) {
    match event.word(0) {
        "FLUSHALL" | "FLUSHDB" => removals.all = true,
        "DEL" | "UNLINK" | "LTRIM" | "LSET" | "SET" | "ZREMRANGEBYRANK" | "XTRIM" | "XADD" => {
            if event.word(0) == "XADD" && event.word(2) != "MAXLEN" {
                return;
            }
            let keys = event.words.iter().skip(1);
            let keys = keys.map(|key| String::from_utf8_lossy(key).into_owned());
            removals.keys.extend(keys);
        }
        "RENAME" => {
            removals.keys.insert(event.word(2).to_owned());
            removals.all |= time_passed;
        }
        // A key that got its deadline, or came with one, in the same step.
        "EXPIRE" | "PEXPIRE" | "MOVE" | "RENAMENX" | "SWAPDB" => removals.all |= time_passed,
        _ => {}
    }
}

/// The consumer groups of the tame streams. Each name is used once.
#[derive(Default)]
pub struct Groups {
    names: HashMap<String, Vec<String>>,
    made: usize,
    /// What was given to consumers of a group, and of which stream's positions.
    delivered: HashMap<String, HashSet<usize>>,
}

/// Newest groups of a key that are used.
const USED: usize = 3;

impl Groups {
    /// A new name for a group of a stream.
    pub fn fresh(&mut self, key: &str) -> String {
        self.made += 1;
        let name = format!("g{}", self.made);
        self.names.entry(key.into()).or_default().push(name.clone());
        name
    }

    /// One of the newest groups of a stream.
    pub fn of(&self, key: &str, random: &mut Random) -> Option<&str> {
        let names = self.names.get(key)?;
        let back = 1 + random.below(USED.min(names.len()));
        Some(&names[names.len() - back])
    }

    /// Takes note of what a group gave to a consumer.
    fn note(&mut self, event: &Event) -> Result<(), String> {
        let is_tame = event.words.iter().any(|word| word.starts_with(b"m:x:"));
        if event.word(0) != "XREADGROUP" || !is_tame {
            return Ok(());
        }
        let group = event.word(2);
        let delivered = self.delivered.entry(group.to_owned()).or_default();
        for id in elements(&event.reply) {
            if !delivered.insert(id) {
                return Err(format!("group {group} gave out e{id} twice"));
            }
        }
        Ok(())
    }

    /// Whether each group of a stream has given out all that is behind it.
    fn check(&self, stream: &structure::stream::Stream) -> Result<(), String> {
        for group in stream.groups() {
            let name = String::from_utf8_lossy(group.name()).into_owned();
            let none = HashSet::new();
            let delivered = self.delivered.get(&name).unwrap_or(&none);
            for mut entry in stream.range(StreamId::MIN, group.last_delivered()) {
                let id = entry.fields.next().and_then(|(_, value)| element(value));
                if id.is_some_and(|id| !delivered.contains(&id)) {
                    return Err(format!("group {name} passed over e{}", id.unwrap_or(0)));
                }
            }
        }
        Ok(())
    }
}
