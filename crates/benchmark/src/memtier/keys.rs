//! Which key comes next.

use super::options::Pattern;
use crate::load::random::Random;

/// A range of key numbers, and a way to choose from it.
#[derive(Debug, Clone)]
pub struct Keys {
    first: u64,
    last: u64,
    pattern: Pattern,
    median: f64,
    deviation: f64,
    zipf: Option<Zipf>,
    /// The next of those in order.
    next: u64,
}

impl Keys {
    /// Keys from `first` to `last`; `part` of `parts` of them for [`Pattern::Parallel`].
    pub fn new(
        first: u64,
        last: u64,
        pattern: Pattern,
        median: Option<f64>,
        deviation: Option<f64>,
        exponent: f64,
        (part, parts): (u64, u64),
    ) -> Self {
        let (mut low, mut high) = (first, last);
        if pattern == Pattern::Parallel {
            // The last part has what the division leaves.
            let size = ((last - first + 1) / parts).max(1);
            low = first + size * part % (last - first + 1);
            high = if part + 1 == parts {
                last
            } else {
                (low + size - 1).min(last)
            };
        }
        let span = (last - first) as f64;
        Self {
            first: low,
            last: high,
            pattern,
            median: median.unwrap_or(first as f64 + span / 2.0),
            deviation: deviation.unwrap_or(span / 6.0),
            zipf: (pattern == Pattern::Zipf).then(|| Zipf::new(last - first + 1, exponent)),
            next: low,
        }
    }

    /// The number of the next key.
    pub fn draw(&mut self, random: &mut Random) -> u64 {
        match self.pattern {
            Pattern::Random => random.between(self.first, self.last),
            Pattern::Gaussian => {
                let number = self.median + self.deviation * random.normal();
                // A number outside of `u64` saturates in the cast.
                (number.round() as u64).clamp(self.first, self.last)
            }
            Pattern::Sequential | Pattern::Parallel => {
                let key = self.next;
                self.next = if key == self.last {
                    self.first
                } else {
                    key + 1
                };
                key
            }
            Pattern::Zipf => match &self.zipf {
                Some(zipf) => self.first + zipf.draw(random) - 1,
                None => self.first,
            },
        }
    }
}

/// Zipf's distribution over 1 to `count`, by rejection from the integral of `x^-exponent`
/// (Hörmann and Derflinger, 1996): the time a draw takes does not depend on the count.
#[derive(Debug, Clone)]
struct Zipf {
    exponent: f64,
    count: f64,
    /// The integral up to one and a half, and up to the end.
    low: f64,
    high: f64,
    shortcut: f64,
}

impl Zipf {
    fn new(count: u64, exponent: f64) -> Self {
        let mut zipf = Self {
            exponent,
            count: count as f64,
            low: 0.0,
            high: 0.0,
            shortcut: 0.0,
        };
        zipf.low = zipf.integral(1.5) - 1.0;
        zipf.high = zipf.integral(zipf.count + 0.5);
        zipf.shortcut = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.density(2.0));
        zipf
    }

    fn density(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    fn integral(&self, x: f64) -> f64 {
        match (self.exponent - 1.0).abs() < 1e-9 {
            true => x.ln(),
            false => (x.powf(1.0 - self.exponent) - 1.0) / (1.0 - self.exponent),
        }
    }

    fn inverse(&self, y: f64) -> f64 {
        match (self.exponent - 1.0).abs() < 1e-9 {
            true => y.exp(),
            false => (1.0 + y * (1.0 - self.exponent)).powf(1.0 / (1.0 - self.exponent)),
        }
    }

    fn draw(&self, random: &mut Random) -> u64 {
        /// Each attempt is accepted more often than not; this many in a row do not happen.
        const ATTEMPTS_MAX: usize = 1000;
        for _ in 0..ATTEMPTS_MAX {
            let y = self.high + random.unit() * (self.low - self.high);
            let x = self.inverse(y);
            let rank = x.round().clamp(1.0, self.count);
            let accepted =
                rank - x <= self.shortcut || y >= self.integral(rank + 0.5) - self.density(rank);
            if accepted {
                return rank as u64;
            }
        }
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(pattern: Pattern, parts: (u64, u64)) -> Vec<u64> {
        let mut keys = Keys::new(10, 19, pattern, None, None, 1.0, parts);
        let mut random = Random::new(3);
        (0..10_000).map(|_| keys.draw(&mut random)).collect()
    }

    #[test]
    fn every_pattern_stays_in_its_range() {
        for pattern in ["R", "G", "S", "P", "Z"] {
            let pattern: Pattern = pattern.parse().expect("a pattern");
            assert!(
                draws(pattern, (0, 3))
                    .iter()
                    .all(|key| (10..=19).contains(key))
            );
        }
        assert_eq!(draws(Pattern::Parallel, (2, 3))[..5], [16, 17, 18, 19, 16]);
        assert_eq!(draws(Pattern::Parallel, (1, 3))[..4], [13, 14, 15, 13]);
        assert_eq!(draws(Pattern::Sequential, (1, 3))[..3], [10, 11, 12]);
    }

    /// The first of ten has 1 / (1 + 1/2 + ... + 1/10) = 0.34 of all at exponent 1.
    #[test]
    fn zipf_has_its_frequencies() {
        let draws = draws(Pattern::Zipf, (0, 1));
        let share = |key| draws.iter().filter(|&&drawn| drawn == key).count();
        assert!((3_200..3_650).contains(&share(10)), "{}", share(10));
        assert!((1_550..1_880).contains(&share(11)), "{}", share(11));
        assert!((250..440).contains(&share(19)), "{}", share(19));
    }
}
