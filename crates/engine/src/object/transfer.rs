//! Whole values element by element, for those who move them: COPY, DUMP, RESTORE and SORT.

use structure::decimal::TEXT_MAX;
use structure::hash::Seed;

use super::hash::Ttl;
use super::{Hash, Object, Set, SortedSet, Terms};
use crate::settings::Settings;

/// Shows every member of a set.
pub fn each_member(set: &Set, mut each: impl FnMut(&[u8])) {
    for entry in set.iter() {
        each(entry.bytes(&mut [0; TEXT_MAX]));
    }
}

/// Shows every member of a sorted set with its score, in order.
pub fn each_scored(sorted: &SortedSet, mut each: impl FnMut(&[u8], f64)) {
    sorted.each(0..sorted.len(), false, |member, score| {
        each(member.bytes(&mut [0; TEXT_MAX]), score);
    });
}

/// Shows every field of a hash with its value and its deadline, dead ones too.
pub fn each_field(hash: &Hash, mut each: impl FnMut(&[u8], &[u8], Option<u64>)) {
    hash.each(0, |field, found| {
        let (mut one, mut other) = ([0; TEXT_MAX], [0; TEXT_MAX]);
        each(
            field.bytes(&mut one),
            found.value.bytes(&mut other),
            found.deadline,
        );
    });
}

/// The value of a hash's field that is alive.
pub fn field_value(hash: &Hash, field: &[u8], seed: &Seed, now_ms: u64) -> Option<Vec<u8>> {
    let settings = &Settings::default();
    let terms = Terms {
        seed,
        settings,
        now_ms,
    };
    hash.get(terms, field).map(|found| found.value.to_vec())
}

/// Adds a member to a set; false where it is there.
pub fn add_member(set: &mut Set, member: &[u8], settings: &Settings, seed: &Seed) -> bool {
    set.insert(member, settings, seed)
}

/// Adds a member to a sorted set; false where it is there.
pub fn add_scored(
    sorted: &mut SortedSet,
    member: &[u8],
    score: f64,
    settings: &Settings,
    seed: &Seed,
) -> bool {
    let terms = Terms {
        seed,
        settings,
        now_ms: 0,
    };
    sorted.score(terms, member).is_none() && sorted.insert(terms, member, score).is_none()
}

/// Adds a field with its value and its deadline to a hash; false where it is there.
pub fn add_field(
    hash: &mut Hash,
    (field, value, deadline): (&[u8], &[u8], Option<u64>),
    settings: &Settings,
    seed: &Seed,
) -> bool {
    let terms = Terms {
        seed,
        settings,
        now_ms: 0,
    };
    hash.get(terms, field).is_none()
        && !hash.set(terms, field, value, deadline.map_or(Ttl::Clear, Ttl::At))
}

impl Object {
    /// A copy that shares nothing with the original, in the same form.
    pub fn duplicate(&self, settings: &Settings, seed: &Seed) -> Object {
        let terms = Terms {
            seed,
            settings,
            now_ms: 0,
        };
        match self {
            Self::List(list) => Self::List(list.clone()),
            Self::Set(set) => Self::Set(set.duplicate(seed)),
            Self::SortedSet(sorted) => Self::SortedSet(sorted.duplicate(terms)),
            Self::Hash(hash) => Self::Hash(hash.duplicate(terms)),
            Self::Stream(stream) => Self::Stream(stream.clone()),
            Self::Array(array) => Self::Array(array.clone()),
        }
    }
}
