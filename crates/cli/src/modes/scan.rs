//! `--scan`, and the walk over all keys that other modes share.

use crate::command::{Style, refused};
use crate::options::{Options, leading_integer};
use crate::out::{Failure, Outcome, put};
use crate::render::Format;
use crate::session::Session;
use crate::wait;
use client::Reply;
use std::time::Duration;

/// Calls of SCAN between two pauses.
const CALLS_BETWEEN_PAUSES: u32 = 100;

/// A walk over the keys, a call of SCAN at a time.
#[derive(Debug)]
pub struct Walk {
    pattern: Option<Vec<u8>>,
    count: Option<i64>,
    key_type: Option<String>,
    cursor: Vec<u8>,
    begun: bool,
    pause: Duration,
    /// Calls before a pause is made.
    every: u32,
    calls: u32,
}

impl Walk {
    /// From the command line.
    pub fn new(options: &Options) -> Result<Self, Failure> {
        let mut walk = Self::matching(options.pattern()?);
        if let Some(cursor) = &options.cursor {
            walk.cursor = cursor.clone().into_bytes();
        }
        let count = options.count.as_deref().map(leading_integer);
        walk.count = count.filter(|count| *count > 0);
        walk.key_type = options.key_type.clone();
        walk.pause = options.interval().unwrap_or_default();
        Ok(walk)
    }

    /// Over the keys that match, all if there is no pattern.
    pub fn matching(pattern: Option<Vec<u8>>) -> Self {
        Self {
            pattern,
            count: None,
            key_type: None,
            cursor: b"0".to_vec(),
            begun: false,
            pause: Duration::ZERO,
            every: CALLS_BETWEEN_PAUSES,
            calls: 0,
        }
    }

    /// Only over keys of one type.
    pub fn of_type(&mut self, name: &str) {
        self.key_type = Some(name.to_owned());
    }

    /// Where it is, to begin there again.
    pub fn cursor(&self) -> String {
        String::from_utf8_lossy(&self.cursor).into_owned()
    }

    /// The keys of the next call, or `None` after the last. The call after a pause is the one
    /// that Ctrl-C leaves out.
    pub fn next(&mut self, session: &mut Session) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        if self.begun && self.cursor == b"0" {
            return Ok(None);
        }
        if self.calls == self.every {
            self.calls = 0;
            if !self.pause.is_zero() && !wait::pause(self.pause) {
                return Ok(None);
            }
        }
        self.calls += 1;
        self.begun = true;
        let mut call = vec![b"SCAN".to_vec(), self.cursor.clone()];
        if let Some(pattern) = &self.pattern {
            call.extend([b"MATCH".to_vec(), pattern.clone()]);
        }
        if let Some(count) = self.count {
            call.extend([b"COUNT".to_vec(), count.to_string().into_bytes()]);
        }
        if let Some(name) = &self.key_type {
            call.extend([b"TYPE".to_vec(), name.clone().into_bytes()]);
        }
        let reply = session.call(&call)?;
        let Some([cursor, keys]) = reply.elements() else {
            return Err(refused(&reply));
        };
        self.cursor = cursor.bytes().unwrap_or(b"0").to_vec();
        let keys = keys.elements().unwrap_or_default().iter();
        Ok(Some(
            keys.filter_map(Reply::bytes).map(<[u8]>::to_vec).collect(),
        ))
    }
}

/// How many keys there are, to tell how far a walk is.
pub fn keys_total(session: &mut Session) -> Result<u64, Failure> {
    let reply = session.call(&["DBSIZE"])?;
    match reply.integer() {
        Some(count) => Ok(u64::try_from(count).unwrap_or(0)),
        None => Err(refused(&reply)),
    }
}

/// Prints every key on a line: quoted for people, as it is otherwise.
pub fn run(session: &mut Session, options: &Options, style: &Style) -> Outcome {
    let mut walk = Walk::new(options)?;
    walk.every = 1;
    while let Some(keys) = walk.next(session)? {
        let mut lines = Vec::new();
        for key in keys {
            match style.format {
                Format::Formatted => crate::words::quote(&key, &mut lines),
                _ => lines.extend(key),
            }
            lines.push(b'\n');
        }
        put(lines);
    }
    Ok(())
}
