//! The orders that a job selects.

use super::BulkAction;
use super::job::{DryRun, Entry, Job, Spec};
use super::step::command;
use crate::limits::PAGE_MAX;
use crate::ports::{ListError, Page, Store};
use crate::task::{Direction, Task};
use crate::time::Timestamp;

/// A dry run reads this many tasks, and the rest of the last page. Without an index by state it reads those in other states
/// too.
pub const DRY_RUN_READ_MAX: usize = 10_000;

/// Counts the orders that a job would handle, among the newest in the state of its action. Changes nothing. Orders that
/// were posted again before are counted too: only a job that runs looks for their new orders.
///
/// # Errors
/// [`ListError`] if the store cannot be read.
pub async fn dry_run(store: &impl Store, spec: &Spec) -> Result<DryRun, ListError> {
    let mut matching = 0;
    let mut cursor: Option<String> = None;
    let mut read = 0;
    while read < DRY_RUN_READ_MAX {
        let page = store.list(Some(spec.action.state()), cursor.as_deref(), PAGE_MAX).await?;
        matching += page.tasks.iter().filter(|task| spec.selects(task)).count() as u64;
        read += page.read.max(1);
        cursor = page.next;
        if cursor.is_none() {
            return Ok(DryRun { matching, complete: true });
        }
    }
    Ok(DryRun { matching, complete: false })
}

impl Spec {
    /// Whether the task is selected.
    #[must_use]
    pub fn selects(&self, task: &Task) -> bool {
        let (selector, reason) = (&self.selector, task.reason.as_ref());
        let entered_at = match self.action {
            BulkAction::Again => task.compensated_at(),
            // If many late answers have pushed that line out of the history, the watch has the time.
            BulkAction::Resubmit | BulkAction::Cancel | BulkAction::Settle | BulkAction::Close => {
                task.failed_at().or(task.watch_at)
            }
        };
        let is_or_any = |wanted: &Option<_>, found| wanted.is_none() || wanted.as_ref() == found;
        task.process_state == self.action.state()
            && is_or_any(&selector.reason_code, reason.map(|reason| &reason.code))
            && is_or_any(&selector.step, reason.and_then(|reason| reason.step.as_ref()))
            && entered_at.is_none_or(|at| {
                selector.failed_since.is_none_or(|since| since <= at)
                    && selector.failed_until.is_none_or(|until| at <= until)
            })
    }
}

impl Job {
    /// Whether the job may handle an order that the scan shows.
    #[must_use]
    pub fn is_candidate(&self, task: &Task, now: Timestamp) -> bool {
        // By a clock that is behind, a new order of this job may have been compensated before the plan.
        let is_handled = self.has_handled(task);
        // Such as one whose call may still have its effect. It would only be waited for.
        let is_refused = || match command(self, &entry_of(task, now)) {
            Some(command) => command.refusal(task, now).is_some(),
            None => !task.may_be_posted_again(),
        };
        self.spec.selects(task) && !is_handled && !is_refused()
    }

    /// Takes the orders of one page of the scan.
    pub(super) fn absorb(&mut self, page: &Page, now: Timestamp) {
        for task in &page.tasks {
            let is_known = self.found.iter().chain(&self.under_way).any(|entry| entry.order_id == task.order_id);
            if !is_known && self.is_candidate(task, now) {
                self.found.push(entry_of(task, now));
            }
        }
        self.cursor.clone_from(&page.next);
        self.scanned = page.next.is_none();
    }
}

fn entry_of(task: &Task, now: Timestamp) -> Entry {
    Entry {
        order_id: task.order_id,
        version: task.version,
        undoing: task.steps.iter().any(|step| step.direction == Direction::Undo),
        priority: task.priority,
        at: now,
        resent: 0,
    }
}
