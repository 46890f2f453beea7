//! Puts an accepted order on the submission queue, and answers once it cannot be lost any more.

use std::sync::Arc;

use bytes::Bytes;
use domain::definition::UnknownWorkflow;
use domain::id::OrderId;
use domain::index::Index;
use domain::observe;
use domain::order::{Given, Order};
use domain::ports::{Environment, Inserted, PortError, Queues, Store, Watched};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use domain::trace;
use domain::workflow::{BadLines, NotAccepted, Workflow};
use http::{Response, StatusCode};
use tracing::{Instrument, Span};
use wire::Accepted;

use crate::config::ApiConfig;
use crate::ports::ApiPorts;
use crate::prefer::Wait;
use crate::problem::Problem;
use crate::reply;
use crate::view::whole;

/// No order was queued yet.
const NOT_CHOSEN: &str = "the order was not accepted, since its workflow cannot be read at the moment; post it again";

/// The meaning of a repeated request.
pub(crate) struct Repeat {
    /// Whether it names the same order, which may be stored already.
    pub(crate) is_same: bool,
    /// The advice while it is not known whether the order was accepted.
    pub(crate) advice: &'static str,
}

/// Puts an order on the submission queue, unless it is stored already.
pub(crate) async fn take(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    repeat: Repeat,
    wait: Option<Wait>,
    given: Given,
    span: Span,
) -> Result<Response<Bytes>, Problem> {
    let taking = async {
        let answer = queue(ports, config, caller, repeat, wait, given).await;
        let status = answer.as_ref().map_or_else(Problem::status, Response::status);
        trace::answered(status.as_u16());
        if status.is_server_error() {
            trace::failed(&status);
        }
        answer
    };
    taking.instrument(span).await
}

async fn queue(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &str,
    Repeat { is_same, advice }: Repeat,
    wait: Option<Wait>,
    Given { mut order, workflow }: Given,
) -> Result<Response<Bytes>, Problem> {
    let order_id = order.order_id;
    let unavailable = |error| Problem::Unavailable { advice, error };
    // The queue tells a repeat, or the store must be asked, before and after.
    let asks_store = is_same && !ports.queues().knows_orders();

    let fingerprint = order.fingerprint.clone();
    let repeated = if asks_store { stored(ports, order_id, &fingerprint).await.map_err(unavailable)? } else { None };
    let outcome = match repeated {
        Some(repeated) => repeated,
        None => match begin(ports, config, workflow.as_deref(), &mut order).await {
            Ok(()) => ports.queues().submit(order, 0).await.map_err(unavailable)?,
            // A repeat is answered, whatever has changed since.
            Err(problem) if is_same && !asks_store => {
                stored(ports, order_id, &fingerprint).await.map_err(unavailable)?.ok_or(problem)?
            }
            Err(problem) => return Err(problem),
        },
    };
    let task = match outcome {
        Inserted::Different => return Err(Problem::KeyReused { order_id }),
        Inserted::Same => present(ports, order_id, wait).await.map_err(unavailable)?,
        Inserted::New => {
            observe::accepted(order_id, caller);
            follow(ports, order_id, &fingerprint, asks_store, wait).await?
        }
    };
    Ok(accepted(config, order_id, task.as_deref(), wait))
}

/// How the stored order of this id compares with a document. `None`: no such order is stored.
async fn stored(ports: &impl ApiPorts, order_id: OrderId, fingerprint: &str) -> Result<Option<Inserted>, PortError> {
    let order = ports.store().order(order_id).await?;
    Ok(order.map(|order| if order.is_of(fingerprint) { Inserted::Same } else { Inserted::Different }))
}

/// Pins the order to the workflow that it begins with, in whose priority it is queued if it names none, and gives it the
/// terms that it is found by. Refuses it if there is no room, or no such channel; a document with members that no order
/// of the workflow may carry (rule 19), or that does not fit its schema; and one with a wrong time (rules 35 and 37).
async fn begin(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    name: Option<&str>,
    order: &mut Order,
) -> Result<(), Problem> {
    if !config.has_room(order) {
        return Err(Problem::NoRoom);
    }
    check_channel(config, order)?;
    let Some(catalogue) = config.catalogue() else {
        order.terms = Index::default().terms(order.correlation_id.as_deref(), &order.document, config.redaction());
        return Ok(());
    };
    let chosen = catalogue.choose(ports, name, order.order_id).await;
    let workflow = match chosen.map_err(|error| Problem::Unavailable { advice: NOT_CHOSEN, error })? {
        Ok(workflow) => workflow,
        Err(UnknownWorkflow { name, known }) => return Err(Problem::unknown_workflow(&name, &known)),
    };
    pin(&workflow, order, ports.environment().wall(), config)
}

/// Refuses an order whose reply channel is not registered.
pub(crate) fn check_channel(config: &ApiConfig, order: &Order) -> Result<(), Problem> {
    match &order.reply_channel {
        Some(channel) if !config.knows(channel) => Err(Problem::member(
            "ReplyChannel",
            "is not the name of a registered channel; a new one counts after a restart or a deployment",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Pins the order to the workflow that was chosen for it, unless the workflow takes no such document.
pub(crate) fn pin(workflow: &Workflow, order: &mut Order, now: Timestamp, config: &ApiConfig) -> Result<(), Problem> {
    workflow.accept(order, now, config.redaction()).map_err(|fault| match fault {
        NotAccepted::Refused(names) => Problem::MemberRefused { workflow: workflow.name.clone(), names },
        NotAccepted::Misfits(misfits) => Problem::SchemaMismatch {
            workflow: workflow.name.clone(),
            pointer: misfits.first().map(|misfit| misfit.pointer.clone()).unwrap_or_default(),
            faults: misfits.iter().map(ToString::to_string).collect(),
        },
        NotAccepted::Missing { step, pointer, why } => {
            Problem::MemberMissing { workflow: workflow.name.clone(), step, pointer, why }
        }
        NotAccepted::Lines(BadLines { place, fault }) => Problem::member(place, fault),
        NotAccepted::Time(wrong) => {
            let place = &wrong.place;
            let name = place.strip_prefix('/').filter(|name| !name.contains('/')).unwrap_or(place).to_owned();
            Problem::member(name, wrong.to_string())
        }
    })
}

/// The present task or, if the caller waits, the task once it is settled or the wait is over.
async fn present(ports: &impl ApiPorts, order_id: OrderId, wait: Option<Wait>) -> Result<Option<Arc<Task>>, PortError> {
    match wait {
        Some(wait) => Ok(ports.store().settled(order_id, wait.ms()).await?.map(|seen| seen.task)),
        None => ports.store().task(order_id).await,
    }
}

/// The task of an order that was just queued, once it is settled or the wait is over; `None` for a caller that does not
/// wait. A failing port does not fail the request: the order was accepted, whether or not it can be watched.
async fn follow(
    ports: &impl ApiPorts,
    order_id: OrderId,
    fingerprint: &str,
    asks_store: bool,
    wait: Option<Wait>,
) -> Result<Option<Arc<Task>>, Problem> {
    let followed = async {
        let seen = match wait {
            Some(wait) => ports.store().settled(order_id, wait.ms()).await?,
            None => None,
        };
        let (task, order) = seen.map(|Watched { task, order }| (task, order)).unzip();
        Ok::<_, PortError>(match order.flatten() {
            None if asks_store && (wait.is_none() || task.is_some()) => (task, ports.store().order(order_id).await?),
            order => (task, order),
        })
    };
    match followed.await {
        // Two documents may come under one key at the same time. If the first is stored by now, the second is refused
        // here; otherwise at its next request.
        Ok((_, Some(stored))) if !stored.is_of(fingerprint) => Err(Problem::KeyReused { order_id }),
        Ok((task, _)) => Ok(task),
        Err(error) => {
            tracing::warn!(%order_id, "accepted, but cannot be watched: {error}");
            Ok(None)
        }
    }
}

/// 200 with the task for a caller that waited until it was settled; 202 for all others. A task in `Error` is settled:
/// it waits for an operator and does not go on by itself.
fn accepted(config: &ApiConfig, order_id: OrderId, task: Option<&Task>, wait: Option<Wait>) -> Response<Bytes> {
    let response = match (task, wait) {
        (Some(task), Some(wait)) if task.process_state.is_settled() => {
            wait.applied(reply::json(StatusCode::OK, &whole(task, config.redaction())))
        }
        (task, _) => {
            let process_state = task.map_or(ProcessState::Pending, |task| task.process_state);
            reply::json(StatusCode::ACCEPTED, &Accepted { order_id, process_state: process_state.into() })
        }
    };
    reply::located(response, reply::order_path(order_id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, ORDER};

    const KEY: (&str, &str) = ("Idempotency-Key", "k1");

    /// The store is asked for repeats, or the queue tells them.
    fn both() -> [Fake; 2] {
        let knowing = Fake::default();
        knowing.ports.queue_knows_orders();
        [Fake::default(), knowing]
    }

    #[test]
    fn without_room_a_new_order_is_503_and_a_repeat_is_answered() {
        for fake in both() {
            let first = fake.post("/orders", &[KEY], ORDER);
            fake.submission_runs(ProcessState::Processing);
            fake.config(ApiConfig::default().with_room_if(|_, _| false));
            assert_eq!(fake.post("/orders", &[KEY], ORDER).body["OrderID"], first.body["OrderID"]);
            fake.post("/orders", &[KEY], r#"{"Item":"other"}"#).is_problem(422, "idempotency-key-reused");
            for headers in [&[][..], &[("Idempotency-Key", "k2")]] {
                let refused = fake.post("/orders", headers, ORDER);
                refused.is_problem(503, "unavailable");
                assert_eq!(refused.header("retry-after"), Some("1"));
            }
            assert_eq!(fake.submitted().len(), 1);
            fake.config(ApiConfig::default().with_room_if(|_, _| true));
            assert_eq!(fake.post("/orders", &[], ORDER).status, 202);
        }
    }

    #[test]
    fn a_queue_that_knows_the_orders_tells_a_repeat_and_the_store_is_not_read() {
        let [_, fake] = both();
        fake.post("/orders", &[KEY], ORDER);
        fake.submission_runs(ProcessState::Processing);
        assert_eq!(fake.post("/orders", &[KEY], ORDER).body["ProcessState"], "Processing");
        fake.settles_as(ProcessState::Processed);
        let answer = fake.post("/orders", &[KEY, ("Prefer", "wait=5")], ORDER);
        assert_eq!((answer.status, fake.submitted().len(), fake.orders_read()), (200, 1, 0));
        fake.post("/orders", &[KEY], r#"{"Item":"other"}"#).is_problem(422, "idempotency-key-reused");
    }

    #[test]
    fn a_caller_without_a_key_reads_no_order() {
        for fake in both() {
            fake.settles_as(ProcessState::Processed);
            assert_eq!(fake.post("/orders", &[("Prefer", "wait=5")], ORDER).status, 200);
            assert_eq!((fake.post("/orders", &[], ORDER).status, fake.orders_read()), (202, 0));
        }
    }

    #[test]
    fn a_waiting_caller_whose_document_lost_its_key_does_not_get_the_task_of_the_other() {
        for fake in both() {
            assert_eq!(fake.post("/orders", &[KEY], ORDER).status, 202);
            fake.settles_as(ProcessState::Processed);
            let other = fake.post("/orders", &[KEY, ("Prefer", "wait=5")], r#"{"Item":"other"}"#);
            other.is_problem(422, "idempotency-key-reused");
        }
    }

    #[test]
    fn a_document_with_a_member_twice_is_400_with_its_place() {
        let fake = Fake::default();
        for (text, place) in [
            (r#"{"Total":5000,"Total":10}"#, "/Total"),
            (r#"{"Total":5000,"Tot\u0061l":10}"#, "/Total"),
            (r#"{"Lines":[{"Sku":"a"},{"Sku":"b","No":1,"Sku":"c"}]}"#, "/Lines/1/Sku"),
            (r#"{"CorrelationID":"a","CorrelationID":"b"}"#, "/CorrelationID"),
        ] {
            fake.post("/orders", &[], text).names(400, "invalid-field", place);
        }
        fake.queued_nothing();
        assert_eq!(fake.post("/orders", &[], "\u{feff}{\"Total\":10}").status, 202, "a byte order mark says nothing");
    }
}
