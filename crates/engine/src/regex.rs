//! Extended regular expressions, as ARGREP has them: whether a pattern matches somewhere in a text.
//!
//! The dialect is POSIX's with the common additions that Redis takes: `\w \d \s \b \< \> \xHH
//! \Q...\E`, `(?:...)`, `(?i)`. Bytes are matched, not characters, and only ASCII letters have a
//! case.
//!
//! A pattern becomes a program for a machine that is in many places at once, and the places advance
//! together, one byte of text at a time.
//!
//! # Invariants
//! - A match costs at most the program's length times the text's, whatever the pattern.
//! - A program has at most [`PROGRAM_MAX`] steps, and groups nest at most [`DEPTH_MAX`] deep; a
//!   pattern that needs more is refused as Redis refuses one that it has no memory for.
//!
//! # Why not backtracking, or a library?
//! The first takes exponential time on some patterns. Libraries differ from Redis in what they
//! accept, and so in which patterns mean what.

mod parse;
mod program;

#[cfg(test)]
mod tests;

pub use parse::Invalid;
use program::{Place, Program, Step};

/// Steps of a program.
const PROGRAM_MAX: usize = 1 << 14;
/// Groups inside groups.
const DEPTH_MAX: usize = 200;

/// A compiled pattern.
pub struct Regex {
    program: Program,
}

/// The places that a machine is in.
struct Places {
    list: Vec<u32>,
    /// For each step, the round in which it was last entered.
    seen: Vec<u32>,
    round: u32,
}

/// What is kept between matches, so that they allocate nothing.
pub struct Scratch {
    now: Vec<u32>,
    next: Places,
    stack: Vec<u32>,
}

impl Regex {
    /// Compiles a pattern; with `fold`, letters match whatever their case.
    ///
    /// # Errors
    /// Why the pattern is none.
    pub fn new(pattern: &[u8], fold: bool) -> Result<Self, Invalid> {
        let nodes = parse::parse(pattern, fold)?;
        let program = program::compile(&nodes).ok_or(Invalid::TooBig)?;
        Ok(Self { program })
    }

    /// Room for matching.
    pub fn scratch(&self) -> Scratch {
        Scratch {
            now: Vec::new(),
            next: Places {
                list: Vec::new(),
                seen: vec![0; self.program.steps.len()],
                round: 0,
            },
            stack: Vec::new(),
        }
    }

    /// Whether it matches somewhere in the text.
    pub fn matches(&self, text: &[u8], scratch: &mut Scratch) -> bool {
        scratch.now.clear();
        for at in 0..=text.len() {
            let place = Place::of(text, at);
            scratch.next.begin();
            let Scratch { now, next, stack } = scratch;
            let byte = at.checked_sub(1).map(|before| text[before]);
            for &step in now.iter() {
                if let (Step::Byte(set), Some(byte)) = (self.program.steps[step as usize], byte)
                    && self.program.sets[set as usize].has(byte)
                    && self.enter(step + 1, place, next, stack)
                {
                    return true;
                }
            }
            // The match may begin here.
            if (at == 0 || !self.program.begins_only_at_start) && self.enter(0, place, next, stack)
            {
                return true;
            }
            std::mem::swap(now, &mut next.list);
            if now.is_empty() && self.program.begins_only_at_start {
                return false;
            }
        }
        false
    }

    /// Goes to a step and to all that it leads to without a byte. True where that is the end.
    fn enter(&self, step: u32, place: Place, places: &mut Places, stack: &mut Vec<u32>) -> bool {
        stack.clear();
        stack.push(step);
        while let Some(step) = stack.pop() {
            let seen = &mut places.seen[step as usize];
            if *seen == places.round {
                continue;
            }
            *seen = places.round;
            match self.program.steps[step as usize] {
                Step::Byte(_) => places.list.push(step),
                Step::Split(a, b) => stack.extend([b, a]),
                Step::Jump(to) => stack.push(to),
                Step::Assert(assertion) if place.holds(assertion) => stack.push(step + 1),
                Step::Assert(_) => {}
                Step::End => return true,
            }
        }
        false
    }
}

impl Places {
    fn begin(&mut self) {
        self.list.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.seen.fill(0);
            self.round = 1;
        }
    }
}
