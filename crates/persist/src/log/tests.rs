use super::*;
use crate::aof::{Item, Reader};
use crate::recover;
use crate::storage::simulated::{Odds, Simulated};

pub(super) fn layout() -> Layout {
    Layout {
        directory: "appendonlydir".to_owned(),
        file: "appendonly.aof".to_owned(),
    }
}

pub(super) fn options(policy: Policy) -> Options {
    Options {
        policy,
        timestamps: false,
    }
}

pub(super) fn open(disk: &Simulated, policy: Policy) -> Log<Simulated> {
    let manifest = Manifest::default();
    Log::open(disk.clone(), layout(), manifest, options(policy), 0, 0).expect("it opens")
}

pub(super) fn words(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}

pub(super) fn frame(lsn: u64, db: u32) -> Frames {
    let mut frames = Frames::default();
    frames.push(lsn, (db, db), lsn * 1000, |out| {
        out.extend_from_slice(&words(&["SET", "k", &lsn.to_string()]));
    });
    frames
}

/// The commands of all files, the SELECTs too.
pub(super) fn played(disk: &Simulated, manifest: &Manifest) -> Vec<String> {
    let mut all = Vec::new();
    for entry in manifest.files() {
        let bytes = disk
            .bytes(&layout().path(&entry.name))
            .expect("it is there");
        let mut reader = Reader::new(&bytes[..], 0);
        while let Some(item) = reader.next_item().expect("it is whole") {
            match item {
                Item::Timestamp(at) => all.push(format!("@{at}")),
                Item::Unit(unit) => all.extend(unit.commands().map(|args| {
                    let words = args.iter().map(String::from_utf8_lossy);
                    words.collect::<Vec<_>>().join(" ")
                })),
            }
        }
    }
    all
}

#[test]
fn frames_of_threads_come_in_the_order_of_their_numbers() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    for lsn in [3, 1, 5, 2] {
        log.add(frame(lsn, u32::from(lsn == 2)));
    }
    log.turn(0, false);
    assert_eq!(log.durable_lsn(), 3);
    log.add(frame(4, 0));
    log.turn(0, false);
    assert_eq!(log.durable_lsn(), 5);
    assert_eq!(log.pending_bytes(), 0);
    let want = [
        "SELECT 0", "SET k 1", "SELECT 1", "SET k 2", "SELECT 0", "SET k 3", "SET k 4", "SET k 5",
    ];
    assert_eq!(played(&disk, log.manifest()), want);
}

#[test]
fn each_policy_syncs_when_it_should() {
    for (policy, early, late) in [
        (Policy::Always, 1, 1),
        (Policy::EverySecond, 0, 1),
        (Policy::Never, 0, 0),
    ] {
        let mut log = open(&Simulated::new(1), policy);
        log.add(frame(1, 0));
        log.turn(10, false);
        assert_eq!(
            (log.written_lsn(), log.durable_lsn()),
            (1, early),
            "{policy:?}"
        );
        log.turn(1010, false);
        assert_eq!(log.durable_lsn(), late, "{policy:?}");
        log.turn(1010, true);
        assert_eq!(log.durable_lsn(), 1, "{policy:?}");
    }
}

#[test]
fn times_are_marked_once_a_second() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    log.set_options(Options {
        policy: Policy::Always,
        timestamps: true,
    });
    log.add(frame(1, 0));
    log.turn(0, false);
    log.add(frame(2, 0));
    log.turn(0, false);
    let want = ["@1", "SELECT 0", "SET k 1", "@2", "SET k 2"];
    assert_eq!(played(&disk, log.manifest()), want);
}

#[test]
fn a_failed_sync_is_not_believed_later() {
    let disk = Simulated::new(7);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 3));
    log.turn(0, false);
    disk.set_odds(Odds {
        sync: 1000,
        ..Odds::default()
    });
    log.add(frame(2, 3));
    log.turn(1, false);
    assert_eq!(log.durable_lsn(), 1);
    assert!(log.failure().is_some());
    // Not yet: and what comes meanwhile waits.
    disk.set_odds(Odds::default());
    log.add(frame(3, 3));
    log.turn(2, false);
    assert_eq!(log.durable_lsn(), 1);
    log.turn(2 + RETRY_MS, false);
    assert_eq!(log.failure(), None);
    assert_eq!(log.durable_lsn(), 3);
    assert_eq!(log.manifest().increments.len(), 2);
    disk.lose_power();
    let want = ["SELECT 3", "SET k 1", "SELECT 3", "SET k 2", "SET k 3"];
    assert_eq!(played(&disk, log.manifest()), want);
}

#[test]
fn a_full_disk_is_waited_for() {
    let disk = Simulated::new(7);
    let mut log = open(&disk, Policy::EverySecond);
    log.add(frame(1, 0));
    log.turn(0, true);
    disk.set_full(true);
    let mut now_ms = 0;
    for lsn in 2..200 {
        log.add(frame(lsn, 0));
        now_ms += 10;
        log.turn(now_ms, false);
    }
    assert!(log.is_full());
    assert!(log.failure().is_some());
    disk.set_full(false);
    log.turn(now_ms + RETRY_MS, false);
    log.turn(now_ms + RETRY_MS, true);
    assert_eq!(log.durable_lsn(), 199);
    let want = (1..200).map(|lsn| format!("SET k {lsn}"));
    let all = played(&disk, log.manifest());
    let sets = all.into_iter().filter(|line| !line.starts_with("SELECT"));
    assert!(sets.eq(want));
}

#[test]
fn a_base_takes_the_place_of_what_was_before() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 0));
    log.add(frame(3, 0));
    log.turn_after(2);
    log.turn(0, false);
    assert!(log.is_turning());
    log.add(frame(2, 0));
    log.turn(0, false);
    assert!(!log.is_turning());
    assert_eq!(log.durable_lsn(), 3);
    let want = ["SELECT 0", "SET k 1", "SET k 2", "SELECT 0", "SET k 3"];
    assert_eq!(played(&disk, log.manifest()), want);
    let mut file = disk.create("appendonlydir/temp-base").expect("it is made");
    file.write_all(&words(&["SET", "k", "base"]))
        .expect("written");
    let base = Base {
        path: "appendonlydir/temp-base".to_owned(),
        is_snapshot: false,
        bytes: 30,
    };
    log.rebase(&base).expect("it is replaced");
    let want = ["SET k base", "SELECT 0", "SET k 3"];
    assert_eq!(played(&disk, log.manifest()), want);
    let history = log.history();
    assert_eq!(history, ["appendonlydir/appendonly.aof.1.incr.aof"]);
    log.swept(&history).expect("it is forgotten");
    assert!(log.history().is_empty());
    assert!(log.rebase(&base).is_err());
}

fn temporary_base(disk: &Simulated) -> Base {
    let path = "appendonlydir/temp-base".to_owned();
    let mut file = disk.create(&path).expect("it is made");
    file.write_all(&words(&["SET", "k", "base"]))
        .and_then(|()| file.sync())
        .expect("written");
    Base {
        path,
        is_snapshot: false,
        bytes: 30,
    }
}

#[test]
fn a_base_that_failed_does_not_share_its_name() {
    let mut failed = 0;
    for seed in 1..60 {
        let disk = Simulated::new(seed);
        let mut log = open(&disk, Policy::Always);
        log.add(frame(1, 0));
        log.turn_after(1);
        log.turn(0, false);
        let base = temporary_base(&disk);
        let odds = Odds {
            other: 200,
            ..Odds::default()
        };
        disk.set_odds(odds);
        let tried = log.rebase(&base);
        disk.set_odds(Odds::default());
        if tried.is_ok() || disk.bytes(&base.path).is_some() {
            continue;
        }
        failed += 1;
        log.abandon();
        log.add(frame(2, 0));
        log.turn_after(2);
        log.turn(0, false);
        log.rebase(&temporary_base(&disk)).expect("it is replaced");
        let name = |seq| format!("appendonlydir/appendonly.aof.{seq}.base.aof");
        let base = log.manifest().base.as_ref().expect("it is there");
        assert_eq!(log.layout.path(&base.name), name(2));
        assert!(log.history().contains(&name(1)));
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn a_turn_that_was_given_up_is_not_the_next_one() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 0));
    log.turn_after(2);
    log.turn(0, false);
    log.abandon();
    log.add(frame(2, 0));
    log.add(frame(3, 0));
    log.turn_after(3);
    log.turn(0, false);
    log.add(frame(4, 0));
    log.turn(0, false);
    log.rebase(&temporary_base(&disk)).expect("it is replaced");
    let want = ["SET k base", "SELECT 0", "SET k 4"];
    assert_eq!(played(&disk, log.manifest()), want);
}

#[test]
fn what_a_failed_sync_left_is_on_the_disk_before_it_is_played() {
    for seed in 1..60 {
        let disk = Simulated::new(seed);
        let mut log = open(&disk, Policy::Always);
        disk.set_odds(Odds {
            sync: 1000,
            ..Odds::default()
        });
        (1..100).for_each(|lsn| log.add(frame(lsn, 0)));
        log.turn(0, false);
        assert_eq!(log.durable_lsn(), 0);
        // The process ends here, before it cuts back what failed.
        disk.kill();
        let careful = recover::Options {
            truncated: true,
            corrupt_bytes_max: 0,
            read_only: false,
        };
        let look = || recover::recover(&disk, &layout(), careful);
        let first = look().expect("it is whole").expect("it is there");
        let want = played(&disk, &first.manifest);
        assert!(!want.is_empty());
        disk.lose_power();
        let then = look().expect("it is whole").expect("it is there");
        assert_eq!(played(&disk, &then.manifest), want, "seed {seed}");
    }
}

#[test]
fn until_there_is_a_base_the_log_before_stands() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 0));
    log.turn(0, false);
    let old = log.manifest().clone();
    drop(log);
    let on_disk = || Manifest::load(&disk, &layout()).expect("it is read");
    let begin = || {
        let always = options(Policy::Always);
        let began = Log::open_without_base(disk.clone(), layout(), old.clone(), always, 1, 0);
        let mut log = began.expect("it begins");
        log.add(frame(2, 0));
        log.turn_after(2);
        log.turn(0, false);
        log.add(frame(3, 0));
        log.turn(0, false);
        assert!(!log.has_base());
        assert_eq!(on_disk(), Some(old.clone()));
        log
    };
    begin().discard();
    let files = disk.list("appendonlydir").expect("it is listed");
    assert_eq!(files.len(), 2, "{files:?}");
    let mut log = begin();
    log.rebase(&temporary_base(&disk)).expect("it gets a base");
    assert!(log.has_base());
    let now = on_disk().expect("it is there");
    assert_eq!(played(&disk, &now), ["SET k base", "SELECT 0", "SET k 3"]);
    assert_eq!(log.history().len(), 2);
    log.discard();
    assert_eq!(played(&disk, &now).len(), 3);
}

#[test]
fn an_increment_without_anything_in_it_needs_no_turn() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    log.turn_after(0);
    log.turn(0, false);
    log.rebase(&temporary_base(&disk)).expect("it gets a base");
    assert_eq!(log.manifest().last_seq(), 1);
    log.add(frame(1, 0));
    log.turn(0, false);
    let want = ["SET k base", "SELECT 0", "SET k 1"];
    assert_eq!(played(&disk, log.manifest()), want);
}

#[test]
fn a_backup_stays_as_it_is() {
    let disk = Simulated::new(1);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 0));
    log.turn_after(1);
    log.turn(0, false);
    log.rebase(&temporary_base(&disk)).expect("it gets a base");
    log.pin_base("backup").expect("it is pinned");
    assert!(log.seal("backup").is_err());
    log.add(frame(2, 0));
    log.end_after(2);
    log.turn(0, false);
    let names = log.seal("backup").expect("it is sealed");
    assert_eq!(
        names.last().map(String::as_str),
        Some("appendonly.aof.manifest")
    );
    log.add(frame(3, 0));
    log.turn_after(3);
    log.turn(0, false);
    log.rebase(&temporary_base(&disk))
        .expect("it gets another base");
    let history = log.history();
    history
        .iter()
        .for_each(|path| disk.remove(path).expect("it is removed"));
    log.remove().expect("it is removed");
    assert!(disk.list("appendonlydir").expect("it is listed").is_empty());
    disk.lose_power();
    let layout = Layout {
        directory: "backup".to_owned(),
        ..layout()
    };
    let manifest = Manifest::load(&disk, &layout).expect("it is read");
    let manifest = manifest.expect("it is there");
    for entry in manifest.files() {
        let path = format!("appendonlydir/{}", entry.name);
        // The directory that they were removed from may not have come to the disk.
        let _ = disk.link(&layout.path(&entry.name), &path);
    }
    assert_eq!(
        played(&disk, &manifest),
        ["SET k base", "SELECT 0", "SET k 2"]
    );
}

#[test]
fn a_full_disk_keeps_what_it_has() {
    let disk = Simulated::new(3);
    let mut log = open(&disk, Policy::EverySecond);
    for lsn in 1..100 {
        log.add(frame(lsn, 0));
        log.turn(lsn, false);
    }
    assert_eq!((log.written_lsn(), log.durable_lsn()), (99, 0));
    disk.set_full(true);
    for lsn in 100..300 {
        log.add(frame(lsn, 0));
        log.turn(lsn, false);
    }
    assert!(log.is_full());
    // Attempts in vain change nothing, and the process may end at any time.
    (1..9).for_each(|n| log.turn(1000 + n * RETRY_MS, false));
    let manifest = log.manifest().clone();
    assert_eq!(manifest.increments.len(), 1);
    drop(log);
    disk.kill();
    let all = played_until_torn(&disk, &manifest);
    assert!(all >= 99, "{all} of 99 that were written");
}

/// How many SETs stand before the end, or before what is torn.
fn played_until_torn(disk: &Simulated, manifest: &Manifest) -> usize {
    let mut sets = 0;
    for entry in manifest.files() {
        let bytes = disk
            .bytes(&layout().path(&entry.name))
            .expect("it is there");
        let mut reader = Reader::new(&bytes[..], 0);
        while let Ok(Some(item)) = reader.next_item() {
            if let Item::Unit(unit) = item {
                sets += unit.commands().filter(|args| args.is(0, "SET")).count();
            }
        }
    }
    sets
}

#[test]
fn a_base_makes_up_for_what_could_not_be_written() {
    let disk = Simulated::new(4);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 0));
    log.turn(0, false);
    disk.set_full(true);
    for lsn in 2..99 {
        log.add(frame(lsn, 0));
    }
    log.turn(1, false);
    assert!(log.is_full() && log.durable_lsn() == 1);
    log.turn_after(98);
    log.turn(2, false);
    assert!(log.is_turning() && log.may_rebase());
    // The base takes less room than what it replaces.
    disk.set_full(false);
    let base = temporary_base(&disk);
    log.rebase(&base).expect("it is adopted");
    assert!(log.failure().is_none() && !log.is_turning());
    assert_eq!((log.durable_lsn(), log.pending_bytes()), (98, 0));
    log.add(frame(99, 2));
    log.turn(3, false);
    assert_eq!(log.durable_lsn(), 99);
    disk.lose_power();
    let all = played(&disk, log.manifest());
    assert_eq!(all.last().map(String::as_str), Some("SET k 99"));
    assert!(
        !all.contains(&"SET k 98".to_owned()),
        "the base has it: {all:?}"
    );
}

#[test]
fn a_rewrite_that_cannot_begin_leaves_the_log_as_it_is() {
    let disk = Simulated::new(5);
    let mut log = open(&disk, Policy::Always);
    log.add(frame(1, 0));
    log.turn(0, false);
    log.turn_after(1);
    disk.set_read_only(true);
    log.turn(1, false);
    disk.set_read_only(false);
    assert!(log.failure().is_none() && !log.is_turning());
    let events = log.take_events();
    assert!(
        events
            .iter()
            .any(|event| matches!(event, Event::NotTurned(..)))
    );
    let base = temporary_base(&disk);
    log.rebase(&base)
        .expect_err("no increment was begun for it");
    log.add(frame(2, 0));
    log.turn(2, false);
    assert_eq!(log.durable_lsn(), 2);
    assert_eq!(
        played(&disk, log.manifest()),
        ["SELECT 0", "SET k 1", "SET k 2"]
    );
}
