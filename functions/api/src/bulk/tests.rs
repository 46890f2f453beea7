use domain::bulk::{DRY_RUN_READ_MAX, JobState};
use domain::task::{ProcessState, Reason, Task};
use serde_json::json;

use super::*;
use crate::testing::{Answer, Fake, task_in};

const PLAN: &str = r#"{"By":"ada","Reason":"payment is back","Selector":{}}"#;
const COMMAND: &str = r#"{"By":"bob","Reason":"seen the number"}"#;
/// The fake's present, and the time at which its orders failed.
const NOW: &str = "2026-11-20T17:26:43.007Z";

/// An order in `Error` for this reason, with this step.
fn failed(name: &str, code: &str, step: &str) -> Task {
    let mut task = task_in(name, ProcessState::Error);
    let (code, message, step) = (code.into(), "in words".into(), Some(step.into()));
    task.reason = Some(Reason { code, message, step, since_version: 1, earlier: None });
    task.watch_at = Some(serde_json::from_value(json!(NOW)).unwrap());
    task
}

/// Three orders in `Error` and one in another state.
fn four_orders() -> Fake {
    let fake = Fake::default();
    fake.stores(failed("a", "exhausted", "charge-payment"));
    fake.stores(failed("b", "exhausted", "ship-order"));
    fake.stores(failed("c", "rejected", "charge-payment"));
    fake.stores(task_in("d", ProcessState::Processing));
    fake
}

/// A fake with one planned job, and the job's path.
fn planned() -> (Fake, String) {
    let fake = four_orders();
    let path = fake.post("/bulk", &[], PLAN).header("location").unwrap().to_owned();
    (fake, path)
}

fn matching(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.body["DryRun"]["Matching"].as_u64().unwrap()
}

#[test]
fn a_plan_counts_is_stored_and_sends_nothing() {
    let fake = four_orders();
    let answer = fake.post("/bulk", &[], PLAN);
    let id = answer.body["JobID"].as_str().unwrap();
    assert_eq!((answer.status, answer.header("location")), (201, Some(format!("/bulk/{id}").as_str())));
    let expected = json!({
        "JobID": id, "Version": 1, "State": "Planned", "By": "ada [shop]", "Reason": "payment is back",
        "Action": "Resubmit", "Selector": {"FailedUntil": NOW},
        "Canary": 5, "CanaryTimeoutMs": 300_000, "RatePerSecond": 10, "StopAtFailedPercent": 20,
        "DryRun": {"Matching": 3, "Complete": true, "Message": "orders that match: 3"},
        "PlannedAt": NOW, "Since": NOW,
        "Tally": {"Begun": 0, "Recovered": 0, "FailedAgain": 0, "PassedOver": 0},
        "UnderWay": 0, "Waiting": 0,
    });
    assert_eq!(answer.body, expected);
    assert_eq!(fake.get(&format!("/bulk/{id}")).body, expected);
    assert_eq!(fake.get(&format!("/bulk/{}", id.to_uppercase())).body, expected);
    assert_eq!(fake.the_job().state, JobState::Planned);
    fake.queued_nothing();
}

#[test]
fn the_selector_says_which_orders_are_counted() {
    for (selector, count) in [
        (r#"{"State":"Error"}"#, 3),
        (r#"{"State":"Error","ReasonCode":"exhausted"}"#, 2),
        (r#"{"ReasonCode":"exhausted"}"#, 2),
        (r#"{"Step":"charge-payment"}"#, 2),
        (r#"{"ReasonCode":"exhausted","Step":"charge-payment"}"#, 1),
        (r#"{"ReasonCode":"cancelled"}"#, 0),
        (r#"{"FailedSince":"2026-11-20T17:26:43.007Z"}"#, 3),
        (r#"{"FailedSince":"2026-11-20T18:26:43.008+01:00"}"#, 0),
        (r#"{"FailedUntil":"2026-11-20T17:26:43.006Z"}"#, 0),
        (r#"{"FailedUntil":"2099-01-01T00:00:00Z"}"#, 3),
    ] {
        let body = format!(r#"{{"By":"ada","Reason":"x","Selector":{selector}}}"#);
        assert_eq!(matching(&four_orders().post("/bulk", &[], &body)), count, "{selector}");
    }
}

#[test]
fn a_job_that_posts_again_is_for_compensated_orders() {
    let fake = four_orders();
    for (name, code, step) in
        [("e", "rejected", "ship-order"), ("f", "rejected", "charge-payment"), ("g", "cancelled", "")]
    {
        let failed = failed(name, code, step);
        fake.stores(Task { process_state: ProcessState::Compensated, ..failed });
    }
    let plan = |selector: &str| {
        let body = format!(r#"{{"By":"ada","Reason":"x","Action":"Again","Selector":{selector}}}"#);
        fake.post("/bulk", &[], &body)
    };
    for (selector, count) in [
        ("{}", 3),
        (r#"{"State":"Compensated","ReasonCode":"rejected"}"#, 2),
        (r#"{"Step":"ship-order"}"#, 1),
        (r#"{"ReasonCode":"exhausted"}"#, 0),
    ] {
        let answer = plan(selector);
        assert_eq!((matching(&answer), &answer.body["Action"]), (count, &json!("Again")), "{selector}");
    }
    plan(r#"{"State":"Error"}"#).names(400, "invalid-field", "Selector.State");
    fake.queued_nothing();
}

#[test]
fn what_fails_after_the_plan_is_neither_counted_nor_meant() {
    let fake = four_orders();
    let mut later = failed("e", "exhausted", "charge-payment");
    later.watch_at = later.watch_at.map(|at| at.plus_ms(1));
    fake.stores(later);
    let body = r#"{"By":"ada","Reason":"x","Selector":{"FailedUntil":"2099-01-01T00:00:00Z"}}"#;
    let answer = fake.post("/bulk", &[], body);
    assert_eq!((matching(&answer), &answer.body["Selector"]["FailedUntil"]), (3, &json!(NOW)));
}

#[test]
fn a_count_that_is_not_through_says_at_least() {
    let fake = four_orders();
    fake.list_never_ends();
    let answer = fake.post("/bulk", &[], PLAN);
    // A page shows three orders.
    let counted = 3 * DRY_RUN_READ_MAX.div_ceil(3) as u64;
    assert_eq!((matching(&answer), &answer.body["DryRun"]["Complete"]), (counted, &json!(false)));
    assert_eq!(answer.body["DryRun"]["Message"], format!("orders that match: at least {counted}"));
}

#[test]
fn what_is_wanted_may_be_said_in_full() {
    let fake = four_orders();
    let body = r#"{"By":"ada","Reason":"x","Selector":{"Step":"ship-order"},"Canary":1,"CanaryTimeoutMs":60000,
        "RatePerSecond":1000.0,"StopAtFailedPercent":0}"#;
    assert_eq!(matching(&fake.post("/bulk", &[], body)), 1);
    let spec = &fake.the_job().spec;
    assert_eq!((spec.canary, spec.canary_timeout_ms, spec.rate_per_second), (1, 60_000, 1_000));
    assert_eq!((spec.stop_at_failed_percent, spec.selector.step.as_deref()), (0, Some("ship-order")));
}

#[test]
fn a_plan_that_is_wrong_is_400_and_named() {
    let fake = four_orders();
    let with = |more: &str| format!(r#"{{"By":"ada","Reason":"x","Selector":{{}},{more}}}"#);
    let select = |selector: &str| format!(r#"{{"By":"ada","Reason":"x","Selector":{selector}}}"#);
    for (body, name) in [
        ("{}".to_owned(), "By"),
        (r#"{"By":"ada","Selector":{}}"#.to_owned(), "Reason"),
        (r#"{"By":" ","Reason":"x","Selector":{}}"#.to_owned(), "By"),
        (r#"{"By":"ada","Reason":"x"}"#.to_owned(), "Selector"),
        (with(r#""DryRun":false"#), "DryRun"),
        (with(r#""Action":"Pause""#), "Action"),
        (with(r#""Action":"again""#), "Action"),
        (with(r#""Action":7"#), "Action"),
        (with(r#""Canary":0"#), "Canary"),
        (with(r#""Canary":101"#), "Canary"),
        (with(r#""Canary":1.5"#), "Canary"),
        (with(r#""Canary":null"#), "Canary"),
        (with(r#""CanaryTimeoutMs":999"#), "CanaryTimeoutMs"),
        (with(r#""RatePerSecond":0"#), "RatePerSecond"),
        (with(r#""RatePerSecond":1001"#), "RatePerSecond"),
        (with(r#""RatePerSecond":1.5"#), "RatePerSecond"),
        (with(r#""RatePerSecond":"10""#), "RatePerSecond"),
        (with(r#""StopAtFailedPercent":-1"#), "StopAtFailedPercent"),
        (with(r#""StopAtFailedPercent":101"#), "StopAtFailedPercent"),
        (select("null"), "Selector"),
        (select("[]"), "Selector"),
        (select(r#"{"State":"Processing"}"#), "Selector.State"),
        (select(r#"{"State":7}"#), "Selector.State"),
        (select(r#"{"State":null}"#), "Selector.State"),
        (select(r#"{"ReasonCode":7}"#), "Selector.ReasonCode"),
        (select(&format!(r#"{{"Step":"{}"}}"#, "x".repeat(NAME_CHARS_MAX + 1))), "Selector.Step"),
        (select(r#"{"FailedSince":"yesterday"}"#), "Selector.FailedSince"),
        (select(r#"{"FailedUntil":1795195603007}"#), "Selector.FailedUntil"),
        // In UTC it is in the year 10000, which no record can hold: it would be read back as another time.
        (select(r#"{"FailedSince":"9999-12-31T23:59:59-00:01"}"#), "Selector.FailedSince"),
        (
            select(r#"{"FailedSince":"2026-11-20T18:00:00Z","FailedUntil":"2026-11-20T17:00:00Z"}"#),
            "Selector.FailedUntil",
        ),
    ] {
        fake.post("/bulk", &[], &body).names(400, "invalid-field", name);
    }
    for body in ["", "{"] {
        fake.post("/bulk", &[], body).is_problem(400, "malformed-json");
    }
    fake.post("/bulk", &[], &with(r#""By":"eve""#)).names(400, "invalid-field", "/By");
    fake.post("/bulk", &[], &select(r#"{"Step":"a","Step":"b"}"#)).names(400, "invalid-field", "/Selector/Step");
    fake.post("/bulk", &[], "[]").is_problem(400, "not-an-object");
    fake.post("/bulk", &[("Content-Type", "text/xml")], PLAN).is_problem(415, "unsupported-media-type");
    assert!(fake.jobs_stored().is_empty());
}

#[test]
fn a_planned_job_is_started_once() {
    let (fake, path) = planned();
    let start = format!("{path}/start");
    let answer = fake.post(&start, &[], COMMAND);
    assert_eq!((answer.status, &answer.body["State"], &answer.body["Version"]), (202, &json!("Canary"), &json!(2)));
    assert_eq!((fake.the_job().state, fake.the_job().version), (JobState::Canary, 2));
    let again = fake.post(&start, &[], COMMAND);
    again.is_problem(409, "job-state-conflict");
    assert_eq!((&again.body["detail"], &again.body["instance"]), (&json!("the job was started already"), &json!(path)));
    assert_eq!(fake.the_job().version, 2);
    fake.queued_nothing();
}

#[test]
fn a_job_is_cancelled_with_operator_and_reason_and_stays_cancelled() {
    for started in [false, true] {
        let (fake, path) = planned();
        if started {
            fake.post(&format!("{path}/start"), &[], COMMAND);
        }
        let answer = fake.post(&format!("{path}/cancel"), &[], COMMAND);
        assert_eq!((answer.status, &answer.body["State"]), (202, &json!("Cancelled")));
        assert_eq!(answer.body["Why"], "by bob [shop]: seen the number");
        for action in ["start", "cancel"] {
            fake.post(&format!("{path}/{action}"), &[], COMMAND).is_problem(409, "job-state-conflict");
        }
    }
}

#[test]
fn a_command_about_a_job_needs_operator_and_reason() {
    let (fake, path) = planned();
    for action in ["start", "cancel"] {
        let path = format!("{path}/{action}");
        fake.post(&path, &[], "{}").names(400, "invalid-field", "By");
        fake.post(&path, &[], r#"{"By":"bob"}"#).names(400, "invalid-field", "Reason");
        fake.post(&path, &[], r#"{"By":"bob","Reason":"x","Force":1}"#).names(400, "invalid-field", "Force");
    }
    assert_eq!(fake.the_job().version, 1);
}

#[test]
fn after_a_lost_write_to_the_supervisor_it_reads_and_decides_again() {
    let newer = |job: Job| Job { version: job.version + 1, ..job };
    let (fake, path) = planned();
    fake.others_write(3, newer);
    let answer = fake.post(&format!("{path}/cancel"), &[], COMMAND);
    assert_eq!((answer.status, fake.the_job().version), (202, 5), "three others, then this one");

    let (fake, path) = planned();
    fake.others_write(CONFLICTS_MAX, newer);
    let answer = fake.post(&format!("{path}/cancel"), &[], COMMAND);
    answer.is_problem(503, "unavailable");
    assert_eq!((answer.header("retry-after"), &fake.the_job().state), (Some("1"), &JobState::Planned));
}

#[test]
fn a_job_is_started_as_it_was_seen_or_not_at_all() {
    let (fake, path) = planned();
    let shown = fake.get(&path);
    let seen = shown.header("etag").unwrap();
    let known = fake.call("GET", &path, &[("If-None-Match", seen)], "");
    assert_eq!((known.status, known.text.as_str(), known.header("etag")), (304, "", Some(seen)));
    let start = format!("{path}/start");
    let answer = fake.post(&start, &[("If-Match", "\"7\"")], COMMAND);
    answer.is_problem(412, "version-changed");
    assert_eq!((answer.header("etag"), &fake.the_job().state), (Some(seen), &JobState::Planned));
    fake.post(&start, &[("If-Match", "1")], COMMAND).names(400, "invalid-header", "If-Match");
    let answer = fake.post(&start, &[("If-Match", seen)], COMMAND);
    assert_eq!((answer.status, answer.header("etag")), (202, Some("\"2\"")));
    let late = fake.post(&format!("{path}/cancel"), &[("If-Match", seen)], COMMAND);
    late.is_problem(412, "version-changed");
    assert_eq!(fake.call("GET", &path, &[("If-None-Match", seen)], "").status, 200);
}

#[test]
fn a_job_that_is_not_there_is_404() {
    let (fake, path) = planned();
    for path in ["/bulk/x".to_owned(), format!("{path}0"), format!("/bulk/{}", "x".repeat(5_000))] {
        fake.get(&path).is_problem(404, "job-not-found");
        fake.post(&format!("{path}/start"), &[], COMMAND).is_problem(404, "job-not-found");
    }
}

#[test]
fn jobs_are_listed_newest_first_and_not_without_bound() {
    let fake = Fake::default();
    assert_eq!(fake.get("/bulk").body, json!({"Jobs": []}));
    let first_id = fake.post("/bulk", &[], PLAN).body["JobID"].as_str().unwrap().to_owned();
    assert_eq!(fake.get("/bulk").body["Jobs"][0]["JobID"], first_id);
    for minutes in 1..150_u64 {
        let mut job = fake.the_job();
        job.id = format!("later-{minutes:03}").into();
        job.planned_at = job.planned_at.plus_ms(minutes * 60_000);
        fake.stores_job(&job);
    }
    let ids = |path: &str| -> Vec<String> {
        let answer = fake.get(path);
        let jobs = answer.body["Jobs"].as_array().unwrap();
        jobs.iter().map(|job| job["JobID"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids("/bulk?limit=2"), ["later-149", "later-148"]);
    assert_eq!((ids("/bulk").len(), ids("/bulk?limit=100").len()), (50, 100));
    assert!(!ids("/bulk?limit=100").contains(&first_id));
    for query in ["limit=0", "limit=101", "limit=x"] {
        fake.get(&format!("/bulk?{query}")).names(400, "invalid-parameter", "limit");
    }
    fake.get("/bulk?state=Planned").names(400, "invalid-parameter", "state");
}

#[test]
fn a_store_that_is_down_is_503_and_a_plan_may_be_made_again() {
    let (fake, path) = planned();
    let start = format!("{path}/start");
    fake.down("jobs.set_job");
    fake.post("/bulk", &[], PLAN).is_problem(503, "unavailable");
    fake.post(&start, &[], COMMAND).is_problem(503, "unavailable");
    assert_eq!(fake.the_job().version, 1);
    fake.all_down();
    for answer in [fake.post("/bulk", &[], PLAN), fake.post(&start, &[], COMMAND), fake.get(&path), fake.get("/bulk")] {
        answer.is_problem(503, "unavailable");
    }
}
