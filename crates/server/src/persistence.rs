//! Keeping the data: snapshots are written and loaded here.
//!
//! # Invariants
//! - While the server loads, only the loader changes the keyspace: every command that is not marked
//!   as one that runs meanwhile is refused ([`Phase::Loading`]).
//! - A snapshot that was saved before the end holds every write that was acknowledged: the stripes
//!   are locked when it is written, and whoever gets them afterwards is refused
//!   ([`Phase::Stopping`]).

pub mod backup;
mod insert;
mod load;
pub mod log_thread;
mod pace;
mod reading;
mod replay;
pub mod snapshot;
mod status;

use std::sync::atomic::Ordering;

use engine::access::{self, Access};
use engine::keyspace::{Phase, Stripe};
use engine::settings::Order;
use persist::rdb::{self, About, Encoder, SaveError, Uses};
use persist::storage::Disk;
use structure::stripes::Held;

use crate::config::{self, Config};
use crate::shared::Shared;
use crate::{notice, supervisor, sys, warning};

pub use load::{Loading, load_at_once};
pub use replay::Replaying;
pub use snapshot::Snapshots;
pub use status::Status;

/// The server goes on: why was written to the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotStopped;

/// What is written of when keys were used.
pub fn uses(config: &Config, now_s: u64) -> Uses {
    let settings = crate::event_loop::settings_of(config);
    if settings.lfu {
        return Uses::Frequency {
            now_s,
            decay_minutes: settings.lfu_decay_minutes,
        };
    }
    match settings.eviction.order() {
        Some(Order::LastUse | Order::LastChange) => Uses::Idle { now_s },
        _ => Uses::None,
    }
}

/// What turns keys into a snapshot's bytes, as configured.
pub fn encoder(config: &Config) -> Encoder {
    let now_s = sys::unix_us() / 1_000_000;
    Encoder::new(
        config.rdb_format,
        config.rdbcompression,
        uses(config, now_s),
    )
}

/// What a snapshot says about itself.
pub fn about(shared: &Shared, is_base: bool) -> About<'static> {
    About {
        version: config::REDIS_VERSION,
        created_s: sys::unix_us() / 1_000_000,
        used_bytes: shared.used_bytes() as u64,
        is_base,
    }
}

/// The snapshot's name. It is one, not a path.
pub fn file_name(config: &Config) -> String {
    String::from_utf8_lossy(&config.dbfilename).into_owned()
}

/// Writes a snapshot. Every stripe is locked, so everybody waits.
///
/// # Errors
/// What failed; it was written to the log, and an older snapshot is as it was.
pub fn save(
    shared: &Shared,
    config: &Config,
    keyspace: &Held<'_, Stripe>,
) -> Result<(), SaveError> {
    let name = file_name(config);
    let mut keys = 0;
    snapshot::abandon(shared);
    shared.persistence.save_begins();
    let saved = rdb::save(
        &Disk::new(&config.dir),
        &name,
        encoder(config),
        config.rdbchecksum,
        |saver| {
            saver.begin(&about(shared, false));
            for library in shared.scripts.libraries.now().libraries.values() {
                saver.library(&library.source)?;
            }
            keys = save_keys(saver, keyspace)?;
            Ok(())
        },
    );
    match saved {
        Ok(bytes) => {
            notice!("DB saved on disk: {keys} keys, {bytes} bytes");
            let mut changes = 0;
            for index in 0..keyspace.count() {
                changes += keyspace.get(index).stats.changes;
            }
            shared
                .persistence
                .saved(changes, sys::unix_us() / 1_000_000);
            Ok(())
        }
        Err(error) => {
            warning!(
                "Can't save the snapshot '{name}' in {}: {error}. The one before is as it was.",
                config.dir.display()
            );
            Err(error)
        }
    }
}

fn save_keys<W: std::io::Write>(
    saver: &mut rdb::Saver<W>,
    keyspace: &Held<'_, Stripe>,
) -> Result<u64, SaveError> {
    let stripes = || (0..keyspace.count()).map(|index| keyspace.get(index));
    let dbs = stripes().map(Stripe::db_count).max().unwrap_or(0);
    let mut saved = 0;
    for number in 0..dbs {
        let (mut keys, mut timed) = (0, 0);
        for db in stripes().filter_map(|stripe| stripe.db(number)) {
            keys += db.table.len() as u64;
            timed += db.timed() as u64;
        }
        if keys == 0 {
            continue;
        }
        saver.db(number, keys, timed);
        for db in stripes().filter_map(|stripe| stripe.db(number)) {
            for record in db.table.iter() {
                saver.entry(record.into())?;
            }
        }
        saved += keys;
    }
    Ok(saved)
}

/// Prepares the end of the server: saves if that is `wanted`, or where nothing is said and there
/// are save points; then nothing changes any more, and the loops end. Every stripe is locked.
///
/// # Errors
/// Where the snapshot could not be written, and the end is not forced.
pub fn stop(
    shared: &Shared,
    config: &Config,
    keyspace: &mut Held<'_, Stripe>,
    wanted: Option<bool>,
    force: bool,
) -> Result<(), NotStopped> {
    let is_loading = shared.keys.phase() == Phase::Loading;
    if wanted.unwrap_or(!config.save.is_empty()) && !is_loading {
        notice!("Saving the final snapshot before exiting.");
        if save(shared, config, keyspace).is_err() && !force {
            warning!("Error trying to save the DB, can't exit.");
            return Err(NotStopped);
        }
    }
    supervisor::stopping(config);
    // What is loaded in part is not shown now either.
    if !is_loading {
        shared.keys.set_phase(Phase::Stopping);
    }
    shared.shut_down();
    Ok(())
}

/// The access bits of a key that was loaded.
fn access_bits(settings: &engine::settings::Settings, now_s: u64, used: Option<rdb::Use>) -> u32 {
    if settings.lfu {
        let minute = access::minute(now_s * 1000);
        return match used {
            Some(rdb::Use::Frequency(frequency)) => minute << 8 | u32::from(frequency),
            _ => Access::fresh_frequency(minute),
        };
    }
    let idle = match used {
        Some(rdb::Use::Idle(idle)) => idle,
        _ => 0,
    };
    access::idle(now_s * 1000, idle)
}

impl Shared {
    /// Ends the server because of an error. Where it was loading, it says so to its end: nobody is
    /// shown what was loaded in part.
    pub fn fail(&self, error: String) {
        warning!("{error}");
        *self.persistence.fatal.lock() = Some(error);
        if self.keys.phase() != Phase::Loading {
            self.keys.set_phase(Phase::Stopping);
        }
        self.shutdown.store(true, Ordering::Release);
        self.wake_all();
    }
}
