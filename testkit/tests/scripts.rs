//! Every behaviour script: in process, against the real Redis, and against our server at one and
//! two threads.
//!
//! `SCRIPT=getex cargo test -p testkit` plays only the scripts whose path or title holds the word.
//! A server that is not there is said and left out: the real Redis comes with `cargo xtask test`,
//! ours with `cargo build --release`.

use std::path::{Path, PathBuf};
use testkit::{InProcess, Live, Script, Server, Target, files, oracle, our_server, parse, play};

fn play_all(name: &str, program: Option<PathBuf>, options: &[&str]) {
    let Some(program) = program else {
        println!("no {name} here: `cargo xtask test` installs and builds what is missing");
        return;
    };
    let server = Server::start(&program, options).unwrap_or_else(|problem| panic!("{problem}"));
    play_on(&mut Live::new(name, server), |_, _| None);
}

/// Plays every script that is for this target, unless the target `lacks` something for it.
fn play_on<T: Target>(target: &mut T, lacks: impl Fn(&T, &Script) -> Option<String>) {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/engine/tests/scripts");
    let wanted = std::env::var("SCRIPT").unwrap_or_default();
    let name = target.name().to_owned();
    let (mut played, mut failures) = (0, Vec::new());
    for (path, text) in files(&dir).expect("the scripts are readable") {
        let file = path
            .strip_prefix(&dir)
            .unwrap_or(&path)
            .display()
            .to_string();
        let scripts = parse(&file, &text).unwrap_or_else(|problem| panic!("{problem}"));
        for script in scripts.iter().filter(|script| script.plays_on(&name)) {
            if !file.contains(&wanted) && !script.title.contains(&wanted) {
                continue;
            }
            if let Some(what) = lacks(target, script) {
                println!("left out, {file}: {:?} needs {what}", script.title);
                continue;
            }
            played += 1;
            failures.extend(play(script, target).err());
        }
    }
    println!("{played} scripts on {name}, {} failed", failures.len());
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(
        failures.is_empty(),
        "{} of {played} failed\n\n{}",
        texts.len(),
        texts.join("\n")
    );
    assert!(played > 0 || !wanted.is_empty(), "no script was found");
}

#[test]
fn scripts_hold_in_process() {
    play_on(&mut InProcess::new(), InProcess::lacks);
}

#[test]
fn scripts_hold_on_the_real_redis() {
    play_all("redis-8.10", oracle(), &["--enable-debug-command", "yes"]);
}

#[test]
fn scripts_hold_on_our_server_with_one_thread() {
    play_all(
        "tidemill",
        our_server(),
        &["--enable-debug-command", "yes", "--threads", "1"],
    );
}

#[test]
fn scripts_hold_on_our_server_with_two_threads() {
    play_all(
        "tidemill",
        our_server(),
        &["--enable-debug-command", "yes", "--threads", "2"],
    );
}
