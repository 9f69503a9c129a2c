//! What a command's declaration holds to run it: the function, and which stripes it needs locked.

use resp::{Args, Writer};

use crate::{CommandError, Context};

/// The function behind a command: its reply goes to the writer. On an error nothing was changed,
/// and what was written is taken back.
pub type Run = fn(&mut Context<'_>, Args<'_>, &mut Writer<'_>) -> Result<(), CommandError>;

/// Which stripes a command needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locks {
    /// Those of its keys; none where it has no keys.
    Keys,
    /// All of them: it looks at whole databases.
    All,
}

/// How a command runs.
#[derive(Clone, Copy)]
pub struct Handler {
    /// The function.
    pub run: Run,
    /// The stripes that must be locked while it runs.
    pub locks: Locks,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler")
            .field("locks", &self.locks)
            .finish_non_exhaustive()
    }
}

/// A command's declaration.
pub type Command = command::Command<Handler>;
/// A command in the table.
pub type Entry = command::Entry<Handler>;
/// The table of commands.
pub type Table = command::Table<Handler>;

/// The rest of a declaration whose command needs the stripes of its keys.
pub const fn runs(run: Run) -> Command {
    Command::runs(Handler {
        run,
        locks: Locks::Keys,
    })
}

/// The rest of a declaration whose command needs every stripe.
pub const fn runs_on_all(run: Run) -> Command {
    Command::runs(Handler {
        run,
        locks: Locks::All,
    })
}
