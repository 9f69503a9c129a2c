//! Running other programs, and where things stand in the checkout.
//!
//! # Invariants
//! - A failure names the program, how it ended, and the command to repeat it by hand.
//! - Child processes get no toolchain variables from the `cargo` that started this program:
//!   `cargo +nightly` and Debian's own cargo would follow them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the outer `cargo run` leaves in the environment that would mislead an inner one.
const INHERITED: [&str; 6] = [
    "CARGO",
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_PATH",
    "RUSTUP_TOOLCHAIN",
    "LD_LIBRARY_PATH",
    "RUSTC",
];

/// The root of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask stands in the root")
        .to_path_buf()
}

/// Where cargo builds for this machine.
pub fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir),
        None => root().join("target"),
    }
}

/// The server that the tests start.
pub fn server() -> PathBuf {
    target().join("release/tidemill-server")
}

/// The command line tool, built as the server is.
pub fn cli() -> PathBuf {
    target().join("release/tidemill-cli")
}

/// The load generator, built as the server is.
pub fn benchmark() -> PathBuf {
    target().join("release/tidemill-benchmark")
}

/// The Python of the virtual environment.
pub fn python() -> PathBuf {
    root().join(".venv/bin/python")
}

/// The folder beside the checkout with the material that several checkouts share.
pub fn shared() -> PathBuf {
    root().join("../shared")
}

/// One program to run, in the root of the checkout.
pub struct Tool {
    command: Command,
    shown: String,
}

impl Tool {
    /// A program with its arguments, written as on a command line: split at blanks.
    pub fn new(line: &str) -> Self {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().expect("a program's name"));
        command.args(words).current_dir(root());
        for name in INHERITED {
            command.env_remove(name);
        }
        Self {
            command,
            shown: line.to_owned(),
        }
    }

    /// One more argument, taken as it is.
    pub fn arg(mut self, arg: impl AsRef<std::ffi::OsStr>) -> Self {
        self.shown.push(' ');
        let text = arg.as_ref().to_string_lossy().into_owned();
        let quoted = if text.contains(' ') {
            format!("'{text}'")
        } else {
            text
        };
        self.shown.push_str(&quoted);
        self.command.arg(arg);
        self
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        let text = value.as_ref().to_string_lossy().into_owned();
        let quoted = if text.contains(' ') {
            format!("'{text}'")
        } else {
            text
        };
        self.shown = format!("{name}={quoted} {}", self.shown);
        self.command.env(name, value);
        self
    }

    /// A variable of its environment that is not worth showing.
    pub fn env_quiet(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it with its output on ours.
    pub fn run(mut self) -> Result<(), String> {
        println!("$ {}", self.shown);
        let status = self.command.stdin(Stdio::null()).status();
        self.judge(status.map(|status| status.success().then_some(()).ok_or(status)))
    }

    /// Runs it with its output in a file.
    pub fn run_logged(mut self, log: &Path) -> Result<(), String> {
        let opened = std::fs::File::create(log).and_then(|file| Ok((file.try_clone()?, file)));
        let (out, err) = opened.map_err(|e| format!("{}: {e}", log.display()))?;
        let status = self
            .command
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .status();
        self.judge(status.map(|status| status.success().then_some(()).ok_or(status)))
    }

    /// Runs it and hands back what it printed.
    pub fn output(mut self) -> Result<String, String> {
        let output = self
            .command
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output();
        self.judge(output.map(|output| match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(output.status),
        }))
    }

    /// What it printed, if it runs and succeeds; complaints dropped.
    pub fn output_quiet(mut self) -> Option<String> {
        let output = self
            .command
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Whether it runs and succeeds, its output dropped.
    pub fn works(mut self) -> bool {
        let quiet = self
            .command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    }

    fn judge<T>(
        self,
        result: std::io::Result<Result<T, std::process::ExitStatus>>,
    ) -> Result<T, String> {
        match result {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(status)) => Err(format!("ended with {status}; to repeat it: {}", self.shown)),
            Err(error) => Err(format!("cannot be started ({error}): {}", self.shown)),
        }
    }
}

/// Whether a program of this name is on the path.
pub fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
}
