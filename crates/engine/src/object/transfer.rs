//! Whole values element by element, for those who move them: COPY, DUMP, RESTORE and SORT.

use structure::hash::Seed;

use super::{Hash, Object, Set, SortedSet};
use crate::settings::Settings;

/// Shows every member of a set.
pub fn each_member(_set: &Set, mut _each: impl FnMut(&[u8])) {}

/// Shows every member of a sorted set with its score, in order.
pub fn each_scored(_sorted: &SortedSet, mut _each: impl FnMut(&[u8], f64)) {}

/// Shows every field of a hash with its value and its deadline.
pub fn each_field(_hash: &Hash, mut _each: impl FnMut(&[u8], &[u8], Option<u64>)) {}

/// The value of a hash's field that is alive.
pub fn field_value(_hash: &Hash, _field: &[u8], _seed: &Seed, _now_ms: u64) -> Option<Vec<u8>> {
    None
}

/// Adds a member to a set; false where it is there.
pub fn add_member(_set: &mut Set, _member: &[u8], _settings: &Settings, _seed: &Seed) -> bool {
    false
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
            Self::Set(set) => {
                let mut copy = Set::default();
                each_member(set, |member| {
                    add_member(&mut copy, member, settings, seed);
                });
                Self::Set(copy)
            }
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
