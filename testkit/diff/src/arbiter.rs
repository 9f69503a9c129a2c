//! The third server: where ours and Valkey differ, Redis decides.
//!
//! Ours follows Redis where the two real servers disagree, and a list of all their disagreements
//! would be long and would hide faults of ours. So the sequence is played once more, as far as it
//! goes, on another server of ours and on Redis. A difference from Valkey is decided only if Redis
//! has answered everything as ours did, that step included.
//!
//! # Invariants
//! - Nothing is decided after a step that Redis answers in another way: what follows may be that
//!   step's doing. The step is named, so that the sequence can be tried without it.
//! - It cannot decide on a call that only Valkey knows, unless both refuse it; but it is kept like
//!   ours, so that it can decide on what follows.
//! - Each step is played at most once a sequence, and none before the first difference.

use crate::play::{Arena, Own, Stop};
use crate::sequence::Sequence;
use crate::walk::Found;
use std::collections::BTreeMap;

/// What the arbiter says of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It answers as ours does.
    Ours,
    /// It does not.
    Open,
    /// Ours and the arbiter part at this earlier step.
    Apart(usize),
}

/// Ours and the server that decides, and how far they have come.
pub struct Arbiter {
    arena: Arena,
    sequence: Sequence,
    /// Steps of the sequence that were played.
    next: usize,
    /// The step at which the two differed.
    parted: Option<usize>,
    /// Steps that it does not know, and what can be said of them.
    unknown: BTreeMap<usize, Own>,
    is_begun: bool,
}

impl Arbiter {
    pub fn new(arena: Arena) -> Self {
        Self {
            arena,
            sequence: Sequence::default(),
            next: 0,
            parted: None,
            unknown: BTreeMap::new(),
            is_begun: false,
        }
    }

    /// The sequence that is played now.
    pub fn hear(&mut self, sequence: &Sequence) {
        self.sequence.clone_from(sequence);
    }

    /// Empties both servers, if anything was played.
    pub fn forget(&mut self) -> Result<(), String> {
        if std::mem::take(&mut self.is_begun) {
            // One that does not answer now was started again; the next sequence will tell.
            self.arena.reset(&self.sequence)?;
        }
        self.next = 0;
        self.parted = None;
        self.unknown.clear();
        Ok(())
    }

    /// What it says of a step, or of what others hear of it. An error is the machine's.
    pub fn verdict(&mut self, at: usize, is_heard: bool) -> Result<Verdict, String> {
        let at = at.min(self.sequence.steps.len());
        let mut current = String::new();
        if !self.is_begun {
            self.is_begun = true;
            self.arena.begin();
            let configured = self.arena.configure(&self.sequence);
            self.note(configured, 0)?;
        }
        while self.parted.is_none() && self.next <= at {
            let Some(step) = self.sequence.steps.get(self.next) else {
                break;
            };
            let played = match self.arena.own(step) {
                Ok(None) => self.arena.one(step, &mut current).map(|_| ()),
                Ok(Some(own)) => {
                    if own != Own::Agreed {
                        self.unknown.insert(self.next, own);
                    }
                    if own == Own::Apart {
                        self.parted = Some(self.next);
                    }
                    Ok(())
                }
                Err(stop) => Err(stop),
            };
            self.note(played, self.next)?;
            self.next += 1;
        }
        Ok(match self.parted {
            None => match self.unknown.get(&at) {
                None => Verdict::Ours,
                Some(Own::Alike) if is_heard => Verdict::Ours,
                Some(_) => Verdict::Open,
            },
            Some(parted) if parted < at => Verdict::Apart(parted),
            Some(_) => Verdict::Open,
        })
    }

    fn note(&mut self, played: Result<(), Stop>, at: usize) -> Result<(), String> {
        if let Err(stop) = played {
            self.parted = Some(at);
            if let Stop::Silent { .. } = stop {
                self.arena.restart()?;
            }
        }
        Ok(())
    }

    /// Whether it agrees with ours on what was found when all steps were played.
    pub fn agrees_in_the_end(&mut self, found: &Found) -> bool {
        matches!(self.verdict(usize::MAX, false), Ok(Verdict::Ours)) && self.arena.agrees(found)
    }
}
