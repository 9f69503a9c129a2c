//! What is refused while the server is in a bad state: memory that is full, a disk that cannot be
//! written to.

use super::*;

/// Memory is past its limit and nothing can be evicted.
pub(super) const FULL: u8 = 1;
/// The last snapshot failed, and writes must wait until one succeeds.
pub(super) const UNSAVED: u8 = 2;

/// The log cannot be written, and writes must wait until it can.
pub(super) const UNLOGGED: u8 = 4;

/// What writes are told then.
pub(crate) const MISCONF: CommandError = CommandError::text(
    "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to \
     disk. Commands that may modify the data set are disabled, because this instance is configured \
     to report errors during writes if RDB snapshotting fails (stop-writes-on-bgsave-error \
     option). Please check the Redis logs for details about the RDB error.",
);

impl<L: RawLock> Executor<'_, L> {
    /// Has commands that write refused from now on, or no more: the last snapshot failed.
    #[inline]
    pub fn refuse_writes(&mut self, refuses: bool) {
        self.limits = self.limits & !UNSAVED | if refuses { UNSAVED } else { 0 };
        self.effects.is_unsaved = refuses;
    }

    /// Has commands that write refused with `error` from now on, or no more: the log cannot be
    /// written.
    pub fn refuse_unlogged(&mut self, error: Option<CommandError>) {
        let refuses = error.is_some();
        self.limits = self.limits & !UNLOGGED | if refuses { UNLOGGED } else { 0 };
        self.effects.unlogged = error;
    }

    /// Refuses a command that may not run at present.
    #[cold]
    pub(super) fn refuse_by_limits(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        settings: &Settings,
        out: &mut Output,
    ) -> bool {
        if settings.maxmemory == 0 {
            self.limits &= !FULL;
            self.effects.is_full = false;
        }
        if self.limits & FULL != 0 {
            let needs_memory = |entry: &Entry| entry.flags.has(Flags::DENYOOM);
            if self.refuse_each(
                session,
                entry,
                &CommandError::OutOfMemory,
                needs_memory,
                out,
            ) {
                return true;
            }
        }
        // A PING is how watchdogs find out.
        let writes = |entry: &Entry| entry.flags.has(Flags::WRITE) || entry.command.name == "ping";
        if self.limits & UNLOGGED != 0
            && let Some(error) = self.effects.unlogged.clone()
            && self.refuse_each(session, entry, &error, writes, out)
        {
            return true;
        }
        self.limits & UNSAVED != 0 && self.refuse_each(session, entry, &MISCONF, writes, out)
    }

    /// Refuses commands that `is_one` is true of, and EXEC where one is queued.
    fn refuse_each(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        error: &CommandError,
        is_one: impl Fn(&Entry) -> bool,
        out: &mut Output,
    ) -> bool {
        if is_one(entry) {
            self.refuse(session, entry, error, out);
            return true;
        }
        let table = &self.keyspace.shared.table;
        let queued = session.multi.iter().flat_map(|multi| &multi.queued);
        let mut queued = queued.map(|(id, _)| &table.entries()[usize::from(*id)]);
        if entry.command.name == "exec"
            && queued.any(is_one)
            && let Some(multi) = &mut session.multi
        {
            multi.refusal.get_or_insert_with(|| error.clone());
        }
        false
    }
}
