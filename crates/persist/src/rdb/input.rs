//! A stream of bytes with a window on it, and the checksum of what was taken.

use std::io::{self, Read};

use crc::{Digest, Table};
use engine::dump::{CHECKSUM, Damaged, Source};

/// Bytes asked for at once.
const READ_BYTES: usize = 256 * 1024;

/// What is read from: bounded by twice what one string takes, however long a length says it is.
pub struct Input<R> {
    from: R,
    /// `window[at..end]` is ahead, `window[summed..at]` was taken and is not in the checksum yet.
    window: Vec<u8>,
    at: usize,
    end: usize,
    summed: usize,
    /// Where the window begins in the stream.
    start: u64,
    digest: Option<Digest<'static, u64, Table<16>>>,
    error: Option<io::Error>,
    is_short: bool,
}

impl<R: Read> Input<R> {
    /// Reads `from`, its first byte being number `start` of the stream.
    pub fn new(from: R, start: u64) -> Self {
        Self {
            from,
            window: vec![0; READ_BYTES],
            at: 0,
            end: 0,
            summed: 0,
            start,
            digest: None,
            error: None,
            is_short: false,
        }
    }

    /// Begins the checksum with the next byte.
    pub fn sum(&mut self) {
        self.summed = self.at;
        self.digest = Some(CHECKSUM.digest());
    }

    /// The checksum of what was taken since; 0 where none was asked for.
    pub fn checksum(&mut self) -> u64 {
        self.sum_taken();
        self.digest.take().map_or(0, |digest| digest.finalize())
    }

    /// Where the next byte stands in the stream.
    pub fn offset(&self) -> u64 {
        self.start + self.at as u64
    }

    /// What the system said, where it failed.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    /// Whether bytes were asked for past the end.
    pub fn is_short(&self) -> bool {
        self.is_short
    }

    /// What is behind: the bytes that were read already, and the rest of the stream.
    pub fn into_rest(self) -> (Vec<u8>, R) {
        let mut window = self.window;
        window.truncate(self.end);
        window.drain(..self.at);
        (window, self.from)
    }

    fn sum_taken(&mut self) {
        if let Some(digest) = &mut self.digest {
            digest.update(&self.window[self.summed..self.at]);
        }
        self.summed = self.at;
    }

    /// Reads on until `count` bytes are ahead.
    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), Damaged> {
        self.sum_taken();
        self.window.copy_within(self.at..self.end, 0);
        self.start += self.at as u64;
        (self.end, self.at, self.summed) = (self.end - self.at, 0, 0);
        if count <= READ_BYTES && self.window.len() > READ_BYTES && self.end <= READ_BYTES {
            // A long string is behind.
            self.window.truncate(READ_BYTES);
            self.window.shrink_to_fit();
        }
        while self.end < count {
            if self.end == self.window.len() {
                // Grows with what came, not with what was announced.
                let more = self.window.len().min(count - self.end).max(READ_BYTES);
                self.window.resize(self.window.len() + more, 0);
            }
            match self.from.read(&mut self.window[self.end..]) {
                Ok(0) => {
                    self.is_short = true;
                    return Err(Damaged);
                }
                Ok(got) => self.end += got,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.error = Some(error);
                    return Err(Damaged);
                }
            }
        }
        Ok(())
    }
}

impl<R: Read> Source for Input<R> {
    #[inline]
    fn bytes(&mut self, count: usize) -> Result<&[u8], Damaged> {
        if self.end - self.at < count {
            self.fill(count)?;
        }
        let from = self.at;
        self.at += count;
        Ok(&self.window[from..self.at])
    }

    fn append(&mut self, count: usize, out: &mut Vec<u8>) -> Result<(), Damaged> {
        let mut left = count;
        loop {
            let taken = left.min(READ_BYTES);
            out.extend_from_slice(self.bytes(taken)?);
            left -= taken;
            if left == 0 {
                return Ok(());
            }
        }
    }
}
