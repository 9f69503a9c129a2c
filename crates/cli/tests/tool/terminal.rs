//! The tool at a terminal of its own.

use crate::{OURS, reference};
use nix::pty::{Winsize, openpty};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long anything is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A program at a terminal of 50 rows and 160 columns.
pub struct Terminal {
    keys: File,
    child: Child,
    chunks: Receiver<Vec<u8>>,
    seen: Vec<u8>,
}

impl Terminal {
    pub fn start(program: impl AsRef<OsStr>, args: &[&str], env: &[(&str, &str)]) -> Self {
        let size = Winsize {
            ws_row: 50,
            ws_col: 160,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let pty = openpty(Some(&size), None).expect("a terminal");
        let stdio = || Stdio::from(pty.slave.try_clone().expect("a descriptor"));
        // Ctrl-C is a signal only to programs whose terminal it is.
        let child = Command::new("setsid")
            .args(["--ctty", "--wait"])
            .arg(program)
            .args(args)
            .env("TERM", "xterm")
            .env("PAGER", "cat")
            .env_remove("REDISCLI_AUTH")
            .envs(env.iter().copied())
            .stdin(stdio())
            .stdout(stdio())
            .stderr(stdio())
            .spawn()
            .expect("it starts");
        drop(pty.slave);
        let keys = File::from(pty.master);
        let mut screen = keys.try_clone().expect("a descriptor");
        let (sender, chunks) = channel();
        std::thread::spawn(move || {
            let mut chunk = [0; 4096];
            // A terminal whose last user has gone reads as an error.
            while let Ok(count @ 1..) = screen.read(&mut chunk) {
                if sender.send(chunk[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keys,
            child,
            chunks,
            seen: Vec::new(),
        }
    }

    /// Ours, with a home of its own and without colours.
    pub fn ours(args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut all = vec![("NO_COLOR", "1"), ("TIDEMILLCLI_HISTFILE", "/dev/null")];
        all.extend(env);
        Self::start(OURS, args, &all)
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("a terminal");
    }

    /// What was written before `text`, once that is there; the next call looks at what follows it.
    #[track_caller]
    pub fn await_text(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let plain = plain(&self.seen);
            if let Some(at) = plain.find(text) {
                self.seen = plain.as_bytes()[at + text.len()..].to_vec();
                return plain[..at].to_owned();
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(error) => panic!("{error}: no {text:?} in {plain:?}"),
            }
        }
    }

    /// What is written until the program ends, and its exit status.
    pub fn end(mut self) -> (String, Option<i32>) {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.seen.extend(chunk),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("no end: {:?}", plain(&self.seen)),
            }
        }
        let status = self.child.wait().expect("it was started");
        (plain(&self.seen), status.code())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Text without escape sequences.
pub fn plain(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::new();
    let mut rest = text.as_ref();
    while let Some(at) = rest.find("\x1b[") {
        plain.push_str(&rest[..at]);
        let after = &rest[at + 2..];
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    plain + rest
}

/// Runs a command at a terminal, and asks that Redis's tool writes the same there.
#[track_caller]
pub fn same(args: &[&str]) {
    let ours = Terminal::ours(args, &[]).end();
    if let Some(program) = reference() {
        let theirs = Terminal::start(program, args, &[]).end();
        assert_eq!(ours, theirs, "{args:?}\n left: ours, right: redis-cli");
    }
}
