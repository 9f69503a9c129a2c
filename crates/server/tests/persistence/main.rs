//! Files: what is saved is there after a new start, here and on the real servers.
//!
//! Every test has servers and folders of its own.

mod backup;
mod data;
mod exchange;
mod log;
mod log_exchange;
mod preload;
mod renames;
mod saving;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use client::{Client, Reply};
use testkit::Server;

/// Threads that a server is tried with.
const THREADS: [&str; 2] = ["1", "2"];

/// A folder that is gone with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static FOLDERS: AtomicUsize = AtomicUsize::new(0);
        let number = FOLDERS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidemill-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn text(&self) -> &str {
        self.0.to_str().expect("a path that is text")
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ours() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_tidemill-server"))
}

/// A server that works in `folder`.
fn start(program: &Path, folder: &Folder, options: &[&str]) -> Server {
    let options = [&["--dir", folder.text()], options].concat();
    Server::start(program, &options).unwrap_or_else(|problem| panic!("{problem}"))
}

fn connect(server: &Server) -> Client {
    server.client().expect("the server accepts")
}

#[track_caller]
fn call(client: &mut Client, words: &[&[u8]]) -> Reply {
    let shown = || String::from_utf8_lossy(&words.concat()[..]).into_owned();
    client
        .call(words)
        .unwrap_or_else(|error| panic!("{}: {error}", shown()))
}

/// A command of words with blanks between; never an error.
#[track_caller]
fn ask(client: &mut Client, command: &str) -> Reply {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let reply = call(client, &words);
    assert!(!reply.is_error(), "{command}: {reply:?}");
    reply
}

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks until it is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "never: {what}");
        std::thread::yield_now();
    }
}

/// A field of INFO persistence; `None` where there is none.
fn persistence(client: &mut Client, field: &str) -> Option<String> {
    let text = ask(client, "INFO persistence").text().expect("text");
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.map(str::to_owned)
}

/// Waits until no rewrite of the log is under way or to come.
#[track_caller]
fn until_rewritten(client: &mut Client) {
    until("the log is rewritten", || {
        ["aof_rewrite_in_progress", "aof_rewrite_scheduled"]
            .iter()
            .all(|field| persistence(client, field).as_deref() == Some("0"))
    });
    let status = persistence(client, "aof_last_bgrewrite_status");
    assert_eq!(status.as_deref(), Some("ok"));
}
