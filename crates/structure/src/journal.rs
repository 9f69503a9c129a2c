//! Parts of a big value that remember what they were while they go on changing.
//!
//! Freezing a value gives whoever reads it a [`Past`] of each part. The part is still the owner's,
//! who changes it where it stands, but first writes into the part's journal what the change takes
//! away: some bytes, not the part. The reader takes each part once: a copy, from which the journal
//! leads back to what was there.
//!
//! ```text
//! never frozen:  | value | None |
//! frozen:        | value | Some | --+
//!                                   +--> lock, the value's own bytes once more, journal
//!                Past --------------+
//! ```
//! Who changes many small things all over a value so pays, in time and in memory, for what changed
//! and not for the parts that it stands in: with [`Share`](crate::share::Share) a thousand fields
//! set at random in a big hash copy a thousand segments.
//!
//! # Invariants
//! - While a `Past` is unread, the value changes only under the lock, and `copy` has the value's
//!   own bytes whenever the lock is free.
//! - The owner never waits for the lock: where the reader has it, or where the journal would get
//!   longer than a copy is worth, the owner leaves the value to the reader and goes on with a copy.
//! - The value is dropped by the owner, or, once it was left, with the last who knows the journal.

use std::mem::MaybeUninit;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

/// What can remember.
pub(crate) trait Part: Clone + Send + Sync {
    /// What leads from a later value back to the one at the moment.
    type Journal: Send;

    /// An empty journal, at the moment itself.
    fn begin(&self) -> Self::Journal;
}

/// A part and, where it was frozen, its journal. See the module's documentation.
pub(crate) struct Journaled<T: Part> {
    /// Initialised until it is dropped or left.
    value: MaybeUninit<T>,
    past: Option<Arc<Known<T>>>,
}

/// What the owner and the reader both know.
struct Known<T: Part> {
    state: Mutex<State<T>>,
    /// Set by the owner as the last thing: the value is `state.copy`'s alone.
    is_left: AtomicBool,
}

struct State<T: Part> {
    copy: MaybeUninit<T>,
    /// `None` once it was read, and while a change is being made.
    journal: Option<T::Journal>,
}

/// A part as it was. Dropping it unread is as good as reading it.
pub(crate) struct Past<T: Part>(Arc<Known<T>>);

/// The bytes of a value once more, without any claim to it.
fn copy<T>(value: &MaybeUninit<T>) -> MaybeUninit<T> {
    // SAFETY: a `MaybeUninit` may hold any bytes; nobody takes them for a value but under the
    // module's invariants.
    unsafe { std::ptr::read(value) }
}

impl<T: Part> Journaled<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            value: MaybeUninit::new(value),
            past: None,
        }
    }

    /// The value as it is now, for somebody else.
    pub(crate) fn freeze(&mut self) -> Past<T> {
        if self.is_awaited() {
            self.leave();
        }
        let known = Arc::new(Known {
            state: Mutex::new(State {
                copy: copy(&self.value),
                journal: Some(self.begin()),
            }),
            is_left: AtomicBool::new(false),
        });
        self.past = Some(known.clone());
        Past(known)
    }

    /// Changes the value. Where somebody still wants to know what it was, `log` writes down what
    /// the change will take away, or says false where that is too much: then it is copied.
    #[inline]
    pub(crate) fn change<R>(
        &mut self,
        log: impl FnOnce(&T, &mut T::Journal) -> bool,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        if self.past.is_some() {
            return self.change_frozen(log, change);
        }
        // SAFETY: the value is initialised, and without a journal nobody else reads it.
        change(unsafe { self.value.assume_init_mut() })
    }

    #[cold]
    #[inline(never)]
    fn change_frozen<R>(
        &mut self,
        log: impl FnOnce(&T, &mut T::Journal) -> bool,
        change: impl FnOnce(&mut T) -> R,
    ) -> R {
        if self.is_awaited()
            && let Some(known) = &self.past
        {
            let mut state = known.state.try_lock();
            let open = state.as_deref_mut().filter(|state| state.journal.is_some());
            if let Some(state) = open
                && let Some(mut journal) = state.journal.take()
            {
                // SAFETY: the value is initialised, and the reader looks at it under the lock only.
                let value = unsafe { self.value.assume_init_mut() };
                let is_logged = log(value, &mut journal);
                if is_logged {
                    // Until the journal is back, a panic leaves it as one that was read.
                    let result = change(value);
                    state.copy = copy(&self.value);
                    state.journal = Some(journal);
                    return result;
                }
                state.journal = Some(journal);
            }
            drop(state);
            self.leave();
        }
        // SAFETY: the value is initialised, and nobody waits for it, or `leave` made it a new one.
        change(unsafe { self.value.assume_init_mut() })
    }

    /// The value itself.
    pub(crate) fn into_inner(mut self) -> T {
        if self.is_awaited() {
            self.leave();
        }
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the value is initialised, and nobody else has a claim to it; `this` is not
        // dropped, so it moves out once. There is no journal left to drop.
        unsafe { this.value.assume_init_read() }
    }

    /// Whether somebody has yet to read the past, or is reading it. Forgets one that was read.
    fn is_awaited(&mut self) -> bool {
        let Some(known) = &mut self.past else {
            return false;
        };
        // Where the lock is taken, it is the reader who has it.
        let is_read = Arc::get_mut(known).is_some()
            || known
                .state
                .try_lock()
                .is_some_and(|state| state.journal.is_none());
        if is_read {
            self.past = None;
        }
        !is_read
    }

    /// Leaves the value to the reader, and goes on with a copy.
    fn leave(&mut self) {
        let value = (**self).clone();
        self.hand_over();
        self.value = MaybeUninit::new(value);
    }

    /// Gives up the claim to the value.
    fn hand_over(&mut self) {
        if let Some(known) = self.past.take() {
            // Ordered by the count of `known`, which goes down here.
            known.is_left.store(true, Ordering::Relaxed);
        }
    }
}

impl<T: Part> Past<T> {
    /// The value, and what leads from it back to what it was.
    pub(crate) fn read(self) -> (T, T::Journal) {
        let known = match Arc::try_unwrap(self.0) {
            Ok(mut known) => {
                let state = known.state.get_mut();
                let journal = state.journal.take().expect("a past is read once");
                assert!(
                    std::mem::take(known.is_left.get_mut()),
                    "a part is gone without its value"
                );
                // SAFETY: its owner has left the value, `is_left` is no more, and there is nobody
                // but us: it moves out once.
                return (
                    unsafe { known.state.get_mut().copy.assume_init_read() },
                    journal,
                );
            }
            Err(known) => known,
        };
        let mut state = known.state.lock();
        let journal = state.journal.take().expect("a past is read once");
        // SAFETY: while the lock is held, and with a journal, these are the bytes of a value that
        // the owner does not change or drop: it would have to take the journal for that, or leave.
        let value = unsafe { state.copy.assume_init_ref() }.clone();
        (value, journal)
    }
}

impl<T: Part> Deref for Journaled<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the value is initialised until `drop`; while it is borrowed here it does not
        // change, and the reader only reads it.
        unsafe { self.value.assume_init_ref() }
    }
}

impl<T: Part> Drop for Journaled<T> {
    #[inline]
    fn drop(&mut self) {
        if self.past.is_some() && self.is_awaited() {
            self.hand_over();
            return;
        }
        // SAFETY: initialised, and nobody else has a claim to it; it is not used after this.
        unsafe { self.value.assume_init_drop() }
    }
}

impl<T: Part> Drop for Known<T> {
    fn drop(&mut self) {
        if *self.is_left.get_mut() {
            // SAFETY: the owner has left the value, its bytes here are the last, and nobody else
            // knows of them.
            unsafe { self.state.get_mut().copy.assume_init_drop() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list that only grows: its journal is its length.
    impl Part for Vec<u32> {
        type Journal = (usize, usize);

        fn begin(&self) -> (usize, usize) {
            (self.len(), 0)
        }
    }

    fn push(part: &mut Journaled<Vec<u32>>, item: u32, max: usize) {
        let log = |_: &Vec<u32>, journal: &mut (usize, usize)| {
            journal.1 += 1;
            journal.1 <= max
        };
        part.change(log, |items| items.push(item));
    }

    fn past(past: Past<Vec<u32>>) -> Vec<u32> {
        let (mut items, (len, _)) = past.read();
        items.truncate(len);
        items
    }

    #[test]
    fn a_past_is_what_was_there() {
        let mut part = Journaled::new(vec![1]);
        let first = part.freeze();
        (2..50).for_each(|item| push(&mut part, item, 100));
        assert_eq!(past(first), [1]);
        push(&mut part, 50, 100);
        assert!(part.past.is_none(), "what was read is forgotten");
        let second = part.freeze();
        let third = part.freeze();
        push(&mut part, 51, 100);
        assert_eq!((past(second).len(), past(third).len()), (50, 50));
        assert_eq!(part.len(), 51);
    }

    #[test]
    fn a_change_that_cannot_be_logged_copies() {
        let mut part = Journaled::new(vec![1, 2]);
        let before = part.as_ptr();
        let first = part.freeze();
        push(&mut part, 3, 0);
        assert_ne!(part.as_ptr(), before);
        let (value, _) = first.read();
        assert_eq!((value.as_ptr(), &value[..]), (before, &[1, 2][..]));
        assert_eq!(*part, [1, 2, 3]);
    }

    #[test]
    fn a_part_that_is_gone_is_still_read() {
        for is_moved in [false, true] {
            let mut part = Journaled::new(vec![1, 2]);
            let (first, second) = (part.freeze(), part.freeze());
            push(&mut part, 3, 10);
            if is_moved {
                assert_eq!(part.into_inner(), [1, 2, 3]);
            } else {
                drop(part);
            }
            assert_eq!(past(first), [1, 2]);
            drop(second);
        }
    }

    #[test]
    fn one_thread_reads_what_another_changes() {
        for round in 0..300u32 {
            let mut parts: Vec<_> = (0..20).map(|n| Journaled::new(vec![n; 9])).collect();
            let pasts: Vec<_> = parts.iter_mut().map(Journaled::freeze).collect();
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    for (n, one) in (0..).zip(pasts) {
                        assert_eq!(past(one), vec![n; 9]);
                    }
                });
                for step in 0..200u32 {
                    let at = (step * 7 + round) as usize % parts.len();
                    push(&mut parts[at], step, 4);
                    if round % 3 == 0 && step % 50 == 49 {
                        parts.swap_remove(at);
                    }
                }
            });
        }
    }
}
