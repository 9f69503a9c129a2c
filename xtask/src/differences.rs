//! The differential fuzzer of `testkit/diff`: built and run against a real server.
//!
//! Continuous integration plays one fixed seed, so that a failure is the change's doing and not the
//! dice's; other seeds are for whoever looks for more.

use crate::machine;
use crate::steps::{Done, StepResult};
use crate::tool::{Tool, server, target};

/// The seed of continuous integration, and how long it is played: some thirty thousand sequences on
/// an idle machine, of a seed that was clean for three times as many.
const SEED: u64 = 1;
const MINUTES: f64 = 5.0;
/// The server that it compares with.
const AGAINST: &str = "redis-8.10";

/// Builds both programs and plays.
pub fn run(seed: u64, minutes: f64, against: &str, more: &[String]) -> Result<(), String> {
    Tool::new("cargo build --release -p server -p diff").run()?;
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
    tool.env("TIDEMILL_SERVER", server()).run()
}

/// The step of `ci`.
pub fn short() -> StepResult {
    if machine::oracle().is_none() {
        return Ok(Done::Skipped(format!("no {AGAINST} here")));
    }
    run(SEED, MINUTES, AGAINST, &[])?;
    Ok(Done::Ran)
}
