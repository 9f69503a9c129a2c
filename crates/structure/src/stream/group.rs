//! A consumer group: how far it has read, its consumers, and what they have not acknowledged.
//!
//! # Invariants
//! - Each consumer's `pending` is the number of pending entries that name it; `released` is the
//!   number of those that name nobody; together they are all pending entries.
//! - A consumer's index stays its own until it is removed, and is free for another only once no
//!   pending entry names it.

use std::collections::BTreeMap;
use std::mem::size_of;
use std::sync::Arc;

use super::Progress;
use super::entries::Place;
use super::id::StreamId;
use super::pending::{ConsumerIndex, Pending, PendingEntry, PendingRange};

/// A member of a group.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// Unix milliseconds of its last attempt to read or claim.
    pub seen_ms: u64,
    /// Unix milliseconds of its last success; none if it never had one.
    pub active_ms: Option<u64>,
    pending: u64,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many pending entries it holds.
    pub fn pending(&self) -> u64 {
        self.pending
    }
}

/// A consumer group of a stream.
#[derive(Clone, Debug)]
pub struct Group {
    name: Box<[u8]>,
    last_delivered: StreamId,
    /// Where the first unread entry lies.
    pub(super) place: Option<Place>,
    /// How many of the entries ever added lie at or before `last_delivered`; none if unknown.
    pub entries_read: Option<u64>,
    pending: Pending,
    released: u64,
    slots: Vec<Option<Consumer>>,
    free: Vec<u32>,
    by_name: BTreeMap<Arc<[u8]>, ConsumerIndex>,
}

impl Group {
    pub(super) fn new(name: &[u8], last_delivered: StreamId, entries_read: Option<u64>) -> Group {
        Group {
            name: name.into(),
            last_delivered,
            place: None,
            entries_read,
            pending: Pending::default(),
            released: 0,
            slots: Vec::new(),
            free: Vec::new(),
            by_name: BTreeMap::new(),
        }
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The greatest id that was delivered as new.
    pub fn last_delivered(&self) -> StreamId {
        self.last_delivered
    }

    /// Sets how far the group has read (XGROUP SETID, XCLAIM LASTID, or loading a file).
    pub fn set_last_delivered(&mut self, id: StreamId) {
        self.last_delivered = id;
        self.place = None;
    }

    /// How many entries are pending, released ones included.
    pub fn pending_len(&self) -> u64 {
        self.pending.len()
    }

    /// How many pending entries no consumer holds (XNACK).
    pub fn released_len(&self) -> u64 {
        self.released
    }

    /// How many consumers there are.
    pub fn consumers_len(&self) -> usize {
        self.by_name.len()
    }

    /// The consumers in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = (ConsumerIndex, &Consumer)> {
        self.by_name
            .values()
            .filter_map(|index| Some((*index, self.consumer(*index)?)))
    }

    /// Finds a consumer by name.
    pub fn find_consumer(&self, name: &[u8]) -> Option<ConsumerIndex> {
        self.by_name.get(name).copied()
    }

    /// The consumer with this index, if it is still there.
    pub fn consumer(&self, index: ConsumerIndex) -> Option<&Consumer> {
        self.slots.get(index.0 as usize)?.as_ref()
    }

    /// The like, to set its times.
    pub fn consumer_mut(&mut self, index: ConsumerIndex) -> Option<&mut Consumer> {
        self.slots.get_mut(index.0 as usize)?.as_mut()
    }

    /// Finds the consumer or adds it, seen at the time; true if it was added.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: u64) -> (ConsumerIndex, bool) {
        if let Some(index) = self.find_consumer(name) {
            return (index, false);
        }
        let name: Arc<[u8]> = name.into();
        let consumer = Consumer {
            name: name.clone(),
            seen_ms: now_ms,
            active_ms: None,
            pending: 0,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(consumer);
                slot
            }
            None => {
                self.slots.push(Some(consumer));
                let slot = u32::try_from(self.slots.len() - 1).unwrap_or(ConsumerIndex::NONE);
                assert!(slot != ConsumerIndex::NONE, "too many consumers in a group");
                slot
            }
        };
        self.by_name.insert(name, ConsumerIndex(slot));
        (ConsumerIndex(slot), true)
    }

    /// Removes a consumer with all that is pending for it; answers how many entries that were.
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<u64> {
        let index = self.by_name.remove(name)?;
        let removed = self.consumer(index).map_or(0, Consumer::pending);
        let held = self
            .pending
            .range(StreamId::MIN, StreamId::MAX, Some(index));
        let ids: Vec<StreamId> = held.map(|entry| entry.id).collect();
        for id in ids {
            self.pending.remove(id);
        }
        self.slots[index.0 as usize] = None;
        self.free.push(index.0);
        Some(removed)
    }

    /// Moves the group past an entry that was delivered as new. `progress` is the stream's.
    pub fn advance(&mut self, id: StreamId, progress: &Progress) {
        if id <= self.last_delivered {
            return;
        }
        self.entries_read = match self.entries_read {
            // Counting on is right only from among the entries still there: what was trimmed
            // between the last read and the first entry counts as read.
            Some(read)
                if self.last_delivered >= progress.first_id
                    && !progress.has_gap_after(self.last_delivered) =>
            {
                Some(read.saturating_add(1))
            }
            read if progress.entries_added == 0 => read,
            _ => progress.entries_until(id),
        };
        self.last_delivered = id;
    }

    /// Makes the entry pending for the consumer, whoever held it before. True if it was not
    /// pending at all.
    pub fn hold(
        &mut self,
        id: StreamId,
        consumer: ConsumerIndex,
        delivered_ms: u64,
        deliveries: u64,
    ) -> bool {
        let old = self.pending.hold(id, consumer, delivered_ms, deliveries);
        if let Some(old) = &old {
            self.uncount(old);
        }
        if let Some(holder) = self.consumer_mut(consumer) {
            holder.pending += 1;
        }
        old.is_none()
    }

    /// Takes the entry from its consumer and leaves it pending for anybody (XNACK). True if it was
    /// not pending at all.
    pub fn release(&mut self, id: StreamId, deliveries: u64) -> bool {
        let old = self.pending.release(id, deliveries);
        if let Some(old) = &old {
            self.uncount(old);
        }
        self.released += 1;
        old.is_none()
    }

    /// Sets how often a pending entry was delivered, and nothing else.
    pub fn set_deliveries(&mut self, id: StreamId, deliveries: u64) {
        self.pending.set_deliveries(id, deliveries);
    }

    /// Removes a pending entry: it was acknowledged, or it is gone.
    pub fn acknowledge(&mut self, id: StreamId) -> Option<PendingEntry> {
        let old = self.pending.remove(id)?;
        self.uncount(&old);
        Some(old)
    }

    fn uncount(&mut self, old: &PendingEntry) {
        match old.consumer.and_then(|index| self.consumer_mut(index)) {
            Some(holder) => holder.pending -= 1,
            None => self.released -= 1,
        }
    }

    /// The pending entry with this id.
    pub fn pending(&self, id: StreamId) -> Option<PendingEntry> {
        self.pending.get(id)
    }

    /// The smallest and the greatest pending id.
    pub fn pending_bounds(&self) -> Option<(StreamId, StreamId)> {
        let first = self
            .pending_range(StreamId::MIN, StreamId::MAX, None)
            .next()?;
        Some((first.id, self.pending.last()?))
    }

    /// Pending entries by id, of one consumer or of all.
    pub fn pending_range(
        &self,
        start: StreamId,
        end: StreamId,
        consumer: Option<ConsumerIndex>,
    ) -> PendingRange<'_> {
        self.pending.range(start, end, consumer)
    }

    /// What may be claimed: released entries in the order of their release, then those delivered
    /// at or before the time, oldest first. `wanted` may turn one down (its entry was deleted).
    pub fn claimable(
        &self,
        delivered_max_ms: Option<u64>,
        count: usize,
        wanted: impl FnMut(StreamId) -> bool,
    ) -> Vec<PendingEntry> {
        self.pending.oldest(delivered_max_ms, count, wanted)
    }

    /// Whether the group still needs the entry: it has not read it, or not acknowledged it.
    pub fn references(&self, id: StreamId) -> bool {
        id > self.last_delivered || self.pending.get(id).is_some()
    }

    /// About how many bytes the group takes.
    pub fn memory_bytes(&self) -> usize {
        let names: usize = self.by_name.keys().map(|name| name.len() + 16).sum();
        size_of::<Group>()
            + self.name.len()
            + self.pending.memory_bytes()
            + names
            + self.slots.capacity() * size_of::<Option<Consumer>>()
            + self.by_name.len() * 32
    }

    /// Drops about `budget` pending entries or consumers; true once none is left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if !self.pending.free_some(budget) {
            return false;
        }
        for _ in 0..budget {
            if self.by_name.pop_first().is_none() {
                return true;
            }
            self.slots.pop();
        }
        false
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check_invariants(&self) {
        self.pending.check_invariants();
        let mut held = vec![0; self.slots.len()];
        let mut released = 0;
        for entry in self.pending_range(StreamId::MIN, StreamId::MAX, None) {
            match entry.consumer {
                Some(index) => held[index.0 as usize] += 1,
                None => released += 1,
            }
        }
        assert_eq!(released, self.released, "released entries");
        for (name, index) in &self.by_name {
            let consumer = self.consumer(*index).expect("a named consumer has a slot");
            assert_eq!(&consumer.name, name, "name of a consumer");
            assert_eq!(
                held[index.0 as usize], consumer.pending,
                "pending of a consumer"
            );
        }
        assert_eq!(
            self.by_name.len() + self.free.len(),
            self.slots.len(),
            "slots of consumers"
        );
    }
}
