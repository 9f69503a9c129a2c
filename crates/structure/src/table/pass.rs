//! A pass: all records of a table as they were at one moment, shown to a witness while the table
//! goes on changing.
//!
//! The moment is the *cut*: it flips the mark that the table's records should have, so that every
//! record there is has the wrong one. From then on a record is shown before it first changes or
//! goes, and gets the right mark; what is added has the right mark from the start. Slices of the
//! pass go through the table in hash order and show the rest.
//!
//! # Invariants
//! - While no pass runs, every record has the table's mark.
//! - While one runs, a record has the other mark if and only if it was there at the cut, has not
//!   changed since and was not shown.
//! - All records whose place in hash order is before `position` have the table's mark.
//!
//! # Why a mark on each record and not an epoch on each bucket?
//! A record moves when segments split and merge, and into the stash and back. Then a bucket holds
//! both what was shown and what was not, and must be shown whole before: hundreds of records in one
//! go. A bit that travels with the record costs nothing, as the header is at hand when a record
//! changes, and a writer shows the one record that it changes instead of all its neighbours.

use super::*;
use crate::record::MARK;

/// Work that looking at eight buckets counts as.
const BUCKETS_COST: usize = 64;

/// Who is shown the records of a pass.
pub trait Witness<T>: Send {
    /// Sees a record, as it was at the cut. Each is shown once. Returns how much work it was, in
    /// bytes or the like: slices of the pass are measured by it.
    fn see(&mut self, record: Shown<'_, T>) -> usize;

    /// The witness itself, for who knows its type.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}

/// A record that is shown.
pub struct Shown<'r, T>(&'r mut Record<T>);

impl<T> Shown<'_, T> {
    /// The record.
    #[inline]
    pub fn view(&self) -> RecordRef<'_, T> {
        self.0.view()
    }

    /// The object, where the value is one: to be frozen, not to be changed.
    pub fn object_mut(&mut self) -> Option<&mut T> {
        self.0.object_mut()
    }
}

/// A pass that is under way.
pub(super) struct Pass<T> {
    /// Where in hash order it goes on; `None` at the end.
    position: Option<u64>,
    witness: Box<dyn Witness<T>>,
    /// Addresses of records at hand; kept for its memory alone.
    near: Vec<NonNull<u8>>,
}

// SAFETY: the addresses are of no use between calls; the witness may be sent.
unsafe impl<T> Send for Pass<T> {}

impl<T> Table<T> {
    /// Begins a pass: `witness` will see all that is in the table now.
    ///
    /// # Panics
    /// Where a pass is under way.
    pub fn cut(&mut self, witness: Box<dyn Witness<T>>) {
        assert!(self.pass.is_none(), "a pass is under way");
        self.mark ^= MARK;
        self.pass = Some(Box::new(Pass {
            position: Some(0),
            witness,
            near: Vec::new(),
        }));
    }

    /// Whether a pass is under way.
    #[inline]
    pub fn is_passing(&self) -> bool {
        self.pass.is_some()
    }

    /// The witness of the pass that is under way.
    pub fn witness(&mut self) -> Option<&mut dyn Witness<T>> {
        Some(&mut *self.pass.as_mut()?.witness)
    }

    /// Goes on with the pass for about `budget` of what the witness counts, and at least by one
    /// bucket. The witness, once it has seen everything; `None` before, and where no pass runs.
    pub fn pass_on(&mut self, mut budget: usize) -> Option<Box<dyn Witness<T>>> {
        let mut pass = self.pass.take()?;
        while let Some(position) = pass.position {
            pass.position = self.pass_bucket(position, &mut pass, &mut budget);
            if budget == 0 {
                break;
            }
        }
        if pass.position.is_none() {
            return Some(pass.witness);
        }
        self.pass = Some(pass);
        None
    }

    /// Shows what is left in the bucket at `position`; returns the position behind it.
    fn pass_bucket(&self, position: u64, pass: &mut Pass<T>, budget: &mut usize) -> Option<u64> {
        let entry = self.entry(position << 16 >> self.skip)?;
        let segment = &self.segments[entry.segment as usize];
        let home = self.home(position << 16 >> self.skip, entry.depth);
        // Two ahead: the misses of one bucket's records overlap with the work on another.
        segment.prefetch_records(home + 2);
        let mut near = std::mem::take(&mut pass.near);
        segment.near(home, &mut near);
        for address in near.drain(..) {
            // SAFETY: the address is that of a live record of this table; showing it changes
            // nothing but its mark.
            let cost = unsafe { self.show_to(address, &mut *pass.witness) };
            *budget = budget.saturating_sub(cost);
        }
        pass.near = near;
        if home % 8 == 7 {
            *budget = budget.saturating_sub(BUCKETS_COST);
        }
        self.after(position, entry.depth, home)
    }

    /// Shows a record that is about to change and was not shown.
    #[cold]
    pub(super) fn show(&mut self, address: NonNull<u8>) {
        let mut pass = self.pass.take().expect("a pass runs while marks differ");
        // SAFETY: callers pass the address of a live record of this table, which is borrowed
        // mutably.
        unsafe { self.show_to(address, &mut *pass.witness) };
        self.pass = Some(pass);
    }

    /// Shows a record unless it has the table's mark, and marks it.
    ///
    /// # Safety
    /// `address` is that of a live record of this table, and nobody else looks at it.
    unsafe fn show_to(&self, address: NonNull<u8>, witness: &mut dyn Witness<T>) -> usize {
        // SAFETY: by the contract. It is not dropped here, and stays where it is: neither a witness
        // nor a mark moves it.
        let mut record = std::mem::ManuallyDrop::new(unsafe { Record::<T>::from_raw(address) });
        if record.view().mark() == self.mark {
            return 0;
        }
        let cost = witness.see(Shown(&mut record));
        record.set_mark(self.mark);
        cost
    }

    /// Panics where a record has the other mark though no pass would show it.
    pub(super) fn check_marks(&self) {
        let position = match &self.pass {
            None => u64::MAX,
            Some(pass) => pass.position.unwrap_or(u64::MAX),
        };
        for record in self.iter() {
            let place = (hash(&self.seed, record.key()) << self.skip) >> 16;
            assert!(record.mark() == self.mark || place >= position);
        }
    }
}

#[cfg(test)]
mod tests;
