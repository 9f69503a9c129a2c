//! Event loops, connections and configuration: wires the other crates together.
//!
//! Every thread runs the same [`event_loop`] and executes commands itself, on any key. Threads meet
//! in the keyspace's stripes and in each other's [`inbox`].

pub mod alloc;
pub mod commands;
pub mod config;
mod connection;
mod event_loop;
mod host;
mod hotkeys;
mod inbox;
mod keysizes;
mod latency;
mod listener;
pub mod log;
mod metrics;
pub mod persistence;
mod samples;
mod scripting;
mod shared;
mod start;
mod supervisor;
mod sys;
mod tls;
mod users;

pub use start::run;
