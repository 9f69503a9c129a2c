//! The socket: commands out, replies in, with a limit on every wait.

use crate::{Decoder, ProtocolError, Reply, encode};
use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a connection and a reply are waited for, unless said otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Pushes that are kept while nobody asks for them; older ones are dropped first.
const PUSHES_MAX: usize = 100_000;

/// Why a call failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The connection could not be made, read or written.
    Io(std::io::Error),
    /// The server closed the connection.
    Closed,
    /// No reply came in time. The connection is as it was: the reply may still be received.
    Timeout,
    /// The server sent something that is not RESP. The connection is of no use any more.
    Protocol(ProtocolError),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Closed => f.write_str("the server closed the connection"),
            Self::Timeout => f.write_str("no reply in time"),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Self::Closed,
            _ => Self::Io(error),
        }
    }
}

impl From<ProtocolError> for Error {
    fn from(error: ProtocolError) -> Self {
        Self::Protocol(error)
    }
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    /// Reads what is there, waiting at most so long for the first byte; a zero wait does not wait.
    fn read(&mut self, buf: &mut [u8], wait: Duration) -> std::io::Result<usize> {
        // To the system a timeout of zero means for ever, and short ones are rounded up to a tick.
        let at_once = wait < Duration::from_micros(100);
        if at_once {
            self.set_nonblocking(true)?;
        }
        let result = match self {
            Self::Tcp(socket) if at_once => socket.read(buf),
            Self::Unix(socket) if at_once => socket.read(buf),
            Self::Tcp(socket) => socket
                .set_read_timeout(Some(wait))
                .and_then(|()| socket.read(buf)),
            Self::Unix(socket) => socket
                .set_read_timeout(Some(wait))
                .and_then(|()| socket.read(buf)),
        };
        if at_once {
            self.set_nonblocking(false)?;
        }
        result
    }

    fn set_nonblocking(&self, on: bool) -> std::io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.set_nonblocking(on),
            Self::Unix(socket) => socket.set_nonblocking(on),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Tcp(socket) => socket.write_all(bytes),
            Self::Unix(socket) => socket.write_all(bytes),
        }
    }
}

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    decoder: Decoder,
    timeout: Duration,
    /// Pushes that `call` met on its way to a reply.
    pushes: VecDeque<Reply>,
}

impl Client {
    /// Connects over TCP.
    pub fn connect(address: impl ToSocketAddrs) -> Result<Self, Error> {
        let mut failure = std::io::Error::new(ErrorKind::NotFound, "no such address");
        for address in address.to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_write_timeout(Some(TIMEOUT))?;
                    return Ok(Self::over(Socket::Tcp(socket)));
                }
                Err(error) => failure = error,
            }
        }
        Err(failure.into())
    }

    /// Connects over a Unix socket.
    pub fn connect_unix(path: impl AsRef<Path>) -> Result<Self, Error> {
        let socket = UnixStream::connect(path)?;
        socket.set_write_timeout(Some(TIMEOUT))?;
        Ok(Self::over(Socket::Unix(socket)))
    }

    fn over(socket: Socket) -> Self {
        Self {
            socket,
            decoder: Decoder::new(),
            timeout: TIMEOUT,
            pushes: VecDeque::new(),
        }
    }

    /// How long `receive` and `call` wait.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// Sends a command without waiting for its reply.
    pub fn send(&mut self, args: &[impl AsRef<[u8]>]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        encode(args, &mut bytes);
        self.send_bytes(&bytes)
    }

    /// Sends bytes as they are: a pipeline that `encode` made, or something wrong on purpose.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.socket.write(bytes)?)
    }

    /// Waits for whatever the server says next, a push too.
    pub fn receive(&mut self) -> Result<Reply, Error> {
        self.receive_within(self.timeout)
    }

    /// The same with a limit of its own.
    pub fn receive_within(&mut self, wait: Duration) -> Result<Reply, Error> {
        let end = Instant::now() + wait;
        let mut chunk = [0; 16 << 10];
        loop {
            if let Some(reply) = self.decoder.next_reply()? {
                return Ok(reply);
            }
            let left = end.saturating_duration_since(Instant::now());
            match self.socket.read(&mut chunk, left) {
                Ok(0) => return Err(Error::Closed),
                Ok(count) => self.decoder.feed(&chunk[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if Instant::now() >= end {
                        return Err(Error::Timeout);
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Sends a command and waits for its reply. Pushes that come before it are set aside. An error
    /// reply is a reply: `Err` means that there was none.
    pub fn call(&mut self, args: &[impl AsRef<[u8]>]) -> Result<Reply, Error> {
        self.send(args)?;
        loop {
            match self.receive()? {
                push @ Reply::Push(_) => {
                    if self.pushes.len() == PUSHES_MAX {
                        self.pushes.pop_front();
                    }
                    self.pushes.push_back(push);
                }
                reply => return Ok(reply),
            }
        }
    }

    /// The oldest push that `call` has set aside.
    pub fn take_push(&mut self) -> Option<Reply> {
        self.pushes.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that reads `request` bytes and answers with these pieces.
    fn answering(pieces: &'static [&'static [u8]], request: usize) -> Client {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().expect("the test connects");
            socket
                .read_exact(&mut vec![0; request])
                .expect("the test sends that much");
            for piece in pieces {
                socket.write_all(piece).expect("the test still reads");
            }
        });
        Client::connect(address).expect("it listens")
    }

    #[test]
    fn a_call_sets_pushes_aside() {
        let mut client = answering(&[b">1\r\n+hi\r\n+PO", b"NG\r\n"], 14);
        assert_eq!(
            client.call(&["PING"]).expect("a reply"),
            Reply::Status("PONG".into())
        );
        assert_eq!(
            client.take_push(),
            Some(Reply::Push(vec![Reply::Status("hi".into())]))
        );
        assert_eq!(client.take_push(), None);
        assert!(matches!(client.receive(), Err(Error::Closed)));
    }

    #[test]
    fn a_timeout_leaves_the_connection_usable() {
        let mut client = answering(&[b"+OK\r\n"], 14);
        assert!(matches!(
            client.receive_within(Duration::from_millis(1)),
            Err(Error::Timeout)
        ));
        assert_eq!(
            client.call(&["PING"]).expect("a reply"),
            Reply::Status("OK".into())
        );
    }
}
