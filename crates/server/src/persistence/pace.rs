//! How who writes a snapshot goes about it: the file is synced little by little, what was synced
//! leaves the system's memory, and clients that are active get the core in between.
//!
//! # Why rests, where its priority is low?
//! The system gives a thread that works without a pause its share of a core in pieces of
//! milliseconds, at any priority, and an event loop that has something to answer waits for as long.
//!
//! # Why is the file not kept in memory?
//! Nobody reads it soon; it would take the place of what others read. And when the next snapshot
//! replaces it, all of its pages are given back in one call, which keeps the core for milliseconds.

use std::sync::Arc;
use std::time::Duration;

use persist::rdb::AfterWrite;
use persist::storage::StorageFile;

use crate::shared::Shared;

/// Bytes that are written at most before they are synced, so that the end has little left to do
/// and the system never has much at once.
const SYNC_BYTES: u64 = 4 << 20;
/// Bytes that leave the system's memory at once.
const FORGET_BYTES: u64 = 1 << 20;
/// How long is rested after a write while clients are active.
const REST: Duration = Duration::from_micros(100);

/// What is done after each write: where `syncs`, the file is synced every [`SYNC_BYTES`].
pub fn after_write<W: StorageFile>(shared: &Arc<Shared>, syncs: bool) -> AfterWrite<W> {
    let shared = shared.clone();
    let (mut written, mut synced, mut forgotten) = (0, 0, 0);
    let mut activity = shared.activity();
    Box::new(move |file, bytes| {
        written += bytes as u64;
        if forgotten < synced {
            let len = FORGET_BYTES.min(synced - forgotten);
            file.forget(forgotten, len);
            forgotten += len;
        }
        if syncs && written - synced >= SYNC_BYTES {
            file.sync()?;
            synced = written;
        }
        let now = shared.activity();
        if std::mem::replace(&mut activity, now) != now {
            std::thread::sleep(REST);
        }
        Ok(())
    })
}
