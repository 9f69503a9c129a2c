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
//! - Only commands that change data, and those around them (SELECT, MULTI, EXEC), are run:
//!   whatever else a damaged log asks for is refused.

use std::sync::Arc;

use command::Flags;
use resp::{Args, Output, OwnedArgs};
use structure::stripes::RawLock;

use crate::executor::Executor;
use crate::handler::Entry;
use crate::host::{Alone, ClientId, Host};
use crate::keyspace::Keyspace;
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
        let table = &self.executor.keyspace().shared.table;
        let Some(entry) = table
            .resolve(&args)
            .ok()
            .filter(|entry| may_be_logged(entry))
        else {
            let name = String::from_utf8_lossy(args.at(0)).into_owned();
            return Err(Refused::Unknown(name));
        };
        let (session, host) = (&mut self.session, &mut *self.host);
        self.executor
            .replay(
                session,
                entry,
                args,
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
            Some(b'-') => Err(Refused::Failed(
                String::from_utf8_lossy(&reply[1..]).trim_end().to_owned(),
            )),
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
pub(crate) fn may_be_logged(entry: &Entry) -> bool {
    entry.run.is_some() && (entry.flags.has(Flags::WRITE) || entry.command.name == "pfcount")
}

#[cfg(test)]
mod tests;
