//! What PFSELFTEST runs: that registers keep what is written, and that estimates are near.

use super::{Form, HEADER_BYTES, Mark, REGISTERS, count, dense, empty, form, make_dense, raise};

/// Times that all registers are written and read.
const ROUNDS: usize = 16;
/// Elements that are added and counted.
const ELEMENTS: u64 = 100_000;
/// Bytes up to which one of the two stays sparse.
const SPARSE_BYTES: usize = 3_000;
/// How far an estimate may be off, as a multiple of the standard error.
const ERRORS_MAX: f64 = 6.0;

/// Checks all; takes some hundredths of a second.
///
/// # Errors
/// A sentence about the first thing that does not hold.
pub fn run() -> Result<(), String> {
    registers()?;
    estimates()
}

fn registers() -> Result<(), String> {
    let mut body = vec![0; dense::BYTES];
    let mut twin = vec![0u8; REGISTERS];
    let mut draw = 1u64;
    for _ in 0..ROUNDS {
        for (index, kept) in twin.iter_mut().enumerate() {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *kept = (draw >> 58) as u8;
            dense::set(&mut body, index, *kept);
        }
        for (index, &kept) in twin.iter().enumerate() {
            let found = dense::get(&body, index);
            if found != kept {
                return Err(format!("register {index} should be {kept} but is {found}"));
            }
        }
    }
    Ok(())
}

#[allow(clippy::cast_precision_loss)] // Far below 2^52.
fn estimates() -> Result<(), String> {
    let (mut small, mut large) = (empty(), empty());
    let corrupt = |_| "a HyperLogLog of our own is not valid".to_owned();
    make_dense(&mut large).map_err(corrupt)?;
    let relative = 1.04 / (REGISTERS as f64).sqrt();
    let mut checkpoint = 1;
    for number in 1..=ELEMENTS {
        let mark = Mark::of(&number.to_le_bytes());
        raise(&mut small, mark, SPARSE_BYTES).map_err(corrupt)?;
        raise(&mut large, mark, SPARSE_BYTES).map_err(corrupt)?;
        if number < checkpoint && number < ELEMENTS {
            continue;
        }
        checkpoint *= 10;
        let (a, b) = (
            count(&small).map_err(corrupt)?,
            count(&large).map_err(corrupt)?,
        );
        if a != b {
            return Err(format!("sparse and dense disagree on {number}: {a}, {b}"));
        }
        let off = a.abs_diff(number) as f64;
        if off > (ERRORS_MAX * relative * number as f64).ceil() {
            return Err(format!("too big an error: {a} for {number}"));
        }
    }
    let is_same = small[HEADER_BYTES..] == large[HEADER_BYTES..];
    if form(&small) == Ok(Form::Dense) && is_same {
        Ok(())
    } else {
        Err("the sparse one did not become the dense one".to_owned())
    }
}
