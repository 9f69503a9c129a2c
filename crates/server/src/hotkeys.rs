//! HOTKEYS: which keys the most processor time and the most traffic go to.
//!
//! While a session runs, every command is timed by itself and comes to [`Hotkeys::note`], the way
//! that slow commands go: while none runs, nothing on the path of a command looks at this. Each
//! thread counts for itself, and GET adds up.
//!
//! # Invariants
//! - Memory is bounded: [`KEYS_MAX`] keys a thread and a metric, none longer than
//!   [`KEY_BYTES_MAX`]. What longer keys take counts in the sums, but they are not named.
//! - What GET shows of a key is never more than it had.

mod top;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::Entry;
use parking_lot::Mutex;
use resp::Args;

use crate::sys::{self, CpuOf};
use top::Top;

/// Keys that have a counter, a thread and a metric: many times what a session may ask for.
const KEYS_MAX: usize = 2048;
/// Keys longer than this are not named.
const KEY_BYTES_MAX: usize = 4096;

/// What a session is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Whether processor time is counted.
    pub cpu: bool,
    /// Whether traffic is.
    pub net: bool,
    /// How many keys are shown.
    pub keys: usize,
    /// How long it lasts, in milliseconds; 0 until it is stopped.
    pub duration_ms: u64,
    /// One of so many keys is counted.
    pub ratio: u64,
}

/// The server's sessions: at most one runs, and the last one's results stay until they are reset.
#[derive(Default)]
pub struct Hotkeys {
    is_active: AtomicBool,
    session: Mutex<Option<Session>>,
    /// What each thread counted.
    counted: Vec<Mutex<Counted>>,
}

#[derive(Clone, Copy)]
struct Session {
    wanted: Wanted,
    began_ms: u64,
    /// Seconds of processor time when it began: in the kernel, and outside.
    began_cpu: (f64, f64),
    /// When it ended, and the processor time then.
    ended: Option<(u64, (f64, f64))>,
}

/// What one thread counted.
#[derive(Default)]
struct Counted {
    /// What it was asked to count last.
    wanted: Option<Wanted>,
    cpu: Top,
    net: Top,
    /// Ticks of all commands that have keys.
    ticks: u64,
    /// Bytes of all commands that have keys.
    bytes: u64,
    /// Bytes of the keys that were counted.
    counted_bytes: u64,
    /// Ticks that counting took.
    own_ticks: u64,
}

/// A session's results.
pub struct Results {
    /// What it was asked to do.
    pub wanted: Wanted,
    /// Whether it runs.
    pub is_active: bool,
    /// When it began: Unix milliseconds.
    pub began_ms: u64,
    /// How long it has lasted.
    pub took_ms: u64,
    /// The server's processor time in it, outside the kernel and inside, in milliseconds.
    pub cpu_ms: (u64, u64),
    /// Ticks of all commands that have keys.
    pub ticks: u64,
    /// Bytes of all commands that have keys.
    pub bytes: u64,
    /// Bytes of the keys that were counted.
    pub counted_bytes: u64,
    /// Ticks that counting took.
    pub own_ticks: u64,
    /// The keys with the most ticks.
    pub by_ticks: Vec<(Box<[u8]>, u64)>,
    /// The keys with the most bytes.
    pub by_bytes: Vec<(Box<[u8]>, u64)>,
}

/// A command that ran.
pub struct Ran<'a> {
    /// Which.
    pub entry: &'a Entry,
    /// Its words.
    pub args: Args<'a>,
    /// Ticks that it took.
    pub ticks: u64,
    /// Bytes of its reply.
    pub reply_bytes: usize,
}

impl Hotkeys {
    /// For a server with so many threads.
    pub fn new(threads: usize) -> Self {
        Self {
            counted: (0..threads).map(|_| Mutex::default()).collect(),
            ..Self::default()
        }
    }

    /// Whether a session runs.
    pub fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }

    /// Begins a session; false where one runs. The threads are to be told.
    pub fn start(&self, wanted: Wanted, now_ms: u64) -> bool {
        let mut session = self.session.lock();
        if self.is_active() {
            return false;
        }
        self.forget(Some(wanted));
        *session = Some(Session {
            wanted,
            began_ms: now_ms,
            began_cpu: cpu_s(),
            ended: None,
        });
        self.is_active.store(true, Ordering::Relaxed);
        true
    }

    /// Ends the session that runs; false where none does.
    pub fn stop(&self, now_ms: u64) -> bool {
        let mut session = self.session.lock();
        if !self.is_active() {
            return false;
        }
        if let Some(session) = &mut *session {
            session.ended = Some((now_ms, cpu_s()));
        }
        self.is_active.store(false, Ordering::Relaxed);
        true
    }

    /// Ends a session whose time is up; true where it did. The threads are to be told.
    pub fn stop_if_due(&self, now_ms: u64) -> bool {
        if !self.is_active() {
            return false;
        }
        let is_due = self.session.lock().is_some_and(|session| {
            let lasts_ms = session.wanted.duration_ms;
            lasts_ms > 0 && now_ms.saturating_sub(session.began_ms) >= lasts_ms
        });
        is_due && self.stop(now_ms)
    }

    /// Forgets the last session's results; false where it still runs.
    pub fn reset(&self) -> bool {
        let mut session = self.session.lock();
        if self.is_active() {
            return false;
        }
        *session = None;
        self.forget(None);
        true
    }

    fn forget(&self, wanted: Option<Wanted>) {
        for counted in &self.counted {
            *counted.lock() = Counted {
                wanted,
                ..Counted::default()
            };
        }
    }

    /// Counts a command that ran on thread `thread`. `draw` gives random bits.
    #[cold]
    pub fn note(&self, thread: usize, ran: &Ran<'_>, mut draw: impl FnMut() -> u64) {
        let began = structure::ticks::now();
        let mut keys = 0u64;
        let mut count = |_: usize| keys += 1;
        if ran.entry.each_key_index(&ran.args, &mut count).is_err() || keys == 0 {
            return;
        }
        let Some(mut counted) = self.counted.get(thread).map(Mutex::lock) else {
            return;
        };
        let Some(wanted) = counted.wanted else {
            return;
        };
        let bytes = (wire_bytes(ran.args) + ran.reply_bytes) as u64;
        counted.ticks += ran.ticks;
        counted.bytes += bytes;
        let mut note = |index: usize| {
            if wanted.ratio > 1 && !draw().is_multiple_of(wanted.ratio) {
                return;
            }
            counted.counted_bytes += bytes / keys;
            let key = ran.args.at(index);
            if key.len() > KEY_BYTES_MAX {
                return;
            }
            if wanted.cpu {
                counted.cpu.add(key, ran.ticks / keys, KEYS_MAX);
            }
            if wanted.net {
                counted.net.add(key, bytes / keys, KEYS_MAX);
            }
        };
        // The same call found the keys just now.
        let _ = ran.entry.each_key_index(&ran.args, &mut note);
        counted.own_ticks += structure::ticks::now().wrapping_sub(began);
    }

    /// What the session that runs has so far, or what the last one had.
    pub fn results(&self, now_ms: u64) -> Option<Results> {
        let session = (*self.session.lock())?;
        let (until_ms, cpu) = session.ended.unwrap_or_else(|| (now_ms, cpu_s()));
        let ms = |until_s: f64, began_s: f64| {
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            // A duration that is not negative.
            let ms = ((until_s - began_s).max(0.0) * 1000.0) as u64;
            ms
        };
        let mut results = Results {
            wanted: session.wanted,
            is_active: session.ended.is_none(),
            began_ms: session.began_ms,
            took_ms: until_ms.saturating_sub(session.began_ms),
            cpu_ms: (
                ms(cpu.1, session.began_cpu.1),
                ms(cpu.0, session.began_cpu.0),
            ),
            ticks: 0,
            bytes: 0,
            counted_bytes: 0,
            own_ticks: 0,
            by_ticks: Vec::new(),
            by_bytes: Vec::new(),
        };
        let (mut cpu, mut net) = (HashMap::new(), HashMap::new());
        for counted in &self.counted {
            let counted = counted.lock();
            results.ticks += counted.ticks;
            results.bytes += counted.bytes;
            results.counted_bytes += counted.counted_bytes;
            results.own_ticks += counted.own_ticks;
            add_up(&mut cpu, &counted.cpu);
            add_up(&mut net, &counted.net);
        }
        results.by_ticks = heaviest(cpu, session.wanted.keys);
        results.by_bytes = heaviest(net, session.wanted.keys);
        Some(results)
    }
}

fn add_up(sums: &mut HashMap<Box<[u8]>, u64>, top: &Top) {
    for (key, count) in top.counts() {
        *sums.entry(key.into()).or_default() += count;
    }
}

fn heaviest(sums: HashMap<Box<[u8]>, u64>, keys: usize) -> Vec<(Box<[u8]>, u64)> {
    let mut sorted: Vec<_> = sums.into_iter().collect();
    sorted.sort_unstable_by(|(key, sum), (other, others)| {
        others.cmp(sum).then_with(|| key.cmp(other))
    });
    sorted.truncate(keys);
    sorted
}

/// Bytes of a command as clients send it.
fn wire_bytes(args: Args<'_>) -> usize {
    let digits = |number: usize| number.checked_ilog10().unwrap_or(0) as usize + 1;
    let word = |word: &[u8]| digits(word.len()) + word.len() + 5;
    digits(args.len()) + 3 + args.iter().map(word).sum::<usize>()
}

/// Seconds of processor time so far: in the kernel, and outside.
fn cpu_s() -> (f64, f64) {
    let time = sys::cpu_time(CpuOf::Process);
    (time.system_s, time.user_s)
}
