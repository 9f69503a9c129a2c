//! The stream against a `BTreeMap` of entries and one of pending entries.
#![no_main]

use fuzz::Input;
use libfuzzer_sys::fuzz_target;
use std::collections::{BTreeMap, BTreeSet};
use structure::stream::{BlockLimits, IdempotencyLimits, References, Stream, StreamId, Threshold};

type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn id(input: &mut Input<'_>) -> StreamId {
    StreamId::new(u64::from(input.byte() / 8), u64::from(input.byte() / 8))
}

fn fields_of(entry: structure::stream::Entry<'_>) -> Fields {
    entry
        .fields
        .map(|(name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

fuzz_target!(|bytes: &[u8]| {
    let mut input = Input::new(bytes);
    let limits = BlockLimits {
        entries: 5,
        ..BlockLimits::default()
    };
    let mut stream = Stream::new(IdempotencyLimits::default());
    let mut twin: BTreeMap<StreamId, Fields> = BTreeMap::new();
    let mut held: BTreeSet<StreamId> = BTreeSet::new();
    stream
        .create_group(b"g", StreamId::MIN, Some(0))
        .expect("the first of its name");
    let consumer = stream
        .group_mut(b"g")
        .expect("just created")
        .add_consumer(b"c", 0)
        .0;
    while let Some(operation) = input.operation() {
        match operation % 8 {
            0..3 => {
                let id = match operation & 8 {
                    0 => stream.next_id(u64::from(input.byte())),
                    _ => Some(id(&mut input)),
                };
                let count = usize::from(input.byte() % 4) + 1;
                let fields: Fields = (0..count).map(|_| (input.word(), input.word())).collect();
                let Some(id) = id else { continue };
                let goes = id > stream.last_id();
                let words = fields
                    .iter()
                    .flat_map(|(n, v)| [n.as_slice(), v.as_slice()]);
                assert_eq!(stream.append(id, words, limits), goes);
                if goes {
                    twin.insert(id, fields);
                }
            }
            3 => {
                let id = id(&mut input);
                assert_eq!(stream.delete(id), twin.remove(&id).is_some());
            }
            4 => {
                let id = id(&mut input);
                let got = stream.get(id).map(fields_of);
                assert_eq!(got.as_ref(), twin.get(&id));
                let end = StreamId::MAX;
                let ids: Vec<_> = stream.range(id, end).map(|entry| entry.id).collect();
                assert!(ids.iter().eq(twin.range(id..).map(|(id, _)| id)));
                let ids: Vec<_> = stream.range_back(id, end).map(|entry| entry.id).collect();
                assert!(ids.iter().eq(twin.range(id..).rev().map(|(id, _)| id)));
            }
            5 => {
                let keep = u64::from(input.byte() % 16);
                let removed = stream.trim(Threshold::Length(keep), false, 0, References::Keep);
                let before = twin.len() as u64;
                while twin.len() as u64 > keep {
                    twin.pop_first();
                }
                assert_eq!(removed, before - twin.len() as u64);
            }
            6 => {
                let id = id(&mut input);
                let group = stream.group_mut(b"g").expect("never removed");
                assert_eq!(group.hold(id, consumer, 7, 1), held.insert(id));
            }
            _ => {
                let id = id(&mut input);
                let group = stream.group_mut(b"g").expect("never removed");
                assert_eq!(group.acknowledge(id).is_some(), held.remove(&id));
                let pending = group.pending_range(StreamId::MIN, StreamId::MAX, None);
                assert!(pending.map(|entry| entry.id).eq(held.iter().copied()));
            }
        }
        assert_eq!(stream.len(), twin.len() as u64);
        assert_eq!(
            stream.group(b"g").expect("never removed").pending_len(),
            held.len() as u64
        );
    }
    stream.check_invariants();
    let all: Vec<_> = stream
        .range(StreamId::MIN, StreamId::MAX)
        .map(|e| (e.id, fields_of(e)))
        .collect();
    assert_eq!(all, twin.into_iter().collect::<Vec<_>>());
    while !stream.free_some(1) {}
});
