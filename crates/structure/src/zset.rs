//! `SortedSet`: the large form of sorted sets.
//!
//! Three parts. The member store holds each member once, with its score; the member table leads
//! from a member's hash to its record; the counted B+tree holds the records in order, by score
//! and then by the member's bytes. Between them go 32-bit references to records.
//!
//! ```text
//! hash -> table (2 + 4 B) -> record: member, score <- tree (2 + 4 B) <- rank, score, place
//! ```
//! A range by score or by member is turned into a range of ranks, and cursors are ranks, so
//! iteration allocates nothing and goes both ways. No operation touches more than two segments
//! of the table, a path of the tree and a few records under evacuation: nothing grows with the
//! set but the height of the tree. Only [`SortedSet::free_some`] and dropping free it all.
//!
//! Hashes come from the caller, as in [`PackedTable`](crate::packed::PackedTable). A score is
//! never NaN: the caller refuses it.
//!
//! # Invariants
//! - Table and tree refer to the same records, each once.
//! - A record's score is the one by which it stands in the tree.
//!
//! # Why not the score in the leaves too?
//! See `zset/store.rs` and `zset/leaf.rs`: 6 bytes a member, for a look at the record in one
//! search of thirty.

mod leaf;
mod members;
mod order;
mod page;
mod store;
#[cfg(test)]
mod tests;
mod tree;

use members::MemberTable;
use order::{Edge, Probe, order_key};
use std::ops::Range;
use store::{MemberStore, MembersPast};
use tree::Tree;

/// Records moved out of a page under evacuation in one operation, at most.
const MOVES_MAX: usize = 2;

/// How far an iterator fetches records ahead.
const AHEAD: usize = 8;

/// A set of members ordered by score. See the module's documentation.
pub struct SortedSet {
    store: MemberStore,
    table: MemberTable,
    tree: Tree,
}

/// The members of a sorted set at one moment, in no useful order.
pub struct Members {
    past: MembersPast,
    len: usize,
}

impl Members {
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

    /// Bytes that it would take if it had nothing in common with anybody.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.past.memory_bytes()
    }

    /// Gives all members with their scores to `f`. What was given is remembered no more.
    pub fn each(self, mut f: impl FnMut(&[u8], f64)) {
        let mut count = 0;
        self.past.each(|member, score| {
            count += 1;
            f(member, score);
        });
        assert_eq!(count, self.len, "members of a past");
    }
}

/// An end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreBound {
    Incl(f64),
    Excl(f64),
}

/// An end of a range of members of equal score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// Before all members.
    Min,
    Incl(&'a [u8]),
    Excl(&'a [u8]),
    /// After all members.
    Max,
}

impl Default for SortedSet {
    fn default() -> Self {
        Self::new()
    }
}

impl SortedSet {
    #[must_use]
    pub fn new() -> Self {
        Self {
            store: MemberStore::new(),
            table: MemberTable::new(),
            tree: Tree::new(),
        }
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a new member may find no room: at 16 GiB of members. `insert` would panic.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.store.is_full()
    }

    /// Bytes allocated, without what the allocator adds. Takes a step for 5000 members.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.store.memory_bytes() + self.table.memory_bytes() + self.tree.memory_bytes()
    }

    /// Fetches what a search for `hash` reads first, for a caller with several to make.
    #[inline]
    pub fn prefetch(&self, hash: u64) {
        self.table.prefetch(hash);
    }

    /// The score of `member`.
    #[inline]
    #[must_use]
    pub fn score(&self, hash: u64, member: &[u8]) -> Option<f64> {
        self.find(hash, member).map(|at| self.store.score(at))
    }

    /// Sets the score of `member`, not NaN, and returns the one it had.
    ///
    /// `hash` is `hasher(member)`, and `hasher` the same function in every call.
    pub fn insert(
        &mut self,
        hash: u64,
        member: &[u8],
        score: f64,
        hasher: &impl Fn(&[u8]) -> u64,
    ) -> Option<f64> {
        // The place of the new score is known already: let its leaf come while the member is found.
        self.tree.prefetch(order_key(score));
        let old = if let Some(at) = self.find(hash, member) {
            let old = self.store.score(at);
            let (old_key, key) = (order_key(old), order_key(score));
            if old_key == key {
                // The same place, but a zero may have changed its sign.
                self.store.set_score(at, score);
                return Some(old);
            }
            let probe = Probe {
                key: old_key,
                edge: Edge::After(member),
            };
            self.tree.remove(&self.store, &probe, at);
            self.store.set_score(at, score);
            let probe = Probe {
                key,
                edge: Edge::Before(member),
            };
            self.tree.insert(&self.store, &probe, at);
            Some(old)
        } else {
            let at = self.store.insert(member, score);
            let store = &self.store;
            self.table
                .insert(hash, at, |record| hasher(store.member(record)));
            let probe = Probe {
                key: order_key(score),
                edge: Edge::Before(member),
            };
            self.tree.insert(&self.store, &probe, at);
            None
        };
        self.evacuate(hasher);
        old
    }

    /// Removes `member` and returns its score.
    pub fn remove(
        &mut self,
        hash: u64,
        member: &[u8],
        hasher: &impl Fn(&[u8]) -> u64,
    ) -> Option<f64> {
        let at = self.find(hash, member)?;
        let score = self.store.score(at);
        self.unlink(hash, at);
        self.evacuate(hasher);
        Some(score)
    }

    /// Removes the member at `rank` after giving it and its score to `f`.
    pub fn remove_at<R>(
        &mut self,
        rank: usize,
        hasher: &impl Fn(&[u8]) -> u64,
        f: impl FnOnce(&[u8], f64) -> R,
    ) -> Option<R> {
        let at = self.record_at(rank)?;
        let member = self.store.member(at);
        let result = f(member, self.store.score(at));
        self.unlink(hasher(member), at);
        self.evacuate(hasher);
        Some(result)
    }

    /// Removes the member of the lowest score, as [`remove_at`](Self::remove_at).
    pub fn pop_first<R>(
        &mut self,
        hasher: &impl Fn(&[u8]) -> u64,
        f: impl FnOnce(&[u8], f64) -> R,
    ) -> Option<R> {
        self.remove_at(0, hasher, f)
    }

    /// Removes the member of the highest score, as [`remove_at`](Self::remove_at).
    pub fn pop_last<R>(
        &mut self,
        hasher: &impl Fn(&[u8]) -> u64,
        f: impl FnOnce(&[u8], f64) -> R,
    ) -> Option<R> {
        self.remove_at(self.len().checked_sub(1)?, hasher, f)
    }

    /// How many members stand before `member`, and its score.
    #[must_use]
    pub fn rank(&self, hash: u64, member: &[u8]) -> Option<(usize, f64)> {
        let score = self.score(hash, member)?;
        let probe = Probe {
            key: order_key(score),
            edge: Edge::Before(member),
        };
        Some((self.tree.rank(&self.store, &probe), score))
    }

    /// The member that `rank` others stand before.
    #[must_use]
    pub fn by_rank(&self, rank: usize) -> Option<(&[u8], f64)> {
        self.record_at(rank).map(|at| self.entry(at))
    }

    /// The ranks of the members whose scores lie between two bounds.
    #[must_use]
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        let rank = |score, edge| {
            self.tree.rank(
                &self.store,
                &Probe {
                    key: order_key(score),
                    edge,
                },
            )
        };
        let start = match min {
            ScoreBound::Incl(score) => rank(score, Edge::Start),
            ScoreBound::Excl(score) => rank(score, Edge::End),
        };
        let end = match max {
            ScoreBound::Incl(score) => rank(score, Edge::End),
            ScoreBound::Excl(score) => rank(score, Edge::Start),
        };
        start..end.max(start)
    }

    /// The ranks of the members between two bounds, in a set whose scores are all the same. In
    /// any other set: some range of ranks.
    #[must_use]
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        let Some((_, score)) = self.by_rank(0) else {
            return 0..0;
        };
        let key = order_key(score);
        let rank = |edge| self.tree.rank(&self.store, &Probe { key, edge });
        let start = match min {
            LexBound::Min => 0,
            LexBound::Incl(member) => rank(Edge::Before(member)),
            LexBound::Excl(member) => rank(Edge::After(member)),
            LexBound::Max => self.len(),
        };
        let end = match max {
            LexBound::Min => 0,
            LexBound::Incl(member) => rank(Edge::After(member)),
            LexBound::Excl(member) => rank(Edge::Before(member)),
            LexBound::Max => self.len(),
        };
        start..end.max(start)
    }

    /// The members of `ranks` in order, or from the last to the first where `rev`.
    #[must_use]
    pub fn range(&self, ranks: Range<usize>, rev: bool) -> Iter<'_> {
        let end = ranks.end.min(self.len());
        let start = ranks.start.min(end);
        Iter {
            set: self,
            leaf: &[],
            at: 0,
            start,
            end,
            rev,
        }
    }

    /// The members from `rank` to the end of the order, or back to its start where `rev`.
    #[must_use]
    pub fn iter_from_rank(&self, rank: usize, rev: bool) -> Iter<'_> {
        let ranks = if rev {
            0..rank.saturating_add(1)
        } else {
            rank..self.len()
        };
        self.range(ranks, rev)
    }

    /// All members in order.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len(), false)
    }

    /// Calls `f` for about `count` members, in hash order, with the guarantee of
    /// [`PackedTable::scan`](crate::packed::PackedTable::scan).
    pub fn scan<'s>(&'s self, cursor: u64, count: usize, mut f: impl FnMut(&'s [u8], f64)) -> u64 {
        self.table.scan(cursor, count, |at| {
            let (member, score) = self.entry(at);
            f(member, score);
        })
    }

    /// A member, each with the same probability, given `rng(n)` uniform in `0..n`.
    pub fn random(&self, mut rng: impl FnMut(u64) -> u64) -> Option<(&[u8], f64)> {
        if self.is_empty() {
            return None;
        }
        self.by_rank(rng(self.len() as u64) as usize)
    }

    /// Frees about `budget` allocations of a set that nobody uses any more; true when all is
    /// gone. From the first call to that, the set is good for nothing else.
    pub fn free_some(&mut self, budget: usize) -> bool {
        self.tree.free_some(budget) && self.table.free_some(budget) && self.store.free_some(budget)
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        self.tree.check(&self.store);
        self.store.check();
        self.table.check(self.len());
        assert_eq!(self.iter().count(), self.len());
    }

    /// The members as they are now, to be read by somebody else while the set goes on changing.
    /// This costs a step a page of some hundred members; until a page was read, what a change takes
    /// away is kept.
    #[must_use]
    pub fn freeze(&mut self) -> Members {
        Members {
            past: self.store.freeze(),
            len: self.len(),
        }
    }

    #[inline]
    fn find(&self, hash: u64, member: &[u8]) -> Option<u32> {
        self.table.find(hash, |at| self.store.member(at) == member)
    }

    fn record_at(&self, rank: usize) -> Option<u32> {
        if rank >= self.len() {
            return None;
        }
        let (leaf, at) = self.tree.leaf_of(rank);
        Some(leaf[at])
    }

    #[inline]
    fn entry(&self, at: u32) -> (&[u8], f64) {
        (self.store.member(at), self.store.score(at))
    }

    /// Takes a record out of all three parts.
    fn unlink(&mut self, hash: u64, at: u32) {
        let (member, score) = (self.store.member(at), self.store.score(at));
        let probe = Probe {
            key: order_key(score),
            edge: Edge::After(member),
        };
        self.tree.remove(&self.store, &probe, at);
        self.table.remove(hash, at);
        self.store.remove(at);
    }

    /// Moves a few records out of a page that is mostly free, if there is one.
    #[inline]
    fn evacuate(&mut self, hasher: &impl Fn(&[u8]) -> u64) {
        for _ in 0..MOVES_MAX {
            let Some(from) = self.store.next_to_move() else {
                return;
            };
            let to = self.store.relocate(from);
            let (member, score) = (self.store.member(from), self.store.score(from));
            let probe = Probe {
                key: order_key(score),
                edge: Edge::After(member),
            };
            self.table.replace(hasher(member), from, to);
            self.tree.replace(&self.store, &probe, from, to);
            self.store.remove(from);
        }
    }
}

/// Members of a range of ranks in order. Made by [`SortedSet::range`].
#[derive(Clone)]
pub struct Iter<'a> {
    set: &'a SortedSet,
    leaf: &'a [u32],
    /// Index in `leaf` of what comes next; where `rev`, one more.
    at: usize,
    /// Ranks still to come.
    start: usize,
    end: usize,
    rev: bool,
}

impl<'a> Iterator for Iter<'a> {
    type Item = (&'a [u8], f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.start >= self.end {
            return None;
        }
        if self.rev {
            self.end -= 1;
            if self.at == 0 {
                let (leaf, at) = self.set.tree.leaf_of(self.end);
                (self.leaf, self.at) = (leaf, at + 1);
            }
            self.at -= 1;
            if let Some(ahead) = self.at.checked_sub(AHEAD) {
                self.set.store.prefetch(self.leaf[ahead]);
            }
            return Some(self.set.entry(self.leaf[self.at]));
        }
        if self.at == self.leaf.len() {
            (self.leaf, self.at) = self.set.tree.leaf_of(self.start);
        }
        self.start += 1;
        self.at += 1;
        if let Some(&ahead) = self.leaf.get(self.at + AHEAD) {
            self.set.store.prefetch(ahead);
        }
        Some(self.set.entry(self.leaf[self.at - 1]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.start;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Iter<'_> {}
