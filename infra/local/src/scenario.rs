//! What demo and outage have in common: they post orders to an API, follow each to its end, and compare it with what the
//! stand-ins did.
//!
//! They are ordinary clients: they know the API and the stand-ins' effects, and nothing of the functions between them.

#![expect(clippy::disallowed_methods, reason = "a client of the API with a clock of its own")]

use std::sync::Arc;
use std::time::Duration;

use domain::id::OrderId;
use domain::message::idempotency_key;
use domain::task::{Direction, shortened};
use embedded::system_time;
use http::StatusCode;
use serde::de::DeserializeOwned;
use standins::{Effects, KeyEffects, Service};
use tokio::time::Instant;
use wire::{Accepted, Step, Task};

use crate::client::{Answer, Client, NoAnswer};

/// The order of the README.
pub(crate) const ORDER: &str = include_str!("../../examples/order.json");

/// The orders of one run, at one API.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    client: Client,
    url: Arc<str>,
    /// The prefix of every idempotency key. It makes the keys distinct from the keys of an earlier run on the same data.
    run: Arc<str>,
}

/// An order could not be posted or followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OrderError {
    #[error("no answer: {0}")]
    NoAnswer(#[from] NoAnswer),
    #[error("unexpected answer {status} ({problem}): {}", shortened(.body))]
    Unexpected { status: StatusCode, problem: String, body: String },
    #[error("posted twice with one key, it became two orders")]
    TwoOrders,
    #[error("not stored in time")]
    NotStored,
}

impl Orders {
    pub(crate) fn of(api_url: &str, scenario: &str) -> Self {
        let run = format!("{scenario}-{}", system_time().epoch_ms());
        Self { client: Client::new(), url: api_url.into(), run: run.into() }
    }

    /// Posts an order under a key of this run.
    pub(crate) async fn post(&self, key: &str, document: String) -> Result<OrderId, OrderError> {
        let (url, key) = (format!("{}/orders", self.url), format!("{}-{key}", self.run));
        let answer = self.client.post(&url, &[("idempotency-key", &key)], document).await?;
        match answer.status.is_success() {
            true => read::<Accepted>(&answer).map(|accepted| accepted.order_id),
            false => Err(unexpected(&answer, "not accepted")),
        }
    }

    /// Reads something of the API. `None` if it is not there.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<Option<T>, OrderError> {
        let answer = self.client.get(&format!("{}{path}", self.url)).await?;
        match answer.status {
            StatusCode::OK => read(&answer).map(Some),
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(unexpected(&answer, "neither 200 nor 404")),
        }
    }

    /// Polls an order until it is settled, and reports each change. Returns it as it is then, or at `patience_ends`. A real
    /// application would use `Prefer: wait`, but it would not see the steps in between.
    pub(crate) async fn follow(
        &self,
        order_id: OrderId,
        every: Duration,
        patience_ends: Instant,
        mut changed: impl FnMut(&Task<'_>),
    ) -> Result<Task<'static>, OrderError> {
        let (path, mut last) = (format!("/orders/{order_id}"), Err(OrderError::NotStored));
        loop {
            match self.get::<Task<'static>>(&path).await {
                Ok(Some(task)) => {
                    if last.as_ref().map_or(true, |last: &Task<'_>| last.version < task.version) {
                        changed(&task);
                    }
                    last = Ok(task);
                }
                Ok(None) => {}
                Err(error) => last = last.or(Err(error)),
            }
            if last.as_ref().is_ok_and(Task::is_settled) || Instant::now() >= patience_ends {
                return last;
            }
            tokio::time::sleep(every).await;
        }
    }
}

/// What the stand-ins counted of one step, forward and undone. It is looked up by its idempotency keys.
pub(crate) fn effects_of(order: &Task<'_>, step: &Step<'_>, effects: &Effects) -> (KeyEffects, KeyEffects) {
    let at_service = Service::named(&step.agent).and_then(|service| effects.get(&service));
    let of = |direction| {
        let key = idempotency_key(order.order_id, &step.name, direction);
        at_service.map(|service| service.of(&key)).unwrap_or_default()
    };
    (of(Direction::Forward), of(Direction::Undo))
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, OrderError> {
    serde_json::from_slice(&answer.body).map_err(|error| unexpected(answer, &error.to_string()))
}

fn unexpected(answer: &Answer, problem: &str) -> OrderError {
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    OrderError::Unexpected { status: answer.status, problem: problem.to_owned(), body }
}
