//! The effect of a dead letter on its order. A dead letter is a message that was delivered too often without success.

use super::decision::Verdict;
use super::event::DeadLetterSubject;
use super::turn::Turn;
use crate::task::{StepState, reason};

impl Turn<'_> {
    /// Stops the order and asks an operator, if the order still needs the message. The operator's resubmit makes a new
    /// attempt, which settles message and state together. A dead letter about an attempt that is over changes nothing.
    /// The same holds for a wake that has become needless.
    pub(super) fn dead_letter(&mut self, dead_letter: &DeadLetterSubject) -> Verdict {
        match dead_letter {
            DeadLetterSubject::Wake => {
                if !self.is_over() && !(0..self.task.steps.len()).any(|index| self.is_claimable(index)) {
                    return Verdict::Nothing;
                }
                self.hold(reason::DEAD_LETTER, "the message that starts its next step could not be handled", None);
            }
            DeadLetterSubject::Attempt { step: name, direction, attempt } => {
                let Some((index, step)) = self.task.step(name) else {
                    return Verdict::Nothing;
                };
                let is_current = step.process_state == StepState::Processing
                    && (step.direction, step.attempt) == (*direction, *attempt);
                // After its deadline, the supervisor counts the attempt, with or without a dead letter. The result of
                // one that was taken on comes only once.
                let is_in_time = step.is_awaited() || step.complete_by.is_some_and(|at| self.moment.now < at);
                if !(is_current && is_in_time) {
                    return Verdict::Nothing;
                }
                let words = format!("{name}: the messages of attempt {attempt} could not be handled");
                // The agent may still be at work.
                self.leave_unanswered(index);
                self.count_failure(index, reason::DEAD_LETTER, &words);
                self.give_up(index);
                self.hold(reason::DEAD_LETTER, &words, Some(index));
            }
        }
        Verdict::Taken
    }
}
