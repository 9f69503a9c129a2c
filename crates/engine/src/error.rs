//! What a client did wrong, and the exact words that it gets.

use std::borrow::Cow;
use std::fmt;

/// Bytes of a word that the errors for unknown commands and subcommands repeat.
pub const SHOWN_BYTES_MAX: usize = 128;

/// A client's mistake. Its text is what stands on the wire, behind the `-`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandError {
    /// The key holds another type.
    WrongType,
    /// The options do not fit together.
    Syntax,
    /// Not an integer, or past 64 bits.
    NotInteger,
    /// Not a float.
    NotFloat,
    /// A result past 64 bits.
    Overflow,
    /// An index outside.
    IndexRange,
    /// A number outside its range.
    Range,
    /// A database's number outside of the configured ones.
    DbRange,
    /// No such key where one must be.
    NoSuchKey,
    /// The wrong number of words; holds the command's name.
    Arity(Box<str>),
    /// An expire time that cannot be; holds the command's name.
    InvalidExpire(&'static str),
    /// A string that would grow past the limit.
    StringTooLong,
    /// A timeout that is no number.
    TimeoutNotFloat,
    /// A timeout below zero.
    TimeoutNegative,
    /// Memory is past `maxmemory` and nothing can be evicted.
    OutOfMemory,
    /// Any other text, its code first (`ERR …`).
    Text(Cow<'static, str>),
}

impl CommandError {
    /// An error with the code ERR; `text` comes without it.
    pub fn err(text: impl fmt::Display) -> Self {
        Self::Text(format!("ERR {text}").into())
    }

    /// An error whose text begins with its code.
    pub const fn text(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// The word that error statistics count under: `ERR`, `WRONGTYPE`, …
    pub fn code(&self) -> Cow<'static, str> {
        match self {
            Self::WrongType => "WRONGTYPE".into(),
            Self::OutOfMemory => "OOM".into(),
            Self::Text(text) => text.split(' ').next().unwrap_or("ERR").to_owned().into(),
            _ => "ERR".into(),
        }
    }
}

/// A client's word as an error repeats it, up to a zero byte. Each byte is one character, up to
/// U+00FF, and [`resp::Writer::error`] makes it a byte again.
pub fn shown(word: &[u8]) -> String {
    shown_up_to(word, usize::MAX)
}

/// [`shown`], of at most so many bytes.
pub fn shown_up_to(word: &[u8], bytes_max: usize) -> String {
    let bytes = word.iter().take(bytes_max);
    bytes
        .take_while(|byte| **byte != 0)
        .map(|byte| char::from(*byte))
        .collect()
}

impl From<&'static str> for CommandError {
    fn from(text: &'static str) -> Self {
        Self::text(text)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WrongType => {
                "WRONGTYPE Operation against a key holding the wrong kind of value".fmt(f)
            }
            Self::Syntax => "ERR syntax error".fmt(f),
            Self::NotInteger => "ERR value is not an integer or out of range".fmt(f),
            Self::NotFloat => "ERR value is not a valid float".fmt(f),
            Self::Overflow => "ERR increment or decrement would overflow".fmt(f),
            Self::IndexRange => "ERR index out of range".fmt(f),
            Self::Range => "ERR value is out of range".fmt(f),
            Self::DbRange => "ERR DB index is out of range".fmt(f),
            Self::NoSuchKey => "ERR no such key".fmt(f),
            Self::Arity(name) => {
                write!(f, "ERR wrong number of arguments for '{name}' command")
            }
            Self::InvalidExpire(name) => write!(f, "ERR invalid expire time in '{name}' command"),
            Self::StringTooLong => {
                "ERR string exceeds maximum allowed size (proto-max-bulk-len)".fmt(f)
            }
            Self::TimeoutNotFloat => "ERR timeout is not a float or out of range".fmt(f),
            Self::TimeoutNegative => "ERR timeout is negative".fmt(f),
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.".fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

impl std::error::Error for CommandError {}
