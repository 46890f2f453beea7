//! Orders that wait for an operator, grouped by their error.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use domain::id::OrderId;
use domain::situation;
use domain::task::{StepError, Task};
use domain::time::Timestamp;
use wire::Failure;

use crate::view::text;

/// Largest number of orders that a group names.
const NAMED: usize = 5;

/// The orders in `Error` that were read: their displayed values, and not their tasks.
#[derive(Default)]
pub(super) struct Failures {
    groups: BTreeMap<(String, Option<String>), Group>,
}

#[derive(Default)]
struct Group {
    count: usize,
    /// Since when the longest waiting order waits.
    oldest_at: Option<Timestamp>,
    /// The last orders and since when they wait, the last first, at most [`NAMED`].
    newest: Vec<(Timestamp, OrderId)>,
    /// The error of the step of the first of these.
    last_error: Option<StepError>,
    /// What is wrong, and the remedy: of all its orders, or else what the code usually means.
    words: Option<(&'static str, &'static str)>,
}

impl Failures {
    /// Adds one order.
    pub(super) fn take(&mut self, task: &Task) {
        let code = task.reason.as_ref().map_or("", |reason| &*reason.code);
        let step = situation::step_in_error(task);
        let group = self.groups.entry((code.to_owned(), step.map(str::to_owned))).or_default();
        if group.take(since(task), task.order_id) {
            group.last_error = step.and_then(|name| task.step(name)?.1.last_error.clone());
        }
        let (of_this, usual) = (situation::remedy(task), situation::explain(code));
        let common = |other: &'static str, own, usual| if other == own { own } else { usual };
        let (meaning, to_do) = group.words.unwrap_or(of_this);
        group.words = Some((common(meaning, of_this.0, usual.0), common(to_do, of_this.1, usual.1)));
    }

    /// The groups, the largest first; `at_least`: there may be more orders.
    pub(super) fn grouped(&self, at_least: bool) -> Vec<Failure<'_>> {
        let groups = self.groups.iter();
        let mut failures: Vec<_> =
            groups.filter_map(|((code, step), group)| shown(code, step.as_deref(), group, at_least)).collect();
        failures.sort_by_key(|failure| Reverse(failure.count));
        failures
    }
}

impl Group {
    /// Adds one order. Whether it is the newest.
    fn take(&mut self, since: Timestamp, order_id: OrderId) -> bool {
        self.count += 1;
        self.oldest_at = Some(self.oldest_at.map_or(since, |at| at.min(since)));
        let place = self.newest.partition_point(|(at, _)| *at >= since);
        self.newest.insert(place, (since, order_id));
        self.newest.truncate(NAMED);
        place == 0
    }
}

fn shown<'a>(code: &'a str, step: Option<&'a str>, group: &'a Group, at_least: bool) -> Option<Failure<'a>> {
    let (meaning, to_do) = group.words?;
    Some(Failure {
        code: text(code),
        step: step.map(text),
        count: group.count,
        at_least,
        oldest_at: Some(group.oldest_at?),
        newest_at: Some(group.newest.first()?.0),
        last_error: group.last_error.clone(),
        text: Some(text(meaning)),
        to_do: Some(text(to_do)),
        order_ids: group.newest.iter().map(|(_, order_id)| *order_id).collect(),
    })
}

/// Since when an order waits.
fn since(task: &Task) -> Timestamp {
    // The watch of an order with a deadline is the deadline.
    task.failed_at().or(task.watch_at).or_else(|| task.updated_at()).unwrap_or_default()
}
