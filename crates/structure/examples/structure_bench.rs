//! Bytes an element and nanoseconds an operation of the large collections.
//!
//! `cargo run --release -p structure --example structure_bench [ELEMENTS]`
//!
//! Bytes are counted three times: as the structure says, as the allocator was asked, and as the
//! process grew. Times are of this thread's CPU, so that a busy machine disturbs them less; the
//! slowest single operation is by the clock, and on a busy machine mostly someone else's.

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use structure::array::Array;
use structure::hash::{Seed, hash};
use structure::packed::PackedTable;
use structure::zset::{ScoreBound, SortedSet};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to `System` unchanged, so its guarantees are these.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `dealloc`'s contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const SEED: Seed = Seed::new([1, 2]);

fn hasher(bytes: &[u8]) -> u64 {
    hash(&SEED, bytes)
}

fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<usize>().ok())
        .unwrap_or(0)
        * 4096
}

/// CPU time of this thread.
fn cpu_ns() -> u64 {
    // The counter moves when the scheduler looks at the thread: make it look.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0)
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(n)) >> 64) as u64
    }
}

fn timed(name: &str, operations: u64, mut operation: impl FnMut(u64)) {
    let start = cpu_ns();
    for n in 0..operations {
        operation(n);
    }
    let mean = (cpu_ns() - start) as f64 / operations as f64;
    println!("{name:44} {mean:8.0} ns");
}

/// The slowest of many operations, and the 99.99th percentile.
fn slowest(name: &str, operations: u64, mut operation: impl FnMut(u64)) {
    let mut times: Vec<u64> = (0..operations)
        .map(|n| {
            let start = Instant::now();
            operation(n);
            start.elapsed().as_nanos() as u64
        })
        .collect();
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize] as f64 / 1000.0;
    println!(
        "{name:44} p99.99 {:.1} us, slowest {:.1} us",
        at(0.9999),
        at(1.0)
    );
}

fn bytes(name: &str, elements: u64, told: usize, before: (usize, usize)) {
    let asked = BYTES.load(Ordering::Relaxed) - before.0;
    let resident = resident().saturating_sub(before.1);
    let each = |bytes: usize| bytes as f64 / elements as f64;
    println!(
        "{name:44} {:8.1} B told, {:.1} B asked, {:.1} B resident an element",
        each(told),
        each(asked),
        each(resident)
    );
}

fn now() -> (usize, usize) {
    (BYTES.load(Ordering::Relaxed), resident())
}

fn member(n: u64) -> [u8; 15] {
    let mut bytes = *b"member:00000000";
    let mut rest = n;
    for digit in bytes[7..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    bytes
}

fn packed(elements: u64) {
    let mut random = Random(99);
    for (name, value) in [
        ("set of 15-byte members", &b""[..]),
        ("hash, 15 + 16 bytes", &[7; 16]),
    ] {
        println!("-- {name}, {elements}");
        let before = now();
        let mut table = PackedTable::new();
        timed("insert", elements, |n| {
            let key = member(n);
            table.insert(hasher(&key), &key, value, None, &hasher);
        });
        bytes("", elements, table.memory_bytes(), before);
        timed("get a random one", elements, |_| {
            let key = member(random.below(elements));
            black_box(table.get(hasher(&key), &key));
        });
        timed("get a missing one", elements, |_| {
            let key = member(elements + random.below(elements));
            black_box(table.get(hasher(&key), &key));
        });
        timed("overwrite, same size", elements, |_| {
            let key = member(random.below(elements));
            table.insert(hasher(&key), &key, value, None, &hasher);
        });
        timed("draw", elements / 10, |_| {
            black_box(table.random(|n| random.below(n)));
        });
        let mut cursor = 0;
        timed("scan, 10 a call", elements / 100, |_| {
            cursor = table.scan(cursor, 10, |e| {
                black_box(e.key);
            });
        });
        timed("remove and insert another", elements, |n| {
            let key = member(n);
            table.remove(hasher(&key), &key);
            let key = member(n + elements);
            table.insert(hasher(&key), &key, value, None, &hasher);
        });
        slowest("insert", elements, |n| {
            let key = member(n + 5 * elements);
            table.insert(hasher(&key), &key, value, None, &hasher);
        });
    }
}

fn sorted(elements: u64) {
    let mut random = Random(99);
    for (name, ascending) in [("ascending scores", true), ("random scores", false)] {
        println!("-- sorted set of 15-byte members, {name}, {elements}");
        let before = now();
        let mut set = SortedSet::new();
        timed("insert", elements, |n| {
            let member = member(n);
            let score = if ascending { n } else { random.below(1 << 40) };
            set.insert(hasher(&member), &member, score as f64, &hasher);
        });
        bytes("", elements, set.memory_bytes(), before);
        timed("score of a random one", elements, |_| {
            let member = member(random.below(elements));
            black_box(set.score(hasher(&member), &member));
        });
        timed("rank of a random one", elements, |_| {
            let member = member(random.below(elements));
            black_box(set.rank(hasher(&member), &member));
        });
        timed("count between two scores", elements, |_| {
            let min = random.below(1 << 40) as f64;
            black_box(set.ranks_by_score(ScoreBound::Incl(min), ScoreBound::Excl(min * 2.0)));
        });
        timed("100 from a random rank", elements / 100, |_| {
            let rank = random.below(elements) as usize;
            for entry in set.iter_from_rank(rank, false).take(100) {
                black_box(entry);
            }
        });
        timed("new random score for a random one", elements, |_| {
            let member = member(random.below(elements));
            let score = random.below(1 << 40) as f64;
            set.insert(hasher(&member), &member, score, &hasher);
        });
        bytes("after that", elements, set.memory_bytes(), before);
        timed("remove and insert another", elements, |n| {
            let old = member(n);
            set.remove(hasher(&old), &old, &hasher);
            let new = member(n + elements);
            set.insert(hasher(&new), &new, random.below(1 << 40) as f64, &hasher);
        });
        slowest("insert", elements, |n| {
            let member = member(n + 5 * elements);
            set.insert(
                hasher(&member),
                &member,
                random.below(1 << 40) as f64,
                &hasher,
            );
        });
        slowest("pop the first", elements, |_| {
            set.pop_first(&hasher, |_, _| ());
        });
    }
}

fn arrays(elements: u64) {
    let mut random = Random(99);
    for (name, step, text) in [
        ("dense, small integers", 1, false),
        ("dense, 15-byte texts", 1, true),
        ("one element in 4096 indexes", 4096, false),
        ("far apart", 1 << 40, false),
    ] {
        println!("-- array, {name}, {elements}");
        let before = now();
        let mut array = Array::new(4096);
        let set = |array: &mut Array, index: u64, n: u64| match text {
            true => array.set(index, &member(n)),
            false => array.set(index, &member(n % 90 + 10)[13..]),
        };
        timed("append", elements, |n| {
            set(&mut array, n * step, n);
        });
        bytes("", elements, array.memory_bytes(), before);
        timed("get a random one", elements, |_| {
            black_box(array.get(random.below(elements) * step));
        });
        timed("set a random one", elements, |n| {
            set(&mut array, random.below(elements) * step, n);
        });
        timed("100 from a random one", elements / 100, |_| {
            let from = random.below(elements) * step;
            array.range(from, u64::MAX - 1).take(100).for_each(|entry| {
                black_box(entry);
            });
        });
        timed("remove and set a random one", elements, |n| {
            let index = random.below(elements) * step;
            array.remove(index);
            set(&mut array, index, n);
        });
        bytes("after that", elements, array.memory_bytes(), before);
    }
}

/// What the machine gives right now: chained reads of 16 MB, and a `std` map of the same members.
fn reference(elements: u64) {
    println!("-- for comparison");
    let mut random = Random(7);
    let mut chain: Vec<u32> = (0..4 << 20).collect();
    for at in (1..chain.len()).rev() {
        chain.swap(at, random.below(at as u64) as usize);
    }
    let mut at = 0;
    timed("one read of 16 MB, each after the last", elements, |_| {
        at = chain[at as usize]
    });
    black_box(at);
    let before = now();
    let mut map = std::collections::HashMap::new();
    timed("std HashMap<Box<[u8]>, f64>: insert", elements, |n| {
        map.insert(Box::from(member(n)) as Box<[u8]>, n as f64);
    });
    bytes("", elements, 0, before);
    timed("std HashMap: get a random one", elements, |_| {
        black_box(map.get(&member(random.below(elements))[..]));
    });
}

fn main() {
    let elements = std::env::args()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(500_000);
    reference(elements);
    packed(elements);
    sorted(elements);
    arrays(elements);
}
