//! Sequences worth playing: a few groups of commands at a time, first something to work on, then
//! calls that mostly succeed, with transactions, waiting clients and subscribers among them.
//!
//! # Connections
//! 0 never waits and never subscribes; 1 and 2 may wait for data; 2 may subscribe; 3 hears the
//! events of the keyspace and does nothing else.

use crate::compare::{How, how};
use crate::facts::Command;
use crate::generate::call;
use crate::lua;
use crate::random::Random;
use crate::scan::{self, Doubt};
use crate::sequence::{Sequence, Step, Word};
use crate::users;
use crate::values::{BRIEF_MS, BRIEF_SECONDS, Values};

/// How many connections a sequence may use.
pub const CONNECTIONS: usize = 4;
/// The one that hears events.
const LISTENER: usize = 3;

/// Groups that a sequence may be about.
const THEMES: &[&str] = &[
    "string",
    "bitmap",
    "list",
    "set",
    "hash",
    "sorted-set",
    "stream",
    "geo",
    "hyperloglog",
    "array",
];

/// What is not played: it ends the server, is about the machine or the process, answers what two
/// servers cannot agree on, or is tried by the plan itself.
const LEFT_OUT: &[&str] = &[
    "acl",
    "asking",
    "auth",
    "backup",
    "bgrewriteaof",
    "bgsave",
    "client",
    "cluster",
    "command",
    "config",
    "debug",
    "discard",
    "eval",
    "eval_ro",
    "evalsha",
    "evalsha_ro",
    "exec",
    "failover",
    "fcall",
    "fcall_ro",
    "function",
    "hello",
    "hotkeys",
    "info",
    "lastsave",
    "latency",
    "lolwut",
    "memory",
    "migrate",
    "module",
    "monitor",
    "multi",
    "pfdebug",
    "pfselftest",
    "psync",
    "quit",
    "readonly",
    "readwrite",
    "replconf",
    "replicaof",
    "reset",
    "restore-asking",
    "role",
    "save",
    "script",
    "shutdown",
    "slaveof",
    "slowlog",
    "sync",
    "time",
    "trimslots",
    "unwatch",
    "wait",
    "waitaof",
    "watch",
];
/// Subcommands of containers in `LEFT_OUT` that are played.
const YET_PLAYED: &[&str] = &[
    "client|getname",
    "client|getredir",
    "client|no-evict",
    "client|no-touch",
    "client|setinfo",
    "client|setname",
    "client|trackinginfo",
];
/// Played, but seldom: they empty or exchange what the sequence works on.
const SELDOM: &[&str] = &["flushall", "flushdb", "swapdb", "select", "move"];

/// Replies that are looked at closer than in a script they can be.
const UNSETTLED: &[&str] = &[
    "arinfo",
    "digest",
    "dump",
    "flushall",
    "flushdb",
    "himport",
    "migrate",
    "move",
    "msetex",
    "object",
    "restore",
    "select",
    "sort",
    "sort_ro",
    "swapdb",
    "xautoclaim",
    "xclaim",
    "xidmprecord",
    "xreadgroup",
];

/// Ids made up by the server, and SET with digests, which the real server may answer twice.
const UNSETTLED_WORDS: &[&[u8]] = &[b"*", b"IFDEQ", b"IFDNE"];

/// Limits that make small collections change their form.
const LIMITS: &[(&str, &[&str])] = &[
    ("hash-max-listpack-entries", &["3", "0"]),
    ("hash-max-listpack-value", &["4"]),
    ("set-max-intset-entries", &["3"]),
    ("set-max-listpack-entries", &["3"]),
    ("set-max-listpack-value", &["4"]),
    ("zset-max-listpack-entries", &["3", "0"]),
    ("zset-max-listpack-value", &["4"]),
    ("list-max-listpack-size", &["3", "1", "-1"]),
    ("stream-node-max-entries", &["2", "3"]),
];
const EVENTS: &[&str] = &["KEA", "KEA", "KEAmn", "KEA", "Kg$lz", "Eshtxdn"];

/// Directives that a plan may set: the player sets them back.
pub fn directives() -> impl Iterator<Item = &'static str> {
    let limits = LIMITS.iter().map(|(name, _)| *name);
    limits.chain(["notify-keyspace-events"])
}

/// Makes sequences out of the commands that both servers have.
pub struct Planner {
    commands: Vec<Command>,
    themes: Vec<&'static str>,
    /// For rules of users.
    names: Vec<String>,
    /// Whether scripts are run, too.
    has_scripts: bool,
    /// Whether users are made, too.
    has_users: bool,
}

impl Planner {
    /// A planner of those commands that are played. `only` keeps some groups or commands.
    pub fn new(commands: Vec<Command>, only: &[String]) -> Self {
        let is_wanted = |command: &Command| {
            only.is_empty()
                || only
                    .iter()
                    .any(|word| *word == command.group || *word == command.words[0])
        };
        let commands: Vec<Command> = commands.into_iter().filter(is_played).collect();
        let is_theme = |theme: &&&str| {
            commands
                .iter()
                .any(|command| command.group == ***theme && is_wanted(command))
        };
        let mut themes: Vec<&str> = THEMES.iter().filter(is_theme).copied().collect();
        if themes.is_empty() {
            themes.extend(THEMES);
        }
        let names = commands.iter().map(Command::name).collect();
        Self {
            commands,
            themes,
            names,
            has_scripts: false,
            has_users: false,
        }
    }

    /// Runs scripts in some sequences, or makes users. Without either a seed gives what it always
    /// gave.
    pub fn with(self, has_scripts: bool, has_users: bool) -> Self {
        Self {
            has_scripts,
            has_users,
            ..self
        }
    }

    /// A call whose reply follows from the data alone and is compared to the byte.
    fn settled(&self, themes: &[&str], values: &mut Values) -> Option<Vec<Word>> {
        let theme = *values.random.pick(themes);
        let group = if values.random.percent(85) {
            theme
        } else {
            "generic"
        };
        let commands: Vec<&Command> = self.commands.iter().filter(|c| c.group == group).collect();
        let command = *commands.get(values.random.below(commands.len().max(1)))?;
        let words = call(command, values);
        let plain: Option<Vec<Vec<u8>>> = words
            .iter()
            .map(|word| Some(word.plain()?.to_vec()))
            .collect();
        let plain = plain?;
        let is_plain = !command.is_blocking
            && !UNSETTLED.contains(&command.words[0].as_str())
            && how(&plain, command.is_unordered) == How::Exact
            && Doubt::of(&plain).is_none()
            && scan::source(&plain).is_none()
            && !plain
                .iter()
                .any(|word| UNSETTLED_WORDS.contains(&word.to_ascii_uppercase().as_slice()));
        is_plain.then_some(words)
    }

    /// The commands that are played.
    pub fn commands(&self) -> &[Command] {
        &self.commands
    }

    /// The sequence of this number in the run of this seed.
    pub fn sequence(&self, seed: u64, number: u64) -> Sequence {
        let mut values = Values::new(Random::new(seed, number));
        values.edge_percent = *values.random.pick(&[0, 2, 5, 5, 12]);
        values.has_flat_scores = values.random.percent(30);
        let random = &mut values.random;
        let themes = (0..random.between(1, 3))
            .map(|_| *random.pick(&self.themes))
            .collect();
        let mut draft = Draft {
            planner: self,
            themes,
            has_transactions: random.percent(25),
            has_waiting: random.percent(30),
            has_channels: random.percent(12),
            has_scripts: self.has_scripts && random.percent(25),
            has_users: self.has_users && random.percent(15),
            is_somebody: false,
            in_multi: [false; CONNECTIONS],
            sequence: Sequence::default(),
            values: &mut values,
        };
        draft.prepare();
        for _ in 0..draft.values.random.between(3, 8) {
            let theme = draft.theme();
            draft.populate(theme);
        }
        for _ in 0..draft.values.random.between(8, 50) {
            draft.step();
        }
        draft.sequence
    }
}

fn is_played(command: &Command) -> bool {
    let name = command.name();
    let last = command.words.last().map(String::as_str);
    let is_container = command.words.len() > 1;
    YET_PLAYED.contains(&name.as_str())
        || !(LEFT_OUT.contains(&command.words[0].as_str()) || is_container && last == Some("help"))
}

/// The word of a command that may wait which says how long.
fn timeout_of(words: &[Word]) -> Option<&Word> {
    let name = words.first()?.plain()?.to_ascii_lowercase();
    match name.as_slice() {
        b"xread" | b"xreadgroup" => {
            let is_block = |word: &Word| {
                word.plain()
                    .is_some_and(|w| w.eq_ignore_ascii_case(b"BLOCK"))
            };
            words.get(words.iter().position(is_block)? + 1)
        }
        b"blmpop" | b"bzmpop" => words.get(1),
        b"blmove" | b"blmovem" => words.get(5),
        b"brpoplpush" => words.get(3),
        _ => words.last(),
    }
}

struct Draft<'a> {
    planner: &'a Planner,
    themes: Vec<&'static str>,
    has_transactions: bool,
    has_waiting: bool,
    has_channels: bool,
    has_scripts: bool,
    has_users: bool,
    /// Connection 1 may be another user.
    is_somebody: bool,
    in_multi: [bool; CONNECTIONS],
    sequence: Sequence,
    values: &'a mut Values,
}

impl Draft<'_> {
    fn theme(&mut self) -> &'static str {
        self.values.random.word(&self.themes)
    }

    fn push(&mut self, connection: usize, words: Vec<Word>) {
        let is_brief = timeout_of(&words)
            .and_then(Word::plain)
            .is_some_and(|w| w == BRIEF_SECONDS.as_bytes() || w == BRIEF_MS.as_bytes());
        self.sequence.steps.push(Step {
            connection,
            words,
            is_brief,
        });
    }

    /// Directives, protocols and the listener.
    fn prepare(&mut self) {
        if self.values.random.percent(35) {
            for _ in 0..self.values.random.between(1, 3) {
                let (name, values) = self.values.random.pick(LIMITS);
                let value = self.values.random.word(values);
                self.sequence.config.push((name, value));
            }
        }
        for connection in 0..LISTENER {
            if self.values.random.percent(40) {
                self.sequence
                    .steps
                    .push(Step::new(connection, &["HELLO", "3"]));
            }
        }
        if self.values.random.percent(30) {
            let letters = self.values.random.word(EVENTS);
            self.sequence
                .config
                .push(("notify-keyspace-events", letters));
            if self.values.random.percent(50) {
                self.sequence
                    .steps
                    .push(Step::new(LISTENER, &["HELLO", "3"]));
            }
            self.sequence
                .steps
                .push(Step::new(LISTENER, &["PSUBSCRIBE", "__key*"]));
        }
    }

    fn connection(&mut self) -> usize {
        match self.values.random.below(10) {
            0..=6 => 0,
            7..=8 if !self.is_somebody => 1,
            _ => 2,
        }
    }

    fn step(&mut self) {
        if self.has_transactions && self.values.random.percent(22) {
            return self.transaction();
        }
        if self.has_channels && self.values.random.percent(30) {
            return self.channel();
        }
        if self.has_scripts && self.values.random.percent(40) {
            let words = self.script();
            let connection = self.connection();
            return self.push(connection, words);
        }
        if self.has_users && self.values.random.percent(50) {
            return self.user();
        }
        let theme = self.theme();
        if self
            .values
            .random
            .percent(if self.has_waiting { 40 } else { 20 })
        {
            return self.populate(theme);
        }
        let group = match self.values.random.below(100) {
            0..=83 => theme,
            84..=97 => "generic",
            _ => self.values.random.word(&["connection", "server"]),
        };
        let planner = self.planner;
        let of_group: Vec<&Command> = planner
            .commands
            .iter()
            .filter(|command| {
                // CLUSTERSCAN is about keys like any other.
                command.group == group || group == "generic" && command.group == "cluster"
            })
            .collect();
        if of_group.is_empty() {
            return;
        }
        let command = *self.values.random.pick(&of_group);
        if SELDOM.contains(&command.words[0].as_str()) && !self.values.random.percent(40) {
            return;
        }
        let words = call(command, self.values);
        let mut connection = self.connection();
        let waits = command.is_blocking && !self.in_multi[connection];
        if waits && connection == 0 {
            connection = match self.is_somebody {
                true => 2,
                false => 1 + self.values.random.below(2),
            };
        }
        if waits && !self.has_waiting && !self.values.random.percent(25) {
            return;
        }
        self.push(connection, words);
    }

    fn script(&mut self) -> Vec<Word> {
        let (planner, themes) = (self.planner, self.themes.clone());
        let mut dice = Random::new(self.values.random.below(usize::MAX) as u64, 0);
        let values = &mut *self.values;
        lua::call(&mut dice, &mut |_| {
            let words = planner.settled(&themes, values)?;
            words
                .iter()
                .map(|word| Some(word.plain()?.to_vec()))
                .collect()
        })
    }

    /// Something about users, or something that connection 1 does as one.
    fn user(&mut self) {
        let planner = self.planner;
        let themes = self.themes.clone();
        let words = planner.settled(&themes, self.values);
        match self.values.random.below(10) {
            0..=5 => {
                let words = users::call(&mut self.values.random, &planner.names, words);
                let connection = if self.values.random.percent(90) { 0 } else { 2 };
                self.push(connection, words);
            }
            6 => {
                self.is_somebody = true;
                let words = users::auth(&mut self.values.random);
                self.push(1, words);
            }
            7 if self.is_somebody => {
                let words = self.script();
                self.push(1, words);
            }
            8 if self.is_somebody && self.values.random.percent(50) => {
                let word = self.values.random.word(&["MULTI", "EXEC", "EXEC"]);
                self.push(1, vec![word.into()]);
            }
            _ => {
                if let Some(words) = words.filter(|_| self.is_somebody) {
                    self.push(1, words);
                }
            }
        }
    }

    fn transaction(&mut self) {
        let connection = self.connection();
        let in_multi = self.in_multi[connection];
        let words = match (in_multi, self.values.random.below(20)) {
            (true, 0..=11) => vec!["EXEC".into()],
            (true, 12..=13) => vec!["DISCARD".into()],
            (true, 14) => vec!["MULTI".into()],
            (false, 0..=9) => vec!["MULTI".into()],
            (false, 10) => vec![self.values.random.word(&["EXEC", "DISCARD"]).into()],
            (false, 11) => vec!["UNWATCH".into()],
            _ => {
                let theme = self.theme();
                vec!["WATCH".into(), self.values.key(theme)]
            }
        };
        match words[0].plain() {
            Some(b"MULTI") => self.in_multi[connection] = true,
            Some(b"EXEC" | b"DISCARD") => self.in_multi[connection] = false,
            _ => {}
        }
        self.push(connection, words);
    }

    fn channel(&mut self) {
        let planner = self.planner;
        let commands: Vec<&Command> = planner
            .commands
            .iter()
            .filter(|command| command.group == "pubsub")
            .collect();
        if commands.is_empty() {
            return;
        }
        let command = *self.values.random.pick(&commands);
        let words = call(command, self.values);
        let connection = match command.words[0].contains("subscribe") {
            true => 2,
            false => self.connection(),
        };
        self.push(connection, words);
    }

    /// Something of this group that later commands find.
    fn populate(&mut self, theme: &str) {
        let group = if theme == "bitmap" { "string" } else { theme };
        let name = match theme {
            "string" => "SET",
            "bitmap" => "SETBIT",
            "list" => self.values.random.word(&["RPUSH", "LPUSH"]),
            "set" => "SADD",
            "hash" => "HSET",
            "sorted-set" => "ZADD",
            "stream" => return self.populate_stream(),
            "hyperloglog" => "PFADD",
            "geo" => "GEOADD",
            "array" => "ARSET",
            _ => return,
        };
        if !self
            .planner
            .commands
            .iter()
            .any(|command| command.words[0].eq_ignore_ascii_case(name))
        {
            return;
        }
        let mut words = vec![name.into(), self.values.key(group)];
        let count = self.values.random.between(1, 6);
        for _ in 0..count {
            match theme {
                "string" => words.push(self.values.value()),
                "bitmap" => {
                    words.push(self.values.random.below(64).to_string().into());
                    words.push("1".into());
                }
                "hash" => {
                    words.push(self.values.member());
                    words.push(self.values.value());
                }
                "sorted-set" => {
                    words.push(self.values.score());
                    words.push(self.values.member());
                }
                "geo" => {
                    words.push(
                        self.values
                            .random
                            .word(&["13.361389", "15.087269", "2.35", "-0.12", "13.5"])
                            .into(),
                    );
                    words.push(
                        self.values
                            .random
                            .word(&["38.115556", "37.502669", "48.85", "51.5", "38"])
                            .into(),
                    );
                    words.push(self.values.member());
                }
                "array" if words.len() == 2 => {
                    words.push(self.values.random.below(12).to_string().into());
                    words.push(self.values.value());
                }
                "array" => words.push(self.values.value()),
                _ => words.push(self.values.member()),
            }
            if matches!(theme, "string" | "bitmap") {
                break;
            }
        }
        let connection = self.connection();
        self.push(connection, words);
    }

    fn populate_stream(&mut self) {
        let key = self.values.key("stream");
        let words: Vec<Word> = match self.values.random.below(10) {
            0..=5 => vec![
                "XADD".into(),
                key,
                self.values.new_id(),
                "f".into(),
                self.values.member(),
            ],
            6..=7 => {
                let group = self.values.random.word(&["g1", "g1", "g2"]);
                let start = self.values.random.word(&["0", "0", "$", "1-1"]);
                let words = ["XGROUP", "CREATE"].map(Word::from).into_iter();
                words
                    .chain([key, group.into(), start.into(), "MKSTREAM".into()])
                    .collect()
            }
            _ => {
                let consumer = self.values.random.word(&["c1", "c2"]);
                let words = ["XREADGROUP", "GROUP", "g1", consumer, "STREAMS"].map(Word::from);
                words.into_iter().chain([key, ">".into()]).collect()
            }
        };
        let connection = self.connection();
        self.push(connection, words);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts;

    fn planner(only: &[&str]) -> Planner {
        let commands = facts::parse(include_str!("../../compat/redis-8.10.json")).expect("facts");
        let only: Vec<String> = only.iter().map(|word| (*word).to_owned()).collect();
        Planner::new(commands, &only)
    }

    #[test]
    fn a_seed_gives_the_same_sequence_again() {
        let planner = planner(&[]);
        assert_eq!(planner.sequence(1, 5), planner.sequence(1, 5));
        assert_ne!(planner.sequence(1, 5), planner.sequence(1, 6));
        assert_ne!(planner.sequence(1, 5), planner.sequence(2, 5));
    }

    #[test]
    fn every_command_comes_up() {
        let planner = planner(&[]);
        let mut missing: std::collections::BTreeSet<String> =
            planner.commands().iter().map(Command::name).collect();
        for number in 0..6000 {
            for step in planner.sequence(1, number).steps {
                let word = |at: usize| {
                    let bytes = step.words.get(at).and_then(Word::plain).unwrap_or_default();
                    String::from_utf8_lossy(bytes).to_lowercase()
                };
                missing.remove(&word(0));
                missing.remove(&format!("{}|{}", word(0), word(1)));
            }
        }
        // Sets of vectors and scripts have no theme of their own.
        missing.retain(|name| !name.starts_with('v'));
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn the_first_connection_never_waits() {
        let planner = planner(&["list"]);
        for number in 0..200 {
            let mut in_multi = false;
            for step in planner.sequence(1, number).steps {
                if step.connection == 0 {
                    let name = step.words[0].plain().unwrap_or_default();
                    in_multi =
                        (in_multi || name == b"MULTI") && !matches!(name, b"EXEC" | b"DISCARD");
                    assert!(in_multi || !name.eq_ignore_ascii_case(b"blpop"));
                }
            }
        }
    }
}
