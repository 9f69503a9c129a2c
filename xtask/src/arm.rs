//! `cargo xtask arm`: 64-bit Arm, built and tested on another machine.
//!
//! Debian's `rustc-web` is a newer Rust than the project's minimum that can cross-compile with
//! Debian's own Arm standard library; `qemu-user` runs the result. So no toolchain is fetched from
//! anywhere but Debian. On an Arm machine this task has nothing to add to `test` and says so.
//!
//! # Why not rustup's own target?
//! `rustup target add` downloads from a host that build machines behind a mirror often cannot
//! reach; Debian's packages come from where everything else came from.

use crate::machine::{apt, is_root};
use crate::steps::{Done, Report, StepResult};
use crate::test::walk;
use crate::tool::{Tool, root, target};
use std::path::PathBuf;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
const EMULATOR: &str = "qemu-aarch64 -L /usr/aarch64-linux-gnu";
const PACKAGES: [&str; 6] = [
    "rustc-web",
    "cargo-web",
    "libstd-rust-web-dev:arm64",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user",
];
/// Crates whose unit tests run under the emulator: where the bytes and the SIMD are.
const TESTED: &str = "-p resp -p structure -p engine";
/// Requests a row of the benchmark: the emulator is some twenty times slower.
const REQUESTS: u32 = 2_000;

/// Every step of `arm`.
pub fn all(report: &mut Report) {
    run(report, true);
}

/// The steps of `arm` for continuous integration: without the unit tests, whose time under the
/// emulator is not known to fit.
pub fn quick(report: &mut Report) {
    run(report, false);
}

fn run(report: &mut Report, with_unit_tests: bool) {
    if cfg!(target_arch = "aarch64") {
        report.step("arm", || {
            Ok(Done::Skipped(
                "this machine is 64-bit Arm: `cargo xtask test` is the test".into(),
            ))
        });
        return;
    }
    report.must("arm packages", packages);
    report.must("arm build", build);
    if with_unit_tests {
        report.step("arm unit tests", unit_tests);
    }
    report.step("arm walk-through", walkthrough);
}

fn packages() -> StepResult {
    let known = Tool::new("dpkg --print-foreign-architectures").output()?;
    if !known.lines().any(|line| line.trim() == "arm64") {
        if !is_root() {
            return Err("not root: run `sudo dpkg --add-architecture arm64` first".to_owned());
        }
        Tool::new("dpkg --add-architecture arm64").run()?;
    }
    println!("a minute or two, the first time");
    apt(&PACKAGES)?;
    Ok(Done::Ran)
}

fn out() -> PathBuf {
    target().join("arm")
}

/// Debian's cargo with everything that turns it to Arm.
fn cargo(line: &str) -> Tool {
    Tool::new(&format!("/usr/bin/cargo {line} --target {TRIPLE}"))
        .env("RUSTC", "/usr/bin/rustc")
        // What is tested here is behaviour: whole-program optimisation would take minutes.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_TARGET_DIR", out())
        .env_quiet("RUSTDOC", "/usr/bin/rustdoc")
        .env_quiet(
            "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER",
            "aarch64-linux-gnu-gcc",
        )
        .env_quiet("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", EMULATOR)
        .env_quiet("CC_aarch64_unknown_linux_gnu", "aarch64-linux-gnu-gcc")
        .env_quiet("PROPTEST_CASES", "16")
}

fn build() -> StepResult {
    cargo("build --release --workspace --exclude xtask --bins").run()?;
    Ok(Done::Ran)
}

/// Optimised, because the emulator is slow, but with the debug assertions on.
fn unit_tests() -> StepResult {
    cargo(&format!("test {TESTED} --lib"))
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "1")
        .env_quiet("CARGO_PROFILE_DEV_OPT_LEVEL", "1")
        .run()?;
    Ok(Done::Ran)
}

/// With one thread: more of them do not answer under the emulator, for a reason not found yet.
fn walkthrough() -> StepResult {
    let server = out().join(TRIPLE).join("release/tidemill-server");
    let server = format!(
        "{EMULATOR} {} --port {{port}} --dir {{dir}} --threads 1",
        server.display()
    );
    debug_assert!(root().join("testkit/walkthrough.py").is_file());
    walk(&server, REQUESTS)?;
    Ok(Done::Ran)
}
