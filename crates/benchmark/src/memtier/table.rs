//! The table of results, and the distributions after it.

use super::Run;
use super::mix::Kind;
use crate::load::{Class, per_second};
use hdrhistogram::Histogram;
use std::fmt::Write;

/// The row of a kind that never runs here, which readers of the table expect.
const WAITS: &str = "Waits";

/// `50` is `p50`, `99.9` is `p99.9`.
fn percentile_name(percentile: f64) -> String {
    format!("p{percentile} Latency")
}

/// A percentile in milliseconds.
pub fn percentile_ms(histogram: &Histogram<u64>, percentile: f64) -> f64 {
    match histogram.is_empty() {
        true => 0.0,
        false => histogram.value_at_percentile(percentile) as f64 / 1000.0,
    }
}

/// The mean in milliseconds.
pub fn mean_ms(histogram: &Histogram<u64>) -> f64 {
    match histogram.is_empty() {
        true => 0.0,
        false => histogram.mean() / 1000.0,
    }
}

/// A titled table of one run, or of the average of several.
pub fn render(title: &str, run: &Run, kinds: &[Kind], percentiles: &[f64]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = table(&mut out, title, run, kinds, percentiles);
    out
}

fn table(
    out: &mut String,
    title: &str,
    run: &Run,
    kinds: &[Kind],
    percentiles: &[f64],
) -> std::fmt::Result {
    let mut header = format!(
        "{:<7} {:>12} {:>12} {:>12} {:>15}",
        "Type", "Ops/sec", "Hits/sec", "Misses/sec", "Avg. Latency"
    );
    for &percentile in percentiles {
        write!(header, " {:>15}", percentile_name(percentile))?;
    }
    write!(header, " {:>12} ", "KB/sec")?;
    writeln!(out, "\n\n{title}\n{}", "=".repeat(header.len()))?;
    writeln!(out, "{header}\n{}", "-".repeat(header.len()))?;
    for (kind, class) in kinds.iter().zip(&run.outcome.classes) {
        row(out, &kind.title, kind.has_hits, class, run, percentiles)?;
    }
    if run.is_standard {
        row(out, WAITS, false, &Class::default(), run, percentiles)?;
    }
    let has_hits = kinds.iter().any(|kind| kind.has_hits);
    row(out, "Totals", has_hits, &run.total(kinds), run, percentiles)
}

fn row(
    out: &mut String,
    title: &str,
    has_hits: bool,
    class: &Class,
    run: &Run,
    percentiles: &[f64],
) -> std::fmt::Result {
    let rate = |count: u64| per_second(count as f64, run.took());
    write!(out, "{title:<7} {:>12.2}", rate(class.count))?;
    match has_hits {
        true => write!(
            out,
            " {:>12.2} {:>12.2}",
            rate(class.hits),
            rate(class.misses)
        )?,
        false => write!(out, " {:>12} {:>12}", "---", "---")?,
    }
    let times = run.times(class);
    if times.is_empty() {
        for _ in 0..=percentiles.len() {
            write!(out, " {:>15}", "---")?;
        }
    } else {
        write!(out, " {:>15.5}", mean_ms(times))?;
        for &percentile in percentiles {
            write!(out, " {:>15.5}", percentile_ms(times, percentile))?;
        }
    }
    if title == WAITS {
        return writeln!(out, " {:>12} ", "---");
    }
    let bytes = (class.bytes_in + class.bytes_out) as f64;
    writeln!(out, " {:>12.2} ", per_second(bytes / 1024.0, run.took()))
}

/// The distribution of each kind.
pub fn distributions(run: &Run, kinds: &[Kind]) -> String {
    const RULE: &str = "------------------------------------------------------------------------";
    let mut out = format!(
        "\n\nRequest Latency Distribution\n{:<8} {:<12}    {:<8}\n{RULE}\n",
        "Type", "<= msec", "Percent"
    );
    for (at, (kind, class)) in kinds.iter().zip(&run.outcome.classes).enumerate() {
        if at > 0 {
            out.push_str("---\n");
        }
        for step in run.times(class).iter_quantiles(1) {
            let ms = step.value_iterated_to() as f64 / 1000.0;
            let percent = step.quantile_iterated_to() * 100.0;
            let _ = writeln!(out, "{:<8} {ms:<12.5}    {percent:<8.5}", kind.name);
        }
    }
    out.push_str("---\n");
    out
}
