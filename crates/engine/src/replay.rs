//! Playing a log again: its commands, in order, make the keyspace that it was written for.
//!
//! A log says everything that happened: a key that died, or had to make room, is a DEL in it. So
//! while it is replayed nothing dies by itself, and a deadline in the past stands until its DEL
//! comes; what is left past its deadline at the end dies afterwards like any other key.
//!
//! # Invariants
//! - The commands of a transaction have an effect when its EXEC comes, and none where it does not.
//! - Nobody hears of anything: no keyspace events, no messages, no waiting clients. No limit holds
//!   but those on the length of values.
//! - Only commands that change data, scripts, and those around them (SELECT, MULTI, EXEC), are run:
//!   whatever else a damaged log asks for is refused.

use std::sync::Arc;

use command::{Flags, KeyPlan};
use resp::{Args, Output, OwnedArgs};
use structure::stripes::RawLock;

use crate::executor::{Executor, Request};
use crate::handler::Entry;
use crate::host::{Alone, ClientId, Host};
use crate::keyspace::{self, Keyspace};
use crate::number;
use crate::session::Session;
use crate::settings::Settings;
use crate::stats::ThreadStats;

/// Objects that wait to be freed at most.
const PENDING_MAX: usize = 64;

/// Plays the commands of a log into a keyspace.
pub struct Replayer<'k, L: RawLock> {
    executor: Executor<'k, L>,
    session: Session,
    settings: Settings,
    host: Box<dyn Host>,
    out: Output,
    /// The commands since MULTI.
    queued: Option<Vec<OwnedArgs>>,
}

/// What can be found out about a command of a log before its turn, on any thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Prepared {
    /// The command's id; none for those that are more than a change.
    id: Option<u16>,
    /// The hash of its one key.
    hash: Option<u64>,
}

impl Prepared {
    /// Looks at a command.
    #[inline]
    pub fn new(shared: &keyspace::Shared, args: Args<'_>) -> Self {
        let entry = shared.table.resolve_own(&args).ok();
        let Some(entry) = entry.filter(|entry| may_be_logged(entry)) else {
            return Self::default();
        };
        let key = match entry.key_plan {
            KeyPlan::One(at) => args.get(usize::from(at)),
            _ => None,
        };
        Self {
            id: Some(entry.id),
            hash: key.map(|key| shared.hash(key)),
        }
    }
}

/// Why a command of a log was not played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// There is no such command, or it has no place in a log: the log is not ours, or damaged.
    Unknown(String),
    /// The command answered with an error. The log of a server that works holds none.
    Failed(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "unknown command '{name}'"),
            Self::Failed(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Refused {}

impl<'k, L: RawLock> Replayer<'k, L> {
    /// One that plays into `keyspace`, beginning in database 0, where there is nothing but that.
    pub fn new(keyspace: &'k Keyspace<L>, settings: &Settings) -> Self {
        Self::with_host(keyspace, settings, Box::new(Alone::new(1)))
    }

    /// As [`Replayer::new`], in the surroundings of a host: what commands change beside the
    /// keyspace, such as libraries of functions, they change there.
    pub fn with_host(keyspace: &'k Keyspace<L>, settings: &Settings, host: Box<dyn Host>) -> Self {
        let stats = Arc::new(ThreadStats::new(keyspace.shared.table.len()));
        let mut executor = Executor::new(keyspace, stats);
        executor.set_replaying();
        let nobody = ClientId {
            thread: 0,
            number: 0,
        };
        Self {
            executor,
            session: Session::new(nobody, true),
            settings: Settings {
                notify: 0,
                maxmemory: 0,
                ..settings.clone()
            },
            host,
            out: Output::default(),
            queued: None,
        }
    }

    /// Whether a transaction has begun that has not ended: what came since its MULTI has had no
    /// effect so far.
    pub fn is_in_transaction(&self) -> bool {
        self.queued.is_some()
    }

    /// The database that the next command is for.
    pub fn db(&self) -> u32 {
        self.session.db
    }

    /// Plays one command. `now_ms` is when: what the log does not say is as if it happened now,
    /// such as when a key was last used.
    ///
    /// # Errors
    /// See [`Refused`]; the next command can be played all the same.
    pub fn play(&mut self, args: Args<'_>, now_ms: u64) -> Result<(), Refused> {
        if args.is(0, "MULTI") && args.len() == 1 {
            let nested = Refused::Failed("ERR MULTI calls can not be nested".into());
            if self.queued.replace(Vec::new()).is_some() {
                return Err(nested);
            }
            return Ok(());
        }
        if args.is(0, "EXEC") && args.len() == 1 {
            let Some(queued) = self.queued.take() else {
                return Err(Refused::Failed("ERR EXEC without MULTI".into()));
            };
            let played = queued.iter().map(|args| self.run(args.view(), now_ms));
            // All are played, whatever becomes of one.
            let results: Vec<_> = played.collect();
            return results.into_iter().collect();
        }
        if let Some(queued) = &mut self.queued {
            queued.push(args.to_owned());
            return Ok(());
        }
        self.run(args, now_ms)
    }

    /// Plays commands that belong to no transaction, or to one that is here whole, in order. Asks
    /// for all their keys before the first is played, so a few dozen at once are best.
    ///
    /// # Errors
    /// The index of the first that was not played, and why; none after it was.
    pub fn play_window<'a>(
        &mut self,
        commands: impl Iterator<Item = (Args<'a>, Prepared)> + Clone,
        now_ms: u64,
    ) -> Result<(), (usize, Refused)> {
        self.executor.let_go();
        let db = self.session.db;
        let hashes = || commands.clone().filter_map(|(_, prepared)| prepared.hash);
        hashes().for_each(|hash| self.executor.prefetch_bucket(db, hash));
        hashes().for_each(|hash| self.executor.prefetch_record(db, hash));
        for (index, (args, prepared)) in commands.enumerate() {
            let played = match prepared.id {
                Some(id) if self.queued.is_none() => {
                    let keyspace = self.executor.keyspace();
                    let entry = &keyspace.shared.table.entries()[usize::from(id)];
                    self.change(entry, args, prepared.hash, now_ms)
                }
                _ => self.play(args, now_ms),
            };
            played.map_err(|refused| (index, refused))?;
        }
        Ok(())
    }

    /// Lets go of all locks and of what was displaced. To be called when nothing comes for now.
    pub fn rest(&mut self) {
        self.executor.rest();
    }

    fn run(&mut self, args: Args<'_>, now_ms: u64) -> Result<(), Refused> {
        if args.is(0, "SELECT") && args.len() == 2 {
            let db = number::int(args.at(1)).ok();
            let db = db.and_then(|db| u32::try_from(db).ok());
            self.session.db = db
                .filter(|db| *db < self.settings.databases)
                .ok_or_else(|| Refused::Failed("ERR DB index is out of range".into()))?;
            return Ok(());
        }
        let keyspace = self.executor.keyspace();
        let prepared = Prepared::new(&keyspace.shared, args);
        let Some(id) = prepared.id else {
            let name = String::from_utf8_lossy(args.at(0)).into_owned();
            return Err(Refused::Unknown(name));
        };
        let entry = &keyspace.shared.table.entries()[usize::from(id)];
        self.change(entry, args, prepared.hash, now_ms)
    }

    /// Plays a command that may stand in a log.
    fn change(
        &mut self,
        entry: &Entry,
        args: Args<'_>,
        hash: Option<u64>,
        now_ms: u64,
    ) -> Result<(), Refused> {
        let request = Request {
            args,
            entry: Some(entry),
            hash,
        };
        let (session, host) = (&mut self.session, &mut *self.host);
        self.executor
            .replay(
                session,
                entry,
                &request,
                &self.settings,
                host,
                now_ms,
                &mut self.out,
            )
            .map_err(|error| Refused::Failed(error.to_string()))?;
        if self.executor.graveyard().pending() > PENDING_MAX {
            self.executor.rest();
        }
        let reply = self.out.since(0);
        let result = match reply.first() {
            // A script may have failed after its first effects: then it is in the log all the same.
            Some(b'-') if !is_script(entry) || reply.starts_with(b"-NOSCRIPT") => Err(
                Refused::Failed(String::from_utf8_lossy(&reply[1..]).trim_end().to_owned()),
            ),
            _ => Ok(()),
        };
        self.out.truncate(0);
        if self.out.mark() > 0 {
            // A long reply, which is sealed.
            self.out = Output::default();
        }
        result
    }
}

/// Whether a command may stand in a log. PFCOUNT is no write, but keeps its estimate in the value.
/// Up to Redis 6.2 logs have scripts themselves in place of what they did.
pub(crate) fn may_be_logged(entry: &Entry) -> bool {
    entry.run.is_some()
        && (entry.flags.has(Flags::WRITE) || entry.command.name == "pfcount" || is_script(entry))
}

/// Whether a command runs a script, or keeps one for later.
fn is_script(entry: &Entry) -> bool {
    matches!(
        &*entry.full_name,
        "eval" | "evalsha" | "script|load" | "script|flush"
    )
}

#[cfg(test)]
mod tests;
