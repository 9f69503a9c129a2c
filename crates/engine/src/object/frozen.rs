//! Big values as they were at one moment, read by one while another goes on changing them.
//!
//! Making one takes a step for each few hundred elements; the elements are in common until they
//! change. Whoever has it may be on any thread.

use structure::zset::Members;

use super::Object;

/// Values with at most so many elements are quickly written down: freezing them gains nothing.
const SMALL_MAX: usize = 512;

/// A big value at one moment.
pub enum Frozen {
    /// Any but a sorted set.
    Object(Object),
    /// The members of a sorted set, in no useful order.
    Members(Box<Members>),
}

impl Frozen {
    /// Bytes that it would take if it had nothing in common with anybody: it comes to have so many
    /// where everything changes while it is there.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Object(object) => object.memory_bytes(),
            Self::Members(members) => members.memory_bytes(),
        }
    }
}

impl std::fmt::Debug for Frozen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Object(object) => write!(f, "frozen {object:?}"),
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
            Self::Hash(hash) => Some(Frozen::Object(Self::Hash(hash.freeze()?))),
            Self::Set(set) => Some(Frozen::Object(Self::Set(set.freeze()?))),
            Self::SortedSet(sorted) => Some(Frozen::Members(Box::new(sorted.freeze()?))),
            Self::List(list) => Some(Frozen::Object(Self::List(list.freeze()))),
            Self::Stream(stream) => Some(Frozen::Object(Self::Stream(Box::new(stream.freeze())))),
            Self::Array(_) => None,
        }
    }
}
