//! Which calls a probe makes at most, and what they may leave behind.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::workflow::{Encoding, Method, StepRule, Workflow};

/// How often a call is repeated, or its state is asked for, while the service is at work on it, fails, or is silent.
pub(super) const AGAIN: u32 = 4;
/// Calls of a service in each direction that are made again, since it limits its calls or an undo failed.
pub(super) const SPARE: u32 = 6;

/// Calls of a service, and their effects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Forward calls, and looks at their state.
    pub(super) forward: u32,
    pub(super) undo: u32,
    /// The effects of a service that keeps the rules.
    pub(super) effects: u32,
    /// Those that are undone at the end.
    pub(super) undone: u32,
}

/// A step whose service is probed.
#[derive(Debug, Clone)]
pub(super) struct Subject {
    pub(super) index: usize,
    pub(super) step: Arc<str>,
    pub(super) agent: Arc<str>,
    /// Another step of the agent, if there is one; else a name that no step has.
    pub(super) other_step: Arc<str>,
    /// Whether it is the only step of its agent.
    pub(super) is_only: bool,
    pub(super) has_body: bool,
    pub(super) has_undo: bool,
    /// Whether its calls have a proof of identity.
    pub(super) has_proof: bool,
}

impl Subject {
    /// The series of this step.
    pub(super) fn of(workflow: &Workflow, index: usize, has_proof: bool) -> Self {
        let rule = &workflow.steps[index];
        let is_other = |other: &&StepRule| other.agent == rule.agent && other.name != rule.name;
        let other = workflow.steps.iter().find(is_other);
        let unused = || if &*rule.name == "probe" { "probe-2".into() } else { "probe".into() };
        let (other_step, is_only) = (other.map_or_else(unused, |other| other.name.clone()), other.is_none());
        let mapping = &rule.forward;
        let has_body = mapping.send.is_some() || mapping.method.has_usual_body();
        Self {
            index,
            step: rule.name.clone(),
            agent: rule.agent.clone(),
            other_step,
            is_only,
            has_body: has_body && mapping.encode != Encoding::Empty,
            has_undo: !rule.no_undo,
            has_proof,
        }
    }

    /// The orders that begin at the services: repeated, at once, hung up, with another body, undone before they are done.
    fn orders(&self) -> u32 {
        3 + u32::from(self.has_body) + u32::from(self.has_undo)
    }

    /// The calls of its own service. `Series` makes them.
    fn counts(&self) -> Counts {
        let [body, proof, undo] = [self.has_body, self.has_proof, self.has_undo].map(u32::from);
        // Done, repeated, with another body, with another key, with a wrong token, after its undo.
        let repeated = (2 + body + 1 + undo) * (1 + AGAIN) + proof;
        let (at_once, hung_up) = (2 * (1 + AGAIN), 1 + 1 + AGAIN);
        let effects = 4 + body;
        Counts {
            forward: repeated + at_once + hung_up + (body + undo) * (1 + AGAIN),
            // Two of the first order, one of the other key, one of each other order.
            undo: undo * (2 + 1 + 2 + body + 1),
            effects,
            undone: undo * effects,
        }
    }
}

/// All calls, by agent.
pub(super) fn counts(workflow: &Workflow, subjects: &[Subject]) -> BTreeMap<Arc<str>, Counts> {
    let mut counts: BTreeMap<Arc<str>, Counts> = BTreeMap::new();
    for subject in subjects {
        let orders = subject.orders();
        let own = std::iter::once((subject.agent.clone(), subject.counts()));
        let before = before(workflow, subject.index).map(|rule| {
            let undo = u32::from(!rule.no_undo);
            let effects = if rule.forward.method == Method::Get { 0 } else { orders };
            let counts = Counts { forward: orders * (1 + AGAIN), undo: undo * orders, effects, undone: undo * effects };
            (rule.agent.clone(), counts)
        });
        for (agent, more) in own.chain(before) {
            let sum = counts.entry(agent).or_default();
            sum.forward += more.forward;
            sum.undo += more.undo;
            sum.effects += more.effects;
            sum.undone += more.undone;
        }
    }
    for sum in counts.values_mut() {
        sum.forward += SPARE;
        sum.undo += if sum.undo > 0 { SPARE } else { 0 };
    }
    counts
}

/// The steps with a call before this one.
pub(super) fn before(workflow: &Workflow, index: usize) -> impl Iterator<Item = &StepRule> {
    let ancestors = workflow.steps[index].ancestors.iter().map(|&before| &workflow.steps[before]);
    ancestors.filter(|rule| rule.service().is_some())
}
