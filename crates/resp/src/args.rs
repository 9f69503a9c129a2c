//! The arguments of one command: a view of ranges in a buffer, and an owned copy for queued ones.

/// Where an argument lies in its buffer: start and length, in bytes.
pub type Range = (u32, u32);

/// The words of one command, the name first. Cheap to copy.
#[derive(Clone, Copy)]
pub struct Args<'a> {
    buf: &'a [u8],
    ranges: &'a [Range],
}

impl<'a> Args<'a> {
    /// A view of `ranges` of `buf`. A range outside the buffer reads as empty.
    pub fn new(buf: &'a [u8], ranges: &'a [Range]) -> Self {
        Self { buf, ranges }
    }

    /// How many words there are, the name counted.
    #[inline]
    #[allow(clippy::len_without_is_empty)] // A command has at least its name.
    pub fn len(self) -> usize {
        self.ranges.len()
    }

    /// Word `index`, or an empty slice past the end.
    #[inline]
    pub fn at(self, index: usize) -> &'a [u8] {
        self.get(index).unwrap_or_default()
    }

    /// Word `index`, or `None` past the end.
    #[inline]
    pub fn get(self, index: usize) -> Option<&'a [u8]> {
        let &(start, len) = self.ranges.get(index)?;
        self.buf.get(start as usize..start as usize + len as usize)
    }

    /// The words from `first` on.
    pub fn from(self, first: usize) -> Args<'a> {
        Args {
            buf: self.buf,
            ranges: self.ranges.get(first..).unwrap_or_default(),
        }
    }

    /// All words, the name first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator {
        (0..self.ranges.len()).map(move |index| self.at(index))
    }

    /// Whether word `index` is `word`, whatever its case. `word` is given in upper case.
    #[inline]
    pub fn is(self, index: usize, word: &str) -> bool {
        self.at(index).eq_ignore_ascii_case(word.as_bytes())
    }

    /// An owned copy, in one buffer.
    pub fn to_owned(self) -> OwnedArgs {
        OwnedArgs::from_words(self.iter())
    }
}

/// The words of one command, owned: one buffer and its ranges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedArgs {
    buf: Vec<u8>,
    ranges: Vec<Range>,
}

impl OwnedArgs {
    /// Copies `words` into one buffer.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut owned = Self::default();
        for word in words {
            owned.push(word);
        }
        owned
    }

    /// Adds one word at the end.
    ///
    /// # Panics
    /// When the words together pass 4 GiB; the decoder's limits keep commands far below.
    pub fn push(&mut self, word: &[u8]) {
        let start = u32::try_from(self.buf.len()).expect("a command is below 4 GiB");
        let len = u32::try_from(word.len()).expect("a word is below 4 GiB");
        self.buf.extend_from_slice(word);
        self.ranges.push((start, len));
    }

    /// A view of the words.
    pub fn view(&self) -> Args<'_> {
        Args::new(&self.buf, &self.ranges)
    }

    /// Bytes held on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.buf.capacity() + self.ranges.capacity() * size_of::<Range>()
    }
}
