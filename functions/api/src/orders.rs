//! `POST /orders`: reads an order, and has it accepted.

use bytes::Bytes;
use domain::id::OrderId;
use domain::json::Json;
use domain::order::Given;
use domain::ports::Environment;
use domain::time::Timestamp;
use domain::trace;
use http::{HeaderMap, Response};

use crate::accept::{Repeat, take};
use crate::body;
use crate::caller::Caller;
use crate::config::ApiConfig;
use crate::key::idempotency_key;
use crate::ports::ApiPorts;
use crate::prefer::Wait;
use crate::problem::Problem;
use crate::traced::traced;

const WITH_KEY: Repeat = Repeat {
    is_same: true,
    advice: "it is not known whether the order was accepted; \
        it is safe to post it again with the same Idempotency-Key",
};
const WITHOUT_KEY: Repeat = Repeat {
    is_same: false,
    advice: "it is not known whether the order was accepted, and posted again it may become a second order; \
        with an Idempotency-Key it is safe to post again with the same Idempotency-Key",
};

/// Takes the body as an order of `caller` and puts it on the submission queue. If the same document is stored under
/// the same key, answers with its present task and queues nothing.
pub(crate) async fn post(
    ports: &impl ApiPorts,
    config: &ApiConfig,
    caller: &Caller,
    headers: &HeaderMap,
    body: &Bytes,
) -> Result<Response<Bytes>, Problem> {
    body::check(headers, body)?;
    let wait = Wait::asked(headers)?;
    let key = idempotency_key(headers)?;
    let installation = match &key {
        Some(_) => Box::pin(config.installation(ports)).await,
        None => Ok("".into()),
    };
    let installation = installation.map_err(|error| Problem::Unavailable { advice: WITH_KEY.advice, error })?;
    let key = key.as_deref().map(|key| (&*installation, key));
    let submitted_at = ports.environment().now();
    let given = read(caller.name(), submitted_at, body, || match key {
        Some((installation, key)) => OrderId::of_installation(installation, caller.name(), key),
        None => OrderId::generate(submitted_at, [ports.environment().random(), ports.environment().random()]),
    })?;
    if let Some(channel) = &given.order.reply_channel
        && !caller.may_use(channel)
    {
        return Err(Problem::member("ReplyChannel", "is not the name of a registered channel of yours"));
    }
    let repeat = if key.is_some() { WITH_KEY } else { WITHOUT_KEY };
    let span = trace::posted("/orders", given.order.order_id, traced(headers));
    take(ports, config, caller.name(), repeat, wait, given, span).await
}

/// The order for the queue: the body unchanged, and the values of the reserved members. Only one without a fault is given
/// an id.
pub(crate) fn read(
    caller: &str,
    submitted_at: Timestamp,
    body: &Bytes,
    order_id: impl FnOnce() -> OrderId,
) -> Result<Given, Problem> {
    let document = Json::document(body)?;
    Given::read(document, caller.into(), submitted_at, order_id).map_err(|bad| Problem::member(bad.name, bad.fault))
}

#[cfg(test)]
mod tests;
