//! What a connection sends next, and who decides it.

/// Requests that go out in one write.
#[derive(Debug, Default)]
pub struct Batch {
    /// Bytes; a source may keep more here than the batch needs, for the next one.
    pub bytes: Vec<u8>,
    /// How many of them are the batch.
    pub used: usize,
    /// What the requests are, in order: a class of statistics, and how many in a row.
    pub groups: Vec<(usize, usize)>,
}

impl Batch {
    /// Says that the next `count` requests are of this class.
    pub fn push(&mut self, class: usize, count: usize) {
        match self.groups.last_mut() {
            Some((last, requests)) if *last == class => *requests += count,
            _ => self.groups.push((class, count)),
        }
    }
}

/// Makes the requests of one thread.
pub trait Source: Send {
    /// Puts exactly `count` requests into the batch, which this connection of the thread will send.
    fn fill(&mut self, connection: usize, count: usize, batch: &mut Batch);
}
