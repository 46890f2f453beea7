//! The auditor reports a line that is dropped without a reason, not as a whole or as one too many, and one that an order
//! leaves as it was: rule 50.

use std::collections::BTreeMap;

use rehearsal::seen::{Body, Ending, Heard, Kind, OrderState, Seen, StepSeen, StepState, Way};
use tests::simulation::auditor::Invariant;
use tests::simulation::auditor::lines::{Each, Most};

use super::auditor::{complains, is_good};
use super::histories::{DOCUMENT, History, finish, order, step_of};

fn each(drop_max: Option<Most>) -> Each {
    Each { is_named: true, after_all: false, drops_rejected: true, drops_exhausted: false, drop_max, drop: None }
}

/// Both lines are claimed.
fn begun(each: Each) -> History {
    let mut history = History::with_lines(each).store();
    history.claim(0);
    history.claim(1);
    history
}

fn drop_line(history: &mut History, step: usize) {
    history.write(|record| {
        let seen = &record.steps[step];
        record.steps[step] = StepSeen {
            way: Way::Undo,
            state: StepState::Pending,
            dropped: true,
            locked_by: None,
            complete_by_ms: None,
            ..seen.clone()
        };
    });
}

fn ends(history: &mut History) {
    history.write(|record| {
        record.state = OrderState::Processed;
        record.unsent = vec![(Kind::Processed, record.version)];
    });
}

/// The first line is dropped, and the other one is done.
fn dropped() -> History {
    let mut history = begun(each(None));
    history.reject(step_of(0, 1));
    drop_line(&mut history, 0);
    history.succeed(1);
    history.write(|record| finish(&mut record.steps[1]));
    history
}

#[test]
fn a_line_that_is_rejected_is_dropped_and_the_order_goes_on() {
    let mut history = dropped();
    history.claim(0);
    // There is nothing to undo.
    let of = history.of(0);
    history.call(of, "key");
    history.see(Seen::Confirmed { of });
    history.hear(of, Heard::Settled);
    history.reply(of, Ending::Done);
    history.write(|record| {
        finish(&mut record.steps[0]);
        record.lines = [vec!["cup".into()], vec!["mug".into()]];
    });
    ends(&mut history);
    is_good(&history);
}

#[test]
fn a_line_is_dropped_for_a_reason_of_its_own_and_not_beyond_what_may_be() {
    complains(Invariant::Lines, begun(each(None)), |history| drop_line(history, 0));
    let rejected = |drop_max, step| {
        let mut history = begun(each(drop_max));
        history.reject(step_of(step, 1));
        history
    };
    complains(Invariant::Lines, rejected(None, 1), |history| drop_line(history, 0));
    for most in [Most::Lines(0), Most::Percent(49)] {
        complains(Invariant::Lines, rejected(Some(most), 0), |history| drop_line(history, 0));
    }
    let mut history = rejected(Some(Most::Percent(50)), 0);
    drop_line(&mut history, 0);
    history.reject(step_of(1, 1));
    is_good(&history);
    complains(Invariant::Lines, history, |history| drop_line(history, 1));
}

#[test]
fn a_rejected_line_that_is_to_be_dropped_turns_no_order_round() {
    let mut history = begun(each(None));
    history.reject(step_of(0, 1));
    complains(Invariant::Movers, history, |history| {
        history.write(|record| {
            record.state = OrderState::Compensating;
            record.reason = Some(("rejected".into(), record.version));
            for step in &mut record.steps {
                *step = StepSeen { way: Way::Undo, state: StepState::Pending, complete_by_ms: None, ..step.clone() };
            }
        });
    });
}

#[test]
fn no_order_is_processed_before_its_dropped_line_is_undone() {
    complains(Invariant::Lines, dropped(), ends);
}

#[test]
fn the_key_of_a_call_has_the_name_of_its_element() {
    let call = |history: &mut History, key: &str| {
        let (key, body) = (format!("{}/{key}", order()).into(), Body::whole(DOCUMENT, BTreeMap::new()));
        let (of, clock_ms) = (step_of(1, 1), history.now_ms);
        history.see(Seen::Called { of, call: 1, key, body, twins: 0, agent: 0, by: "agent".into(), clock_ms });
    };
    complains(Invariant::OneEffect, begun(each(None)), |history| call(history, "s0"));
    let mut history = begun(each(None));
    call(&mut history, "s0/cup");
    is_good(&history);
}
