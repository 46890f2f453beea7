//! Steps that people decide on (rule 40). They are claimed like others, but nothing is sent, and the decision is awaited
//! like a result that comes later.

use std::sync::Arc;

use super::decision::Refused;
use super::reply::too_large;
use super::turn::Turn;
use crate::author;
use crate::json::Json;
use crate::message::{Action, Command, Failure};
use crate::task::{Approvers, NoticeKind, Step, StepError, Task, Transition, What};
use crate::text;
use crate::time::Timestamp;

/// The output of a step that was approved.
#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
struct Approved<'a> {
    by: &'a str,
    reason: &'a str,
    at: Timestamp,
}

impl Command {
    /// The same, with the name of the step. The API writes it into the command: once a step is decided on, a repeat must not
    /// count for the next one.
    #[must_use]
    pub fn for_step(self, task: &Task) -> Self {
        let step = self.decided(task).ok().map(|(_, step)| step.name.clone());
        Self { step: step.or_else(|| self.step.clone()), ..self }
    }

    /// The version in which people were asked to decide.
    pub(super) fn asked_since(&self, task: &Task) -> u64 {
        let decided = self.decided(task).ok();
        decided.and_then(|(_, step)| step.approval.as_ref()).map_or(0, |approvers| approvers.since_version)
    }

    /// The step that the decision is about, with its index.
    fn decided<'t>(&self, task: &'t Task) -> Result<(usize, &'t Step), Refused> {
        let mut asked = task.asked();
        match &self.step {
            Some(name) => asked.find(|(_, step)| step.name == *name).ok_or(Refused::NotAsked),
            None => match (asked.next(), asked.next()) {
                (Some(only), None) => Ok(only),
                (Some(_), Some(_)) => Err(Refused::WhichStep),
                (None, _) => Err(Refused::NotAsked),
            },
        }
    }

    /// The reason why this decision does not count; `None` if it does.
    pub(super) fn decision_refusal(&self, task: &Task) -> Option<Refused> {
        let (_, step) = match self.decided(task) {
            Ok(decided) => decided,
            Err(refused) => return Some(refused),
        };
        let (typed, caller) = author::parts(&self.by);
        let own = own(task, step, typed).or_else(|| own(task, step, caller?));
        if own.is_some() {
            return own;
        }
        let output = (self.action == Action::Approve).then(|| self.approved(Timestamp::default()));
        too_large(task, output?.text().len()).map(Refused::OutputTooLarge)
    }

    fn approved(&self, at: Timestamp) -> Json {
        Json::of(&Approved { by: &self.by, reason: &self.reason, at })
    }
}

impl Task {
    /// Who submitted the order, if the history still says so.
    #[must_use]
    pub fn submitter(&self) -> Option<&Arc<str>> {
        let first = self.history.first().filter(|line| line.what == What::Submitted);
        first.map(|Transition { who, .. }| who)
    }
}

/// Why the order is a person's own: they submitted it, or it names them at `not_by`. `None` if it is not.
fn own(task: &Task, step: &Step, person: &str) -> Option<Refused> {
    let not_by = step.approval.as_ref().and_then(|approvers| approvers.not_by.as_ref());
    let is_submitter = |name: &str| is_same_person(name, person) || is_same_person(&author::plain(name), person);
    if let Some(name) = task.submitter().filter(|name| is_submitter(name)) {
        return Some(Refused::OwnOrder(name.clone()));
    }
    not_by.filter(|name| is_same_person(name, person)).cloned().map(Refused::NamedInOrder)
}

/// Names are typed by people.
fn is_same_person(one: &str, other: &str) -> bool {
    text::name(one) == text::name(other)
}

impl Turn<'_> {
    /// People are asked from now on. No message waits for them.
    pub(super) fn ask_people(&mut self, index: usize, until: Timestamp) {
        let since_version = self.next_version();
        let approval = self.task.steps[index].approval.get_or_insert_with(Approvers::default);
        approval.since_version = since_version;
        let role = approval.role.clone();
        let by = role.map(|role| format!(" by {role}")).unwrap_or_default();
        self.record(
            What::Claimed(self.attempt(index)),
            Some(format!("waits for an approval{by} until {until}").into()),
        );
        self.owe_newest(NoticeKind::OrderNeedsApproval);
        self.owe_newest(NoticeKind::OrderWaiting);
    }

    /// Ends the step as a person decided. In `Error` the decision is kept, and no step starts.
    pub(super) fn take_decision(&mut self, command: &Command) {
        let Ok((index, _)) = command.decided(&self.task) else { return };
        match command.action {
            Action::Approve => {
                self.set_done(index, command.approved(self.moment.now));
                let approved = What::Approved(self.attempt(index));
                self.record_by(Some(command), approved);
                self.finish_if_done();
            }
            Action::Reject => {
                let message = format!("not approved by {}: {}", command.by, command.reason).into();
                let failure = Failure { code: StepError::NOT_APPROVED.into(), message };
                self.reject_by(Some(command), index, &failure);
            }
            Action::Resubmit
            | Action::Cancel
            | Action::Pause
            | Action::Resume
            | Action::Settle
            | Action::Note
            | Action::Close
            | Action::Erase => {}
        }
        self.forget_question();
        self.claim_ready(0);
        self.wake_for_new_waiting(0);
    }

    /// The event about a question is dropped once the question is answered.
    fn forget_question(&mut self) {
        if self.task.asked().next().is_none() {
            self.task.unsent.retain(|notice| notice.kind != NoticeKind::OrderNeedsApproval);
        }
    }
}
