//! The brake on mass rejection (rule 18).

use super::*;

/// Answers of this moment.
fn answers(yes: u32, no: u32) -> [Answers; 1] {
    [Answers { from: NOW, yes, no }]
}

fn accepted() -> Option<Acceptance> {
    Some(Acceptance { by: "ada".into(), reason: "sold out".into(), at: NOW })
}

/// The outcome of these answers for a closed service.
fn said(known: &ServiceHealth, yes: u32, no: u32) -> ServiceHealth {
    let said = if no > 0 { Said::No } else { Said::Yes };
    after(known, Event::Said { era: ERA, order: *ANYONE, said, answers: &answers(yes, no) }).unwrap()
}

#[test]
fn f65_it_opens_when_most_of_enough_answers_are_rejections() {
    let closed = ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) };
    for (yes, no, opens) in [(0, 19, false), (10, 10, false), (0, 20, true), (9, 11, true), (100, 99, false)] {
        let after = said(&closed, yes, no);
        assert_eq!(after.state == Breaker::Open, opens, "{yes} {no}");
        assert_eq!(after.is_braked(), opens, "{yes} {no}");
        assert_eq!(after.rejections.answers, answers(yes, no), "{yes} {no}");
    }
    let open = said(&closed, 9, 11);
    let expected = Outage {
        reason: OutageReason::Rejections,
        problem: "11 of the last 20 answers were rejections".into(),
        since: NOW,
    };
    assert_eq!((open.outage, open.unsent), (Some(expected.clone()), Some(expected)));
}

#[test]
fn answers_of_several_writes_add_up_for_a_minute() {
    let closed = ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) };
    let first = said(&closed, 0, 12);
    assert_eq!(first.state, Breaker::Closed);
    assert!(said(&first, 0, 8).is_braked());
    let later = NOW.plus_ms(60_000);
    let more = [Answers { from: later, yes: 0, no: 8 }];
    let after =
        after_at(&first, Event::Said { era: ERA, order: *ANYONE, said: Said::No, answers: &more }, later).unwrap();
    assert_eq!((after.state, after.rejections.answers), (Breaker::Closed, more.to_vec()));
}

#[test]
fn answers_outlive_an_opening_by_failures_and_its_release() {
    let known = said(&ServiceHealth { failures_in_a_row: 0, ..record(Breaker::Closed) }, 0, 12);
    let open = after(&known, failed(9)).unwrap();
    let probing = after_at(&open, PROBE, open.until).unwrap();
    let closed = after(&probing, Event::Succeeded { era: probing.era, order: *ANYONE, is_taken: true }).unwrap();
    assert_eq!(closed.rejections, known.rejections);
    let plain = after_at(&closed, Event::ReleaseOver, closed.since.plus_ms(600_000)).unwrap();
    assert_eq!(plain.rejections, known.rejections);
}

#[test]
fn the_end_of_a_probe_of_a_braked_service_is_told_by_its_answer() {
    let braked = out(Breaker::HalfOpen, OutageReason::Rejections);
    let empty = [];
    let no = Event::Said { era: ERA, order: *ANYONE, said: Said::No, answers: &empty };
    let again = after(&braked, no).unwrap();
    assert_eq!((again.state, again.is_braked(), again.backoff.total_retries), (Breaker::Open, true, 2));
    let fails = after(&braked, failed(1)).unwrap();
    assert_eq!((fails.state, fails.is_braked()), (Breaker::Open, true), "a failing service does not end it");
    let undone = after(&braked, *SUCCEEDED).unwrap();
    assert_eq!((undone.state, undone.is_braked(), undone.until), (Breaker::Open, true, NOW.plus_ms(100)));
    let yes =
        after(&braked, Event::Said { era: ERA, order: *ANYONE, said: Said::Yes, answers: &answers(1, 0) }).unwrap();
    assert_eq!((yes.state, yes.outage, yes.rejections), (Breaker::Closed, None, Rejections::default()));
    assert_eq!(yes.release, Some(Release { rate: 20, ..Release::default() }));
    // Of a service that failed, a rejection is a sign of life, as before.
    let alive = after(&out(Breaker::HalfOpen, OutageReason::Failing), no).unwrap();
    assert_eq!((alive.state, alive.outage), (Breaker::Closed, None));
}

#[test]
fn without_the_brake_a_rejection_closes_it() {
    let policy = HealthPolicy { rejections: None, ..policy() };
    let no = Event::Said { era: ERA, order: *ANYONE, said: Said::No, answers: &[] };
    let braked = out(Breaker::HalfOpen, OutageReason::Rejections);
    assert_eq!(transition(&braked, no, NOW, 0, &policy).unwrap().after.state, Breaker::Closed);
    let no = Event::Said { era: ERA, order: *ANYONE, said: Said::No, answers: &answers(0, 99) };
    assert_eq!(transition(&record(Breaker::Closed), no, NOW, 0, &policy).unwrap().after.state, Breaker::Closed);
}

#[test]
fn accepted_rejections_count_until_they_are_no_majority_any_more() {
    let rejections = Rejections { answers: answers(0, 20).to_vec(), accepted: accepted() };
    let known = ServiceHealth { rejections, failures_in_a_row: 0, ..record(Breaker::Closed) };
    let still = said(&known, 0, 9);
    assert_eq!((still.state, still.rejections.accepted.clone()), (Breaker::Closed, accepted()));
    let over = said(&still, 29, 0);
    assert_eq!((over.state, over.rejections.accepted.clone()), (Breaker::Closed, None));
    assert!(said(&over, 0, 1).is_braked(), "it can act again");
    // Few answers end nothing.
    let later = NOW.plus_ms(60_000);
    let few = [Answers { from: later, yes: 19, no: 0 }];
    let after =
        after_at(&known, Event::Said { era: ERA, order: *ANYONE, said: Said::Yes, answers: &few }, later).unwrap();
    assert_eq!(after.rejections.accepted, accepted());
}
