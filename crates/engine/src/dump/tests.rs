use super::*;
use crate::object::Kind;

/// A payload with its footer made anew.
fn sealed(content: &[u8]) -> Vec<u8> {
    let mut payload = content.to_vec();
    payload.extend(VERSION.to_le_bytes());
    let sum = CHECKSUM.checksum(&payload);
    payload.extend(sum.to_le_bytes());
    payload
}

fn loaded(payload: &[u8]) -> Result<OwnedValue, Refused> {
    load(payload, &Settings::default(), &Seed::new([1, 2]), false)
}

fn dumped(value: &OwnedValue) -> Vec<u8> {
    let value = match value {
        OwnedValue::Int(int) => ValueRef::Int(*int),
        OwnedValue::Bytes(bytes) => ValueRef::Bytes(bytes),
        OwnedValue::Object(object) => ValueRef::Object(&**object),
    };
    dump(value).expect("a small value has a form")
}

/// Payloads that Redis 8.10 wrote, which we write alike.
const SAME_AS_REDIS: [(&[u8], Kind); 8] = [
    (
        b"\x00\xc0\x01\x0f\x00=\xfc\x82\xba\x7f\xad\xec\x04",
        Kind::String,
    ),
    (
        b"\x00\xc1,\x01\x0f\x00\x8e\xc6\x04\xfe\xcb.\xa1\xe8",
        Kind::String,
    ),
    (
        b"\x00\xc2p\x11\x01\x00\x0f\x00\x1a m\xf2;\x9ch]",
        Kind::String,
    ),
    (
        b"\x00\n5000000000\x0f\x00r-j\xd9\xd0\xa3\t\xdd",
        Kind::String,
    ),
    (
        b"\x00\x030.5\x0f\x00\x18\xac\x17)\xfe\x12\x7f\xc0",
        Kind::String,
    ),
    (
        b"\x12\x01\x02\x0f\x0f\x00\x00\x00\x03\x00\x81a\x02\x81b\x02\x01\x01\xff\x0f\x00\xfb\x9f\
          \xceF\xe9b\xa4\xda",
        Kind::List,
    ),
    (
        b"\x1b\x01\x10\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x1d\x1d\x00\
          \x00\x00\n\x00\x01\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02\x01\x00\x01\x00\x01\x81v\x02\
          \x04\x01\xff\x01\x01\x01\x01\x01\x00\x00\x01\x01\x01g\x01\x01\x01\x01\x00\x00\x00\x00\
          \x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01>&D-\xa2\x01\x00\x00\x01\x01\x01c>&D-\xa2\
          \x01\x00\x00>&D-\xa2\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\
          \x00\x00\x01\x00@d@d\x00\x00\x00\x0f\x00AI\x08(\xe9\xa5\x04G",
        Kind::Stream,
    ),
    (
        b"\x1c\x0c\x01\x0a\x00\x03\x01x\x01\x01\x05\x00\x00\x00\x00\x00\x00\x00\x02\x02\x00\x00\
          \x00\x00\x00\x00\x0c@\x03\x03\x041.50\x04\x01\xf9\xff\xff\xff\xff\xff\xff\xff\x05\x03\
          \x030.1\x06\x00\x08abcdefgh\x07\x02\x00\x00\x00\x00\x00\x00Y@\x08\x03\x00\x09\x00\x0d\
          12345.0078125\x0a\x00\x139223372036854775807\x81\xff\xff\xff\xff\xff\xff\xff\xfe\x00\
          \x0azzzzzzzzzz\x0f\x00Z\xd2\xb5n\x8e3\x1c\xc2",
        Kind::Array,
    ),
];

#[test]
fn what_redis_wrote_is_read_and_written_alike() {
    for (payload, kind) in SAME_AS_REDIS {
        let value = loaded(payload).expect("Redis's own");
        assert_eq!(value.kind(), kind);
        assert_eq!(dumped(&value), payload, "{value:?}");
    }
}

#[test]
fn a_stream_with_released_and_remembered_parts_survives() {
    // Two released entries, consumers without any, deleted entries, names that differ.
    let payload: &[u8] = b"\x1b\x01\x10\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\
        \x00\x05\xc39?\x07?\x00\x00\x00\x18\x00\x02\x01@\x00\x07\x81f\x02\x00\x01\x02\x01\x00 \
        \x01\x03\x81v\x02\x04@\x12 \n\x00\x02@\x17 \x0f\x06\x81g\x02\x81w\x02\x08 \x0f@\x00\x06\
        \x82v2\x03\x04\x01\xff\x02\x06\x06\x05\x05\x06\x05\x03\x02\x01g\x06\x06\x03\x02\x00\x00\
        \x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\
        \x00\x00\x00\x81\x7f\xff\xff\xff\xff\xff\xff\xff\x03\x01c\xbb\x19E-\xa2\x01\x00\x00\xbb\
        \x19E-\xa2\x01\x00\x00\x00\x02cc\xbb\x19E-\xa2\x01\x00\x00\xff\xff\xff\xff\xff\xff\xff\
        \xff\x00\x01d\xbc\x19E-\xa2\x01\x00\x00\xbc\x19E-\xa2\x01\x00\x00\x00\x02\x00\x00\x00\x00\
        \x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x06\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\
        \x00\x00\x00\x00\x00\x05\x01h\x06\x06\x02\x00\x00\x00@d@d\x00\x00\x00";
    let value = loaded(&sealed(payload)).expect("Redis's own");
    let OwnedValue::Object(object) = &value else {
        panic!("{value:?}")
    };
    let Object::Stream(stream) = &**object else {
        panic!("{value:?}")
    };
    stream.check_invariants();
    assert_eq!((stream.len(), stream.entries_added()), (2, 3));
    let group = stream.group(b"g").expect("a group");
    assert_eq!((group.pending_len(), group.released_len()), (2, 2));
    assert_eq!(group.consumers_len(), 3);
    let again = dumped(&value);
    assert_eq!(dumped(&loaded(&again).expect("our own")), again);
}

#[test]
fn a_cut_or_changed_payload_is_refused_by_its_footer() {
    for (payload, _) in SAME_AS_REDIS {
        for end in 0..payload.len() {
            assert_eq!(loaded(&payload[..end]).unwrap_err(), Refused::Footer);
        }
        for at in 0..payload.len() {
            let mut changed = payload.to_vec();
            changed[at] ^= 0x10;
            assert_eq!(loaded(&changed).unwrap_err(), Refused::Footer);
        }
    }
}

#[test]
fn damage_behind_a_right_checksum_is_refused_or_harmless() {
    for (payload, _) in SAME_AS_REDIS {
        let content = &payload[..payload.len() - FOOTER];
        for end in 0..content.len() {
            let refused = loaded(&sealed(&content[..end])).unwrap_err();
            assert_eq!(refused, Refused::Content, "cut at {end}");
        }
        for at in 0..content.len() {
            for bit in 0..8 {
                let mut changed = content.to_vec();
                changed[at] ^= 1 << bit;
                if let Ok(value) = loaded(&sealed(&changed)) {
                    dumped(&value);
                }
            }
        }
        let longer = [content, b"\0"].concat();
        assert_eq!(loaded(&sealed(&longer)).unwrap_err(), Refused::Content);
    }
}

#[test]
fn counts_are_not_believed() {
    for kind in 0..=kind::HASH_NAMED {
        let huge = [&[kind, 0x81][..], &[0xff; 8]].concat();
        assert_eq!(
            loaded(&sealed(&huge)).unwrap_err(),
            Refused::Content,
            "{kind}"
        );
    }
}

#[test]
fn what_producers_sent_is_remembered_over_a_dump() {
    let payload: &[u8] =
        b"\x1b\x01\x10\x00\x00\x01\xa2-E\x86c\x00\x00\x00\x00\x00\x00\x00\x00\xc30>\
        \x11>\x00\x00\x00\x19\x00\x04\x01\x00\x01\x01\x01\x81f\x02\x00\x01\x02 \n\x05\x00\x01\x81v\
        \x02\x04`\n \x15\xc0\n\x00\x02\xe0\x01\n\x03\x03\x01\x81w  \x00\xff\x04\x81\x00\x00\x01\
        \xa2-E\x86c\x03\x81\x00\x00\x01\xa2-E\x86c\x00\x00\x00\x04\x00@d@d\x02\x01p\x02\x01i\x81\
        \x00\x00\x01\xa2-E\x86c\x00\x01j\x81\x00\x00\x01\xa2-E\x86c\x01\x01q\x02\x01k\x81\x00\x00\
        \x01\xa2-E\x86c\x02\x10\x9f\xf9yB\x13i\xc9\\)\xd23\xcd4FK\xe8\x81\x00\x00\x01\xa2-E\x86c\
        \x03\x04\x00\x0f\x00\xc9\x03\xb4\x89\x93!\xfc\x15";
    let value = loaded(payload).expect("Redis's own");
    let again = dumped(&value);
    // Behind the entries, which we do not compress, every byte is Redis's.
    let behind = payload.len() - FOOTER - 97;
    let tail = &payload[behind..payload.len() - FOOTER];
    assert!(again[..again.len() - FOOTER].ends_with(tail), "{again:?}");
    assert_eq!(dumped(&loaded(&again).expect("our own")), again);
}

#[test]
fn arrays_are_read_as_redis_reads_them() {
    let double = |bits: u64| [&b"\x1c\x01\x00\x05\x02"[..], &bits.to_le_bytes()].concat();
    for (content, element) in [
        (b"\x1c\x01\x00\x05\x03\x01x".to_vec(), "x"),
        (b"\x1c\x01\x00\x05\x00\xc0\x05".to_vec(), "5"),
        (b"\x1c\x02\x00\x09\x03\x01x\x05\x03\x01y".to_vec(), "y"),
        (b"\x1c\x02\x00\x05\x03\x01x\x05\x03\x01y".to_vec(), "y"),
        (double(0.1f64.to_bits()), "0.09999999999999998"),
        (double(2f64.powi(-14).to_bits()), "6.103515625e-5"),
        (double((-0.0f64).to_bits()), "-0.0"),
        (double(5f64.to_bits()), "5.0"),
        (double(2f64.powi(63).to_bits()), "9223372036854776000.0"),
        (double(f64::INFINITY.to_bits()), "inf"),
    ] {
        let value = loaded(&sealed(&content)).expect("Redis takes it");
        let OwnedValue::Object(object) = value else {
            panic!("{value:?}")
        };
        let Object::Array(array) = &*object else {
            panic!("{object:?}")
        };
        let found = array.get(5).expect("an element").to_vec();
        assert_eq!(found, element.as_bytes(), "{content:?}");
    }
    for content in [
        &b"\x1c\x00\x00"[..],
        b"\x1c\x01\x00\x81\xff\xff\xff\xff\xff\xff\xff\xff\x03\x01x",
        b"\x1c\x01\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x05\x03\x01x",
        b"\x1c\x01\x02\x05\x05\x03\x01x",
        b"\x1c\x01\x00\x05\x04\x01x",
        b"\x1c\x01\x00\x05\x03\x0811111111",
        b"\x1c\x02\x00\x05\x03\x01x",
    ] {
        let refused = loaded(&sealed(content)).unwrap_err();
        assert_eq!(refused, Refused::Content, "{content:?}");
    }
}

#[test]
fn hashes_of_named_fields_are_read() {
    let pack: &[u8] = b"\x1d\x00\x11\x11\x00\x00\x00\x03\x00\x81a\x02\x81c\x02\x82bb\x03\xff\
        \x12\x12\x00\x00\x00\x04\x00\x01\x01\x01\x01\x03\x01\x83two\x04\xff";
    let mixed: &[u8] = b"\x1f\x00\x11\x11\x00\x00\x00\x03\x00\x81a\x02\x81c\x02\x82bb\x03\xff\
        \xc0\x01\xc0\x03\x03two";
    let plain: &[u8] = b"\x1f\x01\x03\x01a\x01c\x02bb\xc0\x01\xc0\x03\x03two";
    for content in [pack, mixed, plain] {
        let value = loaded(&sealed(content)).expect("Redis's own");
        let again = dumped(&value);
        let fields: &[u8] = b"\x81a\x02\x01\x01\x81c\x02\x03\x01\x82bb\x03\x83two\x04\xff";
        assert!(again[..again.len() - FOOTER].ends_with(fields), "{again:?}");
        for end in 0..content.len() {
            let refused = loaded(&sealed(&content[..end])).unwrap_err();
            assert_eq!(refused, Refused::Content, "cut at {end}");
        }
    }
}

#[test]
fn marked_strings_are_compressed_later_as_they_would_have_been_at_once() {
    let values = [
        vec![b'a'; 300],
        b"short".to_vec(),
        (0..=255).collect(),
        vec![b'b'; 30],
    ];
    let (mut at_once, mut marked) = (Vec::new(), Vec::new());
    let mut forms = Forms::new(Format::Redis8_10, true);
    let mut marking = Forms::marking(Format::Redis8_10);
    for value in &values {
        let (value, key) = (
            ValueRef::Bytes(value),
            Some(&b"a key that is long, long, long"[..]),
        );
        write_value(&mut at_once, &mut forms, key, value).unwrap();
        write_value(&mut marked, &mut marking, key, value).unwrap();
    }
    let marks = marking.take_marks();
    let mut later = Vec::new();
    compress_marked(&mut later, &mut forms, &marked, &marks).unwrap();
    assert!(later.len() < marked.len());
    assert_eq!(later, at_once);
    assert!(marking.take_marks().is_empty());
}
