//! What operators are told about dead letters that no order can tell them of.
//!
//! Such an alert has no task that would owe it, so the dead letter itself stays until the bus has taken it.

use std::sync::Arc;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::{Action, CloudEvent, Command};
use domain::ports::SourceQueue;
use domain::task::NoticeKind;
use domain::time::Timestamp;
use serde::Serialize;

/// The code of the reason that an alert about a lost command gives.
pub(crate) const COMMAND_LOST: &str = "command-lost";
/// The type of the event about a dead letter that nobody can read.
pub(crate) const DEAD_LETTER_UNREADABLE: &str = "DeadLetterUnreadable";
/// Longest text of an alert. What a decoder says may quote the whole body.
const WORDS_CHARS_MAX: usize = 1_000;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct LostCommand {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    reason: Reason,
    actions: [&'static str; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Reason {
    code: &'static str,
    message: String,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Unreadable<'a> {
    #[serde(rename = "MessageID")]
    message_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    queue: Option<&'a SourceQueue>,
    message: String,
}

/// Who wished what, and why.
pub(crate) fn words(command: &Command) -> String {
    format!("{} by {}: {}", command.action.name(), command.by, command.reason)
}

/// The alert about a command that was accepted and could not be carried out. What helps is to command it again.
pub(crate) fn lost_command(message_id: &str, command: &Command, now: Timestamp) -> CloudEvent {
    let data = LostCommand {
        order_id: command.order_id,
        reason: Reason { code: COMMAND_LOST, message: cut(&words(command)) },
        actions: [path(command.action)],
    };
    let subject = Arc::from(command.order_id.to_string());
    event(message_id, NoticeKind::OrderNeedsOperator.name(), subject, Json::of(&data), now)
}

/// The alert about a dead letter that nobody can read. Its queue is not known where even its frame could not be read.
pub(crate) fn unreadable(
    message_id: &Arc<str>,
    queue: Option<&SourceQueue>,
    problem: &str,
    now: Timestamp,
) -> CloudEvent {
    let data = Unreadable { message_id, queue, message: cut(problem) };
    event(message_id, DEAD_LETTER_UNREADABLE, message_id.clone(), Json::of(&data), now)
}

/// The id is made of the dead letter's, so that a receiver can tell repeats.
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

/// The last part of the path at which the action is wished.
const fn path(action: Action) -> &'static str {
    match action {
        Action::Resubmit => "resubmit",
        Action::Cancel => "cancel",
        Action::Pause => "pause",
        Action::Resume => "resume",
    }
}

fn cut(text: &str) -> String {
    text.chars().take(WORDS_CHARS_MAX).collect()
}
