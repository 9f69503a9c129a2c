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

/// A double as Redis reads it: decimal, hexadecimal, `inf`, with a sign. No spaces, no `nan`, and
/// nothing that is too great or too small to be held.
pub fn double(text: &[u8]) -> Option<f64> {
    let double = prefix(text)?;
    (double.len == text.len() && double.is_held && !double.value.is_nan()).then_some(double.value)
}

/// One end of a range of scores. It is read as C reads a number: blanks may stand before it, a zero
/// byte ends it, nothing at all is zero, and what is too great is infinity.
pub fn bound(text: &[u8]) -> Option<f64> {
    let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
    if text.is_empty() {
        return Some(0.0);
    }
    let text = without_blanks(text);
    let double = prefix(text)?;
    (double.len == text.len() && !double.value.is_nan()).then_some(double.value)
}

/// A cursor of SCAN and its like, read as C reads an unsigned number: blanks and a sign may stand
/// before it, a zero byte behind. A minus counts back from 2^64, unless that comes out past 2^63.
///
/// # Errors
/// Redis's text for anything else.
pub fn cursor(text: &[u8]) -> Result<u64, CommandError> {
    let parse = |text: &[u8]| {
        let digits = text.split(|byte| *byte == 0).next()?;
        let digits = digits.first()?.is_ascii_digit().then_some(digits)?;
        std::str::from_utf8(digits).ok()?.parse::<u64>().ok()
    };
    match without_blanks(text) {
        [b'-', rest @ ..] => parse(rest)
            .map(u64::wrapping_neg)
            .filter(|cursor| cursor.cast_signed() >= 0),
        [b'+', rest @ ..] => parse(rest),
        rest => parse(rest),
    }
    .ok_or(CommandError::text("ERR invalid cursor"))
}

/// Writes a double that is a number with 17 significant digits, or fewer where zeros are last: what
/// C's `%.17g` writes.
pub fn write_digits(value: f64, out: &mut Vec<u8>) {
    let text = format!("{:.16e}", value.abs());
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let Some((mantissa, power)) = text.split_once('e') else {
        return out.extend_from_slice(b"inf");
    };
    let power: i32 = power.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        digits => digits,
    };
    // The digits before the point and those behind it.
    let text = match usize::try_from(power) {
        Ok(whole) if whole >= digits.len() && whole < 17 => format!("{digits:0<0$}", whole + 1),
        Ok(whole) if whole < 17 => point(digits, whole + 1),
        Err(_) if power >= -4 => {
            let zeros = "0".repeat(power.unsigned_abs() as usize);
            point(&format!("{zeros}{digits}"), 1)
        }
        _ => {
            let sign = if power < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", point(digits, 1), power.abs())
        }
    };
    out.extend_from_slice(text.as_bytes());
}

/// Digits with a point behind the first `whole`, if any follow.
fn point(digits: &str, whole: usize) -> String {
    match digits.split_at(whole.min(digits.len())) {
        (whole, "") => whole.to_owned(),
        (whole, rest) => format!("{whole}.{rest}"),
    }
}

fn without_blanks(text: &[u8]) -> &[u8] {
    let blanks = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'));
    &text[blanks.count()..]
}

/// A double at the beginning of a text.
struct Prefix {
    value: f64,
    /// Bytes of the text that it takes.
    len: usize,
    /// Whether it is neither too great nor too small for a double.
    is_held: bool,
}

/// The longest double that a text begins with.
fn prefix(text: &[u8]) -> Option<Prefix> {
    let (negative, rest) = match text.first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let begins = |word: &str| {
        rest.get(..word.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(word.as_bytes()))
    };
    let named = [
        ("infinity", f64::INFINITY),
        ("inf", f64::INFINITY),
        ("nan", f64::NAN),
    ];
    let found = if let Some((word, value)) = named.iter().find(|(word, _)| begins(word)) {
        Prefix {
            value: *value,
            len: word.len(),
            is_held: true,
        }
    } else if begins("0x") && mantissa_len(&rest[2..], u8::is_ascii_hexdigit).is_some() {
        hexadecimal(rest)?
    } else {
        decimal(rest)?
    };
    Some(Prefix {
        value: if negative { -found.value } else { found.value },
        len: found.len + text.len() - rest.len(),
        is_held: found.is_held,
    })
}

/// Bytes of the digits and the point that a text begins with; none where there is no digit.
fn mantissa_len(text: &[u8], is_digit: impl Fn(&u8) -> bool) -> Option<usize> {
    let digits = |text: &[u8]| text.iter().take_while(|byte| is_digit(byte)).count();
    let whole = digits(text);
    let part = match text.get(whole) {
        Some(b'.') => 1 + digits(&text[whole + 1..]),
        _ => 0,
    };
    (whole + part > usize::from(part > 0)).then_some(whole + part)
}

/// Bytes of an exponent, its letter included, and its value, cut off far outside of a double's.
fn exponent(text: &[u8], letter: u8) -> (usize, i64) {
    if text.first().map(u8::to_ascii_lowercase) != Some(letter) {
        return (0, 0);
    }
    let (negative, sign) = match text.get(1) {
        Some(b'-') => (true, 1),
        Some(b'+') => (false, 1),
        _ => (false, 0),
    };
    let digits = text[1 + sign..].iter().take_while(|b| b.is_ascii_digit());
    let (mut count, mut value) = (0, 0i64);
    for digit in digits {
        count += 1;
        value = (value * 10 + i64::from(digit - b'0')).min(1 << 40);
    }
    match count {
        0 => (0, 0),
        _ => (1 + sign + count, if negative { -value } else { value }),
    }
}

fn decimal(text: &[u8]) -> Option<Prefix> {
    let mantissa = mantissa_len(text, u8::is_ascii_digit)?;
    let len = mantissa + exponent(&text[mantissa..], b'e').0;
    let value: f64 = std::str::from_utf8(&text[..len]).ok()?.parse().ok()?;
    let is_zero = || text[..mantissa].iter().all(|b| matches!(b, b'0' | b'.'));
    Some(Prefix {
        value,
        len,
        is_held: value.is_finite() && (value != 0.0 || is_zero()),
    })
}

/// A number behind its `0x`: its first 60 bits, and in the lowest whether any of the others is set.
fn hexadecimal(text: &[u8]) -> Option<Prefix> {
    let len = 2 + mantissa_len(&text[2..], u8::is_ascii_hexdigit)?;
    let (mut mantissa, mut power, mut is_behind_point) = (0u64, 0i64, false);
    for &letter in &text[2..len] {
        let Some(digit) = char::from(letter).to_digit(16) else {
            is_behind_point = true;
            continue;
        };
        if mantissa >> 56 == 0 {
            mantissa = mantissa << 4 | u64::from(digit);
            power -= 4 * i64::from(is_behind_point);
        } else {
            mantissa |= u64::from(digit != 0);
            power += 4 * i64::from(!is_behind_point);
        }
    }
    let (more, shown) = exponent(&text[len..], b'p');
    let value = scaled(mantissa, power.saturating_add(shown));
    Some(Prefix {
        value,
        len: len + more,
        is_held: value.is_finite() && (value != 0.0 || mantissa == 0),
    })
}

/// `mantissa` times two to `power`, rounded once, to even on a tie.
fn scaled(mantissa: u64, power: i64) -> f64 {
    // The lowest bit of the least doubles is 2^-1074; two bits below it are enough to round by.
    let excess = -1076 - power;
    let top = 64 - i64::from(mantissa.leading_zeros()) + power;
    if mantissa == 0 || top < -1076 {
        return 0.0;
    }
    if top > 1024 {
        return f64::INFINITY;
    }
    if top <= -1022 && excess > 0 {
        let kept = mantissa >> excess | u64::from(mantissa << (64 - excess) != 0);
        let up = matches!(kept & 7, 3 | 6 | 7);
        return f64::from_bits((kept >> 2) + u64::from(up));
    }
    #[allow(clippy::cast_precision_loss)] // Rounded here.
    let rounded = mantissa as f64;
    #[allow(clippy::cast_possible_truncation)] // Between -1140 and 1024, by `top`.
    let (half, rest) = ((power / 2) as i32, (power - power / 2) as i32);
    rounded * 2f64.powi(half) * 2f64.powi(rest)
}

/// Seconds of a blocking command's timeout as milliseconds from now; 0 means for ever (`None`).
///
/// # Errors
/// Redis's texts for what is no number, negative or past 64 bits.
pub fn timeout_ms(text: &[u8], now_ms: u64) -> Result<Option<u64>, CommandError> {
    let double = prefix(text).filter(|double| double.len == text.len() && !double.value.is_nan());
    let seconds = double.ok_or(CommandError::TimeoutNotFloat)?.value;
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
    fn digits_are_written_as_c_does() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-10.0, "-10"),
            (1.5, "1.5"),
            (0.1, "0.10000000000000001"),
            (1_234_567.125, "1234567.125"),
            (0.0001, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (123_456_789_012_345_678.0, "1.2345678901234568e+17"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (1.5e300, "1.5000000000000001e+300"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            let mut out = Vec::new();
            write_digits(value, &mut out);
            assert_eq!(String::from_utf8_lossy(&out), text);
        }
    }

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
            ("0x.8", Some(0.5)),
            ("0x", None),
            ("0x.p1", None),
            ("0x1p", None),
            ("0x123456789abcdef123", Some(335_812_727_670_730_330_000.0)),
            ("0x1.fffffffffffff8p0", Some(2.0)),
            (
                "0x1.fffffffffffff7fffffffffffp0",
                Some(1.999_999_999_999_999_8),
            ),
            ("0x1p-1074", Some(5e-324)),
            ("0x1.8p-1074", Some(1e-323)),
            ("0x1.4p-1074", Some(5e-324)),
            ("0x1p-1075", None),
            ("0x1.1p-1075", Some(5e-324)),
            ("0x0.fffffffffffff8p-1022", Some(f64::MIN_POSITIVE)),
            ("0x1.fffffffffffffp1023", Some(f64::MAX)),
            ("0x1.fffffffffffff8p1023", None),
            ("0x1p99999999999999999999", None),
            ("0x0p99999999999999999999", Some(0.0)),
            ("1e309", None),
            ("1e-400", None),
            ("0e-400", Some(0.0)),
            ("1.", Some(1.0)),
            (".", None),
            ("1e", None),
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
    fn ends_of_ranges_are_read_as_c_reads_them() {
        for (text, want) in [
            ("", Some(0.0)),
            ("\x002", Some(0.0)),
            ("1\x002", Some(1.0)),
            (" \t\n\r\x0b\x0c1", Some(1.0)),
            ("1 ", None),
            (" ", None),
            ("1e309", Some(f64::INFINITY)),
            ("-1e309", Some(f64::NEG_INFINITY)),
            ("1e-400", Some(0.0)),
            ("nan", None),
        ] {
            assert_eq!(bound(text.as_bytes()), want, "{text:?}");
        }
    }

    #[test]
    fn cursors_are_read_as_c_reads_them() {
        for (text, want) in [
            ("0", Some(0)),
            ("007", Some(7)),
            (" +7", Some(7)),
            ("7\x00x", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("-0", Some(0)),
            ("-1", None),
            ("-18446744073709551615", Some(1)),
            ("-9223372036854775808", None),
            ("-9223372036854775809", Some(i64::MAX as u64)),
            ("--1", None),
            ("+-1", None),
            ("7 ", None),
            ("", None),
            ("\x00", None),
        ] {
            assert_eq!(cursor(text.as_bytes()).ok(), want, "{text:?}");
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
