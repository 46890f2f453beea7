//! Workflow files.

use std::collections::{BTreeMap, BTreeSet};

use domain::json::Json;
use domain::limits::SHARDS;
use domain::machine::{Decision, Effect, Event, Moment, decide, request};
use domain::message::Outcome;
use domain::task::{ProcessState, Task};
use domain::workflow::{Workflow, Workflows};

use crate::conformance::samples::{NOON, order};
use crate::world::AGENTS;

/// What is taken as a workflow can be run: each of its orders comes to its end.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    match Workflow::parse(text, &AGENTS) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(workflow) => {
            let workflows = Workflows::parse(&[text], &workflow.name, &AGENTS).expect("a workflow");
            assert_eq!(**workflows.current(), workflow);
            check(&workflow);
            carry_out(&workflow);
        }
    }
}

fn check(workflow: &Workflow) {
    let names: BTreeSet<_> = workflow.steps.iter().map(|rule| &rule.name).collect();
    assert_eq!(names.len(), workflow.steps.len(), "names are unique");
    for (place, rule) in workflow.steps.iter().enumerate() {
        assert!(!rule.ancestors.contains(&place), "no step comes after itself");
        assert!(rule.after.iter().all(|earlier| rule.ancestors.contains(earlier)));
        assert!(rule.horizon_ms >= rule.complete_within_ms && rule.max_failures > 0);
    }
    assert!(workflow.hops_max() > 0 && workflow.first_look_ms() > 0);
}

/// Every step is claimed once all that it comes after are done, and in the end the order is.
fn carry_out(workflow: &Workflow) {
    let order = order(1);
    let mut task = Task::new(&order, workflow, SHARDS, 1);
    let mut open = vec![None];
    let mut claimed = BTreeMap::new();
    while let Some(reply) = open.pop() {
        let instance = "fuzz".into();
        let moment = Moment { now: NOON, instance: &instance, nonce: task.nonce + 1, draw: 0 };
        let event = match &reply {
            None => Event::Wake { hops: 0, redelivered: false },
            Some(reply) => Event::Reply { reply, redelivered: false },
        };
        let Decision { change, effects, .. } = decide(&task, workflow, event, moment).expect("a task of this workflow");
        task = change.expect("a change");
        for effect in effects {
            let Effect::Request { step, hops } = effect else { continue };
            // A mapping that this order does not fill ends the order otherwise.
            let Ok((_, request)) = request(&task, workflow, step, &order, NOON, hops).expect("a claim") else { return };
            let earlier: BTreeSet<_> =
                workflow.steps[step].ancestors.iter().map(|&at| &workflow.steps[at].name).collect();
            assert!(request.body.is_some() || request.outputs.keys().collect::<BTreeSet<_>>() == earlier);
            *claimed.entry(step).or_insert(0) += 1;
            open.push(Some(request.reply(Outcome::Done(Json::of(&step)))));
        }
    }
    assert_eq!(task.process_state, ProcessState::Processed, "{task:#?}");
    assert!(claimed.len() == workflow.steps.len() && claimed.values().all(|times| *times == 1), "{claimed:?}");
}
