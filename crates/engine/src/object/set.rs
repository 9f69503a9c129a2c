//! The value of type set: integers in order, a listpack, or a packed table.
//!
//! # Invariants
//! - OBJECT ENCODING says what Redis 8.10 would say after the same commands: a set grows from
//!   integers to a listpack or a table, from a listpack to a table, and never shrinks back.
//! - What is called a table may be integers in order still, up to [`MANY_INTS_MAX`].
//! - No member stands in it twice.
//! - A table hashes members with the seed of the keyspace, which every call hands in.
//!
//! # Why does the small form not become a table earlier?
//! 128 members of a few bytes are searched in about the time of one cache miss, and take a third
//! of the memory.
//!
//! # Why do integers stay in order beyond the limit?
//! In a table each takes some 24 bytes, in order 2 to 8. A search among the most of them takes
//! twelve steps, and a place for a new one moves 8 KiB on average, less than a microsecond.

#[cfg(test)]
mod tests;

use structure::decimal::{self, TEXT_MAX};
use structure::hash::{Seed, hash};
use structure::intset::{self, Intset};
use structure::listpack::{self, Entry, Listpack};
use structure::packed::PackedTable;

use crate::settings::Settings;

/// The most integers that Redis keeps in order, whatever the setting.
const INTSET_ENTRIES_MAX: usize = 1 << 30;

/// The most integers that are kept in order where Redis has a table.
const MANY_INTS_MAX: usize = 4096;
/// The mark of a cursor that says an integer, not a place in a table: those have 48 bits. With it
/// a cursor has no more bits than the numbers of all clients.
const SAYS_INTEGER: u64 = 1 << 48;
/// What such a cursor has above its integer, which takes four bytes.
const CURSOR_BIAS: i64 = 1 << 31;

/// A set.
pub struct Set {
    form: Form,
}

enum Form {
    Ints(Intset),
    /// Integers of which Redis would make a table.
    Many(Intset),
    Pack(Listpack),
    // A box, so that small sets do not carry the size of the large form.
    Table(Box<PackedTable>),
}

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Set {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl From<Intset> for Set {
    fn from(ints: Intset) -> Self {
        Self {
            form: Form::Ints(ints),
        }
    }
}

impl Set {
    /// An empty set, in the smallest form.
    pub fn new() -> Self {
        Intset::new().into()
    }

    /// An empty set in the form for `first` and, with it, `expected` members.
    pub fn for_members(first: &[u8], expected: usize, settings: &Settings) -> Self {
        let form = if expected <= ints_max(settings) && decimal::parse(first).is_some() {
            Form::Ints(Intset::new())
        } else if expected <= settings.set_listpack_entries {
            Form::Pack(Listpack::new())
        } else if expected <= MANY_INTS_MAX && decimal::parse(first).is_some() {
            Form::Many(Intset::new())
        } else {
            Form::Table(Box::default())
        };
        Self { form }
    }

    /// A set of the elements of a listpack, which the caller has found to be distinct.
    pub fn from_listpack(pack: Listpack, settings: &Settings, seed: &Seed) -> Self {
        let fits = pack.len() <= settings.set_listpack_entries;
        let mut set = Self {
            form: Form::Pack(pack),
        };
        if !fits {
            set.become_table(seed);
        }
        set
    }

    /// The listpack, where that is the form: for a file.
    pub fn as_listpack(&self) -> Option<&Listpack> {
        match &self.form {
            Form::Pack(pack) => Some(pack),
            _ => None,
        }
    }

    /// The members of a big one as they are now, to be read by somebody else; `None` for one that
    /// is quickly copied.
    pub fn freeze(&mut self) -> Option<structure::packed::PackedPast> {
        match &mut self.form {
            Form::Table(table) => Some(table.freeze()),
            _ => None,
        }
    }

    /// As OBJECT ENCODING says it.
    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Ints(_) => "intset",
            Form::Pack(_) => "listpack",
            Form::Many(_) | Form::Table(_) => "hashtable",
        }
    }

    /// How many members it has.
    #[inline]
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Ints(ints) | Form::Many(ints) => ints.len(),
            Form::Pack(pack) => pack.len(),
            Form::Table(table) => table.len(),
        }
    }

    /// Whether it has no member.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Ints(ints) | Form::Many(ints) => ints.memory_bytes(),
            Form::Pack(pack) => pack.memory_bytes(),
            Form::Table(table) => size_of::<PackedTable>() + table.memory_bytes(),
        }
    }

    /// Frees about `budget` elements. True when none is left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        match &mut self.form {
            Form::Table(table) => table.free_some(budget),
            _ => {
                *self = Self::new();
                true
            }
        }
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        if let Form::Table(table) = &self.form {
            table.check_invariants();
        }
        assert_eq!(self.iter().count(), self.len(), "members");
    }

    /// A copy.
    pub fn duplicate(&self, seed: &Seed) -> Self {
        let form = match &self.form {
            Form::Ints(ints) => Form::Ints(ints.clone()),
            Form::Many(ints) => Form::Many(ints.clone()),
            Form::Pack(pack) => Form::Pack(pack.clone()),
            Form::Table(table) => {
                let mut copy = Box::<PackedTable>::default();
                for entry in table.iter() {
                    add(&mut copy, entry.key, seed);
                }
                Form::Table(copy)
            }
        };
        Self { form }
    }

    /// Takes the large form at once where a command is about to add `more` members, as Redis does
    /// whether or not they turn out to be new.
    pub fn expect(&mut self, more: usize, settings: &Settings, seed: &Seed) {
        match self.form {
            Form::Ints(_) if more > ints_max(settings) => self.become_many(more, seed),
            Form::Many(_) if more > MANY_INTS_MAX => drop(self.become_table(seed)),
            Form::Pack(_) if more > settings.set_listpack_entries => {
                self.become_table(seed);
            }
            _ => {}
        }
    }

    /// Adds a member. True where it is new.
    #[inline]
    pub fn insert(&mut self, member: &[u8], settings: &Settings, seed: &Seed) -> bool {
        match &mut self.form {
            Form::Table(table) => add(table, member, seed),
            Form::Ints(ints) => match decimal::parse(member) {
                Some(int) => {
                    let new = ints.insert(int);
                    let len = ints.len();
                    if new && len > ints_max(settings) {
                        self.become_many(len, seed);
                    }
                    new
                }
                None => {
                    self.leave_ints(member, settings, seed);
                    true
                }
            },
            Form::Many(ints) => match decimal::parse(member) {
                Some(int) => {
                    let new = ints.insert(int);
                    if new && ints.len() > MANY_INTS_MAX {
                        self.become_table(seed);
                    }
                    new
                }
                None => {
                    self.become_table(seed).insert_new(member, seed);
                    true
                }
            },
            Form::Pack(pack) => {
                if pack.find(member, 0).is_some() {
                    return false;
                }
                if pack.len() < settings.set_listpack_entries
                    && member.len() <= settings.set_listpack_value
                    && pack.can_hold(member.len())
                {
                    pack.push_back(member);
                } else {
                    self.become_table(seed).insert_new(member, seed);
                }
                true
            }
        }
    }

    /// Takes the listpack form where the limits allow it.
    pub fn settle(&mut self, settings: &Settings) {
        let is_large = matches!(self.form, Form::Many(_) | Form::Table(_));
        if !is_large || self.len() > settings.set_listpack_entries {
            return;
        }
        let mut pack = Listpack::new();
        for entry in self.iter() {
            let len = entry.byte_len();
            if len > settings.set_listpack_value || !pack.can_hold(len) {
                return;
            }
            pack.push_back(entry.bytes(&mut [0; TEXT_MAX]));
        }
        self.form = Form::Pack(pack);
    }

    /// Adds what another set gave.
    pub fn insert_entry(&mut self, entry: Entry<'_>, settings: &Settings, seed: &Seed) -> bool {
        self.insert(entry.bytes(&mut [0; TEXT_MAX]), settings, seed)
    }

    /// Removes a member. True where it was there.
    #[inline]
    pub fn remove(&mut self, member: &[u8], seed: &Seed) -> bool {
        match &mut self.form {
            Form::Table(table) => table.remove(hash(seed, member), member),
            Form::Ints(ints) | Form::Many(ints) => {
                decimal::parse(member).is_some_and(|int| ints.remove(int))
            }
            Form::Pack(pack) => match pack.find(member, 0) {
                None => false,
                Some(position) => {
                    pack.remove(position);
                    true
                }
            },
        }
    }

    /// Whether it has a member.
    #[inline]
    pub fn contains(&self, member: &[u8], seed: &Seed) -> bool {
        match &self.form {
            Form::Table(table) => table.contains(hash(seed, member), member),
            Form::Ints(ints) | Form::Many(ints) => {
                decimal::parse(member).is_some_and(|int| ints.contains(int))
            }
            Form::Pack(pack) => pack.find(member, 0).is_some(),
        }
    }

    /// Whether it has what another set gave.
    #[inline]
    pub fn contains_entry(&self, entry: Entry<'_>, seed: &Seed) -> bool {
        match (&self.form, entry) {
            (Form::Ints(ints) | Form::Many(ints), Entry::Int(int)) => ints.contains(int),
            _ => self.contains(entry.bytes(&mut [0; TEXT_MAX]), seed),
        }
    }

    /// The members: integers in their order, those of a listpack in the order of their coming.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        match &self.form {
            Form::Ints(ints) | Form::Many(ints) => Members::Ints(ints.iter()),
            Form::Pack(pack) => Members::Pack(pack.iter()),
            Form::Table(table) => Members::Table(table.iter().map(|entry| Entry::Bytes(entry.key))),
        }
    }

    /// Gives members from `cursor` on to `each` and returns the cursor to go on from, 0 at the end.
    /// A member that stays from the first call to the last is given at least once. The small forms
    /// are given whole, whatever the cursor.
    pub fn scan<'s>(&'s self, cursor: u64, count: usize, mut each: impl FnMut(Entry<'s>)) -> u64 {
        match &self.form {
            Form::Table(table) => {
                // Begun before it was a table, which has another order: begun again.
                let place = if cursor & SAYS_INTEGER == 0 {
                    cursor
                } else {
                    0
                };
                table.scan(place, count, |entry| each(Entry::Bytes(entry.key)))
            }
            Form::Many(ints) => scan_ints(ints, cursor, count, each),
            _ => {
                self.iter().for_each(each);
                0
            }
        }
    }

    /// A member, each as likely as the others, given `below(n)` uniform in `0..n`.
    pub fn random(&self, mut below: impl FnMut(u64) -> u64) -> Option<Entry<'_>> {
        match &self.form {
            Form::Ints(ints) | Form::Many(ints) => {
                let at = place(ints.len(), &mut below)?;
                ints.get(at).map(Entry::Int)
            }
            Form::Pack(pack) => {
                let at = place(pack.len(), &mut below)?;
                pack.seek(at).map(|position| pack.get(position))
            }
            Form::Table(table) => table.random(below).map(|entry| Entry::Bytes(entry.key)),
        }
    }

    /// Removes a member drawn as [`Set::random`] draws, after giving it to `f`.
    pub fn pop_random<R>(
        &mut self,
        mut below: impl FnMut(u64) -> u64,
        f: impl FnOnce(Entry<'_>) -> R,
    ) -> Option<R> {
        match &mut self.form {
            Form::Ints(ints) | Form::Many(ints) => {
                let at = place(ints.len(), &mut below)?;
                ints.remove_at(at).map(|int| f(Entry::Int(int)))
            }
            Form::Pack(pack) => {
                let position = pack.seek(place(pack.len(), &mut below)?)?;
                let result = f(pack.get(position));
                pack.remove(position);
                Some(result)
            }
            Form::Table(table) => table.pop_random(below, |entry| f(Entry::Bytes(entry.key))),
        }
    }

    /// A string comes to integers.
    #[cold]
    fn leave_ints(&mut self, member: &[u8], settings: &Settings, seed: &Seed) {
        let Form::Ints(ints) = &self.form else {
            return;
        };
        let longest = [ints.get(0), ints.get(ints.len().wrapping_sub(1))]
            .into_iter()
            .flatten()
            .map(|int| Entry::Int(int).byte_len())
            .fold(member.len(), usize::max);
        if ints.len() < settings.set_listpack_entries && longest <= settings.set_listpack_value {
            let mut pack = Listpack::new();
            ints.iter().for_each(|int| pack.push_back_int(int));
            if pack.can_hold(member.len()) {
                pack.push_back(member);
                self.form = Form::Pack(pack);
                return;
            }
        }
        self.become_table(seed).insert_new(member, seed);
    }

    /// Integers that are to be called a table from now on, or to become one for `expected` members.
    #[cold]
    fn become_many(&mut self, expected: usize, seed: &Seed) {
        let Form::Ints(ints) = &mut self.form else {
            return;
        };
        if expected.max(ints.len()) > MANY_INTS_MAX {
            self.become_table(seed);
        } else {
            self.form = Form::Many(std::mem::take(ints));
        }
    }

    #[cold]
    fn become_table(&mut self, seed: &Seed) -> &mut Self {
        let mut table = Box::<PackedTable>::default();
        for entry in self.iter() {
            add(&mut table, entry.bytes(&mut [0; TEXT_MAX]), seed);
        }
        self.form = Form::Table(table);
        self
    }

    /// Adds a member that is not there to a table.
    fn insert_new(&mut self, member: &[u8], seed: &Seed) {
        if let Form::Table(table) = &mut self.form {
            add(table, member, seed);
        }
    }
}

/// Adds a member to a table. True where it is new.
#[inline]
fn add(table: &mut PackedTable, member: &[u8], seed: &Seed) -> bool {
    let hasher = |member: &[u8]| hash(seed, member);
    !table.insert(hasher(member), member, b"", None, &hasher)
}

/// As [`Set::scan`]. The cursor says which integer is next, not where it stands: whatever comes and
/// goes in between, those that stay are all met. Where some take eight bytes, no cursor could say
/// which, and all are given at once.
fn scan_ints<'s>(ints: &Intset, cursor: u64, count: usize, mut each: impl FnMut(Entry<'s>)) -> u64 {
    let next = i64::try_from(cursor & (SAYS_INTEGER - 1)).unwrap_or(0) - CURSOR_BIAS;
    let (from, count) = match cursor {
        _ if ints.is_wide() => (0, usize::MAX),
        0 => (0, count),
        _ => (ints.search(next).unwrap_or_else(|place| place), count),
    };
    let mut rest = ints.iter().skip(from);
    rest.by_ref()
        .take(count)
        .for_each(|int| each(Entry::Int(int)));
    rest.next()
        .map_or(0, |next| SAYS_INTEGER | (next + CURSOR_BIAS).unsigned_abs())
}

fn ints_max(settings: &Settings) -> usize {
    settings.set_intset_entries.min(INTSET_ENTRIES_MAX)
}

/// A place among `len`, drawn.
#[allow(clippy::cast_possible_truncation)] // Below `len`.
fn place(len: usize, below: &mut impl FnMut(u64) -> u64) -> Option<usize> {
    (len > 0).then(|| below(len as u64) as usize)
}

/// The members of a set in one of its forms.
enum Members<'a, T> {
    Ints(intset::Iter<'a>),
    Pack(listpack::Iter<'a>),
    Table(T),
}

impl<'a, T: Iterator<Item = Entry<'a>>> Iterator for Members<'a, T> {
    type Item = Entry<'a>;

    #[inline]
    fn next(&mut self) -> Option<Entry<'a>> {
        match self {
            Self::Ints(ints) => ints.next().map(Entry::Int),
            Self::Pack(pack) => pack.next(),
            Self::Table(table) => table.next(),
        }
    }
}
