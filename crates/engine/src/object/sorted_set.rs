//! The value of type sorted set, in one of two forms.
//!
//! A small one is a listpack of member and score in turn, in order: by score, then by the member's
//! bytes. One past the configured limits is a [`structure::zset::SortedSet`], and stays one. Ranges
//! by score and by name are turned into ranges of ranks in both.
//!
//! # Invariants
//! - No score is NaN.
//! - A zero keeps its sign only in the large form, as in Redis, and in a set that is being reckoned
//!   ([`SortedSet::insert_signed`]).
//! - Scores in a listpack are spelt as the real server spells them: whole ones as integers.
//!
//! # Why is a small one searched from its start?
//! It has at most some hundred members in one piece of memory, so that halving the way costs more
//! in steps that the processor cannot foresee than it saves.

use std::cmp::Ordering;
use std::ops::{ControlFlow, Range};

use structure::hash::Seed;
use structure::listpack::{Entry, Listpack, Position};
pub use structure::zset::{LexBound, ScoreBound};

use super::Terms;

/// How a small set that is being reckoned says so.
const NEGATIVE_ZERO: &[u8] = b"-0";

/// A sorted set.
pub struct SortedSet {
    form: Form,
}

enum Form {
    /// Member, score, and so on.
    Small(Listpack),
    Large(Box<structure::zset::SortedSet>),
}

impl std::fmt::Debug for SortedSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.encoding(), self.len())
    }
}

impl Default for SortedSet {
    fn default() -> Self {
        Self {
            form: Form::Small(Listpack::new()),
        }
    }
}

impl SortedSet {
    /// An empty one that is about to take `members`, the first of `first` bytes.
    pub fn sized(terms: Terms<'_>, members: usize, first: usize) -> Self {
        let mut set = Self::default();
        let settings = terms.settings;
        if members > settings.zset_listpack_entries || first > settings.zset_listpack_value {
            set.form = Form::Large(Box::default());
        }
        set
    }

    /// The members of a big one as they are now, to be read by somebody else; `None` for one that
    /// is quickly copied.
    pub fn freeze(&mut self) -> Option<structure::zset::Members> {
        match &mut self.form {
            Form::Small(_) => None,
            Form::Large(set) => Some(set.freeze()),
        }
    }

    /// As OBJECT ENCODING says it.
    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Small(_) => "listpack",
            Form::Large(_) => "skiplist",
        }
    }

    /// How many members it has.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Small(pack) => pack.len() / 2,
            Form::Large(set) => set.len(),
        }
    }

    /// Whether it has no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.form {
            Form::Small(pack) => pack.is_empty(),
            Form::Large(set) => set.is_empty(),
        }
    }

    /// Whether it may have no room for a new member: at 16 GiB of them.
    pub fn is_full(&self) -> bool {
        match &self.form {
            Form::Small(_) => false,
            Form::Large(set) => set.is_full(),
        }
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Small(pack) => pack.memory_bytes(),
            Form::Large(set) => size_of::<structure::zset::SortedSet>() + set.memory_bytes(),
        }
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        match &self.form {
            Form::Small(pack) => assert!(pack.len() % 2 == 0, "a member without its score"),
            Form::Large(set) => set.check_invariants(),
        }
        let (mut count, mut last) = (0, f64::NEG_INFINITY);
        self.each(0..usize::MAX, false, |_, score| {
            assert!(last <= score, "members out of order");
            (count, last) = (count + 1, score);
        });
        assert_eq!(count, self.len(), "members");
    }

    /// Frees about `budget` members. True when none is left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        match &mut self.form {
            Form::Small(_) => true,
            Form::Large(set) => set.free_some(budget),
        }
    }

    /// The score of a member.
    #[inline]
    pub fn score(&self, terms: Terms<'_>, member: &[u8]) -> Option<f64> {
        match &self.form {
            Form::Small(pack) => Some(score_at(pack, pack.next(pack.find(member, 1)?)?)),
            Form::Large(set) => set.score(terms.hash(member), member),
        }
    }

    /// Sets the score of a member, not NaN, and returns the one that it had. Where both are zero,
    /// it keeps the sign that it had.
    ///
    /// # Panics
    /// For a new member when [`SortedSet::is_full`].
    #[inline]
    pub fn insert(&mut self, terms: Terms<'_>, member: &[u8], score: f64) -> Option<f64> {
        debug_assert!(!score.is_nan(), "a score is a number");
        if let Form::Small(pack) = &mut self.form {
            if let Some(at) = pack.find(member, 1) {
                let old = pack.next(at).map(|at| score_at(pack, at));
                if old != Some(score) {
                    pack.remove_range(at, 2);
                    insert_small(pack, member, score);
                }
                return old;
            }
            let settings = terms.settings;
            if pack.len() / 2 < settings.zset_listpack_entries
                && member.len() <= settings.zset_listpack_value
            {
                insert_small(pack, member, score);
                return None;
            }
            self.enlarge(terms.seed);
        }
        self.insert_large(terms, member, score)
    }

    #[inline]
    fn insert_large(&mut self, terms: Terms<'_>, member: &[u8], score: f64) -> Option<f64> {
        let Form::Large(set) = &mut self.form else {
            return None;
        };
        let seed = terms.seed;
        let hasher = |bytes: &[u8]| structure::hash::hash(seed, bytes);
        let hash = terms.hash(member);
        let old = set.insert(hash, member, score, &hasher);
        if let Some(old) = old
            && old == score
            && old.is_sign_negative() != score.is_sign_negative()
        {
            set.insert(hash, member, old, &hasher);
        }
        old
    }

    /// The same, with the sign that a zero has, in either form. [`SortedSet::settle`] has to follow
    /// before the set is kept.
    pub fn insert_signed(&mut self, terms: Terms<'_>, member: &[u8], score: f64) {
        if score != 0.0 {
            self.insert(terms, member, score);
            return;
        }
        self.remove(terms, member);
        self.insert(terms, member, score);
        if score.is_sign_positive() {
            return;
        }
        match &mut self.form {
            Form::Small(pack) => {
                if let Some(at) = pack.find(member, 1).and_then(|at| pack.next(at)) {
                    pack.replace(at, NEGATIVE_ZERO);
                }
            }
            // It may have become large just now.
            Form::Large(set) => {
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                set.insert(terms.hash(member), member, score, &hasher);
            }
        }
    }

    /// Drops the signs of zeros where the form does not keep them.
    pub fn settle(&mut self) {
        let Form::Small(pack) = &mut self.form else {
            return;
        };
        let mut at = pack.first().and_then(|at| pack.next(at));
        while let Some(score) = at {
            if score_at(pack, score) > 0.0 {
                return;
            }
            if pack.get(score).is(NEGATIVE_ZERO) {
                pack.replace(score, b"0");
            }
            at = pack.next(score).and_then(|at| pack.next(at));
        }
    }

    /// Removes a member and returns its score.
    pub fn remove(&mut self, terms: Terms<'_>, member: &[u8]) -> Option<f64> {
        match &mut self.form {
            Form::Small(pack) => {
                let at = pack.find(member, 1)?;
                let score = score_at(pack, pack.next(at)?);
                pack.remove_range(at, 2);
                Some(score)
            }
            Form::Large(set) => {
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                set.remove(terms.hash(member), member, &hasher)
            }
        }
    }

    /// Removes the member of the lowest score, or of the highest where `rev`, after giving it to
    /// `f`.
    #[inline]
    pub fn pop<R>(
        &mut self,
        terms: Terms<'_>,
        rev: bool,
        f: impl FnOnce(Entry<'_>, f64) -> R,
    ) -> Option<R> {
        match &mut self.form {
            Form::Small(pack) => {
                let at = if rev {
                    pack.prev(pack.last()?)?
                } else {
                    pack.first()?
                };
                let result = f(pack.get(at), score_at(pack, pack.next(at)?));
                pack.remove_range(at, 2);
                Some(result)
            }
            Form::Large(set) => {
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                let f = |member: &[u8], score| f(Entry::Bytes(member), score);
                if rev {
                    set.pop_last(&hasher, f)
                } else {
                    set.pop_first(&hasher, f)
                }
            }
        }
    }

    /// Removes the members of a range of ranks; returns how many there were.
    pub fn remove_ranks(&mut self, terms: Terms<'_>, ranks: Range<usize>) -> usize {
        let ranks = self.clip(ranks);
        match &mut self.form {
            Form::Small(pack) => {
                if let Some(at) = pack.seek(ranks.start * 2) {
                    pack.remove_range(at, ranks.len() * 2);
                }
            }
            Form::Large(set) => {
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                for _ in ranks.clone() {
                    set.remove_at(ranks.start, &hasher, |_, _| {});
                }
            }
        }
        ranks.len()
    }

    /// How many members stand before a member, and its score.
    pub fn rank(&self, terms: Terms<'_>, member: &[u8]) -> Option<(usize, f64)> {
        match &self.form {
            Form::Small(pack) => {
                let mut at = pack.first();
                for rank in 0.. {
                    let (here, score) = (at?, pack.next(at?)?);
                    if pack.get(here).is(member) {
                        return Some((rank, score_at(pack, score)));
                    }
                    at = pack.next(score);
                }
                None
            }
            Form::Large(set) => set.rank(terms.hash(member), member),
        }
    }

    /// The ranks of the members whose scores lie between two bounds.
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        match &self.form {
            Form::Small(pack) => between(
                pack,
                |_, score| match min {
                    ScoreBound::Incl(min) => score < min,
                    ScoreBound::Excl(min) => score <= min,
                },
                |_, score| match max {
                    ScoreBound::Incl(max) => score <= max,
                    ScoreBound::Excl(max) => score < max,
                },
            ),
            Form::Large(set) => set.ranks_by_score(min, max),
        }
    }

    /// The ranks of the members between two names, in a set whose scores are all the same. In any
    /// other set: some range of ranks.
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        match &self.form {
            Form::Small(pack) => between(
                pack,
                |member, _| match min {
                    LexBound::Min => false,
                    LexBound::Incl(min) => order(member, min).is_lt(),
                    LexBound::Excl(min) => order(member, min).is_le(),
                    LexBound::Max => true,
                },
                |member, _| match max {
                    LexBound::Min => false,
                    LexBound::Incl(max) => order(member, max).is_le(),
                    LexBound::Excl(max) => order(member, max).is_lt(),
                    LexBound::Max => true,
                },
            ),
            Form::Large(set) => set.ranks_by_lex(min, max),
        }
    }

    /// Gives the members of a range of ranks to `f`: in order, or the last first where `rev`.
    pub fn each<'s>(&'s self, ranks: Range<usize>, rev: bool, mut f: impl FnMut(Entry<'s>, f64)) {
        let ranks = self.clip(ranks);
        match &self.form {
            Form::Small(pack) => {
                let first = if rev {
                    ranks.end.wrapping_sub(1)
                } else {
                    ranks.start
                };
                let mut at = pack.seek(first.wrapping_mul(2));
                for _ in ranks {
                    let Some((here, score)) = at.and_then(|at| Some((at, pack.next(at)?))) else {
                        return;
                    };
                    f(pack.get(here), score_at(pack, score));
                    at = if rev {
                        pack.prev(here).and_then(|score| pack.prev(score))
                    } else {
                        pack.next(score)
                    };
                }
            }
            Form::Large(set) => {
                for (member, score) in set.range(ranks, rev) {
                    f(Entry::Bytes(member), score);
                }
            }
        }
    }

    /// Gives the members whose scores lie in a range to `f`, in order, until it breaks.
    pub fn each_by_score<'s>(
        &'s self,
        scores: Range<f64>,
        mut f: impl FnMut(Entry<'s>, f64) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match &self.form {
            Form::Small(pack) => {
                let mut entries = pack.iter();
                while let (Some(member), Some(score)) = (entries.next(), entries.next()) {
                    let score = score_of(score);
                    if score >= scores.end {
                        break;
                    }
                    if score >= scores.start {
                        f(member, score)?;
                    }
                }
                ControlFlow::Continue(())
            }
            Form::Large(set) => {
                let (min, max) = (ScoreBound::Incl(scores.start), ScoreBound::Excl(scores.end));
                set.range(set.ranks_by_score(min, max), false)
                    .try_for_each(|(member, score)| f(Entry::Bytes(member), score))
            }
        }
    }

    /// The member that `rank` others stand before.
    pub fn by_rank(&self, rank: usize) -> Option<(Entry<'_>, f64)> {
        match &self.form {
            Form::Small(pack) => {
                let at = pack.seek(rank.checked_mul(2)?)?;
                Some((pack.get(at), score_at(pack, pack.next(at)?)))
            }
            Form::Large(set) => set
                .by_rank(rank)
                .map(|(member, score)| (Entry::Bytes(member), score)),
        }
    }

    /// Gives about `count` members to `f` and returns the cursor to go on from, 0 at the end. A
    /// small set comes whole.
    pub fn scan<'s>(&'s self, cursor: u64, count: usize, mut f: impl FnMut(Entry<'s>, f64)) -> u64 {
        match &self.form {
            Form::Small(_) => {
                self.each(0..self.len(), false, f);
                0
            }
            Form::Large(set) => set.scan(cursor, count, |member, score| {
                f(Entry::Bytes(member), score);
            }),
        }
    }

    /// Takes the form that so many members in one command ask for, whether or not they are new.
    pub fn expect_members(&mut self, terms: Terms<'_>, members: usize) {
        if members > terms.settings.zset_listpack_entries {
            self.enlarge(terms.seed);
        }
    }

    /// A score as ZSCAN says it: as it is spelt in the small form, with 17 digits from the large.
    pub fn write_scanned(&self, score: f64, out: &mut Vec<u8>) {
        match &self.form {
            Form::Small(_) => resp::format_double(score, out),
            Form::Large(_) => crate::number::write_digits(score, out),
        }
    }

    /// A copy.
    pub fn duplicate(&self, terms: Terms<'_>) -> Self {
        let form = match &self.form {
            Form::Small(pack) => Form::Small(pack.clone()),
            Form::Large(set) => {
                let mut copy = structure::zset::SortedSet::new();
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                for (member, score) in set.iter() {
                    copy.insert(hasher(member), member, score, &hasher);
                }
                Form::Large(Box::new(copy))
            }
        };
        Self { form }
    }

    fn clip(&self, ranks: Range<usize>) -> Range<usize> {
        let end = ranks.end.min(self.len());
        ranks.start.min(end)..end
    }

    #[cold]
    fn enlarge(&mut self, seed: &Seed) {
        let Form::Small(pack) = &self.form else {
            return;
        };
        let mut set = structure::zset::SortedSet::new();
        let hasher = |bytes: &[u8]| structure::hash::hash(seed, bytes);
        let mut entries = pack.iter();
        while let (Some(member), Some(score)) = (entries.next(), entries.next()) {
            let mut digits = [0; 20];
            let member = member.bytes(&mut digits);
            set.insert(hasher(member), member, score_of(score), &hasher);
        }
        self.form = Form::Large(Box::new(set));
    }
}

/// Puts a member that is not there at its place.
fn insert_small(pack: &mut Listpack, member: &[u8], score: f64) {
    let mut at = pack.first();
    while let Some(here) = at {
        let Some(behind) = pack.next(here) else {
            break;
        };
        let found = score_at(pack, behind);
        if found > score || found == score && order(pack.get(here), member).is_gt() {
            let here = pack.insert_before(here, member);
            with_text(score, |text| pack.insert_after(here, text));
            return;
        }
        at = pack.next(behind);
    }
    pack.push_back(member);
    with_text(score, |text| pack.push_back(text));
}

/// The ranks behind those for which `before` holds and up to the last for which `within` does.
fn between(
    pack: &Listpack,
    before: impl Fn(Entry<'_>, f64) -> bool,
    within: impl Fn(Entry<'_>, f64) -> bool,
) -> Range<usize> {
    let (mut start, mut end) = (0, 0);
    let mut entries = pack.iter();
    while let (Some(member), Some(score)) = (entries.next(), entries.next()) {
        let score = score_of(score);
        if !within(member, score) {
            break;
        }
        end += 1;
        start += usize::from(before(member, score));
    }
    start..end
}

#[inline]
fn score_at(pack: &Listpack, at: Position) -> f64 {
    score_of(pack.get(at))
}

#[inline]
fn score_of(entry: Entry<'_>) -> f64 {
    match entry {
        #[allow(clippy::cast_precision_loss)] // As the text of the integer would be read.
        Entry::Int(int) => int as f64,
        Entry::Bytes(text) => std::str::from_utf8(text)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(0.0),
    }
}

fn with_text<R>(score: f64, f: impl FnOnce(&[u8]) -> R) -> R {
    #[allow(clippy::cast_possible_truncation)] // Whole, and far below 2^63.
    if score.trunc() == score && score.abs() < 1e15 {
        return f(structure::decimal::format(score as i64, &mut [0; 20]));
    }
    let mut text = Vec::with_capacity(32);
    resp::format_double(score, &mut text);
    f(&text)
}

#[inline]
fn order(entry: Entry<'_>, member: &[u8]) -> Ordering {
    entry.bytes(&mut [0; 20]).cmp(member)
}

#[cfg(test)]
mod tests;
