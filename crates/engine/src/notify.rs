//! Keyspace events: their classes. The configuration reads and writes them as letters.

/// A class of events, as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class(pub u32);

impl Class {
    /// `K`: events on `__keyspace@<db>__:<key>`.
    pub const KEYSPACE: Self = Self(1 << 0);
    /// `E`: events on `__keyevent@<db>__:<event>`.
    pub const KEYEVENT: Self = Self(1 << 1);
    /// `g`: commands of any type, such as DEL and EXPIRE.
    pub const GENERIC: Self = Self(1 << 2);
    /// `$`: strings.
    pub const STRING: Self = Self(1 << 3);
    /// `l`: lists.
    pub const LIST: Self = Self(1 << 4);
    /// `s`: sets.
    pub const SET: Self = Self(1 << 5);
    /// `h`: hashes.
    pub const HASH: Self = Self(1 << 6);
    /// `z`: sorted sets.
    pub const SORTED_SET: Self = Self(1 << 7);
    /// `x`: expired keys.
    pub const EXPIRED: Self = Self(1 << 8);
    /// `e`: evicted keys.
    pub const EVICTED: Self = Self(1 << 9);
    /// `t`: streams.
    pub const STREAM: Self = Self(1 << 10);
    /// `m`: reads of missing keys; not part of `A`.
    pub const MISS: Self = Self(1 << 11);
    /// `n`: new keys; not part of `A`.
    pub const NEW: Self = Self(1 << 14);
    /// `d`: module keys.
    pub const MODULE: Self = Self(1 << 13);
    /// `o`: overwritten keys; not part of `A`.
    pub const OVERWRITTEN: Self = Self(1 << 15);
    /// `c`: keys whose type changed; not part of `A`.
    pub const TYPE_CHANGED: Self = Self(1 << 16);
    /// `a`: sparse arrays.
    pub const ARRAY: Self = Self(1 << 17);
    /// `S`: events with their fields on `__subkeyspace@<db>__:<key>`.
    pub const SUBKEYSPACE: Self = Self(1 << 18);
    /// `T`: the same on `__subkeyevent@<db>__:<event>`.
    pub const SUBKEYEVENT: Self = Self(1 << 19);
    /// `I`: an event a field, on `__subkeyspaceitem@<db>__:<key>`, a new line, and the field.
    pub const SUBKEYSPACEITEM: Self = Self(1 << 20);
    /// `V`: the fields on `__subkeyspaceevent@<db>__:<event>|<key>`.
    pub const SUBKEYSPACEEVENT: Self = Self(1 << 21);
    /// Those that tell of fields.
    pub const SUBKEYS: Self = Self(0b1111 << 18);
}
