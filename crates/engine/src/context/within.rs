//! Commands that another command runs: what a script calls.
//!
//! The outer command holds the stripes. What its inner commands leave behind (keys that became
//! ready, values to be freed, changes) gathers with its own, so that clients who wait are served
//! once it is over.

use std::sync::atomic::Ordering;

use resp::{Args, Output, Writer};

use super::Context;
use crate::CommandError;
use crate::executor::{MISCONF, in_own_words};
use crate::handler::{Entry, Locks};
use crate::keyspace::Phase;
use crate::replay;
use crate::session::Session;

impl Context<'_> {
    /// Whether everything that a command may touch is locked, so that it can run within this one.
    pub fn holds_all_of(&self, entry: &Entry, args: Args<'_>) -> bool {
        if self.keyspace.count() == self.keyspace.set().iter().count() {
            return true;
        }
        if entry.run.is_none_or(|handler| handler.locks == Locks::All) {
            return false;
        }
        let mut all = true;
        let found = entry.each_key_index(&args, &mut |index| {
            let stripe = self.shared.stripe(self.shared.hash(args.at(index)));
            all &= self.keyspace.has(stripe);
        });
        // Where the words do not say, the handler may find keys that nobody declared.
        all && found.is_ok()
    }

    /// Why nothing may be written at present, in which case it may not: what commands outside are
    /// told before they run holds within them, too.
    pub fn writes_refused(&self) -> Option<CommandError> {
        if let Some(error) = &self.effects.unlogged {
            return Some(error.clone());
        }
        if self.effects.is_unsaved {
            return Some(MISCONF);
        }
        let is_over = self.shared.phase() == Phase::Stopping;
        is_over.then(|| CommandError::text("ERR The server is shutting down"))
    }

    /// Runs a command of `session` with what is locked already, and appends its reply to `out`. It
    /// never waits. Returns whether it changed anything.
    ///
    /// # Errors
    /// What the command refuses; its reply is taken back.
    pub fn run_within(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        args: Args<'_>,
        out: &mut Output,
    ) -> Result<bool, CommandError> {
        let Some(handler) = entry.run else {
            return Err(CommandError::Arity(entry.full_name.clone()));
        };
        let before = (self.effects.changes, self.effects.expiries);
        let db = session.db;
        self.effects.is_rewritten = false;
        let mark = out.mark();
        let mut writer = Writer::new(out, session.protocol);
        let mut cx = Context {
            session,
            keyspace: self.keyspace.reborrow(),
            shared: self.shared,
            settings: self.settings,
            host: self.host,
            entry,
            now_ms: self.now_ms,
            dead_ms: self.dead_ms,
            may_block: false,
            effects: self.effects,
            known_hash: None,
        };
        let result = (handler.run)(&mut cx, args, &mut writer);
        if cx.session.tracking.is_some() {
            cx.remember_reads(entry, args);
        }
        self.effects.retry_ms = None;
        let changed = self.note_effects(entry, db, args, before);
        if let Err(error) = result {
            out.truncate(mark);
            return Err(error);
        }
        Ok(changed)
    }

    /// Puts an inner command's effect in the draft of the outer one's frame. Returns whether it
    /// changed anything by itself.
    fn note_effects(&mut self, entry: &Entry, db: u32, args: Args<'_>, before: (u64, u64)) -> bool {
        let effects = &mut *self.effects;
        let changed = effects.changes - before.0 > effects.expiries - before.1;
        if changed
            && !effects.is_rewritten
            && self.shared.log_is_read.load(Ordering::Relaxed)
            && replay::may_be_logged(entry)
        {
            effects.draft.add(db, in_own_words(entry, args));
        }
        // The outer command is not to be logged in its own words beside those.
        effects.is_rewritten = effects.changes > 0;
        changed
    }
}
