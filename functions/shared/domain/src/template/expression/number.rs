//! Exact decimals of up to 38 digits: what a sum or a product of prices needs, and no more, so that each step of a
//! computation takes a bounded time.

use std::cmp::Ordering;
use std::fmt;

/// Most digits behind the point.
const SCALE_MAX: u32 = 30;
/// What no mantissa reaches: one of 39 digits.
const MANTISSA_END: u128 = 10_u128.pow(38);

/// `mantissa` × 10^-`scale`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Number {
    mantissa: i128,
    scale: u32,
}

/// How half of the last digit is rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rounding {
    /// To the even digit.
    HalfEven,
    /// Away from zero.
    HalfUp,
}

impl Number {
    pub(super) const ZERO: Self = Self { mantissa: 0, scale: 0 };

    /// `None`: there is no room for its digits.
    fn new(mantissa: i128, scale: u32) -> Option<Self> {
        (mantissa.unsigned_abs() < MANTISSA_END && scale <= SCALE_MAX).then_some(Self { mantissa, scale })
    }

    pub(super) fn of_count(count: usize) -> Self {
        Self { mantissa: i128::try_from(count).unwrap_or(i128::MAX), scale: 0 }
    }

    /// The value of a number of JSON; `None` if it has more digits than are computed with.
    pub(super) fn of(text: &str) -> Option<Self> {
        let (mantissa, power) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let power: i32 = power.parse().ok().filter(|power: &i32| power.unsigned_abs() <= 1_000)?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let is_negative = whole.starts_with('-');
        let digits = [whole.trim_start_matches('-'), fraction].concat();
        let digits = digits.trim_start_matches('0');
        if digits.len() > 1_000 {
            return None;
        }
        let mut scale = i32::try_from(fraction.len()).ok()? - power;
        // Zeros at the end that no type has room for mean nothing.
        let spare = digits.len() - digits.trim_end_matches('0').len();
        let dropped = usize::try_from(scale - SCALE_MAX as i32).unwrap_or(0).min(spare);
        scale -= i32::try_from(dropped).ok()?;
        let digits = &digits[..digits.len() - dropped];
        let value: i128 = if digits.is_empty() { 0 } else { digits.parse().ok()? };
        let value = if is_negative { -value } else { value };
        if value == 0 {
            return Some(Self { mantissa: 0, scale: u32::try_from(scale).unwrap_or(0).min(SCALE_MAX) });
        }
        match u32::try_from(scale) {
            Ok(scale) => Self::new(value, scale),
            Err(_) => Self::new(value.checked_mul(power_of_ten(scale.unsigned_abs())?)?, 0),
        }
    }

    pub(super) fn negated(self) -> Self {
        Self { mantissa: -self.mantissa, ..self }
    }

    /// Both with one scale.
    fn aligned(self, other: Self) -> Option<(i128, i128, u32)> {
        let scale = self.scale.max(other.scale);
        let at = |number: Self| number.mantissa.checked_mul(power_of_ten(scale - number.scale)?);
        Some((at(self)?, at(other)?, scale))
    }

    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let (one, other, scale) = self.aligned(other)?;
        Self::new(one.checked_add(other)?, scale)
    }

    pub(super) fn times(self, other: Self) -> Option<Self> {
        let (mut mantissa, mut scale) = (self.mantissa.checked_mul(other.mantissa)?, self.scale + other.scale);
        // Zeros at the end that there is no room for mean nothing.
        while scale > SCALE_MAX && mantissa % 10 == 0 {
            (mantissa, scale) = (mantissa / 10, scale - 1);
        }
        Self::new(mantissa, scale)
    }

    /// The quotient with as many digits as there is room for, the last one rounded half to even. The divisor is not zero.
    pub(super) fn divided_by(self, divisor: Self) -> Option<Self> {
        let (dividend, divisor, _) = self.aligned(divisor)?;
        let is_negative = (dividend < 0) != (divisor < 0);
        let divisor = divisor.unsigned_abs();
        if divisor > u128::MAX / 10 {
            return None;
        }
        let mut rest = dividend.unsigned_abs();
        let mut quotient = rest / divisor;
        rest %= divisor;
        let mut scale = 0;
        while rest != 0 && scale < SCALE_MAX && quotient < 10_u128.pow(36) {
            rest *= 10;
            quotient = quotient * 10 + rest / divisor;
            rest %= divisor;
            scale += 1;
        }
        let twice = rest * 2;
        if twice > divisor || (twice == divisor && quotient % 2 == 1) {
            quotient += 1;
        }
        // Something is not nothing.
        let mantissa = i128::try_from(quotient).ok().filter(|quotient| *quotient != 0 || dividend == 0)?;
        Self::new(if is_negative { -mantissa } else { mantissa }, scale)
    }

    /// Rounded to this number of digits behind the point.
    pub(super) fn rounded(self, places: u32, rounding: Rounding) -> Option<Self> {
        if places >= self.scale {
            let mantissa = self.mantissa.checked_mul(power_of_ten(places - self.scale)?)?;
            return Self::new(mantissa, places);
        }
        let unit = power_of_ten(self.scale - places)?.unsigned_abs();
        let magnitude = self.mantissa.unsigned_abs();
        let (whole, rest) = (magnitude / unit, magnitude % unit);
        let is_up = match rest.cmp(&(unit - rest)) {
            Ordering::Less => false,
            Ordering::Greater => true,
            Ordering::Equal => rounding == Rounding::HalfUp || whole % 2 == 1,
        };
        let mantissa = i128::try_from(whole + u128::from(is_up)).ok()?;
        Self::new(if self.mantissa < 0 { -mantissa } else { mantissa }, places)
    }

    pub(super) const fn is_zero(self) -> bool {
        self.mantissa == 0
    }
}

fn power_of_ten(power: u32) -> Option<i128> {
    10_i128.checked_pow(power)
}

/// Plain digits, as JSON has them: no exponent, and the zeros behind the point that the computation gave.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let (scale, digits) = (self.scale as usize, self.mantissa.unsigned_abs().to_string());
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        let point = if fraction.is_empty() { "" } else { "." };
        write!(f, "{sign}{whole}{point}{fraction}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::of(text).unwrap_or_else(|| panic!("{text}"))
    }

    #[test]
    fn numbers_are_read_and_written_digit_for_digit() {
        for (text, written) in [
            ("12.50", "12.50"),
            ("-0.05", "-0.05"),
            ("1e3", "1000"),
            ("1.5E-2", "0.015"),
            ("-1.50e1", "-15.0"),
            ("0", "0"),
            ("-0.00", "0.00"),
            ("0e999", "0"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
            (&format!("1.{}", "0".repeat(60)), &format!("1.{}", "0".repeat(30))),
        ] {
            assert_eq!(number(text).to_string(), written, "{text}");
        }
        for text in
            ["1e39", "1e-31", "1e9999", "1e99999999999999999999", &"9".repeat(39), &format!("0.{}1", "0".repeat(30))]
        {
            assert!(Number::of(text).is_none(), "{text}");
        }
    }

    #[test]
    fn sums_products_and_quotients_are_exact() {
        let of = |one: &str, two: &str| {
            let (one, two) = (number(one), number(two));
            [one.plus(two), one.times(two), one.divided_by(two)].map(|number| number.map(|number| number.to_string()))
        };
        let some = |texts: [&str; 3]| texts.map(|text| Some(text.to_owned()));
        assert_eq!(of("0.1", "0.2"), some(["0.3", "0.02", "0.5"]));
        assert_eq!(of("12.50", "-100"), some(["-87.50", "-1250.00", "-0.125"]));
        assert_eq!(of("2", "3")[2].as_deref(), Some("0.666666666666666666666666666667"));
        assert_eq!(of("1", "8")[2].as_deref(), Some("0.125"));
        let large = "9".repeat(38);
        assert_eq!(of(&large, "1"), [None, Some(large.clone()), Some(large.clone())]);
        assert_eq!(of(&large, &format!("-{large}")), [Some("0".to_owned()), None, None]);
        assert_eq!(of(&"3".repeat(37), &"7".repeat(37))[2].as_deref(), Some("0.428571428571428571428571428571"));
        assert_eq!(of(&large, &large)[1], None, "76 digits");
        assert_eq!(of("1e-20", "1e-20")[1], None);
    }

    #[test]
    fn half_is_rounded_to_even_or_away_from_zero() {
        for (text, places, even, up) in [
            ("0.125", 2, "0.12", "0.13"),
            ("0.135", 2, "0.14", "0.14"),
            ("-0.125", 2, "-0.12", "-0.13"),
            ("2.5", 0, "2", "3"),
            ("-0.5", 0, "0", "-1"),
            ("1.2", 3, "1.200", "1.200"),
            ("0.1250001", 2, "0.13", "0.13"),
        ] {
            let rounded = |rounding| number(text).rounded(places, rounding).unwrap().to_string();
            assert_eq!([rounded(Rounding::HalfEven), rounded(Rounding::HalfUp)], [even, up], "{text}");
        }
    }
}
