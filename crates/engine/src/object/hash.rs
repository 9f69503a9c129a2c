//! The value of type hash, in one of three forms.
//!
//! A small hash is a listpack of field and value in turn. Once a field of it has a deadline it is a
//! listpack of field, value and deadline (0 for none). A hash past the configured limits, or with
//! a long field or value, is a [`PackedTable`], and stays one.
//!
//! # Invariants
//! - Whoever reads gives the time, and never sees a field whose deadline has passed. Such a field
//!   still counts in [`Hash::len`] until [`Hash::expire_due`] removes it.
//! - `Timed::due` is at or before the earliest deadline of its fields.
//! - Field hashes come from the keyspace's one hash function.
//!
//! # Why is the time not looked at in `len`?
//! It would have to count. Redis's HLEN, too, counts dead fields until they are reclaimed, which is
//! soon after their deadline.

use structure::hash::Seed;
use structure::listpack::{Entry, Listpack, Position};
use structure::packed::{DEADLINE_MAX, PackedTable};

use super::Terms;

/// A hash.
pub struct Hash {
    form: Form,
}

enum Form {
    /// Field, value, and so on.
    Small(Listpack),
    /// Field, value, deadline, and so on.
    Timed(Box<Timed>),
    Large(Box<Large>),
}

struct Timed {
    pack: Listpack,
    due: u64,
    hinted: u64,
}

struct Large {
    table: PackedTable,
    hinted: u64,
}

impl Large {
    fn new(table: PackedTable) -> Box<Self> {
        let hinted = NEVER;
        Box::new(Self { table, hinted })
    }
}

impl std::ops::Deref for Large {
    type Target = PackedTable;
    fn deref(&self) -> &PackedTable {
        &self.table
    }
}

impl std::ops::DerefMut for Large {
    fn deref_mut(&mut self) -> &mut PackedTable {
        &mut self.table
    }
}

/// No time at all.
const NEVER: u64 = u64::MAX;

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its value.
    pub value: Entry<'a>,
    /// When it dies: Unix milliseconds.
    pub deadline: Option<u64>,
}

/// What becomes of a field's deadline when it is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// It has none.
    Clear,
    /// The one that it had, if any.
    Keep,
    /// This one: Unix milliseconds.
    At(u64),
}

impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.encoding(), self.len())
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self {
            form: Form::Small(Listpack::new()),
        }
    }
}

impl Hash {
    /// The latest deadline that a field may have: Unix milliseconds.
    pub const DEADLINE_MAX: u64 = if (1 << 46) - 1 < DEADLINE_MAX {
        (1 << 46) - 1
    } else {
        DEADLINE_MAX
    };

    /// The fields of a big one as they are now, to be read by somebody else; `None` for one that is
    /// quickly copied.
    pub fn freeze(&mut self) -> Option<structure::packed::PackedPast> {
        match &mut self.form {
            Form::Large(large) => Some(large.table.freeze()),
            _ => None,
        }
    }

    /// As OBJECT ENCODING says it.
    pub fn encoding(&self) -> &'static str {
        match self.form {
            Form::Small(_) => "listpack",
            Form::Timed(_) => "listpackex",
            Form::Large(_) => "hashtable",
        }
    }

    /// How many fields it has, those counted that died and were not removed yet.
    pub fn len(&self) -> usize {
        match &self.form {
            Form::Small(pack) => pack.len() / 2,
            Form::Timed(timed) => timed.pack.len() / 3,
            Form::Large(table) => table.len(),
        }
    }

    /// Whether it has no field.
    pub fn is_empty(&self) -> bool {
        match &self.form {
            Form::Small(pack) => pack.is_empty(),
            Form::Timed(timed) => timed.pack.is_empty(),
            Form::Large(table) => table.is_empty(),
        }
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Small(pack) => pack.memory_bytes(),
            Form::Timed(timed) => size_of::<Timed>() + timed.pack.memory_bytes(),
            Form::Large(table) => size_of::<Large>() + table.memory_bytes(),
        }
    }

    /// Panics where an invariant does not hold. Reads everything.
    #[cfg(any(test, debug_assertions))]
    pub fn check_invariants(&self) {
        match &self.form {
            Form::Small(pack) => assert!(pack.len() % 2 == 0, "a field without its value"),
            Form::Timed(timed) => assert!(timed.pack.len() % 3 == 0, "a field without its time"),
            Form::Large(table) => table.check_invariants(),
        }
        let mut count = 0;
        self.each(0, |_, field| {
            count += 1;
            let due = field.deadline;
            assert!(
                due.is_none() || self.due_hint() <= due,
                "a field is due unseen"
            );
        });
        assert_eq!(count, self.len(), "fields");
    }

    /// Frees about `budget` fields. True when none is left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        match &mut self.form {
            Form::Large(table) => table.free_some(budget),
            _ => true,
        }
    }

    /// No field dies before this; `None` where none has a deadline.
    #[inline]
    pub fn due_hint(&self) -> Option<u64> {
        match &self.form {
            Form::Small(_) => None,
            Form::Timed(timed) => (timed.due != u64::MAX).then_some(timed.due),
            Form::Large(table) if table.timed() == 0 => None,
            Form::Large(table) => table.due_hint(),
        }
    }

    /// When whoever removes dead fields comes to this hash: a note of the keyspace, which is not
    /// copied. `None` where it does not.
    pub fn hinted_ms(&self) -> Option<u64> {
        let hinted = match &self.form {
            Form::Small(_) => NEVER,
            Form::Timed(timed) => timed.hinted,
            Form::Large(table) => table.hinted,
        };
        (hinted != NEVER).then_some(hinted)
    }

    /// Notes when whoever removes dead fields comes. Only a hash of which a field had a deadline
    /// keeps it.
    pub fn set_hinted(&mut self, at_ms: Option<u64>) {
        let at_ms = at_ms.unwrap_or(NEVER);
        match &mut self.form {
            Form::Small(_) => {}
            Form::Timed(timed) => timed.hinted = at_ms,
            Form::Large(table) => table.hinted = at_ms,
        }
    }

    /// A field that is alive.
    #[inline]
    pub fn get(&self, terms: Terms<'_>, field: &[u8]) -> Option<Field<'_>> {
        let found = match &self.form {
            Form::Small(pack) => {
                let at = pack.next(pack.find(field, 1)?)?;
                Field {
                    value: pack.get(at),
                    deadline: None,
                }
            }
            Form::Timed(timed) => {
                let at = timed.pack.find(field, 2)?;
                timed.read(at)?.1
            }
            Form::Large(table) => {
                let found = table.get(terms.hash(field), field)?;
                Field {
                    value: Entry::Bytes(found.value),
                    deadline: found.deadline,
                }
            }
        };
        is_alive(found.deadline, terms.now_ms).then_some(found)
    }

    /// Sets a field; true where it was there and alive.
    #[inline]
    pub fn set(&mut self, terms: Terms<'_>, field: &[u8], value: &[u8], ttl: Ttl) -> bool {
        let longest = terms.settings.hash_listpack_value;
        if field.len() > longest || value.len() > longest || matches!(ttl, Ttl::At(_)) {
            self.prepare(terms, field, value, ttl);
        }
        match &mut self.form {
            Form::Small(pack) => {
                if let Some(at) = pack.find(field, 1) {
                    let at = pack.next(at).expect("a field has its value");
                    pack.replace(at, value);
                    return true;
                }
                if !pack.can_hold(field.len() + value.len()) {
                    self.enlarge(terms.seed);
                    return self.set(terms, field, value, ttl);
                }
                pack.push_back(field);
                pack.push_back(value);
                if pack.len() / 2 > terms.settings.hash_listpack_entries {
                    self.enlarge(terms.seed);
                }
                false
            }
            Form::Timed(timed) => {
                let existed = timed.set(terms.now_ms, field, value, ttl);
                if timed.pack.len() / 3 > terms.settings.hash_listpack_entries {
                    self.enlarge(terms.seed);
                }
                existed
            }
            Form::Large(table) => {
                let hash = terms.hash(field);
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                if table.timed() == 0 {
                    let deadline = ttl.resolve(None);
                    return table.insert(hash, field, value, deadline, &hasher);
                }
                let old = table.get(hash, field).map(|found| found.deadline);
                let alive = old.filter(|deadline| is_alive(*deadline, terms.now_ms));
                let deadline = ttl.resolve(alive.flatten());
                table.insert(hash, field, value, deadline, &hasher);
                alive.is_some()
            }
        }
    }

    /// Sets or clears the deadline of a field; false where it is not there or dead.
    pub fn set_deadline(&mut self, terms: Terms<'_>, field: &[u8], deadline: Option<u64>) -> bool {
        if self.get(terms, field).is_none() {
            return false;
        }
        if deadline.is_some() {
            self.begin_timing();
        }
        match &mut self.form {
            Form::Small(_) => true,
            Form::Timed(timed) => timed.set_deadline(field, deadline),
            Form::Large(table) => {
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                table.set_deadline(terms.hash(field), field, deadline, &hasher)
            }
        }
    }

    /// Removes a field; true where it was there and alive.
    pub fn remove(&mut self, terms: Terms<'_>, field: &[u8]) -> bool {
        match &mut self.form {
            Form::Small(pack) => {
                let Some(at) = pack.find(field, 1) else {
                    return false;
                };
                pack.remove_range(at, 2);
                true
            }
            Form::Timed(timed) => {
                let Some(at) = timed.pack.find(field, 2) else {
                    return false;
                };
                let deadline = timed.read(at).and_then(|(_, found)| found.deadline);
                timed.pack.remove_range(at, 3);
                if deadline.is_some() {
                    timed.due = timed.earliest();
                }
                is_alive(deadline, terms.now_ms)
            }
            Form::Large(table) => {
                let hash = terms.hash(field);
                let alive = table.timed() == 0
                    || table
                        .get(hash, field)
                        .is_some_and(|found| is_alive(found.deadline, terms.now_ms));
                table.remove(hash, field) && alive
            }
        }
    }

    /// Gives every living field to `f`, in no useful order.
    pub fn each<'h>(&'h self, now_ms: u64, mut f: impl FnMut(Entry<'h>, Field<'h>)) {
        match &self.form {
            Form::Small(pack) => {
                let mut entries = pack.iter();
                while let (Some(field), Some(value)) = (entries.next(), entries.next()) {
                    let deadline = None;
                    f(field, Field { value, deadline });
                }
            }
            Form::Timed(timed) => {
                let mut at = timed.pack.first();
                while let Some((field, found)) = at.and_then(|at| timed.read(at)) {
                    if is_alive(found.deadline, now_ms) {
                        f(field, found);
                    }
                    at = at.and_then(|at| timed.after(at));
                }
            }
            Form::Large(table) => {
                for entry in table.iter() {
                    if is_alive(entry.deadline, now_ms) {
                        f(Entry::Bytes(entry.key), large_field(&entry));
                    }
                }
            }
        }
    }

    /// How many fields are alive. Counts where some have a deadline that has passed.
    pub fn living(&self, now_ms: u64) -> usize {
        if self.due_hint().is_none_or(|due| due > now_ms) {
            return self.len();
        }
        let mut count = 0;
        self.each(now_ms, |_, _| count += 1);
        count
    }

    /// Gives about `count` living fields to `f` and returns the cursor to go on from, 0 at the end.
    /// A small hash comes whole.
    pub fn scan<'h>(
        &'h self,
        cursor: u64,
        count: usize,
        now_ms: u64,
        mut f: impl FnMut(Entry<'h>, Field<'h>),
    ) -> u64 {
        if let Form::Large(table) = &self.form {
            return table.scan(cursor, count, |entry| {
                if is_alive(entry.deadline, now_ms) {
                    f(Entry::Bytes(entry.key), large_field(&entry));
                }
            });
        }
        self.each(now_ms, f);
        0
    }

    /// A living field, each with the same probability, given `rng(n)` uniform in `0..n`.
    pub fn random(
        &self,
        now_ms: u64,
        mut rng: impl FnMut(u64) -> u64,
    ) -> Option<(Entry<'_>, Field<'_>)> {
        const DRAWS_MAX: usize = 64;
        for _ in 0..DRAWS_MAX {
            let (field, found) = match &self.form {
                Form::Small(pack) => {
                    let at = pack.seek(draw(pack.len() / 2, &mut rng)? * 2)?;
                    let value = pack.get(pack.next(at)?);
                    let deadline = None;
                    (pack.get(at), Field { value, deadline })
                }
                Form::Timed(timed) => {
                    let at = draw(timed.pack.len() / 3, &mut rng)? * 3;
                    timed.read(timed.pack.seek(at)?)?
                }
                Form::Large(table) => {
                    let entry = table.random(&mut rng)?;
                    (Entry::Bytes(entry.key), large_field(&entry))
                }
            };
            if is_alive(found.deadline, now_ms) {
                return Some((field, found));
            }
        }
        // Nearly all are dead: count the living ones out.
        let mut rest = draw(self.living(now_ms), &mut rng)?;
        let mut chosen = None;
        self.each(now_ms, |field, found| {
            if rest == 0 {
                chosen = chosen.or(Some((field, found)));
            }
            rest = rest.saturating_sub(1);
        });
        chosen
    }

    /// Removes fields whose time is up, about `limit` at most, after giving each to `f`; returns
    /// how many. Who reclaims actively calls this for each hash whose [`Hash::due_hint`] has
    /// passed.
    pub fn expire_due(&mut self, now_ms: u64, limit: usize, mut f: impl FnMut(Entry<'_>)) -> usize {
        match &mut self.form {
            Form::Small(_) => 0,
            Form::Timed(timed) => timed.expire_due(now_ms, f),
            Form::Large(table) => {
                let each = |entry: structure::packed::EntryRef<'_>| f(Entry::Bytes(entry.key));
                table.expire_due(now_ms, limit, each).removed
            }
        }
    }

    /// A copy, dead fields left out.
    pub fn duplicate(&self, terms: Terms<'_>) -> Self {
        let form = match &self.form {
            Form::Small(pack) => Form::Small(pack.clone()),
            Form::Timed(timed) => Form::Timed(Box::new(Timed {
                pack: timed.pack.clone(),
                due: timed.due,
                hinted: NEVER,
            })),
            Form::Large(table) => {
                let mut copy = PackedTable::new();
                let hasher = |bytes: &[u8]| structure::hash::hash(terms.seed, bytes);
                for entry in table.iter().filter(|e| is_alive(e.deadline, terms.now_ms)) {
                    let hash = hasher(entry.key);
                    copy.insert(hash, entry.key, entry.value, entry.deadline, &hasher);
                }
                Form::Large(Large::new(copy))
            }
        };
        Self { form }
    }

    /// Brings the hash into a form that can take a long field or value, or a deadline.
    #[cold]
    fn prepare(&mut self, terms: Terms<'_>, field: &[u8], value: &[u8], ttl: Ttl) {
        let longest = terms.settings.hash_listpack_value;
        if field.len() > longest || value.len() > longest {
            self.enlarge(terms.seed);
        }
        if matches!(ttl, Ttl::At(_)) {
            self.begin_timing();
        }
    }

    /// Takes the form that so many pairs in one command ask for, whether or not their fields are
    /// new.
    #[inline]
    pub fn expect_pairs(&mut self, terms: Terms<'_>, pairs: usize) {
        if pairs > terms.settings.hash_listpack_entries {
            self.enlarge(terms.seed);
        }
    }

    /// Gives every field of a small hash room for a deadline.
    pub fn begin_timing(&mut self) {
        let Form::Small(pack) = &self.form else {
            return;
        };
        let mut timed = Listpack::with_capacity(pack.byte_len() + pack.len());
        for (index, entry) in pack.iter().enumerate() {
            push(&mut timed, entry);
            if index % 2 == 1 {
                timed.push_back_int(0);
            }
        }
        self.form = Form::Timed(Box::new(Timed {
            pack: timed,
            due: NEVER,
            hinted: NEVER,
        }));
    }

    #[cold]
    fn enlarge(&mut self, seed: &Seed) {
        if matches!(self.form, Form::Large(_)) {
            return;
        }
        let mut table = PackedTable::new();
        let hasher = |bytes: &[u8]| structure::hash::hash(seed, bytes);
        self.each(0, |field, found| {
            let (mut one, mut other) = ([0; 20], [0; 20]);
            let (key, value) = (field.bytes(&mut one), found.value.bytes(&mut other));
            table.insert(hasher(key), key, value, found.deadline, &hasher);
        });
        let hinted = self.hinted_ms();
        self.form = Form::Large(Large::new(table));
        self.set_hinted(hinted);
    }
}

impl Ttl {
    fn resolve(self, old: Option<u64>) -> Option<u64> {
        match self {
            Self::Clear => None,
            Self::Keep => old,
            Self::At(at) => Some(at),
        }
    }
}

impl Timed {
    /// The field at `at` with what it holds.
    fn read(&self, at: Position) -> Option<(Entry<'_>, Field<'_>)> {
        let value = self.pack.next(at)?;
        let deadline = self.pack.get(self.pack.next(value)?).int();
        let field = Field {
            value: self.pack.get(value),
            deadline: deadline.filter(|&at| at > 0).map(i64::unsigned_abs),
        };
        Some((self.pack.get(at), field))
    }

    /// Where the next field is.
    fn after(&self, at: Position) -> Option<Position> {
        let value = self.pack.next(at)?;
        self.pack.next(self.pack.next(value)?)
    }

    fn set(&mut self, now_ms: u64, field: &[u8], value: &[u8], ttl: Ttl) -> bool {
        let found = self.pack.find(field, 2);
        let old = found
            .and_then(|at| self.read(at))
            .map(|(_, old)| old.deadline);
        let alive = old.filter(|deadline| is_alive(*deadline, now_ms));
        let deadline = ttl.resolve(alive.flatten());
        if let Some(at) = found {
            let at = self.pack.next(at).expect("a field has its value");
            self.pack.replace(at, value);
            let at = self.pack.next(at).expect("a field has its deadline");
            self.put_deadline(at, deadline);
        } else {
            self.pack.push_back(field);
            self.pack.push_back(value);
            self.pack.push_back_int(as_int(deadline));
        }
        self.due = self.due.min(deadline.unwrap_or(u64::MAX));
        alive.is_some()
    }

    fn set_deadline(&mut self, field: &[u8], deadline: Option<u64>) -> bool {
        let value = self.pack.find(field, 2).and_then(|at| self.pack.next(at));
        let Some(at) = value.and_then(|at| self.pack.next(at)) else {
            return false;
        };
        self.put_deadline(at, deadline);
        self.due = self.due.min(deadline.unwrap_or(u64::MAX));
        true
    }

    /// The earliest deadline of a field.
    fn earliest(&self) -> u64 {
        let (mut due, mut at) = (NEVER, self.pack.first());
        while let Some((_, found)) = at.and_then(|at| self.read(at)) {
            due = due.min(found.deadline.unwrap_or(NEVER));
            at = at.and_then(|at| self.after(at));
        }
        due
    }

    fn put_deadline(&mut self, at: Position, deadline: Option<u64>) {
        let mut digits = [0; 20];
        let text = structure::decimal::format(as_int(deadline), &mut digits);
        self.pack.replace(at, text);
    }

    fn expire_due(&mut self, now_ms: u64, mut f: impl FnMut(Entry<'_>)) -> usize {
        let (mut removed, mut due) = (0, u64::MAX);
        let mut at = self.pack.first();
        while let Some(here) = at {
            let Some((field, found)) = self.read(here) else {
                break;
            };
            if is_alive(found.deadline, now_ms) {
                due = due.min(found.deadline.unwrap_or(u64::MAX));
                at = self.after(here);
            } else {
                f(field);
                removed += 1;
                at = self.pack.remove_range(here, 3);
            }
        }
        self.due = due;
        removed
    }
}

#[inline]
fn is_alive(deadline: Option<u64>, now_ms: u64) -> bool {
    deadline.is_none_or(|at| at > now_ms)
}

fn as_int(deadline: Option<u64>) -> i64 {
    deadline.map_or(0, |at| i64::try_from(at).unwrap_or(i64::MAX))
}

fn large_field<'a>(entry: &structure::packed::EntryRef<'a>) -> Field<'a> {
    Field {
        value: Entry::Bytes(entry.value),
        deadline: entry.deadline,
    }
}

fn push(pack: &mut Listpack, entry: Entry<'_>) {
    match entry {
        Entry::Int(int) => pack.push_back_int(int),
        Entry::Bytes(bytes) => pack.push_back(bytes),
    }
}

fn draw(below: usize, rng: &mut impl FnMut(u64) -> u64) -> Option<usize> {
    (below > 0).then(|| usize::try_from(rng(below as u64)).unwrap_or(0))
}

#[cfg(test)]
mod tests;
