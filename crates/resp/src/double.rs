//! Doubles as text, the way Redis prints scores: the shortest digits that read back the same.

/// Writes `value` to `out`: integers without a point, `inf`, `-inf` and `nan` as words, very large
/// and very small ones with an exponent (`1e+30`, `1e-10`).
pub fn format_double(value: f64, out: &mut Vec<u8>) {
    if value.is_nan() {
        return out.extend_from_slice(b"nan");
    }
    if value.is_infinite() {
        return out.extend_from_slice(if value > 0.0 { b"inf" } else { b"-inf" });
    }
    if value == 0.0 {
        return out.extend_from_slice(if value.is_sign_negative() {
            b"-0"
        } else {
            b"0"
        });
    }
    // Whole numbers within 64 bits are printed as such, all their digits.
    if value.abs() < 9.2e18 && value.trunc() == value {
        let mut digits = itoa::Buffer::new();
        #[allow(clippy::cast_possible_truncation)] // Below 2^63, and whole.
        return out.extend_from_slice(digits.format(value as i64).as_bytes());
    }
    let mut buffer = ryu::Buffer::new();
    let (digits, exponent) = decompose(buffer.format_finite(value.abs()));
    if value < 0.0 {
        out.push(b'-');
    }
    layout(&digits, exponent, out);
}

/// The significant digits of `text` (`12.5`, `1.25e30`) and the power of ten of the last of them.
fn decompose(text: &str) -> (Vec<u8>, i32) {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let mut power: i32 = exponent.parse().unwrap_or(0);
    let mut digits = Vec::with_capacity(20);
    let mut past_point = false;
    for byte in mantissa.bytes() {
        match byte {
            b'.' => past_point = true,
            _ => {
                digits.push(byte);
                power -= i32::from(past_point);
            }
        }
    }
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
        power += 1;
    }
    let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
    digits.drain(..zeros.min(digits.len() - 1));
    (digits, power)
}

/// Places the point: `digits` times ten to `power`.
fn layout(digits: &[u8], power: i32, out: &mut Vec<u8>) {
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let exponent = (power + count - 1).abs();
    if power >= 0 && exponent < count + 7 {
        out.extend_from_slice(digits);
        out.extend((0..power).map(|_| b'0'));
    } else if power < 0 && (power > -7 || exponent < 4) {
        let before = count + power;
        if before <= 0 {
            out.extend_from_slice(b"0.");
            out.extend((before..0).map(|_| b'0'));
            out.extend_from_slice(digits);
        } else {
            let (whole, rest) = digits.split_at(before.unsigned_abs() as usize);
            out.extend_from_slice(whole);
            out.push(b'.');
            out.extend_from_slice(rest);
        }
    } else {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if power + count > 0 { b"e+" } else { b"e-" });
        out.extend_from_slice(itoa::Buffer::new().format(exponent).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        format_double(value, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn prints_as_redis_does() {
        for (value, want) in [
            (0.0, "0"),
            (3.0, "3"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (1e20, "1e+20"),
            (1e18, "1000000000000000000"),
            (12345678901234567.0, "12345678901234568"),
            (1.234e-7, "1.234e-7"),
            (1e30, "1e+30"),
            (1.5e-10, "1.5e-10"),
            (17179869184.0, "17179869184"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (2.625_873_1e-5, "2.6258731e-5"),
        ] {
            assert_eq!(text(value), want);
        }
    }

    proptest::proptest! {
        #[test]
        fn reads_back_the_same(value in proptest::num::f64::NORMAL) {
            proptest::prop_assert_eq!(text(value).parse::<f64>().unwrap(), value);
        }
    }
}
