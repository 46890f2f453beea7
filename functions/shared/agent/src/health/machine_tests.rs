use domain::backoff::BackoffPolicy;

use super::*;

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

fn after(record: &ServiceHealth, event: Event) -> Option<ServiceHealth> {
    after_at(record, event, NOW)
}

fn after_at(record: &ServiceHealth, event: Event, now: Timestamp) -> Option<ServiceHealth> {
    transition(record, event, now, 2, &policy()).map(|change| change.after)
}

const fn failed(failures: u32) -> Event {
    Event::Failed { era: 3, failures }
}

const SUCCEEDED: Event = Event::Succeeded { era: 3 };
const GIVEN_BACK: Event = Event::GivenBack { era: 3 };
const PROBE: Event = Event::Probe { probe_ms: 5_000 };

#[test]
fn every_pair_of_state_and_event_leads_where_it_should() {
    use Breaker::{Closed, HalfOpen, Open};
    let due = NOW.plus_ms(1_000);
    let table = [
        (Closed, PROBE, None),
        (Closed, SUCCEEDED, Some(Closed)),
        (Closed, failed(0), Some(Closed)),
        (Closed, failed(1), Some(Open)),
        (Closed, GIVEN_BACK, None),
        (Closed, Event::Release, None),
        (Closed, Event::ReleaseOver, None),
        (Open, PROBE, Some(HalfOpen)),
        (Open, SUCCEEDED, None),
        (Open, failed(1), None),
        (Open, GIVEN_BACK, None),
        (Open, Event::Release, None),
        (Open, Event::ReleaseOver, None),
        (HalfOpen, PROBE, Some(HalfOpen)),
        (HalfOpen, SUCCEEDED, Some(Closed)),
        (HalfOpen, failed(1), Some(Open)),
        (HalfOpen, GIVEN_BACK, Some(Open)),
        (HalfOpen, Event::Release, None),
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
            for event in [Event::Succeeded { era }, Event::Failed { era, failures: 9 }, Event::GivenBack { era }] {
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
    let well = after(&record(Breaker::Closed), SUCCEEDED).unwrap();
    assert_eq!(well.failures_in_a_row, 0);
    assert_eq!(after(&well, SUCCEEDED), None);
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
    let closed = after(&probing, SUCCEEDED).unwrap();
    assert_eq!((closed.backoff, closed.failures_in_a_row), (Backoff::new(policy().backoff), 0));
    assert_eq!(closed.release, Some(Release::default()));
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
    let take = |record: &ServiceHealth, ms| transition(record, Event::Release, NOW.plus_ms(ms), 0, &policy);
    let mut record = after(&record(Breaker::HalfOpen), SUCCEEDED).unwrap();
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
    let recovering = after(&record(Breaker::HalfOpen), SUCCEEDED).unwrap();
    let open = after(&recovering, Event::Failed { era: 4, failures: 5 }).unwrap();
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
    let first = after(&unknown, Event::Failed { era: 0, failures: 1 }).unwrap();
    assert_eq!((first.version, first.failures_in_a_row, first.since), (1, 1, NOW));
    let later = after_at(&first, Event::Failed { era: 0, failures: 1 }, NOW.plus_ms(5)).unwrap();
    assert_eq!((later.version, later.failures_in_a_row, later.since), (2, 2, NOW));
}
