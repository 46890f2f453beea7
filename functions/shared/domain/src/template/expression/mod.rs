//! Expressions: what a step sends that no pointer finds, such as an amount in cents or a sum over lines.
//!
//! An expression is a text that begins with `=`. It is pure and total: the same order gives the same value on each attempt,
//! in each process and on either form. Its work is bounded by [`EXPRESSION_STEPS_MAX`], and numbers are exact to 38 digits.

mod constant;
mod number;
mod parse;
mod value;

use std::borrow::Cow;
use std::cell::{Cell, RefCell};

use serde_json::value::RawValue;

use self::number::{Number, Rounding};
pub use self::parse::BadExpression;
use self::parse::Parser;
pub use self::value::NoValue;
use self::value::{Compare, Operator, Value, type_of};
use super::known::is_of_any_type;
use super::{BadTemplate, Place, Unfilled};
use crate::json::Json;
use crate::limits::EXPRESSION_STEPS_MAX;
use crate::search::Pointer;

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

/// What an expression is computed of.
#[derive(Clone, Copy)]
struct Scope<'e, 'a> {
    find: &'e dyn Fn(&Pointer) -> Option<&'a RawValue>,
    item: Option<&'a RawValue>,
    steps: &'e Cell<u32>,
    /// What was found at places outside of elements: a place within a sum is looked up once.
    found: &'e RefCell<Vec<(*const Place, Option<&'a RawValue>)>>,
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

    /// Reads a comparison, or several that are put together.
    pub(crate) fn condition(text: &str) -> Result<Self, BadExpression> {
        let mut root = Parser::parse(text)?;
        if !root.is_condition() {
            return Err(BadExpression::NoCondition);
        }
        root.mark(false);
        Ok(Self { text: text.to_owned(), root })
    }

    /// Whether it holds.
    pub(crate) fn holds<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Result<bool, NoValue> {
        self.root.flag(Scope { find, item: None, steps: &Cell::default(), found: &RefCell::default() })
    }

    /// The type of a value that is compared with one of another type.
    pub(crate) fn found<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Option<&'static str> {
        let Node::Compares(_, nodes) = self.root.turned().0 else { return None };
        let [Node::Place(place), other] = &**nodes else { return None };
        let scope = Scope { find, item: None, steps: &Cell::default(), found: &RefCell::default() };
        let found = scope.at(place).ok()?.map_or("missing", type_of);
        let other = other.value(scope).ok()?.type_of();
        (found != other).then_some(found)
    }

    /// Whether its value may be an object: what a place has may be one, and nothing else makes one.
    pub(crate) fn may_be_object(&self) -> bool {
        self.root.may_be_object()
    }

    /// Whether it holds only where there is a value at this position, or within it.
    pub(crate) fn demands(&self, pointer: &Pointer) -> bool {
        self.root.demands(pointer)
    }

    /// As it is written.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The places outside of lists of a sum. One that is not surely needed may be without a value.
    pub(crate) fn places(&self) -> Vec<&Place> {
        let mut found = Vec::new();
        self.root.places(&mut found, false);
        found
    }

    /// The JSON of its value.
    pub(crate) fn value<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Result<Cow<'a, str>, NoValue> {
        let scope = Scope { find, item: None, steps: &Cell::default(), found: &RefCell::default() };
        Ok(match self.root.value(scope)? {
            Value::Number(number) => number.to_string().into(),
            Value::Text(text) => Json::of(&text).text().to_owned().into(),
            Value::Flag(flag) => if flag { "true" } else { "false" }.into(),
            Value::Null => "null".into(),
            Value::Whole(value) => value.get().into(),
            Value::Far(number) => number.into(),
            Value::Missing => "null".into(),
            Value::Duration(_) => return Err(NoValue::Type("a time to add it to", "a time span alone")),
        })
    }
}

impl<'a> Scope<'_, 'a> {
    fn at(&self, place: &Place) -> Result<Option<&'a RawValue>, NoValue> {
        if let ([root, rest @ ..], Some(item)) = (place.pointer.names(), self.item)
            && root == ITEM
        {
            self.reads(item)?;
            return Ok(Pointer::walk(rest, item));
        }
        let known = |(of, found): &(*const Place, Option<&'a RawValue>)| std::ptr::eq(*of, place).then_some(*found);
        let known = self.found.borrow().iter().find_map(known);
        let found = known.unwrap_or_else(|| {
            let found = (self.find)(&place.pointer);
            self.found.borrow_mut().push((place, found));
            found
        });
        // Its value is read again for each element.
        found.map_or(Ok(()), |found| self.reads(found))?;
        Ok(found)
    }

    /// Counts the work of reading a value: one step for each 16 bytes.
    fn reads(&self, value: &RawValue) -> Result<(), NoValue> {
        const BYTES: usize = 16;
        self.steps_on(u32::try_from(value.get().len() / BYTES).unwrap_or(u32::MAX))
    }

    fn step(&self) -> Result<(), NoValue> {
        self.steps_on(1)
    }

    fn steps_on(&self, steps: u32) -> Result<(), NoValue> {
        self.steps.set(self.steps.get().saturating_add(steps));
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

    /// Within a sum, the elements are those of its list.
    fn places<'n>(&'n self, found: &mut Vec<&'n Place>, is_in_sum: bool) {
        if let Self::Place(place) | Self::OrElse(place, _) | Self::Exists(place, _) = self
            && (!is_in_sum || place.pointer.names().first().is_none_or(|root| root != ITEM))
        {
            found.push(place);
        }
        let of_elements = if let Self::Sum(_, of) = self { of.as_deref() } else { None };
        for node in self.children() {
            node.places(found, is_in_sum || of_elements.is_some_and(|of| std::ptr::eq(of, node)));
        }
    }

    /// Marks the places that may have no value, and those that may not be looked at: behind `??`, `and` and `or`, and in a
    /// branch.
    fn mark(&mut self, is_conditional: bool) {
        match self {
            Self::Number(_) | Self::Text(_) | Self::Word(_) | Self::Duration(_) => {}
            Self::Place(place) => place.is_conditional = is_conditional,
            Self::Exists(place, _) => place.is_optional = true,
            Self::OrElse(place, node) => {
                place.is_optional = true;
                node.mark(true);
            }
            Self::Negated(node) | Self::Not(node) | Self::Count(node) | Self::Round(node, ..) | Self::AsText(node) => {
                node.mark(is_conditional);
            }
            Self::And(nodes) | Self::Or(nodes) => {
                nodes[0].mark(is_conditional);
                nodes[1].mark(true);
            }
            Self::Computes(_, nodes) => nodes.iter_mut().for_each(|node| node.mark(is_conditional)),
            Self::Compares(_, nodes) => nodes.iter_mut().for_each(|node| node.mark_compared(is_conditional)),
            Self::In(node, nodes) => {
                node.mark_compared(is_conditional);
                nodes.iter_mut().for_each(|node| node.mark_compared(true));
            }
            Self::Sum(list, of) => {
                list.mark(is_conditional);
                // A list may be empty.
                of.iter_mut().for_each(|node| node.mark(true));
            }
            Self::If(nodes) => {
                nodes[0].mark(is_conditional);
                nodes[1..].iter_mut().for_each(|node| node.mark(true));
            }
        }
    }

    /// What is missing is unequal to everything.
    fn mark_compared(&mut self, is_conditional: bool) {
        if let Self::Place(place) = self { place.is_optional = true } else { self.mark(is_conditional) }
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
            Self::Place(place) => Value::of(scope.at(place)?.ok_or_else(|| NoValue::Nothing(place.pointer.text()))?)?,
            Self::OrElse(place, node) => match scope.at(place)? {
                Some(found) if found.get() != "null" => Value::of(found)?,
                Some(_) | None => node.value(scope)?,
            },
            Self::Exists(place, is_there) => Value::Flag(scope.at(place)?.is_some() == *is_there),
            Self::Negated(node) => Value::Number(node.number(scope)?.negated()),
            Self::Not(node) => Value::Flag(!node.flag(scope)?),
            Self::And(nodes) => Value::Flag(nodes[0].flag(scope)? && nodes[1].flag(scope)?),
            Self::Or(nodes) => Value::Flag(nodes[0].flag(scope)? || nodes[1].flag(scope)?),
            Self::Compares(compare, nodes) => {
                Value::Flag(compare.holds(&nodes[0].compared(scope)?, &nodes[1].compared(scope)?))
            }
            Self::In(node, nodes) => {
                let value = node.compared(scope)?;
                for other in nodes {
                    if Compare::Equal.holds(&value, &other.compared(scope)?) {
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
                Value::Far(number) => number.into(),
                other @ (Value::Null | Value::Duration(_) | Value::Whole(_) | Value::Missing) => {
                    return Err(NoValue::Type("a text, a number, true or false", other.type_of()));
                }
            }),
            Self::If(nodes) => nodes[if nodes[0].flag(scope)? { 1 } else { 2 }].value(scope)?,
        })
    }

    /// The value of one side of a comparison.
    fn compared<'a>(&self, scope: Scope<'_, 'a>) -> Result<Value<'a>, NoValue> {
        let Self::Place(place) = self else { return self.value(scope) };
        scope.step()?;
        // A text that is half a character is equal to no other.
        Ok(scope.at(place)?.and_then(|found| Value::of(found).ok()).unwrap_or(Value::Missing))
    }

    /// Without `not`, and whether it is turned round.
    fn turned(&self) -> (&Self, bool) {
        let (mut node, mut is_turned) = (self, false);
        while let Self::Not(inner) = node {
            (node, is_turned) = (inner, !is_turned);
        }
        (node, is_turned)
    }

    fn is_condition(&self) -> bool {
        let (node, _) = self.turned();
        if let Self::And(nodes) | Self::Or(nodes) = node {
            nodes.iter().all(Self::is_condition)
        } else if let Self::If(nodes) = node {
            nodes.iter().all(Self::is_condition)
        } else {
            matches!(node, Self::Compares(..) | Self::In(..) | Self::Exists(..))
        }
    }

    fn may_be_object(&self) -> bool {
        if let Self::OrElse(place, other) = self {
            is_of_any_type(&place.pointer) || other.may_be_object()
        } else if let Self::If(nodes) = self {
            nodes[1..].iter().any(Self::may_be_object)
        } else {
            matches!(self, Self::Place(place) if is_of_any_type(&place.pointer))
        }
    }

    fn demands(&self, pointer: &Pointer) -> bool {
        let is_at = |place: &Place| place.pointer.names().starts_with(pointer.names());
        let compares = |node: &Self| matches!(node, Self::Place(place) if is_at(place));
        let (node, is_turned) = self.turned();
        if let Self::Exists(place, is_there) = node {
            *is_there != is_turned && is_at(place)
        } else if is_turned {
            // A negated comparison also holds where there is nothing.
            false
        } else if let Self::Compares(operator, nodes) = node {
            *operator != Compare::NotEqual && nodes.iter().any(compares)
        } else if let Self::And(nodes) = node {
            nodes.iter().any(|node| node.demands(pointer))
        } else if let Self::Or(nodes) = node {
            nodes.iter().all(|node| node.demands(pointer))
        } else {
            matches!(node, Self::In(node, _) if compares(node))
        }
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
        scope.reads(list)?;
        serde_json::from_str(list.get()).map_err(|_| NoValue::Type("an array", "an object"))
    }
}

/// Why an expression can never be computed, whatever the order. One that is sent has its `=`; a text that is none has no such
/// reason.
#[must_use]
pub fn never_computed(text: &str) -> Option<NoValue> {
    let is_sent = text.starts_with(BEGINNING);
    let expression = if is_sent { Expression::read(text).ok()? } else { Expression::condition(text.trim()).ok()? };
    expression.fault_of_constants(is_sent)
}

#[cfg(test)]
mod tests;
