//! Commands that belong to the server rather than to the keyspace.

mod acl;
mod command;
mod config;
mod debug;
mod info;
mod latency;
mod lifecycle;
mod lolwut;
mod memory;

use std::sync::Arc;

use engine::session::Session;
use engine::{Command, Entry};
use resp::Args;

use crate::config::Config;
use crate::host::ThreadHost;

/// All families of the server.
pub const FAMILIES: &[&[Command]] = &[
    acl::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    debug::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    lifecycle::COMMANDS,
    lolwut::COMMANDS,
    memory::COMMANDS,
];

/// Words of a command that the slow log keeps at most, and bytes of each.
const SHOWN_WORDS_MAX: usize = 32;
const SHOWN_BYTES_MAX: usize = 128;

/// A command as monitors see it.
pub fn monitor_line(host: &ThreadHost, session: &Session, args: Args<'_>) -> Arc<[u8]> {
    let (seconds, us) = (host.now_us / 1_000_000, host.now_us % 1_000_000);
    let address = host
        .client
        .as_ref()
        .map_or("lua", |client| client.peer.address.as_str());
    let mut line = format!("+{seconds}.{us:06} [{} {address}]", session.db).into_bytes();
    for word in args.iter() {
        line.extend_from_slice(b" \"");
        for &byte in word {
            match byte {
                b'"' | b'\\' => line.extend_from_slice(&[b'\\', byte]),
                b'\n' => line.extend_from_slice(b"\\n"),
                b'\r' => line.extend_from_slice(b"\\r"),
                b'\t' => line.extend_from_slice(b"\\t"),
                7 => line.extend_from_slice(b"\\a"),
                8 => line.extend_from_slice(b"\\b"),
                b' '..=b'~' => line.push(byte),
                _ => line.extend_from_slice(format!("\\x{byte:02x}").as_bytes()),
            }
        }
        line.push(b'"');
    }
    line.extend_from_slice(b"\r\n");
    line.into()
}

/// A command's words as the slow log keeps them: few, short, and without secrets.
pub fn shown_words(config: &Config, entry: &Entry, args: Args<'_>) -> Vec<Vec<u8>> {
    let _ = (config, entry);
    let mut words = Vec::new();
    for (index, word) in args.iter().enumerate() {
        if index + 1 == SHOWN_WORDS_MAX && args.len() > SHOWN_WORDS_MAX {
            let more = args.len() - index;
            words.push(format!("... ({more} more arguments)").into_bytes());
            break;
        }
        let mut shown = word[..word.len().min(SHOWN_BYTES_MAX)].to_vec();
        if word.len() > SHOWN_BYTES_MAX {
            let more = word.len() - SHOWN_BYTES_MAX;
            shown.extend_from_slice(format!("... ({more} more bytes)").as_bytes());
        }
        words.push(shown);
    }
    words
}
