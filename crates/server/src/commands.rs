//! Commands that belong to the server rather than to the keyspace.

mod acl;
mod backup;
mod client;
mod command;
mod config;
pub(crate) mod connection;
mod debug;
mod hotkeys;
mod info;
mod latency;
mod lifecycle;
mod lolwut;
mod memory;
mod monitor;
mod persistence;
mod scripting;
mod secrets;
mod slowlog;

use engine::Command;

pub use client::line as client_line;
pub use info::field_names as info_fields;
pub use monitor::monitor_line;
pub use slowlog::shown_words;

/// All families of the server.
pub const FAMILIES: &[&[Command]] = &[
    acl::COMMANDS,
    backup::COMMANDS,
    client::COMMANDS,
    command::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    hotkeys::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    lifecycle::COMMANDS,
    lolwut::COMMANDS,
    memory::COMMANDS,
    monitor::COMMANDS,
    persistence::COMMANDS,
    scripting::COMMANDS,
    slowlog::COMMANDS,
];
