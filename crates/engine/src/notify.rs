//! Keyspace events: which are sent, under which letters.

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
    pub const NEW: Self = Self(1 << 12);
    /// `d`: module keys.
    pub const MODULE: Self = Self(1 << 13);
    /// `o`: overwritten keys; not part of `A`.
    pub const OVERWRITTEN: Self = Self(1 << 14);
    /// `c`: keys whose type changed; not part of `A`.
    pub const TYPE_CHANGED: Self = Self(1 << 15);
}

/// Every letter and its bit.
const LETTERS: [(u8, Class); 16] = [
    (b'K', Class::KEYSPACE),
    (b'E', Class::KEYEVENT),
    (b'g', Class::GENERIC),
    (b'$', Class::STRING),
    (b'l', Class::LIST),
    (b's', Class::SET),
    (b'h', Class::HASH),
    (b'z', Class::SORTED_SET),
    (b'x', Class::EXPIRED),
    (b'e', Class::EVICTED),
    (b't', Class::STREAM),
    (b'm', Class::MISS),
    (b'n', Class::NEW),
    (b'd', Class::MODULE),
    (b'o', Class::OVERWRITTEN),
    (b'c', Class::TYPE_CHANGED),
];

/// What the letter `A` stands for.
const ALL: u32 = 0b0010_0111_1111_1100;

/// Reads `notify-keyspace-events`. `None` for a letter that is none.
pub fn parse(letters: &str) -> Option<u32> {
    letters.bytes().try_fold(0, |bits, letter| match letter {
        b'A' => Some(bits | ALL),
        _ => LETTERS
            .iter()
            .find(|(known, _)| *known == letter)
            .map(|(_, class)| bits | class.0),
    })
}

/// Writes the bits as letters, `A` where all of it is there.
pub fn format(bits: u32) -> String {
    let mut text = String::new();
    let all = bits & ALL == ALL;
    if all {
        text.push('A');
    }
    for (letter, class) in LETTERS {
        if bits & class.0 != 0 && !(all && ALL & class.0 != 0) {
            text.push(char::from(letter));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_and_bits_go_both_ways() {
        assert_eq!(parse("KEA").map(format).as_deref(), Some("AKE"));
        assert_eq!(parse("Kg$").map(format).as_deref(), Some("Kg$"));
        assert_eq!(parse("g$lshzxetd").map(format).as_deref(), Some("A"));
        assert_eq!(parse("q"), None);
    }
}
