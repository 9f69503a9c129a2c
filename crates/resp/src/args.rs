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

    /// The bytes of the whole command, where they are as anybody would write these words anew:
    /// `*2`, `$3`, `GET` and so on, a line each, no digit or byte too many.
    #[inline]
    pub fn as_sent(self) -> Option<&'a [u8]> {
        let &(first, len) = self.ranges.first()?;
        #[allow(clippy::cast_possible_truncation)]
        // As many as ranges, which are counted in 32 bits.
        let head = 3 + digits(self.ranges.len() as u32);
        let start = (first as usize).checked_sub(head + 3 + digits(len))?;
        let mut at = start + head;
        for &(word, len) in self.ranges {
            let word = word as usize;
            let end = word + len as usize;
            let is_plain = word == at + 3 + digits(len)
                && self.buf.get(at) == Some(&b'$')
                && self.buf.get(word - 2..word) == Some(b"\r\n")
                && self.buf.get(end..end + 2) == Some(b"\r\n");
            if !is_plain {
                return None;
            }
            at = end + 2;
        }
        let sent = self.buf.get(start..at)?;
        (sent[0] == b'*').then_some(sent)
    }

    /// An owned copy, in one buffer.
    pub fn to_owned(self) -> OwnedArgs {
        OwnedArgs::from_words(self.iter())
    }
}

/// How many digits a number has.
#[inline]
fn digits(number: u32) -> usize {
    match number {
        0..10 => 1,
        10..100 => 2,
        _ => 1 + number.ilog10() as usize,
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

#[cfg(test)]
mod tests {
    use crate::{Batch, Decoder, Limits};

    fn as_sent(text: &[u8]) -> Option<Vec<u8>> {
        let limits = Limits {
            bulk_bytes_max: 1 << 20,
            authenticated: true,
        };
        // What stands before it must not matter.
        let buf = [b"*1\r\n$4\r\nPING\r\n", text].concat();
        let mut batch = Batch::default();
        let end = Decoder::default().decode(&buf, limits, 10, &mut batch);
        assert_eq!((end, batch.len()), (Ok(buf.len()), 2));
        batch.args(1, &buf).as_sent().map(<[u8]>::to_vec)
    }

    #[test]
    fn a_command_in_the_plain_form_is_its_own_bytes() {
        let long = format!("*2\r\n$3\r\nGET\r\n$120\r\n{}\r\n", "k".repeat(120));
        let many = format!("*11\r\n{}", "$0\r\n\r\n".repeat(11));
        for text in ["*2\r\n$3\r\nGET\r\n$1\r\nk\r\n", &long, &many] {
            assert_eq!(as_sent(text.as_bytes()).as_deref(), Some(text.as_bytes()));
        }
        // The decoder does not mind what stands where a line should end.
        for text in ["GET k\r\n", "GET     k\r\n", "*2\r\n$3\r\nGETxx$1\r\nk\r\n"] {
            assert_eq!(as_sent(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn words_of_their_own_were_not_sent() {
        let words = [&b"*1\r\n$1\r\n"[..], b"", b"\r\n", b""];
        let owned = super::OwnedArgs::from_words(words);
        assert_eq!(owned.view().as_sent(), None);
        assert_eq!(super::OwnedArgs::default().view().as_sent(), None);
    }
}
