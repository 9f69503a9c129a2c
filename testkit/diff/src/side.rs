//! One of the two servers, with the connections of the sequence.
//!
//! The control connection asks what no client of the sequence may: how many wait, what the
//! keyspace holds. It is not counted among the sequence's connections.

use crate::sequence::Traits;
use crate::users;
use client::{Client, Error, Reply};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use testkit::Server;

/// How long a reply is waited for before the server is said to hang.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// A server and its clients.
pub struct Side {
    /// What scripts call it.
    pub name: String,
    program: PathBuf,
    options: Vec<String>,
    pub server: Server,
    pub control: Client,
    clients: Vec<Option<Client>>,
}

/// Why a side gave no reply: a finding if it is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Silence {
    Hangs,
    Closed,
    Nonsense,
}

impl From<Error> for Silence {
    fn from(error: Error) -> Self {
        match error {
            Error::Timeout => Self::Hangs,
            Error::Protocol(_) => Self::Nonsense,
            _ => Self::Closed,
        }
    }
}

impl std::fmt::Display for Silence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Hangs => "(no reply in time)",
            Self::Closed => "(the connection is closed)",
            Self::Nonsense => "(not RESP)",
        })
    }
}

impl Side {
    /// Starts the server and connects.
    pub fn start(
        name: &str,
        program: PathBuf,
        options: Vec<String>,
        connections: usize,
    ) -> Result<Self, String> {
        let words: Vec<&str> = options.iter().map(String::as_str).collect();
        let server = Server::start(&program, &words)?;
        let control = control(&server)?;
        let mut side = Self {
            name: name.to_owned(),
            program,
            options,
            server,
            control,
            clients: (0..connections).map(|_| None).collect(),
        };
        side.open_all()?;
        Ok(side)
    }

    /// Ends the process and starts another.
    pub fn restart(&mut self) -> Result<(), String> {
        let words: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.server = Server::start(&self.program, &words)?;
        self.control = control(&self.server)?;
        self.clients.iter_mut().for_each(|client| *client = None);
        self.open_all()
    }

    fn open_all(&mut self) -> Result<(), String> {
        for client in self.clients.iter_mut().filter(|client| client.is_none()) {
            let mut fresh = self.server.client().map_err(|e| e.to_string())?;
            fresh.set_timeout(PATIENCE);
            *client = Some(fresh);
        }
        Ok(())
    }

    pub fn send(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<(), Silence> {
        Ok(self.client(connection)?.send(args)?)
    }

    /// The next reply or push, waiting at most so long.
    pub fn receive(&mut self, connection: usize, wait: Duration) -> Result<Reply, Silence> {
        Ok(self.client(connection)?.receive_within(wait)?)
    }

    fn client(&mut self, connection: usize) -> Result<&mut Client, Silence> {
        self.clients[connection].as_mut().ok_or(Silence::Closed)
    }

    /// Sends and waits for what is no push.
    pub fn call(&mut self, connection: usize, args: &[Vec<u8>]) -> Result<Reply, Silence> {
        self.send(connection, args)?;
        loop {
            match self.receive(connection, PATIENCE)? {
                Reply::Push(_) => {}
                reply => return Ok(reply),
            }
        }
    }

    /// Asks on the control connection.
    pub fn ask(&mut self, args: &[&str]) -> Result<Reply, Silence> {
        Ok(self.control.call(args)?)
    }

    /// How many clients wait for data.
    pub fn waiting(&mut self) -> Result<usize, Silence> {
        let info = self.ask(&["INFO", "clients"])?.text().unwrap_or_default();
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix("blocked_clients:"));
        line.and_then(|number| number.trim().parse().ok())
            .ok_or(Silence::Nonsense)
    }

    /// Everything that the connection is told before it answers this PING.
    pub fn fence(&mut self, connection: usize, token: &str) -> Result<Vec<Reply>, Silence> {
        self.send(connection, &[b"PING".to_vec(), token.as_bytes().to_vec()])?;
        let mut told = Vec::new();
        loop {
            let reply = self.receive(connection, PATIENCE)?;
            let is_answer = match &reply {
                Reply::Bulk(text) => text == token.as_bytes(),
                Reply::Array(parts) => {
                    parts.last().and_then(Reply::bytes) == Some(token.as_bytes())
                }
                _ => false,
            };
            if is_answer {
                return Ok(told);
            }
            told.push(reply);
        }
    }

    /// Makes all as it was at the start: no data, fresh clients, directives set back.
    pub fn reset(
        &mut self,
        waiting: &[bool],
        directives: &[(&'static str, String)],
        Traits {
            has_users,
            has_scripts,
        }: Traits,
    ) -> Result<(), Silence> {
        for (client, waits) in self.clients.iter_mut().zip(waiting) {
            if *waits {
                *client = None;
            }
        }
        let open: Vec<usize> = (0..self.clients.len())
            .filter(|at| self.clients[*at].is_some())
            .collect();
        for connection in &open {
            self.send(*connection, &[b"RESET".to_vec()])?;
        }
        for connection in open {
            while self.receive(connection, PATIENCE)? != Reply::Status("RESET".into()) {}
        }
        let end = Instant::now() + PATIENCE;
        while waiting.contains(&true) && self.waiting()? > 0 {
            if Instant::now() > end {
                return Err(Silence::Hangs);
            }
        }
        self.open_all().map_err(|_| Silence::Closed)?;
        for (name, value) in directives {
            self.ask(&["CONFIG", "SET", name, value])?;
        }
        if has_users {
            let users = ["ACL", "DELUSER"].iter().chain(users::USERS);
            self.ask(&users.copied().collect::<Vec<_>>())?;
            self.ask(&["ACL", "LOG", "RESET"])?;
        }
        if has_scripts {
            self.ask(&["SCRIPT", "FLUSH"])?;
            self.ask(&["FUNCTION", "FLUSH"])?;
        }
        self.ask(&["SELECT", "0"])?;
        match self.ask(&["FLUSHALL"])? {
            Reply::Status(_) => Ok(()),
            _ => Err(Silence::Nonsense),
        }
    }
}

fn control(server: &Server) -> Result<Client, String> {
    let mut client = server.client().map_err(|e| e.to_string())?;
    client.set_timeout(PATIENCE);
    client.call(&["HELLO", "3"]).map_err(|e| e.to_string())?;
    Ok(client)
}
