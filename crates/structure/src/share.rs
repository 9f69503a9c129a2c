//! Parts of a big value that a frozen copy has in common with it until they change.
//!
//! Freezing a value of a million elements shares its parts of some hundred elements each instead of
//! copying them. Who then changes a part copies it first: so much a write costs, and no more.
//!
//! ```text
//! never shared:  | value | None |
//! shared:        | value | Some | --+        the same bytes in both, and both only read them
//!                | value | Some | --+--> one count for all who have it
//! ```
//!
//! # Invariants
//! - Who has a count that others have too does not change its value.
//! - The value is dropped by the last one who has it.
//!
//! # Why not `Arc<T>`?
//! The value would be one pointer further away, and a lookup in a big hash one cache miss slower,
//! always, for the sake of the seconds in which a snapshot is made.

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;

/// A value that may be shared. See the module's documentation.
pub(crate) struct Share<T> {
    /// Initialised until it is dropped. Not a plain `T`: others may have the same one.
    value: MaybeUninit<T>,
    holders: Option<Arc<()>>,
}

impl<T> Share<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: MaybeUninit::new(value),
            holders: None,
        }
    }

    /// The same value for somebody else. `T` has no interior mutability: what is shared is read
    /// only.
    pub(crate) fn share(&mut self) -> Self
    where
        T: Send + Sync,
    {
        let holders = self.holders.get_or_insert_default().clone();
        // SAFETY: the bytes of the value are copied; from here on both holders have a count of two
        // or more, so neither changes the value, and only the last one drops it.
        let value = unsafe { std::ptr::read(&raw const self.value) };
        Self {
            value,
            holders: Some(holders),
        }
    }

    /// The value, to be changed: a copy where somebody else has it too.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> &mut T
    where
        T: Clone,
    {
        if self.holders.is_some() {
            self.part();
        }
        // SAFETY: the value is initialised, and `part` has seen to it that nobody else has it.
        unsafe { self.value.assume_init_mut() }
    }

    #[cold]
    fn part(&mut self)
    where
        T: Clone,
    {
        let is_alone = self
            .holders
            .as_mut()
            .is_none_or(|holders| Arc::get_mut(holders).is_some());
        if is_alone {
            // What the others did with the value happened before: `get_mut` has synchronised.
            self.holders = None;
            return;
        }
        let copy = Self::new((**self).clone());
        *self = copy;
    }
}

impl<T> Deref for Share<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is initialised until `drop`; while it is borrowed here, no holder
        // changes it.
        unsafe { self.value.assume_init_ref() }
    }
}

impl<T> Drop for Share<T> {
    #[inline]
    fn drop(&mut self) {
        let is_last = match self.holders.take() {
            None => true,
            Some(holders) => Arc::into_inner(holders).is_some(),
        };
        if is_last {
            // SAFETY: initialised, and nobody else has it; it is not used after this.
            unsafe { self.value.assume_init_drop() }
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Share<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        (**self).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_seen_by_who_made_it_alone() {
        let mut one = Share::new(vec![1, 2]);
        let mut other = one.share();
        let third = other.share();
        one.get_mut().push(3);
        other.get_mut()[0] = 9;
        assert_eq!(
            (&*one, &*other, &*third),
            (&vec![1, 2, 3], &vec![9, 2], &vec![1, 2])
        );
        let (at, mut third) = (third.as_ptr(), third);
        // Nobody else has it any more: it is not copied.
        assert_eq!(third.get_mut().as_ptr(), at);
    }

    #[test]
    fn the_last_one_drops_the_value() {
        let counted = Arc::new(());
        let mut one = Share::new(vec![counted.clone()]);
        let other = one.share();
        drop(one);
        assert_eq!(Arc::strong_count(&counted), 2);
        let mut last = other;
        assert_eq!(last.get_mut().len(), 1);
        drop(last);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn threads_let_go_in_any_order() {
        for round in 0..200 {
            let mut one = Share::new(vec![round; 100]);
            let others: Vec<_> = (0..3).map(|_| one.share()).collect();
            std::thread::scope(|scope| {
                for mut other in others {
                    scope.spawn(move || {
                        assert_eq!(other.iter().sum::<i32>(), 100 * round);
                        if round % 2 == 0 {
                            other.get_mut().push(1);
                        }
                    });
                }
                one.get_mut().clear();
                assert!(one.is_empty());
            });
        }
    }
}
