//! Plays a sequence on both servers at once and stops at the first difference.
//!
//! # Invariants
//! - After each command both sides are at rest: who was served has been heard, and every
//!   subscriber has been asked with a PING for all it was told.
//! - A client that waits is sent nothing; commands for it are left out, on both sides alike.
//! - What only chance decides is made equal before the next command (SPOP).

mod hear;
mod own;

pub use own::{Own, is_own};

use crate::allow::Allowed;
use crate::arbiter::{Arbiter, Verdict};
use crate::compare::{Ids, bag, how, is_id, same};
use crate::facts::Command;
use crate::scan::{self, Doubt};
use crate::sequence::{Seen, Sequence, Step, Word, letter, line};
use crate::side::{PATIENCE, Side, Silence};
use crate::walk::{Found, agree, walk};
use client::Reply;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use testkit::render;

/// What a difference of a command inside a transaction is called first.
pub const IN_A_TRANSACTION: &str = "in a transaction ";

/// What a difference of what subscribers hear is called first.
pub const HEARD: &str = "messages of ";

/// How long a client may still wait on one side when its time is over on the other.
const SOON: Duration = Duration::from_millis(500);

/// One side takes a message for one that it has, the other makes an entry.
const REPEATS: &str = "xadd repeats";

/// What EVALSHA is called with where no script was loaded.
const NO_SCRIPT: &[u8] = b"0000000000000000000000000000000000000000";

/// Where a server gave no reply when the sequence was over.
const AFTERWARDS: &str = "after the sequence";

/// What differed.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The command whose replies differ, and in what way: differences of one kind are one finding.
    pub kind: String,
    /// As a person types it.
    pub command: String,
    pub ours: String,
    pub theirs: String,
    /// What the real server said in full, for the script.
    pub shown: Vec<Line>,
}

/// One command of a sequence that was played, as the script shows it.
#[derive(Debug, Clone)]
pub struct Line {
    pub text: String,
    pub theirs: Vec<String>,
}

/// How a sequence went.
#[derive(Debug, Default)]
pub struct Played {
    pub commands: usize,
    pub difference: Option<Difference>,
    /// It met a difference that is allowed, by its number in the list.
    pub allowed: Option<usize>,
    /// Kinds of differences that the arbiter decided in our favour.
    pub decided: Vec<String>,
    /// The step without which more of the sequence could be compared: what it does differs for a
    /// reason that is known, or the arbiter does not know it.
    pub without: Option<usize>,
    /// The real server gave no reply, and what it was asked: it was started again, and what is
    /// left of the sequence was not compared.
    pub unanswered: Option<String>,
}

/// Both servers with what they have in common.
pub struct Arena {
    pub ours: Side,
    pub theirs: Side,
    pub allowed: Allowed,
    /// Commands whose replies have no order, that may wait, that change nothing.
    pub facts: Facts,
    /// Commands that the real server has carried out without an error.
    pub succeeded: BTreeSet<String>,
    /// Directives that sequences set, with what they were on either side.
    pub directives: [BTreeMap<&'static str, String>; 2],
    /// Who decides where the two differ.
    pub arbiter: Option<Box<Arbiter>>,
    /// What it decided in the present sequence.
    decided: Vec<String>,
    /// Calls that only Valkey knows are left out where nobody could decide what follows.
    pub is_arbitrated: bool,
    /// The step that is played.
    place: usize,
    connections: Vec<Connection>,
    ids: Ids,
    /// When ids were made up last: in each millisecond at most once, so that the same ones are
    /// greater on either side.
    ids_ms: u128,
    payloads: Vec<Vec<u8>>,
    digests: Vec<Vec<u8>>,
    scripts: Vec<Vec<u8>>,
    shown: Vec<Line>,
    fences: usize,
}

/// What the player knows of commands, by their names with a bar.
#[derive(Debug, Default)]
pub struct Facts {
    pub unordered: BTreeSet<String>,
    pub blocking: BTreeSet<String>,
    pub readonly: BTreeSet<String>,
    pub containers: BTreeSet<String>,
}

impl Facts {
    /// Sorts what the facts say of these commands.
    pub fn of(commands: &[Command]) -> Self {
        let mut facts = Self::default();
        for command in commands {
            if command.words.len() > 1 {
                facts.containers.insert(command.words[0].clone());
            }
            let places = [
                (command.is_unordered, &mut facts.unordered),
                (command.is_blocking, &mut facts.blocking),
                (command.is_readonly, &mut facts.readonly),
            ];
            for (holds, set) in places {
                if holds {
                    set.insert(command.name());
                }
            }
        }
        facts
    }
}

#[derive(Debug, Default, Clone)]
struct Connection {
    /// What it waits with.
    waiting: Option<Vec<Vec<u8>>>,
    /// Commands since MULTI.
    queued: Option<Vec<Vec<Vec<u8>>>>,
    is_subscribed: bool,
}

/// Why a command ended the sequence.
pub enum Stop {
    Difference {
        kind: String,
        ours: String,
        theirs: String,
    },
    Silent {
        is_ours: bool,
        silence: Silence,
    },
}

pub type Step_<T> = Result<T, Stop>;
type Args = Vec<Vec<u8>>;

fn ours(silence: Silence) -> Stop {
    Stop::Silent {
        is_ours: true,
        silence,
    }
}

fn theirs(silence: Silence) -> Stop {
    Stop::Silent {
        is_ours: false,
        silence,
    }
}

impl Arena {
    pub fn new(
        ours: Side,
        theirs: Side,
        allowed: Allowed,
        facts: Facts,
        connections: usize,
    ) -> Self {
        Self {
            ours,
            theirs,
            allowed,
            facts,
            succeeded: BTreeSet::new(),
            directives: Default::default(),
            arbiter: None,
            decided: Vec::new(),
            is_arbitrated: false,
            place: 0,
            connections: vec![Connection::default(); connections],
            ids: Ids::default(),
            ids_ms: 0,
            payloads: Vec::new(),
            digests: Vec::new(),
            scripts: Vec::new(),
            shown: Vec::new(),
            fences: 0,
        }
    }

    /// Plays a sequence from an empty server. An error is the machine's.
    pub fn play(&mut self, sequence: &Sequence) -> Result<Played, String> {
        self.begin();
        let mut played = Played::default();
        if let Some(arbiter) = &mut self.arbiter {
            arbiter.hear(sequence);
        }
        let mut current = String::new();
        let stop = self.run(sequence, &mut played.commands, &mut current);
        match stop {
            Ok(()) => {}
            Err(Stop::Difference { kind, ours, theirs }) => {
                match self.allowed.find(&current, &ours, &theirs, &self.played()) {
                    Some(rule) => played.allowed = Some(rule),
                    None => {
                        let verdict = self.verdict(&kind)?;
                        match verdict {
                            Verdict::Ours => {
                                self.decided.push(kind);
                                played.without = Some(self.place);
                            }
                            Verdict::Open | Verdict::Apart(_) => {
                                if let Verdict::Apart(at) = verdict {
                                    played.without = Some(at);
                                }
                                let difference = self.difference(kind, current, ours, theirs);
                                played.difference = Some(difference);
                            }
                        }
                    }
                }
            }
            Err(Stop::Silent { is_ours, silence }) => {
                let log = self.ours.server.log();
                let tail: Vec<&str> = log.lines().rev().take(12).collect();
                let tail = tail.into_iter().rev().collect::<Vec<_>>().join("\n");
                self.restart()?;
                if is_ours {
                    let kind = format!("{} {silence}", first_words(&current));
                    let said = format!("{silence}\n{tail}");
                    played.difference = Some(self.difference(kind, current, said, String::new()));
                } else {
                    played.unanswered = Some(format!("{current}: {silence}"));
                }
                return Ok(played);
            }
        }
        self.finish(sequence, &mut played)?;
        played.decided = std::mem::take(&mut self.decided);
        Ok(played)
    }

    /// Makes both servers as they were before the sequence, and notes which could not be.
    fn finish(&mut self, sequence: &Sequence, played: &mut Played) -> Result<(), String> {
        let [ours, theirs] = self.reset(sequence)?;
        if let Some(silence) = theirs {
            played.unanswered = Some(format!("{AFTERWARDS}: {silence}"));
        }
        // What the sequence itself has shown says more.
        if let (Some(silence), None) = (ours, &played.difference) {
            let kind = format!("{AFTERWARDS} {silence}");
            let command = AFTERWARDS.to_owned();
            let said = silence.to_string();
            played.difference = Some(self.difference(kind, command, said, String::new()));
        }
        Ok(())
    }

    /// Forgets the sequence before.
    pub fn begin(&mut self) {
        self.shown.clear();
        self.ids = Ids::default();
        self.payloads.clear();
        self.digests.clear();
        self.scripts.clear();
        self.decided.clear();
        self.place = 0;
    }

    /// Starts both servers again.
    pub fn restart(&mut self) -> Result<(), String> {
        self.ours.restart()?;
        self.theirs.restart()?;
        self.connections.fill(Connection::default());
        match &mut self.arbiter {
            Some(arbiter) => arbiter.forget(),
            None => Ok(()),
        }
    }

    /// What the arbiter says of the step that is played.
    fn verdict(&mut self, kind: &str) -> Result<Verdict, String> {
        let Some(arbiter) = &mut self.arbiter else {
            return Ok(Verdict::Open);
        };
        match (
            arbiter.verdict(self.place, kind.starts_with(HEARD))?,
            self.place,
        ) {
            // It was asked of what differs in the end, and did not agree.
            (Verdict::Ours, usize::MAX) => Ok(Verdict::Open),
            (verdict, _) => Ok(verdict),
        }
    }

    /// Whether both sides agree on what a walk of two others found to differ.
    pub fn agrees(&mut self, found: &Found) -> bool {
        agree(&mut self.ours, &mut self.theirs, &self.ids, found).unwrap_or(false)
    }

    fn difference(
        &mut self,
        kind: String,
        command: String,
        ours: String,
        theirs: String,
    ) -> Difference {
        Difference {
            kind,
            command,
            ours,
            theirs,
            shown: std::mem::take(&mut self.shown),
        }
    }

    /// Makes both servers as they were before the sequence; a side that cannot be is started
    /// again. Says of either, ours first, why it could not.
    pub fn reset(&mut self, sequence: &Sequence) -> Result<[Option<Silence>; 2], String> {
        if let Some(arbiter) = &mut self.arbiter {
            arbiter.forget()?;
        }
        let waiting: Vec<bool> = self
            .connections
            .iter()
            .map(|c| c.waiting.is_some())
            .collect();
        self.connections.fill(Connection::default());
        let mut silences = [None; 2];
        let sides = [&mut self.ours, &mut self.theirs].into_iter();
        let sides = sides.zip(&self.directives).zip(&mut silences);
        for ((side, directives), why) in sides {
            let old: Vec<_> = sequence
                .config
                .iter()
                .filter_map(|(name, _)| Some((*name, directives.get(name)?.clone())))
                .collect();
            if let Err(silence) = side.reset(&waiting, &old, sequence.traits()) {
                *why = Some(silence);
                side.restart()?;
            }
        }
        Ok(silences)
    }

    fn run(
        &mut self,
        sequence: &Sequence,
        commands: &mut usize,
        current: &mut String,
    ) -> Step_<()> {
        self.configure(sequence)?;
        for (at, step) in sequence.steps.iter().enumerate() {
            self.place = at;
            *commands += usize::from(self.one(step, current)?);
        }
        self.end(current)
    }

    /// Sets the directives of a sequence.
    pub fn configure(&mut self, sequence: &Sequence) -> Step_<()> {
        for (name, value) in &sequence.config {
            let args = ["CONFIG", "SET", name, value];
            self.ours.ask(&args).map_err(ours)?;
            self.theirs.ask(&args).map_err(theirs)?;
        }
        Ok(())
    }

    /// One command and what follows from it; false where it cannot be played now.
    pub fn one(&mut self, step: &Step, current: &mut String) -> Step_<bool> {
        let Some((our_args, their_args)) = self.ready(step) else {
            return Ok(false);
        };
        *current = line(their_args.iter().map(Vec::as_slice));
        let makes_ids = self.makes_ids(step.connection, &their_args);
        if makes_ids {
            await_ms(self.ids_ms + 1);
        }
        let result = self.step(step, &our_args, &their_args);
        if makes_ids {
            self.ids_ms = now_ms();
        }
        match result {
            Err(Stop::Difference { kind, ours, theirs }) => {
                if !self.may_go_on(&their_args, current, &kind, &ours, &theirs) {
                    return Err(Stop::Difference { kind, ours, theirs });
                }
            }
            other => other?,
        }
        self.settle(step.connection, &self.name(&their_args), current)?;
        Ok(true)
    }

    /// Whether a command makes the servers make up ids from the time.
    fn makes_ids(&self, connection: usize, args: &[Vec<u8>]) -> bool {
        let is_auto =
            |args: &[Vec<u8>]| self.name(args) == "xadd" && args.iter().any(|w| w == b"*");
        let queued = self.connections[connection].queued.as_deref();
        is_auto(args)
            || self.name(args) == "exec" && queued.is_some_and(|q| q.iter().any(|a| is_auto(a)))
    }

    /// Compares what there is when all commands were played.
    fn end(&mut self, current: &mut String) -> Step_<()> {
        let commands = self.shown.iter();
        let played: Vec<String> = commands
            .filter_map(|line| line.text.split_once("> "))
            .map(|(_, command)| command.to_owned())
            .collect();
        let played: Vec<&str> = played.iter().map(String::as_str).collect();
        let (allowed, arbiter, decided) = (&self.allowed, &mut self.arbiter, &mut self.decided);
        let mut is_excused = |found: &Found| {
            let command = line(found.question.iter().map(Vec::as_slice));
            if allowed
                .find(&command, &found.ours, &found.theirs, &played)
                .is_some()
            {
                return true;
            }
            let says_so = arbiter
                .as_mut()
                .is_some_and(|arbiter| arbiter.agrees_in_the_end(found));
            if says_so {
                decided.push(kind_in_the_end(found, &command));
            }
            says_so
        };
        let (our_side, their_side) = (&mut self.ours, &mut self.theirs);
        let found = walk(our_side, their_side, &self.ids, &mut is_excused).map_err(|silent| {
            Stop::Silent {
                is_ours: silent.is_ours,
                silence: silent.silence,
            }
        })?;
        let Some(found) = found else {
            return Ok(());
        };
        self.place = usize::MAX;
        *current = line(found.question.iter().map(Vec::as_slice));
        self.show(0, current.clone(), vec![found.theirs.clone()]);
        Err(Stop::Difference {
            kind: kind_in_the_end(&found, current),
            ours: found.ours,
            theirs: found.theirs,
        })
    }

    /// A difference that is allowed or decided and that changes nothing: the sequence goes on.
    fn may_go_on(
        &mut self,
        args: &[Vec<u8>],
        command: &str,
        kind: &str,
        ours: &str,
        theirs: &str,
    ) -> bool {
        let name = self.name(args);
        let is_read = self.facts.readonly.contains(&name);
        let is_heard = kind.starts_with(HEARD);
        if (is_read || is_heard) && self.is_allowed(command, ours, theirs) {
            return true;
        }
        // An error of these ends a transaction on some servers.
        let is_refused = [ours, theirs]
            .iter()
            .all(|said| said.starts_with("(error)"))
            && !matches!(name.as_str(), "multi" | "watch" | "exec");
        let is_harmless = is_read || is_refused;
        let is_decided = is_harmless && matches!(self.verdict(kind), Ok(Verdict::Ours));
        if is_decided {
            self.decided.push(kind.to_owned());
        }
        is_decided
    }

    /// Whether the list allows this difference, after what was played.
    fn is_allowed(&self, command: &str, ours: &str, theirs: &str) -> bool {
        let played = self.played();
        self.allowed.find(command, ours, theirs, &played).is_some()
    }

    /// The commands so far.
    fn played(&self) -> Vec<&str> {
        let commands = self
            .shown
            .iter()
            .filter_map(|line| line.text.split_once("> "));
        commands.map(|(_, command)| command).collect()
    }

    /// The words for either side, or nothing if this command cannot be played now.
    fn ready(&self, step: &Step) -> Option<(Args, Args)> {
        let connection = &self.connections[step.connection];
        if connection.waiting.is_some() || step.words.is_empty() {
            return None;
        }
        let our_args: Vec<Vec<u8>> = step
            .words
            .iter()
            .map(|word| self.fill(word, &self.ids.ours))
            .collect();
        let their_args: Vec<Vec<u8>> = step
            .words
            .iter()
            .map(|word| self.fill(word, &self.ids.theirs))
            .collect();
        let name = self.name(&their_args);
        let is_bare = connection.queued.is_none() && !connection.is_subscribed;
        let is_left_out = match name.as_str() {
            _ if self.is_arbitrated && !is_bare && is_own(&their_args) => true,
            "monitor" | "quit" | "shutdown" => true,
            "spop" => connection.queued.is_some() || connection.is_subscribed,
            "multi" => connection.is_subscribed,
            _ if is_subscribe(&name) => connection.queued.is_some(),
            // What needs more than a look at the reply.
            _ if connection.is_subscribed => {
                scan::source(&their_args).is_some()
                    || Doubt::of(&their_args).is_some()
                    || scan::is_scan(&their_args)
                    || self.facts.blocking.contains(&name)
            }
            "set" if answers_twice(&their_args) => true,
            _ => Doubt::of(&their_args).is_some() && connection.queued.is_some(),
        };
        (!is_left_out).then_some((our_args, their_args))
    }

    fn fill(&self, word: &Word, ids: &[Vec<u8>]) -> Vec<u8> {
        let nth = |from: &[Vec<u8>], number: usize, other: &[u8]| match from.len() {
            0 => other.to_vec(),
            count => from[number % count].clone(),
        };
        match word {
            Word::Plain(bytes) => bytes.clone(),
            Word::Reply(Seen::Id, number) => nth(ids, *number, b"1-1"),
            Word::Reply(Seen::Payload, number) => nth(&self.payloads, *number, b"x"),
            Word::Reply(Seen::Digest, number) => nth(&self.digests, *number, b"0123456789abcdef"),
            Word::Reply(Seen::Script, number) => nth(&self.scripts, *number, NO_SCRIPT),
        }
    }

    /// A command's name with a bar before its subcommand.
    fn name(&self, args: &[Vec<u8>]) -> String {
        let word = |at: usize| {
            let bytes = args.get(at).map(Vec::as_slice).unwrap_or_default();
            String::from_utf8_lossy(bytes).to_lowercase()
        };
        match self.facts.containers.contains(&word(0)) {
            true => format!("{}|{}", word(0), word(1)),
            false => word(0),
        }
    }

    fn show(&mut self, connection: usize, command: String, theirs: Vec<String>) {
        let text = format!("{}> {command}", letter(connection));
        // It names the server and numbers the client.
        let theirs = match command.starts_with("HELLO") {
            true => vec!["(any)".to_owned()],
            false => theirs,
        };
        self.shown.push(Line { text, theirs });
    }

    fn step(&mut self, step: &Step, our_args: &[Vec<u8>], their_args: &[Vec<u8>]) -> Step_<()> {
        let connection = step.connection;
        let name = self.name(their_args);
        let shown = line(their_args.iter().map(Vec::as_slice));
        let is_queued = self.connections[connection].queued.is_some();
        if is_subscribe(&name) || self.connections[connection].is_subscribed {
            return self.subscriber(connection, &name, our_args, their_args, shown);
        }
        if scan::is_scan(their_args) && !is_queued {
            return self.scan(connection, their_args, shown);
        }
        if let Some(doubt) = Doubt::of(their_args) {
            let question = &doubt.question;
            self.ours.call(connection, question).map_err(ours)?;
            let answer = self.theirs.call(connection, question).map_err(theirs)?;
            if !doubt.is_settled(&answer) {
                return Ok(());
            }
        }
        let source = (!is_queued).then(|| scan::source(their_args)).flatten();
        let members = match &source {
            Some(question) => {
                self.theirs.call(connection, question).map_err(theirs)?;
                Some(self.ours.call(connection, question).map_err(ours)?)
            }
            None => None,
        };
        self.ours.send(connection, our_args).map_err(ours)?;
        self.theirs.send(connection, their_args).map_err(theirs)?;
        let may_wait = self.facts.blocking.contains(&name) && !is_queued && !step.is_brief;
        let (our_reply, their_reply) = match may_wait {
            true => self.reply_or_wait(connection)?,
            false => {
                let reply = receive(&mut self.theirs, connection).map_err(theirs);
                self.show_either(connection, &shown, &reply);
                let reply = reply?;
                (
                    Some(receive(&mut self.ours, connection).map_err(ours)?),
                    Some(reply),
                )
            }
        };
        if may_wait {
            let said = their_reply.as_ref().map_or("(blocked)".to_owned(), render);
            self.show(connection, shown, vec![said]);
        }
        let (our_reply, their_reply) = match (our_reply, their_reply) {
            (None, None) => {
                self.connections[connection].waiting = Some(their_args.to_vec());
                return Ok(());
            }
            (Some(a), Some(b)) => (a, b),
            (a, b) => {
                let said =
                    |reply: Option<Reply>| reply.map_or("(blocked)".to_owned(), |r| render(&r));
                return Err(Stop::Difference {
                    kind: format!("{name} waits"),
                    ours: said(a),
                    theirs: said(b),
                });
            }
        };
        if name == "exec" {
            return self.executed(connection, &our_reply, &their_reply);
        }
        self.judge(their_args, &our_reply, &their_reply)?;
        if let Some(members) = members {
            scan::drawn_from(&our_reply, &members).map_err(|why| Stop::Difference {
                kind: format!("{name} draws"),
                ours: format!("{}\n{why}", render(&our_reply)),
                theirs: render(&their_reply),
            })?;
        }
        if name == "spop" && !their_reply.is_error() {
            self.equalise(connection, &their_args[1], &our_reply, &their_reply)?;
        }
        self.track(connection, &name, their_args, &their_reply);
        if !is_queued {
            self.touch(connection, their_args)?;
        }
        Ok(())
    }

    /// After MSETEX: keys that it made with a deadline of the past are gone on both sides. When
    /// they would go if nobody asked for them is a matter of chance.
    fn touch(&mut self, connection: usize, args: &[Vec<u8>]) -> Step_<()> {
        let is_moment = |word: &Vec<u8>| {
            word.eq_ignore_ascii_case(b"EXAT") || word.eq_ignore_ascii_case(b"PXAT")
        };
        if self.name(args) == "msetex" && args.iter().any(is_moment) {
            let count = args.get(1).map(|word| String::from_utf8_lossy(word));
            let count = count.and_then(|word| word.parse().ok());
            let keys = args.iter().skip(2).step_by(2).take(count.unwrap_or(0));
            let exists: Args = std::iter::once(&b"EXISTS".to_vec())
                .chain(keys)
                .cloned()
                .collect();
            self.ours.call(connection, &exists).map_err(ours)?;
            self.theirs.call(connection, &exists).map_err(theirs)?;
        }
        Ok(())
    }

    fn show_either(&mut self, connection: usize, shown: &str, reply: &Step_<Reply>) {
        let said = reply
            .as_ref()
            .map_or_else(|_| "(no reply)".to_owned(), render);
        self.show(connection, shown.to_owned(), vec![said]);
    }

    /// Compares two replies of one command and keeps what later words may use.
    fn judge(&mut self, args: &[Vec<u8>], our_reply: &Reply, their_reply: &Reply) -> Step_<()> {
        let name = self.name(args);
        let is_auto = name == "xadd" && args.iter().any(|arg| arg == b"*");
        if let (true, Reply::Bulk(a), Reply::Bulk(b)) = (is_auto, our_reply, their_reply)
            && is_id(a)
            && is_id(b)
        {
            if is_of_now(a) != is_of_now(b) {
                return Err(Stop::Difference {
                    kind: REPEATS.to_owned(),
                    ours: render(our_reply),
                    theirs: render(their_reply),
                });
            }
            self.ids.ours.push(a.clone());
            self.ids.theirs.push(b.clone());
        }
        match (name.as_str(), their_reply) {
            ("dump", Reply::Bulk(payload)) => self.payloads.push(payload.clone()),
            ("digest", Reply::Bulk(digest)) => self.digests.push(digest.clone()),
            ("script|load", Reply::Bulk(sha)) => self.scripts.push(sha.clone()),
            _ => {}
        }
        let how = how(args, self.facts.unordered.contains(&name));
        if same(how, our_reply, their_reply, &self.ids) {
            if !their_reply.is_error() {
                self.succeeded.insert(name);
            }
            return Ok(());
        }
        Err(Stop::Difference {
            kind: kind_of(&name, our_reply, their_reply),
            ours: said(our_reply, their_reply),
            theirs: said(their_reply, our_reply),
        })
    }

    /// Follows transactions.
    fn track(&mut self, connection: usize, name: &str, args: &[Vec<u8>], reply: &Reply) {
        let state = &mut self.connections[connection];
        match (name, reply) {
            ("reset", _) => *state = Connection::default(),
            ("discard", Reply::Status(_)) => state.queued = None,
            ("multi", Reply::Status(text)) if text == b"OK" => state.queued = Some(Vec::new()),
            (_, Reply::Status(text)) if text == b"QUEUED" => {
                if let Some(queued) = &mut state.queued {
                    queued.push(args.to_vec());
                }
            }
            _ => {}
        }
    }

    /// Compares what EXEC answers, each part as its command wants it.
    fn executed(&mut self, connection: usize, our_reply: &Reply, their_reply: &Reply) -> Step_<()> {
        let queued = self.connections[connection]
            .queued
            .take()
            .unwrap_or_default();
        let exec = vec![b"EXEC".to_vec()];
        let (Reply::Array(a), Reply::Array(b)) = (our_reply, their_reply) else {
            return self.judge(&exec, our_reply, their_reply);
        };
        if a.len() != b.len() || b.len() != queued.len() {
            return self.judge(&exec, our_reply, their_reply);
        }
        self.succeeded.insert("exec".to_owned());
        for ((args, a), b) in queued.iter().zip(a).zip(b) {
            let inside = line(args.iter().map(Vec::as_slice));
            match self.judge(args, a, b) {
                Err(Stop::Difference { kind, ours, theirs }) => {
                    let is_allowed = self.is_allowed(&inside, &ours, &theirs);
                    let goes_on = is_allowed && kind != REPEATS;
                    if goes_on || self.may_go_on(args, &inside, &kind, &ours, &theirs) {
                        continue;
                    }
                    return Err(Stop::Difference {
                        kind: format!("{IN_A_TRANSACTION}{kind}"),
                        ours: format!("{ours}\n(from {inside})"),
                        theirs,
                    });
                }
                other => other?,
            }
        }
        for args in &queued {
            self.touch(connection, args)?;
        }
        Ok(())
    }

    /// Gathers all pages of a scan on both sides.
    fn scan(&mut self, connection: usize, args: &[Vec<u8>], shown: String) -> Step_<()> {
        let theirs_gathered = scan::gather(&mut self.theirs, connection, args).map_err(theirs)?;
        self.show(connection, shown, vec![render(&theirs_gathered.first)]);
        let ours_gathered = scan::gather(&mut self.ours, connection, args).map_err(ours)?;
        self.judge(args, &ours_gathered.first, &theirs_gathered.first)?;
        if bag(
            &ours_gathered.elements,
            &theirs_gathered.elements,
            &self.ids,
        ) {
            return Ok(());
        }
        Err(Stop::Difference {
            kind: format!("{} gathers", self.name(args)),
            ours: render(&Reply::Array(ours_gathered.elements)),
            theirs: render(&Reply::Array(theirs_gathered.elements)),
        })
    }

    /// After SPOP: the real server's set becomes like ours.
    fn equalise(
        &mut self,
        connection: usize,
        key: &[u8],
        our_reply: &Reply,
        their_reply: &Reply,
    ) -> Step_<()> {
        let members = |reply: &Reply| -> Vec<Vec<u8>> {
            match reply {
                Reply::Bulk(member) => vec![member.clone()],
                other => other
                    .elements()
                    .unwrap_or_default()
                    .iter()
                    .filter_map(Reply::bytes)
                    .map(<[u8]>::to_vec)
                    .collect(),
            }
        };
        let (mine, others) = (members(our_reply), members(their_reply));
        let gone: Vec<Vec<u8>> = mine
            .iter()
            .filter(|m| !others.contains(m))
            .cloned()
            .collect();
        let back: Vec<Vec<u8>> = others
            .iter()
            .filter(|m| !mine.contains(m))
            .cloned()
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        let with = |name: &str, members: Vec<Vec<u8>>| {
            let mut args = vec![name.as_bytes().to_vec(), key.to_vec()];
            args.extend(members);
            args
        };
        // Never empty in between: the key would lose its deadline.
        let left = self
            .theirs
            .call(connection, &[b"SCARD".to_vec(), key.to_vec()])
            .map_err(theirs)?;
        let mut order = [with("SREM", gone.clone()), with("SADD", back)];
        if left.integer() <= i64::try_from(gone.len()).ok() {
            order.reverse();
        }
        for args in order {
            self.theirs.call(connection, &args).map_err(theirs)?;
        }
        // Nobody shall hear of it.
        for at in 0..self.connections.len() {
            if self.connections[at].is_subscribed && at != connection {
                self.hear_of_spop(at)?;
            }
        }
        Ok(())
    }

    /// The replies of a command that may wait; nothing where it does.
    fn reply_or_wait(&mut self, connection: usize) -> Step_<(Option<Reply>, Option<Reply>)> {
        let before = self
            .connections
            .iter()
            .filter(|c| c.waiting.is_some())
            .count();
        let b = waits(&mut self.theirs, connection, before).map_err(theirs)?;
        let a = waits(&mut self.ours, connection, before).map_err(ours)?;
        // One may have been asked only when its time was over.
        Ok(match (a, b) {
            (None, Some(b)) if b.is_null() => {
                (late(&mut self.ours, connection).map_err(ours)?, Some(b))
            }
            (Some(a), None) if a.is_null() => {
                (Some(a), late(&mut self.theirs, connection).map_err(theirs)?)
            }
            both => both,
        })
    }
}

/// The next reply that is no push.
fn receive(side: &mut Side, connection: usize) -> Result<Reply, Silence> {
    loop {
        match side.receive(connection, PATIENCE)? {
            Reply::Push(_) => {}
            reply => return Ok(reply),
        }
    }
}

/// The reply, or nothing once the server counts one more waiting client.
fn waits(side: &mut Side, connection: usize, before: usize) -> Result<Option<Reply>, Silence> {
    let end = Instant::now() + PATIENCE;
    loop {
        match side.receive(connection, Duration::from_millis(1)) {
            Ok(reply) => return Ok(Some(reply)),
            Err(Silence::Hangs) => {}
            Err(silence) => return Err(silence),
        }
        if side.waiting()? > before {
            return Ok(None);
        }
        if Instant::now() > end {
            return Err(Silence::Hangs);
        }
    }
}

/// The reply of a client that waits, if its time is over soon.
fn late(side: &mut Side, connection: usize) -> Result<Option<Reply>, Silence> {
    match side.receive(connection, SOON) {
        Ok(reply) => Ok(Some(reply)),
        Err(Silence::Hangs) => Ok(None),
        Err(silence) => Err(silence),
    }
}

/// Whether an id is one that a server makes up, not one of a sequence's own.
fn is_of_now(id: &[u8]) -> bool {
    id.iter().position(|byte| *byte == b'-') == Some(now_ms().to_string().len())
}

fn now_ms() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis())
}

fn await_ms(ms: u128) {
    while now_ms() < ms {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// SET with GET and a digest that is none: the real server answers it twice.
fn answers_twice(args: &[Vec<u8>]) -> bool {
    let is = |word: &Vec<u8>, token: &str| word.eq_ignore_ascii_case(token.as_bytes());
    let is_digest = |word: &[u8]| word.len() == 16;
    args.iter().any(|word| is(word, "GET"))
        && args
            .windows(2)
            .any(|pair| (is(&pair[0], "IFDEQ") || is(&pair[0], "IFDNE")) && !is_digest(&pair[1]))
}

fn is_subscribe(name: &str) -> bool {
    name.ends_with("subscribe")
}

/// The name of a command line and, for a container, its subcommand.
fn first_words(command: &str) -> String {
    let mut words = command.split(' ');
    let first = words.next().unwrap_or_default().to_lowercase();
    match first.as_str() {
        "xinfo" | "xgroup" | "object" | "pubsub" | "client" => {
            format!(
                "{first}|{}",
                words.next().unwrap_or_default().to_lowercase()
            )
        }
        _ => first,
    }
}

/// A reply's text; where its kind is all that differs, with the kind.
fn said(reply: &Reply, other: &Reply) -> String {
    match render(reply) == render(other) {
        true => format!("{reply:?}"),
        false => render(reply),
    }
}

/// The same for what is found when a sequence has ended.
fn kind_in_the_end(found: &Found, command: &str) -> String {
    let kind = format!("in the end {}", first_words(command));
    match kind.ends_with("encoding") {
        true => format!("{kind}: {} for {}", found.ours, found.theirs),
        false => kind,
    }
}

/// A name for differences that have probably one reason.
fn kind_of(name: &str, our_reply: &Reply, their_reply: &Reply) -> String {
    let short = |reply: &Reply| match reply {
        Reply::Error(text) => String::from_utf8_lossy(text).chars().take(60).collect(),
        Reply::Bulk(text) if name == "object|encoding" => {
            String::from_utf8_lossy(text).into_owned()
        }
        Reply::Bulk(_) => "string".to_owned(),
        other => {
            let text = format!("{other:?}");
            text.split(['(', '[']).next().unwrap_or_default().to_owned()
        }
    };
    format!("{name}: {} for {}", short(our_reply), short(their_reply))
}
