//! Real server processes as targets.
//!
//! A [`Server`] is started on a free port with a folder of its own and is ended by its process id
//! when dropped. [`Live`] plays scripts against it; between scripts it closes the connections and
//! empties the server instead of starting a new one.

use crate::play::Target;
use client::{Client, Error, Reply};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long anything is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a condition.
const LOOK: Duration = Duration::from_millis(1);

/// The real Redis, where `../shared/peers/install` has put it.
pub fn oracle() -> Option<PathBuf> {
    peer("redis-8.10")
}

/// A real server of this name and version, from the same place.
pub fn peer(name: &str) -> Option<PathBuf> {
    let dir = match std::env::var_os("PEERS_DIR") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".cache/tidemill-peers"),
    };
    Some(dir.join("bin").join(name)).filter(|path| path.is_file())
}

/// The built `tidemill-server`: named by `TIDEMILL_SERVER`, else where cargo puts release builds.
pub fn our_server() -> Option<PathBuf> {
    let path = match (
        std::env::var_os("TIDEMILL_SERVER"),
        std::env::var_os("CARGO_TARGET_DIR"),
    ) {
        (Some(path), _) => PathBuf::from(path),
        (None, Some(dir)) => PathBuf::from(dir).join("release/tidemill-server"),
        (None, None) => {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/release/tidemill-server")
        }
    };
    Some(path).filter(|path| path.is_file())
}

/// A server process of ours, ended when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    dir: PathBuf,
    /// Where it listens, on 127.0.0.1.
    pub port: u16,
}

impl Server {
    /// Starts a program that takes Redis's options and waits until it answers.
    pub fn start(program: &Path, options: &[&str]) -> Result<Self, String> {
        let mut server = Self::launch(program, options)?;
        server
            .await_ready(false)
            .map_err(|why| format!("{}: {why}", program.display()))?;
        Ok(server)
    }

    /// The same, but that it loads its data is an answer too.
    pub fn start_loading(program: &Path, options: &[&str]) -> Result<Self, String> {
        let mut server = Self::launch(program, options)?;
        server
            .await_ready(true)
            .map_err(|why| format!("{}: {why}", program.display()))?;
        Ok(server)
    }

    fn launch(program: &Path, options: &[&str]) -> Result<Self, String> {
        static SERVERS: AtomicUsize = AtomicUsize::new(0);
        let number = SERVERS.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tidemill-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(|e| format!("no free port: {e}"))?
            .port();
        let log = std::fs::File::create(dir.join("log")).map_err(|e| e.to_string())?;
        let errors = log.try_clone().map_err(|e| e.to_string())?;
        let child = Command::new(program)
            .args([
                "--port",
                &port.to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--dir",
            ])
            .arg(&dir)
            .args(options)
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            .spawn()
            .map_err(|e| format!("{}: {e}", program.display()))?;
        Ok(Self { child, dir, port })
    }

    fn await_ready(&mut self, may_load: bool) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended with {status}:\n{}", self.log()));
            }
            let pong = self
                .client()
                .ok()
                .and_then(|mut client| client.call(&["PING"]).ok());
            let is_ready = match pong {
                Some(Reply::Status(text)) => text == b"PONG",
                // With a password set, that it asks for one is an answer too.
                Some(Reply::Error(text)) => {
                    text.starts_with(b"NOAUTH") || may_load && text.starts_with(b"LOADING")
                }
                _ => false,
            };
            if is_ready {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("does not answer PING:\n{}", self.log()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Where it works: gone with it.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has ended by itself.
    pub fn await_end(&mut self) -> Result<std::process::ExitStatus, String> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().map_err(|e| e.to_string())? {
                return Ok(status);
            }
            if Instant::now() > end {
                return Err(format!("does not end:\n{}", self.log()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// A new connection.
    pub fn client(&self) -> Result<Client, Error> {
        let mut client = Client::connect(("127.0.0.1", self.port))?;
        client.set_timeout(PATIENCE);
        Ok(client)
    }

    /// Bytes of memory that the process has resident, as the system counts.
    pub fn resident_bytes(&self) -> Option<u64> {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).ok()?;
        let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
        Some(pages * 4096)
    }

    /// What it has printed.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// A server process as the target of scripts.
pub struct Live {
    name: String,
    server: Server,
    /// Our own connection, for what is between scripts; opened when needed and closed at once, so
    /// that scripts which count clients see only theirs.
    connections: Vec<Option<Client>>,
}

impl Live {
    /// Plays on this server under a name that scripts know.
    pub fn new(name: &str, server: Server) -> Self {
        Self {
            name: name.to_owned(),
            server,
            connections: Vec::new(),
        }
    }

    /// The server.
    pub fn server(&self) -> &Server {
        &self.server
    }

    fn control(&self, args: &[&str]) -> Result<Reply, String> {
        let ask = || self.server.client()?.call(args);
        match ask() {
            Ok(Reply::Error(text)) => Err(format!(
                "{}: {}",
                args.join(" "),
                String::from_utf8_lossy(&text)
            )),
            Ok(reply) => Ok(reply),
            Err(error) => Err(format!(
                "{}: {error}\n{}",
                args.join(" "),
                self.server.log()
            )),
        }
    }

    /// A number from `INFO clients`.
    fn clients(&self, field: &str) -> Result<usize, String> {
        let info = self
            .control(&["INFO", "clients"])?
            .text()
            .unwrap_or_default();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        line.and_then(|number| number.trim().parse().ok())
            .ok_or_else(|| format!("no {field}"))
    }

    fn await_clients(&self, field: &str, wanted: usize) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        loop {
            let now = self.clients(field)?;
            if now == wanted {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(format!("{field} is {now}, not {wanted}"));
            }
            std::thread::sleep(LOOK);
        }
    }

    fn client(&mut self, connection: usize) -> Result<&mut Client, String> {
        let slot = self
            .connections
            .get_mut(connection)
            .and_then(Option::as_mut);
        slot.ok_or_else(|| "the connection is closed".to_owned())
    }
}

impl Target for Live {
    fn name(&self) -> &str {
        &self.name
    }

    fn reset(&mut self) -> Result<(), String> {
        self.connections.clear();
        // The connection that asks is the one that stays.
        self.await_clients("connected_clients", 1)?;
        self.control(&["FLUSHALL"]).map(drop)
    }

    fn configure(&mut self, name: &str, value: &str) -> Result<String, String> {
        let old = self.control(&["CONFIG", "GET", name])?;
        let old = old
            .field(name)
            .and_then(Reply::text)
            .ok_or("no such directive")?;
        self.control(&["CONFIG", "SET", name, value])?;
        Ok(old)
    }

    fn connect(&mut self) -> Result<usize, String> {
        let client = self
            .server
            .client()
            .map_err(|e| format!("{e}\n{}", self.server.log()))?;
        self.connections.push(Some(client));
        Ok(self.connections.len() - 1)
    }

    fn send(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<(), String> {
        self.client(connection)?
            .send(args)
            .map_err(|e| e.to_string())
    }

    fn receive(&mut self, connection: usize) -> Result<Reply, String> {
        self.client(connection)?
            .receive()
            .map_err(|e| e.to_string())
    }

    fn pending(&mut self, connection: usize) -> Result<Option<Reply>, String> {
        match self.client(connection)?.receive_within(Duration::ZERO) {
            Ok(reply) => Ok(Some(reply)),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn await_blocked(&mut self, clients: usize) -> Result<(), String> {
        self.await_clients("blocked_clients", clients)
    }

    fn close(&mut self, connection: usize) -> Result<(), String> {
        let open = self.connections.iter().flatten().count();
        self.connections[connection] = None;
        self.await_clients("connected_clients", open)
    }

    /// A live server has the machine's clock: its time passes by waiting.
    fn advance(&mut self, ms: u64) {
        std::thread::sleep(Duration::from_millis(ms));
    }
}
