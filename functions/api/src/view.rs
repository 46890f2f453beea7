//! A task for callers: without the values that only the protocol needs, and redacted.

use std::borrow::Cow;

use domain::child;
use domain::id::OrderId;
use domain::message::Action;
use domain::redaction::Redaction;
use domain::situation::Situation;
use domain::task::{Approvers, Reason, Step, Task};
use domain::time::Timestamp;
use serde::{Serialize, Serializer};

/// A task on the wire. Its history is written line by line from the task.
pub(crate) type TaskView<'a> = wire::Task<'a, Lines<'a>>;

/// The lines of a history.
pub(crate) struct Lines<'a>(&'a Task);

/// The whole task, for a caller that asks for this one order.
pub(crate) fn whole<'a>(task: &'a Task, redaction: &Redaction) -> TaskView<'a> {
    let mut view = listed(task);
    view.history = Some(Lines(task));
    for (shown, step) in view.steps.iter_mut().zip(&task.steps) {
        shown.output = step.output.as_ref().map(|output| redaction.shown(output));
    }
    view
}

/// The task without history and outputs, for lists: a page of whole tasks could have many megabytes.
pub(crate) fn listed(task: &Task) -> TaskView<'_> {
    // Each attribute is named, so that a new one is not shown, or hidden, by accident.
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
        parent,
        complete_by,
        late_since,
        expires_at,
        erased_at,
        priority,
        paused,
        resumed: _,
        taken,
        taken_version: _,
        notify: _,
        unsent: _,
        jobs: _,
        history: _,
    } = task;
    wire::Task {
        order_id: *order_id,
        version: *version,
        workflow: text(workflow),
        workflow_version: *workflow_version,
        process_state: (*process_state).into(),
        reason: reason.as_ref().map(shown_reason),
        steps: steps.iter().map(|step| shown_step(*order_id, step)).collect(),
        watch: watch.map(Into::into),
        watch_at: watch_at.map(Timestamp::epoch_ms),
        parent: parent.clone(),
        complete_by: *complete_by,
        late_since: *late_since,
        expires_at: *expires_at,
        erased_at: *erased_at,
        priority: (*priority).into(),
        paused: paused.clone(),
        taken: taken.clone(),
        submitted_at: task.submitted_at(),
        updated_at: task.updated_at(),
        actions: actions(task),
        lines: lines(task),
        situation: Situation::of(task),
        index: None,
        history: None,
    }
}

/// The lines that the order carries, and those that were dropped; absent if it has none.
fn lines(task: &Task) -> Option<wire::CarriedLines> {
    let [carried, dropped] = task.carried_lines();
    (!carried.is_empty() || !dropped.is_empty()).then_some(wire::CarriedLines { carried, dropped })
}

/// The commands that are allowed now, as last path segments.
fn actions(task: &Task) -> Vec<Cow<'static, str>> {
    let again = task.may_be_posted_again().then_some("again");
    Action::allowed(task).map(Action::segment).chain(again).map(text).collect()
}

/// A borrowed text.
pub(crate) const fn text(text: &str) -> Cow<'_, str> {
    Cow::Borrowed(text)
}

fn shown_reason(reason: &Reason) -> wire::Reason<'_> {
    let Reason { code, message, step, since_version: _, earlier } = reason;
    wire::Reason {
        code: text(code),
        message: text(message),
        step: step.as_deref().map(text),
        earlier: earlier.as_deref().map(|earlier| Box::new(shown_reason(earlier))),
    }
}

/// The step without its output. Its fallback is bookkeeping: its agent shows who carries it out.
fn shown_step(order_id: OrderId, step: &Step) -> wire::Step<'_> {
    let Step {
        name,
        agent,
        process_state,
        locked_by,
        complete_by,
        failure_count,
        attempt,
        direction,
        optional,
        pivot,
        dropped,
        approval,
        doubted_at,
        not_before,
        waits_until,
        wait_to_come: _,
        poll: _,
        may_run_until,
        declined: _,
        fallback: _,
        output: _,
        last_error,
        call_ms,
        started_at,
        finished_at,
    } = step;
    wire::Step {
        name: text(name),
        agent: text(agent),
        process_state: (*process_state).into(),
        locked_by: locked_by.as_deref().map(text),
        complete_by: *complete_by,
        failure_count: *failure_count,
        attempt: *attempt,
        direction: (*direction).into(),
        optional: *optional,
        pivot: *pivot,
        dropped: *dropped,
        approval: approval.as_ref().map(shown_approvers),
        child: child::made(step, order_id),
        doubted_at: *doubted_at,
        not_before: *not_before,
        waits_until: *waits_until,
        may_run_until: *may_run_until,
        output: None,
        last_error: last_error.clone(),
        // The task keeps the time of an earlier direction, since the write that turns it round counts it.
        call_ms: call_ms.filter(|_| started_at.is_some() && finished_at.is_some()),
        started_at: *started_at,
        finished_at: *finished_at,
    }
}

fn shown_approvers(Approvers { role, not_by, since_version: _ }: &Approvers) -> wire::Approvers<'_> {
    wire::Approvers { role: role.as_deref().map(text), not_by: not_by.as_deref().map(text) }
}

impl Serialize for Lines<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.lines())
    }
}

#[cfg(test)]
mod tests {
    use domain::json::Json;
    use domain::message::Priority;
    use domain::order::Parent;
    use domain::task::{ProcessState, StepError, StepState};
    use domain::workflow::ORDERS;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{pause, task_in};

    /// A task in `Error` whose first step has every attribute.
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
        step.call_ms = Some(43);
        step.last_error = Some(StepError { code: "expired".into(), message: "late".into(), attempt: 4, at });
        task
    }

    #[test]
    fn the_time_of_a_call_is_shown_once_its_direction_has_ended() {
        let mut task = failed();
        let shown = |task: &Task| serde_json::to_value(whole(task, &Redaction::default())).unwrap()["Steps"][0].clone();
        assert_eq!(shown(&task)["CallMs"], 43);
        // The step was turned round, and its undo is under way; or it ended without a call, since it has no undo.
        let (started_at, finished_at) = (task.steps[0].started_at, task.steps[0].finished_at);
        for times in [(started_at, None), (None, finished_at)] {
            (task.steps[0].started_at, task.steps[0].finished_at) = times;
            assert_eq!(shown(&task).get("CallMs"), None);
        }
    }

    #[test]
    fn a_task_is_shown_under_the_names_of_the_design() {
        let task = failed();
        let shown = serde_json::to_value(whole(&task, &Redaction::default())).unwrap();
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
                    "CallMs": 43, "StartedAt": time, "FinishedAt": time,
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
            "Actions": ["resubmit", "cancel", "settle", "note", "close"],
            "Situation": {
                "Head": "Waiting for an operator: compensation-failed.",
                "Text": "An undo was refused, failed or got no answer. In words. \
                         The order was being undone. Reason: rejected. In words.",
                "ToDo": "Remove the cause at the service, then resubmit: the undo goes on. Or undo the step by hand at the \
                         service, then settle it as undone. If neither is possible, close the order: it ends as it is.",
                "Waits": true,
            },
            "History": [{
                "At": task.history[0].at.to_string(), "Who": &*task.history[0].who, "What": "submitted",
                "Kind": "Submitted",
            }],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_child_is_shown_with_its_parent_and_a_step_with_the_child_that_it_has_made() {
        let mut task = failed();
        let shown = |task: &Task| serde_json::to_value(whole(task, &Redaction::default())).unwrap();
        let parent = Parent { order_id: task.order_id.again(), step: "replace".into(), depth: 2 };
        let expected = json!({"OrderID": parent.order_id.to_string(), "Step": "replace", "Depth": 2});
        task.parent = Some(parent);
        for step in &mut task.steps {
            step.agent = ORDERS.into();
        }
        let view = shown(&task);
        assert_eq!(view["Parent"], expected);
        let child = task.order_id.child(&task.steps[0].name).to_string();
        assert_eq!((&view["Steps"][0]["Child"], view["Steps"][1].get("Child")), (&json!(child), None));
        assert!(shown(&failed())["Steps"][0].get("Child").is_none());
    }

    #[test]
    fn the_priority_is_always_shown_and_the_pause_while_it_lasts() {
        let mut task = failed();
        (task.priority, task.paused) = (Priority::High, Some(pause()));
        let shown = serde_json::to_value(whole(&task, &Redaction::default())).unwrap();
        let paused = json!({"By": "ada", "Reason": "stock-taking", "Since": "2026-11-20T17:26:43.007Z", "Version": 1});
        assert_eq!((&shown["Priority"], &shown["Paused"]), (&json!("high"), &paused));
        task.paused = None;
        let shown = serde_json::to_value(whole(&task, &Redaction::default())).unwrap();
        assert!(shown.get("Paused").is_none());
    }

    #[test]
    fn outputs_are_shown_digit_for_digit() {
        let text = serde_json::to_string(&whole(&failed(), &Redaction::default())).unwrap();
        assert!(text.contains("\"Output\":{\"Total\": 1.10}"), "{text}");
    }

    #[test]
    fn what_is_not_to_be_seen_of_outputs_is_redacted() {
        let mut task = failed();
        task.steps[0].output = Some(Json::parse(b"{\"Iban\":\"DE02\",\"Total\":1.10}", 99).unwrap());
        let text = serde_json::to_string(&whole(&task, &Redaction::of(["IBAN"]))).unwrap();
        assert!(text.contains("\"Output\":{\"Iban\":\"[redacted]\",\"Total\":1.10}"), "{text}");
    }

    #[test]
    fn a_list_leaves_out_what_grows() {
        let task = failed();
        let listed = serde_json::to_value(listed(&task)).unwrap();
        let mut expected = serde_json::to_value(whole(&task, &Redaction::default())).unwrap();
        expected.as_object_mut().unwrap().remove("History");
        expected["Steps"][0].as_object_mut().unwrap().remove("Output");
        assert_eq!(listed, expected);
        assert_ne!(listed["Steps"][0]["LastError"], Value::Null);
    }
}
