//! Where the load goes: an address, and what every connection says first.

use client::{Client, Reply, Tls, TlsStream, Transport, encode};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

/// How long a connection and its first replies may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server's address as the user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A name or number, and a port.
    Tcp(String, u16),
    /// A socket in the file system.
    Unix(PathBuf),
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// A server and the session that each connection wants with it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where it listens.
    pub address: Address,
    /// With a password, as whom to log in; `default` when none.
    pub user: Option<String>,
    /// Log in with this.
    pub password: Option<String>,
    /// The database to select.
    pub db: u32,
    /// Speak RESP3.
    pub is_resp3: bool,
    /// Have the server track what is read.
    pub tracking: bool,
    /// Encrypts connections over TCP.
    pub tls: Option<Tls>,
}

impl Target {
    /// A server without a password.
    pub fn at(address: Address) -> Self {
        Self {
            address,
            user: None,
            password: None,
            db: 0,
            is_resp3: false,
            tracking: false,
            tls: None,
        }
    }

    /// Takes what a URI names: `redis://user:password@host:port/db`, every part but the scheme
    /// optional.
    pub fn apply_uri(&mut self, uri: &str) -> Result<(), String> {
        let wrong = || format!("Invalid URI: {uri}");
        let rest = match uri.split_once("://") {
            Some(("redis" | "valkey" | "tcp" | "tidemill", rest)) => rest,
            Some(("rediss" | "valkeys", _)) => {
                return Err(format!("{uri}: for TLS give --tls and a URI of redis"));
            }
            _ => return Err(wrong()),
        };
        let (authority, db) = rest.split_once('/').unwrap_or((rest, ""));
        let host = match authority.rsplit_once('@') {
            Some((login, host)) => {
                match login.split_once(':') {
                    Some(("", password)) => self.password = Some(percent_decoded(password)),
                    Some((user, password)) => {
                        self.user = Some(percent_decoded(user));
                        self.password = Some(percent_decoded(password));
                    }
                    None => self.password = Some(percent_decoded(login)),
                }
                host
            }
            None => authority,
        };
        let mut name = ("127.0.0.1".to_owned(), 6379);
        if let Address::Tcp(host, port) = &self.address {
            name = (host.clone(), *port);
        }
        let (host, port) = match host.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
            _ => (host, None),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if !host.is_empty() {
            host.clone_into(&mut name.0);
        }
        if let Some(port) = port {
            name.1 = port.parse().map_err(|_| wrong())?;
        }
        if !db.is_empty() {
            self.db = db.parse().map_err(|_| wrong())?;
        }
        self.address = Address::Tcp(name.0, name.1);
        Ok(())
    }

    /// The commands that a connection begins with.
    pub fn greetings(&self) -> Vec<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let mut all: Vec<Vec<String>> = Vec::new();
        match (&self.user, &self.password) {
            (Some(user), Some(password)) => all.push(words(&["AUTH", user, password])),
            (None, Some(password)) => all.push(words(&["AUTH", password])),
            (_, None) => {}
        }
        if self.db != 0 {
            all.push(words(&["SELECT", &self.db.to_string()]));
        }
        if self.is_resp3 {
            all.push(words(&["HELLO", "3"]));
        }
        if self.tracking {
            all.push(words(&["CLIENT", "TRACKING", "on"]));
        }
        all
    }

    /// The same as bytes, and how many replies they bring.
    pub fn greeting_bytes(&self) -> (Vec<u8>, u64) {
        let greetings = self.greetings();
        let mut bytes = Vec::new();
        for greeting in &greetings {
            encode(greeting, &mut bytes);
        }
        (bytes, greetings.len() as u64)
    }

    /// A client for what is asked beside the load, logged in; the error is one line for the user.
    pub fn client(&self) -> Result<Client, String> {
        let made = match &self.address {
            Address::Tcp(..) if self.tls.is_some() => {
                return self.greeted(Client::over(self.over_tls(&self.resolve()?)?));
            }
            Address::Tcp(host, port) => Client::connect((host.as_str(), *port)),
            Address::Unix(path) => Client::connect_unix(path),
        };
        self.greeted(made.map_err(|error| self.unreachable(&error.to_string()))?)
    }

    fn greeted(&self, mut client: Client) -> Result<Client, String> {
        for greeting in self.greetings() {
            match client.call(&greeting) {
                Ok(Reply::Error(text)) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    return Err(format!("Node {} replied with error: {text}", self.address));
                }
                Ok(_) => {}
                Err(error) => return Err(self.unreachable(&error.to_string())),
            }
        }
        Ok(client)
    }

    /// The first address of the name, looked up once.
    pub fn resolve(&self) -> Result<Resolved, String> {
        match &self.address {
            Address::Unix(path) => Ok(Resolved::Unix(path.clone())),
            Address::Tcp(host, port) => (host.as_str(), *port)
                .to_socket_addrs()
                .map_err(|error| self.unreachable(&error.to_string()))?
                .next()
                .map(Resolved::Tcp)
                .ok_or_else(|| self.unreachable("no such address")),
        }
    }

    /// A connection that has said and been answered its greeting, set not to block.
    pub fn connect(&self, at: &Resolved) -> Result<Socket, String> {
        let failed = |error: std::io::Error| self.unreachable(&plain(&error));
        let mut socket = match at {
            Resolved::Tcp(_) if self.tls.is_some() => Socket::Tls(Box::new(self.over_tls(at)?)),
            Resolved::Tcp(address) => {
                let socket = TcpStream::connect_timeout(address, PATIENCE).map_err(failed)?;
                socket.set_nodelay(true).map_err(failed)?;
                socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
                Socket::Tcp(socket)
            }
            Resolved::Unix(path) => {
                let socket = UnixStream::connect(path).map_err(failed)?;
                socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
                Socket::Unix(socket)
            }
        };
        let (bytes, replies) = self.greeting_bytes();
        if replies > 0 {
            socket.write_all(&bytes).map_err(failed)?;
            self.await_greeting(&mut socket, replies)?;
        }
        socket.set_nonblocking().map_err(failed)?;
        Ok(socket)
    }

    /// An encrypted connection; shaking hands may wait.
    fn over_tls(&self, at: &Resolved) -> Result<TlsStream, String> {
        let failed = |error: std::io::Error| self.unreachable(&plain(&error));
        let (Resolved::Tcp(address), Some(tls), Address::Tcp(host, _)) =
            (at, &self.tls, &self.address)
        else {
            return Err(self.unreachable("TLS is for TCP"));
        };
        let socket = TcpStream::connect_timeout(address, PATIENCE).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        socket.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        tls.connect(host, socket)
            .map_err(|why| self.unreachable(&why))
    }

    fn await_greeting(&self, socket: &mut Socket, replies: u64) -> Result<(), String> {
        let failed = |error: std::io::Error| self.unreachable(&plain(&error));
        let mut scanner = super::scan::Scanner::default();
        let mut seen = 0;
        let mut chunk = [0; 4096];
        while seen < replies {
            let count = match socket.read(&mut chunk) {
                Ok(0) => return Err(self.unreachable("Server closed the connection")),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(failed(error)),
            };
            let whole = scanner.feed(&chunk[..count], |_| seen += 1);
            whole.map_err(|_| self.unreachable("the reply is not RESP"))?;
        }
        match scanner.error() {
            text if text.is_empty() => Ok(()),
            text => Err(format!("Node {} replied with error: {text}", self.address)),
        }
    }

    /// A connection in the making: it is writable once it stands.
    pub fn begin_connect(&self, at: &Resolved) -> std::io::Result<Socket> {
        match at {
            Resolved::Unix(path) => {
                let socket = UnixStream::connect(path)?;
                socket.set_nonblocking(true)?;
                Ok(Socket::Unix(socket))
            }
            Resolved::Tcp(_) if self.tls.is_some() => {
                let socket = self.over_tls(at).map_err(std::io::Error::other)?;
                let socket = Socket::Tls(Box::new(socket));
                socket.set_nonblocking()?;
                Ok(socket)
            }
            Resolved::Tcp(address) => {
                let family = match address {
                    SocketAddr::V4(_) => AddressFamily::INET,
                    SocketAddr::V6(_) => AddressFamily::INET6,
                };
                let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
                let fd: OwnedFd =
                    rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
                match rustix::net::connect(&fd, address) {
                    Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
                    Err(error) => return Err(error.into()),
                }
                let socket = TcpStream::from(fd);
                socket.set_nodelay(true)?;
                Ok(Socket::Tcp(socket))
            }
        }
    }

    /// The one line for a server that cannot be talked to.
    pub fn unreachable(&self, why: &str) -> String {
        let why = why.split(" (os error").next().unwrap_or(why);
        format!("Could not connect to Redis at {}: {why}", self.address)
    }
}

/// The system's words for an error, without its number.
pub fn plain(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten();
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// An address that can be connected to without asking anybody.
#[derive(Debug, Clone)]
pub enum Resolved {
    /// Over TCP.
    Tcp(SocketAddr),
    /// In the file system.
    Unix(PathBuf),
}

/// A connected socket of either family.
#[derive(Debug)]
pub enum Socket {
    /// Over TCP.
    Tcp(TcpStream),
    /// In the file system.
    Unix(UnixStream),
    /// Over TCP, encrypted.
    Tls(Box<TlsStream>),
}

impl Socket {
    /// Whether a read takes less than what has come: the rest gives no event of its own.
    pub fn keeps_read(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Whether bytes that were written have not gone out.
    pub fn is_behind(&self) -> bool {
        matches!(self, Self::Tls(socket) if socket.is_behind())
    }

    fn set_nonblocking(&self) -> std::io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_nonblocking(true),
            Self::Unix(socket) => socket.set_nonblocking(true),
            Self::Tls(socket) => Transport::set_nonblocking(socket.as_ref(), true),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(socket) => socket.as_fd(),
            Self::Unix(socket) => socket.as_fd(),
            Self::Tls(socket) => socket.as_fd(),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buf),
            Self::Unix(socket) => socket.read(buf),
            Self::Tls(socket) => socket.read(buf),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buf: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(buf),
            Self::Unix(socket) => socket.write(buf),
            Self::Tls(socket) => socket.write(buf),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Tls(socket) => socket.flush(),
            Self::Tcp(_) | Self::Unix(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_names_what_it_names() {
        let mut target = Target::at(Address::Tcp("127.0.0.1".into(), 6379));
        target
            .apply_uri("redis://jo%40x:s%3Ac@example:7000/3")
            .expect("a URI");
        assert_eq!(target.address, Address::Tcp("example".into(), 7000));
        assert_eq!(target.user.as_deref(), Some("jo@x"));
        assert_eq!(target.password.as_deref(), Some("s:c"));
        assert_eq!(target.db, 3);
        let mut target = Target::at(Address::Tcp("127.0.0.1".into(), 6379));
        target.apply_uri("redis://[::1]:7").expect("a URI");
        assert_eq!(target.address, Address::Tcp("::1".into(), 7));
        assert!(
            Target::at(Address::Tcp("127.0.0.1".into(), 1))
                .apply_uri("http://x")
                .is_err()
        );
        assert!(
            Target::at(Address::Tcp("127.0.0.1".into(), 1))
                .apply_uri("redis://x:port")
                .is_err()
        );
    }
}
