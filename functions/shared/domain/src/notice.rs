//! The messages to applications and operators, as CloudEvents (rules 10 and 11).

use std::sync::Arc;

use serde::Serialize;

use crate::id::OrderId;
use crate::json::Json;
use crate::message::{Action, CloudEvent};
use crate::order::Order;
use crate::situation::Situation;
use crate::task::{Approvers, Line, Notice, NoticeKind, ProcessState, Reason, StepError, StepState, Task};
use crate::time::Timestamp;

/// Transitions shown in an alert.
const ALERT_HISTORY_MAX: usize = 15;

/// The data of a status message.
#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "OrderStatus"))]
#[serde(rename_all = "PascalCase")]
struct Status<'a> {
    /// The order.
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    /// The application's own ID of the order.
    #[serde(rename = "CorrelationID", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::TEXT_CHARS_MAX)))]
    correlation_id: Option<&'a str>,
    /// Who posted the order: the name of the caller, or anonymous or local.
    submitter: &'a str,
    /// The task's version that the event reports. Events come at least once and in any order: keep the highest version.
    #[cfg_attr(feature = "contract", schemars(range(min = 1)))]
    version: u64,
    /// Why an order waits for an operator, or was compensated or closed, as known when the event is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a Reason>,
}

/// The data of an alert: the state of the order, its last attempts, and the possible actions.
#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "OrderAlert"))]
#[serde(rename_all = "PascalCase")]
struct Alert<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    /// The state of the task.
    process_state: ProcessState,
    /// The steps that wait for the operator.
    #[cfg_attr(feature = "contract", schemars(length(max = crate::limits::STEPS_MAX)))]
    failed_steps: Vec<FailedStep<'a>>,
    /// The latest changes, oldest first.
    #[cfg_attr(feature = "contract", schemars(length(max = ALERT_HISTORY_MAX)))]
    history: Vec<Line<'a>>,
    /// The possible commands: the last segments of API paths.
    #[cfg_attr(feature = "contract", schemars(length(min = 1)))]
    actions: Vec<&'static str>,
    /// How the order stands, in words.
    situation: Situation,
}

/// The data of an alert about a reply channel. It does not hold up the order.
#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
struct ChannelAlert<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    /// Registered name of a reply channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1, max = crate::limits::NAME_CHARS_MAX)))]
    reply_channel: Option<&'a str>,
    /// The messages that the channel did not take.
    unsent: Vec<&'static str>,
}

/// The data of an event about an order that is late or waits for long.
#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "OrderProgress"))]
#[serde(rename_all = "PascalCase")]
struct Progress<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    /// The state of the task.
    process_state: ProcessState,
    /// The deadline of the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    complete_by: Option<Timestamp>,
    /// When it was found late.
    #[serde(skip_serializing_if = "Option::is_none")]
    late_since: Option<Timestamp>,
    /// The steps whose result, or a decision on which, is awaited now.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waits: Vec<Wait<'a>>,
    /// How the order stands, in words.
    situation: Situation,
}

/// A step whose result or decision is awaited.
#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
struct Wait<'a> {
    /// Name of a step in its workflow.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    step: &'a str,
    /// The end of the wait.
    until: Timestamp,
    /// Present if people decide on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Asked<'a>>,
}

/// Who decides on a step.
#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "WaitApproval"))]
#[serde(rename_all = "PascalCase")]
struct Asked<'a> {
    /// Their role.
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    /// A person who may not decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_by: Option<&'a str>,
}

impl<'a> From<&'a Approvers> for Asked<'a> {
    fn from(approvers: &'a Approvers) -> Self {
        Self { role: approvers.role.as_deref(), not_by: approvers.not_by.as_deref() }
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
struct FailedStep<'a> {
    /// Name of a step in its workflow.
    #[cfg_attr(feature = "contract", schemars(with = "crate::contract::StepName"))]
    name: &'a str,
    /// Forward: carry out the step. Undo: compensate it.
    #[cfg_attr(feature = "contract", schemars(with = "crate::task::Direction"))]
    direction: &'static str,
    /// The number of claims.
    attempt: u32,
    /// Attempts that failed or expired.
    failure_count: u32,
    /// The last failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a StepError>,
}

/// The event for a notice of this task. Its id is the same at every sending, so that a receiver recognises repeats.
#[must_use]
pub fn event(task: &Task, order: &Order, notice: Notice, now: Timestamp) -> CloudEvent {
    let status = Status {
        order_id: task.order_id,
        correlation_id: order.correlation_id.as_deref(),
        submitter: &order.submitter,
        version: notice.version,
        reason: task.reason.as_ref(),
    };
    let data = match notice.kind {
        NoticeKind::OrderNeedsOperator => Json::of(&Alert {
            status,
            process_state: task.process_state,
            failed_steps: failed_steps(task),
            history: task.lines().skip(task.history.len().saturating_sub(ALERT_HISTORY_MAX)).collect(),
            actions: Action::allowed(task).filter(|action| *action != Action::Note).map(Action::segment).collect(),
            situation: Situation::of(task),
        }),
        NoticeKind::ReplyChannelFailing => Json::of(&ChannelAlert {
            status,
            reply_channel: order.reply_channel.as_deref(),
            unsent: task.unsent.iter().filter(|owed| owed.kind.is_status()).map(|owed| owed.kind.name()).collect(),
        }),
        NoticeKind::OrderLate
        | NoticeKind::OrderLateStatus
        | NoticeKind::OrderWaiting
        | NoticeKind::OrderNeedsApproval => Json::of(&Progress {
            status,
            process_state: task.process_state,
            complete_by: task.complete_by,
            late_since: task.late_since,
            waits: waits(task),
            situation: Situation::of(task),
        }),
        NoticeKind::OrderReceived
        | NoticeKind::OrderProcessed
        | NoticeKind::OrderFailed
        | NoticeKind::OrderCompensated
        | NoticeKind::OrderClosed
        | NoticeKind::ParentTold => Json::of(&status),
    };
    let kind = notice.kind.name();
    CloudEvent {
        specversion: "1.0".into(),
        id: format!("{}/{}/{kind}", task.order_id, notice.version).into(),
        source: "stepwarden".into(),
        kind: kind.into(),
        subject: Arc::from(task.order_id.to_string()),
        time: now,
        datacontenttype: "application/json".into(),
        data,
    }
}

/// The schema of the data of such an event, without what only some kinds have.
#[cfg(feature = "contract")]
pub fn schema(kind: NoticeKind, generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    match kind {
        NoticeKind::OrderNeedsOperator => generator.subschema_for::<Alert<'_>>(),
        NoticeKind::ReplyChannelFailing => generator.subschema_for::<ChannelAlert<'_>>(),
        NoticeKind::OrderLate
        | NoticeKind::OrderLateStatus
        | NoticeKind::OrderWaiting
        | NoticeKind::OrderNeedsApproval => generator.subschema_for::<Progress<'_>>(),
        NoticeKind::OrderReceived
        | NoticeKind::OrderProcessed
        | NoticeKind::OrderFailed
        | NoticeKind::OrderCompensated
        | NoticeKind::OrderClosed
        | NoticeKind::ParentTold => generator.subschema_for::<Status<'_>>(),
    }
}

fn waits(task: &Task) -> Vec<Wait<'_>> {
    let awaited = task.steps.iter().filter(|step| step.is_awaited());
    awaited
        .filter_map(|step| {
            Some(Wait { step: &step.name, until: step.waits_until?, approval: step.approval.as_ref().map(Into::into) })
        })
        .collect()
}

fn failed_steps(task: &Task) -> Vec<FailedStep<'_>> {
    let failed = task.steps.iter().filter(|step| step.process_state == StepState::Error);
    failed
        .map(|step| FailedStep {
            name: &step.name,
            direction: step.direction.name(),
            attempt: step.attempt,
            failure_count: step.failure_count,
            last_error: step.last_error.as_ref(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::machine::testing::Case;
    use crate::task::{What, tests::line};

    fn event_of(case: &Case, kind: NoticeKind) -> (CloudEvent, Value) {
        let order = Order {
            order_id: case.task.order_id,
            document: Json::document(b"{}").unwrap(),
            fingerprint: "f".into(),
            submitted_at: case.now,
            submitter: "test".into(),
            reply_channel: Some("shop".into()),
            correlation_id: Some("c-7".into()),
            priority: None,
            workflow: None,
            terms: Vec::new(),
            again_of: None,
        };
        let event = event(&case.task, &order, Notice { kind, version: 3, resends: 0 }, case.now);
        let data = serde_json::from_str(event.data.text()).unwrap();
        (event, data)
    }

    #[test]
    fn an_alert_names_the_steps_that_failed_and_what_can_be_done() {
        let mut case = Case::new(&[("a", &[], ""), ("b", &["a"], "on_rejected = \"hold\"")], true);
        case.wake();
        case.done("a");
        case.rejected("b");
        let (event, data) = event_of(&case, NoticeKind::OrderNeedsOperator);
        assert_eq!((&*event.kind, &*event.subject), ("OrderNeedsOperator", &*case.task.order_id.to_string()));
        assert_eq!(
            (&data["ProcessState"], &data["CorrelationID"], &data["Submitter"], &data["Version"]),
            (&"Error".into(), &"c-7".into(), &"test".into(), &3.into())
        );
        let failed = data["FailedSteps"].as_array().unwrap();
        assert_eq!((failed.len(), &failed[0]["Name"], &failed[0]["FailureCount"]), (1, &"b".into(), &1.into()));
        assert_eq!(failed[0]["LastError"]["Code"], "declined");
        assert_eq!(data["Actions"], serde_json::json!(["resubmit", "cancel", "settle", "close"]));
        assert_eq!(data["Reason"]["Code"], "rejected");
    }

    #[test]
    fn an_alert_shows_what_happened_last_and_not_everything() {
        let mut case = Case::chain();
        for n in 0..40 {
            case.task.record(line(case.now, What::Other(Box::new(n.into()))));
        }
        let (_, data) = event_of(&case, NoticeKind::OrderNeedsOperator);
        let history = data["History"].as_array().unwrap();
        assert_eq!((history.len(), &history[14]["What"]), (ALERT_HISTORY_MAX, &"39".into()));
    }

    #[test]
    fn a_repeat_has_the_same_id_and_another_notice_of_the_same_version_another() {
        let case = Case::chain();
        let id = |kind| event_of(&case, kind).0.id;
        assert_eq!(id(NoticeKind::OrderReceived), id(NoticeKind::OrderReceived));
        assert_ne!(id(NoticeKind::OrderFailed), id(NoticeKind::OrderNeedsOperator));
    }

    #[test]
    fn an_alert_about_a_reply_channel_names_it_and_what_it_did_not_take() {
        let mut case = Case::new(&[("a", &[], "on_rejected = \"hold\"")], true);
        case.wake();
        case.rejected("a");
        let (_, data) = event_of(&case, NoticeKind::ReplyChannelFailing);
        assert_eq!(data["ReplyChannel"], "shop");
        assert_eq!(data["Unsent"], serde_json::json!(["OrderReceived", "OrderFailed"]), "the alert is none of them");
    }
}
