//! The log of effects, played again in another engine, gives the same keyspace.
//!
//! Every behaviour script is played with its log read, and after each of its steps the replay is
//! compared: a command whose effect is not in the log, or depends on something that the log does
//! not say, fails here with its line. The simulation does the same with random commands.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::executor::Executor;
use engine::host::{Alone, ClientId, Host};
use engine::keyspace::Keyspace;
use engine::session::Session;
use engine::settings::Settings;
use engine::stats::ThreadStats;
use resp::{Output, OwnedArgs};
use structure::hash::Seed;
use structure::stripes::Lock;
use testkit::{InProcess, Logged, Replay, Reply, Target, files, parse, play};

/// The engine with its log read, and what plays it.
struct Followed {
    engine: InProcess,
    replay: Replay,
}

impl Followed {
    fn new() -> Self {
        Self {
            engine: InProcess::with_log(),
            replay: Replay::default(),
        }
    }

    fn follow(&mut self) -> Result<(), String> {
        let log = self.engine.take_log();
        self.replay.play(&log, self.engine.settings())?;
        let now_ms = self.engine.now_ms();
        match self.replay.differs(self.engine.keyspace(), now_ms) {
            None => Ok(()),
            Some(difference) => {
                let frames: Vec<_> = log.iter().map(|l| testkit::shown(&l.bytes)).collect();
                Err(format!("{difference}\nthe log:\n{}", frames.join("\n")))
            }
        }
    }
}

impl Target for Followed {
    fn name(&self) -> &str {
        "engine"
    }

    fn reset(&mut self) -> Result<(), String> {
        *self = Self::new();
        Ok(())
    }

    fn configure(&mut self, name: &str, value: &str) -> Result<String, String> {
        self.engine.configure(name, value)
    }

    fn connect(&mut self) -> Result<usize, String> {
        self.engine.connect()
    }

    fn send(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<(), String> {
        self.engine.send(connection, args)?;
        let words: Vec<_> = args.iter().map(|w| w.escape_ascii().to_string()).collect();
        let after = |problem| format!("after {}: {problem}", words.join(" "));
        self.follow().map_err(after)
    }

    fn receive(&mut self, connection: usize) -> Result<Reply, String> {
        self.engine.receive(connection)
    }

    fn pending(&mut self, connection: usize) -> Result<Option<Reply>, String> {
        self.engine.pending(connection)
    }

    fn await_blocked(&mut self, clients: usize) -> Result<(), String> {
        self.engine.await_blocked(clients)
    }

    fn close(&mut self, connection: usize) -> Result<(), String> {
        self.engine.close(connection)?;
        self.follow()
    }

    fn advance(&mut self, ms: u64) {
        self.engine.advance(ms);
    }
}

#[test]
fn every_script_is_the_same_when_its_log_is_played() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engine/tests/scripts");
    let wanted = std::env::var("SCRIPT").unwrap_or_default();
    let mut target = Followed::new();
    let (mut played, mut failures) = (0, Vec::new());
    for (path, text) in files(&dir).expect("the scripts are readable") {
        let file = path.strip_prefix(&dir).unwrap_or(&path);
        let file = file.display().to_string();
        let scripts = parse(&file, &text).unwrap_or_else(|problem| panic!("{problem}"));
        for script in scripts.iter().filter(|script| script.plays_on("engine")) {
            let is_wanted = file.contains(&wanted) || script.title.contains(&wanted);
            if !is_wanted || target.engine.lacks(script).is_some() {
                continue;
            }
            played += 1;
            let outcome = play(script, &mut target).map_err(|failure| failure.to_string());
            let title = &script.title;
            let last = target.follow();
            let outcome =
                outcome.and(last.map_err(|problem| format!("{file}: {title}: {problem}")));
            failures.extend(outcome.err());
        }
    }
    assert!(
        failures.is_empty(),
        "{} of {played} failed\n\n{}",
        failures.len(),
        failures.join("\n")
    );
    assert!(played > 0 || !wanted.is_empty(), "no script was found");
}

fn below(host: &mut Alone, end: u64) -> u64 {
    host.random() % end
}

/// Commands whose effects depend on their order; `{}` is a digit.
const CALLS: &[&str] = &[
    "APPEND s{} {}",
    "APPEND s{} {}",
    "INCR n{}",
    "MSET s{} 1 s{} 2",
    "RENAME s{} s{}",
    "COPY s{} s{} REPLACE",
    "COPY s{} s{} DB 1 REPLACE",
    "LPUSH l{} {} {}",
    "RPOPLPUSH l{} l{}",
    "SADD m{} {} {} {}",
    "SPOP m{}",
    "SUNIONSTORE m{} m{} m{}",
    "SET s{} v PX 3",
    "GET s{}",
    "HSET h{} f{} {}",
    "HPEXPIRE h{} 2 FIELDS 1 f{}",
    "HINCRBY h{} f{} 1",
    "XADD x{} MAXLEN ~ 5 * a {}",
    "MULTI",
    "EXEC",
    "SWAPDB 0 1",
    "FLUSHDB",
];

/// One thread's share: many random commands, on its own session.
fn work(
    keyspace: &Keyspace<Lock>,
    thread: u16,
    clock: &std::sync::atomic::AtomicU64,
) -> Vec<Logged> {
    let stats = Arc::new(ThreadStats::new(keyspace.shared.table.len()));
    let (mut executor, settings) = (Executor::new(keyspace, stats), Settings::default());
    let mut host = Alone::new(u64::from(thread) + 1);
    let mut session = Session::new(ClientId { thread, number: 1 }, true);
    let mut log = Vec::new();
    for _ in 0..400 {
        for _ in 0..8 {
            let call = CALLS[usize::try_from(below(&mut host, CALLS.len() as u64)).unwrap_or(0)];
            let mut line = String::new();
            for (index, part) in call.split("{}").enumerate() {
                if index > 0 {
                    line += &below(&mut host, 5).to_string();
                }
                line += part;
            }
            let now_ms = clock.fetch_add(1, Ordering::Relaxed);
            let words = OwnedArgs::from_words(line.split(' ').map(str::as_bytes));
            let (request, mut out) = (executor.prepare(words.view()), Output::default());
            executor.execute(
                &mut session,
                &request,
                &settings,
                &mut host,
                now_ms,
                &mut out,
            );
        }
        let now_ms = clock.load(Ordering::Relaxed);
        executor.end(&settings, &mut host, now_ms);
        let index = usize::try_from(below(&mut host, 64)).unwrap_or(0);
        executor.expire(index, 10, &settings, &mut host, now_ms);
        executor.expire_fields(index, &settings, &mut host, now_ms);
        for (frame, bytes) in executor.frames().iter() {
            let bytes = bytes.to_vec();
            log.push(Logged { frame, bytes });
        }
        executor.frames().clear();
    }
    log
}

#[test]
fn the_logs_of_threads_put_together_by_number_give_the_same() {
    let table = engine::Table::new(engine::commands::FAMILIES);
    let keyspace = Keyspace::<Lock>::new(table, 64, Seed::new([1, 2]));
    keyspace.shared.log_is_read.store(true, Ordering::Relaxed);
    let clock = std::sync::atomic::AtomicU64::new(1_785_000_000_000);
    let mut log: Vec<Logged> = std::thread::scope(|scope| {
        let (keyspace, clock) = (&keyspace, &clock);
        let threads = [0, 1, 2].map(|thread| scope.spawn(move || work(keyspace, thread, clock)));
        let logs = threads.map(|thread| thread.join().expect("a thread ends"));
        logs.into_iter().flatten().collect()
    });
    log.sort_by_key(|logged| logged.frame.lsn);
    let mut replay = Replay::default();
    replay
        .play(&log, &Settings::default())
        .expect("all is played");
    let now_ms = clock.load(Ordering::Relaxed);
    assert_eq!(replay.differs(&keyspace, now_ms), None);
}
