//! Event loops, connections and configuration: wires the other crates together.

pub mod config;
