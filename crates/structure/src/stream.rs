//! Streams: an append-only log of entries, and the groups of consumers that read it.
//!
//! A stream is four parts, each in a file of its own: the entries in packed blocks
//! ([`block`], [`entries`]), the groups with their pending entries ([`group`], [`pending`]), and
//! the memory that makes repeated additions harmless ([`idempotency`]).
//!
//! # Invariants
//! - `last_id` is at least every id ever held; appending takes only greater ones.
//! - `max_deleted_id` is the greatest id deleted on its own; trimming does not move it.
//! - `entries_added` is at least the number of entries.
//! - Groups are sorted by name.
//! - Nothing here reads a clock: times come in as Unix milliseconds.
//!
//! # Why no index from entries to the groups that hold them?
//! Redis keeps one to answer whether a deleted entry is still referenced. It costs every delivery
//! and every acknowledgement; asking each group costs only those who use DELREF and ACKED.

mod block;
mod entries;
mod group;
mod id;
mod idempotency;
mod pending;
#[cfg(test)]
mod tests;

use std::mem::size_of;

use entries::Entries;

pub use block::{BlockLimits, Entry, FieldSource, Fields};
pub use entries::{Range, RangeBack};
pub use group::{Consumer, Group};
pub use id::StreamId;
pub use idempotency::{Idempotency, IdempotencyLimits, content_name};
pub use pending::{ConsumerIndex, DELIVERIES_MAX, PendingEntry, PendingRange};

/// What happens to the pending entries of groups when their entry is deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum References {
    /// They stay (KEEPREF).
    #[default]
    Keep,
    /// They go too (DELREF).
    Delete,
    /// Only entries that every group has read and acknowledged are deleted (ACKED).
    Acknowledged,
}

/// What became of an entry that was to be deleted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deletion {
    /// There is none.
    Missing,
    /// It is gone.
    Deleted,
    /// A group still needs it.
    Referenced,
}

/// How far to trim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// Down to so many entries.
    Length(u64),
    /// Up to the first entry with this id or a greater one.
    Id(StreamId),
}

/// The counters of a stream from which reading progress is computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// How many entries there are.
    pub length: u64,
    /// The id of the first entry, `0-0` where there is none.
    pub first_id: StreamId,
    /// The greatest id ever added or set.
    pub last_id: StreamId,
    /// The greatest id deleted on its own.
    pub max_deleted_id: StreamId,
    /// How many entries were ever added.
    pub entries_added: u64,
}

impl Progress {
    /// Whether an entry may have been deleted at or after the id, among those still there.
    pub fn has_gap_after(&self, id: StreamId) -> bool {
        self.length > 0
            && self.max_deleted_id != StreamId::MIN
            && self.first_id <= self.max_deleted_id
            && id <= self.max_deleted_id
    }

    /// How many of the entries ever added lie at or before the id; none where it cannot be known.
    pub fn entries_until(&self, id: StreamId) -> Option<u64> {
        if self.entries_added == 0 {
            return Some(0);
        }
        if self.length == 0 && id < self.last_id {
            return Some(self.entries_added);
        }
        if id != StreamId::MIN && id < self.max_deleted_id {
            return None;
        }
        if id >= self.last_id {
            return (id == self.last_id).then_some(self.entries_added);
        }
        if self.max_deleted_id == StreamId::MIN || self.max_deleted_id < self.first_id {
            if id < self.first_id {
                return self.entries_added.checked_sub(self.length);
            }
            if id == self.first_id {
                return self
                    .entries_added
                    .checked_sub(self.length)
                    .map(|before| before + 1);
            }
        }
        None
    }

    /// How many entries the group has yet to read; none where it cannot be known.
    pub fn lag(&self, group: &Group) -> Option<u64> {
        let last = group.last_delivered();
        if self.entries_added == 0 || self.length == 0 {
            return Some(0);
        }
        if last < self.first_id && self.max_deleted_id < self.first_id {
            return Some(self.length);
        }
        // More than there ever were is no count, but what somebody said (XGROUP's ENTRIESREAD).
        let counted = group
            .entries_read
            .filter(|read| *read <= self.entries_added && !self.has_gap_after(last));
        let read = counted.or_else(|| self.entries_until(last));
        read.and_then(|read| self.entries_added.checked_sub(read))
    }
}

/// The entries of a stream and its counters, while one of its groups is being changed.
#[derive(Clone, Copy, Debug)]
pub struct EntriesView<'a> {
    entries: &'a Entries,
    /// The counters.
    pub progress: Progress,
}

impl<'a> EntriesView<'a> {
    /// Entries by ascending id, both ends included.
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'a> {
        self.entries.range(start, end)
    }

    /// The entries that the group has not read.
    pub fn unread(&self, group: &Group) -> Range<'a> {
        let resumed = group
            .place
            .and_then(|place| self.entries.resume(place, StreamId::MAX));
        resumed.unwrap_or_else(|| match group.last_delivered().next() {
            Some(start) => self.entries.range(start, StreamId::MAX),
            None => self.entries.range(StreamId::MAX, StreamId::MIN),
        })
    }

    /// Notes how far the group has come in its unread entries, so that the next read need not
    /// search. To be called after [`Group::advance`] went past each entry taken from the range.
    pub fn bookmark(&self, group: &mut Group, unread: &Range<'_>) {
        group.place = self.entries.place(unread);
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<Entry<'a>> {
        self.entries.get(id)
    }
}

/// A stream.
#[derive(Clone, Debug, Default)]
pub struct Stream {
    entries: Entries,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
    #[expect(
        clippy::vec_box,
        reason = "inserting moves the groups behind, and they are big"
    )]
    groups: Vec<Box<Group>>,
    limits: IdempotencyLimits,
    idempotency: Option<Box<Idempotency>>,
}

impl Stream {
    /// An empty stream.
    pub fn new(limits: IdempotencyLimits) -> Stream {
        Stream {
            limits,
            ..Stream::default()
        }
    }

    /// A stream that holds nothing but a group that was taken out: to free it in slices.
    pub fn of_group(group: Box<Group>) -> Stream {
        Stream {
            groups: vec![group],
            ..Stream::default()
        }
    }

    /// The stream as it is now, to be read by somebody else while this one goes on changing. They
    /// have entries in common that do not change, and what groups know is copied: this costs a step
    /// a block of some hundred entries and a few bytes a pending entry.
    #[must_use]
    pub fn freeze(&mut self) -> Stream {
        Stream {
            entries: self.entries.freeze(),
            groups: self.groups.clone(),
            idempotency: self.idempotency.clone(),
            ..*self
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> u64 {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// How many blocks the entries are packed into.
    pub fn blocks(&self) -> usize {
        self.entries.blocks()
    }

    /// The greatest id ever added or set.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The greatest id deleted on its own.
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    /// How many entries were ever added.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// The first entry.
    pub fn first(&self) -> Option<Entry<'_>> {
        self.entries.first()
    }

    /// The last entry.
    pub fn last(&self) -> Option<Entry<'_>> {
        self.entries.last()
    }

    /// The id of the first entry, `0-0` where there is none.
    pub fn first_id(&self) -> StreamId {
        self.first().map_or(StreamId::MIN, |entry| entry.id)
    }

    /// The counters.
    pub fn progress(&self) -> Progress {
        Progress {
            length: self.len(),
            first_id: self.first_id(),
            last_id: self.last_id,
            max_deleted_id: self.max_deleted_id,
            entries_added: self.entries_added,
        }
    }

    /// Sets the counters (XSETID, or loading a file). The caller has checked that they fit.
    pub fn set_counters(
        &mut self,
        last_id: StreamId,
        entries_added: Option<u64>,
        max_deleted_id: Option<StreamId>,
    ) {
        self.last_id = last_id;
        self.entries_added = entries_added.unwrap_or(self.entries_added);
        self.max_deleted_id = max_deleted_id.unwrap_or(self.max_deleted_id);
    }

    /// The id that an entry added at this time gets; none where ids are exhausted.
    pub fn next_id(&self, now_ms: u64) -> Option<StreamId> {
        if now_ms > self.last_id.ms {
            return Some(StreamId { ms: now_ms, seq: 0 });
        }
        self.last_id.next()
    }

    /// Appends an entry of at least one name and value; false, and nothing done, unless the id is
    /// above `last_id`.
    pub fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl FieldSource<'f>,
        limits: BlockLimits,
    ) -> bool {
        if id <= self.last_id {
            return false;
        }
        self.entries.append(id, fields, limits);
        self.last_id = id;
        self.entries_added = self.entries_added.saturating_add(1);
        true
    }

    /// The entry with this id.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.entries.get(id)
    }

    /// Entries by ascending id, both ends included.
    pub fn range(&self, start: StreamId, end: StreamId) -> Range<'_> {
        self.entries.range(start, end)
    }

    /// Entries by descending id, from `end` down to `start`, both included.
    pub fn range_back(&self, start: StreamId, end: StreamId) -> RangeBack<'_> {
        self.entries.range_back(start, end)
    }

    /// Deletes one entry; groups keep what they have pending of it.
    pub fn delete(&mut self, id: StreamId) -> bool {
        let deleted = self.entries.delete(id);
        if deleted {
            self.max_deleted_id = self.max_deleted_id.max(id);
        }
        deleted
    }

    /// Deletes one entry and minds the groups as told (XDELEX).
    pub fn delete_with(&mut self, id: StreamId, references: References) -> Deletion {
        match references {
            References::Keep => {}
            References::Delete => {
                self.remove_references(id);
            }
            References::Acknowledged if self.is_referenced(id) => return Deletion::Referenced,
            References::Acknowledged => {}
        }
        if self.delete(id) {
            Deletion::Deleted
        } else {
            Deletion::Missing
        }
    }

    /// Acknowledges an entry in a group and deletes it as told (XACKDEL). Missing means that it
    /// was not pending there.
    pub fn acknowledge_delete(
        &mut self,
        group: &[u8],
        id: StreamId,
        references: References,
    ) -> Deletion {
        let Some(group) = self.group_mut(group) else {
            return Deletion::Missing;
        };
        if group.acknowledge(id).is_none() {
            return Deletion::Missing;
        }
        match self.delete_with(id, references) {
            Deletion::Missing => Deletion::Deleted,
            other => other,
        }
    }

    /// Whether a group has not read the entry, or not acknowledged it.
    pub fn is_referenced(&self, id: StreamId) -> bool {
        is_referenced(&self.groups, id)
    }

    /// Removes the entry from what is pending in any group; answers in how many it was.
    pub fn remove_references(&mut self, id: StreamId) -> u64 {
        remove_references(&mut self.groups, id)
    }

    /// Removes entries from the front, and answers how many.
    ///
    /// Approximate trimming drops whole blocks only, unless references go too, and none that would
    /// take the number removed past `limit` (0 is no limit). With [`References::Acknowledged`]
    /// entries that a group still needs are passed over.
    pub fn trim(
        &mut self,
        threshold: Threshold,
        approximate: bool,
        limit: u64,
        references: References,
    ) -> u64 {
        if references == References::Acknowledged {
            return self.trim_acknowledged(threshold, limit);
        }
        let before = self.len();
        while let Some((base, live, last)) = self.entries.first_block() {
            let removed = before - self.len();
            if limit != 0 && removed.saturating_add(live) > limit {
                break;
            }
            let whole = match threshold {
                Threshold::Length(length) => self.len() - live >= length,
                Threshold::Id(id) => last < id,
            };
            if !whole && approximate && references == References::Keep {
                break;
            }
            if whole {
                if references == References::Delete && !self.groups.is_empty() {
                    for entry in self.entries.range(base, last) {
                        remove_references(&mut self.groups, entry.id);
                    }
                }
                self.entries.drop_first_block();
                continue;
            }
            let mut excess = match threshold {
                Threshold::Length(length) => self.len().saturating_sub(length),
                Threshold::Id(_) => u64::MAX,
            };
            let groups = &mut self.groups;
            self.entries.trim_first_block(|id| {
                let keep = match threshold {
                    Threshold::Length(_) => excess == 0,
                    Threshold::Id(min) => id >= min,
                };
                if !keep && references == References::Delete {
                    remove_references(groups, id);
                }
                excess -= u64::from(!keep);
                !keep
            });
            break;
        }
        before - self.len()
    }

    fn trim_acknowledged(&mut self, threshold: Threshold, limit: u64) -> u64 {
        let before = self.len();
        // Nothing past this was read by every group.
        let read_by_all = self.groups.iter().map(|group| group.last_delivered()).min();
        let mut next = self.entries.first_block();
        while let Some((base, live, _)) = next {
            let removed = before - self.len();
            let mut excess = match threshold {
                Threshold::Length(length) => self.len().saturating_sub(length),
                Threshold::Id(id) if base >= id => 0,
                Threshold::Id(_) => u64::MAX,
            };
            let over_limit = limit != 0 && removed.saturating_add(live) > limit;
            if excess == 0 || over_limit || read_by_all.is_some_and(|read| base > read) {
                break;
            }
            let groups = &self.groups;
            self.entries.thin_block(base, |id| {
                let due = match threshold {
                    Threshold::Length(_) => excess > 0,
                    Threshold::Id(min) => id < min,
                };
                let gone = due && !is_referenced(groups, id);
                excess -= u64::from(gone);
                gone
            });
            next = self.entries.block_after(base);
        }
        before - self.len()
    }

    /// The groups in the order of their names.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = &Group> {
        self.groups.iter().map(|group| &**group)
    }

    fn group_place(&self, name: &[u8]) -> Result<usize, usize> {
        self.groups.binary_search_by(|group| group.name().cmp(name))
    }

    /// The group with this name.
    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.group_place(name).ok().map(|at| &*self.groups[at])
    }

    /// The group with this name, to change it.
    pub fn group_mut(&mut self, name: &[u8]) -> Option<&mut Group> {
        self.group_place(name).ok().map(|at| &mut *self.groups[at])
    }

    /// The group with this name, to change it while reading the entries.
    pub fn group_and_entries(&mut self, name: &[u8]) -> Option<(&mut Group, EntriesView<'_>)> {
        let at = self.group_place(name).ok()?;
        let progress = self.progress();
        let entries = EntriesView {
            entries: &self.entries,
            progress,
        };
        Some((&mut *self.groups[at], entries))
    }

    /// Creates a group; none if there is one of this name.
    pub fn create_group(
        &mut self,
        name: &[u8],
        last_delivered: StreamId,
        entries_read: Option<u64>,
    ) -> Option<&mut Group> {
        let at = self.group_place(name).err()?;
        self.groups
            .insert(at, Box::new(Group::new(name, last_delivered, entries_read)));
        Some(&mut *self.groups[at])
    }

    /// Takes a group out. It may be big: free it in slices.
    pub fn remove_group(&mut self, name: &[u8]) -> Option<Box<Group>> {
        self.group_place(name).ok().map(|at| self.groups.remove(at))
    }

    /// The bounds on remembered producers' messages.
    pub fn idempotency_limits(&self) -> IdempotencyLimits {
        self.limits
    }

    /// Sets the bounds; where they differ from before, everything remembered is forgotten.
    pub fn set_idempotency_limits(&mut self, limits: IdempotencyLimits) {
        if limits != self.limits
            && let Some(memory) = &mut self.idempotency
        {
            memory.clear();
        }
        self.limits = limits;
    }

    /// What is remembered of producers, if anything ever was.
    pub fn idempotency(&self) -> Option<&Idempotency> {
        self.idempotency.as_deref()
    }

    /// The like, to change it.
    pub fn idempotency_mut(&mut self) -> &mut Idempotency {
        self.idempotency.get_or_insert_default()
    }

    /// About how many bytes the stream takes, its own fixed part included.
    pub fn memory_bytes(&self) -> usize {
        let groups: usize = self
            .groups
            .iter()
            .map(|group| group.memory_bytes() + 8)
            .sum();
        let idempotency = self
            .idempotency
            .as_ref()
            .map_or(0, |memory| size_of::<Idempotency>() + memory.memory_bytes());
        size_of::<Stream>() + self.entries.memory_bytes() + groups + idempotency
    }

    /// Drops about `budget` blocks, pending entries or names; true once nothing is left. For
    /// freeing a big stream in slices; it is of no other use afterwards.
    pub fn free_some(&mut self, budget: usize) -> bool {
        for _ in 0..budget.max(1) {
            if self.entries.first_block().is_none() {
                break;
            }
            self.entries.drop_first_block();
        }
        if !self.is_empty() {
            return false;
        }
        if let Some(group) = self.groups.last_mut() {
            if group.free_some(budget.max(1)) {
                self.groups.pop();
            }
            return false;
        }
        self.idempotency
            .as_mut()
            .is_none_or(|memory| memory.free_some(budget))
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        self.entries.check_invariants();
        assert!(
            self.last().is_none_or(|last| last.id <= self.last_id),
            "last id"
        );
        for pair in self.groups.windows(2) {
            assert!(pair[0].name() < pair[1].name(), "order of groups");
        }
        for group in &self.groups {
            group.check_invariants();
        }
        if let Some(memory) = &self.idempotency {
            memory.check_invariants();
        }
    }
}

fn is_referenced(groups: &[Box<Group>], id: StreamId) -> bool {
    groups.iter().any(|group| group.references(id))
}

fn remove_references(groups: &mut [Box<Group>], id: StreamId) -> u64 {
    groups
        .iter_mut()
        .map(|group| u64::from(group.acknowledge(id).is_some()))
        .sum()
}
