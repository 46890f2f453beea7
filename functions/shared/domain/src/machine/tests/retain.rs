//! How long an ended order is kept (rule 44).

use crate::machine::Event;
use crate::machine::testing::Case;
use crate::message::Action;
use crate::task::ProcessState;

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn case(notify: bool) -> Case {
    Case::with(&[("a", &[], "on_rejected = \"hold\"")], "[retain]\nprocessed = \"1d\"\nclosed = \"3d\"", notify)
}

#[test]
fn rule_44_an_order_expires_a_time_after_its_end_and_one_that_has_not_ended_does_not() {
    let mut case = case(false);
    case.wake();
    assert_eq!(case.task.expires_at, None);
    case.done("a");
    assert_eq!(
        (case.task.process_state, case.task.expires_at),
        (ProcessState::Processed, Some(case.now.plus_ms(DAY_MS)))
    );
}

#[test]
fn rule_44_an_order_in_error_is_kept_and_a_closed_one_has_its_own_time() {
    let mut case = case(false);
    case.wake();
    case.rejected("a");
    assert_eq!((case.task.process_state, case.task.expires_at), (ProcessState::Error, None));
    case.all_sent();
    case.now = case.now.plus_ms(DAY_MS);
    let close = case.command(Action::Close, None);
    case.apply(Event::Command { command: &close, redelivered: false });
    let ended_at = case.now;
    case.all_sent();
    assert_eq!(
        (case.task.process_state, case.task.expires_at),
        (ProcessState::Closed, Some(ended_at.plus_ms(3 * DAY_MS)))
    );
}

#[test]
fn rule_44_an_order_that_owes_a_message_is_kept_until_it_is_confirmed() {
    let mut case = case(true);
    case.wake();
    case.done("a");
    assert_eq!((case.task.process_state, case.task.expires_at), (ProcessState::Processed, None));
    case.all_sent();
    assert_eq!(case.task.expires_at, Some(case.now.plus_ms(DAY_MS)));
}

#[test]
fn rule_44_a_clock_that_was_set_back_makes_the_time_no_shorter() {
    let mut case = case(false);
    case.wake();
    let last = case.task.history.last().unwrap().at;
    case.now = case.now.minus_ms(365 * DAY_MS);
    case.done("a");
    assert_eq!(case.task.expires_at, Some(last.plus_ms(DAY_MS)));
}
