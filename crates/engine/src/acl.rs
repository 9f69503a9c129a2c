//! Who may do what: users, their rights, and the check before a command.
//!
//! A user's rights ([`Rights`]) are an immutable value. A session keeps the one that it was given
//! last, and whether that restricts it at all, so that the usual client, who may do everything,
//! pays one branch a command. Whoever changes a user gives it new rights ([`User::set_rights`]) and
//! sees to it that sessions take them over before their next command ([`Session::take_rights`]).
//!
//! # Invariants
//! - Nothing here knows files, configuration or who is connected: a change of users is a function
//!   of the old account, a rule and the table of commands ([`Account::apply`]).
//! - What is not granted is refused: a call whose words do not say where its keys are runs only
//!   for those who may touch every key.
//! - A user that was removed may do nothing, whoever still holds it.
//!
//! # Why not ask the user itself at each command?
//! The check would follow a pointer that all threads share and take a lock. A session's own copy
//! costs a look at a version a batch.

mod account;
mod commands;
mod password;
mod rights;
mod selector;

pub use account::{Account, Bounds, RuleError, join_selectors};
pub use commands::CommandSet;
pub use password::Digest;
pub use rights::{Denial, Reason, Rights};
pub use selector::Selector;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;
use resp::Args;

use crate::CommandError;
use crate::handler::Entry;
use crate::host::Host;
use crate::session::Session;

/// A user as sessions hold it. Its rights may be replaced at any time.
#[derive(Debug)]
pub struct User {
    name: Box<[u8]>,
    rights: RwLock<Arc<Rights>>,
    is_gone: AtomicBool,
}

impl User {
    /// A user of this name.
    pub fn new(name: &[u8], rights: Arc<Rights>) -> Arc<Self> {
        Arc::new(Self {
            name: name.into(),
            rights: RwLock::new(rights),
            is_gone: AtomicBool::new(false),
        })
    }

    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// What it may do now.
    pub fn rights(&self) -> Arc<Rights> {
        self.rights.read().clone()
    }

    /// Replaces what it may do.
    pub fn set_rights(&self, rights: Arc<Rights>) {
        *self.rights.write() = rights;
    }

    /// It was removed: its clients are to be closed, and may do nothing until they are.
    pub fn remove(&self) {
        self.is_gone.store(true, Ordering::Release);
        self.set_rights(Arc::new(Rights::none()));
    }

    /// Whether it was removed.
    pub fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }
}

/// The user of sessions that belong to no client, and of clients where nobody manages users: it is
/// called `default` and may do everything.
pub fn unrestricted() -> Arc<User> {
    static USER: LazyLock<Arc<User>> =
        LazyLock::new(|| User::new(b"default", Arc::new(Rights::everything())));
    USER.clone()
}

/// Where a command was refused, as ACL LOG names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By itself.
    TopLevel,
    /// While it was queued, or in EXEC.
    Transaction,
    /// In a script.
    Script,
}

impl Place {
    /// The word of ACL LOG.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TopLevel => "toplevel",
            Self::Transaction => "multi",
            Self::Script => "lua",
        }
    }
}

/// Whether a session's user may run this call, whose arity has been checked, in the session's
/// database.
///
/// # Errors
/// What it may not do.
#[inline]
pub fn check(session: &Session, entry: &Entry, args: Args<'_>) -> Result<(), Denial> {
    if session.is_restricted() {
        session.rights().check(session.db, entry, args)
    } else {
        Ok(())
    }
}

/// [`check`] for a command that comes from a client or a script: tells the host about a refusal,
/// and gives the error that the client gets.
///
/// # Errors
/// The refusal.
#[inline]
pub fn permit(
    session: &Session,
    entry: &Entry,
    args: Args<'_>,
    place: Place,
    host: &mut dyn Host,
) -> Result<(), CommandError> {
    match check(session, entry, args) {
        Ok(()) => Ok(()),
        Err(denial) => {
            host.denied(session, entry, args, denial, place);
            Err(denial.error(session.user().name(), entry))
        }
    }
}
