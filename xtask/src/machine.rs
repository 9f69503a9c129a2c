//! What has to be on the machine: Debian packages, Python packages, the peers.
//!
//! Everything here is safe to repeat and does nothing where the thing is there already, so the
//! second run starts at once. Without root, or off Debian, it names what is missing and goes on
//! where the tools exist all the same.

use crate::steps::{Done, StepResult};
use crate::tool::{Tool, on_path, python, root, shared};
use std::path::PathBuf;

/// Debian packages that the tests need, each with a program or file that proves it is there.
const PACKAGES: &[(&str, &str)] = &[
    ("gcc", "cc"),
    ("g++", "c++"),
    ("redis-tools", "redis-benchmark"),
    ("procps", "ps"),
];

/// Python packages of the client and framework tests and the walk-through, newest always.
const PYTHON: &str = "redis pytest celery rq";

/// Installs Debian packages by name, given those that are missing.
pub fn apt(packages: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> = packages
        .iter()
        .copied()
        .filter(|name| !installed(name))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let line = format!(
        "apt-get install --yes --no-install-recommends {}",
        missing.join(" ")
    );
    if !on_path("apt-get") {
        return Err(format!(
            "no apt-get here: install what Debian calls {}",
            missing.join(", ")
        ));
    }
    if !is_root() {
        return Err(format!("not root: run `sudo {line}` and start again"));
    }
    Tool::new("apt-get update --quiet=2").run()?;
    Tool::new(&line)
        .arg("--quiet=2")
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
}

/// Whether a Debian package is installed; the name may carry an architecture.
pub fn installed(package: &str) -> bool {
    Tool::new("dpkg-query --show --showformat=${Status}")
        .arg(package)
        .output_quiet()
        .is_some_and(|status| status.ends_with("ok installed"))
}

/// Whether this process may install packages.
pub fn is_root() -> bool {
    Tool::new("id -u").output().is_ok_and(|id| id.trim() == "0")
}

/// Installs the Debian packages whose programs are not on the path.
pub fn packages() -> StepResult {
    let missing: Vec<&str> = PACKAGES
        .iter()
        .filter(|(_, program)| !on_path(program))
        .map(|(name, _)| *name)
        .collect();
    apt(&missing)?;
    println!("compiler, redis-cli and redis-benchmark are there");
    Ok(Done::Ran)
}

/// Installs the browser that opens the pages of reports in a test.
pub fn browser() -> StepResult {
    let names = ["chromium-headless-shell", "chromium", "google-chrome"];
    if !names.into_iter().any(on_path) {
        apt(&["chromium"])?;
    }
    Ok(Done::Ran)
}

/// Makes the virtual environment and brings its packages up to date.
pub fn python_packages() -> StepResult {
    if !python().is_file()
        || !Tool::new(&python().to_string_lossy())
            .arg("-mpip")
            .arg("-V")
            .works()
    {
        if !Tool::new("python3 -c")
            .arg("import ensurepip, venv")
            .works()
        {
            apt(&["python3", "python3-venv"])?;
        }
        Tool::new("python3 -m venv --clear .venv").run()?;
    }
    let line = format!(
        "{} -m pip install --quiet --disable-pip-version-check --upgrade {PYTHON}",
        python().display()
    );
    Tool::new(&line).run()?;
    Ok(Done::Ran)
}

/// Installs the packages of the framework tests in Node, where that is.
pub fn node_packages() -> StepResult {
    if !on_path("npm") {
        let why = "no npm on this machine: the frameworks in Node do not run";
        return Ok(Done::Skipped(why.to_owned()));
    }
    let folder = root().join("tests/frameworks/node");
    Tool::new("npm install --no-package-lock --no-audit --no-fund --silent --prefix")
        .arg(folder)
        .run()?;
    Ok(Done::Ran)
}

/// Installs the real servers that Tidemill is compared with.
pub fn peers() -> StepResult {
    let installer = shared().join("peers/install");
    if !installer.is_file() {
        let why = match oracle() {
            Some(_) => "no ../shared beside this checkout; the peers installed before are used",
            None => "no ../shared beside this checkout: comparisons with real servers do not run",
        };
        return Ok(Done::Skipped(why.to_owned()));
    }
    println!("a minute or two, the first time");
    // The installer calls `python3 -m pip`, which a bare system Python lacks.
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", root().join(".venv/bin").display());
    Tool::new("bash")
        .arg(installer)
        .env_quiet("PATH", path)
        .run()?;
    Ok(Done::Ran)
}

/// The real Redis that scripts are checked against, if it is installed.
pub fn oracle() -> Option<PathBuf> {
    let dir = match std::env::var_os("PEERS_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache/tidemill-peers"),
    };
    Some(dir.join("bin/redis-8.10")).filter(|path| path.is_file())
}

/// Whether the nightly toolchain is installed.
pub fn nightly() -> bool {
    Tool::new("rustup toolchain list")
        .output_quiet()
        .is_some_and(|list| list.lines().any(|line| line.starts_with("nightly")))
}

/// What a step says when it needs the nightly toolchain and there is none.
pub fn no_nightly() -> StepResult {
    Ok(Done::Skipped(
        "no nightly toolchain (`rustup toolchain install nightly`)".to_owned(),
    ))
}
