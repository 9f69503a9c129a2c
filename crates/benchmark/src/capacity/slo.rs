//! A service level objective, such as `p99<1ms`.

use hdrhistogram::Histogram;
use std::str::FromStr;

/// What of a distribution is held against the limit.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Average,
    Largest,
    Percentile(f64),
}

/// A figure and what it must stay below.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Objective {
    figure: Figure,
    limit_us: f64,
}

impl Objective {
    /// The figure in microseconds.
    pub fn measure(self, latency: &Histogram<u64>) -> f64 {
        if latency.is_empty() {
            return 0.0;
        }
        match self.figure {
            Figure::Average => latency.mean(),
            Figure::Largest => latency.max() as f64,
            Figure::Percentile(percentile) => latency.value_at_percentile(percentile) as f64,
        }
    }

    /// Whether it is below the limit; a run without replies holds nothing.
    pub fn holds(self, latency: &Histogram<u64>) -> bool {
        !latency.is_empty() && self.measure(latency) < self.limit_us
    }

    /// What the figure is called.
    pub fn figure(self) -> String {
        match self.figure {
            Figure::Average => "avg".to_owned(),
            Figure::Largest => "max".to_owned(),
            Figure::Percentile(percentile) => format!("p{percentile}"),
        }
    }
}

impl std::fmt::Display for Objective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} < {} ms", self.figure(), self.limit_us / 1000.0)
    }
}

impl FromStr for Objective {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "such as p99<1ms, p99.9<500us, avg<1ms or max<0.1s".to_owned();
        let (figure, limit) = text.split_once('<').ok_or_else(wrong)?;
        let figure = match figure.trim() {
            "avg" => Figure::Average,
            "max" => Figure::Largest,
            percentile => {
                let number = percentile.strip_prefix('p').ok_or_else(wrong)?;
                let number: f64 = number.parse().map_err(|_| wrong())?;
                if !(0.0..=100.0).contains(&number) {
                    return Err(wrong());
                }
                Figure::Percentile(number)
            }
        };
        let limit = limit.trim();
        let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
        let unit = units
            .iter()
            .find(|(unit, _)| limit.ends_with(unit))
            .ok_or_else(wrong)?;
        let number: f64 = limit[..limit.len() - unit.0.len()]
            .trim()
            .parse()
            .map_err(|_| wrong())?;
        match number > 0.0 && number.is_finite() {
            true => Ok(Self {
                figure,
                limit_us: number * unit.1,
            }),
            false => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read_and_held() {
        let mut latency = crate::load::histogram();
        for us in 1..=1000 {
            latency.record(us).expect("in bounds");
        }
        let holds = |text: &str| {
            text.parse::<Objective>()
                .expect("an objective")
                .holds(&latency)
        };
        assert!(holds("p99<1ms") && !holds("p99<0.9ms") && holds("p50 < 501us"));
        assert!(holds("avg<0.0006s") && !holds("max<1ms"));
        for wrong in ["p99", "p99<1", "x<1ms", "p101<1ms", "p99<-1ms", "p99<nanms"] {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
        let objective: Objective = "p99.9<500us".parse().expect("an objective");
        assert_eq!(objective.to_string(), "p99.9 < 0.5 ms");
    }
}
