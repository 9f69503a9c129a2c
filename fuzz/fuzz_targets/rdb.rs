//! Snapshots: whatever stands in the file, reading it ends, and what was read can be written and
//! read again.
#![no_main]

use engine::dump::{Build, Dialect, Format};
use engine::settings::Settings;
use libfuzzer_sys::fuzz_target;
use persist::rdb::{Encoder, Entry, Options, Part, Reader, Saver, Uses, Value};
use structure::hash::Seed;
use structure::record::ValueRef;

const OPTIONS: Options = Options {
    checksum: false,
    skip_unsupported: true,
};

/// Reads a file and writes what is in it; `None` where it cannot be read.
fn again(file: &[u8]) -> Option<Vec<u8>> {
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let build = Build {
        settings: &settings,
        seed: &seed,
        dialect: Dialect::Redis,
    };
    let mut reader = Reader::new(file, build, OPTIONS).ok()?;
    let encoder = Encoder::new(Format::Redis8_10, true, Uses::None);
    let mut saver = Saver::new(b"REDIS0015".to_vec(), encoder, true);
    loop {
        match reader.next_part().ok()? {
            Part::Db(db) => saver.db(db, 0, 0),
            Part::Key(key) => {
                let value = match &key.value {
                    Value::Int(int) => ValueRef::Int(*int),
                    Value::Bytes(bytes) => ValueRef::Bytes(bytes),
                    Value::Long(bytes) => ValueRef::Bytes(bytes),
                    Value::Object(object) => ValueRef::Object(&**object),
                };
                let entry = Entry {
                    key: key.key,
                    deadline: key.deadline,
                    access: 0,
                    value,
                };
                saver.entry(entry).ok()?;
            }
            Part::End => break,
            _ => {}
        }
    }
    Some(saver.end().ok()?.0)
}

fuzz_target!(|bytes: &[u8]| {
    // The magic is a gift: the fuzzer chooses the rest.
    for magic in [&b"REDIS0015"[..], b"VALKEY080", b"REDIS0003"] {
        let file = [magic, bytes].concat();
        if let Some(once) = again(&file) {
            let twice = again(&once).expect("what we wrote is read");
            assert_eq!(once.len(), twice.len(), "nothing is lost");
        }
    }
});
