//! From a parsed command to its effects: the gates before it, the locks around it, what follows.
//!
//! Order of things, for each command: gates that need no lock (arity, authentication, MULTI,
//! subscription), then the stripes of its keys in ascending order, then the handler, then, still
//! inside the locks, waiting clients and the log sequence number. Stripes stay locked from one
//! command to the next of a batch while the next needs the same ones.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use command::{Flags, KeyPlan};
use resp::{Args, Output, Writer};
use structure::stripes::{Guard, RawLock, StripeSet};

use crate::CommandError;
use crate::acl::{self, Place};
use crate::blocking::{State, Waiter};
use crate::context::{Context, Effects};
use crate::error::{SHOWN_BYTES_MAX, shown_up_to};
use crate::handler::{Entry, Locks};
use crate::host::Host;
use crate::keyspace::{DbKey, Graveyard, Keyspace, Phase, Stripe};
use crate::log::Frames;
use crate::object::Kind;
use crate::session::{ReplyMode, Session};
use crate::settings::Settings;
use crate::stats::ThreadStats;

mod eviction;
mod expiry;
mod limits;
mod logging;
mod replaying;
mod waking;

pub(crate) use limits::MISCONF;
pub(crate) use logging::in_own_words;

/// A quick command has at most this many words: more elements take longer.
const QUICK_WORDS_MAX: usize = 8;
/// Quick commands that are timed together at most.
const TOGETHER_MAX: u32 = 32;
/// A key that became ready: its database, its hash and itself.
type ReadyKey = (u32, u64, Box<[u8]>);

/// One thread's executor.
pub struct Executor<'k, L: RawLock> {
    keyspace: &'k Keyspace<L>,
    /// Stripes kept from the command before.
    guard: Option<Guard<'k, Stripe, L>>,
    effects: Effects,
    stats: Arc<ThreadStats>,
    /// When the last command that was timed ended, in the host's ticks.
    last_ticks: u64,
    /// How many quick commands are timed together at most.
    together_max: u32,
    /// Bytes of the last reply to a command that was timed by itself.
    reply_bytes: usize,
    /// Quick commands of one kind since then, which are timed together: which, and how many.
    together: (u16, u32),
    /// Keys whose line could not be served to its end because a stripe that the next in line needs
    /// was taken, and all stripes that were needed so far.
    retry: VecDeque<(StripeSet, ReadyKey)>,
    /// What is refused at present: [`limits::FULL`], [`limits::UNSAVED`].
    limits: u8,
    /// Effects that nobody has taken yet.
    frames: Frames,
    /// Whether a transaction runs, whose effects are one frame.
    in_transaction: bool,
    /// Whether a log is replayed, so that nothing dies by itself.
    is_replaying: bool,
}

/// What a command looked like from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Ticks that it took; 0 where it was refused or queued.
    pub ticks: u64,
    /// Whether the client now waits.
    pub blocked: bool,
}

/// A command with what the caller found out about it already.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its words.
    pub args: Args<'a>,
    /// Its entry in the table, if it has one.
    pub entry: Option<&'a Entry>,
    /// The hash of its one key, for commands with [`KeyPlan::One`].
    pub hash: Option<u64>,
}

impl<'k, L: RawLock> Executor<'k, L> {
    /// An executor on `keyspace` that counts in `stats`.
    pub fn new(keyspace: &'k Keyspace<L>, stats: Arc<ThreadStats>) -> Self {
        Self {
            keyspace,
            guard: None,
            effects: Effects::default(),
            stats,
            last_ticks: 0,
            reply_bytes: 0,
            together_max: TOGETHER_MAX,
            together: (0, 0),
            retry: VecDeque::new(),
            limits: 0,
            frames: Frames::default(),
            in_transaction: false,
            is_replaying: false,
        }
    }

    /// The keyspace.
    pub fn keyspace(&self) -> &'k Keyspace<L> {
        self.keyspace
    }

    /// Whether each command is timed by itself, however quick: it costs a little.
    pub fn time_each(&mut self, on: bool) {
        self.together_max = if on { 0 } else { TOGETHER_MAX };
    }

    /// Bytes of the last reply to a command that was timed by itself.
    pub fn reply_bytes(&self) -> usize {
        self.reply_bytes
    }

    /// Lets go of the stripes that were kept from the command before.
    pub fn let_go(&mut self) {
        self.guard = None;
    }

    /// Values to be freed when there is time.
    pub fn graveyard(&mut self) -> &mut Graveyard {
        &mut self.effects.graveyard
    }

    /// Begins a batch: notes the time, so that the first command is timed.
    pub fn begin(&mut self, host: &mut dyn Host) {
        self.last_ticks = host.ticks();
    }

    /// Ends a batch: lets go of the stripes and serves waiters that had to be left.
    pub fn end(&mut self, settings: &Settings, host: &mut dyn Host, now_ms: u64) {
        self.guard = None;
        if !self.effects.broadcast.is_empty() {
            let changes = std::mem::take(&mut self.effects.broadcast);
            self.keyspace.shared.tracking.broadcast(&changes, host);
        }
        self.time_together(host);
        // Each time with more stripes, so that it comes to an end.
        while let Some((set, key)) = self.retry.pop_front() {
            let mut guard = self.keyspace.stripes.acquire(set);
            self.effects.ready.push(key);
            self.serve_ready(&mut guard, settings, host, now_ms);
        }
    }

    /// Finds a command's entry and the hash of its key, and asks for its bucket.
    #[inline(always)]
    pub fn prepare<'a>(&self, args: Args<'a>) -> Request<'a>
    where
        'k: 'a,
    {
        let shared = &*self.keyspace.shared;
        let entry = shared.table.resolve(&args).ok();
        let mut hash = None;
        if let Some(entry) = entry
            && let KeyPlan::One(at) = entry.key_plan
            && let Some(key) = args.get(usize::from(at))
        {
            hash = Some(shared.hash(key));
        }
        Request { args, entry, hash }
    }

    /// The hash by which a key is found.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> u64 {
        self.keyspace.shared.hash(key)
    }

    /// Asks for the bucket of a request's key.
    #[inline]
    pub fn prefetch_bucket(&self, db: u32, hash: u64) {
        let stripe = self.keyspace.shared.stripe(hash);
        self.peek(stripe, |stripe| {
            if let Some(db) = stripe.db(db) {
                db.table.prefetch_bucket(hash);
            }
        });
    }

    /// Asks for the record of a request's key, once its bucket has come.
    #[inline]
    pub fn prefetch_record(&self, db: u32, hash: u64) {
        let stripe = self.keyspace.shared.stripe(hash);
        self.peek(stripe, |stripe| {
            if let Some(db) = stripe.db(db) {
                db.table.prefetch_record(hash);
            }
        });
    }

    #[inline]
    fn peek(&self, index: usize, look: impl FnOnce(&Stripe)) {
        self.keyspace.stripes.peek(index, look);
    }

    /// Runs one command of `session` and writes its reply to `out`.
    #[inline]
    pub fn execute(
        &mut self,
        session: &mut Session,
        request: &Request<'_>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
        out: &mut Output,
    ) -> Outcome {
        let mark = out.mark();
        let Some(entry) = request.entry else {
            self.unknown(session, request.args, host, out);
            return self.finish(session, None, 0, host, out, mark);
        };
        session.last_command = entry.id;
        if self.together.1 > 0 && self.together.0 != entry.id {
            self.time_together(host);
        }
        if let Some(error) = gate(session, entry, request.args, host)
            && !self.refuse_at_gate(session, entry, error, out)
        {
            return self.finish(session, None, 0, host, out, mark);
        }
        if self.limits != 0 && self.refuse_by_limits(session, entry, settings, out) {
            return self.finish(session, None, 0, host, out, mark);
        }
        if !self.keyspace.shared.is_serving() && self.refuse_by_phase(session, entry, out) {
            return self.finish(session, None, 0, host, out, mark);
        }
        if let Some(multi) = &mut session.multi
            && !runs_at_once_in_multi(entry)
        {
            multi.bytes += request.args.iter().map(<[u8]>::len).sum::<usize>() + 64;
            if multi.bytes > crate::session::MULTI_BYTES_MAX {
                let error = CommandError::text("ERR the queued commands take too much memory");
                self.refuse(session, entry, &error, out);
                return self.finish(session, None, 0, host, out, mark);
            }
            multi.queued.push((entry.id, request.args.to_owned()));
            out.push(b"+QUEUED\r\n");
            return self.finish(session, None, 0, host, out, mark);
        }
        let mut guard = if let Some(hash) = request.hash {
            let stripe = self.keyspace.shared.stripe(hash);
            match self.guard.take() {
                Some(guard) if guard.set().is_only(stripe) => guard,
                other => {
                    // Let go first: taking more while holding some could be out of order.
                    drop(other);
                    self.keyspace.stripes.acquire_one(stripe)
                }
            }
        } else {
            let set = match self.stripes(session, entry, request) {
                Ok(set) => set,
                Err(error) => {
                    self.refuse(session, entry, &error, out);
                    return self.finish(session, None, 0, host, out, mark);
                }
            };
            match self.guard.take() {
                Some(guard) if *guard.set() == set => guard,
                other => {
                    drop(other);
                    self.keyspace.stripes.acquire(set)
                }
            }
        };
        // The phase may have changed while somebody else held the stripes.
        if !self.keyspace.shared.is_serving() && self.refuse_by_phase(session, entry, out) {
            self.guard = Some(guard);
            return self.finish(session, None, 0, host, out, mark);
        }
        if waking::may_wake(entry)
            && self.keyspace.shared.blocked_clients.load(Ordering::Relaxed) > 0
        {
            guard = self.with_waiters(session, entry, request, guard);
        }
        if entry.command.name == "exec" {
            self.exec(session, entry, &mut guard, settings, host, now_ms, out);
        } else {
            let may_block = session.multi.is_none();
            self.call_here(
                session, entry, request, &mut guard, settings, host, now_ms, may_block, out,
            );
        }
        if host.is_monitored() {
            show_monitors(session, entry, request.args, host);
        }
        if self.effects.block.is_some() {
            self.register(session, entry, request, &mut guard);
        }
        if !self.effects.ready.is_empty() {
            self.serve_ready(&mut guard, settings, host, now_ms);
        }
        self.guard = Some(guard);
        self.finish_here(session, Some(entry), request.args.len(), host, out, mark)
    }

    /// Refuses what does not run while the data is loaded, or after it was saved for the last time.
    #[cold]
    fn refuse_by_phase(&mut self, session: &mut Session, entry: &Entry, out: &mut Output) -> bool {
        let error = match self.keyspace.shared.phase() {
            Phase::Loading if !entry.flags.has(Flags::LOADING) => {
                "LOADING Redis is loading the dataset in memory"
            }
            Phase::Stopping if entry.flags.has(Flags::WRITE) || entry.command.name == "exec" => {
                "ERR The server is shutting down"
            }
            _ => return false,
        };
        self.refuse(session, entry, &CommandError::text(error), out);
        true
    }

    /// [`Self::call_here`], for those that are not the usual way to a handler.
    fn call(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        request: &Request<'_>,
        guard: &mut Guard<'k, Stripe, L>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
        may_block: bool,
        out: &mut Output,
    ) {
        self.call_here(
            session, entry, request, guard, settings, host, now_ms, may_block, out,
        );
    }

    /// Calls the handler. Everything it needs is locked.
    // Always inlined: passing eleven arguments on is a good part of a GET.
    #[inline(always)]
    fn call_here(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        request: &Request<'_>,
        guard: &mut Guard<'k, Stripe, L>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
        may_block: bool,
        out: &mut Output,
    ) {
        let Some(handler) = entry.run else {
            let error = CommandError::Arity(entry.full_name.clone());
            return self.refuse(session, entry, &error, out);
        };
        let known_hash = match (request.hash, entry.key_plan) {
            (Some(hash), KeyPlan::One(at)) => {
                Some((request.args.at(usize::from(at)).as_ptr(), hash))
            }
            _ => None,
        };
        let mark = out.mark();
        let mut writer = Writer::new(out, session.protocol);
        let mut cx = Context {
            session,
            keyspace: guard.held(),
            shared: &self.keyspace.shared,
            settings,
            host,
            entry,
            now_ms,
            dead_ms: if self.is_replaying { 0 } else { now_ms },
            may_block,
            effects: &mut self.effects,
            known_hash,
        };
        let result = (handler.run)(&mut cx, request.args, &mut writer);
        if cx.session.tracking.is_some() {
            cx.remember_reads(entry, request.args);
        }
        if let Err(error) = result {
            self.take_back(session, entry, &error, out, mark);
        }
        if self.effects.changes > 0 {
            self.log(entry, session, request.args, now_ms);
        }
    }

    /// Answers with a handler's error in place of what it has written.
    #[inline(never)]
    fn take_back(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        error: &CommandError,
        out: &mut Output,
        mark: usize,
    ) {
        out.truncate(mark);
        self.effects.block = None;
        self.stats.commands[usize::from(entry.id)].failed.add(1);
        self.effects.retry_ms = None;
        self.write_error(session, error, out);
    }

    /// Which stripes a command needs.
    fn stripes(
        &self,
        session: &Session,
        entry: &Entry,
        request: &Request<'_>,
    ) -> Result<StripeSet, CommandError> {
        let keyspace = self.keyspace;
        if let Some(hash) = request.hash {
            return Ok(StripeSet::one(keyspace.shared.stripe(hash)));
        }
        if entry.command.name == "exec" {
            return Ok(self.stripes_of_exec(session));
        }
        if matches!(&*entry.full_name, "unwatch" | "discard" | "reset") {
            return Ok(keyspace.set_of(session.watches.iter().map(|watch| watch.hash)));
        }
        if entry.run.is_some_and(|handler| handler.locks == Locks::All) {
            return Ok(keyspace.stripes.all());
        }
        if entry.key_plan == KeyPlan::None {
            return Ok(StripeSet::EMPTY);
        }
        let mut set = StripeSet::EMPTY;
        let args = request.args;
        let add = &mut |index| {
            let hash = keyspace.shared.hash(args.at(index));
            set.add(keyspace.shared.stripe(hash));
        };
        match entry.each_key_index(&args, add) {
            Ok(()) => Ok(set),
            // The words do not say where the keys are. The handler finds the same and says why;
            // should it find keys after all, everything is locked.
            Err(_) => Ok(keyspace.stripes.all()),
        }
    }

    fn stripes_of_exec(&self, session: &Session) -> StripeSet {
        let watched = session.watches.iter().map(|watch| watch.hash);
        let mut set = self.keyspace.set_of(watched);
        let table = &self.keyspace.shared.table;
        for (id, args) in session.multi.iter().flat_map(|multi| &multi.queued) {
            let entry = &table.entries()[usize::from(*id)];
            let request = Request {
                args: args.view(),
                entry: Some(entry),
                hash: None,
            };
            if let Ok(more) = self.stripes(session, entry, &request) {
                set.add_all(&more);
            }
        }
        set
    }

    /// EXEC: all stripes of all queued commands and watched keys are locked.
    fn exec(
        &mut self,
        session: &mut Session,
        exec: &Entry,
        guard: &mut Guard<'k, Stripe, L>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
        out: &mut Output,
    ) {
        let Some(multi) = session.multi.take() else {
            let error = CommandError::text("ERR EXEC without MULTI");
            return self.refuse(session, exec, &error, out);
        };
        let watches = std::mem::take(&mut session.watches);
        let broken = session.watch_broken.load(Ordering::Relaxed)
            || watches.iter().any(|watch| {
                let held = guard.held();
                let stripe = held.get(self.keyspace.shared.stripe(watch.hash));
                let db = stripe.db(watch.db);
                !watch.was_dead && db.is_some_and(|db| db.is_dead(watch.hash, &watch.key, now_ms))
            });
        let mut held = guard.held();
        for watch in &watches {
            let stripe = held.get_mut(self.keyspace.shared.stripe(watch.hash));
            stripe
                .watchers
                .remove(watch.db, &watch.key, &session.watch_broken);
        }
        if !watches.is_empty() {
            session.watch_broken = Arc::new(AtomicBool::new(false));
        }
        if let Some(refusal) = &multi.refusal {
            return self.refuse(session, exec, &discarded(refusal), out);
        }
        if multi.aborted {
            let error =
                CommandError::text("EXECABORT Transaction discarded because of previous errors.");
            return self.refuse(session, exec, &error, out);
        }
        if broken {
            return Writer::new(out, session.protocol).null_array();
        }
        Writer::new(out, session.protocol).array(multi.queued.len());
        self.in_transaction = true;
        for (id, args) in &multi.queued {
            let keyspace = self.keyspace;
            let entry = &keyspace.shared.table.entries()[usize::from(*id)];
            let request = Request {
                args: args.view(),
                entry: Some(entry),
                hash: None,
            };
            if let Err(denial) = acl::check(session, entry, request.args) {
                host.denied(session, entry, request.args, denial, Place::Transaction);
                self.write_error(session, &denial.error_in_exec(), out);
                continue;
            }
            let (before, mark) = (host.ticks(), out.mark());
            self.call(
                session, entry, &request, guard, settings, host, now_ms, false, out,
            );
            let ticks = host.ticks().saturating_sub(before);
            let stats = &self.stats.commands[usize::from(*id)];
            stats.ran(ticks);
            host.ran_in_transaction(entry, request.args, ticks, out.mark() - mark);
            if host.is_monitored() {
                show_monitors(session, entry, request.args, host);
            }
        }
        self.in_transaction = false;
        self.close_frame(now_ms);
        session.wrote_lsn = self.frames.last_lsn().unwrap_or(session.wrote_lsn);
    }

    /// Puts the client to wait under its keys, whose stripes are locked.
    fn register(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        request: &Request<'_>,
        guard: &mut Guard<'k, Stripe, L>,
    ) {
        let Some(block) = self.effects.block.take() else {
            return;
        };
        let shared = &self.keyspace.shared;
        let args = request.args;
        // More may be locked now than it needs.
        let stripes = self.stripes(session, entry, request);
        let keys: Vec<_> = block
            .keys
            .iter()
            .map(|&index| (shared.hash(args.at(index)), Box::from(args.at(index))))
            .collect();
        let mut owned = args.to_owned();
        if !block.replace.is_empty() {
            let word = |(index, word): (usize, &'_ [u8])| {
                block
                    .replace
                    .iter()
                    .find(|(at, _)| *at == index)
                    .map_or_else(|| word.to_vec(), |(_, new)| new.clone())
            };
            let words: Vec<_> = args.iter().enumerate().map(word).collect();
            owned = resp::OwnedArgs::from_words(words.iter().map(Vec::as_slice));
        }
        let mut waiter = Waiter::new(
            (session.id, session.user().clone()),
            entry.id,
            owned,
            (session.db, session.protocol),
            &block,
            stripes.unwrap_or_else(|_| guard.set().clone()),
            keys,
            1 + shared.waits.fetch_add(1, Ordering::Relaxed),
            waking::filled_keys(entry, args),
        );
        waiter.tracking.clone_from(&session.tracking);
        let waiter = Arc::new(waiter);
        waiter.set_retry(self.effects.retry_ms.take());
        let mut held = guard.held();
        for (hash, key) in &waiter.keys {
            held.get_mut(shared.stripe(*hash))
                .waiters
                .add(key, waiter.clone());
        }
        shared.blocked_clients.fetch_add(1, Ordering::Relaxed);
        session.waiting = Some(waiter);
    }

    /// Removes a waiter from its keys' lines.
    fn unregister(&self, waiter: &Arc<Waiter>, guard: &mut Guard<'k, Stripe, L>) {
        let shared = &self.keyspace.shared;
        let mut held = guard.held();
        for (hash, key) in &waiter.keys {
            held.get_mut(shared.stripe(*hash))
                .waiters
                .remove(key, waiter);
        }
        shared.blocked_clients.fetch_sub(1, Ordering::Relaxed);
    }

    /// Ends a client's wait: a timeout, CLIENT UNBLOCK or a disconnect. True where the caller now
    /// owes it an answer; false where somebody is answering already.
    pub fn cancel_wait(&mut self, session: &mut Session) -> bool {
        let Some(waiter) = session.waiting.clone() else {
            return false;
        };
        self.guard = None;
        let mut guard = self.keyspace.stripes.acquire(waiter.stripes.clone());
        if !waiter.cancel() {
            return false;
        }
        self.unregister(&waiter, &mut guard);
        session.waiting = None;
        true
    }

    /// Runs a waiting client's command again, as its time to look has come ([`Waiter::due_ms`],
    /// before its deadline). Where it finds something now, the host delivers the reply.
    pub fn retry_wait(
        &mut self,
        session: &Session,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) {
        let Some(waiter) = session.waiting.clone() else {
            return;
        };
        self.guard = None;
        let mut guard = self.keyspace.stripes.acquire(waiter.stripes.clone());
        self.effects.retry_ms = None;
        self.serve(&waiter, &mut guard, settings, host, now_ms);
        waiter.set_retry(self.effects.retry_ms.take());
        self.serve_ready(&mut guard, settings, host, now_ms);
        drop(guard);
        self.end(settings, host, now_ms);
    }

    /// Ends all that a client holds: its wait, its watches, its subscriptions. It is gone.
    pub fn forget(
        &mut self,
        session: &mut Session,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) {
        self.cancel_wait(session);
        self.end(settings, host, now_ms);
        let keyspace = self.keyspace;
        let watches = std::mem::take(&mut session.watches);
        if !watches.is_empty() {
            let set = keyspace.set_of(watches.iter().map(|watch| watch.hash));
            let mut guard = keyspace.stripes.acquire(set);
            let mut held = guard.held();
            for watch in &watches {
                let stripe = held.get_mut(keyspace.shared.stripe(watch.hash));
                stripe
                    .watchers
                    .remove(watch.db, &watch.key, &session.watch_broken);
            }
        }
        if let Some(tracking) = session.tracking.take() {
            keyspace.shared.tracking.forget(session.id, &tracking);
        }
        if let Some(subscriptions) = session.subscriptions.take() {
            keyspace
                .shared
                .forget_subscriptions(session.id, &subscriptions);
        }
    }

    /// Serves the clients that wait for keys that became ready.
    #[cold]
    fn serve_ready(
        &mut self,
        guard: &mut Guard<'k, Stripe, L>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) {
        while !self.effects.ready.is_empty() {
            for (db, hash, key) in std::mem::take(&mut self.effects.ready) {
                self.serve_line(guard, settings, host, now_ms, (db, key), hash);
            }
        }
    }

    /// Serves those who wait for one key, as far as it goes.
    fn serve_line(
        &mut self,
        guard: &mut Guard<'k, Stripe, L>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
        key: DbKey,
        hash: u64,
    ) {
        let index = self.keyspace.shared.stripe(hash);
        let (mut idle, mut last) = (Vec::new(), 0);
        loop {
            let held = guard.held();
            let stripe = held.get(index);
            let record = stripe
                .db(key.0)
                .and_then(|db| db.table.find(hash, &key.1))
                .filter(|record| !crate::keyspace::is_past(*record, now_ms));
            let kind = record.map(|record| Kind::of(record.value()));
            let Some(waiter) = stripe.waiters.next(&key, kind, &idle, last).cloned() else {
                return;
            };
            last = waiter.ticket;
            if !guard.try_add(&waiter.stripes) {
                // Nobody may pass who came later.
                let mut set = guard.set().clone();
                set.add_all(&waiter.stripes);
                self.retry.push_back((set, (key.0, hash, key.1)));
                return;
            }
            let is_served = self.serve(&waiter, guard, settings, host, now_ms);
            // The waiter's own thread sets its alarm; it is not for who waits next.
            self.effects.retry_ms = None;
            if let Some(group) = waiter.group.clone().filter(|_| !is_served) {
                idle.push(group);
            }
        }
    }

    /// Runs a waiter's command again, with the stripes of all its keys locked. False where it found
    /// nothing.
    fn serve(
        &mut self,
        waiter: &Arc<Waiter>,
        guard: &mut Guard<'k, Stripe, L>,
        settings: &Settings,
        host: &mut dyn Host,
        now_ms: u64,
    ) -> bool {
        if waiter.state() != State::Waiting || !waiter.claim() {
            return true;
        }
        let keyspace = self.keyspace;
        let entry = &keyspace.shared.table.entries()[usize::from(waiter.command)];
        let mut session = Session::new(waiter.client, true);
        session.db = waiter.db;
        session.protocol = waiter.protocol;
        session.set_user(waiter.user.clone());
        session.tracking = waiter.tracking.clone();
        let request = Request {
            args: waiter.args.view(),
            entry: Some(entry),
            hash: None,
        };
        let mut out = Output::default();
        let before = host.ticks();
        match acl::permit(&session, entry, request.args, Place::TopLevel, host) {
            Ok(()) => self.call(
                &mut session,
                entry,
                &request,
                guard,
                settings,
                host,
                now_ms,
                true,
                &mut out,
            ),
            // Its rights changed while it waited.
            Err(error) => self.refuse(&mut session, entry, &error, &mut out),
        }
        if self.effects.block.take().is_some() {
            waiter.release();
            return false;
        }
        let stats = &self.stats.commands[usize::from(waiter.command)];
        stats.ticks.add(host.ticks().saturating_sub(before));
        self.unregister(waiter, guard);
        let mut reply = Vec::with_capacity(out.len());
        out.slices(|piece| {
            reply.extend_from_slice(piece);
            true
        });
        host.serve(waiter.client, &reply);
        true
    }

    fn unknown(
        &mut self,
        session: &mut Session,
        args: Args<'_>,
        host: &dyn Host,
        out: &mut Output,
    ) {
        let _ = host;
        let table = &self.keyspace.shared.table;
        session.last_command = u16::MAX;
        // A browser that was talked into sending a form here: nothing it says is a command.
        if ["POST", "Host:"].iter().any(|word| args.is(0, word)) {
            session.closing = true;
            return;
        }
        let error = if table.find(args.at(0)).is_some() {
            let name = shown_up_to(args.at(0), SHOWN_BYTES_MAX).to_uppercase();
            let sub = shown_up_to(args.at(1), SHOWN_BYTES_MAX);
            CommandError::err(format!("unknown subcommand '{sub}'. Try {name} HELP."))
        } else {
            let mut text = String::new();
            for word in args.from(1).iter() {
                if text.chars().count() >= SHOWN_BYTES_MAX {
                    break;
                }
                let word = shown_up_to(word, SHOWN_BYTES_MAX - text.chars().count());
                text += &format!("'{word}' ");
            }
            let name = shown_up_to(args.at(0), SHOWN_BYTES_MAX);
            if args.len() > 1 {
                text.insert_str(0, ", with args beginning with: ");
            }
            CommandError::err(format!("unknown command '{name}'{text}"))
        };
        if let Some(multi) = &mut session.multi {
            multi.aborted = true;
        }
        self.write_error(session, &error, out);
    }

    /// Refuses a command that [`gate`] found fault with. True where it goes on all the same: EXEC,
    /// which ends its transaction with the reason.
    #[cold]
    fn refuse_at_gate(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        error: CommandError,
        out: &mut Output,
    ) -> bool {
        if entry.command.name != "exec" {
            self.refuse(session, entry, &error, out);
            return false;
        }
        let Some(multi) = &mut session.multi else {
            self.refuse(session, entry, &discarded(&error), out);
            return false;
        };
        multi.refusal = Some(error);
        true
    }

    /// Refuses a command before it runs.
    #[cold]
    fn refuse(
        &mut self,
        session: &mut Session,
        entry: &Entry,
        error: &CommandError,
        out: &mut Output,
    ) {
        if let Some(multi) = &mut session.multi {
            multi.aborted = true;
        }
        self.stats.commands[usize::from(entry.id)].rejected.add(1);
        self.write_error(session, error, out);
    }

    fn write_error(&mut self, session: &Session, error: &CommandError, out: &mut Output) {
        self.stats.count_error(&error.code());
        Writer::new(out, session.protocol).error(&error.to_string());
    }

    /// Ends a run of quick commands: reads the clock for all of them.
    fn time_together(&mut self, host: &mut dyn Host) {
        let (id, count) = self.together;
        if count == 0 {
            return;
        }
        self.together.1 = 0;
        let now = host.ticks();
        let ticks = now.saturating_sub(self.last_ticks);
        self.last_ticks = now;
        self.stats.commands[usize::from(id)].ran_together(u64::from(count), ticks);
    }

    /// [`Self::finish_here`], for commands that did not get as far as to run.
    #[inline(never)]
    fn finish(
        &mut self,
        session: &mut Session,
        entry: Option<&Entry>,
        words: usize,
        host: &mut dyn Host,
        out: &mut Output,
        mark: usize,
    ) -> Outcome {
        self.finish_here(session, entry, words, host, out, mark)
    }

    #[inline(always)]
    fn finish_here(
        &mut self,
        session: &mut Session,
        entry: Option<&Entry>,
        words: usize,
        host: &mut dyn Host,
        out: &mut Output,
        mark: usize,
    ) -> Outcome {
        let mut ticks = 0;
        match entry {
            // Reading the clock takes a tenth of what a GET does: short runs of quick commands
            // share one reading.
            Some(entry)
                if entry.flags.has(Flags::FAST)
                    && words <= QUICK_WORDS_MAX
                    && self.together.1 < self.together_max =>
            {
                self.together = (entry.id, self.together.1 + 1);
            }
            Some(entry) => {
                self.time_together(host);
                let now = host.ticks();
                ticks = now.saturating_sub(self.last_ticks);
                self.last_ticks = now;
                self.stats.commands[usize::from(entry.id)].ran(ticks);
                if self.together_max == 0 {
                    self.reply_bytes = out.mark().saturating_sub(mark);
                }
            }
            None => {}
        }
        if let Some(tracking) = &mut session.tracking
            && session.multi.is_none()
            && !entry.is_some_and(|entry| entry.full_name.starts_with("client|"))
        {
            tracking.is_excepted = false;
        }
        if session.reply_mode != ReplyMode::On {
            withhold(session, entry, out, mark);
        }
        out.end_command();
        Outcome {
            ticks,
            blocked: session.waiting.is_some(),
        }
    }
}

/// Takes back the reply of a client that chose not to get it, and moves its choice on.
#[cold]
fn withhold(session: &mut Session, entry: Option<&Entry>, out: &mut Output, mark: usize) {
    // What confirms a subscription is a push, like the messages, and is always sent.
    let is_push = entry.is_some_and(|entry| {
        matches!(
            entry.command.name,
            "subscribe"
                | "unsubscribe"
                | "psubscribe"
                | "punsubscribe"
                | "ssubscribe"
                | "sunsubscribe"
        )
    });
    let is_meant = matches!(session.reply_mode, ReplyMode::Off | ReplyMode::Skip);
    if is_meant && !is_push {
        out.truncate(mark);
    }
    session.reply_mode = match session.reply_mode {
        ReplyMode::SkipNext => ReplyMode::Skip,
        // The reply that is to be left out is yet to come.
        ReplyMode::Skip if session.waiting.is_none() => ReplyMode::On,
        other => other,
    };
}

/// Shows a command that ran to those who monitor; what only operators do stays unseen.
#[cold]
fn show_monitors(session: &Session, entry: &Entry, args: Args<'_>, host: &mut dyn Host) {
    if !entry.flags.any(Flags::SKIP_MONITOR.with(Flags::ADMIN)) {
        host.monitor(session, entry, args);
    }
}

/// Commands that MULTI does not queue.
fn runs_at_once_in_multi(entry: &Entry) -> bool {
    matches!(
        &*entry.full_name,
        "exec" | "discard" | "multi" | "watch" | "quit" | "reset"
    )
}

/// Commands that a RESP2 subscriber may send.
fn is_for_subscribers(entry: &Entry) -> bool {
    matches!(
        &*entry.full_name,
        "subscribe"
            | "unsubscribe"
            | "psubscribe"
            | "punsubscribe"
            | "ssubscribe"
            | "sunsubscribe"
            | "ping"
            | "quit"
            | "reset"
    )
}

/// The error of an EXEC that is refused: the transaction is gone.
#[cold]
fn discarded(refusal: &CommandError) -> CommandError {
    let text = refusal.to_string();
    let text = text.strip_prefix("ERR ").unwrap_or(&text);
    CommandError::Text(format!("EXECABORT Transaction discarded because of: {text}").into())
}

/// The gates before a command, in Redis's order. `None` where it may run.
#[inline]
fn gate(
    session: &Session,
    entry: &Entry,
    args: Args<'_>,
    host: &mut dyn Host,
) -> Option<CommandError> {
    if !entry.arity_allows(args.len()) || entry.run.is_none() {
        return Some(CommandError::Arity(entry.full_name.clone()));
    }
    let plain = session.authenticated
        && !session.is_restricted()
        && session.multi.is_none()
        && session.subscriptions.is_none()
        && !session.monitors;
    if plain {
        None
    } else {
        gate_special(session, entry, args, host)
    }
}

#[cold]
fn gate_special(
    session: &Session,
    entry: &Entry,
    args: Args<'_>,
    host: &mut dyn Host,
) -> Option<CommandError> {
    if !session.authenticated && !entry.flags.has(Flags::NO_AUTH) {
        return Some(CommandError::text("NOAUTH Authentication required."));
    }
    if session.multi.is_some() && entry.flags.has(Flags::NO_MULTI) {
        return Some(CommandError::text(
            "ERR Command not allowed inside a transaction",
        ));
    }
    let place = match session.multi {
        Some(_) => Place::Transaction,
        None => Place::TopLevel,
    };
    if let Err(error) = acl::permit(session, entry, args, place, host) {
        return Some(error);
    }
    if session.is_subscriber() && !is_for_subscribers(entry) {
        let name = &entry.full_name;
        return Some(CommandError::err(format!(
            "Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context"
        )));
    }
    if session.monitors && entry.flags.any(Flags::READONLY.with(Flags::WRITE)) {
        return Some(CommandError::text(
            "ERR Replica can't interact with the keyspace",
        ));
    }
    None
}
