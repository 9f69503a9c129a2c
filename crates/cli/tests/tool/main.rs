//! The tool beside Redis's: the same arguments and input, the same bytes out.
//!
//! Where `redis-cli` is on the path (Debian's `redis-tools`), every case runs through both and the
//! outputs and exit statuses are compared, into a pipe and at a terminal. Where it is not, a case
//! still must end. Servers are a fake one that says what it is told to, the real Redis if it is
//! installed, and ours if it is built.

mod fake;
mod modes;
mod prompt;
mod replies;
mod sessions;
mod terminal;
mod tls;
mod views;

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testkit::Server;

const OURS: &str = env!("CARGO_BIN_EXE_tidemill-cli");

/// What a program did.
#[derive(Debug, PartialEq, Eq)]
struct Ran {
    status: Option<i32>,
    out: String,
    err: String,
}

/// `redis-cli`, if it is there.
fn reference() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&path).map(|dir| dir.join("redis-cli"));
    found.find(|path| path.is_file())
}

/// Runs a program to its end. Text that is no UTF-8 shows with its bytes escaped.
fn run(program: impl AsRef<OsStr>, args: &[&str], input: &str, env: &[(&str, &str)]) -> Ran {
    let mut child = Command::new(program)
        .args(args)
        .env_remove("REDISCLI_AUTH")
        .envs(env.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    // Who does not read its input has closed it.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
        Ok(text) => text.to_owned(),
        Err(_) => bytes.escape_ascii().to_string(),
    };
    Ran {
        status: output.status.code(),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// Runs ours, and asks that Redis's does the same if it is there.
#[track_caller]
fn same_with(args: &[&str], input: &str, env: &[(&str, &str)]) -> Ran {
    let ours = run(OURS, args, input, env);
    if let Some(theirs) = reference().map(|program| run(program, args, input, env)) {
        assert_eq!(
            ours, theirs,
            "{args:?} < {input:?} {env:?}\n left: ours, right: redis-cli"
        );
    }
    ours
}

#[track_caller]
fn same(args: &[&str]) -> Ran {
    same_with(args, "", &[])
}

/// Ours alone.
fn ours(args: &[&str], input: &str) -> Ran {
    run(OURS, args, input, &[])
}

/// Every server that is there: the real Redis, and ours.
fn servers(options: &[&str]) -> Vec<Server> {
    let programs = [testkit::oracle(), testkit::our_server()];
    let programs = programs.into_iter().flatten();
    programs.map(|program| start(&program, options)).collect()
}

fn start(program: &Path, options: &[&str]) -> Server {
    Server::start(program, options).unwrap_or_else(|problem| panic!("{problem}"))
}

/// A closed port.
fn nobody() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener
        .local_addr()
        .expect("it is bound")
        .port()
        .to_string()
}
