//! The functions: instances with ports of their own, their event sources, and the customers at the API.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent::Agent;
use api::ApiConfig;
use aws::clients::Clients;
use aws::lambda::{self, Error, Invocation};
use aws::ports::{Ports, System};
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use cloud::Network;
use domain::batch::Failures;
use domain::message::{Delivery, Request};
use domain::redaction::Redaction;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use supervisor::Settings;
use tokio::select;
use tokio::task::JoinSet;

use super::World;
use super::region::{DEAD, DELETION, KILLED, Reach, SKEWED, TWICE, URL};
use super::sqs::{Batch, queue};
use super::stream;
use crate::simulation::outside::{CHANNEL, Client, may_act, perform, post, sleep};
use crate::simulation::shapes::AGENTS;

/// The time of an invocation, in milliseconds.
const TIMEOUT_MS: u64 = 30_000;
/// The longest wait of an event source between two looks at its queues, in milliseconds.
const POLL_MS: i64 = 60_000;

/// A function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Api,
    Submission,
    Scheduler,
    Agents,
    Supervisor,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Submission => "submission",
            Self::Scheduler => "scheduler",
            Self::Agents => "agents",
            Self::Supervisor => "supervisor",
        }
    }

    const fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Api => &[],
            Self::Submission => &["submission-high", "submission"],
            Self::Scheduler => &["scheduler-high", "scheduler"],
            Self::Agents => &["agents-high", "agents"],
            Self::Supervisor => &["submission-dead", "scheduler-dead", "agents-dead"],
        }
    }

    const fn dead_letters(self) -> Option<&'static str> {
        match self {
            Self::Submission => Some("submission-dead"),
            Self::Scheduler => Some("scheduler-dead"),
            Self::Agents => Some("agents-dead"),
            Self::Api | Self::Supervisor => None,
        }
    }
}

/// An instance of a function: one process.
pub(super) struct Instance {
    pub(super) ports: Ports,
    role: Role,
    identity: domain::instance::Instance,
    agents: BTreeMap<Arc<str>, Agents>,
    lives: Arc<AtomicBool>,
    world: Arc<World>,
}

/// An agent whose clients are made by a closure.
type Agents = Agent<Box<dyn Fn() -> Client + Send + Sync>>;

impl Instance {
    pub(super) fn start(world: &Arc<World>, role: Role, meets_faults: bool) -> Self {
        let lives = Arc::new(AtomicBool::new(true));
        let (bits, skew_ms) = {
            let mut outside = world.outside.lock();
            let span_ms = i64::try_from(outside.rng.between(0, 2 * world.plan.skew_ms)).unwrap_or(0);
            let skew_ms = span_ms.saturating_sub_unsigned(world.plan.skew_ms);
            if meets_faults && skew_ms != 0 && !outside.is_calm {
                outside.counts.add(SKEWED);
            }
            (outside.rng.bits(), skew_ms)
        };
        let clock = world.outside.clone();
        let system = System::simulated(bits, move || {
            let outside = clock.lock();
            let skew_ms = if outside.is_calm { 0 } else { skew_ms };
            domain::time::Timestamp::from_epoch_ms(outside.clock.wall().epoch_ms() + skew_ms)
        });
        let network = Network::new(Reach { world: world.clone(), lives: lives.clone(), meets_faults });
        let clients = Clients::over(&world.config.access, SharedHttpClient::new(network));
        let setup = &world.setup;
        let identity = domain::instance::Instance {
            name: format!("{}-{:08x}", role.name(), bits >> 32).into(),
            catalogue: setup.catalogue(&setup.shape.first),
            shards: setup.shards,
        };
        let agents = if role == Role::Agents { agents(world) } else { BTreeMap::new() };
        let mut config = world.config.clone();
        config.queues.dead_letters = role.dead_letters().map(|name| format!("{URL}{name}").into());
        let ports = Ports::with(&config, clients, system);
        Self { ports, role, identity, agents, lives, world: world.clone() }
    }

    /// Someone who sees everything as it is.
    pub(super) fn that_meets_no_fault(world: &Arc<World>) -> Self {
        Self::start(world, Role::Api, false)
    }

    /// One invocation, as in the function's `main`.
    pub(super) async fn invoke(&self, event: &RawValue) -> Result<Value, Error> {
        let (ports, identity) = (&self.ports, &self.identity);
        let invocation = Invocation::simulated("request", TIMEOUT_MS);
        let answer = match self.role {
            Role::Api => return Err("the API has no event source here".into()),
            Role::Submission => {
                let handle = |batch| submission::handle(ports, identity, batch);
                lambda::batch(event, &invocation, Some(ports), &handle).await?
            }
            Role::Scheduler => {
                let handle = |_, batch| scheduler::handle(ports, identity, batch);
                // Boxed, since the compiler gives up on the layout of a future that is nested too deep.
                Box::pin(lambda::batch_with_senders(event, &invocation, ports, scheduler::together, &handle)).await?
            }
            Role::Agents => lambda::batch(event, &invocation, Some(ports), &|batch| self.call(batch)).await?,
            Role::Supervisor => {
                let run = async |run_ms_max| {
                    let settings = Settings { run_ms_max, tick_ms: self.world.setup.tick_ms, ..Settings::default() };
                    let sweep = supervisor::handle(ports, identity, &settings);
                    let redaction = Redaction::default();
                    let bulk = supervisor::bulk(ports, identity, &settings, &redaction);
                    let alerts = supervisor::alerts(ports, &[]);
                    let (swept, carried_on, services, told) =
                        tokio::join!(sweep, bulk, supervisor::services(ports), alerts);
                    Ok(swept.map(drop).and(carried_on.map(drop)).and(services.map(drop)).and(told.map(drop))?)
                };
                let dead_letters = async |batch| supervisor::dead_letters(ports, identity, batch).await;
                let count = async |batch| Ok(ports.count(&batch).await?);
                let queues = &self.world.config.dead_letter_queues;
                let answer = lambda::dispatch(event, &invocation, queues, &run, &dead_letters, &count).await?;
                return Ok(serde_json::to_value(answer)?);
            }
        };
        Ok(serde_json::to_value(answer)?)
    }

    /// A request goes to its agent. [`lambda::batch`] passes one at a time.
    async fn call(&self, batch: Vec<Delivery<Request>>) -> Failures {
        let name = batch.first().and_then(|delivery| Some(delivery.body.as_ref().ok()?.agent.clone()));
        match name.and_then(|name| self.agents.get(&name)) {
            Some(agent) => agent::handle(&self.ports, agent, batch).await,
            None => agent::refuse(batch),
        }
    }

    /// Runs `work` unless the instance is killed in it. `None`: it was killed, and another takes its place.
    pub(super) async fn or_killed<T>(&mut self, work: impl AsyncFnOnce(&Self) -> T) -> Option<T> {
        let world = self.world.clone();
        let killed_in_ms = {
            let mut outside = world.outside.lock();
            let is_killed = outside.strikes(KILLED, world.plan.kills);
            let within_ms = outside.rng.pick(&[20, 200, 4_000]);
            is_killed.then(|| outside.rng.between(0, within_ms))
        };
        let killed = async {
            match killed_in_ms {
                Some(ms) => sleep(ms).await,
                None => pending().await,
            }
        };
        let done = select! {
            biased;
            () = killed => None,
            done = work(self) => Some(done),
        };
        if done.is_none() {
            self.lives.store(false, Ordering::Relaxed);
            world.outside.lock().tell(&format!("{} is killed", self.identity.name));
            *self = Self::start(&world, self.role, true);
        }
        done
    }
}

fn agents(world: &Arc<World>) -> BTreeMap<Arc<str>, Agents> {
    let agents = AGENTS.into_iter().zip(&world.setup.policies).map(|(name, policy)| {
        let (outside, name) = (world.outside.clone(), Arc::<str>::from(name));
        let agent = name.clone();
        let make: Box<dyn Fn() -> Client + Send + Sync> =
            Box::new(move || Client { outside: outside.clone(), agent: agent.clone() });
        let made = Agent::new(name.clone(), policy.clone(), make);
        (name, made.unwrap_or_else(|error| panic!("the policy of a world makes sense: {error}")))
    });
    agents.collect()
}

/// Starts the event sources, the schedule and the customers.
pub(super) fn start(world: &Arc<World>) -> JoinSet<()> {
    let mut running = JoinSet::new();
    for role in [Role::Submission, Role::Scheduler, Role::Agents, Role::Supervisor] {
        for _ in 0..world.setup.instances {
            running.spawn_local(source(world.clone(), role));
        }
    }
    for _ in 0..world.setup.supervisors {
        running.spawn_local(schedule(world.clone()));
    }
    for open in 0..stream::OPEN {
        running.spawn_local(stream::source(world.clone(), open));
    }
    for number in 0..world.setup.orders {
        running.spawn_local(customer(world.clone(), number));
    }
    if world.outside.lock().scene.is_some() {
        let instance = Instance::that_meets_no_fault(world);
        running.spawn_local(async move { perform(&instance.world.outside, &instance.ports).await });
    }
    running
}

/// Invokes one instance with one batch after the other.
async fn source(world: Arc<World>, role: Role) {
    let queues: Vec<usize> = role.sources().iter().filter_map(|name| queue(name)).collect();
    let sent = world.region().sent.clone();
    let mut instance = Instance::start(&world, role, true);
    loop {
        let sent = sent.notified();
        let Some(batch) = receive(&world, &queues) else {
            let now_ms = world.now_ms();
            let next_ms = world.region().sqs.next_at_ms(&queues).map_or(POLL_MS, |at_ms| at_ms - now_ms);
            select! {
                biased;
                () = sent => {}
                () = sleep(next_ms.clamp(1, POLL_MS).unsigned_abs()) => {}
            }
            continue;
        };
        let Ok(event) = to_raw_value(&batch.event) else { continue };
        // After an error, as after a kill, the whole batch comes again.
        if let Some(Ok(answer)) = instance.or_killed(async |instance| instance.invoke(&event).await).await {
            let failed = answer["batchItemFailures"].as_array().into_iter().flatten();
            let failed: Vec<String> =
                failed.filter_map(|failed| failed["itemIdentifier"].as_str().map(str::to_owned)).collect();
            let (mut region, mut outside) = (world.region(), world.outside.lock());
            region.sqs.delete(&batch, &failed, || outside.strikes(DELETION, world.plan.deletions));
        }
    }
}

fn receive(world: &World, queues: &[usize]) -> Option<Batch> {
    let (mut region, mut outside) = (world.region(), world.outside.lock());
    let (now_ms, is_calm, twice) = (outside.clock.now_ms(), outside.is_calm, world.plan.twice);
    let mut doubled = Vec::new();
    let (batch, dead) = region.sqs.receive(queues, world.setup.batch_max, now_ms, &mut outside.rng, |rng, body| {
        let is_twice = !is_calm && rng.chance(twice);
        doubled.extend(is_twice.then(|| body.to_owned()));
        is_twice
    });
    outside.counts.more(TWICE, doubled.len() as u64);
    for request in doubled.iter().filter_map(|body| serde_json::from_str::<Request>(body).ok()) {
        outside.delivered_twice(request.order_id, &request.step);
    }
    if dead > 0 {
        outside.counts.more(DEAD, dead);
        outside.tell(&format!("dead letters: {dead}"));
        region.sent.notify_waiters();
    }
    batch
}

/// Invokes a supervisor at each tick.
async fn schedule(world: Arc<World>) {
    let mut instance = Instance::start(&world, Role::Supervisor, true);
    let Ok(event) = to_raw_value(&json!({ "detail": {} })) else { return };
    loop {
        sleep(world.setup.tick_ms).await;
        // The next run retries what this one could not do.
        let _ = instance.or_killed(async |instance| instance.invoke(&event).await).await;
    }
}

/// A customer posts until its order is accepted. An operator may act on it.
async fn customer(world: Arc<World>, number: usize) {
    let config = ApiConfig::new([CHANNEL]);
    let mut instance = Instance::start(&world, Role::Api, true);
    loop {
        let outside = world.outside.clone();
        let done = instance.or_killed(async |instance| {
            if let Some(order) = post(&outside, &instance.ports, &config, number).await {
                may_act(&outside, &instance.ports, &config, order).await;
                return outside.lock().is_calm;
            }
            false
        });
        if done.await == Some(true) {
            return;
        }
    }
}
