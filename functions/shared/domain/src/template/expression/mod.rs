//! Expressions: what a step sends that no pointer finds, such as an amount in cents or a sum over lines.
//!
//! An expression is a text that begins with `=`. It is pure and total: the same order gives the same value on each attempt,
//! in each process and on either form. Its work is bounded by [`EXPRESSION_STEPS_MAX`], and numbers are exact to 38 digits.

mod number;
mod parse;

use std::borrow::Cow;
use std::cell::Cell;
use std::cmp::Ordering;

use serde_json::value::RawValue;

use self::number::{Number, Rounding};
pub use self::parse::BadExpression;
use self::parse::Parser;
use super::{BadTemplate, Place, Unfilled};
use crate::decimal::Decimal;
use crate::json::{Json, key_text};
use crate::limits::EXPRESSION_STEPS_MAX;
use crate::search::Pointer;
use crate::time::Timestamp;

/// What begins an expression.
pub(super) const BEGINNING: char = '=';
/// What an element of a list is called.
const ITEM: &str = "Item";

/// A text that is computed.
#[derive(Debug, Clone)]
pub(crate) struct Expression {
    /// As it is written.
    text: String,
    root: Node,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Expression {}

#[derive(Debug, Clone)]
enum Node {
    Number(Number),
    Text(String),
    /// `true`, `false` or `null`.
    Word(String),
    /// A time span, in milliseconds.
    Duration(u64),
    Place(Place),
    OrElse(Place, Box<Self>),
    /// Whether there is a value, or none.
    Exists(Place, bool),
    Negated(Box<Self>),
    Not(Box<Self>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
    Compares(Compare, Box<[Self; 2]>),
    In(Box<Self>, Vec<Self>),
    Computes(Operator, Box<[Self; 2]>),
    /// Of a list: of its elements, or of what is computed of each.
    Sum(Box<Self>, Option<Box<Self>>),
    Count(Box<Self>),
    Round(Box<Self>, u32, Rounding),
    AsText(Box<Self>),
    If(Box<[Self; 3]>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Compare {
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
    /// Too much work.
    #[error("it takes more than {EXPRESSION_STEPS_MAX} steps")]
    Steps,
}

/// A value on the way.
enum Value<'a> {
    Number(Number),
    Text(Cow<'a, str>),
    Flag(bool),
    Null,
    Duration(u64),
    /// An object or an array.
    Whole(&'a RawValue),
}

/// What an expression is computed of.
#[derive(Clone, Copy)]
struct Scope<'e, 'a> {
    find: &'e dyn Fn(&Pointer) -> Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    steps: &'e Cell<u32>,
}

impl Expression {
    /// Reads it, with the `=` before it.
    pub(super) fn read(text: &str) -> Result<Self, BadTemplate> {
        let root = Parser::parse(text.strip_prefix(BEGINNING).unwrap_or(text));
        let mut root = root.map_err(|fault| BadTemplate::Expression(text.to_owned(), fault))?;
        root.mark(false);
        Ok(Self { text: text.to_owned(), root })
    }

    pub(super) fn unfilled(&self, problem: NoValue) -> Unfilled {
        Unfilled::NoValue(self.text.as_str().into(), problem)
    }

    /// As it is written.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The places outside of lists. One that is not surely needed may be without a value.
    pub(super) fn places(&self) -> Vec<&Place> {
        let mut found = Vec::new();
        self.root.places(&mut found);
        found
    }

    /// The JSON of its value.
    pub(super) fn value<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Result<Cow<'a, str>, NoValue> {
        let scope = Scope { find, item: None, steps: &Cell::new(0) };
        Ok(match self.root.value(scope)? {
            Value::Number(number) => number.to_string().into(),
            Value::Text(text) => Json::of(&text).text().to_owned().into(),
            Value::Flag(flag) => if flag { "true" } else { "false" }.into(),
            Value::Null => "null".into(),
            Value::Whole(value) => value.get().into(),
            Value::Duration(_) => return Err(NoValue::Type("a time to add it to", "a time span alone")),
        })
    }
}

impl<'a> Scope<'_, 'a> {
    fn at(&self, place: &Place) -> Option<&'a RawValue> {
        match place.pointer.names() {
            [root, rest @ ..] if root == ITEM => Pointer::walk(rest, self.item?),
            _ => (self.find)(&place.pointer),
        }
    }

    fn step(&self) -> Result<(), NoValue> {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > EXPRESSION_STEPS_MAX { Err(NoValue::Steps) } else { Ok(()) }
    }
}

impl Node {
    fn children(&self) -> Vec<&Self> {
        match self {
            Self::Number(_) | Self::Text(_) | Self::Word(_) | Self::Duration(_) | Self::Place(_) | Self::Exists(..) => {
                Vec::new()
            }
            Self::OrElse(_, node)
            | Self::Negated(node)
            | Self::Not(node)
            | Self::Count(node)
            | Self::Round(node, ..)
            | Self::AsText(node) => vec![node],
            Self::And(nodes) | Self::Or(nodes) | Self::Compares(_, nodes) | Self::Computes(_, nodes) => {
                nodes.iter().collect()
            }
            Self::In(node, nodes) => [&**node].into_iter().chain(nodes).collect(),
            Self::Sum(list, of) => [&**list].into_iter().chain(of.as_deref()).collect(),
            Self::If(nodes) => nodes.iter().collect(),
        }
    }

    fn places<'n>(&'n self, found: &mut Vec<&'n Place>) {
        if let Self::Place(place) | Self::OrElse(place, _) | Self::Exists(place, _) = self
            && place.pointer.names().first().is_none_or(|root| root != ITEM)
        {
            found.push(place);
        }
        self.children().into_iter().for_each(|node| node.places(found));
    }

    /// Marks the places whose value may not be needed: behind `??`, `and`, `or` and in a branch.
    fn mark(&mut self, is_optional: bool) {
        match self {
            Self::Number(_) | Self::Text(_) | Self::Word(_) | Self::Duration(_) => {}
            Self::Place(place) => place.is_optional = is_optional,
            Self::Exists(place, _) => place.is_optional = true,
            Self::OrElse(place, node) => {
                place.is_optional = true;
                node.mark(true);
            }
            Self::Negated(node) | Self::Not(node) | Self::Count(node) | Self::Round(node, ..) | Self::AsText(node) => {
                node.mark(is_optional);
            }
            Self::And(nodes) | Self::Or(nodes) => {
                nodes[0].mark(is_optional);
                nodes[1].mark(true);
            }
            Self::Compares(_, nodes) | Self::Computes(_, nodes) => {
                nodes.iter_mut().for_each(|node| node.mark(is_optional));
            }
            Self::In(node, nodes) => {
                node.mark(is_optional);
                nodes.iter_mut().for_each(|node| node.mark(true));
            }
            Self::Sum(list, of) => {
                list.mark(is_optional);
                // A list may be empty.
                of.iter_mut().for_each(|node| node.mark(true));
            }
            Self::If(nodes) => {
                nodes[0].mark(is_optional);
                nodes[1..].iter_mut().for_each(|node| node.mark(true));
            }
        }
    }

    fn value<'a>(&self, scope: Scope<'_, 'a>) -> Result<Value<'a>, NoValue> {
        scope.step()?;
        Ok(match self {
            Self::Number(number) => Value::Number(*number),
            Self::Text(text) => Value::Text(text.clone().into()),
            Self::Word(word) => match &**word {
                "true" => Value::Flag(true),
                "false" => Value::Flag(false),
                _ => Value::Null,
            },
            Self::Duration(ms) => Value::Duration(*ms),
            Self::Place(place) => Value::of(scope.at(place).ok_or_else(|| NoValue::Nothing(place.pointer.text()))?)?,
            Self::OrElse(place, node) => match scope.at(place) {
                Some(found) if found.get() != "null" => Value::of(found)?,
                Some(_) | None => node.value(scope)?,
            },
            Self::Exists(place, is_there) => Value::Flag(scope.at(place).is_some() == *is_there),
            Self::Negated(node) => Value::Number(node.number(scope)?.negated()),
            Self::Not(node) => Value::Flag(!node.flag(scope)?),
            Self::And(nodes) => Value::Flag(nodes[0].flag(scope)? && nodes[1].flag(scope)?),
            Self::Or(nodes) => Value::Flag(nodes[0].flag(scope)? || nodes[1].flag(scope)?),
            Self::Compares(compare, nodes) => {
                Value::Flag(compare.holds(&nodes[0].value(scope)?, &nodes[1].value(scope)?))
            }
            Self::In(node, nodes) => {
                let value = node.value(scope)?;
                for other in nodes {
                    if Compare::Equal.holds(&value, &other.value(scope)?) {
                        return Ok(Value::Flag(true));
                    }
                }
                Value::Flag(false)
            }
            Self::Computes(operator, nodes) => operator.of(&nodes[0].value(scope)?, &nodes[1].value(scope)?)?,
            Self::Sum(list, of) => {
                let mut sum = Number::ZERO;
                for item in list.elements(scope)? {
                    scope.step()?;
                    let number = match of {
                        Some(node) => node.number(Scope { item: Some(item), ..scope })?,
                        None => Value::of(item)?.number()?,
                    };
                    sum = sum.plus(number).ok_or(NoValue::Digits)?;
                }
                Value::Number(sum)
            }
            Self::Count(list) => Value::Number(Number::of_count(list.elements(scope)?.len())),
            Self::Round(node, places, rounding) => {
                Value::Number(node.number(scope)?.rounded(*places, *rounding).ok_or(NoValue::Digits)?)
            }
            Self::AsText(node) => Value::Text(match node.value(scope)? {
                Value::Number(number) => number.to_string().into(),
                Value::Text(text) => text,
                Value::Flag(flag) => if flag { "true" } else { "false" }.into(),
                other @ (Value::Null | Value::Duration(_) | Value::Whole(_)) => {
                    return Err(NoValue::Type("a text, a number, true or false", other.type_of()));
                }
            }),
            Self::If(nodes) => nodes[if nodes[0].flag(scope)? { 1 } else { 2 }].value(scope)?,
        })
    }

    fn number(&self, scope: Scope<'_, '_>) -> Result<Number, NoValue> {
        self.value(scope)?.number()
    }

    fn flag(&self, scope: Scope<'_, '_>) -> Result<bool, NoValue> {
        let value = self.value(scope)?;
        if let Value::Flag(flag) = value { Ok(flag) } else { Err(NoValue::Type("true or false", value.type_of())) }
    }

    fn elements<'a>(&self, scope: Scope<'_, 'a>) -> Result<Vec<&'a RawValue>, NoValue> {
        let value = self.value(scope)?;
        let Value::Whole(list) = value else { return Err(NoValue::Type("an array", value.type_of())) };
        serde_json::from_str(list.get()).map_err(|_| NoValue::Type("an array", "an object"))
    }
}

impl<'a> Value<'a> {
    fn of(value: &'a RawValue) -> Result<Self, NoValue> {
        Ok(match value.get().as_bytes().first() {
            Some(b'{' | b'[') => Self::Whole(value),
            Some(b'"') => Self::Text(key_text(value).ok_or(NoValue::Type("a text", "a broken one"))?),
            Some(b't') => Self::Flag(true),
            Some(b'f') => Self::Flag(false),
            Some(b'n') | None => Self::Null,
            Some(_) => Self::Number(Number::of(value.get()).ok_or(NoValue::Digits)?),
        })
    }

    fn number(&self) -> Result<Number, NoValue> {
        if let Self::Number(number) = self { Ok(*number) } else { Err(NoValue::Type("a number", self.type_of())) }
    }

    /// In words.
    fn type_of(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
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
    fn of<'a>(self, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, NoValue> {
        let moved = |time: &str, ms: u64| {
            let at: Timestamp = serde_json::from_str(Json::of(&time).text()).map_err(|_| NoValue::Time)?;
            let at = if self == Self::Minus { at.minus_ms(ms) } else { at.plus_ms(ms) };
            Ok(Value::Text(at.to_string().into()))
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
    fn holds(self, left: &Value<'_>, right: &Value<'_>) -> bool {
        let order = match (left, right) {
            (Value::Number(one), Value::Number(other)) => {
                Some(Decimal::of(&one.to_string()).cmp(&Decimal::of(&other.to_string())))
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

#[cfg(test)]
mod tests;
