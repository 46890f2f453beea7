//! The workflow: the steps of an order, their sequence, and the reaction to a failure.
//!
//! A workflow is data. [`Workflow::parse`] reads it from TOML and refuses an invalid one. [`Workflows`] holds all
//! versions that ship together, since a task stays on the version that it was submitted under.

mod accept;
mod agents;
mod approval;
mod call;
mod child;
mod deadline;
mod error;
mod keys;
mod lines;
mod mapping;
mod parse;
mod poll;
mod refuse;
mod registry;
mod retain;
mod waits;
mod when;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

pub use accept::{FAR_AHEAD, NotAccepted, SOME_DAY};
pub use agents::{SETTLES_WITHIN, agent_names, agents_without_service, settles_within_ms};
pub use approval::{Approval, PEOPLE};
pub use call::{Encoding, Method};
pub use child::ORDERS;
pub use deadline::{Deadline, OnLate};
pub use error::WorkflowError;
pub use keys::{NAME, WORKFLOW, is_name, is_schema};
pub use lines::{BadLines, DropMax, ForEach, LINE, Line, step_of};
pub use mapping::Mapping;
pub(crate) use mapping::Root;
pub use poll::{Poll, PollAnswer, PollMeaning};
pub use refuse::Refuse;
pub use registry::Workflows;
pub use retain::Retain;
pub use waits::{LongerWait, NotATime, Waits};
pub use when::Comparison;

use crate::backoff::BackoffPolicy;
use crate::index::Index;
use crate::json::Json;
use crate::limits::{DELAY_MS_MAX, WAIT_WITHIN_MS_DEFAULT};
use crate::order::Order;
use crate::outputs::Outputs;
use crate::priority::Priority;
use crate::schema::Schema;
use crate::search::Pointer;
use crate::state::Direction;
use crate::template::Template;
use crate::time::Timestamp;
use deadline::COMPLETE_BY;
use waits::{NOT_BEFORE, time_at, time_of_order};
use when::Unmet;

/// The reaction to a step that fails for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remedy {
    /// Compensate the order.
    Compensate,
    /// Stop and ask an operator.
    Hold,
    /// Undo the steps of its line, and go on with the others (rule 50).
    Drop,
}

impl Remedy {
    /// All, in the order of their words.
    pub(crate) const ALL: [Self; 3] = [Self::Compensate, Self::Hold, Self::Drop];

    /// Its word in a workflow's file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Compensate => "compensate",
            Self::Hold => "hold",
            Self::Drop => "drop",
        }
    }
}

/// One step of a workflow: its place in the graph, and what its file says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRule {
    /// Unique in the workflow.
    pub name: Arc<str>,
    /// Indexes of the steps that must be processed first.
    pub after: Vec<usize>,
    /// Indexes of all steps on any path to this one, in workflow order.
    pub ancestors: Vec<usize>,
    /// Those of them that go through the same array, if each element comes after its own alone (rule 50).
    pub in_line: Vec<usize>,
    /// The steps of the others that have one output for each element.
    pub arrays: Vec<Arc<str>>,
    /// The element that it stands for, in the workflow of an order.
    pub line: Option<Line>,
    /// What the file says of it.
    pub keys: Arc<StepKeys>,
}

/// What a file says of a step, but for its name and its place in the graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepKeys {
    /// The agent that carries it out; [`PEOPLE`] for an approval, [`ORDERS`] for a child order.
    pub agent: Arc<str>,
    /// Present if people decide on it, and no service is called (rule 40).
    pub approval: Option<Approval>,
    /// The workflow of the order that it makes, if it makes one, and no service is called (rule 49).
    pub child: Option<Arc<str>>,
    /// How long one attempt may take.
    pub complete_within_ms: u64,
    /// The longest time for which the step is tried in one direction, from its first claim. It is shorter than the
    /// time for which its service keeps idempotency keys, since a later repeat may have a second effect (F34).
    pub horizon_ms: u64,
    /// The time for which a call without an answer may still have its effect, from its start (rule 16). A setting of
    /// the agent, not of the workflow: see [`Catalogue`](crate::definition::Catalogue).
    pub settles_within_ms: u64,
    /// Its long waits.
    pub waits: Waits,
    /// The array for each of whose elements it is carried out (rule 50).
    pub for_each: Option<ForEach>,
    /// The step applies only if all of these hold (rule 33).
    pub when: Vec<Comparison>,
    /// Whether the order goes on past it if it is rejected (rule 33).
    pub optional: bool,
    /// Whether the order only goes forward once it has begun (rule 34).
    pub pivot: bool,
    /// Whether it counts as undone without a call.
    pub no_undo: bool,
    /// Failures at which the step is given up, or waits longer.
    pub max_failures: u32,
    /// The reaction to a rejection by the agent.
    pub on_rejected: Remedy,
    /// The longer wait after each failure from `max_failures` on (rule 39). `None`: the step is given up there.
    pub longer: Option<LongerWait>,
    /// The reaction to too many failures, or to the end of the horizon.
    pub on_exhausted: Remedy,
    /// The call that carries it out.
    pub forward: Mapping,
    /// The call that undoes it.
    pub undo: Mapping,
    /// What is kept of the answer as the step's output. `None`: all of it.
    pub keep: Option<Template>,
    /// How the state is asked of a call that was taken on (rule 36). `None`: it is told.
    pub poll: Option<Poll>,
}

impl Deref for StepRule {
    type Target = StepKeys;

    fn deref(&self) -> &StepKeys {
        &self.keys
    }
}

impl DerefMut for StepRule {
    fn deref_mut(&mut self) -> &mut StepKeys {
        Arc::make_mut(&mut self.keys)
    }
}

impl StepRule {
    /// The agent that is sent its requests. None decides on an approval, or makes a child order.
    #[must_use]
    pub fn service(&self) -> Option<&Arc<str>> {
        if self.approval.is_some() || self.child.is_some() { None } else { Some(&self.agent) }
    }

    /// How long the result is awaited after the service took a call on. A queue agent may say so of any step.
    #[must_use]
    pub fn awaited_ms(&self) -> u64 {
        self.waits.within_ms.unwrap_or(WAIT_WITHIN_MS_DEFAULT)
    }

    /// The failures at which it is given up: after its longer waits.
    #[must_use]
    pub fn failures_to_give_up(&self) -> u32 {
        self.max_failures.saturating_add(self.longer.map_or(0, |longer| longer.times))
    }

    /// The longer wait that follows this number of failures (rule 39). `None`: a back-off follows it.
    #[must_use]
    pub fn longer_wait_ms(&self, failures: u32) -> Option<u64> {
        self.longer.filter(|_| failures >= self.max_failures).map(|longer| longer.wait_ms)
    }

    /// The call of the step in this direction, also if its line was `dropped`.
    #[must_use]
    pub fn call(&self, direction: Direction, dropped: bool) -> &Mapping {
        let drop = self.drop().filter(|_| dropped && direction == Direction::Undo);
        drop.unwrap_or_else(|| self.mapping(direction))
    }

    /// Whether its undo makes no call, also if its line was `dropped`.
    #[must_use]
    pub fn has_no_undo(&self, dropped: bool) -> bool {
        self.no_undo && !(dropped && self.drop().is_some())
    }

    fn drop(&self) -> Option<&Mapping> {
        self.for_each.as_ref().and_then(|each| each.drop.as_ref())
    }

    /// The calls of the step in this direction, one of which is made.
    pub(crate) fn calls(&self, direction: Direction) -> impl Iterator<Item = &Mapping> {
        let drop = self.drop().filter(|_| direction == Direction::Undo);
        [self.mapping(direction)].into_iter().chain(drop)
    }

    /// The call of the step in this direction.
    #[must_use]
    pub fn mapping(&self, direction: Direction) -> &Mapping {
        match direction {
            Direction::Forward => &self.forward,
            Direction::Undo => &self.undo,
        }
    }

    /// The mappings whose places must have a value in this direction: of the call, and of the look at its state.
    pub(crate) fn mappings(&self, direction: Direction) -> impl Iterator<Item = &Mapping> {
        let poll = self.poll.as_ref().filter(|_| direction == Direction::Forward);
        self.calls(direction).chain(poll.map(|poll| &poll.mapping))
    }

    /// Whether its undo would say nothing of the order after a rejection, or without an answer (rule 19).
    #[must_use]
    pub fn may_undo_nothing(&self) -> bool {
        !self.no_undo && self.undo.sends_only_of(self.base())
    }

    /// Whether its undo sends something of the output of this step.
    #[must_use]
    pub fn undo_sends_of(&self, step: &str) -> bool {
        let is_of = |place: &Pointer| matches!(Root::of(place), Some(Root::Output(of, _)) if of == step);
        self.undo.places().any(|(_, place)| is_of(&place.pointer))
    }

    /// Whether the step may have no output though the order goes on past it.
    #[must_use]
    pub fn may_be_skipped(&self) -> bool {
        self.optional || !self.when.is_empty()
    }

    /// The first comparison of the document that does not hold: the step does not apply then.
    pub(crate) fn unmet_by_document(&self, document: &Json) -> Option<Unmet<'_>> {
        let item = self.item_in(document);
        self.when.iter().find_map(|comparison| comparison.unmet_by_document(document, item))
    }

    /// The first comparison of an output that does not hold, once the steps before are over.
    pub(crate) fn unmet_by_outputs(&self, outputs: &Outputs) -> Option<Unmet<'_>> {
        self.when.iter().find_map(|comparison| comparison.unmet_by_outputs(outputs))
    }
}

/// The supervision of tasks of a workflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Supervision {
    /// How long after `CompleteBy` an attempt expires.
    pub grace_ms: u64,
    /// How late an expiry may be found before the supervisor doubts its own clock; `None` on one machine, which has
    /// one clock. A doubted attempt gets its whole time once more, by the supervisor's clock, before it is counted.
    pub doubt_after_ms: Option<u64>,
    /// How long a step may be ready and unclaimed before its wake counts as lost.
    pub wake_lost_after_ms: u64,
    /// How long a notice may be unsent before it is sent again.
    pub resend_after_ms: u64,
    /// The wait before an expired step is claimed again.
    pub backoff: BackoffPolicy,
}

/// A checked workflow: names are unique, the graph has no cycle, every limit is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workflow {
    /// Its name; all versions share it.
    pub name: Arc<str>,
    /// Its version, from 1.
    pub version: u32,
    /// The priority of orders that name none.
    pub priority: Priority,
    /// The members that no order may carry.
    pub refuse: Refuse,
    /// What every document must fit.
    pub schema: Option<Schema>,
    /// The members by which its orders are found.
    pub index: Index,
    /// The deadline of its orders.
    pub deadline: Deadline,
    /// How long its orders are kept after their end.
    pub retain: Retain,
    /// In the order of the file.
    pub steps: Vec<StepRule>,
    /// The supervision of its tasks.
    pub supervision: Supervision,
}

impl Workflow {
    /// The time from submission to the supervisor's first look. It is not later than the deadline of any first claim,
    /// so that claims need not move the watch of a healthy order (rule 14).
    #[must_use]
    pub fn first_look_ms(&self) -> u64 {
        let claims = self.steps.iter().map(|rule| rule.complete_within_ms + self.supervision.grace_ms);
        claims.chain([self.supervision.wake_lost_after_ms]).min().unwrap_or(0)
    }

    /// The longest chain of messages, each sent because of the one before, in the workflow's worst case (rule 15).
    /// Every supervisor's run and operator's command starts a new chain.
    #[must_use]
    pub fn hops_max(&self) -> u32 {
        /// Request and reply, forward and undo.
        const HOPS_PER_STEP: u64 = 4;
        /// The first wake, and wakes that a lost race adds.
        const SLACK: u64 = 16;
        let longest_wait_ms = |rule: &StepRule| {
            (rule.complete_within_ms + rule.settles_within_ms).max(self.supervision.backoff.wait_ms_max())
        };
        let hops =
            self.steps.iter().map(|rule| HOPS_PER_STEP + 2 * (longest_wait_ms(rule) / DELAY_MS_MAX + 1)).sum::<u64>();
        u32::try_from(hops + SLACK).unwrap_or(u32::MAX)
    }

    /// Whether a service may tell the result of a step later (rule 36).
    #[must_use]
    pub fn has_later_results(&self) -> bool {
        self.steps.iter().any(|rule| rule.service().is_some() && rule.waits.within_ms.is_some())
    }

    /// The time before which each step is not claimed, as the document of an order says.
    ///
    /// # Errors
    /// [`NotATime`] for the first member that is no time, or lies too far ahead of `now`.
    pub fn not_before(&self, document: &Json, now: Timestamp) -> Result<Vec<Option<Timestamp>>, NotATime> {
        let of_order = time_of_order(document, NOT_BEFORE, now)?;
        let of_step = |rule: &StepRule| {
            let own = rule.waits.not_before.as_ref().map(|place| time_at(document, place, now)).transpose()?.flatten();
            // A step that comes after another one begins later in any case.
            Ok(if rule.after.is_empty() { own.max(of_order) } else { own })
        };
        self.steps.iter().map(of_step).collect()
    }
    /// The deadline of an order: the one that its document names, or else that of the workflow.
    ///
    /// # Errors
    /// [`NotATime`] if the member of the document is no time, or lies too far ahead of the acceptance.
    pub fn complete_by(&self, order: &Order) -> Result<Option<Timestamp>, NotATime> {
        let accepted = order.submitted_at;
        let own = time_of_order(&order.document, COMPLETE_BY, accepted)?;
        // The document of an order that is posted again names the deadline of the earlier order.
        let own = own.filter(|&at| order.again_of.is_none() || accepted < at);
        Ok(own.or_else(|| self.deadline.within_ms.map(|within_ms| accepted.plus_ms(within_ms))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workflow(steps: &[&str], supervision: &str) -> Workflow {
        let step = |(n, more): (usize, &&str)| format!("[[step]]\nname = \"s{n}\"\nagent = \"any\"\n{more}\n");
        let steps: String = steps.iter().enumerate().map(step).collect();
        Workflow::parse(&format!("name = \"w\"\nversion = 1\n{supervision}\n{steps}"), &["any"]).unwrap()
    }

    #[test]
    fn a_chain_may_be_as_long_as_every_step_done_and_undone_with_its_waits() {
        // Four messages for each step, forward and undo, two for its waits, and 16 to spare.
        assert_eq!(workflow(&[""], "").hops_max(), 16 + 6);
        assert_eq!(workflow(&["", "", ""], "").hops_max(), 16 + 3 * 6);
        // No message waits longer than 15 minutes: a longer wait is several messages, in either direction.
        assert_eq!(workflow(&["complete_within = \"14m\""], "").hops_max(), 16 + 6);
        assert_eq!(workflow(&["complete_within = \"15m\""], "").hops_max(), 16 + 8);
        assert_eq!(workflow(&["complete_within = \"12h\""], "").hops_max(), 16 + 6 + 2 * 48);
        let patient = "[supervision]\nbackoff_slot = \"15m\"\nbackoff_ceiling = 2";
        assert_eq!(workflow(&[""], patient).hops_max(), 16 + 6 + 2 * 3, "or its back-off is longer");
    }

    #[test]
    fn the_supervisor_looks_first_when_the_first_claim_can_be_over_or_its_wake_be_lost() {
        assert_eq!(workflow(&["complete_within = \"10s\"", ""], "").first_look_ms(), 12_000);
        assert_eq!(workflow(&["complete_within = \"10m\""], "").first_look_ms(), 30_000);
    }
}
