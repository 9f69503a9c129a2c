//! The counted B+tree of a sorted set: its records in order.
//!
//! Inner nodes hold, for each child, its first record (key and reference) and how many records
//! are under it, so that a rank leads to a record and a place in the order to a rank in one
//! descent. Ranges are ranges of ranks, and a cursor is a rank: nothing points from leaf to leaf
//! or upwards, so nodes are plainly owned by their parents.
//!
//! A full leaf first evens out with a neighbour, and two full ones become three, so leaves stay
//! about 85% full under random insertion; appending and prepending leave them full.
//!
//! # Invariants
//! - All leaves are at the same depth; none is empty, except the root of an empty tree.
//! - `keys[i]` and `firsts[i]` are exactly the key and the reference of the first record under
//!   child `i`. So a record that is given up is replaced in all inner nodes at once, and none
//!   refers to a freed one.
//! - `counts[i]` is exactly the number of records under child `i`.
//!
//! # Why not a skip list?
//! Two thirds of its memory are pointers, and each step of a search is a cache miss.

use super::leaf::{LEAF_MAX, Leaf};
use super::order::{Probe, order_key};
use super::store::MemberStore;

/// Children of an inner node at most.
const INNER_MAX: usize = 64;
/// Two leaves with fewer records than this together become one.
const LEAF_MERGE: usize = LEAF_MAX * 3 / 4;
const INNER_MERGE: usize = INNER_MAX / 2;
/// Two leaves with more records than this together become three.
const LEAVES_FULL: usize = 2 * LEAF_MAX - 32;

enum Node {
    Leaf(Box<Leaf>),
    Inner(Box<Inner>),
}

struct Inner {
    keys: Vec<u64>,
    firsts: Vec<u32>,
    counts: Vec<u32>,
    children: Vec<Node>,
}

pub(crate) struct Tree {
    root: Node,
    len: usize,
}

impl Tree {
    pub(crate) fn new() -> Self {
        Self {
            root: Node::Leaf(Box::new(Leaf::new())),
            len: 0,
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Fetches the leaf where `key` stands.
    #[inline]
    pub(crate) fn prefetch(&self, key: u64) {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.prefetch(),
                Node::Inner(inner) => {
                    let below = inner.keys.partition_point(|&first| first < key);
                    node = &inner.children[below.saturating_sub(1)];
                }
            }
        }
    }

    /// Inserts `record`, whose place is `probe`.
    pub(crate) fn insert(&mut self, store: &MemberStore, probe: &Probe<'_>, record: u32) {
        self.len += 1;
        if let Node::Leaf(leaf) = &mut self.root {
            if !leaf.is_full() {
                return leaf.insert(store, probe, record);
            }
            let old = std::mem::replace(&mut self.root, Node::Inner(Box::new(Inner::new())));
            let Node::Inner(root) = &mut self.root else {
                unreachable!("was just set")
            };
            root.insert_child(0, old, store);
        }
        let Node::Inner(root) = &mut self.root else {
            unreachable!("leaves were handled")
        };
        if let Some(right) = root.insert(store, probe, record) {
            let left = std::mem::replace(&mut self.root, Node::Inner(Box::new(Inner::new())));
            let Node::Inner(root) = &mut self.root else {
                unreachable!("was just set")
            };
            root.insert_child(0, left, store);
            root.insert_child(1, Node::Inner(right), store);
        }
    }

    /// Removes `record`; `probe` is the place right after it.
    pub(crate) fn remove(&mut self, store: &MemberStore, probe: &Probe<'_>, record: u32) {
        self.len -= 1;
        match &mut self.root {
            Node::Leaf(leaf) => leaf.remove(leaf.position(probe.key, record)),
            Node::Inner(root) => {
                root.remove(store, probe, record);
                if root.children.len() == 1 {
                    self.root = root.children.pop().expect("there is one");
                } else if root.children.is_empty() {
                    self.root = Node::Leaf(Box::new(Leaf::new()));
                }
            }
        }
    }

    /// Makes the tree refer to `to` where it referred to `from`, a record with the same score
    /// and member; `probe` is the place right after it.
    pub(crate) fn replace(&mut self, store: &MemberStore, probe: &Probe<'_>, from: u32, to: u32) {
        let mut node = &mut self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf.replace(leaf.position(probe.key, from), to),
                Node::Inner(inner) => {
                    let at = inner.child_at(store, probe);
                    if inner.firsts[at] == from {
                        inner.firsts[at] = to;
                    }
                    node = &mut inner.children[at];
                }
            }
        }
    }

    /// How many records are below the probe.
    pub(crate) fn rank(&self, store: &MemberStore, probe: &Probe<'_>) -> usize {
        let (mut node, mut rank) = (&self.root, 0);
        loop {
            match node {
                Node::Leaf(leaf) => return rank + leaf.below(store, probe),
                Node::Inner(inner) => {
                    let at = inner.child_at(store, probe);
                    rank += sum(&inner.counts[..at]);
                    node = &inner.children[at];
                }
            }
        }
    }

    /// The records of the leaf that holds rank `rank`, below the length, and that record's index
    /// among them.
    pub(crate) fn leaf_of(&self, rank: usize) -> (&[u32], usize) {
        let (mut node, mut rest) = (&self.root, rank);
        loop {
            match node {
                Node::Leaf(leaf) => return (leaf.refs(), rest),
                Node::Inner(inner) => {
                    let mut at = 0;
                    while at + 1 < inner.counts.len() && rest >= inner.counts[at] as usize {
                        rest -= inner.counts[at] as usize;
                        at += 1;
                    }
                    node = &inner.children[at];
                }
            }
        }
    }

    /// Bytes of all nodes; visits the inner ones, one of about 5000 records.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.root.memory_bytes()
    }

    /// Frees about `budget` nodes of a tree that is not used any more.
    pub(crate) fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget {
            match &mut self.root {
                Node::Inner(root) if !root.children.is_empty() => root.drop_last_leaf(),
                _ => {
                    *self = Self::new();
                    return true;
                }
            }
        }
        false
    }

    #[cfg(any(test, debug_assertions))]
    pub(crate) fn check(&self, store: &MemberStore) {
        let (count, _) = self.root.check(store);
        assert_eq!(count, self.len);
    }
}

impl Node {
    /// Key and reference of the first record.
    fn first(&self, store: &MemberStore) -> (u64, u32) {
        match self {
            Self::Leaf(leaf) => {
                let first = leaf.refs()[0];
                (order_key(store.score(first)), first)
            }
            Self::Inner(inner) => (inner.keys[0], inner.firsts[0]),
        }
    }

    fn count(&self) -> u32 {
        match self {
            Self::Leaf(leaf) => leaf.len() as u32,
            Self::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    fn memory_bytes(&self) -> usize {
        match self {
            Self::Leaf(_) => size_of::<Leaf>(),
            Self::Inner(inner) => {
                let own = size_of::<Inner>()
                    + inner.keys.capacity() * 8
                    + (inner.firsts.capacity() + inner.counts.capacity()) * 4
                    + inner.children.capacity() * size_of::<Self>();
                let below = match inner.children.first() {
                    Some(Self::Leaf(_)) => inner.children.len() * size_of::<Leaf>(),
                    _ => inner.children.iter().map(Self::memory_bytes).sum(),
                };
                own + below
            }
        }
    }

    /// Checks the invariants; returns the number of records and the height.
    #[cfg(any(test, debug_assertions))]
    fn check(&self, store: &MemberStore) -> (usize, usize) {
        match self {
            Self::Leaf(leaf) => (leaf.len(), 0),
            Self::Inner(inner) => {
                let below: Vec<_> = inner.children.iter().map(|c| c.check(store)).collect();
                assert!(
                    below.windows(2).all(|w| w[0].1 == w[1].1),
                    "leaves at two depths"
                );
                for (at, child) in inner.children.iter().enumerate() {
                    assert_eq!((inner.keys[at], inner.firsts[at]), child.first(store));
                    assert_eq!(inner.counts[at] as usize, below[at].0);
                    assert!(below[at].0 > 0);
                }
                assert!(inner.children.len() <= INNER_MAX);
                (below.iter().map(|b| b.0).sum(), below[0].1 + 1)
            }
        }
    }
}

impl Inner {
    fn new() -> Self {
        let room = INNER_MAX + 1;
        Self {
            keys: Vec::with_capacity(room),
            firsts: Vec::with_capacity(room),
            counts: Vec::with_capacity(room),
            children: Vec::with_capacity(room),
        }
    }

    /// How many children's first records are below the probe.
    #[inline]
    fn below(&self, store: &MemberStore, probe: &Probe<'_>) -> usize {
        let start = self.keys.partition_point(|&key| key < probe.key);
        if self.keys.get(start) != Some(&probe.key) {
            return start;
        }
        let equal = self.keys[start..].partition_point(|&key| key == probe.key);
        let equals = &self.firsts[start..start + equal];
        start + equals.partition_point(|&at| probe.above_equal(store, at))
    }

    /// The child that the probe stands in.
    #[inline]
    fn child_at(&self, store: &MemberStore, probe: &Probe<'_>) -> usize {
        self.below(store, probe).saturating_sub(1)
    }

    /// Inserts a record; returns the right half where this node had to split.
    fn insert(&mut self, store: &MemberStore, probe: &Probe<'_>, record: u32) -> Option<Box<Self>> {
        let below = self.below(store, probe);
        let mut at = below.saturating_sub(1);
        let last = at + 1 == self.children.len();
        match &mut self.children[at] {
            Node::Leaf(leaf) if leaf.is_full() => {
                if below == 0 || (last && leaf.ends_below(store, probe)) {
                    // A new end of the order: leave the old one full.
                    let new = leaf.beside(probe.key, record);
                    let place = if below == 0 { 0 } else { at + 1 };
                    self.insert_child(place, Node::Leaf(Box::new(new)), store);
                    return self.split_overfull(last);
                }
                self.make_room(store, at);
                at = self.child_at(store, probe);
            }
            _ => {}
        }
        if below == 0 {
            self.keys[0] = probe.key;
            self.firsts[0] = record;
        }
        self.counts[at] += 1;
        match &mut self.children[at] {
            Node::Leaf(leaf) => leaf.insert(store, probe, record),
            Node::Inner(inner) => {
                if let Some(right) = inner.insert(store, probe, record) {
                    self.counts[at] = inner.counts.iter().sum();
                    self.insert_child(at + 1, Node::Inner(right), store);
                }
            }
        }
        self.split_overfull(last)
    }

    fn remove(&mut self, store: &MemberStore, probe: &Probe<'_>, record: u32) {
        let at = self.child_at(store, probe);
        self.counts[at] -= 1;
        let sparse = match &mut self.children[at] {
            Node::Leaf(leaf) => {
                leaf.remove(leaf.position(probe.key, record));
                leaf.len() < LEAF_MERGE / 2
            }
            Node::Inner(inner) => {
                inner.remove(store, probe, record);
                inner.children.len() < INNER_MERGE / 2
            }
        };
        if self.counts[at] == 0 {
            self.remove_child(at);
            return;
        }
        if self.firsts[at] == record {
            (self.keys[at], self.firsts[at]) = self.children[at].first(store);
        }
        if sparse {
            // With whichever neighbour there is room.
            let merged = at > 0 && self.merge(store, at - 1);
            if !merged && at + 1 < self.children.len() {
                self.merge(store, at);
            }
        }
    }

    /// Makes room in the full leaf `at`: evens it out with a neighbour, or makes one more leaf.
    fn make_room(&mut self, store: &MemberStore, at: usize) {
        let room = |other: usize| LEAVES_FULL.saturating_sub(self.counts[other] as usize);
        let before = if at > 0 { room(at - 1) } else { 0 };
        let after = if at + 1 < self.children.len() {
            room(at + 1)
        } else {
            0
        };
        let left = if at > 0 && before >= after || at + 1 == self.children.len() {
            at.saturating_sub(1)
        } else {
            at
        };
        let mut extra = Box::new(Leaf::new());
        if self.children.len() == 1 {
            let Node::Leaf(leaf) = &mut self.children[0] else {
                unreachable!("it is a leaf")
            };
            let (mut first, none) = (Leaf::new(), Leaf::new());
            Leaf::share(store, [leaf, &none], &mut [&mut first, &mut extra]);
            **leaf = first;
            self.counts[0] = leaf.len() as u32;
            return self.insert_child(1, Node::Leaf(extra), store);
        }
        let full = before.max(after) < LEAF_MAX;
        let [Node::Leaf(one), Node::Leaf(two)] = &mut self.children[left..left + 2] else {
            unreachable!("neighbours of a leaf are leaves")
        };
        let (mut new_one, mut new_two) = (Leaf::new(), Leaf::new());
        if full {
            let to = &mut [&mut new_one, &mut new_two, &mut *extra];
            Leaf::share(store, [one, two], to);
        } else {
            Leaf::share(store, [one, two], &mut [&mut new_one, &mut new_two]);
        }
        **one = new_one;
        **two = new_two;
        for child in left..left + 2 {
            self.counts[child] = self.children[child].count();
            (self.keys[child], self.firsts[child]) = self.children[child].first(store);
        }
        if full {
            self.insert_child(left + 2, Node::Leaf(extra), store);
        }
    }

    /// Merges child `at` with the next one where both are sparse enough.
    fn merge(&mut self, store: &MemberStore, at: usize) -> bool {
        match &mut self.children[at..at + 2] {
            [Node::Leaf(one), Node::Leaf(two)] => {
                if one.len() + two.len() > LEAF_MERGE {
                    return false;
                }
                let mut whole = Leaf::new();
                Leaf::share(store, [one, two], &mut [&mut whole]);
                **one = whole;
            }
            [Node::Inner(one), Node::Inner(two)] => {
                if one.children.len() + two.children.len() > INNER_MERGE {
                    return false;
                }
                one.keys.append(&mut two.keys);
                one.firsts.append(&mut two.firsts);
                one.counts.append(&mut two.counts);
                one.children.append(&mut two.children);
            }
            _ => unreachable!("all children are of one kind"),
        }
        self.counts[at] += self.counts[at + 1];
        self.remove_child(at + 1);
        true
    }

    fn split_overfull(&mut self, at_end: bool) -> Option<Box<Self>> {
        if self.children.len() <= INNER_MAX {
            return None;
        }
        let keep = if at_end {
            INNER_MAX * 7 / 8
        } else {
            INNER_MAX / 2
        };
        let mut right = Self::new();
        right.keys.extend(self.keys.drain(keep..));
        right.firsts.extend(self.firsts.drain(keep..));
        right.counts.extend(self.counts.drain(keep..));
        right.children.extend(self.children.drain(keep..));
        Some(Box::new(right))
    }

    fn insert_child(&mut self, at: usize, child: Node, store: &MemberStore) {
        let (key, first) = child.first(store);
        self.keys.insert(at, key);
        self.firsts.insert(at, first);
        self.counts.insert(at, child.count());
        self.children.insert(at, child);
    }

    fn remove_child(&mut self, at: usize) {
        self.keys.remove(at);
        self.firsts.remove(at);
        self.counts.remove(at);
        self.children.remove(at);
    }

    fn drop_last_leaf(&mut self) {
        if let Some(Node::Inner(inner)) = self.children.last_mut() {
            inner.drop_last_leaf();
            if !inner.children.is_empty() {
                return;
            }
        }
        self.children.pop();
    }
}

fn sum(counts: &[u32]) -> usize {
    counts.iter().map(|&count| count as usize).sum()
}
