//! An operator's actions on an order: resubmit, cancel, pause, resume (rule 12), settle (rule 27), note (rule 30), close (rule
//! 31), approve and reject (rule 40), and an administrator's erase (rule 46).
//! All are messages to the scheduler. The API only checks whether the state allows them.

use std::sync::Arc;

use bytes::Bytes;
use domain::author;
use domain::id::OrderId;
use domain::json::{Json, JsonError};
use domain::limits::OUTPUT_BYTES_MAX;
use domain::machine::Refused;
use domain::message::{Action, Command, SchedulerMessage, Settled, Settlement};
use domain::ports::{Environment, Queues, Store};
use domain::task::ProcessState;
use http::{HeaderMap, Response, StatusCode};
use wire::Queued;

use crate::members::Members;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::{body, etag, reply};

const NOT_QUEUED: &str = "it is not known whether the action was queued; it is safe to send it again";

/// The operator as [`author::signed`], and the reason given.
pub(crate) struct Author {
    pub(crate) by: Arc<str>,
    pub(crate) reason: Arc<str>,
}

/// `POST /orders/{id}/resubmit`, `/cancel`, `/pause`, `/resume`, `/settle`, `/note`, `/close`, `/approve`, `/reject`
/// and `/erase`:
/// queues the action if the order's state allows it. With `If-Match`, the order must also have the version that the operator saw.
pub(crate) async fn post(
    ports: &impl ApiPorts,
    caller: &str,
    id: &str,
    action: Action,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let (mut settle, mut take, mut step) = (None, None, None);
    let Author { by, reason } = match action {
        Action::Settle => {
            let (author, settlement) = read_settle(caller, headers, body)?;
            settle = Some(settlement);
            author
        }
        Action::Note => {
            let author;
            (author, take) = read_note(caller, headers, body)?;
            author
        }
        Action::Approve | Action::Reject => {
            let author;
            (author, step) = read_decision(caller, headers, body)?;
            author
        }
        Action::Resubmit | Action::Cancel | Action::Pause | Action::Resume | Action::Close | Action::Erase => {
            Author::read(caller, headers, body)?
        }
    };
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    let task = ports.store().task(order_id).await.map_err(Problem::unread)?.ok_or(Problem::NoOrder)?;
    etag::check(headers, task.version)?;
    let state = task.process_state;
    let command = Command { order_id, action, by, reason, version: Some(task.version), bulk: None, settle, take, step };
    let decides = matches!(action, Action::Approve | Action::Reject);
    let refused = command.refusal(&task, ports.environment().now());
    // It changes nothing.
    if refused == Some(Refused::AlreadyErased) {
        return Ok(taken(order_id, action, state));
    }
    if let Some(refused) = refused {
        return Err(Problem::StateForbids { order_id, state, refused });
    }
    let command = if decides { command.for_step(&task) } else { command };
    tracing::info!(caller, %order_id, ?action, by = &*command.by, "operator acts");
    let queued = ports.queues().to_scheduler(SchedulerMessage::Command(command), task.priority, 0).await;
    queued.map_err(|error| Problem::Unavailable { advice: NOT_QUEUED, error })?;
    tracing::debug!(monotonic_counter.wishes_queued = 1, %order_id, ?action, "queued");
    Ok(taken(order_id, action, state))
}

fn taken(order_id: OrderId, action: Action, state: ProcessState) -> Response<Bytes> {
    reply::json(StatusCode::ACCEPTED, &Queued { order_id, action: action.into(), process_state: state.into() })
}

/// The body of a command.
fn document(headers: &HeaderMap, body: &Bytes) -> Result<Json, Problem> {
    body::check(headers, body)?;
    if body.is_empty() {
        let advice = r#"it is empty; send {"By": "NAME", "Reason": "WHY"}"#;
        return Err(Problem::NotJson(JsonError::Malformed(advice.to_owned())));
    }
    Ok(Json::document(body)?)
}

/// Reads `{Step, Outcome, Output, By, Reason}`, of which only the output may be missing.
fn read_settle(caller: &str, headers: &HeaderMap, body: &Bytes) -> Result<(Author, Settlement), Problem> {
    let document = document(headers, body)?;
    let members = Members::of(&document, &wire::Settle::MEMBERS)?;
    let (step, word) = (members.text("Step")?, members.text("Outcome")?);
    let outcome = Settled::ALL.into_iter().find(|settled| settled.name() == &*word);
    let outcome = outcome.ok_or_else(|| Problem::member("Outcome", "must be Done, Undone or Skipped"))?;
    let output = match (members.value("Output"), outcome) {
        (Some(_), Settled::Undone | Settled::Skipped) => {
            return Err(Problem::member("Output", "belongs to a step that is Done"));
        }
        (output, _) => output.map(|output| Json::parse(output.get().as_bytes(), OUTPUT_BYTES_MAX)).transpose(),
    };
    let output = output.map_err(|fault| Problem::member("Output", format!("is {fault}")))?;
    Ok((Author::of(caller, &members)?, Settlement { step, outcome, output }))
}

/// Reads `{By, Reason, Take}`, of which the last may be missing.
fn read_note(caller: &str, headers: &HeaderMap, body: &Bytes) -> Result<(Author, Option<bool>), Problem> {
    let document = document(headers, body)?;
    let members = Members::of(&document, &wire::Note::MEMBERS)?;
    Ok((Author::of(caller, &members)?, members.flag("Take")?))
}

/// Reads `{By, Reason, Step}`, of which the last may be missing.
fn read_decision(caller: &str, headers: &HeaderMap, body: &Bytes) -> Result<(Author, Option<Arc<str>>), Problem> {
    let document = document(headers, body)?;
    let members = Members::of(&document, &wire::Decision::MEMBERS)?;
    Ok((Author::of(caller, &members)?, members.optional_text("Step")?))
}

impl Author {
    /// Reads `{By, Reason}`: both, and nothing else.
    ///
    /// # Errors
    /// The fault of the body, with its name.
    pub(crate) fn read(caller: &str, headers: &HeaderMap, body: &Bytes) -> Result<Self, Problem> {
        let document = document(headers, body)?;
        let members = Members::of(&document, &wire::Command::MEMBERS)?;
        Self::of(caller, &members)
    }

    /// The operator and the reason among these members. The caller is written beside the operator's name (rule 42).
    ///
    /// # Errors
    /// The one that is missing or wrong.
    pub(crate) fn of(caller: &str, members: &Members<'_>) -> Result<Self, Problem> {
        let by = members.text("By")?;
        if !author::may_be_typed(&by) {
            return Err(Problem::member("By", "must not contain ]"));
        }
        Ok(Self { by: author::signed(by, caller), reason: members.text("Reason")? })
    }
}

#[cfg(test)]
mod tests;
