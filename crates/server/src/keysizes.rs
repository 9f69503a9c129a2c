//! INFO keysizes: how long strings are, and how many elements collections have.
//!
//! Nothing is counted when keys change: that would cost every write. A small keyspace is counted
//! whole when somebody asks. A large one is counted in slices by the threads between looks at the
//! sockets, each its own stripes, for as long as somebody asks now and then; what is shown then is
//! what the last pass found.
//!
//! # Invariants
//! - A slice looks at about [`SLICE_KEYS`] keys of one stripe, which is locked for microseconds.
//! - Without a question for [`WANTED_MS`], nothing is counted.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use engine::Context;
use engine::keyspace::Stripe;
use engine::object::{Kind, Object};
use parking_lot::Mutex;
use structure::record::ValueRef;

/// Keys up to which all are counted at once, while whoever asks waits.
pub const AT_ONCE_MAX: usize = 20_000;
/// Keys that a slice looks at.
const SLICE_KEYS: usize = 512;
/// For how long a question keeps the counting going.
const WANTED_MS: u64 = 120_000;
/// Milliseconds from the end of a pass to the next.
const REST_MS: u64 = 10_000;
/// Bins: one for 0, and one for each power of two.
const BINS: usize = 65;

/// The kinds that are shown, in their order.
const KINDS: [(Kind, &str); 5] = [
    (Kind::String, "strings_sizes"),
    (Kind::List, "lists_items"),
    (Kind::Set, "sets_items"),
    (Kind::SortedSet, "zsets_items"),
    (Kind::Hash, "hashes_items"),
];

/// Counts by database, kind and power of two.
#[derive(Clone, Debug, Default)]
pub struct Histogram(BTreeMap<u32, Box<[[u64; BINS]; KINDS.len()]>>);

impl Histogram {
    fn note(&mut self, db: u32, value: ValueRef<'_, Object>) {
        let (kind, size) = match value {
            ValueRef::Bytes(bytes) => (Kind::String, bytes.len()),
            ValueRef::Int(number) => (Kind::String, itoa_len(number)),
            ValueRef::Object(object) => (Kind::of(value), object.len()),
        };
        let Some(kind) = KINDS.iter().position(|(known, _)| *known == kind) else {
            return;
        };
        let bin = size.checked_ilog2().map_or(0, |power| power as usize + 1);
        let counts = self
            .0
            .entry(db)
            .or_insert_with(|| Box::new([[0; BINS]; KINDS.len()]));
        counts[kind][bin] += 1;
    }

    fn add(&mut self, other: &Self) {
        for (db, counts) in &other.0 {
            let own = self
                .0
                .entry(*db)
                .or_insert_with(|| Box::new([[0; BINS]; KINDS.len()]));
            for (own, more) in own.iter_mut().flatten().zip(counts.iter().flatten()) {
                *own += more;
            }
        }
    }

    /// The lines of INFO.
    pub fn show(&self, text: &mut String) {
        for (db, counts) in &self.0 {
            for ((_, name), counts) in KINDS.iter().zip(counts.iter()) {
                let bins = counts.iter().enumerate().filter(|(_, count)| **count > 0);
                let shown: Vec<_> = bins
                    .map(|(bin, count)| format!("{}={count}", label(bin)))
                    .collect();
                if !shown.is_empty() {
                    let shown = shown.join(",");
                    let _ = write!(text, "db{db}_distrib_{name}:{shown}\r\n");
                }
            }
        }
    }
}

/// The least size in a bin: `0`, `1`, `2`, … `512`, `1K`, and so on.
fn label(bin: usize) -> String {
    let Some(power) = bin.checked_sub(1) else {
        return "0".to_owned();
    };
    let unit = ["", "K", "M", "G", "T", "P", "E"][power / 10];
    format!("{}{unit}", 1u64 << (power % 10))
}

/// Characters of a number as text.
fn itoa_len(number: i64) -> usize {
    let digits = number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1;
    digits + usize::from(number < 0)
}

/// Counts every key. Every stripe must be locked.
pub fn at_once(cx: &mut Context<'_>) -> Histogram {
    let mut all = Histogram::default();
    for index in 0..cx.keyspace.count() {
        let stripe = cx.keyspace.get(index);
        for db in 0..stripe.db_count() {
            let mut from = Some(0);
            while let Some(at) = from {
                from = slice(stripe, db, at, &mut all);
            }
        }
    }
    all
}

/// Counts some keys of a stripe's database; returns where to go on.
fn slice(stripe: &Stripe, db: u32, from: u64, into: &mut Histogram) -> Option<u64> {
    let table = &stripe.db(db)?.table;
    table.scan(from, SLICE_KEYS, |record| into.note(db, record.value()))
}

/// What the threads have found, and whether anybody wants to know.
#[derive(Default)]
pub struct Keysizes {
    wanted_until_ms: AtomicU64,
    found: Vec<Mutex<Histogram>>,
}

impl Keysizes {
    /// For so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            wanted_until_ms: AtomicU64::new(0),
            found: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    /// What the last passes of all threads found. Keeps the counting going.
    pub fn found(&self, now_ms: u64) -> Histogram {
        self.wanted_until_ms
            .store(now_ms + WANTED_MS, Ordering::Relaxed);
        let mut all = Histogram::default();
        self.found.iter().for_each(|found| all.add(&found.lock()));
        all
    }

    /// Whether somebody asked of late.
    pub fn is_wanted(&self, now_ms: u64) -> bool {
        self.wanted_until_ms.load(Ordering::Relaxed) > now_ms
    }
}

/// One thread's pass over its stripes.
#[derive(Default)]
pub struct Pass {
    so_far: Histogram,
    /// The stripe among the thread's own, the database, and the place in it.
    at: (usize, u32, u64),
    next_ms: u64,
}

impl Pass {
    /// Whether a pass is under way, or may begin.
    pub fn is_due(&self, now_ms: u64) -> bool {
        now_ms >= self.next_ms
    }

    /// The stripe, among the thread's own, whose turn it is.
    pub fn stripe(&self) -> usize {
        self.at.0
    }

    /// Counts a slice of that stripe. `own` is how many the thread has; after the last one, what
    /// was found goes to its place in `all`.
    pub fn step(
        &mut self,
        stripe: &Stripe,
        own: usize,
        thread: usize,
        all: &Keysizes,
        now_ms: u64,
    ) {
        let (index, db, from) = self.at;
        self.at = match slice(stripe, db, from, &mut self.so_far) {
            Some(from) => (index, db, from),
            None if db + 1 < stripe.db_count() => (index, db + 1, 0),
            None => (index + 1, 0, 0),
        };
        if self.at.0 >= own {
            self.at = (0, 0, 0);
            self.next_ms = now_ms + REST_MS;
            if let Some(found) = all.found.get(thread) {
                *found.lock() = std::mem::take(&mut self.so_far);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_fall_into_the_power_of_two_below_them() {
        let mut histogram = Histogram::default();
        for text in [
            "",
            "a",
            "ab",
            "abc",
            "abcd",
            &"x".repeat(1024),
            &"x".repeat(1 << 20),
        ] {
            histogram.note(3, ValueRef::Bytes(text.as_bytes()));
        }
        for number in [7, -7, 12345, i64::MIN] {
            histogram.note(3, ValueRef::Int(number));
        }
        let mut twice = histogram.clone();
        twice.add(&histogram);
        let mut text = String::new();
        histogram.show(&mut text);
        let expected = "db3_distrib_strings_sizes:0=1,1=2,2=3,4=2,16=1,1K=1,1M=1\r\n";
        assert_eq!(text, expected);
        text.clear();
        twice.show(&mut text);
        assert!(text.contains(":0=2,1=4,2=6,"), "{text}");
        assert_eq!(label(BINS - 1), "8E");
    }
}
