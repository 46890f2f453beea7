//! The long waits: of a step before its first claim (rule 35), and for a result that comes later (rule 36). Nothing but
//! the watch of the task remembers them.

use super::decision::{Effect, Verdict};
use super::turn::Turn;
use crate::limits::HEARTBEAT_MS_MIN;
use crate::message::Acceptance;
use crate::task::{Direction, Notice, NoticeKind, Step, StepState, Transition, What};
use crate::time::Timestamp;
use crate::workflow::StepRule;

/// The length of a wait that the workflow gives, once it began. `None` if a time of the document may end later: the order
/// may name any.
pub(super) fn own_wait_ms(index: usize, step: &Step, rule: &StepRule, history: &[Transition]) -> Option<u64> {
    let (wait_ms, until) = (rule.waits.before_ms?, step.waits_until?);
    let is_begin = |what: &What| matches!(what, What::Waiting(attempt) if attempt.step == index);
    let began = history.iter().rfind(|line| is_begin(&line.what))?;
    (until <= began.at.plus_ms(wait_ms)).then_some(wait_ms)
}

impl Turn<'_> {
    /// Begins the wait of each step that is ready for the first time. A pause holds no wait up.
    pub(super) fn begin_waits(&mut self) {
        for index in 0..self.task.steps.len() {
            let Some(wait_ms) = self.workflow.steps[index].waits.before_ms else { continue };
            let step = &self.task.steps[index];
            let is_to_begin = step.waits_until.is_none() || step.wait_to_come;
            let is_first = !step.was_claimed() && step.direction == Direction::Forward;
            if is_to_begin && is_first && self.is_its_turn(index) {
                let own = Some(self.moment.now.plus_ms(wait_ms));
                let step = &mut self.task.steps[index];
                (step.waits_until, step.wait_to_come) = (step.waits_until.max(own), false);
                let until = step.waits_until.max(own).unwrap_or(self.moment.now);
                self.record(What::Waiting(self.attempt(index)), Some(format!("until {until}").into()));
            }
        }
    }

    /// The service took the call on: its result is awaited from now on. A repeat extends the wait.
    pub(super) fn await_result(&mut self, index: usize, acceptance: &Acceptance) -> Verdict {
        let until = self.moment.now.plus_ms(self.workflow.steps[index].awaited_ms());
        let earlier = self.task.steps[index].waits_until.and_then(|_| self.ends_at(index));
        match earlier {
            None => {
                self.task.steps[index].waits_until = Some(until);
                self.record(What::Accepted(self.attempt(index)), Some(format!("until {until}").into()));
                self.owe_newest(NoticeKind::OrderWaiting);
            }
            Some(earlier) if earlier.plus_ms(HEARTBEAT_MS_MIN) <= until || self.is_endless(index) => {
                self.wait_until(index, until);
                self.changed = true;
            }
            Some(_) => {}
        }
        self.poll_from_now(index, acceptance);
        self.verdict()
    }

    /// Lets the wait for a result end no sooner than this. Beside a later end that is doubted, or that a wrong clock wrote,
    /// the doubt is moved: a clock that is right again believes that end (rule 23).
    pub(super) fn wait_until(&mut self, index: usize, until: Timestamp) {
        let doubted_at = until.minus_ms(self.workflow.steps[index].awaited_ms());
        let is_endless = self.is_endless(index);
        let step = &mut self.task.steps[index];
        if step.waits_until <= Some(until) {
            step.waits_until = Some(until);
        } else if is_endless || step.doubted_at.is_some() {
            step.doubted_at = step.doubted_at.max(Some(doubted_at));
        }
    }

    /// Tells of no wait whose result came in the same turn.
    pub(super) fn forget_wait_that_is_over(&mut self) {
        if self.task.steps.iter().any(Step::is_awaited) {
            return;
        }
        let version = self.next_version();
        let is_it = |notice: &Notice| notice.kind == NoticeKind::OrderWaiting && notice.version == version;
        self.task.unsent.retain(|notice| !is_it(notice));
        self.effects.retain(|effect| !matches!(effect, Effect::Notify(notice) if is_it(notice)));
    }

    /// The end of a long wait of the step that is to come: of one that is ready, or of one whose result is awaited.
    pub(super) fn waits_long(&self, index: usize) -> Option<Timestamp> {
        let step = &self.task.steps[index];
        match step.process_state {
            StepState::Processing if step.is_awaited() => self.look_at(index).or_else(|| self.expires_at(index)),
            StepState::Pending if self.is_ready(index) => step.waits_until.filter(|&at| self.moment.now < at),
            StepState::Pending
            | StepState::Processing
            | StepState::Processed
            | StepState::Error
            | StepState::Skipped => None,
        }
    }
}
