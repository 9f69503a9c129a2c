//! Bytes to replies, a piece at a time.
//!
//! The decoder keeps the containers that are still open on a stack of its own, so it never recurses
//! and, however a reply is cut, reads again at most the one line that was not whole.
//!
//! # Invariants
//! - At most `DEPTH_MAX` containers are open; a reply nested deeper is an error. Dropping and
//!   printing replies recurse, so this bounds them too.
//! - Space is reserved for at most `RESERVE_MAX` announced elements.
//! - After an error the decoder stays in error: the stream has no known position any more.

use crate::Reply;

/// How many containers may be open at once.
const DEPTH_MAX: usize = 64;
/// How many announced elements are believed before they arrive.
const RESERVE_MAX: usize = 256;
/// The longest line without a length of its own.
const LINE_MAX: usize = 1 << 20;
/// The longest string that is accepted.
const BULK_MAX: usize = 1 << 30;
/// Consumed bytes that are kept before the buffer is moved to the front.
const COMPACT_AT: usize = 1 << 16;

/// What a server sent is not RESP; the text says what was wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError(pub String);

impl std::fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not RESP: {}", self.0)
    }
}

impl std::error::Error for ProtocolError {}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Container {
    Array,
    Map,
    Set,
    Push,
    /// Out-of-band facts before a reply: read and dropped.
    Attribute,
}

#[derive(Debug)]
struct Open {
    container: Container,
    /// Elements still to come; a pair counts as two.
    left: usize,
    elements: Vec<Reply>,
}

/// Replies from bytes.
#[derive(Debug, Default)]
pub struct Decoder {
    buf: Vec<u8>,
    /// Where the unread bytes begin.
    at: usize,
    open: Vec<Open>,
    broken: Option<ProtocolError>,
}

impl Decoder {
    /// A decoder at the start of a stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes that have arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.at >= COMPACT_AT || self.at == self.buf.len() {
            self.buf.drain(..self.at);
            self.at = 0;
        }
        self.buf.extend_from_slice(bytes);
    }

    /// The next whole reply, or `None` until more bytes come.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, ProtocolError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let result = self.advance();
        if let Err(error) = &result {
            self.broken = Some(error.clone());
        }
        result
    }

    /// Whether nothing is left over: no unread byte and no open container.
    pub fn is_idle(&self) -> bool {
        self.at == self.buf.len() && self.open.is_empty()
    }

    /// Takes bytes that no reply was made of, from the front. To be asked between replies.
    pub fn take_bytes(&mut self, buf: &mut [u8]) -> usize {
        let unread = &self.buf[self.at..];
        let count = unread.len().min(buf.len());
        buf[..count].copy_from_slice(&unread[..count]);
        self.at += count;
        count
    }

    /// Takes all of them.
    pub fn take_all(&mut self) -> Vec<u8> {
        let unread = self.buf.split_off(self.at);
        self.buf.clear();
        self.at = 0;
        unread
    }

    fn advance(&mut self) -> Result<Option<Reply>, ProtocolError> {
        loop {
            let Some(mut done) = self.element()? else {
                return Ok(None);
            };
            // A value completes its container, which completes its own, and so on.
            loop {
                if let Some(reply) = done.take() {
                    match self.open.last_mut() {
                        None => return Ok(Some(reply)),
                        Some(open) => {
                            open.elements.push(reply);
                            open.left -= 1;
                        }
                    }
                }
                match self.open.pop_if(|open| open.left == 0) {
                    None => break,
                    Some(open) => done = close(open),
                }
            }
        }
    }

    /// Reads one element: a value, or the head of a container, which is then open (`Some(None)`).
    fn element(&mut self) -> Result<Option<Option<Reply>>, ProtocolError> {
        let unread = &self.buf[self.at..];
        let Some(end) = unread.windows(2).position(|pair| pair == b"\r\n") else {
            if unread.len() > LINE_MAX {
                return Err(ProtocolError("a line without end".to_owned()));
            }
            return Ok(None);
        };
        let (kind, text) = match unread[..end].split_first() {
            Some((kind, text)) => (*kind, text),
            None => return Err(ProtocolError("an empty line".to_owned())),
        };
        let after = end + 2;
        let reply = match kind {
            b'+' => Reply::Status(text.to_vec()),
            b'-' => Reply::Error(text.to_vec()),
            b':' => Reply::Integer(number(text)?),
            b',' => Reply::Double(text.to_vec()),
            b'(' => Reply::BigNumber(text.to_vec()),
            b'_' => Reply::Null,
            b'#' if text == b"t" => Reply::Boolean(true),
            b'#' if text == b"f" => Reply::Boolean(false),
            b'$' | b'!' | b'=' => {
                let Some((reply, length)) = string(kind, text, &unread[after..])? else {
                    return Ok(None);
                };
                self.at += after + length;
                return Ok(Some(Some(reply)));
            }
            b'*' if text == b"-1" => Reply::NullArray,
            b'*' | b'%' | b'~' | b'>' | b'|' => {
                let count = length(text, usize::MAX / 4)?;
                self.at += after;
                return self.begin(kind, count).map(|()| Some(None));
            }
            _ => {
                let line = String::from_utf8_lossy(&unread[..end.min(40)]).into_owned();
                return Err(ProtocolError(format!("a line that begins {line:?}")));
            }
        };
        self.at += after;
        Ok(Some(Some(reply)))
    }

    fn begin(&mut self, kind: u8, count: usize) -> Result<(), ProtocolError> {
        if self.open.len() == DEPTH_MAX {
            return Err(ProtocolError(format!("nested deeper than {DEPTH_MAX}")));
        }
        let (container, left) = match kind {
            b'*' => (Container::Array, count),
            b'~' => (Container::Set, count),
            b'>' => (Container::Push, count),
            b'%' => (Container::Map, count * 2),
            _ => (Container::Attribute, count * 2),
        };
        let elements = Vec::with_capacity(left.min(RESERVE_MAX));
        self.open.push(Open {
            container,
            left,
            elements,
        });
        Ok(())
    }
}

/// The value of a container that has all its elements; an attribute has none.
fn close(open: Open) -> Option<Reply> {
    let elements = open.elements;
    Some(match open.container {
        Container::Array => Reply::Array(elements),
        Container::Set => Reply::Set(elements),
        Container::Push => Reply::Push(elements),
        Container::Map => {
            let mut pairs = Vec::with_capacity(elements.len() / 2);
            let mut elements = elements.into_iter();
            while let (Some(key), Some(value)) = (elements.next(), elements.next()) {
                pairs.push((key, value));
            }
            Reply::Map(pairs)
        }
        Container::Attribute => return None,
    })
}

/// A string with a length before it: the reply and the bytes that it took.
fn string(kind: u8, head: &[u8], rest: &[u8]) -> Result<Option<(Reply, usize)>, ProtocolError> {
    if kind == b'$' && head == b"-1" {
        return Ok(Some((Reply::NullBulk, 0)));
    }
    let length = length(head, BULK_MAX)?;
    let Some(framed) = rest.get(..length + 2) else {
        return Ok(None);
    };
    let (body, end) = framed.split_at(length);
    if end != b"\r\n" {
        return Err(ProtocolError(
            "a string that is longer than its length".to_owned(),
        ));
    }
    let reply = match (kind, body) {
        (b'$', _) => Reply::Bulk(body.to_vec()),
        (b'!', _) => Reply::Error(body.to_vec()),
        (_, [a, b, c, b':', text @ ..]) => Reply::Verbatim([*a, *b, *c], text.to_vec()),
        _ => {
            return Err(ProtocolError(
                "a verbatim string without its format".to_owned(),
            ));
        }
    };
    Ok(Some((reply, length + 2)))
}

fn number(text: &[u8]) -> Result<i64, ProtocolError> {
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|text| text.parse().ok());
    parsed.ok_or_else(|| {
        ProtocolError(format!(
            "a number that reads {:?}",
            String::from_utf8_lossy(text)
        ))
    })
}

fn length(text: &[u8], max: usize) -> Result<usize, ProtocolError> {
    let length = usize::try_from(number(text)?)
        .ok()
        .filter(|length| *length <= max);
    length.ok_or_else(|| ProtocolError("a length that cannot be".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &[u8] = b"*14\r\n+OK\r\n-ERR no\r\n:-7\r\n$2\r\na\n\r\n$-1\r\n*-1\r\n_\r\n\
        #t\r\n,1.5\r\n(123456789012345678901\r\n=7\r\ntxt:abc\r\n!5\r\nERR x\r\n\
        %2\r\n+a\r\n:1\r\n+b\r\n~1\r\n*0\r\n>2\r\n+p\r\n*1\r\n:1\r\n";

    fn everything() -> Reply {
        let status = |text: &str| Reply::Status(text.into());
        Reply::Array(vec![
            status("OK"),
            Reply::Error("ERR no".into()),
            Reply::Integer(-7),
            Reply::Bulk("a\n".into()),
            Reply::NullBulk,
            Reply::NullArray,
            Reply::Null,
            Reply::Boolean(true),
            Reply::Double("1.5".into()),
            Reply::BigNumber("123456789012345678901".into()),
            Reply::Verbatim(*b"txt", "abc".into()),
            Reply::Error("ERR x".into()),
            Reply::Map(vec![
                (status("a"), Reply::Integer(1)),
                (status("b"), Reply::Set(vec![Reply::Array(vec![])])),
            ]),
            Reply::Push(vec![status("p"), Reply::Array(vec![Reply::Integer(1)])]),
        ])
    }

    #[test]
    fn every_kind_of_reply_is_read_whole() {
        let mut decoder = Decoder::new();
        decoder.feed(EVERYTHING);
        assert_eq!(decoder.next_reply(), Ok(Some(everything())));
        assert!(decoder.is_idle());
    }

    #[test]
    fn a_reply_may_be_cut_at_every_byte() {
        let mut decoder = Decoder::new();
        for (at, byte) in EVERYTHING.iter().enumerate() {
            decoder.feed(&[*byte]);
            let reply = decoder.next_reply().expect("it is RESP");
            assert_eq!(reply.is_some(), at + 1 == EVERYTHING.len());
        }
    }

    #[test]
    fn attributes_are_read_past() {
        let mut decoder = Decoder::new();
        decoder.feed(b"|1\r\n+ttl\r\n:5\r\n*2\r\n|1\r\n+a\r\n*0\r\n:1\r\n:2\r\n|0\r\n+OK\r\n");
        let expected = Reply::Array(vec![Reply::Integer(1), Reply::Integer(2)]);
        assert_eq!(decoder.next_reply(), Ok(Some(expected)));
        assert_eq!(decoder.next_reply(), Ok(Some(Reply::Status("OK".into()))));
    }

    #[test]
    fn nonsense_is_an_error_and_stays_one() {
        let bad: &[&[u8]] = &[
            b"hello\r\n",
            b"\r\n",
            b":x\r\n",
            b"$-2\r\n",
            b"$1\r\nabc\r\n",
            b"*9999999999999999999\r\n",
            b"=2\r\nab\r\n",
            b"#x\r\n",
            b"$99999999999\r\n",
        ];
        for bytes in bad {
            let mut decoder = Decoder::new();
            decoder.feed(bytes);
            assert!(
                decoder.next_reply().is_err(),
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
            decoder.feed(b"+OK\r\n");
            assert!(decoder.next_reply().is_err());
        }
    }

    #[test]
    fn depth_is_bounded_and_announced_counts_reserve_little() {
        let mut decoder = Decoder::new();
        decoder.feed(&b"*1\r\n".repeat(DEPTH_MAX + 1));
        assert!(decoder.next_reply().is_err());
        let mut decoder = Decoder::new();
        decoder.feed(b"*1000000000000\r\n:1\r\n");
        assert_eq!(decoder.next_reply(), Ok(None));
    }
}
