//! A step that an operator ends by hand (rule 27).

use super::close::busy_until;
use super::decision::{Refused, Verdict};
use super::lines;
use super::reply::too_large;
use super::turn::Turn;
use crate::json::Json;
use crate::message::{Command, Settled, Settlement};
use crate::task::{Direction, ProcessState, Reason, Step, StepError, StepState, Task, What, reason, shortened};
use crate::time::Timestamp;

impl Settlement {
    /// The reason why this step of the task cannot be settled so; `None` if it can.
    pub(super) fn refusal(&self, task: &Task, now: Timestamp) -> Option<Refused> {
        let is_meant = |step: &&Step| is_open_to_settle(step) && step.direction == self.outcome.direction();
        let Some(step) = task.step(&self.step).map(|(_, step)| step).filter(is_meant) else {
            return Some(others_to_settle(task));
        };
        // The undo of a line waits for its calls.
        if let Some(until) = busy_until(step, now).filter(|_| self.outcome != Settled::Dropped) {
            return Some(Refused::UnderWay { until });
        }
        match self.outcome {
            Settled::Dropped => lines::refusal(task, step),
            // Only a decision ends an approval.
            Settled::Done if step.approval.is_some() => Some(Refused::NeedsApproval),
            Settled::Done => too_large(task, self.output().text().len()).map(Refused::OutputTooLarge),
            Settled::Undone => None,
            Settled::Skipped => (!step.optional).then_some(Refused::NotOptional),
        }
    }

    fn output(&self) -> Json {
        self.output.clone().unwrap_or_else(Json::empty)
    }
}

/// Names the steps that can be settled, each with its outcome.
fn others_to_settle(task: &Task) -> Refused {
    let open = task.steps.iter().filter(|step| is_open_to_settle(step));
    let named: Vec<String> = open
        .map(|step| match step.direction {
            Direction::Forward => format!("settle ID {} --outcome done", step.name),
            Direction::Undo => format!("settle ID {} --outcome undone", step.name),
        })
        .collect();
    if named.is_empty() { Refused::NothingToSettle } else { Refused::OthersToSettle(named.join(", ").into()) }
}

/// Whether an operator may end the step by hand.
pub(super) fn is_open_to_settle(step: &Step) -> bool {
    step.process_state == StepState::Error
}

impl Turn<'_> {
    /// Ends the step as if its agent had replied `Done`. Nobody is called. The order goes on once no step is in `Error`.
    pub(super) fn settle(&mut self, command: &Command) -> Verdict {
        let Some(settlement) = &command.settle else { return Verdict::Nothing };
        let Some((index, _)) = self.task.step(&settlement.step) else { return Verdict::Nothing };
        if settlement.outcome == Settled::Dropped
            && let Some(step) = self.begun_with_line(index)
        {
            return Verdict::Refused(Refused::LineIsUsed { step });
        }
        self.task.steps[index].call_ms = None;
        let mut settled = What::Settled(self.attempt(index));
        match settlement.outcome {
            Settled::Done | Settled::Undone => self.set_done(index, settlement.output()),
            Settled::Skipped => self.end_skipped(index),
            Settled::Dropped => {
                settled = What::Dropped(self.attempt(index));
                self.turn_line(index);
            }
        }
        match self.task.steps.iter().find(|step| is_open_to_settle(step)) {
            Some(left) => {
                let (code, message) = why_in_error(left);
                let message = shortened(&message);
                // It is the same error, which the operator has seen.
                if let Some(reason) = &mut self.task.reason
                    && reason.step.as_ref() == Some(&settlement.step)
                {
                    *reason = Reason { code: code.into(), message, step: Some(left.name.clone()), ..reason.clone() };
                }
                self.record_by(Some(command), settled);
            }
            None => {
                self.leave_error();
                self.go_on(command, settled);
                self.finish_if_done();
            }
        }
        Verdict::Taken
    }

    /// The order leaves `Error` in its direction.
    pub(super) fn leave_error(&mut self) {
        let undoing = self.task.is_undoing();
        self.task.process_state = if undoing { ProcessState::Compensating } else { ProcessState::Processing };
        // A resumed compensation keeps the reason that it had before an undo failed.
        let earlier = self.task.reason.take().and_then(|reason| reason.earlier);
        self.task.reason = earlier.map(|reason| *reason).filter(|_| undoing);
    }
}

/// Code and words for a step that is in `Error`.
fn why_in_error(step: &Step) -> (&'static str, String) {
    let of_attempt = step.last_error.as_ref().filter(|error| error.attempt == step.attempt);
    let code = match (step.direction, of_attempt.map(|error| &*error.code)) {
        (Direction::Undo, _) => reason::COMPENSATION_FAILED,
        (Direction::Forward, None | Some(StepError::EXPIRED | StepError::RETRYING)) => reason::EXHAUSTED,
        (Direction::Forward, Some(reason::DEAD_LETTER)) => reason::DEAD_LETTER,
        (Direction::Forward, Some(_)) => reason::REJECTED,
    };
    let name = &step.name;
    let message = match &step.last_error {
        Some(error) => format!("{name}: {} ({})", error.message, error.code),
        None => format!("{name}: given up"),
    };
    (code, if step.direction == Direction::Undo { format!("undo of {message}") } else { message })
}
