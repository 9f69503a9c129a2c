//! The value of type sorted set.

/// A sorted set.
#[derive(Debug, Default)]
pub struct SortedSet {}

impl SortedSet {
    /// As OBJECT ENCODING says it.
    pub fn encoding(&self) -> &'static str {
        "listpack"
    }

    /// How many elements it has.
    pub fn len(&self) -> usize {
        0
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        0
    }

    /// Frees about `budget` elements. True when none is left.
    pub fn free_some(&mut self, _budget: usize) -> bool {
        true
    }
}
