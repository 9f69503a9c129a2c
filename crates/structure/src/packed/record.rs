//! The bytes of one element of a [`PackedTable`](super::PackedTable).
//!
//! ```text
//! 0kkkkkkk                                  key k (0..=127 bytes), no value, no deadline
//! 1tkkkkkk [klen] vlen [deadline 6] key value   k = 0..=61, or 62 and klen follows;
//!                                           t = there is a deadline, milliseconds
//! 10111111 far 4                            the record stands in the segment's `Far`, at `far`
//! ```
//! Lengths are LEB128 varints. A short set member so has one byte of lengths, a short field with
//! a short value two.
//!
//! # Why are long records elsewhere?
//! Splitting and compacting a segment copies its records. Capping what a record takes there
//! bounds that work, and lets 16-bit offsets do.

/// Longest record kept among the others of a segment.
pub(crate) const NEAR_MAX: usize = 256;
const FAR: u8 = 0xBF;
const FAR_BYTES: usize = 5;
const LONG_KEY: u8 = 62;
const DEADLINE: u8 = 0x40;
/// Largest deadline that 6 bytes hold: the year 10889.
pub const DEADLINE_MAX: u64 = (1 << 48) - 1;

/// Where the parts of a record stand in the buffer it was parsed from.
#[derive(Clone, Copy)]
pub(crate) struct Layout {
    pub(crate) key: usize,
    pub(crate) key_len: usize,
    pub(crate) value_len: usize,
    pub(crate) has_deadline: bool,
}

impl Layout {
    #[inline]
    pub(crate) fn key<'a>(&self, buf: &'a [u8]) -> &'a [u8] {
        &buf[self.key..self.key + self.key_len]
    }

    #[inline]
    pub(crate) fn value_start(&self) -> usize {
        self.key + self.key_len
    }

    #[inline]
    pub(crate) fn end(&self) -> usize {
        self.value_start() + self.value_len
    }

    #[inline]
    pub(crate) fn deadline(&self, buf: &[u8]) -> Option<u64> {
        if !self.has_deadline {
            return None;
        }
        let mut bytes = [0; 8];
        bytes[..6].copy_from_slice(&buf[self.key - 6..self.key]);
        Some(u64::from_le_bytes(bytes))
    }

    pub(crate) fn set_deadline(&self, buf: &mut [u8], deadline: u64) {
        debug_assert!(self.has_deadline);
        let bytes = deadline.min(DEADLINE_MAX).to_le_bytes();
        buf[self.key - 6..self.key].copy_from_slice(&bytes[..6]);
    }
}

/// The far index of the record at `at`, where it is a far one.
#[inline]
pub(crate) fn far_index(buf: &[u8], at: usize) -> Option<usize> {
    if buf[at] != FAR {
        return None;
    }
    let bytes = buf[at + 1..at + FAR_BYTES].try_into().expect("four bytes");
    Some(u32::from_le_bytes(bytes) as usize)
}

/// Bytes that the record at `at` takes in its segment.
#[inline]
pub(crate) fn stored_len(buf: &[u8], at: usize) -> usize {
    if buf[at] == FAR {
        FAR_BYTES
    } else {
        parse(buf, at).end() - at
    }
}

/// Parses a record that is not far.
#[inline]
pub(crate) fn parse(buf: &[u8], at: usize) -> Layout {
    let head = buf[at];
    if head < 0x80 {
        let key_len = usize::from(head);
        return Layout {
            key: at + 1,
            key_len,
            value_len: 0,
            has_deadline: false,
        };
    }
    let mut next = at + 1;
    let short = head & 0x3F;
    let key_len = if short == LONG_KEY {
        varint(buf, &mut next)
    } else {
        usize::from(short)
    };
    let value_len = varint(buf, &mut next);
    let has_deadline = head & DEADLINE != 0;
    Layout {
        key: next + if has_deadline { 6 } else { 0 },
        key_len,
        value_len,
        has_deadline,
    }
}

/// Bytes of the record that [`write`] would make.
pub(crate) fn len(key: &[u8], value: &[u8], deadline: Option<u64>) -> usize {
    let deadline_len = if deadline.is_some() { 6 } else { 0 };
    let lengths = if value.is_empty() && deadline.is_none() && key.len() < 0x80 {
        1
    } else {
        let long = if key.len() < usize::from(LONG_KEY) {
            0
        } else {
            varint_len(key.len())
        };
        1 + long + varint_len(value.len())
    };
    lengths + deadline_len + key.len() + value.len()
}

/// Appends a record that is not far.
pub(crate) fn write(buf: &mut Vec<u8>, key: &[u8], value: &[u8], deadline: Option<u64>) {
    if value.is_empty() && deadline.is_none() && key.len() < 0x80 {
        buf.push(key.len() as u8);
    } else {
        let timed = if deadline.is_some() { DEADLINE } else { 0 };
        if key.len() < usize::from(LONG_KEY) {
            buf.push(0x80 | timed | key.len() as u8);
        } else {
            buf.push(0x80 | timed | LONG_KEY);
            push_varint(buf, key.len());
        }
        push_varint(buf, value.len());
        if let Some(deadline) = deadline {
            buf.extend_from_slice(&deadline.min(DEADLINE_MAX).to_le_bytes()[..6]);
        }
    }
    buf.extend_from_slice(key);
    buf.extend_from_slice(value);
}

/// Appends a reference to a far record.
pub(crate) fn write_far(buf: &mut Vec<u8>, index: usize) {
    buf.push(FAR);
    buf.extend_from_slice(&u32::try_from(index).expect("few far records").to_le_bytes());
}

/// Bytes that a record of `len` takes in its segment.
pub(crate) fn near_len(len: usize) -> usize {
    if len > NEAR_MAX { FAR_BYTES } else { len }
}

#[inline]
fn varint(buf: &[u8], next: &mut usize) -> usize {
    let first = buf[*next];
    *next += 1;
    if first < 0x80 {
        return usize::from(first);
    }
    let (mut value, mut shift) = (usize::from(first & 0x7F), 7);
    loop {
        let byte = buf[*next];
        *next += 1;
        value |= usize::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return value;
        }
        shift += 7;
    }
}

fn push_varint(buf: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        buf.push(value as u8 | 0x80);
        value >>= 7;
    }
    buf.push(value as u8);
}

fn varint_len(value: usize) -> usize {
    let bits = usize::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_as_written() {
        for key_len in [0usize, 1, 61, 62, 63, 126, 127, 128, 300, 20_000] {
            for value_len in [0usize, 1, 127, 128, 20_000] {
                for deadline in [None, Some(0), Some(1_790_000_000_000), Some(u64::MAX)] {
                    let (key, value) = (vec![7; key_len], vec![9; value_len]);
                    let mut buf = vec![1, 2, 3];
                    write(&mut buf, &key, &value, deadline);
                    assert_eq!(buf.len() - 3, len(&key, &value, deadline));
                    let layout = parse(&buf, 3);
                    assert_eq!(layout.key(&buf), key);
                    assert_eq!(&buf[layout.value_start()..layout.end()], value);
                    assert_eq!(layout.end(), buf.len());
                    assert_eq!(layout.deadline(&buf), deadline.map(|d| d.min(DEADLINE_MAX)));
                    assert_eq!(far_index(&buf, 3), None);
                }
            }
        }
        let mut buf = Vec::new();
        write_far(&mut buf, 70_000);
        assert_eq!(far_index(&buf, 0), Some(70_000));
        assert_eq!(stored_len(&buf, 0), buf.len());
    }
}
