//! The auditor reports every broken invariant, and nothing else.

use std::sync::Arc;

use rehearsal::seen::{Body, Ending, Kind, OrderState, Seen, StepState, Way};
use tests::simulation::auditor::Invariant;

use super::histories::{
    DOCUMENT, HORIZON_MS, History, MARGIN_MS, WITHIN_MS, accepted, finish, free, order, step_of, undo_of,
};

/// The auditor reports a history with a bad end, with the right invariant and no other.
#[track_caller]
pub(crate) fn complains(of: Invariant, mut history: History, badly: impl FnOnce(&mut History)) {
    assert_eq!(history.complaints(), [], "up to here it is good");
    badly(&mut history);
    assert_eq!(history.complaints(), [of], "{:?}", history.auditor.violations());
}

#[track_caller]
pub(crate) fn is_good(history: &History) {
    assert_eq!(history.complaints(), [], "{:?}", history.auditor.violations());
}

fn told(kind: Kind, version: u64) -> Seen {
    Seen::Told { order: order(), kind, version }
}

fn telling(kind: Kind, version: u64, channel: Option<&str>) -> Seen {
    Seen::Telling { order: order(), kind, version, channel: channel.map(Arc::from) }
}

const fn ends(bound_ms: i64) -> Seen {
    Seen::EndIsDue { since_ms: 0, bound_ms }
}

#[test]
fn an_order_that_goes_well_is_not_complained_of() {
    let mut history = History::processed();
    let version = history.record.version;
    history.see(telling(Kind::Processed, version, Some("shop")));
    history.see(told(Kind::Received, 1));
    history.see(told(Kind::Processed, version));
    history.write(|record| record.unsent.clear());
    history.now_ms += 1_000_000;
    history.see(ends(1_000));
    history.see(Seen::DrainIsDue { queued: 0 });
    is_good(&history);
}

#[test]
fn an_order_that_is_undone_after_retries_and_late_answers_is_not_complained_of() {
    let mut history = History::claimed();
    history.expire(0);
    history.count(0, "expired");
    history.claim(0);
    history.done(0);
    history.claim(1);
    history.reject(step_of(1, 1));
    history.write(|record| {
        record.state = OrderState::Compensating;
        record.reason = Some(("rejected".into(), record.version));
        for step in &mut record.steps {
            free(step);
            (step.way, step.started_ms) = (Way::Undo, None);
        }
    });
    history.claim(1);
    history.see(Seen::Confirmed { of: undo_of(1, 2) });
    history.reply(undo_of(1, 2), Ending::Done);
    history.write(|record| finish(&mut record.steps[1]));
    history.claim(0);
    history.succeed(0);
    history.write(|record| {
        finish(&mut record.steps[0]);
        record.state = OrderState::Compensated;
    });
    is_good(&history);
}

#[test]
fn invariant_1_an_accepted_order_that_nobody_has() {
    complains(Invariant::Custody, History::new(), |history| history.see(accepted(0)));
    complains(Invariant::Custody, History::new(), |history| {
        history.see(Seen::Kept { order: order() });
        history.see(accepted(0));
        history.see(Seen::LetGo { order: order() });
    });
}

#[test]
fn invariant_1_an_accepted_order_that_is_another_one() {
    let other = |posted_ms| Seen::Accepted { order: order(), fingerprint: "another".into(), posted_ms };
    let mut history = History::claimed();
    // At the time of the post, it was open which of the two would be stored.
    history.see(other(0));
    is_good(&history);
    complains(Invariant::Custody, history, |history| history.see(other(history.now_ms + 1)));
}

#[test]
fn invariant_2_an_attempt_with_two_claimants_or_none() {
    complains(Invariant::Claims, History::claimed(), |history| history.claim_only(0));
    complains(Invariant::Claims, History::claimed(), |history| {
        history.write(|record| record.steps[0].locked_by = Some("another".into()));
    });
    complains(Invariant::Claims, History::half(), |history| history.write(|record| record.steps[0].attempt = 0));
    complains(Invariant::Claims, History::stored(), |history| {
        history.write(|record| {
            record.state = OrderState::Processing;
            record.steps[0].attempt = 2;
            record.steps[0].state = StepState::Processing;
        });
    });
    complains(Invariant::Claims, History::stored(), |history| {
        history.see(Seen::Requested { of: step_of(0, 1), complete_by_ms: WITHIN_MS, budget_ms: 0, clock_ms: 0 });
    });
    complains(Invariant::Claims, History::claimed(), |history| {
        history.see(Seen::TakenForOwn { order: order(), is_same: false });
    });
}

#[test]
fn invariant_3_a_step_that_is_moved_on_by_nobody_who_may() {
    complains(Invariant::Movers, History::claimed(), |history| {
        history.write(|record| finish(&mut record.steps[0]));
    });
    complains(Invariant::Movers, History::claimed(), |history| {
        // The agent reported success, but its service has no record of it.
        history.reply(step_of(0, 1), Ending::Done);
        history.write(|record| finish(&mut record.steps[0]));
    });
    complains(Invariant::Movers, History::claimed(), |history| {
        history.expire(0);
        history.now_ms -= 2;
        history.count(0, "expired");
    });
    complains(Invariant::Movers, History::claimed(), |history| history.count(0, "declined"));
    complains(Invariant::Movers, History::claimed(), |history| history.count(0, "dead-letter"));
    complains(Invariant::Movers, History::claimed(), |history| history.write(|record| free(&mut record.steps[0])));
    complains(Invariant::Movers, History::half(), |history| history.write(|record| free(&mut record.steps[0])));
}

#[test]
fn invariant_3_a_step_that_is_given_up_before_its_horizon_or_taken_up_again_by_nobody() {
    let waiting = || {
        let mut history = History::claimed();
        history.expire(0);
        history.count(0, "expired");
        history
    };
    let give_up = |history: &mut History| history.write(|record| record.steps[0].state = StepState::Error);
    complains(Invariant::Movers, waiting(), give_up);
    let mut after = waiting();
    after.now_ms += HORIZON_MS;
    give_up(&mut after);
    is_good(&after);
    complains(Invariant::Movers, after, |history| history.write(|record| record.steps[0].state = StepState::Pending));
}

#[test]
fn invariant_3_a_step_that_is_given_up_below_its_threshold_or_tried_beyond_it() {
    let expired = || {
        let mut history = History::claimed();
        history.expire(0);
        history
    };
    let fail = |history: &mut History, state| {
        let now_ms = history.now_ms;
        history.write(|record| {
            free(&mut record.steps[0]);
            record.steps[0].state = state;
            record.steps[0].failures += 1;
            record.steps[0].last_error = Some(("expired".into(), now_ms));
        });
    };
    complains(Invariant::Movers, expired(), |history| fail(history, StepState::Error));
    let mut again = expired();
    fail(&mut again, StepState::Pending);
    again.claim(0);
    again.expire(0);
    complains(Invariant::Movers, again, |history| fail(history, StepState::Pending));
}

#[test]
fn invariant_3_an_order_that_is_undone_without_a_visible_cause() {
    for code in ["cancelled", "rejected", "exhausted", "compensation-failed", "hop-limit"] {
        complains(Invariant::Movers, History::half(), |history| {
            history.write(|record| {
                record.state = OrderState::Compensating;
                record.reason = Some((code.into(), record.version));
                record.steps[0].way = Way::Undo;
                record.steps[0].state = StepState::Pending;
            });
        });
    }
}

#[test]
fn invariant_3_a_failure_of_an_attempt_that_is_over() {
    let mut history = History::claimed();
    history.expire(0);
    history.count(0, "expired");
    history.claim(0);
    complains(Invariant::Movers, history, |history| {
        history.see(Seen::Buried { of: step_of(0, 1) });
        history.count(0, "dead-letter");
    });
}

#[test]
fn invariant_4_a_failure_that_is_counted_twice() {
    let expired = || {
        let mut history = History::claimed();
        history.expire(0);
        history
    };
    complains(Invariant::Counting, expired(), |history| {
        let now_ms = history.now_ms;
        history.write(|record| {
            free(&mut record.steps[0]);
            record.steps[0].failures = 2;
            record.steps[0].last_error = Some(("expired".into(), now_ms));
        });
    });
    complains(Invariant::Counting, expired(), |history| history.write(|record| record.steps[0].failures = 7));
    let mut counted = expired();
    counted.count(0, "expired");
    complains(Invariant::Counting, counted, |history| history.write(|record| record.steps[0].failures = 0));
}

#[test]
fn invariant_5_a_second_effect_or_another_key() {
    complains(Invariant::OneEffect, History::half(), |history| history.see(Seen::Effect { of: step_of(0, 1) }));
    complains(Invariant::OneEffect, History::half(), |history| history.call(step_of(0, 1), "other"));
    complains(Invariant::OneEffect, History::claimed(), |history| {
        let of = step_of(0, 1);
        history.see(Seen::Called {
            of,
            call: 1,
            key: "key".into(),
            body: Body::whole(DOCUMENT, [].into()),
            twins: 1,
            agent: 0,
            by: "agent".into(),
            clock_ms: 0,
        });
    });
    complains(Invariant::OneEffect, History::compensating(), |history| {
        history.see(Seen::Effect { of: undo_of(0, 2) });
        history.see(Seen::Effect { of: undo_of(0, 2) });
    });
}

#[test]
fn invariant_6_a_step_before_its_turn() {
    complains(Invariant::Sequence, History::claimed(), |history| history.claim_only(1));
    complains(Invariant::Sequence, History::claimed(), |history| history.see(Seen::Effect { of: step_of(1, 1) }));
    let mut history = History::half();
    history.claim(1);
    history.see(Seen::Wished { order: order(), action: "Cancel", settled: None });
    history.write(|record| {
        record.state = OrderState::Compensating;
        record.reason = Some(("cancelled".into(), record.version));
        for step in &mut record.steps {
            free(step);
            step.way = Way::Undo;
        }
    });
    complains(Invariant::Sequence, history, |history| history.claim_only(0));
}

#[test]
fn invariant_7_what_ended_changes_again() {
    complains(Invariant::Absorbing, History::processed(), |history| {
        history.write(|record| {
            record.state = OrderState::Error;
            record.reason = Some(("exhausted".into(), record.version));
            record.unsent.push((Kind::NeedsOperator, record.version));
        });
    });
}

#[test]
fn invariant_8_compensated_and_not_undone() {
    complains(Invariant::Undone, History::compensating(), |history| {
        history.write(|record| record.state = OrderState::Compensated);
    });
    // By the record all is undone, at a service it is not.
    let mut history = History::compensating();
    history.see(Seen::Effect { of: step_of(1, 1) });
    history.succeed(0);
    complains(Invariant::Undone, history, |history| {
        history.write(|record| {
            finish(&mut record.steps[0]);
            record.state = OrderState::Compensated;
        });
    });
}

#[test]
fn invariant_9_an_effect_after_the_undo() {
    let mut history = History::claimed();
    history.see(Seen::Confirmed { of: undo_of(0, 2) });
    complains(Invariant::NothingAfterUndo, history, |history| history.see(Seen::Effect { of: step_of(0, 1) }));
    complains(Invariant::NothingAfterUndo, History::compensating(), |history| {
        history.write(|record| (record.steps[0].way, record.steps[0].state) = (Way::Forward, StepState::Pending));
    });
}

#[test]
fn invariant_10_an_error_that_nobody_is_told_of() {
    let fail = |history: &mut History| {
        history.write(|record| {
            record.state = OrderState::Error;
            record.reason = Some(("dead-letter".into(), record.version));
        });
    };
    complains(Invariant::Alert, History::claimed(), fail);
    let mut history = History::claimed();
    let version = history.record.version + 1;
    history.write(|record| {
        record.state = OrderState::Error;
        record.reason = Some(("dead-letter".into(), version));
        record.unsent.push((Kind::NeedsOperator, version));
    });
    is_good(&history);
    complains(Invariant::Alert, history, |history| history.write(|record| record.unsent.clear()));
}

#[test]
fn invariant_11_a_call_or_a_reply_after_its_time() {
    complains(Invariant::Deadline, History::claimed(), |history| {
        history.now_ms = history.complete_by_ms(0) - MARGIN_MS;
        history.call(step_of(0, 1), "key");
    });
    complains(Invariant::Deadline, History::claimed(), |history| {
        history.now_ms = history.complete_by_ms(0);
        history.reply(step_of(0, 1), Ending::Deferred);
    });
    complains(Invariant::Deadline, History::claimed(), |history| {
        // Its message gave it less time.
        let until_ms = history.now_ms + 500;
        history.see(Seen::Handed {
            of: step_of(0, 1),
            to: "agent".into(),
            until_ms,
            budget_ms: 500,
            message: "m".into(),
            overlaps: false,
            is_copied: false,
            fresh_until_ms: None,
        });
        history.now_ms += 500;
        history.reply(step_of(0, 1), Ending::Deferred);
    });
}

#[test]
fn invariant_11_a_request_that_leaves_more_time_than_there_is() {
    complains(Invariant::Deadline, History::claimed(), |history| {
        let (of, complete_by_ms, clock_ms) = (step_of(0, 1), history.complete_by_ms(0), history.now_ms);
        let budget_ms = u64::try_from(complete_by_ms - clock_ms + 1).unwrap();
        history.see(Seen::Requested { of, complete_by_ms, budget_ms, clock_ms });
    });
}

#[test]
fn invariant_12_a_message_that_is_not_so_or_goes_elsewhere() {
    let version = History::processed().record.version;
    complains(Invariant::Status, History::half(), |history| {
        history.see(telling(Kind::Processed, version, Some("shop")));
    });
    complains(Invariant::Status, History::processed(), |history| {
        history.see(telling(Kind::Compensated, version, Some("shop")));
    });
    complains(Invariant::Status, History::processed(), |history| {
        history.see(telling(Kind::Processed, version, Some("desk")));
    });
}

#[test]
fn invariant_13_is_broken_by_whatever_breaks_under_wrong_clocks() {
    let mut history = History::with_wrong_clocks();
    history.see(accepted(0));
    history.see(Seen::DrainIsDue { queued: 1 });
    let words: Vec<String> = history.auditor.violations().iter().map(ToString::to_string).collect();
    assert!(words[0].contains("invariant 1 (and 13)"), "{words:?}");
    assert!(words.iter().skip(1).all(|words| !words.contains("13)")), "liveness depends on clocks: {words:?}");
    let mut history = History::new();
    history.see(accepted(0));
    assert!(!history.auditor.violations()[0].to_string().contains("13)"));
}

#[test]
fn invariant_14_an_order_that_does_not_end_in_time() {
    complains(Invariant::Ends, History::claimed(), |history| {
        history.now_ms += 1_000;
        history.see(ends(2_000));
        is_good(history);
        history.now_ms += 2_000;
        history.see(ends(2_000));
    });
    // It was set going again not long ago.
    let mut history = History::compensating();
    history.see(ends(20));
    is_good(&history);
}

#[test]
fn invariant_15_what_is_never_told_and_messages_that_stay() {
    complains(Invariant::Drains, History::processed(), |history| history.see(Seen::DrainIsDue { queued: 0 }));
    complains(Invariant::Drains, History::processed(), |history| {
        history.write(|record| record.unsent.clear());
        history.see(Seen::DrainIsDue { queued: 0 });
    });
    // The status message Processed is sent, but Received never is.
    complains(Invariant::Drains, History::processed(), |history| {
        let version = history.record.version;
        history.write(|record| record.unsent.clear());
        history.see(told(Kind::Processed, version));
        history.see(Seen::DrainIsDue { queued: 0 });
    });
    let mut waiting = History::half();
    waiting.see(told(Kind::Received, 1));
    complains(Invariant::Drains, waiting, |history| history.see(Seen::DrainIsDue { queued: 2 }));
}
