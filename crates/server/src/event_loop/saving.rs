//! This loop's part of snapshots: slices of its own stripes, `save` points, refused writes.

use super::*;
use crate::persistence::snapshot::{self, Job, Target};

/// Bytes of one stripe that are serialized in one go, so that a stripe is locked for microseconds
/// only.
const STRIPE_BYTES: usize = 8 * 1024;
/// Microseconds that a slice may take while clients are active.
const SLICE_BUSY_US: u64 = 100;
/// Microseconds between two slices then: who takes all of a core is made to wait by the system, and
/// its clients with it.
const PAUSE_BUSY_US: u64 = 300;
/// Microseconds that a slice may take while nothing comes.
const SLICE_IDLE_US: u64 = 1000;
/// Milliseconds after which clients of which nothing came are not active.
const BUSY_MS: u64 = 10;
/// Milliseconds between looks at the `save` points.
const SAVE_CHECK_MS: u64 = 100;

/// A snapshot as this loop sees it.
pub(super) struct Saving {
    job: Arc<Job>,
    /// The stripe of this loop that is next.
    next: usize,
    /// How many of its stripes in a row were done.
    done: usize,
    /// Whether there was no room for more: the writer says when there is again.
    pub is_stalled: bool,
    /// When the next slice may begin while clients are active: Unix microseconds.
    next_us: u64,
    /// What [`Shared::activity`] was at the last slice.
    activity: u64,
    /// When clients were active last, of whichever loop: the core may be theirs, too.
    active_ms: u64,
}

impl<L: RawLock> EventLoop<'_, L> {
    /// One slice of the snapshot under way.
    #[cold]
    pub(super) fn save_some(&mut self) {
        self.snapshots_seen = self.shared.snapshots.begun();
        let saving = self.saving.take().or_else(|| {
            self.shared.snapshots.job().map(|job| Saving {
                job,
                next: 0,
                done: 0,
                is_stalled: false,
                next_us: 0,
                activity: self.shared.activity(),
                active_ms: 0,
            })
        });
        let Some(mut saving) = saving else { return };
        let count = self.own_stripes();
        let activity = self.shared.activity();
        if std::mem::replace(&mut saving.activity, activity) != activity {
            saving.active_ms = self.now_ms;
        }
        let (is_busy, now_us) = (self.is_busy(saving.active_ms), sys::unix_us());
        if is_busy && now_us < saving.next_us {
            self.saving = Some(saving);
            return;
        }
        let end_us = now_us
            + if is_busy {
                SLICE_BUSY_US
            } else {
                SLICE_IDLE_US
            };
        saving.next_us = end_us + PAUSE_BUSY_US;
        let mut pieces = Vec::new();
        while saving.done < count {
            saving.is_stalled = !saving.job.has_room();
            if saving.is_stalled {
                break;
            }
            let index = self.own_stripe(saving.next);
            let is_done = self.executor.save_some(index, STRIPE_BYTES, &mut pieces);
            saving.next = (saving.next + 1) % count;
            saving.done = if is_done { saving.done + 1 } else { 0 };
            if is_done && pieces.is_empty() {
                // Empty stripes take no time: on a machine that is overloaded, where a look at the
                // clock may always come too late, they must not take a turn each.
                continue;
            }
            saving.job.put(&mut pieces);
            if sys::unix_us() >= end_us {
                break;
            }
        }
        if saving.done < count {
            self.saving = Some(saving);
        } else {
            saving.job.loop_done(&self.shared);
        }
    }

    /// Whether clients are active: of this loop, or of any at `active_ms`.
    fn is_busy(&self, active_ms: u64) -> bool {
        self.now_ms < self.active_ms.max(active_ms) + BUSY_MS
    }

    /// How many milliseconds the next wait may be at most for the sake of a snapshot under way.
    pub(super) fn saving_wait_ms(&self) -> Option<i32> {
        let saving = self.saving.as_ref()?;
        (!saving.is_stalled).then(|| i32::from(self.is_busy(saving.active_ms)))
    }

    /// Has commands that write refused while the last snapshot failed, or no more.
    #[inline]
    pub(super) fn refuse_writes(&mut self) {
        let refuses = self.shared.refuses_writes(&self.host.config);
        self.executor.refuse_writes(refuses);
    }

    /// Begins a snapshot where a `save` point is reached, or one was asked for while none could
    /// begin.
    pub(super) fn save_if_due(&mut self) {
        if self.now_ms < self.next_save_check_ms {
            return;
        }
        self.next_save_check_ms = self.now_ms + SAVE_CHECK_MS;
        let is_scheduled = self.shared.snapshots.is_scheduled.load(Ordering::Relaxed);
        let config = self.host.config.clone();
        if !is_scheduled && config.save.is_empty() || self.shared.snapshots.busy().is_some() {
            return;
        }
        if !is_scheduled {
            let stripes = &self.executor.keyspace().stripes;
            let changes = |index| stripes.peek(index, |stripe| stripe.stats.changes);
            // A stripe that is in use says it the next time.
            let changes = (0..stripes.count()).map(changes).sum::<Option<u64>>();
            let due = changes.and_then(|changes| {
                self.shared
                    .is_save_due(&config, changes, self.now_ms / 1000)
            });
            let Some((changes, seconds)) = due else {
                return;
            };
            notice!("{changes} changes in {seconds} seconds. Saving...");
        }
        self.shared
            .snapshots
            .is_scheduled
            .store(false, Ordering::Relaxed);
        let (shared, keys) = (self.shared.clone(), self.shared.keys.clone());
        // Nobody else begins one in between but by a command: then there is one, as wanted.
        let _ = self
            .executor
            .with_all(|held| snapshot::start(&shared, &keys, held, Target::Rdb));
    }
}
