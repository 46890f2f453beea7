use std::future::ready;

use domain::lease::Lease;
use domain::ports::{DeadLetterOutcome, DeadLetterRecord, Environment, PortError};
use domain::task::{Attempt, Reason, StepError, StepState, Task, Transition, What};
use domain::time::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::testing::{Answer, Fake, task_in};

/// Stores an order that was submitted this long ago.
fn order(fake: &Fake, name: &str, state: ProcessState, ago_ms: u64) {
    let mut task = task_in(name, state);
    task.history[0].at = fake.ports.now().minus_ms(ago_ms);
    fake.stores(task);
}

/// A task in `Error` that has waited this long at a step.
fn failed(fake: &Fake, name: &str, code: &str, place: usize, ago_ms: u64) -> Task {
    let mut task = task_in(name, ProcessState::Error);
    let at = fake.ports.now().minus_ms(ago_ms);
    let step = &mut task.steps[place];
    step.process_state = StepState::Error;
    step.last_error = Some(StepError { code: "busy".into(), message: name.into(), attempt: 3, at });
    let step = Some(step.name.clone());
    task.reason = Some(Reason { code: code.into(), message: "in words".into(), step, since_version: 1, earlier: None });
    task.watch_at = Some(at);
    task
}

fn overview(fake: &Fake) -> Answer {
    let answer = fake.get("/overview");
    assert_eq!((answer.status, answer.header("cache-control")), (200, Some("no-store")), "{}", answer.text);
    answer
}

/// State, number, and whether there are more.
fn counts(answer: &Answer) -> Vec<(&str, u64, bool)> {
    let counts = answer.body["Counts"].as_array().unwrap().iter();
    let count = |count: &Value| (count["Count"].as_u64().unwrap(), count["AtLeast"].as_bool().unwrap());
    counts.map(|of| (of["State"].as_str().unwrap(), count(of).0, count(of).1)).collect()
}

#[test]
fn every_state_is_counted_and_what_is_finished_as_far_as_it_is_recent() {
    let fake = Fake::default();
    let states = ProcessState::ALL.into_iter().enumerate();
    for (n, state) in states {
        for again in 0..=n {
            order(&fake, &format!("{state} {again}"), state, 60_000);
        }
    }
    order(&fake, "yesterday", ProcessState::Processed, 86_400_000);
    let answer = overview(&fake);
    let expected = [
        ("Pending", 1, false),
        ("Processing", 2, false),
        ("Processed", 3, false),
        ("Error", 4, false),
        ("Compensating", 5, false),
        ("Compensated", 6, false),
        ("Closed", 7, false),
    ];
    assert_eq!(counts(&answer), expected);
    let since: Vec<bool> =
        answer.body["Counts"].as_array().unwrap().iter().map(|count| count.get("Since").is_some()).collect();
    assert_eq!(since, [false, false, true, false, false, true, true]);
    assert_eq!(answer.body["Counts"][2]["Since"], answer.body["Minutes"][0]["At"]);
    assert_eq!(answer.body["MinutesComplete"], true);
}

#[test]
fn a_count_stops_at_a_thousand_and_says_so() {
    let fake = Fake::default();
    for n in 0..1_001 {
        order(&fake, &n.to_string(), ProcessState::Processing, 60_000);
    }
    let answer = overview(&fake);
    assert_eq!(counts(&answer)[1], ("Processing", 1_000, true));
    assert_eq!(counts(&answer)[2], ("Processed", 0, true), "there may be some among the others");
    assert_eq!(answer.body["MinutesComplete"], false);
}

#[test]
fn a_store_that_reads_thousands_to_find_none_is_asked_no_further() {
    for (at_once, of_a_list) in [(1_000, 1_000), (400, 1_200)] {
        let fake = Fake::default();
        fake.ports.has_no_index_of_states(at_once);
        for n in 0..3_000 {
            order(&fake, &n.to_string(), ProcessState::Processing, 60_000);
        }
        let answer = overview(&fake);
        let counted = counts(&answer);
        assert_eq!((counted[0], counted[4]), (("Pending", 0, true), ("Compensating", 0, true)), "none was seen");
        assert_eq!(counted[1], ("Processing", 1_000, true));
        // Four empty lists, and three lists in which each task that is read counts. Two of the seven are of the orders that
        // wait for a service.
        assert_eq!(fake.tasks_listed(), 4 * of_a_list + 3 * 1_000, "{at_once}");
    }
}

#[test]
fn the_last_thirty_minutes_tell_what_became_of_the_orders_of_each() {
    let fake = Fake::default();
    // It is 17:26:43.007.
    for (n, (state, ago_ms)) in [
        (ProcessState::Processed, 0),
        (ProcessState::Pending, 43_007),
        (ProcessState::Compensated, 43_008),
        (ProcessState::Error, 29 * 60_000 + 43_007),
        (ProcessState::Processed, 29 * 60_000 + 43_008),
    ]
    .into_iter()
    .enumerate()
    {
        order(&fake, &n.to_string(), state, ago_ms);
    }
    let mut ahead = task_in("a clock that is ahead", ProcessState::Compensating);
    ahead.history[0].at = fake.ports.now().plus_ms(120_000);
    fake.stores(ahead);
    let answer = overview(&fake);
    let minutes = answer.body["Minutes"].as_array().unwrap();
    assert_eq!((minutes.len(), &answer.body["At"]), (30, &json!("2026-11-20T17:26:43.007Z")));
    let minute = |at: &str, processed, compensated, error, under_way| {
        json!({
            "At": at, "Accepted": processed + compensated + error + under_way, "Processed": processed,
            "Compensated": compensated, "Closed": 0, "Error": error, "UnderWay": under_way,
        })
    };
    assert_eq!(minutes[29], minute("2026-11-20T17:26:00.000Z", 1, 0, 0, 2));
    assert_eq!(minutes[28], minute("2026-11-20T17:25:00.000Z", 0, 1, 0, 0));
    assert_eq!(minutes[0], minute("2026-11-20T16:57:00.000Z", 0, 0, 1, 0));
    let accepted: u64 = minutes.iter().map(|minute| minute["Accepted"].as_u64().unwrap()).sum();
    assert_eq!(accepted, 5, "one is too old");
}

#[test]
fn failures_are_grouped_by_cause_the_largest_first_with_the_last_error_and_the_last_orders() {
    let fake = Fake::default();
    let exhausted: Vec<String> = (0..7)
        .map(|n| fake.stores(failed(&fake, &format!("e{n}"), "exhausted", 1, (n + 1) * 1_000)).to_string())
        .collect();
    let rejected = fake.stores(failed(&fake, "r", "compensation-failed", 0, 5_000)).to_string();
    let mut dead_letter = failed(&fake, "l", "dead-letter", 2, 9_000);
    dead_letter.steps[2].process_state = StepState::Pending;
    dead_letter.steps[2].last_error = None;
    let reason = dead_letter.reason.as_mut().unwrap();
    (reason.step, reason.code) = (None, "dead-letter".into());
    fake.stores(dead_letter);
    let answer = overview(&fake);
    let failures = answer.body["Failures"].as_array().unwrap();
    assert_eq!(failures.len(), 3);
    let at = |ago_ms| fake.ports.now().minus_ms(ago_ms).to_string();
    let expected = json!({
        "Code": "exhausted", "Step": "charge-payment", "Count": 7, "AtLeast": false,
        "OldestAt": at(7_000), "NewestAt": at(1_000),
        "LastError": {"Code": "busy", "Message": "e0", "Attempt": 3, "At": at(1_000)},
        "OrderIDs": &exhausted[..5],
        "Text": "A service failed or gave no answer too often, or until the horizon of the step was over.",
        "ToDo": domain::situation::explain("exhausted").1,
    });
    assert_eq!(failures[0], expected);
    assert_eq!((&failures[1]["Code"], &failures[1]["OrderIDs"]), (&json!("compensation-failed"), &json!([rejected])));
    assert_eq!((failures[2].get("Step"), failures[2].get("LastError")), (None, None));
}

#[test]
fn a_group_waits_since_its_failure_also_if_the_watch_is_a_deadline_and_has_the_words_of_its_newest_order() {
    let fake = Fake::default();
    let mut task = failed(&fake, "late", "exhausted", 1, 0);
    let failed_at = fake.ports.now().minus_ms(60_000);
    let attempt = Attempt::current(1, &task.steps[1]);
    for what in [What::Accepted(attempt), What::Entered(ProcessState::Error)] {
        task.history.push(Transition {
            at: failed_at,
            who: "supervisor".into(),
            what,
            why: None,
            command_id: None,
            bulk: None,
        });
    }
    task.watch_at = Some(fake.ports.now().plus_ms(86_400_000));
    fake.stores(task);
    let group = &overview(&fake).body["Failures"][0];
    assert_eq!((&group["OldestAt"], &group["NewestAt"]), (&json!(failed_at), &json!(failed_at)));
    assert_eq!(group["Text"], "A service took the call on, and its result did not come.");
}

#[test]
fn f68_a_host_that_cannot_do_its_work_says_why() {
    let fake = Fake::default();
    assert_eq!(overview(&fake).body.get("Unready"), None);
    let full = || ready(Err(PortError::unavailable("engine.ready", "the disk is full")));
    fake.config(ApiConfig::default().ready_if(full));
    assert_eq!(overview(&fake).body["Unready"], "the disk is full");
    fake.config(ApiConfig::default().ready_if(full).paused_if(true));
    assert_eq!(overview(&fake).body.get("Unready"), None, "it is paused");
}

#[test]
fn services_leases_and_dead_letters_are_shown_too() {
    let fake = Fake::default();
    fake.stores_record(&Lease {
        name: "supervisor/00".into(),
        owner: "supervisor-1".into(),
        epoch: 1,
        version: 1,
        held_until: None,
        renewed_at: fake.ports.now(),
        health: None,
    });
    assert_eq!(overview(&fake).body["DeadLetters"], json!({"Count": 0, "AtLeast": false}));
    for n in 0..101 {
        fake.stores_record(&DeadLetterRecord {
            message_id: format!("m{n}").into(),
            queue: None,
            order_id: None,
            receive_count: 5,
            at: fake.ports.now(),
            settled_at: Timestamp::from_epoch_ms(1_000 + n),
            outcome: DeadLetterOutcome::Stale,
            message: "in words".into(),
            body: None,
        });
    }
    let answer = overview(&fake);
    let dead_letters = json!({"Count": 100, "AtLeast": true, "NewestAt": "1970-01-01T00:00:01.100Z"});
    assert_eq!(answer.body["DeadLetters"], dead_letters);
    assert_eq!(answer.body["Services"], fake.get("/services").body["Services"]);
    assert_eq!(answer.body["Leases"], fake.get("/leases").body["Leases"]);
    assert_eq!(answer.body["Leases"].as_array().unwrap().len(), 1);
}

#[test]
fn a_port_that_is_down_is_503() {
    for port in ["store.list", "services.all_health", "leases.leases", "letters.letters"] {
        let fake = Fake::default();
        fake.down(port);
        fake.get("/overview").is_problem(503, "unavailable");
    }
}
