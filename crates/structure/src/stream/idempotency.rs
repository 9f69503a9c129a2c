//! Which messages of which producers were added lately, so that a repeated XADD adds nothing.
//!
//! A producer names itself and each of its messages; the stream remembers, for every producer, the
//! last so many names with the ids that they got.
//!
//! # Invariants
//! - A producer remembers at most `entries_max` names, the latest ones; one without any is removed.
//! - `tracked` is the number of names of all producers.
//! - Names are forgotten in the order in which they came, by age of the entry's id.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::id::StreamId;

/// The bounds of what a stream remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdempotencyLimits {
    /// Seconds after which a name is forgotten.
    pub duration_s: u32,
    /// The most names remembered for one producer.
    pub entries_max: u32,
}

impl Default for IdempotencyLimits {
    fn default() -> IdempotencyLimits {
        IdempotencyLimits {
            duration_s: 100,
            entries_max: 100,
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Producer {
    ids: BTreeMap<Arc<[u8]>, StreamId>,
    order: VecDeque<Arc<[u8]>>,
}

/// The memory of one stream.
#[derive(Clone, Debug, Default)]
pub struct Idempotency {
    producers: BTreeMap<Box<[u8]>, Producer>,
    tracked: u64,
    name_bytes: usize,
    /// Where the sweep over all producers goes on.
    swept: Option<Box<[u8]>>,
    /// How many names were ever recorded.
    pub added: u64,
    /// How many repeated messages were turned away.
    pub duplicates: u64,
}

impl Idempotency {
    /// How many producers are remembered.
    pub fn producers(&self) -> usize {
        self.producers.len()
    }

    /// How many names are remembered.
    pub fn tracked(&self) -> u64 {
        self.tracked
    }

    /// The id that the producer's message got, if it is remembered.
    pub fn find(&self, producer: &[u8], name: &[u8]) -> Option<StreamId> {
        self.producers.get(producer)?.ids.get(name).copied()
    }

    /// Remembers a message; forgets the producer's oldest where it has too many.
    pub fn record(&mut self, producer: &[u8], name: &[u8], id: StreamId, entries_max: u32) {
        let name: Arc<[u8]> = name.into();
        if !self.producers.contains_key(producer) {
            self.producers.insert(producer.into(), Producer::default());
        }
        let Some(memory) = self.producers.get_mut(producer) else {
            return;
        };
        self.added = self.added.saturating_add(1);
        if memory.ids.insert(name.clone(), id).is_some() {
            return;
        }
        self.tracked += 1;
        self.name_bytes += name.len();
        memory.order.push_back(name);
        while memory.order.len() > entries_max.max(1) as usize {
            if let Some(oldest) = memory.order.pop_front() {
                memory.ids.remove(&oldest);
                self.tracked -= 1;
                self.name_bytes -= oldest.len();
            }
        }
    }

    /// Forgets what is older than the duration: looks at `budget` producers or names at most,
    /// from the producer after `from`. Answers where to go on, or none at the end.
    pub fn expire(
        &mut self,
        now_ms: u64,
        duration_s: u32,
        from: Option<&[u8]>,
        budget: usize,
    ) -> Option<Box<[u8]>> {
        use std::ops::Bound::{Excluded, Unbounded};
        let oldest_ms = now_ms.saturating_sub(u64::from(duration_s) * 1000);
        let start = from.map_or(Unbounded, Excluded);
        let mut work = 0;
        let mut stopped = None;
        let mut emptied = Vec::new();
        for (producer, memory) in self.producers.range_mut::<[u8], _>((start, Unbounded)) {
            if work >= budget {
                break;
            }
            work += 1;
            while let Some(name) = memory.order.front() {
                if memory.ids.get(name).is_some_and(|id| id.ms > oldest_ms) {
                    break;
                }
                memory.ids.remove(name);
                self.tracked -= 1;
                self.name_bytes -= name.len();
                memory.order.pop_front();
                work += 1;
            }
            if memory.order.is_empty() {
                emptied.push(producer.clone());
            }
            stopped = Some(producer.clone());
        }
        for producer in &emptied {
            self.producers.remove(producer);
        }
        if work >= budget { stopped } else { None }
    }

    /// Goes on with forgetting what is older than the duration, where the last call left off;
    /// looks at `budget` producers or names at most.
    pub fn sweep(&mut self, now_ms: u64, duration_s: u32, budget: usize) {
        let from = self.swept.take();
        self.swept = self.expire(now_ms, duration_s, from.as_deref(), budget);
    }

    /// Forgets what one producer sent longer ago than the duration.
    pub fn forget_old(&mut self, producer: &[u8], now_ms: u64, duration_s: u32) {
        let oldest_ms = now_ms.saturating_sub(u64::from(duration_s) * 1000);
        let Some(memory) = self.producers.get_mut(producer) else {
            return;
        };
        while let Some(name) = memory.order.front() {
            if memory.ids.get(name).is_some_and(|id| id.ms > oldest_ms) {
                return;
            }
            memory.ids.remove(name);
            self.tracked -= 1;
            self.name_bytes -= name.len();
            memory.order.pop_front();
        }
        self.producers.remove(producer);
    }

    /// Forgets every name; the counters stay.
    pub fn clear(&mut self) {
        self.producers.clear();
        (self.tracked, self.name_bytes) = (0, 0);
    }

    /// Every remembered message: producer, name, id; per producer in the order they came.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8], StreamId)> {
        self.producers.iter().flat_map(|(producer, memory)| {
            memory.order.iter().filter_map(move |name| {
                Some((producer.as_ref(), name.as_ref(), *memory.ids.get(name)?))
            })
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let producers: usize = self.producers.keys().map(|name| name.len() + 128).sum();
        producers + self.name_bytes + self.tracked as usize * 96
    }

    /// Drops up to `budget` producers; true once none is left.
    pub(super) fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget.max(1) {
            let Some((_, memory)) = self.producers.pop_first() else {
                return true;
            };
            self.tracked -= memory.order.len() as u64;
        }
        self.producers.is_empty()
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_invariants(&self) {
        let mut tracked = 0;
        for memory in self.producers.values() {
            assert!(!memory.order.is_empty(), "a producer without names");
            assert_eq!(memory.order.len(), memory.ids.len(), "names of a producer");
            assert!(
                memory
                    .order
                    .iter()
                    .all(|name| memory.ids.contains_key(name))
            );
            tracked += memory.order.len() as u64;
        }
        assert_eq!(tracked, self.tracked, "tracked names");
    }
}

/// The name that a message gets from its content (IDMPAUTO): the same for the same pairs of name
/// and value, whatever their order.
pub fn content_name<'f>(fields: impl Iterator<Item = (&'f [u8], &'f [u8])>) -> [u8; 16] {
    let (mut low, mut high, mut pairs) = (0u64, 0u64, 0u64);
    for (name, value) in fields {
        let once = hash(hash(0x9e37_79b9_7f4a_7c15, name), value);
        let twice = hash(hash(0xd1b5_4a32_d192_ed03, name), value);
        // Sums do not depend on order; a final mix keeps equal pairs from cancelling out.
        low = low.wrapping_add(mix(once, twice));
        high = high.wrapping_add(mix(twice, once.rotate_left(32)));
        pairs += 1;
    }
    let mut name = [0; 16];
    name[..8].copy_from_slice(&mix(low, pairs).to_le_bytes());
    name[8..].copy_from_slice(&mix(high, !pairs).to_le_bytes());
    name
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let mut state = mix(seed, bytes.len() as u64);
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state, u64::from_le_bytes(word));
    }
    state
}

fn mix(a: u64, b: u64) -> u64 {
    let wide = u128::from(a ^ 0xa076_1d64_78bd_642f) * u128::from(b ^ 0xe703_7ed1_a0b4_28db);
    (wide as u64 ^ (wide >> 64) as u64).wrapping_add(a.rotate_left(23) ^ b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remembers_the_latest_names_of_each_producer() {
        let mut memory = Idempotency::default();
        for n in 0..5u64 {
            memory.record(b"p", &[b'a' + n as u8], StreamId::new(n * 1000, 0), 3);
            memory.check_invariants();
        }
        memory.record(b"q", b"a", StreamId::new(9000, 0), 3);
        assert_eq!(
            (memory.producers(), memory.tracked(), memory.added),
            (2, 4, 6)
        );
        assert_eq!(memory.find(b"p", b"a"), None);
        assert_eq!(memory.find(b"p", b"e"), Some(StreamId::new(4000, 0)));
        assert_eq!(memory.expire(5000, 2, None, 100), None);
        memory.check_invariants();
        assert_eq!(memory.find(b"p", b"d"), None);
        assert_eq!(memory.find(b"p", b"e"), Some(StreamId::new(4000, 0)));
        assert_eq!(
            memory.expire(100_000, 2, None, 1).as_deref(),
            Some(&b"p"[..])
        );
        assert_eq!(memory.expire(100_000, 2, Some(b"p"), 9), None);
        assert_eq!((memory.producers(), memory.tracked()), (0, 0));
    }

    #[test]
    fn one_producer_and_then_the_rest_forget_in_turn() {
        let mut memory = Idempotency::default();
        for producer in [b"p", b"q", b"r"] {
            for n in 0..3u64 {
                memory.record(producer, &[b'a' + n as u8], StreamId::new(n * 1000, 0), 10);
            }
        }
        memory.forget_old(b"q", 3000, 2);
        memory.check_invariants();
        assert_eq!((memory.producers(), memory.tracked()), (3, 7));
        assert_eq!(memory.find(b"q", b"c"), Some(StreamId::new(2000, 0)));
        memory.forget_old(b"q", 9000, 2);
        memory.forget_old(b"nobody", 9000, 2);
        assert_eq!((memory.producers(), memory.tracked()), (2, 6));
        for _ in 0..4 {
            memory.sweep(9000, 2, 1);
            memory.check_invariants();
        }
        assert_eq!((memory.producers(), memory.tracked()), (0, 0));
    }

    #[test]
    fn content_names_ignore_order_and_nothing_else() {
        let pairs = [(&b"a"[..], &b"2"[..]), (b"b", b"3")];
        let there = content_name(pairs.into_iter());
        assert_eq!(there, content_name(pairs.into_iter().rev()));
        assert_ne!(
            there,
            content_name([(&b"a"[..], &b"3"[..]), (b"b", b"2")].into_iter())
        );
        assert_ne!(there, content_name([(&b"ab"[..], &b"23"[..])].into_iter()));
        assert_ne!(
            content_name(pairs[..1].iter().copied()),
            content_name([pairs[0]; 2].into_iter())
        );
    }
}
