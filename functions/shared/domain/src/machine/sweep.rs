//! The supervisor's look at a task (rule 7). It asks for recovery and claims nothing itself.

use super::decision::{Happened, Verdict};
use super::turn::Turn;
use crate::backoff::Backoff;
use crate::keys::time_text;
use crate::task::{Direction, StepError, StepState, What, reason};
use crate::workflow::Remedy;

impl Turn<'_> {
    /// Counts expired attempts, requests lost wakes again, and moves a watch that was early.
    pub(super) fn sweep(&mut self) -> Verdict {
        // A wait that a wrong clock made too long makes no later look right.
        self.believe_times();
        if !self.is_due() {
            self.changed = false;
            return Verdict::Nothing;
        }
        self.exact_watch = true;
        let mut exhausted = Vec::new();
        for index in 0..self.task.steps.len() {
            let is_doubtful = self.is_doubtful(index);
            if is_doubtful {
                self.task.steps[index].doubted_at = Some(self.moment.now);
                self.note(Happened::Doubted(self.attempt(index)));
            }
            if !self.look_if_due(index) && !is_doubtful && self.is_expired(index) {
                let step = &self.task.steps[index];
                let trouble = step.trouble_of_attempt().map(|problem| format!("; the last call: {problem}"));
                let lacks = match (step.is_asked(), step.is_awaited()) {
                    (true, _) => "decision",
                    (false, true) => "result",
                    // A service that answers with an error is not silent.
                    (false, false) if trouble.is_some() => "success",
                    (false, false) => "answer",
                };
                let trouble = trouble.filter(|_| lacks == "success").unwrap_or_default();
                if self.expire(index, lacks, &trouble) {
                    exhausted.push((index, lacks, trouble));
                }
            }
        }
        // If two steps fail at once and one asks for compensation, compensation wins: it covers the other step as
        // well.
        exhausted
            .sort_by_key(|&(index, ..)| self.remedy(index, self.workflow.steps[index].on_exhausted) == Remedy::Hold);
        for (index, lacks, trouble) in exhausted {
            // After a compensation the later steps of this list are `Pending` again.
            if self.task.steps[index].process_state == StepState::Error {
                if lacks == "decision" {
                    let within = time_text(self.workflow.steps[index].awaited_ms());
                    self.exhaust(index, &format!("no decision within {within}"));
                    continue;
                }
                let failures = self.task.steps[index].failure_count;
                let attempts = if failures == 1 { "attempt" } else { "attempts" };
                self.exhaust(index, &format!("no {lacks} in {failures} {attempts}{trouble}"));
            }
        }
        self.look_at_deadline();
        if self.is_over() || (0..self.task.steps.len()).any(|index| self.is_claimable(index)) {
            self.wake_after(0, 0);
        }
        self.wake_for_new_waiting(0);
        self.resend_notices();
        // The watch moves in any case, or the next run would find the task again.
        self.changed = true;
        Verdict::Taken
    }

    /// Sends the notices of a settled task, and marks one that waits for an operator past its deadline.
    pub(super) fn sweep_unsent(&mut self) -> Verdict {
        let is_late = self.task.deadline_ahead().is_some_and(|at| at <= self.moment.now);
        if (self.task.unsent.is_empty() && !is_late) || !self.is_due() {
            return Verdict::Nothing;
        }
        self.exact_watch = true;
        self.look_at_deadline();
        self.resend_notices();
        self.changed = true;
        Verdict::Taken
    }

    /// Ends an attempt: the step is `Pending` after a back-off, or after a longer wait at the threshold (rule 39), or given
    /// up (`true`).
    fn expire(&mut self, index: usize, lacks: &str, trouble: &str) -> bool {
        let rule = &self.workflow.steps[index];
        let attempt = self.task.steps[index].attempt;
        self.leave_unanswered(index);
        let words = match self.task.steps[index].is_awaited() {
            false => format!("no {lacks} within {} ms{trouble}", rule.complete_within_ms),
            true => format!("no {lacks} within {}", time_text(rule.awaited_ms())),
        };
        self.count_failure(index, StepError::EXPIRED, &words);
        let failures = self.task.steps[index].failure_count;
        // No call is made after the horizon, so no wait may end after it.
        let longer_ms = rule.longer_wait_ms(failures);
        let until = self.moment.now.plus_ms(longer_ms.unwrap_or(0));
        if failures >= rule.failures_to_give_up() || self.is_past_horizon_at(index, until) {
            self.note(Happened::ExpiredLast(self.attempt(index)));
            self.give_up_unanswered(index);
            return true;
        }
        if let Some(longer_ms) = longer_ms {
            let step = &mut self.task.steps[index];
            step.process_state = StepState::Pending;
            step.waits_until = Some(until);
            let (count, time) = (failures + 1 - rule.max_failures, time_text(longer_ms));
            let times = rule.failures_to_give_up() - rule.max_failures;
            let why = format!("attempt {attempt} expired, failure {failures}; longer wait {count} of {times}: {time}");
            self.record(What::Expired(self.attempt(index)), Some(why.into()));
            return false;
        }
        // Steps of one task that expire together must not be retried together.
        let draw = self.moment.draw.rotate_left(u32::try_from(index).unwrap_or(0));
        let backoff = Backoff::at_retry(self.workflow.supervision.backoff, failures, draw);
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Pending;
        step.not_before = Some(self.moment.now.plus_ms(backoff.wait_time_ms));
        let why = format!("attempt {attempt} expired, failure {failures} of {}", rule.max_failures);
        self.record(What::Expired(self.attempt(index)), Some(why.into()));
        false
    }

    /// The step is exhausted: too many failures, or the horizon is over.
    pub(super) fn exhaust(&mut self, index: usize, what: &str) {
        let rule = &self.workflow.steps[index];
        let words = format!("{}: {what}", rule.name);
        let remedy = self.remedy(index, rule.on_exhausted);
        match (self.task.process_state.is_settled(), self.task.steps[index].direction, remedy) {
            // Another step has asked for an operator in this turn.
            (true, _, _) => {}
            (false, Direction::Forward, Remedy::Compensate) => self.compensate(reason::EXHAUSTED, &words, Some(index)),
            (false, Direction::Forward, Remedy::Hold) => self.hold(reason::EXHAUSTED, &words, Some(index)),
            (false, Direction::Forward, Remedy::Drop) => self.drop_line(index, &words),
            (false, Direction::Undo, _) => {
                self.hold(reason::COMPENSATION_FAILED, &format!("undo of {words}"), Some(index));
            }
        }
    }
}
