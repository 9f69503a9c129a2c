//! The data structures of the keyspace. Most of the `unsafe` of Tidemill lives here.
pub mod stream;
