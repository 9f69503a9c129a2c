//! Strict serializability of a real server: histories of many connections, and their proof.
//!
//! [`round`] has connections run transactions and single commands on few keys and notes when each
//! was sent, when it was answered, and what the answer says about the order of things. [`check`]
//! then looks for one order of all of them that explains every answer and that never puts a command
//! before one that was answered before it was sent. There is none exactly if what the answers say,
//! together with real time, runs in a circle; the smallest one is shown.
//!
//! # How answers tell the order
//! Every command is chosen so that its answer does: INCR and a transaction around WATCH say the
//! number that they made, GETSET says which (unique) value it replaced, XADD its id. Lists are kept
//! first in, first out, so elements that were numbered as they were pushed pass every stage of a
//! line of lists (RPOPLPUSH, BLMOVE, BRPOP) in that order. An EXEC is one operation, so a split
//! transaction is a circle of two.
//!
//! # Why not search for an order, as checkers for any history do?
//! That takes exponential time in the number of connections. Here no order is left to be guessed,
//! and a million operations are checked in seconds.

mod check;
mod load;

pub use check::check;
pub use load::round;

/// One operation of one connection: a command, or all commands of a transaction.
#[derive(Clone, Debug)]
pub struct Op {
    /// The connection.
    pub client: usize,
    /// When it was sent, in nanoseconds of one clock.
    pub sent: u64,
    /// When it was answered.
    pub answered: u64,
    /// What it was.
    pub name: &'static str,
    /// What the answer says that it did.
    pub did: Vec<Did>,
}

/// What an operation did to one key, by its answer. Values and elements are unique; 0 is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Did {
    /// A counter went to this number, by one.
    Count { key: u32, to: u64 },
    /// A counter stood at this number.
    CountSeen { key: u32, at: u64 },
    /// A register held `old` and now holds `new`.
    Swap { key: u32, old: u64, new: u64 },
    /// A register held this.
    Seen { key: u32, value: u64 },
    /// An element came to a line of lists, as its `number`th.
    Enter {
        line: u32,
        element: u64,
        number: u64,
    },
    /// An element passed stage `stage` of the line; the first after it came is 1.
    Pass { line: u32, stage: u32, element: u64 },
    /// An element was pushed to a queue.
    Push { queue: u32, element: u64 },
    /// An element was popped from a queue; `None` where the queue was empty.
    Pop { queue: u32, element: Option<u64> },
    /// An entry was added to a stream.
    Add {
        stream: u32,
        element: u64,
        id: (u64, u64),
    },
    /// A group gave out entries; `all` where it gave out all there were.
    Take {
        stream: u32,
        elements: Vec<u64>,
        all: bool,
    },
}

/// Stages of a line: two moves and a pop.
pub const STAGES: u32 = 3;

#[cfg(test)]
mod tests;
