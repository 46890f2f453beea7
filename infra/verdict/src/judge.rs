//! Judges a world: what the services did for each order, against how the order ended.

pub mod line;
mod lines;

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::definition::Pin;
use domain::id::OrderId;
use domain::task::{ProcessState, Step, StepState, Task, reason};
use domain::workflow::{Method, StepRule, Workflow};
use rehearsal::setup::Outage;
use rehearsal::state::State;

use crate::day::{Day, seen_late_ms};
use crate::folder::Folder;
use crate::judge::line::Line;
use crate::watch::{Notes, UNSENDABLE};

/// A breaker that opens after this number of failures stays closed in most outages.
const NEVER_OPENS: u32 = 1_000;
/// The calls of an outage in which any other breaker opens.
const AWAY_MIN: u64 = 20;

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A step was carried out more than once, and not taken back.
    ChargedTwice,
    /// The order is compensated, and a step of it stands.
    StillCharged,
    /// A line is dropped, and a step of it stands.
    DroppedStillCharged,
    /// The order is processed, and a step of it was never carried out.
    NotShipped,
    /// A line is neither carried nor dropped, or the order says another thing of it.
    LineUndecided,
    /// No operator gets the order on.
    Stuck,
    /// One line was not dropped when it failed, and stopped the other lines of its order.
    StoppedByLine,
    /// The order was compensated, or a line dropped, for a rejection, and no service rejected it.
    TurnedForNothing,
    /// A step was given up though nothing failed.
    GivenUp,
    /// A step was given up in an outage that was shorter than its horizon.
    GivenUpInOutage,
    /// A result was awaited for a shorter time than it may take.
    WaitedTooShort,
    /// A step could not be sent, since what its call names was never there.
    Unsendable,
    /// The deadline was missed though nothing failed.
    Late,
    /// A service refused calls since there were too many, though nothing failed.
    TooFast,
    /// A breaker never opens in an outage.
    NotBraked,
    /// A handler panicked.
    Panicked,
}

impl Kind {
    /// Its name for people and programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ChargedTwice => "carried out twice",
            Self::StillCharged => "compensated and still carried out",
            Self::DroppedStillCharged => "dropped and still carried out",
            Self::LineUndecided => "neither carried nor dropped",
            Self::StoppedByLine => "stopped by one line",
            Self::NotShipped => "processed and not carried out",
            Self::Stuck => "stuck for good",
            Self::TurnedForNothing => "rejected though no service said no",
            Self::GivenUp => "given up though nothing failed",
            Self::GivenUpInOutage => "given up in an outage that it could outlast",
            Self::WaitedTooShort => "not awaited for as long as its result may take",
            Self::Unsendable => "never sent",
            Self::Late => "deadline missed though nothing failed",
            Self::TooFast => "called more often than the service takes",
            Self::NotBraked => "called on and on in an outage",
            Self::Panicked => "a handler panicked",
        }
    }
}

/// One of them in a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub kind: Kind,
    /// The workflow of the order.
    pub workflow: Option<Pin>,
    /// The step, as the workflow has it.
    pub step: Option<Arc<str>>,
    /// Its index in the record of the order.
    pub index: Option<usize>,
    /// Its line, if it has one.
    pub line: Option<Line>,
    /// The agent of the step.
    pub agent: Option<Arc<str>>,
    /// The order.
    pub order: Option<OrderId>,
    /// Of a step that could not be sent: whether it is its undo, and why.
    pub unsent: Option<(bool, Arc<str>)>,
}

impl Violation {
    const fn of_service(kind: Kind, agent: Option<Arc<str>>) -> Self {
        Self { kind, workflow: None, step: None, index: None, line: None, agent, order: None, unsent: None }
    }

    /// The step in words, with its line.
    #[must_use]
    pub fn step_in_words(&self) -> Option<String> {
        let step = self.step.as_ref()?;
        Some(self.line.as_ref().map_or_else(|| step.to_string(), |line| line.of_step(step)))
    }

    /// What it has in common with those of the same cause.
    #[must_use]
    pub fn group(&self) -> Group {
        (self.kind, self.workflow.as_ref().map(|pin| pin.name.clone()), self.step.clone(), self.agent.clone())
    }
}

/// Violations that are alike.
pub type Group = (Kind, Option<Arc<str>>, Option<Arc<str>>, Option<Arc<str>>);

/// The violations of a world that is over.
#[must_use]
pub fn judge(folder: &Folder, day: Day, state: &State, notes: &Notes) -> Vec<Violation> {
    let mut found = Vec::new();
    if notes.panic().is_some() {
        found.push(Violation::of_service(Kind::Panicked, None));
    }
    let mut effects: BTreeMap<(OrderId, usize), (u32, u32)> = BTreeMap::new();
    for effect in state.effects() {
        let (done, undone) = effects.entry((effect.order, effect.step)).or_default();
        (*done, *undone) = (*done + effect.done, *undone + effect.undone);
    }
    let outage = state.setup.outages.first().copied().or_else(|| state.mishap_outage());
    for task in state.tables.tasks() {
        let Some(workflow) = folder.shape.workflow_of(&task) else { continue };
        // The lines of the order are those of its record.
        let workflow = &*workflow.of_steps(task.steps.iter().map(|step| &*step.name));
        let of = Of { folder, day, state, notes, task: &task, workflow, effects: &effects, outage };
        found.extend(of.books());
        found.extend(of.lines());
        found.extend(of.end());
        found.extend(of.patience());
        found.extend(of.unsendable());
        found.extend(of.waits());
    }
    for (place, count) in &state.remotes.too_many {
        if day.is_calm() && *count > 0 {
            found.push(Violation::of_service(Kind::TooFast, folder.shape.agents.get(*place).cloned()));
        }
    }
    for (place, count) in &state.remotes.found_away {
        let agent = folder.shape.agents.get(*place).cloned();
        let failures = agent.as_ref().map_or(0, |agent| folder.settings_of(agent).policy.health.failures_to_open);
        if failures >= NEVER_OPENS && (AWAY_MIN..u64::from(failures)).contains(count) {
            found.push(Violation::of_service(Kind::NotBraked, agent));
        }
    }
    found
}

/// Whether a service knows no keys and its agent has a memo: no key of the folder can tell whether a call without an answer
/// had its effect.
#[must_use]
pub fn cannot_be_helped(folder: &Folder, rule: &StepRule) -> bool {
    let Some(agent) = rule.service() else { return false };
    let forgets_ms = folder.service_of(agent).and_then(|service| service.forgets_keys_after_ms);
    let has_memo = folder.settings_of(agent).policy.memo.is_some();
    has_memo && forgets_ms.is_some_and(|ms| ms < rule.complete_within_ms)
}

/// An order of the world.
struct Of<'a> {
    folder: &'a Folder,
    day: Day,
    state: &'a State,
    notes: &'a Notes,
    task: &'a Task,
    workflow: &'a Workflow,
    effects: &'a BTreeMap<(OrderId, usize), (u32, u32)>,
    outage: Option<Outage>,
}

impl Of<'_> {
    fn violation(&self, kind: Kind, index: Option<usize>) -> Violation {
        let rule = index.and_then(|index| self.workflow.steps.get(index));
        let agent = rule.and_then(StepRule::service).cloned();
        let step = rule.map(|rule| rule.line.as_ref().map_or(&rule.name, |line| &line.step).clone());
        let line = index.and_then(|index| Line::of(self.workflow, index));
        let (workflow, order) = (Some(self.workflow.pin()), Some(self.task.order_id));
        Violation { kind, workflow, step, index, line, agent, order, unsent: None }
    }

    /// The steps with an effect at a service, by their index.
    fn steps(&self) -> impl Iterator<Item = (usize, &StepRule, &Step)> {
        let steps = self.workflow.steps.iter().zip(&self.task.steps).enumerate();
        let has_effect = |rule: &StepRule| rule.service().is_some() && rule.forward.method != Method::Get;
        steps.filter(move |(_, (rule, _))| has_effect(rule)).map(|(index, (rule, step))| (index, rule, step))
    }

    fn effects_of(&self, index: usize) -> (u32, u32) {
        self.effects.get(&(self.task.order_id, index)).copied().unwrap_or_default()
    }

    fn is_refused(&self, index: usize) -> bool {
        self.notes.refused.contains(&(self.task.order_id, index))
    }

    /// What stands at the services, against the order's end.
    fn books(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for (index, rule, step) in self.steps() {
            let (done, undone) = self.effects_of(index);
            let stands = done.saturating_sub(undone);
            // One that was taken for rejected itself is another violation.
            let is_own = self.task.reason.as_ref().is_some_and(|reason| reason.step.as_ref() == Some(&rule.name))
                || (step.dropped && step.last_error.is_some());
            if rule.has_no_undo(step.dropped) && (is_own || self.is_cancelled() || self.is_taken_back_by_another(rule))
            {
                continue;
            }
            // On a calm day each call has its answer.
            if done > 1 && !self.day.is_calm() && cannot_be_helped(self.folder, rule) {
                continue;
            }
            let is_carried = step.process_state == StepState::Processed && !step.dropped;
            let kind = match self.task.process_state {
                ProcessState::Processed if step.dropped && stands == 1 => Kind::DroppedStillCharged,
                ProcessState::Processed if step.dropped && stands > 1 => Kind::ChargedTwice,
                ProcessState::Processed | ProcessState::Error if stands > 1 => Kind::ChargedTwice,
                ProcessState::Processed if stands == 0 && is_carried => Kind::NotShipped,
                ProcessState::Compensated if done > 1 && stands > 0 => Kind::ChargedTwice,
                ProcessState::Compensated if stands > 0 => Kind::StillCharged,
                ProcessState::Pending
                | ProcessState::Processing
                | ProcessState::Processed
                | ProcessState::Error
                | ProcessState::Compensating
                | ProcessState::Compensated
                | ProcessState::Closed => continue,
            };
            found.push(self.violation(kind, Some(index)));
        }
        found
    }

    /// Whether somebody changed their mind: what has no undo stays then.
    fn is_cancelled(&self) -> bool {
        self.task.reason.as_ref().is_some_and(|reason| &*reason.code == reason::CANCELLED)
    }

    /// Whether the undo of a later step names the output of this one, which has none: it takes both back.
    fn is_taken_back_by_another(&self, rule: &StepRule) -> bool {
        let others = self.workflow.steps.iter().filter(|other| other.base() != rule.base() && !other.no_undo);
        others.into_iter().any(|other| other.undo_sends_of(rule.base()))
    }

    /// How the order ended.
    fn end(&self) -> Option<Violation> {
        let reason = self.task.reason.as_ref();
        let by = reason.and_then(|reason| self.index_of(reason.step.as_deref()));
        let rule_of = |index: usize| &self.workflow.steps[index];
        match self.task.process_state {
            ProcessState::Compensated => {
                let is_rejected = reason.is_some_and(|reason| &*reason.code == reason::REJECTED);
                let index = by.filter(|index| rule_of(*index).service().is_some())?;
                if self.stops_other_lines(index) {
                    return Some(self.violation(Kind::StoppedByLine, by));
                }
                // A queue may give a call to two instances at once, and one is told that the key is in use (rule 16).
                let may_be_told = self.day != Day::Wild;
                let is_for_nothing =
                    may_be_told && is_rejected && !self.is_refused(index) && !self.is_unsendable(index);
                is_for_nothing.then(|| self.violation(Kind::TurnedForNothing, Some(index)))
            }
            ProcessState::Processed | ProcessState::Closed => None,
            // Its keys are gone: a person looks at the service and settles it.
            ProcessState::Error if self.state.has_forgotten(self.task.order_id) => None,
            ProcessState::Error | ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => {
                let failed = self.task.steps.iter().position(|step| step.process_state == StepState::Error);
                let index = failed.or(by);
                // A child order that is done stays, and a person who cancels its parent goes on by hand (rule 49).
                let is_of_child = index.is_some_and(|index| rule_of(index).child.is_some());
                if let Some(index) = index.filter(|index| self.stops_other_lines(*index)) {
                    return Some(self.violation(Kind::StoppedByLine, Some(index)));
                }
                // A service said no past a pivot: a person settles or closes it (rule 34).
                let is_held = reason.is_some_and(|reason| &*reason.code == reason::REJECTED)
                    && self.workflow.steps.iter().any(|rule| rule.pivot)
                    && index.is_some_and(|index| self.is_refused(index));
                let is_unsendable = index.is_some_and(|index| self.is_unsendable(index));
                (!is_of_child && !is_held && !is_unsendable).then(|| self.violation(Kind::Stuck, index))
            }
        }
    }

    /// Whether a call of the step could not be made: no service could decide on it.
    fn is_unsendable(&self, index: usize) -> bool {
        [false, true].iter().any(|is_undo| self.notes.unsendable.contains(&(self.task.order_id, index, *is_undo)))
    }

    /// The steps that could not be sent, with why.
    fn unsendable(&self) -> impl Iterator<Item = Violation> {
        let of = self.notes.unsendable.iter().filter(|(order, ..)| *order == self.task.order_id);
        of.filter_map(|(_, index, is_undo)| {
            let step = self.task.steps.get(*index)?;
            let error = step.last_error.as_ref().filter(|error| *error.code == *UNSENDABLE);
            let reason = self.task.reason.as_ref();
            let all = reason.into_iter().flat_map(|reason| [Some(reason), reason.earlier.as_deref()]).flatten();
            let of_step = all.into_iter().find(|reason| reason.step.as_ref() == Some(&step.name));
            let why = error.map(|error| error.message.clone()).or_else(|| Some(of_step?.message.clone()))?;
            Some(Violation { unsent: Some((*is_undo, why)), ..self.violation(Kind::Unsendable, Some(*index)) })
        })
    }

    /// The steps whose call came again before its result could be there, on a day on which nothing fails.
    fn waits(&self) -> impl Iterator<Item = Violation> {
        let may_take_longer = |rule: &StepRule| {
            let service = rule.service().and_then(|agent| self.folder.service_of(agent));
            service.zip(rule.waits.within_ms).is_some_and(|(service, ms)| ms < service.later.within_ms)
        };
        let is_early = |index: &usize| {
            self.state.remotes.asked_early.contains(&(self.task.order_id, *index)) && self.day.is_calm()
        };
        let steps = (0..self.workflow.steps.len()).filter(is_early);
        steps
            .filter(move |index| may_take_longer(&self.workflow.steps[*index]))
            .map(|index| self.violation(Kind::WaitedTooShort, Some(index)))
    }

    /// Whether it was given up, or late, too early.
    fn patience(&self) -> Option<Violation> {
        if self.day.is_calm() && self.task.late_since.is_some() {
            return Some(self.violation(Kind::Late, None));
        }
        let error = self.notes.errors.get(&self.task.order_id);
        // A queue may give a call to two instances at once (rule 16).
        let is_refused = |(code, ..): &&(String, Option<usize>, i64)| code == reason::REJECTED;
        if let Some((_, Some(index), _)) = error.filter(is_refused).filter(|_| self.day != Day::Wild)
            && self.workflow.steps.get(*index).is_some_and(|rule| rule.service().is_some())
            && !self.is_refused(*index)
            && !self.is_unsendable(*index)
        {
            return Some(self.violation(Kind::TurnedForNothing, Some(*index)));
        }
        let exhausted = error.filter(|(code, ..)| code == reason::EXHAUSTED);
        let turned = self.task.reason.as_ref().filter(|reason| &*reason.code == reason::EXHAUSTED);
        let index = match (exhausted, turned) {
            (Some((_, step, _)), _) => (*step)?,
            (None, Some(reason)) => self.index_of(reason.step.as_deref())?,
            (None, None) => return None,
        };
        self.given_up(index)
    }

    /// Why a step should not have been given up.
    fn given_up(&self, index: usize) -> Option<Violation> {
        let rule = self.workflow.steps.get(index).filter(|rule| rule.approval.is_none())?;
        let kind = match (self.day, self.outage) {
            (Day::Fair | Day::Slow | Day::Busy, _) => Kind::GivenUp,
            // Its last attempt may begin before the end of the outage.
            (Day::Outage | Day::Mishap, Some(outage))
                if rule.service().is_some()
                    && outage.lasts_ms + seen_late_ms(outage.lasts_ms) + 2 * rule.complete_within_ms
                        < rule.horizon_ms =>
            {
                Kind::GivenUpInOutage
            }
            (Day::Outage | Day::Mishap | Day::Rough | Day::Wild, _) => return None,
        };
        Some(self.violation(kind, Some(index)))
    }

    fn index_of(&self, name: Option<&str>) -> Option<usize> {
        self.workflow.steps.iter().position(|rule| Some(&*rule.name) == name)
    }
}
