//! The auditor sees orders that turn round or stop for no reason, and calls for what is over.

use std::sync::Arc;

use rehearsal::seen::{Ending, Heard, Kind, OrderState, Record, Seen, StepState, WANTED_MS, Way};
use rehearsal::watcher::Watcher;
use tests::simulation::auditor::Invariant;

use super::auditor::{complains, is_good};
use super::histories::{History, NO, WITHIN_MS, finish, free, order, step_of, undo_of};

/// The code of a 409 while a call with the key is at work.
const IN_USE: &str = "in-use";

/// The order turns round for this reason.
fn turn(record: &mut Record, reason: &str) {
    record.state = OrderState::Compensating;
    record.reason = Some((reason.into(), record.version));
    for step in &mut record.steps {
        free(step);
        (step.way, step.started_ms) = (Way::Undo, None);
    }
}

/// The agent takes a 409 for a no. Another message with the request was at work, which the queue made or not.
fn taken_for_a_no(is_copied: bool) -> History {
    let mut history = History::claimed();
    let of = step_of(0, 1);
    history.hand(of, is_copied, true);
    history.see(Seen::Handed {
        of,
        to: "another".into(),
        until_ms: i64::MAX,
        budget_ms: 1_000,
        message: "other".into(),
        overlaps: false,
        is_copied,
        fresh_until_ms: None,
    });
    history.call(of, "key");
    history.hear(of, Heard::Settled);
    let (by, code, clock_ms) = ("agent".into(), Some(Arc::from(IN_USE)), history.now_ms);
    history.see(Seen::Replied { of, ending: Ending::Failed, output: None, kept: None, code, by, clock_ms });
    history
}

#[test]
fn invariant_17_an_order_that_turns_round_although_its_service_was_only_at_work() {
    complains(Invariant::Reason, taken_for_a_no(false), |history| history.write(|record| turn(record, "rejected")));
    // Nobody can tell two messages apart that the queue made of one.
    let mut history = taken_for_a_no(true);
    history.write(|record| turn(record, "rejected"));
    is_good(&history);
    let mut history = History::claimed();
    history.reject(step_of(0, 1));
    history.write(|record| turn(record, "rejected"));
    is_good(&history);
}

#[test]
fn invariant_17_a_rejection_that_holds_the_order_or_skips_a_step_and_was_none() {
    // The step is counted as rejected; what becomes of the order is another matter.
    complains(Invariant::Reason, taken_for_a_no(false), |history| {
        history.count(0, IN_USE);
    });
    let undo_fails = |is_meant: bool| {
        let mut history = History::compensating();
        let of = undo_of(0, 2);
        history.call(of, "key");
        if is_meant {
            history.see(Seen::Refused { of });
        }
        history.hear(of, Heard::No(NO.into()));
        history.reply(of, Ending::Failed);
        let now_ms = history.now_ms;
        history.write(|record| {
            record.state = OrderState::Error;
            record.reason = Some(("compensation-failed".into(), record.version));
            record.unsent = vec![(Kind::NeedsOperator, record.version)];
            let step = &mut record.steps[0];
            free(step);
            step.state = StepState::Error;
            step.failures = 1;
            step.last_error = Some((NO.into(), now_ms));
        });
        history.complaints()
    };
    assert_eq!(undo_fails(true), []);
    assert_eq!(undo_fails(false), [Invariant::Reason]);
}

#[test]
fn invariant_17_an_attempt_that_expires_although_nothing_was_wrong() {
    let expired = |troubled_ms: i64| {
        let mut history = History::claimed();
        history.auditor.troubled(troubled_ms);
        history.expire(0);
        history.count(0, "expired");
        history.complaints()
    };
    assert_eq!(expired(WITHIN_MS), []);
    assert_eq!(expired(-20_000), [Invariant::Reason]);
}

/// The first step is done, an hour ago.
fn done() -> History {
    let mut history = History::claimed();
    history.hand(step_of(0, 1), false, true);
    history.succeed(0);
    history.write(|record| finish(&mut record.steps[0]));
    history
}

#[test]
fn invariant_18_a_call_for_a_step_that_is_done() {
    let again = |waits_ms: i64, look: fn(&mut History)| {
        let mut history = done();
        look(&mut history);
        history.now_ms += waits_ms;
        history.call(step_of(0, 1), "key");
        history.complaints()
    };
    // It began within a second, by whatever knowledge.
    assert_eq!(again(WANTED_MS - 10, |_| {}), []);
    assert_eq!(again(WANTED_MS + 10, |_| {}), [Invariant::Wanted]);
    // It looked in time, and was paused between the look and the call.
    assert_eq!(again(7_000, History::look), []);
    assert_eq!(again(7_000, |history| history.hand(step_of(0, 1), false, false)), []);
    let looks_late: fn(&mut History) = |history| {
        history.now_ms += WANTED_MS + 10;
        history.look();
    };
    assert_eq!(again(0, looks_late), [Invariant::Wanted]);
}

#[test]
fn invariant_18_a_request_that_was_just_sent_serves_as_a_look_for_one_call() {
    let mut history = done();
    history.now_ms += WANTED_MS + 10;
    // Its sender looked before.
    history.hand(step_of(0, 1), false, true);
    history.call(step_of(0, 1), "key");
    is_good(&history);
    history.call(step_of(0, 1), "key");
    assert_eq!(history.complaints(), [Invariant::Wanted]);
    complains(Invariant::Wanted, done(), |history| {
        history.now_ms += WANTED_MS + 10;
        history.hand(step_of(0, 1), false, false);
        history.call(step_of(0, 1), "key");
    });
}

#[test]
fn invariant_18_a_call_for_an_order_that_turned_round_or_is_paused() {
    let after = |change: fn(&mut Record)| {
        let mut history = History::claimed();
        history.see(Seen::Wished { order: order(), action: "Cancel", settled: None });
        history.write(change);
        history.now_ms += WANTED_MS + 10;
        history.call(step_of(0, 1), "key");
        history
    };
    let turned = |record: &mut Record| {
        record.state = OrderState::Compensating;
        record.reason = Some(("cancelled".into(), record.version));
        free(&mut record.steps[0]);
        record.steps[0].way = Way::Undo;
    };
    assert_eq!(after(turned).complaints(), [Invariant::Wanted]);
    assert_eq!(after(|record| record.paused = true).complaints(), [Invariant::Wanted]);
    is_good(&after(|_| {}));
    // The order is resumed while the attempt lasts.
    let mut history = History::claimed();
    history.write(|record| record.paused = true);
    history.now_ms += WANTED_MS + 10;
    history.write(|record| record.paused = false);
    history.now_ms += WANTED_MS + 10;
    history.call(step_of(0, 1), "key");
    is_good(&history);
    // The service took it on, and tells its result later.
    history.write(|record| record.steps[0].waits_until_ms = Some(1_000_000));
    history.now_ms += WANTED_MS + 10;
    history.call(step_of(0, 1), "key");
    assert_eq!(history.complaints(), [Invariant::Wanted]);
}

#[test]
fn invariant_18_a_call_for_an_earlier_attempt() {
    let mut history = History::claimed();
    history.hand(step_of(0, 1), false, true);
    history.reply(step_of(0, 1), Ending::Deferred);
    history.write(|record| free(&mut record.steps[0]));
    history.claim(0);
    history.now_ms += WANTED_MS + 10;
    history.call(step_of(0, 2), "key");
    is_good(&history);
    history.see(Seen::Answered { of: step_of(0, 2), call: 1, heard: Heard::Settled });
    history.hand(step_of(0, 1), false, false);
    history.call(step_of(0, 1), "key");
    assert_eq!(history.complaints(), [Invariant::Wanted]);
}
