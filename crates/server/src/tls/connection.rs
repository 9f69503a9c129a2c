//! One connection's side of TLS.

use std::fmt;
use std::io::{self, BufRead, IoSlice, Write};
use std::os::fd::RawFd;
use std::sync::Arc;

use resp::Output;
use rustls::{ServerConfig, ServerConnection};

use super::{HANDSHAKE_BYTES_MAX, subject};
use crate::connection::Connection;
use crate::sys::{self, PIECES_MAX};

/// Bytes of output that are encrypted at once: they stay in the output until they are sent.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes that one turn sends to one client: encrypting them takes the loop's time.
const TURN_BYTES: usize = 4 * CHUNK_BYTES;

/// A connection's TLS.
pub struct Tls {
    connection: ServerConnection,
    /// Bytes at the front of the output that are encrypted and not yet sent whole.
    encrypted: usize,
    /// Bytes that came before the handshake was done.
    shaken: usize,
}

/// Why a connection cannot go on.
#[derive(Debug)]
pub enum Fault {
    /// What came first is no TLS.
    Plain,
    /// The peer sent too much before it was done.
    TooLong,
    /// As rustls says.
    Protocol(rustls::Error),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("wrong version number: the client does not speak TLS"),
            Self::TooLong => f.write_str("the handshake is too long"),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Fault {}

impl Tls {
    pub(super) fn new(config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let mut connection = ServerConnection::new(config)?;
        // What is encrypted at once is limited here.
        connection.set_buffer_limit(None);
        Ok(Self {
            connection,
            encrypted: 0,
            shaken: 0,
        })
    }

    /// Whether nobody is there yet whose requests could be read.
    pub fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Whether something that the output does not hold waits to be sent.
    pub fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Takes what the socket gave, and appends what it says to `plain`. True where the peer said
    /// that nothing more follows.
    ///
    /// # Errors
    /// Where the connection cannot go on. What is to be said of that to the peer waits to be sent.
    pub fn receive(&mut self, data: &[u8], plain: &mut Vec<u8>) -> Result<bool, Fault> {
        let mut rest = data;
        while !rest.is_empty() {
            if self.is_handshaking() {
                // A handshake begins with a record of one.
                if self.shaken == 0 && rest[0] != 0x16 {
                    return Err(Fault::Plain);
                }
                if self.shaken >= HANDSHAKE_BYTES_MAX {
                    return Err(Fault::TooLong);
                }
            }
            // Only a message that is longer than any may be is not taken.
            let got = self.connection.read_tls(&mut rest).unwrap_or(0);
            if got == 0 {
                return Err(Fault::TooLong);
            }
            if self.is_handshaking() {
                self.shaken += got;
            }
            let state = self.connection.process_new_packets();
            let state = state.map_err(Fault::Protocol)?;
            let mut reader = self.connection.reader();
            while let Ok(chunk @ [_, ..]) = reader.fill_buf() {
                plain.extend_from_slice(chunk);
                let len = chunk.len();
                reader.consume(len);
            }
            if state.peer_has_closed() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Sends what is encrypted. False where the socket takes no more for now.
    ///
    /// # Errors
    /// As `writev(2)`.
    pub fn send(&mut self, fd: RawFd) -> io::Result<bool> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut Wire(fd)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Sends as much of `output` as a turn may and the socket takes; what was sent whole is taken
    /// from it. Returns how many bytes that was.
    fn send_from(&mut self, fd: RawFd, output: &mut Output) -> io::Result<usize> {
        let mut sent = 0;
        while self.send(fd)? {
            output.consume(self.encrypted);
            sent += self.encrypted;
            self.encrypted = 0;
            if output.is_empty() || sent >= TURN_BYTES || self.is_handshaking() {
                break;
            }
            self.encrypted = self.encrypt(output)?;
        }
        Ok(sent)
    }

    /// Encrypts the front of the output; returns how many bytes.
    fn encrypt(&mut self, output: &Output) -> io::Result<usize> {
        let mut pieces = [IoSlice::new(&[]); PIECES_MAX];
        let (mut count, mut room) = (0, CHUNK_BYTES);
        output.slices(|piece| {
            let piece = &piece[..piece.len().min(room)];
            pieces[count] = IoSlice::new(piece);
            count += 1;
            room -= piece.len();
            count < PIECES_MAX && room > 0
        });
        self.connection.writer().write_vectored(&pieces[..count])
    }

    /// The name in the certificate that the client showed.
    pub fn common_name(&self) -> Option<&[u8]> {
        subject::common_name(self.connection.peer_certificates()?.first()?)
    }
}

impl Connection {
    /// As [`Connection::flush`], for a connection with TLS: bytes stay in `output` until all that
    /// they were encrypted to is sent.
    pub fn flush_tls(&mut self, fresh: &mut Output) -> usize {
        let fd = self.fd();
        let Some(tls) = &mut self.tls else {
            return 0;
        };
        if self.has_hung_up {
            fresh.clear();
            self.output.clear();
            return 0;
        }
        if !self.output.is_empty() {
            self.output.append(fresh);
        }
        let from = if self.output.is_empty() {
            &mut *fresh
        } else {
            &mut self.output
        };
        let sent = tls.send_from(fd, from).unwrap_or_else(|_| {
            self.has_hung_up = true;
            self.is_dead = true;
            fresh.clear();
            self.output.clear();
            0
        });
        if self.output.is_empty() && !fresh.is_empty() {
            self.output.append(fresh);
        }
        self.output.shrink(16 * 1024);
        sent
    }

    /// Whether TLS has something to send that is not of the output.
    pub fn owes_tls(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Tells the peer that nothing more follows, as far as the socket takes it.
    pub fn close_tls(&mut self) {
        let fd = self.fd();
        if let Some(tls) = &mut self.tls
            && !self.has_hung_up
        {
            tls.connection.send_close_notify();
            // It may be gone.
            let _ = tls.send(fd);
        }
    }
}

/// A socket.
struct Wire(RawFd);

impl Write for Wire {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        sys::write(self.0, &[data])
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut all: [&[u8]; PIECES_MAX] = [&[]; PIECES_MAX];
        let count = pieces.len().min(PIECES_MAX);
        for (to, piece) in all.iter_mut().zip(pieces) {
            *to = piece;
        }
        sys::write(self.0, &all[..count])
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
