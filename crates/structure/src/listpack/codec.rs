//! One entry of a listpack: how it is written and read.
//!
//! ```text
//! +------------------+---------+-----------------------------------------------+
//! | head: 1..9 bytes | payload | back: size of head + payload, in 1..5 bytes   |
//! +------------------+---------+-----------------------------------------------+
//!
//! 0nnnnnnn                  integer 0..=127
//! 10llllll                  string of up to 63 bytes
//! 110nnnnn nnnnnnnn         integer of 13 bits, high bits first
//! 1110llll llllllll         string of up to 4095 bytes, high bits first
//! 11110000 + 4 bytes        string, length little endian
//! 11110001..=11110100       integer of 16, 24, 32, 64 bits, little endian
//! 11111111                  end of the listpack
//! ```
//!
//! `back` is read from its last byte to its first: groups of seven bits, the low group last, and
//! the high bit of a byte says that another stands to its left. It lets us walk backwards.
//!
//! # Invariants
//! - Writing is canonical: a string that spells an `i64` is stored as that integer, and each in
//!   its shortest form. So two entries are equal exactly when their bytes are.
//! - `check` is the only reader that trusts nothing. The others run over bytes that `check` or
//!   `Encoded` made, and stop with a panic, never a wild read, if that is broken.

use crate::decimal;
use std::hash::{Hash, Hasher};

/// The byte that ends a listpack.
pub(crate) const END: u8 = 0xFF;

/// An element as it is read: a string that spells an integer comes out as that integer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entry<'a> {
    /// A canonical decimal integer.
    Int(i64),
    /// Any other string.
    Bytes(&'a [u8]),
}

impl<'a> Entry<'a> {
    /// The entry that holds `value`. Two of them are equal exactly when the strings are.
    #[inline]
    pub fn of(value: &'a [u8]) -> Entry<'a> {
        match decimal::parse(value) {
            Some(n) => Entry::Int(n),
            None => Entry::Bytes(value),
        }
    }

    /// The element's bytes; an integer is spelt out into `scratch`.
    #[inline]
    pub fn bytes<'s>(self, scratch: &'s mut [u8; decimal::TEXT_MAX]) -> &'s [u8]
    where
        'a: 's,
    {
        match self {
            Entry::Int(n) => decimal::format(n, scratch),
            Entry::Bytes(bytes) => bytes,
        }
    }

    /// Whether the element is the string `value`. To ask often, compare with `Entry::of(value)`.
    #[inline]
    pub fn is(self, value: &[u8]) -> bool {
        match self {
            Entry::Int(n) => decimal::parse(value) == Some(n),
            Entry::Bytes(bytes) => bytes == value,
        }
    }

    /// The element's integer, if it is one.
    #[inline]
    pub fn int(self) -> Option<i64> {
        match self {
            Entry::Int(n) => Some(n),
            Entry::Bytes(_) => None,
        }
    }

    /// The length of the element's bytes.
    pub fn byte_len(self) -> usize {
        match self {
            Entry::Int(n) => decimal::format(n, &mut [0; decimal::TEXT_MAX]).len(),
            Entry::Bytes(bytes) => bytes.len(),
        }
    }

    /// A copy of the element's bytes.
    pub fn to_vec(self) -> Vec<u8> {
        self.bytes(&mut [0; decimal::TEXT_MAX]).to_vec()
    }
}

impl Hash for Entry<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes(&mut [0; decimal::TEXT_MAX]).hash(state);
    }
}

/// An element ready to be written: its head, payload and back length are known.
pub(crate) struct Encoded<'a> {
    /// The head; of an integer, the whole entry. Meaningless beyond `head_len`.
    head: [u8; 10],
    head_len: u8,
    back_len: u8,
    payload: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// Encodes the string `value`.
    ///
    /// # Panics
    /// If `value` is 4 GiB or longer; callers bound their listpacks far below that.
    #[inline]
    pub fn new(value: &'a [u8]) -> Encoded<'a> {
        match decimal::parse(value) {
            Some(n) => Encoded::int(n),
            None => Encoded::string(value),
        }
    }

    /// Encodes an integer.
    #[inline]
    pub fn int(n: i64) -> Encoded<'a> {
        let mut head = [0; 10];
        let forward = if (0..=127).contains(&n) {
            head[0] = n as u8;
            1
        } else if (-4096..=4095).contains(&n) {
            head[0] = 0b1100_0000 | ((n >> 8) as u8 & 0b1_1111);
            head[1] = n as u8;
            2
        } else {
            let (kind, width) = match n {
                -0x8000..=0x7FFF => (0b1111_0001, 2),
                -0x80_0000..=0x7F_FFFF => (0b1111_0010, 3),
                -0x8000_0000..=0x7FFF_FFFF => (0b1111_0011, 4),
                _ => (0b1111_0100, 8),
            };
            head[0] = kind;
            head[1..9].copy_from_slice(&n.to_le_bytes());
            1 + width
        };
        head[forward] = forward as u8;
        Encoded {
            head,
            head_len: forward as u8 + 1,
            back_len: 0,
            payload: &[],
        }
    }

    #[inline]
    fn string(value: &'a [u8]) -> Encoded<'a> {
        let mut head = [0; 10];
        let len = value.len();
        let head_len = if len < 64 {
            head[0] = 0b1000_0000 | len as u8;
            1
        } else if len < 4096 {
            head[0] = 0b1110_0000 | (len >> 8) as u8;
            head[1] = len as u8;
            2
        } else {
            let len = u32::try_from(len).expect("an element of a listpack is under 4 GiB");
            head[0] = 0b1111_0000;
            head[1..5].copy_from_slice(&len.to_le_bytes());
            5
        };
        let back_len = back_size(usize::from(head_len) + len) as u8;
        Encoded {
            head,
            head_len,
            back_len,
            payload: value,
        }
    }

    /// The size of head and payload, which a string's back length repeats.
    #[inline]
    fn forward_len(&self) -> usize {
        usize::from(self.head_len) + self.payload.len()
    }

    /// The whole size of the entry.
    #[inline]
    pub fn len(&self) -> usize {
        self.forward_len() + usize::from(self.back_len)
    }

    /// Fills `slot`, which is exactly `len()` bytes.
    #[inline]
    pub fn write(&self, slot: &mut [u8]) {
        assert!(
            slot.len() == self.len(),
            "slot of {} for {}",
            slot.len(),
            self.len()
        );
        if let [head, payload @ .., back] = slot
            && self.is_short()
        {
            *head = self.head[0];
            payload.copy_from_slice(self.payload);
            *back = 1 + self.payload.len() as u8;
            return;
        }
        let (head, rest) = slot.split_at_mut(usize::from(self.head_len));
        head.copy_from_slice(&self.head[..usize::from(self.head_len)]);
        if self.back_len == 0 {
            return;
        }
        let (payload, back) = rest.split_at_mut(self.payload.len());
        payload.copy_from_slice(self.payload);
        write_back(self.forward_len(), back);
    }

    /// Appends the entry.
    #[inline]
    pub fn append(&self, out: &mut Vec<u8>) {
        if self.is_short() {
            out.push(self.head[0]);
            out.extend_from_slice(self.payload);
            out.push(1 + self.payload.len() as u8);
            return;
        }
        out.extend_from_slice(&self.head[..usize::from(self.head_len)]);
        if self.back_len == 0 {
            return;
        }
        out.extend_from_slice(self.payload);
        let mut back = [0; 5];
        let back = &mut back[..usize::from(self.back_len)];
        write_back(self.forward_len(), back);
        out.extend_from_slice(back);
    }

    /// Whether this is a string whose head and back length take one byte each, as most do.
    #[inline]
    fn is_short(&self) -> bool {
        self.head_len == 1 && self.back_len == 1
    }

    /// Whether the entry at `at` of `bytes` is this one.
    #[inline]
    pub fn is_at(&self, bytes: &[u8], at: usize) -> bool {
        if bytes[at] != self.head[0] {
            return false;
        }
        let start = at + usize::from(self.head_len);
        if self.head_len > 1
            && bytes.get(at + 1..start) != Some(&self.head[1..usize::from(self.head_len)])
        {
            return false;
        }
        // Names often share a beginning: look at the last byte before all the others.
        let Some((last, others)) = self.payload.split_last() else {
            return true;
        };
        let end = start + others.len();
        bytes.get(end) == Some(last) && bytes[start..end] == *others
    }
}

/// The bytes that the back length of an entry of `forward` bytes takes.
#[inline]
pub(crate) fn back_size(forward: usize) -> usize {
    match forward {
        0..0x80 => 1,
        0x80..0x4000 => 2,
        0x4000..0x20_0000 => 3,
        0x20_0000..0x1000_0000 => 4,
        _ => 5,
    }
}

/// Writes the back length `forward` over the whole of `slot`.
#[inline]
pub(super) fn write_back(forward: usize, slot: &mut [u8]) {
    let mut left = forward;
    for byte in slot.iter_mut().rev() {
        *byte = (left & 0x7F) as u8 | 0x80;
        left >>= 7;
    }
    slot[0] &= 0x7F;
}

/// Reads the back length that ends before `end`: its value, and its own size.
#[inline]
pub(super) fn read_back(bytes: &[u8], end: usize) -> Option<(usize, usize)> {
    let last = *bytes.get(end.checked_sub(1)?)?;
    let mut value = usize::from(last & 0x7F);
    let mut size = 1;
    let mut byte = last;
    while byte & 0x80 != 0 {
        if size == 5 {
            return None;
        }
        byte = *bytes.get(end.checked_sub(size + 1)?)?;
        value |= usize::from(byte & 0x7F) << (7 * size);
        size += 1;
    }
    Some((value, size))
}

/// Reads the entry at `at` of `bytes`: the element, and where the next entry begins.
#[inline]
pub(crate) fn read(bytes: &[u8], at: usize) -> (Entry<'_>, usize) {
    let head = bytes[at];
    if head & 0b1100_0000 == 0b1000_0000 {
        let start = at + 1;
        let end = start + usize::from(head & 0b11_1111);
        return (Entry::Bytes(&bytes[start..end]), end + 1);
    }
    if head & 0b1000_0000 == 0 {
        return (Entry::Int(i64::from(head)), at + 2);
    }
    read_wide(bytes, at, head)
}

fn read_wide(bytes: &[u8], at: usize, head: u8) -> (Entry<'_>, usize) {
    let int = |width: usize| {
        let mut wide = [0; 8];
        wide[8 - width..].copy_from_slice(&bytes[at + 1..at + 1 + width]);
        let n = i64::from_le_bytes(wide) >> (64 - 8 * width);
        (Entry::Int(n), at + width + 2)
    };
    let (start, len) = match head {
        0b1100_0000..=0b1101_1111 => {
            let high = i64::from((head << 3) as i8) << 5;
            return (Entry::Int(high | i64::from(bytes[at + 1])), at + 3);
        }
        0b1110_0000..=0b1110_1111 => (
            at + 2,
            usize::from(head & 0b1111) << 8 | usize::from(bytes[at + 1]),
        ),
        0b1111_0000 => {
            let len: [u8; 4] = bytes[at + 1..at + 5].try_into().expect("four bytes");
            (at + 5, u32::from_le_bytes(len) as usize)
        }
        0b1111_0001 => return int(2),
        0b1111_0010 => return int(3),
        0b1111_0011 => return int(4),
        0b1111_0100 => return int(8),
        _ => panic!("no entry begins with {head:#04x}"),
    };
    let end = start + len;
    (Entry::Bytes(&bytes[start..end]), end + back_size(end - at))
}

/// Where the entry after the one at `at` begins.
#[inline]
pub(crate) fn next(bytes: &[u8], at: usize) -> usize {
    let head = bytes[at];
    if head & 0b1100_0000 == 0b1000_0000 {
        at + 2 + usize::from(head & 0b11_1111)
    } else if head & 0b1000_0000 == 0 {
        at + 2
    } else {
        read_wide(bytes, at, head).1
    }
}

/// Where the entry begins that ends before `end`.
#[inline]
pub(crate) fn prev(bytes: &[u8], end: usize) -> usize {
    let (forward, size) = read_back(bytes, end).expect("an entry before this one");
    end - size - forward
}

/// Where the entry `index` entries after `at` begins.
#[inline]
pub(crate) fn skip(bytes: &[u8], mut at: usize, index: usize) -> usize {
    for _ in 0..index {
        at = next(bytes, at);
    }
    at
}

/// Where the entry begins that is `index` entries before `end`.
#[inline]
pub(crate) fn skip_back(bytes: &[u8], mut end: usize, index: usize) -> usize {
    for _ in 0..index {
        end = prev(bytes, end);
    }
    end
}

/// An entry that `check` found whole.
pub(crate) struct Checked<'a> {
    pub entry: Entry<'a>,
    /// Where the next entry begins.
    pub next: usize,
    /// False where we would have written other bytes for the same element.
    pub canonical: bool,
}

/// Reads the entry at `at` of `bytes`, trusting nothing; `None` where it is not whole.
pub(crate) fn check(bytes: &[u8], at: usize) -> Option<Checked<'_>> {
    let head = *bytes.get(at)?;
    let (head_len, payload_len) = match head {
        0..=0b0111_1111 => (1, 0),
        0b1000_0000..=0b1011_1111 => (1, usize::from(head & 0b11_1111)),
        0b1100_0000..=0b1101_1111 => (2, 0),
        0b1110_0000..=0b1110_1111 => (
            2,
            usize::from(head & 0b1111) << 8 | usize::from(*bytes.get(at + 1)?),
        ),
        0b1111_0000 => {
            let len: [u8; 4] = bytes.get(at + 1..at + 5)?.try_into().ok()?;
            (5, usize::try_from(u32::from_le_bytes(len)).ok()?)
        }
        0b1111_0001 => (3, 0),
        0b1111_0010 => (4, 0),
        0b1111_0011 => (5, 0),
        0b1111_0100 => (9, 0),
        _ => return None,
    };
    let start = at + head_len;
    let end = start.checked_add(payload_len)?;
    let payload = bytes.get(start..end)?;
    let forward = end - at;
    // Redis before 8 gave the largest length of each size one byte more, a zero group.
    let whole = |size: usize| read_back(bytes, end + size) == Some((forward, size));
    let size = back_size(forward);
    let long = !whole(size);
    if long && !(back_size(forward + 1) > size && size < 5 && whole(size + 1)) {
        return None;
    }
    let is_string = matches!(head, 0b1000_0000..=0b1011_1111 | 0b1110_0000..=0b1111_0000);
    let entry = match is_string {
        true => Entry::of(payload),
        false => read(bytes, at).0,
    };
    let same = match entry {
        Entry::Int(n) => Encoded::int(n).is_at(bytes, at),
        Entry::Bytes(value) => Encoded::string(value).is_at(bytes, at),
    };
    Some(Checked {
        entry,
        next: end + size + usize::from(long),
        canonical: same && !long,
    })
}
