use super::*;
use proptest::prelude::*;
use std::collections::VecDeque;

fn texts(list: &List) -> Vec<Vec<u8>> {
    list.iter().map(Entry::to_vec).collect()
}

fn numbered(n: usize, limit: Limit) -> List {
    let mut list = List::new();
    for index in 0..n {
        list.push_back(format!("item:{index:08}").as_bytes(), limit);
    }
    list
}

/// Pushes "a" one at a time; the lengths at which the encoding changes, going up and down again.
fn turns(setting: i64) -> (usize, usize) {
    let (limit, mut list) = (Limit::new(setting), List::new());
    while list.encoding() == "listpack" {
        list.push_back(b"a", limit);
    }
    let up = list.len();
    while list.encoding() == "quicklist" {
        list.drop_back(1, limit);
    }
    (up, list.len())
}

#[test]
fn encodings_change_where_redis_changes_them() {
    // Asked of a Redis 8.10, with RPUSH and RPOP.
    for (setting, up, down) in [
        (-1, 1364, 680),
        (-2, 2730, 1363),
        (-5, 21844, 10920),
        (-6, 21844, 10920),
        (0, 2, 0),
        (1, 2, 0),
        (3, 4, 1),
        (128, 129, 64),
        (5000, 2730, 2500),
        (40000, 2730, 2729),
    ] {
        assert_eq!(
            turns(setting),
            (up, down),
            "list-max-listpack-size {setting}"
        );
    }
}

#[test]
fn one_command_meets_the_limit_once() {
    // The same source: 8185 items of one byte and the empty listpack's 7 are 8192.
    let limit = Limit::new(-2);
    for (items, encoding) in [(8185, "listpack"), (8186, "quicklist")] {
        let mut list = List::new();
        list.push_back_all(std::iter::repeat_n(&b"a"[..], items), limit);
        assert_eq!((list.len(), list.encoding()), (items, encoding));
        list.push_back(b"a", limit);
        assert_eq!(list.encoding(), "quicklist");
        list.check_invariants();
    }
    let mut list = List::new();
    list.push_front_all([&b"a"[..], b"b", b"c"], limit);
    assert_eq!(texts(&list), [b"c", b"b", b"a"]);
}

#[test]
fn large_items_get_chunks_of_their_own() {
    for (setting, len, encoding, plain) in [
        (-1, 4090, "quicklist", false),
        (-1, 8000, "quicklist", true),
        (-2, 8185, "listpack", false),
        (-2, 8190, "quicklist", false),
        (-2, 8192, "quicklist", false),
        (-2, 8193, "quicklist", true),
        (-5, 65536, "quicklist", false),
        (-5, 65537, "quicklist", true),
        (128, 8193, "quicklist", true),
    ] {
        let (limit, item) = (Limit::new(setting), vec![b'b'; len]);
        let mut list = List::new();
        list.push_back(&item, limit);
        assert_eq!(list.encoding(), encoding, "{setting} {len}");
        assert_eq!(
            matches!(list.chunks().next(), Some(ChunkBytes::Plain(_))),
            plain
        );
        assert_eq!(list.pop_front(limit), Some(item));
        assert_eq!((list.len(), list.encoding()), (0, "listpack"));
    }
}

#[test]
fn changes_of_plain_items_end_as_in_redis() {
    let (limit, large) = (Limit::new(-2), vec![b'a'; 9000]);
    let mut list = List::new();
    list.push_back(&large, limit);
    assert!(list.set(0, b"b", limit));
    assert_eq!(list.encoding(), "listpack");
    assert!(list.set(0, &large, limit));
    assert_eq!(list.encoding(), "quicklist");
    list.push_back(b"x", limit);
    assert_eq!(list.remove(0, &large, limit), 1);
    assert_eq!(
        (texts(&list), list.encoding()),
        (vec![b"x".to_vec()], "listpack")
    );
    // One chunk of more than half the limit stays as it is.
    let mut list = List::new();
    list.push_back(&large, limit);
    list.push_back_all(std::iter::repeat_n(&[b'q'; 100][..], 50), limit);
    assert!(list.set(0, b"z", limit));
    assert_eq!((list.chunk_count(), list.encoding()), (1, "quicklist"));
    list.settle(limit);
    assert_eq!(list.encoding(), "listpack");
}

#[test]
fn chunks_are_listpacks_and_load_again() {
    let limit = Limit::new(-2);
    let mut list = numbered(5000, limit);
    list.push_front(&[b'p'; 10_000], limit);
    list.push_front(b"first", limit);
    let mut loaded = List::new();
    for chunk in list.chunks() {
        let mut bytes = Vec::new();
        chunk.write(&mut bytes);
        assert_eq!(bytes.len(), chunk.byte_len());
        match chunk {
            ChunkBytes::Plain(_) => loaded.load_plain(bytes),
            ChunkBytes::Packed { .. } => {
                loaded.load_listpack(Listpack::from_bytes(bytes).unwrap());
            }
        }
    }
    loaded.settle(limit);
    assert_eq!(
        (texts(&loaded), loaded.encoding()),
        (texts(&list), "quicklist")
    );
    loaded.check_invariants();
    let mut small = List::new();
    small.load_plain(Vec::new());
    small.settle(limit);
    assert_eq!(
        (texts(&small), small.encoding()),
        (vec![Vec::new()], "listpack")
    );
}

#[test]
fn long_lists_are_indexed_everywhere() {
    for setting in [2, -2] {
        let limit = Limit::new(setting);
        let list = numbered(20_000, limit);
        list.check_invariants();
        for index in (0..20_000).step_by(7).chain([0, 9_999, 10_000, 19_999]) {
            let expected = format!("item:{index:08}");
            assert!(list.get(index).unwrap().is(expected.as_bytes()));
            assert!(list.range(index, 3).next().unwrap().is(expected.as_bytes()));
            assert!(
                list.range_rev(index, 3)
                    .next()
                    .unwrap()
                    .is(expected.as_bytes())
            );
        }
        assert_eq!(list.get(20_000), None);
    }
}

#[test]
fn ends_in_turn_do_not_move_everything() {
    // A chunk's buffer keeps its place while there is slack at both ends.
    let (limit, mut list, mut moves, mut last) = (Limit::new(-5), List::new(), 0, 0);
    for n in 0..4000 {
        match n % 2 {
            0 => list.push_front(b"abcdef", limit),
            _ => list.push_back(b"abcdef", limit),
        }
        let Form::Single(chunk) = &list.form else {
            break;
        };
        let at = chunk.memory_bytes();
        moves += usize::from(at != last);
        last = at;
    }
    assert!(moves < 80, "{moves} moves");
}

#[test]
fn memory_stays_close_to_the_contents() {
    let limit = Limit::new(-2);
    for push in [List::push_back, List::push_front] {
        let mut list = List::new();
        for n in 0..100_000 {
            push(&mut list, format!("item:{n:08}").as_bytes(), limit);
        }
        let contents: usize = list.chunks().map(|chunk| chunk.byte_len()).sum();
        assert!(
            list.memory_bytes() < contents + contents / 50 + 16384,
            "{}",
            list.memory_bytes()
        );
    }
    let mut queue = List::new();
    for n in 0..100_000 {
        queue.push_back(format!("item:{n:08}").as_bytes(), limit);
        if n >= 20 {
            queue.drop_front(1, limit);
        }
        assert!(queue.memory_bytes() < 1024);
    }
}

#[test]
fn a_huge_list_is_freed_in_slices() {
    let limit = Limit::new(-2);
    let mut list = numbered(100_000, limit);
    let mut garbage = list.trim(10, 10, limit);
    assert!(garbage.is_none());
    garbage = list.trim(90_000, 0, limit);
    assert_eq!(list.len(), 9_980);
    list.check_invariants();
    assert!(garbage.is_none_or(|mut garbage| garbage.free_some(usize::MAX)));
    let (chunks, mut slices) = (list.chunk_count(), 1);
    while !list.free_some(3) {
        list.check_invariants();
        slices += 1;
    }
    assert_eq!(slices, chunks.div_ceil(3));
    assert_eq!((list.len(), list.memory_bytes()), (0, 0));
    // With small chunks, whole blocks are handed over.
    let limit = Limit::new(1);
    let mut list = numbered(5_000, limit);
    let mut garbage = list.trim(2_000, 2_000, limit).unwrap();
    assert_eq!(list.len(), 1_000);
    list.check_invariants();
    garbage.check_invariants();
    assert!(garbage.len() > 2_500);
    assert!(!garbage.free_some(10));
    garbage.check_invariants();
}

fn item() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(b'a'..b'c', 0..2),
        4 => (-100i64..5000).prop_map(|n| n.to_string().into_bytes()),
        2 => (0usize..300).prop_map(|len| vec![b'x'; len]),
        1 => (3000usize..4200).prop_map(|len| vec![b'y'; len]),
        1 => (8000usize..9000).prop_map(|len| vec![b'z'; len]),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    Front(Vec<u8>),
    Back(Vec<u8>),
    Fill(u16),
    PopFront(usize),
    PopBack(usize),
    Set(usize, Vec<u8>),
    InsertAt(usize, Vec<u8>),
    Insert(bool, Vec<u8>, Vec<u8>),
    Remove(i64, Vec<u8>),
    Trim(usize, usize),
}

fn op() -> impl Strategy<Value = Op> {
    let at = || prop_oneof![0usize..30, 0usize..2000];
    prop_oneof![
        3 => item().prop_map(Op::Front),
        3 => item().prop_map(Op::Back),
        1 => (0u16..700).prop_map(Op::Fill),
        1 => (0usize..4).prop_map(Op::PopFront),
        1 => (0usize..4).prop_map(Op::PopBack),
        2 => (at(), item()).prop_map(|(at, item)| Op::Set(at, item)),
        3 => (at(), item()).prop_map(|(at, item)| Op::InsertAt(at, item)),
        2 => (any::<bool>(), item(), item()).prop_map(|(b, p, i)| Op::Insert(b, p, i)),
        2 => (-20i64..20, item()).prop_map(|(count, item)| Op::Remove(count, item)),
        1 => (at(), at()).prop_map(|(front, back)| Op::Trim(front, back)),
    ]
}

fn remove_from_twin(twin: &mut VecDeque<Vec<u8>>, count: i64, value: &[u8]) -> usize {
    let mut found: Vec<usize> = (0..twin.len()).filter(|&at| twin[at] == value).collect();
    if count < 0 {
        found.reverse();
    }
    if count != 0 {
        found.truncate(count.unsigned_abs() as usize);
    }
    found.sort_unstable();
    for at in found.iter().rev() {
        twin.remove(*at);
    }
    found.len()
}

fn apply(op: Op, list: &mut List, twin: &mut VecDeque<Vec<u8>>, limit: Limit) {
    match op {
        Op::Front(item) => {
            list.push_front(&item, limit);
            twin.push_front(item);
        }
        Op::Back(item) => {
            list.push_back(&item, limit);
            twin.push_back(item);
        }
        Op::Fill(n) => {
            for n in 0..n {
                let item = (n % 10).to_string().into_bytes();
                list.push_back(&item, limit);
                twin.push_back(item);
            }
        }
        Op::PopFront(n) => {
            assert_eq!(list.pop_front(limit), twin.pop_front());
            list.drop_front(n, limit);
            twin.drain(..n.min(twin.len()));
        }
        Op::PopBack(n) => {
            assert_eq!(list.pop_back(limit), twin.pop_back());
            list.drop_back(n, limit);
            twin.truncate(twin.len().saturating_sub(n));
        }
        Op::Set(at, item) => {
            assert_eq!(list.set(at, &item, limit), at < twin.len());
            if let Some(slot) = twin.get_mut(at) {
                *slot = item;
            }
        }
        Op::InsertAt(at, item) => {
            list.insert_at(at, &item, limit);
            twin.insert(at.min(twin.len()), item);
        }
        Op::Insert(before, pivot, item) => {
            let found = twin.iter().position(|other| *other == pivot);
            assert_eq!(list.find(&pivot), found);
            let side = if before { Side::Before } else { Side::After };
            assert_eq!(list.insert(side, &pivot, &item, limit), found.is_some());
            if let Some(at) = found {
                twin.insert(at + usize::from(!before), item);
            }
        }
        Op::Remove(count, value) => {
            let removed = list.remove(count, &value, limit);
            assert_eq!(removed, remove_from_twin(twin, count, &value));
        }
        Op::Trim(front, back) => {
            let _ = list
                .trim(front, back, limit)
                .map(|mut garbage| garbage.free_some(9999));
            twin.drain(..front.min(twin.len()));
            twin.truncate(twin.len().saturating_sub(back));
        }
    }
}

proptest! {
    #[test]
    fn behaves_as_a_vec_deque(
        ops in prop::collection::vec(op(), 0..120),
        setting in prop::sample::select(&[1i64, 2, 7, 128, -1, -2, -5][..]),
    ) {
        let limit = Limit::new(setting);
        let (mut list, mut twin) = (List::new(), VecDeque::new());
        let mut frozen = Vec::new();
        for (count, op) in ops.into_iter().enumerate() {
            if count % 16 == 7 {
                frozen.push((list.freeze(), twin.clone()));
            }
            apply(op, &mut list, &mut twin, limit);
            prop_assert_eq!(list.len(), twin.len());
            list.check_invariants();
            prop_assert_eq!(list.front().map(Entry::to_vec), twin.front().cloned());
            prop_assert_eq!(list.back().map(Entry::to_vec), twin.back().cloned());
        }
        prop_assert!(list.iter().map(Entry::to_vec).eq(twin.iter().cloned()));
        prop_assert!(list.iter_rev().map(Entry::to_vec).eq(twin.iter().rev().cloned()));
        for start in [0, 1, twin.len() / 2, twin.len().saturating_sub(1), twin.len()] {
            let forward = twin.iter().skip(start).take(40).cloned();
            prop_assert!(list.range(start, 40).map(Entry::to_vec).eq(forward));
            if start < twin.len() {
                let backward = twin.iter().take(start + 1).rev().take(40).cloned();
                prop_assert!(list.range_rev(start, 40).map(Entry::to_vec).eq(backward));
            }
        }
        let copy = list.clone();
        copy.check_invariants();
        prop_assert_eq!(texts(&copy), texts(&list));
        drop(list);
        for (frozen, twin) in frozen {
            frozen.check_invariants();
            prop_assert!(frozen.iter().map(Entry::to_vec).eq(twin.iter().cloned()));
        }
    }
}
