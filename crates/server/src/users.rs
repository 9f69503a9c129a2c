//! The users: who there is, what they may do, and what they were refused.
//!
//! One table for all threads. A change makes a new account from the old one and its rules, and
//! puts it in place only if every rule is right. Threads hear of it through
//! [`Shared::users_changed`](crate::shared::Shared::users_changed), and give each of their
//! sessions the new rights before its next command.
//!
//! # Invariants
//! - There is always a user `default`.
//! - `is_open` says whether a new client is logged in as `default` without a password.
//! - Passwords are kept as digests only; the error for a bad rule repeats no password.
//!
//! # Why not a lock a user?
//! Accounts are read when somebody logs in and changed by operators: a lock for all is quick
//! enough, and ACL LOAD replaces everybody at once under it.

mod file;
mod log;

pub use file::LoadError;
pub use log::Log;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use engine::acl::{Account, Bounds, Digest, Rights, RuleError, User, join_selectors};
use engine::error::shown;
use parking_lot::{Mutex, RwLock};

/// The name of the user that there always is.
pub const DEFAULT: &[u8] = b"default";

/// The users of a server.
pub struct Users {
    table: RwLock<BTreeMap<Box<[u8]>, Entry>>,
    /// The user of new clients.
    default: Arc<User>,
    /// Whether new clients need no password: `default` is on and has none.
    is_open: AtomicBool,
    /// Whether every password of `default` is right, even where it is off.
    has_no_password: AtomicBool,
    /// Grows with each change.
    pub version: AtomicU64,
    /// What was refused.
    pub log: Mutex<Log>,
}

#[derive(Clone)]
struct Entry {
    user: Arc<User>,
    account: Account,
}

impl Entry {
    fn new(name: &[u8], account: Account) -> Self {
        let user = User::new(name, account.rights());
        Self { user, account }
    }
}

/// Why a user was not changed.
#[derive(Debug, PartialEq, Eq)]
pub enum Mistake {
    /// The name holds a blank.
    Name,
    /// A selector begins with this word and never ends.
    Unmatched(Vec<u8>),
    /// A rule is wrong.
    Rule(Vec<u8>, RuleError),
}

impl Default for Users {
    fn default() -> Self {
        let entry = Entry::new(DEFAULT, Account::default_user(None));
        Self {
            default: entry.user.clone(),
            table: RwLock::new([(DEFAULT.into(), entry)].into()),
            is_open: AtomicBool::new(true),
            has_no_password: AtomicBool::new(true),
            version: AtomicU64::new(1),
            log: Mutex::default(),
        }
    }
}

impl Users {
    /// The user of new clients.
    pub fn default_user(&self) -> Arc<User> {
        self.default.clone()
    }

    /// Whether new clients need no password.
    pub fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Whether every password of `default` is right.
    pub fn default_has_no_password(&self) -> bool {
        self.has_no_password.load(Ordering::Acquire)
    }

    /// Whether there is a user of this name.
    pub fn exists(&self, name: &[u8]) -> bool {
        self.table.read().contains_key(name)
    }

    /// The user of this name and password, if it may log in. The password is hashed and compared
    /// whether there is such a user or not.
    pub fn authenticate(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let given = Digest::of(password);
        let table = self.table.read();
        let entry = table.get(name);
        let admitted = entry.unwrap_or(&table[DEFAULT]).account.admits(&given);
        entry.filter(|_| admitted).map(|entry| entry.user.clone())
    }

    /// The user of this name.
    pub fn user(&self, name: &[u8]) -> Option<Arc<User>> {
        Some(self.table.read().get(name)?.user.clone())
    }

    /// The user that a certificate names, if it may log in.
    pub fn by_certificate(&self, name: &[u8]) -> Option<Arc<User>> {
        let table = self.table.read();
        let entry = table.get(name)?;
        let user = entry.account.is_enabled().then_some(&entry.user);
        user.cloned()
    }

    /// What is kept of a user.
    pub fn account(&self, name: &[u8]) -> Option<Account> {
        Some(self.table.read().get(name)?.account.clone())
    }

    /// What a user may do.
    pub fn rights(&self, name: &[u8]) -> Option<Arc<Rights>> {
        Some(self.table.read().get(name)?.user.rights())
    }

    /// The names, in order.
    pub fn names(&self) -> Vec<Box<[u8]>> {
        self.table.read().keys().cloned().collect()
    }

    /// Every user as a line of a file, in the order of their names.
    pub fn lines(&self) -> Vec<Vec<u8>> {
        let table = self.table.read();
        let lines = table.iter();
        lines
            .map(|(name, entry)| entry.account.show(name))
            .collect()
    }

    /// The lines for the configuration file: `default` only where something but `requirepass`
    /// made it what it is.
    pub fn lines_to_rewrite(&self, requirepass: Option<&[u8]>) -> Vec<Vec<u8>> {
        let usual = Account::default_user(requirepass).show(DEFAULT);
        let mut lines = self.lines();
        lines.retain(|line| *line != usual);
        lines
            .iter()
            .map(|line| crate::config::in_line(line))
            .collect()
    }

    /// ACL SETUSER: changes a user, or makes it.
    ///
    /// # Errors
    /// What is wrong; nothing was changed.
    pub fn set(&self, name: &[u8], rules: &[&[u8]], bounds: &Bounds<'_>) -> Result<(), Mistake> {
        check_name(name)?;
        let rules = join_selectors(rules.iter().copied())
            .map_err(|first| Mistake::Unmatched(first.to_vec()))?;
        let mut table = self.table.write();
        let old = table.get(name).map(|entry| entry.account.clone());
        let mut account = old.unwrap_or_else(|| Account::new(bounds));
        apply(&mut account, &rules, bounds)?;
        match table.get_mut(name) {
            Some(entry) => {
                entry.user.set_rights(account.rights());
                entry.account = account;
            }
            None => {
                table.insert(name.into(), Entry::new(name, account));
            }
        }
        self.note_change(&table);
        Ok(())
    }

    /// `requirepass`: the only password of `default`, or none.
    pub fn set_default_password(&self, password: Option<&[u8]>) {
        let mut table = self.table.write();
        if let Some(entry) = table.get_mut(DEFAULT) {
            entry.account.set_password(password);
        }
        self.note_change(&table);
    }

    /// ACL DELUSER, of another user than `default`. False where there is none of this name.
    pub fn remove(&self, name: &[u8]) -> bool {
        let mut table = self.table.write();
        let Some(entry) = table.remove(name) else {
            return false;
        };
        entry.user.remove();
        self.note_change(&table);
        true
    }

    /// Puts these accounts in the place of all there are. A user that stays keeps its clients.
    /// Returns the names of those who are gone.
    fn replace(&self, accounts: BTreeMap<Box<[u8]>, Account>) -> Vec<Box<[u8]>> {
        let mut table = self.table.write();
        let mut old = std::mem::take(&mut *table);
        for (name, account) in accounts {
            let entry = match old.remove(&name) {
                Some(known) => {
                    known.user.set_rights(account.rights());
                    Entry {
                        user: known.user,
                        account,
                    }
                }
                None => Entry::new(&name, account),
            };
            table.insert(name, entry);
        }
        old.values().for_each(|entry| entry.user.remove());
        self.note_change(&table);
        old.into_keys().collect()
    }

    fn note_change(&self, table: &BTreeMap<Box<[u8]>, Entry>) {
        let account = &table[DEFAULT].account;
        let has_no_password = account.has_no_password();
        self.has_no_password
            .store(has_no_password, Ordering::Release);
        let is_open = account.is_enabled() && has_no_password;
        self.is_open.store(is_open, Ordering::Release);
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// A name stands as one word in files.
fn check_name(name: &[u8]) -> Result<(), Mistake> {
    let is_blank = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b);
    match name.iter().any(is_blank) {
        true => Err(Mistake::Name),
        false => Ok(()),
    }
}

fn apply(account: &mut Account, rules: &[Vec<u8>], bounds: &Bounds<'_>) -> Result<(), Mistake> {
    for rule in rules {
        account
            .apply(rule, bounds)
            .map_err(|error| Mistake::Rule(rule.clone(), error))?;
    }
    Ok(())
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name => f.write_str("ERR Usernames can't contain spaces or null characters"),
            Self::Unmatched(first) => {
                let first = shown(first);
                write!(
                    f,
                    "ERR Unmatched parenthesis in acl selector starting at '{first}'."
                )
            }
            Self::Rule(rule, error) => {
                let rule = shown(rule);
                write!(f, "ERR Error in ACL SETUSER modifier '{rule}': {error}")
            }
        }
    }
}

impl std::error::Error for Mistake {}
