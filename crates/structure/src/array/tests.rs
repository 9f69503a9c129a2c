use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The naive twin.
type Twin = BTreeMap<u64, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Set(u64, Vec<u8>),
    /// Several from an index on, up or down.
    Run(u64, u16, bool, Vec<u8>),
    Remove(u64),
    RemoveRange(u64, u64),
}

fn index() -> impl Strategy<Value = u64> {
    prop_oneof![
        4 => 0u64..400,
        2 => 0u64..20_000,
        1 => (0u64..64).prop_map(|n| n * 4096),
        1 => (0u64..100).prop_map(|n| INDEX_MAX - n),
        1 => 0u64..=INDEX_MAX,
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => (-200i64..200).prop_map(|int| int.to_string().into_bytes()),
        1 => any::<i64>().prop_map(|int| int.to_string().into_bytes()),
        2 => proptest::collection::vec(any::<u8>(), 0..8),
        1 => proptest::collection::vec(any::<u8>(), 60..70),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (index(), value()).prop_map(|(index, value)| Step::Set(index, value)),
        2 => (index(), 1u16..600, any::<bool>(), value())
            .prop_map(|(index, count, up, value)| Step::Run(index, count, up, value)),
        3 => index().prop_map(Step::Remove),
        1 => (index(), index()).prop_map(|(a, b)| Step::RemoveRange(a, b)),
    ]
}

fn set(array: &mut Array, twin: &mut Twin, index: u64, value: &[u8]) {
    let new = twin.insert(index, value.to_vec()).is_none();
    assert_eq!(array.set(index, value), new, "{index}");
}

fn take(array: &mut Array, twin: &mut Twin, step: Step) {
    match step {
        Step::Set(index, value) => set(array, twin, index, &value),
        Step::Run(start, count, up, value) => {
            for n in 0..u64::from(count) {
                let index = if up {
                    start.checked_add(n)
                } else {
                    start.checked_sub(n)
                };
                if let Some(index) = index.filter(|&index| index <= INDEX_MAX) {
                    set(array, twin, index, &value);
                }
            }
        }
        Step::Remove(index) => {
            assert_eq!(
                array.remove(index),
                twin.remove(&index).is_some(),
                "{index}"
            );
        }
        Step::RemoveRange(a, b) => {
            let (from, to) = (a.min(b), a.max(b));
            let before = twin.len();
            twin.retain(|index, _| !(from..=to).contains(index));
            assert_eq!(array.remove_range(from, to), (before - twin.len()) as u64);
        }
    }
}

fn owned((index, value): (u64, Entry<'_>)) -> (u64, Vec<u8>) {
    (index, value.to_vec())
}

fn compare(array: &Array, twin: &Twin, (a, b): (u64, u64)) {
    array.check_invariants();
    let all: Vec<_> = array.iter().map(owned).collect();
    assert_eq!(all, twin.clone().into_iter().collect::<Vec<_>>());
    assert_eq!(array.count(), twin.len() as u64);
    let (from, to) = (a.min(b), a.max(b));
    let there: Vec<_> = twin
        .range(from..=to)
        .map(|(i, v)| (*i, v.clone()))
        .collect();
    let mut got: Vec<_> = array.range(from, to).map(owned).collect();
    assert_eq!(got, there);
    if from < to {
        got = array.range(to, from).map(owned).collect();
        assert_eq!(got, there.into_iter().rev().collect::<Vec<_>>());
    }
    for index in [a, b] {
        assert_eq!(
            array.get(index).map(Entry::to_vec),
            twin.get(&index).cloned()
        );
    }
    let copy = array.clone();
    copy.check_invariants();
    assert!(copy.iter().map(owned).eq(all));
}

proptest! {
    #[test]
    fn it_does_what_a_map_does(
        steps in proptest::collection::vec((step(), index(), index()), 1..30),
    ) {
        let (mut array, mut twin) = (Array::new(256), Twin::new());
        for (step, a, b) in steps {
            take(&mut array, &mut twin, step);
            compare(&array, &twin, (a, b));
        }
        while !array.free_some(200) {}
    }
}

#[test]
fn many_leaves_in_every_order_hold_together() {
    let count = 70_000u64;
    for order in [0u64, 1, 2] {
        let (mut array, mut twin) = (Array::new(4096), Twin::new());
        for n in 0..count {
            let index = match order {
                0 => n,
                1 => 3 * (count - n),
                _ => n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 3,
            };
            set(&mut array, &mut twin, index, n.to_string().as_bytes());
        }
        compare(&array, &twin, (100, count / 2));
        let indexes: Vec<_> = twin.keys().copied().step_by(3).collect();
        for index in indexes {
            take(&mut array, &mut twin, Step::Remove(index));
        }
        compare(&array, &twin, (100, count / 2));
    }
}

#[test]
fn dense_and_sparse_arrays_are_small() {
    let mut dense = Array::new(4096);
    (0..100_000).for_each(|n| assert!(dense.set(n, (n % 100).to_string().as_bytes())));
    assert!(dense.memory_bytes() < 160_000, "{}", dense.memory_bytes());
    let mut sparse = Array::new(4096);
    (0..100_000).for_each(|n| assert!(sparse.set(n << 44, b"1")));
    assert!(
        sparse.memory_bytes() < 1_100_000,
        "{}",
        sparse.memory_bytes()
    );
    let mut lone = Array::new(4096);
    lone.set(INDEX_MAX, b"x");
    assert!(lone.memory_bytes() < 100, "{}", lone.memory_bytes());
}

#[test]
fn the_directory_is_counted_as_redis_counts_it() {
    // Asked of a Redis 8.10, with ARINFO.
    let of = |slices: &[u64]| {
        let mut array = Array::new(4096);
        for slice in slices {
            array.set(slice * 4096, b"x");
        }
        (array.directory_size(), array.directory_blocks())
    };
    assert_eq!(of(&[0]), (1, 0));
    assert_eq!(of(&[1]), (2, 0));
    assert_eq!(of(&[16]), (32, 0));
    assert_eq!(of(&[2047]), (2048, 0));
    assert_eq!(of(&[2048]), (4, 1));
    assert_eq!(of(&[0, 2048]), (4, 2));
    assert_eq!(of(&[1 << 30, 1 << 31, 1 << 32, 5 << 32, 6 << 32]), (8, 5));
    let mut array = Array::new(4096);
    (1..15).for_each(|n| assert!(array.set(n << 40, b"x")));
    (2..15).for_each(|n| assert!(array.remove(n << 40)));
    let sizes = |array: &Array| (array.directory_size(), array.directory_blocks());
    assert_eq!((sizes(&array), sizes(&array.clone())), ((16, 1), (16, 1)));
}
