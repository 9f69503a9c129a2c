//! What a command says about itself.
//!
//! A declaration is a struct literal that ends in `..Command::runs(handler)` or, for a container
//! such as CLIENT, in `..Command::container(SUBCOMMANDS)`; both fill every field not named.
//!
//! ```
//! use command::{Acl, Arity, Command, Flags, Group, KeySpec, Shape, arg::*};
//! type Handler = fn() -> u32;
//! fn getdel() -> u32 {
//!     7
//! }
//! const GETDEL: Command<Handler> = Command {
//!     name: "getdel",
//!     group: Group::String,
//!     since: "6.2.0",
//!     summary: "Reads a string and deletes its key.",
//!     complexity: "O(1)",
//!     arity: Arity::exactly(2),
//!     flags: Flags::WRITE.with(Flags::FAST),
//!     acl: Acl::STRING,
//!     keys: &[KeySpec::at(1).rw().access().delete()],
//!     args: &[key("key")],
//!     reply: &[Shape::Bulk, Shape::Null],
//!     ..Command::runs(getdel)
//! };
//! assert_eq!(GETDEL.run.unwrap()(), 7);
//! ```

use crate::{Acl, Arg, Flags, KeySpec, Special};

/// One command, or one subcommand of a container.
#[derive(Clone, Copy, Debug)]
pub struct Command<H: 'static> {
    /// Lower case, without the container: CLIENT KILL is `kill` inside `client`.
    pub name: &'static str,
    pub group: Group,
    /// The Redis version that first had it.
    pub since: &'static str,
    /// One sentence that ends in a full stop.
    pub summary: &'static str,
    /// `O(…)`, or empty where it depends on what the command is given.
    pub complexity: &'static str,
    /// Counts every word: the command's name and, in a subcommand, both names.
    pub arity: Arity,
    pub flags: Flags,
    /// The categories that do not follow from `flags`; see [`Acl::of`].
    pub acl: Acl,
    pub keys: &'static [KeySpec],
    /// How keys are found where `keys` alone cannot say it.
    pub special: Special,
    pub args: &'static [Arg],
    /// Every shape that a reply without an error may take.
    pub reply: &'static [Shape],
    /// Hints for clients and proxies, such as `request_policy:all_shards`.
    pub tips: &'static [&'static str],
    /// What changed since, oldest first: the version, and a sentence.
    pub history: &'static [(&'static str, &'static str)],
    /// The version that deprecated it, and what to use instead.
    pub deprecated: Option<(&'static str, &'static str)>,
    /// Internal to the server: `syscmd` in COMMAND DOCS.
    pub system: bool,
    /// The module that has it in Redis, where it is not part of the core.
    pub module: Option<&'static str>,
    /// Only containers have subcommands.
    pub subcommands: &'static [Command<H>],
    /// None in a container that does nothing without a subcommand.
    pub run: Option<H>,
}

impl<H: Copy + 'static> Command<H> {
    /// A command that `run` executes; every other field empty.
    pub const fn runs(run: H) -> Self {
        Self {
            run: Some(run),
            ..Self::container(&[])
        }
    }

    /// A command that only holds `subcommands`; every other field empty.
    pub const fn container(subcommands: &'static [Self]) -> Self {
        Self {
            name: "",
            group: Group::Generic,
            since: "",
            summary: "",
            complexity: "",
            arity: Arity::at_least(2),
            flags: Flags::NONE,
            acl: Acl::NONE,
            keys: &[],
            special: Special::None,
            args: &[],
            reply: &[],
            tips: &[],
            history: &[],
            deprecated: None,
            system: false,
            module: None,
            subcommands,
            run: None,
        }
    }
}

/// How many words a call has, the command's name included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arity(i16);

impl Arity {
    /// Exactly `count` words.
    pub const fn exactly(count: u8) -> Self {
        Self(count as i16)
    }

    /// `count` words or more.
    pub const fn at_least(count: u8) -> Self {
        Self(-(count as i16))
    }

    /// Whether a call of `count` words is allowed.
    #[inline]
    pub const fn allows(self, count: usize) -> bool {
        if self.0 >= 0 {
            count == self.0 as usize
        } else {
            count >= self.0.unsigned_abs() as usize
        }
    }

    /// The fewest words of a call, and how many more it may have.
    pub(crate) const fn range(self) -> (usize, usize) {
        let more = match self.0 >= 0 {
            true => 0,
            false => isize::MAX as usize,
        };
        (self.least(), more)
    }

    /// The fewest words a call has.
    pub const fn least(self) -> usize {
        self.0.unsigned_abs() as usize
    }

    /// As COMMAND shows it: negative for a minimum.
    pub const fn signed(self) -> i16 {
        self.0
    }
}

/// The family a command belongs to in COMMAND DOCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Array,
    Bitmap,
    Cluster,
    Connection,
    Generic,
    Geo,
    Hash,
    Hyperloglog,
    List,
    Module,
    Pubsub,
    Scripting,
    Sentinel,
    Server,
    Set,
    SortedSet,
    Stream,
    String,
    Transactions,
}

impl Group {
    /// The name in COMMAND DOCS.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Bitmap => "bitmap",
            Self::Cluster => "cluster",
            Self::Connection => "connection",
            Self::Generic => "generic",
            Self::Geo => "geo",
            Self::Hash => "hash",
            Self::Hyperloglog => "hyperloglog",
            Self::List => "list",
            Self::Module => "module",
            Self::Pubsub => "pubsub",
            Self::Scripting => "scripting",
            Self::Sentinel => "sentinel",
            Self::Server => "server",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Stream => "stream",
            Self::String => "string",
            Self::Transactions => "transactions",
        }
    }
}

/// One shape that a reply may take. RESP2 shows maps, sets and pushes as arrays, doubles and
/// verbatim strings as bulk strings, booleans as integers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// The simple string OK.
    Ok,
    /// Another simple string.
    Simple,
    Bulk,
    Int,
    Double,
    Bool,
    Null,
    Array,
    Map,
    Set,
    Push,
    Verbatim,
    /// Whatever a script, a nested command or a debugging aid yields.
    Any,
    /// No reply at all.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arity_counts_every_word() {
        assert!(Arity::exactly(2).allows(2));
        assert!(!Arity::exactly(2).allows(3));
        assert!(Arity::at_least(2).allows(2));
        assert!(Arity::at_least(2).allows(1_000_000));
        assert!(!Arity::at_least(2).allows(1));
        assert_eq!(Arity::at_least(3).signed(), -3);
    }
}
