//! A condition on the body of an answer.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::json::Json;
use crate::limits::CONDITION_PLACES_MAX;
use crate::search::plain_text;

use super::{BadExpression, Expression, NoValue};

/// What must hold of the body of an answer. Its pointers begin at the body's root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BodyCondition(Expression);

/// Why a condition is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadCondition {
    /// It is none.
    #[error("{0}")]
    Expression(BadExpression),
    /// Each position costs a walk through the body, which a service may make large.
    #[error("reads more than {CONDITION_PLACES_MAX} positions")]
    Places,
}

impl BodyCondition {
    /// Reads one such as `/status == "paid"`.
    ///
    /// # Errors
    /// [`BadCondition`], which says what is wrong.
    pub fn parse(text: &str) -> Result<Self, BadCondition> {
        let expression = Expression::condition(text.trim()).map_err(BadCondition::Expression)?;
        match expression.places().len() {
            ..=CONDITION_PLACES_MAX => Ok(Self(expression)),
            _ => Err(BadCondition::Places),
        }
    }

    /// As it is written.
    #[must_use]
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// A position at which a reader could find another value than the one that is taken: it is there twice, or has a member
    /// twice.
    #[must_use]
    pub fn ambiguous_in(&self, body: &Json) -> Option<String> {
        let is_ambiguous = |place: &&super::Place| {
            let has_twice = || place.pointer.value_in(body).is_some_and(|value| value.check_unique().is_err());
            place.pointer.times_in(body.raw()) > 1 || has_twice()
        };
        self.0.places().into_iter().find(is_ambiguous).map(|place| place.pointer.text())
    }

    /// Whether it holds for a text that may be JSON in parts alone. It does not where a value is missing.
    ///
    /// # Errors
    /// [`NoValue`] if it cannot be computed for any other reason, which may be a limit of ours: it says nothing then.
    pub fn holds_in(&self, body: &str) -> Result<bool, NoValue> {
        match self.0.holds(&|pointer| pointer.within(body)) {
            Err(NoValue::Nothing(_)) => Ok(false),
            holds => holds,
        }
    }

    /// The text, number or boolean at its first position.
    #[must_use]
    pub fn text_in(&self, body: &str) -> Option<String> {
        self.0.places().first().and_then(|place| place.pointer.within(body)).and_then(plain_text)
    }
}

impl Serialize for BodyCondition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for BodyCondition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Json::deserialize(deserializer)?;
        let text: String = serde_json::from_str(text.text()).map_err(de::Error::custom)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ANSWER_BYTES_MAX;

    fn condition(text: &str) -> BodyCondition {
        BodyCondition::parse(text).unwrap()
    }

    #[test]
    fn rule_17_a_condition_is_an_expression_of_the_body() {
        let body = r#"{"State":"declined","n":7,"l":[{"p":1},{"p":2}],"live":false,"cut":"\ud83d"#;
        for (text, holds) in [
            ("/State in [\"declined\", \"refused\"]", true),
            (" /n > 6 and not /live == true ", true),
            ("sum(/l, /Item/p) == 3", true),
            ("/State == \"refused\" or /nothing exists", false),
            ("not /nothing + 1 == 1", false),
            ("/cut != 1", true),
        ] {
            assert_eq!(condition(text).holds_in(body), Ok(holds), "{text}");
        }
        for text in ["/n / 0 == 1", "not /n / 0 == 1", "/n + /State == 1"] {
            assert!(condition(text).holds_in(body).is_err(), "{text}");
        }
        let texts =
            ["/n == 1", "1 < /State", "/nothing == 1 or /n == 1", "/l exists"].map(|it| condition(it).text_in(body));
        assert_eq!(texts, [Some("7".to_owned()), Some("declined".to_owned()), None, None]);
    }

    #[test]
    fn rule_17_a_position_with_two_readings_is_named() {
        let body = Json::of_any_depth(br#"{"a":1,"b":{"c":1,"c":2},"d":1,"d":2}"#, 99).unwrap();
        let ambiguous = |text: &str| condition(text).ambiguous_in(&body);
        assert_eq!(ambiguous("/a == 1 or /nothing exists"), None);
        for (text, place) in [("/a == 1 or /d == 2", "/d"), ("/b/c == 1", "/b/c"), ("/b exists", "/b")] {
            assert_eq!(ambiguous(text).as_deref(), Some(place));
        }
    }

    #[test]
    fn rule_15_a_hostile_body_is_not_computed_without_end() {
        let items = format!("[{}0]", "0,".repeat(ANSWER_BYTES_MAX / 2));
        let found = condition("sum(/l, sum(/l, 1)) > 0").holds_in(&format!("{{\"l\":{items}}}"));
        assert_eq!(found, Err(NoValue::Steps));
        let many = |places: usize| vec!["/a == 1"; places].join(" or ");
        assert!(BodyCondition::parse(&many(CONDITION_PLACES_MAX)).is_ok());
        assert_eq!(BodyCondition::parse(&many(CONDITION_PLACES_MAX + 1)), Err(BadCondition::Places));
        assert!(matches!(BodyCondition::parse("/a"), Err(BadCondition::Expression(BadExpression::NoCondition))));
    }
}
