//! Scripts: Lua, what it sees of the server, and what is kept of scripts and libraries.
//!
//! Each thread has a Lua state for EVAL and one for functions, made when first needed. Sources are
//! shared ([`registry`]); each thread compiles them for itself. A script runs as the handler of
//! EVAL or FCALL, with every stripe locked that it may touch, and calls other commands through that
//! handler's context.
//!
//! # Invariants
//! - One script runs on a thread at a time, and no script starts another.
//! - What scripts share (libraries, globals) cannot be changed by them.
//! - A script ends in a reply or an error: memory, the stack and patterns have limits.
//! - The time stands still while a script runs.

pub mod api;
mod arguments;
mod bits;
pub mod busy;
mod cjson;
mod cmsgpack;
pub mod convert;
mod current;
pub mod functions;
pub mod header;
mod number;
mod random;
pub mod registry;
pub mod run;
mod state;
mod structs;

pub use registry::Registry;
pub use state::{Kind, bytes, drop_state as forget};

#[cfg(test)]
mod tests;
