//! Rule 46: an order that has ended is left without personal data.

use crate::alert::Alert;
use crate::backoff::{Backoff, BackoffPolicy};
use crate::bulk::{DryRun, Job};
use crate::json::Json;
use crate::machine::testing::Case;
use crate::machine::{Refused, Verdict};
use crate::message::{Action, Command, Failure, Outcome};
use crate::order::ERASED;
use crate::ports::{Breaker, Evidence, Outage, OutageReason, Rejections, ServiceHealth};
use crate::task::{Approvers, ProcessState, Task, What};

const PERSON: &str = "zoe quill";

/// An order with the person's name wherever somebody writes one, closed by an operator.
fn closed() -> Case {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "on_rejected = \"hold\"")], true);
    case.wake();
    case.take(&case.reply_of("a", Outcome::Done(Json::of(&PERSON))));
    let failure = Failure { code: "no".into(), message: PERSON.into() };
    case.take(&case.reply_of("b", Outcome::Failed(failure)));
    for (action, take) in [(Action::Note, Some(true)), (Action::Close, None)] {
        act(&mut case, action, take, PERSON);
    }
    case.task.steps[1].approval = Some(Approvers { not_by: Some(PERSON.into()), ..Approvers::default() });
    assert_eq!(case.state(), ProcessState::Closed);
    case
}

fn act(case: &mut Case, action: Action, take: Option<bool>, name: &str) -> Verdict {
    let command = Command { by: name.into(), reason: name.into(), take, ..case.command(action, None) };
    case.apply(crate::machine::Event::Command { command: &command, redelivered: false })
}

fn text(task: &Task) -> String {
    serde_json::to_string(task).unwrap()
}

#[test]
fn rule_46_an_erased_order_has_nothing_that_a_person_or_a_service_wrote_and_keeps_what_happened() {
    let mut case = closed();
    case.all_sent();
    let before = case.task.clone();
    assert!(text(&before).contains(PERSON));
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Taken);
    let after = &case.task;
    assert!(!text(after).contains(PERSON), "{}", text(after));
    assert_eq!((after.process_state, after.erased_at), (ProcessState::Closed, Some(case.now)));
    let told = |task: &Task| task.history.iter().map(|line| (line.at, line.what.clone())).collect::<Vec<_>>();
    assert_eq!(told(after)[..before.history.len()], told(&before), "each line is there");
    let last = after.history.last().unwrap();
    assert_eq!((&*last.who, last.why.as_deref(), &last.what), ("dpo", Some("dpo"), &What::Erased));
    let who: Vec<&str> = after.history.iter().map(|line| &*line.who).collect();
    assert!(who.contains(&ERASED) && who.contains(&"scheduler-1") && who[0] == &*before.history[0].who, "{who:?}");
    let states = |task: &Task| task.steps.iter().map(|step| (step.process_state, step.attempt)).collect::<Vec<_>>();
    assert_eq!(
        (states(after), after.reason.as_ref().map(|reason| &reason.code)),
        (states(&before), before.reason.as_ref().map(|reason| &reason.code))
    );
    assert_eq!(serde_json::from_str::<Task>(&text(after)).unwrap(), *after, "it is read back as it is");
}

#[test]
fn rule_46_an_order_is_erased_once_and_only_when_it_is_over_and_owes_nothing() {
    let mut case = Case::new(&[("a", &[], "")], true);
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Refused(Refused::NotOver));
    case.wake();
    case.done("a");
    assert!(!case.task.unsent.is_empty());
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Refused(Refused::NotOver), "it owes a message");
    case.all_sent();
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Taken);
    let version = case.task.version;
    assert_eq!(act(&mut case, Action::Erase, None, "dpo"), Verdict::Refused(Refused::AlreadyErased));
    assert_eq!(case.task.version, version, "a repeat changes nothing");
}

#[test]
fn rule_46_a_line_of_a_bulk_job_still_names_its_job() {
    let job = "01932b6d0c5f-0123456789abcdef";
    let mut case = closed();
    case.all_sent();
    let line = &mut case.task.history[1];
    (line.what, line.why, line.bulk) = (What::Resubmitted, Some(PERSON.into()), Some(job.into()));
    act(&mut case, Action::Erase, None, "dpo");
    let read: Task = serde_json::from_str(&text(&case.task)).unwrap();
    let line = &read.history[1];
    assert_eq!((&line.what, &line.why, line.bulk.as_deref()), (&What::Resubmitted, &None, Some(job)));
}

#[test]
fn rule_46_the_records_of_others_that_may_quote_an_order_are_those_of_its_time_and_of_its_jobs() {
    let job = "01932b6d0c5f-0123456789abcdef";
    let mut case = closed();
    case.all_sent();
    let first = case.task.history[0].at;
    case.now = first.plus_ms(10_000);
    case.task.history.last_mut().unwrap().at = case.now;
    assert!(case.task.quoted().jobs().is_empty());
    case.task.history[1].bulk = Some(job.into());
    let quoted = case.task.quoted();
    assert_eq!(quoted.jobs().iter().map(|job| &**job).collect::<Vec<_>>(), [job]);
    let late = 60 * 60 * 1_000;
    for (since, until, is_covered) in [
        (first.minus_ms(99), None, true),
        (first.minus_ms(99), Some(first), true),
        (first.minus_ms(99), Some(first.minus_ms(1)), false),
        (case.now.plus_ms(late), None, true),
        (case.now.plus_ms(late + 1), None, false),
    ] {
        assert_eq!(quoted.covers(since, until), is_covered, "{since} {until:?}");
    }
}

#[test]
fn rule_46_an_outage_an_alert_and_a_job_lose_their_texts_once_and_nothing_else() {
    let mut case = closed();
    case.all_sent();
    let (quoted, now) = (case.task.quoted(), case.now);
    let outage = |since| Outage { reason: OutageReason::Failing, problem: PERSON.into(), since };
    let later = now.plus_ms(2 * 60 * 60 * 1_000);
    let health = ServiceHealth {
        service: "payment".into(),
        version: 4,
        era: 1,
        state: Breaker::Open,
        failures_in_a_row: 5,
        until: now,
        backoff: Backoff::new(BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true }),
        since: now,
        release: None,
        outage: Some(outage(now)),
        unsent: Some(outage(later)),
        rejections: Rejections::default(),
        pace: None,
        evidence: Evidence::default(),
    };
    let erased = health.erased(&quoted).unwrap();
    let without = Outage { problem: ERASED.into(), ..outage(now) };
    let expected = ServiceHealth { version: 5, outage: Some(without), ..health.clone() };
    assert_eq!((&erased, erased.erased(&quoted)), (&expected, None), "a later one stays");
    let unsent = ServiceHealth { outage: None, unsent: Some(outage(now)), ..health };
    assert_eq!(&*unsent.erased(&quoted).unwrap().unsent.unwrap().problem, ERASED);

    let alert = |cause: &str, since| Alert {
        cause: cause.into(),
        version: 1,
        since,
        text: PERSON.into(),
        to_do: "Restore it.".into(),
        count: 0,
        at_least: false,
        order_id: None,
        gone_since: None,
        ended_at: None,
        told: Vec::new(),
        telling_until: None,
    };
    let quoting = alert("service/payment/failing", now);
    let expected = Alert { version: 2, text: ERASED.into(), ..quoting.clone() };
    let erased = quoting.erased(&quoted).unwrap();
    assert_eq!((&erased, erased.erased(&quoted)), (&expected, None));
    assert_eq!(alert("order/exhausted/a", now).erased(&quoted), None);
    assert_eq!(alert("service/payment/failing", later).erased(&quoted), None);

    let spec = serde_json::from_value(serde_json::json!({"By": "ada", "Reason": PERSON})).unwrap();
    let planned = Job::plan("j".into(), spec, DryRun::default(), now).unwrap();
    let started = planned.start("ada", PERSON, now).unwrap();
    let cancelled = started.cancel("bob", PERSON, now).unwrap();
    for job in [planned, started, cancelled] {
        let erased = job.erased().unwrap();
        let text = serde_json::to_string(&erased).unwrap();
        assert!(!text.contains(PERSON) && text.contains("ada"), "{text}");
        assert_eq!((erased.version, erased.erased()), (job.version + 1, None));
        assert_eq!(erased.state.is_final(), job.state.is_final());
    }
}
