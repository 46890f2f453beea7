//! A job as operators see it: the record without the lists that only the supervisor needs.

use domain::bulk::{DryRun, Job, JobState, Selector, Spec, Tally};
use domain::time::Timestamp;
use serde::Serialize;

/// A job on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct JobView<'a> {
    #[serde(rename = "JobID")]
    id: &'a str,
    version: u64,
    state: &'static str,
    /// Why it stopped or was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'a str>,
    by: &'a str,
    reason: &'a str,
    selector: &'a Selector,
    canary: u32,
    canary_timeout_ms: u64,
    rate_per_second: u32,
    stop_at_failed_percent: u8,
    dry_run: DryRunView,
    /// Who started it, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_by: Option<&'a str>,
    planned_at: Timestamp,
    since: Timestamp,
    tally: Tally,
    /// Orders that were put on their way and are not settled.
    under_way: usize,
    /// Orders that were found and wait for their turn.
    waiting: usize,
}

/// What the dry run counted, on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct DryRunView {
    matching: u64,
    /// Whether all orders in `Error` were looked at.
    complete: bool,
    message: String,
}

impl<'a> JobView<'a> {
    /// The whole job, its orders as numbers.
    pub(crate) fn of(job: &'a Job) -> Self {
        // Named one by one, so that a new attribute is not shown, or hidden, by accident.
        let Job {
            id,
            version,
            spec,
            dry_run,
            state,
            started_by,
            planned_at,
            since,
            tally,
            cursor: _,
            scanned: _,
            found,
            under_way,
            next_at: _,
        } = job;
        let Spec { by, reason, selector, canary, canary_timeout_ms, rate_per_second, stop_at_failed_percent } = spec;
        let (state, why) = named(state);
        Self {
            id,
            version: *version,
            state,
            why,
            by,
            reason,
            selector,
            canary: *canary,
            canary_timeout_ms: *canary_timeout_ms,
            rate_per_second: *rate_per_second,
            stop_at_failed_percent: *stop_at_failed_percent,
            dry_run: DryRunView::of(*dry_run),
            started_by: started_by.as_deref(),
            planned_at: *planned_at,
            since: *since,
            tally: *tally,
            under_way: under_way.len(),
            waiting: found.len(),
        }
    }
}

impl DryRunView {
    fn of(DryRun { matching, complete }: DryRun) -> Self {
        let at_least = if complete { "" } else { "at least " };
        Self { matching, complete, message: format!("orders that match: {at_least}{matching}") }
    }
}

/// The state's word, and why it came to it.
fn named(state: &JobState) -> (&'static str, Option<&str>) {
    match state {
        JobState::Planned => ("Planned", None),
        JobState::Canary => ("Canary", None),
        JobState::Running => ("Running", None),
        JobState::Done => ("Done", None),
        JobState::Stopped(why) => ("Stopped", Some(why)),
        JobState::Cancelled(why) => ("Cancelled", Some(why)),
    }
}

#[cfg(test)]
mod tests {
    use domain::bulk::Entry;
    use domain::id::OrderId;
    use domain::message::Priority;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_job_is_shown_with_numbers_in_place_of_its_lists_and_why_it_stopped() {
        let at = Timestamp::from_epoch_ms(1_795_195_603_007);
        let spec = r#"{"By":"ada","Reason":"payment is back"}"#;
        let dry_run = DryRun { matching: 7, complete: false };
        let mut job = Job::plan("j1".into(), serde_json::from_str(spec).unwrap(), dry_run, at).unwrap();
        let order_id = OrderId::from_idempotency_key("shop", "a");
        let entry = Entry { order_id, version: 4, undoing: false, priority: Priority::Normal, at, resent: 0 };
        (job.under_way, job.found) = (vec![entry; 2], vec![entry; 3]);
        job.tally.begun = 2;
        job.cursor = Some("the store's own".into());
        job.state = JobState::Stopped("2 of 2 canaries failed again, more than 20 %".into());
        let shown = serde_json::to_value(JobView::of(&job)).unwrap();
        assert_eq!(
            (&shown["UnderWay"], &shown["Waiting"], &shown["Tally"]["Begun"]),
            (&json!(2), &json!(3), &json!(2))
        );
        assert_eq!(shown["State"], "Stopped");
        assert_eq!(shown["Why"], "2 of 2 canaries failed again, more than 20 %");
        assert_eq!(shown["DryRun"]["Message"], "orders that match: at least 7");
        let text = shown.to_string();
        assert!(!text.contains("the store's own") && !text.contains(&order_id.to_string()), "{text}");
    }
}
