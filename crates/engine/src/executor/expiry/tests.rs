//! Hashes whose fields die, against a map of deadlines.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use resp::{Output, OwnedArgs};
use structure::hash::Seed;
use structure::stripes::NoLock;

use super::*;
use crate::Table;
use crate::host::Alone;
use crate::keyspace::Keyspace;
use crate::stats::ThreadStats;

#[derive(Clone, Debug)]
enum Step {
    Set(u8, u8),
    Expire(u8, u8, u16),
    Persist(u8, u8),
    Remove(u8, u8),
    Delete(u8),
    Rename(u8, u8),
    Copy(u8, u8),
    Move(u8),
    Swap,
    Flush,
    ExpireKey(u8, u16),
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let (key, field) = (|| 0u8..6, || 0u8..12);
    prop_oneof![
        6 => (key(), field()).prop_map(|(k, f)| Step::Set(k, f)),
        6 => (key(), field(), 1u16..3000).prop_map(|(k, f, ms)| Step::Expire(k, f, ms)),
        1 => (key(), field()).prop_map(|(k, f)| Step::Persist(k, f)),
        2 => (key(), field()).prop_map(|(k, f)| Step::Remove(k, f)),
        1 => key().prop_map(Step::Delete),
        1 => (key(), key()).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => (key(), key()).prop_map(|(a, b)| Step::Copy(a, b)),
        1 => key().prop_map(Step::Move),
        1 => Just(Step::Swap),
        1 => Just(Step::Flush),
        1 => (key(), 1u16..3000).prop_map(|(k, ms)| Step::ExpireKey(k, ms)),
        4 => (1u16..1500).prop_map(Step::Pass),
    ]
}

/// A hash: when it dies, and when each of its fields does.
#[derive(Clone, Debug, Default, PartialEq)]
struct Fields {
    deadline: Option<u64>,
    fields: BTreeMap<u8, Option<u64>>,
}

type Model = [BTreeMap<u8, Fields>; 2];

struct Bench {
    keyspace: Keyspace<NoLock>,
    settings: Settings,
    now_ms: u64,
}

impl Bench {
    fn run(&self, line: &str) {
        let stats = Arc::new(ThreadStats::new(self.keyspace.shared.table.len()));
        let mut executor = Executor::new(&self.keyspace, stats);
        let (mut session, mut host) = (Session::new(NOBODY, true), Alone::new(1));
        let words = OwnedArgs::from_words(line.split(' ').map(str::as_bytes));
        let request = executor.prepare(words.view());
        let mut out = Output::default();
        executor.execute(
            &mut session,
            &request,
            &self.settings,
            &mut host,
            self.now_ms,
            &mut out,
        );
        executor.end(&self.settings, &mut host, self.now_ms);
    }

    /// Removes all that is due.
    fn expire(&self) {
        let stats = Arc::new(ThreadStats::new(self.keyspace.shared.table.len()));
        let mut executor = Executor::new(&self.keyspace, stats);
        let (settings, mut host) = (&self.settings, Alone::new(1));
        for index in 0..self.keyspace.stripes.count() {
            while executor.expire(index, 3, settings, &mut host, self.now_ms) {}
            while executor.expire_fields(index, settings, &mut host, self.now_ms) {}
        }
    }

    /// What is there, whether its time is up or not.
    fn held(&self) -> Model {
        let mut held = Model::default();
        for index in 0..self.keyspace.stripes.count() {
            let mut guard = self.keyspace.stripes.acquire(StripeSet::one(index));
            let stripe = guard.held();
            let stripe = stripe.get(index);
            stripe.check_invariants();
            for (number, model) in (0u32..).zip(&mut held) {
                for record in stripe.db(number).iter().flat_map(|db| db.table.iter()) {
                    let structure::record::ValueRef::Object(crate::object::Object::Hash(hash)) =
                        record.value()
                    else {
                        panic!("only hashes are put here");
                    };
                    let mut fields = Fields {
                        deadline: record.deadline(),
                        ..Fields::default()
                    };
                    hash.each(0, |field, found| {
                        fields
                            .fields
                            .insert(number_of(&field.to_vec()), found.deadline);
                    });
                    model.insert(number_of(record.key()), fields);
                }
            }
        }
        held
    }
}

fn number_of(name: &[u8]) -> u8 {
    let digits = std::str::from_utf8(&name[1..]).expect("a name of ours");
    digits.parse().expect("a name of ours")
}

/// What is left of a model at a time.
fn living(model: &Model, now_ms: u64) -> Model {
    let is_alive = |at: &Option<u64>| at.is_none_or(|at| at > now_ms);
    model.clone().map(|mut db| {
        for fields in db.values_mut() {
            fields.fields.retain(|_, at| is_alive(at));
        }
        db.retain(|_, fields| is_alive(&fields.deadline) && !fields.fields.is_empty());
        db
    })
}

fn play(bench: &mut Bench, model: &mut Model, step: &Step) {
    let now_ms = bench.now_ms;
    *model = living(model, now_ms);
    match *step {
        Step::Set(k, f) => {
            bench.run(&format!("HSET k{k} f{f} v"));
            model[0].entry(k).or_default().fields.insert(f, None);
        }
        Step::Expire(k, f, ms) => {
            let at = now_ms + u64::from(ms);
            bench.run(&format!("HPEXPIREAT k{k} {at} FIELDS 1 f{f}"));
            let fields = model[0].get_mut(&k).map(|found| &mut found.fields);
            if let Some(old) = fields.and_then(|fields| fields.get_mut(&f)) {
                *old = Some(at);
            }
        }
        Step::Persist(k, f) => {
            bench.run(&format!("HPERSIST k{k} FIELDS 1 f{f}"));
            let fields = model[0].get_mut(&k).map(|found| &mut found.fields);
            if let Some(old) = fields.and_then(|fields| fields.get_mut(&f)) {
                *old = None;
            }
        }
        Step::Remove(k, f) => {
            bench.run(&format!("HDEL k{k} f{f}"));
            if let Some(found) = model[0].get_mut(&k) {
                found.fields.remove(&f);
            }
        }
        Step::Delete(k) => {
            bench.run(&format!("DEL k{k}"));
            model[0].remove(&k);
        }
        Step::Rename(a, b) => {
            bench.run(&format!("RENAME k{a} k{b}"));
            if let Some(found) = model[0].remove(&a) {
                model[0].insert(b, found);
            }
        }
        Step::Copy(a, b) => {
            bench.run(&format!("COPY k{a} k{b} REPLACE"));
            if let Some(found) = model[0].get(&a).cloned() {
                model[0].insert(b, found);
            }
        }
        Step::Move(k) => {
            bench.run(&format!("MOVE k{k} 1"));
            if !model[1].contains_key(&k)
                && let Some(found) = model[0].remove(&k)
            {
                model[1].insert(k, found);
            }
        }
        Step::Swap => {
            bench.run("SWAPDB 0 1");
            model.swap(0, 1);
        }
        Step::Flush => {
            bench.run("FLUSHDB");
            model[0].clear();
        }
        Step::ExpireKey(k, ms) => {
            let at = now_ms + u64::from(ms);
            bench.run(&format!("PEXPIREAT k{k} {at}"));
            if let Some(found) = model[0].get_mut(&k) {
                found.deadline = Some(at);
            }
        }
        Step::Pass(ms) => {
            bench.now_ms += u64::from(ms);
            bench.expire();
        }
    }
}

proptest! {
    #[test]
    fn dead_fields_and_keys_go_in_time_and_nothing_else_does(
        steps in proptest::collection::vec(step(), 1..120),
        entries in prop_oneof![Just(512usize), Just(4)],
    ) {
        let table = Table::new(crate::commands::FAMILIES);
        let mut bench = Bench {
            keyspace: Keyspace::new(table, 4, Seed::new([1, 2])),
            settings: Settings { hash_listpack_entries: entries, ..Settings::default() },
            now_ms: 1_000_000,
        };
        let mut model = Model::default();
        for step in &steps {
            play(&mut bench, &mut model, step);
            let held = bench.held();
            prop_assert_eq!(&living(&held, bench.now_ms), &living(&model, bench.now_ms));
            if let Step::Pass(_) = step {
                // What died a slot of the wheel ago is gone from memory.
                let late_ms = bench.now_ms - 16;
                prop_assert_eq!(&living(&held, late_ms), &held);
            }
        }
        bench.now_ms += 10_000;
        bench.expire();
        let held = bench.held();
        prop_assert_eq!(&living(&model, bench.now_ms), &held);
    }
}
