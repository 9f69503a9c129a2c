//! The differential fuzzer of `testkit/diff`: built and run against a real server.
//!
//! Continuous integration plays one fixed seed, so that a failure is the change's doing and not the
//! dice's; other seeds are for whoever looks for more.

use crate::machine;
use crate::steps::{Done, StepResult};
use crate::tool::{Tool, server, target};
use std::path::PathBuf;
use std::thread::JoinHandle;

/// The seed of continuous integration, and how long it is played: some thirty thousand sequences on
/// an idle machine, of a seed that was clean for three times as many.
const SEED: u64 = 1;
const MINUTES: f64 = 5.0;
/// The server that it compares with.
const AGAINST: &str = "redis-8.10";

/// Builds both programs and plays.
pub fn run(seed: u64, minutes: f64, against: &str, more: &[String]) -> Result<(), String> {
    build()?;
    player(seed, minutes, against, more).run()
}

fn build() -> Result<(), String> {
    Tool::new("cargo build --release -p server -p diff").run()
}

fn player(seed: u64, minutes: f64, against: &str, more: &[String]) -> Tool {
    let program = target().join("release/diff");
    let mut tool = Tool::new(&program.to_string_lossy())
        .arg("--seed")
        .arg(seed.to_string())
        .arg("--minutes")
        .arg(minutes.to_string())
        .arg("--against")
        .arg(against);
    for word in more {
        tool = tool.arg(word);
    }
    tool.env("TIDEMILL_SERVER", server())
}

/// The step of `ci`, under way: it plays for a fixed time and leaves a core to others.
pub struct Playing(Option<JoinHandle<Result<(), String>>>);

/// Begins the step of `ci`. What is printed goes to a file until it ends.
pub fn begin() -> Playing {
    if machine::oracle().is_none() {
        return Playing(None);
    }
    // What another run left is not this one's.
    let _ = std::fs::remove_file(log());
    Playing(Some(std::thread::spawn(|| {
        build()?;
        player(SEED, MINUTES, AGAINST, &[]).run_logged(&log())
    })))
}

fn log() -> PathBuf {
    target().join("differences.log")
}

impl Playing {
    /// Waits for its end, and prints what it found.
    pub fn end(self) -> StepResult {
        let Some(playing) = self.0 else {
            return Ok(Done::Skipped(format!("no {AGAINST} here")));
        };
        let result = playing
            .join()
            .unwrap_or_else(|_| Err("the comparison ended in a panic".to_owned()));
        print!("{}", std::fs::read_to_string(log()).unwrap_or_default());
        result.map(|()| Done::Ran)
    }
}
