//! `PackedTable` against a `BTreeMap`, and its promises about scans, draws and expiry.

use super::*;
use crate::hash::{Seed, hash};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const SEED: Seed = Seed::new([3, 5]);

fn good(key: &[u8]) -> u64 {
    hash(&SEED, key)
}

/// Nearly all keys collide in all 64 bits.
fn broken(key: &[u8]) -> u64 {
    u64::from(key.last().copied().unwrap_or(0) & 3) << 62
}

type Model = BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)>;

fn check(table: &PackedTable, model: &Model, hasher: &impl Fn(&[u8]) -> u64) {
    assert_eq!(table.len(), model.len());
    assert_eq!(
        table.timed(),
        model.values().filter(|v| v.1.is_some()).count()
    );
    let earliest = model.values().filter_map(|v| v.1).min();
    assert!(table.due_hint() <= earliest && table.due_hint().is_some() == earliest.is_some());
    for (key, (value, deadline)) in model {
        let got = table.get(hasher(key), key).unwrap();
        assert_eq!((got.value, got.deadline), (&value[..], *deadline));
    }
    let all: Model = table
        .iter()
        .map(|e| (e.key.to_vec(), (e.value.to_vec(), e.deadline)))
        .collect();
    assert_eq!(&all, model);
    let heap: usize = table
        .segments
        .iter()
        .map(|segment| segment.heap_bytes())
        .sum();
    assert_eq!(heap, table.heap);
    let mut cursor = 0;
    let mut scanned = Vec::new();
    loop {
        cursor = table.scan(cursor, 10, |e| scanned.push(e.key.to_vec()));
        if cursor == 0 {
            break;
        }
    }
    // Without changes in between, each comes once.
    assert_eq!(scanned.len(), model.len());
    assert_eq!(
        scanned.into_iter().collect::<BTreeSet<_>>().len(),
        model.len()
    );
}

#[derive(Clone, Debug)]
enum Op {
    Insert(u16, usize, Option<u64>),
    Deadline(u16, Option<u64>),
    Remove(u16),
    Expire(u64),
    Freeze,
}

fn op() -> impl Strategy<Value = Op> {
    let deadline = proptest::option::weighted(0.2, 0u64..1000);
    let size = prop_oneof![10 => 0usize..40, 1 => 240usize..270, 1 => 1000usize..9000];
    prop_oneof![
        8 => (any::<u16>(), size, deadline.clone()).prop_map(|(k, s, d)| Op::Insert(k, s, d)),
        2 => (any::<u16>(), deadline).prop_map(|(k, d)| Op::Deadline(k, d)),
        5 => any::<u16>().prop_map(Op::Remove),
        1 => (0u64..20).prop_map(Op::Expire),
        1 => Just(Op::Freeze),
    ]
}

fn key_of(n: u16) -> Vec<u8> {
    let mut key = format!("key:{n}").into_bytes();
    if n.is_multiple_of(37) {
        key.resize(70 + usize::from(n % 300), b'x');
        key.extend_from_slice(&n.to_le_bytes());
    }
    key
}

fn run(ops: &[Op], keys: u16, hasher: &impl Fn(&[u8]) -> u64) {
    let (mut table, mut model) = (PackedTable::new(), Model::new());
    let mut frozen = Vec::new();
    for op in ops {
        match *op {
            Op::Freeze => {
                // A few at a time: some are let go before the table changes, and some after.
                if frozen.len() > 2 {
                    let (past, model) = frozen.swap_remove(0);
                    check_past(past, &model);
                }
                frozen.push((table.freeze(), model.clone()));
            }
            Op::Insert(k, size, deadline) => {
                let (key, value) = (key_of(k % keys), vec![k as u8; size]);
                let old = model.insert(key.clone(), (value.clone(), deadline));
                let existed = table.insert(hasher(&key), &key, &value, deadline, hasher);
                assert_eq!(existed, old.is_some());
            }
            Op::Deadline(k, deadline) => {
                let key = key_of(k % keys);
                let found = model.get_mut(&key).map(|v| v.1 = deadline).is_some();
                assert_eq!(
                    table.set_deadline(hasher(&key), &key, deadline, hasher),
                    found
                );
            }
            Op::Remove(k) => {
                let key = key_of(k % keys);
                let old = model.remove(&key).map(|v| v.0);
                assert_eq!(table.take(hasher(&key), &key), old);
            }
            Op::Expire(now) => {
                let mut gone = 0;
                while table
                    .expire_due(now, 7, |e| {
                        assert!(model.remove(e.key).unwrap().1.unwrap() <= now);
                        gone += 1;
                    })
                    .more
                {}
                assert!(model.values().all(|v| v.1.is_none_or(|d| d > now)));
            }
        }
    }
    check(&table, &model, hasher);
    drop(table);
    for (past, model) in frozen {
        check_past(past, &model);
    }
}

fn check_past(past: PackedPast, model: &Model) {
    assert_eq!(past.len(), model.len());
    let due = model.values().filter_map(|value| value.1).min();
    assert_eq!(past.due_hint().is_some(), due.is_some());
    assert!(past.due_hint() <= due || due.is_none());
    let mut found = Model::new();
    past.each(|element| {
        let value = (element.value.to_vec(), element.deadline);
        let double = found.insert(element.key.to_vec(), value);
        assert!(double.is_none(), "an element is there twice");
    });
    assert_eq!(&found, model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn agrees_with_a_sorted_map(
        ops in proptest::collection::vec(op(), 1..3000), keys in 1u16..3000,
    ) {
        run(&ops, keys, &good);
    }

    #[test]
    fn stays_right_under_a_broken_hash(
        ops in proptest::collection::vec(op(), 1..3000), keys in 1u16..3000,
    ) {
        run(&ops, keys, &broken);
    }
}

#[test]
fn grows_and_shrinks_and_gives_memory_back() {
    let (mut table, mut model) = (PackedTable::new(), Model::new());
    for round in 0..2u32 {
        for n in 0..30_000u32 {
            let (key, value) = (n.to_le_bytes(), (n ^ round).to_le_bytes());
            table.insert(good(&key), &key, &value, None, &good);
            model.insert(key.to_vec(), (value.to_vec(), None));
        }
        check(&table, &model, &good);
        assert!(table.segments.len() > 60);
        for n in (0..30_000u32).filter(|n| n % 100 != round) {
            let key = n.to_le_bytes();
            assert!(table.remove(good(&key), &key));
            model.remove(&key[..]);
        }
        check(&table, &model, &good);
        assert!(
            table.segments.len() <= 8,
            "{} segments of 300",
            table.segments.len()
        );
        assert!(
            table.memory_bytes() < 16_000,
            "{} bytes of 300",
            table.memory_bytes()
        );
    }
}

#[test]
fn a_broken_hash_only_makes_it_slow() {
    let (mut table, mut model) = (PackedTable::new(), Model::new());
    for n in 0..6_000u32 {
        let key = n.to_be_bytes();
        table.insert(broken(&key), &key, &[7; 60], None, &broken);
        model.insert(key.to_vec(), (vec![7; 60], None));
    }
    check(&table, &model, &broken);
    assert!(table.random(|n| n - 1).is_some());
    for n in 0..6_000u32 {
        assert!(table.remove(broken(&n.to_be_bytes()), &n.to_be_bytes()));
    }
    assert!(table.is_empty() && table.random(|_| 0).is_none());
}

#[test]
fn a_scan_gives_all_that_stay_while_the_table_grows_and_shrinks() {
    for count in [1usize, 10, 700] {
        let mut table = PackedTable::new();
        let insert = |table: &mut PackedTable, n: u32| {
            let key = n.to_le_bytes();
            table.insert(good(&key), &key, b"", None, &good);
        };
        let remove = |table: &mut PackedTable, n: u32| {
            let key = n.to_le_bytes();
            table.remove(good(&key), &key);
        };
        (0..3_000).for_each(|n| insert(&mut table, n));
        let (mut seen, mut cursor, mut step) = (BTreeSet::new(), 0, 0u32);
        loop {
            cursor = table.scan(cursor, count, |e| {
                seen.insert(e.key.to_vec());
            });
            if cursor == 0 {
                break;
            }
            // Elements 0..3000 stay; the others come and go in waves.
            let wave = (step / 20) % 2 == 0;
            for n in 0..400 {
                let other = 3_000 + (step % 20) * 400 + n;
                if wave {
                    insert(&mut table, other)
                } else {
                    remove(&mut table, other)
                }
            }
            step += 1;
        }
        for n in 0..3_000u32 {
            assert!(
                seen.contains(&n.to_le_bytes()[..]),
                "{n} was not given, count {count}"
            );
        }
    }
}

#[test]
fn draws_are_uniform() {
    for elements in [5usize, 600, 1_300] {
        let mut table = PackedTable::new();
        for n in 0..elements as u32 {
            let key = n.to_le_bytes();
            table.insert(good(&key), &key, b"", None, &good);
        }
        let mut state = 88172645463325252u64;
        let mut rng = move |n: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((u128::from(state) * u128::from(n)) >> 64) as u64
        };
        let mut counts = vec![0u32; elements];
        for _ in 0..elements * 100 {
            let key = table.random(&mut rng).unwrap().key;
            counts[u32::from_le_bytes(key.try_into().unwrap()) as usize] += 1;
        }
        let chi: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 100.0).powi(2) / 100.0)
            .sum();
        let freedom = elements as f64 - 1.0;
        assert!(
            chi < freedom + 5.0 * (2.0 * freedom).sqrt(),
            "chi-square {chi} of {freedom}"
        );
    }
}

#[test]
fn popping_at_random_takes_each_element_once() {
    let mut table = PackedTable::new();
    for n in 0..3_000u32 {
        let key = n.to_le_bytes();
        table.insert(good(&key), &key, b"", None, &good);
    }
    let mut state = 88172645463325252u64;
    let mut rng = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((u128::from(state) * u128::from(n)) >> 64) as u64
    };
    let mut popped = BTreeSet::new();
    while let Some(key) = table.pop_random(&mut rng, |entry| entry.key.to_vec()) {
        assert!(!table.contains(good(&key), &key));
        assert!(popped.insert(key));
        assert_eq!(table.len() + popped.len(), 3_000);
    }
    assert_eq!(popped.len(), 3_000);
}

#[test]
fn expiry_is_bounded_and_complete() {
    let mut table = PackedTable::new();
    for n in 0..50_000u32 {
        let key = n.to_le_bytes();
        let deadline = (n % 10 == 0).then_some(1_000 + u64::from(n));
        table.insert(good(&key), &key, b"v", deadline, &good);
    }
    assert_eq!(table.timed(), 5_000);
    assert_eq!(table.due_hint(), Some(1_000));
    assert_eq!(
        table.expire_due(999, 10, |_| ()),
        Expired {
            removed: 0,
            more: false
        }
    );
    let first = table.expire_due(26_000, 100, |e| assert!(e.deadline.unwrap() <= 26_000));
    assert_eq!(
        first,
        Expired {
            removed: 100,
            more: true
        }
    );
    let mut removed = 100;
    loop {
        let round = table.expire_due(26_000, 100, |_| ());
        assert!(round.removed <= 100);
        removed += round.removed;
        if !round.more {
            break;
        }
    }
    assert_eq!(removed, 2_501);
    assert_eq!((table.len(), table.timed()), (47_499, 2_499));
    assert_eq!(table.due_hint(), Some(26_010));
}

#[test]
fn freeing_goes_in_slices() {
    let mut table = PackedTable::new();
    for n in 0..20_000u32 {
        let value = vec![1; if n % 50 == 0 { 500 } else { 5 }];
        table.insert(
            good(&n.to_le_bytes()),
            &n.to_le_bytes(),
            &value,
            Some(9),
            &good,
        );
    }
    let mut calls = 0;
    while !table.free_some(40) {
        calls += 1;
    }
    assert!(calls > 5);
    assert_eq!((table.len(), table.heap, table.timed()), (0, 0, 0));
    table.insert(good(b"a"), b"a", b"b", None, &good);
    check(
        &table,
        &Model::from([(b"a".to_vec(), (b"b".to_vec(), None))]),
        &good,
    );
}
