//! The engine's surroundings on one thread: delivery to clients, randomness, ticks.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use engine::Context;
use engine::host::{ClientId, Host};
use engine::pubsub::Push;
use engine::session::Session;
use resp::Args;

use crate::config::Config;
use crate::inbox::Message;
use crate::shared::{Client, Shared};

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
    /// Whether anybody monitors; looked up once a batch.
    pub is_monitored: bool,
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
            is_monitored: false,
            now_us: 0,
            random: [seed | 1, seed.rotate_left(32) ^ 0x9e37_79b9_7f4a_7c15],
        }
    }

    fn send(&mut self, to: ClientId, message: Message) {
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
        cx.host
            .as_any()
            .downcast_mut()
            .expect("the server runs its commands with its own host")
    }
}

impl Host for ThreadHost {
    fn push(&mut self, to: ClientId, message: &Arc<Push>) {
        self.send(to, Message::Push(to.number, message.clone()));
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

    fn monitor(&mut self, session: &Session, args: Args<'_>) {
        let line = crate::commands::monitor_line(self, session, args);
        for inbox in &self.shared.inboxes {
            inbox.send(Message::Monitor(line.clone()));
        }
    }

    #[inline]
    fn is_monitored(&self) -> bool {
        self.is_monitored
    }

    fn used_bytes(&mut self) -> u64 {
        crate::alloc::used_bytes() as u64
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl ThreadHost {
    /// Looks at what may have changed since the last batch.
    pub fn refresh(&mut self, now_us: u64) {
        self.now_us = now_us;
        self.is_monitored = self.shared.monitors.load(Ordering::Relaxed) > 0;
    }
}
