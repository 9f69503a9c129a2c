//! The heaviest of many keys, in bounded memory: the Space-Saving sketch with weights.
//!
//! A fixed number of keys have a counter. A key that has none takes over the lowest one: it begins
//! with that count, which is remembered as what may be too much. So every key whose true sum is
//! above the lowest counter has one, and a counter less its error never says too much.
//!
//! # Invariants
//! - `heap` holds each entry once, and each entry knows its place there; the lowest is at its root.
//! - `places` has exactly the keys of `entries`.

use std::collections::HashMap;

/// Counters of the heaviest keys.
#[derive(Debug, Default)]
pub struct Top {
    entries: Vec<Counted>,
    /// Numbers of entries: a binary heap, the lowest count at its root.
    heap: Vec<usize>,
    places: HashMap<Box<[u8]>, usize>,
}

#[derive(Debug)]
struct Counted {
    key: Box<[u8]>,
    count: u64,
    /// How much of `count` another key may have left.
    error: u64,
    /// Where it is in the heap.
    at: usize,
}

impl Top {
    /// Adds `weight` to a key, of which at most `keys_max` are kept.
    pub fn add(&mut self, key: &[u8], weight: u64, keys_max: usize) {
        if weight == 0 {
            return;
        }
        if let Some(&entry) = self.places.get(key) {
            self.entries[entry].count = self.entries[entry].count.saturating_add(weight);
            self.sink(self.entries[entry].at);
            return;
        }
        let key: Box<[u8]> = key.into();
        if self.entries.len() < keys_max {
            let entry = self.entries.len();
            self.places.insert(key.clone(), entry);
            self.entries.push(Counted {
                key,
                count: weight,
                error: 0,
                at: self.heap.len(),
            });
            self.heap.push(entry);
            self.rise(self.heap.len() - 1);
            return;
        }
        let Some(&entry) = self.heap.first() else {
            return;
        };
        let lowest = &mut self.entries[entry];
        self.places.remove(&lowest.key);
        self.places.insert(key.clone(), entry);
        lowest.key = key;
        lowest.error = lowest.count;
        lowest.count = lowest.count.saturating_add(weight);
        self.sink(0);
    }

    /// The keys, and what each had at least.
    pub fn counts(&self) -> impl Iterator<Item = (&[u8], u64)> {
        let entries = self.entries.iter();
        entries.map(|entry| (&*entry.key, entry.count - entry.error))
    }

    fn count_at(&self, at: usize) -> u64 {
        self.entries[self.heap[at]].count
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.entries[self.heap[a]].at = a;
        self.entries[self.heap[b]].at = b;
    }

    fn rise(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.count_at(parent) <= self.count_at(at) {
                return;
            }
            self.swap(at, parent);
            at = parent;
        }
    }

    fn sink(&mut self, mut at: usize) {
        loop {
            let children = [2 * at + 1, 2 * at + 2].into_iter();
            let lower = children
                .filter(|&child| child < self.heap.len())
                .min_by_key(|&child| self.count_at(child));
            match lower {
                Some(child) if self.count_at(child) < self.count_at(at) => {
                    self.swap(at, child);
                    at = child;
                }
                _ => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that the heap is one, and that everything knows its place.
    fn check(top: &Top) {
        assert_eq!(top.heap.len(), top.entries.len());
        assert_eq!(top.places.len(), top.entries.len());
        for at in 0..top.heap.len() {
            assert!(at == 0 || top.count_at((at - 1) / 2) <= top.count_at(at));
            let entry = &top.entries[top.heap[at]];
            assert_eq!(entry.at, at);
            assert_eq!(top.places[&entry.key], top.heap[at]);
        }
    }

    #[test]
    fn few_keys_are_counted_exactly() {
        let mut top = Top::default();
        for round in 1..=10 {
            for key in 0..10u8 {
                top.add(&[key], round * u64::from(key), 16);
                check(&top);
            }
        }
        let mut counts: Vec<_> = top.counts().map(|(key, count)| (key[0], count)).collect();
        counts.sort_unstable();
        let expected: Vec<_> = (1..10u8).map(|key| (key, 55 * u64::from(key))).collect();
        assert_eq!(counts, expected);
    }

    #[test]
    fn heavy_keys_stay_among_many_light_ones_and_never_have_too_much() {
        let mut top = Top::default();
        let mut state = 1u64;
        for round in 0..20_000u64 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let light = format!("light:{}", (state >> 33) % 5_000);
            top.add(light.as_bytes(), 1, 64);
            top.add(
                if round % 2 == 0 {
                    b"heavy:1"
                } else {
                    b"heavy:2"
                },
                3,
                64,
            );
        }
        check(&top);
        let mut counts: Vec<_> = top.counts().map(|(key, count)| (count, key)).collect();
        counts.sort_unstable();
        counts.reverse();
        assert_eq!(counts[0].1.get(..6), Some(&b"heavy:"[..]));
        assert_eq!(counts[1].1.get(..6), Some(&b"heavy:"[..]));
        assert_eq!((counts[0].0, counts[1].0), (30_000, 30_000));
        assert!(counts[2].0 < 400, "{}", counts[2].0);
    }
}
