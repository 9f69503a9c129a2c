//! The executor with nothing around it: threads that run commands for clients, and a journal of
//! what the clients got.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use engine::blocking::{State, Waiter};
use engine::executor::Executor;
use engine::host::{ClientId, Host};
use engine::keyspace::Keyspace;
use engine::pubsub::Push;
use engine::session::Session;
use engine::settings::Settings;
use engine::stats::ThreadStats;
use resp::{Args, Output, OwnedArgs};
use structure::hash::Seed;

use crate::lock::ModelLock;

/// Few, so that keys share them now and then, and cascades need several.
pub const STRIPES: usize = 4;
/// A time at which nothing is due.
pub const NOW_MS: u64 = 1_785_000_000_000;

/// What all threads share.
pub struct World {
    pub keyspace: Keyspace<ModelLock>,
    stats: Arc<ThreadStats>,
    /// A plain lock: nobody gives way while holding it, so the scheduler never sees it taken.
    journal: Mutex<Journal>,
}

/// What happened, in the order in which the stripes' locks put it.
#[derive(Default)]
pub struct Journal {
    pub events: Vec<Event>,
    next_client: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A client began to wait for these keys, while their stripes were locked.
    Waits(u64, Vec<String>),
    /// A client that waited was served this.
    Served(u64, Vec<String>),
    /// A command that did not wait took an element from this key.
    Took(String),
}

/// The key from which a command took an element, if it did, by its reply.
pub fn source(command: &str, reply: &[String]) -> Option<String> {
    if reply.iter().any(|word| word.ends_with("-1")) {
        return None;
    }
    let words: Vec<&str> = command.split(' ').collect();
    match words[0] {
        "LPOP" | "LMOVE" | "BLMOVE" => Some(words[1].to_owned()),
        "BLPOP" | "BRPOP" | "BLMPOP" => Some(reply[0].clone()),
        _ => None,
    }
}

impl World {
    pub fn new() -> Arc<Self> {
        let table = engine::Table::new(engine::commands::FAMILIES);
        let stats = Arc::new(ThreadStats::new(table.len()));
        Arc::new(Self {
            keyspace: Keyspace::new(table, STRIPES, Seed::new([1, 2])),
            stats,
            journal: Mutex::default(),
        })
    }

    pub fn journal(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().expect("nobody panics with it")
    }

    /// A key of its own in each stripe.
    pub fn keys(&self) -> Vec<String> {
        (0..STRIPES)
            .map(|stripe| {
                let is_there = |key: &String| self.keyspace.shared.stripe(self.hash(key)) == stripe;
                let mut names = (0..).map(|number| format!("k{number}"));
                names.find(is_there).expect("hashes are spread")
            })
            .collect()
    }

    fn hash(&self, key: &str) -> u64 {
        self.keyspace.shared.hash(key.as_bytes())
    }

    /// The replies that clients got after waiting; each got at most one.
    pub fn served(&self) -> HashMap<u64, Vec<String>> {
        let mut served = HashMap::new();
        for event in &self.journal().events {
            if let Event::Served(client, reply) = event {
                let before = served.insert(*client, reply.clone());
                assert_eq!(before, None, "client {client} is served twice");
            }
        }
        served
    }
}

/// A client of one thread.
pub struct Client {
    pub session: Session,
    /// Its commands that were answered at once, and the answers.
    pub replies: Vec<(String, Vec<String>)>,
    /// The command that made it wait, and its wait.
    pub wait: Option<(String, Arc<Waiter>)>,
    /// Whether its wait was ended by its own thread.
    pub cancelled: bool,
}

/// One thread: its executor and the clients that it serves.
pub struct Thread<'w> {
    world: &'w World,
    executor: Executor<'w, ModelLock>,
    host: Mail<'w>,
    settings: Settings,
    number: u16,
}

struct Mail<'w> {
    world: &'w World,
    ticks: u64,
}

impl Host for Mail<'_> {
    fn push(&mut self, _: ClientId, _: &Arc<Push>) {}

    fn serve(&mut self, to: ClientId, reply: &[u8]) {
        let event = Event::Served(to.number, words(reply));
        self.world.journal().events.push(event);
    }

    fn random(&mut self) -> u64 {
        self.ticks
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
        unreachable!("no handler of the engine knows its host")
    }
}

impl<'w> Thread<'w> {
    pub fn new(world: &'w World, number: u16) -> Self {
        Self {
            world,
            executor: Executor::new(&world.keyspace, world.stats.clone()),
            host: Mail { world, ticks: 0 },
            settings: Settings::default(),
            number,
        }
    }

    pub fn client(&self) -> Client {
        let mut journal = self.world.journal();
        journal.next_client += 1;
        let id = ClientId {
            thread: self.number,
            number: journal.next_client,
        };
        Client {
            session: Session::new(id, true),
            replies: Vec::new(),
            wait: None,
            cancelled: false,
        }
    }

    /// Runs commands as one batch, until one makes the client wait; the replies are noted.
    pub fn batch(&mut self, client: &mut Client, commands: &[String]) {
        self.executor.begin(&mut self.host);
        for command in commands {
            let args = OwnedArgs::from_words(command.split(' ').map(str::as_bytes));
            let request = self.executor.prepare(args.view());
            if let Some(hash) = request.hash {
                self.executor.prefetch_bucket(0, hash);
            }
            let mut out = Output::default();
            let outcome = self.executor.execute(
                &mut client.session,
                &request,
                &self.settings,
                &mut self.host,
                NOW_MS,
                &mut out,
            );
            if outcome.blocked {
                // The stripes are locked until the batch ends.
                self.note_wait(client, command);
                break;
            }
            let reply = words(out.since(0));
            if let Some(key) = source(command, &reply) {
                self.world.journal().events.push(Event::Took(key));
            }
            client.replies.push((command.clone(), reply));
        }
        self.executor.end(&self.settings, &mut self.host, NOW_MS);
    }

    /// Runs one command and gives its reply.
    pub fn call(&mut self, client: &mut Client, command: &str) -> Vec<String> {
        self.batch(client, &[command.to_owned()]);
        client.replies.pop().expect("it did not wait").1
    }

    fn note_wait(&self, client: &mut Client, command: &str) {
        let waiter = client.session.waiting.clone().expect("it waits");
        let name = |(_, key): &(u64, Box<[u8]>)| String::from_utf8_lossy(key).into_owned();
        let keys = waiter.keys.iter().map(name).collect();
        let event = Event::Waits(client.session.id.number, keys);
        self.world.journal().events.push(event);
        client.wait = Some((command.to_owned(), waiter));
    }

    /// Ends the client's wait as a timeout does, or, as it hangs up, with all that it holds.
    pub fn cancel(&mut self, client: &mut Client, hangs_up: bool) {
        let Some(waiter) = client.session.waiting.clone() else {
            return;
        };
        if hangs_up {
            self.executor
                .forget(&mut client.session, &self.settings, &mut self.host, NOW_MS);
            client.cancelled = waiter.state() == State::Cancelled;
        } else {
            client.cancelled = self.executor.cancel_wait(&mut client.session);
        }
    }

    /// Runs the client's command again, as if its time to look had come.
    pub fn look_again(&mut self, client: &Client) {
        self.executor
            .retry_wait(&client.session, &self.settings, &mut self.host, NOW_MS);
    }
}

/// The words of a reply: bulk strings, and numbers, statuses and errors as they are.
pub fn words(reply: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(reply);
    text.split_terminator("\r\n")
        .filter(|line| !line.starts_with(['*', '$']) || line.ends_with("-1"))
        .map(str::to_owned)
        .collect()
}
