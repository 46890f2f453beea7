//! The auditor also reports a broken rule that is not one of the numbered invariants.

use std::sync::Arc;

use domain::workflow::Encoding;
use rehearsal::seen::{Body, Ending, Kind, OrderState, Seen, SettledStep, StepState, Way};
use tests::simulation::auditor::Invariant;

use super::auditor::{complains, is_good};
use super::histories::{DOCUMENT, History, OUTPUT, WITHIN_MS, finish, free, order, posted, step_of, undo_of};

fn acknowledged_by(by: u32, earlier: Vec<u32>, given_ms: i64, clock_ms: i64) -> Seen {
    Seen::Acknowledged { order: order(), by, earlier, given_ms, is_whole: true, clock_ms }
}

#[test]
fn rule_3_a_history_without_the_end_of_its_order() {
    let mut history = History::half();
    history.claim(1);
    history.succeed(1);
    complains(Invariant::History, history, |history| {
        history.write(|record| finish(&mut record.steps[1]));
        // The next write does not see this as a change of state.
        history.record.state = OrderState::Processed;
        history.write(|record| record.unsent = vec![(Kind::Processed, record.version)]);
    });
}

#[test]
fn rule_21_a_step_is_called_by_a_second_agent() {
    for (history, of) in [(History::half(), step_of(0, 1)), (History::compensating(), undo_of(0, 2))] {
        complains(Invariant::OneAgent, history, |history| {
            let outputs = if of.way == Way::Undo { [(0, OUTPUT)].into() } else { [].into() };
            let undo = if of.way == Way::Undo { "/undo" } else { "" };
            let key = format!("{}/s{}{undo}", of.order, of.step).into();
            let body = Body::whole(DOCUMENT, outputs);
            let clock_ms = history.now_ms;
            history.see(Seen::Called { of, call: 9, key, body, twins: 0, agent: 1, by: "agent".into(), clock_ms });
        });
    }
}

/// The first step is in `Error`, and so is the order.
fn failed() -> History {
    let mut history = History::claimed();
    history.reject(step_of(0, 1));
    history.write(|record| {
        free(&mut record.steps[0]);
        record.steps[0].state = StepState::Error;
        record.steps[0].failures = 1;
        record.steps[0].last_error = Some(("declined".into(), 0));
        record.state = OrderState::Error;
        record.reason = Some(("dead-letter".into(), record.version));
        record.unsent.push((Kind::NeedsOperator, record.version));
    });
    history
}

#[test]
fn rule_12_a_command_that_nothing_comes_of() {
    let commanded = |mut history: History, action| {
        let looked_at = history.record.version;
        history.see(Seen::Wished { order: order(), action, settled: None });
        history.see(Seen::Promised { order: order(), action });
        (history, Seen::Granted { order: order(), action, looked_at, step: None, clock_ms: 0 })
    };
    let paused = || {
        let mut history = History::stored();
        history.write(|record| record.paused = true);
        history
    };
    let dropped = [
        (History::half(), "Cancel"),
        (failed(), "Cancel"),
        (failed(), "Resubmit"),
        (failed(), "Settle"),
        (History::half(), "Pause"),
        (paused(), "Resume"),
    ];
    for (history, action) in dropped {
        let (history, granted) = commanded(history, action);
        complains(Invariant::Operator, history, |history| history.see(granted));
    }
    let (mut history, granted) = commanded(paused(), "Resume");
    history.write(|record| record.paused = false);
    history.see(granted);
    is_good(&history);
    let (mut history, granted) = commanded(History::compensating(), "Cancel");
    history.see(granted);
    is_good(&history);
    complains(Invariant::Operator, History::half(), |history| {
        history.see(Seen::Promised { order: order(), action: "Cancel" });
    });
}

#[test]
fn rule_27_a_step_that_is_settled_without_a_settle_or_without_an_effect() {
    let settled = |way| {
        let settled = Some(SettledStep { step: 0, way, output: Some(OUTPUT), is_skipped: false, is_dropped: false });
        Seen::Wished { order: order(), action: "Settle", settled }
    };
    let end = |history: &mut History| {
        history.write(|record| {
            finish(&mut record.steps[0]);
            record.state = OrderState::Processing;
            record.reason = None;
        });
    };
    let mend = |history: &mut History| {
        history.see(Seen::Effect { of: step_of(0, 1) });
        history.see(Seen::Confirmed { of: step_of(0, 1) });
    };
    let mut history = failed();
    mend(&mut history);
    history.see(settled(Way::Forward));
    end(&mut history);
    is_good(&history);
    complains(Invariant::Movers, failed(), |history| {
        mend(history);
        history.see(settled(Way::Undo));
        end(history);
    });
    complains(Invariant::Movers, failed(), |history| {
        history.see(settled(Way::Forward));
        end(history);
    });
    // By a clock that is behind, a call of the step may still run.
    let mut early = failed();
    let looked_at = early.record.version;
    early.write(|record| record.steps[0].runs_until_ms = Some(2_000));
    let granted = |clock_ms| Seen::Granted { order: order(), action: "Settle", looked_at, step: Some(0), clock_ms };
    early.see(granted(1_999));
    is_good(&early);
    complains(Invariant::Operator, early, |history| history.see(granted(2_000)));
}

#[test]
fn rule_2_a_message_that_is_let_go_before_what_follows_from_it_is_sent() {
    let acknowledged = |by, earlier, clock_ms| acknowledged_by(by, earlier, 1_000, clock_ms);
    let claimed = || {
        let mut history = History::stored();
        history.claim_only(0);
        history
    };
    complains(Invariant::SendBeforeAcknowledge, claimed(), |history| history.see(acknowledged(1, vec![], 0)));
    complains(Invariant::SendBeforeAcknowledge, claimed(), |history| history.see(acknowledged(2, vec![1], 0)));
    let mut history = claimed();
    history.see(acknowledged(2, vec![], 0));
    // The agent received the message before the other claim.
    history.see(acknowledged_by(2, vec![1], 0, 0));
    history.see(acknowledged(1, vec![], WITHIN_MS * 2));
    is_good(&history);
    let mut unasked = History::new();
    unasked.see(posted(None, None));
    unasked.see(Seen::Kept { order: order() });
    unasked.insert_with_claim();
    complains(Invariant::SendBeforeAcknowledge, unasked, |history| history.see(acknowledged(0, vec![], 0)));
}

#[test]
fn rule_2_a_request_that_is_let_go_although_its_reply_could_not_be_sent() {
    let unsent = || {
        let mut history = History::claimed();
        history.see(Seen::Unsent { of: step_of(0, 1), by: 7 });
        history
    };
    let dismissed = |by, returned| Seen::Dismissed { of: step_of(0, 1), by, returned };
    complains(Invariant::SendBeforeAcknowledge, unsent(), |history| history.see(dismissed(7, 0)));
    let mut history = unsent();
    history.see(dismissed(8, 0));
    history.see(dismissed(7, 1));
    is_good(&history);
}

#[test]
fn rule_9_an_undo_while_the_forward_attempt_may_still_run_and_a_claim_within_the_back_off() {
    let mut turned = History::claimed();
    turned.see(Seen::Wished { order: order(), action: "Cancel", settled: None });
    turned.write(|record| {
        record.state = OrderState::Compensating;
        record.reason = Some(("cancelled".into(), record.version));
        free(&mut record.steps[0]);
        record.steps[0].way = Way::Undo;
    });
    complains(Invariant::NothingAfterUndo, turned, |history| history.claim_only(0));
    let mut waiting = History::claimed();
    waiting.expire(0);
    let until_ms = waiting.now_ms + 500;
    waiting.count(0, "expired");
    waiting.write(|record| record.steps[0].not_before_ms = Some(until_ms));
    complains(Invariant::Claims, waiting, |history| history.claim_only(0));
}

#[test]
fn rule_12_an_order_that_is_paused_and_starts_something() {
    let mut paused = History::half();
    paused.write(|record| record.paused = true);
    complains(Invariant::Operator, paused, |history| history.claim_only(1));
}

#[test]
fn rule_14_an_order_that_nobody_looks_at_or_too_late() {
    complains(Invariant::Watched, History::claimed(), |history| history.write(|record| record.watch_ms = None));
    complains(Invariant::Watched, History::claimed(), |history| {
        history.write(|record| record.watch_ms = Some(WITHIN_MS * 10));
    });
}

#[test]
fn a_call_with_another_document_or_without_what_came_before() {
    let outputs = |outputs: &[(usize, u64)]| outputs.iter().copied().collect();
    complains(Invariant::Body, History::claimed(), |history| {
        history.call_with(step_of(0, 1), "key", Body::whole(8, [].into()));
    });
    for wrong in [&[][..], &[(0, 12)], &[(0, OUTPUT), (1, OUTPUT)]] {
        let mut history = History::half();
        history.claim(1);
        complains(Invariant::Body, history, |history| {
            history.call_with(step_of(1, 1), "key", Body::whole(DOCUMENT, outputs(wrong)));
        });
    }
    complains(Invariant::Body, History::compensating(), |history| {
        history.call_with(undo_of(0, 2), "key", Body::whole(DOCUMENT, [].into()));
    });
}

#[test]
fn rule_19_a_call_or_an_output_by_a_mapping_that_the_version_does_not_have() {
    let whole = || Body::whole(DOCUMENT, [].into());
    let wrong = [
        Body { path: Some("v2-s0".into()), ..whole() },
        Body { encode: Encoding::Form, ..whole() },
        Body { document: None, members: Some([("From".into(), 8)].into()), ..whole() },
        Body { document: None, ..whole() },
    ];
    for body in wrong {
        complains(Invariant::Mapping, History::claimed(), |history| history.call_with(step_of(0, 1), "key", body));
    }
    complains(Invariant::Mapping, History::claimed(), |history| {
        history.call(step_of(0, 1), "key");
        let (kept, by, clock_ms) = (Some("v2-s0".into()), "agent".into(), history.now_ms);
        let (of, ending, output) = (step_of(0, 1), Ending::Done, Some(OUTPUT));
        history.see(Seen::Replied { of, ending, output, kept, code: None, by, clock_ms });
    });
}

#[test]
fn what_came_of_a_step_and_nobody_said_or_which_changes() {
    let mut history = History::claimed();
    history.succeed(0);
    complains(Invariant::Record, history, |history| {
        history.write(|record| {
            finish(&mut record.steps[0]);
            record.steps[0].output = Some(12);
        });
    });
    complains(Invariant::Record, History::half(), |history| history.write(|record| record.steps[0].output = None));
}

#[test]
fn a_dead_letter_that_no_order_can_tell_of_and_nobody_is_told_of() {
    let dead_letter = |make: fn(Arc<str>) -> Seen| make("1-7".into());
    complains(Invariant::Alert, History::new(), |history| {
        history.see(dead_letter(|id| Seen::DeadLetterDue { id }));
        history.see(dead_letter(|id| Seen::DeadLetterGone { id }));
    });
    let mut history = History::new();
    history.see(dead_letter(|id| Seen::DeadLetterDue { id }));
    history.see(dead_letter(|id| Seen::LetterTold { id }));
    history.see(dead_letter(|id| Seen::DeadLetterGone { id }));
    is_good(&history);
}

#[test]
fn a_record_that_skips_a_version_changes_its_workflow_or_comes_twice() {
    complains(Invariant::Record, History::claimed(), |history| history.write(|record| record.version += 1));
    complains(Invariant::Record, History::claimed(), |history| history.write(|record| record.workflow = 2));
    complains(Invariant::Record, History::stored(), History::insert);
    complains(Invariant::Record, History::new(), History::insert);
}

#[test]
fn a_panic_is_a_complaint() {
    complains(Invariant::Panic, History::new(), |history| history.see(Seen::Panicked { words: "oh".into() }));
}
