//! Means, intervals, and whether two means differ beyond noise.

/// 97.5% quantiles of Student's distribution for 1 to 30 degrees of freedom.
const STUDENT: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

fn student(freedom: f64) -> f64 {
    if freedom < 1.0 {
        return STUDENT[0];
    }
    // Fewer degrees make wider intervals: rounding down is the careful side.
    STUDENT.get(freedom as usize - 1).copied().unwrap_or(1.96)
}

/// Some measurements of one thing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub count: usize,
    pub mean: f64,
    /// Half of the width of the 95% confidence interval; 0 of a single measurement.
    pub margin: f64,
    pub least: f64,
    pub most: f64,
    variance: f64,
}

impl Sample {
    /// Of these; zeros of nothing.
    pub fn of(values: &[f64]) -> Self {
        let count = values.len();
        if count == 0 {
            return Self {
                count,
                mean: 0.0,
                margin: 0.0,
                least: 0.0,
                most: 0.0,
                variance: 0.0,
            };
        }
        let mean = values.iter().sum::<f64>() / count as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let variance = if count > 1 {
            squares / (count - 1) as f64
        } else {
            0.0
        };
        let margin = match count {
            1 => 0.0,
            _ => student((count - 1) as f64) * (variance / count as f64).sqrt(),
        };
        Self {
            count,
            mean,
            margin,
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            variance,
        }
    }

    /// Whether the other's mean differs beyond noise (Welch's test at 95%); never where one of them
    /// is a single measurement.
    pub fn differs(&self, other: &Self) -> bool {
        if self.count < 2 || other.count < 2 {
            return false;
        }
        let error = |sample: &Self| sample.variance / sample.count as f64;
        let (mine, theirs) = (error(self), error(other));
        let sum = mine + theirs;
        let distance = (self.mean - other.mean).abs();
        if sum == 0.0 {
            return distance > 0.0;
        }
        let part = |error: f64, count: usize| error.powi(2) / (count - 1) as f64;
        let freedom = sum.powi(2) / (part(mine, self.count) + part(theirs, other.count));
        distance / sum.sqrt() > student(freedom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_and_differences_are_the_textbook_s() {
        let sample = Sample::of(&[10.0, 12.0, 14.0]);
        assert_eq!((sample.mean, sample.least, sample.most), (12.0, 10.0, 14.0));
        // 4.303 * 2 / sqrt(3)
        assert!((sample.margin - 4.969).abs() < 0.001, "{}", sample.margin);
        assert!(!sample.differs(&Sample::of(&[11.0, 13.0, 15.0])));
        assert!(sample.differs(&Sample::of(&[20.0, 22.0, 24.0])));
        assert!(!sample.differs(&Sample::of(&[99.0])));
        assert_eq!(Sample::of(&[]).mean, 0.0);
        assert_eq!(Sample::of(&[3.0]).margin, 0.0);
    }
}
