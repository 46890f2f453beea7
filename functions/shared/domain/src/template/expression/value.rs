//! The values on the way of an expression, and what is done with two of them.

use std::borrow::Cow;
use std::cmp::Ordering;

use serde_json::value::RawValue;

use super::number::Number;
use crate::decimal::Decimal;
use crate::json::{Json, key_text};
use crate::limits::EXPRESSION_STEPS_MAX;
use crate::time::Timestamp;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why there is no value. Its words repeat no value of the order.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoValue {
    /// There is nothing where a value must be.
    #[error("there is nothing at {0}; write {0} ?? and another value where this may be")]
    Nothing(String),
    /// A value of another type.
    #[error("{0} is needed, and {1} is there")]
    Type(&'static str, &'static str),
    /// A number beyond 38 digits, also on the way.
    #[error("a number has more than 38 digits, or more than 30 behind the point")]
    Digits,
    /// A division by zero.
    #[error("it divides by zero")]
    Zero,
    /// A text that is no time.
    #[error("a time such as 2026-11-20T17:26:43Z is needed, and another text is there")]
    Time,
    /// A time that no text has.
    #[error("the time lies outside the years 0000 to 9999")]
    Years,
    /// Too much work.
    #[error("it takes more than {EXPRESSION_STEPS_MAX} steps")]
    Steps,
}

/// A value on the way.
pub(super) enum Value<'a> {
    Number(Number),
    Text(Cow<'a, str>),
    Flag(bool),
    Null,
    Duration(u64),
    /// A number that has too many digits to be computed with.
    Far(&'a str),
    /// Nothing, where something is compared.
    Missing,
    /// An object or an array.
    Whole(&'a RawValue),
}

impl<'a> Value<'a> {
    pub(super) fn of(value: &'a RawValue) -> Result<Self, NoValue> {
        Ok(match value.get().as_bytes().first() {
            Some(b'{' | b'[') => Self::Whole(value),
            Some(b'"') => Self::Text(key_text(value).ok_or(NoValue::Type("a text", "a broken one"))?),
            Some(b't') => Self::Flag(true),
            Some(b'f') => Self::Flag(false),
            Some(b'n') | None => Self::Null,
            Some(_) => Number::of(value.get()).map_or_else(|| Self::Far(value.get()), Self::Number),
        })
    }

    pub(super) fn number(&self) -> Result<Number, NoValue> {
        match self {
            Self::Number(number) => Ok(*number),
            Self::Far(_) => Err(NoValue::Digits),
            Self::Text(_) | Self::Flag(_) | Self::Null | Self::Duration(_) | Self::Missing | Self::Whole(_) => {
                Err(NoValue::Type("a number", self.type_of()))
            }
        }
    }

    /// In words.
    pub(super) fn type_of(&self) -> &'static str {
        match self {
            Self::Number(_) | Self::Far(_) => "a number",
            Self::Missing => "missing",
            Self::Text(_) => "a text",
            Self::Flag(_) => "true or false",
            Self::Null => "null",
            Self::Duration(_) => "a time span",
            Self::Whole(value) if value.get().starts_with('[') => "an array",
            Self::Whole(_) => "an object",
        }
    }
}

impl Operator {
    pub(super) fn of<'a>(self, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, NoValue> {
        let moved = |time: &str, ms: u64| {
            let at: Timestamp = serde_json::from_str(Json::of(&time).text()).map_err(|_| NoValue::Time)?;
            let at = if self == Self::Minus { at.minus_ms(ms) } else { at.plus_ms(ms) };
            let text = at.to_string();
            // One beyond is written as the nearest one within.
            let is_exact = serde_json::from_str(Json::of(&text).text()).is_ok_and(|read: Timestamp| read == at);
            if is_exact { Ok(Value::Text(text.into())) } else { Err(NoValue::Years) }
        };
        match (self, left, right) {
            (Self::Plus, Value::Text(one), Value::Text(other)) => {
                return Ok(Value::Text([&**one, &**other].concat().into()));
            }
            (Self::Plus | Self::Minus, Value::Text(time), Value::Duration(ms)) => return moved(time, *ms),
            _ => {}
        }
        let (one, other) = (left.number()?, right.number()?);
        let computed = match self {
            Self::Plus => one.plus(other),
            Self::Minus => one.plus(other.negated()),
            Self::Times => one.times(other),
            Self::Over if other.is_zero() => return Err(NoValue::Zero),
            Self::Over => one.divided_by(other),
        };
        computed.map(Value::Number).ok_or(NoValue::Digits)
    }
}

impl Compare {
    /// Values of two types are not equal, and have no order.
    pub(super) fn holds(self, left: &Value<'_>, right: &Value<'_>) -> bool {
        let decimal = |value: &Value<'_>| match value {
            Value::Number(number) => Some(Decimal::of(&number.to_string())),
            Value::Far(number) => Some(Decimal::of(number)),
            Value::Text(_) | Value::Flag(_) | Value::Null | Value::Duration(_) | Value::Missing | Value::Whole(_) => {
                None
            }
        };
        let order = match (left, right) {
            (Value::Number(_) | Value::Far(_), _) => {
                decimal(left).zip(decimal(right)).map(|(one, other)| one.cmp(&other))
            }
            (Value::Text(one), Value::Text(other)) => Some(one.cmp(other)),
            (Value::Flag(one), Value::Flag(other)) => (one == other).then_some(Ordering::Equal),
            (Value::Null, Value::Null) => Some(Ordering::Equal),
            _ => None,
        };
        match self {
            Self::Equal => order == Some(Ordering::Equal),
            Self::NotEqual => order != Some(Ordering::Equal),
            Self::Less => order == Some(Ordering::Less),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => order == Some(Ordering::Greater),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

/// The type of a value, in words.
pub(super) fn type_of(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') | None => "null",
        Some(_) => "a number",
    }
}
