//! The effect of an agent's answer (rules 5, 8 and 21).

use std::sync::Arc;

use super::decision::{Dropped, TooLarge, Verdict};
use super::open_calls::settled_at;
use super::turn::{Replied, Turn, release};
use crate::json::JsonError;
use crate::keys::time_text;
use crate::limits::{
    COMPLETE_WITHIN_MS_MAX, DEFERRAL_MS_MAX, FALLBACKS_MAX, NAME_CHARS_MAX, OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX,
};
use crate::message::{Command, Deferral, Failure, Outcome, Reply, Trouble};
use crate::task::{Direction, ProcessState, Step, StepError, StepState, Task, What, reason, shortened};
use crate::time::Timestamp;
use crate::workflow::Remedy;

impl Reply {
    /// The index of the step that it is about.
    ///
    /// # Errors
    /// Why it does not count, as the task is.
    pub(crate) fn counts_for(&self, task: &Task) -> Result<usize, Dropped> {
        if task.process_state.is_final() {
            return Err(Dropped::Finished);
        }
        let (index, step) = task.step(&self.step).ok_or(Dropped::UnknownStep)?;
        if step.approval.is_some() {
            return Err(Dropped::NeedsPeople);
        }
        if self.attempt == 0 || self.attempt > step.attempt {
            return Err(Dropped::UnknownAttempt);
        }
        if self.direction != step.direction {
            return Err(Dropped::OtherDirection);
        }
        // The count of attempts covers both directions, so attempts before the first claim of this direction belong to
        // the other.
        if step.started_at.is_none() {
            return Err(Dropped::UnknownAttempt);
        }
        match (step.process_state, &self.outcome) {
            (StepState::Processed | StepState::Error | StepState::Skipped, _) => Err(Dropped::Closed),
            (StepState::Pending | StepState::Processing, Outcome::Done(_)) => Ok(index),
            (StepState::Processing, Outcome::Deferred(_))
                if self.is_in_flight(step) && step.is_awaited() && step.poll.is_none() =>
            {
                Err(Dropped::TakenOn)
            }
            (StepState::Pending | StepState::Processing, _) if self.is_in_flight(step) => Ok(index),
            (StepState::Pending | StepState::Processing, _) => Err(Dropped::StaleFailure),
        }
    }

    /// Whether it brings an output that two readers could read differently.
    fn is_ambiguous(&self) -> bool {
        let Outcome::Done(output) = &self.outcome else { return false };
        self.direction == Direction::Forward && matches!(output.check_unique(), Err(JsonError::Repeated(_)))
    }

    /// Whether it is from the attempt in flight. An attempt whose step is `Pending` again is already counted.
    fn is_in_flight(&self, step: &Step) -> bool {
        step.process_state == StepState::Processing && self.attempt == step.attempt
    }
}

impl Turn<'_> {
    /// A success counts from any attempt while the step is open in the same direction. A failure counts only from the
    /// current attempt. In `Error` the result is kept, and no step starts.
    pub(super) fn reply(&mut self, reply: &Reply, redelivered: bool) -> Verdict {
        let verdict = match reply.counts_for(&self.task) {
            Ok(_) | Err(Dropped::OtherDirection) if reply.is_ambiguous() => Verdict::Dropped(Dropped::Ambiguous),
            Ok(index) => self.outcome(index, reply),
            Err(Dropped::OtherDirection) if self.ends_wait(reply) => Verdict::Taken,
            Err(dropped) => {
                self.tell_contradiction(reply);
                Verdict::Dropped(dropped)
            }
        };
        // Nothing follows from it.
        if matches!(reply.outcome, Outcome::Retrying(_) | Outcome::Accepted(_)) {
            return verdict;
        }
        // A deferral ends its chain of messages: the horizon bounds deferrals.
        let hops = if matches!(reply.outcome, Outcome::Deferred(_)) { 0 } else { reply.hops };
        let taken = (verdict == Verdict::Taken).then_some(hops);
        let before = self.replied.unwrap_or(Replied { hops, taken, redelivered });
        self.replied = Some(Replied {
            hops: before.hops.max(hops),
            taken: before.taken.max(taken),
            redelivered: before.redelivered || redelivered,
        });
        verdict
    }

    /// What follows from all replies of the turn: no step is claimed between two of them.
    pub(super) fn follow_replies(&mut self) {
        let Some(Replied { hops, taken, redelivered }) = self.replied.take() else { return };
        self.forget_wait_that_is_over();
        if let Some(hops) = taken {
            self.go_further(hops);
        }
        if redelivered {
            self.repeat(hops);
        } else {
            self.wake_for_new_waiting(hops);
        }
    }

    /// Claims the steps that have become ready, unless the chain of messages exceeds the workflow's worst case. Such a
    /// chain is a loop. The result is kept in both cases.
    fn go_further(&mut self, hops: u32) {
        if hops > self.workflow.hops_max() && !self.task.process_state.is_settled() {
            self.cut_chain();
        } else {
            self.claim_ready(hops);
        }
    }

    fn outcome(&mut self, index: usize, reply: &Reply) -> Verdict {
        let failure = match &reply.outcome {
            Outcome::Done(output) => match self.too_large(index, output.text().len()) {
                None => {
                    self.keep_calls(index, reply);
                    self.complete(index, output.clone());
                    return Verdict::Taken;
                }
                Some(failure) => failure,
            },
            Outcome::Failed(failure) => failure.clone(),
            Outcome::Deferred(deferral) if self.task.steps[index].poll.is_some() => {
                return self.defer_look(index, deferral);
            }
            Outcome::Deferred(deferral) => {
                self.defer(index, deferral, reply);
                return Verdict::Taken;
            }
            Outcome::Retrying(trouble) => return self.note_trouble(index, trouble),
            Outcome::Accepted(acceptance) => {
                self.keep_calls(index, reply);
                return self.await_result(index, acceptance);
            }
        };
        if !reply.is_in_flight(&self.task.steps[index]) {
            return Verdict::Dropped(Dropped::StaleFailure);
        }
        self.keep_calls(index, reply);
        self.reject(index, &failure);
        Verdict::Taken
    }

    /// Takes the end of the attempt that was in flight when the order turned round. Its agent knows which of its calls
    /// may still have their effect, so the undo waits for those alone (rule 16). It may name the output.
    fn ends_wait(&mut self, reply: &Reply) -> bool {
        let Some((index, step)) = self.task.step(&reply.step) else { return false };
        if reply.attempt != step.attempt || !step.waits_for_calls() {
            return false;
        }
        let (open, output) = match &reply.outcome {
            // A call of a key that is done has no effect of its own.
            Outcome::Done(output) => (reply.may_run_until, Some(output)),
            // A request that comes back from a wait long after the turn made no call since.
            Outcome::Failed(_) | Outcome::Deferred(_) => {
                (reply.may_run_until.max(self.settled_if_over_at(index, self.turned_at())), None)
            }
            Outcome::Retrying(_) | Outcome::Accepted(_) => return false,
        };
        let open = step.may_run_until.min(open);
        let output =
            output.filter(|output| step.output.is_none() && too_large(&self.task, output.text().len()).is_none());
        if open == step.may_run_until && output.is_none() {
            return false;
        }
        let (step, now) = (&mut self.task.steps[index], self.moment.now);
        (step.may_run_until, step.not_before) = (open, open.filter(|&at| now < at));
        step.output = output.cloned().or(step.output.take());
        // The wake of the longer wait comes too late.
        self.waiting_before.retain(|&waiting| waiting != index);
        self.changed = true;
        true
    }

    /// When the order, or a line of it, turned round last. Its line is among the last ones of the history, or it was dropped.
    fn turned_at(&self) -> Timestamp {
        let is_turn = |what: &What| matches!(what, What::Entered(ProcessState::Compensating) | What::Dropped(_));
        let line = self.task.history.iter().rfind(|line| is_turn(&line.what));
        line.map_or(self.moment.now, |line| line.at.min(self.moment.now))
    }

    /// Keeps what went wrong with the last call of the attempt in flight (rule 32). The attempt goes on.
    fn note_trouble(&mut self, index: usize, trouble: &Trouble) -> Verdict {
        let (step, at) = (&mut self.task.steps[index], self.moment.now);
        let message = shortened(&trouble.problem);
        if step.trouble_of_attempt() != Some(&*message) {
            let code = StepError::RETRYING.into();
            step.last_error = Some(StepError { code, message, attempt: step.attempt, at });
            self.changed = true;
        }
        self.verdict()
    }

    /// Keeps how long the call took, and which calls of the step are open.
    fn keep_calls(&mut self, index: usize, reply: &Reply) {
        self.keep_open_calls(index, reply);
        self.task.steps[index].call_ms = reply.call_ms.map(|ms| ms.min(COMPLETE_WITHIN_MS_MAX));
    }

    /// Keeps the time until which a call of the step may still have its effect (rule 16). The agent knows it for the
    /// attempt that it answers. Any other attempt in flight stays without an answer.
    fn keep_open_calls(&mut self, index: usize, reply: &Reply) {
        let settled = settled_at(&self.task.steps[index], &self.workflow.steps[index]);
        let (over, known) = (self.settled_if_over(index), reply.may_run_until);
        let step = &mut self.task.steps[index];
        step.may_run_until = match &reply.outcome {
            _ if !reply.is_in_flight(step) => step.may_run_until.max(settled),
            // A call of a key that is done has no effect of its own, whichever request it is of. The API does not know
            // the call of an early result: its agent looks at the step, so it begins within a second.
            Outcome::Done(_) => known.min(settled).min(over),
            // A duplicate of the request may be at work.
            Outcome::Deferred(_) => known.max(over).min(settled),
            // Nor has a call of a key that was taken on. An agent that names no time made its call before now.
            Outcome::Accepted(_) if !step.is_awaited() => step.may_run_until.max(known.or(over).min(settled)).min(over),
            Outcome::Failed(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => {
                step.may_run_until.min(over).max(known.min(settled))
            }
        };
    }

    /// The service is known to fail: the attempt is given back, and no failure is counted.
    fn defer(&mut self, index: usize, deferral: &Deferral, reply: &Reply) {
        let is_settled = self.task.process_state.is_settled();
        let is_over = self.is_past_horizon(index) && !is_settled;
        let fallback = deferral.fallback.as_deref().filter(|_| self.task.steps[index].is_uncalled());
        let mut wait_ms = deferral.wait_ms.min(DEFERRAL_MS_MAX);
        if let Some(fallback) = fallback {
            self.task.steps[index].declined = self.task.steps[index].attempt;
            let why = (!is_over).then(|| self.choose_agent(index, fallback, &mut wait_ms));
            self.record_deferred(index, why);
        } else {
            self.keep_open_calls(index, reply);
            self.record_deferred(index, None);
        }
        if is_over {
            release(&mut self.task.steps[index]);
            self.give_up_unanswered(index);
            let horizon = time_text(self.workflow.steps[index].horizon_ms);
            self.exhaust(index, &format!("put off until its horizon of {horizon} was over; its service is failing"));
            return;
        }
        let horizon_ms = self.workflow.steps[index].horizon_ms;
        let step = &mut self.task.steps[index];
        // At its horizon it is given up, unless the order waits for an operator.
        let asked = self.moment.now.plus_ms(wait_ms);
        let horizon = step.started_at.filter(|_| !is_settled).map(|at| at.plus_ms(horizon_ms));
        let until = horizon.map_or(asked, |at| asked.min(at));
        // The longest wait may be one for a call under way, which may take longer still.
        let settled = step.may_run_until.filter(|_| wait_ms >= DEFERRAL_MS_MAX);
        step.process_state = StepState::Pending;
        release(step);
        step.not_before = settled.max(Some(until));
    }

    /// Chooses the agent of a step after its agent declined it (rule 21): the next fallback, without a wait. After the
    /// last one the workflow's agent has its turn again when the wait is over. Returns the words for it.
    fn choose_agent(&mut self, index: usize, fallback: &[Arc<str>], wait_ms: &mut u64) -> Arc<str> {
        let (step, usual) = (&mut self.task.steps[index], &self.workflow.steps[index].agent);
        if step.agent == *usual {
            // No list may lead back to its own agent without a wait.
            let is_other = |name: &&Arc<str>| *name != usual && (1..=NAME_CHARS_MAX).contains(&name.chars().count());
            step.fallback = fallback.iter().filter(is_other).take(FALLBACKS_MAX).cloned().collect();
        }
        let (declines, rest) = (step.agent.clone(), std::mem::take(&mut step.fallback));
        let mut rest = rest.into_iter();
        match rest.next() {
            Some(next) => {
                let words = format!("{declines} is failing, {next} is asked instead").into();
                (step.agent, step.fallback, *wait_ms) = (next, rest.collect(), 0);
                words
            }
            None => {
                step.agent = usual.clone();
                format!("{declines} is failing, {usual} is asked again after a wait").into()
            }
        }
    }

    /// Refuses an output that is too large. The message is for the agent's author.
    fn too_large(&self, index: usize, bytes: usize) -> Option<Failure> {
        let too_large = match self.task.steps[index].direction {
            Direction::Forward => too_large(&self.task, bytes)?,
            Direction::Undo => return None,
        };
        Some(Failure { code: "output-too-large".into(), message: too_large.to_string().into() })
    }

    /// The service rejected the step for good.
    fn reject(&mut self, index: usize, failure: &Failure) {
        self.reject_by(None, index, failure);
    }

    /// A service or a person rejected the step for good.
    pub(super) fn reject_by(&mut self, command: Option<&Command>, index: usize, failure: &Failure) {
        self.count_failure(index, &failure.code, &failure.message);
        let step = &self.task.steps[index];
        if step.optional && step.direction == Direction::Forward {
            return self.skip_rejected(index, failure);
        }
        self.end_step(index);
        self.record_by(command, What::Rejected(self.attempt(index)));
        let name = self.task.steps[index].name.clone();
        let words = shortened(&format!("{name}: {} ({})", failure.message, failure.code));
        match (self.task.process_state, self.task.steps[index].direction) {
            (ProcessState::Pending | ProcessState::Processing, Direction::Forward) => {
                match self.remedy(index, self.workflow.steps[index].on_rejected) {
                    Remedy::Compensate => self.compensate(reason::REJECTED, &words, Some(index)),
                    Remedy::Hold => self.hold(reason::REJECTED, &words, Some(index)),
                    Remedy::Drop => self.drop_line(index, &words),
                }
            }
            (ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating, Direction::Undo) => {
                self.hold(reason::COMPENSATION_FAILED, &format!("undo of {words}"), Some(index));
            }
            // An operator was already asked, and the step shows this failure too. A step never runs against its task.
            (ProcessState::Error | ProcessState::Processed | ProcessState::Compensated | ProcessState::Closed, _)
            | (ProcessState::Compensating, Direction::Forward) => {}
        }
    }
}

/// Whether one more output of so many bytes exceeds a limit.
pub(super) fn too_large(task: &Task, bytes: usize) -> Option<TooLarge> {
    let others = task.steps.iter().filter_map(|step| step.output.as_ref());
    let bytes_in_all = bytes + others.map(|output| output.text().len()).sum::<usize>();
    if bytes > OUTPUT_BYTES_MAX {
        return Some(TooLarge::One(bytes));
    }
    (bytes_in_all > OUTPUTS_BYTES_MAX).then_some(TooLarge::All(bytes_in_all))
}
