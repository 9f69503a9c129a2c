//! Units of a log set aside, to be played elsewhere than where they are read.

use resp::{Args, Range};

use super::Unit;

/// Units, copied out of the file that they stand in.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    words: Vec<Range>,
    /// First word, number of words, and where the unit began in its file.
    commands: Vec<(u32, u32, u64)>,
    units: u64,
}

impl Batch {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.units == 0
    }

    /// Bytes of all units.
    pub fn len_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// How many units there are.
    pub fn units(&self) -> u64 {
        self.units
    }

    /// How many commands there are.
    pub fn commands(&self) -> usize {
        self.commands.len()
    }

    /// Whether one more unit has its place: all together stay below 4 GiB.
    pub fn has_room(&self, unit: Unit<'_>) -> bool {
        u32::try_from(self.bytes.len() + unit.bytes.len()).is_ok()
    }

    /// Adds a unit that began at byte `at` of its file.
    ///
    /// # Panics
    /// Where there is no room for it ([`Batch::has_room`]).
    pub fn push(&mut self, unit: Unit<'_>, at: u64) {
        let place = |at: usize| u32::try_from(at).expect("a batch is below 4 GiB");
        place(self.bytes.len() + unit.bytes.len());
        let (base, first) = (place(self.bytes.len()), place(self.words.len()));
        self.bytes.extend_from_slice(unit.bytes);
        let words = unit.words.iter().map(|&(start, len)| (base + start, len));
        self.words.extend(words);
        let commands = unit.commands.iter();
        self.commands
            .extend(commands.map(|&(word, count)| (first + word, count, at)));
        self.units += 1;
    }

    /// Command `index`, and where its unit began in its file.
    #[inline]
    pub fn command(&self, index: usize) -> Option<(Args<'_>, u64)> {
        let &(first, count, at) = self.commands.get(index)?;
        let words = &self.words[first as usize..first as usize + count as usize];
        Some((Args::new(&self.bytes, words), at))
    }
}
