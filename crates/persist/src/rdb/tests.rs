use super::*;
use engine::Object;
use engine::dump::{Build, Dialect, Format};
use engine::settings::Settings;
use structure::hash::Seed;
use structure::record::{Record, Value as Kept, ValueRef};

/// A file that Redis 8.10 wrote: two databases, a deadline, frequencies, a library of functions.
const FROM_REDIS: &[u8] = include_bytes!("tests/redis-8.10.rdb");

/// What the real servers at hand wrote, and how many keys are in it.
const FILES: [(&[u8], usize); 5] = [
    (FROM_REDIS, 7),
    (include_bytes!("tests/redis-8.10-templates.rdb"), 5),
    (include_bytes!("tests/redis-8.2.rdb"), 7),
    (include_bytes!("tests/redis-7.0.rdb"), 7),
    (include_bytes!("tests/valkey-9.1.rdb"), 7),
];

fn all(file: &[u8], options: Options, mut each: impl FnMut(&Part<'_>)) -> Result<(), Error> {
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let build = Build {
        settings: &settings,
        seed: &seed,
        dialect: Dialect::Redis,
    };
    let mut reader = Reader::new(file, build, options)?;
    loop {
        let part = reader.next_part()?;
        each(&part);
        if let Part::End = part {
            return Ok(());
        }
    }
}

const SKIPPING: Options = Options {
    checksum: true,
    skip_unsupported: true,
};

#[test]
fn a_file_of_redis_is_read() {
    let mut seen = Vec::new();
    all(FROM_REDIS, SKIPPING, |part| {
        seen.push(match part {
            Part::Aux { name, .. } => format!("aux {}", name.escape_ascii()),
            Part::Db(db) => format!("db {db}"),
            Part::Sizes { keys, timed } => format!("sizes {keys} {timed}"),
            Part::Key(key) => {
                let timed = if key.deadline.is_some() { " timed" } else { "" };
                format!("{} {:?}{timed}", key.key.escape_ascii(), key.used)
            }
            Part::Library(source) => {
                let line = source
                    .split(|&byte| byte == b'\n')
                    .next()
                    .unwrap_or_default();
                format!("library {}", line.escape_ascii())
            }
            Part::Skipped(what) => format!("skipped {what}"),
            Part::End => "end".to_owned(),
        });
    })
    .expect("a good file");
    let want = [
        "aux redis-ver",
        "aux redis-bits",
        "aux ctime",
        "aux used-mem",
        "aux aof-base",
        "library #!lua name=mylib",
        "db 0",
        "sizes 5 1",
        "t Some(Frequency(0)) timed",
        "a Some(Frequency(0))",
        "h Some(Frequency(0))",
        "n Some(Frequency(0))",
        "l Some(Frequency(0))",
        "db 3",
        "sizes 2 0",
        "z Some(Frequency(5))",
        "li Some(Frequency(5))",
        "end",
    ];
    assert_eq!(seen, want);
}

#[test]
fn what_is_not_supported_is_named() {
    let options = Options {
        checksum: true,
        skip_unsupported: false,
    };
    let module = 0x1234_5678_9abc_def0_u64.to_be_bytes();
    let file = [&b"REDIS0011\xf7\x81"[..], &module].concat();
    let error = all(&file, options, |_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("data of the module '"), "{text}");
    assert!(text.contains("tidemill-rdb-skip-unsupported"), "{text}");
}

#[test]
fn a_file_that_was_cut_is_refused_wherever_it_was_cut() {
    for (file, _) in FILES {
        for end in 0..file.len() {
            let error = all(&file[..end], SKIPPING, |_| ()).unwrap_err();
            assert!(
                matches!(error.problem, Problem::Short),
                "cut at {end}: {error}"
            );
            assert!(error.offset <= end as u64, "cut at {end}: {error}");
        }
    }
}

#[test]
fn a_file_with_a_wrong_byte_is_refused_wherever_it_is() {
    for (file, _) in FILES {
        for at in 0..file.len() {
            for bit in 0..8 {
                let mut changed = file.to_vec();
                changed[at] ^= 1 << bit;
                let read = all(&changed, SKIPPING, |_| ());
                assert!(read.is_err(), "bit {bit} of byte {at} went unseen");
                let unchecked = Options {
                    checksum: false,
                    ..SKIPPING
                };
                let _ = all(&changed, unchecked, |_| ());
            }
        }
    }
}

#[test]
fn files_of_every_server_at_hand_are_read() {
    for (file, want) in FILES {
        let mut keys = 0;
        all(file, SKIPPING, |part| {
            keys += usize::from(matches!(part, Part::Key(_)));
        })
        .expect("a good file");
        assert_eq!(keys, want);
    }
}

/// A file of these parts, without a checksum.
fn file_of(parts: &[&[u8]]) -> Vec<u8> {
    let mut file = b"REDIS0015".to_vec();
    parts.iter().for_each(|part| file.extend_from_slice(part));
    file.push(opcode::END);
    file.extend([0; 8]);
    file
}

#[test]
fn what_modules_keep_is_named_and_passed_over() {
    let key = b"\x00\x01k\x01v";
    let value = b"\x07\x01m\x81\x11\x11\x11\x11\x11\x11\x11\x11\x02\x05\x05\x01x\x04abcdefgh\x00";
    let aux = b"\xf7\x81\x11\x11\x11\x11\x11\x11\x11\x11\x02\x01\x05\x01x\x00";
    let meta = b"\xf3\x02\x01\x02\x03\x04\x05\x02hi\x02\x05\x00\xff\xff\xff\xff\x00";
    for (part, name) in [
        (&value[..], "a value of the module 'ERERERERE'"),
        (aux, "data of the module 'ERERERERE'"),
        (meta, "what modules keep with a key"),
    ] {
        let file = file_of(&[part, key]);
        let mut keys = 0;
        all(&file, SKIPPING, |part| {
            keys += usize::from(matches!(part, Part::Key(_)));
        })
        .expect("it is passed over");
        assert_eq!(keys, 1);
        let strict = Options {
            skip_unsupported: false,
            ..SKIPPING
        };
        let error = all(&file, strict, |_| ()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
    }
}

#[test]
fn hashes_of_early_forms_and_of_templates_are_read() {
    let time = 4_102_444_800_000u64;
    let early = [
        &b"\x16\x01k\x02\x81"[..],
        &time.to_be_bytes(),
        b"\x01a\x011\x00\x01b\x012",
    ];
    let template = [&b"\xf2\x05\x02\x01a\x01b"[..], b"\x20\x01k\x05\x011\x012"];
    for parts in [&early[..], &template] {
        let mut seen = 0;
        all(&file_of(parts), SKIPPING, |part| {
            let Part::Key(key) = part else { return };
            let Value::Object(object) = &key.value else {
                panic!("a hash")
            };
            seen = object.len();
        })
        .expect("a good file");
        assert_eq!(seen, 2);
    }
    let missing = file_of(&[b"\x20\x01k\x05\x011\x012"]);
    let error = all(&missing, SKIPPING, |_| ()).unwrap_err();
    assert!(matches!(error.problem, Problem::Damaged), "{error}");
}

#[test]
fn keys_with_nothing_in_them_are_passed_over() {
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let file = file_of(&[
        b"\xfc\x01\x02\x03\x04\x05\x06\x00\x00\x01\x01e\x00",
        b"\x00\x01k\x01v",
    ]);
    let build = build(&settings, &seed);
    let mut reader = Reader::new(&file[..], build, SKIPPING).expect("a good beginning");
    let Part::Key(key) = reader.next_part().expect("a key") else {
        panic!("a key")
    };
    assert_eq!((key.key, key.deadline), (&b"k"[..], None));
    assert_eq!(reader.empty_keys(), 1);
}

/// Gives out a byte at a time.
struct Slowly<'a>(&'a [u8]);

impl std::io::Read for Slowly<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else {
            return Ok(0);
        };
        self.0 = rest;
        into[0] = *first;
        Ok(1)
    }
}

/// Bytes without end.
struct Endless(u64);

impl std::io::Read for Endless {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        self.0 += into.len() as u64;
        Ok(into.len())
    }
}

fn build<'a>(settings: &'a Settings, seed: &'a Seed) -> Build<'a> {
    Build {
        settings,
        seed,
        dialect: Dialect::Redis,
    }
}

#[test]
fn bytes_may_come_one_by_one() {
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let build = build(&settings, &seed);
    let mut reader = Reader::new(Slowly(FROM_REDIS), build, SKIPPING).expect("a good file");
    let mut keys = 0;
    loop {
        match reader.next_part().expect("a good file") {
            Part::Key(_) => keys += 1,
            Part::End => break,
            _ => {}
        }
    }
    assert_eq!(keys, 7);
    assert_eq!(reader.offset(), FROM_REDIS.len() as u64);
}

#[test]
fn what_follows_the_end_is_given_back() {
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    let more = [FROM_REDIS, b"*1\r\n$4\r\nPING\r\n"].concat();
    let build = build(&settings, &seed);
    let mut reader = Reader::new(&more[..], build, SKIPPING).expect("a good file");
    while !matches!(reader.next_part().expect("a good file"), Part::End) {}
    let (ahead, rest) = reader.into_rest();
    assert_eq!([&ahead, rest].concat(), b"*1\r\n$4\r\nPING\r\n");
}

#[test]
fn a_length_is_not_believed() {
    use std::io::Read;
    let (settings, seed) = (Settings::default(), Seed::new([1, 2]));
    // A string of 2^40 bytes, of which a megabyte follows.
    let head = b"REDIS0011\x00\x01k\x81\x00\x00\x01\x00\x00\x00\x00\x00";
    let file = head.chain(Endless(0).take(1 << 20));
    let build = build(&settings, &seed);
    let mut reader = Reader::new(file, build, SKIPPING).expect("a good beginning");
    let error = reader.next_part().unwrap_err();
    assert!(matches!(error.problem, Problem::Damaged), "{error}");
    // One of 400 MB, which would be allowed.
    let head = b"REDIS0011\x00\x01k\x80\x18\x00\x00\x00";
    let file = head.chain(Endless(0).take(1 << 20));
    let mut reader = Reader::new(file, build, SKIPPING).expect("a good beginning");
    let error = reader.next_part().unwrap_err();
    assert!(matches!(error.problem, Problem::Short), "{error}");
    assert_eq!(error.key, Some((0, b"k".to_vec())));
}

fn record(key: &[u8], value: Kept<'_, Object>, deadline: Option<u64>) -> Record<Object> {
    Record::new(key, value, deadline)
}

#[test]
fn what_is_written_is_read_again() {
    for (format, magic) in [
        (Format::Redis8_10, &b"REDIS0015"[..]),
        (Format::Redis7_0, b"REDIS0010"),
        (Format::Valkey9_1, b"VALKEY080"),
    ] {
        for compress in [false, true] {
            let uses = Uses::Idle { now_s: 1000 };
            let mut saver = Saver::new(Vec::new(), Encoder::new(format, compress, uses), true);
            saver.begin(&About {
                version: "8.10.2",
                created_s: 1,
                used_bytes: 2,
                is_base: false,
            });
            saver.db(9, 3, 1);
            let long = b"long ".repeat(100_000);
            let mut records = [
                record(b"a", Kept::Int(7), None),
                record(b"1000", Kept::Bytes(b"text"), Some(5000)),
                record(b"long", Kept::Long(Box::new(long.clone())), None),
            ];
            for record in &mut records {
                record.set_access(990);
                saver.entry(record.view().into()).expect("it has a form");
            }
            let (file, len) = saver.end().expect("memory takes all");
            assert_eq!(file.len() as u64, len);
            assert!(file.starts_with(magic));
            assert!(!compress || file.len() < 20_000, "{}", file.len());
            let mut seen = Vec::new();
            all(&file, SKIPPING, |part| {
                let Part::Key(key) = part else { return };
                assert_eq!((key.db, key.used), (9, Some(Use::Idle(10))));
                let value = match &key.value {
                    Value::Int(int) => int.to_string().into_bytes(),
                    Value::Bytes(bytes) => bytes.to_vec(),
                    Value::Long(bytes) => bytes.clone(),
                    Value::Object(_) => panic!("a string"),
                };
                seen.push((key.key.to_vec(), value, key.deadline));
            })
            .expect("our own");
            assert_eq!(seen[0], (b"a".to_vec(), b"7".to_vec(), None));
            assert_eq!(seen[1], (b"1000".to_vec(), b"text".to_vec(), Some(5000)));
            assert_eq!(seen[2], (b"long".to_vec(), long, None));
        }
    }
}

#[test]
fn what_a_format_does_not_know_is_refused() {
    let mut array = structure::array::Array::new(4096);
    array.set(1, b"x");
    let object = Object::Array(Box::new(array));
    let value = ValueRef::Object(&object);
    for format in [Format::Redis7_0, Format::Valkey9_1] {
        let encoder = Encoder::new(format, false, Uses::None);
        let mut saver = Saver::new(Vec::new(), encoder, true);
        saver.db(1, 1, 0);
        let entry = Entry {
            key: b"k",
            deadline: None,
            access: 0,
            value,
        };
        let error = saver.entry(entry).unwrap_err().to_string();
        assert_eq!(
            error,
            "key 'k' of database 1 cannot be saved: the format has no arrays"
        );
    }
}

#[test]
fn two_files_in_the_making_do_not_touch_each_other() {
    let disk = crate::storage::simulated::Simulated::new(1);
    let encoder = || Encoder::new(Format::default(), false, Uses::None);
    let about = About {
        version: "8.10.2",
        created_s: 1,
        used_bytes: 2,
        is_base: false,
    };
    let outer = save(&disk, "outer.rdb", encoder(), true, |saver| {
        saver.begin(&about);
        saver.library(b"outer")?;
        save(&disk, "inner.rdb", encoder(), true, |inner| {
            inner.begin(&about);
            inner.library(b"inner")
        })?;
        Ok(())
    });
    assert!(outer.is_ok(), "the outer one is named last");
    for (name, source) in [("outer.rdb", b"outer"), ("inner.rdb", b"inner")] {
        let file = disk.bytes(name).expect(name);
        let mut libraries = Vec::new();
        let read = all(&file, SKIPPING, |part| {
            if let Part::Library(text) = part {
                libraries.push(text.to_vec());
            }
        });
        assert!(read.is_ok(), "{name} is whole");
        assert_eq!(libraries, [source.to_vec()], "{name}");
    }
}

#[test]
fn what_is_done_after_writes_hears_of_every_byte_and_may_fail() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let disk = crate::storage::simulated::Simulated::new(1);
    let encoder = || Encoder::new(Format::default(), false, Uses::None);
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    let source = vec![b'x'; 1 << 20];
    let len = save(&disk, "whole.rdb", encoder(), true, |saver| {
        saver.after_write(Box::new(|_, bytes| {
            HEARD.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }));
        for _ in 0..3 {
            saver.library(&source)?;
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(HEARD.load(Ordering::Relaxed) as u64, len);
    let failed = save(&disk, "never.rdb", encoder(), true, |saver| {
        saver.after_write(Box::new(|_, _| Err(std::io::Error::other("no more"))));
        saver.library(&source)
    });
    assert_eq!(failed.unwrap_err().to_string(), "no more");
    assert!(disk.bytes("never.rdb").is_none(), "nothing is left of it");
}
