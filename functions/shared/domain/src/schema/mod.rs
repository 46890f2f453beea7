//! The schema of a workflow's orders: JSON Schema 2020-12, as far as its time is bounded.
//!
//! It is this crate's own, since a document keeps every digit of its numbers: a library that compares floats takes
//! 9007199254740993 for another number, and 12.50 for no multiple of 0.01. No validation takes more than
//! [`SCHEMA_STEPS_MAX`](crate::limits::SCHEMA_STEPS_MAX) steps. A keyword that is not known here is refused and never ignored.
//!
//! What must never be here: a schema that is fetched from anywhere.

mod compile;
mod pattern;
mod validate;
mod value;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde::de::IgnoredAny;

use crate::json::Json;
use crate::limits::SCHEMA_BYTES_MAX;
use crate::located::{Faults, Reader};
use crate::tokens::Tokens;
use compile::Compiled;
use validate::Validation;

/// A schema. Cloning it copies a pointer.
#[derive(Clone)]
pub struct Schema(Arc<Inner>);

struct Inner {
    /// Without blanks.
    text: Box<str>,
    /// Only those who accept orders need it. `None`: a later version of this program wrote it.
    compiled: OnceLock<Option<Compiled>>,
}

/// What of a document does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Misfit {
    /// A JSON pointer; empty for the document as a whole.
    pub pointer: String,
    /// What the schema says of the value. It does not repeat the value, which may be a secret.
    pub reason: String,
}

impl Schema {
    /// Reads a schema from its file.
    ///
    /// # Errors
    /// All its faults, each with its line and column.
    pub fn parse(text: &str) -> Result<Self, Faults> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = Reader::new(text);
        let json = match Json::received(text.as_bytes(), usize::MAX) {
            Ok(json) => json,
            Err(fault) => {
                let at = serde_json::from_str::<IgnoredAny>(text).err().map_or(0, |error| place_of(&error, text));
                let fault = fault.to_string();
                reader.blame(at, format!("is {}", fault.split(" at line ").next().unwrap_or_default()));
                return Err(reader.finish(()).err().unwrap_or(Faults(Vec::new())));
            }
        };
        let small = minified(json.text());
        if small.len() > SCHEMA_BYTES_MAX {
            reader.blame(0, format!("has {} bytes without its blanks, the limit is {SCHEMA_BYTES_MAX}", small.len()));
        }
        let compiled = Compiled::of(text);
        for (at, problem) in compiled.as_ref().err().into_iter().flatten() {
            reader.blame(*at, problem);
        }
        reader.finish(Self(Arc::new(Inner { text: small.into(), compiled: OnceLock::from(compiled.ok()) })))
    }

    /// A schema that was checked before, such as a stored one.
    #[must_use]
    pub fn stored(text: &str) -> Self {
        Self(Arc::new(Inner { text: text.into(), compiled: OnceLock::new() }))
    }

    /// Its text without blanks. It fits between the single quotes of a text of TOML.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The first few parts of a document that do not fit.
    ///
    /// # Errors
    /// At least one [`Misfit`], in the order of the schema.
    pub fn check(&self, document: &Json) -> Result<(), Vec<Misfit>> {
        let of_all = |reason: &str| vec![Misfit { pointer: String::new(), reason: reason.to_owned() }];
        // A text of another program may be no JSON, and nested without end.
        let compile =
            || Json::received(self.text().as_bytes(), usize::MAX).ok().and_then(|_| Compiled::of(self.text()).ok());
        match self.0.compiled.get_or_init(compile) {
            Some(compiled) => Validation::of(compiled, document),
            None => Err(of_all("cannot be checked: its schema is of another version of this program")),
        }
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Schema {}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, reason } = self;
        write!(f, "{} {reason}", if pointer.is_empty() { "the document" } else { pointer })
    }
}

/// The text without the blanks between its tokens. What TOML does not take in single quotes is escaped.
fn minified(text: &str) -> String {
    let mut small = String::with_capacity(text.len());
    for token in Tokens::of(text) {
        small.push_str(token.text());
        if token.is_key() {
            small.push(':');
        }
    }
    small.replace('\'', r"\u0027").replace('\u{7f}', r"\u007f")
}

/// Where a text goes wrong, in bytes.
fn place_of(error: &serde_json::Error, text: &str) -> usize {
    let before: usize = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary(before + error.column().saturating_sub(1))
}

#[cfg(test)]
mod tests;
