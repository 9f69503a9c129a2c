//! Putting loaded keys into the keyspace, a batch at a time.

use std::sync::atomic::Ordering;

use engine::Object;
use engine::keyspace::{Shared as Keys, Stripe};
use structure::record::{Record, ValueRef};
use structure::stripes::Held;

/// A key on its way.
pub struct Loaded {
    /// Its database.
    pub db: u32,
    /// The key's hash.
    pub hash: u64,
    /// The key and its value.
    pub record: Record<Object>,
}

/// How far ahead a bucket is asked for.
const AHEAD: usize = 24;

/// Puts keys into the keyspace. All stripes are locked.
///
/// # Errors
/// Where one is there already, and is not to be replaced.
pub fn insert(
    keys: &Keys,
    held: &mut Held<'_, Stripe>,
    batch: Vec<Loaded>,
    replace: bool,
    now_ms: u64,
) -> Result<(), String> {
    let ahead = |held: &Held<'_, Stripe>, hash: u64, db: u32| {
        if let Some(db) = held.get(keys.stripe(hash)).db(db) {
            db.table.prefetch_bucket(hash);
        }
    };
    for loaded in batch.iter().take(AHEAD) {
        ahead(held, loaded.hash, loaded.db);
    }
    let hints: Vec<(u64, u32)> = batch.iter().map(|next| (next.hash, next.db)).collect();
    for (index, Loaded { db, hash, record }) in batch.into_iter().enumerate() {
        if let Some(&(hash, db)) = hints.get(index + AHEAD) {
            ahead(held, hash, db);
        }
        if let ValueRef::Object(object) = record.value()
            && object.has_field_deadlines()
        {
            keys.field_deadlines.store(true, Ordering::Relaxed);
        }
        let into = held.get_mut(keys.stripe(hash)).db_or_new(db);
        if into.table.find(hash, record.key()).is_some() {
            if !replace {
                let key = record.key().escape_ascii();
                return Err(format!("key '{key}' of database {db} stands in it twice"));
            }
            into.remove(hash, record.key());
        }
        into.insert_record(hash, record, now_ms);
    }
    Ok(())
}
