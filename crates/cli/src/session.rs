//! A connection that can be made again: where to, as whom, and in which database and protocol.
//!
//! # Invariants
//! - A new connection is brought to the state that the last one had: the database that was
//!   selected, the protocol that was spoken, the user that was.
//! - Whatever fails on the way there is said once; the connection is used all the same, as far as
//!   the server lets it.

use crate::options::{Options, leading_integer, seconds};
use crate::out::{complain, io_text};
use crate::wait::{self, Woken};
use client::{Client, Error, Reply};
use client::{Tls, TlsOptions};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Redirections that are followed for one command.
const REDIRECTIONS_MAX: usize = 16;

/// As good as for ever: then waiting begins again.
const LONG: Duration = Duration::from_secs(3600);

/// Where a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    Tcp(String, u16),
    Unix(String),
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => f.write_str(path),
        }
    }
}

/// Who the user is: a name, if not the default one, and a password.
#[derive(Clone, Debug)]
pub struct Credentials {
    pub user: Option<Vec<u8>>,
    pub password: Vec<u8>,
}

/// What a call came to when it was no reply.
#[derive(Debug)]
pub enum Lost {
    /// The connection is of no use any more.
    Connection(Error),
    /// Ctrl-C was pressed.
    Interrupted,
}

impl From<Error> for Lost {
    fn from(error: Error) -> Self {
        Self::Connection(error)
    }
}

impl From<Lost> for crate::out::Failure {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Connection(error) => error.into(),
            Lost::Interrupted => Self::Said,
        }
    }
}

/// A connection and what is needed to make it again.
#[derive(Debug)]
pub struct Session {
    pub place: Place,
    /// The database that is selected.
    pub db: i64,
    pub resp3: bool,
    /// Between MULTI and EXEC.
    pub in_multi: bool,
    pub follow: bool,
    /// A reply that is under way is waited for though Ctrl-C was pressed.
    pub patient: bool,
    /// Connections that are made are said.
    verbose: bool,
    credentials: Option<Credentials>,
    timeout: Option<Duration>,
    family: Family,
    tls: Option<Tls>,
    client: Option<Client>,
    /// Pushes that came with replies and were not shown yet.
    pushes: Vec<Reply>,
    /// Where the last redirection led, with the slot.
    pub redirected: Option<(String, Place)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Any,
    First4,
    First6,
}

impl Session {
    /// From the command line; nothing is connected yet.
    pub fn new(options: &Options) -> Result<Self, String> {
        let place = match &options.socket {
            Some(path) => Place::Unix(path.clone()),
            None => {
                let port = options.port.as_deref().map_or(6379, leading_integer);
                let port = u16::try_from(port).map_err(|_| "Invalid server port.".to_owned())?;
                let host = options.host.as_deref().unwrap_or("127.0.0.1");
                Place::Tcp(host.to_owned(), port)
            }
        };
        let password = options.password.clone().map(String::into_bytes);
        let from_environment = || {
            use std::os::unix::ffi::OsStringExt;
            std::env::var_os("REDISCLI_AUTH").map(OsStringExt::into_vec)
        };
        let credentials = password
            .or_else(from_environment)
            .map(|password| Credentials {
                user: options.user.clone().map(String::into_bytes),
                password,
            });
        let wants_3 = options.resp3 || ((options.json || options.quoted_json) && !options.resp2);
        Ok(Self {
            place,
            db: options.db.as_deref().map_or(0, leading_integer),
            resp3: wants_3,
            in_multi: false,
            follow: options.cluster_mode,
            patient: false,
            verbose: options.verbose,
            credentials,
            timeout: options
                .timeout
                .as_deref()
                .map(seconds)
                .filter(|wait| !wait.is_zero()),
            family: match (options.ipv4, options.ipv6) {
                (true, _) => Family::First4,
                (_, true) => Family::First6,
                _ => Family::Any,
            },
            tls: match options.tls {
                true => Some(Tls::new(&TlsOptions {
                    insecure: options.insecure,
                    sni: options.sni.clone(),
                    cacert: options.cacert.clone(),
                    cacertdir: options.cacertdir.clone(),
                    cert: options.cert.clone(),
                    key: options.key.clone(),
                    ciphers: options.tls_ciphers.clone(),
                    ciphersuites: options.tls_ciphersuites.clone(),
                })?),
                false => None,
            },
            client: None,
            pushes: Vec::new(),
            redirected: None,
        })
    }

    /// Who a new connection is made as.
    pub fn set_credentials(&mut self, credentials: Credentials) {
        self.credentials = Some(credentials);
    }

    /// Connects, if it is not; the error is the line to say.
    pub fn connect(&mut self) -> Result<(), String> {
        if self.client.is_none() {
            let failed = |error| format!("Could not connect to Redis at {}: {error}", self.place);
            let client = self.open().map_err(failed)?;
            self.client = Some(client);
            self.in_multi = false;
            if self.verbose {
                let how = if self.tls.is_some() { " with TLS" } else { "" };
                complain(format!("Connected to {}{how}", self.place));
            }
            self.prepare();
        }
        Ok(())
    }

    /// Leaves for another server; the next command connects to it.
    pub fn move_to(&mut self, host: &str, port: &str) {
        let port = u16::try_from(leading_integer(port)).unwrap_or(0);
        self.place = Place::Tcp(host.to_owned(), port);
        self.disconnect();
    }

    /// Closes the connection; the next command makes another.
    pub fn disconnect(&mut self) {
        self.client = None;
        self.in_multi = false;
        self.pushes.clear();
    }

    fn open(&self) -> Result<Client, String> {
        let (host, port) = match &self.place {
            Place::Unix(path) => {
                let socket = UnixStream::connect(path).map_err(|error| io_text(&error))?;
                return Ok(Client::over(socket));
            }
            Place::Tcp(host, port) => (host, *port),
        };
        let found = (host.as_str(), port).to_socket_addrs();
        let mut found: Vec<SocketAddr> = found.map_err(|error| io_text(&error))?.collect();
        match self.family {
            Family::Any => {}
            Family::First4 => found.sort_by_key(SocketAddr::is_ipv6),
            Family::First6 => found.sort_by_key(SocketAddr::is_ipv4),
        }
        let mut failure = "no such address".to_owned();
        for address in found {
            let socket = match self.timeout {
                Some(wait) => TcpStream::connect_timeout(&address, wait),
                None => TcpStream::connect(address),
            };
            match socket {
                Ok(socket) => {
                    socket.set_nodelay(true).map_err(|error| io_text(&error))?;
                    let Some(tls) = &self.tls else {
                        return Ok(Client::over(socket));
                    };
                    // Shaking hands is part of connecting.
                    let wait = socket.set_read_timeout(self.timeout);
                    wait.map_err(|error| io_text(&error))?;
                    return Ok(Client::over(tls.connect(host, socket)?));
                }
                Err(error) => failure = io_text(&error),
            }
        }
        Err(failure)
    }

    /// Brings a new connection to where the last one was.
    fn prepare(&mut self) {
        let mut steps: Vec<(String, Vec<Vec<u8>>)> = Vec::new();
        if let Some(Credentials { user, password }) = &self.credentials {
            let mut auth = vec![b"AUTH".to_vec()];
            auth.extend(user.clone());
            auth.push(password.clone());
            steps.push(("AUTH".to_owned(), auth));
        }
        if self.db != 0 {
            let db = self.db.to_string();
            let select = vec![b"SELECT".to_vec(), db.clone().into_bytes()];
            steps.push((format!("SELECT {db}"), select));
        }
        if self.resp3 {
            let hello = vec![b"HELLO".to_vec(), b"3".to_vec()];
            steps.push(("HELLO 3".to_owned(), hello));
        }
        for (name, step) in steps {
            match self.call(&step) {
                Ok(Reply::Error(text)) => {
                    complain(format!("{name} failed: {}", String::from_utf8_lossy(&text)));
                    match step[0].as_slice() {
                        b"SELECT" => self.db = 0,
                        b"HELLO" => self.resp3 = false,
                        // Without it the rest is refused too.
                        _ => return,
                    }
                }
                Ok(_) => {}
                Err(Lost::Interrupted) => return self.disconnect(),
                Err(Lost::Connection(error)) => {
                    complain(format!("{name} failed: {}", crate::out::error_text(&error)));
                    return self.disconnect();
                }
            }
        }
    }

    fn client(&mut self) -> Result<&mut Client, Error> {
        self.client.as_mut().ok_or(Error::Closed)
    }

    /// What to wait on for more from the server.
    pub fn as_fd(&self) -> Option<BorrowedFd<'_>> {
        self.client.as_ref().map(Client::as_fd)
    }

    /// Hands over the connection, for who goes on with bytes.
    pub fn take_client(&mut self) -> Option<Client> {
        self.client.take()
    }

    pub fn send(&mut self, args: &[impl AsRef<[u8]>]) -> Result<(), Lost> {
        let sent = self.client()?.send(args);
        Ok(sent?)
    }

    /// Sends commands that are encoded already.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Lost> {
        let sent = self.client()?.send_bytes(bytes);
        Ok(sent?)
    }

    /// Whatever comes next, a push too, waiting until it does or Ctrl-C is pressed.
    pub fn receive(&mut self) -> Result<Reply, Lost> {
        loop {
            if !wait::catches() {
                match self.client()?.receive_within(LONG) {
                    Err(Error::Timeout) => continue,
                    result => return Ok(result?),
                }
            }
            if let Some(reply) = self.receive_now()? {
                return Ok(reply);
            }
            let patient = self.patient;
            let client = self.client()?;
            if patient {
                wait::patiently(client.as_fd()).map_err(Error::from)?;
                continue;
            }
            match wait::readable(&[client.as_fd()], None).map_err(Error::from)? {
                Woken::Interrupted => return Err(Lost::Interrupted),
                Woken::Ready(_) | Woken::Timeout => {}
            }
        }
    }

    /// What has come already, without waiting.
    pub fn receive_now(&mut self) -> Result<Option<Reply>, Lost> {
        match self.client()?.receive_within(Duration::ZERO) {
            Ok(reply) => Ok(Some(reply)),
            Err(Error::Timeout) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The reply to what was sent; pushes before it are kept for [`Self::take_pushes`].
    pub fn reply(&mut self) -> Result<Reply, Lost> {
        loop {
            match self.receive()? {
                push @ Reply::Push(_) => self.pushes.push(push),
                reply => return Ok(reply),
            }
        }
    }

    /// Pushes that came with replies.
    pub fn take_pushes(&mut self) -> Vec<Reply> {
        std::mem::take(&mut self.pushes)
    }

    /// A command and its reply, whoever the server says has it, in cluster mode.
    pub fn call(&mut self, args: &[impl AsRef<[u8]>]) -> Result<Reply, Lost> {
        self.redirected = None;
        self.send(args)?;
        let mut reply = self.reply()?;
        for _ in 0..REDIRECTIONS_MAX {
            let Some((asking, slot, place)) = self.redirection(&reply) else {
                break;
            };
            self.place = place;
            self.redirected = Some((slot, self.place.clone()));
            self.disconnect();
            if let Err(line) = self.connect() {
                complain(line);
                return Err(Lost::Connection(Error::Closed));
            }
            if asking {
                self.send(&["ASKING"])?;
                self.reply()?;
            }
            self.send(args)?;
            reply = self.reply()?;
        }
        Ok(reply)
    }

    /// Whether to ask first, the slot, and where to, if a reply is a redirection to follow.
    fn redirection(&self, reply: &Reply) -> Option<(bool, String, Place)> {
        let Reply::Error(text) = reply else {
            return None;
        };
        let text = std::str::from_utf8(text).ok().filter(|_| self.follow)?;
        let mut words = text.split(' ');
        let asking = match words.next() {
            Some("MOVED") => false,
            Some("ASK") => true,
            _ => return None,
        };
        let slot = words.next()?.parse::<u16>().ok()?.to_string();
        let place = words.next().filter(|text| !text.contains(char::is_control));
        let (host, port) = place?.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        // A node that does not know its own name leaves it out: it is the one that was asked.
        let host = match (host, &self.place) {
            ("", Place::Tcp(asked, _)) => asked.clone(),
            _ => host.to_owned(),
        };
        Some((asking, slot, Place::Tcp(host, port.parse().ok()?)))
    }
}
