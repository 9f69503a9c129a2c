//! Reading, decoding and running a connection's requests.

use std::os::fd::RawFd;

use command::Flags;
use engine::Entry;

use super::*;

/// Requests decoded at once.
const BATCH_REQUESTS_MAX: usize = 512;
/// Requests whose keys are prefetched together.
const WINDOW: usize = 32;
/// Bytes of replies after which a connection's next requests wait until they are sent: a short
/// pipeline may ask for far more than it is ready to take.
const REPLY_BYTES_MAX: usize = 1024 * 1024;
/// Bytes that one read may take of a long request.
const READ_LONG_BYTES: usize = 1024 * 1024;

/// What CLIENT PAUSE has, and EXEC alone beside it: after these a pause may hold what follows.
const MAY_PAUSE: Flags = Flags::ADMIN.with(Flags::SKIP_SLOWLOG);

/// What came of a connection's turn.
enum Turn {
    /// All whole requests were run.
    Done,
    /// It must wait: run no more of its requests for now.
    Held,
    /// It has many replies to take: run no more of its requests until they are sent.
    Full,
}

/// Makes room for the next read of a request that is cut off: as much again as has come, so that it
/// is not moved often, but no more than a long word still needs: what it takes counts as memory.
fn make_room(connection: &mut Connection) {
    let end = connection.input_done + connection.decoder.needed();
    let input = &mut connection.input;
    let spare = input.capacity() - input.len();
    match end.saturating_sub(input.len()) {
        0 => input.reserve(READ_BYTES),
        missing if spare >= missing.min(READ_LONG_BYTES) => {}
        missing => {
            let more = missing.min(input.len().max(READ_LONG_BYTES));
            input.reserve_exact(more.max(READ_BYTES));
        }
    }
}

impl<L: RawLock> EventLoop<'_, L> {
    /// One read of a connection, and all that follows from it.
    pub(super) fn read(&mut self, token: u64) {
        let Some(mut connection) = self.connections.take_at(token) else {
            return;
        };
        self.read_from(&mut connection);
        self.put_back::<false>(connection);
    }

    /// Reads once from a socket; returns how many bytes came, or `None` where it is at its end.
    #[inline]
    pub(super) fn receive(&self, fd: RawFd, into: &mut Vec<u8>) -> Option<usize> {
        self.network().reads.add(1);
        match sys::read(fd, into) {
            Ok(got @ 1..) => Some(got),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(0),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => Some(0),
            Ok(0) | Err(_) => None,
        }
    }

    fn read_from(&mut self, connection: &mut Connection) {
        let fd = connection.fd();
        let mut buf = std::mem::take(&mut self.buf);
        let is_fresh = connection.input.is_empty() && !connection.is_held;
        let got = if self.take_ahead(connection.token, &mut buf) {
            if !is_fresh {
                connection.input.extend_from_slice(&buf);
                self.note_growth();
            }
            Some(buf.len())
        } else if is_fresh {
            buf.clear();
            buf.reserve(READ_BYTES);
            self.receive(fd, &mut buf)
        } else {
            make_room(connection);
            self.note_growth();
            self.receive(fd, &mut connection.input)
        };
        if is_fresh {
            self.read_ahead(&buf[..got.unwrap_or(0)]);
        }
        if got.is_none() {
            connection.has_hung_up = true;
            connection.is_dead = true;
        }
        if let Some(got @ 1..) = got {
            let fresh = is_fresh.then_some(&buf[..]);
            self.take_requests::<false>(connection, fresh, got);
        }
        buf.truncate(READ_BYTES);
        self.buf = buf;
    }

    /// Runs what came: `got` bytes, which are in `fresh` or, without that, behind what the
    /// connection holds already.
    #[inline]
    pub(super) fn take_requests<const TLS: bool>(
        &mut self,
        connection: &mut Connection,
        fresh: Option<&[u8]>,
        got: usize,
    ) {
        self.network().input_bytes.add(got as u64);
        add(&connection.client.total_in, got as u64);
        add(&connection.client.reads, 1);
        if connection.session.closing {
            // It has said its last word: what else it says is not heard.
            connection.input.clear();
            connection.input_done = 0;
        } else if let Some(data) = fresh {
            let used = self.run_requests::<TLS>(connection, data);
            connection.input.extend_from_slice(&data[used..]);
        } else if !connection.is_held {
            self.run_input::<TLS>(connection);
        }
        let limit = self
            .host
            .config
            .client_query_buffer_limit_bytes
            .min(u64::from(u32::MAX) / 2);
        if (connection.input.len() - connection.input_done) as u64 > limit {
            self.network().query_limit_drops.add(1);
            connection.is_dead = true;
        }
    }

    /// Goes on with requests that a connection holds already.
    pub(super) fn resume(&mut self, number: u64) {
        let Some(mut connection) = self.connections.take(number) else {
            return;
        };
        if connection.session.waiting.is_none() && !connection.is_dead && !connection.is_full {
            connection.is_held = false;
            self.run_held(&mut connection);
        }
        match connection.tls {
            None => self.put_back::<false>(connection),
            Some(_) => self.put_back::<true>(connection),
        }
    }

    /// Runs what a client had sent before it hung up without waiting for the replies.
    #[cold]
    pub(super) fn run_rest(&mut self, connection: &mut Connection) {
        while connection.is_full {
            connection.is_full = false;
            connection.output.clear();
            self.run_held(connection);
        }
        connection.is_dead = true;
    }

    /// Runs what a connection holds, whichever kind it is.
    fn run_held(&mut self, connection: &mut Connection) {
        match connection.tls {
            None => self.run_input::<false>(connection),
            Some(_) => self.run_input::<true>(connection),
        }
    }

    fn run_input<const TLS: bool>(&mut self, connection: &mut Connection) {
        let mut input = std::mem::take(&mut connection.input);
        let mut done = connection.input_done;
        done += self.run_requests::<TLS>(connection, &input[done..]);
        if done == input.len() {
            done = 0;
            input.clear();
            if input.capacity() > READ_BYTES {
                input = Vec::new();
            }
        } else if done > input.len() / 2 {
            input.drain(..done);
            done = 0;
        }
        connection.input = input;
        connection.input_done = done;
    }

    /// Runs the whole requests of `data` and sends their replies; returns how many bytes they took.
    fn run_requests<const TLS: bool>(&mut self, connection: &mut Connection, data: &[u8]) -> usize {
        if self.config_version != self.shared.config_version.load(Ordering::Acquire) {
            self.adopt_config();
            self.adopt_users(Some(&mut *connection));
            if connection.session.closing {
                return data.len();
            }
        }
        let mut out = self.out.take().unwrap_or_default();
        let mut batch = self.batch.take().unwrap_or_default();
        let (mut at, mut ran_in_all) = (0, 0);
        if !connection.session.authenticated && self.shared.users.is_open() {
            // The password was taken away since.
            connection.session.authenticated = true;
        }
        self.host.client = Some(connection.client.clone());
        self.executor.begin(&mut self.host);
        loop {
            let authenticated = connection.session.authenticated;
            let limits = Limits {
                bulk_bytes_max: self.settings.string_bytes_max,
                authenticated,
            };
            let max = if authenticated { BATCH_REQUESTS_MAX } else { 1 };
            batch.clear();
            match connection
                .decoder
                .decode(&data[at..], limits, max, &mut batch)
            {
                Err(error) => {
                    verbose!(
                        "Protocol error ({}) from client {}",
                        error.0,
                        connection.client.peer.address
                    );
                    let text = format!("ERR Protocol error: {}", error.0);
                    resp::Writer::new(&mut out, connection.session.protocol).error(&text);
                    connection.session.closing = true;
                    at = data.len();
                    break;
                }
                Ok(used) if batch.is_empty() => {
                    at += used;
                    break;
                }
                Ok(used) => {
                    let (ran, turn) = self.run_batch(connection, &data[at..], &batch, &mut out);
                    ran_in_all += ran as u64;
                    if ran == batch.len() {
                        at += used;
                    } else {
                        at += if ran == 0 { 0 } else { batch.end(ran - 1) };
                        connection.decoder.reset();
                    }
                    if connection.session.closing {
                        at = data.len();
                        connection.decoder.reset();
                        break;
                    }
                    if let Turn::Held | Turn::Full = turn {
                        connection.is_held = true;
                        connection.is_full = matches!(turn, Turn::Full);
                        break;
                    }
                    if at == data.len() {
                        break;
                    }
                }
            }
        }
        self.executor
            .end(&self.settings, &mut self.host, self.now_ms);
        batch.clear();
        batch.shrink();
        self.batch = Some(batch);
        self.host.client = None;
        if ran_in_all > 0 {
            let client = &connection.client;
            add(&client.commands, ran_in_all);
            add(&client.batches, 1);
        }
        self.prefetch_ahead();
        self.sync_monitor(connection);
        // Before the reply goes: whoever read it may ask at once how the client stands.
        connection.publish(self.now_ms);
        self.send::<TLS>(connection, &mut out);
        self.out = Some(out);
        at
    }

    /// Runs the requests of a batch, until one makes its client wait. Returns how many were run.
    /// Inlined into both kinds of `run_requests`: by itself it takes some instructions a command.
    #[inline(always)]
    fn run_batch(
        &mut self,
        connection: &mut Connection,
        data: &[u8],
        batch: &Batch,
        out: &mut Output,
    ) -> (usize, Turn) {
        if batch.len() == 1 {
            // Without pipelining there is nothing to prefetch, and little to clear.
            self.run_windows::<1>(connection, data, batch, out)
        } else {
            self.run_windows::<WINDOW>(connection, data, batch, out)
        }
    }

    #[inline(always)]
    fn run_windows<const MANY: usize>(
        &mut self,
        connection: &mut Connection,
        data: &[u8],
        batch: &Batch,
        out: &mut Output,
    ) -> (usize, Turn) {
        let mut pause = self.pause();
        let nothing = Request {
            args: Args::new(&[], &[]),
            entry: None,
            hash: None,
        };
        let mut prepared: [Request<'_>; MANY] = [nothing; MANY];
        let mut first = 0;
        while first < batch.len() {
            let count = MANY.min(batch.len() - first);
            let running = &self.shared.scripts.running;
            let is_busy = running.is_long.load(Ordering::Relaxed) && running.wait_out();
            if self.settings.maxmemory > 0 && self.shared.keys.is_serving() {
                self.executor
                    .make_room(&self.settings, &mut self.host, self.now_ms);
            }
            for (index, slot) in prepared[..count].iter_mut().enumerate() {
                *slot = self.executor.prepare(batch.args(first + index, data));
            }
            if count > 1 {
                let db = connection.session.db;
                let hashes = || prepared[..count].iter().filter_map(|request| request.hash);
                hashes().for_each(|hash| self.executor.prefetch_bucket(db, hash));
                hashes().for_each(|hash| self.executor.prefetch_record(db, hash));
                let network = &self.shared.network[usize::from(self.host.thread)];
                network.prefetch_batches.add(1);
                network.prefetch_entries.add(count as u64);
            }
            for (index, request) in prepared[..count].iter().enumerate() {
                let Request { args, entry, .. } = *request;
                if pause.1 && self.is_paused(pause, &connection.session, entry, args) {
                    if self.paused.is_empty() {
                        self.pause_seen = pause;
                    }
                    self.paused.push(connection.session.id.number);
                    return (first + index, Turn::Held);
                }
                if is_busy && !entry.is_some_and(|entry| entry.flags.has(Flags::ALLOW_BUSY)) {
                    let text = self.shared.scripts.running.busy();
                    resp::Writer::new(out, connection.session.protocol).error(text);
                    continue;
                }
                let outcome = self.executor.execute(
                    &mut connection.session,
                    request,
                    &self.settings,
                    &mut self.host,
                    self.now_ms,
                    out,
                );
                self.after(connection, entry, args, outcome.ticks, out);
                if entry.is_some_and(|entry| entry.flags.any(MAY_PAUSE)) {
                    pause = self.pause();
                }
                if outcome.blocked {
                    self.note_deadline(connection);
                    return (first + index + 1, Turn::Held);
                }
                if connection.session.closing {
                    return (first + index + 1, Turn::Done);
                }
                if out.len() > REPLY_BYTES_MAX {
                    return (first + index + 1, Turn::Full);
                }
            }
            first += count;
        }
        (batch.len(), Turn::Done)
    }

    /// What follows each command: counters, the slow log, messages to clients of this thread.
    #[inline(always)]
    fn after(
        &mut self,
        connection: &mut Connection,
        entry: Option<&Entry>,
        args: Args<'_>,
        ticks: u64,
        out: &mut Output,
    ) {
        if ticks >= self.slow_ticks
            && let Some(entry) = entry
        {
            self.note_slow(connection, entry, args, ticks);
        }
        if !self.host.local.is_empty() {
            self.deliver_to(connection, out);
        }
        if self.config_version != self.shared.config_version.load(Ordering::Relaxed) {
            self.adopt_config();
            self.adopt_users(Some(connection));
        }
    }

    /// Notes a command that took long, or any command while a session of HOTKEYS runs.
    #[cold]
    fn note_slow(&mut self, connection: &Connection, entry: &Entry, args: Args<'_>, ticks: u64) {
        // A command whose client now waits has not run.
        if connection.session.waiting.is_none() {
            let reply_bytes = self.executor.reply_bytes();
            self.host.note_hotkeys(entry, args, ticks, reply_bytes);
        }
        self.host.note_slow(entry, args, ticks);
    }

    /// Whether all commands wait at present, and whether writes do.
    #[inline]
    pub(super) fn pause(&self) -> (bool, bool) {
        let (all, writes) = self.shared.pause.at(self.now_ms);
        (all, writes || self.shared.log.is_congested())
    }

    /// Whether a pause holds this command back. `pause` says whether it holds all, and writes.
    #[cold]
    fn is_paused(
        &self,
        pause: (bool, bool),
        session: &Session,
        entry: Option<&Entry>,
        args: Args<'_>,
    ) -> bool {
        // What is refused anyway is refused at once.
        let Some(entry) = entry.filter(|entry| entry.arity_allows(args.len())) else {
            return false;
        };
        let name = &*entry.full_name;
        if !session.authenticated || matches!(name, "client|pause" | "client|unpause") {
            return false;
        }
        let writes = |entry: &Entry| {
            let name = entry.command.name;
            entry.flags.has(Flags::WRITE) || matches!(name, "publish" | "spublish")
        };
        let entries = self.shared.keys.table.entries();
        let queued_write = name == "exec"
            && session.multi.as_ref().is_some_and(|multi| {
                let mut queued = multi.queued.iter();
                queued.any(|(id, _)| entries.get(usize::from(*id)).is_some_and(writes))
            });
        // A subscriber's writes are refused, which needs no waiting.
        pause.0 || pause.1 && (writes(entry) || queued_write) && !session.is_subscriber()
    }
}
