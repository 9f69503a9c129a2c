//! The append-only log as bytes: reading it command by command, and finding where it is torn.
//!
//! A file is a row of commands in the protocol's form, and of remarks: lines that begin with `#`.
//! What belongs together comes together: the [`Reader`] gives *units*, a command alone or a
//! transaction whole, and nothing of a transaction whose EXEC is missing.
//!
//! ```text
//! #LEN:0000000000000046     a batch of so many bytes, in hexadecimal digits
//! #TS:1796076114            when what follows was written, in Unix seconds
//! *2 $6 SELECT $1 0
//! *3 $3 SET $1 k $1 v
//! #SUM:8a5da52ed126447d     XXH3 of all bytes since the line #SUM before, or since the beginning
//! ```
//!
//! Redis passes over remarks that it does not know, so each batch of ours has a checksum and the
//! file stays Redis's. What Redis appends later has none, and is taken as it stands.
//!
//! # Invariants
//! - [`Fault::valid`] is the end of the last whole unit: what stands before it may be kept.
//! - Memory is bounded by the longest unit that is there: a length that lies allocates nothing.
//! - Bytes in the wrong form are never passed over.

use std::fmt;
use std::io::{self, Read};

use resp::{Args, Range};
use xxhash_rust::xxh3::Xxh3;

mod batch;
mod scan;
pub use batch::Batch;
pub use scan::{Scan, scan};

#[cfg(test)]
mod tests;

/// Bytes read at once.
const READ_BYTES: usize = 256 * 1024;
/// Bytes of a line of a number or a remark.
const LINE_BYTES_MAX: usize = 1024;
/// Bytes of a unit: its words are found by 32-bit places.
const UNIT_BYTES_MAX: usize = u32::MAX as usize;
/// How a line begins that holds a checksum.
pub const SUM: &[u8] = b"#SUM:";
/// How a line begins that holds the length of a batch.
pub const LEN: &[u8] = b"#LEN:";
/// How a line begins that holds a time.
pub const TIMESTAMP: &[u8] = b"#TS:";

/// Why reading cannot go on.
#[derive(Debug)]
pub struct Fault {
    /// Up to where the file is whole: the end of the last unit.
    pub valid: u64,
    /// Where what is wrong stands.
    pub at: u64,
    /// What is wrong.
    pub reason: Reason,
}

/// What is wrong with a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Reason {
    /// The file ends inside a word: bytes wanted, bytes there.
    EndInWord(u64, u64),
    /// The file ends inside a line or between the words of a command.
    EndInCommand,
    /// The file ends before the EXEC of a transaction.
    EndInTransaction,
    /// From here on everything is zero, as a loss of power leaves it.
    Zeros,
    /// A batch that was never forced to the disk has holes, as a loss of power leaves them.
    Holes,
    /// A command does not begin with `*` and a number.
    Format,
    /// Another byte than the one that introduces a word, or a line.
    Prefix(u8, u8),
    /// A number that is none, or a line that does not end.
    Number(Vec<u8>),
    /// A word that is not followed by a line end.
    LineEnd([u8; 2]),
    /// MULTI inside a transaction.
    Multi,
    /// EXEC outside of a transaction.
    Exec,
    /// The bytes are not those that were written.
    Checksum,
    /// A transaction too long to be ours.
    TooLong,
    /// The system says no.
    Io(io::Error),
}

impl Fault {
    /// Whether the file was cut off here, rather than damaged.
    pub fn is_cut(&self) -> bool {
        matches!(
            self.reason,
            Reason::EndInWord(..)
                | Reason::EndInCommand
                | Reason::EndInTransaction
                | Reason::Zeros
                | Reason::Holes
        )
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let printable = |byte: u8| std::ascii::escape_default(byte).to_string();
        match self {
            Self::EndInWord(wanted, got) => {
                write!(f, "Expected to read {wanted} bytes, got {got} bytes")
            }
            Self::EndInCommand => f.write_str("the file ends inside a command"),
            Self::EndInTransaction => f.write_str("Reached EOF before reading EXEC for MULTI"),
            Self::Zeros => f.write_str("nothing but zero bytes up to the end"),
            Self::Holes => f.write_str("a batch that was not forced to the disk has holes"),
            Self::Format => f.write_str("format error"),
            Self::Prefix(wanted, got) => write!(
                f,
                "Expected prefix '{}', got: '{}'",
                printable(*wanted),
                printable(*got)
            ),
            Self::Number(line) => write!(f, "not a number: '{}'", line.escape_ascii()),
            Self::LineEnd(got) => write!(f, "Expected \\r\\n, got: {:02x}{:02x}", got[0], got[1]),
            Self::Multi => f.write_str("Unexpected MULTI"),
            Self::Exec => f.write_str("Unexpected EXEC"),
            Self::Checksum => f.write_str("the bytes since the last checksum were changed"),
            Self::TooLong => f.write_str("a transaction of more than 4 GiB"),
            Self::Io(error) => write!(f, "{error}"),
        }
    }
}

/// A command alone, or a transaction without its MULTI and EXEC.
#[derive(Clone, Copy)]
pub struct Unit<'a> {
    bytes: &'a [u8],
    words: &'a [Range],
    commands: &'a [(u32, u32)],
    /// Whether it was in MULTI and EXEC.
    pub is_transaction: bool,
}

impl<'a> Unit<'a> {
    /// The commands in order.
    pub fn commands(self) -> impl Iterator<Item = Args<'a>> {
        self.commands.iter().map(move |&(first, count)| {
            let words = &self.words[first as usize..first as usize + count as usize];
            Args::new(self.bytes, words)
        })
    }
}

/// A number of up to three digits and the end of its line, as nearly all are.
#[inline]
fn short_number(buf: &[u8], at: usize, prefix: u8) -> Option<(u64, usize)> {
    let line = buf.get(at..at + 6)?;
    if line[0] != prefix {
        return None;
    }
    let mut number = 0;
    for (place, &byte) in line.iter().enumerate().skip(1).take(4) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            let is_end = place > 1 && byte == b'\r' && line[place + 1] == b'\n';
            return is_end.then_some((number, at + place + 2));
        }
        number = number * 10 + u64::from(digit);
    }
    None
}

/// What stands in a file.
pub enum Item<'a> {
    /// What changed.
    Unit(Unit<'a>),
    /// When what follows was written: Unix seconds.
    Timestamp(u64),
}

/// Reads one file of the log.
pub struct Reader<R> {
    from: R,
    buf: Vec<u8>,
    /// How much of `buf` was given out already.
    done: usize,
    /// Where `buf` begins in the file.
    origin: u64,
    is_at_end: bool,
    words: Vec<Range>,
    commands: Vec<(u32, u32)>,
    /// Where the last word began that was read.
    word_at: u64,
    lines: u64,
    sum: Xxh3,
    /// How much of `buf` is in `sum`: up to `done` when it is asked for.
    summed: usize,
    /// Where the bytes begin that the next checksum is about.
    summed_from: u64,
    /// Whether any checksum was met.
    is_summed: bool,
    /// A batch whose checksum has not come: where it begins and where it should end.
    batch: Option<(u64, u64)>,
    /// Where the last batch of a known length begins.
    last_batch: Option<u64>,
}

/// What came of looking for a part.
enum Step<T> {
    Got(T),
    /// The end of the file came first.
    End,
}

impl<R: Read> Reader<R> {
    /// Reads `from`, which stands at byte `origin` of its file.
    pub fn new(from: R, origin: u64) -> Self {
        Self {
            from,
            buf: Vec::new(),
            done: 0,
            origin,
            is_at_end: false,
            words: Vec::new(),
            commands: Vec::new(),
            word_at: origin,
            lines: 1,
            sum: Xxh3::new(),
            summed: 0,
            summed_from: origin,
            is_summed: false,
            batch: None,
            last_batch: None,
        }
    }

    /// Where the next item begins.
    pub fn offset(&self) -> u64 {
        self.origin + self.done as u64
    }

    /// Lines read so far, as `redis-check-aof` counts them: without remarks, from 1.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Where the bytes begin that no checksum vouches for.
    pub fn summed_to(&self) -> Option<u64> {
        self.is_summed.then_some(self.summed_from)
    }

    /// The batch whose checksum has not come: where it begins and should end.
    pub fn open_batch(&self) -> Option<(u64, u64)> {
        self.batch
    }

    /// Where the last batch of a known length begins.
    pub fn last_batch(&self) -> Option<u64> {
        self.last_batch
    }

    /// What follows in the file as it is: for looking at what cannot be read.
    pub fn into_rest(self) -> (Vec<u8>, R) {
        let mut buf = self.buf;
        buf.drain(..self.done);
        (buf, self.from)
    }

    /// The next item; `None` at the end of the file.
    ///
    /// # Errors
    /// What is wrong with the file. There is no reading on.
    pub fn next_item(&mut self) -> Result<Option<Item<'_>>, Fault> {
        loop {
            if !self.has(self.done)? {
                return Ok(None);
            }
            if self.buf[self.done] != b'#' {
                return self.unit().map(|unit| Some(Item::Unit(unit)));
            }
            if let Some(at_s) = self.remark()? {
                return Ok(Some(Item::Timestamp(at_s)));
            }
        }
    }

    /// Takes a line that begins with `#`; returns the time that it says.
    fn remark(&mut self) -> Result<Option<u64>, Fault> {
        let end = match self.line(self.done)? {
            Step::Got(end) => end,
            Step::End => return Err(self.fault(self.buf.len(), Reason::EndInCommand)),
        };
        self.no_zeros(self.done, end)?;
        let line = &self.buf[self.done..end];
        let text = line.trim_ascii_end();
        let mut at_s = None;
        if let Some(digits) = text.strip_prefix(TIMESTAMP) {
            let digits = std::str::from_utf8(digits).ok();
            at_s = digits.and_then(|digits| digits.parse().ok());
            if at_s.is_none() {
                let reason = Reason::Number(text.to_vec());
                return Err(self.fault(self.done, reason));
            }
        } else if let Some(digits) = text.strip_prefix(SUM) {
            self.sum.update(&self.buf[self.summed..self.done]);
            if digits != format!("{:016x}", self.sum.digest()).as_bytes() {
                return Err(Fault {
                    valid: self.summed_from,
                    at: self.summed_from,
                    reason: Reason::Checksum,
                });
            }
            (self.done, self.summed) = (end, end);
            self.sum.reset();
            self.summed_from = self.offset();
            self.is_summed = true;
            self.batch = None;
            return Ok(None);
        }
        if let Some(digits) = text.strip_prefix(LEN) {
            let digits = std::str::from_utf8(digits).ok();
            let len = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
            if len.is_none() {
                let reason = Reason::Number(text.to_vec());
                return Err(self.fault(self.done, reason));
            }
            let from = self.offset();
            let body = from + (end - self.done) as u64;
            self.batch = len.map(|len| (from, body.saturating_add(len)));
            self.last_batch = Some(from);
        }
        self.take(end);
        Ok(at_s)
    }

    /// A remark with zeros has a hole: what it runs on to is no remark.
    fn no_zeros(&self, at: usize, end: usize) -> Result<(), Fault> {
        let line = &self.buf[at..end];
        match line.iter().position(|&byte| byte == 0) {
            Some(zero) => Err(self.fault(at + zero, Reason::Number(line[..zero].to_vec()))),
            None => Ok(()),
        }
    }

    /// Gives out what stands up to `end`.
    fn take(&mut self, end: usize) {
        self.done = end;
    }

    /// Takes a unit whole.
    fn unit(&mut self) -> Result<Unit<'_>, Fault> {
        self.words.clear();
        self.commands.clear();
        self.drop_done();
        let start = self.done;
        let mut at = start;
        let mut is_transaction = false;
        loop {
            at = match self.command(start, at, is_transaction)? {
                Step::Got(end) => end,
                Step::End if is_transaction => {
                    let place = self.place(self.word_at);
                    return Err(self.fault(place, Reason::EndInTransaction));
                }
                Step::End => return Err(self.fault(self.buf.len(), Reason::EndInCommand)),
            };
            let last = self.commands[self.commands.len() - 1];
            let word = self.words[last.0 as usize];
            let name = &self.buf[start + word.0 as usize..][..word.1 as usize];
            let (is_multi, is_exec) = (
                name.eq_ignore_ascii_case(b"multi"),
                name.eq_ignore_ascii_case(b"exec"),
            );
            let misplaced = match is_transaction {
                true if is_multi => Some(Reason::Multi),
                false if is_exec => Some(Reason::Exec),
                _ => None,
            };
            if let Some(reason) = misplaced {
                let place = self.place(self.word_at);
                return Err(self.fault(place, reason));
            }
            if is_multi || is_exec {
                self.commands.pop();
            }
            is_transaction |= is_multi;
            if !is_transaction || is_exec {
                break;
            }
        }
        self.take(at);
        Ok(Unit {
            bytes: &self.buf[start..at],
            words: &self.words,
            commands: &self.commands,
            is_transaction,
        })
    }

    /// Reads the command at `at` of the unit that begins at `start`; returns where it ends.
    fn command(
        &mut self,
        start: usize,
        mut at: usize,
        in_transaction: bool,
    ) -> Result<Step<usize>, Fault> {
        while in_transaction && self.has(at)? && self.buf[at] == b'#' {
            match self.line(at)? {
                Step::Got(end) => {
                    self.no_zeros(at, end)?;
                    at = end;
                }
                Step::End => return Ok(Step::End),
            }
        }
        if !self.has(at)? {
            return Ok(Step::End);
        }
        if self.buf[at] != b'*' {
            return Err(self.fault(at, Reason::Format));
        }
        let (count, mut at) = match self.number(at, b'*')? {
            Step::Got(got) => got,
            Step::End => return Ok(Step::End),
        };
        if count == 0 || count > i32::MAX as u64 {
            return Err(self.fault(at, Reason::Format));
        }
        let first = self.words.len();
        for _ in 0..count {
            let (len, word) = match self.number(at, b'$')? {
                Step::Got(got) => got,
                Step::End => return Ok(Step::End),
            };
            self.word_at = self.origin + word as u64;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            let end = word.saturating_add(len).saturating_add(2);
            if end - start > UNIT_BYTES_MAX {
                // Nothing was read for it: either the file ends long before, or it is too long.
                return Err(self.fault(word, Reason::TooLong));
            }
            if !self.has(end - 1)? {
                let got = (self.buf.len() - word) as u64;
                return Err(self.fault(word, Reason::EndInWord(len as u64 + 2, got)));
            }
            let line_end = [self.buf[end - 2], self.buf[end - 1]];
            if line_end != *b"\r\n" {
                let odd = usize::from(line_end[0] == b'\r');
                return Err(self.fault(end - 2 + odd, Reason::LineEnd(line_end)));
            }
            let place = |at: usize| u32::try_from(at).expect("a unit is below 4 GiB");
            self.words.push((place(word - start), place(len)));
            self.lines += 1;
            at = end;
        }
        let index = |at: usize| u32::try_from(at).expect("fewer words than bytes");
        let count = self.words.len() - first;
        self.commands.push((index(first), index(count)));
        Ok(Step::Got(at))
    }

    /// Reads a line of a number after `prefix`; returns the number and where the line ends.
    #[inline]
    fn number(&mut self, at: usize, prefix: u8) -> Result<Step<(u64, usize)>, Fault> {
        if let Some(found) = short_number(&self.buf, at, prefix) {
            self.lines += 1;
            return Ok(Step::Got(found));
        }
        self.any_number(at, prefix)
    }

    fn any_number(&mut self, at: usize, prefix: u8) -> Result<Step<(u64, usize)>, Fault> {
        if !self.has(at)? {
            return Ok(Step::End);
        }
        if self.buf[at] != prefix {
            let reason = Reason::Prefix(prefix, self.buf[at]);
            return Err(self.fault(at, reason));
        }
        let end = match self.line(at)? {
            Step::Got(end) => end,
            Step::End => return Ok(Step::End),
        };
        self.lines += 1;
        let line = &self.buf[at + 1..end];
        let number = line.strip_suffix(b"\r\n").and_then(|digits| {
            let is_plain = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(digits).ok().filter(|_| is_plain);
            text.and_then(|text| text.parse().ok())
        });
        match number {
            Some(number) => Ok(Step::Got((number, end))),
            None => {
                let line = line.trim_ascii_end().to_vec();
                let wrong = line.iter().position(|byte| !byte.is_ascii_digit());
                let place = at + 1 + wrong.unwrap_or(line.len());
                Err(self.fault(place, Reason::Number(line)))
            }
        }
    }

    /// Where the line at `at` ends.
    fn line(&mut self, at: usize) -> Result<Step<usize>, Fault> {
        let mut searched = at;
        loop {
            let found = self.buf[searched..].iter().position(|&byte| byte == b'\n');
            if let Some(found) = found {
                return Ok(Step::Got(searched + found + 1));
            }
            searched = self.buf.len();
            if searched - at > LINE_BYTES_MAX {
                let line = self.buf[at..at + 32].to_vec();
                let odd = self.buf[at + 1..]
                    .iter()
                    .position(|byte| !byte.is_ascii_graphic());
                let place = at + 1 + odd.unwrap_or(LINE_BYTES_MAX);
                return Err(self.fault(place, Reason::Number(line)));
            }
            if !self.has(searched)? {
                // Zeros where digits should be are no line that goes on.
                let zero = self.buf[at..].iter().position(|&byte| byte == 0);
                if let Some(zero) = zero {
                    let line = self.buf[at..at + zero].to_vec();
                    return Err(self.fault(at + zero, Reason::Number(line)));
                }
                return Ok(Step::End);
            }
        }
    }

    /// Whether the file has a byte at `at` of the buffer; reads on until it is known.
    fn has(&mut self, at: usize) -> Result<bool, Fault> {
        while at >= self.buf.len() {
            if self.is_at_end {
                return Ok(false);
            }
            let old = self.buf.len();
            // Grows with what comes, not with what was promised.
            let wanted = READ_BYTES
                .max(old - self.done)
                .min(at + 1 - old + READ_BYTES);
            let mut part = (&mut self.from).take(wanted as u64);
            if let Err(error) = part.read_to_end(&mut self.buf) {
                return Err(self.fault(self.buf.len(), Reason::Io(error)));
            }
            self.is_at_end = self.buf.len() - old < wanted;
        }
        Ok(true)
    }

    /// Forgets what was given out, once that is worth moving the rest.
    fn drop_done(&mut self) {
        if self.done > self.buf.len() / 2 {
            self.sum.update(&self.buf[self.summed..self.done]);
            self.buf.drain(..self.done);
            self.origin += self.done as u64;
            (self.done, self.summed) = (0, 0);
            if self.buf.capacity() > 16 * READ_BYTES && self.buf.len() < READ_BYTES {
                self.buf.shrink_to(READ_BYTES);
            }
        }
    }

    fn place(&self, offset: u64) -> usize {
        usize::try_from(offset.saturating_sub(self.origin)).unwrap_or(self.done)
    }

    fn fault(&self, place: usize, reason: Reason) -> Fault {
        Fault {
            valid: self.offset(),
            at: self.origin + place as u64,
            reason,
        }
    }
}
