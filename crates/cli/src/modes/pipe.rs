//! `--pipe`: what comes on standard input goes to the server as it is, and replies are counted.
//!
//! Reading and writing go on side by side, so that neither end ever waits for the other. After the
//! last byte an ECHO of random bytes is sent: when they come back, everything was answered.

use crate::options::{Options, seconds};
use crate::out::{Failure, Outcome, complain, error_text, put};
use crate::session::Session;
use crate::wait::{self, Woken};
use client::{Decoder, Error, Transport, encode};
use nix::poll::PollFlags;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Bytes that are read at once, from either side.
const CHUNK: usize = 64 << 10;
/// How long the last reply is waited for, unless said otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

struct Pipe {
    stream: Box<dyn Transport>,
    decoder: Decoder,
    /// What was read and not yet sent, from `sent` on.
    pending: Vec<u8>,
    sent: usize,
    /// The stream took bytes that it has not passed on.
    holds: bool,
    ended: bool,
    /// What the last reply will be.
    magic: Vec<u8>,
    errors: u64,
    replies: u64,
    heard: Instant,
}

/// Sends all of standard input.
pub fn run(session: &mut Session, options: &Options) -> Outcome {
    let patience = options.pipe_timeout.as_deref().map_or(PATIENCE, seconds);
    let Some(client) = session.take_client() else {
        return Err(Failure::Said);
    };
    let (stream, unread) = client.into_parts();
    stream.set_nonblocking(true).map_err(Error::from)?;
    let mut pipe = Pipe {
        stream,
        decoder: Decoder::new(),
        pending: Vec::new(),
        sent: 0,
        holds: false,
        ended: false,
        magic: magic(),
        errors: 0,
        replies: 0,
        heard: Instant::now(),
    };
    pipe.decoder.feed(&unread);
    let finished = pipe.run(patience)?;
    if finished {
        put("Last reply received from server.\n");
    } else {
        pipe.errors += 1;
        complain(format!(
            "No replies for {} seconds: exiting.",
            patience.as_secs_f64()
        ));
    }
    put(format!(
        "errors: {}, replies: {}\n",
        pipe.errors, pipe.replies
    ));
    match pipe.errors {
        0 => Ok(()),
        _ => Err(Failure::Said),
    }
}

impl Pipe {
    /// Whether the last reply came.
    fn run(&mut self, patience: Duration) -> Result<bool, Failure> {
        let stdin = std::io::stdin();
        loop {
            if self.hear()? {
                return Ok(true);
            }
            self.speak()?;
            let waits_for_input = self.sent == self.pending.len() && !self.ended;
            let mut wanted = PollFlags::POLLIN;
            if self.sent < self.pending.len() || self.holds {
                wanted |= PollFlags::POLLOUT;
            }
            let mut fds = vec![(self.stream.as_fd(), wanted)];
            if waits_for_input {
                fds.push((stdin.as_fd(), PollFlags::POLLIN));
            }
            let all_sent = self.ended && self.sent == self.pending.len();
            let left = match all_sent && !patience.is_zero() {
                true => Some(patience.saturating_sub(self.heard.elapsed())),
                false => None,
            };
            match wait::ready(&fds, left).map_err(Error::from)? {
                Woken::Timeout => return Ok(false),
                Woken::Interrupted => return Err(Failure::Said),
                Woken::Ready(_) => {}
            }
            if waits_for_input {
                self.refill()?;
            }
        }
    }

    /// Reads more of standard input, if there is more now.
    fn refill(&mut self) -> Result<(), Failure> {
        let stdin = std::io::stdin();
        let now = Some(Duration::ZERO);
        let there = wait::readable(&[stdin.as_fd()], now).map_err(Error::from)?;
        if there != Woken::Ready(0) {
            return Ok(());
        }
        self.pending.resize(CHUNK, 0);
        self.sent = 0;
        let count = match stdin.lock().read(&mut self.pending) {
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {
                self.pending.clear();
                return Ok(());
            }
            Err(error) => return Err(Failure::Line(format!("Error reading input: {error}"))),
        };
        self.pending.truncate(count);
        if count == 0 {
            self.ended = true;
            self.heard = Instant::now();
            encode(&[b"ECHO".as_slice(), &self.magic], &mut self.pending);
            put("All data transferred. Waiting for the last reply...\n");
        }
        Ok(())
    }

    /// Writes what the server takes now.
    fn speak(&mut self) -> Result<(), Failure> {
        while self.sent < self.pending.len() {
            match self.stream.write(&self.pending[self.sent..]) {
                Ok(0) => break,
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
        }
        match self.stream.flush() {
            Ok(()) => self.holds = false,
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.holds = true,
            Err(error) => return Err(lost(&error)),
        }
        Ok(())
    }

    /// Counts the replies that are there; true at the last one.
    fn hear(&mut self) -> Result<bool, Failure> {
        let mut chunk = vec![0; CHUNK];
        loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(Error::Closed.into()),
                Ok(count) => {
                    self.decoder.feed(&chunk[..count]);
                    self.heard = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(lost(&error)),
            }
            while let Some(reply) = self.decoder.next_reply().map_err(Error::from)? {
                if self.ended && reply.bytes() == Some(&self.magic) {
                    return Ok(true);
                }
                self.replies += 1;
                if let client::Reply::Error(text) = &reply {
                    self.errors += 1;
                    complain(String::from_utf8_lossy(text));
                }
            }
        }
    }
}

fn lost(error: &std::io::Error) -> Failure {
    let text = match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => error_text(&Error::Closed),
        _ => crate::out::io_text(error),
    };
    Failure::Line(format!("Error: {text}"))
}

/// Twenty bytes that nobody sends by chance.
fn magic() -> Vec<u8> {
    let random = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", random(), random()).into_bytes()[..20].to_vec()
}
