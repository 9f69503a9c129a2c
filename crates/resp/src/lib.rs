//! RESP2 and RESP3: an incremental decoder and an encoder. Bytes, not commands.
//!
//! # Invariants
//! - The decoder never copies an argument and never reads a byte twice: what it returns are ranges
//!   of the buffer it was given.
//! - No input makes it panic, recurse or allocate more than the bytes received justify.
//!
//! Format: the public RESP specification, versions 2 and 3.
#![forbid(unsafe_code)]

mod args;
mod decode;
mod double;
mod output;
mod writer;

pub use args::{Args, OwnedArgs, Range};
pub use decode::{Batch, Decoder, Limits, ProtocolError, likely_key};
pub use double::format_double;
pub use output::{Output, Segment};
pub use writer::{ArrayMark, Protocol, Writer};
