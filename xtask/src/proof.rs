//! Long random runs that prove what single tests cannot: the simulation of the engine, the
//! serializability of the server, and what is left of it when it is killed.

use crate::steps::{Done, StepResult};
use crate::tool::{Tool, server};

/// The runs of continuous integration: some 30 seconds.
const CI_SEED: u64 = 1;
const CI_RUNS: u64 = 8;
const CI_STEPS: u64 = 60_000;

/// Seconds of the history that continuous integration takes, and the threads of the server: twice
/// as many as its machines have cores.
const CI_SERIAL_SECONDS: u32 = 30;
const CI_SERIAL_THREADS: u32 = 4;

/// How often continuous integration kills the server.
const CI_SOAK_ROUNDS: u32 = 30;

/// Runs the simulation; without a seed with one that nobody has chosen.
pub fn sim(seed: Option<u64>, steps: u64, runs: u64) -> Result<(), String> {
    let seed = seed.unwrap_or_else(|| {
        let since = std::time::SystemTime::UNIX_EPOCH.elapsed();
        since.map_or(1, |since| since.as_secs())
    });
    Tool::new("cargo run --quiet --profile sim --package sim --")
        .arg("--seed")
        .arg(seed.to_string())
        .arg("--steps")
        .arg(steps.to_string())
        .arg("--runs")
        .arg(runs.to_string())
        .run()
}

/// The simulation with the seeds that continuous integration always runs.
pub fn simulation() -> StepResult {
    sim(Some(CI_SEED), CI_STEPS, CI_RUNS)?;
    Ok(Done::Ran)
}

/// Takes histories of the release build for so long and proves each.
pub fn serial(seconds: u32, threads: u32, seed: u64) -> Result<(), String> {
    Tool::new("cargo build --quiet --release --package server --bins").run()?;
    Tool::new("cargo test --quiet --package testkit --test serial -- --nocapture")
        .env("TIDEMILL_SERVER", server())
        .env("SERIAL_SECONDS", seconds.to_string())
        .env("SERIAL_THREADS", threads.to_string())
        .env("SERIAL_SEED", seed.to_string())
        .run()
}

/// The history that continuous integration takes.
pub fn serializability() -> StepResult {
    serial(CI_SERIAL_SECONDS, CI_SERIAL_THREADS, 1)?;
    Ok(Done::Ran)
}

/// Kills the release build so often, and checks what is there afterwards.
pub fn soak(rounds: u32, seed: u64) -> Result<(), String> {
    Tool::new("cargo build --quiet --release --package server --bins").run()?;
    Tool::new("cargo test --quiet --package testkit --test soak -- --nocapture")
        .env("TIDEMILL_SERVER", server())
        .env("SOAK_ROUNDS", rounds.to_string())
        .env("SOAK_SEED", seed.to_string())
        .run()
}

/// The rounds of continuous integration.
pub fn crashes() -> StepResult {
    soak(CI_SOAK_ROUNDS, 1)?;
    Ok(Done::Ran)
}
