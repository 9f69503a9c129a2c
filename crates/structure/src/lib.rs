//! The data structures of the keyspace. Most of the `unsafe` of Tidemill lives here.

pub mod array;
pub mod decimal;
mod growth;
pub mod hash;
pub mod intset;
mod journal;
pub mod list;
pub mod listpack;
pub mod packed;
pub mod prefetch;
pub mod record;
mod share;
pub mod stream;
pub mod stripes;
pub mod table;
pub mod ticks;
pub mod zset;
