//! LZF, in which Redis compresses long strings.
//!
//! ```text
//! literal: 000lllll, l + 1 bytes
//! repeat:  lllooooo o       l from 1 to 6: l + 2 bytes from o + 1 bytes back
//!          111ooooo l o     l + 9 bytes from o + 1 bytes back
//! ```
//!
//! A dump is not compressed: every reader takes plain strings, and it is on its way to somewhere
//! else at once. Files are.

/// Bytes that three bytes of input can become.
const GAIN_MAX: usize = 264;

/// Appends the `len` bytes that `packed` stands for; `None` where it stands for anything else.
pub(super) fn decompress(packed: &[u8], len: usize, out: &mut Vec<u8>) -> Option<()> {
    if len > packed.len().saturating_mul(GAIN_MAX) {
        return None;
    }
    let begin = out.len();
    let end = begin + len;
    out.reserve(len);
    let mut rest = packed.iter();
    while let Some(&control) = rest.next() {
        if control < 32 {
            let count = usize::from(control) + 1;
            let literal = rest.as_slice().get(..count)?;
            out.extend_from_slice(literal);
            rest = rest.as_slice()[count..].iter();
        } else {
            let mut count = usize::from(control >> 5) + 2;
            if control >> 5 == 7 {
                count += usize::from(*rest.next()?);
            }
            let back = (usize::from(control & 31) << 8 | usize::from(*rest.next()?)) + 1;
            let start = out.len().checked_sub(back).filter(|&at| at >= begin)?;
            if out.len() + count > end {
                return None;
            }
            if back >= count {
                out.extend_from_within(start..start + count);
            } else {
                // The repeat reads what it writes.
                (start..start + count).for_each(|at| out.push(out[at]));
            }
        }
        if out.len() > end {
            return None;
        }
    }
    (out.len() == end).then_some(())
}

/// Positions that are remembered: of one sequence for each value of its hash.
const TABLE_BITS: u32 = 13;
/// The longest literal.
const LITERAL_MAX: usize = 32;
/// The longest way back.
const BACK_MAX: usize = 1 << 13;
/// The longest repeat.
const REPEAT_MAX: usize = 255 + 9;
/// The shortest repeat.
const REPEAT_MIN: usize = 3;
/// Longer inputs are not compressed: positions in them would not fit.
const INPUT_MAX: usize = 1 << 31;

/// Compresses; remembers nothing from one input to the next but its memory.
pub(super) struct Compressor {
    /// Where a sequence of three bytes stood last, counted on from input to input, so that what an
    /// earlier input left need not be cleared.
    table: Box<[u32; 1 << TABLE_BITS]>,
    base: u32,
}

impl Compressor {
    pub(super) fn new() -> Self {
        Self {
            table: Box::new([0; 1 << TABLE_BITS]),
            base: 1,
        }
    }

    /// Appends the compressed form of `input` if it is shorter than `limit` bytes. Where it is not,
    /// `out` is as it was.
    #[allow(clippy::cast_possible_truncation)] // Bounded by what is checked just before each.
    pub(super) fn compress(&mut self, input: &[u8], limit: usize, out: &mut Vec<u8>) -> Option<()> {
        if input.len() >= INPUT_MAX {
            return None;
        }
        let len = input.len() as u32;
        if self.base.checked_add(len).is_none() {
            self.table.fill(0);
            self.base = 1;
        }
        let begin = out.len();
        let done = self.compress_from(input, begin + limit, out);
        self.base += len;
        if done.is_none() {
            out.truncate(begin);
        }
        done
    }

    #[allow(clippy::cast_possible_truncation)]
    fn compress_from(&mut self, input: &[u8], end: usize, out: &mut Vec<u8>) -> Option<()> {
        let (mut at, mut literal) = (0, 0);
        while at + REPEAT_MIN <= input.len() {
            let sequence = u32::from_le_bytes([input[at], input[at + 1], input[at + 2], 0]);
            let slot = (sequence.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize;
            let seen = self.table[slot];
            self.table[slot] = self.base + at as u32;
            let back = match seen.checked_sub(self.base) {
                Some(before) => at - before as usize,
                None => usize::MAX,
            };
            if back > BACK_MAX || input[at - back..at - back + REPEAT_MIN] != input[at..at + 3] {
                at += 1;
                continue;
            }
            let mut count = REPEAT_MIN;
            let count_max = REPEAT_MAX.min(input.len() - at);
            while count < count_max && input[at - back + count] == input[at + count] {
                count += 1;
            }
            literals(&input[literal..at], out);
            let (far, more) = (back - 1, count - 2);
            if more < 7 {
                out.push((more << 5 | far >> 8) as u8);
            } else {
                out.push((7 << 5 | far >> 8) as u8);
                out.push((more - 7) as u8);
            }
            out.push(far as u8);
            if out.len() >= end {
                return None;
            }
            at += count;
            literal = at;
        }
        literals(&input[literal..], out);
        (out.len() < end).then_some(())
    }
}

#[allow(clippy::cast_possible_truncation)] // At most 32.
fn literals(bytes: &[u8], out: &mut Vec<u8>) {
    for run in bytes.chunks(LITERAL_MAX) {
        out.push((run.len() - 1) as u8);
        out.extend_from_slice(run);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
        let mut out = b"before".to_vec();
        super::decompress(packed, len, &mut out)?;
        Some(out.split_off(6))
    }

    #[test]
    fn what_was_compressed_is_read_again() {
        let mut compressor = Compressor::new();
        let mut mixed = Vec::new();
        for number in 0..20_000u32 {
            mixed.extend(number.wrapping_mul(2_654_435_761).to_le_bytes());
            mixed.extend(b"some text that repeats");
        }
        let inputs: [&[u8]; 6] = [
            b"",
            b"aaa",
            &[b'a'; 70_000],
            b"abcabcabcabd",
            &mixed,
            b"xyz",
        ];
        for _ in 0..3 {
            for input in inputs {
                let mut out = Vec::new();
                compressor
                    .compress(input, usize::MAX / 2, &mut out)
                    .unwrap();
                assert_eq!(decompress(&out, input.len()).as_deref(), Some(input));
            }
        }
        let mut out = b"kept".to_vec();
        assert_eq!(compressor.compress(&[b'a'; 100], 5, &mut out), None);
        assert_eq!(out, b"kept");
    }

    #[test]
    fn literals_and_repeats_are_read() {
        // "a", then 59 times what stands one byte back, as Redis writes sixty of them.
        let packed = [1, b'a', b'a', 0xe0, 47, 0, 1, b'a', b'a'];
        assert_eq!(decompress(&packed, 60), Some(vec![b'a'; 60]));
        assert_eq!(decompress(&packed, 59), None);
        assert_eq!(decompress(&packed, 61), None);
        assert_eq!(
            decompress(&[2, 1, 2, 3, 0x20, 2], 6),
            Some(vec![1, 2, 3, 1, 2, 3])
        );
    }

    #[test]
    fn damage_is_refused() {
        assert_eq!(decompress(&[0x20, 0], 3), None, "a repeat of nothing");
        assert_eq!(decompress(&[5, 1], 6), None, "a literal cut off");
        assert_eq!(decompress(&[0, 1, 0xe0], 9), None, "a repeat cut off");
        assert_eq!(decompress(&[], 0), Some(vec![]));
        assert_eq!(decompress(&[0, 1], usize::MAX), None, "more than it can be");
    }
}
