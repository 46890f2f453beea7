//! What applications and operators are told, as CloudEvents (rules 10 and 11).

use std::sync::Arc;

use serde::Serialize;

use crate::id::OrderId;
use crate::json::Json;
use crate::message::CloudEvent;
use crate::order::Order;
use crate::task::{Notice, NoticeKind, ProcessState, Reason, StepError, StepState, Task, Transition};
use crate::time::Timestamp;

/// Transitions shown in an alert.
const ALERT_HISTORY_MAX: usize = 15;

/// What a status message says.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Status<'a> {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    #[serde(rename = "CorrelationID", skip_serializing_if = "Option::is_none")]
    correlation_id: Option<&'a str>,
    version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a Reason>,
}

/// What an alert says: where the order stands, what was tried, and what the operator can do.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Alert<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    process_state: ProcessState,
    failed_steps: Vec<FailedStep<'a>>,
    /// What happened last: each attempt with its time.
    history: &'a [Transition],
    actions: [&'static str; 2],
}

/// What an alert about a reply channel says. The order itself is not held up by it.
#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ChannelAlert<'a> {
    #[serde(flatten)]
    status: Status<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply_channel: Option<&'a str>,
    /// The messages that it did not take.
    unsent: Vec<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct FailedStep<'a> {
    name: &'a str,
    direction: &'static str,
    attempt: u32,
    failure_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a StepError>,
}

/// The event for a notice of this task. Its id is the same at every sending, so that a receiver can tell repeats.
#[must_use]
pub fn event(task: &Task, order: &Order, notice: Notice, now: Timestamp) -> CloudEvent {
    let status = Status {
        order_id: task.order_id,
        correlation_id: order.correlation_id.as_deref(),
        version: notice.version,
        reason: task.reason.as_ref(),
    };
    let data = match notice.kind {
        NoticeKind::OrderNeedsOperator => Json::of(&Alert {
            status,
            process_state: task.process_state,
            failed_steps: failed_steps(task),
            history: &task.history[task.history.len().saturating_sub(ALERT_HISTORY_MAX)..],
            actions: ["resubmit", "cancel"],
        }),
        NoticeKind::ReplyChannelFailing => Json::of(&ChannelAlert {
            status,
            reply_channel: order.reply_channel.as_deref(),
            unsent: task.unsent.iter().filter(|owed| owed.kind.is_status()).map(|owed| owed.kind.name()).collect(),
        }),
        NoticeKind::OrderReceived
        | NoticeKind::OrderProcessed
        | NoticeKind::OrderFailed
        | NoticeKind::OrderCompensated => Json::of(&status),
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
