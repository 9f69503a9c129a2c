//! The log of effects: what changed, in the order in which it changed.
//!
//! Each command that changed something, and each transaction as a whole, is one *frame*: commands
//! in the protocol's form that have the same effect wherever they are played again in order. A
//! frame gets its number (its *LSN*, log sequence number) while the stripes are locked, so numbers
//! are the serial order; they have no gaps, so whoever puts the frames of several threads together
//! knows which comes next. Frames gather in a [`Frames`] of the thread until its owner takes them.

/// Where one frame of a [`Frames`] stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Its number; 1 is the first.
    pub lsn: u64,
    /// The database in which its first command must be played.
    pub db: u32,
    /// The database in which its last command leaves the reader.
    pub db_after: u32,
    /// When: Unix milliseconds.
    pub at_ms: u64,
    /// Where its bytes end; they begin where the frame before ends.
    pub end: usize,
}

/// Frames of one thread, in ascending order of their numbers.
#[derive(Debug, Default)]
pub struct Frames {
    bytes: Vec<u8>,
    frames: Vec<Frame>,
}

impl Frames {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Bytes of all frames.
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The number of the last frame.
    pub fn last_lsn(&self) -> Option<u64> {
        self.frames.last().map(|frame| frame.lsn)
    }

    /// Adds a frame; `write` appends its bytes.
    #[inline]
    pub fn push(
        &mut self,
        lsn: u64,
        (db, db_after): (u32, u32),
        at_ms: u64,
        write: impl FnOnce(&mut Vec<u8>),
    ) {
        debug_assert!(self.last_lsn().is_none_or(|last| last < lsn));
        write(&mut self.bytes);
        self.frames.push(Frame {
            lsn,
            db,
            db_after,
            at_ms,
            end: self.bytes.len(),
        });
    }

    /// Each frame with its bytes.
    pub fn iter(&self) -> impl Iterator<Item = (Frame, &[u8])> {
        let mut from = 0;
        self.frames.iter().map(move |frame| {
            let bytes = &self.bytes[from..frame.end];
            from = frame.end;
            (*frame, bytes)
        })
    }

    /// Forgets all, and keeps the memory for what comes next.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_keep_their_bytes_and_order() {
        let mut frames = Frames::default();
        assert!(frames.is_empty());
        frames.push(7, (0, 0), 1, |out| out.extend_from_slice(b"one"));
        frames.push(9, (0, 2), 2, |out| out.extend_from_slice(b"three"));
        let seen: Vec<_> = frames
            .iter()
            .map(|(frame, bytes)| (frame.lsn, frame.db_after, bytes.to_vec()))
            .collect();
        assert_eq!(seen, [(7, 0, b"one".to_vec()), (9, 2, b"three".to_vec())]);
        assert_eq!((frames.last_lsn(), frames.len_bytes()), (Some(9), 8));
        frames.clear();
        assert!(frames.is_empty() && frames.iter().next().is_none());
    }
}
