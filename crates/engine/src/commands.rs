//! The command families: each command's declaration directly above its handler.

pub mod database;
pub mod generic;
pub mod stream;
pub mod string;
pub mod transactions;

use crate::Command;

/// All families of the engine.
pub const FAMILIES: &[&[Command]] = &[
    database::COMMANDS,
    generic::COMMANDS,
    stream::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
];
