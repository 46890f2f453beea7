//! Customers: each posts an order again and again until it is accepted.

use std::sync::Arc;

use api::ApiConfig;
use bytes::Bytes;
use domain::id::OrderId;
use domain::json::Json;
use http::{Request, Response};

use super::actors::{Role, Slot};
use super::auditor::seen::Seen;
use super::executor::Done;
use super::faults::Fault;
use super::operators::Ask;
use super::setup::Setup;
use super::state::{Event, Shared};
use super::world::{Job, World};

/// The registered reply channels.
const CHANNELS: [&str; 2] = ["shop", "desk"];

/// One customer with one order.
#[derive(Debug, Clone)]
struct Customer {
    document: Bytes,
    fingerprint: Arc<str>,
    key: Option<String>,
    is_content: bool,
    tries: u32,
    /// The last post, in milliseconds since the start of the world.
    posted_ms: i64,
}

/// All customers.
#[derive(Debug, Default)]
pub struct Customers {
    all: Vec<Customer>,
    api_config: Arc<ApiConfig>,
    name: Arc<str>,
}

impl Customers {
    /// The customers of a world, who post within a given time.
    pub fn draw(shared: &Shared, setup: &Setup) -> Self {
        let mut customers =
            Self { all: Vec::new(), api_config: Arc::new(ApiConfig::new(CHANNELS)), name: "customer".into() };
        let mut state = shared.lock();
        for number in 0..setup.orders {
            let key = state.rng.chance(8_000).then(|| format!("key-{number}"));
            let channel = state.rng.chance(7_000).then(|| state.rng.pick(&CHANNELS));
            let priority = state.rng.chance(2_000).then(|| state.rng.pick(&["high", "normal"]));
            customers.add(&mut state, number, key, channel, priority);
            let ms = state.rng.below(setup.posts_within_ms);
            state.after(ms, Event::Post(number));
        }
        customers
    }

    fn add(
        &mut self,
        state: &mut super::state::State,
        number: usize,
        key: Option<String>,
        channel: Option<&str>,
        priority: Option<&str>,
    ) {
        let mut document = format!("{{\"Number\":{number}");
        for (name, value) in [("ReplyChannel", channel), ("Priority", priority)] {
            if let Some(value) = value {
                document.push_str(&format!(",\"{name}\":\"{value}\""));
            }
        }
        document.push('}');
        state.remotes.channels.insert(document.as_str().into(), channel.map(Arc::from));
        let document = Bytes::from(document);
        let fingerprint = Json::document(&document).map(|document| document.fingerprint().into()).unwrap_or_default();
        self.all.push(Customer { document, fingerprint, key, is_content: false, tries: 0, posted_ms: 0 });
    }

    /// Whether every order is accepted, or refused for good.
    #[must_use]
    pub fn are_content(&self) -> bool {
        self.all.iter().all(|customer| customer.is_content)
    }

    /// The API for customers and operators.
    #[must_use]
    pub fn api_config(&self) -> Arc<ApiConfig> {
        self.api_config.clone()
    }
}

impl World {
    /// A customer posts.
    pub(super) fn post(&mut self, number: usize) {
        let customer = &mut self.customers.all[number];
        customer.tries += 1;
        customer.posted_ms = self.shared.lock().now_ms;
        let mut request = Request::post("/orders");
        if let Some(key) = &customer.key {
            request = request.header("Idempotency-Key", key);
        }
        if customer.tries.is_multiple_of(3) {
            request = request.header("Prefer", "wait=2");
        }
        let body = customer.document.clone();
        self.ask(Ask::Order(number), request.body(body).unwrap_or_default());
    }

    /// An invocation at the API.
    pub(super) fn ask(&mut self, ask: Ask, request: Request<Bytes>) {
        let invocation = self.executor.next_number();
        let slot = Slot::new(&self.shared, Role::ApiConfig, 0, invocation);
        let ports = slot.ports(&self.shared, invocation);
        {
            let mut state = self.shared.lock();
            let path = request.uri().path().to_owned();
            state.note(&ports.who.name, None, &path, || format!("POST {path}"));
        }
        let (api_config, phase) = (self.customers.api_config(), ports.who.phase.clone());
        let work =
            Box::pin(
                async move { Done::Answered(Box::new(api::handle(&ports, &api_config, "customer", request).await)) },
            );
        self.executor.begin(work, phase);
        self.jobs.insert(invocation, Job::ApiConfig(ask));
    }

    /// A customer gets the answer to a post, or none.
    pub(super) fn order_answered(&mut self, number: usize, response: Option<&Response<Bytes>>) {
        let shared = self.shared.clone();
        let mut state = shared.lock();
        let status = response.map_or(0, |response| response.status().as_u16());
        let customers = &mut self.customers;
        let name = customers.name.clone();
        match (status, response.and_then(order_in)) {
            (200 | 202, Some(order)) => {
                let Customer { fingerprint, posted_ms, .. } = &customers.all[number];
                let (fingerprint, posted_ms) = (fingerprint.clone(), *posted_ms);
                state.see(&name, &Seen::Accepted { order, fingerprint, posted_ms });
                let was_content = std::mem::replace(&mut customers.all[number].is_content, true);
                if customers.all[number].key.is_none() || was_content {
                    return;
                }
                if state.strikes(Fault::PostedAgain) {
                    let ms = state.rng.between(0, 600_000);
                    state.after(ms, Event::Post(number));
                }
                if state.strikes(Fault::PostedOther) {
                    let (key, other) = (customers.all[number].key.clone(), customers.all.len());
                    customers.add(&mut state, other, key, None, None);
                    let ms = state.rng.between(0, 5_000);
                    state.after(ms, Event::Post(other));
                }
            }
            // Refused for good: another document is stored under the key.
            (400..500, _) => customers.all[number].is_content = true,
            _ => {
                let ms = state.rng.between(200, 15_000);
                state.after(ms, Event::Post(number));
            }
        }
    }
}

fn order_in(response: &Response<Bytes>) -> Option<OrderId> {
    let location = response.headers().get("Location")?.to_str().ok()?;
    location.rsplit('/').next()?.parse().ok()
}
