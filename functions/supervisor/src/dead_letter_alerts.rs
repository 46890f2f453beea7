//! Alerts about dead letters without a task that could send them.
//!
//! No task keeps such an alert, so the dead letter itself stays on its queue until the bus has taken the alert.

use std::sync::Arc;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::{CloudEvent, Command};
use domain::ports::SourceQueue;
use domain::task::NoticeKind;
use domain::time::Timestamp;
use serde::Serialize;

/// The reason code of an alert about a lost command.
pub(crate) const COMMAND_LOST: &str = "command-lost";
/// The type of the event about an unreadable dead letter.
pub(crate) const DEAD_LETTER_UNREADABLE: &str = "DeadLetterUnreadable";
/// Longest text of an alert. A decoder's message may quote the whole body.
const WORDS_CHARS_MAX: usize = 1_000;

#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema))]
#[serde(rename_all = "PascalCase")]
pub(crate) struct LostCommand {
    /// The order.
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    /// Why: the command is lost.
    reason: Reason,
    /// The command to repeat: the last segment of an API path.
    actions: [&'static str; 1],
}

#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "LostCommandReason"))]
#[serde(rename_all = "PascalCase")]
struct Reason {
    /// The code.
    #[cfg_attr(feature = "contract", schemars(extend("const" = COMMAND_LOST)))]
    code: &'static str,
    /// The command, its operator and its reason.
    #[cfg_attr(feature = "contract", schemars(length(max = WORDS_CHARS_MAX)))]
    message: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "contract", derive(schemars::JsonSchema), schemars(rename = "UnreadableDeadLetter"))]
#[serde(rename_all = "PascalCase")]
pub(crate) struct Unreadable<'a> {
    /// The message's id on its queue.
    #[serde(rename = "MessageID")]
    #[cfg_attr(feature = "contract", schemars(length(min = 1)))]
    message_id: &'a str,
    /// The queue that gave it up; absent if even the envelope is unreadable.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a SourceQueue>,
    /// The error, without a quotation of the body.
    #[cfg_attr(feature = "contract", schemars(length(max = WORDS_CHARS_MAX)))]
    message: String,
}

/// The action, the operator and the reason, in words.
pub(crate) fn words(command: &Command) -> String {
    format!("{} by {}: {}", command.action.name(), command.by, command.reason)
}

/// The alert about a command that was accepted and could not be carried out. The remedy is to send the command again.
pub(crate) fn lost_command(message_id: &str, command: &Command, now: Timestamp) -> CloudEvent {
    let data = LostCommand {
        order_id: command.order_id,
        reason: Reason { code: COMMAND_LOST, message: cut(&words(command)) },
        actions: [command.action.segment()],
    };
    let subject = Arc::from(command.order_id.to_string());
    event(message_id, NoticeKind::OrderNeedsOperator.name(), subject, Json::of(&data), now)
}

/// The alert about an unreadable dead letter. Its queue is `None` if not even its frame was readable.
pub(crate) fn unreadable(
    message_id: &Arc<str>,
    queue: Option<&SourceQueue>,
    problem: &str,
    now: Timestamp,
) -> CloudEvent {
    let data = Unreadable { message_id, queue, message: cut(problem) };
    event(message_id, DEAD_LETTER_UNREADABLE, message_id.clone(), Json::of(&data), now)
}

/// The id is derived from the dead letter's id, so that a receiver recognises repeats.
fn event(message_id: &str, kind: &str, subject: Arc<str>, data: Json, now: Timestamp) -> CloudEvent {
    CloudEvent {
        specversion: "1.0".into(),
        id: format!("dead-letter/{message_id}/{kind}").into(),
        source: "stepwarden".into(),
        kind: kind.into(),
        subject,
        time: now,
        datacontenttype: "application/json".into(),
        data,
    }
}

fn cut(text: &str) -> String {
    text.chars().take(WORDS_CHARS_MAX).collect()
}
