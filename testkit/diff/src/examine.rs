//! One sequence, played as often as it takes: what it shows that nobody has decided.
//!
//! A step that differs for a decided reason and changes something ends the comparison; so the
//! sequence is played again without it, and again, until it is over. The same is done with a step
//! that the arbiter does not know, which hides what it would say of the steps after it.

use crate::play::{Arena, Difference, IN_A_TRANSACTION};
use crate::sequence::Sequence;
use crate::shrink;

/// How often one sequence is played.
const ROUNDS_MAX: usize = 12;
/// Trials that shrinking one difference may take.
const TRIALS: usize = 600;
/// The same where each costs the patience for a reply.
const TRIALS_SLOW: usize = 40;
/// How often the real server may give no reply before shrinking ends where it is.
const UNANSWERED_MAX: usize = 5;

/// What a sequence showed.
#[derive(Debug, Default)]
pub struct Examined {
    pub commands: usize,
    /// It met a difference that is allowed, by its number in the list.
    pub allowed: Option<usize>,
    /// Kinds of differences that the arbiter decided.
    pub decided: Vec<String>,
    /// A difference that is neither, and the sequence that shows it.
    pub open: Option<(Sequence, Difference)>,
    /// The real server gave no reply to this.
    pub unanswered: Option<String>,
}

/// Plays a sequence until nothing is hidden by a step that was decided.
pub fn examine(arena: &mut Arena, mut sequence: Sequence) -> Result<Examined, String> {
    let mut examined = Examined::default();
    // Differences after a step that the arbiter does not know.
    let mut hidden: Vec<(Sequence, Difference)> = Vec::new();
    for _ in 0..ROUNDS_MAX {
        let played = arena.play(&sequence)?;
        examined.commands += played.commands;
        examined.allowed = examined.allowed.or(played.allowed);
        examined.decided.extend(played.decided);
        examined.unanswered = examined.unanswered.or(played.unanswered);
        match (played.without, played.difference) {
            (Some(at), difference) => {
                hidden.extend(difference.map(|difference| (sequence.clone(), difference)));
                sequence.steps.remove(at);
            }
            (None, Some(difference)) => {
                examined.open = Some((sequence, difference));
                return Ok(examined);
            }
            (None, None) => break,
        }
        if examined.unanswered.is_some() {
            break;
        }
    }
    let decided = &examined.decided;
    examined.open = hidden
        .into_iter()
        .find(|(_, difference)| !is_among(decided, &difference.kind));
    Ok(examined)
}

/// Whether a kind of difference was decided, in a transaction or out of one.
fn is_among(decided: &[String], kind: &str) -> bool {
    let bare = |kind: &str| {
        kind.strip_prefix(IN_A_TRANSACTION)
            .unwrap_or(kind)
            .to_owned()
    };
    decided.iter().any(|one| bare(one) == bare(kind))
}

/// The shortest sequence that shows the same difference, and what it shows; nothing if it cannot
/// be had again.
pub fn shortest(
    arena: &mut Arena,
    sequence: Sequence,
    found: &Difference,
) -> Result<Option<(Sequence, Difference)>, String> {
    let mut problem = None;
    let mut unanswered = 0;
    let mut shows = |candidate: &Sequence| {
        if problem.is_some() || unanswered == UNANSWERED_MAX {
            return None;
        }
        match arena.play(candidate) {
            Ok(played) => {
                unanswered += usize::from(played.unanswered.is_some());
                played
                    .difference
                    .filter(|difference| difference.kind == found.kind)
            }
            Err(why) => {
                problem = Some(why);
                None
            }
        }
    };
    let mut shown = shows(&sequence);
    let mut short = sequence;
    if shown.is_some() {
        let trials = match found.theirs.is_empty() {
            true => TRIALS_SLOW,
            false => TRIALS,
        };
        short = shrink::shrink(short, trials, |candidate| {
            let difference = shows(candidate);
            let is_shown = difference.is_some();
            if is_shown {
                shown = difference;
            }
            is_shown
        });
    }
    match problem {
        Some(why) => Err(why),
        None => Ok(shown.map(|difference| (short, difference))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_the_same_in_a_transaction() {
        let decided = ["get: a for b".to_owned(), "in a transaction set".to_owned()];
        assert!(is_among(&decided, "get: a for b"));
        assert!(is_among(&decided, "in a transaction get: a for b"));
        assert!(is_among(&decided, "set"));
        assert!(!is_among(&decided, "get"));
    }
}
