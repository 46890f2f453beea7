//! Numbers of JSON as exact decimals: they are compared digit for digit, and never as floats.

use std::cmp::Ordering;

/// Exponents beyond this one, in either direction, count as this one. It is far beyond that of any literal, so a
/// comparison with a literal stays exact.
const EXPONENT_FAR: i64 = 1_000_000_000_000_000;
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
    }
}
