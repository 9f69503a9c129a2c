//! Client-side caching: who has read which key and is to be told when it changes.
//!
//! Clients track in one of two ways. By default the server remembers which keys a client read, and
//! tells it once when one of them changes. In broadcast mode it remembers nothing: the client is
//! told of every change of a key that begins with one of its prefixes, gathered over a batch.
//!
//! The keys are cut into shards by their hash, each behind a lock that is only ever taken last, so
//! that a command may look here while it holds stripes. A key means its name, whatever the
//! database, as in Redis.
//!
//! # Invariants
//! - A client is noted for a key before the command that read the key lets go of its stripe, and a
//!   change is reported under that stripe too: no change is missed between the two.
//! - `keys` and `items` count what is in the shards.
//! - Every prefix in `prefixes` has a client, and every client in broadcast mode has a prefix.
//! - A number that is no longer among the clients may stay with a key; it is passed over, and goes
//!   with the key or when the key gathers more.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, RwLock};

use crate::host::{ClientId, Host};
use crate::pubsub::Push;

const SHARDS: usize = 64;
/// From how many readers of a key on those that are gone are looked for as it gains more.
const READERS_PRUNED_FROM: usize = 64;

/// How a client tracks: kept in its session.
#[derive(Clone, Debug, Default)]
pub struct Tracking {
    /// Which reads count.
    pub mode: Mode,
    /// Whether its own changes are not reported to it.
    pub is_noloop: bool,
    /// Who is told in its place.
    pub redirect: Option<ClientId>,
    /// Whether that client was found gone.
    pub is_broken: bool,
    /// CLIENT CACHING, for the next command.
    pub is_excepted: bool,
    /// Broadcast: its prefixes.
    pub prefixes: Vec<Box<[u8]>>,
}

/// Which reads of a client are remembered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// All.
    #[default]
    All,
    /// Those of commands that CLIENT CACHING YES comes before.
    OptIn,
    /// All but those of commands that CLIENT CACHING NO comes before.
    OptOut,
    /// None: it hears of all changes under its prefixes.
    Broadcast,
}

impl Tracking {
    /// The number of the client that is told: 0 for the one that tracks, -1 where none does.
    pub fn told(tracking: Option<&Self>) -> i64 {
        let redirect = |tracking: &Self| tracking.redirect.map_or(0, |to| to.number);
        tracking.map_or(-1, |tracking| {
            i64::try_from(redirect(tracking)).unwrap_or(i64::MAX)
        })
    }

    /// Whether what the current command reads is remembered.
    pub fn remembers(&self) -> bool {
        match self.mode {
            Mode::All => true,
            Mode::OptIn => self.is_excepted,
            Mode::OptOut => !self.is_excepted,
            Mode::Broadcast => false,
        }
    }
}

/// A client that tracks, as those see it who change keys.
#[derive(Clone, Copy, Debug)]
struct Listener {
    id: ClientId,
    to: ClientId,
    is_broadcast: bool,
    is_noloop: bool,
}

/// Changes that are yet to be broadcast, and who made each last.
pub type Changes = BTreeMap<Box<[u8]>, Option<ClientId>>;

/// The readers of a key: numbers of clients in ascending order.
type Readers = Vec<u64>;

/// Who tracks what.
pub struct Registry {
    /// How many clients track, so that a change need not look.
    count: AtomicUsize,
    listeners: RwLock<HashMap<u64, Listener>>,
    shards: [Shard; SHARDS],
    keys: AtomicUsize,
    items: AtomicUsize,
    /// Where the next key is dropped when there are too many.
    drop_from: AtomicUsize,
    prefixes: RwLock<BTreeMap<Box<[u8]>, Vec<ClientId>>>,
    prefix_count: AtomicUsize,
}

#[derive(Default)]
struct Shard(Mutex<HashMap<Box<[u8]>, Readers>>);

impl Default for Registry {
    fn default() -> Self {
        Self {
            count: AtomicUsize::new(0),
            listeners: RwLock::default(),
            shards: std::array::from_fn(|_| Shard::default()),
            keys: AtomicUsize::new(0),
            items: AtomicUsize::new(0),
            drop_from: AtomicUsize::new(0),
            prefixes: RwLock::default(),
            prefix_count: AtomicUsize::new(0),
        }
    }
}

impl Registry {
    /// Whether anybody tracks.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether anybody tracks in broadcast mode.
    pub fn broadcasts(&self) -> bool {
        self.prefix_count.load(Ordering::Relaxed) > 0
    }

    /// How many clients track.
    pub fn clients(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// How many keys are remembered.
    pub fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// How many pairs of a key and a client that read it are remembered.
    pub fn items(&self) -> usize {
        self.items.load(Ordering::Relaxed)
    }

    /// How many prefixes clients listen to.
    pub fn prefixes(&self) -> usize {
        self.prefix_count.load(Ordering::Relaxed)
    }

    /// A client tracks from now on, or tracks otherwise. `fresh` are prefixes that it did not have
    /// yet.
    pub fn set(&self, id: ClientId, tracking: &Tracking, fresh: &[Box<[u8]>]) {
        let listener = Listener {
            id,
            to: tracking.redirect.unwrap_or(id),
            is_broadcast: tracking.mode == Mode::Broadcast,
            is_noloop: tracking.is_noloop,
        };
        let mut listeners = self.listeners.write();
        listeners.insert(id.number, listener);
        self.count.store(listeners.len(), Ordering::Relaxed);
        drop(listeners);
        if !fresh.is_empty() {
            let mut prefixes = self.prefixes.write();
            for prefix in fresh {
                prefixes.entry(prefix.clone()).or_default().push(id);
            }
            self.prefix_count.store(prefixes.len(), Ordering::Relaxed);
        }
    }

    /// A client tracks no more.
    pub fn forget(&self, id: ClientId, tracking: &Tracking) {
        if !tracking.prefixes.is_empty() {
            let mut prefixes = self.prefixes.write();
            for prefix in &tracking.prefixes {
                if let Some(clients) = prefixes.get_mut(prefix) {
                    clients.retain(|&other| other != id);
                    if clients.is_empty() {
                        prefixes.remove(prefix);
                    }
                }
            }
            self.prefix_count.store(prefixes.len(), Ordering::Relaxed);
        }
        let mut listeners = self.listeners.write();
        listeners.remove(&id.number);
        self.count.store(listeners.len(), Ordering::Relaxed);
        if listeners.is_empty() {
            // With the lock held: nobody else can begin to track, and to read, in between.
            self.clear();
        }
    }

    fn shard(&self, hash: u64) -> &Mutex<HashMap<Box<[u8]>, Readers>> {
        #[allow(clippy::cast_possible_truncation)] // A remainder.
        let index = (hash % SHARDS as u64) as usize;
        &self.shards[index].0
    }

    /// Notes that a client has read a key; at most `keys_max` keys are remembered (0: any number).
    /// Those who read a key that is dropped for it are told as if it had changed.
    pub fn remember(
        &self,
        hash: u64,
        key: &[u8],
        client: ClientId,
        keys_max: u64,
        host: &mut dyn Host,
    ) {
        let mut shard = self.shard(hash).lock();
        let readers = match shard.get_mut(key) {
            Some(readers) => readers,
            None => {
                self.keys.fetch_add(1, Ordering::Relaxed);
                shard.entry(key.into()).or_default()
            }
        };
        let Err(at) = readers.binary_search(&client.number) else {
            return;
        };
        readers.insert(at, client.number);
        self.items.fetch_add(1, Ordering::Relaxed);
        let len = readers.len();
        if len > READERS_PRUNED_FROM && len.is_power_of_two() {
            // Whoever writes there may wait for this shard.
            if let Some(listeners) = self.listeners.try_read() {
                readers.retain(|number| listeners.contains_key(number));
                self.items.fetch_sub(len - readers.len(), Ordering::Relaxed);
            }
        }
        drop(shard);
        if keys_max > 0 {
            self.drop_some(keys_max, host);
        }
    }

    /// Forgets keys until there are `keys_max`.
    fn drop_some(&self, keys_max: u64, host: &mut dyn Host) {
        // Each shard is asked twice at most, so that it ends whatever others add meanwhile.
        for _ in 0..2 * SHARDS {
            if self.keys() as u64 <= keys_max {
                return;
            }
            let index = self.drop_from.fetch_add(1, Ordering::Relaxed) % SHARDS;
            let mut shard = self.shards[index].0.lock();
            let Some(key) = shard.keys().next().cloned() else {
                continue;
            };
            let readers = shard.remove(&key).unwrap_or_default();
            drop(shard);
            self.tell(&key, &readers, None, host);
        }
    }

    /// A key has changed: tells all who read it, and forgets that they did. `by` is who changed it.
    #[cold]
    pub fn changed(&self, hash: u64, key: &[u8], by: Option<ClientId>, host: &mut dyn Host) {
        if self.keys() == 0 {
            return;
        }
        let readers = self.shard(hash).lock().remove(key);
        if let Some(readers) = readers {
            self.tell(key, &readers, by, host);
        }
    }

    /// Tells those who read a key that was taken out of its shard.
    fn tell(&self, key: &[u8], readers: &[u64], by: Option<ClientId>, host: &mut dyn Host) {
        self.keys.fetch_sub(1, Ordering::Relaxed);
        self.items.fetch_sub(readers.len(), Ordering::Relaxed);
        let listeners = self.listeners.read();
        let mut push = None;
        for number in readers {
            let Some(listener) = listeners.get(number) else {
                continue;
            };
            if listener.is_broadcast || listener.is_noloop && by == Some(listener.id) {
                continue;
            }
            let push = push.get_or_insert_with(|| Push::invalidation(Some(vec![key.into()])));
            host.invalidate(listener.to, listener.id, push);
        }
    }

    /// Every key may have changed: all who track are told, in whichever mode.
    #[cold]
    pub fn changed_all(&self, host: &mut dyn Host) {
        self.clear();
        let push = Push::invalidation(None);
        for listener in self.listeners.read().values() {
            host.invalidate(listener.to, listener.id, &push);
        }
    }

    fn clear(&self) {
        for shard in &self.shards {
            let gone = std::mem::take(&mut *shard.0.lock());
            let items = gone.values().map(Vec::len).sum();
            self.keys.fetch_sub(gone.len(), Ordering::Relaxed);
            self.items.fetch_sub(items, Ordering::Relaxed);
        }
    }

    /// Tells the clients in broadcast mode of changes under their prefixes.
    #[cold]
    pub fn broadcast(&self, changes: &Changes, host: &mut dyn Host) {
        let listeners = self.listeners.read();
        for (prefix, clients) in self.prefixes.read().iter() {
            let from = Bound::Included(&**prefix);
            let under: Vec<_> = changes
                .range::<[u8], _>((from, Bound::Unbounded))
                .take_while(|(key, _)| key.starts_with(prefix))
                .collect();
            if under.is_empty() {
                continue;
            }
            let all =
                Push::invalidation(Some(under.iter().map(|(key, _)| (*key).clone()).collect()));
            for client in clients {
                let Some(listener) = listeners.get(&client.number) else {
                    continue;
                };
                let is_own = |by: &Option<ClientId>| listener.is_noloop && *by == Some(*client);
                if !under.iter().any(|(_, by)| is_own(by)) {
                    host.invalidate(listener.to, listener.id, &all);
                    continue;
                }
                let others = under.iter().filter(|(_, by)| !is_own(by));
                let keys: Vec<_> = others.map(|(key, _)| (*key).clone()).collect();
                if !keys.is_empty() {
                    host.invalidate(listener.to, listener.id, &Push::invalidation(Some(keys)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
