//! Reads the members of a body that the API defines, like an operator's command. Names each member that is unknown,
//! missing or wrong.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::json::{Json, JsonError};
use domain::time::Timestamp;
use serde_json::value::RawValue;

use crate::body;
use crate::problem::Problem;

/// The members of an object, none of them unknown.
pub(crate) struct Members<'a> {
    /// The prefix of the names in problems, like `Selector.`.
    within: &'static str,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Members<'a> {
    /// The members of a body.
    ///
    /// # Errors
    /// [`Problem::Invalid`] for a member that is not in `known`.
    pub(crate) fn of(document: &'a Json, known: &[&str]) -> Result<Self, Problem> {
        Self::read("", document.text(), known)
    }

    fn read(within: &'static str, text: &'a str, known: &[&str]) -> Result<Self, Problem> {
        // The only fault left in an object is a name that is no text, like a lone surrogate.
        let members: BTreeMap<String, &RawValue> =
            serde_json::from_str(text).map_err(|error| Problem::NotJson(JsonError::Malformed(error.to_string())))?;
        match members.keys().find(|name| !known.contains(&name.as_str())) {
            Some(unknown) => {
                let fault = format!("is unknown; the members are {}", known.join(", "));
                Err(Problem::member(format!("{within}{unknown}"), fault))
            }
            None => Ok(Self { within, members }),
        }
    }

    /// A required text.
    ///
    /// # Errors
    /// [`Problem::Invalid`] if it is missing, or as for [`body::text`].
    pub(crate) fn text(&self, name: &str) -> Result<Arc<str>, Problem> {
        self.optional_text(name)?.ok_or_else(|| self.missing(name))
    }

    /// An optional text.
    ///
    /// # Errors
    /// As for [`body::text`].
    pub(crate) fn optional_text(&self, name: &str) -> Result<Option<Arc<str>>, Problem> {
        self.members.get(name).map(|value| body::text(self.full(name), value.get())).transpose()
    }

    /// An optional whole number from `min` to `max`.
    ///
    /// # Errors
    /// [`Problem::Invalid`] for any other value.
    pub(crate) fn whole_number(&self, name: &str, min: u64, max: u64) -> Result<Option<u64>, Problem> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        let mut deserializer = serde_json::Deserializer::from_str(value.get());
        let number = domain::json::whole_number(&mut deserializer).ok().filter(|number| (min..=max).contains(number));
        let fault = || format!("must be a whole number from {min} to {max}");
        number.map(Some).ok_or_else(|| Problem::member(self.full(name), fault()))
    }

    /// An optional `true` or `false`.
    ///
    /// # Errors
    /// [`Problem::Invalid`] for any other value.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        let fault = "must be true or false";
        serde_json::from_str(value.get()).map(Some).map_err(|_| Problem::member(self.full(name), fault))
    }

    /// An optional time.
    ///
    /// # Errors
    /// [`Problem::Invalid`] if it is not an RFC 3339 time.
    pub(crate) fn time(&self, name: &str) -> Result<Option<Timestamp>, Problem> {
        let Some(value) = self.members.get(name) else { return Ok(None) };
        let fault = "must be a time such as \"2026-11-20T17:26:43.007Z\"";
        serde_json::from_str(value.get()).map(Some).map_err(|_| Problem::member(self.full(name), fault))
    }

    /// A required object. `within` is `name` and a full stop.
    ///
    /// # Errors
    /// [`Problem::Invalid`] if it is missing or not an object, or has a member that is not in `known`.
    pub(crate) fn object(&self, name: &str, within: &'static str, known: &[&str]) -> Result<Self, Problem> {
        let value = self.members.get(name).ok_or_else(|| self.missing(name))?;
        match value.get().starts_with('{') {
            true => Self::read(within, value.get(), known),
            false => Err(Problem::member(self.full(name), "must be an object")),
        }
    }

    /// An optional value of any kind.
    pub(crate) fn value(&self, name: &str) -> Option<&'a RawValue> {
        self.members.get(name).copied()
    }

    fn missing(&self, name: &str) -> Problem {
        Problem::member(self.full(name), "is missing")
    }

    fn full(&self, name: &str) -> String {
        format!("{}{name}", self.within)
    }
}
