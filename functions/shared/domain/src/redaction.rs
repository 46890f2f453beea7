//! Values of an order that are never shown: those of members such as `CardNumber`.
//!
//! Documents and outputs are stored and passed on as they are; only their display is redacted.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::json::Json;
use crate::tokens::{Token, Tokens, literal_text};

/// The names of members that are redacted by default.
pub const REDACTED_BY_DEFAULT: [&str; 4] = ["CardNumber", "Cvc", "Iban", "Password"];
/// The JSON that replaces a hidden value.
const IN_PLACE: &str = "\"[redacted]\"";

/// Names of members whose values are not shown, of any type and at any depth. Case makes no difference.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Redaction {
    /// In lower case.
    names: Arc<BTreeSet<String>>,
}

impl Redaction {
    /// Hides the values of members of these names.
    #[must_use]
    pub fn of<Name: AsRef<str>>(names: impl IntoIterator<Item = Name>) -> Self {
        Self { names: Arc::new(names.into_iter().map(|name| name.as_ref().to_lowercase()).collect()) }
    }

    /// Whether the value of a member of this name is hidden.
    #[must_use]
    pub fn hides(&self, name: &str) -> bool {
        // Without an allocation for nearly every name: a document may have very many.
        if name.is_ascii() {
            return self.names.iter().any(|hidden| hidden.eq_ignore_ascii_case(name));
        }
        let first = name.chars().next().and_then(|first| first.to_lowercase().next());
        let may_be = self.names.iter().any(|hidden| hidden.chars().next() == first);
        may_be && self.names.contains(&name.to_lowercase())
    }

    /// The value for display: itself if nothing in it is hidden; otherwise without white space, and with the rest as
    /// written.
    #[must_use]
    pub fn shown<'a>(&self, value: &'a Json) -> Cow<'a, Json> {
        if self.names.is_empty() || !self.hides_any(value.text()) {
            return Cow::Borrowed(value);
        }
        let mut into = String::with_capacity(value.text().len());
        self.write(value.text(), &mut into);
        // Parts of valid JSON make valid JSON. If that ever fails, nothing of the value is shown.
        let hidden = || RawValue::from_string(IN_PLACE.to_owned()).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Cow::Owned(Json::of_raw(RawValue::from_string(into).unwrap_or_else(|_| hidden())))
    }

    fn hides_any(&self, text: &str) -> bool {
        Tokens::of(text).any(|token| matches!(token, Token::Key(key) if self.hides_key(key)))
    }

    fn hides_key(&self, literal: &str) -> bool {
        literal_text(literal).is_some_and(|name| self.hides(&name))
    }

    fn write(&self, text: &str, into: &mut String) {
        let mut tokens = Tokens::of(text);
        while let Some(token) = tokens.next() {
            match token {
                Token::Key(key) => {
                    into.push_str(key);
                    into.push(':');
                    if self.hides_key(key) {
                        tokens.value();
                        into.push_str(IN_PLACE);
                    }
                }
                Token::Comma => into.push(','),
                Token::Open(text) | Token::Close(text) | Token::Scalar(text) => into.push_str(text),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let value = Json::parse(text.as_bytes(), 10_000).unwrap();
        Redaction::of(REDACTED_BY_DEFAULT).shown(&value).text().to_owned()
    }

    #[test]
    fn a_marked_member_is_hidden_at_any_depth_whatever_its_value_and_however_its_name_is_written() {
        assert_eq!(shown(r#"{"CardNumber": "4111"}"#), r#"{"CardNumber":"[redacted]"}"#);
        assert_eq!(shown(r#"{"a":[{"cardnumber":4111},7]}"#), r#"{"a":[{"cardnumber":"[redacted]"},7]}"#);
        assert_eq!(shown(r#"{"PASSWORD":{"a":[1]},"b":1}"#), r#"{"PASSWORD":"[redacted]","b":1}"#);
        assert_eq!(shown(r#"{"Card\u004eumber":null}"#), r#"{"Card\u004eumber":"[redacted]"}"#);
        assert_eq!(shown(r#"{"Iban":"a","Iban":"b"}"#), r#"{"Iban":"[redacted]","Iban":"[redacted]"}"#);
    }

    #[test]
    fn all_else_stays_digit_for_digit() {
        let untouched = "{ \"Total\": 10000000000000000000000.10,\n \"Card\": \"CardNumber\", \"s\": \"\\ud800\" }";
        assert_eq!(shown(untouched), untouched);
        let text = r#"{ "e": 1E400, "\ud800": -0, "Cvc": 1, "s": "a,b : c" }"#;
        assert_eq!(shown(text), r#"{"e":1E400,"\ud800":-0,"Cvc":"[redacted]","s":"a,b : c"}"#);
        assert_eq!(shown("[1, 2]"), "[1, 2]");
        assert_eq!(shown("\"Cvc\""), "\"Cvc\"");
    }

    #[test]
    fn a_redaction_of_no_names_hides_nothing() {
        let value = Json::document(br#"{"CardNumber":1}"#).unwrap();
        assert_eq!(*Redaction::default().shown(&value), value);
        assert!(!Redaction::default().hides("CardNumber"));
        assert!(Redaction::of(["cardnumber"]).hides("CardNumber"));
    }

    #[test]
    fn case_makes_no_difference_in_any_script() {
        let hidden = Redaction::of(["Größe", "ΚΩΔΙΚΟΣ", "Cvc"]);
        for name in ["größe", "GRÖßE", "κωδικος", "κωδικοΣ", "ΚΩΔΙΚΟΣ", "cVC"] {
            assert!(hidden.hides(name), "{name}");
        }
        for name in ["grösse", "κωδικοσ", "ĉvc", "é", ""] {
            assert!(!hidden.hides(name), "{name}");
        }
    }
}
