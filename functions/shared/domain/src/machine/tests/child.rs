//! Rule 49: a step makes another order, and waits for its end.

use crate::child::{self, code, told};
use crate::limits::CHILDREN_DEEP_MAX;
use crate::machine::testing::{Case, done};
use crate::machine::{Verdict, Wanted, child_wanted};
use crate::message::{Acceptance, Action, ChildRequest, Failure, Outcome};
use crate::order::Parent;
use crate::task::{Direction, NoticeKind, ProcessState, StepError, StepState, Task};

/// b makes an order, with this document.
fn making(send: &str) -> Case {
    let step = format!("[[step]]\nname = \"b\"\nkind = \"order\"\nworkflow = \"w\"\nsend = {send}\n");
    let mut case = Case::with(&[], &step, false);
    case.wake();
    case
}

/// The child of b in this state.
fn child_in(case: &Case, state: ProcessState) -> Task {
    let mut child = Case::chain().task.below(child::parent(&case.task, &"b".into()).ok());
    child.order_id = case.task.order_id.child("b");
    child.process_state = state;
    child
}

fn failure(send: &str) -> Failure {
    let case = making(send);
    child::order(&case.task, &case.workflow, 0, &case.order(), case.now).unwrap_err()
}

#[test]
fn rule_49_the_document_names_correlation_and_priority_or_its_parent_does() {
    let made = |send: &str| {
        let case = making(send);
        let mut of = case.order();
        of.correlation_id = Some("c-7".into());
        of.reply_channel = Some("shop".into());
        child::order(&case.task, &case.workflow, 0, &of, case.now).unwrap()
    };
    let usual = made("{ Total = \"/Order/Total\" }");
    assert_eq!((usual.document.text(), &*usual.submitter, usual.reply_channel), ("{\"Total\":1}", "test", None));
    assert_eq!((usual.correlation_id.as_deref(), usual.priority.map(|of| of.name())), (Some("c-7"), Some("normal")));
    let own = made("{ CorrelationID = \"c-8\", Priority = \"high\", ReplyChannel = \"shop\" }");
    assert_eq!((own.correlation_id.as_deref(), own.priority.map(|of| of.name())), (Some("c-8"), Some("high")));
    assert_eq!(own.reply_channel.as_deref(), Some("shop"));
}

#[test]
fn rule_49_a_document_that_no_post_could_have_is_refused_with_the_code_of_the_post() {
    for (send, code) in [
        ("\"/Order/Total\"", "not-an-object"),
        ("{ Priority = \"soon\" }", "invalid-field"),
        ("{ CorrelationID = 7 }", "invalid-field"),
        ("{ ReplyChanel = \"shop\" }", "invalid-field"),
        ("{ ReplyChannel = \"another's\" }", "invalid-field"),
        ("{ Item = \"/Order/Item\" }", "unsendable"),
    ] {
        assert_eq!(&*failure(send).code, code, "{send}");
    }
}

#[test]
fn rule_49_the_order_is_the_same_whether_it_is_made_or_undone() {
    let mut case = making("{ Key = \"/IdempotencyKey\" }");
    let order = |case: &Case| child::order(&case.task, &case.workflow, 0, &case.order(), case.now).unwrap();
    let forward = order(&case);
    case.cancel();
    assert_eq!((case.step("b").direction, case.requested()), (Direction::Undo, vec!["b"]), "no call is waited for");
    assert_eq!(order(&case).fingerprint, forward.fingerprint);
}

#[test]
fn rule_49_orders_are_five_deep_at_most() {
    let mut task = making("{}").task;
    for depth in 0..CHILDREN_DEEP_MAX {
        let parent = child::parent(&task, &"b".into()).unwrap();
        assert_eq!(parent.depth, depth + 1);
        task.parent = Some(Parent { depth: parent.depth, ..parent });
    }
    assert_eq!(&*child::parent(&task, &"b".into()).unwrap_err().code, code::TOO_DEEP);
}

#[test]
fn rule_49_a_child_owes_its_parent_the_news_of_its_end() {
    let mut case = Case::chain();
    case.task.parent = Some(Parent { order_id: case.task.order_id.again(), step: "b".into(), depth: 1 });
    case.wake();
    for step in ["a", "b", "c"] {
        case.done(step);
    }
    assert_eq!((case.state(), case.notified()), (ProcessState::Processed, vec!["ParentTold"]));
    assert!(case.task.watch.is_some(), "the supervisor tells it again");
    assert_eq!(case.next_sweep(), Verdict::Taken);
    assert_eq!(case.notified(), ["ParentTold"]);
    case.all_sent();
    assert!(case.task.unsent.is_empty() && case.task.watch.is_none());
}

#[test]
fn rule_49_the_end_of_a_child_is_a_reply_to_the_attempt_that_waits() {
    let case = making("{}");
    let outcome = |state, direction| child::outcome(&child_in(&case, state), direction);
    for state in [ProcessState::Pending, ProcessState::Processing, ProcessState::Compensating, ProcessState::Error] {
        for direction in [Direction::Forward, Direction::Undo] {
            assert_eq!(outcome(state, direction), Outcome::Accepted(Acceptance::default()), "{state:?}");
        }
        assert_eq!(told(&child_in(&case, state), &case.task), None, "{state:?}");
    }
    for (state, direction, expected) in [
        (ProcessState::Processed, Direction::Forward, None),
        (ProcessState::Compensated, Direction::Forward, Some(code::COMPENSATED)),
        (ProcessState::Closed, Direction::Forward, Some(code::CLOSED)),
        (ProcessState::Processed, Direction::Undo, Some(code::PROCESSED)),
        (ProcessState::Compensated, Direction::Undo, None),
        (ProcessState::Closed, Direction::Undo, Some(code::CLOSED)),
    ] {
        let failed = match outcome(state, direction) {
            Outcome::Failed(failure) => Some(failure.code),
            Outcome::Done(_) => None,
            Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => panic!("{state:?}"),
        };
        assert_eq!(failed.as_deref(), expected, "{state:?} {direction:?}");
    }
}

#[test]
fn rule_49_a_child_is_shown_once_it_is_made_and_after_a_refusal_never() {
    let id = |case: &Case| child::made(case.step("b"), case.task.order_id);
    let reply = |case: &mut Case, outcome| {
        let reply = case.reply_of("b", outcome);
        case.take(&reply);
    };
    let failed = |code: &str| Outcome::Failed(Failure { code: code.into(), message: "no".into() });
    let mut case = making("{}");
    let child = Some(case.task.order_id.child("b"));
    assert_eq!(id(&case), None, "it is about to be made");
    reply(&mut case, Outcome::Accepted(Acceptance::default()));
    assert_eq!(id(&case), child);
    case.cancel();
    assert_eq!((case.step("b").direction, id(&case)), (Direction::Undo, child), "its cancel is under way");
    let mut longer = making("{}");
    let step = longer.task.steps.iter_mut().find(|step| *step.name == *"b").unwrap();
    step.process_state = StepState::Pending;
    let (code, at) = (StepError::EXPIRED.into(), case.now);
    step.last_error = Some(StepError { code, message: "no result".into(), attempt: 1, at });
    assert_eq!(id(&longer), child, "it is asked again later");
    let mut processed = making("{}");
    reply(&mut processed, done());
    assert_eq!(id(&processed), child);
    for (code, expected) in [
        (code::TOO_DEEP, None),
        ("schema-mismatch", None),
        ("unsendable", None),
        (code::COMPENSATED, child),
        (code::CLOSED, child),
    ] {
        let mut rejected = making("{}");
        reply(&mut rejected, failed(code));
        assert_eq!((rejected.step("b").direction, id(&rejected)), (Direction::Undo, expected), "{code}");
    }
}

#[test]
fn rule_49_a_parent_is_told_only_while_its_step_waits() {
    let mut case = making("{}");
    let child = child_in(&case, ProcessState::Processed);
    let reply = told(&child, &case.task).unwrap();
    assert_eq!((reply.attempt, reply.hops, reply.direction), (1, 0, Direction::Forward));
    let mut turned = making("{}");
    turned.cancel();
    let undo = told(&child, &turned.task).unwrap();
    assert_eq!((undo.attempt, undo.direction), (2, Direction::Undo));
    assert_eq!(case.take(&reply), Verdict::Taken);
    assert_eq!((case.step("b").process_state, case.state()), (StepState::Processed, ProcessState::Processed));
    assert_eq!(told(&child, &case.task), None);
    let stranger = child.below(Some(Parent { order_id: case.task.order_id, step: "x".into(), depth: 1 }));
    assert_eq!(told(&stranger, &case.task), None);
}

#[test]
fn rule_49_a_request_for_a_child_counts_for_its_attempt_alone() {
    let mut case = making("{}");
    let request = |attempt| ChildRequest {
        order_id: case.task.order_id,
        step: "b".into(),
        direction: Direction::Forward,
        attempt,
        hops: 1,
    };
    let (first, second) = (request(1), request(2));
    assert_eq!(child_wanted(&case.task, &first), Wanted::Yes);
    assert_eq!(child_wanted(&case.task, &second), Wanted::Over);
    let accepted = case.reply_of("b", Outcome::Accepted(Acceptance::default()));
    case.take(&accepted);
    assert_eq!(child_wanted(&case.task, &first), Wanted::Over, "it is made");
    let end = case.reply_of("b", done());
    case.take(&end);
    assert!(case.state().is_final() && case.task.unsent.iter().all(|notice| notice.kind != NoticeKind::ParentTold));
}

#[test]
fn rule_49_a_child_is_posted_again_by_its_parent_alone() {
    let case = making("{}");
    let child = child_in(&case, ProcessState::Compensated);
    assert!(!child.may_be_posted_again() && child.below(None).may_be_posted_again());
}

#[test]
fn rule_49_the_cancel_of_a_child_has_one_id() {
    let case = making("{}");
    let parent = child::parent(&case.task, &"b".into()).unwrap();
    let child = case.task.order_id.child("b");
    let command = child::cancel(&parent, child);
    assert_eq!((command.action, command.order_id, &command), (Action::Cancel, child, &child::cancel(&parent, child)));
}
