//! Clients that wait, writers that serve them, and waits that end meanwhile.
//!
//! Every element is pushed once and is unlike all others, so where each of them went can be told in
//! the end.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::blocking::State;
use shuttle::thread;

use crate::program::{Client, Event, Thread, World, source};
use crate::{below, check};

const THREADS: u16 = 3;
/// Of each thread.
const STEPS: usize = 4;

/// A thread's clients, and what they pushed.
struct Done {
    clients: Vec<Client>,
    pushed: Vec<String>,
}

/// What one thread does: a few steps, each drawn.
struct Actor<'w> {
    thread: Thread<'w>,
    keys: Vec<String>,
    number: u16,
    /// Whether waiting commands are run again without a reason, as XREADGROUP CLAIM asks for. They
    /// then do not mind who was before them.
    looks_again: bool,
    done: Done,
}

impl Actor<'_> {
    fn key(&self) -> &str {
        &self.keys[below(self.keys.len())]
    }

    fn element(&mut self) -> String {
        let element = format!("e{}.{}", self.number, self.done.pushed.len());
        self.done.pushed.push(element.clone());
        element
    }

    fn push(&mut self) -> String {
        let verb = ["LPUSH", "RPUSH"][below(2)];
        let (key, first) = (self.key().to_owned(), self.element());
        if below(2) == 0 {
            return format!("{verb} {key} {first}");
        }
        format!("{verb} {key} {first} {}", self.element())
    }

    fn wait(&self) -> String {
        let (a, b) = (self.key(), self.key());
        match below(5) {
            0 => format!("BLPOP {a} 0"),
            1 => format!("BRPOP {a} {b} 0"),
            2 => format!("BLMPOP 0 2 {a} {b} LEFT"),
            _ => format!("BLMOVE {a} {b} LEFT RIGHT 0"),
        }
    }

    fn step(&mut self) {
        let mut client = self.thread.client();
        let commands = match below(9) {
            0..=2 => vec![self.wait()],
            3 => vec![self.push()],
            4 => vec![self.push(), format!("LPOP {}", self.key()), self.push()],
            5 => vec![format!("LMOVE {} {} RIGHT LEFT", self.key(), self.key())],
            6 if self.looks_again => {
                vec!["MULTI".into(), self.push(), self.push(), "EXEC".into()]
            }
            // One key a transaction where order is looked at: a waiting command runs again whole,
            // so of two keys that become ready together it takes the first that it names, as in
            // Redis, whoever waits for that one.
            6 => vec!["MULTI".into(), self.push(), "EXEC".into()],
            7 if self.looks_again && !self.done.clients.is_empty() => {
                let index = below(self.done.clients.len());
                let other = &self.done.clients[index];
                return self.thread.look_again(other);
            }
            _ => {
                let hangs_up = below(2) == 0;
                for client in &mut self.done.clients {
                    if below(2) == 0 {
                        self.thread.cancel(client, hangs_up);
                    }
                }
                return;
            }
        };
        self.thread.batch(&mut client, &commands);
        self.done.clients.push(client);
    }
}

fn act(world: &World, number: u16, looks_again: bool) -> Done {
    let mut actor = Actor {
        thread: Thread::new(world, number),
        keys: world.keys(),
        number,
        looks_again,
        done: Done {
            clients: Vec::new(),
            pushed: Vec::new(),
        },
    };
    for _ in 0..STEPS {
        actor.step();
    }
    actor.done
}

/// The elements that left their lists with an answer to `command`: what moves stays.
fn popped<'r>(command: &str, reply: &'r [String]) -> impl Iterator<Item = &'r String> {
    let moves = command.contains("MOVE");
    let is_element = move |word: &&String| !moves && word.starts_with('e');
    reply.iter().filter(is_element)
}

/// Each element that was pushed is in a list or went to one client.
fn check_elements(world: &World, done: &[Done]) {
    let mut pushed: Vec<String> = done.iter().flat_map(|done| done.pushed.clone()).collect();
    let mut thread = Thread::new(world, THREADS);
    let mut client = thread.client();
    let mut found: Vec<String> = Vec::new();
    for key in world.keys() {
        found.extend(thread.call(&mut client, &format!("LRANGE {key} 0 -1")));
    }
    let served = world.served();
    for client in done.iter().flat_map(|done| &done.clients) {
        for (command, reply) in &client.replies {
            found.extend(popped(command, reply).cloned());
        }
        if let Some((command, _)) = &client.wait
            && let Some(reply) = served.get(&client.session.id.number)
        {
            found.extend(popped(command, reply).cloned());
        }
    }
    pushed.sort();
    found.sort();
    assert_eq!(found, pushed, "elements are lost, or there twice");
}

/// Every wait is still going on, or was ended by one side; nobody waits for what is there.
fn check_waits(world: &World, done: &[Done]) {
    let mut thread = Thread::new(world, THREADS);
    let mut asker = thread.client();
    let served = world.served();
    let (mut waiting, mut awaited) = (0, BTreeSet::new());
    for client in done.iter().flat_map(|done| &done.clients) {
        let Some((command, waiter)) = &client.wait else {
            continue;
        };
        let is_served = served.contains_key(&client.session.id.number);
        let ends = (waiter.state(), is_served, client.cancelled);
        match waiter.state() {
            State::Claimed => assert_eq!((is_served, client.cancelled), (true, false), "{command}"),
            State::Cancelled => {
                assert_eq!((is_served, client.cancelled), (false, true), "{command}")
            }
            State::Waiting => {
                assert_eq!(
                    (is_served, client.cancelled),
                    (false, false),
                    "{ends:?} {command}"
                );
                waiting += 1;
                for (_, key) in &waiter.keys {
                    let key = String::from_utf8_lossy(key).into_owned();
                    let len = thread.call(&mut asker, &format!("LLEN {key}"));
                    assert_eq!(len, [":0"], "{command} waits for {key}, which is there");
                    awaited.insert(key);
                }
            }
        }
    }
    let shared = &world.keyspace.shared;
    let blocked = shared
        .blocked_clients
        .load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!(blocked, waiting, "those who wait are miscounted");
    drop(thread);
    let mut guard = world.keyspace.stripes.acquire(world.keyspace.stripes.all());
    let held = guard.held();
    let lines: usize = (0..held.count())
        .map(|index| held.get(index).waiters.len())
        .sum();
    assert_eq!(lines, awaited.len(), "a line outlives its waiters");
}

/// Whoever got an element from a key had nobody before it in that key's line.
fn check_order(world: &World, done: &[Done]) {
    let clients = done.iter().flat_map(|done| &done.clients);
    let clients: HashMap<u64, &Client> = clients
        .map(|client| (client.session.id.number, client))
        .collect();
    let mut lines: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let journal = world.journal();
    for event in &journal.events {
        let (key, served) = match event {
            Event::Waits(client, keys) => {
                for key in keys {
                    lines.entry(key.clone()).or_default().push(*client);
                }
                continue;
            }
            Event::Took(key) => (key.clone(), None),
            Event::Served(client, reply) => {
                let (command, _) = clients[client].wait.as_ref().expect("it waited");
                let key = source(command, reply).expect("it got an element");
                (key, Some(*client))
            }
        };
        let mut line = lines.get(&key).into_iter().flatten();
        // When exactly a wait was ended is not noted.
        let first = line.find(|other| Some(**other) == served || !clients[other].cancelled);
        assert_eq!(
            first.copied(),
            served,
            "somebody is passed at {key}: {:#?}",
            journal.events
        );
        for line in lines.values_mut() {
            line.retain(|other| Some(*other) != served);
        }
    }
}

/// Runs a few actors at once; their world and what they did.
fn run(looks_again: bool) -> (std::sync::Arc<World>, Vec<Done>) {
    let world = World::new();
    let actors: Vec<_> = (0..THREADS)
        .map(|number| {
            let world = world.clone();
            thread::spawn(move || act(&world, number, looks_again))
        })
        .collect();
    let done: Vec<Done> = actors
        .into_iter()
        .map(|actor| actor.join().expect("it ends"))
        .collect();
    check_elements(&world, &done);
    check_waits(&world, &done);
    (world, done)
}

/// What a command made ready was left for a moment where those who waited needed a stripe that was
/// taken; another pop, or a client served by its other key, came first.
#[test]
fn whoever_waits_is_served_before_anybody_else_sees_the_key() {
    check(1000, || {
        let (world, done) = run(false);
        check_order(&world, &done);
    });
}

/// A command that ran again because its time had come made something ready, and left those who
/// waited for it to whatever its thread did next.
#[test]
fn a_second_look_leaves_nobody_waiting_in_vain() {
    check(1000, || {
        run(true);
    });
}
