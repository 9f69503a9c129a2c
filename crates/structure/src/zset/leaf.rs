//! A leaf of the tree: up to 125 record references in order, and 16 bits of each one's score.
//!
//! A search compares those 16 bits first and looks at a record only where they are equal. They
//! are the record's place on the leaf's own grid: `(key - base) >> shift`, clamped to 16 bits. A
//! grid is chosen to span the leaf's scores at least 1024 steps wide, so equals are rare unless
//! the scores themselves are equal; then the members' bytes have to decide anyway.
//!
//! # Invariants
//! - `steps[i]` is the step of record `i` on the grid. Clamping keeps steps monotone, so the
//!   order of steps never contradicts the order of records, whatever keys arrive.
//! - Only `STEP_MIN` and `STEP_MAX` may be clamped values: any other step tells `key >> shift`
//!   exactly, which lets records change leaves without a look at their scores.
//! - `base` is a multiple of `1 << shift`.
//!
//! # Why not whole scores?
//! They would cost 6 bytes a member more (the score is in the record too), and half of the cache
//! lines that a search touches.

use super::order::{Probe, order_key};
use super::store::MemberStore;
use crate::prefetch::prefetch;

/// Records in a leaf at most: with 16 bytes of header, what fits 768 bytes, an allocator's size.
pub(crate) const LEAF_MAX: usize = 125;
const STEP_MIN: u16 = 0;
const STEP_MAX: u16 = u16::MAX;
/// Steps between a leaf's first and last record: below that, the grid is made finer.
const SPAN_MIN: u64 = 1 << 10;
/// Steps between them on a new grid, at most: the rest is room for what comes.
const SPAN_MAX_BITS: u32 = 15;
/// The shift where all scores are equal: steps of a 2^14th of the score.
const SHIFT_EQUAL: u8 = 38;
/// Insertions before a run of equal steps may ask for a new grid, and the length that asks.
const REGRID_AFTER: u8 = 16;

pub(crate) struct Leaf {
    base: u64,
    shift: u8,
    len: u8,
    /// Insertions since the grid was chosen.
    fresh: u8,
    steps: [u16; LEAF_MAX],
    refs: [u32; LEAF_MAX],
}

const _: () = assert!(size_of::<Leaf>() == 768);

impl Leaf {
    pub(crate) fn new() -> Self {
        Self {
            base: 0,
            shift: 0,
            len: 0,
            fresh: 0,
            steps: [0; LEAF_MAX],
            refs: [0; LEAF_MAX],
        }
    }

    /// A leaf of one record, beside this one and on a grid as fine.
    pub(crate) fn beside(&self, key: u64, record: u32) -> Self {
        let mut leaf = Self::new();
        leaf.shift = self.shift;
        leaf.base = ((key >> self.shift).saturating_sub(1 << 14)) << self.shift;
        leaf.len = 1;
        leaf.refs[0] = record;
        leaf.steps[0] = leaf.step(key);
        leaf
    }

    /// Fetches the whole leaf.
    #[inline]
    pub(crate) fn prefetch(&self) {
        let start = std::ptr::from_ref(self).cast::<u8>();
        for line in 0..size_of::<Self>() / 64 {
            prefetch(start.wrapping_add(line * 64));
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() == LEAF_MAX
    }

    #[inline]
    pub(crate) fn refs(&self) -> &[u32] {
        &self.refs[..self.len()]
    }

    /// How many records are below the probe.
    #[inline]
    pub(crate) fn below(&self, store: &MemberStore, probe: &Probe<'_>) -> usize {
        let (start, end) = self.run(self.step(probe.key));
        start + self.refs[start..end].partition_point(|&at| probe.above(store, at))
    }

    /// Whether the leaf's last record is below the probe.
    pub(crate) fn ends_below(&self, store: &MemberStore, probe: &Probe<'_>) -> bool {
        self.refs().last().is_some_and(|&at| probe.above(store, at))
    }

    /// Inserts a record; there is room.
    pub(crate) fn insert(&mut self, store: &MemberStore, probe: &Probe<'_>, record: u32) {
        let len = self.len();
        if len == 0 {
            *self = Self {
                shift: SHIFT_EQUAL,
                ..Self::new()
            }
            .beside(probe.key, record);
            return;
        }
        let step = self.step(probe.key);
        let (start, end) = self.run(step);
        let at = start + self.refs[start..end].partition_point(|&at| probe.above(store, at));
        self.steps.copy_within(at..len, at + 1);
        self.refs.copy_within(at..len, at + 1);
        self.steps[at] = step;
        self.refs[at] = record;
        self.len += 1;
        self.fresh = self.fresh.saturating_add(1);
        if end - start >= usize::from(REGRID_AFTER) && self.fresh >= REGRID_AFTER {
            self.regrid(store, start, end);
        }
    }

    /// Index of `record`, whose key is `key`.
    #[inline]
    pub(crate) fn position(&self, key: u64, record: u32) -> usize {
        let (start, end) = self.run(self.step(key));
        let within = self.refs[start..end].iter().position(|&at| at == record);
        start + within.expect("the record is in the leaf that its key leads to")
    }

    pub(crate) fn remove(&mut self, at: usize) {
        let len = self.len();
        self.steps.copy_within(at + 1..len, at);
        self.refs.copy_within(at + 1..len, at);
        self.len -= 1;
    }

    pub(crate) fn replace(&mut self, at: usize, record: u32) {
        self.refs[at] = record;
    }

    /// Shares the records of `from`, neighbours in order, evenly out to `to`. Both lists may hold
    /// the same leaves' old and new selves; `from` is not changed.
    pub(crate) fn share(store: &MemberStore, from: [&Self; 2], to: &mut [&mut Self]) {
        let mut records = Records::by_step(from).unwrap_or_else(|| Records::by_key(store, from));
        if !records.suits(store, to.len()) {
            records = Records::by_key(store, from);
        }
        let mut start = 0;
        let pieces = to.len();
        for (piece, leaf) in to.iter_mut().enumerate() {
            let end = records.len * (piece + 1) / pieces;
            **leaf = records.leaf(start, end);
            start = end;
        }
    }

    #[inline]
    fn step(&self, key: u64) -> u16 {
        let step = key.saturating_sub(self.base) >> self.shift;
        step.min(u64::from(STEP_MAX)) as u16
    }

    /// The run of records whose step is `step`.
    #[inline]
    fn run(&self, step: u16) -> (usize, usize) {
        let steps = &self.steps[..self.len()];
        let below: u16 = steps.iter().map(|&s| u16::from(s < step)).sum();
        let start = usize::from(below);
        let mut end = start;
        while end < steps.len() && steps[end] == step {
            end += 1;
        }
        (start, end)
    }

    /// Chooses a finer grid where that tells the records `start..end` apart.
    fn regrid(&mut self, store: &MemberStore, start: usize, end: usize) {
        self.fresh = 0;
        let key = |at: usize| order_key(store.score(self.refs[at]));
        if key(start) == key(end) {
            return;
        }
        let records = Records::by_key(store, [self, &Self::new()]);
        *self = records.leaf(0, records.len);
    }
}

/// Records on their way between leaves, with `key >> shift` of each.
struct Records {
    refs: [u32; 2 * LEAF_MAX],
    quotients: [u64; 2 * LEAF_MAX],
    len: usize,
    shift: u8,
}

impl Records {
    /// Takes the quotients from the steps; `None` where one is clamped.
    fn by_step(from: [&Leaf; 2]) -> Option<Self> {
        let shift = from[0].shift.max(from[1].shift);
        let mut records = Self::empty(shift);
        for leaf in from {
            let coarser = shift - leaf.shift;
            for (&step, &record) in leaf.steps.iter().zip(leaf.refs()) {
                if step == STEP_MIN || step == STEP_MAX {
                    return None;
                }
                records.push(
                    record,
                    ((leaf.base >> leaf.shift) + u64::from(step)) >> coarser,
                );
            }
        }
        Some(records)
    }

    /// Takes the keys from the records.
    fn by_key(store: &MemberStore, from: [&Leaf; 2]) -> Self {
        let mut records = Self::empty(0);
        for &record in from.iter().flat_map(|leaf| leaf.refs()) {
            records.push(record, order_key(store.score(record)));
        }
        records
    }

    fn empty(shift: u8) -> Self {
        Self {
            refs: [0; 2 * LEAF_MAX],
            quotients: [0; 2 * LEAF_MAX],
            len: 0,
            shift,
        }
    }

    fn push(&mut self, record: u32, quotient: u64) {
        self.refs[self.len] = record;
        self.quotients[self.len] = quotient;
        self.len += 1;
    }

    /// Whether the steps of `pieces` even parts would still be fine enough, or cannot be finer.
    fn suits(&self, store: &MemberStore, pieces: usize) -> bool {
        let key = |at: usize| order_key(store.score(self.refs[at]));
        self.shift == 0
            || (0..pieces).all(|piece| {
                let (start, end) = (self.len * piece / pieces, self.len * (piece + 1) / pieces);
                end - start < 2
                    || self.quotients[end - 1] - self.quotients[start] >= SPAN_MIN
                    || key(start) == key(end - 1)
            })
    }

    /// A leaf of the records `start..end`, at most `LEAF_MAX`, on a grid that fits them.
    fn leaf(&self, start: usize, end: usize) -> Leaf {
        let mut leaf = Leaf::new();
        if start == end {
            return leaf;
        }
        let quotients = &self.quotients[start..end];
        let (first, last) = (quotients[0], quotients[quotients.len() - 1]);
        let coarser = if first == last {
            u32::from(SHIFT_EQUAL.saturating_sub(self.shift))
        } else {
            (64 - (last - first).leading_zeros()).saturating_sub(SPAN_MAX_BITS)
        };
        let margin = (65_536 - ((last >> coarser) - (first >> coarser))) / 2;
        let base = (first >> coarser).saturating_sub(margin);
        leaf.shift = self.shift + coarser as u8;
        leaf.base = base << leaf.shift;
        leaf.len = (end - start) as u8;
        leaf.refs[..end - start].copy_from_slice(&self.refs[start..end]);
        for (step, quotient) in leaf.steps.iter_mut().zip(quotients) {
            *step = ((quotient >> coarser) - base) as u16;
        }
        leaf
    }
}
