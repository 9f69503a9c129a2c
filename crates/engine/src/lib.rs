//! Keyspace, values, expiry and command handlers. No sockets, files, threads or clock: time and
//! randomness come in as arguments.
#![forbid(unsafe_code)]
