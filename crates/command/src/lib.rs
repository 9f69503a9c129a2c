//! A command's declaration as data, and what is rendered from it.
//!
//! A command family declares each of its commands in one constant directly above the handler.
//! Everything else that must know about the command (dispatch, arity errors, the gates for scripts
//! and transactions, key positions, ACL categories, COMMAND and its subcommands) reads that
//! constant through the [`Table`] built once at start.
//!
//! # Invariants
//! - A declaration is a constant: no registration, no allocation, no link-time magic.
//! - This crate never calls a handler: it is generic over the handler's type `H`.
//! - A fact that follows from another (ACL categories from flags, `movablekeys` and the legacy key
//!   range from the key specs) is derived, never written twice.
//!
//! # Why not a macro?
//! A macro would save a few words a command and cost readers the ability to jump to a definition;
//! struct literals with `..Command::runs(handler)` are as short.
#![forbid(unsafe_code)]

pub mod arg;
pub mod check;
pub mod declaration;
#[cfg(feature = "facts")]
pub mod facts;
pub mod flags;
pub mod keys;
pub mod render;
pub mod table;

pub use arg::{Arg, ArgKind};
pub use declaration::{Arity, Command, Group, Shape};
pub use flags::{Acl, Flags};
pub use keys::{Begin, Find, KeyAt, KeyFlags, KeySpec, Special, Unparsable, Words};
pub use table::{Entry, KeyPlan, Table, Unresolved};
