//! Connections coming and going, and what reaches them from elsewhere.

use engine::blocking::Awaits;
use engine::commands::generic::NO_LOG;
use engine::host::{ClientId, Durable, Host};
use engine::pubsub::Push;
use engine::session::ReplyMode;
use resp::{Decoder, Protocol};
use socket2::Socket;

use super::*;
use crate::inbox::{Early, Peer};
use crate::shared::Client;

/// Connections accepted in one go from one listener.
const ACCEPTS_MAX: usize = 1000;

/// How long no connection is accepted after one could not be.
const ACCEPT_REST_MS: u64 = 200;

/// Gives a session what its user may do now. False where it must be closed.
fn keeps_its_rights(session: &mut Session) -> bool {
    session.take_rights();
    !session.user().is_gone()
        && session
            .subscriptions
            .as_ref()
            .is_none_or(|all| session.rights().allow_subscriptions(all))
}

/// Whether a session can be told that keys have changed which `about` caches: push messages need
/// RESP3; another's come as messages to subscribers in RESP2, too.
fn hears_invalidation(session: &Session, about: ClientId) -> bool {
    let is_another = match &session.tracking {
        _ if session.id != about => true,
        Some(tracking) => tracking.redirect.is_some(),
        None => return false,
    };
    session.protocol == Protocol::Resp3 || is_another && session.subscriptions.is_some()
}

const DENIED: &[u8] = b"-DENIED Tidemill is running in protected mode: it accepts only local \
connections because no password is set. To connect from elsewhere, set a password (requirepass), \
or, if the network is trusted, turn protected mode off (CONFIG SET protected-mode no from a local \
client, or 'protected-mode no' in the configuration file).\r\n";

impl<L: RawLock> EventLoop<'_, L> {
    /// Watches the listeners that there are now; true where they are others. The first thread
    /// accepts.
    pub(super) fn adopt_listeners(&mut self) -> bool {
        let version = self.shared.listening.version.load(Ordering::Acquire);
        if self.host.thread != 0 || version == self.listening_version {
            return false;
        }
        self.listening_version = version;
        for listener in self.listeners.iter() {
            self.epoll.remove(listener.fd());
        }
        self.listeners = self.shared.listening.now();
        let accepts = self.accepts_again_ms == 0;
        for (token, listener) in (TOKEN_LISTENERS..).zip(self.listeners.iter()) {
            if let Err(error) = self.epoll.add(listener.fd(), token, accepts, false) {
                crate::warning!("Watching a listener: {error}");
            }
        }
        true
    }

    /// Accepts what waits on a listener and deals it to the threads.
    pub(super) fn accept(&mut self, listener: u64) {
        if self.adopt_listeners() {
            return;
        }
        let index = usize::try_from(listener).unwrap_or(usize::MAX);
        for _ in 0..ACCEPTS_MAX {
            let Some(listener) = self.listeners.get(index) else {
                return;
            };
            match listener.accept(self.host.config.tcp_keepalive_s) {
                Ok((socket, peer)) => self.deal(socket, peer),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                // It does not listen any more, and others are about to.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => return,
                Err(error) => {
                    // Most likely there is no descriptor left, and the next try would fail too.
                    crate::warning!("Accepting client connection: {error}");
                    self.rest_from_accepting();
                    return;
                }
            }
        }
    }

    /// Looks at no listener for a while: those who wait stay in the kernel's queue.
    fn rest_from_accepting(&mut self) {
        self.accepts_again_ms = self.now_ms + ACCEPT_REST_MS;
        self.watch_listeners(false);
    }

    /// Goes on with accepting once the rest is over.
    pub(super) fn accept_again(&mut self) {
        if self.accepts_again_ms != 0 && self.now_ms >= self.accepts_again_ms {
            self.accepts_again_ms = 0;
            self.watch_listeners(true);
        }
    }

    fn watch_listeners(&mut self, on: bool) {
        for (token, listener) in (TOKEN_LISTENERS..).zip(self.listeners.iter()) {
            if let Err(error) = self.epoll.change(listener.fd(), token, on, false) {
                crate::warning!("Watching a listener: {error}");
            }
        }
    }

    fn deal(&mut self, socket: Socket, peer: Peer) {
        let network = &self.shared.network[usize::from(self.host.thread)];
        network.connections.add(1);
        let config = &self.host.config;
        let refusal: Option<&[u8]> =
            if self.shared.client_count.load(Ordering::Relaxed) >= config.maxclients as usize {
                Some(b"-ERR max number of clients reached\r\n")
            } else if config.protected_mode
                && self.shared.users.default_has_no_password()
                && !peer.is_local
            {
                Some(DENIED)
            } else {
                None
            };
        if let Some(text) = refusal {
            network.rejected.add(1);
            use std::os::fd::AsRawFd;
            // The peer may be gone already, and with TLS it would not understand.
            if !peer.is_tls {
                let _ = sys::write(socket.as_raw_fd(), &[text]);
            }
            return;
        }
        self.shared.client_count.fetch_add(1, Ordering::Relaxed);
        self.next_thread = (self.next_thread + 1) % self.shared.inboxes.len();
        if self.next_thread == usize::from(self.host.thread) {
            self.adopt(socket, peer, None);
        } else {
            self.shared.inboxes[self.next_thread].send(Message::Accept(socket, peer, None));
        }
    }

    /// Makes a socket a connection of this thread.
    fn adopt(&mut self, socket: Socket, peer: Peer, early: Option<Early>) {
        use std::os::fd::AsRawFd;
        let number = match &early {
            Some(early) => early.number,
            None => self.shared.next_client.fetch_add(1, Ordering::Relaxed),
        };
        let id = ClientId {
            thread: self.host.thread,
            number,
        };
        let users = &self.shared.users;
        let mut session = Session::new(id, users.is_open());
        session.set_user(users.default_user());
        let tls = match peer.is_tls {
            true => self.shared.tls.accept().map(Box::new),
            false => None,
        };
        if peer.is_tls && tls.is_none() {
            self.shared.client_count.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let client = Arc::new(Client::new(id, peer, socket.as_raw_fd(), self.now_ms));
        let connection = Box::new(Connection::new(socket, session, client.clone(), tls));
        let token = self.connections.add(connection);
        if let Err(error) = self.epoll.add(client.fd, token, true, false) {
            verbose!("Watching a new connection: {error}");
            self.shared.client_count.fetch_sub(1, Ordering::Relaxed);
            if let Some(connection) = self.connections.take_at(token) {
                self.connections.release(&connection);
            }
            return;
        }
        self.shared.clients.lock().insert(number, client);
        if let Some(early) = early.filter(|early| !early.requests.is_empty()) {
            self.host.said_early.push((number, early.requests));
        }
    }

    /// Runs what clients said while a script ran. They have the replies.
    #[cold]
    pub(super) fn run_early(&mut self) {
        for (number, requests) in std::mem::take(&mut self.host.said_early) {
            let Some(mut connection) = self.connections.take(number) else {
                continue;
            };
            let limits = Limits {
                bulk_bytes_max: self.settings.string_bytes_max,
                authenticated: true,
            };
            let (mut batch, mut dropped) = (Batch::default(), Output::default());
            // They were whole and right when they were answered.
            let _ = Decoder::default().decode(&requests, limits, usize::MAX, &mut batch);
            self.host.client = Some(connection.client.clone());
            self.executor.begin(&mut self.host);
            for index in 0..batch.len() {
                let request = self.executor.prepare(batch.args(index, &requests));
                self.executor.execute(
                    &mut connection.session,
                    &request,
                    &self.settings,
                    &mut self.host,
                    self.now_ms,
                    &mut dropped,
                );
            }
            self.executor
                .end(&self.settings, &mut self.host, self.now_ms);
            self.host.client = None;
            self.sync_monitor(&connection);
            connection.publish(self.now_ms);
            match connection.tls {
                None => self.put_back::<false>(connection),
                Some(_) => self.put_back::<true>(connection),
            }
        }
    }

    /// Puts a connection back after its turn, or closes it.
    pub(super) fn put_back<const TLS: bool>(&mut self, mut connection: Box<Connection>) {
        if connection.is_full && connection.has_hung_up {
            self.run_rest(&mut connection);
        }
        let is_sent = connection.output.is_empty();
        if connection.is_dead || connection.session.closing && is_sent {
            return self.close(connection);
        }
        if connection.is_full && is_sent {
            connection.is_full = false;
            self.resumable.push(connection.session.id.number);
        }
        self.watch::<TLS>(&mut connection);
        connection.publish_buffers();
        self.connections.put(connection);
    }

    /// Watches a connection for what it needs now.
    fn watch<const TLS: bool>(&mut self, connection: &mut Connection) {
        let is_held = connection.held_lsn != 0;
        let wants_room = !connection.output.is_empty() && !is_held || TLS && connection.owes_tls();
        // A client that waits is still read, so that a hang-up is seen; its requests stay in its
        // buffer, within the query limit.
        if wants_room != connection.awaits_room {
            connection.awaits_room = wants_room;
            if self
                .epoll
                .change(connection.fd(), connection.token, true, wants_room)
                .is_err()
            {
                connection.is_dead = true;
            }
        }
    }

    /// Closes a connection and ends all that its client held.
    pub(super) fn close(&mut self, mut connection: Box<Connection>) {
        let number = connection.session.id.number;
        if let Some(waiter) = &connection.session.waiting
            && let Some(deadline) = waiter.due_ms()
        {
            self.deadlines.remove(&(deadline, number));
        }
        self.executor.forget(
            &mut connection.session,
            &self.settings,
            &mut self.host,
            self.now_ms,
        );
        connection.close_tls();
        self.monitors.remove(&number);
        if connection.session.monitors {
            self.shared.monitors.fetch_sub(1, Ordering::Relaxed);
        }
        self.connections.release(&connection);
        self.shared.clients.lock().remove(&number);
        self.shared.client_count.fetch_sub(1, Ordering::Relaxed);
    }

    /// Closes every connection: the server stops.
    pub(super) fn close_all(&mut self) {
        for number in self.connections.numbers() {
            self.flush(number);
            if let Some(connection) = self.connections.take(number) {
                self.close(connection);
            }
        }
    }

    /// Sends what a connection has to send; drops it where it is past its limits.
    pub(super) fn send<const TLS: bool>(&mut self, connection: &mut Connection, out: &mut Output) {
        if out.is_empty() && connection.output.is_empty() {
            return;
        }
        if !out.is_empty() && self.holds(connection) || connection.held_lsn != 0 {
            connection.output.append(out);
            self.check_output(connection);
            return;
        }
        let network = &self.shared.network[usize::from(self.host.thread)];
        let sent = match TLS {
            false => connection.flush(out),
            true => connection.flush_tls(out),
        } as u64;
        network.writes.add(1);
        network.output_bytes.add(sent);
        add(&connection.client.total_out, sent);
        if !connection.output.is_empty() {
            self.check_output(connection);
        }
    }

    /// Drops a connection whose output is past its limits.
    pub(super) fn check_output(&mut self, connection: &mut Connection) {
        self.note_growth();
        let limits = &self.host.config.output_limits;
        let limit = if connection.session.subscriptions.is_some() {
            limits.pubsub
        } else {
            limits.normal
        };
        if connection.is_over(limit, self.now_ms) {
            let network = &self.shared.network[usize::from(self.host.thread)];
            network.output_limit_drops.add(1);
            crate::warning!(
                "Client {} closed for overcoming of output buffer limits: {} bytes wait",
                connection.client.peer.address,
                connection.output.len()
            );
            connection.is_dead = true;
        }
    }

    /// Sends what waits for a connection.
    pub(super) fn flush(&mut self, number: u64) {
        if let Some(connection) = self.connections.take(number) {
            self.flush_one(connection);
        }
    }

    /// Sends what waits for the connection that an event is about.
    pub(super) fn flush_at(&mut self, token: u64) {
        if let Some(connection) = self.connections.take_at(token) {
            self.flush_one(connection);
        }
    }

    fn flush_one(&mut self, connection: Box<Connection>) {
        if connection.tls.is_some() {
            return self.flush_kind::<true>(connection);
        }
        self.flush_kind::<false>(connection);
    }

    fn flush_kind<const TLS: bool>(&mut self, mut connection: Box<Connection>) {
        let mut out = self.out.take().unwrap_or_default();
        self.send::<TLS>(&mut connection, &mut out);
        self.out = Some(out);
        self.put_back::<TLS>(connection);
    }

    /// Takes everything from the inbox.
    pub(super) fn take_inbox(&mut self) {
        let messages = self.shared.inboxes[usize::from(self.host.thread)].take();
        for message in messages {
            match message {
                Message::Accept(socket, peer, early) => self.adopt(socket, peer, early),
                // Before what comes after it: a message for a client that may hear it no more.
                Message::Look => self.look(),
                Message::Info(asker) => self.tell_info(&asker),
                Message::Push(number, push) if !self.is_heard(number, &push) => {}
                other => self.host.local.push(other),
            }
        }
        self.deliver_local();
    }

    /// Runs INFO for somebody who is no client.
    fn tell_info(&mut self, asker: &crate::metrics::Asker) {
        let (thread, number) = (self.host.thread, 0);
        let mut session = Session::new(ClientId { thread, number }, true);
        let words = OwnedArgs::from_words([&b"INFO"[..], b"everything"]);
        let keyspace = self.executor.keyspace();
        let request = Request {
            args: words.view(),
            // Whatever clients have to call it.
            entry: keyspace.shared.table.resolve_own(&words.view()).ok(),
            hash: None,
        };
        let mut out = Output::default();
        self.executor.begin(&mut self.host);
        self.executor.execute(
            &mut session,
            &request,
            &self.settings,
            &mut self.host,
            self.now_ms,
            &mut out,
        );
        self.executor
            .end(&self.settings, &mut self.host, self.now_ms);
        // It may have lost its patience since.
        let _ = asker.try_send(out.since(0).to_vec());
    }

    /// Looks at what changed in the shared state, while no connection has its turn.
    fn look(&mut self) {
        let wants_look = &self.shared.backup.wants_look;
        if self.host.thread == 0
            && wants_look.load(Ordering::Acquire)
            && self.shared.keys.is_serving()
        {
            self.look_after_backup();
        }
        if self.config_version != self.shared.config_version.load(Ordering::Acquire) {
            self.adopt_config();
            self.adopt_users(None);
        }
    }

    /// Gives every session what its user may do now, and closes those of users who are gone and
    /// those that listen to what they may hear no more. `current` is the connection that has its
    /// turn.
    pub(super) fn adopt_users(&mut self, mut current: Option<&mut Connection>) {
        let version = self.shared.users.version.load(Ordering::Acquire);
        if version == self.users_version {
            return;
        }
        self.users_version = version;
        if let Some(connection) = &mut current {
            connection.session.closing |= !keeps_its_rights(&mut connection.session);
        }
        for number in self.connections.numbers() {
            let Some(mut connection) = self.connections.take(number) else {
                continue;
            };
            match keeps_its_rights(&mut connection.session) {
                true => self.connections.put(connection),
                false => self.close(connection),
            }
        }
    }

    /// Whether a client still listens to what a message from another thread is about. It may have
    /// unsubscribed while the message was on its way, and must not hear of it any more.
    fn is_heard(&self, number: u64, push: &Push) -> bool {
        self.connections.get(number).is_some_and(|connection| {
            let subscriptions = &connection.session.subscriptions;
            subscriptions.as_ref().is_some_and(|all| all.hears(push))
        })
    }

    /// Delivers messages to clients of this thread, none of which has its turn now.
    pub(super) fn deliver_local(&mut self) {
        for message in std::mem::take(&mut self.host.local) {
            if let Message::Monitor(line) = &message {
                for number in self.monitors.clone() {
                    if let Some(connection) = self.connections.get_mut(number) {
                        connection.output.push_shared(line);
                        self.dirty.push(number);
                    }
                }
                continue;
            }
            if let Message::Invalidate { to, about, .. } = &message
                && *to != about.number
                && self.connections.get(*to).is_none()
            {
                self.host.send(*about, Message::Astray(about.number, *to));
                continue;
            }
            let (Message::Push(number, _)
            | Message::Invalidate { to: number, .. }
            | Message::Astray(number, _)
            | Message::Served(number, _)
            | Message::Kill(number)
            | Message::Done(number, _)
            | Message::Unblock(number, _)) = message
            else {
                continue;
            };
            let Some(mut connection) = self.connections.take(number) else {
                continue;
            };
            let mut output = std::mem::take(&mut connection.output);
            self.deliver(&mut connection, message, &mut output);
            connection.output = output;
            // What it is told of may not be on the disk yet.
            self.holds(&mut connection);
            if !connection.output.is_empty() && !connection.is_dead {
                self.check_output(&mut connection);
            }
            self.dirty.push(number);
            self.connections.put(connection);
        }
    }

    /// Delivers messages while `connection` has its turn: its own go to `out`.
    pub(super) fn deliver_to(&mut self, connection: &mut Connection, out: &mut Output) {
        let number = connection.session.id.number;
        let is_own = |message: &Message| match message {
            Message::Push(to, _)
            | Message::Invalidate { to, .. }
            | Message::Astray(to, _)
            | Message::Served(to, _)
            | Message::Kill(to)
            | Message::Done(to, _)
            | Message::Unblock(to, _) => *to == number,
            _ => false,
        };
        let (own, others): (Vec<_>, Vec<_>) = self.host.local.drain(..).partition(is_own);
        self.host.local = others;
        for message in own {
            self.deliver(connection, message, out);
        }
        self.deliver_local();
    }

    /// Delivers one message to its client.
    fn deliver(&mut self, connection: &mut Connection, message: Message, out: &mut Output) {
        match message {
            Message::Push(_, push) => {
                out.push_shared(push.encoded(connection.session.protocol));
            }
            Message::Invalidate { about, push, .. } => {
                if hears_invalidation(&connection.session, about) {
                    out.push_shared(push.encoded(connection.session.protocol));
                }
            }
            Message::Astray(_, to) => {
                let session = &mut connection.session;
                let Some(tracking) = &mut session.tracking else {
                    return;
                };
                tracking.is_broken = true;
                if session.protocol == Protocol::Resp3 {
                    let mut writer = resp::Writer::new(out, session.protocol);
                    writer.push(2);
                    writer.text("tracking-redir-broken");
                    writer.int(i64::try_from(to).unwrap_or(i64::MAX));
                }
            }
            Message::Served(_, reply) => {
                self.forget_deadline(connection);
                connection.session.waiting = None;
                connection.session.wrote_lsn = self.shared.keys.lsn.load(Ordering::Relaxed);
                self.answer(connection, &reply, out);
            }
            Message::Kill(_) => {
                if self
                    .host
                    .client
                    .as_ref()
                    .is_some_and(|client| client.id == connection.session.id)
                {
                    connection.session.closing = true;
                } else {
                    connection.is_dead = true;
                }
            }
            Message::Unblock(_, with_error) => self.unblock(connection, with_error, out),
            Message::Done(_, reply) => {
                if self.executor.cancel_wait(&mut connection.session) {
                    self.answer(connection, &reply, out);
                }
            }
            Message::Accept(..) | Message::Monitor(_) | Message::Info(_) | Message::Look => {}
        }
    }

    /// Sends the reply that a client waited for, and lets it go on.
    fn answer(&mut self, connection: &mut Connection, reply: &[u8], out: &mut Output) {
        match connection.session.reply_mode {
            ReplyMode::On | ReplyMode::SkipNext => out.push(reply),
            ReplyMode::Off => {}
            ReplyMode::Skip => connection.session.reply_mode = ReplyMode::On,
        }
        connection.publish(self.now_ms);
        self.resumable.push(connection.session.id.number);
    }

    /// Ends a client's wait as if its time were up, or with an error.
    pub(super) fn unblock(
        &mut self,
        connection: &mut Connection,
        with_error: bool,
        out: &mut Output,
    ) {
        let Some(waiter) = connection.session.waiting.clone() else {
            return;
        };
        if !self.executor.cancel_wait(&mut connection.session) {
            return;
        }
        if let Some(deadline) = waiter.due_ms() {
            self.deadlines
                .remove(&(deadline, connection.session.id.number));
        }
        let is_resp3 = connection.session.protocol == Protocol::Resp3;
        let mut reply = Output::default();
        let mut writer = resp::Writer::new(&mut reply, connection.session.protocol);
        if with_error {
            writer.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
        } else {
            let durable = self.host.durable();
            match waiter.awaits {
                Awaits::Disk { local: true, .. } if durable == Durable::NoLog => {
                    writer.error(NO_LOG)
                }
                _ => writer.raw(waiter.timeout_reply(is_resp3, durable)),
            }
        }
        let reply = reply.since(0).to_vec();
        self.answer(connection, &reply, out);
    }

    /// Remembers when a client's wait ends, or its command is to be run again.
    pub(super) fn note_deadline(&mut self, connection: &Connection) {
        let number = connection.session.id.number;
        if let Some(deadline) = connection.session.waiting.as_ref().and_then(|w| w.due_ms()) {
            self.deadlines.insert((deadline, number));
        }
        let waiting = connection.session.waiting.as_ref();
        if waiting.is_some_and(|waiter| waiter.awaits != Awaits::Keys) {
            self.note_wait(number);
        }
    }

    fn forget_deadline(&mut self, connection: &Connection) {
        let number = connection.session.id.number;
        if let Some(deadline) = connection.session.waiting.as_ref().and_then(|w| w.due_ms()) {
            self.deadlines.remove(&(deadline, number));
        }
    }

    /// Ends waits whose time is up, and looks again for those that asked for it.
    pub(super) fn end_waits(&mut self) {
        while let Some(&(deadline, number)) = self.deadlines.first() {
            // The clock's milliseconds are cut off: only the next one is surely past the deadline.
            if deadline >= self.now_ms {
                return;
            }
            self.deadlines.pop_first();
            let Some(mut connection) = self.connections.take(number) else {
                continue;
            };
            let waiter = connection.session.waiting.as_ref();
            if waiter.is_some_and(|w| w.deadline_ms.is_none_or(|at| at > self.now_ms)) {
                self.executor.retry_wait(
                    &connection.session,
                    &self.settings,
                    &mut self.host,
                    self.now_ms,
                );
                self.note_deadline(&connection);
                self.connections.put(connection);
                continue;
            }
            let mut output = std::mem::take(&mut connection.output);
            self.unblock(&mut connection, false, &mut output);
            connection.output = output;
            self.dirty.push(number);
            self.connections.put(connection);
        }
    }

    /// Takes over which of this thread's clients monitor.
    pub(super) fn sync_monitor(&mut self, connection: &Connection) {
        let number = connection.session.id.number;
        if connection.session.monitors {
            self.monitors.insert(number);
        } else if !self.monitors.is_empty() {
            self.monitors.remove(&number);
        }
    }
}
