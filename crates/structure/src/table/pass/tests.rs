//! What a pass shows against a copy made at the cut.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::record::{Value, ValueRef};

const SEED: Seed = Seed::new([1, 2]);

/// A value and a deadline.
type Content = (String, Option<u64>);
type Entries = BTreeMap<Vec<u8>, Content>;
type Seen = Arc<Mutex<Vec<(Vec<u8>, Content)>>>;

/// Keeps what it sees.
struct Keeper(Seen);

impl Witness<String> for Keeper {
    fn see(&mut self, record: Shown<'_, String>) -> usize {
        let record = record.view();
        let entry = (record.key().to_vec(), (shown(record), record.deadline()));
        self.0.lock().unwrap().push(entry);
        1
    }
    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

fn shown(record: RecordRef<'_, String>) -> String {
    match record.value() {
        ValueRef::Int(int) => int.to_string(),
        ValueRef::Bytes(bytes) => format!(
            "bytes of {}: {:?}",
            bytes.len(),
            &bytes[..bytes.len().min(8)]
        ),
        ValueRef::Object(object) => format!("object {object}"),
    }
}

fn key(n: u16) -> Vec<u8> {
    format!("key:{n}").into_bytes()
}

fn copy(table: &Table<String>) -> Entries {
    let entry =
        |record: RecordRef<'_, String>| (record.key().to_vec(), (shown(record), record.deadline()));
    table.iter().map(entry).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// Sets a key to a value of one of several forms.
    Set(u16, u8),
    /// Appends to a string, or to an object in place.
    Grow(u16),
    Deadline(u16, Option<u64>),
    Remove(u16),
    Rename(u16, u16),
    /// Takes out whatever a hint may mean.
    Hinted(u16),
    Use(u16),
    /// Adds or removes many keys, so that segments split and merge.
    Many(u16, u16, bool),
    Cut,
    Pass(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let key = 0u16..3000;
    prop_oneof![
        6 => (key.clone(), any::<u8>()).prop_map(|(k, form)| Step::Set(k, form)),
        4 => key.clone().prop_map(Step::Grow),
        2 => (key.clone(), proptest::option::of(any::<u64>().prop_map(|at| at >> 8)))
            .prop_map(|(k, at)| Step::Deadline(k, at)),
        4 => key.clone().prop_map(Step::Remove),
        1 => (key.clone(), key.clone()).prop_map(|(a, b)| Step::Rename(a, b)),
        1 => key.clone().prop_map(Step::Hinted),
        2 => key.clone().prop_map(Step::Use),
        1 => (key.clone(), 1u16..1500, any::<bool>()).prop_map(|(k, n, add)| Step::Many(k, n, add)),
        1 => Just(Step::Cut),
        4 => (0u16..300).prop_map(Step::Pass),
    ]
}

fn set(table: &mut Table<String>, key: &[u8], form: u8) {
    let hash = hash(&SEED, key);
    let long = vec![form; 700];
    let value = || match form % 4 {
        0 => Value::Int(i64::from(form)),
        1 => Value::Bytes(&long[..usize::from(form)]),
        2 => Value::Long(Box::new(long.clone())),
        _ => Value::Object(Box::new(form.to_string())),
    };
    if let Some(mut record) = table.find_mut(hash, key) {
        record.set_value(value());
        return;
    }
    table.insert(hash, key, value(), None);
}

/// A table with its pass: what was there at the cut, and what was shown so far.
struct Bench {
    table: Table<String>,
    at_cut: Entries,
    seen: Seen,
}

impl Bench {
    fn run(&mut self, step: Step) {
        let table = &mut self.table;
        match step {
            Step::Set(k, form) => set(table, &key(k), form),
            Step::Grow(k) => {
                if let Some(mut record) = table.find_mut(hash(&SEED, &key(k)), &key(k)) {
                    match record.object_mut() {
                        Some(object) => object.push('x'),
                        None => record.grow_bytes(40).unwrap()[39] = 9,
                    }
                }
            }
            Step::Deadline(k, at) => {
                if let Some(mut record) = table.find_mut(hash(&SEED, &key(k)), &key(k)) {
                    record.set_deadline(at);
                }
            }
            Step::Remove(k) => drop(table.remove(hash(&SEED, &key(k)), &key(k))),
            Step::Rename(a, b) => {
                if let Some(record) = table.remove(hash(&SEED, &key(a)), &key(a)) {
                    table.remove(hash(&SEED, &key(b)), &key(b));
                    table.insert_record(hash(&SEED, &key(b)), record.rekeyed(&key(b)));
                }
            }
            Step::Hinted(k) => {
                let hint = table.hint(hash(&SEED, &key(k)));
                table.take_hinted(hint, |_| true, |_, record| drop(record));
            }
            Step::Use(k) => {
                if let Some(at) = table.locate(hash(&SEED, &key(k)), &key(k)) {
                    table.touch(at, |old| old + 1);
                }
            }
            Step::Many(k, n, add) => {
                for k in k..k.saturating_add(n).min(5000) {
                    if add {
                        set(table, &key(k), 0);
                    } else {
                        table.remove(hash(&SEED, &key(k)), &key(k));
                    }
                }
            }
            Step::Cut if !table.is_passing() => {
                self.at_cut = copy(table);
                table.cut(Box::new(Keeper(self.seen.clone())));
            }
            Step::Cut => {}
            Step::Pass(budget) => {
                if table.pass_on(usize::from(budget)).is_some() {
                    self.compare();
                }
            }
        }
    }

    fn compare(&mut self) {
        let seen = std::mem::take(&mut *self.seen.lock().unwrap());
        let count = seen.len();
        let seen: Entries = seen.into_iter().collect();
        assert_eq!(seen.len(), count, "a record was shown twice");
        assert_eq!(seen, self.at_cut);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn shows_each_record_once_as_it_was_at_the_cut(
        filled in 0u16..3000,
        steps in proptest::collection::vec(step(), 1..600),
        skip in 0u32..2,
    ) {
        let table = Table::new(SEED, 0, 5 + skip);
        let mut bench = Bench { table, at_cut: Entries::new(), seen: Arc::default() };
        bench.run(Step::Many(0, filled, true));
        for step in steps {
            bench.run(step);
        }
        bench.table.check_invariants();
        while bench.table.is_passing() {
            bench.run(Step::Pass(100));
        }
        bench.table.check_invariants();
    }
}

#[test]
fn a_table_that_is_emptied_is_shown_whole() {
    let table = Table::new(SEED, 0, 5);
    let mut bench = Bench {
        table,
        at_cut: Entries::new(),
        seen: Arc::default(),
    };
    bench.run(Step::Many(0, 3000, true));
    bench.run(Step::Cut);
    bench.run(Step::Pass(500));
    bench.run(Step::Many(0, 5000, false));
    assert!(bench.table.is_empty() && bench.table.is_passing());
    bench.run(Step::Many(0, 3000, true));
    while bench.table.is_passing() {
        bench.run(Step::Pass(1));
    }
}

#[test]
#[should_panic(expected = "under way")]
fn there_is_one_pass_at_a_time() {
    let mut table = Table::new(SEED, 0, 5);
    table.cut(Box::new(Keeper(Arc::default())));
    table.cut(Box::new(Keeper(Arc::default())));
}
