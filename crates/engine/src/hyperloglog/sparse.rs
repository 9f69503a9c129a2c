//! Registers as runs of equal values, while few are not zero.
//!
//! ```text
//! 00llllll            l + 1 registers are zero
//! 01llllll llllllll   l + 1 registers are zero, up to all of them
//! 1vvvvvll            l + 1 registers have the value v + 1
//! ```
//!
//! # Invariants
//! - Runs that add up to more or fewer than all registers are corrupt.
//! - A change splits at most one run and joins at most a few neighbours. Which ones, clients can
//!   see in the bytes: only runs of values are joined, near the one that changed.

use super::{HEADER_BYTES, Invalid, Mark, REGISTERS};

/// The greatest value of a run.
const VALUE_MAX: u8 = 32;
/// The most registers in a run of values.
const VALUES_MAX: usize = 4;
/// The most zeros in one byte.
const ZEROS_SHORT_MAX: usize = 64;
/// How many runs are looked at for neighbours to join.
const JOIN_SCAN: usize = 5;

/// What a run may become: zeros, a value and zeros.
const SPLIT_BYTES_MAX: usize = 5;

/// Registers of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Zero, or up to 32.
    pub value: u8,
    /// How many there are.
    pub len: usize,
    /// The bytes that say so.
    pub bytes: usize,
}

impl Run {
    /// The run that begins at `at`. The second byte of a long one is zero where it is cut off.
    fn at(body: &[u8], at: usize) -> Option<Self> {
        let head = *body.get(at)?;
        let low = usize::from(head & 0x3f);
        Some(match head >> 6 {
            0 => Self {
                value: 0,
                len: low + 1,
                bytes: 1,
            },
            1 => Self {
                value: 0,
                len: (low << 8 | usize::from(body.get(at + 1).copied().unwrap_or(0))) + 1,
                bytes: 2,
            },
            _ => Self {
                value: (head >> 2 & 0x1f) + 1,
                len: usize::from(head & 3) + 1,
                bytes: 1,
            },
        })
    }

    fn is_short_zeros(self) -> bool {
        self.value == 0 && self.bytes == 1
    }
}

/// The two bytes of a run of zeros: of all registers, at most.
#[allow(clippy::cast_possible_truncation)] // 6 and 8 bits.
pub fn zeros_long(len: usize) -> [u8; 2] {
    let rest = len - 1;
    [0x40 | (rest >> 8) as u8, rest as u8]
}

/// The byte of a short run of zeros.
#[allow(clippy::cast_possible_truncation)] // Six bits.
fn zeros_short(len: usize) -> u8 {
    (len - 1) as u8
}

/// The byte of a run of values.
#[allow(clippy::cast_possible_truncation)] // Two bits.
fn values(value: u8, len: usize) -> u8 {
    0x80 | (value - 1) << 2 | (len - 1) as u8
}

/// The runs, whatever they add up to.
pub fn runs(body: &[u8]) -> impl Iterator<Item = Run> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let run = Run::at(body, at)?;
        at += run.bytes;
        Some(run)
    })
}

/// Gives each run to `f`, with the first of its registers.
///
/// # Errors
/// [`Invalid::Corrupt`] where the runs are not all registers; `f` saw some of them.
pub fn each_run(body: &[u8], mut f: impl FnMut(usize, Run)) -> Result<(), Invalid> {
    let mut first = 0;
    for run in runs(body) {
        if first + run.len > REGISTERS {
            return Err(Invalid::Corrupt);
        }
        f(first, run);
        first += run.len;
    }
    if first == REGISTERS {
        Ok(())
    } else {
        Err(Invalid::Corrupt)
    }
}

/// Where the run with a register is.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    run: Run,
    /// Where it begins.
    at: usize,
    /// Where the one before it begins, or the first run.
    before: usize,
    /// Its first register.
    first: usize,
}

impl Found {
    /// The register's value.
    pub fn value(self) -> u8 {
        self.run.value
    }
}

/// Finds the run that has a register.
///
/// # Errors
/// [`Invalid::Corrupt`] where no run has it.
pub fn find(body: &[u8], index: usize) -> Result<Found, Invalid> {
    let (mut at, mut before, mut first) = (0, 0, 0);
    loop {
        // As `Run::at` reads it, without what is not needed to go on.
        let head = *body.get(at).ok_or(Invalid::Corrupt)?;
        let (len, bytes) = match LENGTHS[usize::from(head)] {
            0 => (Run::at(body, at).map_or(0, |run| run.len), 2),
            len => (usize::from(len), 1),
        };
        if index < first + len {
            let run = Run::at(body, at).ok_or(Invalid::Corrupt)?;
            return Ok(Found {
                run,
                at,
                before,
                first,
            });
        }
        first += len;
        before = at;
        at += bytes;
    }
}

/// The registers of a run of one byte; zero where a second byte belongs to it.
const LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut head = 0;
    while head < 256 {
        lengths[head] = match head >> 6 {
            0 => (head & 0x3f) as u8 + 1,
            1 => 0,
            _ => (head & 3) as u8 + 1,
        };
        head += 1;
    }
    lengths
};

/// Raises a register that was found in `bytes` to a mark above it, unless that takes a dense one or
/// more than `bytes_max` bytes: false, and nothing was changed then.
pub fn raise(bytes: &mut Vec<u8>, found: Found, mark: Mark, bytes_max: usize) -> bool {
    if mark.value > VALUE_MAX {
        return false;
    }
    let Found {
        run,
        at,
        before,
        first,
    } = found;
    let at = at + HEADER_BYTES;
    if run.len == 1 && (run.value > 0 || run.is_short_zeros()) {
        bytes[at] = values(mark.value, 1);
    } else {
        let mut split = Split::default();
        split.push(run.value, mark.index - first);
        split.push(mark.value, 1);
        split.push(run.value, first + run.len - 1 - mark.index);
        let split = &split.bytes[..split.len];
        if split.len() > run.bytes && bytes.len() + split.len() - run.bytes > bytes_max {
            return false;
        }
        // A second byte that is cut off counts as there: what takes its place is cut off as far.
        let end = bytes.len().min(at + run.bytes);
        let len = bytes.len() + split.len() - run.bytes;
        bytes.splice(at..end, split.iter().copied());
        bytes.truncate(len);
    }
    join(bytes, before + HEADER_BYTES);
    true
}

/// What becomes of a run.
#[derive(Default)]
struct Split {
    bytes: [u8; SPLIT_BYTES_MAX],
    len: usize,
}

impl Split {
    /// Adds a run of `len` registers, if that is any.
    fn push(&mut self, value: u8, len: usize) {
        let run = match (value, len) {
            (_, 0) => return,
            (0, 1..=ZEROS_SHORT_MAX) => [zeros_short(len), 0],
            (0, _) => zeros_long(len),
            (value, _) => [values(value, len), 0],
        };
        let bytes = if value == 0 && len > ZEROS_SHORT_MAX {
            2
        } else {
            1
        };
        self.bytes[self.len..self.len + bytes].copy_from_slice(&run[..bytes]);
        self.len += bytes;
    }
}

/// Joins neighbouring runs of the same value, among the few from `at` on.
fn join(bytes: &mut Vec<u8>, mut at: usize) {
    for _ in 0..JOIN_SCAN {
        let Some(run) = Run::at(bytes, at) else {
            return;
        };
        if run.value > 0
            && let Some(next) = Run::at(bytes, at + 1)
            && next.value == run.value
            && run.len + next.len <= VALUES_MAX
        {
            bytes[at + 1] = values(run.value, run.len + next.len);
            bytes.remove(at);
        } else {
            at += run.bytes;
        }
    }
}
