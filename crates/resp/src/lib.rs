//! RESP2 and RESP3: an incremental decoder and an encoder. Bytes, not commands.
#![forbid(unsafe_code)]
