//! What lies on disk: snapshots (RDB), the append-only log with its manifest (AOF), and recovery.
//!
//! Files are Redis's own, so that a data directory moves from one server to the other and back. All
//! that reaches the disk goes through a [`storage::Storage`], so that tests can make it fail.
#![forbid(unsafe_code)]

pub mod aof;
pub mod check_aof;
pub mod commands;
pub mod log;
pub mod manifest;
pub mod rdb;
pub mod recover;
pub mod storage;
