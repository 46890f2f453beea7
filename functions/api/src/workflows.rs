//! `GET /workflows`: the steps of orders, version by version.

use bytes::Bytes;
use domain::workflow::{StepRule, Workflow, Workflows};
use http::{Response, StatusCode};
use wire::WorkflowList;

use crate::config::ApiConfig;
use crate::reply;
use crate::view::text;

/// All versions of all configured workflows.
pub(crate) fn workflows(config: &ApiConfig) -> Response<Bytes> {
    let workflows = config.workflows().map(views).unwrap_or_default();
    reply::json(StatusCode::OK, &WorkflowList { workflows })
}

fn views(workflows: &Workflows) -> Vec<wire::Workflow<'_>> {
    let current = workflows.current();
    let is_current = |one: &Workflow| (&one.name, one.version) == (&current.name, current.version);
    workflows.all().map(|workflow| shown(workflow, is_current(workflow))).collect()
}

fn shown(workflow: &Workflow, current: bool) -> wire::Workflow<'_> {
    let Workflow { name, version, priority, steps, supervision: _, refuse: _ } = workflow;
    let steps = steps.iter().map(|rule| shown_step(rule, workflow)).collect();
    wire::Workflow { name: text(name), version: *version, current, priority: (*priority).into(), steps }
}

fn shown_step<'a>(rule: &'a StepRule, workflow: &'a Workflow) -> wire::WorkflowStep<'a> {
    let StepRule {
        name,
        agent,
        after,
        before: _,
        ancestors: _,
        complete_within_ms,
        horizon_ms,
        settles_within_ms: _,
        max_failures,
        on_rejected,
        on_exhausted,
        forward: _,
        undo: _,
        keep: _,
    } = rule;
    wire::WorkflowStep {
        name: text(name),
        agent: text(agent),
        after: after.iter().filter_map(|index| Some(text(&workflow.steps.get(*index)?.name))).collect(),
        complete_within_ms: Some(*complete_within_ms),
        max_failures: Some(*max_failures),
        on_rejected: Some(text(on_rejected.name())),
        on_exhausted: Some(text(on_exhausted.name())),
        horizon_ms: Some(*horizon_ms),
    }
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
        fake.config(ApiConfig::default().with_workflows(&workflows));
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
            {"Name": "w", "Version": 2, "Current": true, "Priority": "high", "Steps": [&a, &b]},
        ]});
        let answer = fake.get("/workflows");
        assert_eq!((answer.status, &answer.body), (200, &expected));
    }
}
