//! Random numbers for a load: quick, seeded, and the same in every run of a seed.
//!
//! # Why not a library?
//! One multiplication and a few shifts a number are what the path of a request can pay, and nothing
//! here has to be hard to guess.

/// A generator after Vigna's SplitMix64.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The generator of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`; 0 when `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.bits()) * u128::from(end);
        u64::try_from(wide >> 64).expect("the upper half of a product")
    }

    /// A number from `first` to `last`, both possible.
    pub fn between(&mut self, first: u64, last: u64) -> u64 {
        first + self.below((last - first).saturating_add(1))
    }

    /// A number in `(0, 1]`.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    /// A number of the exponential distribution with this mean: the gap between arrivals that know
    /// nothing of each other.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -self.unit().ln() * mean
    }

    /// A number of the normal distribution with mean 0 and deviation 1 (Box and Muller).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.unit().ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_in_their_range_and_average_out() {
        let mut random = Random::new(7);
        let mut sum = 0;
        for _ in 0..10_000 {
            let number = random.between(10, 19);
            assert!((10..=19).contains(&number));
            sum += number;
        }
        assert!((140_000..150_000).contains(&sum), "{sum}");
        assert_eq!(random.below(0), 0);
        let mean = (0..10_000).map(|_| random.exponential(5.0)).sum::<f64>() / 10_000.0;
        assert!((4.5..5.5).contains(&mean), "{mean}");
        let mean = (0..10_000).map(|_| random.normal()).sum::<f64>() / 10_000.0;
        assert!((-0.1..0.1).contains(&mean), "{mean}");
    }
}
