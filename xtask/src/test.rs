//! `cargo xtask test`: from a bare machine to every test run.
//!
//! The order is: install, build, then the tests from the cheapest to the slowest. Whatever needs
//! something that this machine cannot have (the nightly toolchain, `../shared`) says so in a line
//! and the rest runs.

use crate::fuzz;
use crate::machine;
use crate::steps::{Done, Report, StepResult};
use crate::tool::{Tool, benchmark, cli, on_path, python, root, server, target};

/// Requests a row of the walk-through's benchmark: some ten seconds for all of them.
const WALK_REQUESTS: u32 = 20_000;
/// The same on the real Redis, where the tools are what is tested.
const WALK_REQUESTS_ON_REDIS: u32 = 5_000;

/// The tools that Redis has.
pub const THEIRS: [&str; 2] = ["redis-cli", "redis-benchmark"];

/// Every step of `test`.
pub fn all(report: &mut Report, fuzz_seconds: u32) {
    report.must("packages", machine::packages);
    report.step("python", machine::python_packages);
    report.step("peers", machine::peers);
    report.step("browser", machine::browser);
    report.must("build", build);
    report.step("tests", tests);
    report.step("doc tests", doc_tests);
    report.step("sanitizer", sanitizer);
    report.step("fuzz", || fuzz::short(fuzz_seconds));
    report.step("python clients", || pytest("tests/clients"));
    report.step("node packages", machine::node_packages);
    report.step("frameworks", || pytest("tests/frameworks"));
    let ours = [cli(), benchmark()].map(|path| path.to_string_lossy().into_owned());
    for (whose, tools) in [
        ("Redis's tools", THEIRS),
        ("our tools", [&*ours[0], &*ours[1]]),
    ] {
        report.step(&format!("walk-through, {whose}, our server"), || {
            walkthrough(tools)
        });
        report.step(&format!("walk-through, {whose}, redis-8.10"), || {
            walkthrough_on_redis(tools)
        });
    }
}

fn build() -> StepResult {
    Tool::new("cargo build --release --workspace --exclude xtask --exclude sim --bins").run()?;
    // README's first command finds its program.
    Tool::new("cargo run --release --quiet -- --version").run()?;
    Ok(Done::Ran)
}

/// Unit, script and tidy tests. They find the built server through the environment.
fn tests() -> StepResult {
    let runner = match on_path("cargo-nextest") {
        true => "cargo nextest run --workspace --no-fail-fast",
        false => "cargo test --workspace --no-fail-fast --all-targets",
    };
    Tool::new(runner)
        .env("TIDEMILL_SERVER", server())
        .env("TIDEMILL_NEEDS_BROWSER", "1")
        .run()?;
    Ok(Done::Ran)
}

/// The examples in the documentation, which nextest leaves out.
fn doc_tests() -> StepResult {
    Tool::new("cargo test --workspace --doc --quiet").run()?;
    Ok(Done::Ran)
}

/// The data structures' own tests under AddressSanitizer: optimised, or they take ten times as
/// long, with the debug assertions on and fewer cases a property.
fn sanitizer() -> StepResult {
    if !machine::nightly() {
        return machine::no_nightly();
    }
    Tool::new("cargo +nightly test -p structure --lib --tests --quiet")
        .arg("--target")
        .arg(HOST)
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("PROPTEST_CASES", "16")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .env("CARGO_TARGET_DIR", target().join("asan"))
        .run()?;
    Ok(Done::Ran)
}

/// The machine that this program was built for: the only one the sanitizer runs are made on.
#[cfg(target_arch = "aarch64")]
pub const HOST: &str = "aarch64-unknown-linux-gnu";
/// The machine that this program was built for: the only one the sanitizer runs are made on.
#[cfg(not(target_arch = "aarch64"))]
pub const HOST: &str = "x86_64-unknown-linux-gnu";

fn pytest(tests: &str) -> StepResult {
    Tool::new(&python().to_string_lossy())
        .arg("-m")
        .arg("pytest")
        .arg("-q")
        .arg("-pno:cacheprovider")
        .arg(tests)
        .env("TIDEMILL_SERVER", server())
        .run()?;
    Ok(Done::Ran)
}

/// On our server: on one thread with Redis's tools, on two with ours.
fn walkthrough(tools: [&str; 2]) -> StepResult {
    let threads = if tools == THEIRS { 1 } else { 2 };
    let command = format!(
        "{} --port {{port}} --dir {{dir}} --threads {threads}",
        server().display()
    );
    walk(&command, tools, WALK_REQUESTS)?;
    Ok(Done::Ran)
}

/// On the real Redis, where it is installed.
fn walkthrough_on_redis(tools: [&str; 2]) -> StepResult {
    let Some(redis) = machine::oracle() else {
        return Ok(Done::Skipped("no redis-8.10 on this machine".to_owned()));
    };
    let command = format!("{} --port {{port}} --dir {{dir}}", redis.display());
    walk(&command, tools, WALK_REQUESTS_ON_REDIS)?;
    Ok(Done::Ran)
}

/// Runs the walk-through with a server command, a command line tool and a load generator, and a
/// number of requests a benchmark row.
pub fn walk(server: &str, [cli, benchmark]: [&str; 2], requests: u32) -> Result<(), String> {
    if !on_path("redis-benchmark") {
        return Err("no redis-benchmark: install Debian's redis-tools".to_owned());
    }
    Tool::new(&python().to_string_lossy())
        .arg(root().join("testkit/walkthrough.py"))
        .arg("--server")
        .arg(server)
        .arg("--cli")
        .arg(cli)
        .arg("--benchmark")
        .arg(benchmark)
        .arg("--requests")
        .arg(requests.to_string())
        .run()
}

/// Whether every file is formatted.
pub fn formatting() -> StepResult {
    Tool::new("cargo fmt --all --check")
        .run()
        .map_err(|e| format!("run `cargo fmt --all`; {e}"))?;
    Ok(Done::Ran)
}

/// Lints, warnings denied.
pub fn clippy() -> StepResult {
    Tool::new("cargo clippy --workspace --all-targets -- -D warnings").run()?;
    Ok(Done::Ran)
}
