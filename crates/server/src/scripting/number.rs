//! Numbers as C's `%.Ng` writes them, which is what Lua and its libraries write.

/// Appends `value` with up to `digits` significant digits, in the shorter of both notations.
pub fn push_general(value: f64, digits: usize, out: &mut Vec<u8>) {
    if value.is_nan() {
        out.extend_from_slice(if value.is_sign_negative() {
            b"-nan"
        } else {
            b"nan"
        });
        return;
    }
    if value.is_infinite() {
        out.extend_from_slice(if value < 0.0 { b"-inf" } else { b"inf" });
        return;
    }
    let digits = digits.max(1);
    let text = format!("{value:.*e}", digits - 1);
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let trimmed = |text: &str| -> String {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    let wide = i32::try_from(digits).unwrap_or(i32::MAX);
    if exponent < -4 || exponent >= wide {
        let sign = if exponent < 0 { '-' } else { '+' };
        let text = format!("{}e{sign}{:02}", trimmed(mantissa), exponent.abs());
        out.extend_from_slice(text.as_bytes());
    } else {
        let after = usize::try_from(wide - 1 - exponent).unwrap_or(0);
        out.extend_from_slice(trimmed(&format!("{value:.after$}")).as_bytes());
    }
}

/// The text of a number that is an integer: to Lua 5.1 it is a double like any other.
#[allow(clippy::cast_precision_loss)] // As in the double that it was.
pub fn of_int(value: i64) -> Vec<u8> {
    let mut text = Vec::new();
    push_general(value as f64, 14, &mut text);
    text
}

/// A double as an integer, cut off; past 64 bits, and for what is no number, the smallest one.
#[allow(clippy::cast_possible_truncation)] // Checked.
pub fn to_int(value: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&value) {
        value as i64
    } else {
        i64::MIN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(value: f64, digits: usize) -> String {
        let mut out = Vec::new();
        push_general(value, digits, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn writes_as_c_does() {
        assert_eq!(general(0.1, 17), "0.10000000000000001");
        assert_eq!(general(0.1, 14), "0.1");
        assert_eq!(general(100.0, 14), "100");
        assert_eq!(general(1e100, 14), "1e+100");
        assert_eq!(general(1e15, 14), "1e+15");
        assert_eq!(general(123_456.789, 3), "1.23e+05");
        assert_eq!(general(0.000_012_5, 14), "1.25e-05");
        assert_eq!(general(-0.0, 14), "-0");
        assert_eq!(general(f64::INFINITY, 14), "inf");
    }

    #[test]
    fn integers_are_cut_off() {
        assert_eq!(to_int(1.9), 1);
        assert_eq!(to_int(-1.9), -1);
        assert_eq!(to_int(1e30), i64::MIN);
        assert_eq!(to_int(f64::NAN), i64::MIN);
    }
}
