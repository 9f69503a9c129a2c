//! The first line of a script or library: `#!lua flags=no-writes,allow-oom name=mylib`.

use engine::CommandError;
use engine::error::shown;

/// What a script or function says about itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptFlags(u8);

impl ScriptFlags {
    /// It writes nothing.
    pub const NO_WRITES: Self = Self(1);
    /// It may run when memory is full.
    pub const ALLOW_OOM: Self = Self(1 << 1);
    /// It may run on a replica with old data.
    pub const ALLOW_STALE: Self = Self(1 << 2);
    /// It does not run in a cluster.
    pub const NO_CLUSTER: Self = Self(1 << 3);
    /// Its keys may be in several slots.
    pub const ALLOW_CROSS_SLOT_KEYS: Self = Self(1 << 4);
    /// It has no first line: its rights follow from each command that it calls.
    pub const UNDECLARED: Self = Self(1 << 5);

    /// The flags' names, in the order in which FUNCTION LIST shows them.
    const NAMES: [(&str, Self); 5] = [
        ("no-writes", Self::NO_WRITES),
        ("allow-oom", Self::ALLOW_OOM),
        ("allow-stale", Self::ALLOW_STALE),
        ("no-cluster", Self::NO_CLUSTER),
        ("allow-cross-slot-keys", Self::ALLOW_CROSS_SLOT_KEYS),
    ];

    /// The flag of a name.
    pub fn named(name: &[u8]) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| known.as_bytes() == name)
            .map(|(_, flag)| *flag)
    }

    /// Whether every flag of `other` is set.
    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The names of those that are set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES
            .iter()
            .filter(move |(_, flag)| self.has(*flag))
            .map(|(name, _)| *name)
    }
}

/// Splits the first line off where it is a header. The rest begins with the line's end, so that
/// lines keep their numbers.
fn split(source: &[u8]) -> Option<(&[u8], &[u8])> {
    if !source.starts_with(b"#!") {
        return None;
    }
    let end = source.iter().position(|&byte| byte == b'\n');
    Some(source.split_at(end.unwrap_or(source.len())))
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// The flags of a script, and the part of it that is Lua.
///
/// # Errors
/// Where the first line is a header that is none.
pub fn script(source: &[u8]) -> Result<(ScriptFlags, &[u8]), CommandError> {
    let Some((line, body)) = split(source) else {
        return Ok((ScriptFlags::UNDECLARED, source));
    };
    if body.is_empty() {
        return Err(CommandError::err("Invalid script shebang"));
    }
    let mut words = words(line);
    let engine = words.next().unwrap_or_default();
    if engine != b"#!lua" {
        let engine = shown(engine);
        return Err(CommandError::err(format!(
            "Unexpected engine in script shebang: {engine}"
        )));
    }
    let mut flags = ScriptFlags::default();
    for word in words {
        let Some(list) = word.strip_prefix(b"flags=") else {
            let word = shown(word);
            return Err(CommandError::err(format!(
                "Unknown lua shebang option: {word}"
            )));
        };
        for name in list.split(|&byte| byte == b',') {
            if name.is_empty() {
                continue;
            }
            let Some(flag) = ScriptFlags::named(name) else {
                let name = shown(name);
                return Err(CommandError::err(format!(
                    "Unexpected flag in script shebang: {name}"
                )));
            };
            flags = flags.with(flag);
        }
    }
    Ok((flags, body))
}

/// Whether a name of a library or function is allowed.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|&byte| byte == b'_' || byte.is_ascii_alphanumeric())
}

/// What is said about a name that is not allowed.
pub const BAD_NAME: &str = "ERR Library names can only contain letters, numbers, or \
                            underscores(_) and must be at least one character long";

/// The name of a library, and the part of it that is Lua.
///
/// # Errors
/// Where the first line does not say the engine and the name.
pub fn library(source: &[u8]) -> Result<(&[u8], &[u8]), CommandError> {
    let Some((line, body)) = split(source) else {
        return Err(CommandError::err("Missing library metadata"));
    };
    if body.is_empty() {
        return Err(CommandError::err("Invalid library metadata"));
    }
    let mut words = words(line);
    let engine = words.next().unwrap_or_default();
    let engine = engine.strip_prefix(b"#!").unwrap_or_default();
    let mut name = None;
    for word in words {
        let is_name = word.len() >= 5 && word[..5].eq_ignore_ascii_case(b"name=");
        if !is_name {
            let word = shown(word);
            return Err(CommandError::err(format!(
                "Invalid metadata value given: {word}"
            )));
        }
        if name.replace(&word[5..]).is_some() {
            return Err(CommandError::err(
                "Invalid metadata value, name argument was given multiple times",
            ));
        }
    }
    let Some(name) = name else {
        return Err(CommandError::err("Library name was not given"));
    };
    if !is_name(name) {
        return Err(CommandError::text(BAD_NAME));
    }
    if !engine.eq_ignore_ascii_case(b"lua") {
        let engine = shown(engine);
        return Err(CommandError::err(format!("Engine '{engine}' not found")));
    }
    Ok((name, body))
}
