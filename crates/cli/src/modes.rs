//! What the tool does besides running commands: one module a mode.

pub mod cache;
pub mod distribution;
pub mod hotkeys;
pub mod keys;
pub mod keystats;
pub mod latency;
pub mod pipe;
pub mod replica;
pub mod scan;
pub mod script;
pub mod snapshot;
pub mod stat;
