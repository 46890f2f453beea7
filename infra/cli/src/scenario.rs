//! What demo and outage have in common: they post orders to an API, follow each to its end, and compare it with what the
//! stand-ins did.
//!
//! They are ordinary clients: they know the API and the stand-ins' effects, and nothing of the functions between them.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use domain::id::OrderId;
use domain::message::idempotency_key;
use domain::task::Direction;
use http::{HeaderName, HeaderValue};
use standins::{Effects, KeyEffects, Service};
use wire::{Accepted, Step, Task};

use crate::follow::{Followed, Sight, follow};
use crate::remote::{Call, Environment, Remote, RemoteError, Server, Target, clock};

/// The order of the README.
pub(crate) const ORDER: &str = include_str!("../../examples/order.json");
/// The time-out of an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// The orders of one run, at one API.
#[derive(Debug, Clone)]
pub(crate) struct Orders {
    pub(crate) remote: Arc<Remote>,
    /// The prefix of every idempotency key. It makes the keys distinct from the keys of an earlier run on the same data.
    run: Arc<str>,
}

impl Orders {
    /// # Errors
    /// If the URL is none of an API.
    pub(crate) fn of(api_url: &str, scenario: &str) -> io::Result<Self> {
        let server = Target::parse(api_url).map(|api| Server { api, ..Server::default() }).map_err(io::Error::other)?;
        let remote = Remote::new(server, ANSWER, Environment::default()).map_err(io::Error::other)?;
        let run = format!("{scenario}-{}", clock::now().epoch_ms());
        Ok(Self { remote: Arc::new(remote), run: run.into() })
    }

    /// Posts an order under a key of this run, once.
    pub(crate) async fn post(&self, key: &str, document: String) -> Result<OrderId, RemoteError> {
        let key = HeaderValue::try_from(format!("{}-{key}", self.run)).expect("letters and digits make a header");
        let call = Call::post("/orders", document).with(HeaderName::from_static("idempotency-key"), key).unrepeated();
        Ok(self.remote.call(&call).await?.read::<Accepted>()?.order_id)
    }

    /// Polls an order until it is settled, and reports each change. Returns it as it is then, or after `at_most`. A real
    /// application would use `Prefer: wait`, but it would not see the steps in between.
    pub(crate) async fn follow(
        &self,
        order_id: OrderId,
        every: Duration,
        at_most: Duration,
        changed: impl FnMut(&Task<'_>),
    ) -> Result<Task<'static>, String> {
        let id = order_id.to_string();
        match follow(&self.remote, &id, (every, every), at_most, |task| task.is_settled(), changed).await {
            Ok(Followed::Reached(Sight { task, .. }) | Followed::TimedOut(Some(Sight { task, .. }))) => Ok(task),
            Ok(Followed::TimedOut(None)) => Err("not stored in time".to_owned()),
            Err(error) => Err(error.to_string()),
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
