//! Steps that people decide on (rule 40).

use std::sync::Arc;

use super::mapping::Root;
use crate::limits::TEXT_CHARS_MAX;
use crate::located::{Reader, Table};
use crate::search::Pointer;

/// What stands for the agent of such a step.
pub const PEOPLE: &str = "people";
/// How long a decision is awaited, unless the file says so, in milliseconds.
pub(super) const DECIDED_WITHIN_MS: u64 = 7 * 24 * 60 * 60 * 1_000;

/// What a step is.
const KINDS: [(&str, bool); 2] = [("call", false), ("approval", true)];
/// The keys of a step that calls a service.
const OF_CALLS: [&str; 11] = [
    "agent",
    "complete_within",
    "horizon",
    "optional",
    "pivot",
    "max_failures",
    "send",
    "path",
    "encode",
    "keep",
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
    pub(super) fn take(reader: &mut Reader<'_>, table: &mut Table<'_>) -> Option<Self> {
        let kind = table.take("kind");
        let is_approval = reader.word(kind, &KINDS).unwrap_or(false);
        let (role, not_by) = (table.take("role"), table.take("not_by"));
        if !is_approval {
            for entry in [role, not_by].into_iter().flatten() {
                reader.blame_value(&entry, "belongs to a step with kind = \"approval\"");
            }
            return None;
        }
        for key in OF_CALLS {
            if let Some(entry) = table.take(key) {
                let advice = "has no use in an approval: no service is called. Leave it out";
                reader.blame(entry.at, format!("{} {advice}", entry.path));
            }
        }
        let role = reader.text(role).and_then(|(role, entry)| {
            if role.trim().is_empty() || role.chars().nth(TEXT_CHARS_MAX).is_some() {
                reader.blame_value(&entry, format_args!("must be 1 to {TEXT_CHARS_MAX} characters long"));
                return None;
            }
            Some(role.into())
        });
        let not_by = reader.exact_text(not_by).and_then(|(text, entry)| {
            let place = Pointer::parse(&text).ok().and_then(|pointer| match Root::of(&pointer) {
                Some(Root::Order(names)) if !names.is_empty() => Some(Pointer::of_names(names)),
                _ => None,
            });
            if place.is_none() {
                reader.blame_value(&entry, "must be the place of a name in the order, such as /Order/RequestedBy");
            }
            place
        });
        Some(Self { role, not_by })
    }
}
