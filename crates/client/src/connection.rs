//! The socket: commands out, replies in, with a limit on every wait.

use crate::transport::{Transport, read_within};
use crate::{Decoder, ProtocolError, Reply, encode};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::BorrowedFd;
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

/// One connection to a server.
#[derive(Debug)]
pub struct Client {
    socket: Box<dyn Transport>,
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
                    return Ok(Self::over(socket));
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
        Ok(Self::over(socket))
    }

    /// Speaks over a stream that is connected already, such as one that encrypts. Writes wait as
    /// long as the stream was told to.
    pub fn over(transport: impl Transport + 'static) -> Self {
        Self {
            socket: Box::new(transport),
            decoder: Decoder::new(),
            timeout: TIMEOUT,
            pushes: VecDeque::new(),
        }
    }

    /// How long `receive` and `call` wait.
    pub fn set_timeout(&mut self, timeout: Duration) {
        self.timeout = timeout;
    }

    /// What to wait on until more comes. What has come already may stand in the decoder, or in the
    /// stream where it encrypts: a receive that waits for nothing finds it.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a command without waiting for its reply.
    pub fn send(&mut self, args: &[impl AsRef<[u8]>]) -> Result<(), Error> {
        let mut bytes = Vec::new();
        encode(args, &mut bytes);
        self.send_bytes(&bytes)
    }

    /// Sends bytes as they are: a pipeline that `encode` made, or something wrong on purpose.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> Result<(), Error> {
        Ok(self.socket.write_all(bytes)?)
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
            match read_within(&mut *self.socket, &mut chunk, left) {
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

    /// Bytes as the server sends them, for what is no reply: those that the decoder has not read
    /// come first. Waits at most so long for the first.
    pub fn receive_bytes(&mut self, buf: &mut [u8], wait: Duration) -> Result<usize, Error> {
        let kept = self.decoder.take_bytes(buf);
        if kept > 0 {
            return Ok(kept);
        }
        match read_within(&mut *self.socket, buf, wait) {
            Ok(0) => Err(Error::Closed),
            Ok(count) => Ok(count),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Error::Timeout)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The stream and what has come over it and was not read, for who goes on without replies.
    pub fn into_parts(mut self) -> (Box<dyn Transport>, Vec<u8>) {
        let unread = self.decoder.take_all();
        (self.socket, unread)
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
    use std::io::{Read, Write};
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
    fn bytes_come_before_and_after_a_reply() {
        let mut client = answering(&[b"raw+OK\r\nmo", b"re"], 14);
        client.send(&["PING"]).expect("it is sent");
        let mut bytes = [0; 3];
        let wait = Duration::from_secs(5);
        client.receive_bytes(&mut bytes, wait).expect("bytes");
        assert_eq!(&bytes, b"raw");
        assert!(client.receive_within(wait).is_ok());
        let mut rest = Vec::new();
        while let Ok(count) = client.receive_bytes(&mut bytes, wait) {
            rest.extend_from_slice(&bytes[..count]);
        }
        assert_eq!(rest, b"more");
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
