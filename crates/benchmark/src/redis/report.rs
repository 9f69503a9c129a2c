//! The text of a test's report.
//!
//! The real one keeps latencies in a histogram whose smallest step is 8 microseconds, which shows
//! in every figure (`0.207`, `0.303`). Ours are kept finer, and put into such a histogram here.

use super::HostConfig;
use super::options::Options;
use crate::load::{Class, Outcome};
use hdrhistogram::Histogram;
use std::fmt::Write;

/// The first line of `--csv`.
pub const CSV_HEADER: &str = "\"test\",\"rps\",\"avg_latency_ms\",\"min_latency_ms\",\
    \"p50_latency_ms\",\"p95_latency_ms\",\"p99_latency_ms\",\"max_latency_ms\"\n";
/// The smallest and the largest latency that is told apart, in microseconds.
const LOW_US: u64 = 10;
const HIGH_US: u64 = 3_600_000_000;
/// Steps of the cumulative distribution, in microseconds: fine ones first.
const FINE_US: u64 = 100;
const COARSE_US: u64 = 1_000;
const FINE_UNTIL_US: u64 = 2_000;

/// The report of one test.
pub fn render(options: &Options, title: &str, outcome: &Outcome, host: &HostConfig) -> String {
    let total = outcome.total();
    let shown = shown(&total.latency, options.precision);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match (options.is_csv, options.is_quiet) {
        (true, _) => csv(&mut text, title, outcome, &shown),
        (false, true) => writeln!(
            text,
            "{title}: {:.2} requests per second, p50={:.3} msec",
            outcome.rate(),
            ms(shown.value_at_quantile(0.5))
        ),
        (false, false) => full(&mut text, options, title, outcome, host, &total, &shown),
    };
    text
}

fn shown(fine: &Histogram<u64>, precision: u8) -> Histogram<u64> {
    let mut shown = Histogram::new_with_bounds(LOW_US, HIGH_US, precision)
        .expect("bounds that such a histogram can hold");
    for step in fine.iter_recorded() {
        let us = fine.median_equivalent(step.value_iterated_to());
        shown.saturating_record_n(us, step.count_at_value());
    }
    shown
}

fn ms(us: u64) -> f64 {
    us as f64 / 1000.0
}

/// Average, smallest, median, 95th and 99th percentile and largest, in milliseconds.
fn summary(histogram: &Histogram<u64>) -> [f64; 6] {
    if histogram.is_empty() {
        return [0.0; 6];
    }
    [
        histogram.mean() / 1000.0,
        ms(histogram.lowest_equivalent(histogram.min())),
        ms(histogram.value_at_quantile(0.5)),
        ms(histogram.value_at_quantile(0.95)),
        ms(histogram.value_at_quantile(0.99)),
        ms(histogram.highest_equivalent(histogram.max())),
    ]
}

fn csv(
    out: &mut String,
    title: &str,
    outcome: &Outcome,
    shown: &Histogram<u64>,
) -> std::fmt::Result {
    write!(
        out,
        "\"{}\",\"{:.2}\"",
        title.replace('"', "\"\""),
        outcome.rate()
    )?;
    for number in summary(shown) {
        write!(out, ",\"{number:.3}\"")?;
    }
    writeln!(out)
}

fn full(
    out: &mut String,
    options: &Options,
    title: &str,
    outcome: &Outcome,
    host: &HostConfig,
    total: &Class,
    shown: &Histogram<u64>,
) -> std::fmt::Result {
    writeln!(out, "====== {title} ======")?;
    writeln!(
        out,
        "  {} requests completed in {:.2} seconds",
        total.count,
        outcome.took.as_secs_f64()
    )?;
    writeln!(out, "  {} parallel clients", options.clients)?;
    writeln!(out, "  {} bytes payload", options.data_bytes)?;
    writeln!(out, "  keep alive: {}", u8::from(options.keep_alive))?;
    for (name, value) in [("save", &host.save), ("appendonly", &host.appendonly)] {
        if let Some(value) = value {
            writeln!(out, "  host configuration \"{name}\": {value}")?;
        }
    }
    match options.threads {
        None => writeln!(out, "  multi-thread: no")?,
        Some(threads) => writeln!(out, "  multi-thread: yes\n  threads: {threads}")?,
    }
    writeln!(out, "\nLatency by percentile distribution:")?;
    percentiles(out, shown)?;
    writeln!(out, "\nCumulative distribution of latencies:")?;
    cumulative(out, shown)?;
    writeln!(out, "\nSummary:")?;
    writeln!(
        out,
        "  throughput summary: {:.2} requests per second",
        outcome.rate()
    )?;
    table(out, "latency summary (msec):", shown)?;
    if let Some(rate) = options.rate {
        let distances = match options.is_poisson {
            true => "random",
            false => "equal",
        };
        let service = self::shown(&total.service, options.precision);
        writeln!(
            out,
            "  open loop: {rate} requests per second at {distances} distances"
        )?;
        table(out, "service time summary (msec):", &service)?;
        writeln!(
            out,
            "  late: {} sent more than 1 ms after they were due, missed: {} never sent",
            outcome.late, outcome.missed
        )?;
    }
    Ok(())
}

fn table(out: &mut String, title: &str, histogram: &Histogram<u64>) -> std::fmt::Result {
    writeln!(out, "  {title}")?;
    write!(out, "   ")?;
    for name in ["avg", "min", "p50", "p95", "p99", "max"] {
        write!(out, " {name:>9}")?;
    }
    write!(out, "\n   ")?;
    for number in summary(histogram) {
        write!(out, " {number:9.3}")?;
    }
    writeln!(out)
}

fn line(out: &mut String, percent: f64, us: u64, count: u64) -> std::fmt::Result {
    let ms = ms(us);
    writeln!(
        out,
        "{percent:.3}% <= {ms:.3} milliseconds (cumulative count {count})"
    )
}

/// The median, then the middle of what is left, and so on; a value that many of these share is
/// shown once.
fn percentiles(out: &mut String, histogram: &Histogram<u64>) -> std::fmt::Result {
    let total = histogram.len();
    let mut count = 0;
    let mut percent = 0.0;
    let mut step = 50.0;
    let mut last = None;
    for recorded in histogram.iter_recorded() {
        count += recorded.count_at_value();
        let us = histogram.highest_equivalent(recorded.value_iterated_to());
        let reached = 100.0 * count as f64 / total as f64;
        while percent <= reached {
            if last != Some(count) || count == total {
                line(out, percent, us, count)?;
            }
            last = Some(count);
            if count == total {
                break;
            }
            percent += step;
            step /= 2.0;
        }
        if count == total {
            line(out, 100.0, us, count)?;
        }
    }
    Ok(())
}

/// How many had come after 0.1, 0.2, ... milliseconds, and from two on after whole ones.
fn cumulative(out: &mut String, histogram: &Histogram<u64>) -> std::fmt::Result {
    let total = histogram.len();
    if total == 0 {
        return Ok(());
    }
    let mut level = FINE_US;
    let mut count = 0;
    let mut last = None;
    let mut recorded = histogram.iter_recorded().peekable();
    loop {
        let us = histogram.highest_equivalent(level);
        while let Some(step) = recorded.next_if(|step| step.value_iterated_to() <= us) {
            count += step.count_at_value();
        }
        if last != Some(count) {
            line(out, 100.0 * count as f64 / total as f64, us, count)?;
            last = Some(count);
        }
        let Some(next) = recorded.peek() else {
            return Ok(());
        };
        // Steps between which nothing came are not counted through one by one.
        let step = if level <= FINE_UNTIL_US {
            FINE_US
        } else {
            COARSE_US
        };
        let skipped = next.value_iterated_to().saturating_sub(us) / step;
        level += match level > FINE_UNTIL_US {
            true => step * skipped.max(1),
            false => step,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[(u64, u64)]) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(LOW_US, HIGH_US, 3).expect("bounds");
        for &(us, count) in values {
            histogram.record_n(us, count).expect("in bounds");
        }
        histogram
    }

    /// What the real one has printed for times in these steps.
    #[test]
    fn distributions_are_told_as_the_real_one_tells_them() {
        let histogram = of(&[(340, 3), (365, 3), (380, 3), (515, 1)]);
        let mut text = String::new();
        percentiles(&mut text, &histogram).expect("a string");
        assert_eq!(
            text,
            "0.000% <= 0.343 milliseconds (cumulative count 3)\n\
             50.000% <= 0.367 milliseconds (cumulative count 6)\n\
             75.000% <= 0.383 milliseconds (cumulative count 9)\n\
             93.750% <= 0.519 milliseconds (cumulative count 10)\n\
             100.000% <= 0.519 milliseconds (cumulative count 10)\n"
        );
        let mut text = String::new();
        cumulative(&mut text, &histogram).expect("a string");
        assert_eq!(
            text,
            "0.000% <= 0.103 milliseconds (cumulative count 0)\n\
             90.000% <= 0.407 milliseconds (cumulative count 9)\n\
             100.000% <= 0.607 milliseconds (cumulative count 10)\n"
        );
        let histogram = of(&[(2_000, 70), (2_096, 6), (2_900, 14), (4_000, 10)]);
        let mut text = String::new();
        cumulative(&mut text, &histogram).expect("a string");
        assert_eq!(
            text,
            "0.000% <= 0.103 milliseconds (cumulative count 0)\n\
             70.000% <= 2.007 milliseconds (cumulative count 70)\n\
             76.000% <= 2.103 milliseconds (cumulative count 76)\n\
             90.000% <= 3.103 milliseconds (cumulative count 90)\n\
             100.000% <= 4.103 milliseconds (cumulative count 100)\n"
        );
    }

    #[test]
    fn nothing_measured_is_zeros() {
        let empty = of(&[]);
        let mut text = String::new();
        percentiles(&mut text, &empty).expect("a string");
        cumulative(&mut text, &empty).expect("a string");
        assert_eq!((text.as_str(), summary(&empty)), ("", [0.0; 6]));
    }
}
