//! Behaviour scripts of what only a server has, on ours at one and two threads and on the real
//! Redis where it is there.

use std::path::{Path, PathBuf};

use testkit::{Live, Server, files, oracle, parse, play};

fn play_all(name: &str, program: &Path, options: &[&str]) {
    let server = Server::start(program, options).unwrap_or_else(|problem| panic!("{problem}"));
    let mut target = Live::new(name, server);
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut failures = Vec::new();
    for (path, text) in files(&dir).expect("the scripts are readable") {
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let scripts = parse(&file, &text).unwrap_or_else(|problem| panic!("{problem}"));
        for script in scripts.iter().filter(|script| script.plays_on(name)) {
            failures.extend(play(script, &mut target).err());
        }
    }
    let texts: Vec<String> = failures.iter().map(ToString::to_string).collect();
    assert!(texts.is_empty(), "\n{}", texts.join("\n"));
}

fn ours() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_tidemill-server"))
}

const OPTIONS: [&str; 4] = [
    "--enable-debug-command",
    "yes",
    "--enable-protected-configs",
    "yes",
];

#[test]
fn scripts_hold_with_one_thread() {
    let options = [&OPTIONS[..], &["--threads", "1"]].concat();
    play_all("tidemill", &ours(), &options);
}

#[test]
fn scripts_hold_with_two_threads() {
    let options = [&OPTIONS[..], &["--threads", "2"]].concat();
    play_all("tidemill", &ours(), &options);
}

#[test]
fn scripts_hold_on_the_real_redis() {
    match oracle() {
        Some(program) => play_all("redis-8.10", &program, &OPTIONS),
        None => println!("no redis-8.10 here: `cargo xtask test` installs it"),
    }
}
