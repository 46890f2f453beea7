//! The reads: an order, its document, the health of this process.

use bytes::Bytes;
use domain::definition::Catalogue;
use domain::id::OrderId;
use domain::order::Order;
use domain::ports::Store;
use http::{HeaderMap, Response, StatusCode};

use crate::caller::Caller;
use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::problem::Problem;
use crate::view::{text, whole};
use crate::{etag, prefer::Wait, reply};

/// `GET /orders/{id}`: the task with its steps. With `Prefer: wait` it waits until the task is settled, and shows its
/// state at the end.
pub(crate) async fn order(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Problem> {
    let wait = Wait::asked(headers)?;
    // An invalid id is the id of no order.
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    // Who may not read it must not learn from the wait that it is there.
    if wait.is_some() && caller.alone().is_some() {
        let task = ports.store().task(order_id).await.map_err(Problem::unread)?;
        task.filter(|task| caller.may_read(task)).ok_or(Problem::NoOrder)?;
    }
    let task = match wait {
        Some(wait) => ports.store().settled(order_id, wait.ms()).await.map(|seen| seen.map(|seen| seen.task)),
        None => ports.store().task(order_id).await,
    };
    let task = task.map_err(Problem::unread)?.filter(|task| caller.may_read(task)).ok_or(Problem::NoOrder)?;
    let response = reply::json(StatusCode::OK, &whole(&task, config.redaction()));
    let response = etag::unless_known(response, headers, task.version)?;
    Ok(match wait {
        Some(wait) => wait.applied(response),
        None => response,
    })
}

/// `GET /orders/{id}/document`: the application's document, redacted.
pub(crate) async fn document(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
    id: &str,
) -> Result<Response<Bytes>, Problem> {
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    let order = ports.store().order(order_id).await.map_err(Problem::unread)?;
    let order = order.filter(|order| caller.may_read_order(order)).ok_or(Problem::NoOrder)?;
    let again = ports.store().order(order_id.again()).await.map_err(Problem::unread)?;
    let Order {
        order_id,
        document,
        fingerprint: _,
        submitted_at,
        submitter,
        reply_channel,
        correlation_id,
        priority,
        workflow: _,
        terms: _,
        again_of,
    } = &*order;
    let view = wire::Order {
        order_id: *order_id,
        submitted_at: *submitted_at,
        submitter: text(submitter),
        correlation_id: correlation_id.as_deref().map(text),
        reply_channel: reply_channel.as_deref().map(text),
        priority: priority.map(Into::into),
        again_of: again_of.clone(),
        again: again.map(|again| again.order_id),
        document: config.redaction().shown(document),
    };
    Ok(reply::json(StatusCode::OK, &view))
}

/// `GET /health`: this process answers. The state of the ports is shown elsewhere, so that an outage of the store does
/// not make a platform restart a healthy process.
pub(crate) fn health(config: &ApiConfig) -> Response<Bytes> {
    let version = text(env!("CARGO_PKG_VERSION"));
    let stand_ins = config.has_stand_ins() && config.catalogue().is_none_or(Catalogue::has_played);
    let paused = config.is_paused();
    reply::json(StatusCode::OK, &wire::Health { status: text("ok"), version, paused, stand_ins })
}

/// `GET /ready`: this process can do its work. A failing disk then makes a platform send no requests, and restart nothing.
pub(crate) async fn ready(config: &ApiConfig) -> Result<Response<Bytes>, Problem> {
    config.is_ready().await.ok_or(Problem::UnknownRoute)?.map_err(|error| Problem::unready(&error))?;
    Ok(health(config))
}

#[cfg(test)]
mod tests {
    use domain::json::Json;
    use domain::task::ProcessState;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Fake, task_in};

    #[test]
    fn an_order_is_shown_with_its_steps() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Processing));
        let answer = fake.get(&format!("/orders/{order_id}"));
        assert_eq!((answer.status, answer.header("preference-applied")), (200, None));
        assert_eq!(answer.body["OrderID"], order_id.to_string());
        assert_eq!(fake.get(&format!("/orders/{}", order_id.to_string().to_uppercase())).body, answer.body);
        assert_eq!(answer.body["ProcessState"], "Processing");
        assert_eq!(answer.body["Steps"][0]["LockedBy"], Value::Null);
        assert!(answer.body.get("Nonce").is_none() && answer.body.get("Unsent").is_none());
        assert!(fake.waits().is_empty());
    }

    #[test]
    fn an_order_that_is_not_there_or_cannot_be_is_404() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Pending)).to_string();
        let unknown = OrderId::from_idempotency_key("shop", "never").to_string();
        for id in [unknown, order_id.replace('-', ""), format!("%{order_id}"), "x".to_owned()] {
            fake.get(&format!("/orders/{id}")).is_problem(404, "order-not-found");
        }
    }

    #[test]
    fn a_reader_may_wait_and_sees_the_order_as_it_is_at_the_end() {
        let fake = Fake::default();
        let order_id = fake.stores(task_in("a", ProcessState::Processing));
        let path = format!("/orders/{order_id}");
        let answer = fake.call("GET", &path, &[("Prefer", "wait=7")], "");
        assert_eq!((answer.status, answer.header("preference-applied")), (200, Some("wait=7")));
        assert_eq!(answer.body["ProcessState"], "Processing");
        fake.settles_as(ProcessState::Processed);
        let answer = fake.call("GET", &path, &[("Prefer", "wait=8")], "");
        assert_eq!(answer.body["ProcessState"], "Processed");
        assert_eq!(fake.waits(), ["7000", "8000"]);
        fake.call("GET", &path, &[("Prefer", "wait=999")], "").names(400, "invalid-header", "Prefer");
        assert_eq!(fake.waits().len(), 2);
    }

    #[test]
    fn a_document_is_shown_as_it_was_sent_but_what_is_redacted() {
        let fake = Fake::default();
        fake.config(ApiConfig::default().redacting(["cvc"]));
        let order_id = fake.stores_with(task_in("a", ProcessState::Processing), |order| {
            order.document = Json::document(br#"{"Card": {"Cvc": "123"}, "Total": 1.10}"#).unwrap();
            order.correlation_id = Some("cart-7".into());
        });
        let answer = fake.get(&format!("/orders/{order_id}/document"));
        let expected = json!({
            "OrderID": order_id.to_string(), "SubmittedAt": "2026-11-20T17:26:43.007Z", "Submitter": "shop",
            "CorrelationID": "cart-7", "Document": {"Card": {"Cvc": "[redacted]"}, "Total": 1.10},
        });
        assert_eq!((answer.status, &answer.body), (200, &expected));
        assert!(answer.text.contains(r#"{"Card":{"Cvc":"[redacted]"},"Total":1.10}"#), "{}", answer.text);
        let unknown = OrderId::from_idempotency_key("shop", "never");
        for id in [unknown.to_string(), "x".to_owned()] {
            fake.get(&format!("/orders/{id}/document")).is_problem(404, "order-not-found");
        }
    }

    #[test]
    fn redacted_outputs_are_not_shown_to_the_submitter_either() {
        let fake = Fake::default();
        fake.config(ApiConfig::default().redacting(["Iban"]));
        let mut task = task_in("a", ProcessState::Processed);
        task.steps[0].output = Some(Json::document(br#"{"IBAN": "DE02", "Total": 1.10}"#).unwrap());
        let order_id = fake.stores(task);
        let key = [("Idempotency-Key", "a"), ("Prefer", "wait=1")];
        for answer in [fake.get(&format!("/orders/{order_id}")), fake.post("/orders", &key, crate::testing::ORDER)] {
            assert_eq!(answer.status, 200, "{}", answer.text);
            assert!(answer.text.contains(r#""Output":{"IBAN":"[redacted]","Total":1.10}"#), "{}", answer.text);
        }
    }

    #[test]
    fn a_store_that_is_down_is_503_with_when_to_ask_again() {
        let fake = Fake::default();
        fake.all_down();
        let order_id = task_in("a", ProcessState::Error).order_id;
        for path in [
            "/orders".to_owned(),
            format!("/orders/{order_id}"),
            format!("/orders/{order_id}/document"),
            "/services".to_owned(),
        ] {
            let answer = fake.get(&path);
            answer.is_problem(503, "unavailable");
            assert_eq!(answer.header("retry-after"), Some("1"));
        }
    }
}
