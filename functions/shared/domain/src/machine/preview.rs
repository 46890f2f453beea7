//! What the steps of an order would send, as far as the outputs of the steps before are known. No event happens, so nothing
//! of it is committed or sent.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;

use super::lines::outputs_for;
use super::request::request;
use crate::message::{Failure, Outcome, Request};
use crate::order::Order;
use crate::search::Pointer;
use crate::task::{Direction, Step, StepState, Task};
use crate::workflow::{Mapping, Root, Workflow};

/// A new order, and what is supposed of its steps.
#[derive(Debug)]
pub struct Preview<'a> {
    order: &'a Order,
    workflow: Cow<'a, Workflow>,
    task: Task,
    known: Vec<Known>,
}

/// What is supposed of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Known {
    /// It gets an answer that is not known.
    Nothing,
    /// The order goes on past it, with the output that the task has, or without one.
    Over,
    /// It is rejected, and the order does not go on.
    Rejected,
}

/// Whether a step is carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Foreseen {
    /// Yes, once the steps before it are over.
    Comes,
    /// No, for this reason.
    Never(String),
    /// It depends on these values.
    Unknown(Vec<Missing>),
}

/// A value in an output that is not known.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Missing {
    /// The step whose output it is.
    pub step: Arc<str>,
    /// The pointer to it, as a workflow has it.
    pub pointer: String,
}

/// The call of a step in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Previewed {
    /// The request to the agent.
    Request(Box<Request>),
    /// The mapping cannot be filled: the step fails, and no service is called.
    Unsendable(Failure),
    /// It sends these values.
    Unknown(Vec<Missing>),
}

impl<'a> Preview<'a> {
    /// A new order that this workflow has accepted. Nothing is supposed yet.
    #[must_use]
    pub fn new(order: &'a Order, workflow: &'a Workflow) -> Self {
        // The workflow has accepted the order.
        let workflow = workflow.of_document(&order.document).unwrap_or(Cow::Borrowed(workflow));
        let task = Task::new(order, &workflow, 1, 0);
        let is_skipped = |step: &Step| step.process_state == StepState::Skipped;
        let known = |step| if is_skipped(step) { Known::Over } else { Known::Nothing };
        let known = task.steps.iter().map(known).collect();
        Self { order, workflow, task, known }
    }

    /// The steps, each after those that it comes after.
    #[must_use]
    pub fn in_turn(&self) -> Vec<usize> {
        let mut indexes: Vec<usize> = (0..self.workflow.steps.len()).collect();
        // Whatever comes after a step has one step more before it.
        indexes.sort_by_key(|&index| self.workflow.steps[index].ancestors.len());
        indexes
    }

    /// Supposes this outcome of a step. One that is no end changes nothing.
    pub fn suppose(&mut self, index: usize, outcome: &Outcome) {
        match outcome {
            Outcome::Done(output) => {
                self.task.steps[index].output = Some(output.clone());
                self.known[index] = Known::Over;
            }
            Outcome::Failed(_) if self.workflow.steps[index].optional => self.known[index] = Known::Over,
            Outcome::Failed(_) => self.known[index] = Known::Rejected,
            Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => {}
        }
    }

    /// Whether a step is carried out. One that does not apply is skipped from then on.
    pub fn foresee(&mut self, index: usize) -> Foreseen {
        let (rule, task) = (&self.workflow.steps[index], &self.task);
        let skipped = |unmet: &dyn Display| Foreseen::Never(format!("it does not apply: {unmet}"));
        if let Some(unmet) = rule.unmet_by_document(&self.order.document) {
            return skipped(&unmet);
        }
        let mut before = rule.ancestors.iter();
        if let Some(&rejected) = before.find(|&&earlier| self.known[earlier] == Known::Rejected) {
            return Foreseen::Never(format!(
                "step {}, which comes before it, is rejected",
                self.workflow.steps[rejected].name
            ));
        }
        let outputs = outputs_for(task, rule, None);
        let mut unknown = Vec::new();
        for comparison in &rule.when {
            let missing = comparison.pointers().filter_map(Missing::new);
            let missing: Vec<Missing> = missing.filter(|missing| self.is_unknown(index, &missing.step)).collect();
            if !missing.is_empty() {
                unknown.extend(missing);
            } else if let Some(unmet) = comparison.unmet_by_outputs(&outputs) {
                self.known[index] = Known::Over;
                return skipped(&unmet);
            }
        }
        if unknown.is_empty() { Foreseen::Comes } else { Foreseen::Unknown(unknown) }
    }

    /// The call of a step whose turn comes. `None`: it needs none.
    #[must_use]
    pub fn call(&self, index: usize, direction: Direction) -> Option<Previewed> {
        let rule = &self.workflow.steps[index];
        let has_undo = !rule.no_undo && rule.child.is_none();
        if rule.approval.is_some() || (direction == Direction::Undo && !has_undo) {
            return None;
        }
        let mapping = rule.mapping(direction);
        let pointers = rule.mappings(direction).flat_map(Mapping::places).map(|(_, place)| &place.pointer);
        let mut missing: BTreeSet<Missing> =
            pointers.filter_map(Missing::new).filter(|missing| self.is_unknown(index, &missing.step)).collect();
        if mapping.sends_all() {
            let own = (direction == Direction::Undo).then_some(index);
            let sources =
                rule.ancestors.iter().copied().chain(own).filter(|&source| self.known[source] == Known::Nothing);
            missing.extend(sources.map(|source| Missing::whole(self.workflow.steps[source].base())));
        }
        if !missing.is_empty() {
            return Some(Previewed::Unknown(missing.into_iter().collect()));
        }
        let (mut task, now) = (self.task.clone(), self.order.submitted_at);
        let step = &mut task.steps[index];
        (step.direction, step.attempt) = (direction, 1);
        step.complete_by = Some(now.plus_ms(rule.complete_within_ms));
        Some(match request(&task, &self.workflow, index, self.order, now, 0)? {
            Ok((_, request)) => Previewed::Request(Box::new(request)),
            Err(reply) => match reply.outcome {
                Outcome::Failed(failure) => Previewed::Unsendable(failure),
                Outcome::Done(_) | Outcome::Deferred(_) | Outcome::Retrying(_) | Outcome::Accepted(_) => return None,
            },
        })
    }

    /// Whether the output of a step, or of one of its elements, is not known to the step at this index.
    fn is_unknown(&self, index: usize, step: &str) -> bool {
        let rule = &self.workflow.steps[index];
        let mut sources = rule.ancestors.iter().copied().chain([index]);
        sources.any(|source| self.workflow.steps[source].base() == step && self.known[source] == Known::Nothing)
    }
}

impl Missing {
    /// `None` if the pointer is of the document.
    fn new(pointer: &Pointer) -> Option<Self> {
        match Root::of(pointer)? {
            Root::Output(step, _) => Some(Self { step: step.into(), pointer: pointer.text() }),
            Root::OrderId | Root::IdempotencyKey | Root::SubmittedAt | Root::Order(_) | Root::Item(_) => None,
        }
    }

    fn whole(step: &str) -> Self {
        Self { step: step.into(), pointer: format!("/Outputs/{step}") }
    }
}
