//! Search in a segment's sorted 16-bit hash fragments.
//!
//! A segment keeps, sorted, the 16 hash bits that follow the ones its place in the directory
//! already tells. Hashes are uniform, so a fragment's place is known before looking: fragment
//! times count. With at most 512 entries the true place lies within ten or so, and one window of
//! 48 fragments, compared without a branch (the loop below becomes a few SSE2 or NEON
//! instructions), nearly always contains it. A hash that is not uniform costs a binary search.

/// Fragments compared around the guessed place.
const WINDOW: usize = 48;

/// Index of the first fragment that is not below `fragment`; the length where all are.
#[inline]
pub(crate) fn lower_bound(fragments: &[u16], fragment: u16) -> usize {
    let len = fragments.len();
    if len <= WINDOW {
        return count_below(fragments, fragment);
    }
    let start = guess(len, fragment)
        .saturating_sub(WINDOW / 2)
        .min(len - WINDOW);
    let below = count_below(&fragments[start..start + WINDOW], fragment);
    if below == 0 {
        fragments[..start].partition_point(|&f| f < fragment)
    } else if below == WINDOW {
        let rest = start + WINDOW;
        rest + fragments[rest..].partition_point(|&f| f < fragment)
    } else {
        start + below
    }
}

/// About where `fragment` stands among `len`.
#[inline]
pub(crate) fn guess(len: usize, fragment: u16) -> usize {
    (usize::from(fragment) * len) >> 16
}

#[inline]
fn count_below(window: &[u16], fragment: u16) -> usize {
    let below: u16 = window.iter().map(|&f| u16::from(f < fragment)).sum();
    usize::from(below)
}

/// The 16 bits of `hash` after its first `depth`.
#[inline]
pub(crate) fn fragment(hash: u64, depth: u8) -> u16 {
    debug_assert!(depth <= 48);
    (hash >> (48 - u32::from(depth))) as u16
}

/// Capacity to reserve for one more entry: an eighth of slack, so that a segment's index wastes
/// little and is moved a handful of times in its life.
#[inline]
pub(crate) fn grown_capacity(len: usize) -> usize {
    len + (len / 8).max(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_linear_search_on_even_and_skewed_fragments() {
        let mut state = 1u64;
        for len in [0usize, 1, 47, 48, 49, 200, 512, 2000] {
            for skew in 0..3 {
                let mut fragments: Vec<u16> = (0..len)
                    .map(|_| {
                        state = state.wrapping_mul(6364136223846793005).wrapping_add(99);
                        let f = (state >> 40) as u16;
                        match skew {
                            0 => f,
                            1 => f & 0x1F,
                            _ => f | 0xFF00,
                        }
                    })
                    .collect();
                fragments.sort_unstable();
                for probe in (0..=u16::MAX).step_by(7).chain([u16::MAX]) {
                    let want = fragments.iter().take_while(|&&f| f < probe).count();
                    assert_eq!(lower_bound(&fragments, probe), want);
                }
            }
        }
    }
}
