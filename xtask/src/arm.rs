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
use crate::test::{THEIRS, walk};
use crate::tool::{Tool, target};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";
/// The root is where Debian puts the C library for Arm, with its loader, as a dependency of Rust's.
/// The cross compiler brings another build of both below `/usr/aarch64-linux-gnu`. A program
/// started with that loader still finds the first library, and the two disagree about what they
/// share: with one thread all seems well, and making a second one never ends.
const EMULATOR: &str = "qemu-aarch64 -L /";
const PACKAGES: [&str; 6] = [
    "rustc-web",
    "cargo-web",
    "libstd-rust-web-dev:arm64",
    "gcc-aarch64-linux-gnu",
    "libc6-dev-arm64-cross",
    "qemu-user",
];
/// What all is built with: one profile, so that the dependencies are compiled once for binaries and
/// tests. Compiling takes longer than running here, so only `structure` is optimised, as in `dev`;
/// debug assertions are on in the server too. Optimised, all took twice as long.
const PROFILE: &str = "emulated";
/// Crates whose unit tests run under the emulator: all that the server is made of.
const TESTED: &str = "-p resp -p structure -p command -p engine -p server";
/// Requests a row of the benchmark: the emulator is some twenty times slower.
const REQUESTS: u32 = 2_000;

/// Every step of `arm`.
pub fn all(report: &mut Report) {
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
    report.step("arm unit tests", unit_tests);
    report.step("arm scripts", scripts);
    let ours = ["tidemill-cli", "tidemill-benchmark"]
        .map(|name| format!("{EMULATOR} '{}'", built(name).display()));
    for (threads, tools) in [(1, THEIRS), (2, [&*ours[0], &*ours[1]])] {
        report.step(&format!("arm walk-through, threads {threads}"), || {
            walkthrough(threads, tools)
        });
    }
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

/// A program that starts the built server under the emulator, for whoever wants a single path.
fn server() -> PathBuf {
    out().join("tidemill-server")
}

/// A program for Arm.
fn built(name: &str) -> PathBuf {
    out().join(TRIPLE).join(PROFILE).join(name)
}

/// Debian's cargo with everything that turns it to Arm.
fn cargo(line: &str) -> Tool {
    Tool::new(&format!(
        "/usr/bin/cargo {line} --profile {PROFILE} --target {TRIPLE}"
    ))
    .env("RUSTC", "/usr/bin/rustc")
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
    cargo("build --workspace --exclude xtask --exclude sim --exclude diff --bins").run()?;
    let binary = built("tidemill-server");
    let text = format!("#!/bin/sh\nexec {EMULATOR} '{}' \"$@\"\n", binary.display());
    std::fs::write(server(), text)
        .and_then(|()| std::fs::set_permissions(server(), Permissions::from_mode(0o755)))
        .map_err(|error| format!("{}: {error}", server().display()))?;
    Ok(Done::Ran)
}

fn unit_tests() -> StepResult {
    cargo(&format!("test {TESTED} --lib")).run()?;
    Ok(Done::Ran)
}

/// Every behaviour script on the emulated server, at one and at two threads, played by the same
/// test program that `test` has built: so for the whole workspace, which decides the features.
fn scripts() -> StepResult {
    Tool::new("cargo test --workspace --test scripts scripts_hold_on_our_server")
        .env("TIDEMILL_SERVER", server())
        .run()?;
    Ok(Done::Ran)
}

/// With Redis's tools or ours.
fn walkthrough(threads: u32, tools: [&str; 2]) -> StepResult {
    let command = format!(
        "{} --port {{port}} --dir {{dir}} --threads {threads}",
        server().display()
    );
    walk(&command, tools, REQUESTS)?;
    Ok(Done::Ran)
}
