//! A small blocking RESP client for the tools and the tests.
//!
//! One connection, TCP or Unix, in RESP2 or, after `HELLO 3`, RESP3. What a server may send is
//! [`Reply`]; the bytes become replies in [`Decoder`], which is usable without a socket too.
//!
//! # Invariants
//! - A timeout loses nothing: what has arrived stays in the decoder and the next call goes on.
//! - Memory and depth are bounded by what has really arrived, whatever lengths a server announces.
//! - The crate depends on nothing of ours: it must be able to disagree with the server's own codec.
//!
//! # Why not async, or an existing client?
//! Tests and tools want to see every byte, push and error as it comes, on one thread, with nothing
//! retried or reconnected behind their back.
#![forbid(unsafe_code)]

mod connection;
mod decode;
mod reply;
#[cfg(feature = "tls")]
mod tls;
mod transport;

pub use connection::{Client, Error};
pub use decode::{Decoder, ProtocolError};
pub use reply::Reply;
#[cfg(feature = "tls")]
pub use tls::{Tls, TlsOptions, TlsStream};
pub use transport::Transport;

/// Encodes a command as servers read it: an array of bulk strings.
pub fn encode(args: &[impl AsRef<[u8]>], out: &mut Vec<u8>) {
    out.extend_from_slice(format!("*{}\r\n", args.len()).as_bytes());
    for arg in args {
        let arg = arg.as_ref();
        out.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        out.extend_from_slice(arg);
        out.extend_from_slice(b"\r\n");
    }
}
