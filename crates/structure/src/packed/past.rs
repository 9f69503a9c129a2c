//! A table as it was at one moment, and what its segments remember for it.
//!
//! ```text
//! journal   (0 | 1, record)...      0: the key was not there; 1: it was, with this value
//! ```
//! The first entry of a key says what it was; later ones say what it became meanwhile.
//!
//! # Why are whole elements remembered, and not bytes?
//! A segment compacts itself every few dozen replacements; bytes would then be a copy of all.

use std::collections::HashMap;

use super::record;
use super::segment::Segment;
use super::{EntryRef, entry};
use crate::journal::{Part, Past};

const ABSENT: u8 = 0;
const PRESENT: u8 = 1;

/// What a segment remembers.
pub(crate) struct Journal {
    entries: Vec<u8>,
    /// More than this is not worth it: half of a copy.
    bytes_max: usize,
}

impl Part for Segment {
    type Journal = Journal;

    fn begin(&self) -> Journal {
        Journal {
            entries: Vec::new(),
            bytes_max: self.heap_bytes() / 2,
        }
    }
}

impl Journal {
    /// Notes what `key` is before it changes; false where there is no room for it.
    fn note(&mut self, kind: u8, key: &[u8], value: &[u8], deadline: Option<u64>) -> bool {
        let more = 1 + record::len(key, value, deadline);
        let entries = &mut self.entries;
        if entries.len() + more > self.bytes_max {
            return false;
        }
        if entries.len() + more > entries.capacity() {
            entries.reserve_exact(more.max(entries.len() / 2).max(32));
        }
        entries.push(kind);
        record::write(entries, key, value, deadline);
        true
    }

    /// `key` is about to be inserted.
    pub(super) fn absent(&mut self, key: &[u8]) -> bool {
        self.note(ABSENT, key, b"", None)
    }

    /// Element `at` is about to change.
    pub(super) fn present(&mut self, segment: &Segment, at: usize) -> bool {
        let EntryRef {
            key,
            value,
            deadline,
        } = entry(segment, at);
        self.note(PRESENT, key, value, deadline)
    }

    /// What each key was that has changed: `None` where it was not there.
    fn read(&self) -> HashMap<&[u8], Option<EntryRef<'_>>> {
        let mut changed = HashMap::new();
        let mut at = 0;
        while let Some(&kind) = self.entries.get(at) {
            let layout = record::parse(&self.entries, at + 1);
            let key = layout.key(&self.entries);
            changed
                .entry(key)
                .or_insert((kind == PRESENT).then(|| EntryRef {
                    key,
                    value: &self.entries[layout.value_start()..layout.end()],
                    deadline: layout.deadline(&self.entries),
                }));
            at = layout.end();
        }
        changed
    }
}

/// The elements of a [`PackedTable`](super::PackedTable) at one moment.
pub struct PackedPast {
    pub(super) segments: Vec<Past<Segment>>,
    pub(super) len: usize,
    pub(super) due_hint: Option<u64>,
    pub(super) bytes: usize,
}

impl PackedPast {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// No element is due before this; `None` where none has a deadline.
    #[must_use]
    pub fn due_hint(&self) -> Option<u64> {
        self.due_hint
    }

    /// Bytes that it would take if it had nothing in common with anybody.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.bytes
    }

    /// Gives all elements to `f`, in no useful order. Holds one segment at a time; those behind it
    /// remember nothing any more.
    pub fn each(self, mut f: impl FnMut(EntryRef<'_>)) {
        let mut count = 0;
        let mut give = |element: EntryRef<'_>| {
            count += 1;
            f(element);
        };
        for past in self.segments {
            let (segment, journal) = past.read();
            let changed = journal.read();
            for at in 0..segment.len() {
                let element = entry(&segment, at);
                if changed.is_empty() || !changed.contains_key(element.key) {
                    give(element);
                }
            }
            changed.values().flatten().copied().for_each(&mut give);
        }
        assert_eq!(count, self.len, "elements of a past");
    }
}
