//! Whether a step applies to an order (rule 33): comparisons of values in the document, or in outputs of steps before.

use std::fmt;

use serde_json::value::RawValue;

use super::mapping::Root;
use crate::json::Json;
use crate::limits::WHEN_CHARS_MAX;
use crate::outputs::Outputs;
use crate::search::Pointer;
use crate::template::{BadExpression, Expression, NoValue};

/// What must hold of the document, or of outputs. The document alone decides when the order is submitted, and outputs once
/// the steps before are over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    expression: Expression,
    reads_outputs: bool,
}

/// A comparison that does not hold. Its words never repeat the value.
#[derive(Debug)]
pub(crate) struct Unmet<'a> {
    comparison: &'a Comparison,
    /// What was found in the place of a value that can be compared.
    found: Option<&'static str>,
}

/// Why a comparison is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadComparison {
    #[error("must have 1 to {WHEN_CHARS_MAX} characters")]
    Length,
    #[error("{0}")]
    Expression(BadExpression),
    #[error("reads {0}, which must begin with /Order or /Outputs/{{step}}, or with /Item in a step with for_each")]
    Root(String),
    #[error("reads the order and an output; the order is looked at before: make two comparisons of it, in an array")]
    Mixed,
}

impl Comparison {
    pub(super) fn parse(text: &str) -> Result<Self, BadComparison> {
        if !(1..=WHEN_CHARS_MAX).contains(&text.chars().count()) {
            return Err(BadComparison::Length);
        }
        let expression = Expression::condition(text.trim()).map_err(BadComparison::Expression)?;
        let mut of_outputs = Vec::new();
        for place in expression.places() {
            of_outputs.push(match Root::of(&place.pointer) {
                Some(Root::Order(_) | Root::Item(_)) => false,
                Some(Root::Output(..)) => true,
                Some(Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt) | None => {
                    return Err(BadComparison::Root(place.pointer.text()));
                }
            });
        }
        let reads_outputs = of_outputs.contains(&true);
        match reads_outputs && of_outputs.contains(&false) {
            true => Err(BadComparison::Mixed),
            false => Ok(Self { expression, reads_outputs }),
        }
    }

    /// As it is written in the file.
    #[must_use]
    pub fn text(&self) -> &str {
        self.expression.text()
    }

    /// The positions that it reads.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = &Pointer> {
        self.expression.places().into_iter().map(|place| &place.pointer)
    }

    /// Whether the document alone decides.
    pub(super) const fn is_of_document(&self) -> bool {
        !self.reads_outputs
    }

    /// The steps whose outputs it reads, each with the position in it.
    pub(super) fn outputs(&self) -> impl Iterator<Item = (&str, &[String])> {
        self.pointers().filter_map(|pointer| match Root::of(pointer) {
            Some(Root::Output(step, names)) => Some((step, names)),
            Some(Root::Order(_) | Root::Item(_) | Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt) | None => {
                None
            }
        })
    }

    /// Whether it demands a value at this position, or within it.
    pub(super) fn demands(&self, pointer: &Pointer) -> bool {
        self.expression.demands(pointer)
    }

    /// What of it does not hold for a document, and an element of it. `None` also if it compares outputs.
    pub(super) fn unmet_by_document(&self, document: &Json, item: Option<&RawValue>) -> Option<Unmet<'_>> {
        let find = |pointer: &Pointer| match Root::of(pointer)? {
            Root::Order(names) => Pointer::walk(names, document.raw()),
            Root::Item(names) => Pointer::walk(names, item?),
            Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Output(..) => None,
        };
        if self.reads_outputs { None } else { self.unmet(&find) }
    }

    /// What of it does not hold for the outputs of the steps before. `None` also if it compares the document.
    pub(crate) fn unmet_by_outputs(&self, outputs: &Outputs) -> Option<Unmet<'_>> {
        let find = |pointer: &Pointer| match Root::of(pointer)? {
            Root::Output(step, names) => outputs.find(step, names),
            Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Order(_) | Root::Item(_) => None,
        };
        if self.reads_outputs { self.unmet(&find) } else { None }
    }

    /// A comparison that has no value is not unmet: the step is not skipped for it, and its request says so.
    fn unmet<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Option<Unmet<'_>> {
        let is_unmet = self.expression.holds(find) == Ok(false);
        is_unmet.then(|| Unmet { comparison: self, found: self.expression.found(find) })
    }

    /// Why it has no value, though it is no comparison of two values alone.
    pub(crate) fn fault<'a>(&self, find: &dyn Fn(&Pointer) -> Option<&'a RawValue>) -> Option<NoValue> {
        self.expression.holds(find).err()
    }
}

impl fmt::Display for Unmet<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.comparison)?;
        self.found.map_or(Ok(()), |found| write!(f, ", and it is {found}"))
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATORS: [&str; 6] = ["==", "!=", "<=", ">=", "<", ">"];

    fn parsed(comparison: &str) -> Comparison {
        Comparison::parse(comparison).unwrap_or_else(|problem| panic!("{comparison}: {problem}"))
    }

    fn holds(comparison: &str, document: &str) -> bool {
        let (comparison, document) = (parsed(comparison), Json::parse(document.as_bytes(), 1_000).unwrap());
        let unmet = comparison.unmet_by_document(&document, None);
        let find = |pointer: &Pointer| Pointer::walk(&pointer.names()[1..], document.raw());
        assert_eq!(comparison.fault(&find), None);
        unmet.is_none()
    }

    #[test]
    fn each_operator_orders_numbers_and_texts() {
        let of = |value: &str, literal: &str| {
            OPERATORS.map(|word| holds(&format!("/Order/a {word} {literal}"), &format!("{{\"a\":{value}}}")))
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
            for word in OPERATORS {
                let expected = word == "!=";
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
        assert_eq!(parsed(" not /Order/a missing ").text(), "not /Order/a missing");
    }

    #[test]
    fn a_value_that_cannot_be_compared_is_told_by_its_type() {
        let unmet = |comparison: &str, document: &str| {
            let (comparison, document) = (parsed(comparison), Json::parse(document.as_bytes(), 1_000).unwrap());
            let unmet = comparison.unmet_by_document(&document, None);
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
        assert!(holds("at(\"/Order/First Name\") == \"a == b\"", "{\"First Name\":\"a == b\"}"));
        assert!(holds("  at('/Order/a \"b') exists ", "{\"a \\\"b\":1}"));
        assert!(holds("/Order/a~1b <= \"x exists\"", "{\"a/b\":\"x\"}"));
    }

    #[test]
    fn rule_33_comparisons_are_put_together_and_computed() {
        for (comparison, document, expected) in [
            ("/Order/a == 1 or /Order/b == 2", "{\"b\":2}", true),
            ("/Order/a in [\"DE\", \"AT\"] and not /Order/b exists", "{\"a\":\"AT\"}", true),
            ("/Order/a > /Order/b", "{\"a\":1e400,\"b\":1}", true),
            ("(/Order/a ?? 0) * 2 >= 10", "{}", false),
            ("count(/Order/l) > 1", "{\"l\":[1,2]}", true),
            ("if(/Order/a exists, /Order/a > 1, /Order/b > 1)", "{\"b\":2}", true),
        ] {
            assert_eq!(holds(comparison, document), expected, "{comparison}");
        }
        let far = parsed("/Order/a * 2 > 10");
        let document = Json::parse(b"{\"a\":\"x\"}", 99).unwrap();
        assert!(far.unmet_by_document(&document, None).is_none(), "it skips nothing");
        let find = |pointer: &Pointer| Pointer::walk(&pointer.names()[1..], document.raw());
        assert_eq!(far.fault(&find).unwrap().to_string(), "a number is needed, and a text is there");
    }

    #[test]
    fn what_a_comparison_demands_is_there_where_it_holds() {
        let demands = |comparison: &str| parsed(comparison).demands(&Pointer::parse("/Order/a").unwrap());
        for comparison in [
            "/Order/a exists",
            "not /Order/a missing",
            "/Order/a/b == 1",
            "1 < /Order/a",
            "/Order/a in [1]",
            "/Order/b == 1 and /Order/a == 1",
            "/Order/a == 1 or /Order/a == 2",
        ] {
            assert!(demands(comparison), "{comparison}");
        }
        for comparison in [
            "/Order/a missing",
            "not /Order/a exists",
            "not /Order/a == 1",
            "/Order/a != 1",
            "/Order/b == 1 or /Order/a == 1",
            "not (/Order/a == 1 and /Order/a == 2)",
            "/Order/ab exists",
        ] {
            assert!(!demands(comparison), "{comparison}");
        }
    }

    #[test]
    fn a_comparison_that_is_none_is_refused_with_advice() {
        for (text, words) in [
            ("", "must have 1 to 256"),
            (&*format!("/Order/{} exists", "a".repeat(WHEN_CHARS_MAX)), "must have 1 to 256"),
            ("/Order/Total>1000", "blanks around an operator"),
            ("/Order/Total", "with blanks around its operator"),
            ("/Order/Total is 3", "needs `==`, `missing` or `exists` in place of is, before \"is 3\""),
            ("Order/Total == 3", "Order is no function"),
            ("/Order/a~ == 3", "must have ~0"),
            ("not", "needs a pointer, a number"),
            ("/OrderID == \"x\"", "reads /OrderID, which must begin with /Order or"),
            ("/Total == 1", "reads /Total, which must begin with /Order"),
            ("/Outputs exists", "must begin with /Order"),
            ("/Order/a == /Outputs/b/c", "make two comparisons of it"),
            ("/Order/Country == DE", "DE is no function"),
            ("/Order/Country == [1]", "needs a pointer, a number"),
            ("/Order/Country == 01", "needs a number"),
            ("/Order/Total > 1e9999999999", "needs a number of at most 38 digits"),
            ("/Order/a < true", "which == and != do alone"),
            ("/Order/a >= null", "which == and != do alone"),
        ] {
            let problem = Comparison::parse(text).unwrap_err().to_string();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
