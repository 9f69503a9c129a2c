//! Where a command's keys stand among its words, and what happens to them.
//!
//! A key spec says where to begin (a position, or after a keyword) and how to go on (a range, or a
//! count that is itself a word). That covers all but a few commands; those name a [`Special`]
//! that reads their options.
//!
//! # Invariants
//! - Finding keys never fails on positions alone: every key reported is a word of the call.
//! - A channel ([`KeySpec::not_key`]) is routed like a key and is never reported as one.
//! - Work is at most a few passes over the words.

use crate::flags::set_bits;
use crate::{Command, Flags};

mod special;

pub use special::Special;

/// The words of one call; word 0 is the command's name.
pub trait Words {
    /// How many words there are.
    fn count(&self) -> usize;
    /// The word at `index`, which is below `count`.
    fn word(&self, index: usize) -> &[u8];
}

impl<T: AsRef<[u8]>> Words for [T] {
    fn count(&self) -> usize {
        self.len()
    }

    fn word(&self, index: usize) -> &[u8] {
        self[index].as_ref()
    }
}

impl Words for resp::Args<'_> {
    #[inline]
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn word(&self, index: usize) -> &[u8] {
        self.at(index)
    }
}

/// One key of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyAt {
    /// The position of the key's word.
    pub index: usize,
    pub flags: KeyFlags,
}

/// The words do not say where the keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unparsable;

/// What a command does with the keys of one spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFlags(u16);

impl KeyFlags {
    pub const NONE: Self = Self(0);
    /// Reads only.
    pub const RO: Self = Self(1 << 0);
    /// Reads and changes.
    pub const RW: Self = Self(1 << 1);
    /// Replaces, whatever was there.
    pub const OW: Self = Self(1 << 2);
    /// Removes, whatever was there.
    pub const RM: Self = Self(1 << 3);
    /// User data reaches the reply or another key.
    pub const ACCESS: Self = Self(1 << 4);
    /// Adds data and changes none.
    pub const INSERT: Self = Self(1 << 5);
    /// Changes data, perhaps depending on it.
    pub const UPDATE: Self = Self(1 << 6);
    /// Takes data away.
    pub const DELETE: Self = Self(1 << 7);
    /// Routed like a key, but is none.
    pub const NOT_KEY: Self = Self(1 << 8);
    /// The spec may miss keys.
    pub const INCOMPLETE: Self = Self(1 << 9);
    /// Other words narrow the flags down.
    pub const VARIABLE: Self = Self(1 << 10);

    const NAMES: [&str; 11] = [
        "RO",
        "RW",
        "OW",
        "RM",
        "access",
        "insert",
        "update",
        "delete",
        "not_key",
        "incomplete",
        "variable_flags",
    ];

    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every flag of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether the command may change the key.
    pub const fn writes(self) -> bool {
        self.0 & (Self::RW.0 | Self::OW.0 | Self::RM.0) != 0
    }

    /// The names, in COMMAND's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        set_bits(u64::from(self.0)).map(|bit| Self::NAMES[bit])
    }

    /// How many flags are set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// What is true of one key of one call: not that a spec may miss others.
    const fn of_call(self) -> Self {
        Self(self.0 & !(Self::INCOMPLETE.0 | Self::VARIABLE.0))
    }
}

/// Where a run of keys begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Begin {
    /// At this position.
    Index(u16),
    /// After `word`, searched for from position `from`; a negative `from` counts from the end and
    /// the search goes backwards.
    Keyword { word: &'static str, from: i16 },
    /// The spec cannot say.
    Unknown,
}

/// How a run of keys goes on from where it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Find {
    /// Every `step`-th word up to `last` words further, or, when negative, up to that far from the
    /// end (-1 is the last word). A `limit` of n above 1 means that only the first n-th part of
    /// the words left are keys.
    Range { last: i16, step: u8, limit: u8 },
    /// The word `count` further is the number of keys; the first is `first` further.
    Counted { count: u8, first: u8, step: u8 },
    /// The spec cannot say.
    Unknown,
}

/// A rule that finds some of a command's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeySpec {
    pub begin: Begin,
    pub find: Find,
    pub flags: KeyFlags,
    /// A sentence where the flags need one.
    pub note: &'static str,
}

impl KeySpec {
    const ONE: Find = Find::Range {
        last: 0,
        step: 1,
        limit: 0,
    };

    /// One key, at this position.
    pub const fn at(index: u16) -> Self {
        Self {
            begin: Begin::Index(index),
            find: Self::ONE,
            flags: KeyFlags::NONE,
            note: "",
        }
    }

    /// One key, after `word` searched for from position `from`.
    pub const fn after(word: &'static str, from: i16) -> Self {
        Self {
            begin: Begin::Keyword { word, from },
            ..Self::at(0)
        }
    }

    /// Keys whose positions no spec can say.
    pub const fn unknown() -> Self {
        Self {
            begin: Begin::Unknown,
            find: Find::Unknown,
            ..Self::at(0)
        }
    }

    /// A run up to `last`: see [`Find::Range`].
    pub const fn last(self, last: i16) -> Self {
        Self {
            find: Find::Range {
                last,
                step: 1,
                limit: 0,
            },
            ..self
        }
    }

    /// Only every `step`-th word is a key.
    pub const fn step(self, step: u8) -> Self {
        let find = match self.find {
            Find::Range { last, limit, .. } => Find::Range { last, step, limit },
            Find::Counted { count, first, .. } => Find::Counted { count, first, step },
            Find::Unknown => Find::Unknown,
        };
        Self { find, ..self }
    }

    /// Only the first `limit`-th part of the words left are keys.
    pub const fn limit(self, limit: u8) -> Self {
        let find = match self.find {
            Find::Range { last, step, .. } => Find::Range { last, step, limit },
            other => other,
        };
        Self { find, ..self }
    }

    /// The first word is the number of keys, which follow it.
    pub const fn counted(self) -> Self {
        Self {
            find: Find::Counted {
                count: 0,
                first: 1,
                step: 1,
            },
            ..self
        }
    }

    pub const fn ro(self) -> Self {
        self.flag(KeyFlags::RO)
    }

    pub const fn rw(self) -> Self {
        self.flag(KeyFlags::RW)
    }

    pub const fn ow(self) -> Self {
        self.flag(KeyFlags::OW)
    }

    pub const fn rm(self) -> Self {
        self.flag(KeyFlags::RM)
    }

    pub const fn access(self) -> Self {
        self.flag(KeyFlags::ACCESS)
    }

    pub const fn insert(self) -> Self {
        self.flag(KeyFlags::INSERT)
    }

    pub const fn update(self) -> Self {
        self.flag(KeyFlags::UPDATE)
    }

    pub const fn delete(self) -> Self {
        self.flag(KeyFlags::DELETE)
    }

    pub const fn not_key(self) -> Self {
        self.flag(KeyFlags::NOT_KEY)
    }

    pub const fn incomplete(self) -> Self {
        self.flag(KeyFlags::INCOMPLETE)
    }

    pub const fn variable(self) -> Self {
        self.flag(KeyFlags::VARIABLE)
    }

    /// Explains the flags.
    pub const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    const fn flag(self, flag: KeyFlags) -> Self {
        Self {
            flags: self.flags.with(flag),
            ..self
        }
    }

    /// The position where the run begins.
    fn begin<W: Words + ?Sized>(&self, words: &W) -> Option<usize> {
        let count = words.count();
        match self.begin {
            Begin::Index(index) => Some(usize::from(index)),
            Begin::Unknown => None,
            Begin::Keyword { word, from } => {
                let is_it = |at: &usize| words.word(*at).eq_ignore_ascii_case(word.as_bytes());
                let distance = usize::from(from.unsigned_abs());
                let found = if from >= 0 {
                    (distance..count).find(is_it)
                } else {
                    (1..(count + 1).saturating_sub(distance)).rev().find(is_it)
                };
                found.map(|at| at + 1)
            }
        }
    }

    /// Reports the keys that this spec finds; none where it cannot say or the range is empty.
    fn each<W: Words + ?Sized>(
        &self,
        words: &W,
        out: &mut impl FnMut(KeyAt),
    ) -> Result<(), Unparsable> {
        let Some(begin) = self.begin(words) else {
            return Ok(());
        };
        let count = words.count();
        let (first, last, step) = match self.find {
            Find::Unknown => return Ok(()),
            Find::Range { last, step, limit } => (
                begin,
                range_last(begin, last, limit, count).ok_or(Unparsable)?,
                step,
            ),
            Find::Counted {
                count: count_at,
                first,
                step,
            } => {
                let at = begin + usize::from(count_at);
                if at >= count {
                    return Err(Unparsable);
                }
                let keys = parse_count(words.word(at)).ok_or(Unparsable)?;
                let first = begin + usize::from(first);
                let span = (keys - 1)
                    .checked_mul(usize::from(step))
                    .ok_or(Unparsable)?;
                (first, first.checked_add(span).ok_or(Unparsable)?, step)
            }
        };
        if last >= count {
            return Err(Unparsable);
        }
        let flags = self.flags.of_call();
        // A range may end before it begins: PFMERGE without sources.
        for index in (first..=last).step_by(usize::from(step.max(1))) {
            out(KeyAt { index, flags });
        }
        Ok(())
    }
}

/// The last position of a range that begins at `begin` in a call of `count` words.
fn range_last(begin: usize, last: i16, limit: u8, count: usize) -> Option<usize> {
    let distance = usize::from(last.unsigned_abs());
    if last >= 0 {
        begin.checked_add(distance)
    } else if limit <= 1 {
        count.checked_sub(distance)
    } else {
        let part = count.checked_sub(begin)? / usize::from(limit);
        (begin + part).checked_sub(distance)
    }
}

/// A number of keys, at least 1, in plain digits.
fn parse_count(word: &[u8]) -> Option<usize> {
    if word.is_empty() || word.len() > 9 || !word.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = word
        .iter()
        .fold(0usize, |sum, digit| sum * 10 + usize::from(digit - b'0'));
    (value > 0).then_some(value)
}

impl<H: Copy + 'static> Command<H> {
    /// Reports every key of a call whose arity has been checked, in the order of the specs.
    ///
    /// # Errors
    /// [`Unparsable`] if the words do not say where the keys are; some may have been reported.
    pub fn each_key<W: Words + ?Sized>(
        &self,
        words: &W,
        out: &mut impl FnMut(KeyAt),
    ) -> Result<(), Unparsable> {
        let found = self.special.each(self.keys, words, out).unwrap_or_else(|| {
            let mut specs = self.keys.iter().filter(|k| !k.flags.has(KeyFlags::NOT_KEY));
            specs.try_for_each(|spec| spec.each(words, out))
        });
        match found {
            Err(Unparsable) if self.flags.has(Flags::NO_MANDATORY_KEYS) => Ok(()),
            found => found,
        }
    }

    /// Whether only reading the other words tells where all keys are.
    pub fn is_movable(&self) -> bool {
        self.keys.iter().any(|spec| {
            spec.flags.has(KeyFlags::INCOMPLETE)
                || !matches!(
                    (spec.begin, spec.find),
                    (Begin::Index(_), Find::Range { .. })
                )
        })
    }

    /// First position, last position and step of the keys that fixed positions can describe, as
    /// COMMAND has shown them since before key specs; zeros if there are none. A negative last
    /// position counts from the end.
    pub fn key_range(&self) -> (i32, i32, i32) {
        let mut merged: Option<(i32, i32, i32)> = None;
        for spec in self.keys {
            let (Begin::Index(index), Find::Range { last, step, .. }) = (spec.begin, spec.find)
            else {
                continue;
            };
            let first = i32::from(index);
            let last = if last >= 0 {
                first + i32::from(last)
            } else {
                i32::from(last)
            };
            merged = Some(match merged {
                None => (first, last, i32::from(step)),
                Some((f, l, s)) if l < 0 || last < 0 => (f.min(first), l.min(last), s),
                Some((f, l, s)) => (f.min(first), l.max(last), s),
            });
        }
        merged.unwrap_or((0, 0, 0))
    }
}

#[cfg(test)]
mod tests;
