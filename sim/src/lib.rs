//! The engine under a seeded simulation: many clients, random commands, and a clock in its hand.
//!
//! A run is a number of steps. Each does one thing (a client's command, a jump of the clock, a
//! client that hangs up, CLIENT UNBLOCK) and is followed by an account of all elements of keys
//! whose contents are known ([`ledger`]); every so often everything that the engine keeps is
//! compared with everything that it counts ([`checks`]), and, in most runs, with a second engine
//! that plays the log of the first ([`testkit::Replay`]). Commands come from two sources: [`tame`]
//! ones on those keys, and [`wild`] ones, drawn from the declarations of all commands, on others.
//!
//! # Invariants
//! - A seed and a number of steps are a run: the same on every machine, whatever it finds.
//! - The run knows what it finds wrong without a second server: see the modules.
//!
//! # Why not threads as well?
//! What threads add is the order of locks, which `crates/engine/tests/model` explores schedule by
//! schedule, and `testkit::serial` on the real server. Here histories are long and of every kind.
#![forbid(unsafe_code)]

mod checks;
mod clients;
mod ledger;
mod random;
mod tame;
mod wild;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clients::{Client, Heard, quoted};
use ledger::{Event, Ledger};
use random::Random;
use tame::{DATABASES, Tame};
use testkit::{InProcess, Replay, Reply, Target, render};

/// Clients at a time.
const CLIENTS: usize = 24;
/// The first so many also subscribe.
const SUBSCRIBERS: usize = 5;
/// Steps between two looks at everything, and between two that read every structure.
const CHECK_STEPS: usize = 128;
const DEEP_CHECK_STEPS: usize = 2048;
/// Steps that are told when a run fails.
const TOLD: usize = 250;

/// What a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Commands that ran, those of transactions too.
    pub commands: u64,
    /// Those that ended with an error.
    pub errors: u64,
    /// Waiting clients that were served.
    pub served: u64,
    /// Transactions that ran.
    pub transactions: u64,
    /// Transactions that failed as a watched key had changed.
    pub broken: u64,
    /// Elements that were pushed.
    pub elements: u64,
    /// A digest of all replies: the same for the same run.
    pub digest: u64,
}

/// Runs `steps` steps.
///
/// # Errors
/// What was found, with the last steps before it.
pub fn run(seed: u64, steps: usize) -> Result<Summary, String> {
    let mut sim = Sim::new(seed)?;
    let result = catch_unwind(AssertUnwindSafe(|| sim.run(steps)));
    let problem = match result {
        Ok(Ok(())) => return Ok(sim.summary),
        Ok(Err(problem)) => problem,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
            format!("panic: {}", text.unwrap_or_default())
        }
    };
    let told: Vec<String> = sim.told.into_iter().collect();
    Err(format!(
        "{}\nseed {seed}, step {}: {problem}",
        told.join("\n"),
        sim.step
    ))
}

struct Sim {
    engine: InProcess,
    /// Plays the engine's log, where it is read.
    replay: Option<Replay>,
    random: Random,
    ledger: Ledger,
    clients: Vec<Client>,
    /// Our own connection, for what the checks ask.
    control: usize,
    wild: Vec<u16>,
    /// Payloads of DUMP, for RESTORE.
    payloads: Vec<Vec<u8>>,
    messages: u64,
    step: usize,
    told: VecDeque<String>,
    summary: Summary,
}

impl Sim {
    fn new(seed: u64) -> Result<Self, String> {
        let is_logged = !seed.is_multiple_of(3);
        let mut engine = match is_logged {
            true => InProcess::with_log(),
            false => InProcess::new(),
        };
        let settings = engine.settings();
        // Small limits, so that small values already change their form.
        settings.databases = u32::try_from(DATABASES).unwrap_or(u32::MAX);
        settings.string_bytes_max = 1 << 20;
        settings.hash_listpack_entries = 8;
        settings.set_intset_entries = 8;
        settings.set_listpack_entries = 8;
        settings.zset_listpack_entries = 8;
        settings.list_limit = structure::list::Limit::new(4);
        settings.stream_node_entries = 5;
        if seed % 2 == 1 {
            // Every event but keymiss.
            settings.notify = 0x1_ffff & !(1 << 8);
        }
        let wild = wild::commands(&engine.keyspace().shared.table);
        let control = engine.connect()?;
        let mut sim = Self {
            engine,
            replay: is_logged.then(Replay::default),
            random: Random::new(seed),
            ledger: Ledger::default(),
            clients: Vec::new(),
            control,
            wild,
            payloads: Vec::new(),
            messages: 0,
            step: 0,
            told: VecDeque::new(),
            summary: Summary::default(),
        };
        for _ in 0..CLIENTS {
            let client = Client::new(sim.engine.connect()?);
            sim.clients.push(client);
        }
        Ok(sim)
    }

    fn run(&mut self, steps: usize) -> Result<(), String> {
        for step in 0..steps {
            self.step = step;
            let time_passed = self.act()?;
            self.account(time_passed)?;
            if step % CHECK_STEPS == CHECK_STEPS - 1 {
                self.check(step % DEEP_CHECK_STEPS == DEEP_CHECK_STEPS - 1)?;
            }
        }
        self.check(true)?;
        self.end()
    }

    /// One step. True where time passed.
    fn act(&mut self) -> Result<bool, String> {
        let client = self.pick();
        match self.random.below(100) {
            0..46 => {
                let words = self.tame();
                self.send(client, words)?;
            }
            46..76 => {
                let words = self.wild_call();
                self.send(client, words)?;
            }
            76..83 => self.transact(client)?,
            83..86 => self.publish(client)?,
            86..93 => {
                self.pass_time()?;
                return Ok(true);
            }
            93..95 => self.hang_up(client)?,
            95..98 => self.unblock(),
            98 => {
                let db = self.random.below(DATABASES);
                self.send_text(client, &format!("SELECT {db}"))?;
            }
            _ if self.is_idle(client) => {
                let version = self.random.between(2, 3);
                self.send_text(client, &format!("HELLO {version}"))?;
            }
            _ => {}
        }
        Ok(false)
    }

    /// A client, preferably one that does not wait.
    fn pick(&mut self) -> usize {
        let mut client = 0;
        for _ in 0..4 {
            client = self.random.below(CLIENTS);
            if !self.is_waiting(client) {
                break;
            }
        }
        client
    }

    fn is_waiting(&self, client: usize) -> bool {
        let session = self.engine.session(self.clients[client].connection);
        session.is_some_and(|session| session.waiting.is_some())
    }

    /// Whether it neither waits nor is in a transaction.
    fn is_idle(&self, client: usize) -> bool {
        let client = &self.clients[client];
        client.sent.is_empty() && client.queued.is_none()
    }

    fn tame(&mut self) -> Vec<Vec<u8>> {
        let mut tame = Tame {
            random: &mut self.random,
            ledger: &mut self.ledger,
        };
        tame.call()
    }

    fn wild_call(&mut self) -> Vec<Vec<u8>> {
        let id = self.wild[self.random.below(self.wild.len())];
        let table = &self.engine.keyspace().shared.table;
        let entry = &table.entries()[usize::from(id)];
        let mut words = wild::call(entry, self.engine.now_ms(), &mut self.random);
        if entry.command.name == "restore" && !self.payloads.is_empty() && words.len() > 3 {
            words[3].clone_from(&self.payloads[self.random.below(self.payloads.len())]);
        }
        words
    }

    fn transact(&mut self, client: usize) -> Result<(), String> {
        if self.is_waiting(client) {
            return Ok(());
        }
        if self.clients[client].queued.is_some() {
            if self.random.percent(20) {
                return self.send_text(client, "DISCARD");
            }
            let changed = self.watched_changed(client)?;
            self.clients[client].must_fail = changed;
            return self.send_text(client, "EXEC");
        }
        match self.random.below(10) {
            0..5 => self.send_text(client, "MULTI"),
            5..9 => self.watch(client),
            _ => {
                self.clients[client].watched.clear();
                self.send_text(client, "UNWATCH")
            }
        }
    }

    fn publish(&mut self, client: usize) -> Result<(), String> {
        self.messages += 1;
        let number = self.messages;
        let channel = self.random.below(4);
        if client < SUBSCRIBERS && self.is_idle(client) {
            let text = match self.random.below(6) {
                0 => format!("SUBSCRIBE ch{channel} ch{}", channel / 2),
                1 => format!("PSUBSCRIBE ch[0-{channel}] __key*"),
                2 => format!("SSUBSCRIBE ch{channel}"),
                3 => "PUNSUBSCRIBE".to_owned(),
                4 => "SUNSUBSCRIBE".to_owned(),
                _ => "UNSUBSCRIBE".to_owned(),
            };
            return self.send_unanswered(client, &text);
        }
        let name = self.random.one(&["PUBLISH", "PUBLISH", "SPUBLISH"]);
        self.send_text(client, &format!("{name} ch{channel} p{number}"))
    }

    fn pass_time(&mut self) -> Result<(), String> {
        let ms = match self.random.below(100) {
            0..50 => self.random.between(1, 40),
            50..85 => self.random.between(40, 2500),
            85..97 => self.random.between(2500, 600_000),
            _ => self.random.between(600_000, 400_000_000),
        };
        self.tell(format!("+{ms}ms"));
        self.engine.advance(ms);
        self.check_reclaimed()
    }

    fn hang_up(&mut self, client: usize) -> Result<(), String> {
        self.tell(format!("{client}!"));
        self.engine.close(self.clients[client].connection)?;
        self.clients[client] = Client::new(self.engine.connect()?);
        Ok(())
    }

    fn unblock(&mut self) {
        let waiting: Vec<usize> = (0..CLIENTS).filter(|&at| self.is_waiting(at)).collect();
        if waiting.is_empty() {
            return;
        }
        let client = waiting[self.random.below(waiting.len())];
        let with_error = self.random.percent(50);
        self.tell(format!("unblock {client}, error {with_error}"));
        let connection = self.clients[client].connection;
        self.engine.unblock(connection, with_error);
    }

    fn tell(&mut self, what: String) {
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.push_back(format!("{}: {what}", self.step));
    }

    fn send_text(&mut self, client: usize, text: &str) -> Result<(), String> {
        let words = text.split(' ').map(|word| word.as_bytes().to_vec());
        self.send(client, words.collect())
    }

    fn send(&mut self, client: usize, words: Vec<Vec<u8>>) -> Result<(), String> {
        self.tell(format!("{client}> {}", quoted(&words)));
        self.engine.send(self.clients[client].connection, &words)?;
        self.clients[client].sent.push_back(words);
        Ok(())
    }

    /// Sends what is answered by pushes alone.
    fn send_unanswered(&mut self, client: usize, text: &str) -> Result<(), String> {
        self.tell(format!("{client}> {text}"));
        let words: Vec<_> = text
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        self.engine.send(self.clients[client].connection, &words)
    }

    /// Takes all replies of a step and accounts for them.
    fn account(&mut self, time_passed: bool) -> Result<(), String> {
        let (mut events, mut pushes) = (Vec::new(), Vec::new());
        for index in 0..CLIENTS {
            let connection = self.clients[index].connection;
            while let Some(reply) = self.engine.pending(connection)? {
                self.summary.digest = clients::digest(self.summary.digest, &reply);
                match self.clients[index].hear(index, reply)? {
                    Heard::Push(push) => pushes.push(push),
                    Heard::Ran(ran) => events.extend(ran),
                }
            }
        }
        let result = self.judge(&events, &pushes, time_passed);
        if result.is_err() {
            for event in &events {
                let reply = render(&event.reply);
                let words = clients::quoted(&event.words);
                self.tell(format!("{}: {words}: {reply}", event.client));
            }
        }
        result
    }

    fn judge(
        &mut self,
        events: &[Event],
        pushes: &[Reply],
        time_passed: bool,
    ) -> Result<(), String> {
        for event in events {
            self.note(event)?;
        }
        clients::check_messages(events, pushes)?;
        self.check_order(events)?;
        self.ledger.account(&self.engine, events, time_passed)
    }

    fn note(&mut self, event: &Event) -> Result<(), String> {
        self.summary.commands += 1;
        self.summary.errors += u64::from(event.reply.is_error());
        match event.word(0) {
            "EXEC" if event.reply.is_null() => self.summary.broken += 1,
            "EXEC" if !event.reply.is_error() => {
                self.summary.transactions += 1;
                if let Some(change) = &self.clients[event.client].must_fail {
                    return Err(format!(
                        "EXEC ran though a watched key had changed: {change}"
                    ));
                }
            }
            "DUMP" => {
                if let Some(payload) = event.reply.bytes() {
                    self.payloads.truncate(30);
                    self.payloads.insert(0, payload.to_vec());
                }
            }
            _ => {}
        }
        if matches!(event.word(0), "EXEC" | "DISCARD") {
            self.clients[event.client].watched.clear();
            self.clients[event.client].must_fail = None;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
