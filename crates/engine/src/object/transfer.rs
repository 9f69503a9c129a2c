//! Whole values element by element, for those who move them: COPY, DUMP, RESTORE and SORT.

use structure::decimal::TEXT_MAX;
use structure::hash::Seed;

use super::{Hash, Object, Set, SortedSet};
use crate::settings::Settings;

/// Shows every member of a set.
pub fn each_member(set: &Set, mut each: impl FnMut(&[u8])) {
    for entry in set.iter() {
        each(entry.bytes(&mut [0; TEXT_MAX]));
    }
}

/// Shows every member of a sorted set with its score, in order.
pub fn each_scored(_sorted: &SortedSet, mut _each: impl FnMut(&[u8], f64)) {}

/// Shows every field of a hash with its value and its deadline.
pub fn each_field(_hash: &Hash, mut _each: impl FnMut(&[u8], &[u8], Option<u64>)) {}

/// The value of a hash's field that is alive.
pub fn field_value(_hash: &Hash, _field: &[u8], _seed: &Seed, _now_ms: u64) -> Option<Vec<u8>> {
    None
}

/// Adds a member to a set; false where it is there.
pub fn add_member(set: &mut Set, member: &[u8], settings: &Settings, seed: &Seed) -> bool {
    set.insert(member, settings, seed)
}

/// Adds a member to a sorted set; false where it is there.
pub fn add_scored(
    _sorted: &mut SortedSet,
    _member: &[u8],
    _score: f64,
    _settings: &Settings,
    _seed: &Seed,
) -> bool {
    false
}

/// Adds a field with its value and its deadline to a hash; false where it is there.
pub fn add_field(
    _hash: &mut Hash,
    _field: (&[u8], &[u8], Option<u64>),
    _settings: &Settings,
    _seed: &Seed,
) -> bool {
    false
}

impl Object {
    /// A copy that shares nothing with the original.
    pub fn duplicate(&self, settings: &Settings, seed: &Seed) -> Object {
        match self {
            Self::List(list) => Self::List(list.clone()),
            Self::Set(set) => Self::Set(set.duplicate(seed)),
            Self::SortedSet(sorted) => {
                let mut copy = SortedSet::default();
                each_scored(sorted, |member, score| {
                    add_scored(&mut copy, member, score, settings, seed);
                });
                Self::SortedSet(copy)
            }
            Self::Hash(hash) => {
                let mut copy = Hash::default();
                each_field(hash, |field, value, deadline| {
                    add_field(&mut copy, (field, value, deadline), settings, seed);
                });
                Self::Hash(copy)
            }
            Self::Stream(stream) => Self::Stream(stream.clone()),
        }
    }
}
