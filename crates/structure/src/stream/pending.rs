//! The pending entries of a consumer group: delivered, not yet acknowledged.
//!
//! One B+tree ordered by id, about 24 bytes an entry. Three questions are asked of it, and Redis
//! keeps an index for each: by id, by consumer, by age. Here the inner nodes carry a hint for the
//! last two, so one tree answers all three.
//!
//! ```text
//! child:  | first id | oldest: AtomicU64 | consumers: u64 | node |
//! leaf:   ids (8 or 16 bytes each) and states: | stamp 8 | consumer 4 | deliveries 2 |
//! ```
//! A stamp orders entries by age. An entry that a consumer holds has the top bit, then 47 bits of
//! delivery time, then 16 bits that keep the order of deliveries within a millisecond. A released
//! one (XNACK) has the group's running number of releases: it is older than any held one.
//!
//! # Invariants
//! - Ids ascend over the whole tree; a child's `first` is at most its smallest id and above every
//!   id of the child before.
//! - `oldest` of a child is at most every stamp below it; `consumers` has the bit of every
//!   consumer below it. Both are hints and may lag behind removals. Looking for the oldest
//!   tightens `oldest`, splitting and merging recompute both.
//! - No node but the root is empty; two neighbours that fit into three quarters of one are merged.
//!
//! # Why hints and not exact sums?
//! Acknowledging removes the oldest entry nearly always. Exact minima would make each removal
//! search its leaf and every node above; a hint is repaired once, by whoever asks.

mod leaf;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::mem::size_of;
use std::sync::atomic::{AtomicU64, Ordering};

use super::id::StreamId;
use leaf::Leaf;

/// The most entries of a leaf, and the most children of an inner node.
const LEAF_MAX: usize = 128;
const INNER_MAX: usize = 48;

const HELD: u64 = 1 << 63;
const TICK_BITS: u32 = 16;
const TICK_MAX: u64 = (1 << TICK_BITS) - 1;
/// Where the ticks start of deliveries dated before the latest one (XCLAIM IDLE and TIME). They
/// come after all that were on time then. Where ticks run out, ids decide.
const TICK_LATE: u64 = 1 << (TICK_BITS - 1);
const MS_MAX: u64 = (1 << 47) - 1;
/// Delivery counts that do not fit two bytes: XNACK FATAL's, and a number kept aside.
const COUNT_FATAL: u16 = u16::MAX - 1;
const COUNT_ASIDE: u16 = u16::MAX;

/// The greatest delivery count, which XNACK FATAL sets.
pub const DELIVERIES_MAX: u64 = i64::MAX as u64;

/// Names a consumer within its group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConsumerIndex(pub(super) u32);

impl ConsumerIndex {
    pub(super) const NONE: u32 = u32::MAX;

    fn mask(self) -> u64 {
        mask_of(self.0)
    }
}

fn mask_of(consumer: u32) -> u64 {
    if consumer == ConsumerIndex::NONE {
        0
    } else {
        1 << (consumer % 64)
    }
}

/// One pending entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PendingEntry {
    /// The id of the stream's entry, which may have been deleted since.
    pub id: StreamId,
    /// Who holds it; none once it was released.
    pub consumer: Option<ConsumerIndex>,
    /// Unix milliseconds of the last delivery; 0 once it was released.
    pub delivered_ms: u64,
    /// How often it was delivered.
    pub deliveries: u64,
}

#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
struct State {
    stamp: u64,
    consumer: u32,
    deliveries: u16,
}

const _: () = assert!(size_of::<State>() == 14);

#[derive(Debug)]
struct Child {
    first: StreamId,
    oldest: AtomicU64,
    consumers: u64,
    node: Node,
}

#[derive(Clone, Debug)]
enum Node {
    Leaf(Leaf),
    Inner(Vec<Child>),
}

impl Clone for Child {
    fn clone(&self) -> Child {
        Child {
            first: self.first,
            oldest: AtomicU64::new(self.oldest.load(Ordering::Relaxed)),
            consumers: self.consumers,
            node: self.node.clone(),
        }
    }
}

/// The pending entries of one group.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    root: Child,
    len: u64,
    /// Delivery counts beyond two bytes, other than XNACK FATAL's.
    counts: BTreeMap<StreamId, u64>,
    releases: u64,
    latest_ms: u64,
    tick: u64,
    late_tick: u64,
}

impl Default for Pending {
    fn default() -> Pending {
        Pending {
            root: Child::new(Node::Leaf(Leaf::default())),
            len: 0,
            counts: BTreeMap::new(),
            releases: 0,
            latest_ms: 0,
            tick: 0,
            late_tick: TICK_LATE,
        }
    }
}

impl Pending {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn memory_bytes(&self) -> usize {
        // Walking the tree would not be constant; the fill of leaves is known well enough.
        self.len as usize * 23 + self.counts.len() * 48
    }

    /// Sets or adds the entry as delivered to a consumer; answers what stood there before.
    pub(super) fn hold(
        &mut self,
        id: StreamId,
        consumer: ConsumerIndex,
        ms: u64,
        deliveries: u64,
    ) -> Option<PendingEntry> {
        let ms = ms.min(MS_MAX);
        let tick = if ms > self.latest_ms {
            (self.latest_ms, self.tick) = (ms, 0);
            0
        } else if ms == self.latest_ms {
            self.tick = (self.tick + 1).min(TICK_LATE - 1);
            self.tick
        } else {
            self.late_tick = (self.late_tick + 1).min(TICK_MAX);
            self.late_tick
        };
        self.set(id, HELD | ms << TICK_BITS | tick, consumer.0, deliveries)
    }

    /// Sets or adds the entry as released by its consumer; answers what stood there before.
    pub(super) fn release(&mut self, id: StreamId, deliveries: u64) -> Option<PendingEntry> {
        self.releases += 1;
        self.set(id, self.releases, ConsumerIndex::NONE, deliveries)
    }

    /// Changes the delivery count alone.
    pub(super) fn set_deliveries(&mut self, id: StreamId, deliveries: u64) {
        if let Some(state) = self.root.state(id) {
            let (stamp, consumer) = (state.stamp, state.consumer);
            self.set(id, stamp, consumer, deliveries);
        }
    }

    fn set(&mut self, id: StreamId, stamp: u64, consumer: u32, count: u64) -> Option<PendingEntry> {
        let deliveries = match count {
            0..0xfffe => count as u16,
            DELIVERIES_MAX => COUNT_FATAL,
            _ => COUNT_ASIDE,
        };
        let (old, sibling) = self.root.insert(
            id,
            State {
                stamp,
                consumer,
                deliveries,
            },
        );
        let old = old.map(|state| self.entry(id, state));
        if let Some(sibling) = sibling {
            let left = std::mem::replace(&mut self.root, Child::new(Node::Inner(Vec::new())));
            self.root.node = Node::Inner(vec![left, sibling]);
            self.root.recompute();
        }
        if old.is_none() {
            self.len += 1;
        }
        if deliveries == COUNT_ASIDE {
            self.counts.insert(id, count.min(DELIVERIES_MAX));
        } else if !self.counts.is_empty() {
            self.counts.remove(&id);
        }
        old
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<PendingEntry> {
        let state = self.root.remove(id)?;
        let entry = self.entry(id, state);
        self.len -= 1;
        if state.deliveries == COUNT_ASIDE {
            self.counts.remove(&id);
        }
        if let Node::Inner(children) = &mut self.root.node {
            match children.len() {
                0 => self.root = Child::new(Node::Leaf(Leaf::default())),
                1 => self.root = children.remove(0),
                _ => {}
            }
        }
        Some(entry)
    }

    pub(super) fn get(&self, id: StreamId) -> Option<PendingEntry> {
        self.root.state(id).map(|state| self.entry(id, state))
    }

    pub(super) fn last(&self) -> Option<StreamId> {
        self.root.last()
    }

    /// Drops leaves until about `budget` entries went; true once nothing is left.
    pub(super) fn free_some(&mut self, budget: usize) -> bool {
        let mut freed = 0;
        while freed < budget {
            match &mut self.root.node {
                Node::Leaf(_) => {
                    *self = Pending::default();
                    return true;
                }
                Node::Inner(children) => freed += drop_last_leaf(children),
            }
            if matches!(&self.root.node, Node::Inner(children) if children.is_empty()) {
                *self = Pending::default();
                return true;
            }
        }
        false
    }

    /// Entries of a range of ids, ascending; only those of one consumer where one is given.
    pub(super) fn range(
        &self,
        start: StreamId,
        end: StreamId,
        consumer: Option<ConsumerIndex>,
    ) -> PendingRange<'_> {
        let mask = consumer.map_or(u64::MAX, ConsumerIndex::mask);
        PendingRange {
            pending: self,
            at: self.root.seek(start, mask),
            end,
            consumer,
            mask,
        }
    }

    /// The entries last delivered at or before the time, oldest first, and before them those that
    /// were released. `wanted` may turn one down; at most `count` are answered.
    pub(super) fn oldest(
        &self,
        delivered_max_ms: Option<u64>,
        count: usize,
        mut wanted: impl FnMut(StreamId) -> bool,
    ) -> Vec<PendingEntry> {
        let limit = match delivered_max_ms {
            Some(ms) => HELD | ms.min(MS_MAX) << TICK_BITS | TICK_MAX,
            None => HELD - 1,
        };
        let mut found = Vec::new();
        let mut nodes: BinaryHeap<Aged<'_>> = BinaryHeap::new();
        let mut entries: BinaryHeap<Reverse<(u64, StreamId)>> = BinaryHeap::new();
        if count == 0 {
            return found;
        }
        self.root.push_if_due(limit, &mut nodes);
        loop {
            let node = nodes.peek().map_or(u64::MAX, |aged| aged.stamp);
            match entries.peek() {
                Some(Reverse((stamp, _))) if *stamp < node || nodes.is_empty() => {}
                None if nodes.is_empty() => return found,
                _ => {
                    if let Some(aged) = nodes.pop() {
                        aged.child.expand(limit, &mut nodes, &mut entries);
                    }
                    continue;
                }
            }
            let Some(Reverse((_, id))) = entries.pop() else {
                return found;
            };
            if wanted(id) {
                found.extend(self.get(id));
                if found.len() == count {
                    return found;
                }
            }
        }
    }

    fn entry(&self, id: StreamId, state: State) -> PendingEntry {
        let held = state.stamp & HELD != 0;
        PendingEntry {
            id,
            consumer: held.then_some(ConsumerIndex(state.consumer)),
            delivered_ms: if held {
                (state.stamp & !HELD) >> TICK_BITS
            } else {
                0
            },
            deliveries: match state.deliveries {
                COUNT_FATAL => DELIVERIES_MAX,
                COUNT_ASIDE => self.counts.get(&id).copied().unwrap_or(DELIVERIES_MAX),
                count => u64::from(count),
            },
        }
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_invariants(&self) {
        let mut previous = None;
        assert_eq!(self.root.check(&mut previous), self.len, "pending entries");
        for id in self.counts.keys() {
            assert_eq!(
                self.root.state(*id).map(|s| s.deliveries),
                Some(COUNT_ASIDE)
            );
        }
    }
}

fn drop_last_leaf(children: &mut Vec<Child>) -> usize {
    let Some(last) = children.last_mut() else {
        return 1;
    };
    let freed = match &mut last.node {
        Node::Leaf(leaf) => leaf.len(),
        Node::Inner(below) => drop_last_leaf(below),
    };
    if matches!(&last.node, Node::Leaf(_))
        || matches!(&last.node, Node::Inner(below) if below.is_empty())
    {
        children.pop();
    }
    freed
}

/// A part of the tree, ordered so that a heap yields the oldest first.
struct Aged<'a> {
    stamp: u64,
    child: &'a Child,
}

impl PartialEq for Aged<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.stamp == other.stamp
    }
}

impl Eq for Aged<'_> {}

impl PartialOrd for Aged<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Aged<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.stamp.cmp(&self.stamp)
    }
}

impl Child {
    fn new(node: Node) -> Child {
        let mut child = Child {
            first: StreamId::MAX,
            oldest: AtomicU64::new(u64::MAX),
            consumers: 0,
            node,
        };
        child.recompute();
        child
    }

    /// Makes the hints exact, as far as those of the children are.
    fn recompute(&mut self) {
        let (mut oldest, mut consumers, mut first) = (u64::MAX, 0, None);
        match &self.node {
            Node::Leaf(leaf) => {
                for state in leaf.states() {
                    oldest = oldest.min(state.stamp);
                    consumers |= mask_of(state.consumer);
                }
                first = leaf.first();
            }
            Node::Inner(children) => {
                for child in children {
                    oldest = oldest.min(child.oldest.load(Ordering::Relaxed));
                    consumers |= child.consumers;
                    first.get_or_insert(child.first);
                }
            }
        }
        *self.oldest.get_mut() = oldest;
        self.consumers = consumers;
        self.first = first.unwrap_or(StreamId::MAX);
    }

    fn len(&self) -> usize {
        match &self.node {
            Node::Leaf(leaf) => leaf.len(),
            Node::Inner(children) => children.len(),
        }
    }

    /// Answers what stood there before, and the new right neighbour where the node was full.
    fn insert(&mut self, id: StreamId, state: State) -> (Option<State>, Option<Child>) {
        self.first = self.first.min(id);
        let oldest = self.oldest.get_mut();
        *oldest = (*oldest).min(state.stamp);
        self.consumers |= mask_of(state.consumer);
        match &mut self.node {
            Node::Leaf(leaf) => {
                if let Some(old) = leaf.replace(id, state) {
                    return (Some(old), None);
                }
                if leaf.len() < LEAF_MAX {
                    leaf.insert(id, state);
                    return (None, None);
                }
                // Ids are mostly delivered in order: a leaf that overflows at its end stays full.
                if leaf.last().is_some_and(|last| last < id) {
                    let next = Leaf::starting(id, state, LEAF_MAX);
                    return (None, Some(Child::new(Node::Leaf(next))));
                }
                let mut right = leaf.split();
                match right.first() {
                    Some(first) if first <= id => right.insert(id, state),
                    _ => leaf.insert(id, state),
                }
                self.recompute();
                (None, Some(Child::new(Node::Leaf(right))))
            }
            Node::Inner(children) => {
                let at = position(children, id);
                let (old, sibling) = children[at].insert(id, state);
                let Some(sibling) = sibling else {
                    return (old, None);
                };
                children.insert(at + 1, sibling);
                if children.len() <= INNER_MAX {
                    return (old, None);
                }
                let at_end = at + 2 == children.len();
                let right = children.split_off(if at_end { at + 1 } else { children.len() / 2 });
                self.recompute();
                (old, Some(Child::new(Node::Inner(right))))
            }
        }
    }

    fn remove(&mut self, id: StreamId) -> Option<State> {
        match &mut self.node {
            Node::Leaf(leaf) => leaf.remove(id),
            Node::Inner(children) => {
                let at = position(children, id);
                let removed = children[at].remove(id)?;
                if children[at].len() == 0 {
                    children.remove(at);
                } else {
                    merge_around(children, at);
                }
                Some(removed)
            }
        }
    }

    fn state(&self, id: StreamId) -> Option<State> {
        match &self.node {
            Node::Leaf(leaf) => leaf.get(id),
            Node::Inner(children) => children.get(position(children, id))?.state(id),
        }
    }

    fn last(&self) -> Option<StreamId> {
        match &self.node {
            Node::Leaf(leaf) => leaf.last(),
            Node::Inner(children) => children.last()?.last(),
        }
    }

    /// The first place at or after the id, in a leaf that may hold a consumer of the mask.
    fn seek(&self, id: StreamId, mask: u64) -> Option<(&Leaf, usize)> {
        match &self.node {
            Node::Leaf(leaf) => {
                let at = leaf.lower_bound(id);
                (at < leaf.len()).then_some((leaf, at))
            }
            Node::Inner(children) => children[position(children, id)..]
                .iter()
                .filter(|child| child.consumers & mask != 0 || mask == u64::MAX)
                .find_map(|child| child.seek(id, mask)),
        }
    }

    fn push_if_due<'a>(&'a self, limit: u64, nodes: &mut BinaryHeap<Aged<'a>>) {
        let stamp = self.oldest.load(Ordering::Relaxed);
        if stamp <= limit && self.len() > 0 {
            nodes.push(Aged { stamp, child: self });
        }
    }

    /// Puts what is below onto the heaps, and makes the hint of this node better.
    fn expand<'a>(
        &'a self,
        limit: u64,
        nodes: &mut BinaryHeap<Aged<'a>>,
        entries: &mut BinaryHeap<Reverse<(u64, StreamId)>>,
    ) {
        let mut oldest = u64::MAX;
        match &self.node {
            Node::Leaf(leaf) => {
                for state in leaf.states() {
                    oldest = oldest.min(state.stamp);
                }
                let stamps = leaf.states().iter().map(|state| state.stamp).enumerate();
                let due = stamps.filter(|(_, stamp)| *stamp <= limit);
                entries.extend(due.map(|(at, stamp)| Reverse((stamp, leaf.id(at)))));
            }
            Node::Inner(children) => {
                for child in children {
                    oldest = oldest.min(child.oldest.load(Ordering::Relaxed));
                    child.push_if_due(limit, nodes);
                }
            }
        }
        self.oldest.store(oldest, Ordering::Relaxed);
    }

    #[cfg(any(test, debug_assertions))]
    fn check(&self, previous: &mut Option<StreamId>) -> u64 {
        assert!(
            previous.is_none_or(|p| p < self.first),
            "first id of {}",
            self.first
        );
        match &self.node {
            Node::Leaf(leaf) => {
                for (at, state) in leaf.states().iter().enumerate() {
                    let id = leaf.id(at);
                    assert!(
                        id >= self.first && previous.is_none_or(|p| p < id),
                        "order at {id}"
                    );
                    let (stamp, consumer) = (state.stamp, state.consumer);
                    assert!(
                        stamp >= self.oldest.load(Ordering::Relaxed),
                        "age hint at {id}"
                    );
                    let mask = mask_of(consumer);
                    assert_eq!(self.consumers & mask, mask, "consumer hint at {id}");
                    *previous = Some(id);
                }
                leaf.check();
                leaf.len() as u64
            }
            Node::Inner(children) => {
                assert!(
                    !children.is_empty() && children.len() <= INNER_MAX,
                    "size of inner node"
                );
                let oldest = self.oldest.load(Ordering::Relaxed);
                let mut len = 0;
                for child in children {
                    assert!(child.len() > 0, "empty node");
                    assert!(child.oldest.load(Ordering::Relaxed) >= oldest, "age hint");
                    assert_eq!(child.consumers & !self.consumers, 0, "consumer hint");
                    len += child.check(previous);
                }
                len
            }
        }
    }
}

/// The child whose ids include this one, the first one for ids below all.
fn position(children: &[Child], id: StreamId) -> usize {
    children
        .partition_point(|child| child.first <= id)
        .saturating_sub(1)
}

/// Merges the child with a neighbour where both are small.
fn merge_around(children: &mut Vec<Child>, at: usize) {
    let max = match &children[at].node {
        Node::Leaf(_) => LEAF_MAX,
        Node::Inner(_) => INNER_MAX,
    };
    if children[at].len() > max / 4 {
        return;
    }
    let fits = |left: usize| {
        children.len() > left + 1 && children[left].len() + children[left + 1].len() <= max * 3 / 4
    };
    let left = if fits(at) {
        at
    } else if at > 0 && fits(at - 1) {
        at - 1
    } else {
        return;
    };
    let right = children.remove(left + 1);
    match (&mut children[left].node, right.node) {
        (Node::Leaf(into), Node::Leaf(from)) => into.append(from),
        (Node::Inner(into), Node::Inner(from)) => into.extend(from),
        _ => unreachable!("neighbours are of one height"),
    }
    children[left].recompute();
}

/// Pending entries of a range of ids, ascending.
#[derive(Clone, Debug)]
pub struct PendingRange<'a> {
    pending: &'a Pending,
    at: Option<(&'a Leaf, usize)>,
    end: StreamId,
    consumer: Option<ConsumerIndex>,
    mask: u64,
}

impl Iterator for PendingRange<'_> {
    type Item = PendingEntry;

    fn next(&mut self) -> Option<PendingEntry> {
        loop {
            let (leaf, at) = self.at?;
            if at == leaf.len() {
                let next = leaf.last().and_then(StreamId::next);
                self.at = next.and_then(|id| self.pending.root.seek(id, self.mask));
                continue;
            }
            let (id, state) = (leaf.id(at), leaf.states()[at]);
            if id > self.end {
                self.at = None;
                return None;
            }
            self.at = Some((leaf, at + 1));
            if self
                .consumer
                .is_none_or(|consumer| consumer.0 == state.consumer)
            {
                return Some(self.pending.entry(id, state));
            }
        }
    }
}
