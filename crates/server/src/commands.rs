//! Commands that belong to the server rather than to the keyspace.

use engine::Command;

mod client;
mod connection;
mod monitor;
mod secrets;
mod slowlog;

pub use monitor::monitor_line;
pub use slowlog::shown_words;

/// All families of the server.
pub const FAMILIES: &[&[Command]] = &[
    client::COMMANDS,
    connection::COMMANDS,
    monitor::COMMANDS,
    slowlog::COMMANDS,
];
