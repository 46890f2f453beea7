//! What happened to orders in a span of time, in numbers: by workflow, step and service.
//!
//! A store that keeps a tally counts a task in the transaction that writes it (rule 26): [`Tally::count`] compares the
//! task before and after. So each committed transition is counted once, and none that was not committed.

mod histogram;
mod stream;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use histogram::Histogram;
pub use stream::{Batch, Change, Count, Cursor, Part, Sequence};

use crate::task::{Direction, ProcessState, StepError, StepState, Task, Transition, What, reason};
use crate::time::Timestamp;
use crate::workflow::LINE;

/// The numbers of a span of time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tally {
    /// By the name of the workflow.
    pub workflows: BTreeMap<Arc<str>, Flow>,
}

/// The numbers of a workflow.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Flow {
    /// Its orders.
    pub orders: Orders,
    /// By the name of the step, and then by the service that was asked.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Service>>,
}

/// What happened to orders.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Orders {
    /// Stored.
    #[serde(skip_serializing_if = "is_zero")]
    pub accepted: u64,
    /// Came to `Processed`.
    #[serde(skip_serializing_if = "is_zero")]
    pub processed: u64,
    /// Came to `Compensated`.
    #[serde(skip_serializing_if = "is_zero")]
    pub compensated: u64,
    /// Came to `Closed`.
    #[serde(skip_serializing_if = "is_zero")]
    pub closed: u64,
    /// Came to `Error`, each time.
    #[serde(skip_serializing_if = "is_zero")]
    pub failed: u64,
    /// Left `Error`, each time.
    #[serde(skip_serializing_if = "is_zero")]
    pub mended: u64,
    /// Were found late (rule 37).
    #[serde(skip_serializing_if = "is_zero")]
    pub late: u64,
    /// Results that contradicted how a step or its order ended (rule 5).
    #[serde(skip_serializing_if = "is_zero")]
    pub contradicted: u64,
    /// Approvals that were asked for, each time (rule 40).
    #[serde(skip_serializing_if = "is_zero")]
    pub asked: u64,
    /// Approvals that are asked for no more, for whatever reason.
    #[serde(skip_serializing_if = "is_zero")]
    pub answered: u64,
    /// From acceptance to `Processed`.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub took: Histogram,
}

/// What happened to a step at one service, in both directions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Service {
    /// Carried out.
    #[serde(skip_serializing_if = "Attempts::is_empty")]
    pub forward: Attempts,
    /// Undone.
    #[serde(skip_serializing_if = "Attempts::is_empty")]
    pub undo: Attempts,
}

/// What happened to the attempts of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Attempts {
    /// Claimed.
    #[serde(skip_serializing_if = "is_zero")]
    pub begun: u64,
    /// Ended with success.
    #[serde(skip_serializing_if = "is_zero")]
    pub done: u64,
    /// Had no answer in time, or became a dead letter.
    #[serde(skip_serializing_if = "is_zero")]
    pub expired: u64,
    /// Were rejected for good.
    #[serde(skip_serializing_if = "is_zero")]
    pub rejected: u64,
    /// Were given back (rule 5): the service was failing, busy, or at work on the call. That is no failure of the step.
    #[serde(skip_serializing_if = "is_zero")]
    pub deferred: u64,
    /// Steps that were skipped (rule 33). The order went on without them.
    #[serde(skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// From the first claim in the direction to its success.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub took: Histogram,
    /// The calls that brought a success or a rejection, if the agents reported how long they took.
    #[serde(skip_serializing_if = "Histogram::is_empty")]
    pub calls: Histogram,
}

/// The present number of orders in each state, in the order of [`ProcessState::ALL`]. Numbers of a version with other
/// states cannot be read: the orders are counted then.
///
/// Moves may be counted in any order. A number is negative as long as an earlier move is not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct States([i64; ProcessState::ALL.len()]);

/// A span of time and its numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Span {
    /// Its beginning.
    pub at: Timestamp,
    /// Its numbers.
    pub tally: Tally,
}

/// The length of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grain {
    /// [`MINUTES_KEPT`] of them are kept.
    Minute,
    /// [`HOURS_KEPT`] of them are kept.
    Hour,
}

/// How many minutes are kept: those of 25 hours.
pub const MINUTES_KEPT: u32 = 25 * 60;
/// How many hours are kept: those of 31 days.
pub const HOURS_KEPT: u32 = 31 * 24;

/// What a store says of its orders in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    /// Since when they are counted. `None`: nothing happened yet.
    pub since: Option<Timestamp>,
    /// The present number of orders in each state. `None`: not every change was counted, so it is unknown.
    pub states: Option<States>,
    /// When the order was accepted that was stored first, of those in each state that orders leave. `None`: the store does
    /// not tell.
    pub oldest: Option<Vec<(ProcessState, Timestamp)>>,
    /// The spans, oldest first, without those in which nothing happened. The last one is not over.
    pub spans: Vec<Span>,
    /// All of it, since the count began.
    pub total: Tally,
}

impl Numbers {
    /// When the oldest order in this state was accepted. `None`: there is none, or the store does not tell.
    #[must_use]
    pub fn oldest_in(&self, state: ProcessState) -> Option<Timestamp> {
        self.oldest.iter().flatten().find(|(of, _)| *of == state).map(|(_, at)| *at)
    }
}

impl Grain {
    /// Its length in milliseconds.
    #[must_use]
    pub const fn ms(self) -> u64 {
        match self {
            Self::Minute => 60_000,
            Self::Hour => 3_600_000,
        }
    }

    /// How many spans of this length are kept, those in which something happened.
    #[must_use]
    pub const fn kept(self) -> u32 {
        match self {
            Self::Minute => MINUTES_KEPT,
            Self::Hour => HOURS_KEPT,
        }
    }

    /// The beginning of the span of a time.
    #[must_use]
    pub fn of(self, at: Timestamp) -> Timestamp {
        let into = at.epoch_ms().rem_euclid(i64::try_from(self.ms()).unwrap_or(i64::MAX));
        at.minus_ms(u64::try_from(into).unwrap_or(0))
    }
}

impl States {
    /// The number of orders in a state.
    #[must_use]
    pub fn of(&self, state: ProcessState) -> u64 {
        u64::try_from(self.0[place(state)]).unwrap_or(0)
    }

    /// The number of orders that are not settled.
    #[must_use]
    pub fn under_way(&self) -> u64 {
        ProcessState::ALL.into_iter().filter(|state| !state.is_settled()).map(|state| self.of(state)).sum()
    }

    /// An order came from one state to another; a new one came from none.
    pub fn moved(&mut self, from: Option<ProcessState>, to: ProcessState) {
        if let Some(from) = from {
            self.left(from);
        }
        self.0[place(to)] += 1;
    }

    /// An order left a state.
    pub const fn left(&mut self, from: ProcessState) {
        self.0[place(from)] -= 1;
    }

    /// Counts orders that are in a state.
    pub fn add(&mut self, state: ProcessState, count: u64) {
        self.0[place(state)] += i64::try_from(count).unwrap_or(i64::MAX);
    }
}

impl Tally {
    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workflows.is_empty()
    }

    /// Counts a committed version of a task: what happened between the version before it and this one. `None`: the
    /// order is new.
    pub fn count(&mut self, before: Option<&Task>, after: &Task) {
        if !self.workflows.contains_key(&after.workflow) {
            self.workflows.insert(after.workflow.clone(), Flow::default());
        }
        let Some(Flow { orders, steps }) = self.workflows.get_mut(&after.workflow) else { return };
        let lines = after.added_since(before);
        orders.count(before, after, lines);
        for line in lines {
            count_attempt(steps, before, after, line);
        }
    }

    /// Adds the numbers of another span.
    pub fn add(&mut self, other: &Self) {
        for (name, flow) in &other.workflows {
            let mine = self.workflows.entry(name.clone()).or_default();
            mine.orders.add(&flow.orders);
            for (step, services) in &flow.steps {
                let mine = mine.steps.entry(step.clone()).or_default();
                for (name, service) in services {
                    mine.entry(name.clone()).or_default().add(service);
                }
            }
        }
    }

    /// The numbers of the orders of all workflows.
    #[must_use]
    pub fn orders(&self) -> Orders {
        let mut all = Orders::default();
        self.workflows.values().for_each(|flow| all.add(&flow.orders));
        all
    }

    /// The numbers of each service, over all steps that asked it.
    #[must_use]
    pub fn services(&self) -> BTreeMap<Arc<str>, Service> {
        let mut all: BTreeMap<Arc<str>, Service> = BTreeMap::new();
        for (name, service) in self.workflows.values().flat_map(|flow| flow.steps.values().flatten()) {
            all.entry(name.clone()).or_default().add(service);
        }
        all
    }
}

impl Orders {
    fn count(&mut self, before: Option<&Task>, after: &Task, lines: &[Transition]) {
        let from = before.map(|task| task.process_state);
        self.accepted += u64::from(from.is_none());
        let times = |is_it: fn(&What) -> bool| lines.iter().filter(|line| is_it(&line.what)).count() as u64;
        self.late += times(|what| matches!(what, What::Late));
        self.contradicted += times(|what| matches!(what, What::Contradicted(_)));
        self.count_approvals(before, after);
        if from == Some(after.process_state) {
            return;
        }
        self.mended += u64::from(from == Some(ProcessState::Error));
        match after.process_state {
            ProcessState::Processed => {
                self.processed += 1;
                let took_ms = after.submitted_at().zip(after.updated_at()).map(|(from, to)| from.ms_until(to));
                took_ms.into_iter().for_each(|ms| self.took.add(ms));
            }
            ProcessState::Compensated => self.compensated += 1,
            ProcessState::Closed => self.closed += 1,
            ProcessState::Error => self.failed += 1,
            ProcessState::Pending | ProcessState::Processing | ProcessState::Compensating => {}
        }
    }

    fn count_approvals(&mut self, before: Option<&Task>, after: &Task) {
        if !after.steps.iter().any(|step| step.approval.is_some()) {
            return;
        }
        let asked = |task: &Task| task.asked().map(|(index, step)| (index, step.attempt)).collect::<BTreeSet<_>>();
        let (before, after) = (before.map(asked).unwrap_or_default(), asked(after));
        self.asked += after.difference(&before).count() as u64;
        self.answered += before.difference(&after).count() as u64;
    }

    /// The approvals that are asked for now, if these numbers are all since the count began.
    #[must_use]
    pub const fn approvals(&self) -> u64 {
        self.asked.saturating_sub(self.answered)
    }

    /// Adds the numbers of others.
    pub fn add(&mut self, other: &Self) {
        self.accepted += other.accepted;
        self.processed += other.processed;
        self.compensated += other.compensated;
        self.closed += other.closed;
        self.failed += other.failed;
        self.mended += other.mended;
        self.late += other.late;
        self.contradicted += other.contradicted;
        self.asked += other.asked;
        self.answered += other.answered;
        self.took.merge(&other.took);
    }
}

impl Service {
    /// Adds the numbers of another.
    pub fn add(&mut self, other: &Self) {
        self.forward.add(&other.forward);
        self.undo.add(&other.undo);
    }
}

impl Attempts {
    /// Whether nothing happened.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    fn add(&mut self, other: &Self) {
        self.begun += other.begun;
        self.done += other.done;
        self.expired += other.expired;
        self.rejected += other.rejected;
        self.deferred += other.deferred;
        self.skipped += other.skipped;
        self.took.merge(&other.took);
        self.calls.merge(&other.calls);
    }
}

/// Counts a line of the history that is about an attempt.
fn count_attempt(
    steps: &mut BTreeMap<Arc<str>, BTreeMap<Arc<str>, Service>>,
    before: Option<&Task>,
    after: &Task,
    line: &Transition,
) {
    let Some((of, step)) = line.what.attempt().and_then(|of| Some((of, after.steps.get(of.step)?))) else { return };
    // An attempt that ended was one of the service of before: the same write may have chosen another.
    let asked = before.and_then(|task| task.steps.get(of.step)).unwrap_or(step);
    let mut count = |agent: &Arc<str>, add: &dyn Fn(&mut Attempts)| {
        // Of all elements together (rule 50).
        let name = match step.name.split_once(LINE) {
            Some((name, _)) => name.into(),
            None => step.name.clone(),
        };
        add(attempts(steps.entry(name).or_default(), agent, of.direction));
    };
    let rejected = |attempts: &mut Attempts| {
        attempts.rejected += 1;
        step.call_ms.into_iter().for_each(|ms| attempts.calls.add(ms));
    };
    let done = |attempts: &mut Attempts| {
        attempts.done += 1;
        let took_ms = step.started_at.zip(step.finished_at).map(|(from, to)| from.ms_until(to));
        took_ms.into_iter().for_each(|ms| attempts.took.add(ms));
        step.call_ms.into_iter().for_each(|ms| attempts.calls.add(ms));
    };
    let error = step.last_error.as_ref().filter(|error| (error.attempt, error.at) == (of.number, line.at));
    let is_unanswered = |error: &StepError| [StepError::EXPIRED, reason::DEAD_LETTER].contains(&&*error.code);
    match line.what {
        What::Claimed(_) => count(&step.agent, &|it| it.begun += 1),
        What::Processed(_) | What::Approved(_) => count(&step.agent, &done),
        What::Deferred(_) => count(&asked.agent, &|it| it.deferred += 1),
        What::Expired(_) => count(&asked.agent, &|it| it.expired += 1),
        What::GivenUp(_) if error.is_some_and(is_unanswered) => count(&asked.agent, &|it| it.expired += 1),
        What::Rejected(_) => count(&asked.agent, &rejected),
        // An undo that needs no call never began.
        What::Skipped(_) if of.direction == Direction::Forward => {
            count(&step.agent, &|it| it.skipped += 1);
            if error.is_some() {
                count(&asked.agent, &rejected);
            }
        }
        What::Settled(_) if step.process_state == StepState::Skipped => count(&step.agent, &|it| it.skipped += 1),
        // An operator settled it, and no service was called.
        What::Settled(_) | What::GivenUp(_) | What::Skipped(_) => {}
        What::Waiting(_) | What::Accepted(_) | What::Contradicted(_) | What::Dropped(_) => {}
        What::Submitted
        | What::Entered(_)
        | What::Resubmitted
        | What::Cancelled
        | What::Paused
        | What::Resumed
        | What::Late
        | What::Noted(_)
        | What::Erased
        | What::Other(_) => {}
    }
}

fn attempts<'a>(
    services: &'a mut BTreeMap<Arc<str>, Service>,
    name: &Arc<str>,
    direction: Direction,
) -> &'a mut Attempts {
    let service = services.entry(name.clone()).or_default();
    match direction {
        Direction::Forward => &mut service.forward,
        Direction::Undo => &mut service.undo,
    }
}

const fn place(state: ProcessState) -> usize {
    match state {
        ProcessState::Pending => 0,
        ProcessState::Processing => 1,
        ProcessState::Processed => 2,
        ProcessState::Error => 3,
        ProcessState::Compensating => 4,
        ProcessState::Compensated => 5,
        ProcessState::Closed => 6,
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde asks for")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests;
