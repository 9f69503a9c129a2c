//! `tidemill-benchmark`: one load engine, several faces.
//!
//! Without a word of its own it stands in for `redis-benchmark`: its options, tests and texts. The
//! first word chooses another face. All of them run on [`load`].
//!
//! # Invariants
//! - A server that cannot be used is one line on standard error and exit code 1, at once.
//! - Nothing but a terminal is ever sent `\r` or colours, and no figure is `inf` or `nan`.
//! - Ctrl-C ends the load, not the report: what was measured is written.
#![forbid(unsafe_code)]

mod capacity;
mod doctor;
mod instance;
mod interrupt;
mod load;
mod memtier;
mod messages;
mod redis;
mod report;
mod words;
mod workload;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    if args.get(1).is_none_or(|face| face != "doctor") {
        raise_files();
    }
    let result = match args.get(1).map(String::as_str) {
        Some("capacity") => capacity::main(&args[1..]),
        Some("compare") => report::compare(&args[1..]),
        Some("doctor") => doctor::main(&args[1..]),
        Some("preset") => report::preset(&args[1..]),
        Some("report") => report::main(&args[1..]),
        Some("memtier") => memtier::main(&args[1..]),
        Some("messages") => messages::main(&args[1..]),
        _ => redis::main(&args),
    };
    match result {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Lets the process open as many files, which connections are, as it may; what it may is told when
/// it is not enough.
fn raise_files() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, all);
}
