//! Numbers of 64 significant bits, which INCRBYFLOAT and its like count in.
//!
//! Redis adds such numbers as `long double`, which on x86-64 has a mantissa of 64 bits: enough that
//! 10.5 + 0.1 is printed as 10.6 with 17 digits behind the point. Ours are the same on every
//! machine: a sign, a mantissa and a power of two, rounded to the nearest, to even on a tie.
//!
//! # Invariants
//! - A mantissa that is not zero has its top bit set; zero and infinity have their own exponents,
//!   so that magnitudes compare as (exponent, mantissa).
//! - Parsing, adding and printing round once, exactly.
//!
//! # Why not `f64`?
//! It has 53 bits: 17 digits of 10.5 + 0.1 are 10.59999999999999964, and shorter ones lose what
//! clients that keep such digits have stored.

use std::cmp::Ordering;

/// Longer texts are no numbers, as in Redis.
const TEXT_MAX: usize = 5 * 1024;
/// Digits behind the point.
const DECIMALS: usize = 17;
/// Digits in all, where a number is shown by those.
const SIGNIFICANT: i32 = 17;
/// Exponents of the mantissa's lowest bit in numbers that x86-64 can hold.
const EXPONENT_MAX: i32 = 16_383 - 63;
const EXPONENT_MIN: i32 = -16_445 - 63;
/// Stand-ins that keep zero the smallest magnitude and infinity the greatest.
const OF_ZERO: i32 = i32::MIN;
const OF_INFINITY: i32 = i32::MAX;

/// A number: its mantissa times two to its exponent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extended {
    negative: bool,
    exponent: i32,
    mantissa: u64,
}

impl Extended {
    /// Zero.
    pub const ZERO: Self = Self {
        negative: false,
        exponent: OF_ZERO,
        mantissa: 0,
    };
    /// The greatest finite number.
    pub const MAX: Self = Self {
        negative: false,
        exponent: EXPONENT_MAX,
        mantissa: u64::MAX,
    };
    /// Positive infinity.
    pub const INFINITY: Self = Self {
        negative: false,
        exponent: OF_INFINITY,
        mantissa: u64::MAX,
    };

    /// Reads a number as `strtold` does: decimal or hexadecimal, with an exponent, or `inf`. `None`
    /// for anything else, for `nan`, and for what is too great or too small to be held.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() >= TEXT_MAX {
            return None;
        }
        let (negative, rest) = match text.split_first()? {
            (b'-', rest) => (true, rest),
            (b'+', rest) => (false, rest),
            _ => (false, text),
        };
        if rest.eq_ignore_ascii_case(b"inf") || rest.eq_ignore_ascii_case(b"infinity") {
            return Some(Self::INFINITY.signed(negative));
        }
        let hex = rest.len() > 2 && rest[..2].eq_ignore_ascii_case(b"0x");
        let parsed = if hex {
            Self::parse_digits(&rest[2..], 16)
        } else {
            Self::parse_digits(rest, 10)
        };
        parsed.map(|number| number.signed(negative))
    }

    fn parse_digits(text: &[u8], radix: u32) -> Option<Self> {
        let mut digits = Big::default();
        let (mut count, mut significant, mut behind_point) = (0, 0i64, None);
        let mut at = 0;
        while let Some(&byte) = text.get(at) {
            if byte == b'.' && behind_point.is_none() {
                behind_point = Some(0i64);
            } else if let Some(digit) = char::from(byte).to_digit(radix) {
                digits.multiply_add(radix, digit);
                count += 1;
                significant += i64::from(significant > 0 || digit > 0);
                behind_point = behind_point.map(|digits| digits + 1);
            } else {
                break;
            }
            at += 1;
        }
        if count == 0 {
            return None;
        }
        let shown = exponent(&text[at..], if radix == 16 { b'p' } else { b'e' })?;
        if digits.is_zero() {
            return Some(Self::ZERO);
        }
        let behind = behind_point.unwrap_or(0);
        if radix == 16 {
            let power = i32::try_from(shown - 4 * behind).ok()?;
            return Self::ratio(digits, Big::one(), power).if_held();
        }
        let power = shown - behind;
        // Nothing near these bounds can be held; below them the powers of ten stay small.
        if !(-5_000..=5_000).contains(&(significant + power)) {
            return None;
        }
        let mut tens = Big::one();
        (0..power.unsigned_abs()).for_each(|_| tens.multiply_add(10, 0));
        let number = if power >= 0 {
            digits.multiply(&tens);
            Self::ratio(digits, Big::one(), 0)
        } else {
            Self::ratio(digits, tens, 0)
        };
        number.if_held()
    }

    /// The number nearest to `over / under` times two to `exponent`.
    fn ratio(mut over: Big, mut under: Big, exponent: i32) -> Self {
        // The quotient gets 64 or 65 bits.
        let shift = 65 - (over.bits() - under.bits());
        if shift >= 0 {
            over.shift_left(shift.unsigned_abs());
        } else {
            under.shift_left(shift.unsigned_abs());
        }
        let mut quotient = 0u128;
        under.shift_left(66);
        for _ in 0..67 {
            quotient <<= 1;
            if over.compare(&under) != Ordering::Less {
                over.subtract(&under);
                quotient |= 1;
            }
            under.halve();
        }
        Self::rounded(
            false,
            quotient,
            !over.is_zero(),
            exponent.saturating_sub(shift),
        )
    }

    /// `mantissa` times two to `exponent` as a number; `more` where something beyond the mantissa's
    /// lowest bit was cut off.
    fn rounded(negative: bool, mantissa: u128, more: bool, exponent: i32) -> Self {
        if mantissa == 0 {
            return Self::ZERO.signed(negative);
        }
        let excess = 64 - mantissa.leading_zeros().cast_signed();
        let mut exponent = exponent.saturating_add(excess);
        let mut kept = if excess <= 0 {
            mantissa << excess.unsigned_abs()
        } else {
            let cut = mantissa & ((1 << excess) - 1);
            let half = 1u128 << (excess - 1);
            let kept = mantissa >> excess;
            let up = cut > half || (cut == half && (more || kept & 1 == 1));
            kept + u128::from(up)
        };
        if kept >> 64 != 0 {
            kept >>= 1;
            exponent = exponent.saturating_add(1);
        }
        if exponent > EXPONENT_MAX {
            return Self::INFINITY.signed(negative);
        }
        if exponent < EXPONENT_MIN {
            return Self::ZERO.signed(negative);
        }
        #[allow(clippy::cast_possible_truncation)] // Below 2^64, as was just seen to.
        Self {
            negative,
            exponent,
            mantissa: kept as u64,
        }
    }

    /// What stands before the point, where the number is between those of 64 bits with a sign.
    pub fn truncated(self) -> Option<i64> {
        if self.is_infinite() || self.exponent > 0 {
            return None;
        }
        let cut = self.exponent.unsigned_abs();
        let size = self.mantissa.checked_shr(cut).unwrap_or(0);
        if self.negative {
            return 0i64.checked_sub_unsigned(size);
        }
        // A fraction above the greatest of them is beyond it already.
        let is_whole = size.checked_shl(cut).unwrap_or(0) == self.mantissa;
        let int = i64::try_from(size).ok()?;
        (int < i64::MAX || is_whole).then_some(int)
    }

    fn signed(self, negative: bool) -> Self {
        Self { negative, ..self }
    }

    /// Itself, unless it went over or under.
    fn if_held(self) -> Option<Self> {
        (!self.is_infinite() && self.mantissa != 0).then_some(self)
    }

    /// Whether it is infinite.
    pub fn is_infinite(self) -> bool {
        self.exponent == OF_INFINITY
    }

    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.negative
    }

    /// The number with the other sign.
    #[must_use]
    pub fn negated(self) -> Self {
        self.signed(!self.negative)
    }

    /// The sum. Infinity where it is too great; infinities of two signs give zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let (great, small) = match self.magnitude().cmp(&other.magnitude()) {
            Ordering::Less => (other, self),
            _ => (self, other),
        };
        if small.mantissa == 0 || great.is_infinite() {
            let cancel = great.is_infinite() && small == great.negated();
            return if cancel { Self::ZERO } else { great };
        }
        // 62 bits below the greater one's lowest: no carry is lost, and what falls out of the
        // smaller one only matters as being there.
        let distance = (great.exponent - small.exponent).unsigned_abs();
        let (x, wide) = (
            u128::from(great.mantissa) << 62,
            u128::from(small.mantissa) << 62,
        );
        let y = wide.checked_shr(distance).unwrap_or(0);
        let more = y.checked_shl(distance).unwrap_or(0) != wide;
        let sum = if great.negative == small.negative {
            x + y
        } else {
            x - y - u128::from(more)
        };
        let negative = great.negative && sum != 0;
        Self::rounded(negative, sum, more, great.exponent - 62)
    }

    fn magnitude(self) -> (i32, u64) {
        (self.exponent, self.mantissa)
    }

    /// The number with up to 17 digits behind the point, without an exponent; zeros at its end are
    /// left out.
    pub fn format(self) -> String {
        if self.is_infinite() {
            return ["inf", "-inf"][usize::from(self.negative)].to_owned();
        }
        let mut text = if self.mantissa == 0 {
            "0".to_owned()
        } else if self.exponent >= 0 {
            let mut whole = Big::of(self.mantissa);
            whole.shift_left(self.exponent.unsigned_abs());
            whole.decimal()
        } else {
            fixed(self.mantissa, self.exponent.unsigned_abs())
        };
        if self.negative && text != "0" {
            text.insert(0, '-');
        }
        text
    }
}

impl Extended {
    /// The number with 17 significant digits, as `printf` has it with `%.17Lg`: an exponent where
    /// it is below -4 or above 16, and no zeros at the end.
    pub fn format_general(self) -> String {
        if self.is_infinite() {
            return self.format();
        }
        let sign = if self.negative { "-" } else { "" };
        if self.mantissa == 0 {
            return format!("{sign}0");
        }
        let (digits, exponent) = self.significant();
        let digits = digits.trim_end_matches('0');
        let before = exponent + 1;
        if !(-4..SIGNIFICANT).contains(&exponent) {
            let (first, rest) = digits.split_at(1);
            let point = if rest.is_empty() { "" } else { "." };
            let mark = if exponent < 0 { '-' } else { '+' };
            return format!("{sign}{first}{point}{rest}e{mark}{:02}", exponent.abs());
        }
        match usize::try_from(before) {
            Ok(before @ 1..) if before < digits.len() => {
                let (whole, rest) = digits.split_at(before);
                format!("{sign}{whole}.{rest}")
            }
            Ok(before @ 1..) => format!("{sign}{digits:0<before$}"),
            _ => {
                let zeros = "0".repeat(before.unsigned_abs() as usize);
                format!("{sign}0.{zeros}{digits}")
            }
        }
    }

    /// The first 17 digits, rounded to the nearest, to even on a tie, and the power of ten of the
    /// first of them.
    fn significant(self) -> (String, i32) {
        let mut big = Big::of(self.mantissa);
        // Enough tens that what stays before the point has some digits more than are shown.
        let mut tens = 0;
        let mut more = false;
        if self.exponent >= 0 {
            big.shift_left(self.exponent.unsigned_abs());
        } else {
            let shift = self.exponent.unsigned_abs();
            // The logarithm of two is a little above 0.301.
            let needed = (i64::from(shift) - 63) * 302 / 1000 + i64::from(SIGNIFICANT) + 3;
            tens = i32::try_from(needed.max(0)).unwrap_or(0);
            (0..tens).for_each(|_| big.multiply_add(10, 0));
            more = big.shift_right(shift);
        }
        let all = big.decimal();
        let kept = SIGNIFICANT.unsigned_abs() as usize;
        let mut exponent = i32::try_from(all.len()).unwrap_or(i32::MAX) - 1 - tens;
        if all.len() <= kept {
            return (format!("{all:0<kept$}"), exponent);
        }
        let (digits, rest) = all.split_at(kept);
        let tail_more = more || rest[1..].bytes().any(|digit| digit != b'0');
        let mut number: u64 = digits.parse().expect("17 digits");
        let up = match rest.as_bytes()[0].cmp(&b'5') {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => tail_more || number % 2 == 1,
        };
        number += u64::from(up);
        let mut digits = number.to_string();
        if digits.len() > kept {
            digits.pop();
            exponent += 1;
        }
        (digits, exponent)
    }
}

impl From<i64> for Extended {
    fn from(int: i64) -> Self {
        Self::rounded(int < 0, int.unsigned_abs().into(), false, 0)
    }
}

impl PartialOrd for Extended {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Extended {
    fn cmp(&self, other: &Self) -> Ordering {
        let (a, b) = (self.magnitude(), other.magnitude());
        let below = |number: &Self| number.negative && number.mantissa != 0;
        match (below(self), below(other)) {
            (false, false) => a.cmp(&b),
            (true, true) => b.cmp(&a),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

/// The exponent behind a number's digits; nothing is one of 0. It is cut off far outside of what a
/// number can have.
fn exponent(text: &[u8], letter: u8) -> Option<i64> {
    let Some((&first, rest)) = text.split_first() else {
        return Some(0);
    };
    if first.to_ascii_lowercase() != letter {
        return None;
    }
    let (sign, digits) = match rest.split_first()? {
        (b'-', digits) => (-1, digits),
        (b'+', digits) => (1, digits),
        _ => (1, rest),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = digits.iter().fold(0i64, |value, &digit| {
        (value * 10 + i64::from(digit - b'0')).min(100_000)
    });
    Some(sign * value)
}

/// `mantissa` over two to `shift`, rounded to [`DECIMALS`] digits.
fn fixed(mantissa: u64, shift: u32) -> String {
    let scaled = u128::from(mantissa) * 10u128.pow(17);
    let whole = scaled.checked_shr(shift).unwrap_or(0);
    let cut = scaled - whole.checked_shl(shift).unwrap_or(0);
    let half = 1u128.checked_shl(shift - 1).unwrap_or(u128::MAX);
    let up = cut > half || (cut == half && whole & 1 == 1);
    let digits = format!("{:0>18}", whole + u128::from(up));
    let (before, behind) = digits.split_at(digits.len() - DECIMALS);
    let behind = behind.trim_end_matches('0');
    match behind.is_empty() {
        true => before.to_owned(),
        false => format!("{before}.{behind}"),
    }
}

/// A whole number of any size: 32 bits a limb, the lowest first, no zeros at the top.
#[derive(Default, Debug)]
struct Big(Vec<u32>);

#[allow(clippy::cast_possible_truncation)] // Limbs are cut off on purpose.
impl Big {
    fn of(value: u64) -> Self {
        let mut big = Self(vec![value as u32, (value >> 32) as u32]);
        big.trim();
        big
    }

    fn one() -> Self {
        Self(vec![1])
    }

    fn trim(&mut self) {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
    }

    fn is_zero(&self) -> bool {
        self.0.is_empty()
    }

    /// How many bits it has.
    fn bits(&self) -> i32 {
        let top = self.0.last().map_or(0, |limb| limb.leading_zeros());
        i32::try_from(self.0.len()).unwrap_or(i32::MAX / 64) * 32 - top.cast_signed()
    }

    fn multiply_add(&mut self, factor: u32, more: u32) {
        let mut carry = u64::from(more);
        for limb in &mut self.0 {
            carry += u64::from(*limb) * u64::from(factor);
            *limb = carry as u32;
            carry >>= 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply(&mut self, other: &Self) {
        let mut product = vec![0u32; self.0.len() + other.0.len()];
        for (at, &a) in self.0.iter().enumerate() {
            let mut carry = 0u64;
            for (limb, &b) in product[at..].iter_mut().zip(other.0.iter().chain([&0])) {
                carry += u64::from(*limb) + u64::from(a) * u64::from(b);
                *limb = carry as u32;
                carry >>= 32;
            }
        }
        self.0 = product;
        self.trim();
    }

    fn shift_left(&mut self, count: u32) {
        self.multiply_add(1 << (count % 32), 0);
        if !self.is_zero() {
            let limbs = std::iter::repeat_n(0, (count / 32) as usize);
            self.0.splice(0..0, limbs);
        }
    }

    /// Cuts off the lowest bits; true where one of them was set.
    fn shift_right(&mut self, count: u32) -> bool {
        let limbs = ((count / 32) as usize).min(self.0.len());
        let mut more = self.0.drain(..limbs).any(|limb| limb != 0);
        for _ in 0..count % 32 {
            more |= self.0.first().is_some_and(|limb| limb & 1 == 1);
            self.halve();
        }
        more
    }

    fn halve(&mut self) {
        let mut carry = 0;
        for limb in self.0.iter_mut().rev() {
            let low = *limb & 1;
            *limb = *limb >> 1 | carry << 31;
            carry = low;
        }
        self.trim();
    }

    fn compare(&self, other: &Self) -> Ordering {
        let by_len = self.0.len().cmp(&other.0.len());
        by_len.then_with(|| self.0.iter().rev().cmp(other.0.iter().rev()))
    }

    /// Takes away a number that is no greater.
    fn subtract(&mut self, other: &Self) {
        let mut borrow = false;
        for (at, limb) in self.0.iter_mut().enumerate() {
            let less = other.0.get(at).copied().unwrap_or(0);
            let (part, under) = limb.overflowing_sub(less);
            let (part, under_again) = part.overflowing_sub(u32::from(borrow));
            *limb = part;
            borrow = under || under_again;
        }
        assert!(!borrow, "a greater number was taken away");
        self.trim();
    }

    fn decimal(mut self) -> String {
        const PART: u64 = 1_000_000_000;
        let mut parts = Vec::new();
        while !self.is_zero() {
            let mut rest = 0u64;
            for limb in self.0.iter_mut().rev() {
                rest = rest << 32 | u64::from(*limb);
                *limb = (rest / PART) as u32;
                rest %= PART;
            }
            self.trim();
            parts.push(rest);
        }
        let mut text = parts.pop().unwrap_or(0).to_string();
        for part in parts.iter().rev() {
            text += &format!("{part:09}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Extended {
        Extended::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is a number"))
    }

    #[test]
    fn seventeen_digits_are_those_of_printf() {
        for (text, shown) in [
            ("0", "0"),
            ("-0", "-0"),
            ("5", "5"),
            ("-7.50", "-7.5"),
            ("0.1", "0.1"),
            ("3.3", "3.3"),
            ("9223372036854775807", "9.2233720368547758e+18"),
            ("9007199254740993", "9007199254740993"),
            ("12345678901234567", "12345678901234567"),
            ("99999999999999999", "99999999999999999"),
            ("99999999999999999.9", "1e+17"),
            ("123456789012345678901234567890", "1.2345678901234568e+29"),
            ("123456789.123456789", "123456789.12345679"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.5e-7", "1.5e-07"),
            ("1e4000", "1e+4000"),
            ("1e-4000", "1e-4000"),
            ("-inf", "-inf"),
        ] {
            assert_eq!(number(text).format_general(), shown, "{text}");
        }
    }

    #[test]
    fn what_stands_before_the_point_is_cut_out() {
        for (text, int) in [
            ("3.99", Some(3)),
            ("-3.99", Some(-3)),
            ("1e-400", Some(0)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775807.5", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("1e40", None),
            ("inf", None),
        ] {
            assert_eq!(number(text).truncated(), int, "{text}");
        }
    }

    #[test]
    fn sums_are_those_of_a_long_double() {
        for (a, b, sum) in [
            ("10.5", "0.1", "10.6"),
            ("5.0e3", "2.0e2", "5200"),
            ("27.5", "1e-17", "27.50000000000000001"),
            ("27.50000000000000001", "1e-18", "27.50000000000000001"),
            ("0", "3.14159265358979323846", "3.14159265358979324"),
            ("3.14159265358979324", "1e20", "100000000000000000000"),
            ("-0", "0", "0"),
            ("0x1p4", "0xA.8", "26.5"),
            ("1.", ".5", "1.5"),
            ("0.3", "-0.3", "0"),
            ("-1e-18", "0", "0"),
            ("1e16", "-1", "9999999999999999"),
            ("18446744073709551615", "1", "18446744073709551616"),
            ("18446744073709551615", "-0.25", "18446744073709551615"),
        ] {
            assert_eq!(number(a).plus(number(b)).format(), sum, "{a} + {b}");
        }
    }

    #[test]
    fn great_numbers_show_what_they_hold() {
        let text = number("1e300").format();
        assert!(
            text.starts_with("10000000000000000000089973240795591938705239"),
            "{text}"
        );
        assert_eq!(text.len(), 301);
        assert_eq!(number("1e4932").format().len(), 4933);
        assert!(
            number("1e4932")
                .plus(number("1e4932"))
                .plus(Extended::MAX)
                .is_infinite()
        );
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "-",
            "+",
            ".",
            "e5",
            "1e",
            "1e+",
            "1 ",
            " 1",
            "nan",
            "1e5000",
            "1e-5000",
            "0x",
            "0x.p1",
            "1..2",
            "--1",
            "1e99999999999999999999",
            "infinit",
        ] {
            assert_eq!(Extended::parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(number("0e99999999999").format(), "0");
        assert!(number("-Infinity").is_infinite() && number("-inf").is_negative());
    }

    proptest::proptest! {
        #[test]
        fn whole_numbers_add_up(a in -1i64 << 62..1 << 62, b in -1i64 << 62..1 << 62) {
            let sum = number(&a.to_string()).plus(number(&b.to_string()));
            proptest::prop_assert_eq!(sum.format(), (a + b).to_string());
            let order = number(&a.to_string()).cmp(&number(&b.to_string()));
            proptest::prop_assert_eq!(order, a.cmp(&b));
        }

        #[test]
        fn doubles_are_read_exactly(value in -1e18..1e18f64) {
            // A double has no more bits than ours, so only the printing rounds.
            let text = number(&format!("{value:e}")).format();
            proptest::prop_assert!((text.parse::<f64>().unwrap() - value).abs() <= 1e-17);
        }
    }
}
