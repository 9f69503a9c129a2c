//! What a snapshot holds against a copy made at the cut, while commands of every kind run.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use resp::{Output, OwnedArgs};
use structure::hash::Seed;
use structure::listpack::Entry;
use structure::record::ValueRef;
use structure::stripes::NoLock;

use super::*;
use crate::dump::{self, Build, Cursor, Dialect, Format, Forms};
use crate::host::{Alone, ClientId, Host};
use crate::keyspace::Keyspace;
use crate::object::transfer;
use crate::session::Session;
use crate::settings::Settings;
use crate::stats::ThreadStats;

/// What stands before a type.
const DEADLINE: u8 = 0xfc;

/// Writes entries that are simple, but say all.
struct Plain(Forms);

impl EntryWriter for Plain {
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        _: u32,
        record: RecordRef<'_, Object>,
    ) -> Result<(), Unwritable> {
        write_deadline(out, record.deadline());
        dump::write_value(out, &mut self.0, Some(record.key()), record.value())
    }
}

fn write_deadline(out: &mut Vec<u8>, deadline: Option<u64>) {
    if let Some(at) = deadline {
        out.push(DEADLINE);
        out.extend(at.to_le_bytes());
    }
}

/// Elements of a big hash, set or sorted set, which come in any order.
fn write_elements(out: &mut Vec<u8>, deadline: Option<u64>, mut elements: Vec<Element>) {
    write_deadline(out, deadline);
    elements.sort();
    for element in elements {
        out.extend(format!("{element:?}").bytes());
    }
}

/// A key or a member, its value or score, and its deadline.
type Element = (Vec<u8>, Vec<u8>, Option<u64>);

/// The elements of an object that is frozen element by element.
fn elements_of(object: &Object) -> Option<Vec<Element>> {
    let mut elements = Vec::new();
    match object {
        _ if object.len() <= 512 => return None,
        Object::Hash(hash) => transfer::each_field(hash, |field, value, deadline| {
            elements.push((field.to_vec(), value.to_vec(), deadline));
        }),
        // Integers in order are quickly written down.
        Object::Set(set) if set.iter().all(|member| matches!(member, Entry::Int(_))) => {
            return None;
        }
        Object::Set(set) => transfer::each_member(set, |member| {
            elements.push((member.to_vec(), Vec::new(), None));
        }),
        Object::SortedSet(sorted) => transfer::each_scored(sorted, |member, score| {
            elements.push((member.to_vec(), score.to_le_bytes().to_vec(), None));
        }),
        _ => return None,
    }
    Some(elements)
}

fn writer() -> Box<dyn EntryWriter> {
    Box::new(Plain(Forms::new(Format::Redis8_10, false)))
}

/// Entries by database and key.
type Entries = BTreeMap<(u32, Vec<u8>), Vec<u8>>;

/// Commands as they are played: `K` is a key, `N` a small number, `E` an element, `W` a time.
const COMMANDS: &[&str] = &[
    "SET K E",
    "SET K N",
    "SET K E PX W",
    "APPEND K E",
    "SETRANGE K 600 E",
    "SETBIT K N 1",
    "INCRBY K N",
    "GETEX K PX W",
    "DEL K",
    "UNLINK K K",
    "RENAME K K",
    "COPY K K REPLACE",
    "COPY K K DB 1 REPLACE",
    "MOVE K 1",
    "PEXPIRE K W",
    "PERSIST K",
    "GET K",
    "TOUCH K",
    "LPUSH K E E E",
    "RPUSH K E N",
    "LPOP K N",
    "LSET K 0 E",
    "LINSERT K BEFORE E E",
    "LMOVE K K LEFT RIGHT",
    "LTRIM K N -1",
    "SADD K E E",
    "SADD K N N",
    "SREM K E",
    "SPOP K",
    "SMOVE K K E",
    "SUNIONSTORE K K K",
    "HSET K E E E N",
    "HDEL K E",
    "HINCRBY K E N",
    "HPEXPIRE K W FIELDS 1 E",
    "HSETEX K PX W FIELDS 1 E N",
    "ZADD K N E N E",
    "ZINCRBY K N E",
    "ZREM K E",
    "ZPOPMIN K N",
    "ZREMRANGEBYRANK K 0 N",
    "ZRANGESTORE K K 0 -1",
    "XADD K * E N",
    "XTRIM K MAXLEN N",
    "XGROUP CREATE K g 0 MKSTREAM",
    "XREADGROUP GROUP g c COUNT N STREAMS K >",
    "XAUTOCLAIM K g d 0 0",
    "XSETID K 99999999999999-N",
    "PFADD K E E",
    "ARSET K N E",
    "ARDEL K N",
    "SORT K ALPHA STORE K",
    "SELECT 0",
    "SELECT 1",
    "SWAPDB 0 1",
    "FLUSHDB",
    "FLUSHALL",
];

struct Bench {
    keyspace: Keyspace<NoLock>,
    settings: Settings,
    session: Session,
    host: Alone,
    now_ms: u64,
    /// What the last cut must give.
    at_cut: Option<Entries>,
    progress: Arc<Progress>,
    pieces: Vec<Piece>,
    stripe: usize,
    done: usize,
}

impl Bench {
    fn new(seed: u64) -> Self {
        let id = ClientId {
            thread: 0,
            number: 1,
        };
        let table = crate::Table::new(crate::commands::FAMILIES);
        Self {
            keyspace: Keyspace::new(table, 4, Seed::new([seed, 2])),
            settings: Settings {
                hash_listpack_entries: 8,
                set_listpack_entries: 8,
                set_intset_entries: 8,
                zset_listpack_entries: 8,
                ..Settings::default()
            },
            session: Session::new(id, true),
            host: Alone::new(seed),
            now_ms: 1_000_000,
            at_cut: None,
            progress: Arc::default(),
            pieces: Vec::new(),
            stripe: 0,
            done: 0,
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.host.random() % limit
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Executor<'_, NoLock>, &mut Run<'_>) -> R) -> R {
        let stats = Arc::new(ThreadStats::new(self.keyspace.shared.table.len()));
        let mut executor = Executor::new(&self.keyspace, stats);
        let mut run = Run {
            session: &mut self.session,
            settings: &self.settings,
            host: &mut self.host,
            now_ms: self.now_ms,
        };
        let result = act(&mut executor, &mut run);
        executor.end(&self.settings, &mut self.host, self.now_ms);
        while !executor.graveyard().free_some(1000) {}
        result
    }

    fn command(&mut self, line: &str) {
        let words = OwnedArgs::from_words(line.split(' ').map(str::as_bytes));
        self.with(|executor, run| {
            let request = executor.prepare(words.view());
            let mut out = Output::default();
            executor.execute(
                run.session,
                &request,
                run.settings,
                run.host,
                run.now_ms,
                &mut out,
            );
        });
    }

    /// A command with words of its own in the places of its letters.
    fn random_command(&mut self) -> String {
        let which = self.below(COMMANDS.len() as u64 - 1) as usize;
        // What empties everything comes seldom.
        let which = if self.below(40) == 0 {
            COMMANDS.len() - 1
        } else {
            which
        };
        let words = COMMANDS[which].split(' ').map(|word| match word {
            "K" => format!("key:{}", self.below(24)),
            "N" => self.below(40).to_string(),
            "E" => format!("element:{}", self.below(60)),
            "W" => (1 + self.below(3000)).to_string(),
            other => other.to_owned(),
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Collections past 512 elements, one of each type.
    fn fill_big(&mut self) {
        for n in 0..700 {
            for line in [
                format!("HSET big:hash f{n} {n} g{n} value"),
                format!("SADD big:set m{n}"),
                format!("SADD big:ints {n}"),
                format!("ZADD big:zset {n} m{n}"),
                format!("RPUSH big:list element-{n}"),
                format!("XADD big:stream {}-1 f {n}", n + 1),
                format!("ARSET big:array {} x{n}", n * 3),
                format!("SET key:{} v", n % 24),
            ] {
                self.command(&line);
            }
        }
    }

    fn entries_now(&mut self) -> Entries {
        let mut entries = Entries::new();
        let mut guard = self.keyspace.stripes.acquire(self.keyspace.stripes.all());
        let held = guard.held();
        for index in 0..held.count() {
            let stripe = held.get(index);
            for number in 0..stripe.db_count() {
                let table = &stripe.db(number).unwrap().table;
                for record in table.iter() {
                    let mut out = Vec::new();
                    let elements = match record.value() {
                        ValueRef::Object(object) => elements_of(object),
                        _ => None,
                    };
                    match elements {
                        Some(elements) => write_elements(&mut out, record.deadline(), elements),
                        None => writer().write(&mut out, number, record).unwrap(),
                    }
                    entries.insert((number, record.key().to_vec()), out);
                }
            }
        }
        entries
    }

    fn cut(&mut self) {
        let entries = self.entries_now();
        self.progress = Arc::default();
        let progress = self.progress.clone();
        let cut = self.with(|executor, _| {
            let shared = &executor.keyspace().shared;
            executor.with_all(|held| cut(held, shared, &progress, &writer))
        });
        assert_eq!(cut.keys, entries.len() as u64);
        (self.stripe, self.done) = (0, 0);
        self.at_cut = Some(entries);
    }

    /// One slice; compares where it was the last.
    fn slice(&mut self, budget: usize) {
        if self.at_cut.is_none() {
            return;
        }
        let (index, mut pieces) = (self.stripe, std::mem::take(&mut self.pieces));
        let is_done = self.with(|executor, _| executor.save_some(index, budget, &mut pieces));
        self.pieces = pieces;
        self.stripe = (self.stripe + 1) % self.keyspace.stripes.count();
        self.done = if is_done { self.done + 1 } else { 0 };
        if self.done < self.keyspace.stripes.count() {
            return;
        }
        let wanted = self.at_cut.take().unwrap();
        let pieces = std::mem::take(&mut self.pieces);
        let held = self.progress.held_bytes.load(Ordering::Relaxed);
        let keys = self.progress.keys.load(Ordering::Relaxed);
        assert_eq!((held, keys), (0, wanted.len() as u64));
        if self.progress.cancelled.load(Ordering::Relaxed) {
            return;
        }
        let mut found = Entries::new();
        for piece in pieces {
            self.parse(piece, &mut found);
        }
        assert_eq!(found.len(), wanted.len());
        assert_eq!(found, wanted);
    }

    /// Takes a piece apart.
    fn parse(&self, piece: Piece, found: &mut Entries) {
        let build = Build {
            settings: &self.settings,
            seed: &self.keyspace.shared.seed,
            dialect: Dialect::Redis,
        };
        for big in piece.big {
            let (mut out, mut elements) = (Vec::new(), Vec::new());
            match big.value {
                Frozen::Object(object) => {
                    object.check_invariants();
                    let value = ValueRef::Object(&object);
                    let mut forms = Forms::new(Format::Redis8_10, false);
                    write_deadline(&mut out, big.deadline);
                    dump::write_value(&mut out, &mut forms, Some(&big.key), value).unwrap();
                }
                Frozen::Fields(past) | Frozen::Set(past) => past.each(|element| {
                    let (key, value) = (element.key.to_vec(), element.value.to_vec());
                    elements.push((key, value, element.deadline));
                }),
                Frozen::Members(members) => members.each(|member, score| {
                    elements.push((member.to_vec(), score.to_le_bytes().to_vec(), None));
                }),
            }
            if !elements.is_empty() {
                write_elements(&mut out, big.deadline, elements);
            }
            let double = found.insert((piece.db, big.key.to_vec()), out);
            assert!(double.is_none(), "a key is there twice");
        }
        let mut from = Cursor::new(&piece.bytes[..], u64::MAX);
        while !from.source().is_empty() {
            let begin = piece.bytes.len() - from.source().len();
            let mut kind = from.byte().unwrap();
            if kind == DEADLINE {
                from.word().unwrap();
                kind = from.byte().unwrap();
            }
            let key = from.string().unwrap().to_vec();
            dump::read_value(&mut from, kind, build).unwrap();
            let end = piece.bytes.len() - from.source().len();
            let entry = piece.bytes[begin..end].to_vec();
            let double = found.insert((piece.db, key), entry);
            assert!(double.is_none(), "a key is there twice");
        }
    }
}

/// What a command needs beside its executor.
struct Run<'a> {
    session: &'a mut Session,
    settings: &'a Settings,
    host: &'a mut Alone,
    now_ms: u64,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_snapshot_is_what_was_there_at_the_cut(seed in any::<u64>(), steps in 200usize..2000) {
        let mut bench = Bench::new(seed);
        bench.fill_big();
        for _ in 0..steps {
            match bench.below(24) {
                0 => bench.now_ms += bench.below(200),
                1 if bench.at_cut.is_none() => bench.cut(),
                2 => {
                    let index = bench.below(4) as usize;
                    bench.with(|executor, run| {
                        executor.expire(index, 100, run.settings, run.host, run.now_ms);
                        executor.expire_fields(index, run.settings, run.host, run.now_ms);
                    });
                }
                3 | 4 => {
                    let budget = bench.below(3000) as usize;
                    bench.slice(budget);
                }
                5 if bench.below(20) == 0 => {
                    bench.progress.cancelled.store(true, Ordering::Relaxed);
                }
                6 => {
                    let n = bench.below(700);
                    let which = bench.below(7) as usize;
                    bench.command(&[
                        format!("HSET big:hash f{n} changed"),
                        format!("SREM big:set m{n}"),
                        format!("SREM big:ints {n}"),
                        format!("ZADD big:zset {} m{n}", n * 7 % 700),
                        "RPOPLPUSH big:list big:list".to_owned(),
                        format!("XDEL big:stream {n}-1"),
                        format!("ARDEL big:array {}", n * 3),
                    ][which]);
                }
                _ => {
                    let line = bench.random_command();
                    bench.command(&line);
                }
            }
        }
        while bench.at_cut.is_some() {
            bench.slice(5000);
        }
        let mut guard = bench.keyspace.stripes.acquire(bench.keyspace.stripes.all());
        let mut held = guard.held();
        for index in 0..held.count() {
            assert!(held.get_mut(index).flushed_mut().is_empty());
            held.get(index).check_invariants();
        }
    }
}

#[test]
fn what_is_flushed_is_saved_as_the_database_that_it_was() {
    let mut bench = Bench::new(7);
    bench.fill_big();
    bench.command("SELECT 1");
    bench.command("SET only here");
    bench.cut();
    bench.command("SWAPDB 0 1");
    bench.slice(100);
    bench.command("FLUSHALL");
    bench.command("SET only there");
    while bench.at_cut.is_some() {
        bench.slice(500);
    }
    assert_eq!(bench.entries_now().len(), 1);
}
