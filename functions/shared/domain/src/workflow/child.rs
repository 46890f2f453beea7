//! Steps that make another order and wait for its end (rule 49).

use std::sync::Arc;

use crate::located::{Reader, Table};

/// What stands for the agent of such a step.
pub const ORDERS: &str = "orders";
/// How long the end of the other order is awaited, unless the file says so, in milliseconds.
pub(super) const ENDED_WITHIN_MS: u64 = 90 * 24 * 60 * 60 * 1_000;

/// The member by which a posted order names its workflow.
const MEMBER: &str = "Workflow";

/// The keys of a step that calls a service.
const OF_CALLS: [&str; 9] =
    ["agent", "complete_within", "horizon", "method", "path", "headers", "encode", "keep", "poll"];

/// The workflow of the other order. `None`: the step makes none.
pub(super) fn read(reader: &mut Reader<'_>, step: &Table<'_>) -> Option<Arc<str>> {
    if step.exact_text("kind") != Some("order") {
        if let Some(entry) = step.get("workflow") {
            reader.blame_value(&entry, "belongs to a step with kind = \"order\"");
        }
        return None;
    }
    for entry in OF_CALLS.into_iter().filter_map(|key| step.get(key)) {
        reader.blame_value(&entry, "has no use in a step that makes an order: no service is called. Leave it out");
    }
    if let Some(entry) = step.get("undo").filter(|entry| entry.exact_text() != Some("none")) {
        reader.blame_value(&entry, "must be \"none\", or left out: the undo of an order is its cancel");
    }
    for (key, advice) in [
        ("workflow", "name that of the other order, such as workflow = \"shop\""),
        ("send", "say what the other order gets, such as send = { Item = \"/Order/Item\" }"),
    ] {
        if step.get(key).is_none() {
            reader.blame(step.at, format!("{}: {key} is missing: {advice}", step.path));
        }
    }
    if let Some(entry) = step.get("send").filter(|entry| entry.json().is_some_and(|sent| sent.member(MEMBER).is_some()))
    {
        reader.blame_value(&entry, "must not have Workflow: the step names it, as workflow = \"shop\"");
    }
    Some(step.exact_text("workflow").unwrap_or_default().into())
}
