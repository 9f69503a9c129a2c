//! Snapshots: files that hold a data set at one moment, in Redis's RDB format.
//!
//! ```text
//! file:  "REDIS" 4 digits | "VALKEY" 3 digits, parts, ff, CRC-64 of all before 8 (from version 5)
//! part:  fa name, value                        about the file
//!        fe database | fb keys, timed keys     what the next keys belong to, and how many come
//!        [fc milliseconds 8 | fd seconds 4] [f8 idle seconds | f9 frequency 1] type, key, value
//!        f2 number, fields                     what hashes of Redis 8.10 have in common
//!        f5 library                            functions
//!        f7 module, parts                      what a module keeps beside keys
//!        f4 slot, keys, timed keys             how many keys of a slot come
//! ```
//! Numbers are little-endian where their bytes are given, and lengths otherwise; types and values
//! are [`engine::dump`]'s.

mod check;
mod input;
mod read;
mod save;
mod write;

pub use check::check;
pub use input::Input;
pub use read::{Error, Key, Options, Part, Problem, Reader, Use, Value};
pub use save::{AfterWrite, SaveError, Saver, save, temporary_name};
pub use write::{About, Encoder, Entry, Uses};

/// The first byte of a part that is no key.
mod opcode {
    /// Fields that hashes have in common.
    pub const TEMPLATE: u8 = 0xf2;
    /// Valkey: slots that are being imported. Redis: what modules keep with a key.
    pub const KEY_META: u8 = 0xf3;
    pub const SLOT_INFO: u8 = 0xf4;
    pub const FUNCTION: u8 = 0xf5;
    pub const FUNCTION_EARLY: u8 = 0xf6;
    pub const MODULE_AUX: u8 = 0xf7;
    pub const IDLE: u8 = 0xf8;
    pub const FREQUENCY: u8 = 0xf9;
    pub const AUX: u8 = 0xfa;
    pub const SIZES: u8 = 0xfb;
    pub const DEADLINE_MS: u8 = 0xfc;
    pub const DEADLINE_S: u8 = 0xfd;
    pub const DB: u8 = 0xfe;
    pub const END: u8 = 0xff;
}

/// The oldest version with a checksum.
const SUMMED_VERSION: u32 = 5;
/// The one version of Valkey's own that there is.
const VALKEY_VERSION: u32 = 80;

#[cfg(test)]
mod tests;
