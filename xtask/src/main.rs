//! The project's own tasks: `cargo xtask TASK`.
//!
//! Two of them matter most. `test` prepares a bare machine and runs every test; `ci` is that plus
//! formatting, lints, dependency checks and the Arm job, and is exactly what `.ci/run` runs. Each
//! task is a list of named steps (`steps`), so every long run ends with the same table.
//!
//! # Why not shell scripts or make?
//! A step has to say what is missing and what to do about it, skip when it may, and count. That is
//! a program, and the people who change it read Rust already.
#![forbid(unsafe_code)]

mod arm;
mod compat;
mod deny;
mod differences;
mod fuzz;
mod machine;
mod pages;
mod proof;
mod steps;
mod test;
mod tidy;
mod tool;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use steps::Report;

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Tidemill's own tasks",
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Install what the tests need, build, and run every test.
    Test {
        /// Run only these steps (their first words; `--list` names them).
        steps: Vec<String>,
        /// Name the steps and stop.
        #[arg(long)]
        list: bool,
        /// Seconds that each fuzz target runs.
        #[arg(long, default_value_t = 10)]
        fuzz_seconds: u32,
    },
    /// What continuous integration runs: test, formatting, lints, dependencies, arm.
    Ci,
    /// Build for 64-bit Arm and test under an emulator.
    Arm {
        /// Run only these steps.
        steps: Vec<String>,
    },
    /// Check the house rules: crate edges, headers, line lengths, leftovers.
    Tidy,
    /// Print what the real servers have and ours lacks or does differently.
    Compat,
    /// Check licences, bans and sources of the dependencies.
    Deny,
    /// Write the generated files anew.
    Gen,
    /// Run the engine under simulation: random commands, a fake clock, and every check between.
    Sim {
        /// What chance begins with; the run is repeated by it.
        #[arg(long)]
        seed: Option<u64>,
        /// Steps of a run.
        #[arg(long, default_value_t = 200_000)]
        steps: u64,
        /// How many runs, with one seed after the other.
        #[arg(long, default_value_t = 1)]
        runs: u64,
    },
    /// Prove a history of the real server strictly serializable.
    Serial {
        /// How long.
        #[arg(long, default_value_t = 1)]
        minutes: u32,
        /// Threads of the server.
        #[arg(long, default_value_t = 4)]
        threads: u32,
        /// What chance begins with; threads and time do the rest.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Kill the server again and again and look whether what it acknowledged is there.
    Soak {
        /// How often.
        #[arg(long, default_value_t = 300)]
        rounds: u32,
        /// What chance begins with; threads and time do the rest.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Play made-up commands on our server and a real one and compare every reply; `--help` after
    /// `--` lists what else it takes.
    Diff {
        /// Where the commands come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// How long to play.
        #[arg(long, default_value_t = 5.0)]
        minutes: f64,
        /// The real server: redis-8.10 or valkey-9.1.
        #[arg(long, default_value = "redis-8.10")]
        against: String,
        /// More options of the fuzzer.
        #[arg(last = true)]
        more: Vec<String>,
    },
    /// Fuzz one target, or name the targets.
    Fuzz {
        /// The target; left out, the targets are listed.
        target: Option<String>,
        /// How long to run.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
}

fn main() -> ExitCode {
    let mut report;
    match Cli::parse().task {
        Task::Test {
            steps,
            list,
            fuzz_seconds,
        } => {
            report = Report::only(steps, list);
            test::all(&mut report, fuzz_seconds);
        }
        Task::Ci => {
            report = Report::new();
            test::all(&mut report, 10);
            report.step("formatting", test::formatting);
            report.step("clippy", test::clippy);
            report.step("dependencies", deny::check);
            report.step("compat", compat::check);
            report.step("simulation", proof::simulation);
            report.step("serializability", proof::serializability);
            report.step("crashes", proof::crashes);
            // The emulator keeps one core busy at most.
            let differences = differences::begin();
            arm::all(&mut report);
            report.step("differences, beside those", || differences.end());
        }
        Task::Arm { steps } => {
            report = Report::only(steps, false);
            report.must("packages", machine::packages);
            report.step("python", machine::python_packages);
            arm::all(&mut report);
        }
        Task::Tidy => return one(tidy::check()),
        Task::Compat => return one(compat::print()),
        Task::Deny => return one(deny::check().map(drop)),
        Task::Gen => return one(pages::write()),
        Task::Sim { seed, steps, runs } => return one(proof::sim(seed, steps, runs)),
        Task::Serial {
            minutes,
            threads,
            seed,
        } => return one(proof::serial(minutes * 60, threads, seed)),
        Task::Soak { rounds, seed } => return one(proof::soak(rounds, seed)),
        Task::Diff {
            seed,
            minutes,
            against,
            more,
        } => return one(differences::run(seed, minutes, &against, &more)),
        Task::Fuzz { target: None, .. } => return one(fuzz::list()),
        Task::Fuzz {
            target: Some(target),
            seconds,
        } => return one(fuzz::run(&target, seconds)),
    }
    report.finish()
}

/// The exit code of a task that is a single step.
fn one(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}
