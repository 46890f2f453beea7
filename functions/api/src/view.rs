//! A task as callers see it: its record without the attributes that only the protocol needs.

use std::borrow::Cow;
use std::sync::Arc;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::Priority;
use domain::redaction::Redaction;
use domain::task::{Direction, Pause, ProcessState, Reason, Step, StepError, StepState, Task, Transition, Watch};
use domain::time::Timestamp;
use serde::Serialize;

/// A task on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct TaskView<'a> {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    version: u64,
    workflow: &'a str,
    workflow_version: u32,
    process_state: ProcessState,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ReasonView<'a>>,
    steps: Vec<StepView<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    watch: Option<Watch>,
    /// Epoch milliseconds, since it is a key.
    #[serde(skip_serializing_if = "Option::is_none")]
    watch_at: Option<i64>,
    priority: Priority,
    #[serde(skip_serializing_if = "Option::is_none")]
    paused: Option<&'a Pause>,
    /// Nothing where the task does not tell it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    submitted_at: Option<Timestamp>,
    /// When it last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<&'a [Transition]>,
}

/// Why a task is in `Error` or was compensated, on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ReasonView<'a> {
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<&'a str>,
    /// Why the order was being undone when its undo failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    earlier: Option<Box<Self>>,
}

/// A step on the wire.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct StepView<'a> {
    name: &'a str,
    agent: &'a str,
    process_state: StepState,
    /// Null says that nobody holds the step.
    locked_by: Option<&'a str>,
    complete_by: Option<Timestamp>,
    failure_count: u32,
    attempt: u32,
    direction: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    doubted_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Cow<'a, Json>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a StepError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finished_at: Option<Timestamp>,
}

impl<'a> TaskView<'a> {
    /// All of it, for who asks for this one order, but what is not to be seen of outputs.
    pub(crate) fn whole(task: &'a Task, redaction: &Redaction) -> Self {
        let mut view = Self::without_outputs(task);
        view.history = Some(&task.history);
        for (shown, step) in view.steps.iter_mut().zip(&task.steps) {
            shown.output = step.output.as_ref().map(|output| redaction.shown(output));
        }
        view
    }

    /// Without history and outputs, for lists: a page of whole tasks could have many megabytes.
    pub(crate) fn in_list(task: &'a Arc<Task>) -> Self {
        Self::without_outputs(task)
    }

    fn without_outputs(task: &'a Task) -> Self {
        // Named one by one, so that a new attribute is not shown, or hidden, by accident.
        let Task {
            order_id,
            version,
            nonce: _,
            workflow,
            workflow_version,
            process_state,
            reason,
            steps,
            watch,
            watch_at,
            priority,
            paused,
            resumed: _,
            notify: _,
            unsent: _,
            history: _,
        } = task;
        Self {
            order_id: *order_id,
            version: *version,
            workflow,
            workflow_version: *workflow_version,
            process_state: *process_state,
            reason: reason.as_ref().map(ReasonView::of),
            steps: steps.iter().map(StepView::without_output).collect(),
            watch: *watch,
            watch_at: watch_at.map(Timestamp::epoch_ms),
            priority: *priority,
            paused: paused.as_ref(),
            submitted_at: task.submitted_at(),
            updated_at: task.updated_at(),
            history: None,
        }
    }
}

impl<'a> ReasonView<'a> {
    fn of(reason: &'a Reason) -> Self {
        let Reason { code, message, step, since_version: _, earlier } = reason;
        let earlier = earlier.as_deref().map(|earlier| Box::new(Self::of(earlier)));
        Self { code, message, step: step.as_deref(), earlier }
    }
}

impl<'a> StepView<'a> {
    fn without_output(step: &'a Step) -> Self {
        let Step {
            name,
            agent,
            process_state,
            locked_by,
            complete_by,
            failure_count,
            attempt,
            direction,
            doubted_at,
            not_before,
            output: _,
            last_error,
            started_at,
            finished_at,
        } = step;
        Self {
            name,
            agent,
            process_state: *process_state,
            locked_by: locked_by.as_deref(),
            complete_by: *complete_by,
            failure_count: *failure_count,
            attempt: *attempt,
            direction: *direction,
            doubted_at: *doubted_at,
            not_before: *not_before,
            output: None,
            last_error: last_error.as_ref(),
            started_at: *started_at,
            finished_at: *finished_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{pause, task_in};

    /// A task in `Error` whose first step has every attribute that a step can have.
    fn failed() -> Task {
        let mut task = task_in("view", ProcessState::Error);
        let at = Timestamp::from_epoch_ms(1_795_195_603_007);
        let reason = |code: &str, step: Option<&str>, earlier| Reason {
            code: code.into(),
            message: "in words".into(),
            step: step.map(Into::into),
            since_version: 5,
            earlier,
        };
        let rejected = reason("rejected", Some("ship-order"), None);
        task.reason = Some(reason("compensation-failed", None, Some(Box::new(rejected))));
        task.steps.truncate(2);
        let step = &mut task.steps[0];
        step.process_state = StepState::Error;
        (step.locked_by, step.complete_by) = (Some("scheduler-1".into()), Some(at));
        (step.attempt, step.failure_count) = (4, 3);
        (step.not_before, step.started_at, step.finished_at) = (Some(at), Some(at), Some(at));
        step.output = Some(Json::parse(b"{\"Total\": 1.10}", 99).unwrap());
        step.last_error = Some(StepError { code: "expired".into(), message: "late".into(), attempt: 4, at });
        task
    }

    #[test]
    fn a_task_is_shown_under_the_names_of_the_design() {
        let task = failed();
        let shown = serde_json::to_value(TaskView::whole(&task, &Redaction::default())).unwrap();
        let time = "2026-11-20T17:26:43.007Z";
        let expected = json!({
            "OrderID": task.order_id.to_string(),
            "Version": 1,
            "Workflow": &*task.workflow,
            "WorkflowVersion": task.workflow_version,
            "ProcessState": "Error",
            "Reason": {
                "Code": "compensation-failed", "Message": "in words",
                "Earlier": {"Code": "rejected", "Message": "in words", "Step": "ship-order"},
            },
            "Steps": [
                {
                    "Name": &*task.steps[0].name, "Agent": &*task.steps[0].agent, "ProcessState": "Error",
                    "LockedBy": "scheduler-1", "CompleteBy": time, "FailureCount": 3, "Attempt": 4,
                    "Direction": "Forward", "NotBefore": time, "Output": {"Total": 1.10},
                    "LastError": {"Code": "expired", "Message": "late", "Attempt": 4, "At": time},
                    "StartedAt": time, "FinishedAt": time,
                },
                {
                    "Name": &*task.steps[1].name, "Agent": &*task.steps[1].agent, "ProcessState": "Pending",
                    "LockedBy": null, "CompleteBy": null, "FailureCount": 0, "Attempt": 0, "Direction": "Forward",
                },
            ],
            "Watch": task.watch.unwrap().to_string(),
            "WatchAt": task.watch_at.unwrap().epoch_ms(),
            "Priority": "normal",
            "SubmittedAt": task.history[0].at.to_string(),
            "UpdatedAt": task.history[0].at.to_string(),
            "History": [{
                "At": task.history[0].at.to_string(), "Who": &*task.history[0].who, "What": &*task.history[0].what,
            }],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_priority_is_always_shown_and_who_paused_it_while_it_is_paused() {
        let mut task = failed();
        (task.priority, task.paused) = (Priority::High, Some(pause()));
        let shown = serde_json::to_value(TaskView::whole(&task, &Redaction::default())).unwrap();
        let paused = json!({"By": "ada", "Reason": "stock-taking", "Since": "2026-11-20T17:26:43.007Z", "Version": 1});
        assert_eq!((&shown["Priority"], &shown["Paused"]), (&json!("high"), &paused));
        task.paused = None;
        let shown = serde_json::to_value(TaskView::whole(&task, &Redaction::default())).unwrap();
        assert!(shown.get("Paused").is_none());
    }

    #[test]
    fn outputs_are_shown_digit_for_digit() {
        let text = serde_json::to_string(&TaskView::whole(&failed(), &Redaction::default())).unwrap();
        assert!(text.contains("\"Output\":{\"Total\": 1.10}"), "{text}");
    }

    #[test]
    fn what_is_not_to_be_seen_of_outputs_is_redacted() {
        let mut task = failed();
        task.steps[0].output = Some(Json::parse(b"{\"Iban\":\"DE02\",\"Total\":1.10}", 99).unwrap());
        let text = serde_json::to_string(&TaskView::whole(&task, &Redaction::of(["IBAN"]))).unwrap();
        assert!(text.contains("\"Output\":{\"Iban\":\"[redacted]\",\"Total\":1.10}"), "{text}");
    }

    #[test]
    fn a_list_leaves_out_what_grows() {
        let task = Arc::new(failed());
        let listed = serde_json::to_value(TaskView::in_list(&task)).unwrap();
        let mut expected = serde_json::to_value(TaskView::whole(&task, &Redaction::default())).unwrap();
        expected.as_object_mut().unwrap().remove("History");
        expected["Steps"][0].as_object_mut().unwrap().remove("Output");
        assert_eq!(listed, expected);
        assert_ne!(listed["Steps"][0]["LastError"], Value::Null);
    }
}
