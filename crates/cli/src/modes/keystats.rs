//! `--keystats`: memory and lengths of keys in one walk, and how both are distributed.

use super::distribution::{KINDS, Kind, human, kinds, lengths, memory, percent, progress};
use super::scan::{Walk, keys_total};
use crate::options::{Options, leading_integer};
use crate::out::{Failure, Outcome, put};
use crate::session::Session;
use crate::wait;
use crate::words::quoted;
use hdrhistogram::Histogram;

/// Keys in the list of the biggest unless `--top` says otherwise.
const SHOWN: usize = 10;
/// Decimal digits that the distributions are precise to.
const DIGITS: u8 = 3;
/// The biggest size that they tell from bigger ones.
const SIZE_MAX: u64 = 1 << 50;

/// What is known of one kind.
struct Tally {
    kind: Kind,
    count: u64,
    size: u64,
    length: u64,
    biggest: Option<(Vec<u8>, u64)>,
    longest: Option<(Vec<u8>, u64)>,
}

/// What is known of all.
struct Stats {
    tallies: Vec<Tally>,
    /// From the biggest down: size, kind, key.
    top: Vec<(u64, Kind, Vec<u8>)>,
    top_max: usize,
    sizes: Histogram<u64>,
    names: Histogram<u64>,
    sampled: u64,
}

/// Walks over the keys and prints what it finds; Ctrl-C ends the walk, tells the cursor to go on
/// from, and the summary follows.
pub fn run(session: &mut Session, options: &Options, samples: Option<i64>) -> Outcome {
    wait::catch();
    session.patient = true;
    let top = options.top.as_deref().map(leading_integer);
    let top_max = top
        .and_then(|top| usize::try_from(top).ok())
        .unwrap_or(SHOWN);
    let mut walk = Walk::new(options)?;
    let total = keys_total(session)?;
    put(
        "\n# Scanning the entire keyspace to find the biggest keys and distribution \
         information.\n\
         # Use -i 0.1 to sleep 0.1 sec per 100 SCAN commands (not usually needed).\n\
         # Use --cursor <n> to start the scan at the cursor <n> (usually after a Ctrl-C).\n\
         # Use --top <n> to display <n> top key sizes (default is 10).\n\
         # Ctrl-C to stop the scan.\n\n",
    );
    let mut stats = Stats::new(top_max).map_err(Failure::Line)?;
    let bar = progress(total, "keys");
    let mut stopped = None;
    loop {
        if wait::interrupted() {
            stopped = Some(walk.cursor());
            break;
        }
        let Some(keys) = walk.next(session)? else {
            if wait::interrupted() {
                stopped = Some(walk.cursor());
            }
            break;
        };
        let kinds = kinds(session, &keys)?;
        let there: Vec<(&[u8], Kind)> = keys
            .iter()
            .zip(kinds)
            .filter_map(|(key, kind)| Some((key.as_slice(), kind?)))
            .collect();
        let names: Vec<&[u8]> = there.iter().map(|(key, _)| *key).collect();
        let sizes = memory(session, &names, samples)?;
        let lengths = lengths(session, &there)?;
        for (((key, kind), size), length) in there.into_iter().zip(sizes).zip(lengths) {
            stats.add(key, kind, size, length);
        }
        bar.set_position(stats.sampled);
    }
    bar.finish_and_clear();
    if let Some(cursor) = stopped {
        put(format!(
            "Scan interrupted:\nUse 'tidemill-cli --keystats --cursor {cursor}' to restart \
             from the last cursor.\n\n"
        ));
    }
    put(stats.report(total));
    Ok(())
}

impl Stats {
    fn new(top_max: usize) -> Result<Self, String> {
        let histogram =
            || Histogram::new_with_bounds(1, SIZE_MAX, DIGITS).map_err(|error| error.to_string());
        Ok(Self {
            tallies: KINDS.iter().copied().map(tally).collect(),
            top: Vec::new(),
            top_max,
            sizes: histogram()?,
            names: histogram()?,
            sampled: 0,
        })
    }

    fn add(&mut self, key: &[u8], kind: Kind, size: u64, length: u64) {
        let at = self.tallies.iter().position(|tally| tally.kind == kind);
        let at = at.unwrap_or_else(|| {
            self.tallies.push(tally(kind));
            self.tallies.len() - 1
        });
        let tally = &mut self.tallies[at];
        tally.count += 1;
        tally.size += size;
        tally.length += length;
        for (most, value) in [(&mut tally.biggest, size), (&mut tally.longest, length)] {
            if most.as_ref().is_none_or(|(_, most)| value > *most) {
                *most = Some((key.to_vec(), value));
            }
        }
        let at = self.top.partition_point(|(other, ..)| *other >= size);
        if at < self.top_max {
            self.top.insert(at, (size, kind, key.to_vec()));
            self.top.truncate(self.top_max);
        }
        // Nothing in a keyspace is bigger than what they were made for.
        self.sizes.saturating_record(size);
        self.names.saturating_record(key.len() as u64);
        self.sampled += 1;
    }

    fn report(&self, total: u64) -> String {
        let size: u64 = self.tallies.iter().map(|tally| tally.size).sum();
        let done = match self.sampled >= total {
            true => 100.0,
            false => percent(self.sampled, total),
        };
        let mut text = format!(
            "{done:.2}% of the keyspace\nKeys sampled: {}\nKeys size:    {}\n",
            self.sampled,
            human(size)
        );
        text += &format!("\n--- Top {} key sizes ---\n", self.top_max);
        for (at, (size, kind, key)) in self.top.iter().enumerate() {
            let (size, kind, key) = (human(*size), kind.name, quoted(key));
            text += &format!("{:>3} {size:>8} {kind:<10} {key}\n", at + 1);
        }
        text += "\n--- Top size per type ---\n";
        for tally in &self.tallies {
            if let Some((key, size)) = &tally.biggest {
                let (name, key, size) = (tally.kind.name, quoted(key), human(*size));
                text += &format!("{name:<10} {key} is {size}\n");
            }
        }
        text += "\n--- Top length and cardinality per type ---\n";
        for tally in &self.tallies {
            if let Some((key, length)) = &tally.longest {
                let (name, key, unit) = (tally.kind.name, quoted(key), tally.kind.unit);
                text += &format!("{name:<10} {key} has {length} {unit}\n");
            }
        }
        text += &distribution("Key size", &self.sizes);
        text += &distribution("Key name length", &self.names);
        text += &self.table();
        text
    }

    fn table(&self) -> String {
        let average = |sum: u64, count: u64| match count {
            0 => 0.0,
            _ => sum as f64 / count as f64,
        };
        let mut text = "\nType         Total keys  Keys % Tot size Avg size  \
            Total length/card Avg ln/card\n\
            --------- ------------ ------- -------- -------- ------------------ -----------\n"
            .to_owned();
        for tally in &self.tallies {
            let average_size = average(tally.size, tally.count);
            text += &format!(
                "{:<9} {:>12} {:>6.2}% {:>8} {:>8} {:>18} {:>11.2}\n",
                tally.kind.name,
                tally.count,
                percent(tally.count, self.sampled),
                human(tally.size),
                human(average_size as u64),
                format!("{} {}", tally.length, tally.kind.unit),
                average(tally.length, tally.count),
            );
        }
        text
    }
}

fn tally(kind: Kind) -> Tally {
    Tally {
        kind,
        count: 0,
        size: 0,
        length: 0,
        biggest: None,
        longest: None,
    }
}

/// Values at rising percentiles, each half as far from the end as the last.
fn distribution(title: &str, histogram: &Histogram<u64>) -> String {
    let width = title.len();
    let line = "-".repeat(width);
    let mut text = format!("\n{title} Percentile Total keys\n{line} ---------- -----------\n");
    if !histogram.is_empty() {
        let mut before = 0;
        for point in histogram.iter_quantiles(1) {
            let below = histogram.count_between(0, point.value_iterated_to());
            // A percentile that tells nothing new is left out.
            if below == before && point.quantile_iterated_to() < 1.0 {
                continue;
            }
            before = below;
            text += &format!(
                "{:>width$} {:>9.4}% {below:>11}\n",
                human(point.value_iterated_to()),
                point.quantile_iterated_to() * 100.0,
            );
        }
    }
    let (mean, deviation) = (histogram.mean(), histogram.stdev());
    text += &format!(
        "Note: 0.1% precision, Mean: {}, StdDeviation: {}\n",
        human(mean as u64),
        human(deviation as u64)
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_big_keys_have_their_places() {
        let mut stats = Stats::new(2).expect("good bounds");
        for n in 0..99 {
            stats.add(format!("key:{n:02}").as_bytes(), KINDS[0], 56, 8);
        }
        stats.add(b"big", KINDS[1], 7842, 500);
        let report = stats.report(100);
        for line in [
            "100.00% of the keyspace",
            "Keys size:    13.07K",
            "  1    7.66K list       \"big\"",
            "list       \"big\" has 500 items",
            "     56B    0.0000%          99",
            "   7.66K  100.0000%         100",
            "Note: 0.1% precision, Mean: 133B, StdDeviation: 774B",
        ] {
            assert!(
                report.lines().any(|found| found == line),
                "{line}\n{report}"
            );
        }
    }
}
