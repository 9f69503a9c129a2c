//! The command families: each command's declaration directly above its handler.

pub mod array;
pub mod bitmap;
pub mod cluster;
pub mod connection;
pub mod database;
mod element_scan;
pub mod generic;
pub mod geo;
pub mod hash;
pub mod hyperloglog;
pub mod list;
pub mod pubsub;
pub mod set;
pub mod sorted_set;
pub mod stream;
pub mod string;
pub mod transactions;

use crate::Command;

/// All families of the engine.
pub const FAMILIES: &[&[Command]] = &[
    array::COMMANDS,
    bitmap::COMMANDS,
    cluster::COMMANDS,
    connection::COMMANDS,
    database::COMMANDS,
    generic::COMMANDS,
    geo::COMMANDS,
    hash::COMMANDS,
    hyperloglog::COMMANDS,
    list::COMMANDS,
    pubsub::COMMANDS,
    set::COMMANDS,
    sorted_set::COMMANDS,
    stream::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
];
