//! The log on a disk that fails, checked against what was promised.
//!
//! Each seed is a run of several lives: frames are written under one policy while calls fail, until
//! the power is lost or the process is killed; then the log is recovered and read. Every frame says
//! its number, so that what is there can be compared with what was written.
//!
//! # Invariants
//! - What is there is a prefix of what was written, without a gap and nothing twice.
//! - Frames of several commands are there whole or not at all.
//! - What was durable before the end is there after it.
//! - A flipped bit is found, or in bytes that mean nothing.

use super::tests::{layout, options, words};
use super::*;
use crate::aof::{self, Item, Reader};
use crate::recover::{self, RecoverError, recover};
use crate::storage::simulated::{Chance, Odds, Simulated};

const SEEDS: u64 = 4000;

const CAREFUL: recover::Options = recover::Options {
    truncated: true,
    corrupt_bytes_max: 0,
    read_only: false,
};

/// Frame `lsn`: a command alone, or a transaction of several.
fn push(frames: &mut Frames, lsn: u64) {
    let number = lsn.to_string();
    let db = u32::try_from(lsn / 7 % 3).unwrap();
    let value = "v".repeat(usize::try_from(lsn * 37 % 900).unwrap());
    frames.push(lsn, (db, db), lsn * 10, |out| match lsn % 4 {
        0 => {
            out.extend_from_slice(&words(&["MULTI"]));
            out.extend_from_slice(&words(&["A", &number, &value]));
            out.extend_from_slice(&words(&["B", &number]));
            out.extend_from_slice(&words(&["EXEC"]));
        }
        _ => out.extend_from_slice(&words(&["A", &number, &value])),
    });
}

/// The numbers of the frames that are there, in order; checks each frame.
fn frames_of(disk: &Simulated, recovered: &recover::Recovered) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut db = None;
    for part in &recovered.parts {
        let bytes = disk.bytes(&part.path).expect("it is there");
        let mut reader = Reader::new(&bytes[..], 0);
        if part.kind == Kind::Increment {
            db = None;
        }
        loop {
            let item = match reader.next_item() {
                Ok(None) => break,
                Ok(Some(item)) => item,
                Err(fault) => panic!("{} of {:?}: {fault:?}", part.name, recovered.parts),
            };
            let Item::Unit(unit) = item else { continue };
            let all: Vec<Vec<Vec<u8>>> = unit
                .commands()
                .map(|args| args.iter().map(<[u8]>::to_vec).collect())
                .collect();
            let number = |words: &[Vec<u8>]| -> u64 {
                String::from_utf8_lossy(&words[1])
                    .parse()
                    .expect("a number")
            };
            if all[0][0] == b"SELECT" {
                db = Some(number(&all[0]));
                continue;
            }
            let lsn = number(&all[0]);
            assert_eq!(db, Some(lsn / 7 % 3), "frame {lsn} is in another database");
            let want = 1 + usize::from(lsn % 4 == 0);
            assert_eq!(all.len(), want, "frame {lsn} is there in part");
            assert!(all.iter().all(|words| number(words) == lsn));
            let value = usize::try_from(lsn * 37 % 900).unwrap();
            assert_eq!(
                all[0][2],
                vec![b'v'; value],
                "frame {lsn} is not what it was"
            );
            numbers.push(lsn);
        }
    }
    numbers
}

/// A base of the frames up to `lsn`, written as a rewrite does.
fn write_base(disk: &Simulated, lsn: u64) -> io::Result<Base> {
    let path = "appendonlydir/temp-rewrite".to_owned();
    let mut frames = Frames::default();
    let (mut db, mut marked_s) = (None, 0);
    (1..=lsn).for_each(|lsn| push(&mut frames, lsn));
    let mut bytes = Vec::new();
    let mut merger = Merger::new(1);
    merger.add(frames);
    merger.take_into(
        &mut bytes,
        usize::MAX,
        None,
        &mut Stream {
            db: &mut db,
            marked_s: &mut marked_s,
            timestamps: false,
        },
    );
    let mut file = disk.create(&path)?;
    file.write_all(&bytes)?;
    file.sync()?;
    Ok(Base {
        path,
        is_snapshot: false,
        bytes: bytes.len() as u64,
    })
}

/// What a life leaves.
struct Left {
    /// The last frame made.
    made: u64,
    /// The last that is promised to be there whatever happens.
    promised: u64,
    /// The last that is promised where only the process ends.
    written: u64,
}

/// One life: writes until it ends.
fn live(disk: &Simulated, chance: &mut Chance, manifest: Manifest, mut lsn: u64) -> Left {
    let policy = [Policy::Always, Policy::EverySecond, Policy::Never]
        [usize::try_from(chance.below(3)).unwrap()];
    let mut now_ms = 1000;
    let open = match chance.hits(250) {
        true => Log::open_without_base,
        false => Log::open,
    };
    let opened = open(
        disk.clone(),
        layout(),
        manifest,
        options(policy),
        lsn,
        now_ms,
    );
    let Ok(mut log) = opened else {
        return Left {
            made: lsn,
            promised: lsn,
            written: lsn,
        };
    };
    let first = lsn;
    let bad = chance.below(4);
    disk.set_odds(Odds {
        short: 50 * bad,
        write: 10 * bad,
        sync: 30 * bad,
        other: 10 * bad,
    });
    let mut cut = None;
    for _ in 0..chance.below(60) {
        match chance.below(40) {
            0 => disk.set_full(true),
            1 => disk.set_full(false),
            2 => disk.set_read_only(true),
            3..5 => disk.set_read_only(false),
            5 if cut.is_none() => {
                cut = Some(lsn);
                log.turn_after(lsn);
            }
            6..10 if cut.is_some() && log.may_rebase() => {
                let lsn = cut.take().expect("just looked");
                match write_base(disk, lsn).and_then(|base| log.rebase(&base)) {
                    Ok(()) => {
                        let history = log.history();
                        history.iter().for_each(|path| drop(disk.remove(path)));
                        let _ = log.swept(&history);
                    }
                    Err(_) => log.abandon(),
                }
            }
            _ => {}
        }
        // Three threads take turns in chance order.
        let mut threads = [(); 3].map(|()| Frames::default());
        for _ in 0..chance.below(9) {
            lsn += 1;
            push(&mut threads[usize::try_from(chance.below(3)).unwrap()], lsn);
        }
        for frames in threads {
            log.add(frames);
        }
        now_ms += chance.below(400);
        log.turn(now_ms, chance.hits(50));
        assert!(log.durable_lsn() <= log.written_lsn() && log.written_lsn() <= lsn);
        log.take_events();
    }
    let (promised, written) = match log.has_base() {
        // Between a sync that failed and the file that makes up for it the disk alone counts.
        true if log.failure.as_ref().is_some_and(|last| last.is_unsure) => {
            (log.durable_lsn(), log.durable_lsn())
        }
        true => (log.durable_lsn(), log.written_lsn()),
        false => (first, first),
    };
    if chance.hits(100) {
        log.discard();
    }
    Left {
        made: lsn,
        promised,
        written,
    }
}

fn run(seed: u64) {
    let disk = Simulated::new(seed);
    let mut chance = Chance::new(seed ^ 0x5eed);
    let mut manifest = Manifest::default();
    let (mut lsn, mut durable) = (0, 0);
    for _ in 0..1 + chance.below(4) {
        let left = live(&disk, &mut chance, manifest, lsn);
        let made = left.made;
        durable = left.promised.max(durable);
        match chance.hits(700) {
            true => disk.lose_power(),
            false => {
                disk.kill();
                durable = left.written.max(durable);
            }
        }
        let recovered = match recover(&disk, &layout(), CAREFUL) {
            Ok(Some(recovered)) => recovered,
            Ok(None) => {
                assert_eq!(durable, 0);
                (lsn, manifest) = (0, Manifest::default());
                continue;
            }
            // Sectors that came to the disk in another order may leave what looks like damage;
            // nothing of it was promised, and the tool cuts it off.
            Err(RecoverError::Damaged(path, fault, _)) => {
                let mut file = disk.append(&path).expect("it is there");
                file.truncate(fault.valid).expect("it is cut");
                file.sync().expect("it is synced");
                recover(&disk, &layout(), CAREFUL)
                    .expect("it was repaired")
                    .expect("it is there")
            }
            Err(error) => panic!("seed {seed}: {error}"),
        };
        let numbers = frames_of(&disk, &recovered);
        let last = numbers.last().copied().unwrap_or(0);
        let files: Vec<_> = recovered
            .parts
            .iter()
            .map(|part| (&part.name, part.bytes))
            .collect();
        assert!(
            numbers.iter().copied().eq(1..=last),
            "seed {seed}: a gap in {numbers:?} of {made} made, {durable} durable, files {files:?}, \
             {:?}",
            recovered.notes
        );
        assert!(last <= made, "seed {seed}: more than was written");
        assert!(last >= durable, "seed {seed}: {last} of {durable} promised");
        (lsn, durable) = (last, last);
        manifest = recovered.manifest;
        if !manifest.is_empty() {
            manifest.sweep(&disk, &layout()).expect("it is swept");
        }
    }
    flip(&disk, &mut chance, &manifest, seed);
}

/// Flips a bit of a file that was written to its end.
fn flip(disk: &Simulated, chance: &mut Chance, manifest: &Manifest, seed: u64) {
    let Ok(Some(before)) = recover(disk, &layout(), CAREFUL) else {
        return;
    };
    let whole = frames_of(disk, &before);
    let Some(part) = before.parts.iter().find(|part| {
        // Bases are as the snapshot's writer makes them, and not this one's matter.
        part.kind == Kind::Increment && part.bytes > 0
    }) else {
        return;
    };
    assert!(manifest.files().any(|entry| entry.name == part.name));
    let bytes = disk.bytes(&part.path).expect("it is there");
    let mut reader = Reader::new(&bytes[..], 0);
    while reader.next_item().is_ok_and(|item| item.is_some()) {}
    // What follows the last checksum was never forced to the disk.
    let Some(summed) = reader.summed_to().filter(|end| *end > 0) else {
        return;
    };
    let at = usize::try_from(chance.below(summed)).unwrap();
    disk.flip(&part.path, at, u8::try_from(chance.below(8)).unwrap());
    let flipped = disk.bytes(&part.path).expect("it is there");
    let found = aof::scan(|| Ok(&flipped[..]), 0, flipped.len() as u64, None);
    let found = found.expect("memory does not fail");
    if found.fault.is_none() {
        let after = recover(disk, &layout(), CAREFUL).expect("it is whole");
        let after = frames_of(disk, &after.expect("it is there"));
        assert_eq!(after, whole, "seed {seed}: bit at {at} was not found");
    }
}

#[test]
fn nothing_promised_is_lost() {
    let runners = std::thread::available_parallelism().map_or(1, |count| count.get().min(4));
    std::thread::scope(|scope| {
        for first in 1..=runners {
            scope.spawn(move || (first as u64..=SEEDS).step_by(runners).for_each(run));
        }
    });
}
