//! The actions of an operator (rule 12).

use super::close::busy_until;
use super::decision::{Happened, Refused, Verdict};
use super::erase;
use super::settle::is_open_to_settle;
use super::turn::Turn;
use crate::limits::NOTES_MAX;
use crate::message::{Action, Command};
use crate::task::{NoticeKind, Pause, ProcessState, Step, StepState, Task, What, reason};
use crate::time::Timestamp;

impl Action {
    /// The reason why this action is not possible on the task; `None` if it is possible. The scheduler decides by it,
    /// and the API asks it before it queues a command.
    #[must_use]
    pub fn refusal(self, task: &Task) -> Option<Refused> {
        use ProcessState::{Closed, Compensated, Compensating, Error, Pending, Processed, Processing};

        match (self, task.process_state, task.paused.is_some()) {
            // It ends the longer wait of a step (rule 39).
            (Self::Resubmit, Processing | Compensating, _) if task.steps.iter().any(Step::waits_longer) => None,
            (Self::Resubmit | Self::Close, Error, _)
            | (Self::Pause, Pending | Processing | Compensating, false)
            | (Self::Resume, Pending | Processing | Compensating, true) => None,
            (Self::Cancel, Pending | Processing | Error, _) => {
                task.past_pivot().map(|step| Refused::PastPivot { step: step.clone() })
            }
            (Self::Settle, Error, _) => {
                // Only a decision ends an approval.
                let is_one = task.steps.iter().any(|step| is_open_to_settle(step) && step.approval.is_none());
                (!is_one).then_some(Refused::NothingToSettle)
            }
            (Self::Approve | Self::Reject, Pending | Processing | Error | Compensating, _) => {
                let is_one = task.asked().next().is_some();
                (!is_one).then_some(Refused::NotAsked)
            }
            (Self::Note, Pending | Processing | Error | Compensating, _) => {
                (task.notes() >= NOTES_MAX).then_some(Refused::TooManyNotes)
            }
            (
                Self::Resubmit | Self::Settle | Self::Close,
                Pending | Processing | Processed | Compensating | Compensated | Closed,
                _,
            ) => Some(Refused::NotInError),
            (Self::Cancel, Compensating, _) => Some(Refused::AlreadyCompensating),
            (Self::Pause, Pending | Processing | Compensating, true) => Some(Refused::AlreadyPaused),
            (Self::Pause, Error, _) => Some(Refused::InError),
            (Self::Resume, Pending | Processing | Compensating, false) | (Self::Resume, Error, _) => {
                Some(Refused::NotPaused)
            }
            (Self::Erase, _, _) => erase::refusal(task),
            (
                Self::Cancel | Self::Pause | Self::Resume | Self::Note | Self::Approve | Self::Reject,
                Processed | Compensated | Closed,
                _,
            ) => Some(Refused::Finished),
        }
    }

    /// The actions that are possible on the task. An erase is no operator's action, and is offered nowhere.
    pub fn allowed(task: &Task) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|action| *action != Self::Erase && action.refusal(task).is_none())
    }
}

impl Command {
    /// The reason why this command is not carried out; `None` if it is. The scheduler decides by it, and the API asks it
    /// before it queues the command.
    #[must_use]
    pub fn refusal(&self, task: &Task, now: Timestamp) -> Option<Refused> {
        let is_done = || task.has_done(self.action, &self.command_id).then_some(Refused::DoneBefore);
        self.action.refusal(task).or_else(is_done).or_else(|| match self.action {
            Action::Settle => match &self.settle {
                Some(settlement) => settlement.refusal(task, now),
                None => Some(Refused::NothingToSettle),
            },
            Action::Note => self.note_refusal(task),
            // Nobody would ever learn of an effect that comes after the end.
            Action::Close => {
                let until = task.steps.iter().filter_map(|step| busy_until(step, now)).max();
                until.map(|until| Refused::UnderWay { until })
            }
            Action::Approve | Action::Reject => self.decision_refusal(task),
            Action::Resubmit | Action::Cancel | Action::Pause | Action::Resume | Action::Erase => None,
        })
    }
}

impl Turn<'_> {
    /// Carries out an operator's command, if the state allows it and the operator saw the present state.
    pub(super) fn command(&mut self, command: &Command) -> Verdict {
        let is_stale = || self.is_stale(command).then_some(Refused::Stale);
        let refused = command.action.refusal(&self.task).or_else(is_stale);
        if let Some(refused) = refused.or_else(|| command.refusal(&self.task, self.moment.now)) {
            return Verdict::Refused(refused);
        }
        if matches!(command.action, Action::Resubmit | Action::Settle) {
            // The deadline of an order that waits for an operator only marks it, also if nobody looked since.
            self.look_at_deadline();
        }
        match command.action {
            Action::Resubmit => self.resubmit(command),
            Action::Cancel => self.cancel(command),
            Action::Pause => self.pause(command),
            Action::Resume => self.go_on(command, What::Resumed),
            Action::Settle => return self.settle(command),
            Action::Note => self.write_note(command),
            Action::Close => self.close(command),
            Action::Erase => self.erase(command),
            Action::Approve | Action::Reject => self.take_decision(command),
        }
        Verdict::Taken
    }

    /// Whether the operator looked before the subject of the command came up: the present error, the last pause or its
    /// end. A command that is late or repeated must not touch a newer state.
    fn is_stale(&self, command: &Command) -> bool {
        let since = match (command.action, self.task.process_state) {
            (Action::Resubmit | Action::Settle | Action::Close, _) | (Action::Cancel, ProcessState::Error) => {
                self.task.reason.as_ref().map_or(0, |reason| reason.since_version)
            }
            (Action::Cancel | Action::Erase, _) => 0,
            // A step that is asked for again is another question.
            (Action::Approve | Action::Reject, _) => command.asked_since(&self.task),
            (Action::Pause, _) => self.task.resumed,
            (Action::Resume, _) => self.task.paused.as_ref().map_or(0, |pause| pause.version),
            // A note alone is about whatever comes of the order. Who takes it on must have seen who has.
            (Action::Note, _) => command.take.map_or(0, |_| self.task.taken_version),
        };
        command.version.is_some_and(|seen| seen < since)
    }

    /// Takes the failed steps back to `Pending` with no failures counted, and ends longer waits. The order goes on in its
    /// direction.
    fn resubmit(&mut self, command: &Command) {
        for step in &mut self.task.steps {
            // A resubmit vouches for the services: the horizons of all open steps begin anew.
            step.started_at = match step.process_state {
                StepState::Pending | StepState::Error => None,
                StepState::Processing => Some(self.moment.now),
                StepState::Processed | StepState::Skipped => step.started_at,
            };
            if step.process_state == StepState::Error || step.waits_longer() {
                step.process_state = StepState::Pending;
                step.failure_count = 0;
                (step.not_before, step.waits_until) = (None, None);
                step.finished_at = None;
            }
        }
        if self.task.process_state == ProcessState::Error {
            self.leave_error();
        }
        self.go_on(command, What::Resubmitted);
        // Attempts in flight may have ended while the task was in `Error`.
        self.finish_if_done();
    }

    /// Compensates a task that is not finished.
    fn cancel(&mut self, command: &Command) {
        self.compensate(reason::CANCELLED, &format!("cancelled by {}: {}", command.by, command.reason), None);
        self.go_on(command, What::Cancelled);
    }

    /// Keeps new steps from starting. Attempts in flight end normally. The write is conditional on the version like
    /// any claim: of a pause and a claim at the same time one wins, and the other decides again.
    fn pause(&mut self, command: &Command) {
        self.task.paused = Some(Pause {
            by: command.by.clone(),
            reason: command.reason.clone(),
            since: self.moment.now,
            version: self.task.version + 1,
        });
        self.record_by(Some(command), What::Paused);
    }

    /// The operator has just handled this error, so its alert is needless.
    pub(super) fn forget_alert(&mut self) {
        self.task.unsent.retain(|notice| notice.kind != NoticeKind::OrderNeedsOperator);
    }

    pub(super) fn go_on(&mut self, command: &Command, what: What) {
        // Resubmit, cancel and settle move the order, so they end the pause.
        if self.task.paused.take().is_some() {
            self.task.resumed = self.task.version + 1;
            if what != What::Resumed {
                self.note(Happened::What(What::Resumed));
            }
        }
        self.record_by(Some(command), what);
        self.forget_alert();
        self.claim_ready(0);
        self.wake_for_all_waiting(0);
        self.repeat_requests(0);
    }
}
