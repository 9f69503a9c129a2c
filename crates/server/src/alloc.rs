//! The allocator: mimalloc, and an exact count of what is allocated.
//!
//! Each thread counts in a cell of its own, with plain loads and stores; the sum over all cells is
//! `used_memory`. A cell may go below zero, where a thread frees what others allocated; the sum
//! does not.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use mimalloc::MiMalloc;

/// Threads with a cell of their own; later ones share the last cell.
const CELLS: usize = 512;

#[repr(align(128))]
struct Counter(AtomicIsize);

static COUNTERS: [Counter; CELLS] = [const { Counter(AtomicIsize::new(0)) }; CELLS];
static THREADS: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CELL: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// mimalloc with a count.
pub struct Counting;

#[inline]
fn count(bytes: isize) {
    let cell = CELL.with(|cell| {
        if cell.get() == usize::MAX {
            cell.set(THREADS.fetch_add(1, Ordering::Relaxed).min(CELLS - 1));
        }
        cell.get()
    });
    let counter = &COUNTERS[cell].0;
    if cell == CELLS - 1 {
        counter.fetch_add(bytes, Ordering::Relaxed);
    } else {
        counter.store(
            counter.load(Ordering::Relaxed).wrapping_add(bytes),
            Ordering::Relaxed,
        );
    }
}

/// Bytes allocated now, by all threads.
pub fn used_bytes() -> usize {
    let cells = THREADS.load(Ordering::Relaxed).min(CELLS);
    let sum: isize = COUNTERS[..cells]
        .iter()
        .map(|counter| counter.0.load(Ordering::Relaxed))
        .sum();
    let used = usize::try_from(sum).unwrap_or(0);
    PEAK.fetch_max(used, Ordering::Relaxed);
    used
}

/// The most that [`used_bytes`] ever said.
pub fn peak_bytes() -> usize {
    used_bytes();
    PEAK.load(Ordering::Relaxed)
}

/// Forgets the peak: CONFIG RESETSTAT.
pub fn reset_peak() {
    PEAK.store(0, Ordering::Relaxed);
}

/// How often MEMORY PURGE was asked for.
static PURGES: AtomicUsize = AtomicUsize::new(0);

/// Bytes that must have become free before they are given back unasked.
const SPARE_BYTES_MIN: usize = 16 * 1024 * 1024;

/// Ticks after which memory is given back once more: what was deleted is freed in slices, and most
/// of it may have been on its way the first time.
const AGAIN_TICKS: u8 = 6;

unsafe extern "C" {
    /// mimalloc: takes back what other threads freed of the calling thread's memory, and gives the
    /// operating system what is not used.
    fn mi_collect(force: bool);
}

/// MEMORY PURGE: every thread gives back what it can, the others within a tick.
pub fn purge() {
    PURGES.fetch_add(1, Ordering::Relaxed);
}

/// What one thread does about memory that became free.
///
/// mimalloc gives pages back as it allocates and frees, so a server that is idle after a FLUSHALL
/// would keep all of it; and a thread's pages are its own, so that each has to look.
#[derive(Debug, Default)]
pub struct Spare {
    /// The most that was in use since this thread last gave back.
    used_max: usize,
    purges: usize,
    /// Ticks until it gives back once more; 0 for never.
    again: u8,
}

impl Spare {
    /// Gives memory back, if a quarter of it became free since the last time, or if it was asked
    /// for. That takes time by the thread's pages, so a little is not worth it.
    pub fn look(&mut self) {
        let (used, purges) = (used_bytes(), PURGES.load(Ordering::Relaxed));
        self.used_max = self.used_max.max(used);
        let spare = self.used_max - used;
        let is_asked = self.purges != purges || spare >= SPARE_BYTES_MIN.max(self.used_max / 4);
        if is_asked {
            *self = Self {
                used_max: used,
                purges,
                again: AGAIN_TICKS,
            };
        } else {
            self.again = self.again.saturating_sub(1);
            if self.again != 1 {
                return;
            }
        }
        // SAFETY: it takes no pointer, and may be called by any thread at any time.
        unsafe { mi_collect(true) };
    }
}

#[allow(clippy::cast_possible_wrap)] // A layout's size is at most isize::MAX.
const fn size(layout: Layout) -> isize {
    layout.size() as isize
}

// SAFETY: everything is handed to mimalloc as it came; counting neither allocates nor unwinds
// (the thread-local is a plain cell without a destructor).
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(size(layout));
        // SAFETY: the caller's contract is mimalloc's.
        unsafe { MiMalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        count(-size(layout));
        // SAFETY: as above.
        unsafe { MiMalloc.dealloc(ptr, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(size(layout));
        // SAFETY: as above.
        unsafe { MiMalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        #[allow(clippy::cast_possible_wrap)] // By the caller's contract at most isize::MAX.
        count(new_size as isize - size(layout));
        // SAFETY: as above.
        unsafe { MiMalloc.realloc(ptr, layout, new_size) }
    }
}
