//! Many draws from one: a handler asks its host for one seed and then draws on its own, while it
//! holds what it draws from.

/// A source of numbers for one command.
pub struct Draws(u64);

impl Draws {
    /// Begins at a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 bits: a step of a Weyl sequence, mixed until every bit depends on every other.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let folded = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            #[allow(clippy::cast_possible_truncation)] // Both halves are used.
            {
                (product as u64) ^ (product >> 64) as u64
            }
        };
        folded(
            folded(self.0, 0xd6e8_feb8_6659_fd93),
            self.0 ^ 0xa076_1d64_78bd_642f,
        )
    }

    /// A number in `0..n`, each as likely as the others; 0 where `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        #[allow(clippy::cast_possible_truncation)] // Below `n`.
        {
            ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_even_for_neighbouring_seeds() {
        let mut counts = [0u32; 100];
        for seed in 0..100_000 {
            counts[usize::try_from(Draws::new(seed).below(100)).expect("small")] += 1;
        }
        let chi: f64 = counts
            .iter()
            .map(|&c| (f64::from(c) - 1000.0).powi(2) / 1000.0)
            .sum();
        assert!(chi < 170.0, "chi-square {chi} for 99 degrees of freedom");
    }

    #[test]
    fn the_edges_are_within() {
        let mut draws = Draws::new(1);
        assert_eq!((draws.below(0), draws.below(1)), (0, 0));
        assert!((0..1000).all(|_| draws.below(3) < 3));
    }
}
