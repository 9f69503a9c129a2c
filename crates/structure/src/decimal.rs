//! Decimal integers: the canonical text of an `i64`, both ways.
//!
//! A string that is the one canonical spelling of an `i64` ("12", "-7", never "+1", "007" or "-0")
//! may be kept as an integer and printed again without a difference. Every compact encoding rests
//! on that, and looks at every string it stores, so both directions are on the hot path.
//!
//! # Invariants
//! - `parse(text) == Some(n)` exactly when `format(n)` gives `text` back.

/// Room for the longest text of an `i64`, "-9223372036854775808".
pub const TEXT_MAX: usize = 20;

/// The bytes "00" to "99", two for each number.
const PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut n = 0;
    while n < 100 {
        pairs[n * 2] = b'0' + (n / 10) as u8;
        pairs[n * 2 + 1] = b'0' + (n % 10) as u8;
        n += 1;
    }
    pairs
};

/// The integer that `text` is the canonical spelling of, if it is one.
#[inline]
pub fn parse(text: &[u8]) -> Option<i64> {
    let (&first, rest) = text.split_first()?;
    if first == b'-' {
        return parse_negative(rest);
    }
    let lead = first.wrapping_sub(b'0');
    if lead > 9 || text.len() > 19 {
        return None;
    }
    if lead == 0 {
        return rest.is_empty().then_some(0);
    }
    i64::try_from(digits(u64::from(lead), rest)?).ok()
}

/// Parses what follows a minus sign.
fn parse_negative(text: &[u8]) -> Option<i64> {
    let (&first, rest) = text.split_first()?;
    let lead = first.wrapping_sub(b'0');
    if lead == 0 || lead > 9 || text.len() > 19 {
        return None;
    }
    let size = digits(u64::from(lead), rest)?;
    0i64.checked_sub_unsigned(size)
}

/// Appends `text`, at most 18 digits, to the digit `lead`: no overflow in 64 bits.
#[inline]
fn digits(lead: u64, text: &[u8]) -> Option<u64> {
    let mut sum = lead;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        sum = sum * 10 + u64::from(digit);
    }
    Some(sum)
}

/// Writes the canonical text of `n` at the end of `scratch` and returns that part of it.
#[inline]
pub fn format(n: i64, scratch: &mut [u8; TEXT_MAX]) -> &[u8] {
    let mut left = n.unsigned_abs();
    let mut at = TEXT_MAX;
    while left >= 100 {
        let pair = (left % 100) as usize * 2;
        left /= 100;
        at -= 2;
        scratch[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    }
    if left >= 10 {
        let pair = left as usize * 2;
        at -= 2;
        scratch[at..at + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        at -= 1;
        scratch[at] = b'0' + left as u8;
    }
    if n < 0 {
        at -= 1;
        scratch[at] = b'-';
    }
    &scratch[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(n: i64) {
        let text = n.to_string();
        assert_eq!(parse(text.as_bytes()), Some(n));
        assert_eq!(format(n, &mut [0; TEXT_MAX]), text.as_bytes());
    }

    #[test]
    fn every_power_and_its_neighbours_round_trip() {
        for shift in 0..64 {
            for off in -2..=2 {
                round_trip((1i64 << shift).wrapping_add(off));
                round_trip((1i64 << shift).wrapping_neg().wrapping_add(off));
            }
        }
        for power in 0..19 {
            for off in -2..=2 {
                round_trip(10i64.pow(power) + off);
                round_trip(-10i64.pow(power) + off);
            }
        }
    }

    #[test]
    fn other_spellings_are_not_integers() {
        for text in [
            "",
            "-",
            "-0",
            "+1",
            "007",
            "00",
            " 1",
            "1 ",
            "1a",
            "--1",
            "1.0",
            "9223372036854775808",
            "-9223372036854775809",
            "10000000000000000000",
            "99999999999999999999",
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
    }
}
