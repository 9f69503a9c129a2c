//! Reading LZF, in which Redis compresses long strings.
//!
//! ```text
//! literal: 000lllll, l + 1 bytes
//! repeat:  lllooooo o       l from 1 to 6: l + 2 bytes from o + 1 bytes back
//!          111ooooo l o     l + 9 bytes from o + 1 bytes back
//! ```
//!
//! # Why is nothing compressed when writing?
//! Every reader takes plain strings, and a dump is on its way to somewhere else at once.

/// Bytes that three bytes of input can become.
const GAIN_MAX: usize = 264;

/// The `len` bytes that `packed` stands for; `None` where it stands for anything else.
pub(super) fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    if len > packed.len().saturating_mul(GAIN_MAX) {
        return None;
    }
    let mut out = Vec::with_capacity(len);
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
            let start = out.len().checked_sub(back)?;
            if out.len() + count > len {
                return None;
            }
            if back >= count {
                out.extend_from_within(start..start + count);
            } else {
                // The repeat reads what it writes.
                (start..start + count).for_each(|at| out.push(out[at]));
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::decompress;

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
