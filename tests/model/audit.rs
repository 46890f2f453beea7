//! What a single write, or a single call, must never do, whatever state it was made in: the invariants about changes.

use domain::task::{ProcessState, StepState};
use domain::workflow::Workflow;

use super::message::{Answer, Attempt, CommandKind, Message};
use super::state::Cause;
use super::task::{Step, Task};

/// What was found to be wrong, by the invariant that it breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Breach {
    /// 2: a step's attempt went back, jumped, or was claimed a second time.
    Attempt,
    /// 3: an attempt under way was ended by something that has no say in it.
    EndedByOther,
    /// 4: a failure was counted that no attempt under way had, or two at once.
    Counted,
    /// 5: the key is not that of the step and direction, so that the service cannot recognise a repeat.
    Key,
    /// 6: a step started before those that it comes after, or was undone before those that came after it.
    Order,
    /// 7: what ended changed again.
    Absorbing,
    /// 9: an undo that was confirmed did not stay, or an effect came after it.
    Undone,
    /// 17: an agent took a service that is at work for one that says no.
    Misread,
    /// Rule 31: an order was closed by nobody, or a call had its effect after that.
    Closed,
    /// Rule 22: an order went by another version than the one that it is pinned to.
    Version,
    /// Rule 50: a line was dropped for no failure of its own, or not for good, or with all others.
    Dropped,
    /// The state machine refused a state that it made itself.
    Impossible,
}

/// A write: what it was made on, what it wrote, and why.
pub(super) struct Write<'a> {
    pub(super) before: &'a Task,
    pub(super) after: &'a Task,
    pub(super) cause: Cause,
    /// Whether the supervisor's clock showed that the attempt of the step at this place was over.
    pub(super) is_expired: &'a dyn Fn(usize) -> bool,
}

impl Write<'_> {
    /// What is wrong with it.
    pub(super) fn breach(&self, workflow: &Workflow) -> Option<Breach> {
        let Self { before, after, .. } = self;
        if is_final(before.state) && (before.state, before.steps) != (after.state, after.steps) {
            return Some(Breach::Absorbing);
        }
        let is_closed = after.state == ProcessState::Closed && before.state != ProcessState::Closed;
        let is_command = self.cause == Cause::Message(Message::Command(CommandKind::Close));
        if is_closed && !(is_command && before.state == ProcessState::Error && before.steps == after.steps) {
            return Some(Breach::Closed);
        }
        let is_kept = |(before, after): (&Step, &Step)| after.dropped || !before.dropped;
        if after.steps.iter().all(|step| step.dropped) || !before.steps.iter().zip(&after.steps).all(is_kept) {
            return Some(Breach::Dropped);
        }
        (0..before.steps.len()).find_map(|index| self.breach_at(index, workflow))
    }

    fn breach_at(&self, index: usize, workflow: &Workflow) -> Option<Breach> {
        let (before, after) = (&self.before.steps[index], &self.after.steps[index]);
        let claims = after.attempt.checked_sub(before.attempt);
        if !matches!(claims, Some(0 | 1)) {
            return Some(Breach::Attempt);
        }
        let is_claimed = claims == Some(1);
        let has_begun = after.state == StepState::Processing && before.state != StepState::Processing;
        if (is_claimed && after.state != StepState::Processing) || (has_begun && !is_claimed) {
            return Some(Breach::Attempt);
        }
        if is_claimed && !self.is_in_order(index, workflow) {
            return Some(Breach::Order);
        }
        if (before.undo && !after.undo) || (before.is_undone() && !after.is_undone()) {
            return Some(Breach::Undone);
        }
        let is_mended = before.state == StepState::Error && after.state == StepState::Processed;
        if is_mended && !self.is_settled(index) {
            return Some(Breach::EndedByOther);
        }
        if after.dropped && !before.dropped && !(after.undo && self.may_drop(index)) {
            return Some(Breach::Dropped);
        }
        let has_ended = before.state == StepState::Processing && (after.state != StepState::Processing || is_claimed);
        let counts_one = after.failures == before.failures + 1 && has_ended;
        if after.failures > after.attempt || (after.failures > before.failures && !counts_one) {
            return Some(Breach::Counted);
        }
        (has_ended && !self.may_end(index)).then_some(Breach::EndedByOther)
    }

    /// Whether an operator says of the step at this place that it was mended by hand.
    fn is_settled(&self, index: usize) -> bool {
        let Cause::Message(Message::Command(CommandKind::Settle { step, undo })) = self.cause else { return false };
        usize::from(step) == index && undo == self.before.steps[index].undo
    }

    /// Whether the step at this place failed for good, which drops its line.
    fn may_drop(&self, index: usize) -> bool {
        match self.cause {
            Cause::Message(Message::Reply(attempt, Answer::Failed | Answer::FailedUnderWay)) => {
                is_current(attempt, index, &self.before.steps[index])
            }
            Cause::Tick => (self.is_expired)(index),
            Cause::Message(_) | Cause::DeadLetter(_) => false,
        }
    }

    /// Whether everything is done that has to be before the step at this place may start, or be undone.
    fn is_in_order(&self, index: usize, workflow: &Workflow) -> bool {
        let (steps, rule) = (&self.after.steps, &workflow.steps[index]);
        if steps[index].undo {
            let is_gone = |later: usize| steps[later].attempt == 0 || steps[later].is_undone();
            (0..steps.len()).all(|later| !workflow.steps[later].after.contains(&index) || is_gone(later))
        } else {
            rule.after.iter().all(|&earlier| steps[earlier].state == StepState::Processed && !steps[earlier].undo)
        }
    }

    /// Whether the cause has a say in the attempt under way of the step at this place.
    fn may_end(&self, index: usize) -> bool {
        let step = &self.before.steps[index];
        let is_turned_round = !step.undo && self.after.steps[index].undo;
        match self.cause {
            Cause::Message(Message::Reply(attempt, answer)) if usize::from(attempt.step) == index => {
                let is_of_this = attempt.undo == step.undo && attempt.number <= step.attempt;
                // Who takes a call on ends nothing.
                is_of_this && answer != Answer::Accepted && (answer == Answer::Done || attempt.number == step.attempt)
            }
            // Another step was refused for good, so that the order is undone.
            Cause::Message(
                Message::Reply(_, Answer::Failed | Answer::FailedUnderWay) | Message::Command(CommandKind::Cancel),
            ) => is_turned_round,
            Cause::Tick => (self.is_expired)(index) || is_turned_round,
            Cause::DeadLetter(Message::Request(attempt, ..) | Message::Reply(attempt, _)) => {
                is_current(attempt, index, step)
            }
            Cause::Message(
                Message::Submission
                | Message::Wake
                | Message::Request(..)
                | Message::Reply(_, Answer::Done | Answer::Deferred | Answer::Accepted)
                | Message::Command(
                    CommandKind::Resubmit
                    | CommandKind::Pause
                    | CommandKind::Resume
                    | CommandKind::Settle { .. }
                    | CommandKind::Note
                    | CommandKind::Close,
                ),
            )
            | Cause::DeadLetter(Message::Submission | Message::Wake | Message::Command(_)) => false,
        }
    }
}

fn is_current(attempt: Attempt, index: usize, step: &Step) -> bool {
    usize::from(attempt.step) == index && (attempt.undo, attempt.number) == (step.undo, step.attempt)
}

/// Whether a task in this state is over.
pub(super) const fn is_final(state: ProcessState) -> bool {
    state.is_final()
}
