//! Command flags and ACL categories, both sets of bits.
//!
//! A declaration lists only the flags and categories that nothing else implies: [`Acl::of`] adds
//! `@write`, `@read`, `@fast`, `@slow`, `@admin`, `@dangerous`, `@blocking` and `@pubsub` from the
//! flags, and the table adds [`Flags::MOVABLEKEYS`] from the key specs.
//!
//! # Invariants
//! - The order of the bits is the order in which COMMAND and ACL CAT list the names.

/// What a command does and where it is allowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u32);

impl Flags {
    pub const NONE: Self = Self(0);
    /// May change the data.
    pub const WRITE: Self = Self(1 << 0);
    /// Reads keys and never changes them.
    pub const READONLY: Self = Self(1 << 1);
    /// Refused when memory is full.
    pub const DENYOOM: Self = Self(1 << 2);
    /// Belongs to a module: no category follows from its flags.
    pub const MODULE: Self = Self(1 << 3);
    /// For operators.
    pub const ADMIN: Self = Self(1 << 4);
    pub const PUBSUB: Self = Self(1 << 5);
    /// Refused inside scripts.
    pub const NOSCRIPT: Self = Self(1 << 6);
    /// May keep the client waiting.
    pub const BLOCKING: Self = Self(1 << 7);
    /// Allowed while the data set loads.
    pub const LOADING: Self = Self(1 << 8);
    /// Allowed on a replica that lost its primary and must not serve old data.
    pub const STALE: Self = Self(1 << 9);
    pub const SKIP_MONITOR: Self = Self(1 << 10);
    pub const SKIP_SLOWLOG: Self = Self(1 << 11);
    /// Implies ASKING in a cluster.
    pub const ASKING: Self = Self(1 << 12);
    /// Constant or logarithmic time: never delays others.
    pub const FAST: Self = Self(1 << 13);
    /// Allowed before the client has authenticated.
    pub const NO_AUTH: Self = Self(1 << 14);
    /// Its key specs may yield no key.
    pub const NO_MANDATORY_KEYS: Self = Self(1 << 15);
    /// Refused while a replica loads in the background.
    pub const NO_ASYNC_LOADING: Self = Self(1 << 16);
    /// Refused inside a transaction.
    pub const NO_MULTI: Self = Self(1 << 17);
    /// Allowed while a script runs too long.
    pub const ALLOW_BUSY: Self = Self(1 << 18);
    /// Where keys stand depends on other arguments. Derived.
    pub const MOVABLEKEYS: Self = Self(1 << 19);
    /// Runs a script that runs other commands.
    pub const SCRIPT_RUNNER: Self = Self(1 << 20);

    const NAMES: [&str; 21] = [
        "write",
        "readonly",
        "denyoom",
        "module",
        "admin",
        "pubsub",
        "noscript",
        "blocking",
        "loading",
        "stale",
        "skip_monitor",
        "skip_slowlog",
        "asking",
        "fast",
        "no_auth",
        "no_mandatory_keys",
        "no_async_loading",
        "no_multi",
        "allow_busy",
        "movablekeys",
        "script_runner",
    ];

    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every flag of `other` is set.
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any flag of `other` is set.
    #[inline]
    pub const fn any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names, in COMMAND's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        set_bits(u64::from(self.0)).map(|bit| Self::NAMES[bit])
    }

    /// How many flags are set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether no flag is set.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// A set of ACL categories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acl(u32);

impl Acl {
    pub const NONE: Self = Self(0);
    pub const KEYSPACE: Self = Self(1 << 0);
    pub const READ: Self = Self(1 << 1);
    pub const WRITE: Self = Self(1 << 2);
    pub const SET: Self = Self(1 << 3);
    pub const SORTEDSET: Self = Self(1 << 4);
    pub const LIST: Self = Self(1 << 5);
    pub const HASH: Self = Self(1 << 6);
    pub const STRING: Self = Self(1 << 7);
    pub const ARRAY: Self = Self(1 << 8);
    pub const BITMAP: Self = Self(1 << 9);
    pub const HYPERLOGLOG: Self = Self(1 << 10);
    pub const GEO: Self = Self(1 << 11);
    pub const STREAM: Self = Self(1 << 12);
    pub const PUBSUB: Self = Self(1 << 13);
    pub const ADMIN: Self = Self(1 << 14);
    pub const FAST: Self = Self(1 << 15);
    pub const SLOW: Self = Self(1 << 16);
    pub const BLOCKING: Self = Self(1 << 17);
    pub const DANGEROUS: Self = Self(1 << 18);
    pub const CONNECTION: Self = Self(1 << 19);
    pub const TRANSACTION: Self = Self(1 << 20);
    pub const SCRIPTING: Self = Self(1 << 21);

    /// Every category, in the order of ACL CAT.
    pub const NAMES: [&'static str; 22] = [
        "keyspace",
        "read",
        "write",
        "set",
        "sortedset",
        "list",
        "hash",
        "string",
        "array",
        "bitmap",
        "hyperloglog",
        "geo",
        "stream",
        "pubsub",
        "admin",
        "fast",
        "slow",
        "blocking",
        "dangerous",
        "connection",
        "transaction",
        "scripting",
    ];

    /// The declared categories and those that `flags` imply.
    pub const fn of(declared: Self, flags: Flags) -> Self {
        if flags.has(Flags::MODULE) {
            return declared;
        }
        let mut all = declared;
        if flags.has(Flags::WRITE) {
            all = all.with(Self::WRITE);
        }
        // A script that only reads may still read anything: it is not a plain reader.
        if flags.has(Flags::READONLY) && !declared.has(Self::SCRIPTING) {
            all = all.with(Self::READ);
        }
        if flags.has(Flags::ADMIN) {
            all = all.with(Self::ADMIN).with(Self::DANGEROUS);
        }
        if flags.has(Flags::PUBSUB) {
            all = all.with(Self::PUBSUB);
        }
        if flags.has(Flags::BLOCKING) {
            all = all.with(Self::BLOCKING);
        }
        all.with(if flags.has(Flags::FAST) {
            Self::FAST
        } else {
            Self::SLOW
        })
    }

    /// The category of this name, in any case, without the `@`.
    pub fn named(name: &[u8]) -> Option<Self> {
        let bit = Self::NAMES
            .iter()
            .position(|n| n.as_bytes().eq_ignore_ascii_case(name))?;
        Some(Self(1 << bit))
    }

    /// Both sets together.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether every category of `other` is in the set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The names without `@`, in ACL CAT's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        set_bits(u64::from(self.0)).map(|bit| Self::NAMES[bit])
    }

    /// How many categories are in the set.
    pub const fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The positions of the bits that are set, lowest first.
pub(crate) fn set_bits(bits: u64) -> impl Iterator<Item = usize> {
    (0..64).filter(move |bit| bits >> bit & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn categories_follow_from_flags() {
        let names = |acl: Acl| acl.names().collect::<Vec<_>>();
        let xadd = Acl::of(
            Acl::STREAM,
            Flags::WRITE.with(Flags::DENYOOM).with(Flags::FAST),
        );
        assert_eq!(names(xadd), ["write", "stream", "fast"]);
        let kill = Acl::of(Acl::CONNECTION, Flags::ADMIN.with(Flags::NOSCRIPT));
        assert_eq!(names(kill), ["admin", "slow", "dangerous", "connection"]);
        assert_eq!(
            names(Acl::of(Acl::SCRIPTING, Flags::READONLY)),
            ["slow", "scripting"]
        );
        assert!(Acl::of(Acl::NONE, Flags::MODULE.with(Flags::WRITE)).is_empty());
    }

    #[test]
    fn a_category_is_found_by_name_in_any_case() {
        assert_eq!(Acl::named(b"SortedSet"), Some(Acl::SORTEDSET));
        assert_eq!(Acl::named(b"@read"), None);
    }
}
