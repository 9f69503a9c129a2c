//! Effects become frames of the log, inside the locks.
//!
//! # Invariants
//! - Nothing is made while nobody reads the log. Whether somebody does changes only while all
//!   stripes are locked, so it stands still while a command runs.
//! - A frame gets its number while the stripes of what it changed are locked: of two frames that
//!   touch one key, the one that came first has the lower number.
//! - A command, or a transaction as a whole, is at most one frame. A client that waited and is
//!   served has a frame of its own, after that of whoever served it.

use std::sync::atomic::Ordering;

use resp::Args;
use structure::stripes::RawLock;

use super::Executor;
use crate::handler::Entry;
use crate::log::{Frames, write_command};
use crate::replay;
use crate::session::Session;

impl<L: RawLock> Executor<'_, L> {
    /// The effects since they were last taken: whoever reads the log takes them at the end of a
    /// turn and clears them.
    #[inline]
    pub fn frames(&mut self) -> &mut Frames {
        &mut self.frames
    }

    /// Takes the effects since they were last taken.
    pub fn take_frames(&mut self) -> Frames {
        std::mem::take(&mut self.frames)
    }

    /// A command of `session` changed something, or found something dead.
    #[inline]
    pub(super) fn log(
        &mut self,
        entry: &Entry,
        session: &mut Session,
        args: Args<'_>,
        now_ms: u64,
    ) {
        let changes = std::mem::take(&mut self.effects.changes);
        if self.keyspace.shared.log_is_read.load(Ordering::Relaxed) {
            self.write(changes, entry, session.db, args, now_ms);
            session.wrote_lsn = self.frames.last_lsn().unwrap_or(session.wrote_lsn);
        }
    }

    #[cold]
    #[inline(never)]
    fn write(&mut self, changes: u64, entry: &Entry, db: u32, args: Args<'_>, now_ms: u64) {
        let effects = &mut self.effects;
        let changed = changes > std::mem::take(&mut effects.expiries);
        let is_rewritten = std::mem::take(&mut effects.is_rewritten);
        let says_itself = changed && !is_rewritten && replay::may_be_logged(entry);
        if says_itself && !self.in_transaction && effects.draft.is_empty() {
            // The usual case: one command, in its own words, straight to where it belongs.
            let lsn = 1 + self.keyspace.shared.lsn.fetch_add(1, Ordering::Relaxed);
            let is_renamed = self.keyspace.shared.table.is_renamed();
            let write = |out: &mut Vec<u8>| match args.as_sent() {
                Some(sent) if !is_renamed => out.extend_from_slice(sent),
                _ => write_command(out, in_own_words(entry, args)),
            };
            self.frames.push(lsn, (db, db), now_ms, write);
            return;
        }
        if says_itself {
            effects.draft.add(db, in_own_words(entry, args));
        }
        if !self.in_transaction {
            self.close_frame(now_ms);
        }
    }

    /// What happened by the clock, or to make room, is a frame of its own.
    pub(super) fn log_losses(&mut self, now_ms: u64) {
        self.effects.changes = 0;
        self.effects.expiries = 0;
        self.close_frame(now_ms);
    }

    /// Makes a frame of the effects so far, if there are any.
    #[inline]
    pub(super) fn close_frame(&mut self, now_ms: u64) {
        if !self.effects.draft.is_empty() {
            let lsn = 1 + self.keyspace.shared.lsn.fetch_add(1, Ordering::Relaxed);
            self.effects.draft.finish(lsn, now_ms, &mut self.frames);
        }
    }
}

/// A command's words with its own name in front, whatever its client calls it.
pub(crate) fn in_own_words<'a>(
    entry: &'a Entry,
    args: Args<'a>,
) -> impl ExactSizeIterator<Item = &'a [u8]> {
    let own = entry.first_word().as_bytes();
    let is_own = args.at(0).eq_ignore_ascii_case(own);
    let first = if is_own { args.at(0) } else { own };
    let words = args.iter().enumerate();
    words.map(move |(at, word)| if at == 0 { first } else { word })
}
