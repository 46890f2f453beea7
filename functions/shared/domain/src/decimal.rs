//! Numbers of JSON as exact decimals: they are compared digit for digit, and never as floats.

use std::cmp::Ordering;

/// Exponents beyond this one, in either direction, count as this one. It is far beyond that of any literal, so a
/// comparison with a literal stays exact.
const EXPONENT_FAR: i64 = 1_000_000_000_000_000;
/// Largest exponent of a number in a schema, in either direction.
const EXPONENT_MAX: i64 = 1_000_000_000;
/// Digits of a divisor: those that every reader of JSON keeps.
const DIVISOR_DIGITS_MAX: usize = 15;

/// A number: its sign, and 0.`digits` × 10^`exponent`. Zero has no digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decimal {
    is_negative: bool,
    exponent: i64,
    /// Without zeros at their ends.
    digits: Vec<u8>,
}

impl Decimal {
    /// The value of a number of JSON. One pass over its text.
    pub(crate) fn of(text: &str) -> Self {
        let (is_negative, magnitude) = text.strip_prefix('-').map_or((false, text), |magnitude| (true, magnitude));
        let (mantissa, power) = magnitude.split_once(['e', 'E']).unwrap_or((magnitude, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = [whole.as_bytes(), fraction.as_bytes()].concat();
        let is_digit = |digit: &u8| *digit != b'0';
        digits.truncate(digits.iter().rposition(is_digit).map_or(0, |last| last + 1));
        let zeros = digits.iter().position(is_digit).unwrap_or(0);
        digits.drain(..zeros);
        if digits.is_empty() {
            return Self { is_negative: false, exponent: 0, digits };
        }
        let places = |count: usize| i64::try_from(count).unwrap_or(EXPONENT_FAR);
        Self { is_negative, exponent: exponent(power) + places(whole.len()) - places(zeros), digits }
    }

    /// Whether it may stand in a schema: with one digit before the point, as people count exponents.
    pub(crate) fn is_near(&self) -> bool {
        (self.exponent - 1).abs() <= EXPONENT_MAX
    }

    /// Whether it is a whole number, such as `1.0`.
    pub(crate) fn is_whole(&self) -> bool {
        self.zeros() >= 0
    }

    /// The whole number from 0 on that it is.
    pub(crate) fn count(&self) -> Option<usize> {
        let power = u32::try_from(self.zeros()).ok()?;
        let whole = self
            .digits
            .iter()
            .try_fold(0_usize, |whole, digit| whole.checked_mul(10)?.checked_add(usize::from(digit - b'0')))?;
        if whole == 0 { Some(0) } else { 10_usize.checked_pow(power)?.checked_mul(whole).filter(|_| !self.is_negative) }
    }

    /// Whether it can be a divisor: above zero, and short.
    pub(crate) fn is_divisor(&self) -> bool {
        self.sign() > 0 && self.digits.len() <= DIVISOR_DIGITS_MAX
    }

    /// Whether it is a whole number of times `divisor`, which [can be one](Self::is_divisor). One pass over its digits,
    /// whatever its exponent.
    pub(crate) fn is_multiple_of(&self, divisor: &Self) -> bool {
        let remainder = |digits: &[u8], by: u128| {
            digits.iter().fold(0, |rest: u128, digit| (rest * 10 + u128::from(digit - b'0')) % by)
        };
        let by = remainder(&divisor.digits, u128::MAX);
        // Neither has a zero at its end, so only the divisor may be the smaller one by powers of ten.
        let Ok(mut power) = u64::try_from(self.zeros() - divisor.zeros()) else { return self.digits.is_empty() };
        let (mut rest, mut base) = (remainder(&self.digits, by), 10 % by);
        while power > 0 {
            if power % 2 == 1 {
                rest = rest * base % by;
            }
            base = base * base % by;
            power /= 2;
        }
        rest == 0
    }

    /// Adds its one spelling.
    pub(crate) fn spell(&self, into: &mut String) {
        if self.is_negative {
            into.push('-');
        }
        into.extend(self.digits.iter().map(|digit| char::from(*digit)));
        into.push_str(&format!("e{}", self.zeros()));
    }

    /// The zeros after its digits; less than 0 if some of them are behind the point.
    fn zeros(&self) -> i64 {
        self.exponent - i64::try_from(self.digits.len()).unwrap_or(EXPONENT_FAR)
    }

    fn sign(&self) -> i8 {
        match (self.digits.is_empty(), self.is_negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let larger = || self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits));
        self.sign().cmp(&other.sign()).then_with(|| if self.is_negative { larger().reverse() } else { larger() })
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

fn exponent(text: &str) -> i64 {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.trim_start_matches('0');
    let far = if digits.is_empty() { 0 } else { EXPONENT_FAR };
    sign * digits.parse().map_or(far, |power: i64| power.min(EXPONENT_FAR))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(one: &str, other: &str) -> Ordering {
        Decimal::of(one).cmp(&Decimal::of(other))
    }

    #[test]
    fn numbers_are_the_same_however_they_are_written() {
        for (one, other) in [
            ("1", "1.0"),
            ("100", "1e2"),
            ("0.01", "1E-2"),
            ("-0", "0.000e99"),
            ("12.50", "1250e-2"),
            ("0.1e+1", "1"),
            ("1e007", "10000000"),
        ] {
            assert_eq!(order(one, other), Ordering::Equal, "{one} {other}");
        }
    }

    #[test]
    fn every_digit_counts() {
        let rising = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992",
            "-0.1",
            "-0.09",
            "-1e-400",
            "0",
            "1e-99999999999999999999",
            "1e-400",
            "0.1",
            "0.10000000000000000000000000001",
            "9.99",
            "10",
            "9007199254740992",
            "9007199254740993",
            "1e400",
            "1.1e400",
            "1e99999999999999999999",
        ];
        for (place, one) in rising.iter().enumerate() {
            for (other_place, other) in rising.iter().enumerate() {
                assert_eq!(order(one, other), place.cmp(&other_place), "{one} {other}");
            }
        }
    }

    #[test]
    fn an_exponent_without_end_costs_no_more_than_its_text() {
        let far = format!("1e{}", "9".repeat(100_000));
        assert_eq!(order(&far, "1e1000000000"), Ordering::Greater);
        assert_eq!(order(&format!("-{far}"), "-1e1000000000"), Ordering::Less);
        assert_eq!(order(&format!("0.{}1", "0".repeat(100_000)), "1e-100001"), Ordering::Equal);
        for (number, expected) in [
            (&*far, false),
            ("0", true),
            ("-9.9e1000000000", true),
            ("1e-1000000000", true),
            ("1e1000000001", false),
            ("1e-1000000001", false),
        ] {
            assert_eq!(Decimal::of(number).is_near(), expected);
        }
    }
}
