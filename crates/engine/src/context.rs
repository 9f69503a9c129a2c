//! What a command handler sees: its client, the keys whose stripes are locked, the time, the host.
//!
//! Handlers read keys with [`Context::read`] and [`Context::edit`], which hide keys past their
//! deadline, and report each change with [`Context::changed`], which tells watchers, waiting
//! clients and listeners.

use command::Flags;
use resp::Args;
use structure::record::{Displaced, INLINE_BYTES_MAX, Record, RecordRef, Value, ValueRef};
use structure::stripes::Held;

use crate::CommandError;
use crate::access::{self, Access};
use crate::blocking::Block;
use crate::error::{SHOWN_BYTES_MAX, shown_up_to};
use crate::handler::Entry;
use crate::host::{ClientId, Host};
use crate::keyspace::{Deadline, Editing, Graveyard, Shared, Stripe};
use crate::log::Draft;
use crate::notify::Class;
use crate::object::{Kind, Object, OwnedValue, Terms};
use crate::pubsub::ChannelKind;
use crate::session::Session;
use crate::settings::{Order, Settings};
use crate::tracking::{self, Tracking};

mod within;

/// A command's surroundings.
pub struct Context<'a> {
    /// The client.
    pub session: &'a mut Session,
    /// The locked stripes.
    pub keyspace: Held<'a, Stripe>,
    /// What all threads share.
    pub shared: &'a Shared,
    /// The configuration.
    pub settings: &'a Settings,
    /// Whoever runs the engine.
    pub host: &'a mut dyn Host,
    /// The command that runs.
    pub entry: &'a Entry,
    /// The time: Unix milliseconds. It stands still while a command runs.
    pub now_ms: u64,
    /// What has a deadline at or before this is dead: the time, but nothing dies while a log is
    /// replayed.
    pub dead_ms: u64,
    /// Whether the command may wait: not inside EXEC or a script.
    pub may_block: bool,
    /// What the command leaves for the executor.
    pub effects: &'a mut Effects,
    /// The hash of one of the command's words, if the caller had to compute it anyway.
    pub known_hash: Option<(*const u8, u64)>,
}

/// What a command leaves behind, beside its reply.
#[derive(Default)]
pub struct Effects {
    /// How many changes it made.
    pub changes: u64,
    /// Keys that may have become ready for clients that wait: database, hash, key.
    pub ready: Vec<(u32, u64, Box<[u8]>)>,
    /// Changes that clients are to hear of who track in broadcast mode.
    pub broadcast: tracking::Changes,
    /// Values to be freed.
    pub graveyard: Graveyard,
    /// Set where the command wants to wait.
    pub block: Option<Block>,
    /// When a command that wants to wait is to be run again, should nothing else wake it.
    pub retry_ms: Option<u64>,
    /// How many of the changes were not the command's own: what it found dead.
    pub expiries: u64,
    /// What goes to the log, while somebody reads it.
    pub draft: Draft,
    /// Whether the draft has what goes to the log in place of the command's own words.
    pub is_rewritten: bool,
    /// Whether memory is past its limit and nothing can be evicted.
    pub is_full: bool,
    /// Whether the last snapshot failed and writes must wait until one succeeds.
    pub is_unsaved: bool,
    /// Why writes must wait until the log can be written again.
    pub unlogged: Option<CommandError>,
}

impl<'a> Context<'a> {
    /// The hash of a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        match self.known_hash {
            Some((at, hash)) if at == key.as_ptr() => hash,
            _ => self.shared.hash(key),
        }
    }

    /// What collections must be told to be changed or searched.
    #[inline]
    pub fn terms(&self) -> Terms<'a> {
        Terms {
            seed: &self.shared.seed,
            settings: self.settings,
            now_ms: self.dead_ms,
        }
    }

    /// The stripe of a hash.
    #[inline]
    pub fn stripe(&mut self, hash: u64) -> &mut Stripe {
        self.keyspace.get_mut(self.shared.stripe(hash))
    }

    /// The access bits of a record that is used now: seconds of the last use, or with an LFU policy
    /// the logarithmic counter and the minute that it was aged last.
    #[inline]
    pub fn access(&mut self) -> Access {
        if self.session.no_touch {
            return Access::Leave;
        }
        if !self.settings.lfu {
            return Access::Last(access::seconds(self.now_ms));
        }
        Access::Frequency {
            minute: access::minute(self.now_ms),
            draw: self.host.random(),
            log_factor: self.settings.lfu_log_factor,
            decay_minutes: self.settings.lfu_decay_minutes,
        }
    }

    /// The record of a key that is alive; counts a hit or a miss. For commands that read.
    #[inline]
    pub fn read(&mut self, key: &[u8]) -> Option<RecordRef<'_, Object>> {
        let (db, hash) = (self.session.db, self.hash(key));
        let index = self.shared.stripe(hash);
        let table = self.keyspace.get(index).db(db);
        let Some((is_timed, at)) =
            table.and_then(|db| Some((db.timed() > 0, db.table.locate(hash, key)?)))
        else {
            self.miss(hash, key);
            return None;
        };
        if is_timed && self.remove_if_dead(hash, key) {
            self.miss(hash, key);
            return None;
        }
        let access = if self.settings.eviction.order() == Some(Order::LastChange) {
            Access::Leave
        } else {
            self.access()
        };
        let stripe = self.keyspace.get_mut(index);
        stripe.stats.hits += 1;
        let table = &mut stripe.db_mut(db)?.table;
        table.touch(at, |old| access.apply(old));
        Some(table.view(at))
    }

    /// Tells those who listen for it that a key which a command is about to change is not there, as
    /// where the command reads first.
    #[inline]
    pub fn tell_if_missing(&mut self, key: &[u8]) {
        if self.settings.notify & Class::MISS.0 != 0 && !self.exists(key) {
            self.notify(Class::MISS, "keymiss", key);
        }
    }

    #[cold]
    fn miss(&mut self, hash: u64, key: &[u8]) {
        self.stripe(hash).stats.misses += 1;
        self.notify(Class::MISS, "keymiss", key);
    }

    /// The record of a key that is alive; counts a hit or a miss, but not as use of the key. For
    /// commands that ask about a key rather than for its value.
    pub fn look(&mut self, key: &[u8]) -> Option<RecordRef<'_, Object>> {
        let hash = self.hash(key);
        if !self.exists(key) {
            self.miss(hash, key);
            return None;
        }
        self.stripe(hash).stats.hits += 1;
        self.peek(key)
    }

    /// As [`Context::look`], but listeners do not hear of a miss.
    pub fn look_quietly(&mut self, key: &[u8]) -> Option<RecordRef<'_, Object>> {
        let (hash, exists) = (self.hash(key), self.exists(key));
        let stats = &mut self.stripe(hash).stats;
        stats.hits += u64::from(exists);
        stats.misses += u64::from(!exists);
        self.peek(key)
    }

    /// The record of a key that is alive, to be looked at without counting as use: no hit, no
    /// miss, no access time.
    pub fn peek(&mut self, key: &[u8]) -> Option<RecordRef<'_, Object>> {
        let (db, hash) = (self.session.db, self.hash(key));
        self.remove_if_dead(hash, key);
        self.stripe(hash).db(db)?.table.find(hash, key)
    }

    /// Whether a key is there and alive.
    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.peek(key).is_some()
    }

    /// The type of a key that is alive.
    pub fn kind(&mut self, key: &[u8]) -> Option<Kind> {
        Some(match self.peek(key)?.value() {
            ValueRef::Object(object) => object.kind(),
            ValueRef::Bytes(_) | ValueRef::Int(_) => Kind::String,
        })
    }

    /// The record of a key that is alive, to be changed.
    #[inline]
    pub fn edit(&mut self, key: &[u8]) -> Option<Editing<'_>> {
        let (db, hash) = (self.session.db, self.hash(key));
        if self.remove_if_dead(hash, key) {
            return None;
        }
        let access = self.access();
        let mut record = self.stripe(hash).db_mut(db)?.table.find_mut(hash, key)?;
        let old = record.access();
        record.set_access(access.apply(old));
        Some(record)
    }

    /// The object of a key, to be changed; `None` where there is no such key.
    ///
    /// # Errors
    /// [`CommandError::WrongType`] where it is a string.
    pub fn edit_object(&mut self, key: &[u8]) -> Result<Option<&mut Object>, CommandError> {
        match self.edit(key) {
            None => Ok(None),
            Some(record) => record
                .into_object()
                .map(Some)
                .ok_or(CommandError::WrongType),
        }
    }

    /// The object of a key, to be read; `None` where there is no such key.
    ///
    /// # Errors
    /// [`CommandError::WrongType`] where it is a string.
    pub fn read_object(&mut self, key: &[u8]) -> Result<Option<&Object>, CommandError> {
        match self.read(key).map(RecordRef::value) {
            None => Ok(None),
            Some(ValueRef::Object(object)) => Ok(Some(object)),
            Some(_) => Err(CommandError::WrongType),
        }
    }

    /// The object of a key whose stripe is held, through a shared reference: several can be read
    /// together. Counts nothing and hides, but does not remove, a dead key.
    ///
    /// # Errors
    /// [`CommandError::WrongType`] where it is a string.
    pub fn view_object(&self, key: &[u8]) -> Result<Option<&Object>, CommandError> {
        let hash = self.hash(key);
        let stripe = self.keyspace.get(self.shared.stripe(hash));
        let record = stripe
            .db(self.session.db)
            .and_then(|db| db.table.find(hash, key));
        match record {
            None => Ok(None),
            Some(record) if crate::keyspace::is_past(record, self.dead_ms) => Ok(None),
            Some(record) => match record.value() {
                ValueRef::Object(object) => Ok(Some(object)),
                _ => Err(CommandError::WrongType),
            },
        }
    }

    /// Sets a key, new or not: what it held is gone. Whoever listens hears that the key is new, or
    /// that it was overwritten; the change itself is not told: [`Context::changed`] follows.
    /// Returns whether the key was there.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: Value<'_, Object>, deadline: Deadline) -> bool {
        let (db, hash, now_ms) = (self.session.db, self.hash(key), self.now_ms);
        self.remove_if_dead(hash, key);
        let access = self.access();
        let new_kind = match &value {
            Value::Object(object) => {
                if object.has_field_deadlines() {
                    let known = &self.shared.field_deadlines;
                    known.store(true, std::sync::atomic::Ordering::Relaxed);
                }
                object.kind()
            }
            _ => Kind::String,
        };
        let stripe = self.keyspace.get_mut(self.shared.stripe(hash));
        let (existed, displaced) = stripe
            .db_or_new(db)
            .put(hash, key, value, deadline, now_ms, access);
        if !existed {
            self.added(hash, key);
            return false;
        }
        let old_kind = match &displaced {
            Displaced::Object(object) => object.kind(),
            _ => Kind::String,
        };
        self.effects.graveyard.bury(displaced);
        if old_kind != new_kind {
            self.gone(key);
        }
        if self.settings.notify & (Class::OVERWRITTEN.0 | Class::TYPE_CHANGED.0) != 0 {
            self.notify(Class::OVERWRITTEN, "overwritten", key);
            if old_kind != new_kind {
                self.notify(Class::TYPE_CHANGED, "type_changed", key);
            }
        }
        true
    }

    /// Sets a key to a new object.
    pub fn put_object(&mut self, key: &[u8], object: Object) -> bool {
        self.put(key, Value::Object(Box::new(object)), Deadline::Clear)
    }

    /// Sets a key to a value that was owned. Else as [`Context::put`].
    pub fn put_owned(&mut self, key: &[u8], value: OwnedValue, deadline: Deadline) -> bool {
        match value {
            OwnedValue::Bytes(bytes) if bytes.len() <= INLINE_BYTES_MAX => {
                self.put(key, Value::Bytes(&bytes), deadline)
            }
            value => self.put(key, value.into_value(), deadline),
        }
    }

    /// A key came into being: its access bits begin, and listeners hear of it.
    fn added(&mut self, hash: u64, key: &[u8]) {
        let fresh = if self.settings.lfu {
            Access::fresh_frequency(access::minute(self.now_ms))
        } else {
            access::seconds(self.now_ms)
        };
        let db = self.session.db;
        if let Some(db) = self.stripe(hash).db_mut(db)
            && let Some(at) = db.table.locate(hash, key)
        {
            db.table.touch(at, |_| fresh);
        }
        self.notify(Class::NEW, "new", key);
    }

    /// Adds a record under a key that is not there, in the session's database.
    pub fn put_record(&mut self, key: &[u8], record: Record<Object>) {
        let (db, hash, now_ms) = (self.session.db, self.hash(key), self.now_ms);
        let stripe = self.stripe(hash);
        stripe.db_or_new(db).insert_record(hash, record, now_ms);
    }

    /// Takes a living key out; says nothing to anybody.
    pub fn take(&mut self, key: &[u8]) -> Option<Record<Object>> {
        let (db, hash) = (self.session.db, self.hash(key));
        if self.remove_if_dead(hash, key) {
            return None;
        }
        self.stripe(hash).db_mut(db)?.remove(hash, key)
    }

    /// Removes a living key: whether it was there. The caller reports the change.
    pub fn remove(&mut self, key: &[u8]) -> bool {
        let Some(record) = self.take(key) else {
            return false;
        };
        self.effects.graveyard.bury(record.into_displaced());
        self.gone(key);
        true
    }

    /// Removes a key that a result without elements takes the place of: even one past its deadline
    /// was there, as in Redis. Whether it was.
    pub fn displace(&mut self, key: &[u8]) -> bool {
        let (db, hash) = (self.session.db, self.hash(key));
        let removed = self
            .stripe(hash)
            .db_mut(db)
            .and_then(|db| db.remove(hash, key));
        let Some(record) = removed else {
            return false;
        };
        self.effects.graveyard.bury(record.into_displaced());
        self.gone(key);
        true
    }

    /// Removes a key whose object became empty, and says so: `del`.
    pub fn remove_empty(&mut self, key: &[u8]) {
        if self.remove(key) {
            self.notify(Class::GENERIC, "del", key);
        }
    }

    /// Sets or clears a living key's deadline. False where there is no such key.
    pub fn set_deadline(&mut self, key: &[u8], deadline: Option<u64>) -> bool {
        let (db, hash, now_ms) = (self.session.db, self.hash(key), self.now_ms);
        if self.remove_if_dead(hash, key) {
            return false;
        }
        let stripe = self.stripe(hash);
        stripe
            .db_mut(db)
            .is_some_and(|db| db.set_deadline(hash, key, deadline, now_ms))
    }

    /// Reports one change of a key: to watchers, and as an event to listeners.
    #[inline]
    pub fn changed(&mut self, key: &[u8], class: Class, event: &str) {
        self.touch(key);
        self.notify(class, event, key);
    }

    /// Reports one change of a key to watchers alone.
    #[inline]
    pub fn touch(&mut self, key: &[u8]) {
        let (db, hash) = (self.session.db, self.hash(key));
        let stripe = self.stripe(hash);
        stripe.stats.changes += 1;
        if !stripe.watchers.is_empty() {
            stripe.watchers.touch(db, key);
        }
        self.effects.changes += 1;
        if self.shared.tracking.is_on() {
            self.invalidate(hash, key, Some(self.session.id));
        }
    }

    /// Counts a change as one of so many elements: `save` points wait for elements.
    #[inline]
    pub fn of_elements(&mut self, key: &[u8], count: usize) {
        if count > 1 {
            let hash = self.hash(key);
            self.stripe(hash).stats.changes += count as u64 - 1;
        }
    }

    /// Tells those who cache a key that it has changed, or is about to.
    #[cold]
    fn invalidate(&mut self, hash: u64, key: &[u8], by: Option<ClientId>) {
        let tracking = &self.shared.tracking;
        tracking.changed(hash, key, by, self.host);
        if tracking.broadcasts() {
            self.effects.broadcast.insert(key.into(), by);
        }
    }

    /// Reports a change of what no key has: all stripes are held.
    pub fn changed_aside(&mut self) {
        self.keyspace.get_mut(0).stats.changes += 1;
        self.effects.changes += 1;
    }

    /// Reports a change that may be one of any key.
    pub fn changed_all(&mut self) {
        self.effects.changes += 1;
        if self.shared.tracking.is_on() {
            self.shared.tracking.changed_all(self.host);
        }
    }

    /// Notes that the client caches what the current command reads.
    #[cold]
    pub fn remember_reads(&mut self, entry: &Entry, args: Args<'_>) {
        let remembers = |tracking: &Tracking| tracking.remembers();
        if !entry.flags.has(Flags::READONLY)
            || entry.flags.has(Flags::SCRIPT_RUNNER)
            || !self.session.tracking.as_deref().is_some_and(remembers)
        {
            return;
        }
        let (shared, client) = (self.shared, self.session.id);
        let (keys_max, host) = (self.settings.tracking_keys_max, &mut *self.host);
        // A command whose words do not say where its keys are has failed.
        let _ = entry.each_key_index(&args, &mut |index| {
            let key = args.at(index);
            let hash = shared.hash(key);
            shared.tracking.remember(hash, key, client, keys_max, host);
        });
    }

    /// Reports to watchers that a key was taken out past its deadline.
    fn touch_expired(&mut self, key: &[u8]) {
        let (db, hash) = (self.session.db, self.hash(key));
        let stripe = self.stripe(hash);
        stripe.stats.changes += 1;
        stripe.watchers.touch_expired(db, key);
        self.effects.changes += 1;
        if self.shared.tracking.is_on() {
            self.invalidate(hash, key, None);
        }
    }

    /// Counts one change of a key that watchers do not hear of, such as a delivery to a consumer.
    #[inline]
    pub fn changed_unwatched(&mut self, key: &[u8]) {
        let hash = self.hash(key);
        self.stripe(hash).stats.changes += 1;
        self.effects.changes += 1;
    }

    /// Says that a key has gained what clients may wait for.
    #[inline]
    pub fn ready(&mut self, key: &[u8]) {
        let (db, hash) = (self.session.db, self.hash(key));
        if !self.stripe(hash).waiters.is_empty() {
            self.effects.ready.push((db, hash, key.into()));
        }
    }

    /// Says that a key went away or changed its type, to those who wait on that too.
    #[inline]
    pub fn gone(&mut self, key: &[u8]) {
        self.ready(key);
    }

    /// Publishes a keyspace event where somebody configured to hear it.
    #[inline]
    pub fn notify(&mut self, class: Class, event: &str, key: &[u8]) {
        if self.settings.notify & class.0 != 0 {
            self.publish_event(event, key);
        }
    }

    #[cold]
    fn publish_event(&mut self, event: &str, key: &[u8]) {
        let db = self.session.db;
        if self.settings.notify & Class::KEYSPACE.0 != 0 {
            let channel = [format!("__keyspace@{db}__:").as_bytes(), key].concat();
            self.publish(ChannelKind::Global, &channel, event.as_bytes());
        }
        if self.settings.notify & Class::KEYEVENT.0 != 0 {
            let channel = format!("__keyevent@{db}__:{event}");
            self.publish(ChannelKind::Global, channel.as_bytes(), key);
        }
    }

    /// Whether somebody configured to hear of the fields of hashes, so that a list of them is worth
    /// making.
    #[inline]
    pub fn hears_fields(&self) -> bool {
        let notify = self.settings.notify;
        notify & Class::HASH.0 != 0 && notify & Class::SUBKEYS.0 != 0
    }

    /// Publishes an event of a hash that says which fields it is about; none is no event.
    #[inline]
    pub fn notify_fields<'f>(
        &mut self,
        event: &str,
        key: &[u8],
        fields: impl IntoIterator<Item = &'f [u8]>,
    ) {
        if self.hears_fields() {
            let fields: Vec<&[u8]> = fields.into_iter().collect();
            if !fields.is_empty() {
                self.publish_fields(event, key, &fields);
            }
        }
    }

    #[cold]
    fn publish_fields(&mut self, event: &str, key: &[u8], fields: &[&[u8]]) {
        let (db, classes) = (self.session.db, self.settings.notify);
        let hears = |class: Class| classes & class.0 != 0;
        let with_len = |text: &[u8]| [format!("{}:", text.len()).as_bytes(), text].concat();
        let list: Vec<_> = fields.iter().map(|field| with_len(field)).collect();
        let list = list.join(&b","[..]);
        if hears(Class::SUBKEYSPACE) {
            let channel = [format!("__subkeyspace@{db}__:").as_bytes(), key].concat();
            let message = [event.as_bytes(), b"|", &list].concat();
            self.publish(ChannelKind::Global, &channel, &message);
        }
        if hears(Class::SUBKEYEVENT) {
            let channel = format!("__subkeyevent@{db}__:{event}");
            let message = [&with_len(key)[..], b"|", &list].concat();
            self.publish(ChannelKind::Global, channel.as_bytes(), &message);
        }
        // A key with a new line would make the channel ambiguous: Redis leaves it out.
        if hears(Class::SUBKEYSPACEITEM) && !key.contains(&b'\n') {
            let prefix = [format!("__subkeyspaceitem@{db}__:").as_bytes(), key, b"\n"].concat();
            for field in fields {
                let channel = [&prefix[..], field].concat();
                self.publish(ChannelKind::Global, &channel, event.as_bytes());
            }
        }
        if hears(Class::SUBKEYSPACEEVENT) {
            let prefix = format!("__subkeyspaceevent@{db}__:{event}|");
            let channel = [prefix.as_bytes(), key].concat();
            self.publish(ChannelKind::Global, &channel, &list);
        }
    }

    /// Publishes a message; returns how many receive it.
    pub fn publish(&mut self, kind: ChannelKind, channel: &[u8], message: &[u8]) -> usize {
        let hash = self.shared.hash(channel);
        self.shared
            .pubsub
            .publish(kind, hash, channel, message, self.host)
    }

    /// Removes a key that is past its deadline, with all that follows. True where it was.
    #[inline]
    fn remove_if_dead(&mut self, hash: u64, key: &[u8]) -> bool {
        let (db, dead_ms) = (self.session.db, self.dead_ms);
        let stripe = self.keyspace.get_mut(self.shared.stripe(hash));
        if !stripe
            .db(db)
            .is_some_and(|db| db.is_dead(hash, key, dead_ms))
        {
            return false;
        }
        self.expire(hash, key);
        true
    }

    /// Removes a dead key of the session's database.
    #[cold]
    pub fn expire(&mut self, hash: u64, key: &[u8]) {
        let db = self.session.db;
        let stripe = self.stripe(hash);
        if let Some(record) = stripe.db_mut(db).and_then(|db| db.remove(hash, key)) {
            self.expired(hash, record, false);
        }
    }

    /// All that follows when a dead key of the session's database was taken out. `active` where the
    /// wheel found it.
    pub fn expired(&mut self, hash: u64, record: Record<Object>, active: bool) {
        let stats = &mut self.stripe(hash).stats;
        stats.expired += 1;
        stats.expired_active += u64::from(active);
        let key = record.key();
        self.gone(key);
        self.touch_expired(key);
        self.log_loss(&[b"DEL", key]);
        self.notify(Class::EXPIRED, "expired", key);
        self.effects.graveyard.bury(record.into_displaced());
    }

    /// Fields of the hash under a key may have got deadlines, or lost them.
    pub fn fields_changed(&mut self, key: &[u8]) {
        let (db, hash, now_ms) = (self.session.db, self.hash(key), self.now_ms);
        if let Some(db) = self.stripe(hash).db_mut(db) {
            db.fields_changed(hash, key, now_ms);
        }
    }

    /// Fields of the hash under a key got deadlines.
    pub fn fields_timed(&mut self, key: &[u8]) {
        let known = &self.shared.field_deadlines;
        known.store(true, std::sync::atomic::Ordering::Relaxed);
        self.fields_changed(key);
    }

    /// Removes about `limit` dead fields of the hash under a key, with all that follows; the key
    /// itself where none is left. `active` where nobody asked. Returns how many.
    #[cold]
    pub fn expire_fields(&mut self, key: &[u8], limit: usize, active: bool) -> usize {
        let (db, hash, now_ms) = (self.session.db, self.hash(key), self.now_ms);
        let (listening, mut gone) = (self.hears_fields() || self.is_logged(), Vec::new());
        let stripe = self.stripe(hash);
        let table = stripe.db_mut(db).map(|db| &mut db.table);
        let object = table.and_then(|table| table.find_mut(hash, key)?.into_object());
        let Some(Object::Hash(fields)) = object else {
            return 0;
        };
        let removed = fields.expire_due(now_ms, limit, |field| {
            if listening {
                gone.push(field.to_vec());
            }
        });
        let is_empty = fields.is_empty();
        let stats = &mut stripe.stats;
        stats.expired_fields += removed as u64;
        stats.expired_fields_active += if active { removed as u64 } else { 0 };
        if let Some(db) = stripe.db_mut(db) {
            if active {
                db.hash_visited(hash, key, now_ms);
            } else {
                db.fields_changed(hash, key, now_ms);
            }
        }
        if removed > 0 {
            self.touch(key);
            let words = [b"HDEL", key].into_iter();
            let words: Vec<_> = words.chain(gone.iter().map(Vec::as_slice)).collect();
            self.log_loss(&words);
            self.notify(Class::HASH, "hexpired", key);
            self.notify_fields("hexpired", key, gone.iter().map(Vec::as_slice));
        }
        if is_empty {
            self.remove_empty(key);
        }
        removed
    }

    /// Removes one field of the hash under a key if its time is up, with all that follows.
    pub fn expire_field(&mut self, key: &[u8], field: &[u8]) {
        let (terms, hash) = (self.terms(), self.hash(key));
        // With no time to compare with, nothing is hidden.
        let all = Terms { now_ms: 0, ..terms };
        let db = self.session.db;
        let Some(db) = self.stripe(hash).db_mut(db) else {
            return;
        };
        let object = db.table.find_mut(hash, key);
        let Some(Object::Hash(fields)) = object.and_then(|record| record.into_object()) else {
            return;
        };
        let deadline = fields.get(all, field).and_then(|found| found.deadline);
        if deadline.is_none_or(|at| at > terms.now_ms) {
            return;
        }
        fields.remove(all, field);
        let is_empty = fields.is_empty();
        self.fields_changed(key);
        self.stripe(hash).stats.expired_fields += 1;
        self.touch(key);
        self.log_loss(&[b"HDEL", key, field]);
        self.notify(Class::HASH, "hexpired", key);
        self.notify_fields("hexpired", key, [field]);
        if is_empty {
            self.remove_empty(key);
        }
    }

    /// Removes a key of the session's database to make room. False where it is not there.
    #[cold]
    pub fn evict(&mut self, hash: u64, key: &[u8]) -> bool {
        let db = self.session.db;
        let stripe = self.stripe(hash);
        let Some(record) = stripe.db_mut(db).and_then(|db| db.remove(hash, key)) else {
            return false;
        };
        stripe.stats.evicted += 1;
        self.effects.graveyard.bury(record.into_displaced());
        self.gone(key);
        self.touch(key);
        self.log_loss(&[b"DEL", key]);
        self.notify(Class::EVICTED, "evicted", key);
        true
    }

    /// Asks to wait. Inside EXEC or a script the caller must answer at once instead: see
    /// [`Context::may_block`].
    pub fn block(&mut self, block: Block) {
        debug_assert!(self.may_block, "a transaction cannot wait");
        self.effects.block = Some(block);
    }

    /// Where the command waits: has it run again at a time, as what it waits for may come by time
    /// alone.
    pub fn retry_at(&mut self, retry_ms: u64) {
        self.effects.retry_ms = Some(retry_ms);
    }

    /// Whether anybody reads the log, so that words for [`Context::rewrite`] are worth making.
    #[inline]
    pub fn is_logged(&self) -> bool {
        let logged = &self.shared.log_is_read;
        logged.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// What the log gets in place of the command's own words. Each call adds a command; what is
    /// said here counts as a change.
    pub fn rewrite(&mut self, words: &[&[u8]]) {
        if self.is_logged() {
            let effects = &mut *self.effects;
            effects.draft.add(self.session.db, words.iter().copied());
            effects.is_rewritten = true;
            effects.changes += 1;
        }
    }

    /// Whether a log is replayed.
    pub fn is_replaying(&self) -> bool {
        self.dead_ms < self.now_ms
    }

    /// A change that is not the command's own, which it counted just now: what was found dead goes
    /// to the log before the command.
    fn log_loss(&mut self, words: &[&[u8]]) {
        if self.is_logged() {
            let effects = &mut *self.effects;
            effects.draft.add(self.session.db, words.iter().copied());
            effects.expiries += 1;
        }
    }

    /// The names of the command as errors show it: `xack`, `client|kill`.
    pub fn command_name(&self) -> &'a str {
        &self.entry.full_name
    }

    /// The error for a wrong number of words.
    pub fn arity_error(&self) -> CommandError {
        CommandError::Arity(self.entry.full_name.clone())
    }

    /// Frees a value later, off the locks.
    pub fn bury(&mut self, displaced: Displaced<Object>) {
        self.effects.graveyard.bury(displaced);
    }

    /// The words of a subcommand's HELP as an array of lines.
    pub fn help(&self, out: &mut resp::Writer<'_>, lines: &[&str]) {
        out.array(lines.len());
        lines.iter().for_each(|line| out.simple(line));
    }

    /// The error for a subcommand with words that it does not take.
    pub fn subcommand_error(&self, args: Args<'_>) -> CommandError {
        let shown = shown_up_to(args.at(1), SHOWN_BYTES_MAX);
        let container = self.entry.full_name.split('|').next().unwrap_or_default();
        CommandError::err(format!(
            "unknown subcommand or wrong number of arguments for '{shown}'. Try {} HELP.",
            container.to_uppercase()
        ))
    }

    /// The error for a subcommand that is none.
    pub fn unknown_subcommand(&self, args: Args<'_>) -> CommandError {
        let shown = shown_up_to(args.at(1), SHOWN_BYTES_MAX);
        let name = self.entry.command.name.to_uppercase();
        CommandError::err(format!("unknown subcommand '{shown}'. Try {name} HELP."))
    }
}
