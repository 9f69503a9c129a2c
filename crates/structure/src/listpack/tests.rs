use super::*;
use proptest::prelude::*;

fn of(values: &[&[u8]]) -> Listpack {
    let mut pack = Listpack::new();
    for value in values {
        pack.push_back(value);
    }
    pack
}

fn texts(pack: &Listpack) -> Vec<Vec<u8>> {
    pack.iter().map(Entry::to_vec).collect()
}

fn hex(text: &str) -> Vec<u8> {
    text.split(' ')
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}

/// Strings at every edge of an encoding: widths of integers, lengths, sizes of back lengths.
fn edges() -> Vec<Vec<u8>> {
    let mut values: Vec<Vec<u8>> = Vec::new();
    for shift in [7, 12, 13, 15, 16, 23, 24, 31, 32, 62, 63] {
        for off in -1..=1 {
            for n in [
                (1i64 << shift).wrapping_add(off),
                (1i64 << shift).wrapping_neg().wrapping_add(off),
            ] {
                values.push(n.to_string().into_bytes());
            }
        }
    }
    for text in [
        "",
        "-",
        "-0",
        "00",
        "+1",
        "9223372036854775808",
        "-9223372036854775809",
    ] {
        values.push(text.as_bytes().to_vec());
    }
    let lens = [
        1, 62, 63, 64, 125, 126, 4095, 4096, 16377, 16378, 16379, 2097145, 2097146, 2097147,
    ];
    values.extend(lens.map(|len| vec![b'a'; len]));
    values
}

/// The entry after "f" in a hash's DUMP on a Redis 8.10: (value, entry).
const FROM_REDIS: [(&str, &str); 21] = [
    ("0", "00 01"),
    ("127", "7f 01"),
    ("128", "c0 80 02"),
    ("-1", "df ff 02"),
    ("-4096", "d0 00 02"),
    ("-4097", "f1 ff ef 03"),
    ("4095", "cf ff 02"),
    ("4096", "f1 00 10 03"),
    ("32767", "f1 ff 7f 03"),
    ("32768", "f2 00 80 00 04"),
    ("-32769", "f2 ff 7f ff 04"),
    ("8388607", "f2 ff ff 7f 04"),
    ("8388608", "f3 00 00 80 00 05"),
    ("-8388609", "f3 ff ff 7f ff 05"),
    ("2147483648", "f4 00 00 00 80 00 00 00 00 09"),
    ("-2147483649", "f4 ff ff ff 7f ff ff ff ff 09"),
    ("9223372036854775807", "f4 ff ff ff ff ff ff ff 7f 09"),
    ("-9223372036854775808", "f4 00 00 00 00 00 00 00 80 09"),
    ("-0", "82 2d 30 03"),
    ("007", "83 30 30 37 04"),
    ("", "80 01"),
];

#[test]
fn bytes_are_those_of_redis() {
    for (value, entry) in FROM_REDIS {
        let entry = hex(entry);
        let mut bytes = vec![10 + entry.len() as u8, 0, 0, 0, 2, 0, 0x81, 0x66, 2];
        bytes.extend_from_slice(&entry);
        bytes.push(END);
        assert_eq!(of(&[b"f", value.as_bytes()]).as_bytes(), bytes, "{value}");
        assert_eq!(
            texts(&Listpack::from_bytes(bytes).unwrap())[1],
            value.as_bytes()
        );
    }
}

#[test]
fn lengths_are_written_as_redis_does() {
    // (length, head, back): the same source.
    for (len, head, back) in [
        (63, "bf", "40"),
        (64, "e0 40", "42"),
        (125, "e0 7d", "7f"),
        (126, "e0 7e", "01 80"),
        (4095, "ef ff", "20 81"),
        (4096, "f0 00 10 00 00", "20 85"),
        (16378, "f0 fa 3f 00 00", "7f ff"),
        (16379, "f0 fb 3f 00 00", "01 80 80"),
        (2097146, "f0 fa ff 1f 00", "7f ff ff"),
        (2097147, "f0 fb ff 1f 00", "01 80 80 80"),
    ] {
        let pack = of(&[&vec![b'a'; len]]);
        let (head, back) = (hex(head), hex(back));
        let bytes = pack.as_bytes();
        assert_eq!(bytes.len(), FRAME + head.len() + len + back.len());
        assert_eq!(bytes[HEADER..][..head.len()], head);
        assert_eq!(bytes[bytes.len() - 1 - back.len()..bytes.len() - 1], back);
        assert_eq!(pack.get(pack.last().unwrap()).byte_len(), len);
    }
}

#[test]
fn back_lengths_of_every_size() {
    // The same source; the last two are too long to build here.
    for (forward, back) in [
        (127, "7f"),
        (128, "01 80"),
        (16383, "7f ff"),
        (16384, "01 80 80"),
        (268435455, "7f ff ff ff"),
        (268435456, "01 80 80 80 80"),
        (u32::MAX as usize, "0f ff ff ff ff"),
    ] {
        let mut slot = vec![0; codec::back_size(forward)];
        codec::write_back(forward, &mut slot);
        assert_eq!(slot, hex(back));
        assert_eq!(
            codec::read_back(&slot, slot.len()),
            Some((forward, slot.len()))
        );
    }
}

#[test]
fn every_edge_reads_back_from_both_ends() {
    let edges = edges();
    let values: Vec<&[u8]> = edges.iter().map(Vec::as_slice).collect();
    let pack = of(&values);
    assert_eq!(texts(&pack), edges);
    let mut back: Vec<_> = pack.iter().rev().map(Entry::to_vec).collect();
    back.reverse();
    assert_eq!(back, edges);
    let mut front = Listpack::new();
    for value in edges.iter().rev() {
        front.push_front(value);
    }
    assert_eq!(front, pack);
    for (index, value) in edges.iter().enumerate() {
        let at = pack.find(value, 0).unwrap();
        assert!(pack.get(at).is(value));
        assert_eq!(Entry::of(value), pack.get(pack.seek(index).unwrap()));
    }
    assert!(Listpack::from_bytes(pack.as_bytes().to_vec()) == Ok(pack));
}

#[test]
fn entries_of_other_writers_are_made_canonical() {
    // "12" as a string, 5 in 64 bits, "a" with a length of 12 and one of 32 bits.
    let entries = hex("82 31 32 03 f4 05 00 00 00 00 00 00 00 09 e0 01 61 03 f0 01 00 00 00 61 06");
    let mut bytes = header(entries.len(), 4).to_vec();
    bytes.extend_from_slice(&entries);
    bytes.push(END);
    assert_eq!(
        Listpack::from_bytes(bytes),
        Ok(of(&[b"12", b"5", b"a", b"a"]))
    );
}

#[test]
fn long_back_lengths_of_older_redis_are_read() {
    // Redis 7.0 writes 16383 as 00 ff ff and 2097151 as 00 ff ff ff.
    for (len, size) in [(16378, 2), (2097146, 3)] {
        let value = vec![b'a'; len];
        let ours = of(&[&value, b"x"]);
        let mut bytes = ours.as_bytes().to_vec();
        let at = HEADER + 5 + len;
        bytes[at] = 0xff;
        bytes.insert(at, 0);
        assert_eq!(
            bytes[at..at + size + 1]
                .iter()
                .filter(|&&b| b == 0xff)
                .count(),
            size
        );
        let total = bytes.len() as u32;
        bytes[..4].copy_from_slice(&total.to_le_bytes());
        assert!(Listpack::from_bytes(bytes) == Ok(ours));
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let whole = of(&[b"field", b"1000", &[b'x'; 200]]).bytes;
    for end in 0..whole.len() {
        assert_eq!(Listpack::from_bytes(whole[..end].to_vec()), Err(Damaged));
    }
    for at in [0, 1, 3, 4, 6, 12, 15, 16, whole.len() - 2, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert_eq!(Listpack::from_bytes(bytes), Err(Damaged), "{at}");
    }
    // A string that would reach over the end byte.
    let bytes = hex("0a 00 00 00 01 00 82 61 03 ff");
    assert_eq!(Listpack::from_bytes(bytes), Err(Damaged));
}

#[test]
fn more_elements_than_the_header_counts() {
    let mut pack = Listpack::new();
    for n in 0..65534 {
        pack.push_back_int(n % 100);
    }
    assert_eq!((pack.len(), pack.as_bytes()[4]), (65534, 0xfe));
    for extra in 1..=10 {
        pack.push_back_int(7);
        assert_eq!(
            (pack.len(), &pack.as_bytes()[4..6]),
            (65534 + extra, &[0xff, 0xff][..])
        );
    }
    let copy = Listpack::from_bytes(pack.as_bytes().to_vec()).unwrap();
    assert_eq!(copy.len(), 65544);
    pack.remove_range(pack.seek(10).unwrap(), 65500);
    assert_eq!(pack.len(), 44);
    // A reload counts again.
    let copy = Listpack::from_bytes(pack.as_bytes().to_vec()).unwrap();
    assert_eq!(&copy.as_bytes()[4..6], &[44, 0]);
    pack.clear();
    assert_eq!(pack, Listpack::new());
}

#[test]
fn find_skips_what_it_is_told_to() {
    let pack = of(&[b"a", b"b", b"b", b"1", b"1", b"c"]);
    let index = |found: Option<Position>| {
        pack.iter()
            .enumerate()
            .find_map(|(index, _)| (pack.seek(index) == found).then_some(index))
    };
    assert_eq!(index(pack.find(b"b", 1)), Some(2));
    assert_eq!(index(pack.find(b"1", 1)), Some(4));
    assert_eq!(index(pack.find(b"1", 0)), Some(3));
    assert_eq!(pack.find(b"c", 1), None);
    assert_eq!(Listpack::new().find(b"", 0), None);
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => prop::collection::vec(b'a'..b'd', 0..4),
        2 => any::<i64>().prop_map(|n| n.to_string().into_bytes()),
        2 => (-200i64..200).prop_map(|n| n.to_string().into_bytes()),
        1 => any::<i32>().prop_map(|n| n.to_string().into_bytes()),
        2 => prop::sample::select(edges()).prop_filter("short", |edge| edge.len() < 20_000),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    Back(Vec<u8>),
    Front(Vec<u8>),
    Before(usize, Vec<u8>),
    After(usize, Vec<u8>),
    Replace(usize, Vec<u8>),
    Remove(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let at = 0usize..60;
    prop_oneof![
        value().prop_map(Op::Back),
        value().prop_map(Op::Front),
        (at.clone(), value()).prop_map(|(at, value)| Op::Before(at, value)),
        (at.clone(), value()).prop_map(|(at, value)| Op::After(at, value)),
        (at.clone(), value()).prop_map(|(at, value)| Op::Replace(at, value)),
        (at, 0usize..4).prop_map(|(at, count)| Op::Remove(at, count)),
    ]
}

/// Does `op` to both; positions beyond the end do nothing.
fn apply(op: Op, pack: &mut Listpack, twin: &mut Vec<Vec<u8>>) {
    match op {
        Op::Back(value) => {
            pack.push_back(&value);
            twin.push(value);
        }
        Op::Front(value) => {
            pack.push_front(&value);
            twin.insert(0, value);
        }
        Op::Before(at, value) => {
            let Some(position) = pack.seek(at) else {
                return;
            };
            let position = pack.insert_before(position, &value);
            assert!(pack.get(position).is(&value));
            twin.insert(at, value);
        }
        Op::After(at, value) => {
            let Some(position) = pack.seek(at) else {
                return;
            };
            let position = pack.insert_after(position, &value);
            assert!(pack.get(position).is(&value));
            twin.insert(at + 1, value);
        }
        Op::Replace(at, value) => {
            let Some(position) = pack.seek(at) else {
                return;
            };
            pack.replace(position, &value);
            twin[at] = value;
        }
        Op::Remove(at, count) => {
            let Some(position) = pack.seek(at) else {
                return;
            };
            let after = pack.remove_range(position, count);
            twin.drain(at..(at + count).min(twin.len()));
            assert_eq!(
                after.map(|after| pack.get(after).to_vec()),
                twin.get(at).cloned()
            );
        }
    }
}

proptest! {
    #[test]
    fn behaves_as_a_vec(ops in prop::collection::vec(op(), 0..80)) {
        let (mut pack, mut twin) = (Listpack::new(), Vec::new());
        for op in ops {
            apply(op, &mut pack, &mut twin);
            prop_assert_eq!(pack.len(), twin.len());
            prop_assert_eq!(pack.is_empty(), twin.is_empty());
        }
        prop_assert_eq!(texts(&pack), twin.clone());
        prop_assert!(pack.iter().rev().map(Entry::to_vec).eq(twin.iter().rev().cloned()));
        for (index, value) in twin.iter().enumerate() {
            let at = pack.seek(index).unwrap();
            prop_assert_eq!(Some(at), pack.seek_back(twin.len() - 1 - index));
            prop_assert!(pack.get(at).is(value));
            let first = twin.iter().step_by(3).position(|other| other == value).map(|n| n * 3);
            prop_assert_eq!(pack.find(value, 2), first.and_then(|first| pack.seek(first)));
            prop_assert_eq!(pack.next(at), pack.seek(index + 1));
            prop_assert_eq!(pack.prev(at), index.checked_sub(1).and_then(|at| pack.seek(at)));
        }
        prop_assert_eq!(pack.seek(twin.len()), None);
        prop_assert!(pack.memory_bytes() <= 2 * pack.byte_len() + pack.byte_len() / 2 + 64);
        prop_assert!(Listpack::from_bytes(pack.as_bytes().to_vec()) == Ok(pack));
    }

    #[test]
    fn any_bytes_are_safe(
        entries in prop::collection::vec(any::<u8>(), 0..40), count in 0usize..9,
    ) {
        let count = if count == 8 { 65535 } else { count };
        let mut bytes = header(entries.len(), count).to_vec();
        bytes.extend_from_slice(&entries);
        bytes.push(END);
        if let Ok(pack) = Listpack::from_bytes(bytes) {
            prop_assert_eq!(pack.iter().rev().count(), pack.len());
            prop_assert!(Listpack::from_bytes(pack.as_bytes().to_vec()) == Ok(pack));
        }
    }

    #[test]
    fn a_flipped_byte_is_safe(
        values in prop::collection::vec(value(), 1..6),
        at in any::<prop::sample::Index>(),
        byte: u8,
    ) {
        let mut pack = Listpack::new();
        values.iter().for_each(|value| pack.push_back(value));
        let mut bytes = pack.into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(pack) = Listpack::from_bytes(bytes) {
            prop_assert_eq!(pack.iter().rev().count(), pack.len());
        }
    }
}
