//! One command of a log, run as if it came from a client, but for what a client would notice.

use resp::Output;
use structure::stripes::RawLock;

use super::{Executor, Request};
use crate::CommandError;
use crate::handler::Entry;
use crate::host::Host;
use crate::session::Session;
use crate::settings::Settings;

impl<L: RawLock> Executor<'_, L> {
    /// Makes this an executor that replays a log: nothing dies by itself.
    pub(crate) fn set_replaying(&mut self) {
        self.is_replaying = true;
    }

    /// Runs a command of a log. Nobody is told, nobody is served, and nothing is counted.
    ///
    /// # Errors
    /// The words do not make sense: nothing was done.
    pub(crate) fn replay(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        request: &Request<'_>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
        out: &mut Output,
    ) -> Result<(), CommandError> {
        if !entry.arity_allows(request.args.len()) {
            return Err(CommandError::Arity(entry.full_name.clone()));
        }
        let set = self.stripes(session, entry, request)?;
        let mut guard = match self.guard.take() {
            Some(guard) if *guard.set() == set => guard,
            other => {
                drop(other);
                self.keyspace.stripes.acquire(set)
            }
        };
        self.call(
            session, entry, request, &mut guard, settings, host, now_ms, false, out,
        );
        self.effects.ready.clear();
        self.effects.retry_ms = None;
        self.guard = Some(guard);
        Ok(())
    }

    /// Lets go of the stripes, and frees what was displaced.
    pub(crate) fn rest(&mut self) {
        self.guard = None;
        while !self.effects.graveyard.free_some(usize::MAX) {}
    }
}
