//! `POST /orders/{id}/again`: posts the document of a compensated order as a new order. The new order takes the way of
//! every order, over the submission queue.

use bytes::Bytes;
use domain::id::OrderId;
use domain::machine::Refused;
use domain::order::{AgainOf, Given};
use domain::ports::{Environment, Store};
use domain::trace;
use http::{HeaderMap, Response};

use crate::accept::{Repeat, take};
use crate::config::ApiConfig;
use crate::operator::Author;
use crate::ports::ApiPorts;
use crate::prefer::Wait;
use crate::problem::Problem;
use crate::traced::traced;

/// The new order's id follows from the old one's, so a repeat names the same order.
const SAFE: Repeat = Repeat {
    is_same: true,
    advice: "it is not known whether the new order was accepted; it is safe to send this again: there is one at most",
};

/// Queues a new order with the document, submitter, reply channel, correlation and priority of this one.
pub(crate) async fn post(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    id: &str,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    let Author { by, reason } = Author::read(caller, headers, body)?;
    let wait = Wait::asked(headers)?;
    let order_id: OrderId = id.parse().map_err(|_| Problem::NoOrder)?;
    let task = ports.store().task(order_id).await.map_err(Problem::unread)?.ok_or(Problem::NoOrder)?;
    let (state, refused) = (task.process_state, Refused::NotCompensated);
    if !task.may_be_posted_again() {
        return Err(Problem::StateForbids { order_id, state, refused });
    }
    let order = ports.store().order(order_id).await.map_err(Problem::unread)?.ok_or(Problem::NoOrder)?;
    // Since the task was read.
    if order.is_erased() {
        return Err(Problem::StateForbids { order_id, state, refused });
    }
    tracing::info!(caller, %order_id, by = &*by, "operator posts an order again");
    let again = order.again(AgainOf { order_id, by, reason, bulk: None }, ports.environment().now());
    let span = trace::posted("/orders/{id}/again", again.order_id, traced(headers));
    let given = Given { order: again, workflow: Some(task.workflow.clone()) };
    take(ports, config, caller, SAFE, wait, given, span).await.map_err(|problem| {
        // It is no member of this request.
        if !matches!(problem, Problem::UnknownWorkflow { .. }) {
            return problem;
        }
        Problem::StateForbids { order_id, state, refused: Refused::NoWorkflow(task.workflow.clone()) }
    })
}

#[cfg(test)]
mod tests {
    use domain::definition::Catalogue;
    use domain::message::Priority;
    use domain::task::ProcessState;
    use domain::workflow::Workflows;
    use serde_json::json;

    use super::*;
    use crate::testing::{CALLER, CHANNEL, Fake, task_in};

    const COMMAND: &str = r#"{"By":"ada","Reason":"the carrier delivers again"}"#;

    fn order_in(state: ProcessState) -> (Fake, OrderId, String) {
        let fake = Fake::default();
        let order_id = fake.stores_with(task_in("a", state), |order| {
            order.reply_channel = Some(CHANNEL.into());
            order.correlation_id = Some("cart-7".into());
            order.priority = Some(Priority::High);
        });
        (fake, order_id, format!("/orders/{order_id}/again"))
    }

    #[test]
    fn a_compensated_order_is_queued_as_a_new_one_with_everything_that_it_was_posted_with() {
        let (fake, order_id, path) = order_in(ProcessState::Compensated);
        let answer = fake.call_as("operator", "POST", &path, &[], COMMAND.into());
        let [again] = fake.submitted().try_into().unwrap();
        let expected = json!({"OrderID": order_id.again().to_string(), "ProcessState": "Pending"});
        assert_eq!((answer.status, &answer.body), (202, &expected));
        assert_eq!(answer.header("location"), Some(format!("/orders/{}", order_id.again()).as_str()));
        assert_eq!((again.order_id, &*again.submitter), (order_id.again(), CALLER));
        assert_eq!((again.reply_channel.as_deref(), again.priority), (Some(CHANNEL), Some(Priority::High)));
        assert_eq!((again.correlation_id.as_deref(), again.document.text()), (Some("cart-7"), crate::testing::ORDER));
        let origin =
            AgainOf { order_id, by: "ada [operator]".into(), reason: "the carrier delivers again".into(), bulk: None };
        assert_eq!(again.again_of, Some(origin));
        assert!(fake.scheduled().is_empty());
    }

    #[test]
    fn an_order_is_posted_again_in_no_other_state() {
        for state in ProcessState::ALL {
            let (fake, order_id, path) = order_in(state);
            let actions = &fake.get(&format!("/orders/{order_id}")).body["Actions"];
            let is_offered = actions.as_array().unwrap().contains(&json!("again"));
            assert_eq!(is_offered, state == ProcessState::Compensated);
            if !is_offered {
                let answer = fake.post(&path, &[], COMMAND);
                answer.is_problem(409, "state-conflict");
                let detail = answer.body["detail"].as_str().unwrap();
                assert!(detail.contains("only an order that is Compensated") && detail.contains(state.name()));
                fake.queued_nothing();
            }
        }
    }

    #[test]
    fn rule_46_an_order_that_is_erased_meanwhile_is_not_posted_again() {
        let fake = Fake::default();
        let task = task_in("a", ProcessState::Compensated);
        let order_id = fake.stores_with(task, |order| *order = order.erased());
        fake.post(&format!("/orders/{order_id}/again"), &[], COMMAND).is_problem(409, "state-conflict");
        fake.queued_nothing();
    }

    #[test]
    fn an_order_whose_workflow_takes_no_new_orders_is_not_posted_again() {
        let fake = Fake::default();
        fake.config(ApiConfig::default().with_catalogue(&Catalogue::new(Workflows::shipped().unwrap())));
        let mut task = task_in("a", ProcessState::Compensated);
        task.workflow = "refund".into();
        let answer = fake.post(&format!("/orders/{}/again", fake.stores_with(task, |_| {})), &[], COMMAND);
        answer.is_problem(409, "state-conflict");
        assert!(answer.body["detail"].as_str().unwrap().contains("no new order can have the workflow refund"));
    }

    #[test]
    fn twice_is_once_and_each_order_names_the_other() {
        let (fake, order_id, path) = order_in(ProcessState::Compensated);
        let document = |id: OrderId| fake.get(&format!("/orders/{id}/document")).body;
        assert_eq!(document(order_id).get("Again"), None);
        let first = fake.post(&path, &[], COMMAND);
        fake.submission_runs(ProcessState::Processing);
        let second = fake.post(&path, &[], r#"{"By":"bob","Reason":"was it posted?"}"#);
        assert_eq!((second.status, &second.body["OrderID"]), (202, &first.body["OrderID"]));
        assert_eq!((fake.submitted().len(), &second.body["ProcessState"]), (1, &json!("Processing")));
        let again = order_id.again();
        let origin =
            json!({"OrderID": order_id.to_string(), "By": "ada [shop]", "Reason": "the carrier delivers again"});
        assert_eq!((&document(again)["AgainOf"], &document(order_id)["Again"]), (&origin, &json!(again.to_string())));
        let line = &fake.get(&format!("/orders/{again}")).body["History"][0];
        assert_eq!(line["Why"], format!("again of {order_id}, by ada [shop]: the carrier delivers again"));
    }

    #[test]
    fn what_cannot_be_queued_or_read_is_503_and_is_safe_to_send_again() {
        for port in ["store.task", "store.order", "queues.submit"] {
            let (fake, _, path) = order_in(ProcessState::Compensated);
            fake.down(port);
            fake.post(&path, &[], COMMAND).is_problem(503, "unavailable");
            fake.queued_nothing();
        }
        let (fake, _, path) = order_in(ProcessState::Compensated);
        fake.post(&path, &[], "{}").names(400, "invalid-field", "By");
        fake.post(&path.replace("again", "again/"), &[], COMMAND).is_problem(404, "unknown-route");
        let unknown = OrderId::from_idempotency_key("shop", "never");
        fake.post(&format!("/orders/{unknown}/again"), &[], COMMAND).is_problem(404, "order-not-found");
        fake.queued_nothing();
    }
}
