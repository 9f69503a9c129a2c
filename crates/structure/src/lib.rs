//! The data structures of the keyspace. Most of the `unsafe` of Tidemill lives here.

pub mod decimal;
pub mod hash;
pub mod prefetch;
pub mod record;
pub mod stripes;
pub mod table;
mod growth;
pub mod intset;
pub mod list;
pub mod listpack;
pub mod hash;
pub mod packed;
pub mod zset;
pub mod stream;
