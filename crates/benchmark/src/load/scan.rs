//! Counts replies in a stream of bytes without building them.
//!
//! A load generator wants to know of a reply that it ended, what it began with, whether it was a
//! null, and how long it was. [`Scanner`] is told bytes in pieces as they come and calls back at
//! the end of each whole reply; between pieces it keeps a few integers and no bytes, so connections
//! need no buffers of their own.
//!
//! # Invariants
//! - Memory is constant but for the text of an error, of which [`ERROR_BYTES_MAX`] are kept.
//! - Nesting is a counter of outstanding elements, not a stack: no depth can hurt.

/// Bytes of an error reply that are kept to be shown.
const ERROR_BYTES_MAX: usize = 256;
/// A line that holds a length has no more digits than this.
const DIGITS_MAX: u32 = 19;

/// One whole reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The first byte: `+`, `-`, `:`, `$`, `*`, ...
    pub kind: u8,
    /// One of the nulls of either protocol.
    pub is_null: bool,
    /// Bytes of it on the wire.
    pub bytes: u64,
}

/// What was read is not RESP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotResp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next byte says what kind of value begins.
    Kind,
    /// In a line of which only the end matters.
    Line,
    /// In a line that is a number.
    Number,
    /// In the bytes of a string, its line end included.
    Body,
}

/// The place in the stream.
#[derive(Debug)]
pub struct Scanner {
    state: State,
    /// The kind of the value that the scanner is in.
    kind: u8,
    number: u64,
    is_negative: bool,
    digits: u32,
    /// Bytes of a body that are still to come.
    left: u64,
    /// Values that are still to end before the outermost one does.
    outstanding: u64,
    /// The value that the scanner is in is the outermost.
    is_outermost: bool,
    whole: Seen,
    /// The text of the first error met, without its `-`.
    error: Vec<u8>,
    keeps_error: bool,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            state: State::Kind,
            kind: 0,
            number: 0,
            is_negative: false,
            digits: 0,
            left: 0,
            outstanding: 0,
            is_outermost: true,
            whole: Seen {
                kind: 0,
                is_null: false,
                bytes: 0,
            },
            error: Vec::new(),
            keeps_error: false,
        }
    }
}

impl Scanner {
    /// Takes what was read and calls `each` at the end of every reply in it. Pushes are replies of
    /// kind `>`.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Seen)) -> Result<(), NotResp> {
        let mut at = 0;
        while at < bytes.len() {
            match self.state {
                State::Kind => {
                    // What most replies of a benchmark are, in one comparison.
                    if self.outstanding == 0 && bytes[at..].starts_with(b"+OK\r\n") {
                        at += 5;
                        each(Seen {
                            kind: b'+',
                            is_null: false,
                            bytes: 5,
                        });
                        continue;
                    }
                    self.begin(bytes[at])?;
                    at += 1;
                }
                State::Line => {
                    let rest = &bytes[at..];
                    let end = rest.iter().position(|&byte| byte == b'\n');
                    let taken = end.map_or(rest.len(), |end| end + 1);
                    if self.keeps_error {
                        let room = ERROR_BYTES_MAX.saturating_sub(self.error.len());
                        self.error.extend_from_slice(&rest[..taken.min(room)]);
                    }
                    self.whole.bytes += taken as u64;
                    at += taken;
                    if end.is_some() {
                        self.end_value(&mut each);
                    }
                }
                State::Number => {
                    let byte = bytes[at];
                    at += 1;
                    self.whole.bytes += 1;
                    match byte {
                        b'0'..=b'9' if self.digits < DIGITS_MAX => {
                            self.digits += 1;
                            self.number = self.number * 10 + u64::from(byte - b'0');
                        }
                        b'-' if self.digits == 0 => self.is_negative = true,
                        b'\r' => {}
                        b'\n' if self.digits > 0 => self.end_number(&mut each)?,
                        _ => return Err(NotResp),
                    }
                }
                State::Body => {
                    let taken = self.left.min((bytes.len() - at) as u64);
                    self.whole.bytes += taken;
                    self.left -= taken;
                    at += usize::try_from(taken).expect("no more than the slice has");
                    if self.left == 0 {
                        self.end_value(&mut each);
                    }
                }
            }
        }
        Ok(())
    }

    /// The text of the first error seen; empty when there was none.
    pub fn error(&self) -> String {
        String::from_utf8_lossy(&self.error).trim_end().to_owned()
    }

    fn begin(&mut self, kind: u8) -> Result<(), NotResp> {
        self.is_outermost = self.outstanding == 0;
        if self.is_outermost {
            self.outstanding = 1;
            self.whole = Seen {
                kind,
                is_null: kind == b'_',
                bytes: 0,
            };
        }
        self.whole.bytes += 1;
        self.kind = kind;
        self.number = 0;
        self.digits = 0;
        self.is_negative = false;
        self.state = match kind {
            b'+' | b'-' | b':' | b'_' | b'#' | b',' | b'(' => State::Line,
            b'$' | b'*' | b'%' | b'~' | b'>' | b'=' | b'!' | b'|' => State::Number,
            _ => return Err(NotResp),
        };
        self.keeps_error = kind == b'-' && self.error.is_empty();
        Ok(())
    }

    fn end_number(&mut self, each: &mut impl FnMut(Seen)) -> Result<(), NotResp> {
        if self.is_negative {
            // `$-1` and `*-1`.
            self.whole.is_null |= self.is_outermost;
            self.end_value(each);
            return Ok(());
        }
        let more = match self.kind {
            b'$' | b'=' | b'!' => {
                self.left = self.number.checked_add(2).ok_or(NotResp)?;
                self.state = State::Body;
                return Ok(());
            }
            b'%' => self.number.checked_mul(2).ok_or(NotResp)?,
            // Attributes come before the value that they describe.
            b'|' => (self.number.checked_mul(2))
                .and_then(|n| n.checked_add(1))
                .ok_or(NotResp)?,
            _ => self.number,
        };
        self.outstanding = self.outstanding.checked_add(more).ok_or(NotResp)?;
        self.end_value(each);
        Ok(())
    }

    fn end_value(&mut self, each: &mut impl FnMut(Seen)) {
        self.state = State::Kind;
        self.keeps_error = false;
        self.outstanding -= 1;
        if self.outstanding == 0 {
            each(self.whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(pieces: &[&[u8]]) -> Result<Vec<(char, bool, u64)>, NotResp> {
        let mut scanner = Scanner::default();
        let mut seen = Vec::new();
        for piece in pieces {
            scanner.feed(piece, |reply| {
                seen.push((char::from(reply.kind), reply.is_null, reply.bytes));
            })?;
        }
        Ok(seen)
    }

    const MIXED: &[u8] = b"+OK\r\n$3\r\nab\n\r\n$-1\r\n*-1\r\n*2\r\n*0\r\n$-1\r\n:-5\r\n\
        -ERR x\r\n_\r\n%1\r\n+a\r\n$1\r\nb\r\n";

    #[test]
    fn replies_are_counted_whatever_the_pieces() {
        let expected = vec![
            ('+', false, 5),
            ('$', false, 9),
            ('$', true, 5),
            ('*', true, 5),
            ('*', false, 13),
            (':', false, 5),
            ('-', false, 8),
            ('_', true, 3),
            ('%', false, 15),
        ];
        assert_eq!(scan(&[MIXED]), Ok(expected.clone()));
        let bytes: Vec<&[u8]> = MIXED.chunks(1).collect();
        assert_eq!(scan(&bytes), Ok(expected.clone()));
        for cut in 0..MIXED.len() {
            let (left, right) = MIXED.split_at(cut);
            assert_eq!(scan(&[left, right]), Ok(expected.clone()));
        }
    }

    #[test]
    fn an_error_is_kept_and_nonsense_refused() {
        let mut scanner = Scanner::default();
        scanner
            .feed(b"-ERR no\r\n-ERR other\r\n", |_| ())
            .expect("RESP");
        assert_eq!(scanner.error(), "ERR no");
        assert_eq!(scan(&[b"HTTP/1.1 400\r\n"]), Err(NotResp));
        assert_eq!(scan(&[b"$x\r\n"]), Err(NotResp));
        assert_eq!(scan(&[b"*99999999999999999999\r\n"]), Err(NotResp));
    }
}
