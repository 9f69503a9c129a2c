//! Scripts that EVALSHA finds, shared by all threads.
//!
//! What SCRIPT LOAD brought stays until SCRIPT FLUSH. Of what EVAL brought, the 500 that were used
//! last stay.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use engine::CommandError;
use parking_lot::Mutex;
use sha1::{Digest, Sha1};

use super::functions::Libraries;
use super::header::{self, ScriptFlags};
use super::run::Running;

/// How many scripts are kept that EVAL brought.
const EVALS_MAX: usize = 500;

/// The SHA1 of a script.
pub type Sha = [u8; 20];

/// The SHA1 of `bytes`.
pub fn sha_of(bytes: &[u8]) -> Sha {
    Sha1::digest(bytes).into()
}

/// A SHA1 in hexadecimal.
pub fn hex(sha: &Sha) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(40);
    for byte in sha {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A SHA1 out of its 40 hexadecimal digits, in any case.
pub fn parse_sha(text: &[u8]) -> Option<Sha> {
    let mut sha = Sha::default();
    if text.len() != 40 {
        return None;
    }
    for (byte, pair) in sha.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |letter: u8| char::from(letter).to_digit(16);
        let (high, low) = (digit(pair[0])?, digit(pair[1])?);
        *byte = u8::try_from(high << 4 | low).ok()?;
    }
    Some(sha)
}

/// A script.
pub struct Script {
    pub sha: Sha,
    pub source: Box<[u8]>,
    pub flags: ScriptFlags,
    /// Whether SCRIPT LOAD brought it.
    is_loaded: AtomicBool,
    /// Grows with each use, over all scripts.
    used: AtomicU64,
    /// Set when it is no longer kept.
    is_gone: AtomicBool,
}

impl Script {
    /// Whether EVALSHA still finds it.
    pub fn is_kept(&self) -> bool {
        !self.is_gone.load(Ordering::Relaxed)
    }

    /// The part that is Lua.
    pub fn body(&self) -> &[u8] {
        header::script(&self.source).map_or(&[], |(_, body)| body)
    }

    /// Bytes that it takes.
    fn bytes(&self) -> usize {
        self.source.len() + size_of::<Self>() + size_of::<(Sha, Arc<Self>)>()
    }
}

/// All that is kept of scripts.
#[derive(Default)]
pub struct Registry {
    scripts: Mutex<HashMap<Sha, Arc<Script>>>,
    clock: AtomicU64,
    evals: AtomicUsize,
    bytes: AtomicUsize,
    evicted: AtomicU64,
    /// Libraries of functions.
    pub libraries: Libraries,
    /// The script that runs, if one does.
    pub running: Running,
    /// Bytes of each thread's Lua states: for EVAL, and for functions.
    vm_bytes: Mutex<HashMap<u16, [usize; 2]>>,
}

impl Registry {
    /// The script of a SHA1.
    pub fn find(&self, sha: &Sha) -> Option<Arc<Script>> {
        self.scripts.lock().get(sha).cloned()
    }

    /// Notes that a script is used.
    pub fn note_use(&self, script: &Script) {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        script.used.store(now, Ordering::Relaxed);
    }

    /// Keeps a script; gives the one that is there where it is known already. The caller has
    /// compiled it.
    ///
    /// # Errors
    /// Where its first line is no header.
    pub fn keep(
        &self,
        sha: Sha,
        source: &[u8],
        is_loaded: bool,
    ) -> Result<Arc<Script>, CommandError> {
        let (flags, _) = header::script(source)?;
        let mut scripts = self.scripts.lock();
        if let Some(script) = scripts.get(&sha) {
            if is_loaded && !script.is_loaded.swap(true, Ordering::Relaxed) {
                self.evals.fetch_sub(1, Ordering::Relaxed);
            }
            return Ok(script.clone());
        }
        if !is_loaded && self.evals.fetch_add(1, Ordering::Relaxed) >= EVALS_MAX {
            self.evict(&mut scripts);
        }
        let script = Arc::new(Script {
            sha,
            source: source.into(),
            flags,
            is_loaded: AtomicBool::new(is_loaded),
            used: AtomicU64::new(self.clock.fetch_add(1, Ordering::Relaxed)),
            is_gone: AtomicBool::new(false),
        });
        self.bytes.fetch_add(script.bytes(), Ordering::Relaxed);
        scripts.insert(sha, script.clone());
        Ok(script)
    }

    /// Forgets the script of EVAL that was used longest ago.
    fn evict(&self, scripts: &mut HashMap<Sha, Arc<Script>>) {
        let oldest = scripts
            .values()
            .filter(|script| !script.is_loaded.load(Ordering::Relaxed))
            .min_by_key(|script| script.used.load(Ordering::Relaxed))
            .map(|script| script.sha);
        if let Some(script) = oldest.and_then(|sha| scripts.remove(&sha)) {
            script.is_gone.store(true, Ordering::Relaxed);
            self.bytes.fetch_sub(script.bytes(), Ordering::Relaxed);
            self.evals.fetch_sub(1, Ordering::Relaxed);
            self.evicted.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        let mut scripts = self.scripts.lock();
        for script in scripts.values() {
            script.is_gone.store(true, Ordering::Relaxed);
        }
        scripts.clear();
        self.evals.store(0, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// How many scripts are kept.
    pub fn count(&self) -> usize {
        self.scripts.lock().len()
    }

    /// Bytes of the scripts that are kept.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many scripts of EVAL were forgotten for want of room.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Counts those from 0 again.
    pub fn reset_stats(&self) {
        self.evicted.store(0, Ordering::Relaxed);
    }

    /// Notes how much a thread's Lua states take: for EVAL, and for functions.
    pub fn note_vm_bytes(&self, thread: u16, bytes: [usize; 2]) {
        self.vm_bytes.lock().insert(thread, bytes);
    }

    /// Bytes of all Lua states: for EVAL, and for functions.
    pub fn vm_bytes(&self) -> [usize; 2] {
        let all = self.vm_bytes.lock();
        all.values()
            .fold([0, 0], |sum, one| [sum[0] + one[0], sum[1] + one[1]])
    }
}
