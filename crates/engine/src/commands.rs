//! The command families: each command's declaration directly above its handler.

pub mod string;
pub mod transactions;

use crate::Command;

/// All families of the engine.
pub const FAMILIES: &[&[Command]] = &[string::COMMANDS, transactions::COMMANDS];
