//! The reader of the log: any bytes give whole units, and what it says is whole is read the same
//! way alone.
#![no_main]

use libfuzzer_sys::fuzz_target;
use persist::aof::{Item, Reader, scan};

/// The words of all units.
fn units(bytes: &[u8]) -> (Vec<Vec<Vec<u8>>>, bool) {
    let mut reader = Reader::new(bytes, 0);
    let mut units = Vec::new();
    loop {
        match reader.next_item() {
            Ok(None) => return (units, true),
            Ok(Some(Item::Timestamp(_))) => {}
            Ok(Some(Item::Unit(unit))) => {
                let words = unit.commands().flat_map(|args| args.iter().map(<[u8]>::to_vec));
                units.push(words.collect());
            }
            Err(fault) => {
                assert!(fault.valid <= bytes.len() as u64);
                return (units, false);
            }
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let size = bytes.len() as u64;
    let found = scan(|| Ok(bytes), 0, size, None).expect("memory does not fail");
    assert!(found.valid <= size);
    let kept = usize::try_from(found.valid).expect("it is in memory");
    let (all, _) = units(bytes);
    let (whole, is_whole) = units(&bytes[..kept]);
    assert!(is_whole);
    assert!(whole.len() <= all.len());
    assert_eq!(whole[..], all[..whole.len()]);
});
