//! A user's rights: its selectors, ready to be asked.

use resp::Args;

use super::Selector;
use crate::CommandError;
use crate::error::shown;
use crate::handler::Entry;
use crate::session::Subscriptions;

/// What a user may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    selectors: Vec<Selector>,
    is_everything: bool,
}

/// Why a call is refused, the most telling last: of several selectors, the one that came closest
/// to allowing it gives the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The command is not allowed.
    Command,
    /// A key is not, or not in this way.
    Key,
    /// A channel is not.
    Channel,
    /// A database is not.
    Database,
}

/// A call that is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Denial {
    /// What is not allowed.
    pub reason: Reason,
    /// The position of the word that is not; 0 where it is the command.
    pub at: usize,
}

impl Rights {
    /// Those of a user with these selectors.
    pub fn new(selectors: Vec<Selector>) -> Self {
        Self {
            is_everything: selectors.iter().any(Selector::is_everything),
            selectors,
        }
    }

    /// To do nothing.
    pub fn none() -> Self {
        Self::new(Vec::new())
    }

    /// To do everything.
    pub fn everything() -> Self {
        Self::new(vec![Selector::everything()])
    }

    /// Whether they are to do everything.
    pub fn is_everything(&self) -> bool {
        self.is_everything
    }

    /// Whether a call whose arity has been checked is allowed in database `db`.
    ///
    /// # Errors
    /// What is not allowed.
    pub fn check(&self, db: u32, entry: &Entry, args: Args<'_>) -> Result<(), Denial> {
        let mut worst = Denial {
            reason: Reason::Command,
            at: 0,
        };
        if self.is_everything {
            return Ok(());
        }
        for selector in &self.selectors {
            match selector.check(db, entry, args) {
                Ok(()) => return Ok(()),
                Err(denial) => worst = worst.max(denial),
            }
        }
        match entry.flags.has(command::Flags::NO_AUTH) {
            // Nobody is kept from logging in as somebody else.
            true => Ok(()),
            false => Err(worst),
        }
    }

    /// Whether a call may read whatever key it finds out about: as SORT with patterns does.
    pub fn reads_every_key(&self, entry: &Entry, args: Args<'_>) -> bool {
        self.is_everything
            || self
                .selectors
                .iter()
                .any(|selector| selector.commands.allows(entry, args) && selector.reads_every_key())
    }

    /// Whether all that a client is subscribed to is allowed.
    pub fn allow_subscriptions(&self, all: &Subscriptions) -> bool {
        let allows = |channel: &[u8], is_pattern: bool| {
            let mut selectors = self.selectors.iter();
            selectors.any(|selector| selector.allows_channel(channel, is_pattern))
        };
        let mut channels = all.channels.iter().chain(&all.shard_channels);
        self.is_everything
            || channels.all(|channel| allows(channel, false))
                && all.patterns.iter().all(|pattern| allows(pattern, true))
    }
}

impl Denial {
    /// What was refused, as ACL LOG names it.
    pub fn object<'a>(&self, entry: &'a Entry, args: Args<'a>) -> &'a [u8] {
        match self.at {
            0 => entry.full_name.as_bytes(),
            at => args.get(at).unwrap_or_default(),
        }
    }

    /// The error that a client gets.
    pub fn error(&self, user: &[u8], entry: &Entry) -> CommandError {
        let text = match self.reason {
            Reason::Command => {
                let (user, name) = (shown(user), &entry.full_name);
                format!("NOPERM User {user} has no permissions to run the '{name}' command")
            }
            Reason::Key => "NOPERM No permissions to access a key".to_owned(),
            Reason::Channel => "NOPERM No permissions to access a channel".to_owned(),
            Reason::Database => "NOPERM No permissions to access database".to_owned(),
        };
        CommandError::Text(text.into())
    }

    /// The error of a command that was allowed when it was queued.
    pub fn error_in_exec(&self) -> CommandError {
        let reason = match self.reason {
            Reason::Command => "no permission to execute the command or subcommand",
            Reason::Key => "no permission to touch the specified keys",
            Reason::Channel => "no permission to access one of the channels used as arguments",
            Reason::Database => "no permission to access database",
        };
        let text = format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the \
             EXEC call. This command is no longer allowed for the following reason: {reason}"
        );
        CommandError::Text(text.into())
    }

    /// The whole story, for operators: ACL DRYRUN.
    pub fn story(&self, user: &[u8], entry: &Entry, args: Args<'_>) -> Vec<u8> {
        let object = self.object(entry, args);
        let (before, after): (&[u8], &[u8]) = match self.reason {
            Reason::Command => (b"run the '", b"' command"),
            Reason::Key => (b"access the '", b"' key"),
            Reason::Channel => (b"access the '", b"' channel"),
            Reason::Database => (b"access database ", b""),
        };
        [
            &b"User "[..],
            user,
            b" has no permissions to ",
            before,
            object,
            after,
        ]
        .concat()
    }
}
