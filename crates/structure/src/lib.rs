//! The data structures of the keyspace. Most of the `unsafe` of Tidemill lives here.

pub mod decimal;
mod growth;
pub mod intset;
pub mod list;
pub mod listpack;
