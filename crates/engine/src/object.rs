//! Values that are not strings.

pub mod frozen;
pub mod hash;
pub mod set;
pub mod sorted_set;
pub mod transfer;

use resp::Writer;
use structure::array::Array;
use structure::hash::Seed;
use structure::list::List;
use structure::listpack::Entry;
use structure::record::{Value, ValueRef};
use structure::stream::Stream;

use crate::settings::Settings;

pub use frozen::Frozen;
pub use hash::Hash;
pub use set::Set;
pub use sorted_set::SortedSet;

/// What a value must be told of its surroundings to be changed or searched.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The secret of the hash function.
    pub seed: &'a Seed,
    /// The configuration: the limits of the small forms.
    pub settings: &'a Settings,
    /// The time: Unix milliseconds.
    pub now_ms: u64,
}

impl Terms<'_> {
    /// The hash of an element.
    #[inline]
    pub fn hash(&self, bytes: &[u8]) -> u64 {
        structure::hash::hash(self.seed, bytes)
    }
}

/// A value that is not a string.
pub enum Object {
    /// A list.
    List(List),
    /// A set.
    Set(Set),
    /// A sorted set.
    SortedSet(SortedSet),
    /// A hash.
    Hash(Hash),
    /// A stream.
    Stream(Box<Stream>),
    /// A sparse array.
    Array(Box<Array>),
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A string.
    String,
    /// A list.
    List,
    /// A set.
    Set,
    /// A sorted set.
    SortedSet,
    /// A hash.
    Hash,
    /// A stream.
    Stream,
    /// A sparse array.
    Array,
}

/// Replies with one element of a collection.
#[inline]
pub fn write_entry(out: &mut Writer<'_>, entry: Entry<'_>) {
    match entry {
        Entry::Bytes(bytes) => out.bulk(bytes),
        Entry::Int(int) => out.bulk_int(int),
    }
}

impl Kind {
    /// The type of a record's value.
    pub const fn of(value: ValueRef<'_, Object>) -> Self {
        match value {
            ValueRef::Object(object) => object.kind(),
            ValueRef::Bytes(_) | ValueRef::Int(_) => Self::String,
        }
    }

    /// As TYPE says it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "zset",
            Self::Hash => "hash",
            Self::Stream => "stream",
            Self::Array => "array",
        }
    }
}

/// A value that no record holds: on its way from one key to another, or from outside.
#[derive(Debug)]
pub enum OwnedValue {
    /// A string that is a canonical integer.
    Int(i64),
    /// Any other string.
    Bytes(Vec<u8>),
    /// Anything else.
    Object(Box<Object>),
}

impl OwnedValue {
    /// A string, as an integer where it is one.
    pub fn string(bytes: Vec<u8>) -> Self {
        match structure::decimal::parse(&bytes) {
            Some(int) => Self::Int(int),
            None => Self::Bytes(bytes),
        }
    }

    /// A copy that shares nothing with the original.
    pub fn duplicate(value: ValueRef<'_, Object>, settings: &Settings, seed: &Seed) -> Self {
        match value {
            ValueRef::Int(int) => Self::Int(int),
            ValueRef::Bytes(bytes) => Self::Bytes(bytes.to_vec()),
            ValueRef::Object(object) => Self::Object(Box::new(object.duplicate(settings, seed))),
        }
    }

    /// Its type.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Int(_) | Self::Bytes(_) => Kind::String,
            Self::Object(object) => object.kind(),
        }
    }

    /// As records take it.
    pub fn into_value(self) -> Value<'static, Object> {
        match self {
            Self::Int(int) => Value::Int(int),
            Self::Bytes(bytes) => Value::Long(Box::new(bytes)),
            Self::Object(object) => Value::Object(object),
        }
    }
}

impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.kind().name(), self.len())
    }
}

impl Object {
    /// Its type.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::List(_) => Kind::List,
            Self::Set(_) => Kind::Set,
            Self::SortedSet(_) => Kind::SortedSet,
            Self::Hash(_) => Kind::Hash,
            Self::Stream(_) => Kind::Stream,
            Self::Array(_) => Kind::Array,
        }
    }

    /// As OBJECT ENCODING says it.
    pub fn encoding(&self) -> &'static str {
        match self {
            Self::List(list) => list.encoding(),
            Self::Set(set) => set.encoding(),
            Self::SortedSet(sorted) => sorted.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::Stream(_) => "stream",
            Self::Array(_) => "sliced-array",
        }
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        match self {
            Self::List(list) => list.len(),
            Self::Set(set) => set.len(),
            Self::SortedSet(sorted) => sorted.len(),
            Self::Hash(hash) => hash.len(),
            Self::Stream(stream) => usize::try_from(stream.len()).unwrap_or(usize::MAX),
            Self::Array(array) => usize::try_from(array.count()).unwrap_or(usize::MAX),
        }
    }

    /// Whether it is a hash of which a field has a deadline.
    pub fn has_field_deadlines(&self) -> bool {
        matches!(self, Self::Hash(hash) if hash.due_hint().is_some())
    }

    /// Whether it has no element. An empty stream is a value; anything else empty is removed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap, its own fixed part included.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::List(list) => list.memory_bytes(),
                Self::Set(set) => set.memory_bytes(),
                Self::SortedSet(sorted) => sorted.memory_bytes(),
                Self::Hash(hash) => hash.memory_bytes(),
                Self::Stream(stream) => stream.memory_bytes(),
                Self::Array(array) => size_of::<Array>() + array.memory_bytes(),
            }
    }

    /// Panics where an invariant of it does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        match self {
            Self::List(list) => list.check_invariants(),
            Self::Set(set) => set.check_invariants(),
            Self::SortedSet(sorted) => sorted.check_invariants(),
            Self::Hash(hash) => hash.check_invariants(),
            Self::Stream(stream) => stream.check_invariants(),
            Self::Array(array) => array.check_invariants(),
        }
        assert!(
            self.kind() == Kind::Stream || !self.is_empty(),
            "an empty {} is kept",
            self.kind().name()
        );
    }

    /// Frees about `budget` elements. True when none is left, so that dropping it is cheap.
    pub fn free_some(&mut self, budget: usize) -> bool {
        match self {
            Self::List(list) => list.free_some((budget / 64).max(1)),
            Self::Set(set) => set.free_some(budget),
            Self::SortedSet(sorted) => sorted.free_some(budget),
            Self::Hash(hash) => hash.free_some(budget),
            Self::Stream(stream) => stream.free_some(budget),
            Self::Array(array) => array.free_some(budget),
        }
    }
}
