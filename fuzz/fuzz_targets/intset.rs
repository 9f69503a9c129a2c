//! The set of integers against a `BTreeSet`, and loading of arbitrary bytes.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use structure::intset::Intset;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(set) = Intset::from_bytes(bytes.to_vec()) {
        let numbers: Vec<i64> = set.iter().collect();
        assert!(numbers.is_sorted_by(|a, b| a < b));
        assert_eq!(set.as_bytes(), bytes);
    }

    let mut input = Input::new(bytes);
    let mut set = Intset::new();
    let mut twin = BTreeSet::new();
    while let Some(operation) = input.operation() {
        let number = input.integer();
        match operation % 4 {
            0 | 1 => assert_eq!(set.insert(number), twin.insert(number)),
            2 => assert_eq!(set.remove(number), twin.remove(&number)),
            _ => {
                let index = input.below(twin.len() + 1);
                let expected = twin.iter().nth(index).copied();
                assert_eq!(set.get(index), expected);
                if operation & 4 != 0
                    && let Some(number) = expected
                {
                    assert_eq!(set.remove_at(index), Some(number));
                    twin.remove(&number);
                }
            }
        }
        assert_eq!(set.len(), twin.len());
        assert_eq!(set.contains(number), twin.contains(&number));
    }
    assert!(set.iter().eq(twin.iter().copied()));
    assert!(set.iter().rev().eq(twin.iter().rev().copied()));
    let again = Intset::from_bytes(set.as_bytes().to_vec()).expect("our own bytes are whole");
    assert!(again.iter().eq(twin.into_iter()));
});
