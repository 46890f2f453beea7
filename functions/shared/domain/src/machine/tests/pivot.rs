//! Rule 34: past a pivot, an order only goes forward.

use crate::machine::testing::Case;
use crate::machine::{Refused, Verdict};
use crate::message::Action;
use crate::situation::Situation;
use crate::task::{ProcessState, reason};

/// a, then the pivot, then d; e is beside them all.
fn shop(pivot: &str) -> Case {
    let pivot = format!("pivot = true\n{pivot}");
    let steps: [(&str, &[&str], &str); 4] =
        [("a", &[], ""), ("pivot", &["a"], &pivot), ("d", &["pivot"], ""), ("e", &[], "on_exhausted = \"compensate\"")];
    let mut case = Case::new(&steps, false);
    case.wake();
    case
}

fn past() -> Verdict {
    Verdict::Refused(Refused::PastPivot { step: "pivot".into() })
}

#[test]
fn a_cancel_is_refused_from_the_first_claim_of_the_pivot_on() {
    let mut case = shop("");
    assert_eq!(case.task.past_pivot(), None);
    assert!(Action::Cancel.refusal(&case.task).is_none());
    case.done("a");
    assert_eq!(case.cancel(), past());
    assert_eq!(
        Action::Cancel.refusal(&case.task).unwrap().to_string(),
        "the order is past pivot: it only goes forward"
    );
    case.expire_all();
    assert_eq!(case.cancel(), past(), "it is tried again");
    case.retry_all();
    case.done("pivot");
    assert_eq!(case.cancel(), past());
}

#[test]
fn the_situation_says_that_the_order_only_goes_forward() {
    let mut case = shop("");
    let words = "The order is past pivot: only forward.";
    assert!(!Situation::of(&case.task).text.contains(words));
    case.done("a");
    assert!(Situation::of(&case.task).text.contains(words));
    case.done("pivot");
    case.rejected("d");
    let situation = Situation::of(&case.task);
    assert!(situation.text.contains(words) && !situation.to_do.as_deref().unwrap().contains("cancel"), "{situation:?}");
}

#[test]
fn no_rejection_of_another_step_turns_the_order_round_past_the_pivot() {
    let mut case = shop("");
    case.done("a");
    case.rejected("e");
    assert_eq!((case.states().as_str(), case.state()), ("+>.!", ProcessState::Error));
    assert_eq!(case.task.reason.as_ref().map(|reason| &*reason.code), Some(reason::REJECTED));
    assert_eq!(case.cancel(), past());
    case.done("pivot");
    case.resubmit();
    assert_eq!(case.states(), "++>>");
}

#[test]
fn no_exhaustion_of_another_step_turns_the_order_round_past_the_pivot() {
    let mut case = shop("");
    case.done("a");
    case.done("pivot");
    for _ in 0..3 {
        case.expire_all();
        case.retry_all();
    }
    assert_eq!((case.states().as_str(), case.state()), ("++!!", ProcessState::Error));
}

#[test]
fn before_the_pivot_everything_turns_the_order_round() {
    let mut case = shop("");
    case.rejected("e");
    assert_eq!(case.state(), ProcessState::Compensating);
}

#[test]
fn a_pivot_that_is_rejected_turns_the_order_round() {
    let mut case = shop("");
    case.done("a");
    case.done("e");
    case.rejected("pivot");
    assert_eq!((case.state(), case.requested()), (ProcessState::Compensating, vec!["pivot", "e"]));
    assert_eq!(case.task.past_pivot(), None);
}

#[test]
fn an_order_that_waits_with_its_pivot_given_up_may_be_cancelled() {
    let mut case = shop("on_rejected = \"hold\"");
    case.done("a");
    case.rejected("pivot");
    assert_eq!((case.state(), case.task.past_pivot()), (ProcessState::Error, None));
    let resubmitted = {
        let mut case = shop("on_rejected = \"hold\"");
        case.done("a");
        case.rejected("pivot");
        case.resubmit();
        case.cancel()
    };
    assert_eq!(resubmitted, past());
    assert_eq!((case.cancel(), case.state()), (Verdict::Taken, ProcessState::Compensating));
}

#[test]
fn of_a_pivot_and_another_step_that_are_exhausted_together_the_pivot_decides() {
    for (remedy, expected) in [("hold", ProcessState::Error), ("compensate", ProcessState::Compensating)] {
        let mut case = shop(&format!("on_exhausted = \"{remedy}\""));
        case.done("a");
        for _ in 0..3 {
            case.expire_all();
            case.retry_all();
        }
        assert_eq!(case.state(), expected, "{remedy}");
    }
}

#[test]
fn an_optional_pivot_that_was_rejected_is_no_point_of_no_return() {
    let mut case = shop("optional = true");
    case.done("a");
    case.rejected("pivot");
    assert_eq!((case.states().as_str(), case.task.past_pivot()), ("+->>", None));
    assert_eq!((case.cancel(), case.state()), (Verdict::Taken, ProcessState::Compensating));
}
