//! What a client needs of a stream: bytes both ways, and limits on every wait.

use std::fmt::Debug;
use std::io::{Read, Result, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A connected stream.
pub trait Transport: Read + Write + AsFd + Send + Debug {
    /// How long a read may wait; `None` is for ever.
    fn set_read_timeout(&self, wait: Option<Duration>) -> Result<()>;
    /// Whether reads and writes return at once with what they can do.
    fn set_nonblocking(&self, on: bool) -> Result<()>;
}

impl Transport for TcpStream {
    fn set_read_timeout(&self, wait: Option<Duration>) -> Result<()> {
        Self::set_read_timeout(self, wait)
    }

    fn set_nonblocking(&self, on: bool) -> Result<()> {
        Self::set_nonblocking(self, on)
    }
}

impl Transport for UnixStream {
    fn set_read_timeout(&self, wait: Option<Duration>) -> Result<()> {
        Self::set_read_timeout(self, wait)
    }

    fn set_nonblocking(&self, on: bool) -> Result<()> {
        Self::set_nonblocking(self, on)
    }
}

/// Reads what is there, waiting at most so long for the first byte; a zero wait does not wait.
pub(crate) fn read_within(
    stream: &mut dyn Transport,
    buf: &mut [u8],
    wait: Duration,
) -> Result<usize> {
    // To the system a timeout of zero means for ever, and short ones are rounded up to a tick.
    if wait >= Duration::from_micros(100) {
        stream.set_read_timeout(Some(wait))?;
        return stream.read(buf);
    }
    stream.set_nonblocking(true)?;
    let result = stream.read(buf);
    stream.set_nonblocking(false)?;
    result
}
