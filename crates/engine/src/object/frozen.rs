//! Big values as they were at one moment, read by one while another goes on changing them.
//!
//! Making one takes a step for each few hundred elements; they are in common until they change, and
//! then what they were is kept. Whoever has it may be on any thread.

use structure::packed::PackedPast;
use structure::zset::Members;

use super::Object;

/// Values with at most so many elements are quickly written down: freezing them gains nothing.
const SMALL_MAX: usize = 512;

/// A big value at one moment.
pub enum Frozen {
    /// A list or a stream.
    Object(Object),
    /// The fields of a hash, in no useful order.
    Fields(PackedPast),
    /// The members of a set, in no useful order.
    Set(PackedPast),
    /// The members of a sorted set, in no useful order.
    Members(Members),
}

impl Frozen {
    /// Bytes that it would take if it had nothing in common with anybody: it comes to have so many
    /// where everything changes while it is there.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Object(object) => object.memory_bytes(),
            Self::Fields(past) | Self::Set(past) => past.memory_bytes(),
            Self::Members(members) => members.memory_bytes(),
        }
    }
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(object) => write!(f, "frozen {object:?}"),
            Self::Fields(fields) => write!(f, "frozen fields, {}", fields.len()),
            Self::Set(members) => write!(f, "frozen set, {}", members.len()),
            Self::Members(members) => write!(f, "frozen members, {}", members.len()),
        }
    }
}

impl Object {
    /// The value as it is now, where it is big and of a kind that has parts to share.
    pub fn freeze(&mut self) -> Option<Frozen> {
        if self.len() <= SMALL_MAX {
            return None;
        }
        match self {
            Self::Hash(hash) => Some(Frozen::Fields(hash.freeze()?)),
            Self::Set(set) => Some(Frozen::Set(set.freeze()?)),
            Self::SortedSet(sorted) => Some(Frozen::Members(sorted.freeze()?)),
            Self::List(list) => Some(Frozen::Object(Self::List(list.freeze()))),
            Self::Stream(stream) => Some(Frozen::Object(Self::Stream(Box::new(stream.freeze())))),
            Self::Array(_) => None,
        }
    }
}
