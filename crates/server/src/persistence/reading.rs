//! Reading a file of the log ahead of who plays it, on a thread of its own.
//!
//! The thread checks checksums, finds commands, looks them up and hashes their keys; who plays them
//! is left with what needs the keyspace, and knows some dozen keys ahead.
//!
//! # Invariants
//! - What is read ahead is bounded: [`BATCHES_WAITING`] batches of [`BATCH_BYTES`], or of one unit
//!   where that is longer.
//! - A fault comes after everything that stands before it.

use std::io::Read;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use engine::keyspace::Shared as Keys;
use engine::replay::Prepared;
use persist::aof::{Batch, Fault, Item, Reader};
use resp::Args;

/// Bytes after which a batch is full.
const BATCH_BYTES: usize = 128 * 1024;
/// Batches that may wait.
const BATCHES_WAITING: usize = 16;
/// Commands that are played in one go.
const WINDOW: usize = 32;
/// Milliseconds that are waited for a batch.
const WAIT_MS: u64 = 2;

/// Part of a file.
#[derive(Default)]
struct Ahead {
    batch: Batch,
    /// What was found out about each command.
    prepared: Vec<Prepared>,
    /// Where what follows begins in the file.
    end: u64,
}

enum News {
    Ahead(Ahead),
    End(Result<(), Fault>),
}

/// A file of the log that is being read.
pub struct Reading {
    news: Receiver<News>,
    ahead: Ahead,
    /// Commands of `ahead` that were given out.
    done: usize,
}

/// What there is to play.
pub enum Next {
    /// Commands: see [`Reading::window`].
    Commands,
    /// Nothing yet.
    Nothing,
    /// Everything was given out; or the file is damaged behind that.
    End(Result<(), Fault>),
    /// The thread is gone.
    Gone,
}

impl Reading {
    /// Begins to read `file`, which stands at byte `origin`.
    ///
    /// # Errors
    /// Where there can be no thread.
    pub fn begin(
        file: impl Read + Send + 'static,
        origin: u64,
        keys: &Arc<Keys>,
    ) -> std::io::Result<Self> {
        let (tell, news) = sync_channel(BATCHES_WAITING);
        let keys = keys.clone();
        std::thread::Builder::new()
            .name("loader".to_owned())
            .spawn(move || {
                let read = read(Reader::new(file, origin), &keys, &tell);
                // Nobody listens where the server ends first.
                let _ = tell.send(News::End(read));
            })?;
        Ok(Self {
            news,
            ahead: Ahead::default(),
            done: 0,
        })
    }

    /// Waits a moment for commands to play.
    pub fn next(&mut self) -> Next {
        if self.done < self.ahead.batch.commands() {
            return Next::Commands;
        }
        match self.news.recv_timeout(Duration::from_millis(WAIT_MS)) {
            Ok(News::Ahead(ahead)) => {
                (self.ahead, self.done) = (ahead, 0);
                Next::Commands
            }
            Ok(News::End(read)) => Next::End(read),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::Gone,
        }
    }

    /// The next few commands.
    pub fn window(&self) -> impl Iterator<Item = (Args<'_>, Prepared)> + Clone {
        let end = self.ahead.batch.commands().min(self.done + WINDOW);
        (self.done..end).filter_map(|index| {
            let (args, _) = self.ahead.batch.command(index)?;
            Some((args, self.ahead.prepared[index]))
        })
    }

    /// Where the unit of command `index` of the window begins in the file.
    pub fn place(&self, index: usize) -> u64 {
        let command = self.ahead.batch.command(self.done + index);
        command.map_or(self.ahead.end, |(_, at)| at)
    }

    /// The window was played. Returns, after the last of a batch, how many units it had, and where
    /// what follows begins in the file.
    pub fn played(&mut self) -> Option<(u64, u64)> {
        let count = self.ahead.batch.commands();
        self.done = count.min(self.done + WINDOW);
        (self.done == count).then(|| (self.ahead.batch.units(), self.ahead.end))
    }
}

fn read<R: Read>(mut reader: Reader<R>, keys: &Keys, tell: &SyncSender<News>) -> Result<(), Fault> {
    let mut ahead = Ahead::default();
    // True while somebody listens.
    let send = |ahead: &mut Ahead, end: u64| {
        let mut full = std::mem::take(ahead);
        full.end = end;
        full.batch.is_empty() || tell.send(News::Ahead(full)).is_ok()
    };
    loop {
        let at = reader.offset();
        match reader.next_item() {
            Ok(Some(Item::Unit(unit))) => {
                if !ahead.batch.has_room(unit) && !send(&mut ahead, at) {
                    return Ok(());
                }
                for args in unit.commands() {
                    ahead.prepared.push(Prepared::new(keys, args));
                }
                ahead.batch.push(unit, at);
            }
            Ok(Some(Item::Timestamp(_))) => {}
            Ok(None) => {
                send(&mut ahead, at);
                return Ok(());
            }
            Err(fault) => {
                send(&mut ahead, at);
                return Err(fault);
            }
        }
        if ahead.batch.len_bytes() >= BATCH_BYTES && !send(&mut ahead, reader.offset()) {
            return Ok(());
        }
    }
}
