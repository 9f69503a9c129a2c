//! One connection: what it still has to write, and what it is owed.

use super::batch::Batch;
use super::scan::Scanner;
use super::target::Socket;
use std::collections::VecDeque;
use std::io::{ErrorKind, Write};

/// Requests that were sent together and are of one class.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    /// Their class.
    pub class: usize,
    /// Replies that are still to come.
    pub left: u64,
    /// When they were due, in nanoseconds of the run.
    pub due: u64,
    /// When they were sent.
    pub sent: u64,
}

/// How a write went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// All is with the system.
    All,
    /// The socket takes no more for now.
    Part,
}

/// A connection of the load.
#[derive(Debug)]
pub struct Connection {
    pub socket: Socket,
    pub scanner: Scanner,
    /// What is being sent.
    pub batch: Batch,
    /// How much of it has been.
    pub written: usize,
    /// What is owed, oldest first.
    pub groups: VecDeque<Group>,
    /// Requests without a reply.
    pub in_flight: u64,
    /// Replies to the greeting of a new connection, which nobody counts.
    pub greetings_left: u64,
    /// Requests that this connection may still send, with a limit of its own.
    pub left: u64,
    /// Requests sent since the socket was connected.
    pub since_connect: u64,
    /// The greeting of a new connection, which goes before its first batch.
    pub greeting: Vec<u8>,
    /// It is being connected: nothing can be written yet.
    pub is_connecting: bool,
    /// The poll also asks for room to write.
    pub awaits_room: bool,
}

impl Connection {
    pub fn new(socket: Socket, left: u64) -> Self {
        Self {
            socket,
            scanner: Scanner::default(),
            batch: Batch::default(),
            written: 0,
            groups: VecDeque::new(),
            in_flight: 0,
            greetings_left: 0,
            left,
            since_connect: 0,
            greeting: Vec::new(),
            is_connecting: false,
            awaits_room: false,
        }
    }

    /// Whether everything that was to be sent has been.
    pub fn is_flushed(&self) -> bool {
        self.written == self.batch.used
            && self.greeting.is_empty()
            && !self.is_connecting
            && !self.socket.is_behind()
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self) -> std::io::Result<Wrote> {
        while !self.greeting.is_empty() {
            match self.socket.write(&self.greeting) {
                Ok(count) => drop(self.greeting.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Wrote::Part),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while self.written < self.batch.used {
            match self
                .socket
                .write(&self.batch.bytes[self.written..self.batch.used])
            {
                Ok(count) => self.written += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Wrote::Part),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match self.socket.is_behind().then(|| self.socket.flush()) {
            Some(Err(error)) if error.kind() != ErrorKind::WouldBlock => Err(error),
            Some(Err(_)) => Ok(Wrote::Part),
            None | Some(Ok(())) => Ok(Wrote::All),
        }
    }
}
