//! The orders that a job selects.

use super::job::{DryRun, Entry, Job, Selector};
use super::step::command;
use crate::limits::PAGE_MAX;
use crate::ports::{ListError, Page, Store};
use crate::task::{Direction, ProcessState, Task};
use crate::time::Timestamp;

/// Largest number of pages that a dry run reads.
pub const DRY_RUN_PAGES_MAX: usize = 100;

/// Counts the orders that a job would handle, among the newest in `Error`. Changes nothing.
///
/// # Errors
/// [`ListError`] if the store cannot be read.
pub async fn dry_run(store: &impl Store, selector: &Selector) -> Result<DryRun, ListError> {
    let mut matching = 0;
    let mut cursor: Option<String> = None;
    for _ in 0..DRY_RUN_PAGES_MAX {
        let page = store.list(Some(ProcessState::Error), cursor.as_deref(), PAGE_MAX).await?;
        matching += page.tasks.iter().filter(|task| selector.matches(task)).count() as u64;
        cursor = page.next;
        if cursor.is_none() {
            return Ok(DryRun { matching, complete: true });
        }
    }
    Ok(DryRun { matching, complete: false })
}

impl Selector {
    /// Whether the task is selected.
    #[must_use]
    pub fn matches(&self, task: &Task) -> bool {
        let reason = task.reason.as_ref();
        // If many late answers have pushed that line out of the history, the watch has the time.
        let failed_at = task.failed_at().or(task.watch_at);
        let is_or_any = |wanted: &Option<_>, found| wanted.is_none() || wanted.as_ref() == found;
        task.process_state == ProcessState::Error
            && is_or_any(&self.reason_code, reason.map(|reason| &reason.code))
            && is_or_any(&self.step, reason.and_then(|reason| reason.step.as_ref()))
            && failed_at.is_none_or(|at| {
                self.failed_since.is_none_or(|since| since <= at) && self.failed_until.is_none_or(|until| at <= until)
            })
    }
}

impl Job {
    /// Takes the orders of one page of the scan.
    pub(super) fn absorb(&mut self, page: &Page, now: Timestamp) {
        for task in page.tasks.iter().filter(|task| self.spec.selector.matches(task)) {
            let order_id = task.order_id;
            let is_known = self.found.iter().chain(&self.under_way).any(|entry| entry.order_id == order_id);
            if is_known || self.has_handled(task) {
                continue;
            }
            let entry = Entry {
                order_id,
                version: task.version,
                undoing: task.steps.iter().any(|step| step.direction == Direction::Undo),
                priority: task.priority,
                at: now,
                resent: 0,
            };
            // Such as one whose call may still have its effect. It would only be waited for.
            if command(self, &self.spec.reason, &entry).refusal(task, now).is_none() {
                self.found.push(entry);
            }
        }
        self.cursor.clone_from(&page.next);
        self.scanned = page.next.is_none();
    }
}
