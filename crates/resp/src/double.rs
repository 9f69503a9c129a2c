//! Doubles as text, the way Redis prints scores: digits that read back the same.

mod grisu;

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
    // Whole numbers up to 2^62 are printed as such, all their digits.
    if value.abs() <= 4_611_686_018_427_387_904.0 && value.trunc() == value {
        let mut digits = itoa::Buffer::new();
        #[allow(clippy::cast_possible_truncation)] // Below 2^63, and whole.
        return out.extend_from_slice(digits.format(value as i64).as_bytes());
    }
    let (digits, count, power) = grisu::digits(value.abs());
    if value < 0.0 {
        out.push(b'-');
    }
    layout(&digits[..count], power, out);
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
            // One digit more than would do.
            (326.973_252_154_137_1, "326.97325215413713"),
            (-3.546_159_815_074_027, "-3.5461598150740272"),
            (5.910_140_666_788_243e18, "5910140666788243000"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
        ] {
            assert_eq!(text(value), want);
        }
    }

    proptest::proptest! {
        #[test]
        fn reads_back_the_same(
            value in proptest::num::f64::NORMAL | proptest::num::f64::SUBNORMAL,
        ) {
            proptest::prop_assert_eq!(text(value).parse::<f64>().unwrap(), value);
        }
    }
}
