use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

const EDGES: [i64; 15] = [
    0,
    1,
    -1,
    0x7FFF,
    0x8000,
    -0x8000,
    -0x8001,
    0x7FFF_FFFF,
    0x8000_0000,
    -0x8000_0000,
    -0x8000_0001,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
    i64::MIN + 1,
];

fn of(ints: &[i64]) -> Intset {
    let mut set = Intset::new();
    for &n in ints {
        set.insert(n);
    }
    set
}

#[test]
fn bytes_are_those_of_redis() {
    // From DUMP on a Redis 8.10, without type, length and checksum.
    let cases: [(&[i64], &[u8]); 4] = [
        (&[1, 2, 3], &[2, 0, 0, 0, 3, 0, 0, 0, 1, 0, 2, 0, 3, 0]),
        (&[40000], &[4, 0, 0, 0, 1, 0, 0, 0, 0x40, 0x9c, 0, 0]),
        (
            &[-40000, 1],
            &[4, 0, 0, 0, 2, 0, 0, 0, 0xc0, 0x63, 0xff, 0xff, 1, 0, 0, 0],
        ),
        (
            &[1 << 40],
            &[8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0],
        ),
    ];
    for (ints, bytes) in cases {
        assert_eq!(of(ints).as_bytes(), bytes);
        assert_eq!(Intset::from_bytes(bytes.to_vec()), Ok(of(ints)));
    }
}

#[test]
fn damaged_bytes_are_refused() {
    let whole = of(&[1, 2, 70000]).bytes;
    for end in 0..whole.len() {
        assert_eq!(Intset::from_bytes(whole[..end].to_vec()), Err(Damaged));
    }
    for (at, byte) in [(0, 3), (0, 0), (3, 1), (4, 2), (4, 4), (8, 2), (8, 3)] {
        let mut bytes = whole.clone();
        bytes[at] = byte;
        assert_eq!(Intset::from_bytes(bytes), Err(Damaged), "{at} {byte}");
    }
}

#[test]
fn memory_follows_the_contents_down() {
    let mut set = of(&(0..10_000).collect::<Vec<_>>());
    for n in 10..10_000 {
        assert!(set.remove(n));
    }
    assert_eq!(set.len(), 10);
    assert!(set.memory_bytes() < 128, "{}", set.memory_bytes());
}

fn int() -> impl Strategy<Value = i64> {
    prop_oneof![
        prop::sample::select(&EDGES[..]),
        -50i64..50,
        any::<i16>().prop_map(i64::from),
        any::<i32>().prop_map(i64::from),
        any::<i64>()
    ]
}

proptest! {
    #[test]
    fn behaves_as_a_btree_set(ops in prop::collection::vec((0u8..4, int()), 0..200)) {
        let (mut set, mut twin) = (Intset::new(), BTreeSet::new());
        for (op, n) in ops {
            match op {
                0 | 1 => prop_assert_eq!(set.insert(n), twin.insert(n)),
                2 => prop_assert_eq!(set.remove(n), twin.remove(&n)),
                _ => prop_assert_eq!(set.contains(n), twin.contains(&n)),
            }
            prop_assert_eq!(set.len(), twin.len());
        }
        prop_assert!(set.iter().eq(twin.iter().copied()));
        prop_assert!(set.iter().rev().eq(twin.iter().rev().copied()));
        for (index, n) in twin.iter().enumerate() {
            prop_assert_eq!(set.get(index), Some(*n));
        }
        prop_assert_eq!(set.get(twin.len()), None);
        prop_assert_eq!(Intset::from_bytes(set.as_bytes().to_vec()), Ok(set));
    }

    #[test]
    fn any_bytes_are_safe(bytes in prop::collection::vec(any::<u8>(), 0..64), width in 0usize..4) {
        let mut bytes = bytes;
        if bytes.len() >= HEADER {
            let width = [1, 2, 4, 8][width];
            let len = (bytes.len() - HEADER) / width;
            bytes[..HEADER].copy_from_slice(&[width as u8, 0, 0, 0, len as u8, 0, 0, 0]);
        }
        if let Ok(set) = Intset::from_bytes(bytes) {
            prop_assert!(set.iter().is_sorted());
        }
    }
}
