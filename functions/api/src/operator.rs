//! What an operator can do to an order: resubmit and cancel (rule 12). Both are messages to the scheduler, which alone
//! changes a task; here is only looked whether they make sense.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use domain::id::OrderId;
use domain::json::{Json, JsonError};
use domain::message::{Action, Command, SchedulerMessage};
use domain::task::ProcessState;
use http::{HeaderMap, Response, StatusCode};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::problem::Problem;
use crate::{ApiPorts, body, reply};

const NOT_QUEUED: &str = "it is not known whether the action was queued; it is safe to send it again";

/// Who acts, and why.
struct Wish {
    by: Arc<str>,
    reason: Arc<str>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Queued {
    #[serde(rename = "OrderID")]
    order_id: OrderId,
    action: Action,
    /// As it was when the action was queued.
    process_state: ProcessState,
}

/// `POST /orders/{id}/resubmit` and `/cancel`: queues the action if the order's state allows it.
pub(crate) async fn post(
    ports: &impl ApiPorts,
    caller: &str,
    id: &str,
    action: Action,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    body::check(headers, body)?;
    let Wish { by, reason } = wish(&Json::document(body)?)?;
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    let task = ports.task(order_id).await.map_err(Problem::unread)?.ok_or(Problem::NoOrder)?;
    let state = task.process_state;
    if let Some(needed) = forbidden(action, state) {
        return Err(Problem::StateForbids { order_id, state, needed });
    }
    tracing::info!(caller, %order_id, ?action, by = &*by, "operator acts");
    let command = Command { order_id, action, by, reason, version: Some(task.version) };
    let queued = ports.to_scheduler(SchedulerMessage::Command(command), 0).await;
    queued.map_err(|error| Problem::Unavailable { advice: NOT_QUEUED, error })?;
    Ok(reply::json(StatusCode::ACCEPTED, &Queued { order_id, action, process_state: state }))
}

/// What state the action needs, if it cannot be done in this one.
const fn forbidden(action: Action, state: ProcessState) -> Option<&'static str> {
    match (action, state) {
        (Action::Resubmit, ProcessState::Error)
        | (Action::Cancel, ProcessState::Pending | ProcessState::Processing | ProcessState::Error) => None,
        (
            Action::Resubmit,
            ProcessState::Pending
            | ProcessState::Processing
            | ProcessState::Processed
            | ProcessState::Compensating
            | ProcessState::Compensated,
        ) => Some("only an order in Error can be resubmitted"),
        (Action::Cancel, ProcessState::Processed | ProcessState::Compensating | ProcessState::Compensated) => {
            Some("only an order that is neither finished nor being undone can be cancelled")
        }
    }
}

/// Reads `{By, Reason}`: both, and nothing else.
fn wish(document: &Json) -> Result<Wish, Problem> {
    // A name that is no text, like a lone surrogate, is all that can still be wrong with it.
    let members: BTreeMap<String, &RawValue> = serde_json::from_str(document.text())
        .map_err(|error| Problem::NotJson(JsonError::Malformed(error.to_string())))?;
    if let Some(unknown) = members.keys().find(|name| !matches!(name.as_str(), "By" | "Reason")) {
        return Err(Problem::member(unknown.clone(), "is unknown; the members are By and Reason"));
    }
    Ok(Wish { by: text(&members, "By")?, reason: text(&members, "Reason")? })
}

fn text(members: &BTreeMap<String, &RawValue>, name: &'static str) -> Result<Arc<str>, Problem> {
    let value = members.get(name).ok_or_else(|| Problem::member(name, "is missing"))?;
    body::text(name, value.get())
}

#[cfg(test)]
mod tests {
    use domain::limits::TEXT_CHARS_MAX;
    use serde_json::json;

    use super::*;
    use crate::testing::{Fake, task_in};

    const WISH: &str = r#"{"By":"ada","Reason":"payment is back"}"#;

    /// A store with one order in this state, and the path of an action on it.
    fn order_in(state: ProcessState, action: &str) -> (Fake, String) {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", state));
        (fake, format!("/orders/{order_id}/{action}"))
    }

    #[test]
    fn a_resubmit_is_queued_with_who_why_and_the_version_that_was_seen() {
        let fake = Fake::default();
        let mut task = task_in("a", ProcessState::Error);
        task.version = 9;
        let order_id = fake.stores(task);
        let answer = fake.post(&format!("/orders/{order_id}/resubmit"), &[], WISH);
        let expected = json!({"OrderID": order_id.to_string(), "Action": "Resubmit", "ProcessState": "Error"});
        assert_eq!((answer.status, &answer.body), (202, &expected));
        let command = Command {
            order_id,
            action: Action::Resubmit,
            by: "ada".into(),
            reason: "payment is back".into(),
            version: Some(9),
        };
        assert_eq!(fake.scheduled(), [SchedulerMessage::Command(command)]);
    }

    #[test]
    fn each_action_is_taken_in_the_states_that_allow_it_and_is_409_in_all_others() {
        let allowed = |action: &str, state| match action {
            "resubmit" => state == ProcessState::Error,
            _ => matches!(state, ProcessState::Pending | ProcessState::Processing | ProcessState::Error),
        };
        for action in ["resubmit", "cancel"] {
            for state in ProcessState::ALL {
                let (fake, path) = order_in(state, action);
                let answer = fake.post(&path, &[], WISH);
                if allowed(action, state) {
                    assert_eq!((answer.status, fake.scheduled().len()), (202, 1), "{action} in {state}");
                } else {
                    answer.is_problem(409, "state-conflict");
                    assert_eq!(answer.body["ProcessState"], state.name());
                    assert!(answer.body["detail"].as_str().unwrap().contains(state.name()));
                    fake.queued_nothing();
                }
            }
        }
    }

    #[test]
    fn a_wish_that_is_not_complete_is_400_and_named() {
        let (fake, path) = order_in(ProcessState::Error, "resubmit");
        let long = format!(r#"{{"By":"{}","Reason":"x"}}"#, "x".repeat(TEXT_CHARS_MAX + 1));
        for (body, name) in [
            ("{}", "By"),
            (r#"{"By":"ada"}"#, "Reason"),
            (r#"{"Reason":"x"}"#, "By"),
            (r#"{"By":7,"Reason":"x"}"#, "By"),
            (r#"{"By":"ada","Reason":null}"#, "Reason"),
            (r#"{"By":"","Reason":"x"}"#, "By"),
            (r#"{"By":"ada","Reason":" \n"}"#, "Reason"),
            (r#"{"By":"\ud800","Reason":"x"}"#, "By"),
            (r#"{"By":"ada","Reason":"x","Force":true}"#, "Force"),
            (r#"{"by":"ada","Reason":"x"}"#, "by"),
            (&long, "By"),
        ] {
            fake.post(&path, &[], body).names(400, "invalid-field", name);
        }
        for body in ["", "{", r#"{"\ud800":1}"#] {
            fake.post(&path, &[], body).is_problem(400, "malformed-json");
        }
        fake.post(&path, &[], "[]").is_problem(400, "not-an-object");
        fake.post(&path, &[("Content-Type", "text/plain")], WISH).is_problem(415, "unsupported-media-type");
        fake.queued_nothing();
    }

    #[test]
    fn an_order_that_is_not_there_is_404() {
        let fake = Fake::default();
        let unknown = OrderId::from_idempotency_key("shop", "never");
        for path in [format!("/orders/{unknown}/cancel"), "/orders/x/resubmit".to_owned()] {
            fake.post(&path, &[], WISH).is_problem(404, "order-not-found");
        }
        fake.queued_nothing();
    }

    #[test]
    fn a_queue_or_store_that_is_down_is_503() {
        for port in ["store.task", "queues.to_scheduler"] {
            let (fake, path) = order_in(ProcessState::Error, "cancel");
            fake.down(port);
            fake.post(&path, &[], WISH).is_problem(503, "unavailable");
            fake.queued_nothing();
        }
    }
}
