//! Makes a sequence that shows a difference as short as it can be.
//!
//! First whole runs of commands are left out, then directives, words, and connections; what still
//! shows the difference is kept. The number of trials is bounded.

use crate::sequence::{Sequence, Word};

/// The shortest sequence found for which `shows` holds. It holds for the one given.
pub fn shrink(
    sequence: Sequence,
    trials_max: usize,
    mut shows: impl FnMut(&Sequence) -> bool,
) -> Sequence {
    let mut trials = 0;
    let mut best = sequence;
    let mut try_it = |candidate: Sequence, best: &mut Sequence| {
        trials += 1;
        let is_better = trials <= trials_max && shows(&candidate);
        if is_better {
            *best = candidate;
        }
        is_better
    };
    steps(&mut best, &mut try_it);
    for at in (0..best.config.len()).rev() {
        let mut fewer = best.clone();
        fewer.config.remove(at);
        try_it(fewer, &mut best);
    }
    words(&mut best, &mut try_it);
    connections(&mut best, &mut try_it);
    steps(&mut best, &mut try_it);
    best
}

type Try<'a> = dyn FnMut(Sequence, &mut Sequence) -> bool + 'a;

/// Leaves out runs of commands: halves, quarters, at last single ones, until none can go.
fn steps(best: &mut Sequence, try_it: &mut Try<'_>) {
    let mut size = best.steps.len().div_ceil(2);
    while size > 0 {
        let mut has_shrunk = false;
        // From the end, for what comes last needs what stood before it.
        let mut end = best.steps.len();
        while end > 0 {
            let start = end.saturating_sub(size);
            let mut fewer = best.clone();
            fewer.steps.drain(start..end);
            has_shrunk |= try_it(fewer, best);
            end = start;
        }
        if size == 1 && !has_shrunk {
            return;
        }
        size = size.div_ceil(2).min(best.steps.len());
        if size == 0 {
            return;
        }
    }
}

/// Leaves out words, and makes long ones short.
fn words(best: &mut Sequence, try_it: &mut Try<'_>) {
    for step in 0..best.steps.len() {
        let mut at = best.steps[step].words.len();
        while at > 1 {
            at -= 1;
            // Pairs first: a field and its value go together.
            for count in [2, 1] {
                let mut fewer = best.clone();
                let words = &mut fewer.steps[step].words;
                if at + count <= words.len() {
                    words.drain(at..at + count);
                    if try_it(fewer, best) {
                        break;
                    }
                }
            }
        }
        for at in 1..best.steps[step].words.len() {
            let is_long = matches!(&best.steps[step].words[at], Word::Plain(w) if w.len() > 12);
            let is_reply = matches!(&best.steps[step].words[at], Word::Reply(..));
            for simple in ["a", "1"] {
                let mut simpler = best.clone();
                simpler.steps[step].words[at] = Word::from(simple);
                if (is_long || is_reply) && try_it(simpler, best) {
                    break;
                }
            }
        }
    }
}

/// Plays on as few connections as will do.
fn connections(best: &mut Sequence, try_it: &mut Try<'_>) {
    for from in (1..crate::plan::CONNECTIONS).rev() {
        for to in 0..from {
            let mut fewer = best.clone();
            let moved = fewer
                .steps
                .iter_mut()
                .filter(|step| step.connection == from);
            moved.for_each(|step| step.connection = to);
            if fewer != *best && try_it(fewer, best) {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::Step;

    fn numbered(count: usize) -> Sequence {
        let steps = (0..count).map(|n| {
            Step::new(
                n % 3,
                &["SET", &n.to_string(), "a long value of many bytes"],
            )
        });
        Sequence {
            config: vec![("x", "1"), ("y", "2")],
            steps: steps.collect(),
        }
    }

    fn has(sequence: &Sequence, key: &str) -> bool {
        sequence
            .steps
            .iter()
            .any(|step| step.words.contains(&Word::from(key)))
    }

    #[test]
    fn only_what_is_needed_stays() {
        let shows = |sequence: &Sequence| {
            has(sequence, "7") && has(sequence, "31") && sequence.config.contains(&("y", "2"))
        };
        let short = shrink(numbered(50), 10_000, shows);
        assert_eq!(short.config, [("y", "2")]);
        assert_eq!(
            short.steps,
            [Step::new(0, &["SET", "7"]), Step::new(0, &["SET", "31"])]
        );
    }

    #[test]
    fn trials_are_bounded() {
        let mut trials = 0;
        shrink(numbered(500), 25, |_| {
            trials += 1;
            false
        });
        assert_eq!(trials, 25);
    }

    #[test]
    fn what_needs_everything_stays_whole() {
        let whole = numbered(9);
        assert_eq!(
            shrink(whole.clone(), 1_000, |sequence| *sequence == whole),
            whole
        );
    }
}
