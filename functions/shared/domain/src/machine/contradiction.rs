//! A result that contradicts how its step or its order ended (rule 5). It changes no state and starts nothing: a person
//! is told, once.

use super::turn::Turn;
use crate::limits::NAME_CHARS_MAX;
use crate::message::{Outcome, Reply};
use crate::output::OUTPUT_TOO_LARGE;
use crate::task::{Attempt, Direction, NoticeKind, ProcessState, Step, StepState, Task, What};
use crate::text::cut;

impl Task {
    /// Whether a result contradicted how a step or the order ended.
    #[must_use]
    pub fn is_contradicted(&self) -> bool {
        self.history.iter().any(|line| matches!(line.what, What::Contradicted(_)))
    }
}

impl Reply {
    /// What a result that does not count contradicts, in words. `None`: it repeats what is known, it says nothing about an
    /// effect, or the history tells of it already.
    pub(crate) fn contradiction(&self, task: &Task) -> Option<&'static str> {
        let (_, step) = task.step(&self.step)?;
        if step.approval.is_some() || !(1..=step.attempt).contains(&self.attempt) || self.is_told(task, step) {
            return None;
        }
        let failed_with = |code: &str| step.last_error.as_ref().is_some_and(|error| *error.code == *code);
        match (&self.outcome, self.direction) {
            (Outcome::Done(_), _) if failed_with(OUTPUT_TOO_LARGE) => None,
            // From the claim of the undo on, nobody knows which of the two came first.
            (Outcome::Done(_), Direction::Forward) if step.direction == Direction::Undo => {
                // A closed order undoes nothing any more.
                let is_late = step.started_at.is_some() || task.process_state == ProcessState::Closed;
                // An order that is erased has lost its outputs.
                let is_it = |of: &Attempt| of.direction == self.direction && of.name(&task.steps) == &*self.step;
                let was_done = task.history.iter().any(|line| matches!(&line.what, What::Processed(of) if is_it(of)));
                let is_news = step.output.is_none() && !was_done && is_late;
                is_news.then_some("it is reported done after its undo began, and was not known to be done before")
            }
            (Outcome::Done(_), _) if self.direction == step.direction => match step.process_state {
                StepState::Error => Some("it is reported done after it was given up"),
                StepState::Skipped => Some("it is reported done after the order went on without it"),
                StepState::Pending | StepState::Processing if task.process_state.is_final() => {
                    Some("it is reported done after the order was closed")
                }
                StepState::Pending | StepState::Processing | StepState::Processed => None,
            },
            (Outcome::Failed(failure), _) if self.direction == step.direction => {
                let is_done = step.process_state == StepState::Processed && self.attempt == step.attempt;
                let is_news = is_done && !failed_with(cut(&failure.code, NAME_CHARS_MAX));
                is_news.then_some("it is reported as failed after it was done")
            }
            (Outcome::Done(_) | Outcome::Failed(_), _)
            | (Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_), _) => None,
        }
    }

    /// Whether a person was told of this already. Each attempt of an open direction may bring news.
    fn is_told(&self, task: &Task, step: &Step) -> bool {
        let is_this = |of: &Attempt| {
            (of.name(&task.steps), of.direction) == (&*self.step, self.direction)
                && (of.direction != step.direction || of.number == step.attempt)
        };
        task.history.iter().any(|line| matches!(&line.what, What::Contradicted(of) if is_this(of)))
    }
}

impl Turn<'_> {
    /// Tells a person of a reply that is dropped, if it contradicts what is known. An order that is erased sends no message:
    /// the numbers of its workflow tell of it.
    pub(super) fn tell_contradiction(&mut self, reply: &Reply) {
        let Some(words) = reply.contradiction(&self.task) else { return };
        let Some((index, _)) = self.task.step(&reply.step) else { return };
        let contradicted = What::Contradicted(Attempt { direction: reply.direction, ..self.attempt(index) });
        self.record(contradicted, Some(words.into()));
        if self.task.erased_at.is_none() {
            self.owe(NoticeKind::OrderNeedsOperator);
        }
    }
}
