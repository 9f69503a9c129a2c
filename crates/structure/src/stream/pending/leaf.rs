//! A leaf of the tree of pending entries: ids in one column, their states in another.
//!
//! # Invariants
//! - Both columns have the same length; ids ascend.
//! - Narrow ids are offsets of four bytes from the leaf's millisecond, and sequence numbers below
//!   2^32. A leaf that meets an id beyond that widens for good.

use super::State;
use crate::stream::id::StreamId;

#[derive(Clone, Debug)]
enum Ids {
    Narrow { base_ms: u64, ids: Vec<(u32, u32)> },
    Wide(Vec<StreamId>),
}

#[derive(Clone, Debug)]
pub(super) struct Leaf {
    ids: Ids,
    states: Vec<State>,
}

impl Default for Leaf {
    fn default() -> Leaf {
        Leaf {
            ids: Ids::Narrow {
                base_ms: 0,
                ids: Vec::new(),
            },
            states: Vec::new(),
        }
    }
}

fn narrow(base_ms: u64, id: StreamId) -> Option<(u32, u32)> {
    let ms = u32::try_from(id.ms.checked_sub(base_ms)?).ok()?;
    Some((ms, u32::try_from(id.seq).ok()?))
}

fn wide(base_ms: u64, id: (u32, u32)) -> StreamId {
    StreamId {
        ms: base_ms + u64::from(id.0),
        seq: u64::from(id.1),
    }
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        self.states.len()
    }

    pub(super) fn states(&self) -> &[State] {
        &self.states
    }

    pub(super) fn id(&self, at: usize) -> StreamId {
        match &self.ids {
            Ids::Narrow { base_ms, ids } => wide(*base_ms, ids[at]),
            Ids::Wide(ids) => ids[at],
        }
    }

    pub(super) fn first(&self) -> Option<StreamId> {
        (self.len() > 0).then(|| self.id(0))
    }

    pub(super) fn last(&self) -> Option<StreamId> {
        self.len().checked_sub(1).map(|at| self.id(at))
    }

    /// The place of the first id at or after this one.
    pub(super) fn lower_bound(&self, id: StreamId) -> usize {
        match self.last() {
            Some(last) if last >= id => {}
            _ => return self.len(),
        }
        match &self.ids {
            Ids::Narrow { base_ms, ids } => ids.partition_point(|at| wide(*base_ms, *at) < id),
            Ids::Wide(ids) => ids.partition_point(|at| *at < id),
        }
    }

    fn find(&self, id: StreamId) -> Option<usize> {
        let at = self.lower_bound(id);
        (at < self.len() && self.id(at) == id).then_some(at)
    }

    pub(super) fn get(&self, id: StreamId) -> Option<State> {
        self.find(id).map(|at| self.states[at])
    }

    /// A leaf of one entry with room for more.
    pub(super) fn starting(id: StreamId, state: State, capacity: usize) -> Leaf {
        let mut leaf = Leaf {
            ids: Ids::Narrow {
                base_ms: id.ms,
                ids: Vec::with_capacity(capacity),
            },
            states: Vec::with_capacity(capacity),
        };
        leaf.insert(id, state);
        leaf
    }

    /// Sets the state of an id that is there; answers the one before.
    pub(super) fn replace(&mut self, id: StreamId, state: State) -> Option<State> {
        let at = self.find(id)?;
        Some(std::mem::replace(&mut self.states[at], state))
    }

    /// Adds an id that is not there.
    pub(super) fn insert(&mut self, id: StreamId, state: State) {
        let at = self.lower_bound(id);
        if let (true, Ids::Narrow { base_ms, .. }) = (self.states.is_empty(), &mut self.ids) {
            *base_ms = id.ms;
        }
        self.states.insert(at, state);
        match &mut self.ids {
            Ids::Narrow { base_ms, ids } => match narrow(*base_ms, id) {
                Some(short) => ids.insert(at, short),
                None => {
                    let mut all: Vec<StreamId> = ids.iter().map(|id| wide(*base_ms, *id)).collect();
                    all.insert(at, id);
                    self.ids = Ids::of(all);
                }
            },
            Ids::Wide(ids) => ids.insert(at, id),
        }
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<State> {
        let at = self.find(id)?;
        match &mut self.ids {
            Ids::Narrow { ids, .. } => {
                ids.remove(at);
            }
            Ids::Wide(ids) => {
                ids.remove(at);
            }
        }
        Some(self.states.remove(at))
    }

    /// Takes the upper half off.
    pub(super) fn split(&mut self) -> Leaf {
        let at = self.len() / 2;
        let ids: Vec<StreamId> = (at..self.len()).map(|at| self.id(at)).collect();
        match &mut self.ids {
            Ids::Narrow { ids, .. } => ids.truncate(at),
            Ids::Wide(ids) => ids.truncate(at),
        }
        Leaf {
            ids: Ids::of(ids),
            states: self.states.split_off(at),
        }
    }

    /// Takes in all entries of the next leaf.
    pub(super) fn append(&mut self, right: Leaf) {
        let all = (0..self.len()).map(|at| self.id(at));
        let ids = all.chain((0..right.len()).map(|at| right.id(at))).collect();
        self.ids = Ids::of(ids);
        self.states.extend(right.states);
    }

    #[cfg(any(test, debug_assertions))]
    pub(super) fn check(&self) {
        let ids = match &self.ids {
            Ids::Narrow { ids, .. } => ids.len(),
            Ids::Wide(ids) => ids.len(),
        };
        assert_eq!(ids, self.states.len(), "columns of a leaf");
        assert!(ids <= super::LEAF_MAX, "leaf too long");
    }
}

impl Ids {
    fn of(ids: Vec<StreamId>) -> Ids {
        let base_ms = ids.first().map_or(0, |id| id.ms);
        let short: Option<Vec<(u32, u32)>> = ids.iter().map(|id| narrow(base_ms, *id)).collect();
        match short {
            Some(ids) => Ids::Narrow { base_ms, ids },
            None => Ids::Wide(ids),
        }
    }
}
