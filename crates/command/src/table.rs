//! The table of commands: built once at start, read on every request.
//!
//! A name is folded to lower case sixteen bytes at a time: its first and its last eight bytes
//! (which overlap in names of 8 to 15), each with 0x20 set in every byte. Fold and length decide
//! equality for every name of letters up to 16 bytes, so the usual lookup is two loads, one
//! multiplication and one comparison. Names that are longer or hold other characters are compared
//! byte by byte after their fold matched.
//!
//! # Invariants
//! - Ids are dense: 0 to `len() - 1`, each container followed by its subcommands. Counters for each
//!   command are arrays.
//! - At most a quarter of the slots are taken, so a probe for an unknown name ends.
//! - The table never changes after it is built; a configured rename happens while building.
//!
//! # Why not a perfect hash?
//! It would need a second table of displacements: one more load for every lookup to save a probe
//! that few names need. Instead the multiplier is chosen so that most names sit in their own slot.

use std::collections::HashSet;
use std::ops::Range;

use crate::keys::{KeyAt, KeyFlags, Unparsable, Words};
use crate::{Acl, Command, Flags};

/// A command in the table, with all that follows from its declaration.
#[derive(Debug)]
pub struct Entry<H: 'static> {
    /// Position in [`Table::entries`].
    pub id: u16,
    /// Where its keys are, for the hot path.
    pub key_plan: KeyPlan,
    /// Includes [`Flags::MOVABLEKEYS`] where that follows.
    pub flags: Flags,
    /// None in a container that does nothing without a subcommand.
    pub run: Option<H>,
    pub command: &'static Command<H>,
    /// Declared and implied categories.
    pub acl: Acl,
    /// The id of the container.
    pub parent: Option<u16>,
    /// `get`, or `client|kill`: as COMMAND and the statistics name it.
    pub full_name: Box<str>,
    fold: Fold,
    subcommands: Range<u16>,
    /// The fewest words of a call, and how many more it may have.
    words: (usize, usize),
}

/// Where keys stand in a call whose arity has been checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPlan {
    /// The command has no keys.
    None,
    /// One key, at this position.
    One(u16),
    /// Every `step`-th word from `first` to `last`; a negative `last` counts from the end.
    Range { first: u16, last: i16, step: u8 },
    /// Ask [`Command::each_key`].
    Search,
}

/// Why a call names no command.
#[derive(Debug)]
pub enum Unresolved<'t, H: 'static> {
    Command,
    /// The container is known; its subcommand is not.
    Subcommand(&'t Entry<H>),
}

/// All commands, by name and by id.
#[derive(Debug)]
pub struct Table<H: 'static> {
    slots: Box<[Slot]>,
    shift: u32,
    multiplier: u64,
    entries: Vec<Entry<H>>,
    /// The names that are looked up, by slot id: a renamed command's new name.
    names: Vec<Box<[u8]>>,
    /// Whether some command has another name than its own.
    is_renamed: bool,
}

/// A name's folded bytes and its length.
#[derive(Clone, Copy, Debug)]
struct Fold {
    head: u64,
    tail: u64,
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    fold: Fold,
    id: u16,
    /// The fold alone does not decide.
    is_ambiguous: bool,
}

const EMPTY: Slot = Slot {
    fold: Fold {
        head: 0,
        tail: 0,
        len: usize::MAX,
    },
    id: u16::MAX,
    is_ambiguous: false,
};

const SPACES: u64 = 0x2020_2020_2020_2020;

impl Fold {
    #[inline]
    fn of(name: &[u8]) -> Self {
        let len = name.len();
        let (head, tail) = if let Some((head, _)) = name.split_first_chunk::<8>() {
            let tail = name.last_chunk::<8>().map_or(0, |t| u64::from_le_bytes(*t));
            (u64::from_le_bytes(*head), tail)
        } else if let Some((head, _)) = name.split_first_chunk::<4>() {
            let tail = name.last_chunk::<4>().map_or(0, |t| u32::from_le_bytes(*t));
            (
                u64::from(u32::from_le_bytes(*head)) | u64::from(tail) << 32,
                0,
            )
        } else if len > 0 {
            let bytes = [name[0], name[len / 2], name[len - 1]];
            (
                u64::from(bytes[0]) | u64::from(bytes[1]) << 8 | u64::from(bytes[2]) << 16,
                0,
            )
        } else {
            (0, 0)
        };
        Self {
            head: head | SPACES,
            tail: tail | SPACES,
            len,
        }
    }

    /// One comparison without branches between its parts: most probes match at once.
    #[inline]
    fn is(&self, other: &Self) -> bool {
        (self.head ^ other.head) | (self.tail ^ other.tail) | (self.len ^ other.len) as u64 == 0
    }

    /// The slot where the name's probe starts.
    #[inline]
    fn home(&self, multiplier: u64, shift: u32) -> usize {
        let mixed = self.head ^ self.tail.rotate_left(25) ^ self.len as u64;
        (mixed.wrapping_mul(multiplier) >> shift) as usize
    }
}

impl<H: Copy + 'static> Table<H> {
    /// The table of these families.
    ///
    /// # Panics
    /// If two commands have one name, or there are 65,535 or more: mistakes in the declarations,
    /// which the table tests of every crate with commands find.
    pub fn new(families: &[&'static [Command<H>]]) -> Self {
        Self::renamed(families, |name| Some(name.to_owned()))
    }

    /// The table of these families under other names, as `rename-command` wants them: `rename`
    /// gets each declared name and gives the one to answer to, or None for an unreachable command.
    ///
    /// # Panics
    /// As [`Table::new`]; check names that come from outside for uniqueness first.
    pub fn renamed(
        families: &[&'static [Command<H>]],
        rename: impl Fn(&str) -> Option<String>,
    ) -> Self {
        let mut entries = Vec::new();
        let mut names = Vec::new();
        let mut reachable = Vec::new();
        for command in families.iter().flat_map(|family| family.iter()) {
            let id = entries.len();
            push(&mut entries, command, None);
            for subcommand in command.subcommands {
                push(&mut entries, subcommand, Some(id));
            }
            let name = rename(command.name);
            names.resize(id, Box::default());
            if let Some(name) = name {
                reachable.push((Fold::of(name.as_bytes()), id));
                names.push(name.into_bytes().into_boxed_slice());
            }
        }
        names.resize(entries.len(), Box::default());
        assert!(entries.len() < usize::from(u16::MAX), "too many commands");
        let distinct: HashSet<_> = reachable
            .iter()
            .map(|(_, id)| names[*id].to_ascii_lowercase())
            .collect();
        assert!(
            distinct.len() == reachable.len(),
            "two commands have one name"
        );

        let capacity = (reachable.len().max(1) * 2).next_power_of_two() * 2;
        let shift = 64 - capacity.trailing_zeros();
        let multiplier = choose_multiplier(&reachable, capacity, shift);
        let mut slots = vec![EMPTY; capacity].into_boxed_slice();
        for &(fold, id) in &reachable {
            let mut at = fold.home(multiplier, shift);
            while slots[at].id != u16::MAX {
                at = (at + 1) & (capacity - 1);
            }
            slots[at] = Slot {
                fold,
                id: id as u16,
                is_ambiguous: is_ambiguous(&names[id]),
            };
        }
        let own =
            |entry: &Entry<H>| entry.command.name.as_bytes() == &*names[usize::from(entry.id)];
        let is_renamed = entries
            .iter()
            .any(|entry| entry.parent.is_none() && !own(entry));
        Self {
            slots,
            shift,
            multiplier,
            entries,
            names,
            is_renamed,
        }
    }

    /// Whether some command has another name than its own.
    #[inline]
    pub fn is_renamed(&self) -> bool {
        self.is_renamed
    }

    /// The command whose own name this is, whatever clients call it.
    pub fn find_own(&self, name: &[u8]) -> Option<&Entry<H>> {
        if !self.is_renamed {
            return self.find(name);
        }
        let is = |entry: &&Entry<H>| entry.command.name.as_bytes().eq_ignore_ascii_case(name);
        self.commands().find(is)
    }

    /// As [`Table::find_full`], by the command's own name.
    pub fn find_full_own(&self, name: &[u8]) -> Option<&Entry<H>> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.find_own(name),
            Some(bar) => self.find_subcommand(self.find_own(&name[..bar])?, &name[bar + 1..]),
        }
    }

    /// As [`Table::resolve`], by the commands' own names.
    ///
    /// # Errors
    /// As [`Table::resolve`].
    pub fn resolve_own<W: Words + ?Sized>(
        &self,
        words: &W,
    ) -> Result<&Entry<H>, Unresolved<'_, H>> {
        match words.count() {
            0 => Err(Unresolved::Command),
            count => self.within(self.find_own(words.word(0)), words, count),
        }
    }

    /// The command of this name, in any case; subcommands are not found here.
    // Always inlined: it is called for every request.
    #[inline(always)]
    pub fn find(&self, name: &[u8]) -> Option<&Entry<H>> {
        let fold = Fold::of(name);
        let mask = self.slots.len() - 1;
        let mut at = fold.home(self.multiplier, self.shift) & mask;
        loop {
            let slot = &self.slots[at];
            if slot.fold.is(&fold)
                && (!slot.is_ambiguous
                    || self.names[usize::from(slot.id)].eq_ignore_ascii_case(name))
            {
                return self.entries.get(usize::from(slot.id));
            }
            if slot.id == u16::MAX {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// The subcommand of this name, in any case.
    #[inline]
    pub fn find_subcommand(&self, container: &Entry<H>, name: &[u8]) -> Option<&Entry<H>> {
        let fold = Fold::of(name);
        self.subcommands(container).iter().find(|entry| {
            entry.fold.is(&fold) && entry.command.name.as_bytes().eq_ignore_ascii_case(name)
        })
    }

    /// The command that a call runs: a subcommand if its first word names a container and there is
    /// a second word. The arity is not checked.
    ///
    /// # Errors
    /// [`Unresolved`] if there is no such command, or the container has no such subcommand.
    #[inline(always)]
    pub fn resolve<W: Words + ?Sized>(&self, words: &W) -> Result<&Entry<H>, Unresolved<'_, H>> {
        if words.count() == 0 {
            return Err(Unresolved::Command);
        }
        self.within(self.find(words.word(0)), words, words.count())
    }

    /// The subcommand that the second word names, where the first names a container.
    #[inline]
    fn within<'t, W: Words + ?Sized>(
        &'t self,
        entry: Option<&'t Entry<H>>,
        words: &W,
        count: usize,
    ) -> Result<&'t Entry<H>, Unresolved<'t, H>> {
        let entry = entry.ok_or(Unresolved::Command)?;
        if entry.subcommands.is_empty() || count == 1 {
            return Ok(entry);
        }
        self.find_subcommand(entry, words.word(1))
            .ok_or(Unresolved::Subcommand(entry))
    }

    /// The command of this full name, such as `client|kill`, in any case.
    pub fn find_full(&self, name: &[u8]) -> Option<&Entry<H>> {
        match name.iter().position(|&byte| byte == b'|') {
            None => self.find(name),
            Some(bar) => self.find_subcommand(self.find(&name[..bar])?, &name[bar + 1..]),
        }
    }

    /// Every command and subcommand, by id.
    pub fn entries(&self) -> &[Entry<H>] {
        &self.entries
    }

    /// The commands that are no subcommands.
    pub fn commands(&self) -> impl Iterator<Item = &Entry<H>> + Clone {
        self.entries.iter().filter(|entry| entry.parent.is_none())
    }

    /// The subcommands of a container; none for another command.
    pub fn subcommands(&self, container: &Entry<H>) -> &[Entry<H>] {
        &self.entries
            [usize::from(container.subcommands.start)..usize::from(container.subcommands.end)]
    }

    /// How many commands and subcommands there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no commands.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<H: Copy + 'static> Entry<H> {
    /// Its own name, or that of its container.
    pub fn first_word(&self) -> &str {
        self.full_name.split('|').next().unwrap_or_default()
    }

    /// Whether a call of `count` words is allowed.
    #[inline]
    pub fn arity_allows(&self, count: usize) -> bool {
        count.wrapping_sub(self.words.0) <= self.words.1
    }

    /// Reports the position of every key of a call whose arity has been checked.
    ///
    /// # Errors
    /// [`Unparsable`] if the words do not say where the keys are; some may have been reported.
    #[inline]
    pub fn each_key_index<W: Words + ?Sized>(
        &self,
        words: &W,
        out: &mut impl FnMut(usize),
    ) -> Result<(), Unparsable> {
        match self.key_plan {
            KeyPlan::None => Ok(()),
            KeyPlan::One(index) => {
                out(usize::from(index));
                Ok(())
            }
            KeyPlan::Range { first, last, step } => {
                let count = words.count();
                let last = match usize::try_from(last) {
                    Ok(last) => last,
                    Err(_) => count.saturating_sub(usize::from(last.unsigned_abs())),
                };
                let end = count.min(last + 1);
                (usize::from(first)..end)
                    .step_by(usize::from(step))
                    .for_each(out);
                Ok(())
            }
            KeyPlan::Search => self
                .command
                .each_key(words, &mut |key: KeyAt| out(key.index)),
        }
    }
}

impl KeyPlan {
    fn of<H: Copy>(command: &Command<H>) -> Self {
        let has_keys = command
            .keys
            .iter()
            .any(|spec| !spec.flags.has(KeyFlags::NOT_KEY));
        if !has_keys {
            return Self::None;
        }
        if command.is_movable() {
            return Self::Search;
        }
        match command.key_range() {
            (first, last, _) if first == last => Self::One(first as u16),
            (first, last, step) => Self::Range {
                first: first as u16,
                last: last as i16,
                step: step.max(1) as u8,
            },
        }
    }
}

fn push<H: Copy>(entries: &mut Vec<Entry<H>>, command: &'static Command<H>, parent: Option<usize>) {
    let id = entries.len();
    let full_name = match parent {
        None => command.name.to_owned(),
        Some(parent) => format!("{}|{}", entries[parent].command.name, command.name),
    };
    let derived = if command.is_movable() {
        Flags::MOVABLEKEYS
    } else {
        Flags::NONE
    };
    entries.push(Entry {
        id: id as u16,
        key_plan: KeyPlan::of(command),
        flags: command.flags.with(derived),
        run: command.run,
        command,
        acl: Acl::of(command.acl, command.flags),
        parent: parent.map(|parent| parent as u16),
        full_name: full_name.into_boxed_str(),
        fold: Fold::of(command.name.as_bytes()),
        words: command.arity.range(),
        subcommands: id as u16 + 1..(id + 1 + command.subcommands.len()) as u16,
    });
}

/// Whether setting 0x20 in every byte may make another name equal to this one.
fn is_ambiguous(name: &[u8]) -> bool {
    name.len() > 16 || !name.iter().all(u8::is_ascii_alphabetic)
}

/// An odd multiplier that leaves few names outside their own slot.
fn choose_multiplier(names: &[(Fold, usize)], capacity: usize, shift: u32) -> u64 {
    let mut candidate: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut best = (usize::MAX, candidate);
    for _ in 0..256 {
        let mut taken = vec![false; capacity];
        let mut displaced = 0;
        for (fold, _) in names {
            let mut at = fold.home(candidate, shift);
            while taken[at] {
                displaced += 1;
                at = (at + 1) & (capacity - 1);
            }
            taken[at] = true;
        }
        best = best.min((displaced, candidate));
        candidate = candidate
            .wrapping_mul(0xd134_2543_de82_ef95)
            .wrapping_add(0x632b_e5ab)
            | 1;
    }
    best.1
}

#[cfg(test)]
mod tests;
