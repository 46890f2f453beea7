//! What a template says of its values before anything is filled in.

use super::{Part, Template, Unfilled, list};
use crate::json::Json;
use crate::limits::DOCUMENT_BYTES_MAX;
use crate::search::Pointer;

/// What all values of a template have in common.
pub(crate) struct Known {
    /// With null for each value that is filled in.
    pub(crate) document: Json,
    /// Whether nothing is filled in.
    pub(crate) is_whole: bool,
}

impl Template {
    /// What is known. `None`: nothing, since the whole value is filled in.
    pub(crate) fn known(&self) -> Option<Known> {
        let mut text = String::new();
        let is_whole = self.places().is_empty() && self.expressions().is_empty();
        self.root.write_known(&mut text).ok()?;
        let document = Json::parse(text.as_bytes(), DOCUMENT_BYTES_MAX).ok()?;
        matches!(self.root, Part::Object(_)).then_some(Known { document, is_whole })
    }

    /// Whether its value may be an object.
    pub(crate) fn may_be_object(&self) -> bool {
        match &self.root {
            Part::Object(_) => true,
            Part::Place(place) => is_of_any_type(&place.pointer),
            Part::Computed(expression) => expression.may_be_object(),
            Part::Literal(_) | Part::Array(_) => false,
        }
    }

    /// Whether its value may have something at this place. What is filled in may have any shape.
    pub(crate) fn may_fill(&self, names: &[String]) -> bool {
        let mut part = &self.root;
        for name in names {
            let inner = match part {
                Part::Place(_) | Part::Computed(_) => return true,
                Part::Literal(_) => None,
                Part::Array(elements) => name.parse().ok().and_then(|index: usize| elements.get(index)),
                Part::Object(members) => members.iter().find(|(member, _)| member == name).map(|(_, part)| part),
            };
            let Some(inner) = inner else { return false };
            part = inner;
        }
        true
    }
}

/// The others beside the document are texts.
pub(super) fn is_of_any_type(pointer: &Pointer) -> bool {
    !matches!(pointer.names(), [root] if ["OrderID", "IdempotencyKey", "SubmittedAt"].contains(&&**root))
}

impl Part {
    fn write_known(&self, into: &mut String) -> Result<bool, Unfilled> {
        match self {
            Self::Place(_) | Self::Computed(_) => into.push_str("null"),
            Self::Literal(json) => into.push_str(json),
            Self::Array(elements) => list(elements, ['[', ']'], into, |part, into| part.write_known(into))?,
            Self::Object(members) => list(members, ['{', '}'], into, |(name, part), into| {
                into.push_str(Json::of(name).text());
                into.push(':');
                part.write_known(into)
            })?,
        }
        Ok(true)
    }
}
