//! The dice: a splitmix64 sequence, so that a seed gives the same commands on every machine.

/// A source of random draws.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The draws of one sequence of one run.
    pub fn new(seed: u64, sequence: u64) -> Self {
        let mut random = Self(seed ^ sequence.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`, which is not zero.
    pub fn below(&mut self, end: usize) -> usize {
        assert!(end > 0, "nothing to choose from");
        usize::try_from(self.next() % end as u64).expect("it is below a usize")
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = high.wrapping_sub(low).cast_unsigned();
        let step = match span.checked_add(1) {
            Some(count) => self.next() % count,
            None => self.next(),
        };
        low.wrapping_add(step.cast_signed())
    }

    /// True in so many cases of a hundred.
    pub fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }

    /// One of these words.
    pub fn word(&mut self, from: &[&'static str]) -> &'static str {
        from[self.below(from.len())]
    }

    /// Puts these into a random order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_sequences_differ() {
        let draws = |seed, sequence| {
            let mut random = Random::new(seed, sequence);
            (0..8).map(|_| random.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1, 2), draws(1, 2));
        assert_ne!(draws(1, 2), draws(1, 3));
        assert_ne!(draws(1, 2), draws(2, 2));
    }

    #[test]
    fn draws_keep_their_bounds() {
        let mut random = Random::new(7, 0);
        for _ in 0..1000 {
            assert!((-3..=4).contains(&random.between(-3, 4)));
            assert!(random.below(3) < 3);
        }
        random.between(i64::MIN, i64::MAX);
        let mut items = [1, 2, 3, 4, 5];
        random.shuffle(&mut items);
        items.sort_unstable();
        assert_eq!(items, [1, 2, 3, 4, 5]);
    }
}
