//! Publish and subscribe: who listens to what.
//!
//! The registry is cut into shards by channel, each behind a lock that is only ever taken last, so
//! that a command may publish an event while it holds stripes. A message is encoded once a protocol
//! and shared by all that receive it.
//!
//! # Invariants
//! - A subscription stands here exactly if it stands in its session.
//! - Two messages published to one channel one after the other reach every receiver in that order:
//!   they are handed over under the channel's lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, RwLock};
use resp::{Output, Protocol, Writer};

use crate::glob;
use crate::host::{ClientId, Host};

const SHARDS: usize = 64;

/// A message on its way: encoded for a protocol when the first receiver needs it.
#[derive(Debug)]
pub struct Push {
    body: Body,
    resp2: OnceLock<Arc<[u8]>>,
    resp3: OnceLock<Arc<[u8]>>,
}

#[derive(Debug)]
enum Body {
    /// The kind first.
    Words(Vec<Box<[u8]>>),
    /// Keys that have changed; none means all.
    Invalidation(Option<Vec<Box<[u8]>>>),
}

/// The channel that invalidations seem to come from where the protocol has no push messages.
const INVALIDATIONS: &str = "__redis__:invalidate";

impl Push {
    /// A push message of these words, the kind first.
    pub fn new(words: &[&[u8]]) -> Arc<Self> {
        Self::of(Body::Words(words.iter().map(|&word| word.into()).collect()))
    }

    /// Says that keys have changed, or, with none, that all may have.
    pub fn invalidation(keys: Option<Vec<Box<[u8]>>>) -> Arc<Self> {
        Self::of(Body::Invalidation(keys))
    }

    fn of(body: Body) -> Arc<Self> {
        Arc::new(Self {
            body,
            resp2: OnceLock::new(),
            resp3: OnceLock::new(),
        })
    }

    /// Its kind, and the channel or pattern that brought it.
    pub fn topic(&self) -> (&[u8], &[u8]) {
        let Body::Words(words) = &self.body else {
            return (b"invalidate", b"");
        };
        let word = |index: usize| words.get(index).map_or(&[][..], |word| word);
        (word(0), word(1))
    }

    /// The message in RESP.
    pub fn encoded(&self, protocol: Protocol) -> &Arc<[u8]> {
        let cell = match protocol {
            Protocol::Resp2 => &self.resp2,
            Protocol::Resp3 => &self.resp3,
        };
        cell.get_or_init(|| {
            let mut out = Output::default();
            let mut writer = Writer::new(&mut out, protocol);
            match &self.body {
                Body::Words(words) => {
                    writer.push(words.len());
                    words.iter().for_each(|word| writer.bulk(word));
                }
                Body::Invalidation(keys) => {
                    if protocol == Protocol::Resp3 {
                        writer.push(2);
                        writer.text("invalidate");
                    } else {
                        writer.array(3);
                        writer.text("message");
                        writer.text(INVALIDATIONS);
                    }
                    let Some(keys) = keys else {
                        writer.null();
                        return out.since(0).into();
                    };
                    writer.array(keys.len());
                    keys.iter().for_each(|key| writer.bulk(key));
                }
            }
            out.since(0).into()
        })
    }
}

/// The two kinds of channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelKind {
    /// SUBSCRIBE and PUBLISH.
    Global,
    /// SSUBSCRIBE and SPUBLISH.
    Shard,
}

type Channels = HashMap<Box<[u8]>, Vec<ClientId>>;

/// Who listens to what.
#[derive(Default)]
pub struct Registry {
    global: Shards,
    shard: Shards,
    patterns: RwLock<BTreeMap<Box<[u8]>, Vec<ClientId>>>,
    /// How many patterns there are, so that publishing need not look.
    pattern_count: AtomicUsize,
}

struct Shards {
    shards: [Mutex<Channels>; SHARDS],
    /// How many channels there are, so that publishing need not look.
    count: AtomicUsize,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            shards: std::array::from_fn(|_| Mutex::default()),
            count: AtomicUsize::new(0),
        }
    }
}

impl Shards {
    fn of(&self, hash: u64) -> &Mutex<Channels> {
        #[allow(clippy::cast_possible_truncation)] // A remainder.
        let index = (hash % SHARDS as u64) as usize;
        &self.shards[index]
    }
}

impl Registry {
    fn shards(&self, kind: ChannelKind) -> &Shards {
        match kind {
            ChannelKind::Global => &self.global,
            ChannelKind::Shard => &self.shard,
        }
    }

    /// Adds a subscription that the client does not have yet. `hash` is the channel's.
    pub fn subscribe(&self, kind: ChannelKind, hash: u64, channel: &[u8], client: ClientId) {
        let shards = self.shards(kind);
        let mut channels = shards.of(hash).lock();
        channels.entry(channel.into()).or_insert_with(|| {
            shards.count.fetch_add(1, Ordering::Relaxed);
            Vec::new()
        });
        if let Some(clients) = channels.get_mut(channel) {
            clients.push(client);
        }
    }

    /// Removes a subscription.
    pub fn unsubscribe(&self, kind: ChannelKind, hash: u64, channel: &[u8], client: ClientId) {
        let shards = self.shards(kind);
        let mut channels = shards.of(hash).lock();
        if let Some(clients) = channels.get_mut(channel) {
            clients.retain(|&other| other != client);
            if clients.is_empty() {
                channels.remove(channel);
                shards.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    /// Adds a subscription to a pattern that the client does not have yet.
    pub fn subscribe_pattern(&self, pattern: &[u8], client: ClientId) {
        let mut patterns = self.patterns.write();
        patterns.entry(pattern.into()).or_default().push(client);
        self.pattern_count.store(patterns.len(), Ordering::Relaxed);
    }

    /// Removes a subscription to a pattern.
    pub fn unsubscribe_pattern(&self, pattern: &[u8], client: ClientId) {
        let mut patterns = self.patterns.write();
        if let Some(clients) = patterns.get_mut(pattern) {
            clients.retain(|&other| other != client);
            if clients.is_empty() {
                patterns.remove(pattern);
            }
        }
        self.pattern_count.store(patterns.len(), Ordering::Relaxed);
    }

    /// Sends `message` to everybody who listens to `channel`; returns how many that are.
    pub fn publish(
        &self,
        kind: ChannelKind,
        hash: u64,
        channel: &[u8],
        message: &[u8],
        host: &mut dyn Host,
    ) -> usize {
        let shards = self.shards(kind);
        let mut receivers = 0;
        if shards.count.load(Ordering::Relaxed) > 0
            && let Some(clients) = shards.of(hash).lock().get(channel)
        {
            let word: &[u8] = match kind {
                ChannelKind::Global => b"message",
                ChannelKind::Shard => b"smessage",
            };
            let push = Push::new(&[word, channel, message]);
            clients.iter().for_each(|&client| host.push(client, &push));
            receivers += clients.len();
        }
        if kind == ChannelKind::Global && self.pattern_count.load(Ordering::Relaxed) > 0 {
            for (pattern, clients) in &*self.patterns.read() {
                if glob::matches(pattern, channel) {
                    let push = Push::new(&[b"pmessage", pattern, channel, message]);
                    clients.iter().for_each(|&client| host.push(client, &push));
                    receivers += clients.len();
                }
            }
        }
        receivers
    }

    /// The channels that somebody listens to and that match `pattern`.
    pub fn channels(&self, kind: ChannelKind, pattern: Option<&[u8]>) -> Vec<Box<[u8]>> {
        let is_meant = |channel: &[u8]| pattern.is_none_or(|p| glob::matches(p, channel));
        let mut found = Vec::new();
        for shard in &self.shards(kind).shards {
            found.extend(
                shard
                    .lock()
                    .keys()
                    .filter(|channel| is_meant(channel))
                    .cloned(),
            );
        }
        found.sort_unstable();
        found
    }

    /// How many clients listen to `channel`.
    pub fn count(&self, kind: ChannelKind, hash: u64, channel: &[u8]) -> usize {
        self.shards(kind)
            .of(hash)
            .lock()
            .get(channel)
            .map_or(0, Vec::len)
    }

    /// How many channels have a listener.
    pub fn channel_count(&self, kind: ChannelKind) -> usize {
        self.shards(kind).count.load(Ordering::Relaxed)
    }

    /// How many patterns have a listener.
    pub fn pattern_count(&self) -> usize {
        self.pattern_count.load(Ordering::Relaxed)
    }
}
