//! The set against a `BTreeSet`, its forms, and its draws.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const SEED: Seed = Seed::new([3, 9]);

fn settings() -> Settings {
    Settings {
        set_intset_entries: 8,
        set_listpack_entries: 6,
        set_listpack_value: 5,
        ..Settings::default()
    }
}

fn of(members: &[&str]) -> Set {
    let mut set = Set::for_members(members[0].as_bytes(), members.len(), &settings());
    for member in members {
        set.insert(member.as_bytes(), &settings(), &SEED);
    }
    set
}

fn sorted(set: &Set) -> BTreeSet<Vec<u8>> {
    set.iter().map(Entry::to_vec).collect()
}

#[test]
fn the_form_follows_what_was_added() {
    let forms: &[(&[&str], &str)] = &[
        (&["1", "2", "-3"], "intset"),
        (&["a"], "listpack"),
        (&["1", "a"], "listpack"),
        (&["a", "1", "22222"], "listpack"),
        (&["toolong"], "hashtable"),
        (&["111111", "a"], "hashtable"),
        (&["a", "b", "c", "d", "e", "f", "f"], "hashtable"),
        (&["1", "2", "3", "4", "5", "6", "7", "8"], "intset"),
        (&["1", "2", "3", "4", "5", "6", "7", "8", "9"], "hashtable"),
        (&["1", "2", "3", "4", "5", "6", "a"], "hashtable"),
    ];
    for (members, form) in forms {
        assert_eq!(of(members).encoding(), *form, "{members:?}");
    }
}

#[test]
fn one_integer_too_many_makes_a_table() {
    let mut set = of(&["1", "2", "3", "4", "5", "6", "7", "8"]);
    assert!(set.insert(b"9", &settings(), &SEED));
    assert_eq!((set.encoding(), set.len()), ("hashtable", 9));
    let mut set = of(&["1", "2"]);
    set.expect(8, &settings(), &SEED);
    assert_eq!(set.encoding(), "intset");
    set.expect(9, &settings(), &SEED);
    assert_eq!((set.encoding(), set.len()), ("hashtable", 2));
}

#[test]
fn many_integers_stay_in_order_under_the_name_of_a_table() {
    let settings = settings();
    let mut set = Set::new();
    for n in 0..MANY_INTS_MAX {
        assert!(set.insert(n.to_string().as_bytes(), &settings, &SEED));
    }
    assert_eq!(set.encoding(), "hashtable");
    assert!(set.memory_bytes() < 3 * MANY_INTS_MAX, "two bytes each");
    let mut with_word = set.duplicate(&SEED);
    assert!(with_word.insert(b"word", &settings, &SEED));
    assert!(set.insert(b"-1", &settings, &SEED));
    for (set, len) in [(&set, MANY_INTS_MAX + 1), (&with_word, MANY_INTS_MAX + 1)] {
        assert_eq!((set.encoding(), set.len()), ("hashtable", len));
        assert!(set.memory_bytes() > 8 * MANY_INTS_MAX, "a table");
        set.check_invariants();
    }
    // None of them is a table that Redis would have begun with.
    let mut begun = Set::for_members(b"1", 9, &settings);
    assert_eq!(begun.encoding(), "hashtable");
    assert!(begun.insert(b"1", &settings, &SEED) && !begun.insert(b"1", &settings, &SEED));
    begun.expect(MANY_INTS_MAX + 1, &settings, &SEED);
    assert_eq!((begun.encoding(), begun.len()), ("hashtable", 1));
    begun.settle(&settings);
    assert_eq!(begun.encoding(), "listpack");
}

#[test]
fn a_scan_of_many_integers_meets_those_that_stay() {
    let settings = settings();
    let number = |n: i64| n.to_string().into_bytes();
    for (spread, becomes_table) in [(1, false), (1 << 20, false), (1 << 40, false), (1, true)] {
        let mut set = Set::new();
        for n in -500..500 {
            set.insert(&number(n * spread), &settings, &SEED);
        }
        let (mut seen, mut cursor, mut turn) = (BTreeSet::new(), 0, 0);
        loop {
            cursor = set.scan(cursor, 10, |entry| {
                seen.insert(entry.to_vec());
            });
            // Others come before and behind, odd ones go, and the integers become wider.
            turn += 1;
            if becomes_table && turn == 30 {
                set.insert(b"word", &settings, &SEED);
            }
            set.insert(&number(-700 * spread - turn), &settings, &SEED);
            set.insert(&number(700 * spread + turn % 20), &settings, &SEED);
            set.remove(&number((2 * turn + 1) * spread), &SEED);
            set.remove(&number((-2 * turn + 1) * spread), &SEED);
            if cursor == 0 {
                break;
            }
            assert!(cursor < 1 << 53 && turn < 1000);
        }
        for n in (-500..500).filter(|n| n % 2 == 0) {
            assert!(seen.contains(&number(n * spread)), "{n} times {spread}");
        }
    }
}

#[test]
fn a_scan_that_began_among_integers_begins_again_in_a_table() {
    let mut set = of(&["word"]);
    for n in 0..1000 {
        set.insert(format!("member:{n}").as_bytes(), &settings(), &SEED);
    }
    let page = |cursor| {
        let mut seen = Vec::new();
        let next = set.scan(cursor, 10, |entry| seen.push(entry.to_vec()));
        (seen, next)
    };
    assert_ne!(page(1 << 47), page(0));
    assert_eq!(page(SAYS_INTEGER | 1 << 47), page(0));
}

#[test]
fn draws_are_even_and_take_each_member_once() {
    let small = of(&["1", "2", "3", "4"]);
    let packed = of(&["a", "b", "3", "4"]);
    let table = of(&["aaaaaaa", "b", "3", "4"]);
    let mut many = Set::for_members(b"1", 9, &settings());
    for n in ["1", "2", "3", "4"] {
        many.insert(n.as_bytes(), &settings(), &SEED);
    }
    for mut set in [small, packed, table, many] {
        let mut state = 7u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        let mut seen = std::collections::BTreeMap::<Vec<u8>, u32>::new();
        for _ in 0..4000 {
            let member = set.random(&mut below).expect("not empty").to_vec();
            *seen.entry(member).or_default() += 1;
        }
        assert!(
            seen.len() == 4 && seen.values().all(|n| (850..1150).contains(n)),
            "{seen:?}"
        );
        let all = sorted(&set);
        let mut popped = BTreeSet::new();
        while let Some(member) = set.pop_random(&mut below, |entry| entry.to_vec()) {
            assert!(popped.insert(member));
        }
        assert!(set.is_empty());
        assert_eq!(popped, all);
    }
}

#[test]
fn a_big_set_is_freed_in_slices() {
    let mut set = Set::new();
    for n in 0..5000 {
        set.insert(format!("member:{n}").as_bytes(), &settings(), &SEED);
    }
    let copy = set.duplicate(&SEED);
    assert_eq!((copy.len(), copy.encoding()), (5000, "hashtable"));
    assert!(set.memory_bytes() > 5000 * 12);
    assert!(!set.free_some(1), "one slice is not all of it");
    while !set.free_some(8) {}
    assert!(set.is_empty());
    assert_eq!(copy.len(), 5000);
}

proptest! {
    #[test]
    fn it_is_a_set(ops in prop::collection::vec((0u8..3, 0u16..40, any::<bool>()), 0..200)) {
        let settings = settings();
        let mut set = Set::new();
        let mut model = BTreeSet::new();
        for (op, n, word) in ops {
            let member = match word {
                true => format!("w{}", n % 20),
                false => (i64::from(n) - 20).to_string(),
            };
            let bytes = member.as_bytes();
            match op {
                0 | 1 => prop_assert_eq!(
                    set.insert(bytes, &settings, &SEED),
                    model.insert(bytes.to_vec())
                ),
                _ => prop_assert_eq!(set.remove(bytes, &SEED), model.remove(bytes)),
            }
            prop_assert_eq!(set.contains(bytes, &SEED), model.contains(bytes));
            prop_assert!(set.contains_entry(Entry::of(bytes), &SEED) == model.contains(bytes));
            prop_assert_eq!(set.len(), model.len());
        }
        prop_assert_eq!(&sorted(&set), &model);
        prop_assert_eq!(&sorted(&set.duplicate(&SEED)), &model);
        let (mut scanned, mut cursor) = (Vec::new(), 0);
        loop {
            cursor = set.scan(cursor, 3, |entry| scanned.push(entry.to_vec()));
            if cursor == 0 {
                break;
            }
        }
        scanned.sort();
        prop_assert_eq!(scanned, model.into_iter().collect::<Vec<_>>());
    }
}
