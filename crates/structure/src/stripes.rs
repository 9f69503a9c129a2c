//! A value cut into stripes, each behind a lock of its own, and sets of them held together.
//!
//! Whoever needs several stripes takes them in ascending order, so no two wait for each other in a
//! circle. Out of order a stripe may only be tried ([`Guard::try_add`]); whoever fails lets go and
//! starts again in order.
//!
//! # Invariants
//! - A [`Held`] gives out a stripe only if its lock is held by the [`Guard`] that it borrows from.
//! - Locks are taken in ascending order, or tried.
//! - With [`NoLock`] the stripes belong to one thread: `Stripes<T, NoLock>` is not `Sync`.
//!
//! # Why is the lock a type parameter and the access not?
//! The executor is built once for each kind of lock; command handlers see [`Held`], which does not
//! know the kind, and are built once.

use std::cell::{Cell, UnsafeCell};
use std::marker::PhantomData;
use std::ptr::NonNull;

use parking_lot::lock_api::GuardNoSend;

/// The most stripes there may be.
pub const STRIPES_MAX: usize = 256;

/// A lock without contents.
///
/// # Safety
/// Between a `lock` (or a `try_lock` that gave true) and the `unlock` that follows, no other
/// `lock` returns and no `try_lock` gives true, and what happened before the `unlock` is visible
/// to whoever locks next.
pub unsafe trait RawLock {
    /// An open lock.
    fn new() -> Self;
    /// Waits until the lock is ours.
    fn lock(&self);
    /// Takes the lock if it is open.
    fn try_lock(&self) -> bool;
    /// Opens the lock.
    ///
    /// # Safety
    /// The caller holds it.
    unsafe fn unlock(&self);
}

/// The lock between threads: it spins briefly, then parks, and is handed over fairly twice a
/// millisecond.
pub struct Lock(parking_lot::RawMutex);

// SAFETY: that is what a mutex is.
unsafe impl RawLock for Lock {
    fn new() -> Self {
        use parking_lot::lock_api::RawMutex as _;
        Self(parking_lot::RawMutex::INIT)
    }
    #[inline]
    fn lock(&self) {
        // The state of an acquisition is empty; `unlock` makes it anew.
        let _state = parking_lot::lock_api::RawMutex::lock(&self.0);
    }
    #[inline]
    fn try_lock(&self) -> bool {
        parking_lot::lock_api::RawMutex::try_lock(&self.0).is_some()
    }
    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: by this method's contract.
        unsafe { parking_lot::lock_api::RawMutex::unlock(&self.0, GuardNoSend::new()) }
    }
}

/// No lock: for stripes that one thread owns. It only notices being taken twice.
pub struct NoLock(Cell<bool>);

// SAFETY: `Cell` keeps the stripes on one thread; there, the flag excludes a second holder.
unsafe impl RawLock for NoLock {
    fn new() -> Self {
        Self(Cell::new(false))
    }
    #[inline]
    fn lock(&self) {
        assert!(
            !self.0.replace(true),
            "a stripe is taken twice by its only thread"
        );
    }
    #[inline]
    fn try_lock(&self) -> bool {
        !self.0.replace(true)
    }
    #[inline]
    unsafe fn unlock(&self) {
        self.0.set(false);
    }
}

/// A bit for each stripe.
type Bits = [u64; STRIPES_MAX / 64];

/// Which stripes: a set of indices below [`STRIPES_MAX`]. The usual set has one element, and is as
/// cheap as a number.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum StripeSet {
    /// No stripe.
    #[default]
    Empty,
    /// One stripe.
    One(u16),
    /// Several: at least two.
    Many(Box<Bits>),
}

impl StripeSet {
    /// No stripe.
    pub const EMPTY: Self = Self::Empty;

    /// The first `count` stripes.
    pub fn first(count: usize) -> Self {
        let mut set = Self::EMPTY;
        (0..count).for_each(|index| set.add(index));
        set
    }

    /// One stripe.
    ///
    /// # Panics
    /// When there can be no such stripe.
    #[inline]
    pub fn one(index: usize) -> Self {
        assert!(index < STRIPES_MAX, "stripe {index}");
        #[allow(clippy::cast_possible_truncation)] // Below STRIPES_MAX.
        Self::One(index as u16)
    }

    /// Adds a stripe.
    pub fn add(&mut self, index: usize) {
        match self {
            Self::Empty => *self = Self::one(index),
            Self::One(other) if usize::from(*other) == index => {}
            Self::One(other) => {
                let mut bits = Box::new(Bits::default());
                for index in [usize::from(*other), index] {
                    bits[index / 64] |= 1 << (index % 64);
                }
                *self = Self::Many(bits);
            }
            Self::Many(bits) => bits[index / 64] |= 1 << (index % 64),
        }
    }

    /// Adds all stripes of `other`.
    pub fn add_all(&mut self, other: &Self) {
        other.iter().for_each(|index| self.add(index));
    }

    /// Whether the stripe is in the set.
    #[inline]
    pub fn has(&self, index: usize) -> bool {
        match self {
            Self::Empty => false,
            Self::One(other) => usize::from(*other) == index,
            Self::Many(bits) => bits[index / 64] >> (index % 64) & 1 != 0,
        }
    }

    /// Whether the stripe is all there is in the set.
    #[inline]
    pub fn is_only(&self, index: usize) -> bool {
        matches!(self, Self::One(other) if usize::from(*other) == index)
    }

    /// Whether every stripe of `other` is in the set.
    pub fn has_all(&self, other: &Self) -> bool {
        other.iter().all(|index| self.has(index))
    }

    /// Whether no stripe is in the set.
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// The stripes, in ascending order.
    #[inline]
    pub fn iter(&self) -> Indices<'_> {
        match self {
            Self::Empty => Indices {
                bits: &[],
                word: 0,
                rest: 0,
                one: None,
            },
            Self::One(index) => Indices {
                bits: &[],
                word: 0,
                rest: 0,
                one: Some(*index),
            },
            Self::Many(bits) => Indices {
                bits: &**bits,
                word: 0,
                rest: bits[0],
                one: None,
            },
        }
    }
}

/// The stripes of a set, in ascending order.
pub struct Indices<'s> {
    bits: &'s [u64],
    word: usize,
    rest: u64,
    one: Option<u16>,
}

impl Iterator for Indices<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if let Some(one) = self.one.take() {
            return Some(usize::from(one));
        }
        while self.rest == 0 {
            self.word += 1;
            self.rest = *self.bits.get(self.word)?;
        }
        let bit = self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(self.word * 64 + bit)
    }
}

/// A stripe and its lock, on cache lines of their own.
#[repr(align(128))]
struct Stripe<T, L> {
    lock: L,
    value: UnsafeCell<T>,
}

/// All stripes.
pub struct Stripes<T, L> {
    stripes: Box<[Stripe<T, L>]>,
    /// Where each stripe's value lies: what [`Held`] sees, whatever the lock.
    values: Box<[NonNull<T>]>,
}

// SAFETY: the stripes are owned; the pointers point to them.
unsafe impl<T: Send, L: Send> Send for Stripes<T, L> {}
// SAFETY: a value is reached only by whoever holds its lock, one thread at a time, so `T: Send` is
// enough; the locks themselves are shared.
unsafe impl<T: Send, L: Sync> Sync for Stripes<T, L> {}

impl<T, L: RawLock> Stripes<T, L> {
    /// `count` stripes, each made by `make` from its index. `count` is a power of two.
    pub fn new(count: usize, mut make: impl FnMut(usize) -> T) -> Self {
        assert!(
            count.is_power_of_two() && count <= STRIPES_MAX,
            "{count} stripes"
        );
        let stripes: Box<[_]> = (0..count)
            .map(|index| Stripe {
                lock: L::new(),
                value: UnsafeCell::new(make(index)),
            })
            .collect();
        let values = stripes
            .iter()
            .map(|stripe| NonNull::new(stripe.value.get()).expect("an address in a box"))
            .collect();
        Self { stripes, values }
    }

    /// How many stripes there are.
    #[inline]
    pub fn count(&self) -> usize {
        self.stripes.len()
    }

    /// The set of all stripes.
    pub fn all(&self) -> StripeSet {
        StripeSet::first(self.count())
    }

    /// Takes the stripes of `set`, in ascending order.
    #[inline]
    pub fn acquire(&self, set: StripeSet) -> Guard<'_, T, L> {
        for index in set.iter() {
            self.stripes[index].lock.lock();
        }
        Guard { stripes: self, set }
    }

    /// Takes stripe `index`.
    ///
    /// # Panics
    /// When there is no such stripe.
    #[inline]
    pub fn acquire_one(&self, index: usize) -> Guard<'_, T, L> {
        self.stripes[index].lock.lock();
        Guard {
            stripes: self,
            set: StripeSet::one(index),
        }
    }

    /// Looks at stripe `index` if nobody holds it.
    #[inline]
    pub fn peek<R>(&self, index: usize, look: impl FnOnce(&T) -> R) -> Option<R> {
        let stripe = &self.stripes[index];
        if !stripe.lock.try_lock() {
            return None;
        }
        let open = Open(&stripe.lock);
        // SAFETY: the lock is held until `open` is dropped, after `look`.
        let result = look(unsafe { &*stripe.value.get() });
        drop(open);
        Some(result)
    }
}

/// Opens a lock that was just taken, whatever happens before.
struct Open<'l, L: RawLock>(&'l L);

impl<L: RawLock> Drop for Open<'_, L> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: made only by whoever took the lock.
        unsafe { self.0.unlock() }
    }
}

/// Locked stripes; dropping it unlocks them.
pub struct Guard<'s, T, L: RawLock> {
    stripes: &'s Stripes<T, L>,
    set: StripeSet,
}

impl<T, L: RawLock> Guard<'_, T, L> {
    /// Which stripes are locked.
    #[inline]
    pub fn set(&self) -> &StripeSet {
        &self.set
    }

    /// Access to the locked stripes.
    #[inline]
    pub fn held(&mut self) -> Held<'_, T> {
        Held {
            values: &self.stripes.values,
            set: &self.set,
            exclusive: PhantomData,
        }
    }

    /// Takes the stripes of `more` as well if none of them is taken; all or none.
    pub fn try_add(&mut self, more: &StripeSet) -> bool {
        let mut taken = StripeSet::EMPTY;
        for index in more.iter().filter(|&index| !self.set.has(index)) {
            if !self.stripes.stripes[index].lock.try_lock() {
                drop(Guard {
                    stripes: self.stripes,
                    set: taken,
                });
                return false;
            }
            taken.add(index);
        }
        self.set.add_all(&taken);
        true
    }
}

impl<T, L: RawLock> Drop for Guard<'_, T, L> {
    #[inline]
    fn drop(&mut self) {
        if let StripeSet::One(index) = self.set {
            // SAFETY: the guard holds exactly the locks of its set.
            return unsafe { self.stripes.stripes[usize::from(index)].lock.unlock() };
        }
        for index in self.set.iter() {
            // SAFETY: as above.
            unsafe { self.stripes.stripes[index].lock.unlock() }
        }
    }
}

/// Access to locked stripes, whatever the kind of lock.
pub struct Held<'g, T> {
    values: &'g [NonNull<T>],
    set: &'g StripeSet,
    exclusive: PhantomData<&'g mut T>,
}

impl<T> Held<'_, T> {
    /// Which stripes are held.
    #[inline]
    pub fn set(&self) -> &StripeSet {
        self.set
    }

    /// How many stripes there are in all.
    #[inline]
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Whether stripe `index` may be reached.
    #[inline]
    pub fn has(&self, index: usize) -> bool {
        self.set.has(index)
    }

    #[inline]
    fn value(&self, index: usize) -> NonNull<T> {
        assert!(
            self.set.has(index),
            "stripe {index} is not locked: the keys declared too few"
        );
        self.values[index]
    }

    /// Stripe `index`, shared.
    ///
    /// # Panics
    /// When it is not held.
    #[inline]
    pub fn get(&self, index: usize) -> &T {
        // SAFETY: the lock is held for the lifetime of this `Held`, and `&self` excludes `get_mut`.
        unsafe { self.value(index).as_ref() }
    }

    /// Stripe `index`.
    ///
    /// # Panics
    /// When it is not held.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> &mut T {
        // SAFETY: as for `get`; `&mut self` excludes every other access.
        unsafe { self.value(index).as_mut() }
    }

    /// The same access for a shorter time.
    #[inline]
    pub fn reborrow(&mut self) -> Held<'_, T> {
        Held {
            values: self.values,
            set: self.set,
            exclusive: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_list_their_stripes_in_order() {
        let mut set = StripeSet::EMPTY;
        for index in [255, 0, 63, 64, 128] {
            set.add(index);
        }
        assert_eq!(set.iter().collect::<Vec<_>>(), [0, 63, 64, 128, 255]);
        assert!(set.has_all(&StripeSet::one(64)) && !set.has_all(&StripeSet::one(65)));
        assert_eq!(StripeSet::first(256).iter().count(), 256);
    }

    #[test]
    fn threads_add_up_under_locks() {
        let stripes: Stripes<u64, Lock> = Stripes::new(8, |_| 0);
        std::thread::scope(|scope| {
            for thread in 0..4usize {
                let stripes = &stripes;
                scope.spawn(move || {
                    for round in 0..5000 {
                        let mut set = StripeSet::one((thread + round) % 8);
                        set.add((thread * 3 + round * 5) % 8);
                        let mut guard = stripes.acquire(set);
                        guard.try_add(&StripeSet::one(round % 8));
                        let set = guard.set().clone();
                        let mut held = guard.held();
                        set.iter().for_each(|index| *held.get_mut(index) += 1);
                        let first = set.iter().next().unwrap();
                        *held.get_mut(first) += 1;
                    }
                });
            }
        });
        let mut guard = stripes.acquire(stripes.all());
        let held = guard.held();
        assert!((0..8).map(|index| *held.get(index)).sum::<u64>() >= 4 * 5000 * 2);
    }

    #[test]
    #[should_panic(expected = "not locked")]
    fn a_stripe_that_is_not_held_is_out_of_reach() {
        let stripes: Stripes<u64, NoLock> = Stripes::new(2, |_| 0);
        stripes.acquire(StripeSet::one(0)).held().get(1);
    }

    #[test]
    #[should_panic(expected = "taken twice")]
    fn the_only_thread_cannot_take_a_stripe_twice() {
        let stripes: Stripes<u64, NoLock> = Stripes::new(2, |_| 0);
        let _first = stripes.acquire(StripeSet::one(0));
        let _second = stripes.acquire(StripeSet::one(0));
    }
}
