//! What the fuzz targets share: reading the fuzzer's bytes as a list of operations.
//!
//! A target turns its input into calls on a structure and on a naive twin, and asserts that both
//! say the same. Small numbers are frequent on purpose, so that operations meet.
#![forbid(unsafe_code)]

/// The fuzzer's bytes, taken from the front. Past the end everything is zero.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of the input.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next byte, or `None` at the end: one operation a byte drives a target's loop.
    pub fn operation(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        self.operation().unwrap_or(0)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % limit
    }

    /// An integer: of one byte, two, four or eight, so that every width is met.
    pub fn integer(&mut self) -> i64 {
        let width = 1 << (self.byte() % 4);
        let mut bytes = [0; 8];
        bytes[..width].fill_with(|| self.byte());
        let number = i64::from_le_bytes(bytes);
        // Sign-extended, so that the negative edges of each width are met too.
        let unused = 64 - 8 * width as u32;
        (number << unused) >> unused
    }

    /// A word: text of an integer, or some bytes, seldom long.
    pub fn word(&mut self) -> Vec<u8> {
        match self.byte() {
            kind @ 0..64 => vec![b'a' + kind % 8],
            64..128 => self.integer().to_string().into_bytes(),
            128..248 => {
                let length = usize::from(self.byte() % 24);
                (0..length).map(|_| self.byte()).collect()
            }
            _ => {
                let length = self.below(5_000);
                vec![self.byte(); length]
            }
        }
    }

    /// What is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }
}
