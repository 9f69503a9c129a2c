//! The locks and what hangs on them, under a scheduler that tries thousands of interleavings.
//!
//! The code that runs is the real one: stripes, executor and handlers are generic over the lock,
//! and [`lock::ModelLock`] hands every turn at a lock to the scheduler. What a program does is
//! drawn by the scheduler too, so a failure's printed schedule replays all of it.
//!
//! # Invariants
//! - Nothing here waits outside of the scheduler: between two uses of a lock a thread runs alone.
//!   The claim of a waiter is a compare-and-swap, but both sides of it hold the same stripe.

mod lock;
mod program;
mod stripes;
mod transactions;
mod waiting;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

/// Room for a handler and its frames in a build without optimisation.
const STACK_BYTES: usize = 512 * 1024;
/// How many preemptions the directed scheduler plans.
const DEPTH: usize = 4;

/// Runs `model` under `schedules` schedules drawn evenly, and as many that put threads off at a few
/// chosen points. The schedules are the same each time; `MODEL_SEED` draws others.
fn check(schedules: usize, model: fn()) {
    let seed = std::env::var("MODEL_SEED").ok();
    let seed = seed.map_or(1, |seed| seed.parse().expect("MODEL_SEED is a number"));
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(
        RandomScheduler::new_from_seed(seed, schedules),
        config.clone(),
    )
    .run(model);
    Runner::new(PctScheduler::new_from_seed(seed, DEPTH, schedules), config).run(model);
}

/// A number in `0..n`, drawn by the scheduler.
fn below(n: usize) -> usize {
    use shuttle::rand::Rng;
    shuttle::rand::thread_rng().gen_range(0..n)
}
