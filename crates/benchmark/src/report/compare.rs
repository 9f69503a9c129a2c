//! What changed between two reports beyond noise.

use super::chart::number;
use super::numbers::Sample;
use super::results::{Cell, Results};
use std::process::ExitCode;

/// Compares two `results.json`; exit code 0 whatever the outcome.
pub fn main(args: &[String]) -> Result<ExitCode, String> {
    let [_, before, after] = args else {
        return Err("Usage: tidemill-benchmark compare BEFORE.json AFTER.json".to_owned());
    };
    print!("{}", render(&read(before)?, &read(after)?)?);
    Ok(ExitCode::SUCCESS)
}

fn read(path: &str) -> Result<Results, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("{path}: {error}"))
}

fn render(before: &Results, after: &Results) -> Result<String, String> {
    let mut out = String::new();
    let mut met = 0;
    let mut changed = 0;
    for old in &before.cells {
        let Some(new) = after.cell(&old.target, &old.case()) else {
            continue;
        };
        if old.runs.is_empty() || new.runs.is_empty() {
            continue;
        }
        met += 1;
        let name = format!("{}: {}", old.target, old.case());
        let samples = |cell: &Cell| {
            (
                cell.sample(|run| run.rate),
                cell.sample(|run| run.p99_ms),
                cell.server_us(),
            )
        };
        let (old, new) = (samples(old), samples(new));
        let mut lines = vec![
            line("requests a second", old.0, new.0, true),
            line("p99 ms", old.1, new.1, false),
        ];
        if let (Some(old), Some(new)) = (old.2, new.2) {
            lines.push(line("server us a request", old, new, false));
        }
        let lines: Vec<String> = lines.into_iter().flatten().collect();
        if !lines.is_empty() {
            changed += 1;
            out += &format!("{name}\n{}", lines.concat());
        }
    }
    if met == 0 {
        return Err("the two reports have no target and workload in common".to_owned());
    }
    out += &format!("{changed} of {met} cells changed beyond noise (Welch's test, 95%)\n");
    Ok(out)
}

/// A line about a figure that has changed beyond noise.
fn line(name: &str, old: Sample, new: Sample, more_is_better: bool) -> Option<String> {
    if !old.differs(&new) || old.mean == 0.0 {
        return None;
    }
    let percent = (new.mean / old.mean - 1.0) * 100.0;
    let verdict = match (percent > 0.0) == more_is_better {
        true => "better",
        false => "worse",
    };
    Some(format!(
        "  {name:<20} {} ± {} -> {} ± {}  {percent:+.1}%  {verdict}\n",
        number(old.mean),
        number(old.margin),
        number(new.mean),
        number(new.margin)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::results::Run;
    use super::*;

    fn results(rates: &[f64]) -> Results {
        let run = |&rate: &f64| Run {
            rate,
            avg_ms: 1.0,
            p50_ms: 1.0,
            p99_ms: 2.0,
            max_ms: 3.0,
            percentiles_ms: Vec::new(),
            server_us: Some(1e6 / rate),
            instances: 1,
        };
        Results {
            title: String::new(),
            about: String::new(),
            started: 0,
            is_interrupted: false,
            machine: Vec::new(),
            targets: Vec::new(),
            cells: vec![Cell {
                target: "ours".to_owned(),
                workload: "SET".to_owned(),
                pipeline: 16,
                runs: rates.iter().map(run).collect(),
            }],
            notes: Vec::new(),
        }
    }

    #[test]
    fn only_what_exceeds_the_noise_is_told() {
        let before = results(&[100.0, 102.0, 98.0]);
        let same = render(&before, &results(&[101.0, 99.0, 103.0])).expect("cells in common");
        assert_eq!(
            same,
            "0 of 1 cells changed beyond noise (Welch's test, 95%)\n"
        );
        let better = render(&before, &results(&[201.0, 199.0, 203.0])).expect("cells in common");
        assert!(
            better.starts_with("ours: SET, pipeline 16\n  requests a second "),
            "{better}"
        );
        assert!(better.contains("+101.0%  better"), "{better}");
        assert!(better.contains("server us a request"), "{better}");
        assert!(!better.contains("p99"), "{better}");
        let mut other = before.clone();
        other.cells[0].target = "theirs".to_owned();
        assert!(render(&before, &other).is_err());
    }
}
