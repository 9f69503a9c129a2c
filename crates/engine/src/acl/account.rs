//! An account: what is kept of a user, changed rule by rule.
//!
//! The rules are words: `on`, `>password`, `~key:*`, `+@read`, `(+get ~other:*)`. What an account
//! shows are rules again, and applying those to a new account gives the same one.

use std::fmt;
use std::sync::Arc;

use super::{Digest, Rights, Selector};
use crate::handler::Table;

/// A user as it is kept and saved.
#[derive(Clone, Debug)]
pub struct Account {
    is_enabled: bool,
    /// Whether every password is right.
    no_password: bool,
    skips_sanitizing: bool,
    passwords: Vec<Digest>,
    /// The user's own rights.
    own: Selector,
    /// Further ones.
    selectors: Vec<Selector>,
}

/// What rules are read against.
#[derive(Clone, Copy)]
pub struct Bounds<'a> {
    /// The commands that there are.
    pub table: &'a Table,
    /// `acl-pubsub-default`: whether a new user may use every channel.
    pub all_channels: bool,
}

/// What is wrong with a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// It is none.
    Syntax,
    /// There is no such command or category.
    Unknown,
    /// A pattern of keys although every key is allowed.
    AfterAllKeys,
    /// A pattern of channels although every one is allowed.
    AfterAllChannels,
    /// The password that is to go is not there.
    NoSuchPassword,
    /// No digest of a password.
    BadDigest,
    /// A word behind a subcommand.
    FirstWordOfSubcommand,
    /// No number of a database.
    DatabaseRange,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "Syntax error",
            Self::Unknown => "Unknown command or category name in ACL",
            Self::AfterAllKeys => {
                "Adding a pattern after the * pattern (or the 'allkeys' flag) is not valid and \
                 does not have any effect. Try 'resetkeys' to start with an empty list of patterns"
            }
            Self::AfterAllChannels => {
                "Adding a pattern after the * pattern (or the 'allchannels' flag) is not valid and \
                 does not have any effect. Try 'resetchannels' to start with an empty list of \
                 channels"
            }
            Self::NoSuchPassword => {
                "The password you are trying to remove from the user does not exist"
            }
            Self::BadDigest => {
                "The password hash must be exactly 64 characters and contain only lowercase \
                 hexadecimal characters"
            }
            Self::FirstWordOfSubcommand => "Allowing first-arg of a subcommand is not supported",
            Self::DatabaseRange => "The provided database ID is out of range",
        })
    }
}

impl Account {
    /// A new user: off, without a password, and allowed nothing.
    pub fn new(bounds: &Bounds<'_>) -> Self {
        Self {
            is_enabled: false,
            no_password: false,
            skips_sanitizing: false,
            passwords: Vec::new(),
            own: Selector::none(bounds.all_channels),
            selectors: Vec::new(),
        }
    }

    /// The user that there always is: with this password, or with any.
    pub fn default_user(password: Option<&[u8]>) -> Self {
        Self {
            is_enabled: true,
            no_password: password.is_none(),
            skips_sanitizing: false,
            passwords: password.map(Digest::of).into_iter().collect(),
            own: Selector::everything(),
            selectors: Vec::new(),
        }
    }

    /// Sets its only password, or lets every one be right.
    pub fn set_password(&mut self, password: Option<&[u8]>) {
        self.no_password = password.is_none();
        self.passwords = password.map(Digest::of).into_iter().collect();
    }

    /// Whether it may log in.
    pub fn is_enabled(&self) -> bool {
        self.is_enabled
    }

    /// Whether every password is right.
    pub fn has_no_password(&self) -> bool {
        self.no_password
    }

    /// Whether one may log in with the password of this digest. Every password is looked at, so
    /// that the time says nothing.
    pub fn admits(&self, given: &Digest) -> bool {
        let found = self
            .passwords
            .iter()
            .fold(false, |found, password| found | password.is(given));
        self.is_enabled & (self.no_password | found)
    }

    /// What it may do.
    pub fn rights(&self) -> Arc<Rights> {
        let own = std::iter::once(&self.own);
        Arc::new(Rights::new(own.chain(&self.selectors).cloned().collect()))
    }

    /// Applies one rule.
    ///
    /// # Errors
    /// What is wrong with it. What the rule before changed stays: apply rules to a copy.
    pub fn apply(&mut self, rule: &[u8], bounds: &Bounds<'_>) -> Result<(), RuleError> {
        match rule {
            [] => return Ok(()),
            [b'>', password @ ..] => self.add_password(Digest::of(password)),
            [b'<', password @ ..] => self.remove_password(&Digest::of(password))?,
            [b'#', digest @ ..] => {
                self.add_password(Digest::parse(digest).ok_or(RuleError::BadDigest)?);
            }
            [b'!', digest @ ..] => {
                self.remove_password(&Digest::parse(digest).ok_or(RuleError::BadDigest)?)?;
            }
            [b'(', rules @ .., b')'] => {
                let mut selector = Selector::none(bounds.all_channels);
                for rule in rules.split(u8::is_ascii_whitespace) {
                    if !rule.is_empty() && !selector.apply(rule, bounds)? {
                        return Err(RuleError::Syntax);
                    }
                }
                self.selectors.push(selector);
            }
            _ => return self.apply_word(rule, bounds),
        }
        Ok(())
    }

    fn apply_word(&mut self, rule: &[u8], bounds: &Bounds<'_>) -> Result<(), RuleError> {
        match rule.to_ascii_lowercase().as_slice() {
            b"on" => self.is_enabled = true,
            b"off" => self.is_enabled = false,
            b"nopass" => {
                self.no_password = true;
                self.passwords.clear();
            }
            b"resetpass" => {
                self.no_password = false;
                self.passwords.clear();
            }
            b"skip-sanitize-payload" => self.skips_sanitizing = true,
            b"sanitize-payload" => self.skips_sanitizing = false,
            b"clearselectors" => self.selectors.clear(),
            b"reset" => *self = Self::new(bounds),
            _ => {
                return match self.own.apply(rule, bounds)? {
                    true => Ok(()),
                    false => Err(RuleError::Syntax),
                };
            }
        }
        Ok(())
    }

    fn add_password(&mut self, new: Digest) {
        self.no_password = false;
        if !self.passwords.iter().any(|known| known.is(&new)) {
            self.passwords.push(new);
        }
    }

    fn remove_password(&mut self, old: &Digest) -> Result<(), RuleError> {
        let count = self.passwords.len();
        self.passwords.retain(|known| !known.is(old));
        match self.passwords.len() < count {
            true => Ok(()),
            false => Err(RuleError::NoSuchPassword),
        }
    }

    /// The words for what is not a right.
    pub fn show_flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_enabled { "on" } else { "off" }];
        if self.no_password {
            flags.push("nopass");
        }
        flags.push(match self.skips_sanitizing {
            true => "skip-sanitize-payload",
            false => "sanitize-payload",
        });
        flags
    }

    /// The digests of its passwords.
    pub fn show_passwords(&self) -> Vec<String> {
        self.passwords.iter().map(Digest::show).collect()
    }

    /// The user's own rights.
    pub fn own(&self) -> &Selector {
        &self.own
    }

    /// Further ones.
    pub fn selectors(&self) -> &[Selector] {
        &self.selectors
    }

    /// The account as a line of a file: `user NAME` and its rules.
    pub fn show(&self, name: &[u8]) -> Vec<u8> {
        let mut line = [b"user ", name].concat();
        let mut add = |before: &[u8], rule: &[u8], after: &[u8]| {
            line.push(b' ');
            line.extend_from_slice(&[before, rule, after].concat());
        };
        for flag in self.show_flags() {
            add(b"", flag.as_bytes(), b"");
        }
        for password in self.show_passwords() {
            add(b"#", password.as_bytes(), b"");
        }
        add(b"", &self.own.show(), b"");
        for selector in &self.selectors {
            add(b"(", &selector.show(), b")");
        }
        line
    }
}

/// Puts selectors together that came as several words: `(+get`, `~key)`.
///
/// # Errors
/// The word that begins one which never ends.
pub fn join_selectors<'a>(
    words: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Vec<u8>>, &'a [u8]> {
    let mut rules = Vec::new();
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for word in words {
        let (first, rule) = match open.take() {
            None if !word.starts_with(b"(") => {
                rules.push(word.to_vec());
                continue;
            }
            None => (word, word.to_vec()),
            Some((first, begun)) => (first, [&begun, &b" "[..], word].concat()),
        };
        match rule.ends_with(b")") {
            true => rules.push(rule),
            false => open = Some((first, rule)),
        }
    }
    match open {
        None => Ok(rules),
        Some((first, _)) => Err(first),
    }
}

#[cfg(test)]
mod tests;
