//! Frames of several threads, put in the order of their numbers.
//!
//! Each thread brings its frames in order; between threads there is none. As numbers have no gaps,
//! what comes next is known, and a frame whose turn has not come waits for the thread that has the
//! one before it.

use std::collections::BTreeMap;

use engine::log::Frames;

use super::Stream;

/// Empty containers that are kept for what comes.
const SPARES_MAX: usize = 64;
/// A container that grew past this is not kept.
const SPARE_BYTES_MAX: usize = 256 * 1024;

/// What one thread brought, as far as it was not taken.
struct Source {
    frames: Frames,
    /// The next frame.
    at: usize,
}

/// The frames that wait for their turn.
pub(super) struct Merger {
    /// The number that comes next.
    next: u64,
    /// By the number of the next frame of each.
    sources: BTreeMap<u64, Source>,
    bytes: usize,
    spares: Vec<Frames>,
}

impl Merger {
    /// Frames from number `next` on.
    pub fn new(next: u64) -> Self {
        Self {
            next,
            sources: BTreeMap::new(),
            bytes: 0,
            spares: Vec::new(),
        }
    }

    /// Bytes of all frames that wait.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// A container to fill again.
    pub fn spare(&mut self) -> Option<Frames> {
        self.spares.pop()
    }

    /// Takes frames of a thread.
    pub fn add(&mut self, frames: Frames) {
        // Frames from before this log began are part of its base.
        let mut at = 0;
        while frames
            .get(at)
            .is_some_and(|(frame, _)| frame.lsn < self.next)
        {
            at += 1;
        }
        match frames.get(at) {
            Some((frame, _)) => {
                self.bytes += frames.len_bytes();
                self.sources.insert(frame.lsn, Source { frames, at });
            }
            None => self.keep(frames),
        }
    }

    /// Appends to `out` what comes next, about `bytes_max` bytes of it, and nothing after frame
    /// `until`. Returns the number of the last frame; none where nothing was there to take.
    pub fn take_into(
        &mut self,
        out: &mut Vec<u8>,
        bytes_max: usize,
        until: Option<u64>,
        stream: &mut Stream<'_>,
    ) -> Option<u64> {
        let end = out.len().saturating_add(bytes_max);
        let mut last = None;
        while out.len() < end && until.is_none_or(|until| self.next <= until) {
            let Some(mut source) = self.sources.remove(&self.next) else {
                break;
            };
            while let Some((frame, bytes)) = source.frames.get(source.at)
                && frame.lsn == self.next
                && out.len() < end
                && until.is_none_or(|until| frame.lsn <= until)
            {
                stream.before(frame.db, frame.at_ms, out);
                *stream.db = Some(frame.db_after);
                out.extend_from_slice(bytes);
                last = Some(frame.lsn);
                self.next += 1;
                source.at += 1;
            }
            match source.frames.get(source.at) {
                Some((frame, _)) => {
                    self.sources.insert(frame.lsn, source);
                }
                None => {
                    self.bytes -= source.frames.len_bytes();
                    self.keep(source.frames);
                }
            }
        }
        last
    }

    /// Passes over all frames up to number `until`, those that are still to come, too.
    pub fn pass(&mut self, until: u64) {
        self.next = self.next.max(until + 1);
        while let Some(first) = self.sources.first_entry()
            && *first.key() < self.next
        {
            let frames = first.remove().frames;
            self.bytes -= frames.len_bytes();
            self.add(frames);
        }
    }

    fn keep(&mut self, mut frames: Frames) {
        if self.spares.len() < SPARES_MAX && frames.len_bytes() <= SPARE_BYTES_MAX {
            frames.clear();
            self.spares.push(frames);
        }
    }
}
