//! Numbers in arguments.

use crate::CommandError;

/// A 64-bit integer in its canonical form.
///
/// # Errors
/// [`CommandError::NotInteger`] for anything else.
#[inline]
pub fn int(text: &[u8]) -> Result<i64, CommandError> {
    structure::decimal::parse(text).ok_or(CommandError::NotInteger)
}

/// A count: an integer that is not negative.
///
/// # Errors
/// `error` for anything else.
pub fn count(text: &[u8], error: CommandError) -> Result<usize, CommandError> {
    let value = structure::decimal::parse(text).ok_or_else(|| error.clone())?;
    usize::try_from(value).map_err(|_| error)
}

/// A double as Redis reads it: decimal, hexadecimal, `inf`, with a sign; no spaces, no `nan`.
pub fn double(text: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(text).ok()?;
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let value = match rest.as_bytes() {
        [b'0', b'x' | b'X', ..] => hexadecimal(&rest[2..])?,
        [b'0'..=b'9' | b'.' | b'i' | b'I', ..] => rest.parse::<f64>().ok()?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = match text.split_once(['p', 'P']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let mut value = 0.0;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0 / 16.0;
    for digit in part.chars() {
        value += f64::from(digit.to_digit(16)?) * scale;
        scale /= 16.0;
    }
    Some(value * 2f64.powi(exponent))
}

/// Seconds of a blocking command's timeout as milliseconds from now; 0 means for ever (`None`).
///
/// # Errors
/// Redis's texts for what is no number, negative or past 64 bits.
pub fn timeout_ms(text: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    let seconds = double(text).ok_or(CommandError::TimeoutNotFloat)?;
    timeout_from(seconds * 1000.0, now_ms)
}

/// Whole milliseconds of a blocking command's timeout, as BLOCK gives them.
///
/// # Errors
/// As [`timeout_ms`].
pub fn timeout_block_ms(text: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    let ms = structure::decimal::parse(text).ok_or(CommandError::text(
        "ERR timeout is not an integer or out of range",
    ))?;
    if ms < 0 {
        return Err(CommandError::TimeoutNegative);
    }
    let end = ms.checked_add_unsigned(now_ms);
    let end = end.ok_or(CommandError::text("ERR timeout is out of range"))?;
    Ok((ms > 0).then_some(end.unsigned_abs()))
}

fn timeout_from(ms: f64, now_ms: u64) -> Result<Option<u64>, CommandError> {
    if ms < 0.0 {
        return Err(CommandError::TimeoutNegative);
    }
    #[allow(clippy::cast_precision_loss)] // Near 2^63 the bound need not be exact.
    if !ms.is_finite() || ms > (i64::MAX as f64) - now_ms as f64 {
        return Err(CommandError::text("ERR timeout is out of range"));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Checked above.
    Ok((ms > 0.0).then(|| now_ms + ms.ceil() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubles_are_read_as_redis_reads_them() {
        for (text, want) in [
            ("1.5", Some(1.5)),
            ("+2", Some(2.0)),
            ("-.5", Some(-0.5)),
            ("1e3", Some(1000.0)),
            ("inf", Some(f64::INFINITY)),
            ("-Infinity", Some(f64::NEG_INFINITY)),
            ("0x1p4", Some(16.0)),
            ("0xA.8", Some(10.5)),
            ("nan", None),
            ("", None),
            (" 1", None),
            ("1 ", None),
            ("1a", None),
            ("--1", None),
        ] {
            assert_eq!(double(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn timeouts_end_at_a_time() {
        assert_eq!(timeout_ms(b"0", 7), Ok(None));
        assert_eq!(timeout_ms(b"0.0015", 7), Ok(Some(9)));
        assert_eq!(timeout_ms(b"-1", 7), Err(CommandError::TimeoutNegative));
        assert_eq!(timeout_ms(b"x", 7), Err(CommandError::TimeoutNotFloat));
        assert!(timeout_ms(b"1e30", 7).is_err());
        assert_eq!(timeout_block_ms(b"5", 7), Ok(Some(12)));
        assert!(timeout_block_ms(b"9223372036854775807", 7).is_err());
    }
}
