//! Payloads of RESTORE behind a right checksum: refused, or a value that survives a dump.
#![no_main]

use engine::dump::{CHECKSUM, VERSION, dump, load};
use engine::object::OwnedValue;
use engine::settings::Settings;
use libfuzzer_sys::fuzz_target;
use structure::hash::Seed;
use structure::record::ValueRef;

fuzz_target!(|bytes: &[u8]| {
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let mut payload = bytes.to_vec();
    payload.extend(VERSION.to_le_bytes());
    payload.extend(CHECKSUM.checksum(&payload).to_le_bytes());
    let Ok(value) = load(&payload, &settings, &seed, false) else {
        return;
    };
    let view = match &value {
        OwnedValue::Int(int) => ValueRef::Int(*int),
        OwnedValue::Bytes(bytes) => ValueRef::Bytes(bytes),
        OwnedValue::Object(object) => {
            object.check_invariants();
            ValueRef::Object(&**object)
        }
    };
    if let Some(again) = dump(view) {
        load(&again, &settings, &seed, false).expect("what we wrote is read");
    }
});
