//! The keyspace: all databases, cut into stripes by the hash of the key.
//!
//! # Invariants
//! - Key `k` of every database stands in stripe `hash(k) >> shift`.
//! - `Db::timed` is the number of its keys that have a deadline, and each of them has a hint in the
//!   wheel at or before it.
//! - `Db::timed_hashes` is the number of its hashes that keep a note of a hint, and each of these
//!   has a hint at or before its first field's deadline in `field_wheel`, or is in `unfinished`.
//! - Nothing big is freed under a lock: what a record leaves behind goes to a [`Graveyard`].

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use structure::hash::Seed;
use structure::record::{Displaced, Record, RecordRef, Value, ValueRef};
use structure::stripes::{RawLock, StripeSet, Stripes};
use structure::table::{RecordMut, Table};

use crate::access::Access;
use crate::blocking::WaitTable;
use crate::host::ClientId;
use crate::object::{Hash, Object};
use crate::pubsub::{ChannelKind, Registry};
use crate::session::Subscriptions;
use crate::stats::KeyspaceStats;
use crate::tracking;
use crate::wheel::Wheel;

/// A value bigger than this is freed in slices, off the locks.
pub const FREE_AT_ONCE_MAX: usize = 64;

/// The wheel is rebuilt when it holds this many times as many hints as there are timed keys.
const STALE_HINTS_FACTOR: usize = 4;

/// Records of due keys that are asked for ahead of their use.
const RECORDS_AHEAD: usize = 16;

/// One database's share of a stripe.
pub struct Db {
    /// The keys.
    pub table: Table<Object>,
    wheel: Wheel,
    timed: usize,
    /// Hints of hashes whose fields have deadlines.
    field_wheel: Wheel,
    timed_hashes: usize,
    /// Hashes of which not all dead fields could be removed in one go.
    unfinished: Vec<(u64, Box<[u8]>)>,
}

/// One stripe: everything that belongs to its keys.
pub struct Stripe {
    dbs: Vec<Db>,
    flushed: Vec<Table<Object>>,
    seed: Seed,
    bits: u32,
    buckets: u32,
    /// Clients that wait for keys.
    pub waiters: WaitTable,
    /// Who watches which key.
    pub watchers: Watchers,
    /// Counters.
    pub stats: KeyspaceStats,
}

/// A database and a key of it.
pub type DbKey = (u32, Box<[u8]>);

/// Watched keys of a stripe: who must hear of a change.
#[derive(Default)]
pub struct Watchers {
    keys: HashMap<DbKey, Vec<Watcher>>,
}

struct Watcher {
    flag: Arc<AtomicBool>,
    /// The key was past its deadline when it was watched: that it goes is no change.
    saw_it_dead: bool,
}

impl Watcher {
    fn tell(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

impl Watchers {
    /// Whether nobody watches any key here.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// How many keys are watched.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Adds a watcher of a key, which may be past its deadline already.
    pub fn add(&mut self, db: u32, key: &[u8], flag: &Arc<AtomicBool>, is_dead: bool) {
        self.keys
            .entry((db, key.into()))
            .or_default()
            .push(Watcher {
                flag: flag.clone(),
                saw_it_dead: is_dead,
            });
    }

    /// Removes a watcher of a key.
    pub fn remove(&mut self, db: u32, key: &[u8], flag: &Arc<AtomicBool>) {
        let slot = (db, key.into());
        if let Some(flags) = self.keys.get_mut(&slot) {
            flags.retain(|other| !Arc::ptr_eq(&other.flag, flag));
            if flags.is_empty() {
                self.keys.remove(&slot);
            }
        }
    }

    /// Tells everybody who watches a key.
    pub fn touch(&self, db: u32, key: &[u8]) {
        if let Some(watchers) = self.keys.get(&(db, key.into())) {
            watchers.iter().for_each(Watcher::tell);
        }
    }

    /// Tells everybody who watches a key that is taken out past its deadline, and saw it alive.
    pub fn touch_expired(&self, db: u32, key: &[u8]) {
        if let Some(watchers) = self.keys.get(&(db, key.into())) {
            let alive = watchers.iter().filter(|watcher| !watcher.saw_it_dead);
            alive.for_each(Watcher::tell);
        }
    }

    /// Tells everybody who watches a key of `db` for which `changes` is true.
    pub fn touch_where(&self, db: u32, changes: impl Fn(&[u8]) -> bool) {
        for (_, watchers) in self.of(db).filter(|(key, _)| changes(key)) {
            watchers.iter().for_each(Watcher::tell);
        }
    }

    /// Tells everybody who watches a key of `db` for which `goes` is true, and saw it alive.
    pub fn touch_gone(&self, db: u32, goes: impl Fn(&[u8]) -> bool) {
        for (_, watchers) in self.of(db).filter(|(key, _)| goes(key)) {
            let alive = watchers.iter().filter(|watcher| !watcher.saw_it_dead);
            alive.for_each(Watcher::tell);
        }
    }

    fn of(&self, db: u32) -> impl Iterator<Item = (&[u8], &[Watcher])> {
        let here = self.keys.iter().filter(move |((other, _), _)| *other == db);
        here.map(|((_, key), watchers)| (&**key, &**watchers))
    }
}

/// What a write does with a key's deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Leave it.
    Keep,
    /// Remove it.
    Clear,
    /// Set it: Unix milliseconds.
    At(u64),
}

impl Db {
    fn new(seed: Seed, bits: u32, buckets: u32) -> Self {
        Self {
            table: Table::new(seed, bits, buckets),
            wheel: Wheel::default(),
            timed: 0,
            field_wheel: Wheel::default(),
            timed_hashes: 0,
            unfinished: Vec::new(),
        }
    }

    /// How many keys have a deadline.
    #[inline]
    pub fn timed(&self) -> usize {
        self.timed
    }

    /// How many hashes have fields with a deadline. One that lost the last of them otherwise than
    /// by removal counts until its time comes.
    pub fn timed_hashes(&self) -> usize {
        self.timed_hashes
    }

    /// Bytes of table and wheels, without the records.
    pub fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.wheel.memory_bytes() + self.field_wheel.memory_bytes()
    }

    /// Whether `key` is there but past its deadline.
    #[inline]
    pub fn is_dead(&self, hash: u64, key: &[u8], now_ms: u64) -> bool {
        self.timed > 0
            && self
                .table
                .find(hash, key)
                .is_some_and(|record| is_past(record, now_ms))
    }

    /// Sets the value of `key`, new or not. Returns whether it was there, and what the old value
    /// leaves behind. `access` is the use that this is of a key that was there.
    pub fn put(
        &mut self,
        hash: u64,
        key: &[u8],
        value: Value<'_, Object>,
        deadline: Deadline,
        now_ms: u64,
        access: Access,
    ) -> (bool, Displaced<Object>) {
        let has_timed_fields =
            matches!(&value, Value::Object(object) if object.has_field_deadlines());
        let replaced = match self.table.find_mut(hash, key) {
            None => Err(value),
            Some(mut record) => {
                let displaced = record.set_value(value);
                let bits = record.access();
                record.set_access(access.apply(bits));
                let old = record.deadline();
                let new = match deadline {
                    Deadline::Keep => old,
                    Deadline::Clear => None,
                    Deadline::At(at) => Some(at),
                };
                if new != old {
                    record.set_deadline(new);
                }
                Ok((displaced, old, new))
            }
        };
        let value = match replaced {
            Err(value) => value,
            Ok((displaced, old, new)) => {
                if new != old {
                    self.deadline_changed(hash, old, new, now_ms);
                }
                if let Displaced::Object(object) = &displaced {
                    self.timed_hashes -= usize::from(is_hinted(object));
                }
                if has_timed_fields {
                    self.fields_changed(hash, key, now_ms);
                }
                return (true, displaced);
            }
        };
        let at = match deadline {
            Deadline::At(at) => Some(at),
            Deadline::Keep | Deadline::Clear => None,
        };
        self.table.insert(hash, key, value, at);
        if at.is_some() {
            self.deadline_changed(hash, None, at, now_ms);
        }
        if has_timed_fields {
            self.fields_changed(hash, key, now_ms);
        }
        (false, Displaced::Nothing)
    }

    /// Adds a record whose key is not there.
    pub fn insert_record(&mut self, hash: u64, record: Record<Object>, now_ms: u64) {
        let deadline = record.deadline();
        let is_timed = matches!(record.value(), ValueRef::Object(o) if o.has_field_deadlines());
        let key = is_timed.then(|| Box::<[u8]>::from(record.key()));
        self.table.insert_record(hash, record);
        self.deadline_changed(hash, None, deadline, now_ms);
        if let Some(key) = key {
            self.fields_changed(hash, &key, now_ms);
        }
    }

    /// The hash under a key, if there is one.
    fn hash_mut(&mut self, hash: u64, key: &[u8]) -> Option<&mut Hash> {
        match self.table.find_mut(hash, key)?.into_object()? {
            Object::Hash(fields) => Some(fields),
            _ => None,
        }
    }

    /// Fields of the hash under a key may have got deadlines, or lost them: it gets a hint where it
    /// needs one, and is counted.
    pub fn fields_changed(&mut self, hash: u64, key: &[u8], now_ms: u64) {
        let Some(fields) = self.hash_mut(hash, key) else {
            return;
        };
        let (hinted, due) = (fields.hinted_ms(), fields.due_hint());
        let is_earlier = match (hinted, due) {
            (Some(hinted), Some(due)) => due < hinted,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        if is_earlier || due.is_none() {
            fields.set_hinted(due);
        }
        self.timed_hashes += usize::from(hinted.is_none() && due.is_some());
        self.timed_hashes -= usize::from(hinted.is_some() && due.is_none());
        if let Some(due) = due.filter(|_| is_earlier) {
            self.field_wheel.add(due, self.table.hint(hash), now_ms);
        }
    }

    /// Dead fields of a hash that [`Stripe::due_hash`] gave out were removed: sees to it that its
    /// next ones are found.
    pub fn hash_visited(&mut self, hash: u64, key: &[u8], now_ms: u64) {
        let Some(fields) = self.hash_mut(hash, key) else {
            return;
        };
        let (hinted, due) = (fields.hinted_ms(), fields.due_hint());
        if due.is_some_and(|due| due <= now_ms) {
            self.unfinished.push((hash, key.into()));
            return;
        }
        fields.set_hinted(due);
        self.timed_hashes += usize::from(due.is_some());
        self.timed_hashes -= usize::from(hinted.is_some());
        if let Some(due) = due {
            self.field_wheel.add(due, self.table.hint(hash), now_ms);
        }
    }

    /// A record has left: its hash has no hint any more.
    fn forget_fields(&mut self, record: &mut Record<Object>) {
        if self.timed_hashes > 0
            && let Some(object) = record.object_mut()
            && is_hinted(object)
        {
            self.timed_hashes -= 1;
            if let Object::Hash(fields) = object {
                fields.set_hinted(None);
            }
        }
    }

    fn deadline_changed(&mut self, hash: u64, old: Option<u64>, new: Option<u64>, now_ms: u64) {
        self.timed += usize::from(new.is_some());
        self.timed -= usize::from(old.is_some());
        if let Some(at) = new
            && old.is_none_or(|old| at < old)
        {
            self.wheel.add(at, self.table.hint(hash), now_ms);
        }
    }

    /// Sets or clears the deadline of `key`. False where there is no such key.
    pub fn set_deadline(
        &mut self,
        hash: u64,
        key: &[u8],
        deadline: Option<u64>,
        now_ms: u64,
    ) -> bool {
        let Some(mut record) = self.table.find_mut(hash, key) else {
            return false;
        };
        let old = record.deadline();
        record.set_deadline(deadline);
        drop(record);
        self.deadline_changed(hash, old, deadline, now_ms);
        true
    }

    /// Takes `key` out.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<Record<Object>> {
        let mut record = self.table.remove(hash, key)?;
        self.timed -= usize::from(record.deadline().is_some());
        self.forget_fields(&mut record);
        Some(record)
    }

    /// Whether too many of the wheel's hints lead nowhere.
    fn is_stale(&self) -> bool {
        self.wheel.len() > 1024 + STALE_HINTS_FACTOR * self.timed
    }

    /// Makes the wheel of fields anew, where too many of its hints lead nowhere.
    fn refresh_field_wheel(&mut self, now_ms: u64) {
        if self.field_wheel.len() <= 1024 + STALE_HINTS_FACTOR * self.timed_hashes {
            return;
        }
        let mut hints = self.field_wheel.take_all();
        hints.sort_unstable();
        hints.dedup();
        for hint in hints {
            let mut first = None;
            self.table.with_hint(hint, |_, record| {
                first = first.into_iter().chain(hinted_ms(record)).min();
            });
            if let Some(at) = first {
                self.field_wheel.add(at, hint, now_ms);
            }
        }
    }

    /// A hash of which fields are dead. Looks at `looks` hints at most, and takes off as many as it
    /// looked at; where some are left, there is none.
    fn due_hash(&mut self, now_ms: u64, looks: &mut usize) -> Option<(u64, Box<[u8]>)> {
        self.refresh_field_wheel(now_ms);
        let mut hints = Vec::new();
        while self.unfinished.is_empty() && *looks > 0 {
            if self.field_wheel.take_due(now_ms, 1, &mut hints) == 0 {
                return None;
            }
            *looks -= 1;
            for hint in hints.drain(..) {
                let mut again: Option<u64> = None;
                let unfinished = &mut self.unfinished;
                self.table
                    .with_hint(hint, |hash, record| match hinted_ms(record) {
                        Some(at) if at <= now_ms => unfinished.push((hash, record.key().into())),
                        later => again = again.into_iter().chain(later).min(),
                    });
                if let Some(at) = again {
                    self.field_wheel.add(at, hint, now_ms);
                }
            }
        }
        self.unfinished.pop()
    }

    /// Makes the wheel anew from those of its hints that lead to a key with a deadline.
    fn rebuild_wheel(&mut self, now_ms: u64) {
        let mut hints = self.wheel.take_all();
        hints.sort_unstable();
        hints.dedup();
        for hint in hints {
            let mut first: Option<u64> = None;
            self.table.with_hint(hint, |_, record| {
                first = match (first, record.deadline()) {
                    (Some(a), Some(b)) => Some(a.min(b)),
                    (a, b) => a.or(b),
                };
            });
            if let Some(at) = first {
                self.wheel.add(at, hint, now_ms);
            }
        }
    }
}

/// When a record's dead fields are looked for next.
fn hinted_ms(record: RecordRef<'_, Object>) -> Option<u64> {
    match record.value() {
        ValueRef::Object(Object::Hash(fields)) => fields.hinted_ms(),
        _ => None,
    }
}

fn is_hinted(object: &Object) -> bool {
    matches!(object, Object::Hash(fields) if fields.hinted_ms().is_some())
}

/// Whether the record is past its deadline.
#[inline]
pub fn is_past(record: RecordRef<'_, Object>, now_ms: u64) -> bool {
    record.deadline().is_some_and(|at| at <= now_ms)
}

impl Stripe {
    fn new(seed: Seed, bits: u32, index: usize, count: usize) -> Self {
        // Between 45 and 90 buckets a segment, so that the stripes split at different times.
        #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
        #[allow(clippy::cast_sign_loss)] // Between 45 and 90.
        let buckets = (45.0 * 2f64.powf(index as f64 / count as f64)) as u32;
        Self {
            dbs: Vec::new(),
            flushed: Vec::new(),
            seed,
            bits,
            buckets,
            waiters: WaitTable::default(),
            watchers: Watchers::default(),
            stats: KeyspaceStats::default(),
        }
    }

    /// Database `db`, if it ever held a key here.
    #[inline]
    pub fn db(&self, db: u32) -> Option<&Db> {
        self.dbs.get(db as usize)
    }

    /// Database `db`, if it ever held a key here.
    #[inline]
    pub fn db_mut(&mut self, db: u32) -> Option<&mut Db> {
        self.dbs.get_mut(db as usize)
    }

    /// Database `db`, made where it is missing.
    #[inline]
    pub fn db_or_new(&mut self, db: u32) -> &mut Db {
        if self.dbs.len() <= db as usize {
            let (seed, bits, buckets) = (self.seed, self.bits, self.buckets);
            self.dbs
                .resize_with(db as usize + 1, || Db::new(seed, bits, buckets));
        }
        &mut self.dbs[db as usize]
    }

    /// Empties database `db` and returns how many keys there were. They go to `graveyard` whole,
    /// or wait until a snapshot that needs them has seen them.
    pub fn flush_db(&mut self, db: u32, graveyard: &mut Graveyard) -> usize {
        let fresh = Db::new(self.seed, self.bits, self.buckets);
        let Some(slot) = self.dbs.get_mut(db as usize) else {
            return 0;
        };
        let taken = std::mem::replace(slot, fresh);
        let count = taken.table.len();
        if taken.table.is_passing() {
            self.flushed.push(taken.table);
        } else {
            graveyard.bury_table(taken.table);
        }
        count
    }

    /// Tables that were flushed and that a snapshot still needs.
    pub fn flushed_mut(&mut self) -> &mut Vec<Table<Object>> {
        &mut self.flushed
    }

    /// Exchanges two databases.
    pub fn swap_dbs(&mut self, a: u32, b: u32) {
        self.db_or_new(a.max(b));
        self.dbs.swap(a as usize, b as usize);
    }

    /// How many databases this stripe has room for so far.
    pub fn db_count(&self) -> u32 {
        u32::try_from(self.dbs.len()).unwrap_or(u32::MAX)
    }

    /// Takes out keys whose time is up and gives each to `dead`, with its database and its hash: at
    /// most `budget` hints are looked at. Returns how many were; fewer than `budget` means that
    /// nothing due is left.
    pub fn take_dead(
        &mut self,
        now_ms: u64,
        budget: usize,
        mut dead: impl FnMut(u32, u64, Record<Object>),
    ) -> usize {
        let mut looked = 0;
        let mut hints = Vec::new();
        for (number, db) in (0u32..).zip(&mut self.dbs) {
            if db.wheel.is_empty() {
                continue;
            }
            if db.is_stale() {
                db.rebuild_wheel(now_ms);
            }
            looked += db.wheel.take_due(now_ms, budget - looked, &mut hints);
            // First the buckets, then the records, each well ahead of its use: the misses overlap.
            hints
                .iter()
                .for_each(|&hint| db.table.prefetch_hinted_bucket(hint));
            hints
                .iter()
                .take(RECORDS_AHEAD)
                .for_each(|&hint| db.table.prefetch_hinted_record(hint));
            for (index, &hint) in hints.iter().enumerate() {
                if let Some(&hint) = hints.get(index + RECORDS_AHEAD) {
                    db.table.prefetch_hinted_record(hint);
                }
                let mut again = u64::MAX;
                let is_dead = |record: RecordRef<'_, Object>| {
                    let at = record.deadline().unwrap_or(u64::MAX);
                    if at > now_ms {
                        again = again.min(at);
                    }
                    at <= now_ms
                };
                let (timed, timed_hashes) = (&mut db.timed, &mut db.timed_hashes);
                db.table.take_hinted(hint, is_dead, |hash, record| {
                    *timed -= 1;
                    if *timed_hashes > 0 {
                        *timed_hashes -= usize::from(hinted_ms(record.view()).is_some());
                    }
                    dead(number, hash, record);
                });
                if again < u64::MAX {
                    db.wheel.add(again, hint, now_ms);
                }
            }
            hints.clear();
            if looked >= budget {
                break;
            }
        }
        looked
    }

    /// A hash of which fields are dead, with its database. Looks at `looks` hints at most and takes
    /// off as many as it looked at; where some are left, there is none.
    pub fn due_hash(&mut self, now_ms: u64, looks: &mut usize) -> Option<(u32, u64, Box<[u8]>)> {
        (0u32..).zip(&mut self.dbs).find_map(|(number, db)| {
            let (hash, key) = db.due_hash(now_ms, looks)?;
            Some((number, hash, key))
        })
    }

    /// When keys or fields may have to be taken out next; `None` where none has a deadline.
    pub fn next_due_ms(&self) -> Option<u64> {
        let due = |db: &Db| {
            let keys = db.wheel.next_due_ms().filter(|_| db.timed > 0);
            let fields = db.field_wheel.next_due_ms();
            let fields = fields.filter(|_| db.timed_hashes > 0);
            keys.into_iter().chain(fields).min()
        };
        self.dbs.iter().filter_map(due).min()
    }

    /// Panics where an invariant does not hold: those of the tables and counters, and in builds
    /// with debug assertions those of every value. Reads everything.
    pub fn check_invariants(&self) {
        self.waiters.check_invariants();
        for db in &self.dbs {
            db.table.check_invariants();
            let timed = db
                .table
                .iter()
                .filter(|record| record.deadline().is_some())
                .count();
            assert_eq!(timed, db.timed, "timed keys are counted");
            let hinted = db.table.iter().filter_map(hinted_ms).count();
            assert_eq!(hinted, db.timed_hashes, "timed hashes are counted");
            for record in db.table.iter() {
                let ValueRef::Object(object) = record.value() else {
                    continue;
                };
                #[cfg(any(test, debug_assertions))]
                object.check_invariants();
                if let Object::Hash(fields) = object {
                    let (hinted, due) = (fields.hinted_ms(), fields.due_hint());
                    assert!(due.is_none() || hinted.is_some() && hinted <= due);
                }
            }
        }
    }
}

/// Values to be freed when there is time.
#[derive(Default)]
#[allow(clippy::vec_box)] // Values come in boxes and stay in them.
pub struct Graveyard {
    objects: Vec<Box<Object>>,
    tables: Vec<Table<Object>>,
    freed: u64,
}

impl Graveyard {
    /// Takes what a value left behind; small things are freed at once.
    #[inline]
    pub fn bury(&mut self, displaced: Displaced<Object>) {
        match displaced {
            Displaced::Nothing => {}
            Displaced::Long(bytes) => drop(bytes),
            Displaced::Object(object) if object.len() <= FREE_AT_ONCE_MAX => drop(object),
            Displaced::Object(object) => self.objects.push(object),
        }
    }

    /// Takes a whole table.
    pub fn bury_table(&mut self, table: Table<Object>) {
        debug_assert!(!table.is_passing(), "a snapshot needs this table");
        if !table.is_empty() {
            self.tables.push(table);
        }
    }

    /// Takes everything of another graveyard.
    pub fn append(&mut self, other: &mut Self) {
        self.objects.append(&mut other.objects);
        self.tables.append(&mut other.tables);
    }

    /// Whether there is nothing to free.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.tables.is_empty()
    }

    /// How many objects wait: `lazyfree_pending_objects`.
    pub fn pending(&self) -> usize {
        self.objects.len() + self.tables.iter().map(Table::len).sum::<usize>()
    }

    /// How many objects were freed here: `lazyfreed_objects`.
    pub fn freed(&self) -> u64 {
        self.freed
    }

    /// Frees about `budget` elements. True when nothing is left.
    pub fn free_some(&mut self, budget: usize) -> bool {
        if let Some(object) = self.objects.last_mut() {
            if object.free_some(budget) {
                self.objects.pop();
                self.freed += 1;
            }
            return self.is_empty();
        }
        if let Some(table) = self.tables.last_mut() {
            // A record may hold a big object: those are handed on rather than dropped whole.
            let objects = &mut self.objects;
            let before = table.len();
            let done = table.free_with(budget, |record| match record.into_displaced() {
                Displaced::Object(object) if object.len() > FREE_AT_ONCE_MAX => {
                    objects.push(object)
                }
                other => drop(other),
            });
            self.freed += (before - table.len()) as u64;
            if done {
                self.tables.pop();
            }
        }
        self.is_empty()
    }
}

/// What all threads share beside the stripes.
pub struct Shared {
    /// The commands.
    pub table: crate::Table,
    /// Who listens to which channel.
    pub pubsub: Registry,
    /// Who caches which keys.
    pub tracking: tracking::Registry,
    /// The hash function's secret.
    pub seed: Seed,
    /// Stripe of a hash: `hash >> stripe_shift`.
    pub stripe_shift: u32,
    /// The number of the last effect, when somebody reads the log.
    pub lsn: AtomicU64,
    /// Whether somebody reads the log.
    pub log_is_read: AtomicBool,
    /// Clients that wait for a key.
    pub blocked_clients: AtomicU64,
    /// How many waits have begun so far.
    pub waits: AtomicU64,
    /// Whether any field of a hash ever had a deadline: until then nobody looks for dead fields.
    pub field_deadlines: AtomicBool,
    /// A [`Phase`].
    phase: AtomicU8,
}

/// What the keyspace is there for at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Commands.
    Serving,
    /// It is being loaded: only commands that are marked as such run.
    Loading,
    /// It was saved for the last time: nothing changes any more.
    Stopping,
}

impl Shared {
    /// What the keyspace is there for.
    pub fn phase(&self) -> Phase {
        match self.phase.load(Ordering::Relaxed) {
            phase if phase == Phase::Loading as u8 => Phase::Loading,
            phase if phase == Phase::Stopping as u8 => Phase::Stopping,
            _ => Phase::Serving,
        }
    }

    /// Whether commands run as usual.
    #[inline]
    pub fn is_serving(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == Phase::Serving as u8
    }

    /// Says what the keyspace is there for. Whoever locks a stripe afterwards that the caller holds
    /// now finds it.
    pub fn set_phase(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        structure::hash::hash(&self.seed, key)
    }

    /// Takes all subscriptions of a client out of the registry.
    pub fn forget_subscriptions(&self, client: ClientId, subscriptions: &Subscriptions) {
        for (kind, channels) in [
            (ChannelKind::Global, &subscriptions.channels),
            (ChannelKind::Shard, &subscriptions.shard_channels),
        ] {
            for channel in channels {
                let hash = self.hash(channel);
                self.pubsub.unsubscribe(kind, hash, channel, client);
            }
        }
        for pattern in &subscriptions.patterns {
            self.pubsub.unsubscribe_pattern(pattern, client);
        }
    }

    /// The stripe of a hash.
    #[inline]
    pub fn stripe(&self, hash: u64) -> usize {
        #[allow(clippy::cast_possible_truncation)] // Below the number of stripes.
        {
            (hash >> self.stripe_shift) as usize
        }
    }
}

/// The whole keyspace: stripes behind locks of kind `L`, and what is shared.
pub struct Keyspace<L> {
    /// The stripes.
    pub stripes: Stripes<Stripe, L>,
    /// The rest.
    pub shared: Arc<Shared>,
}

impl<L: RawLock> Keyspace<L> {
    /// An empty keyspace of `stripes` stripes, a power of two.
    pub fn new(table: crate::Table, stripes: usize, seed: Seed) -> Self {
        let bits = stripes.trailing_zeros();
        let shared = Arc::new(Shared {
            table,
            pubsub: Registry::default(),
            tracking: tracking::Registry::default(),
            seed,
            stripe_shift: 64 - bits,
            lsn: AtomicU64::new(0),
            log_is_read: AtomicBool::new(false),
            blocked_clients: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            field_deadlines: AtomicBool::new(false),
            phase: AtomicU8::new(Phase::Serving as u8),
        });
        let stripes = Stripes::new(stripes, |index| Stripe::new(seed, bits, index, stripes));
        Self { stripes, shared }
    }

    /// How many stripes serve `threads` threads well: a power of two, from 64 to 256.
    pub fn stripes_for(threads: usize) -> usize {
        (8 * threads).next_power_of_two().clamp(64, 256)
    }

    /// The stripes of some hashes.
    pub fn set_of(&self, hashes: impl Iterator<Item = u64>) -> StripeSet {
        let mut set = StripeSet::EMPTY;
        hashes.for_each(|hash| set.add(self.shared.stripe(hash)));
        set
    }
}

/// A record that may be changed in place.
pub type Editing<'k> = RecordMut<'k, Object>;
