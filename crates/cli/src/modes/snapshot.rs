//! `--rdb` and `--functions-rdb`: a snapshot from the server into a file; and the transfer that
//! acting as a replica begins with too.

use crate::out::{Failure, Outcome, complain, io_text};
use crate::session::Session;
use crate::wait::{self, Woken};
use client::{Client, Error, Reply};
use std::ffi::OsStr;
use std::io::Write;
use std::time::Duration;

/// Length of the mark that ends a transfer of unknown length.
pub const MARK: usize = 40;
pub const CHUNK: usize = 64 << 10;
/// The longest line that a server sends before a transfer.
const LINE_MAX: usize = 4096;

/// Fetches a snapshot. `functions` leaves the keys out.
pub fn run(session: &mut Session, path: &OsStr, functions: bool) -> Outcome {
    let name = path.to_string_lossy().into_owned();
    announce(session, &["capa", "eof"])?;
    announce(session, &["rdb-only", "1"])?;
    if functions && !announce(session, &["rdb-filter-only", "functions"])? {
        return Err(Failure::Line(
            "Failed requesting functions only RDB from server, aborting".to_owned(),
        ));
    }
    let mut transfer = Transfer::begin(session, &["SYNC"])?;
    match transfer.left {
        Some(length) => complain(format!(
            "SYNC sent to master, writing {length} bytes to '{name}'"
        )),
        None => complain(format!(
            "SYNC sent to master, writing bytes of bulk transfer until EOF marker to '{name}'"
        )),
    }
    let failed = |error: std::io::Error| {
        Failure::Line(format!("Error opening '{name}': {}", io_text(&error)))
    };
    let mut file: Box<dyn Write> = match name.as_str() {
        "-" => Box::new(std::io::stdout().lock()),
        _ => Box::new(std::fs::File::create(path).map_err(failed)?),
    };
    let failed = |error: std::io::Error| {
        Failure::Line(format!("Error writing data to file: {}", io_text(&error)))
    };
    let bar = super::distribution::progress(transfer.left.unwrap_or(0), "bytes");
    let mut total = 0;
    while let Some(bytes) = transfer.next()? {
        file.write_all(&bytes).map_err(failed)?;
        total += bytes.len() as u64;
        bar.set_position(total);
    }
    file.flush().map_err(failed)?;
    bar.finish_and_clear();
    if name != "-" {
        let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
        synced.map_err(failed)?;
    }
    complain(match transfer.mark {
        Some(_) => format!("Transfer finished with success after {total} bytes"),
        None => "Transfer finished with success.".to_owned(),
    });
    Ok(())
}

/// Tells the server something about us as a replica; whether it took it.
pub fn announce(session: &mut Session, words: &[&str]) -> Result<bool, Failure> {
    complain(format!("sending REPLCONF {}", words.join(" ")));
    let mut call = vec!["REPLCONF"];
    call.extend(words);
    match session.call(&call)? {
        Reply::Error(text) => {
            complain(format!(
                "REPLCONF {} error: {}",
                words[0],
                String::from_utf8_lossy(&text)
            ));
            Ok(false)
        }
        _ => Ok(true),
    }
}

/// A snapshot on its way.
pub struct Transfer {
    client: Client,
    /// Bytes still to come, where that is known.
    pub left: Option<u64>,
    /// What ends it, where it is not.
    pub mark: Option<Vec<u8>>,
    /// Read and not handed out.
    buffer: Vec<u8>,
    over: bool,
}

impl Transfer {
    /// Asks for a snapshot and reads up to its first byte.
    pub fn begin(session: &mut Session, call: &[impl AsRef<[u8]>]) -> Result<Self, Failure> {
        session.send(call)?;
        Self::announced(session)
    }

    /// The same where it was asked for already.
    pub fn announced(session: &mut Session) -> Result<Self, Failure> {
        let Some(client) = session.take_client() else {
            return Err(Failure::Said);
        };
        let mut transfer = Self {
            client,
            left: None,
            mark: None,
            buffer: Vec::new(),
            over: false,
        };
        loop {
            let line = transfer.line()?;
            match line.split_first() {
                // A server that is not ready yet sends empty lines.
                None => {}
                Some((b'+', text)) => {
                    let text = String::from_utf8_lossy(text).into_owned();
                    complain(format!("PSYNC replied +{text}"));
                    if text.starts_with("CONTINUE") {
                        transfer.over = true;
                        return Ok(transfer);
                    }
                }
                Some((b'$', text)) => {
                    match text.strip_prefix(b"EOF:") {
                        Some(mark) if mark.len() == MARK => transfer.mark = Some(mark.to_vec()),
                        _ => {
                            let length = std::str::from_utf8(text).ok();
                            let length = length.and_then(|text| text.parse().ok());
                            transfer.left = Some(length.ok_or_else(|| odd(&line))?);
                        }
                    }
                    return Ok(transfer);
                }
                Some(_) => return Err(odd(&line)),
            }
        }
    }

    /// The next bytes, or `None` at the end.
    pub fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        if self.over {
            return Ok(None);
        }
        match (self.left, &self.mark) {
            (Some(0), _) => {
                self.over = true;
                Ok(None)
            }
            (Some(left), _) => {
                if self.buffer.is_empty() {
                    self.read()?;
                }
                let count = usize::try_from(left).unwrap_or(usize::MAX);
                let count = count.min(self.buffer.len());
                self.left = Some(left - count as u64);
                Ok(Some(self.buffer.drain(..count).collect()))
            }
            (None, Some(mark)) => {
                let found = self.buffer.windows(MARK).position(|bytes| bytes == mark);
                if let Some(end) = found {
                    self.over = true;
                    let bytes = self.buffer.drain(..end).collect();
                    self.buffer.drain(..MARK);
                    return Ok(Some(bytes));
                }
                // What may be the beginning of the mark is kept.
                let sure = self.buffer.len().saturating_sub(MARK - 1);
                let bytes: Vec<u8> = self.buffer.drain(..sure).collect();
                self.read()?;
                Ok(Some(bytes))
            }
            (None, None) => Ok(None),
        }
    }

    /// The connection after the transfer, and what has come over it already.
    pub fn into_rest(self) -> (Client, Vec<u8>) {
        (self.client, self.buffer)
    }

    fn line(&mut self) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let mut line: Vec<u8> = self.buffer.drain(..=end).collect();
                line.pop();
                line.pop_if(|byte| *byte == b'\r');
                return Ok(line);
            }
            if self.buffer.len() > LINE_MAX {
                return Err(odd(&self.buffer[..LINE_MAX]));
            }
            self.read()?;
        }
    }

    fn read(&mut self) -> Result<(), Failure> {
        let bytes = more(&mut self.client)?;
        self.buffer.extend(bytes);
        Ok(())
    }
}

/// Waits for bytes.
fn more(client: &mut Client) -> Result<Vec<u8>, Failure> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match client.receive_bytes(&mut chunk, Duration::ZERO) {
            Ok(count) => {
                chunk.truncate(count);
                return Ok(chunk);
            }
            Err(Error::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
        let woken = wait::readable(&[client.as_fd()], None).map_err(Error::from)?;
        if woken == Woken::Interrupted {
            return Err(Failure::Said);
        }
    }
}

fn odd(line: &[u8]) -> Failure {
    let text = String::from_utf8_lossy(line);
    Failure::Line(format!("SYNC with master failed: {text}"))
}
