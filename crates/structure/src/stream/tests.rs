//! The stream against a naive twin: a tree of whole entries, and groups that are trees of tuples.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Pair = (Vec<u8>, Vec<u8>);

#[derive(Default)]
struct TwinGroup {
    last: StreamId,
    /// Consumer, delivery time, deliveries.
    pending: BTreeMap<StreamId, (Option<Vec<u8>>, u64, u64)>,
    /// Ids from the oldest to the newest delivery; released ones before all others.
    released: Vec<StreamId>,
    held: Vec<(u64, StreamId)>,
}

impl TwinGroup {
    fn forget_age(&mut self, id: StreamId) {
        self.released.retain(|other| *other != id);
        self.held.retain(|(_, other)| *other != id);
    }

    fn hold(&mut self, id: StreamId, consumer: &[u8], ms: u64, count: u64) {
        self.forget_age(id);
        let at = self.held.partition_point(|(other, _)| *other <= ms);
        self.held.insert(at, (ms, id));
        self.pending
            .insert(id, (Some(consumer.to_vec()), ms, count));
    }

    fn release(&mut self, id: StreamId, count: u64) {
        self.forget_age(id);
        self.released.push(id);
        self.pending.insert(id, (None, 0, count));
    }

    fn acknowledge(&mut self, id: StreamId) -> bool {
        self.forget_age(id);
        self.pending.remove(&id).is_some()
    }

    fn references(&self, id: StreamId) -> bool {
        id > self.last || self.pending.contains_key(&id)
    }
}

#[derive(Default)]
struct Twin {
    entries: BTreeMap<StreamId, Vec<Pair>>,
    groups: BTreeMap<Vec<u8>, TwinGroup>,
}

impl Twin {
    fn delete(&mut self, id: StreamId, references: References) -> Deletion {
        match references {
            References::Delete => {
                for group in self.groups.values_mut() {
                    group.acknowledge(id);
                }
            }
            References::Acknowledged if self.groups.values().any(|g| g.references(id)) => {
                return Deletion::Referenced;
            }
            _ => {}
        }
        match self.entries.remove(&id) {
            Some(_) => Deletion::Deleted,
            None => Deletion::Missing,
        }
    }

    fn trim(&mut self, threshold: Threshold, references: References) -> u64 {
        let mut removed = 0;
        for id in self.entries.keys().copied().collect::<Vec<_>>() {
            let due = match threshold {
                Threshold::Length(length) => self.entries.len() as u64 > length,
                Threshold::Id(min) => id < min,
            };
            if due && self.delete(id, references) == Deletion::Deleted {
                removed += 1;
            }
        }
        removed
    }
}

#[derive(Clone, Debug)]
enum Op {
    Append {
        step: u64,
        seq: u64,
        names: u8,
        value: Vec<u8>,
    },
    Delete {
        pick: u64,
        references: u8,
    },
    Trim {
        by_id: bool,
        amount: u64,
        references: u8,
        approximate: bool,
        limit: u64,
    },
    Read {
        group: u8,
        consumer: u8,
        count: usize,
        ms: u64,
    },
    Claim {
        group: u8,
        consumer: u8,
        pick: u64,
        ms: u64,
        count: u64,
    },
    Release {
        group: u8,
        pick: u64,
        count: u64,
    },
    Acknowledge {
        group: u8,
        pick: u64,
        many: u64,
    },
    AcknowledgeDelete {
        group: u8,
        pick: u64,
        references: u8,
    },
    RemoveConsumer {
        group: u8,
        consumer: u8,
    },
    Oldest {
        group: u8,
        ms: u64,
        count: usize,
    },
}

fn ops() -> impl Strategy<Value = Op> {
    let value = prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..12),
        1 => prop::collection::vec(any::<u8>(), 100..300),
    ];
    let step = prop_oneof![4 => 0u64..3, 2 => 0u64..1000, 1 => any::<u64>().prop_map(|n| n >> 20)];
    let seq = prop_oneof![6 => 0u64..4, 1 => any::<u64>()];
    let count = prop_oneof![6 => 0u64..20, 1 => 65_000u64..66_000, 1 => Just(DELIVERIES_MAX)];
    prop_oneof![
        12 => (step, seq, 0u8..4, value)
            .prop_map(|(step, seq, names, value)| Op::Append { step, seq, names, value }),
        4 => (any::<u64>(), 0u8..3).prop_map(|(pick, references)| Op::Delete { pick, references }),
        1 => (any::<bool>(), 0u64..200, 0u8..3, any::<bool>(), 0u64..50).prop_map(
            |(by_id, amount, references, approximate, limit)| {
                Op::Trim { by_id, amount, references, approximate, limit }
            }
        ),
        6 => (0u8..3, 0u8..4, 0usize..40, 0u64..1000)
            .prop_map(|(group, consumer, count, ms)| Op::Read { group, consumer, count, ms }),
        4 => (0u8..3, 0u8..4, any::<u64>(), 0u64..1000, count.clone()).prop_map(
            |(group, consumer, pick, ms, count)| Op::Claim { group, consumer, pick, ms, count }
        ),
        2 => (0u8..3, any::<u64>(), count)
            .prop_map(|(group, pick, count)| Op::Release { group, pick, count }),
        5 => (0u8..3, any::<u64>(), 1u64..30)
            .prop_map(|(group, pick, many)| Op::Acknowledge { group, pick, many }),
        2 => (0u8..3, any::<u64>(), 0u8..3)
            .prop_map(|(group, pick, references)| {
                Op::AcknowledgeDelete { group, pick, references }
            }),
        1 => (0u8..3, 0u8..4).prop_map(|(group, consumer)| Op::RemoveConsumer { group, consumer }),
        2 => (0u8..3, 0u64..1000, 0usize..20)
            .prop_map(|(group, ms, count)| Op::Oldest { group, ms, count }),
    ]
}

fn references_of(n: u8) -> References {
    [
        References::Keep,
        References::Delete,
        References::Acknowledged,
    ][usize::from(n)]
}

fn fields_of(names: u8, value: &[u8]) -> Vec<Pair> {
    let all: [&[&[u8]]; 4] = [
        &[b"a"],
        &[b"a", b"longer name"],
        &[b"b"],
        &[b"a", b"b", b""],
    ];
    let pair = |name: &&[u8]| (name.to_vec(), value.to_vec());
    all[usize::from(names)].iter().map(pair).collect()
}

fn flat(fields: &[Pair]) -> impl Iterator<Item = &[u8]> + Clone {
    fields
        .iter()
        .flat_map(|(name, value)| [&name[..], &value[..]])
}

fn owned(entry: Entry<'_>) -> (StreamId, Vec<Pair>) {
    let fields = entry
        .fields
        .map(|(name, value)| (name.to_vec(), value.to_vec()));
    (entry.id, fields.collect())
}

fn pick<T: Copy>(from: impl ExactSizeIterator<Item = T>, n: u64) -> Option<T> {
    let len = from.len();
    let mut from = from;
    if len == 0 {
        None
    } else {
        from.nth(n as usize % len)
    }
}

struct Twins {
    stream: Stream,
    twin: Twin,
    limits: BlockLimits,
}

impl Twins {
    fn new(limits: BlockLimits) -> Twins {
        let mut pair = Twins {
            stream: Stream::default(),
            twin: Twin::default(),
            limits,
        };
        for name in [b"g0", b"g1", b"g2"] {
            pair.stream.create_group(name, StreamId::MIN, None);
            pair.twin.groups.insert(name.to_vec(), TwinGroup::default());
        }
        pair
    }

    fn group(&mut self, n: u8) -> (Vec<u8>, &mut TwinGroup) {
        let name = vec![b'g', b'0' + n];
        let group = self.twin.groups.get_mut(&name).expect("the groups exist");
        (name, group)
    }

    fn apply(&mut self, op: Op) {
        match op {
            Op::Append {
                step,
                seq,
                names,
                value,
            } => {
                let last = self.stream.last_id();
                let Some(ms) = last.ms.checked_add(step) else {
                    return;
                };
                let id = StreamId { ms, seq };
                let fields = fields_of(names, &value);
                let added = self.stream.append(id, flat(&fields), self.limits);
                assert_eq!(added, id > last);
                if added {
                    self.twin.entries.insert(id, fields);
                }
            }
            Op::Delete {
                pick: n,
                references,
            } => {
                let Some(id) = pick(self.twin.entries.keys().copied(), n) else {
                    return;
                };
                let id = if n % 5 == 0 {
                    id.next().unwrap_or(id)
                } else {
                    id
                };
                let references = references_of(references);
                let there = self.twin.delete(id, references);
                assert_eq!(self.stream.delete_with(id, references), there);
            }
            Op::Trim {
                by_id,
                amount,
                references,
                approximate,
                limit,
            } => {
                self.trim(by_id, amount, references_of(references), approximate, limit);
            }
            Op::Read {
                group,
                consumer,
                count,
                ms,
            } => self.read(group, consumer, count, ms),
            Op::Claim {
                group,
                consumer,
                pick: n,
                ms,
                count,
            } => {
                let (name, twin) = self.group(group);
                let Some(id) = pick(twin.pending.keys().copied(), n) else {
                    return;
                };
                twin.hold(id, &[consumer], ms, count);
                let group = self.stream.group_mut(&name).expect("a group");
                let (index, _) = group.add_consumer(&[consumer], ms);
                assert!(!group.hold(id, index, ms, count));
            }
            Op::Release {
                group,
                pick: n,
                count,
            } => {
                let (name, twin) = self.group(group);
                let Some(id) = pick(twin.pending.keys().copied(), n) else {
                    return;
                };
                twin.release(id, count);
                assert!(
                    !self
                        .stream
                        .group_mut(&name)
                        .expect("a group")
                        .release(id, count)
                );
            }
            Op::Acknowledge {
                group,
                pick: n,
                many,
            } => {
                let (name, twin) = self.group(group);
                let Some(first) = pick(twin.pending.keys().copied(), n) else {
                    return;
                };
                let ids = twin.pending.range(first..).take(many as usize);
                let ids: Vec<StreamId> = ids.map(|(id, _)| *id).collect();
                for id in ids {
                    self.group(group).1.acknowledge(id);
                    let group = self.stream.group_mut(&name).expect("a group");
                    assert!(group.acknowledge(id).is_some());
                    assert!(group.acknowledge(id).is_none());
                }
            }
            Op::AcknowledgeDelete {
                group,
                pick: n,
                references,
            } => {
                let (name, twin) = self.group(group);
                let Some(id) = pick(twin.pending.keys().copied(), n) else {
                    return;
                };
                let references = references_of(references);
                twin.acknowledge(id);
                let expected = match self.twin.delete(id, references) {
                    Deletion::Referenced => Deletion::Referenced,
                    _ => Deletion::Deleted,
                };
                assert_eq!(
                    self.stream.acknowledge_delete(&name, id, references),
                    expected
                );
            }
            Op::RemoveConsumer { group, consumer } => {
                let (name, twin) = self.group(group);
                let held = twin
                    .pending
                    .iter()
                    .filter(|(_, (c, ..))| c.as_deref() == Some(&[consumer]));
                let ids: Vec<StreamId> = held.map(|(id, _)| *id).collect();
                for id in &ids {
                    twin.acknowledge(*id);
                }
                let removed = self
                    .stream
                    .group_mut(&name)
                    .expect("a group")
                    .remove_consumer(&[consumer]);
                assert_eq!(removed.unwrap_or(0), ids.len() as u64);
            }
            Op::Oldest { group, ms, count } => {
                let (name, twin) = self.group(group);
                let held = twin
                    .held
                    .iter()
                    .filter(|(at, _)| *at <= ms)
                    .map(|(_, id)| id);
                let ids = twin
                    .released
                    .iter()
                    .chain(held)
                    .filter(|id| id.seq % 3 != 2);
                let expected: Vec<StreamId> = ids.take(count).copied().collect();
                let group = self.stream.group(&name).expect("a group");
                let found = group.claimable(Some(ms), count, |id| id.seq % 3 != 2);
                assert_eq!(found.iter().map(|e| e.id).collect::<Vec<_>>(), expected);
            }
        }
    }

    fn trim(&mut self, by_id: bool, amount: u64, references: References, about: bool, limit: u64) {
        let threshold = if by_id {
            let Some(id) = pick(self.twin.entries.keys().copied(), amount) else {
                return;
            };
            Threshold::Id(id)
        } else {
            Threshold::Length(amount)
        };
        if !about {
            let removed = self.twin.trim(threshold, references);
            assert_eq!(self.stream.trim(threshold, false, 0, references), removed);
            return;
        }
        // What an approximate trim removed depends on the blocks: it is a part of the exact one.
        let removed = self.stream.trim(threshold, true, limit, references);
        assert!(limit == 0 || removed <= limit);
        let gone: Vec<StreamId> = self
            .twin
            .entries
            .keys()
            .filter(|id| self.stream.get(**id).is_none())
            .copied()
            .collect();
        assert_eq!(gone.len() as u64, removed);
        for id in gone {
            if let Threshold::Id(min) = threshold {
                assert!(id < min);
            }
            assert_eq!(self.twin.delete(id, references), Deletion::Deleted);
        }
        if let (Threshold::Length(length), true) = (threshold, removed > 0) {
            assert!(self.stream.len() >= length);
        }
    }

    fn read(&mut self, group: u8, consumer: u8, count: usize, ms: u64) {
        let name = self.group(group).0;
        let (group_, entries) = self.stream.group_and_entries(&name).expect("a group");
        let (index, _) = group_.add_consumer(&[consumer], ms);
        let twin = self.twin.groups.get_mut(&name).expect("the groups exist");
        let mut unread = entries.unread(group_);
        for entry in unread.by_ref().take(count) {
            group_.hold(entry.id, index, ms, 1);
            group_.advance(entry.id, &entries.progress);
            twin.hold(entry.id, &[consumer], ms, 1);
            twin.last = entry.id;
        }
        entries.bookmark(group_, &unread);
    }

    fn compare(&self, probe: u64) {
        self.stream.check_invariants();
        let all: Vec<_> = self
            .twin
            .entries
            .iter()
            .map(|(id, f)| (*id, f.clone()))
            .collect();
        assert_eq!(self.stream.len(), all.len() as u64);
        let forward = self.stream.range(StreamId::MIN, StreamId::MAX).map(owned);
        assert_eq!(forward.collect::<Vec<_>>(), all);
        let mut back: Vec<_> = self
            .stream
            .range_back(StreamId::MIN, StreamId::MAX)
            .map(owned)
            .collect();
        back.reverse();
        assert_eq!(back, all);
        assert_eq!(self.stream.first().map(owned), all.first().cloned());
        assert_eq!(self.stream.last().map(owned), all.last().cloned());
        if let (Some(a), Some(b)) = (pick(all.iter(), probe), pick(all.iter(), probe / 7)) {
            let (low, high) = (a.0.min(b.0), a.0.max(b.0));
            let (low, high) = (low.prev().unwrap_or(low), high.next().unwrap_or(high));
            let expected: Vec<StreamId> = self
                .twin
                .entries
                .range(low..=high)
                .map(|(id, _)| *id)
                .collect();
            let got = self.stream.range(low, high).map(|entry| entry.id);
            assert_eq!(got.collect::<Vec<_>>(), expected);
            let got = self.stream.range_back(low, high).map(|entry| entry.id);
            assert_eq!(
                got.collect::<Vec<_>>(),
                expected.into_iter().rev().collect::<Vec<_>>()
            );
            assert_eq!(self.stream.get(a.0).map(owned).as_ref(), Some(a));
        }
        for (name, twin) in &self.twin.groups {
            let group = self.stream.group(name).expect("a group");
            self.compare_pending(group, twin, probe);
        }
    }

    fn compare_pending(&self, group: &Group, twin: &TwinGroup, probe: u64) {
        let row = |entry: PendingEntry| {
            let consumer = entry.consumer.and_then(|index| group.consumer(index));
            (
                entry.id,
                (
                    consumer.map(|c| c.name().to_vec()),
                    entry.delivered_ms,
                    entry.deliveries,
                ),
            )
        };
        let all: Vec<_> = twin
            .pending
            .iter()
            .map(|(id, row)| (*id, row.clone()))
            .collect();
        let got = group
            .pending_range(StreamId::MIN, StreamId::MAX, None)
            .map(row);
        assert_eq!(got.collect::<Vec<_>>(), all);
        assert_eq!(group.pending_len(), all.len() as u64);
        assert_eq!(
            group.pending_bounds().map(|(a, _)| a),
            all.first().map(|(id, _)| *id)
        );
        assert_eq!(
            group.pending_bounds().map(|(_, b)| b),
            all.last().map(|(id, _)| *id)
        );
        let Some(from) = pick(all.iter(), probe) else {
            return;
        };
        assert_eq!(group.pending(from.0).map(row).as_ref(), Some(from));
        for (index, consumer) in group.consumers() {
            let mine = |(_, (name, ..)): &&(StreamId, (Option<Vec<u8>>, u64, u64))| {
                name.as_deref() == Some(consumer.name())
            };
            let expected: Vec<_> = all
                .iter()
                .filter(|(id, _)| *id >= from.0)
                .filter(mine)
                .cloned()
                .collect();
            let got = group
                .pending_range(from.0, StreamId::MAX, Some(index))
                .map(row);
            assert_eq!(got.collect::<Vec<_>>(), expected);
            assert_eq!(consumer.pending(), all.iter().filter(mine).count() as u64);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_its_twin(
        ops in prop::collection::vec(ops(), 1..400),
        entries in prop_oneof![Just(0usize), 1usize..10, Just(100)],
        bytes in prop_oneof![Just(0usize), 30usize..300, Just(4096)],
        probe in any::<u64>(),
    ) {
        let mut pair = Twins::new(BlockLimits { bytes, entries });
        for (n, op) in ops.into_iter().enumerate() {
            pair.apply(op);
            if n % 16 == 0 {
                pair.compare(probe.wrapping_add(n as u64));
            }
        }
        pair.compare(probe);
        let mut slices = 0;
        while !pair.stream.free_some(3) {
            slices += 1;
            assert!(slices < 10_000, "freeing ends");
        }
    }
}

/// Deep enough for three levels of pending entries, deleted from the front, the back and between.
#[test]
fn many_pending_entries_keep_their_order() {
    let mut group = Group::new(b"g", StreamId::MIN, None);
    let consumers: Vec<ConsumerIndex> = (0..70u8).map(|n| group.add_consumer(&[n], 0).0).collect();
    let id = |n: u64| StreamId::new(1_700_000_000_000 + n / 3, n % 3);
    let total = 20_000u64;
    for n in 0..total {
        group.hold(
            id(n),
            consumers[n as usize % 70],
            1_700_000_000_000 + n / 100,
            1,
        );
    }
    group.check_invariants();
    let mine = group.pending_range(StreamId::MIN, StreamId::MAX, Some(consumers[5]));
    assert_eq!(mine.count() as u64, (total + 64) / 70);
    for n in (0..total).filter(|n| n % 10 < 3 || *n < 4000 || *n > 18_000) {
        assert!(group.acknowledge(id(n)).is_some());
    }
    group.check_invariants();
    let oldest = group.claimable(Some(u64::MAX), 10, |_| true);
    let expected = (4000..).filter(|n| n % 10 >= 3).take(10).map(id);
    assert_eq!(
        oldest.iter().map(|e| e.id).collect::<Vec<_>>(),
        expected.collect::<Vec<_>>()
    );
    assert!(
        group
            .claimable(Some(1_700_000_000_000), 10, |_| true)
            .is_empty()
    );
    let rest: Vec<StreamId> = group
        .pending_range(StreamId::MIN, StreamId::MAX, None)
        .map(|e| e.id)
        .collect();
    for id in rest.iter().rev() {
        assert!(group.acknowledge(*id).is_some());
    }
    assert_eq!(group.pending_len(), 0);
    group.check_invariants();
}

fn read_one(stream: &mut Stream) {
    let (group, entries) = stream.group_and_entries(b"g").expect("a group");
    let mut unread = entries.unread(group);
    let entry = unread.next().expect("an entry to read");
    group.advance(entry.id, &entries.progress);
    entries.bookmark(group, &unread);
}

#[test]
fn lag_is_right_after_a_trim() {
    let mut stream = Stream::default();
    stream.create_group(b"g", StreamId::MIN, None);
    for ms in 1..=5 {
        let fields = [&b"a"[..], b"1"];
        assert!(stream.append(
            StreamId::new(ms, 0),
            fields.into_iter(),
            BlockLimits::default()
        ));
    }
    let lag = |stream: &Stream| stream.progress().lag(stream.group(b"g").expect("a group"));
    assert_eq!(lag(&stream), Some(5));
    read_one(&mut stream);
    assert_eq!(lag(&stream), Some(4));
    assert_eq!(
        stream.trim(Threshold::Length(1), false, 0, References::Keep),
        4
    );
    assert_eq!(lag(&stream), Some(1));
    read_one(&mut stream);
    assert_eq!(lag(&stream), Some(0));
    assert_eq!(stream.group(b"g").and_then(|g| g.entries_read), Some(5));
}

#[test]
fn ids_run_out_without_wrapping() {
    let mut stream = Stream::default();
    let fields = [&b"a"[..], b"1"];
    assert_eq!(stream.next_id(7), Some(StreamId::new(7, 0)));
    assert!(stream.append(StreamId::MAX, fields.into_iter(), BlockLimits::default()));
    assert_eq!(stream.next_id(u64::MAX), None);
    assert!(!stream.append(StreamId::MAX, fields.into_iter(), BlockLimits::default()));
    assert_eq!(stream.range(StreamId::MAX, StreamId::MAX).count(), 1);
    assert_eq!(stream.range_back(StreamId::MIN, StreamId::MAX).count(), 1);
    assert_eq!(stream.range(StreamId::MAX, StreamId::MIN).count(), 0);
    assert_eq!(stream.range_back(StreamId::MAX, StreamId::MIN).count(), 0);
}
