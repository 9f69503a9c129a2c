//! The keyspace's hash table against a `BTreeMap`, with all-over checks and scans under change.
//!
//! Half of the runs use a hash of few bits, so that buckets overflow and segments split in vain.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;
use structure::hash::{Seed, hash};
use structure::record::{Value, ValueRef};
use structure::table::Table;

#[derive(Debug, Clone, PartialEq)]
enum Content {
    Bytes(Vec<u8>),
    Int(i64),
    Object(u64),
}

fn content(input: &mut Input<'_>) -> Content {
    match input.byte() % 4 {
        0 => Content::Int(input.integer()),
        1 => Content::Object(input.integer() as u64),
        _ => Content::Bytes(input.word()),
    }
}

fn value(content: &Content) -> Value<'_, u64> {
    match content {
        Content::Bytes(bytes) => Value::Bytes(bytes),
        Content::Int(number) => Value::Int(*number),
        Content::Object(object) => Value::Object(Box::new(*object)),
    }
}

fn seen(value: ValueRef<'_, u64>) -> Content {
    match value {
        ValueRef::Bytes(bytes) => Content::Bytes(bytes.to_vec()),
        ValueRef::Int(number) => Content::Int(number),
        ValueRef::Object(object) => Content::Object(*object),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let seed = Seed::new([1, 2]);
    let mut table: Table<u64> = Table::new(seed, u32::from(input.byte() % 2), 4);
    let mut twin: BTreeMap<Vec<u8>, (Content, Option<u64>)> = BTreeMap::new();
    let mut cursor = Some(0);
    let mut shown: Vec<Vec<u8>> = Vec::new();
    let mut steady: Vec<Vec<u8>> = Vec::new();
    while let Some(operation) = input.operation() {
        let key = input.word();
        let at = hash(&seed, &key);
        match operation % 8 {
            0..3 => {
                let content = content(&mut input);
                let deadline = (input.byte() % 2 == 0).then(|| input.integer() as u64 % (1 << 48));
                steady.retain(|steady| *steady != key);
                table.remove(at, &key);
                table.insert(at, &key, value(&content), deadline);
                twin.insert(key, (content, deadline));
            }
            3 => {
                steady.retain(|steady| *steady != key);
                let removed = table.remove(at, &key);
                let expected = twin.remove(&key);
                assert_eq!(
                    removed.map(|record| seen(record.value())),
                    expected.map(|e| e.0)
                );
            }
            4 => {
                let found = table
                    .find(at, &key)
                    .map(|r| (seen(r.value()), r.deadline()));
                assert_eq!(found, twin.get(&key).cloned());
            }
            5 => {
                if let Some(mut record) = table.find_mut(at, &key) {
                    let content = content(&mut input);
                    let deadline = (operation & 8 != 0).then(|| input.byte().into());
                    record.set_value(value(&content));
                    record.set_deadline(deadline);
                    drop(record);
                    twin.insert(key, (content, deadline));
                }
            }
            6 => {
                let from = cursor.unwrap_or(0);
                if from == 0 {
                    shown.clear();
                    steady = twin.keys().cloned().collect();
                }
                let count = usize::from(operation >> 3) + 1;
                cursor = table.scan(from, count, |record| shown.push(record.key().to_vec()));
                if cursor.is_none() {
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
                // Grow quickly: splits need more keys than the fuzzer likes to write.
                for number in 0..u32::from(operation) {
                    let key = [key.as_slice(), &number.to_le_bytes()].concat();
                    let at = hash(&seed, &key);
                    if table.find(at, &key).is_none() {
                        table.insert(at, &key, Value::Int(number.into()), None);
                        twin.insert(key, (Content::Int(number.into()), None));
                    }
                }
            }
        }
        assert_eq!(table.len(), twin.len());
    }
    table.check_invariants();
    let mut all: Vec<_> = table
        .iter()
        .map(|r| (r.key().to_vec(), (seen(r.value()), r.deadline())))
        .collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(all, twin.into_iter().collect::<Vec<_>>());
});
