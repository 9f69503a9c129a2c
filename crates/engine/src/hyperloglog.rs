//! HyperLogLog: how many different elements were added, in at most 12 KiB.
//!
//! An element's hash picks one of 16,384 registers, which keeps the longest run of zero bits seen
//! there, plus one. A harmonic mean of the registers gives the count, with an error of about 0.81%.
//! It lives in an ordinary string, in the format that Redis writes, so that GET, DUMP and SETRANGE
//! see and move the same bytes.
//!
//! ```text
//! | HYLL | form 1 | 0 0 0 | count 8, little-endian, top bit: out of date | registers |
//! ```
//! [`dense`] registers have six bits each; [`sparse`] ones are written as runs.
//!
//! # Invariants
//! - The bytes may be anything, since any command on strings may write them: nothing here panics,
//!   and nothing is allocated beyond the string itself and one set of registers.
//! - The same elements in the same order make the same bytes as in Redis.

pub mod dense;
pub mod selftest;
pub mod sparse;

/// Bytes before the registers.
pub const HEADER_BYTES: usize = 16;
/// How many registers there are.
pub const REGISTERS: usize = 1 << INDEX_BITS;
/// Bits of a hash that pick the register.
const INDEX_BITS: u32 = 14;
/// Bits that are left to count zeros in.
const RUN_BITS: usize = 64 - INDEX_BITS as usize;
/// What every one begins with.
const MAGIC: &[u8; 4] = b"HYLL";
/// Where the form stands.
const FORM_AT: usize = 4;
/// Where the count stands.
const COUNT_AT: usize = 8;
/// The bit in the last byte of the count that says that it is out of date.
const STALE: u8 = 0x80;

/// All registers, one a byte.
pub type Registers = [u8; REGISTERS];
/// How many registers have each value.
pub type Histogram = [u32; 64];

/// How the registers are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// [`dense`].
    Dense,
    /// [`sparse`].
    Sparse,
}

/// What is wrong with a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Its head is not that of a HyperLogLog.
    Foreign,
    /// Its runs do not add up to all registers.
    Corrupt,
}

/// An element as a HyperLogLog sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The register.
    pub index: usize,
    /// The value that it must have at least: 1 to 51.
    pub value: u8,
}

impl Mark {
    /// The mark of an element.
    #[allow(clippy::cast_possible_truncation)] // 14 bits, and at most 51.
    pub fn of(element: &[u8]) -> Self {
        let hash = murmur64(element);
        let rest = hash >> INDEX_BITS | 1 << RUN_BITS;
        Self {
            index: (hash & (REGISTERS as u64 - 1)) as usize,
            value: rest.trailing_zeros() as u8 + 1,
        }
    }
}

/// One without elements.
pub fn empty() -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + 8);
    bytes.extend_from_slice(MAGIC);
    bytes.resize(HEADER_BYTES, 0);
    bytes[FORM_AT] = 1;
    make_stale(&mut bytes);
    bytes.extend_from_slice(&sparse::zeros_long(REGISTERS));
    bytes
}

/// The form of a string.
///
/// # Errors
/// [`Invalid::Foreign`] where its head is not that of a HyperLogLog.
pub fn form(bytes: &[u8]) -> Result<Form, Invalid> {
    if bytes.len() < HEADER_BYTES || !bytes.starts_with(MAGIC) {
        return Err(Invalid::Foreign);
    }
    match bytes[FORM_AT] {
        0 if bytes.len() == HEADER_BYTES + dense::BYTES => Ok(Form::Dense),
        1 => Ok(Form::Sparse),
        _ => Err(Invalid::Foreign),
    }
}

/// Whether a mark would change a HyperLogLog.
///
/// # Errors
/// As [`form`], or [`Invalid::Corrupt`].
pub fn lacks(bytes: &[u8], mark: Mark) -> Result<bool, Invalid> {
    match form(bytes)? {
        Form::Dense => Ok(dense::get(&bytes[HEADER_BYTES..], mark.index) < mark.value),
        Form::Sparse => {
            let found = sparse::find(&bytes[HEADER_BYTES..], mark.index)?;
            Ok(found.value() < mark.value)
        }
    }
}

/// Raises a register to a mark; whether that changed anything. A sparse one that needs more than
/// `sparse_bytes_max` bytes, the header included, becomes dense.
///
/// # Errors
/// As [`lacks`]. Nothing was changed then.
pub fn raise(bytes: &mut Vec<u8>, mark: Mark, sparse_bytes_max: usize) -> Result<bool, Invalid> {
    let raised = match form(bytes)? {
        Form::Dense => dense::raise(&mut bytes[HEADER_BYTES..], mark),
        Form::Sparse => {
            let found = sparse::find(&bytes[HEADER_BYTES..], mark.index)?;
            found.value() < mark.value && {
                raise_found(bytes, found, mark, sparse_bytes_max)?;
                true
            }
        }
    };
    if raised {
        make_stale(bytes);
    }
    Ok(raised)
}

/// Raises a register of a sparse one that was found to be lower.
///
/// # Errors
/// [`Invalid::Corrupt`]. Nothing was changed then.
pub fn raise_found(
    bytes: &mut Vec<u8>,
    found: sparse::Found,
    mark: Mark,
    sparse_bytes_max: usize,
) -> Result<(), Invalid> {
    if !sparse::raise(bytes, found, mark, sparse_bytes_max) {
        make_dense(bytes)?;
        dense::raise(&mut bytes[HEADER_BYTES..], mark);
    }
    make_stale(bytes);
    Ok(())
}

/// Makes a sparse one dense; whether it was not.
///
/// # Errors
/// As [`lacks`]. Nothing was changed then.
pub fn make_dense(bytes: &mut Vec<u8>) -> Result<bool, Invalid> {
    if form(bytes)? == Form::Dense {
        return Ok(false);
    }
    let mut registers = vec![0; dense::BYTES];
    sparse::each_run(&bytes[HEADER_BYTES..], |first, run| {
        if run.value > 0 {
            for index in first..first + run.len {
                dense::set(&mut registers, index, run.value);
            }
        }
    })?;
    bytes.truncate(HEADER_BYTES);
    bytes[FORM_AT] = 0;
    bytes.append(&mut registers);
    Ok(true)
}

/// Raises registers to others. A sparse one that needs more than `sparse_bytes_max` bytes becomes
/// dense.
///
/// # Errors
/// As [`lacks`].
pub fn raise_all(
    bytes: &mut Vec<u8>,
    registers: &Registers,
    sparse_bytes_max: usize,
) -> Result<(), Invalid> {
    for (index, &value) in registers.iter().enumerate() {
        if form(bytes)? == Form::Dense {
            let mut merged = dense::unpack(&bytes[HEADER_BYTES..]);
            for (register, value) in merged.iter_mut().zip(registers) {
                *register = (*value & 63).max(*register);
            }
            dense::pack(&merged, &mut bytes[HEADER_BYTES..]);
            break;
        }
        if value > 0 {
            raise(bytes, Mark { index, value }, sparse_bytes_max)?;
        }
    }
    make_stale(bytes);
    Ok(())
}

/// Raises `into` to the registers of a HyperLogLog.
///
/// # Errors
/// As [`lacks`]. Some registers may have been raised then.
pub fn merge(bytes: &[u8], into: &mut Registers) -> Result<Form, Invalid> {
    let form = form(bytes)?;
    let body = &bytes[HEADER_BYTES..];
    match form {
        Form::Dense => {
            let values = dense::unpack(body);
            for (register, value) in into.iter_mut().zip(values) {
                *register = value.max(*register);
            }
        }
        Form::Sparse => sparse::each_run(body, |first, run| {
            if run.value > 0 {
                for register in &mut into[first..first + run.len] {
                    *register = run.value.max(*register);
                }
            }
        })?,
    }
    Ok(form)
}

/// The count that stands in the header, if it is not out of date.
pub fn cached_count(bytes: &[u8]) -> Option<u64> {
    let count: [u8; 8] = bytes.get(COUNT_AT..HEADER_BYTES)?.try_into().ok()?;
    (count[7] & STALE == 0).then(|| u64::from_le_bytes(count))
}

/// Writes a count into the header.
pub fn set_cached_count(bytes: &mut [u8], count: u64) {
    if let Some(place) = bytes.get_mut(COUNT_AT..HEADER_BYTES) {
        place.copy_from_slice(&count.to_le_bytes());
    }
}

/// Says that the count in the header is out of date.
pub fn make_stale(bytes: &mut [u8]) {
    if let Some(byte) = bytes.get_mut(HEADER_BYTES - 1) {
        *byte |= STALE;
    }
}

/// The count that follows from the registers.
///
/// # Errors
/// As [`lacks`].
pub fn count(bytes: &[u8]) -> Result<u64, Invalid> {
    let form = form(bytes)?;
    let body = &bytes[HEADER_BYTES..];
    if form == Form::Dense {
        return Ok(count_of(&dense::unpack(body)));
    }
    let mut histogram = [0; 64];
    sparse::each_run(body, |_, run| {
        histogram[usize::from(run.value)] += u32::try_from(run.len).unwrap_or(0);
    })?;
    Ok(estimate(&histogram))
}

/// The count that follows from registers.
pub fn count_of(registers: &Registers) -> u64 {
    estimate(&histogram_of(registers))
}

/// Counts values in four places by turns: equal neighbours would wait for each other in one.
fn histogram_of(registers: &Registers) -> Histogram {
    let mut parts = [[0u32; 64]; 4];
    for four in registers.as_chunks::<4>().0 {
        for (part, value) in parts.iter_mut().zip(four) {
            part[usize::from(value & 63)] += 1;
        }
    }
    std::array::from_fn(|value| parts.iter().map(|part| part[value]).sum())
}

/// Otmar Ertl's improved estimator ("New cardinality estimation algorithms for HyperLogLog
/// sketches", 2017), which needs no correction at either end.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Not negative; saturates.
fn estimate(histogram: &Histogram) -> u64 {
    /// The limit of the bias correction: 1 / (2 ln 2).
    const ALPHA: f64 = 0.721_347_520_444_481_7;
    #[allow(clippy::cast_precision_loss)] // 2^14.
    let m = REGISTERS as f64;
    let of = |value: usize| f64::from(histogram[value]);
    let mut z = m * tau((m - of(RUN_BITS + 1)) / m);
    for value in (1..=RUN_BITS).rev() {
        z += of(value);
        z *= 0.5;
    }
    z += m * sigma(of(0) / m);
    (ALPHA * m * m / z).round() as u64
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        x *= x;
        let before = z;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        x = x.sqrt();
        let before = z;
        y *= 0.5;
        z -= (1.0 - x) * (1.0 - x) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

/// Austin Appleby's MurmurHash64A with the seed that Redis uses.
fn murmur64(bytes: &[u8]) -> u64 {
    const SEED: u64 = 0xadc8_3b19;
    const MIX: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MIX);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MIX);
        word = (word ^ word >> SHIFT).wrapping_mul(MIX);
        hash = (hash ^ word).wrapping_mul(MIX);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MIX);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(MIX);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests;
