//! From a tree to the steps of a machine.

use super::PROGRAM_MAX;
use super::parse::Node;

/// A set of bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set([u64; 4]);

impl Set {
    pub(super) const ALL: Self = Self([u64::MAX; 4]);

    pub(super) fn of(has: impl Fn(u8) -> bool) -> Self {
        let mut set = Self::default();
        (0..=255)
            .filter(|&byte| has(byte))
            .for_each(|byte| set.add(byte));
        set
    }

    pub(super) fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    pub(super) fn remove(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] &= !(1 << (byte & 63));
    }

    #[inline]
    pub(super) fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
    }

    pub(super) fn negate(&mut self) {
        self.0.iter_mut().for_each(|word| *word = !*word);
    }

    /// Adds the other case of each letter.
    pub(super) fn fold(&mut self) {
        for lower in b'a'..=b'z' {
            let upper = lower.to_ascii_uppercase();
            if self.has(lower) || self.has(upper) {
                self.add(lower);
                self.add(upper);
            }
        }
    }
}

/// What holds at a place between two bytes, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Assertion {
    Start,
    End,
    WordStart,
    WordEnd,
    WordEdge,
    NoWordEdge,
}

/// A place between two bytes.
#[derive(Clone, Copy)]
pub(super) struct Place {
    before: Option<u8>,
    after: Option<u8>,
}

impl Place {
    /// The place before the byte at `at`. As in Redis, a byte of zero ends a text for whatever
    /// looks ahead.
    pub(super) fn of(text: &[u8], at: usize) -> Self {
        Self {
            before: at.checked_sub(1).map(|before| text[before]),
            after: text.get(at).copied().filter(|&byte| byte != 0),
        }
    }

    pub(super) fn holds(self, assertion: Assertion) -> bool {
        let is_word = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        let (before, after) = (is_word(self.before), is_word(self.after));
        let at_end = self.before.is_none() || self.after.is_none();
        match assertion {
            Assertion::Start => self.before.is_none(),
            Assertion::End => self.after.is_none(),
            Assertion::WordStart => !before && after,
            Assertion::WordEnd => before && !after,
            Assertion::WordEdge => at_end || before != after,
            Assertion::NoWordEdge => !at_end && before == after,
        }
    }
}

/// A step of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes a byte of this set and goes on.
    Byte(u32),
    Split(u32, u32),
    Jump(u32),
    /// Goes on where this holds.
    Assert(Assertion),
    /// The pattern matched.
    End,
}

/// The steps, the first of which is where a match begins.
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    pub(super) sets: Vec<Set>,
    /// Every match begins at the text's beginning.
    pub(super) begins_only_at_start: bool,
}

struct Compiler<'a> {
    nodes: &'a [Node],
    steps: Vec<Step>,
    sets: Vec<Set>,
    /// The set of each node that is one.
    set_of: Vec<Option<u32>>,
}

/// The program of a tree, the last of `nodes`; `None` where it is too long.
pub(super) fn compile(nodes: &[Node]) -> Option<Program> {
    let mut compiler = Compiler {
        nodes,
        steps: Vec::new(),
        sets: Vec::new(),
        set_of: vec![None; nodes.len()],
    };
    compiler.emit(nodes.len().checked_sub(1)?)?;
    compiler.push(Step::End)?;
    let begins_only_at_start = compiler.steps.first() == Some(&Step::Assert(Assertion::Start));
    Some(Program {
        steps: compiler.steps,
        sets: compiler.sets,
        begins_only_at_start,
    })
}

#[allow(clippy::cast_possible_truncation)] // Steps are at most PROGRAM_MAX.
impl Compiler<'_> {
    fn here(&self) -> u32 {
        self.steps.len() as u32
    }

    fn push(&mut self, step: Step) -> Option<usize> {
        if self.steps.len() >= PROGRAM_MAX {
            return None;
        }
        self.steps.push(step);
        Some(self.steps.len() - 1)
    }

    /// Adds the steps of a node. Recurses as deep as groups nest.
    fn emit(&mut self, at: usize) -> Option<()> {
        let nodes = self.nodes;
        match &nodes[at] {
            Node::Empty => {}
            Node::Byte(set) => {
                let number = match self.set_of[at] {
                    Some(number) => number,
                    None => {
                        self.sets.push((**set).clone());
                        let number = self.sets.len() as u32 - 1;
                        self.set_of[at] = Some(number);
                        number
                    }
                };
                self.push(Step::Byte(number))?;
            }
            Node::Assert(assertion) => {
                self.push(Step::Assert(*assertion))?;
            }
            Node::Sequence(parts) => {
                for &part in parts {
                    self.emit(part)?;
                }
            }
            Node::Choice(choices) => self.choice(choices)?,
            Node::Repeat(part, least, most) => self.repeat(*part, *least, *most)?,
        }
        Some(())
    }

    fn choice(&mut self, choices: &[usize]) -> Option<()> {
        let mut jumps = Vec::new();
        for (number, &choice) in choices.iter().enumerate() {
            if number + 1 == choices.len() {
                self.emit(choice)?;
                break;
            }
            let split = self.push(Step::End)?;
            self.emit(choice)?;
            jumps.push(self.push(Step::End)?);
            self.steps[split] = Step::Split(split as u32 + 1, self.here());
        }
        for jump in jumps {
            self.steps[jump] = Step::Jump(self.here());
        }
        Some(())
    }

    fn repeat(&mut self, part: usize, least: u32, most: Option<u32>) -> Option<()> {
        for _ in 0..least {
            let before = self.steps.len();
            self.emit(part)?;
            if self.steps.len() == before {
                break;
            }
        }
        let Some(most) = most else {
            let split = self.push(Step::End)?;
            self.emit(part)?;
            self.push(Step::Jump(split as u32))?;
            self.steps[split] = Step::Split(split as u32 + 1, self.here());
            return Some(());
        };
        let mut splits = Vec::new();
        for _ in least..most {
            splits.push(self.push(Step::End)?);
            self.emit(part)?;
        }
        for split in splits {
            self.steps[split] = Step::Split(split as u32 + 1, self.here());
        }
        Some(())
    }
}
