//! The table against a `BTreeMap`, its scan guarantee, its uniformity and its memory.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::record::ValueRef;

const SEED: Seed = Seed::new([1, 2]);

fn table(buckets: u32) -> Table<String> {
    Table::new(SEED, 0, buckets)
}

fn key(n: u32) -> Vec<u8> {
    format!("key:{n}").into_bytes()
}

fn add(table: &mut Table<String>, key: &[u8], value: i64) {
    table.insert(hash(&SEED, key), key, Value::Int(value), None);
}

proptest! {
    #[test]
    fn behaves_as_a_map(
        steps in proptest::collection::vec((0u32..4000, any::<bool>()), 1..6000),
        grow in 0u32..4000,
    ) {
        let (mut table, mut map) = (table(5), BTreeMap::new());
        for n in 0..grow {
            add(&mut table, &key(n), 0);
            map.insert(key(n), 0);
        }
        table.check_invariants();
        for (count, (n, remove)) in steps.into_iter().enumerate() {
            let key = key(n);
            let hash = hash(&SEED, &key);
            let value = count as i64;
            prop_assert_eq!(table.find(hash, &key).is_some(), map.contains_key(&key));
            if remove {
                let removed = table.remove(hash, &key);
                prop_assert_eq!(removed.is_some(), map.remove(&key).is_some());
            } else if let Some(mut record) = table.find_mut(hash, &key) {
                record.set_value(Value::Int(value));
                map.insert(key, value);
            } else {
                add(&mut table, &key, value);
                map.insert(key, value);
            }
        }
        table.check_invariants();
        prop_assert_eq!(table.len(), map.len());
        let seen: BTreeMap<_, _> = table.iter().map(|r| match r.value() {
            ValueRef::Int(value) => (r.key().to_vec(), value),
            other => panic!("{other:?}"),
        }).collect();
        prop_assert_eq!(seen, map.clone());
        for key in map.keys() {
            prop_assert!(table.remove(hash(&SEED, key), key).is_some());
        }
        table.check_invariants();
        prop_assert_eq!(table.memory_bytes(), 0);
    }

    #[test]
    fn a_hint_leads_to_its_key(wanted in proptest::collection::vec(any::<bool>(), 1..3000)) {
        let (mut table, mut map) = (table(5), BTreeMap::new());
        for (n, &is_wanted) in (0..).zip(&wanted) {
            add(&mut table, &key(n), i64::from(is_wanted));
            map.insert(key(n), is_wanted);
        }
        let mut hints: Vec<_> = map.keys().map(|key| table.hint(hash(&SEED, key))).collect();
        hints.sort_unstable();
        for hint in hints {
            table.prefetch_hinted_bucket(hint);
            table.prefetch_hinted_record(hint);
            let is_wanted = |record: RecordRef<'_, String>| record.value() == ValueRef::Int(1);
            table.take_hinted(hint, is_wanted, |hash, record| {
                assert_eq!(hash, super::hash(&SEED, record.key()));
                assert_eq!(map.remove(record.key()), Some(true));
            });
        }
        table.check_invariants();
        prop_assert!(map.values().all(|is_wanted| !is_wanted));
        prop_assert_eq!(table.len(), map.len());
    }

    #[test]
    fn a_scan_shows_what_stays_while_the_table_grows_and_shrinks(
        count in 1usize..50,
        change in 1u32..300,
        skip in 0u32..8,
    ) {
        let mut table: Table<String> = Table::new(SEED, skip, 7);
        let fits = |key: &[u8]| skip == 0 || hash(&SEED, key) >> (64 - skip) == 0;
        let mut stay = BTreeSet::new();
        for n in 0..500 * (1 << skip) {
            if fits(&key(n)) {
                add(&mut table, &key(n), 0);
                stay.insert(key(n));
            }
        }
        let (mut position, mut next, mut growing, mut seen) = (0, 1_000_000, true, BTreeSet::new());
        let mut added = Vec::new();
        loop {
            let more = table.scan(position, count, |record| {
                seen.insert(record.key().to_vec());
            });
            for _ in 0..change {
                if growing {
                    next += 1;
                    if fits(&key(next)) {
                        add(&mut table, &key(next), 0);
                        added.push(next);
                    }
                } else if let Some(n) = added.pop() {
                    table.remove(hash(&SEED, &key(n)), &key(n)).unwrap();
                }
            }
            growing = if added.len() > 3000 { false } else { growing || added.is_empty() };
            match more {
                Some(at) => { prop_assert!(at > position); position = at }
                None => break,
            }
        }
        prop_assert!(stay.is_subset(&seen));
    }
}

#[test]
fn a_whole_scan_of_a_quiet_table_shows_each_key_once() {
    for skip in [0, 6] {
        let mut table: Table<String> = Table::new(SEED, skip, 64);
        let fits = |key: &[u8]| skip == 0 || hash(&SEED, key) >> (64 - skip) == 0;
        for n in (0..100_000).filter(|&n| fits(&key(n))) {
            add(&mut table, &key(n), 0);
        }
        let (mut position, mut seen, mut calls) = (0, Vec::new(), 0);
        while let Some(next) = table.scan(position, 10, |record| seen.push(record.key().to_vec())) {
            position = next;
            calls += 1;
        }
        seen.sort();
        let shown = seen.len();
        seen.dedup();
        assert_eq!((seen.len(), shown), (table.len(), table.len()));
        assert!(
            calls > table.len() / 40,
            "{calls} calls for {} keys",
            table.len()
        );
    }
}

#[test]
fn random_records_are_drawn_evenly() {
    let mut table = table(64);
    for n in 0..2000 {
        add(&mut table, &key(n), i64::from(n));
    }
    let mut state = 1u64;
    let mut draw = |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % below
    };
    let mut counts = vec![0f64; 2000];
    for _ in 0..200_000 {
        match table.random(&mut draw).unwrap().value() {
            ValueRef::Int(n) => counts[n as usize] += 1.0,
            other => panic!("{other:?}"),
        }
    }
    let chi: f64 = counts
        .iter()
        .map(|count| (count - 100.0).powi(2) / 100.0)
        .sum();
    assert!(chi < 2250.0, "chi-square {chi} for 1999 degrees of freedom");
}

#[test]
fn it_stays_dense_and_correct_through_a_million_keys() {
    let mut table = table(64);
    let mut fills = Vec::new();
    for n in 0..300_000u32 {
        add(&mut table, &key(n), 0);
        if n % 1000 == 999 {
            fills.push(table.len() as f64 / (table.segments.len() * 64 * 8) as f64);
        }
    }
    let mean = fills.iter().sum::<f64>() / fills.len() as f64;
    assert!(mean > 0.6, "mean fill {mean}");
    table.check_invariants();
    while !table.free_some(1000) {}
    assert!(table.is_empty());
}

#[test]
fn keys_whose_hashes_collide_are_only_slow() {
    // All hashes equal as far as the table's caller says: each operation still works.
    let mut table = table(4);
    let mut same = Vec::new();
    let wanted = hash(&SEED, &key(0)) >> 58;
    let mut n = 0;
    while same.len() < 3000 {
        if hash(&SEED, &key(n)) >> 58 == wanted {
            add(&mut table, &key(n), 0);
            same.push(key(n));
        }
        n += 1;
    }
    table.check_invariants();
    for key in &same {
        assert!(table.find(hash(&SEED, key), key).is_some());
    }
}

#[test]
fn objects_are_dropped_once() {
    let mut table = table(8);
    let shared = std::sync::Arc::new(());
    let mut objects: Table<std::sync::Arc<()>> = Table::new(SEED, 0, 8);
    for n in 0..1000 {
        let key = key(n);
        let value = Value::Object(Box::new(shared.clone()));
        objects.insert(hash(&SEED, &key), &key, value, Some(7));
        add(&mut table, &key, 1);
    }
    for n in 0..500 {
        let key = key(n);
        let mut record = objects.find_mut(hash(&SEED, &key), &key).unwrap();
        record.set_deadline(None);
        drop(record.set_value(Value::Bytes(b"gone")));
    }
    assert_eq!(std::sync::Arc::strong_count(&shared), 501);
    drop(objects);
    assert_eq!(std::sync::Arc::strong_count(&shared), 1);
}
