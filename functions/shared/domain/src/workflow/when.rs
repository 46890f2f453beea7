//! Whether a step applies to an order (rule 33): comparisons of values in the document, and in outputs of steps before.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::value::RawValue;

use super::mapping::Root;
use crate::decimal::{Decimal, EXPONENT_MAX};
use crate::json::{Json, key_text};
use crate::limits::WHEN_CHARS_MAX;
use crate::search::{NotAPointer, Pointer};

/// One comparison of a value of the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// Whether it holds where the rest of it does not.
    is_negated: bool,
    pointer: Pointer,
    test: Test,
    /// As it is written in the file.
    text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Test {
    Exists,
    Missing,
    Compares(Operator, Literal),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A comparison that does not hold. Its words never repeat the value.
#[derive(Debug)]
pub(crate) struct Unmet<'a> {
    comparison: &'a Comparison,
    /// What was found in the place of a value that can be compared.
    found: Option<&'static str>,
}

/// A value that is neither an object nor an array.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Literal {
    Number(Decimal),
    Text(String),
    /// `true`, `false` or `null`.
    Word(String),
}

const NOT: &str = "not ";
const OPERATORS: [(&str, Operator); 6] = [
    ("==", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<=", Operator::LessOrEqual),
    (">=", Operator::GreaterOrEqual),
    ("<", Operator::Less),
    (">", Operator::Greater),
];

/// Why a comparison is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadComparison {
    #[error("must have 1 to {WHEN_CHARS_MAX} characters")]
    Length,
    #[error(
        "must be a pointer, one of == != < <= > >= and a value, with spaces between, such as \"/Order/Total > 1000\"; \
         or a pointer with exists or missing, such as \"/Order/Note exists\"; or not before one of these"
    )]
    Form,
    #[error("must begin with /Order or /Outputs/{{step}}")]
    Root,
    #[error("{0}")]
    Pointer(NotAPointer),
    #[error("compares with {0}, which must be a number, true, false, null, or a text in quotes, such as \"DE\"")]
    Literal(String),
    #[error("compares with a number whose exponent is beyond {EXPONENT_MAX}")]
    Exponent,
    #[error("true, false and null are compared with == and != only")]
    Unordered,
}

impl Comparison {
    pub(super) fn parse(text: &str) -> Result<Self, BadComparison> {
        if !(1..=WHEN_CHARS_MAX).contains(&text.chars().count()) {
            return Err(BadComparison::Length);
        }
        let whole = text.trim();
        let negated = whole.strip_prefix(NOT).map(str::trim_start);
        let text = negated.unwrap_or(whole);
        let (pointer, test) = match split(text) {
            Some((pointer, operator, literal)) => (pointer, Test::Compares(operator, Literal::parse(literal)?)),
            None => {
                let (pointer, word) = text.rsplit_once(' ').ok_or(BadComparison::Form)?;
                match word {
                    "exists" => (pointer, Test::Exists),
                    "missing" => (pointer, Test::Missing),
                    _ => return Err(BadComparison::Form),
                }
            }
        };
        if let Test::Compares(operator, Literal::Word(_)) = &test
            && !matches!(operator, Operator::Equal | Operator::NotEqual)
        {
            return Err(BadComparison::Unordered);
        }
        let pointer = Pointer::parse(pointer.trim()).map_err(BadComparison::Pointer)?;
        match Root::of(&pointer) {
            Some(Root::Order(_) | Root::Output(..)) => {
                Ok(Self { is_negated: negated.is_some(), pointer, test, text: whole.to_owned() })
            }
            Some(Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt) | None => Err(BadComparison::Root),
        }
    }

    /// As it is written in the file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it compares.
    pub(crate) const fn pointer(&self) -> &Pointer {
        &self.pointer
    }

    /// The step whose output it reads, and the position in it; `None` if it reads the document.
    pub(super) fn output(&self) -> Option<(&str, &[String])> {
        match Root::of(&self.pointer) {
            Some(Root::Output(step, names)) => Some((step, names)),
            Some(Root::Order(_) | Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt) | None => None,
        }
    }

    /// Whether it demands a value at this position, or within it.
    pub(super) fn demands(&self, pointer: &Pointer) -> bool {
        let demands = match &self.test {
            Test::Exists => !self.is_negated,
            Test::Missing => self.is_negated,
            Test::Compares(operator, _) => !self.is_negated && *operator != Operator::NotEqual,
        };
        demands && self.pointer.names().starts_with(pointer.names())
    }

    fn holds(&self, found: Option<&RawValue>) -> bool {
        let holds = match &self.test {
            Test::Exists => found.is_some(),
            Test::Missing => found.is_none(),
            Test::Compares(operator, literal) => operator.holds(found.and_then(|value| literal.order_of(value))),
        };
        holds != self.is_negated
    }

    /// What of it does not hold for a document. `None` also if it compares an output.
    pub(super) fn unmet_by_document(&self, document: &Json) -> Option<Unmet<'_>> {
        match Root::of(&self.pointer) {
            Some(Root::Order(names)) => self.unmet(Pointer::walk(names, document.raw())),
            Some(Root::Output(..) | Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt) | None => None,
        }
    }

    /// What of it does not hold for the outputs of the steps before. `None` also if it compares the document.
    pub(crate) fn unmet_by_outputs<'t>(&self, output_of: impl Fn(&str) -> Option<&'t Json>) -> Option<Unmet<'_>> {
        let (step, names) = self.output()?;
        self.unmet(output_of(step).and_then(|output| Pointer::walk(names, output.raw())))
    }

    fn unmet(&self, found: Option<&RawValue>) -> Option<Unmet<'_>> {
        let other = match &self.test {
            Test::Exists | Test::Missing => None,
            Test::Compares(_, literal) => {
                Some(found.map_or("missing", type_of)).filter(|found| *found != literal.type_of())
            }
        };
        (!self.holds(found)).then_some(Unmet { comparison: self, found: other })
    }
}

impl fmt::Display for Unmet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.comparison)?;
        self.found.map_or(Ok(()), |found| write!(f, ", and it is {found}"))
    }
}

/// The type of a value, in words.
fn type_of(value: &RawValue) -> &'static str {
    match value.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a text",
        Some(b't' | b'f') => "true or false",
        Some(b'n') | None => "null",
        Some(_) => "a number",
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Pointer, operator and literal, at the first operator between spaces. A name may contain spaces.
fn split(text: &str) -> Option<(&str, Operator, &str)> {
    let at = |(word, operator): &(&str, Operator)| Some((text.find(&format!(" {word} "))?, word.len(), *operator));
    let (place, length, operator) = OPERATORS.iter().filter_map(at).min_by_key(|(place, ..)| *place)?;
    Some((&text[..place], operator, &text[place + length + 2..]))
}

impl Operator {
    /// `None`: there is no value, or one of another type.
    const fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Self::Equal => matches!(order, Some(Ordering::Equal)),
            Self::NotEqual => !matches!(order, Some(Ordering::Equal)),
            Self::Less => matches!(order, Some(Ordering::Less)),
            Self::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Self::Greater => matches!(order, Some(Ordering::Greater)),
            Self::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

impl Literal {
    fn parse(text: &str) -> Result<Self, BadComparison> {
        let text = text.trim();
        let literal = serde_json::from_str::<&RawValue>(text).ok().and_then(Self::of);
        let literal = literal.ok_or_else(|| BadComparison::Literal(text.to_owned()))?;
        let is_far = matches!(&literal, Self::Number(number) if !number.is_near());
        if is_far { Err(BadComparison::Exponent) } else { Ok(literal) }
    }

    fn of(value: &RawValue) -> Option<Self> {
        match value.get().as_bytes().first()? {
            b'{' | b'[' => None,
            b'"' => key_text(value).map(Cow::into_owned).map(Self::Text),
            b't' | b'f' | b'n' => Some(Self::Word(value.get().to_owned())),
            _ => Some(Self::Number(Decimal::of(value.get()))),
        }
    }

    fn type_of(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Text(_) => "a text",
            Self::Word(word) if word == "null" => "null",
            Self::Word(_) => "true or false",
        }
    }

    /// How a value is ordered against this one. `None`: it is of another type.
    fn order_of(&self, value: &RawValue) -> Option<Ordering> {
        match (Self::of(value)?, self) {
            (Self::Number(value), Self::Number(literal)) => Some(value.cmp(literal)),
            // UTF-8 has the order of the code points.
            (Self::Text(value), Self::Text(literal)) => Some(value.cmp(literal)),
            (Self::Word(value), Self::Word(literal)) => (value == *literal).then_some(Ordering::Equal),
            (Self::Number(_) | Self::Text(_) | Self::Word(_), _) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(comparison: &str, document: &str) -> bool {
        let comparison = Comparison::parse(comparison).unwrap_or_else(|problem| panic!("{comparison}: {problem}"));
        let document = Json::parse(document.as_bytes(), 1_000).unwrap();
        let Some(Root::Order(names)) = Root::of(&comparison.pointer) else { panic!("{comparison}") };
        comparison.holds(Pointer::walk(names, document.raw()))
    }

    #[test]
    fn each_operator_orders_numbers_and_texts() {
        let of = |value: &str, literal: &str| {
            OPERATORS.map(|(word, _)| holds(&format!("/Order/a {word} {literal}"), &format!("{{\"a\":{value}}}")))
        };
        // ==, !=, <=, >=, <, >
        let (less, same, more) = (
            [false, true, true, false, true, false],
            [true, false, true, true, false, false],
            [false, true, false, true, false, true],
        );
        for (value, literal, expected) in [
            ("9.99", "10", less),
            ("10.00", "1e1", same),
            ("0.1000000000000000000001", "0.1", more),
            ("\"a\"", "\"b\"", less),
            (r#""\u00e9""#, "\"é\"", same),
            ("\"z\"", "\"Z\"", more),
            ("\"\u{1F600}\"", "\"\u{FF5E}\"", more),
            ("\"ab\"", "\"abc\"", less),
        ] {
            assert_eq!(of(value, literal), expected, "{value} {literal}");
        }
    }

    #[test]
    fn nothing_and_another_type_are_unequal_and_in_no_order() {
        for document in ["{}", "{\"a\":null}", "{\"a\":\"1\"}", "{\"a\":[1]}", "{\"a\":{}}", "{\"a\":\"\\ud800\"}"] {
            for (word, operator) in OPERATORS {
                let expected = operator == Operator::NotEqual;
                assert_eq!(holds(&format!("/Order/a {word} 1"), document), expected, "{word} {document}");
            }
        }
    }

    #[test]
    fn rule_33_a_comparison_that_is_turned_round_also_holds_for_nothing_and_for_another_type() {
        for (document, expected) in [
            ("{\"a\":999}", false),
            ("{\"a\":1000}", true),
            ("{\"a\":\"999\"}", true),
            ("{\"a\":null}", true),
            ("{}", true),
        ] {
            assert_eq!(holds("not /Order/a < 1000", document), expected, "{document}");
            assert_eq!(holds(" not   /Order/a exists ", document), document == "{}", "{document}");
        }
        let exists = Comparison::parse("not /Order/a missing").unwrap();
        assert!(exists.demands(&Pointer::parse("/Order/a").unwrap()) && exists.text() == "not /Order/a missing");
        assert!(!Comparison::parse("not /Order/a exists").unwrap().demands(&Pointer::parse("/Order/a").unwrap()));
    }

    #[test]
    fn a_value_that_cannot_be_compared_is_told_by_its_type() {
        let unmet = |comparison: &str, document: &str| {
            let comparison = Comparison::parse(comparison).unwrap();
            let document = Json::parse(document.as_bytes(), 1_000).unwrap();
            let Some(Root::Order(names)) = Root::of(&comparison.pointer) else { panic!("{comparison}") };
            let unmet = comparison.unmet(Pointer::walk(names, document.raw()));
            unmet.unwrap().to_string().split_once(", and it is ").map(|(_, found)| found.to_owned())
        };
        for (document, found) in [
            ("{\"a\":\"20\"}", Some("a text")),
            ("{\"a\":\"\\ud800\"}", Some("a text")),
            ("{}", Some("missing")),
            ("{\"a\":[20]}", Some("an array")),
            ("{\"a\":{}}", Some("an object")),
            ("{\"a\":true}", Some("true or false")),
            ("{\"a\":null}", Some("null")),
            ("{\"a\":9}", None),
        ] {
            assert_eq!(unmet("/Order/a > 10", document).as_deref(), found, "{document}");
        }
        assert_eq!(unmet("/Order/a == \"x\"", "{\"a\":7}").as_deref(), Some("a number"));
        assert_eq!(unmet("/Order/a == true", "{\"a\":false}"), None);
        assert_eq!(unmet("/Order/a == true", "{\"a\":null}").as_deref(), Some("null"));
        assert_eq!(unmet("/Order/a == null", "{\"a\":true}").as_deref(), Some("true or false"));
        assert_eq!(unmet("/Order/a != null", "{\"a\":null}"), None);
        assert_eq!([unmet("/Order/a exists", "{}"), unmet("/Order/a missing", "{\"a\":1}")], [None, None]);
    }

    #[test]
    fn booleans_and_null_are_compared_for_equality_and_null_exists() {
        assert!(holds("/Order/a == true", "{\"a\":true}") && !holds("/Order/a == true", "{\"a\":false}"));
        assert!(holds("/Order/a != null", "{\"a\":false}") && holds("/Order/a == null", "{\"a\":null}"));
        assert!(holds("/Order/a exists", "{\"a\":null}") && !holds("/Order/a missing", "{\"a\":null}"));
        assert!(holds("/Order/a missing", "{\"b\":1}") && holds("/Order/a/1 exists", "{\"a\":[1,{}]}"));
    }

    #[test]
    fn a_name_may_contain_spaces_and_a_text_operators() {
        assert!(holds("/Order/First Name == \"a == b\"", "{\"First Name\":\"a == b\"}"));
        assert!(holds("  /Order/a b exists ", "{\"a b\":1}"));
        assert!(holds("/Order/a~1b <= \"x exists\"", "{\"a/b\":\"x\"}"));
    }

    #[test]
    fn a_comparison_that_is_none_is_refused_with_advice() {
        for (text, words) in [
            ("", "must have 1 to 256"),
            (&*format!("/Order/{} exists", "a".repeat(WHEN_CHARS_MAX)), "must have 1 to 256"),
            ("/Order/Total>1000", "with spaces between"),
            ("/Order/Total", "with spaces between"),
            ("/Order/Total is 3", "with spaces between"),
            ("Order/Total == 3", "must be a JSON pointer"),
            ("/Order/a~ == 3", "must have ~0"),
            ("not not /Order/Total == 3", "must be a JSON pointer"),
            ("not", "with spaces between"),
            ("/OrderID == \"x\"", "must begin with /Order"),
            ("/Total == 1", "must begin with /Order"),
            ("/Outputs exists", "must begin with /Order"),
            ("/Order/Country == DE", "compares with DE"),
            ("/Order/Country == [1]", "compares with [1]"),
            ("/Order/Country == 01", "compares with 01"),
            ("/Order/Country == \"\\ud800\"", "compares with"),
            ("/Order/Total > 1e9999999999", "exponent"),
            ("/Order/a < true", "== and != only"),
            ("/Order/a >= null", "== and != only"),
        ] {
            let problem = Comparison::parse(text).unwrap_err().to_string();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
