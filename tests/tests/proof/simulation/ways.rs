//! The auditor reports a step that is skipped or called against its workflow, and an order that turns round past its
//! pivot: rules 33 and 34.

use rehearsal::seen::{OrderState, Seen, StepSeen, StepState, Way};
use tests::simulation::auditor::Invariant;
use tests::simulation::auditor::ways::{Condition, Ways};

use super::auditor::{complains, is_good};
use super::histories::{History, NO, finish, free, order, posted, step_of};

fn when(condition: Condition) -> Ways {
    Ways { when: vec![condition], ..Ways::default() }
}

/// The first step done; the ways of the second are these.
fn half(second: Ways) -> History {
    let mut history = History::with_ways(vec![Ways::default(), second]).store();
    history.claim(0);
    history.done(0);
    history
}

fn skip(history: &mut History, step: usize) {
    history.write(|record| record.steps[step].state = StepState::Skipped);
}

fn cancel(history: &mut History) {
    history.see(Seen::Wished { order: order(), action: "Cancel", settled: None });
    history.write(|record| {
        record.state = OrderState::Compensating;
        record.reason = Some(("cancelled".into(), record.version));
        for step in record.steps.iter_mut().filter(|step| step.attempt > 0) {
            *step = StepSeen { way: Way::Undo, state: StepState::Pending, ..step.clone() };
        }
    });
}

#[test]
fn rule_33_a_step_that_begins_against_its_document() {
    // The document names the channel `shop`.
    let store = |history: &mut History| {
        history.see(posted(Some("shop"), None));
        history.insert();
    };
    let without = |condition| History::with_ways(vec![when(condition)]);
    complains(Invariant::Applies, without(Condition::HasChannel(false)), store);
    complains(Invariant::Applies, without(Condition::IsChannel("desk".into(), true)), store);
    let mut history = without(Condition::HasChannel(true));
    store(&mut history);
    is_good(&history);
    let mut history = without(Condition::HasChannel(true));
    history.record.steps[0].state = StepState::Skipped;
    complains(Invariant::Applies, history, store);
}

#[test]
fn rule_33_a_step_that_is_skipped_or_called_against_an_output() {
    complains(Invariant::Applies, half(when(Condition::HasOutput(0, true))), |history| skip(history, 1));
    complains(Invariant::Applies, half(when(Condition::HasOutput(0, false))), |history| history.claim_only(1));
    let mut history = half(when(Condition::HasOutput(0, false)));
    skip(&mut history, 1);
    is_good(&history);
    let mut early = History::with_ways(vec![Ways::default(), when(Condition::HasOutput(0, true))]).store();
    early.claim(0);
    complains(Invariant::Applies, early, |history| skip(history, 1));
}

/// The second step was rejected, and is in this state then.
fn reject(history: &mut History, state: StepState) {
    history.claim(1);
    history.reject(step_of(1, 1));
    history.write(|record| {
        let step = &mut record.steps[1];
        free(step);
        (step.state, step.failures, step.last_error) = (state, 1, Some((NO.into(), 0)));
        if state == StepState::Skipped {
            record.state = OrderState::Processed;
        }
    });
}

#[test]
fn rule_33_only_an_optional_step_is_skipped_by_a_rejection() {
    let optional = Ways { optional: true, ..Ways::default() };
    let mut history = half(optional.clone());
    reject(&mut history, StepState::Skipped);
    is_good(&history);
    complains(Invariant::Applies, half(Ways::default()), |history| reject(history, StepState::Skipped));
    complains(Invariant::Applies, half(optional), |history| reject(history, StepState::Error));
}

#[test]
fn rule_33_an_undo_that_there_is_not_is_called_and_one_that_there_is_is_not() {
    let undoing = |ways| {
        let mut history = History::with_ways(vec![ways]).store();
        history.claim(0);
        history.done(0);
        cancel(&mut history);
        history
    };
    let none = Ways { no_undo: true, ..Ways::default() };
    let end = |history: &mut History| {
        history.write(|record| {
            finish(&mut record.steps[0]);
            record.state = OrderState::Compensated;
        });
    };
    let mut history = undoing(none.clone());
    end(&mut history);
    is_good(&history);
    complains(Invariant::Applies, undoing(none), |history| history.claim_only(0));
    complains(Invariant::Movers, undoing(Ways::default()), end);
}

#[test]
fn rule_34_an_order_that_turns_round_past_its_pivot() {
    let pivot = || {
        let mut history = History::with_ways(vec![Ways { pivot: true, ..Ways::default() }]).store();
        history.claim(0);
        history
    };
    complains(Invariant::Pivot, pivot(), cancel);
    let mut done = pivot();
    done.done(0);
    complains(Invariant::Pivot, done, cancel);
}
