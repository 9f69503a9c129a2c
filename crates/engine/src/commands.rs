//! The command families: each command's declaration directly above its handler.

pub mod bitmap;
pub mod database;
pub mod generic;
pub mod list;
pub mod set;
pub mod string;
pub mod transactions;

use crate::Command;

/// All families of the engine.
pub const FAMILIES: &[&[Command]] = &[
    bitmap::COMMANDS,
    database::COMMANDS,
    generic::COMMANDS,
    list::COMMANDS,
    set::COMMANDS,
    string::COMMANDS,
    transactions::COMMANDS,
];
