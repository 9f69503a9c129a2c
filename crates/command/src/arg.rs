//! The grammar of a command's arguments, for COMMAND DOCS, hints and help.
//!
//! The functions are the vocabulary: `key("key")`, `int("seconds").token("EX")`, `flag("NX")`,
//! `one_of("condition", &[flag("NX"), flag("XX")]).optional()`. Handlers parse for themselves; the
//! grammar describes and never decides.

use std::borrow::Cow;

/// One argument, or a group of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arg {
    /// Empty in a [`flag`] that is named like its token; see [`Arg::name`].
    pub name: &'static str,
    pub kind: ArgKind,
    /// The word that comes first. Only [`flag`] has nothing after it.
    pub token: Option<&'static str>,
    /// What help shows in place of the name.
    pub display: Option<&'static str>,
    pub since: Option<&'static str>,
    /// The version that deprecated it.
    pub deprecated: Option<&'static str>,
    pub summary: Option<&'static str>,
    /// Which of the command's key specs finds it; keys only, and patterns that name keys.
    pub key_spec: Option<u8>,
    pub is_optional: bool,
    pub is_multiple: bool,
    /// Each repetition has the token again.
    pub is_token_repeated: bool,
    /// The alternatives, or the parts in order.
    pub args: &'static [Arg],
}

/// What kind of word an argument is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    Key,
    String,
    Int,
    Double,
    Pattern,
    UnixTime,
    Flag,
    OneOf,
    Block,
}

impl ArgKind {
    /// The name in COMMAND DOCS.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::String => "string",
            Self::Int => "integer",
            Self::Double => "double",
            Self::Pattern => "pattern",
            Self::UnixTime => "unix-time",
            Self::Flag => "pure-token",
            Self::OneOf => "oneof",
            Self::Block => "block",
        }
    }
}

/// A key found by the first key spec.
pub const fn key(name: &'static str) -> Arg {
    Arg {
        key_spec: Some(0),
        ..Arg::new(name, ArgKind::Key)
    }
}

/// Any bytes.
pub const fn string(name: &'static str) -> Arg {
    Arg::new(name, ArgKind::String)
}

/// A whole number.
pub const fn int(name: &'static str) -> Arg {
    Arg::new(name, ArgKind::Int)
}

/// A floating-point number.
pub const fn double(name: &'static str) -> Arg {
    Arg::new(name, ArgKind::Double)
}

/// A glob pattern.
pub const fn pattern(name: &'static str) -> Arg {
    Arg::new(name, ArgKind::Pattern)
}

/// A point in time, in seconds or milliseconds since 1970.
pub const fn unix_time(name: &'static str) -> Arg {
    Arg::new(name, ArgKind::UnixTime)
}

/// A word on its own, named by its lower-case form.
pub const fn flag(token: &'static str) -> Arg {
    Arg::new("", ArgKind::Flag).token(token)
}

/// Exactly one of the alternatives.
pub const fn one_of(name: &'static str, args: &'static [Arg]) -> Arg {
    Arg {
        args,
        ..Arg::new(name, ArgKind::OneOf)
    }
}

/// All of the parts, in order.
pub const fn block(name: &'static str, args: &'static [Arg]) -> Arg {
    Arg {
        args,
        ..Arg::new(name, ArgKind::Block)
    }
}

impl Arg {
    const fn new(name: &'static str, kind: ArgKind) -> Self {
        Self {
            name,
            kind,
            token: None,
            display: None,
            since: None,
            deprecated: None,
            summary: None,
            key_spec: None,
            is_optional: false,
            is_multiple: false,
            is_token_repeated: false,
            args: &[],
        }
    }

    /// Preceded by this word.
    pub const fn token(self, token: &'static str) -> Self {
        Self {
            token: Some(token),
            ..self
        }
    }

    /// A name other than the one given so far.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// Shown under another name in help.
    pub const fn shown(self, display: &'static str) -> Self {
        Self {
            display: Some(display),
            ..self
        }
    }

    /// The Redis version that first had it.
    pub const fn since(self, version: &'static str) -> Self {
        Self {
            since: Some(version),
            ..self
        }
    }

    /// The Redis version that deprecated it.
    pub const fn deprecated(self, version: &'static str) -> Self {
        Self {
            deprecated: Some(version),
            ..self
        }
    }

    /// A sentence about it.
    pub const fn summary(self, summary: &'static str) -> Self {
        Self {
            summary: Some(summary),
            ..self
        }
    }

    /// Found by the command's key spec of this position.
    pub const fn spec(self, index: u8) -> Self {
        Self {
            key_spec: Some(index),
            ..self
        }
    }

    /// A key that no key spec finds.
    pub const fn no_spec(self) -> Self {
        Self {
            key_spec: None,
            ..self
        }
    }

    /// May be left out.
    pub const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    /// May be repeated.
    pub const fn multiple(self) -> Self {
        Self {
            is_multiple: true,
            ..self
        }
    }

    /// May be repeated, with the token before each.
    pub const fn multiple_token(self) -> Self {
        Self {
            is_multiple: true,
            is_token_repeated: true,
            ..self
        }
    }

    /// The name in COMMAND DOCS.
    pub fn name(&self) -> Cow<'static, str> {
        match self.token {
            Some(token) if self.name.is_empty() => Cow::Owned(token.to_ascii_lowercase()),
            _ => Cow::Borrowed(self.name),
        }
    }

    /// The name that help shows; groups have none.
    pub fn display(&self) -> Option<Cow<'static, str>> {
        match self.kind {
            ArgKind::OneOf | ArgKind::Block => None,
            _ => Some(self.display.map_or_else(|| self.name(), Cow::Borrowed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_named_by_its_token() {
        const GRAMMAR: &[Arg] =
            &[one_of("condition", &[flag("NX"), flag("~").named("approximately")]).optional()];
        assert_eq!(GRAMMAR[0].args[0].name(), "nx");
        assert_eq!(GRAMMAR[0].args[1].name(), "approximately");
        assert_eq!(GRAMMAR[0].display(), None);
        assert!(GRAMMAR[0].is_optional);
    }
}
