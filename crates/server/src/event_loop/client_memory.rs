//! `maxmemory-clients`: closing the clients that take the most, where all take too much.
//!
//! Each thread adds up its own clients when it looks at its connections, and soon after one of
//! them holds a long request or waiting replies. Whoever finds the sum past the limit closes the
//! biggest, of whichever thread, until the rest is within it.
//!
//! # Invariants
//! - Nothing is looked at for this while a request and its reply go through whole.
//! - CLIENT NO-EVICT keeps a client; what it takes still counts.
//! - A client is chosen once: until it is gone, what it takes does not count.

use super::*;
use crate::shared::Client;

/// Milliseconds after which the connections are looked at again when one has grown.
const SOON_MS: u64 = 10;

impl<L: RawLock> EventLoop<'_, L> {
    /// A connection holds a request that is not whole, or replies that wait.
    #[cold]
    pub(super) fn note_growth(&mut self) {
        if self.host.config.maxmemory_clients_bytes > 0 {
            let soon = self.now_ms + SOON_MS;
            self.next_check_ms = self.next_check_ms.min(soon);
            self.next_tick_ms = self.next_tick_ms.min(soon);
        }
    }

    /// Closes the biggest clients while all together take more than they may.
    pub(super) fn evict_clients(&mut self) {
        let limit = self.host.config.maxmemory_clients_bytes;
        if limit == 0 {
            return;
        }
        let mut sum = 0u64;
        let mut known: Vec<(usize, Arc<Client>)> = Vec::new();
        for client in self.shared.clients.lock().values() {
            let flags = client.flags.load(Ordering::Relaxed);
            if flags & flag::EVICTED != 0 {
                continue;
            }
            let bytes = client.memory_bytes();
            sum += bytes as u64;
            if flags & flag::NO_EVICT == 0 {
                known.push((bytes, client.clone()));
            }
        }
        if sum <= limit {
            return;
        }
        known.sort_unstable_by_key(|(bytes, client)| (std::cmp::Reverse(*bytes), client.id.number));
        for (bytes, client) in known {
            if sum <= limit {
                return;
            }
            sum -= bytes as u64;
            if client.set_flag(flag::EVICTED, true) {
                // Another thread was first.
                continue;
            }
            self.network().evicted.add(1);
            let line = crate::commands::client_line(&client, self.now_ms, &self.shared.keys);
            notice!(
                "Evicting client: {}",
                String::from_utf8_lossy(line.trim_ascii_end())
            );
            self.host.send(client.id, Message::Kill(client.id.number));
        }
    }
}
