//! What a run says: each new difference as a behaviour script, and at the end the figures.

use crate::examine::Examined;
use crate::plan::Planner;
use crate::play::{Arena, Difference};
use crate::sequence::Sequence;
use std::collections::BTreeMap;
use std::time::Instant;

/// Kinds of decided differences that the summary names.
const DECIDED_SHOWN: usize = 100;

/// What was found so far.
pub struct Findings {
    seed: u64,
    against: String,
    started: Instant,
    sequences: usize,
    commands: usize,
    /// How often each kind of difference was met.
    kinds: BTreeMap<String, usize>,
    /// Differences that did not come again, with their sequences.
    fleeting: Vec<String>,
    /// What the real server gave no reply to, with the sequences.
    unanswered: Vec<String>,
    /// How often each rule allowed one.
    allowed: BTreeMap<usize, usize>,
    /// How often the arbiter decided a kind of difference.
    decided: BTreeMap<String, usize>,
}

impl Findings {
    pub fn new(seed: u64, against: &str) -> Self {
        println!("seed {seed}, against {against}");
        Self {
            seed,
            against: against.to_owned(),
            started: Instant::now(),
            sequences: 0,
            commands: 0,
            kinds: BTreeMap::new(),
            fleeting: Vec::new(),
            unanswered: Vec::new(),
            allowed: BTreeMap::new(),
            decided: BTreeMap::new(),
        }
    }

    /// A sequence was played.
    pub fn count(&mut self, number: u64, examined: &Examined) {
        self.sequences += 1;
        self.commands += examined.commands;
        if let Some(rule) = examined.allowed {
            *self.allowed.entry(rule).or_default() += 1;
        }
        for kind in &examined.decided {
            *self.decided.entry(kind.clone()).or_default() += 1;
        }
        if let Some(question) = &examined.unanswered {
            let text = format!("sequence {number}: {question}");
            println!("\n# {} was started again, {text}", self.against);
            self.unanswered.push(text);
        }
    }

    /// Whether a difference of this kind was not met before; it has been now.
    pub fn is_new(&mut self, kind: &str) -> bool {
        let count = self.kinds.entry(kind.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    /// How many kinds of differences there are.
    pub fn kinds(&self) -> usize {
        self.kinds.len()
    }

    /// Prints a difference as a script that holds on the real server, with what ours says.
    pub fn show(&self, number: u64, sequence: &Sequence, difference: &Difference) {
        println!(
            "\n{}",
            script(self.seed, number, &self.against, sequence, difference)
        );
    }

    /// A difference that another play did not show.
    pub fn fleeting(&mut self, number: u64, difference: &Difference) {
        self.kinds.remove(&difference.kind);
        let text = format!(
            "sequence {number}: {}\n> {}\nours:\n{}\n{}:\n{}",
            difference.kind, difference.command, difference.ours, self.against, difference.theirs
        );
        println!("\n# seen once and not again: {text}");
        self.fleeting.push(difference.kind.clone());
    }

    /// The figures: speed, differences by kind, rules that were used, commands never run.
    pub fn summary(&self, planner: &Planner, arena: &Arena) {
        let seconds = self.started.elapsed().as_secs_f64().max(0.001);
        let rate = self.commands as f64 / seconds;
        println!(
            "\nseed {}: {} sequences, {} commands in {seconds:.0} s, {rate:.0} a second",
            self.seed, self.sequences, self.commands
        );
        for (rule, count) in &self.allowed {
            println!("allowed {count}x: {}", arena.allowed.rules[*rule].reason);
        }
        let mut decided: Vec<_> = self.decided.iter().collect();
        decided.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        for (kind, count) in decided.iter().take(DECIDED_SHOWN) {
            println!("decided {count}x: {kind}");
        }
        if decided.len() > DECIDED_SHOWN {
            println!("decided {} kinds more", decided.len() - DECIDED_SHOWN);
        }
        let names: Vec<String> = planner
            .commands()
            .iter()
            .map(|command| command.name())
            .collect();
        let never: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !arena.succeeded.contains(*name))
            .collect();
        println!(
            "{} of {} commands ran without an error",
            names.len() - never.len(),
            names.len()
        );
        if !never.is_empty() {
            println!("never: {}", never.join(" "));
        }
        let unanswered = self.unanswered.len();
        println!("{} was started again {unanswered} times", self.against);
        for text in &self.unanswered {
            println!("started again: {text}");
        }
        for kind in &self.fleeting {
            println!("seen once and not again: {kind}");
        }
        for (kind, count) in &self.kinds {
            println!("{count:>6}x {kind}");
        }
        println!("{} kinds of differences", self.kinds.len());
    }
}

fn script(
    seed: u64,
    number: u64,
    against: &str,
    sequence: &Sequence,
    difference: &Difference,
) -> String {
    let mut text = format!("== seed {seed}, sequence {number}: {}\n", difference.kind);
    for (name, value) in &sequence.config {
        text.push_str(&format!("config {name} {value}\n"));
    }
    for line in &difference.shown {
        text.push_str(&line.text);
        text.push('\n');
        for (at, reply) in line.theirs.iter().enumerate() {
            if at > 0 {
                let connection = line.text.split(['>', '<']).next().unwrap_or_default();
                text.push_str(&format!("{connection}<\n"));
            }
            text.push_str(reply);
            text.push('\n');
        }
    }
    let last = difference.shown.last().and_then(|line| line.theirs.last());
    if last != Some(&difference.theirs) {
        text.push_str(&format!("# `{}`, {against}:\n", difference.command));
        for line in difference.theirs.lines() {
            text.push_str(&format!("#   {line}\n"));
        }
    }
    text.push_str(&format!("~ tidemill: seed {seed}\n{}\n", difference.ours));
    text
}
