//! A job for operators: the record without the lists that only the supervisor needs.

use domain::bulk::{DryRun, Job, JobState, Selector, Spec, Tally};

use crate::view::text;

/// The whole job, with numbers in place of its orders.
pub(crate) fn shown(job: &Job) -> wire::Job<'_> {
    // Each attribute is named, so that a new one is not shown, or hidden, by accident.
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
    let Spec { by, reason, action, selector, canary, canary_timeout_ms, rate_per_second, stop_at_failed_percent } =
        spec;
    let (state, why) = shown_state(state);
    wire::Job {
        id: text(id),
        version: *version,
        state: state.into(),
        why: why.map(text),
        by: text(by),
        reason: text(reason),
        action: action.name().into(),
        selector: shown_selector(selector),
        canary: *canary,
        canary_timeout_ms: *canary_timeout_ms,
        rate_per_second: *rate_per_second,
        stop_at_failed_percent: *stop_at_failed_percent,
        dry_run: shown_dry_run(*dry_run),
        started_by: started_by.as_deref().map(text),
        planned_at: *planned_at,
        since: *since,
        tally: shown_tally(*tally),
        under_way: under_way.len(),
        waiting: found.len(),
    }
}

/// The state, and the reason for it.
fn shown_state(state: &JobState) -> (wire::JobState, Option<&str>) {
    match state {
        JobState::Planned => (wire::JobState::Planned, None),
        JobState::Canary => (wire::JobState::Canary, None),
        JobState::Running => (wire::JobState::Running, None),
        JobState::Done => (wire::JobState::Done, None),
        JobState::Stopped(why) => (wire::JobState::Stopped, Some(why)),
        JobState::Cancelled(why) => (wire::JobState::Cancelled, Some(why)),
    }
}

fn shown_selector(selector: &Selector) -> wire::Selector<'_> {
    let Selector { state, reason_code, step, failed_since, failed_until } = selector;
    wire::Selector {
        state: state.as_deref().map(text),
        reason_code: reason_code.as_deref().map(text),
        step: step.as_deref().map(text),
        failed_since: *failed_since,
        failed_until: *failed_until,
    }
}

fn shown_dry_run(DryRun { matching, complete }: DryRun) -> wire::DryRun<'static> {
    let at_least = if complete { "" } else { "at least " };
    wire::DryRun { matching, complete, message: format!("orders that match: {at_least}{matching}").into() }
}

const fn shown_tally(Tally { begun, recovered, failed_again, late, passed_over }: Tally) -> wire::Tally {
    wire::Tally { begun, recovered, failed_again, late, passed_over }
}

#[cfg(test)]
mod tests {
    use domain::bulk::Entry;
    use domain::id::OrderId;
    use domain::message::Priority;
    use domain::time::Timestamp;
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
        let shown = serde_json::to_value(shown(&job)).unwrap();
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
