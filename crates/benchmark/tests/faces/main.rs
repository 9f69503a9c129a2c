//! The program from outside: each face against a running server, and beside the real tools where
//! those are installed.

mod capacity;
mod memtier;
mod messages;
mod open_loop;
mod redis;
mod report;
mod tls;
mod tool;
