//! Steps that people decide on (rule 40).

use std::sync::Arc;

use super::mapping::place_in_order;
use crate::located::{Reader, Table};
use crate::search::Pointer;

/// What stands for the agent of such a step.
pub const PEOPLE: &str = "people";
/// How long a decision is awaited, unless the file says so, in milliseconds.
pub(super) const DECIDED_WITHIN_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// The keys of a step that calls a service.
const OF_CALLS: [&str; 14] = [
    "agent",
    "complete_within",
    "horizon",
    "optional",
    "pivot",
    "max_failures",
    "method",
    "send",
    "path",
    "headers",
    "encode",
    "keep",
    "poll",
    "undo",
];

/// Who decides on a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approval {
    /// Their role, for people: nothing checks it.
    pub role: Option<Arc<str>>,
    /// The place in the document of the name of a person who may not decide: without `/Order`.
    pub not_by: Option<Pointer>,
}

impl Approval {
    /// Reads the kind of a step and what belongs to an approval. `None`: the step calls a service.
    pub(super) fn read(reader: &mut Reader<'_>, step: &Table<'_>) -> Option<Self> {
        if step.exact_text("kind") != Some("approval") {
            for entry in ["role", "not_by"].into_iter().filter_map(|key| step.get(key)) {
                reader.blame_value(&entry, "belongs to a step with kind = \"approval\"");
            }
            return None;
        }
        for entry in OF_CALLS.into_iter().filter_map(|key| step.get(key)) {
            reader.blame_value(&entry, "has no use in an approval: no service is called. Leave it out");
        }
        let not_by = step.exact_text("not_by").and_then(place_in_order);
        Some(Self { role: step.text("role").map(Arc::from), not_by })
    }
}
