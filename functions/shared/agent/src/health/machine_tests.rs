#[path = "machine_brake_tests.rs"]
mod brake;

use std::sync::LazyLock;

use domain::backoff::BackoffPolicy;
use domain::ports::Acceptance;

use super::*;
use crate::health::evidence::{is_own, lets_in};

const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_603_000);

fn policy() -> HealthPolicy {
    HealthPolicy {
        failures_to_open: 5,
        backoff: BackoffPolicy { slot_time_ms: 100, ceiling: 4, stay_at_ceiling: true },
        ..HealthPolicy::default()
    }
}

fn record(state: Breaker) -> ServiceHealth {
    ServiceHealth {
        version: 7,
        era: 3,
        state,
        failures_in_a_row: 4,
        until: NOW.plus_ms(1_000),
        since: NOW.minus_ms(1_000),
        backoff: Backoff::new(policy().backoff).next(0),
        ..blank("payment".into(), &policy())
    }
}

fn after(record: &ServiceHealth, event: Event<'_>) -> Option<ServiceHealth> {
    after_at(record, event, NOW)
}

fn after_at(record: &ServiceHealth, event: Event<'_>, now: Timestamp) -> Option<ServiceHealth> {
    transition(record, event, now, 2, &policy()).map(|change| change.after)
}

fn order(n: u32) -> OrderId {
    OrderId::from_idempotency_key("shop", &n.to_string())
}

/// This many failures of as many orders, in as many calls.
fn failures(count: u32) -> Failures<'static> {
    Failures {
        count,
        calls: count,
        orders: (1..=count).map(order).collect(),
        asked: Vec::new(),
        own: Vec::new(),
        reason: OutageReason::Failing,
        problem: "503",
    }
}

/// [`failures`] of the era of [`record`], from 0.
static FAILED: LazyLock<Vec<Failures<'static>>> = LazyLock::new(|| (0..100).map(failures).collect());

fn failed(count: u32) -> Event<'static> {
    failed_in(ERA, count)
}

fn failed_in(era: u64, count: u32) -> Event<'static> {
    Event::Failed { era, is_probe: true, failures: &FAILED[count as usize] }
}

const ERA: u64 = 3;
static ANYONE: LazyLock<OrderId> = LazyLock::new(|| order(0));
static SUCCEEDED: LazyLock<Event<'_>> = LazyLock::new(|| Event::Succeeded { era: ERA, order: *ANYONE, is_taken: true });
const GIVEN_BACK: Event<'_> = Event::GivenBack { era: 3 };
const PROBE: Event<'_> = Event::Probe { probe_ms: 5_000 };
const RELEASE: Event<'_> = Event::Release { failed: 0 };

#[test]
fn every_pair_of_state_and_event_leads_where_it_should() {
    use Breaker::{Closed, HalfOpen, Open};
    let due = NOW.plus_ms(1_000);
    let table = [
        (Closed, PROBE, None),
        (Closed, *SUCCEEDED, Some(Closed)),
        (Closed, failed(0), None),
        (Closed, failed(1), Some(Open)),
        (Closed, GIVEN_BACK, None),
        (Closed, RELEASE, None),
        (Closed, Event::ReleaseOver, None),
        (Open, PROBE, Some(HalfOpen)),
        (Open, *SUCCEEDED, Some(Closed)),
        (Open, failed(1), None),
        (Open, GIVEN_BACK, None),
        (Open, RELEASE, None),
        (Open, Event::ReleaseOver, None),
        (HalfOpen, PROBE, Some(HalfOpen)),
        (HalfOpen, *SUCCEEDED, Some(Closed)),
        (HalfOpen, failed(1), Some(Open)),
        (HalfOpen, GIVEN_BACK, Some(Open)),
        (HalfOpen, RELEASE, None),
        (HalfOpen, Event::ReleaseOver, None),
    ];
    for (state, event, expected) in table {
        let before = record(state);
        let after = after_at(&before, event, due);
        assert_eq!(after.as_ref().map(|after| after.state), expected, "{state:?} {event:?}");
        if let Some(after) = after {
            assert_eq!(after.version, 8, "{state:?} {event:?}");
            let is_new_era = after.state != state || event == PROBE;
            assert_eq!(after.era, 3 + u64::from(is_new_era), "{state:?} {event:?}");
        }
    }
}

#[test]
fn what_began_in_another_era_changes_nothing() {
    for state in [Breaker::Closed, Breaker::Open, Breaker::HalfOpen] {
        for era in [2, 4] {
            for event in
                [Event::Succeeded { era, order: *ANYONE, is_taken: true }, failed_in(era, 9), Event::GivenBack { era }]
            {
                assert_eq!(after(&record(state), event), None, "{state:?} {event:?}");
            }
        }
    }
}

#[test]
fn failures_in_a_row_add_up_until_they_open_it_for_the_back_off() {
    let few = ServiceHealth { failures_in_a_row: 1, ..record(Breaker::Closed) };
    let more = after(&few, failed(3)).unwrap();
    assert_eq!((more.state, more.failures_in_a_row), (Breaker::Closed, 4));
    let open = after(&more, failed(1)).unwrap();
    assert_eq!((open.state, open.failures_in_a_row, open.since), (Breaker::Open, 5, NOW));
    // The second retry of the back-off draws 2 of 0..=2.
    assert_eq!((open.until, open.backoff), (NOW.plus_ms(300), more.backoff.next(2)));
}

#[test]
fn it_is_open_for_one_slot_at_least() {
    let open = transition(&record(Breaker::Closed), failed(1), NOW, 0, &policy()).unwrap().after;
    assert_eq!((open.backoff.wait_time_ms, open.until), (0, NOW.plus_ms(100)));
}

#[test]
fn a_success_between_failures_starts_the_count_afresh_and_a_second_one_changes_nothing() {
    let well = after(&record(Breaker::Closed), *SUCCEEDED).unwrap();
    assert_eq!(well.failures_in_a_row, 0);
    assert_eq!(after(&well, *SUCCEEDED), None);
}

#[test]
fn no_probe_comes_before_its_time_and_an_orphaned_probe_is_followed_by_another() {
    for state in [Breaker::Open, Breaker::HalfOpen] {
        assert_eq!(after_at(&record(state), PROBE, NOW.plus_ms(999)), None);
        let probing = after_at(&record(state), PROBE, NOW.plus_ms(1_000)).unwrap();
        assert_eq!((probing.state, probing.until), (Breaker::HalfOpen, NOW.plus_ms(1_000 + 5_000 + REPORT_MS)));
        assert_eq!(after_at(&probing, PROBE, NOW.plus_ms(1_000)), None);
    }
}

#[test]
fn a_probe_that_fails_opens_it_with_the_next_back_off_and_one_that_succeeds_resets_it() {
    let probing = record(Breaker::HalfOpen);
    let open = after(&probing, failed(1)).unwrap();
    assert_eq!((open.backoff.total_retries, open.failures_in_a_row), (2, 5));
    let closed = after(&probing, *SUCCEEDED).unwrap();
    assert_eq!((closed.backoff, closed.failures_in_a_row), (Backoff::new(policy().backoff), 0));
    assert_eq!(closed.release, Some(Release { rate: 20, ..Release::default() }));
}

#[test]
fn a_probe_that_was_not_made_is_due_at_once_and_the_back_off_stays() {
    let back = after(&record(Breaker::HalfOpen), GIVEN_BACK).unwrap();
    assert_eq!(phase(&back, NOW), Phase::ProbeDue);
    assert_eq!(back.backoff, record(Breaker::HalfOpen).backoff);
}

#[test]
fn a_recovery_gives_permits_by_interval_until_no_request_waits() {
    let policy = HealthPolicy { release_first: 3, release_max: 6, ..policy() };
    let take = |record: &ServiceHealth, ms| transition(record, RELEASE, NOW.plus_ms(ms), 0, &policy);
    let mut record = transition(&record(Breaker::HalfOpen), *SUCCEEDED, NOW, 0, &policy).unwrap().after;
    let mut given = Vec::new();
    for ms in [0, 500, 999, 999, 1_000, 2_000] {
        let change = take(&record, ms);
        given.push(change.as_ref().map_or(0, |change| change.permits));
        record = change.map_or(record, |change| change.after);
    }
    assert_eq!(given, [1, 1, 1, 0, 1, 1]);
    assert_eq!(phase(&record, NOW.plus_ms(5_999)), Phase::Recovering);
    assert_eq!(phase(&record, NOW.plus_ms(6_000)), Phase::Recovered);
    assert_eq!(take(&record, 6_000), None);
    let plain = transition(&record, Event::ReleaseOver, NOW.plus_ms(6_000), 0, &policy).unwrap().after;
    assert_eq!((plain.release, phase(&plain, NOW)), (None, Phase::Healthy));
}

#[test]
fn a_failure_during_the_recovery_ends_it() {
    let recovering = after(&record(Breaker::HalfOpen), *SUCCEEDED).unwrap();
    let open = after(&recovering, failed_in(4, 5)).unwrap();
    assert_eq!((open.state, open.release), (Breaker::Open, None));
}

#[test]
fn a_record_says_where_the_service_stands_at_a_time() {
    let until = NOW.plus_ms(1_000);
    let just_before = until.minus_ms(1);
    assert_eq!(phase(&record(Breaker::Closed), NOW), Phase::Healthy);
    assert_eq!(phase(&record(Breaker::Open), just_before), Phase::Parked { until });
    assert_eq!(phase(&record(Breaker::HalfOpen), just_before), Phase::Probing);
    for state in [Breaker::Open, Breaker::HalfOpen] {
        assert_eq!(phase(&record(state), until), Phase::ProbeDue, "{state:?}");
    }
}

#[test]
fn a_service_is_known_since_its_first_failure() {
    let unknown = blank("payment".into(), &policy());
    let first = after(&unknown, failed_in(0, 1)).unwrap();
    assert_eq!((first.version, first.failures_in_a_row, first.since), (1, 1, NOW));
    let later = after_at(&first, failed_in(0, 1), NOW.plus_ms(5)).unwrap();
    assert_eq!((later.version, later.failures_in_a_row, later.since), (2, 2, NOW));
}

// Whose failures they are.

/// A failure of this order, which is no probe, and asks for no call until then.
fn alone(n: u32, asked_until: Option<Timestamp>) -> Failures<'static> {
    let asked = asked_until.map(|at| OrderAt { order_id: order(n), at }).into_iter().collect();
    Failures { orders: vec![order(n)], asked, ..failures(1) }
}

fn with(record: &ServiceHealth, is_probe: bool, failures: &Failures<'_>) -> ServiceHealth {
    after(record, Event::Failed { era: record.era, is_probe, failures }).unwrap()
}

#[test]
fn rule_17_the_orders_that_failed_before_an_answer_to_another_one_fail_by_themselves() {
    let closed = ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) };
    let two = with(&with(&closed, false, &alone(1, None)), false, &alone(2, None));
    assert_eq!((two.evidence.orders.clone(), two.evidence.calls), (vec![order(1), order(2)], 2));
    let well = after(&two, Event::Succeeded { era: ERA, order: order(2), is_taken: true }).unwrap();
    assert_eq!(well.evidence, Evidence { own: vec![OrderAt { order_id: order(1), at: NOW }], ..Evidence::default() });
    let is_own = |record: &ServiceHealth, n, sent_at| is_own(record, &[], order(n), sent_at, &policy());
    assert!(is_own(&well, 1, NOW) && !is_own(&well, 2, NOW) && !is_own(&well, 1, NOW.plus_ms(1)));
    let all = with(&well, true, &failures(6));
    assert!(all.state == Breaker::Open && !is_own(&all, 1, NOW), "while the service fails nobody can tell");
    let answered = |n| after(&all, Event::Succeeded { era: 4, order: order(n), is_taken: true }).unwrap();
    assert!(is_own(&answered(9), 1, NOW), "as before");
    assert!(!is_own(&answered(9), 2, NOW), "it may have been an outage");
    assert!(!is_own(&answered(1), 1, NOW), "it is answered itself");
}

#[test]
fn rule_17_orders_that_failed_before_an_answer_to_another_one_hold_up_no_other_however_many() {
    let closed = ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) };
    let many = with(&closed, false, &failures(60));
    assert!(!lets_in(&many, order(99), &policy()), "it may be an outage");
    let well = after(&many, Event::Succeeded { era: 4, order: order(99), is_taken: true }).unwrap();
    assert_eq!((well.state, well.evidence.own.len()), (Breaker::Closed, 60));
    let again = with(&well, false, &failures(60));
    assert!(again.state == Breaker::Open && lets_in(&again, order(99), &policy()), "for these alone");
    let own = after(&again, Event::Succeeded { era: again.era, order: order(99), is_taken: true }).unwrap();
    assert!((1..=60).all(|n| is_own(&own, &[], order(n), NOW, &policy())), "now it is clear");
    let others = Failures { orders: (61..=65).map(order).collect(), ..failures(5) };
    assert!(!lets_in(&with(&again, false, &others), order(99), &policy()));
}

#[test]
fn rule_17_the_orders_that_may_fail_by_themselves_are_bounded_and_the_oldest_is_forgotten() {
    let closed = ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) };
    let many = with(&closed, false, &failures(99));
    let well = after(&many, Event::Succeeded { era: 4, order: order(99), is_taken: true }).unwrap();
    assert_eq!((many.evidence.orders.len(), well.evidence.own.len()), (69, 64));
    assert_eq!(well.evidence.own.first().map(|own| own.order_id), Some(order(6)));
}

#[test]
fn rule_17_a_failure_beside_the_probe_leaves_the_breaker_as_it_is_and_an_answer_closes_it() {
    for state in [Breaker::Open, Breaker::HalfOpen] {
        let failed = with(&record(state), false, &alone(1, None));
        let expected = (state, ERA, record(state).until, vec![order(1)]);
        assert_eq!((failed.state, failed.era, failed.until, failed.evidence.orders.clone()), expected);
        assert!(lets_in(&failed, order(2), &policy()) && !lets_in(&failed, order(1), &policy()));
        let five = with(&failed, false, &failures(5));
        assert!(!lets_in(&five, order(9), &policy()));
        let well = after(&failed, Event::Said { era: ERA, order: order(2), said: Said::Yes, answers: &[] }).unwrap();
        assert_eq!((well.state, well.era), (Breaker::Closed, ERA + 1));
    }
}

#[test]
fn rule_17_a_breaker_is_open_for_as_long_as_the_service_asked_two_orders() {
    let asked = NOW.plus_ms(60_000);
    let closed = ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) };
    let one = with(&closed, false, &alone(1, Some(asked)));
    assert_eq!(with(&one, false, &failures(4)).until, NOW.plus_ms(300), "it may be of this order alone");
    let again = with(&one, false, &alone(1, Some(asked.plus_ms(1))));
    assert_eq!(with(&again, false, &failures(4)).until, NOW.plus_ms(300), "also the second time");
    for (other, until) in [(asked.plus_ms(1), asked), (asked.minus_ms(1), asked.minus_ms(1))] {
        let two = with(&one, false, &alone(2, Some(other)));
        assert_eq!(with(&two, false, &failures(4)).until, until);
        let well = after(&two, Event::Succeeded { era: ERA, order: order(9), is_taken: true }).unwrap();
        assert_eq!(well.evidence.asked, [], "it takes calls again");
    }
    let probing = ServiceHealth { state: Breaker::HalfOpen, ..one };
    assert_eq!(with(&probing, true, &alone(2, Some(asked))).until, asked, "the next probe too");
    let later = with(&probing, true, &alone(2, Some(NOW.plus_ms(1))));
    assert_eq!(later.until, NOW.plus_ms(300), "the back-off still counts");
}

#[test]
fn a_release_begins_with_the_calls_before_the_outage_and_with_half_of_those_of_a_release_that_failed() {
    let busy = Failures { calls: 500, ..failures(20) };
    let open = with(&ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) }, false, &busy);
    let rate_after = |open: &ServiceHealth| {
        let probing = after_at(open, PROBE, open.until).unwrap();
        let well = Event::Succeeded { era: probing.era, order: *ANYONE, is_taken: true };
        after_at(&probing, well, open.until).unwrap()
    };
    let closed = rate_after(&open);
    assert_eq!(closed.release, Some(Release { rate: 500, ..Release::default() }));
    let failing = with(&closed, false, &failures(20));
    assert_eq!(rate_after(&failing).release, Some(Release { rate: 250, ..Release::default() }));
}

fn outage(reason: OutageReason) -> Outage {
    Outage { reason, problem: "403".into(), since: NOW.minus_ms(9_000) }
}

fn out(state: Breaker, reason: OutageReason) -> ServiceHealth {
    ServiceHealth { outage: Some(outage(reason)), ..record(state) }
}

#[test]
fn the_reason_of_an_outage_is_that_of_its_last_failure_until_an_operator_has_to_see_it() {
    use OutageReason::{Failing, Misconfigured, Rejections};
    let fails = |known: &ServiceHealth, reason| {
        let failures = Failures { reason, ..failures(9) };
        after(known, Event::Failed { era: ERA, is_probe: true, failures: &failures }).unwrap()
    };
    let closed = record(Breaker::Closed);
    for (reason, is_alerted) in [(Failing, false), (Misconfigured, true)] {
        let open = fails(&closed, reason);
        let outage = Outage { reason, problem: "503".into(), since: NOW };
        assert_eq!((open.outage, open.unsent), (Some(outage.clone()), is_alerted.then_some(outage)), "{reason:?}");
    }
    for (before, reason, expected, is_alerted) in [
        (Failing, Failing, Failing, false),
        (Failing, Misconfigured, Misconfigured, true),
        (Misconfigured, Failing, Misconfigured, false),
        (Misconfigured, Misconfigured, Misconfigured, false),
        (Rejections, Misconfigured, Rejections, false),
    ] {
        let open = fails(&out(Breaker::HalfOpen, before), reason);
        // A reason that stays keeps the problem that it is about.
        let known = outage(before);
        let problem = if reason == expected { "503".into() } else { known.problem.clone() };
        let now = Outage { reason: expected, problem, ..known };
        assert_eq!((open.outage, open.unsent), (Some(now.clone()), is_alerted.then_some(now)), "{before:?} {reason:?}");
    }
}

#[test]
fn an_alert_that_is_not_sent_yet_outlives_the_outage() {
    let unsent = Some(outage(OutageReason::Misconfigured));
    let probing = ServiceHealth { unsent: unsent.clone(), ..out(Breaker::HalfOpen, OutageReason::Misconfigured) };
    let closed = after(&probing, *SUCCEEDED).unwrap();
    assert_eq!((closed.outage.clone(), closed.unsent.clone()), (None, unsent.clone()));
    let failing = after(&closed, failed_in(closed.era, 9)).unwrap();
    assert_eq!(failing.unsent, unsent);
}

#[test]
fn the_text_of_a_problem_is_bounded() {
    let problem = "x".repeat(ERROR_CHARS_MAX + 1);
    let failures = Failures { problem: &problem, ..failures(9) };
    let failed = Event::Failed { era: ERA, is_probe: true, failures: &failures };
    assert_eq!(after(&record(Breaker::Closed), failed).unwrap().outage.unwrap().problem.len(), ERROR_CHARS_MAX);
}

#[test]
fn rule_23_what_seems_to_begin_later_than_clocks_differ_is_over() {
    let at = |state, release, ahead_ms| {
        let since = NOW.plus_ms(ahead_ms);
        phase(&ServiceHealth { since, until: since.plus_ms(15_500), release, ..record(state) }, NOW)
    };
    let release = Some(Release::default());
    for (state, release, before, after) in [
        (Breaker::Open, None, Phase::Parked { until: NOW.plus_ms(16_500) }, Phase::ProbeDue),
        (Breaker::HalfOpen, None, Phase::Probing, Phase::ProbeDue),
        (Breaker::Closed, release, Phase::Recovering, Phase::Recovered),
    ] {
        assert_eq!((at(state, release, 1_000), at(state, release, 1_001)), (before, after), "{state:?}");
        assert_eq!(at(state, release, 3_600_000), after, "{state:?}");
    }
    let ahead = ServiceHealth { since: NOW.plus_ms(3_600_000), until: NOW.plus_ms(3_601_000), ..record(Breaker::Open) };
    let probing = after(&ahead, PROBE).unwrap();
    assert_eq!((probing.state, probing.since, probing.until), (Breaker::HalfOpen, NOW, NOW.plus_ms(6_000)));
}
