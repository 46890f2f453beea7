//! One turn of the state machine: the working copy of a task with the elementary moves.

use std::collections::BTreeSet;

use super::decision::{Decision, Effect, Happened, Verdict};
use super::event::Moment;
use super::open_calls::{believed_settled, open_until, settled_at};
use crate::json::Json;
use crate::limits::{DELAY_MS_MAX, EARLY_MS_MAX, LOOKED_MS_MAX, NAME_CHARS_MAX, RESENDS_BEFORE_ALERT};
use crate::message::Command;
use crate::task::{
    Direction, Notice, NoticeKind, ProcessState, Reason, Step, StepError, StepState, Task, What, shortened,
};
use crate::text::cut;
use crate::time::Timestamp;
use crate::workflow::{StepRule, Workflow};

/// A task while an event is applied to it.
pub(super) struct Turn<'a> {
    /// The copy that is changed.
    pub(super) task: Task,
    pub(super) workflow: &'a Workflow,
    pub(super) moment: Moment<'a>,
    /// Whether there is anything to write.
    pub(super) changed: bool,
    /// Whether the watch is set to the real deadline instead of staying early (rule 14).
    pub(super) exact_watch: bool,
    pub(super) effects: Vec<Effect>,
    pub(super) happened: Vec<Happened>,
    pub(super) verdicts: Vec<Verdict>,
    /// Replies of which more may follow than their outcome.
    pub(super) replied: Option<Replied>,
    /// Steps that waited for their `NotBefore` when the turn began. Their wake is in flight.
    pub(super) waiting_before: Vec<usize>,
    /// Steps claimed in this turn.
    pub(super) claimed: Vec<usize>,
    /// Whether a step ended in this turn that needs no call.
    pub(super) has_skipped: bool,
}

/// Replies that were taken or dropped in a turn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Replied {
    /// Messages in the longest chain that led here.
    pub(super) hops: u32,
    /// The same of those that were taken.
    pub(super) taken: Option<u32>,
    /// Whether one of them came again.
    pub(super) redelivered: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn new(task: &Task, workflow: &'a Workflow, moment: Moment<'a>) -> Self {
        let mut turn = Self {
            task: task.clone(),
            workflow,
            moment,
            changed: false,
            exact_watch: false,
            effects: Vec::new(),
            happened: Vec::new(),
            verdicts: Vec::with_capacity(1),
            replied: None,
            waiting_before: Vec::new(),
            claimed: Vec::new(),
            has_skipped: false,
        };
        turn.waiting_before = turn.waiting();
        turn
    }

    /// Ends the turn: numbers the version, and sets the next look at the task.
    pub(super) fn end(mut self) -> Decision {
        if self.changed {
            self.task.version += 1;
            self.task.nonce = self.moment.nonce;
            self.settle_watch();
            self.settle_expiry();
        }
        let Self { task, effects, happened, verdicts, changed, .. } = self;
        Decision { change: changed.then_some(task), effects, happened, verdicts }
    }

    /// An ended order that owes no message is deleted after the time of its workflow (rule 44).
    fn settle_expiry(&mut self) {
        let Some(retain_ms) = self.workflow.retain.after(self.task.process_state) else { return };
        if self.task.expires_at.is_none() && self.task.unsent.is_empty() {
            // A clock that was set back must not make the time shorter.
            let ended_at = self.task.history.iter().map(|line| line.at).max().unwrap_or_default();
            self.task.expires_at = Some(self.moment.now.max(ended_at).plus_ms(retain_ms));
        }
    }

    pub(super) const fn verdict(&self) -> Verdict {
        if self.changed { Verdict::Taken } else { Verdict::Nothing }
    }

    // ---- which steps may start

    /// Whether the step could be claimed but for its `NotBefore`.
    pub(super) fn is_ready(&self, index: usize) -> bool {
        self.task.paused.is_none() && self.is_its_turn(index)
    }

    /// The same, whether or not the order is paused.
    pub(super) fn is_its_turn(&self, index: usize) -> bool {
        let (step, rule) = (&self.task.steps[index], &self.workflow.steps[index]);
        if step.process_state != StepState::Pending || step.locked_by.is_some() {
            return false;
        }
        let steps = &self.task.steps;
        match (self.task.process_state, step.direction) {
            (ProcessState::Pending | ProcessState::Processing, Direction::Forward) => {
                // A step that is skipped from the start hides none of those before it.
                rule.ancestors.iter().all(|&earlier| steps[earlier].process_state.is_over() || steps[earlier].dropped)
            }
            // Reverse order: every later step that was claimed is undone first. What comes after all lines does without one
            // that was dropped.
            (
                state @ (ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating),
                Direction::Undo,
            ) => {
                // A step between may have been skipped, so it is not enough to look at the next ones.
                let is_whole = state == ProcessState::Compensating;
                let is_later =
                    |other: &StepRule| other.ancestors.contains(&index) && (is_whole || other.is_of_line(rule));
                let is_gone = |step: &Step| !step.was_claimed() || step.is_undone();
                steps.iter().zip(&self.workflow.steps).all(|(step, other)| !is_later(other) || is_gone(step))
            }
            (ProcessState::Compensating, Direction::Forward)
            | (ProcessState::Processed | ProcessState::Error | ProcessState::Compensated | ProcessState::Closed, _) => {
                false
            }
        }
    }

    pub(super) fn is_claimable(&self, index: usize) -> bool {
        let Step { not_before, waits_until, .. } = &self.task.steps[index];
        let is_over = |at: &Timestamp| *at <= self.moment.now;
        self.is_ready(index) && [not_before, waits_until].into_iter().flatten().all(is_over)
    }

    /// Steps that are ready but for a time that is to come.
    fn waiting(&self) -> Vec<usize> {
        (0..self.task.steps.len()).filter(|&index| self.is_ready(index) && !self.is_claimable(index)).collect()
    }

    // ---- claims (rule 1)

    /// Claims every step that may start now, all in the same write. A step that waited until its horizon was over is
    /// given up instead: its service may not recognise the key any more. Before that, the order may be found late.
    pub(super) fn claim_ready(&mut self, hops: u32) {
        self.look_at_deadline();
        for index in 0..self.task.steps.len() {
            if self.is_claimable(index) && self.is_past_horizon(index) {
                self.give_up_unanswered(index);
                self.exhaust(index, "it was not its turn again before its horizon was over");
            }
        }
        self.end_without_calls();
        self.begin_waits();
        for index in 0..self.task.steps.len() {
            if self.is_claimable(index) {
                self.claim(index, hops);
            }
        }
    }

    fn claim(&mut self, index: usize, hops: u32) {
        let Moment { now, instance, .. } = self.moment;
        let rule = &self.workflow.steps[index];
        let asked_until = rule.approval.is_some().then(|| now.plus_ms(rule.awaited_ms()));
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Processing;
        step.locked_by = Some(instance.clone());
        step.complete_by = Some(asked_until.unwrap_or_else(|| now.plus_ms(rule.complete_within_ms)));
        step.attempt += 1;
        (step.not_before, step.waits_until) = (None, asked_until);
        step.started_at.get_or_insert(now);
        if self.task.process_state == ProcessState::Pending {
            self.task.process_state = ProcessState::Processing;
        }
        self.claimed.push(index);
        if let Some(until) = asked_until {
            return self.ask_people(index, until);
        }
        self.effects.push(Effect::Request { step: index, hops: hops.saturating_add(1) });
        self.record_step(index, What::Claimed);
    }

    // ---- how an attempt ends

    /// The step is done in its present direction. Ends the task if this was the last open step.
    pub(super) fn complete(&mut self, index: usize, output: Json) {
        self.set_done(index, output);
        self.record_step(index, What::Processed);
        self.finish_if_done();
    }

    /// The same without its line of history.
    pub(super) fn set_done(&mut self, index: usize, output: Json) {
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Processed;
        step.finished_at = Some(self.moment.now);
        if step.direction == Direction::Forward {
            step.output = Some(output);
        }
        release(step);
    }

    /// Ends the task if no step is left to do or to undo.
    pub(super) fn finish_if_done(&mut self) {
        let (end, notice) = match self.task.process_state {
            ProcessState::Pending | ProcessState::Processing if self.is_over() => {
                (ProcessState::Processed, NoticeKind::OrderProcessed)
            }
            ProcessState::Compensating
                if self.task.steps.iter().all(|step| !step.was_claimed() || step.is_undone()) =>
            {
                (ProcessState::Compensated, NoticeKind::OrderCompensated)
            }
            ProcessState::Pending
            | ProcessState::Processing
            | ProcessState::Processed
            | ProcessState::Error
            | ProcessState::Compensating
            | ProcessState::Compensated
            | ProcessState::Closed => return,
        };
        self.end_order(end, notice, None);
    }

    /// The order comes to a final state.
    pub(super) fn end_order(&mut self, end: ProcessState, notice: NoticeKind, command: Option<&Command>) {
        self.task.process_state = end;
        self.owe_status(notice);
        if self.task.parent.is_some() {
            self.owe(NoticeKind::ParentTold);
        }
        self.record_by(command, What::Entered(end));
    }

    /// The attempt ended without an answer: a call of it may still have its effect (rule 16).
    pub(super) fn leave_unanswered(&mut self, index: usize) {
        self.task.steps[index].may_run_until = open_until(&self.task.steps[index], &self.workflow.steps[index]);
    }

    /// The time from which on no call of a step has an effect any more, if its attempts are over now: a duplicate of
    /// their requests begins no later call, since its agent looks at the task (rule 6).
    pub(super) fn settled_if_over(&self, index: usize) -> Option<Timestamp> {
        self.settled_if_over_at(index, self.moment.now)
    }

    /// The same if they are over since then.
    pub(super) fn settled_if_over_at(&self, index: usize, at: Timestamp) -> Option<Timestamp> {
        Some(at.plus_ms(LOOKED_MS_MAX + self.workflow.steps[index].settles_within_ms))
    }

    /// An attempt failed: it is counted, and the step is free again.
    pub(super) fn count_failure(&mut self, index: usize, code: &str, message: &str) {
        let at = self.moment.now;
        let step = &mut self.task.steps[index];
        step.failure_count += 1;
        let code = cut(code, NAME_CHARS_MAX).into();
        step.last_error = Some(StepError { code, message: shortened(message), attempt: step.attempt, at });
        release(step);
        self.changed = true;
    }

    /// The step is given up until an operator resubmits it. No call ended it.
    pub(super) fn give_up(&mut self, index: usize) {
        self.task.steps[index].call_ms = None;
        self.end_step(index);
        self.record_step(index, What::GivenUp);
    }

    /// The step ends without success.
    pub(super) fn end_step(&mut self, index: usize) {
        let step = &mut self.task.steps[index];
        step.process_state = StepState::Error;
        step.finished_at = Some(self.moment.now);
    }

    /// The step is given up: too many attempts, or its whole horizon, had no answer.
    pub(super) fn give_up_unanswered(&mut self, index: usize) {
        self.give_up(index);
        self.note(Happened::Exhausted(self.attempt(index)));
    }

    /// The task stops and asks an operator.
    pub(super) fn hold(&mut self, code: &str, message: &str, index: Option<usize>) {
        let undoing = self.task.process_state == ProcessState::Compensating;
        let earlier = if undoing { self.task.reason.take().map(Box::new) } else { None };
        self.task.process_state = ProcessState::Error;
        // The task now waits for another reason. The operator who handles it lets the order go on.
        self.task.paused = None;
        self.set_reason(code, message, index);
        if let Some(reason) = &mut self.task.reason {
            reason.earlier = earlier;
        }
        self.record(What::Entered(ProcessState::Error), Some(shortened(message)));
        self.owe(NoticeKind::OrderNeedsOperator);
        self.owe_status(NoticeKind::OrderFailed);
    }

    pub(super) fn set_reason(&mut self, code: &str, message: &str, index: Option<usize>) {
        let step = index.map(|index| self.task.steps[index].name.clone());
        let since_version = self.next_version();
        let message = shortened(message);
        self.task.reason = Some(Reason { code: code.into(), message, step, since_version, earlier: None });
        self.changed = true;
    }

    // ---- notices to the outside (rules 10 and 11)

    /// Owes a notice in the place of an earlier one of its kind that is not sent: only the newest matters.
    pub(super) fn owe_newest(&mut self, kind: NoticeKind) {
        let version = self.next_version();
        let is_owed = self.task.unsent.iter().any(|notice| notice.kind == kind && notice.version == version);
        if is_owed || (kind.is_status() && !self.task.notify) {
            return;
        }
        self.task.unsent.retain(|notice| notice.kind != kind);
        self.owe(kind);
    }

    pub(super) fn owe_status(&mut self, kind: NoticeKind) {
        if self.task.notify {
            self.owe(kind);
        }
    }

    pub(super) fn owe(&mut self, kind: NoticeKind) {
        let notice = Notice { kind, version: self.next_version(), resends: 0 };
        self.task.unsent.push(notice);
        self.tell(notice);
    }

    fn tell(&mut self, notice: Notice) {
        self.effects.push(match notice.kind {
            NoticeKind::ParentTold => Effect::TellParent(notice),
            kind if kind.is_status() => Effect::Notify(notice),
            NoticeKind::OrderNeedsOperator
            | NoticeKind::ReplyChannelFailing
            | NoticeKind::OrderLate
            | NoticeKind::OrderNeedsApproval
            | NoticeKind::OrderReceived
            | NoticeKind::OrderProcessed
            | NoticeKind::OrderFailed
            | NoticeKind::OrderCompensated
            | NoticeKind::OrderClosed
            | NoticeKind::OrderWaiting
            | NoticeKind::OrderLateStatus => Effect::Alert(notice),
        });
    }

    /// Sends every unconfirmed notice again. If the reply channel does not take the oldest one, an alert is published
    /// once.
    pub(super) fn resend_notices(&mut self) {
        for notice in &mut self.task.unsent {
            notice.resends = notice.resends.saturating_add(1);
        }
        self.repeat_notices();
        let oldest_status = self.task.unsent.iter().find(|notice| notice.kind.is_status());
        if oldest_status.is_some_and(|notice| notice.resends == RESENDS_BEFORE_ALERT) {
            self.owe(NoticeKind::ReplyChannelFailing);
        }
    }

    // ---- repeats

    /// Every unconfirmed notice, except those of this turn.
    pub(super) fn repeat_notices(&mut self) {
        let new_version = self.next_version();
        for notice in self.task.unsent.clone() {
            if notice.version != new_version {
                self.tell(notice);
            }
        }
    }

    /// The request of every attempt in flight, except those claimed in this turn and those that were taken on. The
    /// instance that claimed an attempt may have died before it sent the request. If it did not, two requests are
    /// called, and neither is alone: until calls of the attempt have settled, a 409 is one of them (rule 16). By that end
    /// of its attempt an agent knows such a request, and looks before it calls: the order may be paused (rule 6).
    pub(super) fn repeat_requests(&mut self, hops: u32) {
        let now = self.moment.now;
        for index in 0..self.task.steps.len() {
            let step = &mut self.task.steps[index];
            let in_time = step.complete_by.is_some_and(|at| now < at);
            if step.process_state == StepState::Processing
                && in_time
                && !step.is_awaited()
                && !self.claimed.contains(&index)
            {
                let rule = &self.workflow.steps[index];
                let settled = settled_at(step, rule).map(|at| believed_settled(at, rule, now));
                self.changed |= step.may_run_until < settled;
                step.may_run_until = step.may_run_until.max(settled);
                self.effects.push(Effect::Request { step: index, hops: hops.saturating_add(1) });
            }
        }
    }

    /// All messages that follow from the state. The instance that wrote it may have died before it sent them.
    pub(super) fn repeat(&mut self, hops: u32) {
        self.repeat_notices();
        self.repeat_requests(hops);
        self.wake_for_all_waiting(hops);
    }

    /// A wake for each step that waits for its `NotBefore`.
    pub(super) fn wake_for_all_waiting(&mut self, hops: u32) {
        let waiting = self.waiting();
        self.wake_for(&waiting, hops);
    }

    /// A wake for each step that began to wait in this turn. The other wakes are in flight.
    pub(super) fn wake_for_new_waiting(&mut self, hops: u32) {
        let mut waiting = self.waiting();
        waiting.retain(|index| !self.waiting_before.contains(index));
        self.wake_for(&waiting, hops);
    }

    /// The same wake again, if it started nothing and may have come a little early. Waiting is no hop.
    ///
    /// Any other wake is used up, since each waiting step has a wake of its own. A wake passed on for other steps
    /// would circulate for good. While a service is down, each deferral would add one more. The supervisor finds a
    /// step whose wait exceeds the delay of a message, or whose wake was lost.
    pub(super) fn wake_again(&mut self, hops: u32) {
        let wait_ms = |index: usize| Some(self.moment.now.ms_until(self.task.steps[index].not_before?));
        let earliest_ms = self.waiting().into_iter().filter_map(wait_ms).min();
        if let Some(delay_ms) = earliest_ms.filter(|&wait_ms| wait_ms <= EARLY_MS_MAX) {
            self.effects.push(Effect::Wake { delay_ms, hops });
        }
    }

    fn wake_for(&mut self, waiting: &[usize], hops: u32) {
        let times: BTreeSet<_> = waiting.iter().filter_map(|&index| self.task.steps[index].not_before).collect();
        for at in times {
            self.wake_after(self.moment.now.ms_until(at), hops);
        }
    }

    pub(super) fn wake_after(&mut self, delay_ms: u64, hops: u32) {
        self.effects.push(Effect::Wake { delay_ms: delay_ms.min(DELAY_MS_MAX), hops: hops.saturating_add(1) });
    }
}

/// Releases the claim on the step.
pub(super) fn release(step: &mut Step) {
    step.locked_by = None;
    step.complete_by = None;
    step.doubted_at = None;
    step.not_before = None;
    step.waits_until = None;
    step.poll = None;
}
