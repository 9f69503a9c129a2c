//! Keyspace, values, expiry and command handlers. No sockets, files, threads or clock: time and
//! randomness come in as arguments.
//!
//! A caller owns the [`keyspace::Keyspace`] and a [`session::Session`] a client, and plays requests
//! through the [`executor`]. What happens beside the reply (a published message, a blocked client
//! that is served) leaves through the [`host::Host`] it passes in.
#![forbid(unsafe_code)]

pub mod access;
pub mod acl;
pub mod blocking;
pub mod commands;
pub mod context;
pub mod dump;
pub mod error;
pub mod executor;
pub mod extended;
pub mod geo;
pub mod glob;
pub mod handler;
pub mod host;
pub mod hyperloglog;
pub mod keyspace;
pub mod log;
pub mod notify;
pub mod number;
pub mod object;
pub mod pubsub;
pub mod random;
pub mod regex;
pub mod replay;
pub mod session;
pub mod settings;
pub mod snapshot;
pub mod stats;
pub mod tracking;
pub mod wheel;

pub use context::Context;
pub use error::CommandError;
pub use handler::{Command, Entry, Handler, Locks, Table};
pub use object::Object;
