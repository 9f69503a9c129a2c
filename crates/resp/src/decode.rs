//! The decoder: requests out of a connection's bytes, as they come.
//!
//! A request is an array of bulk strings (`*2\r\n$3\r\nGET\r\n$1\r\nk\r\n`) or one line of words
//! (inline). The decoder collects whole requests into a [`Batch`] of ranges; what is cut off at the
//! end of the buffer is remembered, so that no byte is read twice however the input is sliced.
//!
//! # Invariants
//! - `Batch::consumed` is always the end of the last whole request, relative to the buffer given.
//! - Between calls the caller drops exactly `consumed` bytes and appends new ones.

use crate::args::{Args, Range};

/// A header line (`*…`, `$…`) or an inline request may not be longer.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// Before a client has authenticated, a request has at most this many words.
const UNAUTHENTICATED_WORDS_MAX: i64 = 10;
/// Before a client has authenticated, a word has at most this many bytes.
const UNAUTHENTICATED_WORD_BYTES_MAX: i64 = 16_384;
/// A request has at most this many words.
const WORDS_MAX: i64 = i32::MAX as i64;
/// Room for words that is reserved on the header's word alone.
const WORDS_RESERVED_MAX: usize = 1024;

/// What a request may hold.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// `proto-max-bulk-len`: bytes of one word.
    pub bulk_bytes_max: u64,
    /// Whether the client may send whatever fits; before AUTH it may not.
    pub authenticated: bool,
}

/// Why a connection must be closed: the text after `Protocol error: `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolError(pub String);

fn wrong<T>(text: &str) -> Result<T, ProtocolError> {
    Err(ProtocolError(text.to_string()))
}

/// Whole requests found in a buffer.
#[derive(Debug, Default)]
pub struct Batch {
    words: Vec<Range>,
    /// For each request: the index of its first word, how many, and where it ends in the buffer.
    requests: Vec<(u32, u32, u32)>,
    /// Unquoted words of inline requests, which are no ranges of the buffer.
    unquoted: Vec<u8>,
    /// Requests whose words lie in `unquoted`, by index; rare.
    inline: Vec<u32>,
}

impl Batch {
    /// How many whole requests there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// The words of request `index`, out of the buffer that was decoded.
    ///
    /// # Panics
    /// When there is no such request.
    #[inline]
    pub fn args<'a>(&'a self, index: usize, buf: &'a [u8]) -> Args<'a> {
        let (first, count, _) = self.requests[index];
        let words = &self.words[first as usize..first as usize + count as usize];
        let unquoted = !self.inline.is_empty() && self.inline.iter().any(|&i| i as usize == index);
        Args::new(if unquoted { &self.unquoted } else { buf }, words)
    }

    /// Where request `index` ends in the buffer.
    pub fn end(&self, index: usize) -> usize {
        self.requests[index].2 as usize
    }

    /// Forgets all requests; the room for them stays.
    pub fn clear(&mut self) {
        self.words.clear();
        self.requests.clear();
        self.unquoted.clear();
        self.inline.clear();
    }

    /// Gives back room beyond what a usual batch needs.
    pub fn shrink(&mut self) {
        const KEEP: usize = 64 * 1024;
        if self.words.capacity() > KEEP {
            self.words = Vec::new();
        }
        if self.unquoted.capacity() > KEEP {
            self.unquoted = Vec::new();
        }
    }
}

/// A request whose end has not arrived.
#[derive(Debug)]
struct Partial {
    /// Words so far, relative to the request's start.
    words: Vec<Range>,
    /// Words still to come.
    left: u32,
    /// Where to read on, relative to the request's start.
    at: usize,
    /// Where the word ends that was cut off, relative to the request's start; 0 where its length
    /// has not come.
    needed: usize,
}

/// What a connection remembers between reads. Empty for a connection at a request's edge.
#[derive(Debug, Default)]
pub struct Decoder {
    partial: Option<Box<Partial>>,
    /// Bytes known to hold no line end yet, so that a long line is searched once.
    searched: usize,
    /// Where the word ends in the buffer that was cut off last; 0 where its length has not come.
    cut_off: usize,
}

/// The number of a header line as most are: `$7\r\n` or `$16\r\n`, and where the next line begins.
/// `None` for any other, right or wrong.
#[inline]
fn short_header(buf: &[u8], at: usize, mark: u8) -> Option<(u32, usize)> {
    let (line, rest) = buf.get(at..)?.split_first_chunk::<4>()?;
    let [_, tens, ones, _] = line.map(|byte| u32::from(byte).wrapping_sub(u32::from(b'0')));
    let line = u32::from_le_bytes(*line);
    if line & 0xffff_00ff == u32::from_le_bytes([mark, 0, b'\r', b'\n']) && tens < 10 {
        return Some((tens, at + 4));
    }
    let is_two = line & 0xff00_00ff == u32::from_le_bytes([mark, 0, 0, b'\r'])
        && rest.first() == Some(&b'\n')
        && tens.wrapping_sub(1) < 9
        && ones < 10;
    is_two.then(|| (tens * 10 + ones, at + 5))
}

/// The second word of the request that begins `buf`, where that is quickly seen: mostly the key. A
/// hint of what will be asked for, and no more: nothing is checked.
#[inline]
pub fn likely_key(buf: &[u8]) -> Option<&[u8]> {
    let (words, at) = short_header(buf, 0, b'*').filter(|&(words, _)| words > 1)?;
    debug_assert!(words < 100);
    let (name_len, at) = short_header(buf, at, b'$')?;
    let (key_len, at) = short_header(buf, at + name_len as usize + 2, b'$')?;
    buf.get(at..at + key_len as usize)
}

enum Step<T> {
    Done(T, usize),
    More,
}

impl Decoder {
    /// Bytes, from the request's start on, that must be in the buffer before decoding can go on;
    /// 0 when nothing is known. The client says so: it may never send them.
    pub fn needed(&self) -> usize {
        self.partial.as_ref().map_or(0, |partial| partial.needed)
    }

    /// Forgets a request that was cut off: the caller presents its bytes again from their start.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Finds up to `requests_max` whole requests in `buf` and adds them to `batch`, which must be
    /// empty. Returns how many bytes they take. Requests before a broken one are delivered first:
    /// the error then comes with the next call.
    ///
    /// # Errors
    /// Where Redis closes the connection with `Protocol error: …`.
    ///
    /// # Panics
    /// When the buffer has 4 GiB or more.
    pub fn decode(
        &mut self,
        buf: &[u8],
        limits: Limits,
        requests_max: usize,
        batch: &mut Batch,
    ) -> Result<usize, ProtocolError> {
        // Buffers are kept below 4 GiB by `client-query-buffer-limit`.
        assert!(
            u32::try_from(buf.len()).is_ok(),
            "a query buffer is below 4 GiB"
        );
        let mut at = 0;
        while batch.requests.len() < requests_max && at < buf.len() {
            match self.request(buf, at, limits, batch) {
                Ok(Step::Done((), end)) => at = end,
                Ok(Step::More) => break,
                Err(_) if !batch.is_empty() => {
                    self.partial = None;
                    self.searched = 0;
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(at)
    }

    #[inline(always)]
    fn request(
        &mut self,
        buf: &[u8],
        start: usize,
        limits: Limits,
        batch: &mut Batch,
    ) -> Result<Step<()>, ProtocolError> {
        if let Some(partial) = self.partial.take() {
            return self.resume(*partial, buf, start, limits, batch);
        }
        if buf[start] != b'*' {
            return self.inline(buf, start, batch);
        }
        let (count, at) = match short_header(buf, start, b'*') {
            Some((count, at)) => (Some(i64::from(count)), at),
            None => match self.header(buf, start, "too big mbulk count string")? {
                Step::Done(count, at) => (count, at),
                Step::More => return Ok(Step::More),
            },
        };
        let count = match count {
            Some(count) if count <= WORDS_MAX => count,
            _ => return wrong("invalid multibulk length"),
        };
        if !limits.authenticated && count > UNAUTHENTICATED_WORDS_MAX {
            return wrong("unauthenticated multibulk length");
        }
        if count <= 0 {
            return Ok(Step::Done((), at));
        }
        let first = batch.words.len();
        let left = u32::try_from(count).unwrap_or(u32::MAX);
        self.words(buf, start, at, left, first, limits, batch)
    }

    #[cold]
    fn resume(
        &mut self,
        partial: Partial,
        buf: &[u8],
        start: usize,
        limits: Limits,
        batch: &mut Batch,
    ) -> Result<Step<()>, ProtocolError> {
        let first = batch.words.len();
        let base = offset(start);
        batch
            .words
            .extend(partial.words.iter().map(|&(at, len)| (at + base, len)));
        // A word whose bytes have not all arrived: its header is read again, nothing else is.
        self.words(
            buf,
            start,
            start + partial.at,
            partial.left,
            first,
            limits,
            batch,
        )
    }

    /// Reads `left` words at `at` of the request that began at `start`.
    // Always inlined: its arguments cost as much as reading a word does.
    #[inline(always)]
    fn words(
        &mut self,
        buf: &[u8],
        start: usize,
        mut at: usize,
        mut left: u32,
        first: usize,
        limits: Limits,
        batch: &mut Batch,
    ) -> Result<Step<()>, ProtocolError> {
        while left > 0 {
            if let Some((len, body)) = short_header(buf, at, b'$')
                && body + len as usize + 2 <= buf.len()
            {
                batch.words.push((offset(body), len));
                left -= 1;
                at = body + len as usize + 2;
                continue;
            }
            match self.word(buf, at, limits) {
                Ok(Step::Done(range, end)) => {
                    batch.words.push(range);
                    left -= 1;
                    at = end;
                }
                Ok(Step::More) => {
                    let base = offset(start);
                    let mut words = Vec::with_capacity((left as usize).min(WORDS_RESERVED_MAX));
                    words.extend(batch.words.drain(first..).map(|(at, len)| (at - base, len)));
                    self.partial = Some(Box::new(Partial {
                        words,
                        left,
                        at: at - start,
                        needed: self.cut_off.saturating_sub(start),
                    }));
                    return Ok(Step::More);
                }
                Err(error) => {
                    batch.words.truncate(first);
                    return Err(error);
                }
            }
        }
        let count = batch.words.len() - first;
        batch
            .requests
            .push((offset(first), offset(count), offset(at)));
        Ok(Step::Done((), at))
    }

    /// A word with any header.
    #[inline(never)]
    fn word(
        &mut self,
        buf: &[u8],
        at: usize,
        limits: Limits,
    ) -> Result<Step<Range>, ProtocolError> {
        self.cut_off = 0;
        let (len, body) = match self.long_header(buf, at, limits)? {
            Step::Done(len, body) => (len, body),
            Step::More => return Ok(Step::More),
        };
        let Ok(len) = usize::try_from(len) else {
            return wrong("invalid bulk length");
        };
        let end = body + len + 2;
        if end > buf.len() {
            self.cut_off = end;
            return Ok(Step::More);
        }
        Ok(Step::Done((offset(body), offset(len)), end))
    }

    fn long_header(
        &mut self,
        buf: &[u8],
        at: usize,
        limits: Limits,
    ) -> Result<Step<i64>, ProtocolError> {
        match buf.get(at) {
            None => return Ok(Step::More),
            Some(b'$') => {}
            Some(&other) => {
                return wrong(&format!("expected '$', got '{}'", char::from(other)));
            }
        }
        let (len, body) = match self.header(buf, at, "too big bulk count string")? {
            Step::Done(len, body) => (len, body),
            Step::More => return Ok(Step::More),
        };
        let max = limits.bulk_bytes_max.min(u64::from(u32::MAX) / 2);
        match len {
            Some(len) if u64::try_from(len).is_ok_and(|len| len <= max) => {
                if !limits.authenticated && len > UNAUTHENTICATED_WORD_BYTES_MAX {
                    return wrong("unauthenticated bulk length");
                }
                Ok(Step::Done(len, body))
            }
            _ => wrong("invalid bulk length"),
        }
    }

    /// The number on the header line at `at`, and where the next line begins.
    #[inline]
    fn header(
        &mut self,
        buf: &[u8],
        at: usize,
        too_big: &str,
    ) -> Result<Step<Option<i64>>, ProtocolError> {
        let rest = &buf[at..];
        // One to three digits: nearly all headers.
        if let [_, a @ b'1'..=b'9', ..] = *rest {
            let a = i64::from(a - b'0');
            match *rest {
                [_, _, b'\r', b'\n', ..] => return Ok(Step::Done(Some(a), at + 4)),
                [_, _, b @ b'0'..=b'9', b'\r', b'\n', ..] => {
                    return Ok(Step::Done(Some(a * 10 + i64::from(b - b'0')), at + 5));
                }
                [_, _, b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
                    let value = a * 100 + i64::from(b - b'0') * 10 + i64::from(c - b'0');
                    return Ok(Step::Done(Some(value), at + 6));
                }
                _ => {}
            }
        }
        let line = &rest[..rest.len().min(LINE_BYTES_MAX + 1)];
        let Some(len) = memchr::memchr(b'\r', line) else {
            return if rest.len() > LINE_BYTES_MAX {
                wrong(too_big)
            } else {
                Ok(Step::More)
            };
        };
        if rest.len() < len + 2 {
            return Ok(Step::More);
        }
        Ok(Step::Done(parse_int(&rest[1..len]), at + len + 2))
    }

    fn inline(
        &mut self,
        buf: &[u8],
        start: usize,
        batch: &mut Batch,
    ) -> Result<Step<()>, ProtocolError> {
        let rest = &buf[start..];
        let skip = self.searched.min(rest.len());
        // As in Redis, nothing behind a zero byte counts: its line never ends.
        let end = memchr::memchr2(b'\n', 0, &rest[skip..]).map(|at| at + skip);
        let Some(len) = end.filter(|&at| rest[at] == b'\n') else {
            self.searched = end.unwrap_or(rest.len());
            if rest.len() > LINE_BYTES_MAX {
                return wrong("too big inline request");
            }
            return Ok(Step::More);
        };
        self.searched = 0;
        let line = rest[..len].strip_suffix(b"\r").unwrap_or(&rest[..len]);
        let first = batch.words.len();
        if !split_words(line, &mut batch.unquoted, &mut batch.words) {
            batch.words.truncate(first);
            return wrong("unbalanced quotes in request");
        }
        let count = batch.words.len() - first;
        if count > 0 {
            batch.inline.push(offset(batch.requests.len()));
            batch
                .requests
                .push((offset(first), offset(count), offset(start + len + 1)));
        }
        Ok(Step::Done((), start + len + 1))
    }
}

/// A place in a buffer, whose length [`Decoder::decode`] has looked at.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn offset(at: usize) -> u32 {
    debug_assert!(u32::try_from(at).is_ok());
    at as u32
}

fn parse_int(digits: &[u8]) -> Option<i64> {
    let (negative, digits) = match digits.split_first() {
        Some((b'-', rest)) => (true, rest),
        _ => (false, digits),
    };
    if digits.first() == Some(&b'0') && (negative || digits.len() > 1) || digits.is_empty() {
        return None;
    }
    // Below zero, where there is one number more.
    let value = digits.iter().try_fold(0i64, |value, &digit| {
        let digit = digit.is_ascii_digit().then(|| i64::from(digit - b'0'))?;
        value.checked_mul(10)?.checked_sub(digit)
    })?;
    if negative {
        Some(value)
    } else {
        value.checked_neg()
    }
}

/// Splits a line into words, with `"…"` (escapes `\n \r \t \b \a \xHH`) and `'…'` (escape `\'`).
/// Returns false where a quote is not closed or something follows it directly.
fn split_words(line: &[u8], text: &mut Vec<u8>, words: &mut Vec<Range>) -> bool {
    let mut at = 0;
    loop {
        while line.get(at).copied().is_some_and(is_blank) {
            at += 1;
        }
        if at >= line.len() {
            return true;
        }
        let start = text.len();
        let mut quote = None;
        loop {
            let byte = line.get(at).copied();
            at += 1;
            match (quote, byte) {
                (None, None) => break,
                // A vertical tab or a form feed ends no word, but stands between words.
                (None, Some(b' ' | b'\t' | b'\r' | b'\n')) => break,
                (None, Some(b @ (b'"' | b'\''))) => quote = Some(b),
                (None, Some(b)) => text.push(b),
                (Some(_), None) => return false,
                (Some(open), Some(b)) if b == open => {
                    if line.get(at).copied().is_some_and(|next| !is_blank(next)) {
                        return false;
                    }
                    break;
                }
                (Some(b'"'), Some(b'\\')) => at = unescape(line, at, text),
                (Some(b'\''), Some(b'\\')) if line.get(at) == Some(&b'\'') => {
                    text.push(b'\'');
                    at += 1;
                }
                (Some(_), Some(b)) => text.push(b),
            }
        }
        words.push((offset(start), offset(text.len() - start)));
    }
}

/// What C takes for a blank.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// The byte that the escape at `at` (behind the backslash) stands for; returns where to read on.
fn unescape(line: &[u8], at: usize, text: &mut Vec<u8>) -> usize {
    let hex = |index: usize| line.get(index).and_then(|&b| char::from(b).to_digit(16));
    match line.get(at) {
        Some(b'x') => {
            if let (Some(high), Some(low)) = (hex(at + 1), hex(at + 2)) {
                text.push(u8::try_from(high * 16 + low).unwrap_or_default());
                return at + 3;
            }
            text.push(b'x');
        }
        Some(b'n') => text.push(b'\n'),
        Some(b'r') => text.push(b'\r'),
        Some(b't') => text.push(b'\t'),
        Some(b'b') => text.push(8),
        Some(b'a') => text.push(7),
        Some(&other) => text.push(other),
        None => return at,
    }
    at + 1
}

#[cfg(test)]
mod tests;
