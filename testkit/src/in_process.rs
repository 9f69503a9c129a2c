//! The engine itself as a target: no socket, no thread, and a clock that only the script moves.
//!
//! Every connection is a [`Session`]; a command runs to its end inside [`Target::send`], and what
//! it leaves for others (published messages, the replies of clients that waited) is in their
//! inboxes when it returns. The same script therefore always goes the same way.
//!
//! # Invariants
//! - A client that waits runs nothing: what it sends meanwhile is kept until it is served.
//! - Time passes in [`Target::advance`] alone, deadline by deadline: at each one dead keys are
//!   removed before clients give up.
//!
//! Some commands belong to whoever runs the engine. A few of them that scripts need on the way
//! (HELLO, SELECT, CONFIG) are answered here as long as the engine has none of that name; a script
//! with any other is for a server: [`InProcess::lacks`].

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use client::{Decoder, Reply};
use engine::executor::Executor;
use engine::host::{ClientId, Durable, Host};
use engine::keyspace::Keyspace;
use engine::log::Frame;
use engine::pubsub::Push;
use engine::session::Session;
use engine::settings::Settings;
use engine::stats::ThreadStats;
use resp::{Args, Output, OwnedArgs, Protocol, Writer};
use structure::hash::Seed;
use structure::list::Limit;
use structure::stripes::NoLock;

use crate::play::Target;
use crate::script::{Action, Script};

/// Where the clock of every script starts: Unix milliseconds, in 2026.
const START_MS: u64 = 1_785_000_000_000;
/// Enough that neighbouring keys lie in different ones.
const STRIPES: usize = 64;
/// Commands that this target answers where the engine does not.
const OWN: &[&str] = &["hello", "select", "config"];
/// Dead keys that one look at a stripe may remove.
const EXPIRE_BUDGET: usize = 1_000;

/// The engine, as the target `engine` of scripts.
pub struct InProcess {
    keyspace: Keyspace<NoLock>,
    stats: Arc<ThreadStats>,
    settings: Settings,
    now_ms: u64,
    host: Inboxes,
    connections: Vec<Option<Connection>>,
    /// The log of effects since it was last taken, where it is read.
    log: Vec<Logged>,
}

/// A frame of the log with its bytes.
pub struct Logged {
    /// Where it stands.
    pub frame: Frame,
    /// Its commands.
    pub bytes: Vec<u8>,
}

struct Connection {
    session: Session,
    replies: Decoder,
    /// Sent while it waited.
    queued: VecDeque<OwnedArgs>,
}

/// What the engine hands to others, until the command that did it has ended.
struct Inboxes {
    mail: Vec<(ClientId, Mail)>,
    ticks: u64,
    random: u64,
}

enum Mail {
    Push(Arc<Push>),
    Served(Vec<u8>),
}

impl Host for Inboxes {
    fn push(&mut self, to: ClientId, message: &Arc<Push>) {
        self.mail.push((to, Mail::Push(message.clone())));
    }

    fn serve(&mut self, to: ClientId, reply: &[u8]) {
        self.mail.push((to, Mail::Served(reply.to_vec())));
    }

    /// The splitmix64 sequence: the same in every run.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    fn ticks(&mut self) -> u64 {
        self.ticks += 1;
        self.ticks
    }

    fn ticks_per_us(&self) -> f64 {
        1.0
    }

    fn monitor(&mut self, _: &Session, _: &engine::Entry, _: Args<'_>) {}

    fn is_monitored(&self) -> bool {
        false
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

impl InProcess {
    /// An empty engine with all of its commands.
    pub fn new() -> Self {
        let table = engine::Table::new(engine::commands::FAMILIES);
        let stats = Arc::new(ThreadStats::new(table.len()));
        Self {
            stats,
            keyspace: Keyspace::new(table, STRIPES, Seed::new([1, 2])),
            settings: Settings::default(),
            now_ms: START_MS,
            host: Inboxes {
                mail: Vec::new(),
                ticks: 0,
                random: 0,
            },
            connections: Vec::new(),
            log: Vec::new(),
        }
    }

    /// The same, with its log of effects read: see [`InProcess::take_log`].
    pub fn with_log() -> Self {
        let new = Self::new();
        let shared = &new.keyspace.shared;
        shared.log_is_read.store(true, Ordering::Relaxed);
        new
    }

    /// The log of effects since the last call.
    pub fn take_log(&mut self) -> Vec<Logged> {
        std::mem::take(&mut self.log)
    }

    /// The time on the fake clock: Unix milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.now_ms
    }

    /// The configuration that commands see.
    pub fn settings(&mut self) -> &mut Settings {
        &mut self.settings
    }

    /// What a script uses that only a server has, if there is such a thing: it is then not played
    /// here.
    pub fn lacks(&self, script: &Script) -> Option<String> {
        let mut settings = self.settings.clone();
        for (name, value) in &script.config {
            if let Err(problem) = directive(&mut settings, name, Some(value)) {
                return Some(format!("config {name}: {problem}"));
            }
        }
        script.steps.iter().find_map(|step| {
            let Action::Send { args, .. } = &step.action else {
                return None;
            };
            let name = String::from_utf8_lossy(args.first()?).to_lowercase();
            let known = self.keyspace.shared.table.find(name.as_bytes()).is_some();
            (!known && !OWN.contains(&&*name)).then(|| format!("the command {name}"))
        })
    }

    /// What the engine keeps.
    pub fn keyspace(&self) -> &Keyspace<NoLock> {
        &self.keyspace
    }

    /// What it knows of a client that is connected.
    pub fn session(&self, connection: usize) -> Option<&Session> {
        let open = self.connections.get(connection)?.as_ref()?;
        Some(&open.session)
    }

    /// Ends a client's wait as CLIENT UNBLOCK does. False where it does not wait.
    pub fn unblock(&mut self, connection: usize, with_error: bool) -> bool {
        let Some(Some(open)) = self.connections.get_mut(connection) else {
            return false;
        };
        let mut executor = Executor::new(&self.keyspace, self.stats.clone());
        let freed = give_up(&mut executor, open, with_error);
        gather(&mut self.log, executor);
        if freed {
            self.go_on(connection);
        }
        freed
    }

    /// Runs a waiting client's command again, as if its time to look had come.
    pub fn look_again(&mut self, connection: usize) {
        let Some(Some(open)) = self.connections.get_mut(connection) else {
            return;
        };
        let mut executor = Executor::new(&self.keyspace, self.stats.clone());
        let (host, settings, now_ms) = (&mut self.host, &self.settings, self.now_ms);
        executor.retry_wait(&open.session, settings, host, now_ms);
        gather(&mut self.log, executor);
        self.distribute();
    }

    fn open(&mut self, connection: usize) -> Result<&mut Connection, String> {
        let slot = self.connections.get_mut(connection);
        slot.and_then(Option::as_mut)
            .ok_or_else(|| "the connection is closed".to_owned())
    }

    /// Runs a command to its end, with all that follows for others.
    fn run(&mut self, connection: usize, words: &OwnedArgs) {
        let Some(Some(open)) = self.connections.get_mut(connection) else {
            return;
        };
        let mut out = Output::default();
        let args = words.view();
        let mut executor = Executor::new(&self.keyspace, self.stats.clone());
        let request = executor.prepare(args);
        let name = String::from_utf8_lossy(args.at(0)).to_lowercase();
        if request.entry.is_none() && OWN.contains(&&*name) {
            answer(&mut self.settings, &mut open.session, args, &mut out);
        } else {
            let (host, settings, now_ms) = (&mut self.host, &self.settings, self.now_ms);
            let session = &mut open.session;
            executor.begin(host);
            executor.execute(session, &request, settings, host, now_ms, &mut out);
            executor.end(settings, host, now_ms);
            while !executor.graveyard().free_some(1_000) {}
        }
        gather(&mut self.log, executor);
        deliver(open, &out);
        self.distribute();
    }

    /// Hands over what lies in the inboxes; clients that were served go on.
    fn distribute(&mut self) {
        for (to, mail) in std::mem::take(&mut self.host.mail) {
            let index = usize::try_from(to.number).unwrap_or(usize::MAX);
            let Some(Some(open)) = self.connections.get_mut(index) else {
                continue;
            };
            match mail {
                Mail::Push(push) => open.replies.feed(push.encoded(open.session.protocol)),
                Mail::Served(reply) => {
                    open.replies.feed(&reply);
                    open.session.waiting = None;
                    self.go_on(index);
                }
            }
        }
    }

    /// Runs what a client sent while it waited.
    fn go_on(&mut self, connection: usize) {
        while let Ok(open) = self.open(connection)
            && open.session.waiting.is_none()
            && let Some(words) = open.queued.pop_front()
        {
            self.run(connection, &words);
        }
    }

    /// Does what is due now: dead keys go, clients whose time is up are told so.
    fn tick(&mut self) {
        let mut executor = Executor::new(&self.keyspace, self.stats.clone());
        let (host, settings, now_ms) = (&mut self.host, &self.settings, self.now_ms);
        executor.begin(host);
        for stripe in 0..STRIPES {
            while executor.expire(stripe, EXPIRE_BUDGET, settings, host, now_ms) {}
            while executor.expire_fields(stripe, settings, host, now_ms) {}
        }
        let retried = |open: &&mut Connection| {
            let waiter = open.session.waiting.as_ref();
            waiter.is_some_and(|w| w.due_ms().is_some_and(|at| at <= now_ms))
        };
        for open in self.connections.iter_mut().flatten().filter(retried) {
            executor.retry_wait(&open.session, settings, host, now_ms);
        }
        gather(&mut self.log, executor);
        self.distribute();
        let mut freed = Vec::new();
        for (index, open) in self.connections.iter_mut().enumerate() {
            let Some(open) = open else { continue };
            let deadline = open.session.waiting.as_ref().and_then(|w| w.deadline_ms);
            let mut executor = Executor::new(&self.keyspace, self.stats.clone());
            if deadline.is_some_and(|at| at <= now_ms) && give_up(&mut executor, open, false) {
                freed.push(index);
            }
            gather(&mut self.log, executor);
        }
        freed.into_iter().for_each(|index| self.go_on(index));
    }

    /// When the next waiting client gives up.
    fn next_deadline(&self) -> Option<u64> {
        let waiting = |open: &Connection| open.session.waiting.as_ref()?.due_ms();
        self.connections.iter().flatten().filter_map(waiting).min()
    }

    /// Ends everything that a client has going on in the engine.
    fn forget(&mut self, connection: usize) {
        let Some(mut open) = self.connections.get_mut(connection).and_then(Option::take) else {
            return;
        };
        let mut executor = Executor::new(&self.keyspace, self.stats.clone());
        let (host, settings, now_ms) = (&mut self.host, &self.settings, self.now_ms);
        executor.forget(&mut open.session, settings, host, now_ms);
        gather(&mut self.log, executor);
    }
}

/// Puts what an executor leaves in the log.
fn gather(log: &mut Vec<Logged>, mut executor: Executor<'_, NoLock>) {
    for (frame, bytes) in executor.frames().iter() {
        let bytes = bytes.to_vec();
        log.push(Logged { frame, bytes });
    }
}

/// Ends a client's wait and tells it so. False where it does not wait, or is served already.
fn give_up(executor: &mut Executor<'_, NoLock>, open: &mut Connection, with_error: bool) -> bool {
    let Some(waiter) = open.session.waiting.clone() else {
        return false;
    };
    if !executor.cancel_wait(&mut open.session) {
        return false;
    }
    let mut out = Output::default();
    let mut writer = Writer::new(&mut out, open.session.protocol);
    if with_error {
        writer.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
    } else {
        let is_resp3 = open.session.protocol == Protocol::Resp3;
        writer.raw(waiter.timeout_reply(is_resp3, Durable::NoLog));
    }
    deliver(open, &out);
    true
}

fn deliver(open: &mut Connection, out: &Output) {
    out.slices(|piece| {
        open.replies.feed(piece);
        true
    });
}

/// Answers a command of [`OWN`].
fn answer(settings: &mut Settings, session: &mut Session, args: Args<'_>, out: &mut Output) {
    let word = |index| String::from_utf8_lossy(args.at(index)).to_lowercase();
    let mut writer = Writer::new(out, session.protocol);
    match (word(0).as_str(), word(1).as_str()) {
        ("hello", version @ ("2" | "3" | "")) => {
            if let "2" | "3" = version {
                let is_new = version == "3";
                session.protocol = [Protocol::Resp2, Protocol::Resp3][usize::from(is_new)];
                writer.set_protocol(session.protocol);
            }
            writer.map(1);
            writer.text("proto");
            writer.int(2 + i64::from(session.protocol == Protocol::Resp3));
        }
        ("select", number) => match number.parse() {
            Ok(db) if db < settings.databases => {
                session.db = db;
                writer.ok();
            }
            _ => writer.error("ERR DB index is out of range"),
        },
        ("config", "set") => match directive(settings, &word(2), Some(&word(3))) {
            Ok(_) => writer.ok(),
            Err(problem) => writer.error(&format!("ERR {problem}")),
        },
        ("config", "get") => match directive(settings, &word(2), None) {
            Ok(value) => {
                writer.map(1);
                writer.text(&word(2));
                writer.text(&value);
            }
            Err(_) => writer.map(0),
        },
        _ => writer.error("ERR this target does not answer that"),
    }
}

/// Sets a directive that the engine knows, if a value is given; hands back the one it had.
fn directive(settings: &mut Settings, name: &str, value: Option<&str>) -> Result<String, String> {
    fn swap<T: std::str::FromStr + ToString>(
        place: &mut T,
        value: Option<&str>,
    ) -> Result<String, String> {
        let old = place.to_string();
        if let Some(value) = value {
            *place = value.parse().map_err(|_| format!("not a value: {value}"))?;
        }
        Ok(old)
    }
    match name {
        "notify-keyspace-events" => {
            let old = event_letters(settings.notify);
            if let Some(value) = value {
                settings.notify = event_classes(value).ok_or("a letter that is none")?;
            }
            Ok(old)
        }
        "maxmemory-policy" => {
            let old = ["noeviction", "allkeys-lfu"][usize::from(settings.lfu)];
            settings.lfu = value.map_or(settings.lfu, |value| value.ends_with("lfu"));
            Ok(old.to_owned())
        }
        "list-max-listpack-size" | "list-max-ziplist-size" => {
            // The engine keeps what the number means, not the number; scripts begin with -2.
            let mut limit = -2;
            let old = swap(&mut limit, value)?;
            settings.list_limit = Limit::new(limit);
            Ok(old)
        }
        "proto-max-bulk-len" => swap(&mut settings.string_bytes_max, value),
        "lfu-log-factor" => swap(&mut settings.lfu_log_factor, value),
        "lfu-decay-time" => swap(&mut settings.lfu_decay_minutes, value),
        "hash-max-listpack-entries" | "hash-max-ziplist-entries" => {
            swap(&mut settings.hash_listpack_entries, value)
        }
        "hash-max-listpack-value" | "hash-max-ziplist-value" => {
            swap(&mut settings.hash_listpack_value, value)
        }
        "hll-sparse-max-bytes" => swap(&mut settings.hll_sparse_bytes, value),
        "set-max-intset-entries" => swap(&mut settings.set_intset_entries, value),
        "set-max-listpack-entries" => swap(&mut settings.set_listpack_entries, value),
        "set-max-listpack-value" => swap(&mut settings.set_listpack_value, value),
        "zset-max-listpack-entries" | "zset-max-ziplist-entries" => {
            swap(&mut settings.zset_listpack_entries, value)
        }
        "zset-max-listpack-value" | "zset-max-ziplist-value" => {
            swap(&mut settings.zset_listpack_value, value)
        }
        "stream-node-max-bytes" => swap(&mut settings.stream_node_bytes, value),
        "stream-node-max-entries" => swap(&mut settings.stream_node_entries, value),
        "stream-idmp-duration" => swap(&mut settings.stream_idmp_duration, value),
        "stream-idmp-maxsize" => swap(&mut settings.stream_idmp_maxsize, value),
        "array-slice-size" => swap(&mut settings.array_slice_size, value),
        "array-sparse-kmax" => swap(&mut settings.array_sparse_kmax, value),
        _ => Err("only a server has it".to_owned()),
    }
}

/// The letters of event classes at the places of their bits; a blank is a bit that none has.
const EVENT_LETTERS: &str = "KEg$lshzxetm dnocaSTIV";
/// What the letter `A` stands for.
const EVENTS_ALL: &str = "g$lshzxetda";

fn event_classes(letters: &str) -> Option<u32> {
    letters
        .replace('A', EVENTS_ALL)
        .chars()
        .try_fold(0, |bits, letter| {
            let bit = EVENT_LETTERS.find(letter).filter(|_| letter != ' ')?;
            Some(bits | 1 << bit)
        })
}

fn event_letters(bits: u32) -> String {
    let letters = EVENT_LETTERS.chars().enumerate();
    letters
        .filter(|(bit, _)| bits >> bit & 1 == 1)
        .map(|(_, letter)| letter)
        .collect()
}

impl Target for InProcess {
    fn name(&self) -> &str {
        "engine"
    }

    fn reset(&mut self) -> Result<(), String> {
        let is_logged = self.keyspace.shared.log_is_read.load(Ordering::Relaxed);
        *self = if is_logged {
            Self::with_log()
        } else {
            Self::new()
        };
        Ok(())
    }

    fn configure(&mut self, name: &str, value: &str) -> Result<String, String> {
        directive(&mut self.settings, name, Some(value))
    }

    fn connect(&mut self) -> Result<usize, String> {
        let index = self.connections.len();
        let id = ClientId {
            thread: 0,
            number: index as u64,
        };
        self.connections.push(Some(Connection {
            session: Session::new(id, true),
            replies: Decoder::new(),
            queued: VecDeque::new(),
        }));
        Ok(index)
    }

    fn send(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<(), String> {
        let words = OwnedArgs::from_words(args.iter().map(Vec::as_slice));
        let open = self.open(connection)?;
        if open.session.closing {
            return Err("the connection is closed".to_owned());
        }
        if open.session.waiting.is_some() {
            open.queued.push_back(words);
        } else {
            self.run(connection, &words);
        }
        Ok(())
    }

    fn receive(&mut self, connection: usize) -> Result<Reply, String> {
        self.pending(connection)?
            .ok_or_else(|| "nothing will come".to_owned())
    }

    fn pending(&mut self, connection: usize) -> Result<Option<Reply>, String> {
        let replies = &mut self.open(connection)?.replies;
        let reply = replies
            .next_reply()
            .map_err(|problem| problem.to_string())?;
        match reply.is_none() && !replies.is_idle() {
            true => Err("a reply was left unfinished".to_owned()),
            false => Ok(reply),
        }
    }

    fn await_blocked(&mut self, clients: usize) -> Result<(), String> {
        let shared = &self.keyspace.shared;
        let now = shared.blocked_clients.load(Ordering::Relaxed);
        match now == clients as u64 {
            true => Ok(()),
            false => Err(format!("{now} clients are blocked, not {clients}")),
        }
    }

    fn close(&mut self, connection: usize) -> Result<(), String> {
        self.forget(connection);
        self.distribute();
        Ok(())
    }

    fn advance(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        while let Some(at) = self.next_deadline().filter(|at| *at <= end) {
            self.now_ms = self.now_ms.max(at);
            self.tick();
        }
        self.now_ms = end;
        self.tick();
    }
}
