//! An operator's actions on an order: resubmit, cancel, pause, resume (rule 12), settle (rule 27), note (rule 30), close (rule
//! 31), approve and reject (rule 40), and an administrator's erase (rule 46).
//! All are messages to the scheduler. The API only checks whether the state allows them.

use std::sync::Arc;

use bytes::Bytes;
use domain::author;
use domain::id::{CommandId, OrderId};
use domain::json::{Json, JsonError};
use domain::limits::{COMMAND_ID_CHARS_MAX, OUTPUT_BYTES_MAX};
use domain::machine::Refused;
use domain::message::{Action, Command, SchedulerMessage, Settled, Settlement};
use domain::ports::{Environment, Queues, Store};
use domain::task::ProcessState;
use http::{HeaderMap, Response, StatusCode};
use wire::Queued;

use crate::members::Members;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::view::text;
use crate::{body, etag, reply};

const NOT_QUEUED: &str = "it is not known whether the action was queued; it is safe to send it again";

/// The operator as [`author::signed`], and the reason given.
pub(crate) struct Author {
    pub(crate) by: Arc<str>,
    pub(crate) reason: Arc<str>,
}

/// `POST /orders/{id}/resubmit`, `/cancel`, `/pause`, `/resume`, `/settle`, `/note`, `/close`, `/approve`, `/reject`
/// and `/erase`: queues the action if the order's state allows it. With `If-Match`, the order must also have the version
/// that the operator saw.
pub(crate) async fn post(
    ports: &impl ApiPorts,
    caller: &str,
    id: &str,
    action: Action,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let Body { author: Author { by, reason }, command_id, settle, take, step } =
        Body::read(caller, action, headers, body)?;
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    let task = ports.store().task(order_id).await.map_err(Problem::unread)?.ok_or(Problem::NoOrder)?;
    let (state, version) = (task.process_state, Some(task.version));
    let environment = ports.environment();
    let now = environment.now();
    let command_id =
        command_id.unwrap_or_else(|| CommandId::generate(now, [environment.random(), environment.random()]));
    let is_current = etag::check(headers, task.version)?;
    // The client repeats what was carried out.
    if task.has_done(action, &command_id) {
        return Ok(taken(order_id, action, &command_id, state));
    }
    is_current?;
    let command = Command { order_id, action, by, reason, command_id, version, bulk: None, settle, take, step };
    let decides = matches!(action, Action::Approve | Action::Reject);
    let refused = command.refusal(&task, now);
    // It changes nothing.
    if refused == Some(Refused::AlreadyErased) {
        return Ok(taken(order_id, action, &command.command_id, state));
    }
    if let Some(refused) = refused {
        return Err(Problem::StateForbids { order_id, state, refused });
    }
    let command = if decides { command.for_step(&task) } else { command };
    tracing::info!(caller, %order_id, ?action, by = &*command.by, "operator acts");
    let answer = taken(order_id, action, &command.command_id, state);
    let queued = ports.queues().to_scheduler(SchedulerMessage::Command(command), task.priority, 0).await;
    queued.map_err(|error| Problem::Unavailable { advice: NOT_QUEUED, error })?;
    tracing::debug!(monotonic_counter.wishes_queued = 1, %order_id, ?action, "queued");
    Ok(answer)
}

fn taken(order_id: OrderId, action: Action, command_id: &CommandId, state: ProcessState) -> Response<Bytes> {
    let command_id = text(command_id.text());
    let queued = Queued { order_id, action: action.into(), command_id, process_state: state.into() };
    reply::json(StatusCode::ACCEPTED, &queued)
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

/// The body of a command about an order.
struct Body {
    author: Author,
    command_id: Option<CommandId>,
    settle: Option<Settlement>,
    take: Option<bool>,
    step: Option<Arc<str>>,
}

impl Body {
    fn read(caller: &str, action: Action, headers: &HeaderMap, body: &Bytes) -> Result<Self, Problem> {
        let document = document(headers, body)?;
        let known: &[&str] = match action {
            Action::Settle => &wire::Settle::MEMBERS,
            Action::Note => &wire::Note::MEMBERS,
            Action::Approve | Action::Reject => &wire::Decision::MEMBERS,
            Action::Resubmit | Action::Cancel | Action::Pause | Action::Resume | Action::Close | Action::Erase => {
                &wire::Command::MEMBERS
            }
        };
        let members = Members::of(&document, known)?;
        let settles = action == Action::Settle;
        Ok(Self {
            settle: settles.then(|| settlement(&members)).transpose()?,
            author: Author::of(caller, &members)?,
            command_id: members.optional_text("CommandID")?.map(given).transpose()?,
            take: members.flag("Take")?,
            step: if settles { None } else { members.optional_text("Step")? },
        })
    }
}

fn given(id: Arc<str>) -> Result<CommandId, Problem> {
    let fault = || format!("must be 1 to {COMMAND_ID_CHARS_MAX} of A-Z, a-z, 0-9, - _ . and :");
    CommandId::given(id).ok_or_else(|| Problem::member("CommandID", fault()))
}

/// Of `{Step, Outcome, Output}` only the output may be missing.
fn settlement(members: &Members<'_>) -> Result<Settlement, Problem> {
    let (step, word) = (members.text("Step")?, members.text("Outcome")?);
    let outcome = Settled::ALL.into_iter().find(|settled| settled.name() == &*word);
    let outcome = outcome.ok_or_else(|| Problem::member("Outcome", "must be Done, Undone, Skipped or Dropped"))?;
    let output = match (members.value("Output"), outcome) {
        (Some(_), Settled::Undone | Settled::Skipped | Settled::Dropped) => {
            return Err(Problem::member("Output", "belongs to a step that is Done"));
        }
        (output, _) => output.map(|output| Json::parse(output.get().as_bytes(), OUTPUT_BYTES_MAX)).transpose(),
    };
    let output = output.map_err(|fault| Problem::member("Output", format!("is {fault}")))?;
    Ok(Settlement { step, outcome, output })
}

impl Author {
    /// Reads `{By, Reason}`. A `CommandID` beside them is left aside: what such a call does is done once anyway.
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
            return Err(Problem::member("By", "must not contain ] or a control character"));
        }
        Ok(Self { by: author::signed(by, caller), reason: members.text("Reason")? })
    }
}

#[cfg(test)]
mod tests;
