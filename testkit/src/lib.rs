//! Behaviour written once as scripts, and the means to run it against anything that answers.
//!
//! A script says what a client sends and what it must be told, in the notation of the command line
//! tool. [`Script::parse`] reads it, [`play`] runs it against a [`Target`]: a server process
//! ([`Live`]) or the engine without any socket ([`InProcess`]). One text therefore
//! checks the engine, our server and the real Redis, and the three cannot drift apart unnoticed.
//! `docs/scripts.md` describes the notation.
//!
//! # Invariants
//! - A script passes only if every reply was expected: one that nobody awaited fails it.
//! - Nothing sleeps to let something happen: the runner waits on conditions, with a limit.
//! - A difference from the real server is written in the script, with its reason.
//!
//! # Why text and not Rust?
//! A text can be played against a server that shares no code with us, and whoever knows the
//! protocol can read it, write it and paste it from a terminal.
#![forbid(unsafe_code)]

mod folder;
mod in_process;
mod live;
mod pattern;
mod play;
mod quote;
mod render;
mod replay;
mod script;
pub mod serial;

pub use client::Reply;
pub use folder::Folder;
pub use in_process::{InProcess, Logged};
pub use live::{Live, Server, oracle, our_server, peer};
pub use play::{Failure, Target, play};
pub use quote::split;
pub use render::{render, write_quoted};
pub use replay::{Replay, shown};
pub use script::{Script, parse};

use std::path::{Path, PathBuf};

/// Every script file under a folder, with its text, in the order of their paths.
pub fn files(dir: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    let mut found = Vec::new();
    let mut folders = vec![dir.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "txt") {
                let text = std::fs::read_to_string(&path)?;
                found.push((path, text));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Plays one text of scripts against a target and panics with what differed: for tests that stand
/// beside the code. Indentation that all lines share is ignored.
#[track_caller]
pub fn check(target: &mut dyn Target, text: &str) {
    let scripts = match parse("check", text) {
        Ok(scripts) => scripts,
        Err(problem) => panic!("{problem}"),
    };
    for script in &scripts {
        if let Err(failure) = play(script, target) {
            panic!("\n{failure}");
        }
    }
}
