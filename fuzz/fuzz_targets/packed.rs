//! The packed table of large hashes and sets against a `BTreeMap`, deadlines and scans included.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use structure::hash::{Seed, hash};
use structure::packed::PackedTable;

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let seed = Seed::new([3, 4]);
    // A hash of few bits makes elements collide, as they never would by chance.
    let mask = if input.byte() % 4 == 0 {
        0xf << 60
    } else {
        u64::MAX
    };
    let hasher = |key: &[u8]| hash(&seed, key) & mask;
    let mut table = PackedTable::new();
    let mut twin: BTreeMap<Vec<u8>, (Vec<u8>, Option<u64>)> = BTreeMap::new();
    let (mut cursor, mut shown, mut steady) = (0, Vec::new(), Vec::new());
    while let Some(operation) = input.operation() {
        let key = input.word();
        let at = hasher(&key);
        match operation % 8 {
            0..3 => {
                let value = input.word();
                let deadline = (operation & 8 != 0).then(|| input.byte().into());
                let existed = twin
                    .insert(key.clone(), (value.clone(), deadline))
                    .is_some();
                assert_eq!(table.insert(at, &key, &value, deadline, &hasher), existed);
            }
            3 => {
                steady.retain(|steady| *steady != key);
                assert_eq!(
                    table.take(at, &key),
                    twin.remove(&key).map(|(value, _)| value)
                );
            }
            4 => {
                let deadline = (operation & 8 != 0).then(|| input.byte().into());
                let there = table.set_deadline(at, &key, deadline, &hasher);
                assert_eq!(there, twin.contains_key(&key));
                twin.entry(key).and_modify(|(_, old)| *old = deadline);
            }
            5 => {
                let now = input.byte().into();
                let mut gone = Vec::new();
                while table
                    .expire_due(now, 3, |entry| gone.push(entry.key.to_vec()))
                    .more
                {}
                for key in &gone {
                    let (_, deadline) = twin.remove(key).expect("only what is there expires");
                    assert!(deadline.is_some_and(|deadline| deadline <= now));
                    steady.retain(|steady| steady != key);
                }
                assert!(
                    twin.values()
                        .all(|(_, deadline)| deadline.is_none_or(|d| d > now))
                );
            }
            6 => {
                if cursor == 0 {
                    shown = Vec::new();
                    steady = twin.keys().cloned().collect();
                }
                let count = usize::from(operation >> 3) + 1;
                cursor = table.scan(cursor, count, |entry| shown.push(entry.key.to_vec()));
                if cursor == 0 {
                    shown.sort();
                    for key in &steady {
                        assert!(
                            shown.binary_search(key).is_ok(),
                            "a scan passed over {key:?}"
                        );
                    }
                }
            }
            _ => {
                for number in 0..u32::from(operation) {
                    let key = [key.as_slice(), &number.to_le_bytes()].concat();
                    table.insert(hasher(&key), &key, b"v", None, &hasher);
                    twin.insert(key, (b"v".to_vec(), None));
                }
            }
        }
        assert_eq!(table.len(), twin.len());
        let timed = twin.values().filter(|(_, deadline)| deadline.is_some());
        assert_eq!(table.timed(), timed.count());
    }
    let mut all: Vec<_> = table
        .iter()
        .map(|entry| (entry.key.to_vec(), (entry.value.to_vec(), entry.deadline)))
        .collect();
    all.sort();
    assert_eq!(all, twin.into_iter().collect::<Vec<_>>());
    while !table.free_some(2) {}
});
