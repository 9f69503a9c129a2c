//! A stripe's lock whose every turn is the scheduler's to give.

use shuttle::future::batch_semaphore::{BatchSemaphore, Fairness};
use structure::stripes::RawLock;

/// One permit: whoever has it holds the lock. Who gets it next is the scheduler's choice.
pub struct ModelLock(BatchSemaphore);

// SAFETY: there is one permit; `lock` and `try_lock` succeed only by taking it, and it comes back
// with `unlock`. All tasks run on one thread, so what one did is visible to the next.
unsafe impl RawLock for ModelLock {
    fn new() -> Self {
        Self(BatchSemaphore::new(1, Fairness::Unfair))
    }

    fn lock(&self) {
        self.0
            .acquire_blocking(1)
            .expect("the semaphore is never closed");
    }

    fn try_lock(&self) -> bool {
        self.0.try_acquire(1).is_ok()
    }

    unsafe fn unlock(&self) {
        self.0.release(1);
    }
}
