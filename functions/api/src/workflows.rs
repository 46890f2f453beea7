//! `GET /workflows`: which steps orders go through, version by version.

use bytes::Bytes;
use domain::message::Priority;
use domain::workflow::{StepRule, Workflow, Workflows};
use http::{Response, StatusCode};
use serde::Serialize;

use crate::config::ApiConfig;
use crate::reply;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WorkflowList<'a> {
    workflows: Vec<WorkflowView<'a>>,
}

/// A version of a workflow on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct WorkflowView<'a> {
    name: &'a str,
    version: u32,
    /// Whether new orders go through this one.
    current: bool,
    priority: Priority,
    steps: Vec<StepView<'a>>,
}

/// A step of a workflow on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct StepView<'a> {
    name: &'a str,
    agent: &'a str,
    /// Names of the steps that must be processed first.
    after: Vec<&'a str>,
    complete_within_ms: u64,
    max_failures: u32,
    on_rejected: &'static str,
    on_exhausted: &'static str,
    horizon_ms: u64,
}

/// All versions of all workflows that the API was told of.
pub(crate) fn workflows(config: &ApiConfig) -> Response<Bytes> {
    let workflows = config.workflows().map(views).unwrap_or_default();
    reply::json(StatusCode::OK, &WorkflowList { workflows })
}

fn views(workflows: &Workflows) -> Vec<WorkflowView<'_>> {
    let current = workflows.current();
    let is_current = |one: &Workflow| (&one.name, one.version) == (&current.name, current.version);
    workflows.all().map(|workflow| WorkflowView::of(workflow, is_current(workflow))).collect()
}

impl<'a> WorkflowView<'a> {
    fn of(workflow: &'a Workflow, current: bool) -> Self {
        let Workflow { name, version, priority, steps, supervision: _ } = workflow;
        let steps = steps.iter().map(|rule| StepView::of(rule, workflow)).collect();
        Self { name, version: *version, current, priority: *priority, steps }
    }
}

impl<'a> StepView<'a> {
    fn of(rule: &'a StepRule, workflow: &'a Workflow) -> Self {
        let StepRule {
            name,
            agent,
            after,
            before: _,
            ancestors: _,
            complete_within_ms,
            horizon_ms,
            max_failures,
            on_rejected,
            on_exhausted,
        } = rule;
        Self {
            name,
            agent,
            after: after.iter().filter_map(|place| Some(&*workflow.steps.get(*place)?.name)).collect(),
            complete_within_ms: *complete_within_ms,
            max_failures: *max_failures,
            on_rejected: on_rejected.name(),
            on_exhausted: on_exhausted.name(),
            horizon_ms: *horizon_ms,
        }
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
