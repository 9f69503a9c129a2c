//! Fuzzing: the targets of `fuzz/`, built with libFuzzer's instrumentation on nightly.
//!
//! The crate is laid out as `cargo fuzz` expects, but its builds are started here with the flags
//! that `cargo fuzz` would pass, so that nobody has to install it first. What a run learns is kept
//! in `fuzz/corpus/TARGET` (ignored by git); the input of a crash in `fuzz/artifacts/TARGET`.

use crate::machine;
use crate::steps::{Done, StepResult};
use crate::test::HOST;
use crate::tool::{Tool, root, target};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

const FLAGS: &str = "--cfg=fuzzing -Zsanitizer=address -Cdebug-assertions -Coverflow-checks \
                     -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                     -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                     -Cllvm-args=-sanitizer-coverage-pc-table \
                     -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Targets that run at the same time.
const LANES: usize = 2;

/// The names of the targets, sorted.
fn targets() -> Result<Vec<String>, String> {
    let dir = root().join("fuzz/fuzz_targets");
    let entries = std::fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .to_str()?
                .strip_suffix(".rs")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}

/// Prints the names of the targets.
pub fn list() -> Result<(), String> {
    targets()?.iter().for_each(|name| println!("{name}"));
    Ok(())
}

/// Runs one target.
pub fn run(target: &str, seconds: u32) -> Result<(), String> {
    if !targets()?.iter().any(|name| name == target) {
        return Err(format!("no target {target}; `cargo xtask fuzz` names them"));
    }
    if !machine::nightly() {
        return Err("fuzzing needs `rustup toolchain install nightly`".to_owned());
    }
    build()?;
    execute(target, seconds)
}

/// Runs every target for a short while: the step of `test`.
pub fn short(seconds: u32) -> StepResult {
    if !machine::nightly() {
        return machine::no_nightly();
    }
    build()?;
    let names = targets()?;
    let failed = Mutex::new(Vec::new());
    // Each takes one core.
    std::thread::scope(|scope| {
        for lane in names.chunks(names.len().div_ceil(LANES).max(1)) {
            let failed = &failed;
            scope.spawn(move || {
                for name in lane {
                    if let Err(problem) = execute(name, seconds) {
                        eprintln!("{problem}");
                        let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
                        failed.push(name.clone());
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failed.is_empty() {
        true => Ok(Done::Ran),
        false => Err(format!(
            "crashes in {}; inputs in fuzz/artifacts",
            failed.join(", ")
        )),
    }
}

fn out() -> PathBuf {
    target().join("fuzz")
}

fn build() -> Result<(), String> {
    Tool::new("cargo +nightly build --release --bins --manifest-path fuzz/Cargo.toml --target")
        .arg(HOST)
        .env("CARGO_TARGET_DIR", out())
        .env_quiet("RUSTFLAGS", FLAGS)
        .run()
}

fn execute(name: &str, seconds: u32) -> Result<(), String> {
    let corpus = root().join("fuzz/corpus").join(name);
    let artifacts = root().join("fuzz/artifacts").join(name);
    for dir in [&corpus, &artifacts] {
        std::fs::create_dir_all(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    }
    let program = out().join(HOST).join("release").join(name);
    let log = out().join(format!("{name}.log"));
    println!("{name}: {seconds} s");
    let result = Tool::new(&program.to_string_lossy())
        .arg(&corpus)
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg("-max_len=4096")
        .arg("-timeout=10")
        .arg("-rss_limit_mb=2048")
        .arg("-verbosity=0")
        .arg("-print_final_stats=1")
        .run_logged(&log);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    match &result {
        Ok(()) => text
            .lines()
            .filter(|line| line.contains("executed_units"))
            .for_each(|line| println!("{line}")),
        Err(_) => text.lines().for_each(|line| eprintln!("{line}")),
    }
    result
}
