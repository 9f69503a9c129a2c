//! The encoder: every reply type of RESP2 and RESP3, each in the form its reader speaks.

use crate::{Output, format_double};

/// The protocol that a connection speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Protocol {
    /// RESP2, what a connection starts with.
    #[default]
    Resp2,
    /// RESP3, after HELLO 3.
    Resp3,
}

/// Where the header of an array goes whose length is not known yet.
#[must_use]
#[derive(Debug)]
pub struct ArrayMark(usize);

/// Writes replies to the end of an [`Output`].
pub struct Writer<'a> {
    out: &'a mut Output,
    protocol: Protocol,
}

impl<'a> Writer<'a> {
    /// A writer of `protocol` at the end of `out`.
    #[inline]
    pub fn new(out: &'a mut Output, protocol: Protocol) -> Self {
        Self { out, protocol }
    }

    /// The protocol written.
    #[inline]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// Whether the reader speaks RESP3.
    #[inline]
    pub fn is_resp3(&self) -> bool {
        self.protocol == Protocol::Resp3
    }

    /// Changes the protocol of what follows.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// The chain that is written to.
    pub fn output(&mut self) -> &mut Output {
        self.out
    }

    /// Bytes already in RESP.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.tail.extend_from_slice(bytes);
    }

    /// `+OK`.
    #[inline]
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// A status, such as `+PONG`. The text has no line break.
    pub fn simple(&mut self, text: &str) {
        self.line(b'+', text.as_bytes());
    }

    /// An error, its code first: `ERR …`. Line breaks become spaces. A character up to U+00FF is
    /// one byte, so that a client's word comes back as it was; any other is UTF-8.
    pub fn error(&mut self, text: &str) {
        self.raw(b"-");
        let mut utf8 = [0; 4];
        for letter in text.chars() {
            let tail = &mut self.out.tail;
            match u8::try_from(letter) {
                Ok(b'\r' | b'\n') => tail.push(b' '),
                Ok(byte) => tail.push(byte),
                Err(_) => tail.extend_from_slice(letter.encode_utf8(&mut utf8).as_bytes()),
            }
        }
        self.raw(b"\r\n");
    }

    fn line(&mut self, kind: u8, text: &[u8]) {
        let tail = &mut self.out.tail;
        tail.reserve(text.len() + 3);
        tail.push(kind);
        tail.extend_from_slice(text);
        tail.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn header(&mut self, kind: u8, count: usize) {
        let tail = &mut self.out.tail;
        if count < 10 {
            #[allow(clippy::cast_possible_truncation)] // Below 10.
            tail.extend_from_slice(&[kind, b'0' + count as u8, b'\r', b'\n']);
        } else {
            let mut digits = itoa::Buffer::new();
            self.line(kind, digits.format(count).as_bytes());
        }
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        if let 0..=9 = value {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A digit.
            return self.raw(&[b':', b'0' + value as u8, b'\r', b'\n']);
        }
        self.line(b':', itoa::Buffer::new().format(value).as_bytes());
    }

    /// A count, as an integer.
    #[inline]
    pub fn count(&mut self, value: usize) {
        self.int(i64::try_from(value).unwrap_or(i64::MAX));
    }

    /// A bulk string.
    #[inline]
    pub fn bulk(&mut self, bytes: &[u8]) {
        let tail = &mut self.out.tail;
        tail.reserve(bytes.len() + 26);
        // Most strings are short: their headers have a fixed length and need no formatting.
        #[allow(clippy::cast_possible_truncation)] // Digits.
        match bytes.len() {
            len @ 0..=9 => tail.extend_from_slice(&[b'$', b'0' + len as u8, b'\r', b'\n']),
            len @ 10..=99 => {
                let (tens, ones) = (b'0' + (len / 10) as u8, b'0' + (len % 10) as u8);
                tail.extend_from_slice(&[b'$', tens, ones, b'\r', b'\n']);
            }
            len => {
                tail.push(b'$');
                tail.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
                tail.extend_from_slice(b"\r\n");
            }
        }
        tail.extend_from_slice(bytes);
        tail.extend_from_slice(b"\r\n");
    }

    /// A bulk string of text.
    #[inline]
    pub fn text(&mut self, text: &str) {
        self.bulk(text.as_bytes());
    }

    /// An integer as a bulk string.
    #[inline]
    pub fn bulk_int(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Nothing where a value would stand: `$-1`, or `_` in RESP3.
    #[inline]
    pub fn null(&mut self) {
        self.raw(if self.is_resp3() {
            b"_\r\n"
        } else {
            b"$-1\r\n"
        });
    }

    /// Nothing where an array would stand: `*-1`, or `_` in RESP3.
    pub fn null_array(&mut self) {
        self.raw(if self.is_resp3() {
            b"_\r\n"
        } else {
            b"*-1\r\n"
        });
    }

    /// The header of an array of `count` elements.
    #[inline]
    pub fn array(&mut self, count: usize) {
        self.header(b'*', count);
    }

    /// The header of a map of `pairs` pairs: an array of twice as many in RESP2.
    pub fn map(&mut self, pairs: usize) {
        if self.is_resp3() {
            self.header(b'%', pairs)
        } else {
            self.header(b'*', pairs * 2)
        }
    }

    /// The header of a set: an array in RESP2.
    pub fn set(&mut self, count: usize) {
        self.header(if self.is_resp3() { b'~' } else { b'*' }, count);
    }

    /// The header of a push message: an array in RESP2.
    pub fn push(&mut self, count: usize) {
        self.header(if self.is_resp3() { b'>' } else { b'*' }, count);
    }

    /// The header of an attribute of `pairs` pairs. RESP3 alone has them.
    pub fn attribute(&mut self, pairs: usize) {
        self.header(b'|', pairs);
    }

    /// Begins an array whose length comes with [`Writer::end_array`].
    pub fn begin_array(&mut self) -> ArrayMark {
        ArrayMark(self.out.tail.len())
    }

    /// Ends the array begun at `mark`: it has `count` elements.
    pub fn end_array(&mut self, mark: ArrayMark, count: usize) {
        self.end(mark, b'*', count);
    }

    /// Ends a set begun with [`Writer::begin_array`].
    pub fn end_set(&mut self, mark: ArrayMark, count: usize) {
        self.end(mark, if self.is_resp3() { b'~' } else { b'*' }, count);
    }

    /// Ends a map of `pairs` pairs begun with [`Writer::begin_array`].
    pub fn end_map(&mut self, mark: ArrayMark, pairs: usize) {
        let (kind, count) = if self.is_resp3() {
            (b'%', pairs)
        } else {
            (b'*', pairs * 2)
        };
        self.end(mark, kind, count);
    }

    fn end(&mut self, mark: ArrayMark, kind: u8, count: usize) {
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(count).as_bytes();
        let header = std::iter::once(kind)
            .chain(digits.iter().copied())
            .chain(*b"\r\n");
        self.out.tail.splice(mark.0..mark.0, header);
    }

    /// A double: `,` in RESP3, a bulk string in RESP2.
    pub fn double(&mut self, value: f64) {
        // Whole numbers, which most scores are, need no memory of their own.
        if value.trunc() == value
            && value.abs() < 1e15
            && !(value == 0.0 && value.is_sign_negative())
        {
            let mut digits = itoa::Buffer::new();
            #[allow(clippy::cast_possible_truncation)] // Whole, and far below 2^63.
            let text = digits.format(value as i64).as_bytes();
            return if self.is_resp3() {
                self.line(b',', text)
            } else {
                self.bulk(text)
            };
        }
        let mut text = Vec::with_capacity(32);
        format_double(value, &mut text);
        if self.is_resp3() {
            self.line(b',', &text)
        } else {
            self.bulk(&text)
        }
    }

    /// A truth value: `#t` or `#f` in RESP3, 1 or 0 in RESP2.
    pub fn boolean(&mut self, value: bool) {
        if self.is_resp3() {
            self.raw(if value { b"#t\r\n" } else { b"#f\r\n" });
        } else {
            self.int(i64::from(value));
        }
    }

    /// A number of any size, as its digits.
    pub fn big_number(&mut self, digits: &str) {
        if self.is_resp3() {
            self.line(b'(', digits.as_bytes())
        } else {
            self.text(digits)
        }
    }

    /// Text with its three-letter format (`txt`, `mkd`): plain bulk in RESP2.
    pub fn verbatim(&mut self, format: &str, text: &[u8]) {
        if !self.is_resp3() {
            return self.bulk(text);
        }
        self.header(b'=', text.len() + 4);
        self.raw(format.as_bytes());
        self.raw(b":");
        self.raw(text);
        self.raw(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(protocol: Protocol, write: impl Fn(&mut Writer<'_>)) -> String {
        let mut out = Output::default();
        write(&mut Writer::new(&mut out, protocol));
        String::from_utf8(out.since(0).to_vec()).unwrap()
    }

    #[test]
    fn every_type_in_both_protocols() {
        type Case = (fn(&mut Writer<'_>), &'static str, &'static str);
        let cases: &[Case] = &[
            (|w| w.ok(), "+OK\r\n", "+OK\r\n"),
            (|w| w.error("ERR a\r\nb"), "-ERR a  b\r\n", "-ERR a  b\r\n"),
            (|w| w.int(-12), ":-12\r\n", ":-12\r\n"),
            (|w| w.bulk(b"abc"), "$3\r\nabc\r\n", "$3\r\nabc\r\n"),
            (|w| w.null(), "$-1\r\n", "_\r\n"),
            (|w| w.null_array(), "*-1\r\n", "_\r\n"),
            (|w| w.map(2), "*4\r\n", "%2\r\n"),
            (|w| w.set(12), "*12\r\n", "~12\r\n"),
            (|w| w.push(3), "*3\r\n", ">3\r\n"),
            (|w| w.double(1.5), "$3\r\n1.5\r\n", ",1.5\r\n"),
            (|w| w.boolean(true), ":1\r\n", "#t\r\n"),
            (|w| w.big_number("123"), "$3\r\n123\r\n", "(123\r\n"),
            (
                |w| w.verbatim("txt", b"ab"),
                "$2\r\nab\r\n",
                "=6\r\ntxt:ab\r\n",
            ),
        ];
        for (write, resp2, resp3) in cases {
            assert_eq!(written(Protocol::Resp2, write), *resp2);
            assert_eq!(written(Protocol::Resp3, write), *resp3);
        }
    }

    #[test]
    fn an_array_gets_its_length_at_its_end() {
        let text = written(Protocol::Resp2, |w| {
            w.ok();
            let outer = w.begin_array();
            w.int(1);
            let inner = w.begin_array();
            w.int(2);
            w.end_array(inner, 1);
            w.end_array(outer, 2);
        });
        assert_eq!(text, "+OK\r\n*2\r\n:1\r\n*1\r\n:2\r\n");
    }
}
