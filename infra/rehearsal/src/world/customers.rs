//! Customers: each posts an order again and again until it is accepted.

use std::sync::Arc;

use api::{ApiConfig, Caller};
use bytes::Bytes;
use domain::id::OrderId;
use domain::json::Json;
use http::{Request, Response};

use crate::actors::{Role, Slot};
use crate::event::Event;
use crate::executor::Done;
use crate::faults::Fault;
use crate::lines;
use crate::seen::{Heard, Seen};
use crate::setup::Setup;
use crate::state::services::Told;
use crate::state::{Shared, State};
use crate::world::operators::Ask;
use crate::world::{Job, World};

/// The registered reply channels.
const CHANNELS: [&str; 2] = ["shop", "desk"];
/// Instances of the API where the age of their caches matters.
const APIS: usize = 2;

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

/// An instance of the API, with its cache of what was applied.
#[derive(Debug)]
struct Api {
    config: Arc<ApiConfig>,
    started_ms: i64,
}

impl Api {
    fn start(state: &State) -> Self {
        let config = ApiConfig::new(CHANNELS);
        let setup = &state.setup;
        let config = match setup.applied.is_empty() && !setup.is_described() {
            true => config,
            false => config.with_catalogue(&setup.catalogue(&setup.shape.first)),
        };
        Self { config: Arc::new(config), started_ms: state.now_ms }
    }
}

/// All customers.
#[derive(Debug, Default)]
pub struct Customers {
    all: Vec<Customer>,
    apis: Vec<Api>,
    name: Arc<str>,
}

impl Customers {
    /// The customers of a world, who post within a given time.
    pub fn draw(shared: &Shared, setup: &Setup) -> Self {
        let mut state = shared.lock();
        let apis = (0..if setup.applied.is_empty() { 1 } else { APIS }).map(|_| Api::start(&state)).collect();
        let mut customers = Self { all: Vec::new(), apis, name: "customer".into() };
        for number in 0..setup.orders {
            if let Some(document) = setup.documents.get(number % setup.documents.len().max(1)) {
                customers.add_document(Bytes::from(document.to_string()), Some(format!("key-{number}")));
                let ms = state.rng.below(setup.posts_within_ms);
                state.after(ms, Event::Post(number));
                continue;
            }
            let key = state.rng.chance(8_000).then(|| format!("key-{number}"));
            let channel = state.rng.chance(7_000).then(|| state.rng.pick(&CHANNELS));
            let priority = state.rng.chance(2_000).then(|| state.rng.pick(&["high", "normal"]));
            let workflow = (!setup.applied.is_empty()).then(|| state.rng.pick(&setup.named)).flatten();
            customers.add(&mut state, number, key, [channel, priority, workflow]);
            let ms = state.rng.below(setup.posts_within_ms);
            state.after(ms, Event::Post(number));
        }
        customers
    }

    fn add(
        &mut self,
        state: &mut State,
        number: usize,
        key: Option<String>,
        [channel, priority, workflow]: [Option<&str>; 3],
    ) {
        let mut document = format!("{{\"Number\":{number}");
        for (name, value) in [("ReplyChannel", channel), ("Priority", priority), ("Workflow", workflow)] {
            if let Some(value) = value {
                document.push_str(&format!(",\"{name}\":\"{value}\""));
            }
        }
        if state.setup.shape.has_lines() {
            document.push_str(&lines::draw(state.setup.calm_at_ms, number));
        }
        document.push('}');
        state.remotes.channels.insert(document.as_str().into(), channel.map(Arc::from));
        state.remotes.named.extend(workflow.map(|workflow| (document.as_str().into(), workflow.into())));
        self.add_document(Bytes::from(document), key);
    }

    fn add_document(&mut self, document: Bytes, key: Option<String>) {
        let fingerprint = Json::document(&document).map(|document| document.fingerprint().into()).unwrap_or_default();
        self.all.push(Customer { document, fingerprint, key, is_content: false, tries: 0, posted_ms: 0 });
    }

    /// Whether every order is accepted, or refused for good.
    #[must_use]
    pub fn are_content(&self) -> bool {
        self.all.iter().all(|customer| customer.is_content)
    }

    /// An instance of the API takes an invocation.
    fn api(&self, state: &mut State, invocation: u32) -> Arc<ApiConfig> {
        let api = if self.apis.len() == 1 { &self.apis[0] } else { &self.apis[state.rng.place(self.apis.len())] };
        let fresh_ms = state.setup.stale_ms().map(|ms| state.now_ms - ms);
        // A jump prolongs what is under way.
        let fresh_ms = fresh_ms.filter(|ms| *ms >= state.jumped_until_ms).unwrap_or(0);
        state.known_ms.insert(invocation, api.started_ms.max(fresh_ms));
        api.config.clone()
    }

    /// An instance died; another starts, with an empty cache.
    pub(crate) fn restart_api(&mut self, shared: &Shared) {
        let mut state = shared.lock();
        if self.apis.len() > 1 {
            let place = state.rng.place(self.apis.len());
            self.apis[place] = Api::start(&state);
        }
    }
}

impl World {
    /// A customer posts.
    pub(crate) fn post(&mut self, number: usize) {
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

    /// A service posts the result of a call.
    pub(crate) fn call_back(&mut self, call: u64) {
        let told = self.shared.lock().remotes.told_later.get(&call).cloned();
        let Some(Told { of, path, body }) = told else { return };
        self.shared.lock().see(&Arc::from("service"), &Seen::Answered { of, call, heard: Heard::Settled });
        let request = Request::post(&*path).body(Bytes::from(body.to_string()));
        self.ask(Ask::CallBack(call), request.unwrap_or_default());
    }

    /// An invocation at the API.
    pub(crate) fn ask(&mut self, ask: Ask, request: Request<Bytes>) {
        let invocation = self.executor.next_number();
        let slot = Slot::new(&self.shared, Role::ApiConfig, 0, invocation);
        let ports = slot.ports(&self.shared, invocation);
        {
            let mut state = self.shared.lock();
            let path = request.uri().path().to_owned();
            state.note(&ports.who.name, None, &path, || format!("POST {path}"));
        }
        let api_config = self.customers.api(&mut self.shared.lock(), invocation);
        let phase = ports.who.phase.clone();
        // Nobody decides on an order of their own (rule 40).
        let caller = match ask {
            Ask::Order(_) => "customer",
            Ask::CallBack(_) => "service",
            Ask::Command(..) | Ask::Plan | Ask::Start | Ask::Again | Ask::Apply(_) => "operator",
        };
        let work = Box::pin(async move {
            Done::Answered(Box::new(api::handle(&ports, &api_config, &Caller::unrestricted(caller), request).await))
        });
        self.executor.begin(work, phase);
        self.jobs.insert(invocation, Job::ApiConfig(ask));
    }

    /// A customer gets the answer to a post, or none.
    pub(crate) fn order_answered(&mut self, number: usize, response: Option<&Response<Bytes>>) {
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
                    customers.add(&mut state, other, key, [None; 3]);
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
