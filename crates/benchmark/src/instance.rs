//! Servers that are started for a run, and ended with it.

use crate::load::{Address, Target};
use crate::words;
use client::Reply;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long a server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of a server's last words that are shown.
const LAST_WORDS_MAX: usize = 500;

/// A server process of ours on a free port, in a folder of its own; dropping it ends it.
#[derive(Debug)]
pub struct Instance {
    child: Child,
    dir: PathBuf,
    port: u16,
}

impl Instance {
    /// Starts a command line in which `{port}` and `{dir}` are filled in, and waits until the
    /// server answers.
    pub fn start(line: &str) -> Result<Self, String> {
        static STARTED: AtomicUsize = AtomicUsize::new(0);
        if !line.contains("{port}") {
            return Err(format!("{line}: does not say where the {{port}} goes"));
        }
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidemill-benchmark-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&dir).map_err(|error| format!("{}: {error}", dir.display()))?;
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(|error| format!("no free port: {error}"))?
            .port();
        let words = words::split(line).ok_or_else(|| format!("{line}: a quote without end"))?;
        let fill = |word: &String| {
            word.replace("{port}", &port.to_string())
                .replace("{dir}", &dir.display().to_string())
        };
        let words: Vec<String> = words.iter().map(fill).collect();
        let (program, args) = words.split_first().ok_or("the server's command is empty")?;
        let log = std::fs::File::create(dir.join("log"));
        let log = log.and_then(|log| Ok((log.try_clone()?, log)));
        let (out, err) = log.map_err(|error| format!("{}: {error}", dir.display()))?;
        let child = Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .spawn()
            .map_err(|error| {
                let _ = std::fs::remove_dir_all(&dir);
                format!("{program}: {error}")
            })?;
        let mut instance = Self { child, dir, port };
        instance
            .await_answer()
            .map_err(|why| format!("{line}: {why}"))?;
        Ok(instance)
    }

    fn await_answer(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended with {status}: {}", self.last_words()));
            }
            let pong = self
                .target()
                .client()
                .ok()
                .and_then(|mut c| c.call(&["PING"]).ok());
            // What keeps no data may answer anything; one that loads its data is not ready.
            match pong {
                Some(Reply::Error(text)) if text.starts_with(b"LOADING") => {}
                Some(_) => return Ok(()),
                None => {}
            }
            if Instant::now() > end || crate::interrupt::is_set() {
                return Err(format!("does not answer: {}", self.last_words()));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(self.dir.join("log")).unwrap_or_default();
        let mut from = log.len().saturating_sub(LAST_WORDS_MAX);
        while !log.is_char_boundary(from) {
            from += 1;
        }
        log[from..].trim().to_owned()
    }

    /// Where it listens.
    pub fn target(&self) -> Target {
        Target::at(Address::Tcp("127.0.0.1".to_owned(), self.port))
    }

    /// Processor time of all its threads so far; `None` where the system does not tell.
    pub fn cpu(&self) -> Option<Duration> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let mut sum = Duration::ZERO;
        for task in tasks {
            let text = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            sum += Duration::from_nanos(text.split(' ').next()?.parse().ok()?);
        }
        Some(sum)
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
