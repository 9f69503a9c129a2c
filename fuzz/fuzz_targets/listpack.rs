//! The listpack: operations against a `Vec`, and loading of arbitrary bytes.
//!
//! What `from_bytes` accepts must be safe to walk from both ends; what it was made of must come
//! back byte for byte.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use structure::listpack::Listpack;

fn contents(pack: &Listpack) -> Vec<Vec<u8>> {
    pack.iter().map(|entry| entry.to_vec()).collect()
}

fuzz_target!(|bytes: &[u8]| {
    if let Ok(pack) = Listpack::from_bytes(bytes.to_vec()) {
        let forward = contents(&pack);
        let mut backward: Vec<_> = pack.iter().rev().map(|entry| entry.to_vec()).collect();
        backward.reverse();
        assert_eq!(forward, backward);
        assert_eq!(forward.len(), pack.len());
        assert_eq!(pack.as_bytes(), bytes);
    }

    let mut input = Input::new(bytes);
    let mut pack = Listpack::new();
    let mut twin: Vec<Vec<u8>> = Vec::new();
    while let Some(operation) = input.operation() {
        let word = input.word();
        let index = input.below(twin.len() + 1);
        let place = pack.seek(index);
        assert_eq!(place.is_some(), index < twin.len());
        match (operation % 8, place) {
            (0, _) => {
                pack.push_back(&word);
                twin.push(word);
            }
            (1, _) => {
                pack.push_front(&word);
                twin.insert(0, word);
            }
            (2, Some(place)) => {
                pack.insert_before(place, &word);
                twin.insert(index, word);
            }
            (3, Some(place)) => {
                pack.insert_after(place, &word);
                twin.insert(index + 1, word);
            }
            (4, Some(place)) => {
                pack.replace(place, &word);
                twin[index] = word;
            }
            (5, Some(place)) => {
                pack.remove(place);
                twin.remove(index);
            }
            (6, Some(place)) => {
                let count = usize::from(operation >> 3).min(twin.len() - index);
                pack.remove_range(place, count);
                twin.drain(index..index + count);
            }
            _ => {
                let found = pack.find(&word, 0).map(|place| pack.get(place).to_vec());
                assert_eq!(found, twin.iter().find(|other| **other == word).cloned());
            }
        }
        assert_eq!(pack.len(), twin.len());
    }
    assert_eq!(contents(&pack), twin);
    let again = Listpack::from_bytes(pack.as_bytes().to_vec()).expect("our own bytes are whole");
    assert_eq!(contents(&again), twin);
});
