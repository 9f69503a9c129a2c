//! Active expiry: finding keys whose time is up and that nobody reads.
//!
//! A read already hides a key past its deadline. This module exists for keys that are never read:
//! each database of a stripe keeps a timing wheel of 32-bit hints, and each tick looks at those
//! that are due.
//!
//! ```text
//! level 0: 64 slots of 8 ms   level 1: 64 slots of 0.5 s   level 2: 33 s  … level 5: 99 days
//! ```
//!
//! # Invariants
//! - Every key with a deadline has a hint in a slot that ends at or before the slot of its
//!   deadline.
//! - A hint is only a hint: the record's own deadline decides. A hint without a due key is dropped;
//!   one whose key lives longer moves to the slot of the new deadline.
//! - A deadline that moves back adds no hint, so refreshing a key's time costs no memory.
//! - One call of [`Wheel::take_due`] gives out at most as many hints as it is asked for.
//! - Hints come out in runs of up to [`RUN_MAX`] in ascending order, which is the table's: keys
//!   that die together leave bucket after bucket, and an emptied segment merges for nothing.
//!
//! # Why not sampling?
//! Dead keys then linger where few keys have a deadline, and users who wait for the expired event
//! get it late.

const LEVELS: usize = 6;
const SLOTS: u64 = 64;
/// Milliseconds of a slot of level 0.
const GRAIN_MS_LOG2: u32 = 3;
/// Hints in a chunk of a slot.
const CHUNK: usize = 256;
/// Hints that are sorted in one go.
const RUN_MAX: usize = 4096;

/// What finds a key again: see [`structure::table::Table::hint`].
pub type Hint = u32;

#[derive(Default)]
#[allow(clippy::vec_box)] // A chunk of 1 KiB must not move when the outer vector grows.
struct Slot {
    full: Vec<Box<[Hint; CHUNK]>>,
    last: Vec<Hint>,
}

impl Slot {
    fn push(&mut self, hint: Hint) {
        self.last.push(hint);
        if self.last.len() == CHUNK {
            let chunk = std::mem::take(&mut self.last).into_boxed_slice();
            if let Ok(chunk) = chunk.try_into() {
                self.full.push(chunk);
            }
        }
    }

    fn pop(&mut self) -> Option<Hint> {
        if let Some(hint) = self.last.pop() {
            return Some(hint);
        }
        self.last = self.full.pop()?.to_vec();
        self.last.pop()
    }

    fn len(&self) -> usize {
        self.full.len() * CHUNK + self.last.len()
    }
}

/// The hints of one database of one stripe.
#[derive(Default)]
pub struct Wheel {
    /// `LEVELS * SLOTS` slots, made with the first hint.
    slots: Vec<Slot>,
    /// For each level, which slots hold something: a bit each.
    used: [u64; LEVELS],
    /// Hints of the slots at `now` that come out next, the last one first.
    run: Vec<Hint>,
    /// The slot number (of level 0) up to which everything was given out.
    now: u64,
    len: usize,
}

impl Wheel {
    /// How many hints there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no hint.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes on the heap.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
            + (self.len - self.run.len() + self.run.capacity()) * size_of::<Hint>()
    }

    /// Adds a hint for a key that dies at `deadline_ms`.
    pub fn add(&mut self, deadline_ms: u64, hint: Hint, now_ms: u64) {
        if self.slots.is_empty() {
            self.slots
                .resize_with(LEVELS * SLOTS as usize, Slot::default);
            self.now = now_ms >> GRAIN_MS_LOG2;
        }
        let at = (deadline_ms >> GRAIN_MS_LOG2).max(self.now);
        let mut level = 0;
        while level + 1 < LEVELS && (at >> (6 * level)) - (self.now >> (6 * level)) >= SLOTS {
            level += 1;
        }
        let shift = 6 * level;
        // Past the last level's reach, the farthest slot: it is looked at again then.
        let number = (at >> shift).min((self.now >> shift) + SLOTS - 1);
        #[allow(clippy::cast_possible_truncation)] // Below 64.
        let slot = (number % SLOTS) as usize;
        self.slots[level * SLOTS as usize + slot].push(hint);
        self.used[level] |= 1 << slot;
        self.len += 1;
    }

    /// Takes all hints out, due or not.
    pub fn take_all(&mut self) -> Vec<Hint> {
        let mut all = std::mem::take(&mut self.run);
        all.reserve(self.len - all.len());
        for slot in &mut self.slots {
            while let Some(hint) = slot.pop() {
                all.push(hint);
            }
        }
        (self.used, self.len) = ([0; LEVELS], 0);
        all
    }

    /// The time from which on [`Wheel::take_due`] has something to give; `None` where there is no
    /// hint.
    pub fn next_due_ms(&self) -> Option<u64> {
        if !self.run.is_empty() {
            return Some((self.now + 1) << GRAIN_MS_LOG2);
        }
        let first = |level: usize| {
            let shift = 6 * level;
            let current = self.now >> shift;
            #[allow(clippy::cast_possible_truncation)] // Below 64.
            let ahead = self.used[level].rotate_right((current % SLOTS) as u32);
            (ahead != 0).then(|| (current + u64::from(ahead.trailing_zeros())) << shift)
        };
        let opens = (0..LEVELS).filter_map(first).min()?;
        Some((opens.max(self.now) + 1) << GRAIN_MS_LOG2)
    }

    /// Gives `each` up to `budget` hints that may be due at `now_ms`, and returns how many. The
    /// caller looks each up: a dead key is removed, a living one is added again. Fewer than
    /// `budget` means that all due ones were given out.
    pub fn take_due(&mut self, now_ms: u64, budget: usize, each: &mut Vec<Hint>) -> usize {
        let end = now_ms >> GRAIN_MS_LOG2;
        let mut taken = self.take_run(budget, each);
        if self.len == 0 {
            self.now = self.now.max(end);
        }
        while self.now < end && taken < budget {
            if self.used == [0; LEVELS] {
                self.now = end;
                break;
            }
            // A slot of a higher level opens when the levels below it begin a new round.
            for level in (0..LEVELS).rev() {
                let shift = 6 * level;
                if self.now & ((1 << shift) - 1) != 0 {
                    continue;
                }
                while taken < budget && self.open(level, self.now >> shift) {
                    taken += self.take_run(budget - taken, each);
                }
                if taken == budget {
                    return taken;
                }
            }
            self.now += 1;
            self.skip_empty(end);
        }
        taken
    }

    /// Gives out what is left of the run.
    fn take_run(&mut self, budget: usize, each: &mut Vec<Hint>) -> usize {
        let taken = budget.min(self.run.len());
        each.extend(self.run.drain(self.run.len() - taken..).rev());
        if self.run.is_empty() && self.run.capacity() > CHUNK {
            self.run = Vec::new();
        }
        self.len -= taken;
        taken
    }

    /// Makes a run of what the slot holds; false where that is nothing.
    fn open(&mut self, level: usize, number: u64) -> bool {
        #[allow(clippy::cast_possible_truncation)] // Below 64.
        let slot = (number % SLOTS) as usize;
        if self.used[level] >> slot & 1 == 0 {
            return false;
        }
        let hints = &mut self.slots[level * SLOTS as usize + slot];
        while self.run.len() < RUN_MAX
            && let Some(hint) = hints.pop()
        {
            self.run.push(hint);
        }
        self.run.sort_unstable_by(|a, b| b.cmp(a));
        if hints.len() == 0 {
            *hints = Slot::default();
            self.used[level] &= !(1 << slot);
        }
        true
    }

    /// Jumps over slots of level 0 that are empty, up to the next round.
    fn skip_empty(&mut self, end: u64) {
        let in_round = self.now % SLOTS;
        if in_round == 0 {
            return;
        }
        let ahead = self.used[0] >> in_round;
        let round_end = self.now - in_round + SLOTS;
        let next = if ahead == 0 {
            round_end
        } else {
            self.now + u64::from(ahead.trailing_zeros())
        };
        self.now = next.min(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Plays hints whose owner re-adds the living, and says when each key was found dead.
    fn play(keys: &BTreeMap<u32, u64>, tick_ms: u64, budget: usize) -> BTreeMap<u32, u64> {
        let (mut wheel, mut now, mut found) = (Wheel::default(), 1_000_000, BTreeMap::new());
        for (&key, &deadline) in keys {
            wheel.add(deadline, key, now);
        }
        while found.len() < keys.len() {
            now += tick_ms;
            loop {
                let mut due = Vec::new();
                let next = wheel.next_due_ms().expect("there are hints");
                let taken = wheel.take_due(now, budget, &mut due);
                assert_eq!(
                    taken > 0,
                    next <= now,
                    "{taken} at {now}, foretold for {next}"
                );
                for key in due {
                    if keys[&key] <= now {
                        found.insert(key, now);
                    } else {
                        wheel.add(keys[&key], key, now);
                    }
                }
                if taken < budget || wheel.is_empty() {
                    break;
                }
            }
        }
        assert!(wheel.is_empty() && wheel.next_due_ms().is_none());
        found
    }

    proptest! {
        #[test]
        fn every_key_is_found_within_a_slot_and_a_tick(
            deadlines in proptest::collection::vec(1_000_001u64..1_600_000, 1..200),
            tick in 1u64..50,
            budget in 1usize..100,
        ) {
            let keys: BTreeMap<_, _> = (0u32..).zip(deadlines).collect();
            for (key, at) in play(&keys, tick, budget) {
                prop_assert!(at >= keys[&key]);
                let late = at - keys[&key];
                prop_assert!(late <= (1 << GRAIN_MS_LOG2) + tick, "{late} late");
            }
        }
    }

    #[test]
    fn a_run_comes_in_the_order_of_the_table() {
        let mut wheel = Wheel::default();
        for n in 0..1000u32 {
            wheel.add(100, n.wrapping_mul(0x9e37_79b9), 5);
        }
        let mut due = Vec::new();
        while wheel.take_due(200, 7, &mut due) > 0 {}
        assert_eq!(due.len(), 1000);
        assert!(due.is_sorted());
    }

    #[test]
    fn far_deadlines_wait_in_few_slots() {
        let mut wheel = Wheel::default();
        for n in 0..100_000u32 {
            wheel.add(u64::from(n) * 1_000_000_000, n, 5);
        }
        let mut due = Vec::new();
        assert_eq!(wheel.take_due(40, 10, &mut due), 1);
        assert_eq!(due, [0]);
        assert_eq!(wheel.len(), 99_999);
    }
}
