//! Which commands a selector allows: a bit for each command and subcommand, and the rules that led
//! there, as they are shown and saved.
//!
//! # Invariants
//! - Applying the rules shown to an empty set, in order, gives the same bits.
//! - The first rule is `+@all` or `-@all`; no later one repeats an earlier one or its opposite.

use std::collections::BTreeMap;

use command::{Acl, Flags};
use resp::Args;

use super::RuleError;
use crate::handler::{Entry, Table};

/// The commands that a selector allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandSet {
    /// Whether it is every command, whatever the bits say.
    is_all: bool,
    /// By the command's id.
    bits: Box<[u64]>,
    /// Commands that are allowed with one of these words behind them only.
    first_words: BTreeMap<u16, Vec<Box<[u8]>>>,
    rules: Vec<Box<[u8]>>,
}

impl CommandSet {
    /// No command.
    pub fn none() -> Self {
        Self {
            is_all: false,
            bits: Box::default(),
            first_words: BTreeMap::new(),
            rules: vec![(*b"-@all").into()],
        }
    }

    /// Every command.
    pub fn all() -> Self {
        Self {
            is_all: true,
            rules: vec![(*b"+@all").into()],
            ..Self::none()
        }
    }

    /// Whether it is every command.
    pub fn is_all(&self) -> bool {
        self.is_all
    }

    /// Whether this call is allowed. What serves to log in and to leave always is.
    pub fn allows(&self, entry: &Entry, args: Args<'_>) -> bool {
        self.is_all
            || self.has(entry.id)
            || entry.flags.has(Flags::NO_AUTH)
            || self.first_words.get(&entry.id).is_some_and(|words| {
                let given = args.get(1).unwrap_or_default();
                words.iter().any(|word| word.eq_ignore_ascii_case(given))
            })
    }

    fn has(&self, id: u16) -> bool {
        let word = self.bits.get(usize::from(id) / 64);
        word.is_some_and(|word| word >> (id % 64) & 1 == 1)
    }

    /// Applies `+get`, `-config|set`, `+@read`, `+select|0` and their like.
    pub(super) fn apply(&mut self, rule: &[u8], table: &Table) -> Result<(), RuleError> {
        let allow = rule[0] == b'+';
        let name = rule[1..].to_ascii_lowercase();
        if name == b"@all" {
            *self = if allow { Self::all() } else { Self::none() };
            return Ok(());
        }
        if let Some(category) = name.strip_prefix(b"@") {
            let category = Acl::named(category).ok_or(RuleError::Unknown)?;
            for entry in table.entries() {
                if entry.acl.has(category) {
                    self.set(entry.id, allow, table);
                }
            }
        } else if let Some(entry) = table.find_full_own(&name) {
            self.set(entry.id, allow, table);
            for subcommand in table.subcommands(entry) {
                self.set(subcommand.id, allow, table);
            }
        } else if allow {
            return self.allow_first_word(&name, table);
        } else {
            return Err(RuleError::Unknown);
        }
        let parts = [&name[..], b"|"].concat();
        self.rules
            .retain(|old| old[1..] != name[..] && !old[1..].starts_with(&parts));
        self.note(allow, &name);
        Ok(())
    }

    /// Allows a command that has no subcommands with this word behind it.
    fn allow_first_word(&mut self, name: &[u8], table: &Table) -> Result<(), RuleError> {
        let bar = name.iter().position(|byte| *byte == b'|');
        let (name_of_command, word) = name.split_at(bar.ok_or(RuleError::Unknown)?);
        let word = &word[1..];
        let entry = table.find_own(name_of_command).ok_or(RuleError::Unknown)?;
        if word.is_empty() {
            return Err(RuleError::Syntax);
        }
        if !table.subcommands(entry).is_empty() {
            let subcommand = word.split(|byte| *byte == b'|').next().unwrap_or_default();
            return Err(match table.find_subcommand(entry, subcommand) {
                Some(_) => RuleError::FirstWordOfSubcommand,
                None => RuleError::Unknown,
            });
        }
        if word.contains(&b'|') {
            return Err(RuleError::Unknown);
        }
        let words = self.first_words.entry(entry.id).or_default();
        if !words.iter().any(|known| **known == *word) {
            words.push(word.into());
        }
        self.rules.retain(|old| old[1..] != name[..]);
        self.note(true, name);
        Ok(())
    }

    fn note(&mut self, allow: bool, name: &[u8]) {
        let sign: &[u8] = if allow { b"+" } else { b"-" };
        self.rules.push([sign, name].concat().into());
    }

    fn set(&mut self, id: u16, allow: bool, table: &Table) {
        self.first_words.remove(&id);
        if self.is_all {
            if allow {
                return;
            }
            self.is_all = false;
            self.bits = vec![u64::MAX; table.len().div_ceil(64)].into();
        } else if self.bits.is_empty() {
            self.bits = vec![0; table.len().div_ceil(64)].into();
        }
        let word = &mut self.bits[usize::from(id) / 64];
        let bit = 1 << (id % 64);
        if allow {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    /// The rules with blanks between them.
    pub fn show(&self) -> Vec<u8> {
        self.rules.join(&b' ')
    }
}
