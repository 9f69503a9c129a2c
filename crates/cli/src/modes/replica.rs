//! `--replica`: acts as a replica and prints what it is sent, as CSV.

use super::snapshot::{CHUNK, MARK, Transfer, announce};
use crate::out::{Failure, Outcome, complain, put};
use crate::render::{Delimiters, Format, render};
use crate::session::Session;
use crate::wait::{self, Woken};
use client::{Decoder, Error};
use std::time::Duration;

/// How often the server hears from us.
const ACK_EVERY: Duration = Duration::from_secs(1);

/// Asks for the stream, without the keys if the server can leave them out, and follows it.
pub fn run(session: &mut Session) -> Outcome {
    announce(session, &["capa", "eof"])?;
    announce(session, &["rdb-filter-only", ""])?;
    session.send(&["SYNC"])?;
    follow(session)
}

/// Reads past the snapshot of a stream that was asked for, and prints what follows for ever.
pub fn follow(session: &mut Session) -> Outcome {
    let mut transfer = Transfer::announced(session)?;
    complain(match transfer.left {
        Some(length) => {
            format!("SYNC with master, discarding {length} bytes of bulk transfer...")
        }
        None => {
            "SYNC with master, discarding bytes of bulk transfer until EOF marker...".to_owned()
        }
    });
    let mut total = 0;
    while let Some(bytes) = transfer.next()? {
        total += bytes.len();
    }
    let marked = transfer.mark.is_some();
    let (mut client, rest) = transfer.into_rest();
    if marked {
        total += MARK;
        complain(format!(
            "SYNC done after {total} bytes. Logging commands from master."
        ));
        // Nothing follows until the replica has answered.
        complain("sending REPLCONF ACK 0");
    } else {
        complain("SYNC done. Logging commands from master.");
    }
    let mut decoder = Decoder::new();
    let mut chunk = vec![0; CHUNK];
    decoder.feed(&rest);
    loop {
        while let Some(command) = decoder.next_reply().map_err(Error::from)? {
            put(render(&command, Format::Csv, &Delimiters::default()));
        }
        match client.receive_bytes(&mut chunk, Duration::ZERO) {
            Ok(count) => {
                decoder.feed(&chunk[..count]);
                continue;
            }
            Err(Error::Timeout) => {}
            Err(error) => return Err(error.into()),
        }
        // The answer that starts the stream may come too early to count, and a replica that is
        // silent for long is given up.
        client.send(&["REPLCONF", "ACK", "0"])?;
        let woken = wait::readable(&[client.as_fd()], Some(ACK_EVERY)).map_err(Error::from)?;
        if woken == Woken::Interrupted {
            return Err(Failure::Said);
        }
    }
}
