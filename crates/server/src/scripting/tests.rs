//! What scripts leave in the log, and that a log without a server is played without one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::Table;
use engine::executor::Executor;
use engine::host::ClientId;
use engine::keyspace::Keyspace;
use engine::replay::{Refused, Replayer};
use engine::settings::Settings;
use engine::stats::ThreadStats;
use resp::{Output, OwnedArgs};
use structure::hash::Seed;
use structure::stripes::NoLock;
use testkit::{Logged, Replay};

use crate::config::Config;
use crate::host::ThreadHost;
use crate::shared::Shared;

const NOW_MS: u64 = 1_785_000_000_000;

fn table() -> Table {
    let engine = engine::commands::FAMILIES.iter();
    let families: Vec<_> = engine.chain(crate::commands::FAMILIES).copied().collect();
    Table::new(&families)
}

/// A thread of a server with its log read, without sockets.
struct Thread<'k> {
    keyspace: &'k Keyspace<NoLock>,
    stats: Arc<ThreadStats>,
    refuses_writes: bool,
    log: Vec<Logged>,
    host: ThreadHost,
    session: engine::session::Session,
    settings: Settings,
}

impl<'k> Thread<'k> {
    fn new(keyspace: &'k Keyspace<NoLock>) -> Self {
        let keys = keyspace.shared.clone();
        keys.log_is_read.store(true, Ordering::Relaxed);
        let stats = Arc::new(ThreadStats::new(keys.table.len()));
        let shared = Shared::new(keys, Config::default(), 1, "0".repeat(40)).expect("a server");
        let client = ClientId {
            thread: 0,
            number: 1,
        };
        Self {
            keyspace,
            stats,
            refuses_writes: false,
            log: Vec::new(),
            host: ThreadHost::new(0, Arc::new(shared), 7),
            session: engine::session::Session::new(client, true),
            settings: Settings::default(),
        }
    }

    /// Runs a command: its reply.
    fn run(&mut self, words: &[&str]) -> String {
        let words = OwnedArgs::from_words(words.iter().map(|word| word.as_bytes()));
        // Lets go of all locks at its end.
        let mut executor = Executor::new(self.keyspace, self.stats.clone());
        executor.refuse_writes(self.refuses_writes);
        let request = executor.prepare(words.view());
        let mut out = Output::default();
        executor.execute(
            &mut self.session,
            &request,
            &self.settings,
            &mut self.host,
            NOW_MS,
            &mut out,
        );
        executor.end(&self.settings, &mut self.host, NOW_MS);
        let frames = executor.take_frames();
        self.log.extend(frames.iter().map(|(frame, bytes)| Logged {
            frame,
            bytes: bytes.to_vec(),
        }));
        String::from_utf8_lossy(out.since(0)).into_owned()
    }

    fn log(&mut self) -> Vec<Logged> {
        std::mem::take(&mut self.log)
    }
}

fn keyspace() -> Keyspace<NoLock> {
    Keyspace::new(table(), 16, Seed::new([1, 2]))
}

/// The words of a frame.
fn words(logged: &Logged) -> String {
    let text = String::from_utf8_lossy(&logged.bytes).into_owned();
    let words = text.split("\r\n").filter(|w| !w.starts_with(['*', '$']));
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

#[test]
fn what_a_script_did_is_one_frame_that_gives_the_same_again() {
    let keyspace = keyspace();
    let mut thread = Thread::new(&keyspace);
    let cases = [
        ("return redis.call('set', 'a', 1)", Some("set a 1")),
        ("return redis.call('get', 'a')", None),
        (
            "redis.call('rpush', 'l', 1, 2, 3) redis.call('incr', 'a') redis.call('del', 'none') \
             return redis.call('lpop', 'l')",
            Some("MULTI rpush l 1 2 3 incr a lpop l EXEC"),
        ),
        // What was done before an error stays done.
        (
            "redis.call('incr', 'a') redis.call('lpush', 'a', 1) redis.call('incr', 'a')",
            Some("incr a"),
        ),
        (
            "redis.call('select', 3) redis.call('set', 'b', 1) redis.call('select', 0) \
             redis.call('set', 'c', 1)",
            Some("MULTI set b 1 SELECT 0 set c 1 EXEC"),
        ),
        (
            "redis.call('sadd', 's', 'm') redis.call('pexpire', 's', 5) return \
             redis.call('spop', 's')",
            Some("MULTI sadd s m PEXPIREAT s 1785000000005 SREM s m EXEC"),
        ),
    ];
    let mut replay = Replay::default();
    for (script, expected) in cases {
        let reply = thread.run(&["EVAL", script, "0"]);
        let log = thread.log();
        let frames: Vec<_> = log.iter().map(words).collect();
        let expected: Vec<_> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(frames, expected, "{script}: {reply}");
        replay.play(&log, &thread.settings).expect("it is played");
        let difference = replay.differs(thread.keyspace, NOW_MS);
        assert_eq!(difference, None, "{script}");
    }
}

#[test]
fn scripts_within_a_transaction_are_in_its_frame() {
    let keyspace = keyspace();
    let mut thread = Thread::new(&keyspace);
    thread.run(&["MULTI"]);
    thread.run(&["SET", "a", "1"]);
    thread.run(&[
        "EVAL",
        "redis.call('incr', 'a') redis.call('incr', 'b')",
        "0",
    ]);
    thread.run(&["INCR", "c"]);
    thread.run(&["EXEC"]);
    let frames: Vec<_> = thread.log().iter().map(words).collect();
    assert_eq!(frames, ["MULTI SET a 1 incr a incr b INCR c EXEC"]);
}

#[test]
fn libraries_are_logged_and_no_log_ends_who_plays_it() {
    const LIBRARY: &str =
        "#!lua name=l\nredis.register_function('f', function() redis.call('incr', 'a') end)";
    let keyspace = keyspace();
    let mut thread = Thread::new(&keyspace);
    let load = ["FUNCTION", "LOAD", LIBRARY];
    assert_eq!(thread.run(&load), "$1\r\nl\r\n");
    thread.run(&["FCALL", "f", "0"]);
    thread.run(&["FUNCTION", "DELETE", "l"]);
    thread.run(&["FUNCTION", "FLUSH"]);
    let frames: Vec<_> = thread.log().iter().map(words).collect();
    let load_words = load.join(" ").replace("\r\n", " ");
    assert_eq!(
        frames,
        [&load_words, "incr a", "FUNCTION DELETE l", "FUNCTION FLUSH"]
    );

    let other = Keyspace::<NoLock>::new(table(), 16, Seed::new([3, 4]));
    let mut replayer = Replayer::new(&other, &Settings::default());
    let mut play = |words: &[&str]| {
        let words = OwnedArgs::from_words(words.iter().map(|word| word.as_bytes()));
        replayer.play(words.view(), NOW_MS)
    };
    let none = "ERR there is no place for libraries of functions here".to_owned();
    for words in [
        &load[..],
        &["FUNCTION", "DELETE", "l"],
        &["FUNCTION", "FLUSH"],
    ] {
        assert_eq!(play(words), Err(Refused::Failed(none.clone())), "{words:?}");
    }
    let payload = engine::dump::dump_libraries([LIBRARY.as_bytes()].into_iter());
    let restore = [&b"FUNCTION"[..], b"RESTORE", &payload];
    let restore = OwnedArgs::from_words(restore);
    assert_eq!(
        replayer.play(restore.view(), NOW_MS),
        Err(Refused::Failed(none))
    );
    for words in [
        &["EVAL", "return 1", "0"][..],
        &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
        &["SCRIPT", "LOAD", "return 1"],
        &["SCRIPT", "FLUSH"],
    ] {
        let words = OwnedArgs::from_words(words.iter().map(|word| word.as_bytes()));
        let refused = replayer.play(words.view(), NOW_MS);
        assert!(matches!(refused, Err(Refused::Failed(_))), "{refused:?}");
    }
    let words = OwnedArgs::from_words([&b"FCALL"[..], b"f", b"0"]);
    let refused = replayer.play(words.view(), NOW_MS);
    assert!(matches!(refused, Err(Refused::Unknown(_))), "{refused:?}");
}

#[test]
fn writes_in_scripts_are_refused_as_those_outside_are() {
    let keyspace = keyspace();
    let mut thread = Thread::new(&keyspace);
    let write = ["EVAL", "return redis.call('set', 'a', 1)", "0"];
    let read = ["EVAL", "return redis.call('exists', 'a')", "0"];
    let flagged = ["EVAL", "#!lua\nreturn 1", "0"];
    thread.refuses_writes = true;
    for script in [write, flagged] {
        let refused = thread.run(&script);
        assert!(refused.starts_with("-MISCONF "), "{refused}");
    }
    assert_eq!(thread.run(&read), ":0\r\n");
    thread.refuses_writes = false;
    assert_eq!(thread.run(&write), "+OK\r\n");
    keyspace.shared.set_phase(engine::keyspace::Phase::Stopping);
    let refused = thread.run(&write);
    assert!(
        refused.starts_with("-ERR The server is shutting down"),
        "{refused}"
    );
    assert_eq!(thread.run(&read), ":1\r\n");
}
