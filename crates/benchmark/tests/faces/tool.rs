//! Running the program, and a server for it.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use testkit::{Reply, Server};

/// How long anything is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// Our server, or the real one where ours is not built; both take these options.
pub fn server(options: &[&str]) -> Server {
    let program = testkit::our_server()
        .or_else(testkit::oracle)
        .expect("`cargo build --release` makes a server for these tests");
    let mut all = vec!["--io-threads", "1", "--enable-debug-command", "yes"];
    all.extend_from_slice(options);
    Server::start(&program, &all).expect("a server")
}

/// The program of this crate.
pub fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemill-benchmark"))
}

/// A command that runs the program with what a line says.
pub fn command(line: &str) -> Command {
    let mut command = Command::new(program());
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run(line: &str) -> Output {
    command(line).output().expect("it can be started")
}

/// Standard output of a run that must succeed.
pub fn printed(line: &str) -> String {
    let output = run(line);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).expect("text")
}

/// How often the server has run a command.
pub fn calls(server: &Server, command: &str) -> u64 {
    let mut client = server.client().expect("a connection");
    let info = client.call(&["INFO", "commandstats"]).expect("a reply");
    let info = info.text().unwrap_or_default();
    let line = info.lines().find_map(|line| {
        line.strip_prefix(&format!("cmdstat_{command}:calls="))?
            .split(',')
            .next()
    });
    line.map_or(0, |number| number.parse().expect("a number"))
}

/// Waits until a condition holds.
pub fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The reply to one command.
pub fn ask(server: &Server, words: &[&str]) -> Reply {
    let mut client = server.client().expect("a connection");
    client.call(words).expect("a reply")
}
