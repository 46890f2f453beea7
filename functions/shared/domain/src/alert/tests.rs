use super::*;
use crate::backoff::{Backoff, BackoffPolicy};
use crate::machine::testing::Case;
use crate::ports::{
    Breaker, DeadLetterOutcome, DeadLetterRecord, Evidence, Outage, OutageReason, Rejections, ServiceHealth, surplus,
};
use crate::situation::explain;
use crate::tally::Numbers;
use crate::task::{Approvers, StepState, Task};

const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_007);

/// For how long the service holds requests back.
const HELD_MS: u64 = 60_000;

fn key() -> Arc<str> {
    "order/rejected/b".into()
}

fn task() -> Task {
    let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "on_rejected = \"hold\"")], true);
    case.wake();
    case.done("a");
    case.rejected("b");
    case.task
}

fn sinks() -> [Arc<str>; 2] {
    ["bus".into(), "team".into()]
}

/// The causes while this many orders wait for the same.
fn waiting(orders: usize) -> Causes {
    let (mut causes, task) = (Causes::default(), task());
    (0..orders).for_each(|_| causes.order(&task, NOW));
    causes
}

/// The alert after looks at these times with these causes, from the last record.
fn looked(mut alert: Option<Alert>, causes: &Causes, after_ms: &[u64]) -> Alert {
    for ms in after_ms {
        alert = causes.next(&key(), alert.as_ref(), &sinks(), NOW.plus_ms(*ms)).or(alert);
    }
    alert.unwrap()
}

fn begun() -> Alert {
    looked(None, &waiting(3), &[0])
}

fn health(reason: OutageReason, state: Breaker) -> ServiceHealth {
    ServiceHealth {
        service: "payment".into(),
        version: 1,
        era: 1,
        state,
        failures_in_a_row: 5,
        until: NOW.plus_ms(HELD_MS),
        backoff: Backoff::new(BackoffPolicy { slot_time_ms: 100, ceiling: 5, stay_at_ceiling: true }),
        since: NOW,
        release: None,
        outage: Some(Outage { reason, problem: "HTTP 503".into(), since: NOW }),
        unsent: None,
        rejections: Rejections::default(),
        pace: None,
        evidence: Evidence::default(),
    }
}

#[test]
fn the_times_are_those_of_the_documents() {
    let minutes = [OUTAGE_MS, DEAD_LETTER_MS, TELLING_MS, RETRY_MS_MAX, TRIED_MS].map(|ms| ms / 60_000);
    assert_eq!((minutes, RETRY_MS), ([5, 60, 1, 15, 24 * 60], 10_000));
}

#[test]
fn an_alert_is_kept_by_its_cause() {
    assert_eq!(begun().key(), &*key());
}

#[test]
fn orders_of_one_cause_that_differ_have_the_usual_words_in_any_order() {
    let of_service = task();
    let mut of_people = task();
    let step = of_people.steps.iter_mut().find(|step| step.process_state == StepState::Error).unwrap();
    step.approval = Some(Approvers { role: None, not_by: None, since_version: 1 });
    let words = |tasks: &[&Task]| {
        let mut causes = Causes::default();
        tasks.iter().for_each(|task| causes.order(task, NOW));
        let alert = looked(None, &causes, &[0]);
        (alert.text, alert.to_do)
    };
    let (approval, usual) = (words(&[&of_people, &of_people]), words(&[&of_service]));
    assert!(approval.0.contains("was not approved") && usual.0.contains(explain("rejected").0), "{approval:?}");
    for tasks in [[&of_people, &of_service, &of_people], [&of_service, &of_people, &of_people]] {
        assert_eq!(words(&tasks), usual);
    }
}

#[test]
fn orders_that_wait_for_the_same_are_one_cause() {
    let alert = looked(None, &waiting(500), &[0]);
    assert_eq!((&*alert.cause, alert.version, alert.count, alert.at_least), ("order/rejected/b", 1, 500, false));
    assert_eq!(waiting(500).keys().count(), 1);
    assert!(
        alert.text.starts_with("Orders wait for an operator at b: rejected. The service refused"),
        "{}",
        alert.text
    );
    assert_eq!(waiting(500).next(&key(), Some(&alert), &sinks(), NOW.plus_ms(1)), None, "nothing changed");
    let more = waiting(501).next(&key(), Some(&alert), &sinks(), NOW.plus_ms(1)).unwrap();
    assert_eq!((more.count, more.version, more.since), (501, 2, NOW));
}

#[test]
fn an_alert_ends_once_its_cause_was_gone_for_a_minute() {
    let none = Causes::default();
    let gone = looked(Some(begun()), &none, &[10, 20, GONE_MS + 9]);
    assert_eq!((gone.gone_since, gone.ended_at, gone.version), (Some(NOW.plus_ms(10)), None, 2));
    assert_eq!((gone.count, gone.at_least), (0, false), "no order waits for it");
    let back = looked(Some(gone.clone()), &waiting(1), &[GONE_MS + 10]);
    assert_eq!((back.gone_since, back.ended_at, back.since), (None, None, NOW), "it is the same alert");
    let over = looked(Some(gone), &none, &[GONE_MS + 10]);
    assert_eq!((over.ended_at, over.count), (Some(NOW.plus_ms(10)), 0), "it ended when the cause was gone");
    assert_eq!(none.next(&key(), Some(&over), &sinks(), NOW.plus_ms(GONE_MS * 2)), None);
    let mut again = Causes::default();
    again.order(&task(), NOW.plus_ms(GONE_MS * 3));
    let again = looked(Some(over), &again, &[GONE_MS * 3]);
    assert_eq!((again.ended_at, again.since), (None, NOW.plus_ms(GONE_MS * 3)), "it is another alert");
}

#[test]
fn a_time_of_a_fast_clock_neither_ends_an_alert_nor_keeps_it() {
    let ahead = Alert { gone_since: Some(NOW.plus_ms(3_600_000)), ..begun() };
    let gone = looked(Some(ahead), &Causes::default(), &[10, GONE_MS + 9]);
    assert_eq!((gone.gone_since, gone.ended_at), (Some(NOW.plus_ms(10)), None));
    let told = |ms| Alert { telling_until: Some(NOW.plus_ms(ms)), ..begun() }.is_being_told(NOW);
    assert_eq!([0, 1, TELLING_MS, 3_600_000].map(told), [false, true, true, false]);
    let retried =
        |ms| Alert { told: vec![Told { not_before: Some(NOW.plus_ms(ms)), ..Told::of("bus".into()) }], ..begun() };
    let waits = [0, 1, RETRY_MS_MAX, 3_600_000].map(|ms| retried(ms).turn("bus", NOW).is_none());
    assert_eq!(waits, [false, true, true, false]);
    let ended = Alert { ended_at: Some(NOW.plus_ms(3_600_000)), told: vec![Told::of("bus".into())], ..begun() };
    let after = looked(Some(ended), &Causes::default(), &[0, TRIED_MS]);
    assert!(after.told.is_empty(), "it is given up a day later, and not an hour after that");
    let mut failing = health(OutageReason::Failing, Breaker::Open);
    failing.outage.as_mut().unwrap().since = NOW.plus_ms(3_600_000);
    let mut causes = Causes::default();
    causes.service(&failing, NOW);
    assert_eq!(causes.keys().count(), 1, "nobody knows since when it fails");
}

#[test]
fn an_alert_does_not_end_while_not_all_orders_are_looked_at() {
    let mut part = Causes::default();
    part.looked_at_a_part_of(Source::Orders);
    let missed = looked(Some(begun()), &part, &[10, GONE_MS * 2]);
    assert_eq!((missed.gone_since, missed.ended_at), (None, None));
    let mut counted = waiting(3);
    counted.looked_at_a_part_of(Source::Orders);
    assert!(looked(None, &counted, &[0]).at_least);
    let service = Alert { cause: "service/payment/failing".into(), ..begun() };
    let after = part.next(&service.cause, Some(&service), &sinks(), NOW.plus_ms(10)).unwrap();
    assert_eq!(after.gone_since, Some(NOW.plus_ms(10)), "all services were looked at");
}

#[test]
fn causes_beyond_the_limit_have_no_alert_and_end_none() {
    let mut causes = Causes::default();
    let mut task = task();
    for n in 0..=CAUSES_MAX {
        let reason = task.reason.as_mut().unwrap();
        reason.code = format!("code-{n}").into();
        causes.order(&task, NOW);
    }
    causes.service(&health(OutageReason::Misconfigured, Breaker::Open), NOW);
    assert_eq!(causes.keys().count(), CAUSES_MAX + 1, "orders leave room for services");
    assert_eq!(looked(Some(begun()), &causes, &[10, GONE_MS * 2]).ended_at, None);
}

#[test]
fn a_service_is_a_cause_while_it_needs_an_operator_or_fails_for_long() {
    let keys = |reason, state, after_ms| {
        let mut causes = Causes::default();
        causes.service(&health(reason, state), NOW.plus_ms(after_ms));
        causes.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(keys(OutageReason::Misconfigured, Breaker::Open, 0), ["service/payment/misconfigured"]);
    assert_eq!(keys(OutageReason::Rejections, Breaker::HalfOpen, 0), ["service/payment/rejections"]);
    assert_eq!(keys(OutageReason::Failing, Breaker::Open, OUTAGE_MS - 1), [""; 0]);
    assert_eq!(keys(OutageReason::Failing, Breaker::Open, OUTAGE_MS), ["service/payment/failing"]);
    assert_eq!(keys(OutageReason::Failing, Breaker::Closed, OUTAGE_MS), [""; 0]);
    assert_eq!(keys(OutageReason::Misconfigured, Breaker::Open, HELD_MS + OUTAGE_MS - 1).len(), 1);
    assert_eq!(keys(OutageReason::Misconfigured, Breaker::Open, HELD_MS + OUTAGE_MS), [""; 0], "nobody calls it");
}

#[test]
fn a_second_alert_about_one_outage_has_an_id_of_its_own() {
    let mut causes = Causes::default();
    let failing = health(OutageReason::Failing, Breaker::Open);
    causes.service(&failing, NOW.plus_ms(OUTAGE_MS));
    let key: Arc<str> = "service/payment/failing".into();
    let first = causes.next(&key, None, &sinks(), NOW.plus_ms(OUTAGE_MS)).unwrap();
    assert_eq!(first.since, NOW, "it began with the outage");
    let over = Alert { ended_at: Some(NOW.plus_ms(OUTAGE_MS + GONE_MS)), ..first.clone() };
    let second = causes.next(&key, Some(&over), &sinks(), NOW.plus_ms(OUTAGE_MS * 2)).unwrap();
    assert_ne!(first.event(Turn::Began, NOW).id, second.event(Turn::Began, NOW).id);
}

#[test]
fn rule_37_the_late_orders_of_a_workflow_are_one_cause() {
    let span = |late| {
        let orders = crate::tally::Orders { late, ..Default::default() };
        let flow = crate::tally::Flow { orders, ..Default::default() };
        let workflows = [("shop".into(), flow)].into();
        crate::tally::Span { at: NOW, tally: crate::tally::Tally { workflows } }
    };
    let numbers = |spans| crate::tally::Numbers { spans, ..Default::default() };
    let mut causes = Causes::default();
    causes.numbers(&numbers(vec![span(2), span(0), span(3)]), NOW);
    assert_eq!(causes.keys().map(ToString::to_string).collect::<Vec<_>>(), ["late/shop"]);
    let alert = causes.next(&"late/shop".into(), None, &[], NOW).unwrap();
    assert_eq!(
        (alert.count, alert.at_least, &*alert.text),
        (5, false, "Orders of shop are not finished at their deadline.")
    );
    let mut none = Causes::default();
    none.numbers(&numbers(vec![span(0)]), NOW);
    assert_eq!(none.keys().count(), 0);
}

#[test]
fn rule_5_results_that_contradict_the_end_of_orders_are_one_cause() {
    let orders = crate::tally::Orders { contradicted: 2, ..Default::default() };
    let flow = crate::tally::Flow { orders, ..Default::default() };
    let span = crate::tally::Span { at: NOW, tally: crate::tally::Tally { workflows: [("shop".into(), flow)].into() } };
    let mut causes = Causes::default();
    causes.numbers(&crate::tally::Numbers { spans: vec![span], ..Default::default() }, NOW);
    assert_eq!(causes.keys().map(ToString::to_string).collect::<Vec<_>>(), ["contradicted/shop"]);
    let alert = causes.next(&"contradicted/shop".into(), None, &[], NOW).unwrap();
    assert!(alert.count == 2 && alert.to_do.contains("stepwarden list --contradicted"), "{alert:?}");
}

#[test]
fn a_dead_letter_that_no_order_shows_is_a_cause_for_an_hour() {
    let letter = |outcome| DeadLetterRecord {
        message_id: "m".into(),
        queue: None,
        order_id: None,
        receive_count: 5,
        at: NOW,
        settled_at: NOW,
        outcome,
        message: "".into(),
        body: None,
    };
    let keys = |outcome, after_ms| {
        let mut causes = Causes::default();
        causes.dead_letter(&letter(outcome), NOW.plus_ms(after_ms));
        causes.keys().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(keys(DeadLetterOutcome::Unreadable, 0), ["dead-letter/Unreadable"]);
    assert_eq!(keys(DeadLetterOutcome::LostCommand, DEAD_LETTER_MS - 1), ["dead-letter/LostCommand"]);
    assert_eq!(keys(DeadLetterOutcome::LostCommand, DEAD_LETTER_MS), [""; 0]);
    assert_eq!(keys(DeadLetterOutcome::Refused, 0), ["dead-letter/Refused"]);
    assert_eq!(keys(DeadLetterOutcome::Held, 0), [""; 0], "its order is in `Error`");
    let mut of_a_fast_clock = letter(DeadLetterOutcome::Unreadable);
    of_a_fast_clock.settled_at = NOW.plus_ms(3_600_000);
    assert!(!is_recent(&of_a_fast_clock, NOW));
}

/// The alert, after it was told to some sinks.
fn told(alert: &Alert, tried: &[(&str, bool)], now: Timestamp) -> Alert {
    let telling = alert.before_telling(sinks().iter().filter(|sink| alert.turn(sink, now).is_some()), now);
    let tried: Vec<_> = tried.iter().map(|(sink, took)| ((*sink).into(), *took)).collect();
    telling.after_telling(&tried, now)
}

fn turns(alert: &Alert, now: Timestamp) -> [Option<Turn>; 2] {
    sinks().map(|sink| alert.turn(&sink, now))
}

/// The end of an alert.
fn ended(alert: Alert, now_ms: u64) -> Alert {
    let gone = Alert { gone_since: Some(NOW.plus_ms(now_ms - GONE_MS)), ..alert };
    looked(Some(gone), &Causes::default(), &[now_ms])
}

#[test]
fn each_sink_is_told_of_the_begin_and_of_the_end_once() {
    let begun = begun();
    assert_eq!(turns(&begun, NOW), [Some(Turn::Began), Some(Turn::Began)]);
    let both = told(&begun, &[("bus", true), ("team", true)], NOW);
    assert_eq!(turns(&both, NOW), [None, None]);
    let over = ended(both, GONE_MS);
    assert_eq!((turns(&over, NOW), over.is_over()), ([Some(Turn::Ended), Some(Turn::Ended)], false));
    let half = told(&over, &[("bus", true)], NOW);
    assert_eq!((turns(&half, NOW), half.is_over()), ([None, Some(Turn::Ended)], false));
    assert!(told(&half, &[("team", true)], NOW).is_over());
    let late = NOW.plus_ms(GONE_MS);
    let of_another_sink = Causes::default().next(&key(), Some(&half), &sinks()[..1], late).unwrap();
    assert!(of_another_sink.is_over(), "the sink is gone");
    let given_up = Causes::default().next(&key(), Some(&half), &sinks(), late.plus_ms(TRIED_MS)).unwrap();
    assert!(given_up.is_over(), "a sink that failed for a day is not tried any more");
}

#[test]
fn a_sink_that_may_have_learned_of_the_begin_is_told_of_the_end() {
    let killed = begun().before_telling(sinks()[..1].iter(), NOW);
    assert_eq!(turns(&killed, NOW), [Some(Turn::Began), Some(Turn::Began)], "it is told again");
    assert_eq!(turns(&ended(killed, GONE_MS), NOW), [Some(Turn::Ended), None], "the other one was never tried");
}

#[test]
fn a_cause_that_comes_again_is_told_to_a_sink_that_did_not_take_the_end() {
    let both = told(&begun(), &[("bus", true), ("team", true)], NOW);
    let over = told(&ended(both, GONE_MS), &[("bus", true), ("team", false)], NOW);
    let again = looked(Some(over), &waiting(1), &[GONE_MS * 2]);
    assert_eq!(turns(&again, NOW.plus_ms(GONE_MS * 2)), [Some(Turn::Began), Some(Turn::Began)]);
}

#[test]
fn a_sink_that_fails_waits_twice_as_long_after_each_failure() {
    let (mut alert, mut now, mut waits) = (begun(), NOW, Vec::new());
    for _ in 0..9 {
        alert = told(&alert, &[("team", false)], now);
        let until = alert.told.iter().find(|told| &*told.sink == "team").unwrap().not_before.unwrap();
        assert_eq!((alert.turn("team", until.plus_ms(1)), turns(&alert, now)[1]), (Some(Turn::Began), None));
        waits.push(now.ms_until(until) / 1_000);
        now = until;
    }
    assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 900, 900]);
    let over = ended(alert.clone(), GONE_MS);
    assert_eq!(turns(&over, NOW)[1], Some(Turn::Ended), "the end is tried at once");
    let took = told(&alert, &[("team", true)], now);
    assert_eq!(took.told.iter().map(|told| told.failures).collect::<Vec<_>>(), [0, 0]);
}

#[test]
fn an_event_has_the_same_id_in_every_repeat_and_another_at_the_end() {
    let (alert, later) = (begun(), NOW.plus_ms(5));
    assert_eq!(&*alert.event(Turn::Began, NOW).id, "alert/order/rejected/b/1795195603007/AlertBegan");
    assert_eq!(alert.event(Turn::Began, NOW).id, alert.event(Turn::Began, later).id);
    assert_ne!(alert.event(Turn::Began, NOW).id, alert.event(Turn::Ended, NOW).id);
    let data: serde_json::Value = serde_json::from_str(alert.event(Turn::Began, NOW).data.text()).unwrap();
    assert_eq!(
        (&data["Cause"], &data["Count"], &data["AtLeast"]),
        (&"order/rejected/b".into(), &3.into(), &false.into())
    );
    assert!(data["ToDo"].as_str().unwrap().starts_with("Resubmit once"), "{data}");
}

#[test]
fn those_that_are_on_come_first_and_the_last_ended_are_kept() {
    let of = |cause: &str, since_ms, ended_ms: Option<u64>| Alert {
        cause: cause.into(),
        since: NOW.plus_ms(since_ms),
        ended_at: ended_ms.map(|ms| NOW.plus_ms(ms)),
        ..begun()
    };
    let mut alerts = [of("short", 9, Some(10)), of("long", 1, Some(20)), of("on", 0, None), of("new", 2, None)];
    alerts.sort_by(Record::compare);
    assert_eq!(alerts.each_ref().map(|alert| &*alert.cause), ["new", "on", "long", "short"]);
    let gone = surplus((0..150).map(|n| of(&n.to_string(), 0, Some(n))).collect::<Vec<_>>());
    assert!(gone.len() == 50 && gone.iter().all(|alert| alert.ended_at < Some(NOW.plus_ms(50))), "the first ended");
}

#[test]
fn rule_40_the_approvals_that_are_asked_for_are_one_cause_of_their_workflow() {
    let numbers = |asked, answered| {
        let orders = crate::tally::Orders { asked, answered, ..Default::default() };
        let flow = crate::tally::Flow { orders, ..Default::default() };
        let total = crate::tally::Tally { workflows: [("shop".into(), flow)].into() };
        Numbers { total, ..Numbers::default() }
    };
    let mut causes = Causes::default();
    causes.approvals(&numbers(3, 1), NOW);
    assert_eq!(causes.keys().map(ToString::to_string).collect::<Vec<_>>(), ["approval/shop"]);
    let alert = causes.next(&"approval/shop".into(), None, &[], NOW).unwrap();
    assert_eq!((alert.count, &*alert.text), (2, "Orders of shop wait for an approval."));
    let mut causes = Causes::default();
    causes.approvals(&numbers(3, 3), NOW);
    assert_eq!(causes.keys().count(), 0);
}
