//! The command families: each command's declaration directly above its handler.

pub mod bitmap;
pub mod database;
pub mod generic;
pub mod string;
pub mod transactions;

use crate::Command;

/// All families of the engine.
pub const FAMILIES: &[&[Command]] = &[
    bitmap::COMMANDS,
    database::COMMANDS,
    generic::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
];
