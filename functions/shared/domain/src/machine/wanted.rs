//! Whether an agent may still call for an attempt.

use crate::message::{ChildRequest, Request};
use crate::task::{Direction, Step, StepState, Task};

/// What an agent that looks at the task learns about its attempt (rule 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// It is in flight.
    Yes,
    /// No call of it may start, and the scheduler waits to learn that: the order is paused, or has turned round.
    NoMore,
    /// It is over.
    Over,
}

/// Whether the attempt of this request is still wanted.
#[must_use]
pub fn wanted(task: &Task, request: &Request) -> Wanted {
    if request.look.is_some() {
        let step = task.step(&request.step).map(|(_, step)| step).filter(|_| !task.process_state.is_final());
        let is_asked =
            |step: &Step| step.attempt == request.attempt && step.is_awaited() && step.direction == request.direction;
        return if step.is_some_and(is_asked) { Wanted::Yes } else { Wanted::Over };
    }
    is_wanted(task, &request.step, request.direction, request.attempt)
}

/// The same of a request for a child order (rule 49).
#[must_use]
pub fn child_wanted(task: &Task, request: &ChildRequest) -> Wanted {
    is_wanted(task, &request.step, request.direction, request.attempt)
}

fn is_wanted(task: &Task, step: &str, direction: Direction, attempt: u32) -> Wanted {
    let Some((_, step)) = task.step(step) else { return Wanted::Over };
    if task.process_state.is_final() || step.attempt != attempt || step.is_awaited() {
        return Wanted::Over;
    }
    match (step.process_state, step.direction == direction) {
        (StepState::Processing, true) if task.paused.is_none() => Wanted::Yes,
        (StepState::Processing, true) | (StepState::Pending, false) => Wanted::NoMore,
        (StepState::Pending, true)
        | (StepState::Processing, false)
        | (StepState::Processed | StepState::Error | StepState::Skipped, _) => Wanted::Over,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::request;
    use crate::machine::testing::{Case, failed};
    use crate::message::{Acceptance, Outcome};

    /// A chain whose step a is in flight, and its request.
    fn in_flight() -> (Case, Request) {
        let mut case = Case::chain();
        case.wake();
        let request = request_of(&case, 0);
        (case, request)
    }

    fn request_of(case: &Case, step: usize) -> Request {
        request(&case.task, &case.workflow, step, &case.order(), case.now, 0).unwrap().unwrap().1
    }

    /// What an agent learns about the attempt that was in flight before this happened.
    fn after(happen: impl FnOnce(&mut Case)) -> Wanted {
        let (mut case, request) = in_flight();
        happen(&mut case);
        wanted(&case.task, &request)
    }

    #[test]
    fn an_attempt_is_wanted_while_it_is_in_flight_also_if_the_order_waits_for_an_operator() {
        assert_eq!(after(|_| {}), Wanted::Yes);
        let mut case = Case::new(&[("a", &[], ""), ("b", &[], "on_rejected = \"hold\"")], false);
        case.wake();
        let request = request_of(&case, 0);
        case.rejected("b");
        assert_eq!((case.state().is_settled(), wanted(&case.task, &request)), (true, Wanted::Yes));
    }

    #[test]
    fn rule_6_no_call_is_wanted_of_an_attempt_that_is_over() {
        let over = |happen: fn(&mut Case), what: &str| assert_eq!(after(happen), Wanted::Over, "{what}");
        over(|case| _ = case.done("a"), "done, for example by a callback");
        over(Case::expire_all, "expired");
        let again = |case: &mut Case| {
            case.expire_all();
            case.retry_all();
        };
        over(again, "another attempt is in flight");
        let taken_on = |case: &mut Case| {
            let accepted = case.reply_of("a", Outcome::Accepted(Acceptance::default()));
            case.take(&accepted);
        };
        over(taken_on, "taken on");
        let ended = |case: &mut Case| {
            case.cancel();
            case.pass_ms(40_000);
            case.wake();
            case.done("a");
            assert!(case.state().is_final());
        };
        over(ended, "of an order that has ended");
        let (case, mut request) = in_flight();
        request.step = "no such step".into();
        assert_eq!(wanted(&case.task, &request), Wanted::Over);
    }

    #[test]
    fn rule_6_of_an_attempt_of_a_paused_order_or_of_one_that_turned_round_the_scheduler_learns_the_end() {
        assert_eq!(after(|case| _ = case.pause()), Wanted::NoMore);
        assert_eq!(after(|case| _ = case.cancel()), Wanted::NoMore);
        let undo_began = |case: &mut Case| {
            case.cancel();
            case.pass_ms(40_000);
            case.wake();
        };
        assert_eq!(after(undo_began), Wanted::Over, "the undo has begun");
        let (mut case, _) = in_flight();
        undo_began(&mut case);
        let undo = request_of(&case, 0);
        assert_eq!(wanted(&case.task, &undo), Wanted::Yes);
        let reply = case.reply_of("a", failed());
        case.take(&reply);
        assert_eq!(wanted(&case.task, &undo), Wanted::Over, "the undo was given up");
    }
}
