//! The log of effects: what changed, in the order in which it changed.
//!
//! Each command that changed something, and each transaction as a whole, is one *frame*: commands
//! in the protocol's form that have the same effect wherever they are played again in order. A
//! frame gets its number (its *LSN*, log sequence number) while the stripes are locked, so numbers
//! are the serial order; they have no gaps, so whoever puts the frames of several threads together
//! knows which comes next. Frames gather in a [`Frames`] of the thread until its owner takes them.

//!
//! A command's effects gather in a [`Draft`]: what it found dead, then the command itself, or what
//! its handler says in its place. They become a frame when the command, or its transaction, ends;
//! several are wrapped in MULTI and EXEC.

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

    /// How many frames there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.frames.len()
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

    /// Frame `index` with its bytes.
    #[inline]
    pub fn get(&self, index: usize) -> Option<(Frame, &[u8])> {
        let frame = self.frames.get(index)?;
        let from = match index {
            0 => 0,
            _ => self.frames[index - 1].end,
        };
        Some((*frame, &self.bytes[from..frame.end]))
    }

    /// Forgets all, and keeps the memory for what comes next.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.frames.clear();
    }
}

/// Effects that are to become a frame.
#[derive(Debug, Default)]
pub struct Draft {
    /// Commands in the protocol's form, with a SELECT wherever the database changes.
    bytes: Vec<u8>,
    /// How many, without those SELECTs.
    count: usize,
    /// The databases of the first and of the last.
    dbs: (u32, u32),
}

impl Draft {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a command.
    pub fn add<'w>(&mut self, db: u32, words: impl ExactSizeIterator<Item = &'w [u8]>) {
        if self.is_empty() {
            self.dbs.0 = db;
        } else if self.dbs.1 != db {
            write_select(&mut self.bytes, db);
        }
        self.dbs.1 = db;
        self.count += 1;
        write_command(&mut self.bytes, words);
    }

    /// Makes a frame of what there is, and leaves nothing.
    pub fn finish(&mut self, lsn: u64, at_ms: u64, frames: &mut Frames) {
        frames.push(lsn, self.dbs, at_ms, |out| {
            let is_several = self.count > 1;
            out.reserve(self.bytes.len() + MULTI.len() + EXEC.len());
            if is_several {
                out.extend_from_slice(MULTI);
            }
            out.extend_from_slice(&self.bytes);
            if is_several {
                out.extend_from_slice(EXEC);
            }
        });
        self.bytes.clear();
        self.bytes.shrink_to(DRAFT_BYTES_KEPT);
        self.count = 0;
    }
}

/// Memory that a draft keeps from one frame to the next, at most.
const DRAFT_BYTES_KEPT: usize = 64 * 1024;
const MULTI: &[u8] = b"*1\r\n$5\r\nMULTI\r\n";
const EXEC: &[u8] = b"*1\r\n$4\r\nEXEC\r\n";

/// Appends a command in the protocol's form.
#[inline]
pub fn write_command<'w>(out: &mut Vec<u8>, words: impl ExactSizeIterator<Item = &'w [u8]>) {
    write_head(out, b'*', words.len());
    for word in words {
        write_head(out, b'$', word.len());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

/// Appends SELECT.
pub fn write_select(out: &mut Vec<u8>, db: u32) {
    let mut digits = itoa::Buffer::new();
    let words = [b"SELECT", digits.format(db).as_bytes()];
    write_command(out, words.into_iter());
}

#[inline]
fn write_head(out: &mut Vec<u8>, sign: u8, count: usize) {
    if count < 10 {
        #[allow(clippy::cast_possible_truncation)] // One digit.
        out.extend_from_slice(&[sign, b'0' + count as u8, b'\r', b'\n']);
    } else {
        out.push(sign);
        out.extend_from_slice(itoa::Buffer::new().format(count).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> impl ExactSizeIterator<Item = &[u8]> {
        let words: Vec<_> = text.split(' ').map(str::as_bytes).collect();
        words.into_iter()
    }

    #[test]
    fn one_effect_stands_alone_and_several_are_a_transaction() {
        let (mut draft, mut frames) = (Draft::default(), Frames::default());
        draft.add(3, words("DEL k"));
        draft.finish(1, 5, &mut frames);
        draft.add(0, words("DEL k"));
        draft.add(0, words("SET k 0123456789"));
        draft.add(12, words("DEL j"));
        draft.finish(2, 6, &mut frames);
        assert!(draft.is_empty());
        let seen: Vec<_> = frames
            .iter()
            .map(|(frame, bytes)| {
                let text = String::from_utf8_lossy(bytes).replace("\r\n", " ");
                (frame.lsn, frame.db, frame.db_after, text)
            })
            .collect();
        let del = "*2 $3 DEL $1 k ";
        let several = format!(
            "*1 $5 MULTI {del}*3 $3 SET $1 k $10 0123456789 *2 $6 SELECT $2 12 *2 $3 DEL $1 j *1 \
             $4 EXEC "
        );
        assert_eq!(seen, [(1, 3, 3, del.to_owned()), (2, 0, 12, several)]);
    }

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
