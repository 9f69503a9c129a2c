//! What is particular about replaying; that it gives the same keyspace, the behaviour scripts show
//! (`testkit/tests/replay.rs`), and the simulation.

use structure::hash::Seed;
use structure::stripes::{NoLock, StripeSet};

use super::*;
use crate::Table;

const NOW_MS: u64 = 1_785_000_000_000;

fn keyspace() -> Keyspace<NoLock> {
    let table = Table::new(crate::commands::FAMILIES);
    Keyspace::new(table, 64, Seed::new([1, 2]))
}

fn play(replayer: &mut Replayer<'_, NoLock>, line: &str) -> Result<(), Refused> {
    let words = OwnedArgs::from_words(line.split(' ').map(str::as_bytes));
    replayer.play(words.view(), NOW_MS)
}

/// The keys of a database with their deadlines, whether these have passed or not.
fn keys(keyspace: &Keyspace<NoLock>, db: u32) -> Vec<(String, Option<u64>)> {
    let mut keys = Vec::new();
    for index in 0..keyspace.stripes.count() {
        let mut guard = keyspace.stripes.acquire(StripeSet::one(index));
        let held = guard.held();
        for record in held.get(index).db(db).iter().flat_map(|db| db.table.iter()) {
            let key = String::from_utf8_lossy(record.key()).into_owned();
            keys.push((key, record.deadline()));
        }
    }
    keys.sort();
    keys
}

#[test]
fn a_deadline_in_the_past_stands_until_its_del_comes() {
    let keyspace = keyspace();
    let mut replayer = Replayer::new(&keyspace, &Settings::default());
    for line in [
        "SET a 1 PXAT 5000",
        "APPEND a 2",
        "SET b 1",
        "PEXPIREAT b 5000",
        "HSET h f 1 g 2",
        "HPEXPIREAT h 5000 FIELDS 1 f",
        "HINCRBY h f 1",
    ] {
        assert_eq!(play(&mut replayer, line), Ok(()), "{line}");
    }
    replayer.rest();
    let (a, b) = (("a".into(), Some(5000)), ("b".into(), Some(5000)));
    let h = ("h".into(), None);
    assert_eq!(keys(&keyspace, 0), [a, b, h.clone()]);
    for line in ["DEL a", "DEL b", "HDEL h g"] {
        assert_eq!(play(&mut replayer, line), Ok(()), "{line}");
    }
    replayer.rest();
    assert_eq!(keys(&keyspace, 0), [h]);
    assert_eq!(play(&mut replayer, "HDEL h f"), Ok(()));
    replayer.rest();
    assert_eq!(keys(&keyspace, 0), []);
}

#[test]
fn a_transaction_has_its_effect_with_exec() {
    let keyspace = keyspace();
    let mut replayer = Replayer::new(&keyspace, &Settings::default());
    for line in ["SELECT 3", "MULTI", "SET a 1", "SELECT 5", "SET b 1"] {
        assert_eq!(play(&mut replayer, line), Ok(()), "{line}");
    }
    assert!(replayer.is_in_transaction());
    assert!(keys(&keyspace, 3).is_empty());
    assert_eq!(play(&mut replayer, "EXEC"), Ok(()));
    assert_eq!((replayer.is_in_transaction(), replayer.db()), (false, 5));
    replayer.rest();
    assert_eq!(keys(&keyspace, 3), [("a".into(), None)]);
    assert_eq!(keys(&keyspace, 5), [("b".into(), None)]);
}

#[test]
fn what_has_no_place_in_a_log_is_refused_and_the_next_is_played() {
    let keyspace = keyspace();
    let mut replayer = Replayer::new(&keyspace, &Settings::default());
    let unknown = |name: &str| Err(Refused::Unknown(name.into()));
    let failed = |error: &str| Err(Refused::Failed(error.into()));
    assert_eq!(play(&mut replayer, "NOSUCH 1"), unknown("NOSUCH"));
    assert_eq!(play(&mut replayer, "GET a"), unknown("GET"));
    let out_of_range = failed("ERR DB index is out of range");
    assert_eq!(play(&mut replayer, "SELECT 16"), out_of_range);
    assert_eq!(
        play(&mut replayer, "EXEC"),
        failed("ERR EXEC without MULTI")
    );
    assert_eq!(play(&mut replayer, "SET a v"), Ok(()));
    let wrong = failed("ERR value is not an integer or out of range");
    assert_eq!(play(&mut replayer, "INCR a"), wrong);
    let arity = failed("ERR wrong number of arguments for 'incr' command");
    assert_eq!(play(&mut replayer, "INCR"), arity);
    replayer.rest();
    assert_eq!(keys(&keyspace, 0), [("a".into(), None)]);
}

#[test]
fn a_window_is_played_in_order_up_to_what_is_refused() {
    let keyspace = keyspace();
    let mut replayer = Replayer::new(&keyspace, &Settings::default());
    let lines = [
        "SET a 1", "SELECT 2", "SET b x", "DEL b", "SET c 1", "MULTI", "SET d 1", "EXEC", "INCR d",
        "GET d", "SET e 1",
    ];
    let words = lines.map(|line| OwnedArgs::from_words(line.split(' ').map(str::as_bytes)));
    let commands = words.iter().map(|words| {
        let args = words.view();
        (args, Prepared::new(&keyspace.shared, args))
    });
    let refused = (9, Refused::Unknown("GET".into()));
    assert_eq!(replayer.play_window(commands, NOW_MS), Err(refused));
    replayer.rest();
    assert_eq!(keys(&keyspace, 0), [("a".into(), None)]);
    let there = [("c".into(), None), ("d".into(), None)];
    assert_eq!(keys(&keyspace, 2), there);
}

/// Runs lines as one client with the log read, and hands back the frames: database and words.
fn logged(keyspace: &Keyspace<NoLock>, lines: &[&str]) -> Vec<(u64, u32, String)> {
    let shared = &keyspace.shared;
    shared
        .log_is_read
        .store(true, std::sync::atomic::Ordering::Relaxed);
    let stats = Arc::new(ThreadStats::new(shared.table.len()));
    let (mut executor, settings) = (Executor::new(keyspace, stats), Settings::default());
    let client = ClientId {
        thread: 0,
        number: 1,
    };
    let mut session = Session::new(client, true);
    let (mut host, mut out) = (Alone::new(1), Output::default());
    for (line, now_ms) in lines.iter().zip(NOW_MS..) {
        if let Some(db) = line.strip_prefix("SELECT ") {
            session.db = db.parse().expect("a number");
            continue;
        }
        let words = OwnedArgs::from_words(line.split(' ').map(str::as_bytes));
        let request = executor.prepare(words.view());
        executor.execute(
            &mut session,
            &request,
            &settings,
            &mut host,
            now_ms,
            &mut out,
        );
    }
    executor.end(&settings, &mut host, NOW_MS);
    let frames = executor.take_frames();
    let words = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let words = text.split("\r\n").filter(|w| !w.starts_with(['*', '$']));
        words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
    };
    let shown = |(frame, bytes): (crate::log::Frame, &[u8])| (frame.lsn, frame.db, words(bytes));
    frames.iter().map(shown).collect()
}

#[test]
fn a_command_or_a_transaction_is_one_frame() {
    let lines = [
        "SET a 1",
        "GET a",
        "DEL none",
        "INCR list x",
        "SELECT 2",
        "SET b 1 PX 3",
        "MULTI",
        "GET b",
        "INCR b",
        "SPOP none",
        "EXEC",
        "SET c 1 PX 1",
        "GET c",
        "SET c 1 PX 1",
        "APPEND c 2",
        "COPY c d DB 1",
    ];
    let until = |ms: u64| NOW_MS + ms;
    let expected = [
        (1, 0, "SET a 1".to_owned()),
        (2, 2, format!("SET b 1 PXAT {}", until(8))),
        (3, 2, "MULTI DEL b INCR b EXEC".to_owned()),
        (4, 2, format!("SET c 1 PXAT {}", until(12))),
        (5, 2, "DEL c".to_owned()),
        (6, 2, format!("SET c 1 PXAT {}", until(14))),
        (7, 2, "MULTI DEL c APPEND c 2 EXEC".to_owned()),
        (8, 2, "COPY c d DB 1".to_owned()),
    ];
    assert_eq!(logged(&keyspace(), &lines), expected);
}
