//! What was measured, in a form that is kept: JSON to compare with later, and CSV.

use super::numbers::Sample;
use crate::doctor::Fact;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The percentiles that a run keeps for its chart.
pub const PERCENTILES: [f64; 9] = [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A whole report.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    pub title: String,
    #[serde(default)]
    pub about: String,
    /// When it began, in seconds since 1970.
    pub started: u64,
    /// It was ended before its time; what there is of it is here.
    pub is_interrupted: bool,
    pub machine: Vec<Fact>,
    pub targets: Vec<TargetResult>,
    pub cells: Vec<Cell>,
    /// What went wrong, or must be known, in words.
    pub notes: Vec<String>,
}

/// Who was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TargetResult {
    pub name: String,
    /// How it was started, or where it listens.
    pub how: String,
    /// What it says of itself.
    pub version: String,
    pub price_per_hour: Option<f64>,
}

/// A workload at a pipeline on a target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Cell {
    pub target: String,
    pub workload: String,
    pub pipeline: usize,
    pub runs: Vec<Run>,
}

/// One measurement.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Run {
    /// Requests a second, over all instances.
    pub rate: f64,
    pub avg_ms: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub max_ms: f64,
    /// Milliseconds at [`PERCENTILES`].
    pub percentiles_ms: Vec<f64>,
    /// The server's processor time a request, in microseconds, where it was started here.
    pub server_us: Option<f64>,
    /// Instances that held the objective, or were loaded.
    pub instances: usize,
}

impl Cell {
    /// What the table's row is called.
    pub fn case(&self) -> String {
        format!("{}, pipeline {}", self.workload, self.pipeline)
    }

    /// A figure of all runs.
    pub fn sample(&self, figure: impl Fn(&Run) -> f64) -> Sample {
        Sample::of(&self.runs.iter().map(figure).collect::<Vec<_>>())
    }

    /// The server's time, where every run has it.
    pub fn server_us(&self) -> Option<Sample> {
        let times: Option<Vec<f64>> = self.runs.iter().map(|run| run.server_us).collect();
        times
            .filter(|times| !times.is_empty())
            .map(|times| Sample::of(&times))
    }
}

impl Results {
    /// The rows of the matrix in order, each once.
    pub fn cases(&self) -> Vec<String> {
        let mut cases: Vec<String> = Vec::new();
        for cell in &self.cells {
            if !cases.contains(&cell.case()) {
                cases.push(cell.case());
            }
        }
        cases
    }

    /// The cell of a target in a row.
    pub fn cell(&self, target: &str, case: &str) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.target == target && cell.case() == case)
    }

    /// A line a run.
    pub fn csv(&self) -> String {
        let mut out = "target,workload,pipeline,run,requests_per_second,avg_ms,p50_ms,p99_ms,\
                       max_ms,server_us,instances\n"
            .to_owned();
        let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
        for cell in &self.cells {
            for (number, run) in cell.runs.iter().enumerate() {
                let server = run
                    .server_us
                    .map(|us| format!("{us:.3}"))
                    .unwrap_or_default();
                // Writing to a string cannot fail.
                let _ = writeln!(
                    out,
                    "{},{},{},{},{:.2},{:.3},{:.3},{:.3},{:.3},{server},{}",
                    quoted(&cell.target),
                    quoted(&cell.workload),
                    cell.pipeline,
                    number + 1,
                    run.rate,
                    run.avg_ms,
                    run.p50_ms,
                    run.p99_ms,
                    run.max_ms,
                    run.instances
                );
            }
        }
        out
    }
}
