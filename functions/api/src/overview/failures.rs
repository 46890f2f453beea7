//! Orders that wait for an operator, grouped by what is wrong with them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use domain::id::OrderId;
use domain::task::{StepError, StepState, Task};
use domain::time::Timestamp;
use serde::Serialize;

use super::Taken;

/// Orders of a group that are named.
const NAMED: usize = 5;

/// Orders in `Error` for the same reason at the same step.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(super) struct Failure<'a> {
    /// That of the reason.
    code: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    count: usize,
    /// Whether there may be more of them.
    at_least: bool,
    /// Since when the one waits that has waited longest.
    oldest_at: Timestamp,
    /// Since when the one waits that came last.
    newest_at: Timestamp,
    /// What that step of the last one said, where it said something.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a StepError>,
    /// The last ones, at most [`NAMED`].
    #[serde(rename = "OrderIDs")]
    order_ids: Vec<OrderId>,
}

/// The groups of these orders, the largest first.
pub(super) fn grouped(failed: &Taken) -> Vec<Failure<'_>> {
    let mut groups: BTreeMap<(&str, Option<&str>), Vec<&Task>> = BTreeMap::new();
    for task in &failed.tasks {
        let code = task.reason.as_ref().map_or("", |reason| &*reason.code);
        groups.entry((code, step_of(task))).or_default().push(task);
    }
    let mut failures: Vec<_> =
        groups.into_iter().filter_map(|((code, step), tasks)| Failure::of(code, step, tasks, failed.more)).collect();
    failures.sort_by_key(|failure| Reverse(failure.count));
    failures
}

impl<'a> Failure<'a> {
    fn of(code: &'a str, step: Option<&'a str>, mut tasks: Vec<&'a Task>, at_least: bool) -> Option<Self> {
        tasks.sort_by_key(|task| Reverse(since(task)));
        let (newest, oldest) = (*tasks.first()?, *tasks.last()?);
        Some(Self {
            code,
            step,
            count: tasks.len(),
            at_least,
            oldest_at: since(oldest),
            newest_at: since(newest),
            last_error: step.and_then(|name| newest.step(name)?.1.last_error.as_ref()),
            order_ids: tasks.iter().take(NAMED).map(|task| task.order_id).collect(),
        })
    }
}

/// The step that an order waits with: the one that is given up, or else the one that its reason names.
fn step_of(task: &Task) -> Option<&str> {
    let given_up = task.steps.iter().find(|step| step.process_state == StepState::Error).map(|step| &*step.name);
    given_up.or_else(|| task.reason.as_ref()?.step.as_deref())
}

/// Since when an order waits.
fn since(task: &Task) -> Timestamp {
    task.watch_at.or_else(|| task.updated_at()).unwrap_or_default()
}
