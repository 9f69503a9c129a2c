//! Snapshots: the whole keyspace as it was at one moment, while it goes on changing.
//!
//! [`cut`] fixes the moment: every stripe is locked, and in each table a pass begins. From then on
//! whoever changes a record hands over what it was first, and [`Stripe::save_some`], called in
//! slices, shows the rest. What comes out are [`Piece`]s: entries as the file has them, in no
//! particular order, each key of the moment in exactly one. Big values are only frozen, and written
//! down by whoever takes the pieces.
//!
//! # Invariants
//! - A table with a pass is neither freed nor forgotten: what FLUSHALL takes away goes on here, as
//!   the database that it was.
//! - There is one snapshot at a time; the next cut comes after every stripe has said that it is
//!   done, also where nobody wants the pieces any more.
//!
//! # Why no fork?
//! It stalls for as long as page tables take to copy, and every page that is written to while the
//! child lives is there twice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use structure::record::RecordRef;
use structure::stripes::{Held, RawLock, StripeSet};
use structure::table::{Shown, Table, Witness};

use crate::dump::Unwritable;
use crate::executor::Executor;
use crate::keyspace::{Graveyard, Shared, Stripe};
use crate::object::{Frozen, Object};

/// What a record costs beside its bytes, as slices are measured.
const RECORD_COST: usize = 64;
/// A table tells the others of what it holds when it is this much more.
const TELL_BYTES: usize = 4096;

/// Entries of one database.
#[derive(Debug, Default)]
pub struct Piece {
    /// The database at the moment of the cut.
    pub db: u32,
    /// Entries, each with its deadline, access, type, key and value.
    pub bytes: Vec<u8>,
    /// Where in `bytes` strings begin that are to be compressed.
    pub marks: Vec<usize>,
    /// Keys with big values, which are still to be written down.
    pub big: Vec<Big>,
}

impl Piece {
    /// Bytes that it takes, or may come to take.
    pub fn bytes_max(&self) -> usize {
        let big = self.big.iter().map(|big| big.value.memory_bytes());
        self.bytes.len() + big.sum::<usize>()
    }
}

/// A key with a big value.
#[derive(Debug)]
pub struct Big {
    /// The key.
    pub key: Box<[u8]>,
    /// Its deadline: Unix milliseconds.
    pub deadline: Option<u64>,
    /// The record's access bits.
    pub access: u32,
    /// Its value.
    pub value: Frozen,
}

/// How far a snapshot is. All threads write to it.
#[derive(Debug, Default)]
pub struct Progress {
    /// Keys that were saved so far.
    pub keys: AtomicU64,
    /// Bytes of what writers handed over that nobody has taken yet.
    pub held_bytes: AtomicU64,
    /// The most that it was.
    pub held_bytes_max: AtomicU64,
    /// A key whose value has no form in the file: its database, itself, and why.
    pub unwritable: Mutex<Option<(u32, Vec<u8>, Unwritable)>>,
    /// Set when nobody wants the pieces: what is left is only marked.
    pub cancelled: AtomicBool,
}

/// Turns records into entries of a file.
pub trait EntryWriter: Send {
    /// Appends a record of database `db`.
    ///
    /// # Errors
    /// Where the file has no form for its value; what was appended counts for nothing.
    fn write(
        &mut self,
        out: &mut Vec<u8>,
        db: u32,
        record: RecordRef<'_, Object>,
    ) -> Result<(), Unwritable>;

    /// Where in what was appended since the last call strings begin that are to be compressed.
    fn take_marks(&mut self) -> Vec<usize> {
        Vec::new()
    }
}

/// What a cut found.
#[derive(Clone, Debug, Default)]
pub struct Cut {
    /// The number of the last effect that the snapshot has.
    pub lsn: u64,
    /// Changes of the keyspace so far: what [`crate::stats::KeyspaceStats::changes`] add up to.
    pub changes: u64,
    /// Each database that has keys: its number, its keys, and how many of them have a deadline.
    pub dbs: Vec<(u32, u64, u64)>,
    /// The keys of all of them.
    pub keys: u64,
}

/// Fixes the moment: all stripes are held, and no snapshot is under way. Each table gets a writer
/// of its own from `writer`.
///
/// # Panics
/// Where a stripe is not held, or not done with the snapshot before.
pub fn cut(
    held: &mut Held<'_, Stripe>,
    shared: &Shared,
    progress: &Arc<Progress>,
    writer: &dyn Fn() -> Box<dyn EntryWriter>,
) -> Cut {
    let mut cut = Cut {
        lsn: shared.lsn.load(Ordering::Relaxed),
        ..Cut::default()
    };
    let mut dbs: Vec<(u32, u64, u64)> = Vec::new();
    for index in 0..held.count() {
        let stripe = held.get_mut(index);
        cut.changes += stripe.stats.changes;
        for number in 0..stripe.db_count() {
            let Some(db) = stripe.db_mut(number).filter(|db| !db.table.is_empty()) else {
                continue;
            };
            let (keys, timed) = (db.table.len() as u64, db.timed() as u64);
            cut.keys += keys;
            match dbs.iter_mut().find(|(other, ..)| *other == number) {
                Some(sums) => *sums = (number, sums.1 + keys, sums.2 + timed),
                None => dbs.push((number, keys, timed)),
            }
            db.table
                .cut(Box::new(Scribe::new(number, writer(), progress)));
        }
    }
    dbs.sort_unstable();
    cut.dbs = dbs;
    cut
}

/// Writes down the records of one table.
struct Scribe {
    db: u32,
    writer: Box<dyn EntryWriter>,
    out: Vec<u8>,
    big: Vec<Big>,
    /// Keys, and bytes of `out`, that `progress` knows of.
    told: (u64, usize),
    /// Keys of this table so far.
    keys: u64,
    progress: Arc<Progress>,
}

impl Scribe {
    fn new(db: u32, writer: Box<dyn EntryWriter>, progress: &Arc<Progress>) -> Self {
        Self {
            db,
            writer,
            out: Vec::new(),
            big: Vec::new(),
            told: (0, 0),
            keys: 0,
            progress: progress.clone(),
        }
    }

    fn write(&mut self, record: RecordRef<'_, Object>) {
        let begin = self.out.len();
        if let Err(why) = self.writer.write(&mut self.out, self.db, record) {
            self.out.truncate(begin);
            let mut first = self.progress.unwritable.lock();
            first.get_or_insert_with(|| (self.db, record.key().to_vec(), why));
        }
    }

    /// Counts what came since the last time.
    fn tell(&mut self) {
        let progress = &*self.progress;
        let keys = self.keys - self.told.0;
        progress.keys.fetch_add(keys, Ordering::Relaxed);
        let more = (self.out.len() - self.told.1) as u64;
        let held = progress.held_bytes.fetch_add(more, Ordering::Relaxed) + more;
        progress.held_bytes_max.fetch_max(held, Ordering::Relaxed);
        self.told = (self.keys, self.out.len());
    }

    /// What was written so far.
    fn take(&mut self) -> Option<Piece> {
        self.tell();
        let held = &self.progress.held_bytes;
        held.fetch_sub(self.out.len() as u64, Ordering::Relaxed);
        self.told.1 = 0;
        if self.out.is_empty() && self.big.is_empty() {
            return None;
        }
        Some(Piece {
            db: self.db,
            bytes: std::mem::take(&mut self.out),
            marks: self.writer.take_marks(),
            big: std::mem::take(&mut self.big),
        })
    }
}

impl Witness<Object> for Scribe {
    fn see(&mut self, mut record: Shown<'_, Object>) -> usize {
        self.keys += 1;
        if self.progress.cancelled.load(Ordering::Relaxed) {
            return RECORD_COST;
        }
        if let Some(object) = record.object_mut() {
            let len = object.len();
            if let Some(value) = object.freeze() {
                let record = record.view();
                self.big.push(Big {
                    key: record.key().into(),
                    deadline: record.deadline(),
                    access: record.access(),
                    value,
                });
                return RECORD_COST + len;
            }
        }
        let before = self.out.len();
        self.write(record.view());
        if self.out.len() - self.told.1 > TELL_BYTES {
            self.tell();
        }
        RECORD_COST + self.out.len() - before
    }

    fn as_any(&mut self) -> &mut dyn std::any::Any {
        self
    }
}

/// The scribe of a witness: every pass of the engine has one.
fn scribe(witness: &mut dyn Witness<Object>) -> &mut Scribe {
    let scribe = witness.as_any().downcast_mut();
    scribe.expect("passes of the keyspace are begun by `cut`")
}

/// Goes on with one table's pass; whether it is over.
fn save_table(table: &mut Table<Object>, budget: usize, pieces: &mut Vec<Piece>) -> bool {
    let finished = table.pass_on(budget);
    let is_over = finished.is_some();
    match finished {
        Some(mut witness) => pieces.extend(scribe(&mut *witness).take()),
        None => pieces.extend(table.witness().and_then(|witness| scribe(witness).take())),
    }
    is_over
}

impl Stripe {
    /// Goes on with the snapshot for about `budget` bytes, and puts what it made, and what writers
    /// handed over, into `pieces`. Tables that only the snapshot still needed go to `graveyard`.
    /// True where all of this stripe was saved.
    pub fn save_some(
        &mut self,
        budget: usize,
        pieces: &mut Vec<Piece>,
        graveyard: &mut Graveyard,
    ) -> bool {
        let mut is_done = true;
        let flushed = self.flushed_mut();
        for index in (0..flushed.len()).rev() {
            if save_table(&mut flushed[index], budget, pieces) {
                graveyard.bury_table(flushed.swap_remove(index));
            }
        }
        is_done &= flushed.is_empty();
        for number in 0..self.db_count() {
            if let Some(db) = self.db_mut(number)
                && db.table.is_passing()
            {
                is_done &= save_table(&mut db.table, budget, pieces);
            }
        }
        is_done
    }
}

impl<L: RawLock> Executor<'_, L> {
    /// Does something with all stripes locked: a [`cut`].
    pub fn with_all<R>(&mut self, act: impl FnOnce(&mut Held<'_, Stripe>) -> R) -> R {
        let keyspace = self.keyspace();
        self.let_go();
        let mut guard = keyspace.stripes.acquire(keyspace.stripes.all());
        act(&mut guard.held())
    }

    /// As [`Stripe::save_some`], with stripe `index` locked for it.
    pub fn save_some(&mut self, index: usize, budget: usize, pieces: &mut Vec<Piece>) -> bool {
        let keyspace = self.keyspace();
        self.let_go();
        let mut guard = keyspace.stripes.acquire(StripeSet::one(index));
        let mut held = guard.held();
        let stripe = held.get_mut(index);
        stripe.save_some(budget, pieces, self.graveyard())
    }
}

#[cfg(test)]
mod tests;
