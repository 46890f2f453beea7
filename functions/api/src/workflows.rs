//! `GET /workflows`: the steps of orders, version by version.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use domain::definition::{Catalogue, Choice, Definition, Deployment, Pin, versions};
use domain::ports::{Environment, PortError, Records};
use domain::schema::Schema;
use domain::search::Pointer;
use domain::time::Timestamp;
use domain::workflow::{Deadline, StepKeys, StepRule, Waits, Workflow, Workflows};
use http::{Response, StatusCode};
use wire::WorkflowList;

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::reply;
use crate::view::text;

/// All versions of all workflows.
pub(crate) async fn workflows(ports: &impl ApiPorts, config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    let Some(catalogue) = config.catalogue() else {
        return Ok(reply::json(StatusCode::OK, &WorkflowList { workflows: Vec::new() }));
    };
    let deployment = catalogue.newest_deployment(ports).await.map_err(Problem::unread)?;
    let known = known(ports, catalogue).await.map_err(Problem::unread)?;
    let shown = |(pin, known)| shown(pin, known, catalogue, deployment.as_deref());
    Ok(reply::json(StatusCode::OK, &WorkflowList { workflows: known.iter().map(shown).collect() }))
}

/// The name and version in a path.
pub(crate) fn pin(name: &str, version: &str) -> Result<Pin, Problem> {
    format!("{name}/{version}").parse().map_err(|_| Problem::NoWorkflow)
}

/// `GET /workflows/{name}/{version}`: the text of a version.
pub(crate) async fn definition(ports: &impl ApiPorts, pin: &Pin) -> Result<Response<Bytes>, Problem> {
    let found = known_definition(ports, pin).await?.ok_or(Problem::NoWorkflow)?;
    let Definition { key: _, version, text: toml, hash, applied_at, applied_by, retired_at } = &found;
    // A compiled one was never applied.
    let is_applied = *version > 0;
    let shown = wire::Definition {
        name: text(&pin.name),
        version: pin.version,
        text: text(toml),
        hash: text(hash),
        applied_at: is_applied.then_some(*applied_at),
        applied_by: is_applied.then(|| text(applied_by)),
        retired_at: *retired_at,
    };
    Ok(reply::json(StatusCode::OK, &shown))
}

/// A version that was applied or is compiled in.
pub(crate) async fn known_definition(ports: &impl ApiPorts, pin: &Pin) -> Result<Option<Definition>, Problem> {
    let stored: Option<Definition> = ports.records().get(&pin.to_string()).await.map_err(Problem::unread)?;
    let compiled = || {
        let text = Workflows::shipped_text(pin)?;
        Some(Definition {
            key: pin.to_string().into(),
            version: 0,
            text: text.into(),
            hash: Definition::hash_of(text).into(),
            applied_at: ports.environment().now(),
            applied_by: "".into(),
            retired_at: None,
        })
    };
    Ok(stored.or_else(compiled))
}

/// A version of a workflow that is compiled in or was applied.
pub(crate) struct Known {
    workflow: Arc<Workflow>,
    retired_at: Option<Timestamp>,
}

impl Known {
    /// What its orders must fit.
    pub(crate) fn schema(&self) -> Option<&Schema> {
        self.workflow.schema.as_ref()
    }
}

/// All versions, by name and version. A definition of a later program that cannot be read is left out.
pub(crate) async fn known(ports: &impl ApiPorts, catalogue: &Catalogue) -> Result<BTreeMap<Pin, Known>, PortError> {
    let compiled = catalogue.compiled().all();
    let mut all: BTreeMap<Pin, Known> =
        compiled.map(|workflow| (workflow.pin(), Known { workflow: workflow.clone(), retired_at: None })).collect();
    for (pin, Definition { text, retired_at, .. }) in versions(ports).await? {
        match Workflow::read(&text) {
            Ok(workflow) => {
                all.insert(pin, Known { workflow: Arc::new(workflow), retired_at });
            }
            Err(fault) => tracing::error!("the definition {pin} cannot be read: {fault}"),
        }
    }
    Ok(all)
}

/// The versions whose orders are found by the member at a position, and whether there are others. `is_meant` says which
/// versions are asked about.
pub(crate) async fn indexed(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    place: &Pointer,
    is_meant: impl Fn(&Pin) -> bool,
) -> Result<(BTreeSet<Pin>, bool), Problem> {
    let Some(catalogue) = config.catalogue() else { return Ok((BTreeSet::new(), true)) };
    let known = known(ports, catalogue).await.map_err(Problem::unread)?;
    let meant = known.into_iter().filter(|(pin, _)| is_meant(pin));
    let (with, without): (Vec<_>, Vec<_>) = meant.partition(|(_, known)| known.workflow.index.has(place));
    Ok((with.into_iter().map(|(pin, _)| pin).collect(), !without.is_empty()))
}

fn shown<'a>(
    pin: &Pin,
    Known { workflow, retired_at }: &'a Known,
    catalogue: &Catalogue,
    deployment: Option<&Deployment>,
) -> wire::Workflow<'a> {
    let Workflow {
        name,
        version,
        priority,
        steps: _,
        deadline,
        supervision: _,
        refuse: _,
        schema: _,
        index: _,
        retain: _,
    } = &**workflow;
    let Choice { version: current, share } = catalogue.taken(deployment, name).unwrap_or(Choice::all(0));
    let share = share.filter(|share| share.version == pin.version);
    wire::Workflow {
        name: text(name),
        version: *version,
        current: current == *version,
        default: catalogue.default_name(deployment) == *name && (current == *version || share.is_some()),
        share_percent: share.map(|share| share.percent),
        retired_at: *retired_at,
        priority: (*priority).into(),
        complete_within_ms: deadline.within_ms,
        on_late: (*deadline != Deadline::default()).then(|| text(deadline.on_late.name())),
        steps: workflow_steps(workflow),
    }
}

/// The steps of a workflow as the API shows them.
#[must_use]
pub fn workflow_steps(workflow: &Workflow) -> Vec<wire::WorkflowStep<'_>> {
    workflow.steps.iter().map(|rule| shown_step(rule, workflow)).collect()
}

fn shown_step<'a>(rule: &'a StepRule, workflow: &'a Workflow) -> wire::WorkflowStep<'a> {
    let StepRule { name, after, ancestors: _, in_line: _, arrays: _, line: _, keys } = rule;
    let StepKeys {
        agent,
        approval,
        child,
        complete_within_ms,
        horizon_ms,
        settles_within_ms: _,
        waits: Waits { before_ms, not_before, within_ms },
        for_each,
        when,
        optional,
        pivot,
        no_undo,
        max_failures,
        on_rejected,
        longer,
        on_exhausted,
        forward: _,
        undo: _,
        keep: _,
        poll: _,
    } = &**keys;
    wire::WorkflowStep {
        name: text(name),
        agent: text(agent),
        approval: approval.as_ref().map(|approval| wire::WorkflowApproval {
            role: approval.role.as_deref().map(text),
            not_by: approval.not_by.as_ref().map(of_order),
        }),
        workflow: child.as_deref().map(text),
        after: after.iter().filter_map(|index| Some(text(&workflow.steps.get(*index)?.name))).collect(),
        complete_within_ms: Some(*complete_within_ms),
        max_failures: Some(*max_failures),
        on_rejected: Some(text(on_rejected.name())),
        on_exhausted: Some(text(on_exhausted.name())),
        longer_wait_ms: longer.map(|longer| longer.wait_ms),
        longer_waits: longer.map(|longer| longer.times),
        for_each: for_each.as_ref().map(|each| of_order(&each.array)),
        when: when.iter().map(|comparison| text(comparison.text())).collect(),
        optional: *optional,
        pivot: *pivot,
        // There is nothing to undo of an approval.
        no_undo: *no_undo && approval.is_none(),
        horizon_ms: Some(*horizon_ms),
        wait_ms: *before_ms,
        not_before: not_before.as_ref().map(of_order),
        wait_within_ms: *within_ms,
    }
}

/// A place in the document, as a workflow names it.
fn of_order(place: &Pointer) -> Cow<'static, str> {
    Cow::Owned(format!("/Order{}", place.text()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::Fake;

    #[test]
    fn each_version_is_shown_with_its_steps_and_which_one_new_orders_get() {
        let v1 = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\n";
        let v2 = "name = \"w\"\nversion = 2\npriority = \"high\"\n[[step]]\nname = \"a\"\nagent = \"x\"\n\
                  [[step]]\nname = \"b\"\nagent = \"y\"\nafter = [\"a\"]\ncomplete_within = \"2m\"\nmax_failures = 5\n\
                  on_rejected = \"hold\"\non_exhausted = \"compensate\"\n";
        let workflows = Workflows::parse(&[v1, v2], "w", &["x", "y"]).unwrap();
        let fake = Fake::default();
        assert_eq!(fake.get("/workflows").body, json!({"Workflows": []}));
        fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(workflows)));
        let a = json!({
            "Name": "a", "Agent": "x", "After": [], "CompleteWithinMs": 30_000, "MaxFailures": 3,
            "OnRejected": "compensate", "OnExhausted": "hold", "HorizonMs": 43_200_000,
        });
        let b = json!({
            "Name": "b", "Agent": "y", "After": ["a"], "CompleteWithinMs": 120_000, "MaxFailures": 5,
            "OnRejected": "hold", "OnExhausted": "compensate", "HorizonMs": 43_200_000,
        });
        let expected = json!({"Workflows": [
            {"Name": "w", "Version": 1, "Current": false, "Priority": "normal", "Steps": [&a]},
            {"Name": "w", "Version": 2, "Current": true, "Default": true, "Priority": "high", "Steps": [&a, &b]},
        ]});
        let answer = fake.get("/workflows");
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }

    #[test]
    fn a_step_is_shown_with_when_it_applies_and_its_way_back() {
        let text = "name = \"w\"\nversion = 1\n[[step]]\nname = \"a\"\nagent = \"x\"\noptional = true\npivot = true\n\
                    when = \"/Order/Total > 1\"\nundo = \"none\"\n";
        let fake = Fake::default();
        let workflows = Workflows::parse(&[text], "w", &["x"]).unwrap();
        fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(workflows)));
        let step = &fake.get("/workflows").body["Workflows"][0]["Steps"][0];
        let shown = (&step["When"], &step["Optional"], &step["Pivot"], &step["NoUndo"]);
        assert_eq!(shown, (&json!(["/Order/Total > 1"]), &json!(true), &json!(true), &json!(true)));
    }
}
