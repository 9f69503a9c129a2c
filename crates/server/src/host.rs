//! The engine's surroundings on one thread: delivery to clients, randomness, ticks.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::acl::{Denial, Place, Reason};
use engine::host::{ClientId, Durable, Host};
use engine::pubsub::Push;
use engine::session::Session;
use engine::{Context, Entry};
use resp::Args;

use crate::config::Config;
use crate::hotkeys::Ran;
use crate::inbox::Message;
use crate::shared::{Client, Shared, SlowEntry};

/// What one thread's commands see of the server.
pub struct ThreadHost {
    /// The thread's number.
    pub thread: u16,
    /// What all threads share.
    pub shared: Arc<Shared>,
    /// The configuration as this thread knows it.
    pub config: Arc<Config>,
    /// The client whose command runs.
    pub client: Option<Arc<Client>>,
    /// Messages for clients of this thread.
    pub local: Vec<Message>,
    /// Requests of clients of this thread that were answered while a script ran and are still to be
    /// run, before anything else of theirs.
    pub said_early: Vec<(u64, Vec<u8>)>,
    /// From how many ticks on a command goes to the slow log.
    pub slow_ticks: u64,
    /// Unix microseconds at the start of the batch.
    pub now_us: u64,
    random: [u64; 2],
}

impl ThreadHost {
    /// The host of thread `thread`; `seed` begins its random numbers.
    pub fn new(thread: u16, shared: Arc<Shared>, seed: u64) -> Self {
        let config = shared.config();
        Self {
            thread,
            shared,
            config,
            client: None,
            local: Vec::new(),
            said_early: Vec::new(),
            slow_ticks: u64::MAX,
            now_us: 0,
            random: [seed | 1, seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15],
        }
    }

    /// Sends a message to a client of any thread.
    pub fn send(&mut self, to: ClientId, message: Message) {
        if to.thread == self.thread {
            self.local.push(message);
        } else {
            self.shared.tell(to, message);
        }
    }

    /// The host behind a command's context.
    ///
    /// # Panics
    /// Never in the server: its contexts have this host.
    pub fn of<'c>(cx: &'c mut Context<'_>) -> &'c mut Self {
        Self::find(cx).expect("the server runs its commands with its own host")
    }

    /// The host behind a context that may be of a log that is played: then there is none.
    pub fn find<'c>(cx: &'c mut Context<'_>) -> Option<&'c mut Self> {
        cx.host.as_any().downcast_mut()
    }
}

impl Host for ThreadHost {
    fn push(&mut self, to: ClientId, message: &Arc<Push>) {
        self.send(to, Message::Push(to.number, message.clone()));
    }

    fn invalidate(&mut self, to: ClientId, about: ClientId, push: &Arc<Push>) {
        let message = Message::Invalidate {
            to: to.number,
            about,
            push: push.clone(),
        };
        self.send(to, message);
    }

    fn serve(&mut self, to: ClientId, reply: &[u8]) {
        self.send(to, Message::Served(to.number, reply.to_vec()));
    }

    /// xorshift128+: fast, and good enough for choosing members; nothing secret hangs on it.
    fn random(&mut self) -> u64 {
        let [mut a, b] = self.random;
        a ^= a << 23;
        a ^= a >> 18;
        a ^= b ^ (b >> 5);
        self.random = [b, a];
        a.wrapping_add(b)
    }

    #[inline]
    fn ticks(&mut self) -> u64 {
        structure::ticks::now()
    }

    fn ticks_per_us(&self) -> f64 {
        self.shared.ticks_per_us()
    }

    fn ran_in_transaction(
        &mut self,
        entry: &Entry,
        args: Args<'_>,
        ticks: u64,
        reply_bytes: usize,
    ) {
        if ticks >= self.slow_ticks {
            self.note_hotkeys(entry, args, ticks, reply_bytes);
            self.note_slow(entry, args, ticks);
        }
    }

    fn monitor(&mut self, session: &Session, entry: &Entry, args: Args<'_>) {
        let line = crate::commands::monitor_line(self, session, entry, args);
        for inbox in &self.shared.inboxes {
            inbox.send(Message::Monitor(line.clone()));
        }
    }

    #[inline]
    fn is_monitored(&self) -> bool {
        self.shared.monitors.load(Ordering::Relaxed) > 0
    }

    fn denied(
        &mut self,
        session: &Session,
        entry: &Entry,
        args: Args<'_>,
        denial: Denial,
        place: Place,
    ) {
        let reason = match denial.reason {
            Reason::Command => "command",
            Reason::Key => "key",
            Reason::Channel => "channel",
            Reason::Database => "database",
        };
        let (object, user) = (denial.object(entry, args), session.user().name());
        self.note_refusal(session, (reason, place), object, user);
    }

    fn used_bytes(&mut self) -> u64 {
        crate::alloc::used_bytes() as u64
    }

    fn durable(&mut self) -> Durable {
        match self.config.appendonly {
            true => self.shared.log.durable(),
            false => Durable::NoLog,
        }
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl ThreadHost {
    /// Looks at what may have changed since the last batch.
    pub fn refresh(&mut self, now_us: u64) {
        self.now_us = now_us;
    }

    /// Puts what a client was refused on the log of refusals, and counts it.
    #[cold]
    pub fn note_refusal(
        &mut self,
        session: &Session,
        (reason, place): (&'static str, Place),
        object: &[u8],
        user: &[u8],
    ) {
        let now_ms = self.now_us / 1000;
        let own = self.client.as_ref();
        let client = match own.filter(|client| client.id == session.id) {
            Some(client) => {
                client.show(session);
                client.active_ms.store(now_ms, Ordering::Relaxed);
                Some(client.clone())
            }
            // Another thread or another client serves it.
            None => self.shared.clients.lock().get(&session.id.number).cloned(),
        };
        let client = client.map(|client| {
            let mut line = crate::commands::client_line(&client, now_ms, &self.shared.keys);
            line.truncate(line.trim_ascii_end().len());
            line
        });
        let len_max = usize::try_from(self.config.acllog_max_len).unwrap_or(usize::MAX);
        self.shared.users.log.lock().note(
            (reason, place.name()),
            object,
            user,
            client.unwrap_or_default(),
            now_ms,
            len_max,
        );
    }

    /// Tells a session of HOTKEYS, where one runs, of a command.
    #[cold]
    pub fn note_hotkeys(&mut self, entry: &Entry, args: Args<'_>, ticks: u64, reply_bytes: usize) {
        if !self.shared.hotkeys.is_active() {
            return;
        }
        let ran = Ran {
            entry,
            args,
            ticks,
            reply_bytes,
        };
        let (shared, thread) = (self.shared.clone(), usize::from(self.thread));
        shared.hotkeys.note(thread, &ran, || self.random());
    }

    /// Puts a command on the slow log, and tells the latency monitor, as far as it is slow enough.
    #[cold]
    pub fn note_slow(&mut self, entry: &Entry, args: Args<'_>, ticks: u64) {
        let config = &self.config;
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
        #[allow(clippy::cast_sign_loss)] // Microseconds of one command.
        let took_us = (ticks as f64 / self.shared.ticks_per_us()) as u64;
        let monitored_ms = config.latency_monitor_threshold_ms;
        if monitored_ms > 0 && took_us >= monitored_ms * 1000 {
            let is_fast = entry.flags.has(command::Flags::FAST);
            let event = if is_fast { "fast-command" } else { "command" };
            let mut latency = self.shared.latency.lock();
            latency.note(event, self.now_us / 1_000_000, took_us / 1000);
        }
        if i64::try_from(took_us).is_ok_and(|us| us < config.slowlog_log_slower_than_us)
            || config.slowlog_log_slower_than_us < 0
            || config.slowlog_max_len == 0
            || entry.flags.has(command::Flags::SKIP_SLOWLOG)
        {
            return;
        }
        let words = crate::commands::shown_words(config, entry, args);
        let (address, name) = match &self.client {
            Some(client) => (
                client.peer.address.clone(),
                client.names.lock().name.clone(),
            ),
            None => Default::default(),
        };
        let mut log = self.shared.slowlog.lock();
        let number = log.next;
        log.next += 1;
        log.took_us_sum += took_us;
        log.took_us_max = log.took_us_max.max(took_us);
        log.entries.push_front(SlowEntry {
            number,
            at_s: self.now_us / 1_000_000,
            took_us,
            words,
            words_count: args.len(),
            address,
            name,
        });
        log.entries
            .truncate(usize::try_from(config.slowlog_max_len).unwrap_or(usize::MAX));
    }
}
