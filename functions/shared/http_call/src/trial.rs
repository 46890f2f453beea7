//! What the steps of an order would send, as far as the outputs of the steps before are known.

use std::borrow::Cow;
use std::sync::Arc;

use config::{AgentSettings, Settings};
use domain::json::Json;
use domain::machine::{Foreseen, Missing, Preview, Previewed};
use domain::message::{Failure, Outcome};
use domain::order::Order;
use domain::task::Direction;
use domain::workflow::{StepRule, Workflow};
use wire::{TriedCall, TriedHeader, TriedStep};

use crate::shown::{Shown, call_of};

/// An order that a workflow has accepted, and what is supposed of its steps.
pub struct Trial<'a> {
    preview: Preview<'a>,
    workflow: &'a Workflow,
    settings: &'a Settings,
    base: &'a (dyn Fn(&str) -> String + Sync),
}

/// Where the service of an agent is of which no URL is known.
#[must_use]
pub fn unknown_base(agent: &str) -> String {
    format!("http://{agent}.invalid")
}

impl<'a> Trial<'a> {
    /// Nothing is supposed yet. `base` is where the service of an agent is that has no URL of its own.
    #[must_use]
    pub fn new(
        order: &'a Order,
        workflow: &'a Workflow,
        settings: &'a Settings,
        base: &'a (dyn Fn(&str) -> String + Sync),
    ) -> Self {
        Self { preview: Preview::new(order, workflow), workflow, settings, base }
    }

    /// The steps, each after those that it comes after: try them in this turn.
    #[must_use]
    pub fn in_turn(&self) -> Vec<usize> {
        self.preview.in_turn()
    }

    /// Whether a step runs, and its call, with the request of it. One that cannot be sent is supposed to fail.
    pub fn forward(&mut self, index: usize) -> (TriedStep<'static>, Option<Previewed>) {
        let rule = &self.workflow.steps[index];
        let mut step = TriedStep { step: text(&rule.name), agent: text(&rule.agent), ..TriedStep::default() };
        match self.preview.foresee(index) {
            Foreseen::Never(why) => {
                step.never_runs = Some(why.into());
                return (step, None);
            }
            Foreseen::Unknown(missing) => step.runs_if = pointers(&missing),
            Foreseen::Comes => {}
        }
        let previewed = self.preview.call(index, Direction::Forward);
        let call = self.call(rule, Direction::Forward, previewed.as_ref());
        if let Some(why) = &call.unsendable {
            let failure = Failure { code: "unsendable".into(), message: (&**why).into() };
            self.preview.suppose(index, &Outcome::Failed(failure));
        }
        step.forward = Some(call);
        (step, previewed)
    }

    /// Supposes this outcome of a step.
    pub fn suppose(&mut self, index: usize, outcome: &Outcome) {
        self.preview.suppose(index, outcome);
    }

    /// The undo of a step.
    #[must_use]
    pub fn undo(&self, index: usize) -> TriedCall<'static> {
        let previewed = self.preview.call(index, Direction::Undo);
        self.call(&self.workflow.steps[index], Direction::Undo, previewed.as_ref())
    }

    fn call(&self, rule: &StepRule, direction: Direction, previewed: Option<&Previewed>) -> TriedCall<'static> {
        let default = AgentSettings::default();
        let settings = self.settings.of(&rule.agent).unwrap_or(&default);
        let none = |why: &'static str| TriedCall { no_call: Some(why.into()), ..TriedCall::default() };
        let unsendable = |why: String| TriedCall { unsendable: Some(why.into()), ..TriedCall::default() };
        match previewed {
            None if direction == Direction::Forward => none("people decide"),
            None if rule.approval.is_some() => none("a decision has nothing to undo"),
            None if rule.child.is_some() && !rule.no_undo => none("the order is cancelled"),
            None => none("the step has no undo"),
            Some(Previewed::Unknown(missing)) => TriedCall { needs: pointers(missing), ..TriedCall::default() },
            Some(Previewed::Unsendable(failure)) => unsendable(failure.message.to_string()),
            Some(Previewed::Request(request)) => {
                if let Some(workflow) = &rule.child {
                    let document = request.body.as_ref().map_or("{}", Json::text).to_owned();
                    return TriedCall {
                        workflow: Some(text(workflow)),
                        document: Some(document.into()),
                        ..TriedCall::default()
                    };
                }
                if settings.has_own_queue {
                    return none("a program takes the request from its own queue");
                }
                call_of(request, &(self.base)(&rule.agent), settings).map_or_else(unsendable, shown)
            }
        }
    }
}

fn shown(Shown { method, uri, headers, body }: Shown) -> TriedCall<'static> {
    let header = |(name, value): (String, String)| TriedHeader { name: name.into(), value: value.into() };
    TriedCall {
        method: Some(method.to_string().into()),
        url: Some(uri.to_string().into()),
        headers: headers.into_iter().map(header).collect(),
        body: Some(String::from_utf8_lossy(&body).into_owned().into()),
        ..TriedCall::default()
    }
}

fn text(name: &Arc<str>) -> Cow<'static, str> {
    Cow::Owned(name.to_string())
}

fn pointers(missing: &[Missing]) -> Vec<Cow<'static, str>> {
    missing.iter().map(|missing| missing.pointer.clone().into()).collect()
}
