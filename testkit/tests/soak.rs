//! Killing the server again and again: what it acknowledged must be there afterwards.
//!
//! Each round starts the server on the data of the rounds before, lets writers write and somebody
//! rewrite the log, kills it at a random moment with SIGKILL, starts it again and compares. A
//! writer does one step after the other, each in a transaction that also counts it, so the count
//! says which steps are there, and what they leave behind must agree with it.
//!
//! # Invariants
//! - Under `always` every step that was acknowledged is there; under `everysec` every one that was
//!   acknowledged two seconds before the end.
//! - No step is there in part, and none without those before it.
//!
//! `SOAK_ROUNDS` says how many rounds (2), `SOAK_SEED` what chance begins with.

use std::collections::{BTreeSet, VecDeque};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use client::{Client, Reply};

const WRITERS: usize = 4;
/// What may be missing of what was acknowledged under `everysec`.
const LOST_MAX: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(30);

/// xorshift.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// What the steps so far leave behind.
#[derive(Clone, Default)]
struct Model {
    list: VecDeque<u64>,
    moved: VecDeque<u64>,
    queue: VecDeque<u64>,
    stream: Vec<u64>,
    delivered: usize,
    pending: BTreeSet<u64>,
    field: Option<u64>,
    pair: Option<u64>,
}

impl Model {
    /// The commands of step `n` of the writer `name`, which change this as the server.
    fn step(&mut self, name: &str, n: u64) -> Vec<Vec<String>> {
        let key = |suffix: &str| format!("{name}:{suffix}");
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let number = n.to_string();
        let mut commands: Vec<Vec<String>> = Vec::new();
        match n % 7 {
            1 => {
                self.list.push_back(n);
                commands.push(words(&["RPUSH", &key("list"), &number]));
            }
            2 => {
                self.pair = Some(n);
                commands.push(words(&["SET", &key("a"), &number]));
                commands.push(words(&["SET", &key("b"), &number, "PX", "100000000"]));
            }
            3 => {
                self.stream.push(n);
                let id = format!("{n}-1");
                commands.push(words(&["XADD", &key("stream"), &id, "n", &number]));
            }
            4 => {
                self.field = Some(n);
                let field = ["HSET", &key("hash"), "f", &number];
                commands.push(words(&field));
                let time = ["HPEXPIRE", &key("hash"), "100000000", "FIELDS", "1", "f"];
                commands.push(words(&time));
            }
            5 => {
                if let Some(first) = self.list.pop_front() {
                    self.moved.push_back(first);
                }
                let (from, to) = (key("list"), key("moved"));
                commands.push(words(&["LMOVE", &from, &to, "LEFT", "RIGHT"]));
                while self.moved.len() > 20 {
                    self.moved.pop_front();
                }
                commands.push(words(&["LTRIM", &to, "-20", "-1"]));
            }
            6 => {
                if let Some(&id) = self.stream.get(self.delivered) {
                    self.delivered += 1;
                    self.pending.insert(id);
                }
                let stream = key("stream");
                commands.push(words(&[
                    "XREADGROUP",
                    "GROUP",
                    "g",
                    "c",
                    "COUNT",
                    "1",
                    "STREAMS",
                    &stream,
                    ">",
                ]));
                if n.is_multiple_of(2)
                    && let Some(id) = self.pending.pop_first()
                {
                    commands.push(words(&["XACK", &stream, "g", &format!("{id}-1")]));
                }
            }
            // A client waits for this one: see `Writer::step`.
            _ => {
                self.queue.push_back(n);
                commands.push(words(&["RPUSH", &key("queue"), &number]));
            }
        }
        commands.push(words(&["SET", &key("n"), &number]));
        commands
    }

    /// The client that waits was served.
    fn serve(&mut self) {
        if let Some(first) = self.queue.pop_front() {
            self.moved.push_back(first);
        }
    }

    fn show(&self) -> String {
        let list = |list: &VecDeque<u64>| format!("{list:?}");
        let last = self
            .delivered
            .checked_sub(1)
            .map_or(0, |at| self.stream[at]);
        format!(
            "list {} moved {} queue {} stream {:?} last {last} pending {} field {:?} pair {:?}",
            list(&self.list),
            list(&self.moved),
            list(&self.queue),
            self.stream,
            self.pending.len(),
            self.field,
            self.pair
        )
    }
}

/// What the server has of a writer.
fn shown(client: &mut Client, name: &str) -> (u64, String) {
    let mut call = |words: &[&str]| client.call(words).expect("it answers");
    let key = |suffix: &str| format!("{name}:{suffix}");
    let number = |reply: &Reply| reply.text().and_then(|text| text.parse::<u64>().ok());
    let mut list = |suffix: &str| -> VecDeque<u64> {
        let reply = call(&["LRANGE", &key(suffix), "0", "-1"]);
        let elements = reply.elements().unwrap_or_default().iter();
        elements.filter_map(number).collect()
    };
    let mut model = Model {
        list: list("list"),
        moved: list("moved"),
        queue: list("queue"),
        ..Model::default()
    };
    let id = |text: String| text.split('-').next().and_then(|n| n.parse::<u64>().ok());
    let entries = call(&["XRANGE", &key("stream"), "-", "+"]);
    for entry in entries.elements().unwrap_or_default() {
        let first = entry.elements().and_then(|parts| parts.first());
        model
            .stream
            .extend(first.and_then(Reply::text).and_then(id));
    }
    let pending = call(&["XPENDING", &key("stream"), "g"]);
    let count = pending.elements().and_then(|parts| parts[0].integer());
    let count = u64::try_from(count.unwrap_or(0)).unwrap_or(0);
    model.pending = (1..=count).collect();
    let groups = call(&["XINFO", "GROUPS", &key("stream")]);
    let group = groups.elements().and_then(|groups| groups.first());
    let last = group
        .and_then(|group| group.field("last-delivered-id"))
        .and_then(Reply::text)
        .and_then(id);
    model.delivered = model
        .stream
        .iter()
        .position(|entry| Some(*entry) == last)
        .map_or(0, |at| at + 1);
    model.field = number(&call(&["HGET", &key("hash"), "f"]));
    model.pair = number(&call(&["GET", &key("a")]));
    assert_eq!(
        model.pair,
        number(&call(&["GET", &key("b")])),
        "half of a transaction"
    );
    let timed = call(&["HPTTL", &key("hash"), "FIELDS", "1", "f"]);
    let timed = timed.elements().and_then(|parts| parts[0].integer());
    assert!(
        model.field.is_none() || timed.is_some_and(|ms| ms > 0),
        "no deadline"
    );
    let n = number(&call(&["GET", &key("n")])).unwrap_or(0);
    (n, model.show())
}

/// One writer: its steps, and when each was acknowledged.
struct Writer {
    name: String,
    acknowledged: Vec<Instant>,
}

impl Writer {
    fn write(&mut self, port: u16, is_over: &AtomicBool) {
        let Ok(mut client) = Client::connect(("127.0.0.1", port)) else {
            return;
        };
        let Ok(mut waiting) = Client::connect(("127.0.0.1", port)) else {
            return;
        };
        let stream = format!("{}:stream", self.name);
        let group = ["XGROUP", "CREATE", &stream, "g", "0", "MKSTREAM"];
        if client.call(&group).is_err() {
            return;
        }
        let mut model = Model::default();
        while !is_over.load(Ordering::Relaxed) {
            let n = self.acknowledged.len() as u64 + 1;
            if self
                .step(&mut client, &mut waiting, &mut model, n)
                .is_none()
            {
                return;
            }
            self.acknowledged.push(Instant::now());
        }
    }

    /// One step; `None` where the server is gone.
    fn step(
        &self,
        client: &mut Client,
        waiting: &mut Client,
        model: &mut Model,
        n: u64,
    ) -> Option<()> {
        let commands = model.step(&self.name, n);
        let waits = n.is_multiple_of(7);
        let (queue, moved) = (
            format!("{}:queue", self.name),
            format!("{}:moved", self.name),
        );
        if waits {
            let words = ["BLMOVE", &queue, &moved, "LEFT", "RIGHT", "0"];
            waiting.send(&words).ok()?;
        }
        client.send(&["MULTI"]).ok()?;
        for words in &commands {
            client.send(words).ok()?;
        }
        client.send(&["EXEC"]).ok()?;
        for _ in 0..=commands.len() {
            client.receive().ok()?;
        }
        let reply = client.receive().ok()?;
        let results = reply.elements()?;
        assert!(
            !results.iter().any(Reply::is_error),
            "{commands:?}: {reply:?}"
        );
        if waits {
            let served = waiting.receive().ok()?;
            assert_eq!(served.text(), Some(n.to_string()));
            model.serve();
        }
        Some(())
    }

    /// Compares what is there with what was done.
    fn check(&self, client: &mut Client, acknowledged: u64) {
        let (found, state) = shown(client, &self.name);
        let sent = self.acknowledged.len() as u64 + 1;
        assert!(
            (acknowledged..=sent).contains(&found),
            "{}: {found} steps are there, {acknowledged} must be, {sent} were sent",
            self.name
        );
        let mut model = Model::default();
        for n in 1..=found {
            model.step(&self.name, n);
            if n < found && n % 7 == 0 {
                model.serve();
            }
        }
        // The waiting client's move is an effect of its own.
        let before = model.show();
        model.serve();
        let must_be_served = acknowledged >= found;
        assert!(
            state == model.show() || !must_be_served && state == before,
            "{}, {found} steps:\n{state}\nwanted\n{}",
            self.name,
            model.show()
        );
    }
}

fn program() -> Option<PathBuf> {
    testkit::our_server()
}

fn start(program: &Path, dir: &Path, policy: &str, threads: u64) -> (Child, u16) {
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .expect("a free port")
        .port();
    let log = std::fs::File::options()
        .append(true)
        .create(true)
        .open(dir.join("log"))
        .expect("a log");
    let (port_text, threads) = (port.to_string(), threads.to_string());
    let child = Command::new(program)
        .args(["--port", &port_text, "--bind", "127.0.0.1", "--save", ""])
        .args(["--appendonly", "yes", "--appendfsync", policy])
        .args(["--threads", &threads, "--dir"])
        .arg(dir)
        .stdout(log)
        .stdin(Stdio::null())
        .spawn()
        .expect("the server starts");
    (child, port)
}

/// A connection to a server that has loaded its data.
fn connect(child: &mut Child, port: u16, dir: &Path) -> Client {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Ok(mut client) = Client::connect(("127.0.0.1", port))
            && client.call(&["PING"]).is_ok_and(|reply| !reply.is_error())
        {
            return client;
        }
        let ended = child.try_wait().expect("it can be asked");
        assert!(
            ended.is_none(),
            "the server ended: see {}",
            dir.join("log").display()
        );
        assert!(Instant::now() < end, "the server does not come up");
        std::thread::yield_now();
    }
}

fn round(program: &Path, dir: &Path, round: u64, chance: &mut Chance) {
    let policy = ["always", "everysec"][usize::try_from(round % 2).unwrap()];
    let threads = 1 + chance.below(2);
    let (mut child, port) = start(program, dir, policy, threads);
    drop(connect(&mut child, port, dir));
    let is_over = AtomicBool::new(false);
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer {
            name: format!("r{round}w{number}"),
            acknowledged: Vec::new(),
        })
        .collect();
    let life = Duration::from_millis(200 + chance.below(2500));
    let rewrite = Duration::from_millis(chance.below(2000));
    let mut killed = Instant::now();
    std::thread::scope(|scope| {
        for writer in &mut writers {
            scope.spawn(|| writer.write(port, &is_over));
        }
        // The time of the kill is what chance has to choose here; nothing is waited for.
        if rewrite < life {
            std::thread::park_timeout(rewrite);
            let mut client = Client::connect(("127.0.0.1", port)).expect("it is there");
            let _ = client.call(&["BGREWRITEAOF"]);
            std::thread::park_timeout(life - rewrite);
        } else {
            std::thread::park_timeout(life);
        }
        killed = Instant::now();
        child.kill().expect("it is killed");
        is_over.store(true, Ordering::Relaxed);
    });
    child.wait().expect("it has ended");
    let (mut child, port) = start(program, dir, policy, threads);
    let mut client = connect(&mut child, port, dir);
    let mut steps = 0;
    for writer in &writers {
        let promised = |at: &&Instant| policy == "always" || **at + LOST_MAX < killed;
        let acknowledged = writer.acknowledged.iter().filter(promised).count() as u64;
        steps += writer.acknowledged.len();
        writer.check(&mut client, acknowledged);
    }
    println!("round {round}: {policy}, {threads} threads, {life:?}, {steps} steps");
    child.kill().expect("it is killed");
    child.wait().expect("it has ended");
}

#[test]
fn what_was_acknowledged_is_there() {
    let Some(program) = program() else {
        println!("no server built: cargo build --release -p server");
        return;
    };
    let number = |name: &str, other| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(other)
    };
    let (rounds, seed) = (number("SOAK_ROUNDS", 2), number("SOAK_SEED", 1));
    let mut chance = Chance(seed * 2 + 1);
    let dir = std::env::temp_dir().join(format!("tidemill-soak-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    for number in 0..rounds {
        round(&program, &dir, number, &mut chance);
    }
    std::fs::remove_dir_all(&dir).expect("it is removed");
}
