//! What must hold between two steps: counters and tables against what is really there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::Object;
use engine::blocking::{State, Waiter};
use engine::keyspace::{Stripe, is_past};
use engine::object::Kind;
use engine::pubsub::ChannelKind;
use engine::session::Session;
use structure::record::ValueRef;
use structure::stripes::StripeSet;
use testkit::{InProcess, Reply, Target};

use crate::Sim;
use crate::clients::quoted;
use crate::ledger::Event;
use crate::tame::{DATABASES, KEYS};

/// A key that is reclaimed at the latest when so many milliseconds (as a power of two) have begun.
const RECLAIM_MS_LOG2: u32 = 5;
/// Milliseconds of a tick of the wheel that finds what is dead.
const TICK_MS: u64 = 8;

/// Looks at a stripe.
pub fn with_stripe<R>(engine: &InProcess, index: usize, look: impl FnOnce(&Stripe) -> R) -> R {
    let mut guard = engine.keyspace().stripes.acquire(StripeSet::one(index));
    look(guard.held().get(index))
}

fn number(db: usize) -> u32 {
    u32::try_from(db).unwrap_or(u32::MAX)
}

impl Sim {
    /// Compares everything with everything.
    pub(crate) fn check(&mut self, deep: bool) -> Result<(), String> {
        self.check_keys()?;
        self.check_waiters()?;
        self.check_watchers()?;
        self.check_subscriptions()?;
        self.check_nobody_waits_in_vain()?;
        self.check_replay()?;
        for index in 0..self.engine.keyspace().stripes.count() {
            if deep {
                with_stripe(&self.engine, index, Stripe::check_invariants);
            }
        }
        Ok(())
    }

    /// What the log says, played by another engine, is what there is.
    fn check_replay(&mut self) -> Result<(), String> {
        let Some(replay) = &mut self.replay else {
            return Ok(());
        };
        let log = self.engine.take_log();
        replay.play(&log, self.engine.settings())?;
        match replay.differs(self.engine.keyspace(), self.engine.now_ms()) {
            None => Ok(()),
            Some(difference) => Err(difference),
        }
    }

    fn each_stripe(&self, mut look: impl FnMut(&Stripe)) {
        for index in 0..self.engine.keyspace().stripes.count() {
            with_stripe(&self.engine, index, &mut look);
        }
    }

    fn ask(&mut self, text: &str) -> Result<Reply, String> {
        let words: Vec<_> = text
            .split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect();
        self.ask_words(&words)
    }

    fn ask_words(&mut self, words: &[Vec<u8>]) -> Result<Reply, String> {
        self.engine.send(self.control, words)?;
        self.engine.receive(self.control)
    }

    /// DBSIZE and KEYS against a walk: every key is counted, no dead one is seen.
    fn check_keys(&mut self) -> Result<(), String> {
        let now_ms = self.engine.now_ms();
        for db in 0..DATABASES {
            let (mut all, mut alive) = (0i64, BTreeSet::new());
            let mut fields: HashMap<Vec<u8>, BTreeSet<Vec<u8>>> = HashMap::new();
            self.each_stripe(|stripe| {
                let Some(db) = stripe.db(number(db)) else {
                    return;
                };
                for record in db.table.iter() {
                    all += 1;
                    if is_past(record, now_ms) {
                        continue;
                    }
                    alive.insert(record.key().to_vec());
                    if let ValueRef::Object(Object::Hash(hash)) = record.value() {
                        let living = fields.entry(record.key().to_vec()).or_default();
                        hash.each(0, |name, field| {
                            if field.deadline.is_none_or(|at| at > now_ms) {
                                living.insert(name.bytes(&mut [0; 20]).to_vec());
                            }
                        });
                    }
                }
            });
            self.ask(&format!("SELECT {db}"))?;
            let size = self.ask("DBSIZE")?;
            if size.integer() != Some(all) {
                return Err(format!("DBSIZE says {size:?}, there are {all} keys"));
            }
            if texts(&self.ask("KEYS *")?) != alive {
                return Err(format!("KEYS of database {db} are not those alive"));
            }
            for (key, living) in fields {
                let shown = self.ask_words(&[b"HKEYS".to_vec(), key.clone()])?;
                if texts(&shown) != living {
                    let key = String::from_utf8_lossy(&key);
                    return Err(format!("HKEYS {key}: {shown:?}, alive are {living:?}"));
                }
            }
        }
        Ok(())
    }

    /// After time has passed and what was due was reclaimed, no key or field that died before is
    /// kept, but what was set past its deadline within the present tick: that goes with the next.
    pub(crate) fn check_reclaimed(&mut self) -> Result<(), String> {
        if !self.random.percent(10) {
            return Ok(());
        }
        let now = self.engine.now_ms() >> RECLAIM_MS_LOG2;
        if self.late(now).is_some() {
            self.engine.advance(TICK_MS);
        }
        match self.late(now) {
            Some(key) => Err(format!(
                "{} is dead and was not reclaimed",
                String::from_utf8_lossy(&key)
            )),
            None => Ok(()),
        }
    }

    /// A key that died, or has a field that died, before `now`.
    fn late(&mut self, now: u64) -> Option<Vec<u8>> {
        let mut late = None;
        self.each_stripe(|stripe| {
            for db in (0..stripe.db_count()).filter_map(|db| stripe.db(db)) {
                let is_late = |at: u64| at >> RECLAIM_MS_LOG2 < now;
                let mut kept = db.table.iter();
                let found = kept.find(|record| {
                    let mut late = record.deadline().is_some_and(is_late);
                    if let ValueRef::Object(Object::Hash(hash)) = record.value() {
                        hash.each(0, |_, field| late |= field.deadline.is_some_and(is_late));
                    }
                    late
                });
                late = late.take().or(found.map(|record| record.key().to_vec()));
            }
        });
        late
    }

    fn sessions(&self) -> impl Iterator<Item = &Session> {
        let connections = self.clients.iter().map(|client| client.connection);
        connections.filter_map(|connection| self.engine.session(connection))
    }

    /// The lines hold those who wait, each under each of its keys, and nobody else.
    fn check_waiters(&self) -> Result<(), String> {
        let waiting: Vec<&Arc<Waiter>> =
            self.sessions().filter_map(|s| s.waiting.as_ref()).collect();
        let counter = &self.engine.keyspace().shared.blocked_clients;
        if counter.load(Ordering::Relaxed) != waiting.len() as u64 {
            return Err(format!(
                "blocked_clients is {counter:?}, {} wait",
                waiting.len()
            ));
        }
        let (mut places, mut strangers) = (0, 0);
        self.each_stripe(|stripe| {
            for ((db, _), waiter) in stripe.waiters.all() {
                places += 1;
                let is_known = waiter.state() == State::Waiting
                    && waiter.db == *db
                    && waiting.iter().any(|other| Arc::ptr_eq(other, waiter));
                strangers += usize::from(!is_known);
            }
        });
        // A command may name a key twice.
        let distinct = |waiter: &&Arc<Waiter>| waiter.keys.iter().collect::<BTreeSet<_>>().len();
        let wanted: usize = waiting.iter().map(distinct).sum();
        match (places, strangers) {
            (places, 0) if places == wanted => Ok(()),
            _ => Err(format!(
                "{places} places in lines, {wanted} wanted, {strangers} of nobody who waits"
            )),
        }
    }

    fn check_watchers(&self) -> Result<(), String> {
        let watched = self.sessions().flat_map(|session| &session.watches);
        let watched: BTreeSet<_> = watched.map(|watch| (watch.db, &watch.key)).collect();
        let mut kept = 0;
        self.each_stripe(|stripe| kept += stripe.watchers.len());
        match kept == watched.len() {
            true => Ok(()),
            false => Err(format!(
                "{kept} keys have watchers, {} are watched",
                watched.len()
            )),
        }
    }

    fn check_subscriptions(&self) -> Result<(), String> {
        let shared = &self.engine.keyspace().shared;
        let all = || {
            self.sessions()
                .filter_map(|session| session.subscriptions.as_ref())
        };
        let mut patterns = BTreeSet::new();
        let mut channels = [HashMap::new(), HashMap::new()];
        for subscriptions in all() {
            patterns.extend(&subscriptions.patterns);
            let kinds = [&subscriptions.channels, &subscriptions.shard_channels];
            for (counts, names) in channels.iter_mut().zip(kinds) {
                for name in names {
                    *counts.entry(name).or_insert(0) += 1;
                }
            }
        }
        if shared.pubsub.pattern_count() != patterns.len() {
            return Err("patterns are miscounted".to_owned());
        }
        for (kind, counts) in [ChannelKind::Global, ChannelKind::Shard]
            .into_iter()
            .zip(channels)
        {
            let count = |name: &[u8]| shared.pubsub.count(kind, shared.hash(name), name);
            if shared.pubsub.channel_count(kind) != counts.len()
                || counts
                    .iter()
                    .any(|(name, listeners)| count(name) != *listeners)
            {
                return Err(format!("{kind:?} channels are not those of the sessions"));
            }
        }
        Ok(())
    }

    /// Whoever waits has nothing to get: a second look finds nothing. Those who look again by
    /// themselves are left out, those with a key that is dead and not yet reclaimed, and those with
    /// one of another type, which they would be told of.
    fn check_nobody_waits_in_vain(&mut self) -> Result<(), String> {
        for client in 0..self.clients.len() {
            let connection = self.clients[client].connection;
            let session = self.engine.session(connection);
            let Some(waiter) = session.and_then(|session| session.waiting.clone()) else {
                continue;
            };
            if waiter.due_ms() != waiter.deadline_ms || self.has_odd_key(&waiter) {
                continue;
            }
            self.engine.look_again(connection);
            if waiter.state() != State::Waiting {
                let words: Vec<_> = waiter.args.view().iter().map(<[u8]>::to_vec).collect();
                let reply = self.engine.pending(connection)?;
                return Err(format!(
                    "client {client} waited though it could be served: {} in {} gets {reply:?}",
                    quoted(&words),
                    waiter.db
                ));
            }
        }
        Ok(())
    }

    fn has_odd_key(&self, waiter: &Waiter) -> bool {
        let now_ms = self.engine.now_ms();
        waiter.keys.iter().any(|(hash, key)| {
            let index = self.engine.keyspace().shared.stripe(*hash);
            with_stripe(&self.engine, index, |stripe| {
                let record = stripe
                    .db(waiter.db)
                    .and_then(|db| db.table.find(*hash, key));
                record.is_some_and(|record| {
                    is_past(record, now_ms) || Kind::of(record.value()) != waiter.kind
                })
            })
        })
    }

    /// Those who were served in this step were the first in line for what they got. Where several
    /// keys become ready together, who waits for several is served in the line of one of them with
    /// what another holds, as in Redis: that is left out.
    pub(crate) fn check_order(&mut self, events: &[Event]) -> Result<(), String> {
        let mut served = Vec::new();
        for (index, client) in self.clients.iter_mut().enumerate() {
            let session = self.engine.session(client.connection);
            let now = session.and_then(|session| session.waiting.clone());
            let before = client.wait.as_ref().map(|(waiter, _)| waiter);
            if before
                .zip(now.as_ref())
                .is_some_and(|(a, b)| Arc::ptr_eq(a, b))
            {
                continue;
            }
            let before = client.wait.take();
            client.wait = now.map(|waiter| (waiter, self.step));
            if let Some((waiter, since)) = before
                && waiter.state() == State::Claimed
            {
                self.summary.served += 1;
                served.push((index, waiter, since));
            }
        }
        let fills = ["SWAPDB", "BLMOVE", "BRPOPLPUSH", "BLMOVEM"];
        let fills = events.iter().any(|event| fills.contains(&event.word(0)));
        let is_simple = events.len() == served.len() + 1 && !fills;
        for (index, waiter, since) in served {
            if waiter.keys.len() > 1 && !is_simple {
                continue;
            }
            let name = &self.engine.keyspace().shared.table.entries()[usize::from(waiter.command)];
            let name = name.command.name;
            let reply = events
                .iter()
                .find(|event| event.client == index && event.word(0).eq_ignore_ascii_case(name));
            let Some(key) = reply.and_then(|event| source(event, &waiter)) else {
                continue;
            };
            let passed = self.clients.iter().position(|other| {
                other.wait.as_ref().is_some_and(|(other, earlier)| {
                    *earlier < since
                        && (other.db, other.kind) == (waiter.db, waiter.kind)
                        && other.keys.iter().any(|(_, name)| **name == key[..])
                })
            });
            if let Some(passed) = passed {
                let key = String::from_utf8_lossy(&key);
                return Err(format!("client {index} got {key} before client {passed}"));
            }
        }
        Ok(())
    }

    /// What a key holds, as far as only commands that watchers hear of change it.
    fn contents(&mut self, db: usize, key: &[u8]) -> Result<Vec<u8>, String> {
        self.ask(&format!("SELECT {db}"))?;
        let of_key = |name: &str| vec![name.as_bytes().to_vec(), key.to_vec()];
        let kind = self.ask_words(&of_key("TYPE"))?.text().unwrap_or_default();
        let name = match kind.as_str() {
            // Its fields may die meanwhile.
            "hash" => return Ok(b"hash".to_vec()),
            // Deliveries do not count as changes.
            "stream" => "XLEN",
            _ => "DUMP",
        };
        let reply = self.ask_words(&of_key(name))?;
        Ok(format!("{reply:?}").into_bytes())
    }

    pub(crate) fn watch(&mut self, client: usize) -> Result<(), String> {
        let session = self.engine.session(self.clients[client].connection);
        let db = session.map_or(0, |session| session.db as usize);
        let key = match self.random.percent(60) {
            true => self.random.one(&KEYS).to_owned(),
            false => format!(
                "w:{}:{}",
                self.random.one(&["l", "t", "z"]),
                self.random.below(5)
            ),
        };
        if !session_is_plain(&self.engine, self.clients[client].connection) {
            return Ok(());
        }
        let contents = self.contents(db, key.as_bytes())?;
        let watched = (db, key.clone().into_bytes(), contents);
        self.clients[client].watched.push(watched);
        self.send_text(client, &format!("WATCH {key}"))
    }

    /// How a key that the client watches has changed, if one has.
    pub(crate) fn watched_changed(&mut self, client: usize) -> Result<Option<String>, String> {
        for (db, key, before) in self.clients[client].watched.clone() {
            let now = self.contents(db, &key)?;
            if now != before {
                let [key, before, now] =
                    [key, before, now].map(|text| text.escape_ascii().to_string());
                return Ok(Some(format!("{key} of {db} was {before}, is {now}")));
            }
        }
        Ok(None)
    }

    /// All clients go: nothing may be left of them, and after FLUSHALL nothing at all.
    pub(crate) fn end(&mut self) -> Result<(), String> {
        self.summary.elements = self.ledger.fresh() as u64;
        for client in std::mem::take(&mut self.clients) {
            self.engine.close(client.connection)?;
        }
        self.check_waiters()?;
        self.check_watchers()?;
        self.check_subscriptions()?;
        self.ask("FLUSHALL")?;
        let mut left = 0;
        self.each_stripe(|stripe| {
            left += stripe.waiters.len() + stripe.watchers.len();
            for db in (0..stripe.db_count()).filter_map(|db| stripe.db(db)) {
                left += db.table.len() + db.timed();
            }
        });
        match left {
            0 => Ok(()),
            _ => Err(format!("{left} things are left at the end")),
        }
    }
}

/// Whether the client may send any command.
fn session_is_plain(engine: &InProcess, connection: usize) -> bool {
    let session = engine.session(connection);
    session.is_some_and(|session| !session.is_subscriber() && session.multi.is_none())
}

/// The key that a client which waited for a list or sorted set was served from.
fn source(event: &Event, waiter: &Waiter) -> Option<Vec<u8>> {
    if !matches!(waiter.kind, Kind::List | Kind::SortedSet) || event.reply.is_error() {
        return None;
    }
    if matches!(event.word(0), "BLMOVE" | "BRPOPLPUSH" | "BLMOVEM") {
        return waiter.keys.first().map(|(_, key)| key.to_vec());
    }
    event.reply.elements()?.first()?.bytes().map(<[u8]>::to_vec)
}

fn texts(reply: &Reply) -> BTreeSet<Vec<u8>> {
    let elements = reply.elements().unwrap_or_default();
    let texts = elements.iter().filter_map(Reply::bytes);
    texts.map(<[u8]>::to_vec).collect()
}
