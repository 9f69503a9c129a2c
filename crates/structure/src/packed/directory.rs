//! The directory of segments: which segment owns a hash.
//!
//! Extendible hashing by the HIGH bits of a hash, so that segments stand in hash order, which is
//! what gives SCAN its cursor. A classic directory doubles as a whole; at a million segments
//! that is a pause of a millisecond. Here a directory is a trie of nodes: a node doubles until it
//! has `1 << WIDTH_MAX` slots (16 KiB), after which a segment that must split gets a child node
//! of its own. So no operation writes more than one node, and a lookup passes one node up to a
//! million elements and two up to billions.
//!
//! ```text
//! root (width 2)     [ s0 | s0 | s1 | child ]           s0 has depth 1, s1 depth 2
//! child (start 2)    [ s2 | s3 ]                        both have depth 3
//! ```
//!
//! # Invariants
//! - A segment of depth d owns the hashes that share its first d bits, and stands in exactly one
//!   node, in all `1 << (start + width - d)` neighbouring slots that those bits select.
//! - A node with a child has its full width.
//! - A node but the root holds only segments deeper than its start: when two merge to its start,
//!   the node goes away.

const WIDTH_MAX: u8 = 12;
/// Marks a slot that holds a node instead of a segment.
const CHILD: u32 = 1 << 31;

#[derive(Clone)]
struct Node {
    /// Hash bits that select this node.
    start: u8,
    /// Hash bits that select a slot in it.
    width: u8,
    slots: Vec<u32>,
}

impl Node {
    #[inline]
    fn index(&self, hash: u64) -> usize {
        // Two shifts: a width of 0 would ask for a shift by 64.
        (((hash << self.start) >> 1) >> (63 - u32::from(self.width))) as usize
    }

    fn end(&self) -> u8 {
        self.start + self.width
    }

    /// The slots of a segment of this node that starts at `prefix`.
    fn slots_of(&mut self, prefix: u64, depth: u8) -> &mut [u32] {
        let first = self.index(prefix);
        let count = 1usize << (self.end() - depth);
        &mut self.slots[first..first + count]
    }
}

/// Maps hashes to the numbers of segments. Starts with segment 0 owning everything.
#[derive(Clone)]
pub(crate) struct Directory {
    nodes: Vec<Node>,
    free: Vec<u32>,
    slots_total: usize,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self {
            nodes: vec![Node {
                start: 0,
                width: 0,
                slots: vec![0],
            }],
            free: Vec::new(),
            slots_total: 1,
        }
    }

    /// The segment that owns `hash`.
    #[inline]
    pub(crate) fn find(&self, hash: u64) -> u32 {
        let mut node = &self.nodes[0];
        loop {
            let slot = node.slots[node.index(hash)];
            if slot & CHILD == 0 {
                return slot;
            }
            node = &self.nodes[(slot & !CHILD) as usize];
        }
    }

    /// Gives the second half of the segment that starts at `prefix` to segment `new`.
    pub(crate) fn split(&mut self, prefix: u64, depth: u8, new: u32) {
        debug_assert!(new & CHILD == 0);
        let (at, _) = self.locate(prefix);
        let node = &mut self.nodes[at];
        if depth < node.end() {
            let slots = node.slots_of(prefix, depth);
            let half = slots.len() / 2;
            slots[half..].fill(new);
        } else if node.width < WIDTH_MAX {
            let index = node.index(prefix);
            let mut doubled = Vec::with_capacity(node.slots.len() * 2);
            doubled.extend(node.slots.iter().flat_map(|&slot| [slot, slot]));
            doubled[index * 2 + 1] = new;
            self.slots_total += node.slots.len();
            node.width += 1;
            node.slots = doubled;
        } else {
            let index = node.index(prefix);
            let child = Node {
                start: node.end(),
                width: 1,
                slots: vec![node.slots[index], new],
            };
            let id = match self.free.pop() {
                Some(id) => id,
                None => u32::try_from(self.nodes.len()).expect("fewer nodes than segments"),
            };
            self.nodes[at].slots[index] = CHILD | id;
            self.slots_total += 2;
            if id as usize == self.nodes.len() {
                self.nodes.push(child);
            } else {
                self.nodes[id as usize] = child;
            }
        }
    }

    /// Gives all of the hashes that share `prefix`'s first `depth` bits, so far two segments',
    /// to `id`.
    pub(crate) fn merge(&mut self, prefix: u64, depth: u8, id: u32) {
        let (at, parent) = self.locate(prefix);
        let node = &mut self.nodes[at];
        if at != 0 && depth == node.start {
            self.slots_total -= node.slots.len();
            node.slots = Vec::new();
            let parent = &mut self.nodes[parent];
            let index = parent.index(prefix);
            parent.slots[index] = id;
            self.free.push(u32::try_from(at).expect("came from a u32"));
            return;
        }
        node.slots_of(prefix, depth).fill(id);
        // A node halves once no segment needs its last bit. Child slots never come in pairs.
        if depth + 1 == node.end() && node.slots.chunks_exact(2).all(|pair| pair[0] == pair[1]) {
            node.slots = node.slots.iter().copied().step_by(2).collect();
            node.width -= 1;
            self.slots_total -= node.slots.len();
        }
    }

    /// Renames the segment that starts at `prefix` to `id`.
    pub(crate) fn set(&mut self, prefix: u64, depth: u8, id: u32) {
        let (at, _) = self.locate(prefix);
        self.nodes[at].slots_of(prefix, depth).fill(id);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>() + (self.free.capacity() + self.slots_total) * 4
    }

    /// The node that holds the segment of `prefix`, and that node's parent.
    fn locate(&self, prefix: u64) -> (usize, usize) {
        let (mut at, mut parent) = (0, 0);
        loop {
            let node = &self.nodes[at];
            let slot = node.slots[node.index(prefix)];
            if slot & CHILD == 0 {
                return (at, parent);
            }
            parent = at;
            at = (slot & !CHILD) as usize;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Splits and merges at random, against a map of the prefixes.
    #[test]
    fn agrees_with_a_sorted_map_while_it_grows_and_shrinks() {
        let mut directory = Directory::new();
        let mut model = BTreeMap::from([(0u64, (0u8, 0u32))]);
        let (mut state, mut next) = (42u64, 1u32);
        for step in 0..60_000 {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let probe = state ^ (state >> 29);
            let (&prefix, &(depth, id)) = model.range(..=probe).next_back().unwrap();
            assert_eq!(directory.find(probe), id);
            if step < 30_000 {
                // A corner that splits three times as often makes child nodes.
                let (prefix, depth) = if step % 3 > 0 {
                    let (&p, &(d, _)) = model.range(..=(probe >> 11)).next_back().unwrap();
                    (p, d)
                } else {
                    (prefix, depth)
                };
                if depth < 32 {
                    directory.split(prefix, depth, next);
                    model.get_mut(&prefix).unwrap().0 += 1;
                    model.insert(prefix | 1 << (63 - depth), (depth + 1, next));
                    next += 1;
                }
            } else if depth > 0 {
                let left = prefix & !(1 << (64 - depth));
                let right = left | 1 << (64 - depth);
                if model.get(&left).is_some_and(|s| s.0 == depth)
                    && model.get(&right).is_some_and(|s| s.0 == depth)
                {
                    directory.merge(left, depth - 1, id);
                    model.remove(&right);
                    model.insert(left, (depth - 1, id));
                }
            }
        }
        while model.len() > 1 {
            let deepest = model.values().map(|s| s.0).max().unwrap();
            let prefixes: Vec<u64> = model
                .iter()
                .filter(|(_, s)| s.0 == deepest)
                .map(|(p, _)| *p)
                .collect();
            for pair in prefixes.chunks_exact(2) {
                let id = model.remove(&pair[1]).unwrap().1;
                directory.merge(pair[0], deepest - 1, id);
                directory.set(pair[0], deepest - 1, id + 1);
                model.insert(pair[0], (deepest - 1, id + 1));
            }
            for (prefix, (_, id)) in &model {
                assert_eq!(directory.find(*prefix), *id);
            }
        }
        assert_eq!(directory.slots_total, 1);
        assert_eq!(directory.nodes[0].width, 0);
    }
}
