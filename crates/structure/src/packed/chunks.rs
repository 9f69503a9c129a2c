//! A list that never moves more than one chunk of its items at a time.
//!
//! Segments live in one list, so that "any segment" is one draw, and walking them needs no
//! directory. A plain `Vec` would copy all of them when it doubles: megabytes, a visible pause.

/// Items a chunk.
pub(crate) const CHUNK: usize = 64;

pub(crate) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
}

impl<T> Chunks<T> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self.chunks.last() {
            Some(last) => (self.chunks.len() - 1) * CHUNK + last.len(),
            None => 0,
        }
    }

    pub(crate) fn push(&mut self, item: T) {
        if self.chunks.last().is_none_or(|last| last.len() == CHUNK) {
            self.chunks.push(Vec::new());
        }
        let first = self.chunks.len() == 1;
        let last = self.chunks.last_mut().expect("one was pushed above");
        if last.len() == last.capacity() {
            // The first chunk grows step by step: a small table should stay small.
            let more = if first { last.len().max(1) } else { CHUNK };
            last.reserve_exact(more.min(CHUNK - last.len()));
        }
        last.push(item);
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let last = self.chunks.last_mut()?;
        let item = last.pop();
        if last.is_empty() {
            self.chunks.pop();
        }
        item
    }

    #[inline]
    pub(crate) fn get(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, at: usize) -> &mut T {
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }

    /// Removes item `at`; the last item takes its place.
    pub(crate) fn swap_remove(&mut self, at: usize) -> T {
        let last = self.pop().expect("there is an item to remove");
        if at == self.len() {
            last
        } else {
            std::mem::replace(self.get_mut(at), last)
        }
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.chunks.iter_mut().flatten()
    }

    /// The items of chunk `chunk`.
    pub(crate) fn chunk(&self, chunk: usize) -> &[T] {
        &self.chunks[chunk]
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }

    /// Bytes of the list itself, without what its items own.
    pub(crate) fn memory_bytes(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::capacity);
        let items = self.chunks.len().saturating_sub(1) * CHUNK + last;
        self.chunks.capacity() * size_of::<Vec<T>>() + items * size_of::<T>()
    }
}
