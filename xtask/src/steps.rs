//! Named steps: what runs, how long it took, and the table at the end.
//!
//! # Invariants
//! - A failed step never hides another: the run goes on, except past a step that later ones need
//!   (`must`), after which everything is reported as not run.
//! - The last line is `N passed, N failed` (and `, N skipped` where some were), counting steps.
//! - A skipped step always says why, in one line.

use std::io::Write;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How a step that did not fail ended.
pub enum Done {
    /// It ran.
    Ran,
    /// It had nothing to do here, for this reason.
    Skipped(String),
}

/// A step's result: an error is a message that says what to do next.
pub type StepResult = Result<Done, String>;

enum Ending {
    Passed,
    Failed(String),
    Skipped(String),
}

struct Row {
    name: String,
    ending: Ending,
    took: Duration,
}

/// The steps of one run so far.
pub struct Report {
    rows: Vec<Row>,
    started: Instant,
    /// Run only steps whose name starts with one of these; empty runs all.
    only: Vec<String>,
    /// Print the names instead of running.
    list: bool,
    /// A step that the rest needs has failed.
    stopped: bool,
}

impl Report {
    /// A run of every step.
    pub fn new() -> Self {
        Self::only(Vec::new(), false)
    }

    /// A run of the steps whose names start with one of `only`; with `list`, of none.
    pub fn only(only: Vec<String>, list: bool) -> Self {
        Self {
            rows: Vec::new(),
            started: Instant::now(),
            only,
            list,
            stopped: false,
        }
    }

    /// Runs one step, unless it was not asked for.
    pub fn step(&mut self, name: &str, run: impl FnOnce() -> StepResult) {
        if self.list {
            println!("{name}");
            return;
        }
        if !self.only.is_empty() && !self.only.iter().any(|o| name.starts_with(o.as_str())) {
            return;
        }
        if self.stopped {
            let why = "not run: an earlier step that it needs failed".to_owned();
            self.row(name, Ending::Failed(why), Duration::ZERO);
            return;
        }
        println!(
            "\n=== {name} ({} into the run)",
            human(self.started.elapsed())
        );
        let _ = std::io::stdout().flush();
        let began = Instant::now();
        let ending = match run() {
            Ok(Done::Ran) => Ending::Passed,
            Ok(Done::Skipped(why)) => {
                println!("skipped: {why}");
                Ending::Skipped(why)
            }
            Err(problem) => {
                eprintln!("FAILED: {problem}");
                Ending::Failed(problem)
            }
        };
        self.row(name, ending, began.elapsed());
    }

    /// Runs a step without which the later ones mean nothing.
    pub fn must(&mut self, name: &str, run: impl FnOnce() -> StepResult) {
        let before = self.rows.len();
        self.step(name, run);
        if self.rows[before..]
            .iter()
            .any(|row| matches!(row.ending, Ending::Failed(_)))
        {
            self.stopped = true;
        }
    }

    fn row(&mut self, name: &str, ending: Ending, took: Duration) {
        self.rows.push(Row {
            name: name.to_owned(),
            ending,
            took,
        });
    }

    /// Prints the table; success when nothing failed and something ran.
    pub fn finish(self) -> ExitCode {
        if self.list {
            return ExitCode::SUCCESS;
        }
        let (mut passed, mut failed, mut skipped) = (0, 0, 0);
        println!("\n{:<34} {:>8}  result", "step", "time");
        for row in &self.rows {
            let result = match &row.ending {
                Ending::Passed => {
                    passed += 1;
                    "ok".to_owned()
                }
                Ending::Skipped(why) => {
                    skipped += 1;
                    format!("skipped: {why}")
                }
                Ending::Failed(why) => {
                    failed += 1;
                    format!("FAILED: {}", why.lines().next().unwrap_or_default())
                }
            };
            println!("{:<34} {:>8}  {result}", row.name, human(row.took));
        }
        println!("{:<34} {:>8}", "all", human(self.started.elapsed()));
        if passed + failed + skipped == 0 {
            eprintln!("no step has such a name; `--list` shows them");
            return ExitCode::FAILURE;
        }
        match skipped {
            0 => println!("{passed} passed, {failed} failed"),
            _ => println!("{passed} passed, {failed} failed, {skipped} skipped"),
        }
        if failed == 0 {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

fn human(took: Duration) -> String {
    match took.as_secs() {
        0 => format!("{} ms", took.as_millis()),
        s @ 1..60 => format!("{s} s"),
        s => format!("{}m {:02}s", s / 60, s % 60),
    }
}
