//! The functions behind their event sources and their schedule.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use agents::Fleet;
use domain::definition::{Catalogue, DEPLOYMENT_FRESH_MS};
use domain::instance::Instance;
use domain::limits::SHARDS;
use domain::redaction::Redaction;
use domain::workflow::Workflows;
use embedded::Engine;
use futures_util::FutureExt;
use supervisor::{BulkReport, Settings};
use tokio::task::JoinSet;
use tokio::{pin, select};

use crate::event_source::{self, Drain};
use crate::stop::{Loops, Stop};
use crate::ticker;

/// The grace of handlers in flight after a stop, in milliseconds.
pub(super) const HANDLER_GRACE_MS: u64 = 3_000;
/// The grace of calls in flight after a stop, in milliseconds. A slower call is cancelled, and repeated with the same key
/// after the next start.
const CALL_GRACE_MS: u64 = 6_000;
/// The time in which the scheduler works off the replies after a stop, in milliseconds. A service repeats what is left.
const REPLIES_GRACE_MS: u64 = 2_000;
/// Concurrent batches of submissions. Each waits for the disk; batches that wait together share one sync.
const SUBMISSION_BATCHES_MAX: usize = 16;
/// Concurrent batches of the scheduler queue. More than for submissions: an order needs the scheduler once a step.
const SCHEDULER_BATCHES_MAX: usize = 32;
/// Concurrent batches of requests for each agent. A batch stays in flight as long as its slowest call, so a slow service
/// needs many of them. Each has at most ten open calls.
const AGENT_BATCHES_MAX: usize = 64;
/// How soon the queue of a new agent is noticed.
const AGENTS_LOOKED_FOR: Duration = Duration::from_millis(100);
/// Concurrent batches of dead letters. Dead letters are few and not urgent.
const DEAD_LETTER_BATCHES_MAX: usize = 2;

/// The time between two looks for causes of alerts.
const ALERTS_EVERY: Duration = Duration::from_secs(10);

/// The time between two looks at the schedules: as old may the deployment be that an instance knows.
const SCHEDULES_EVERY: Duration = Duration::from_millis(DEPLOYMENT_FRESH_MS);

/// Connects the functions to their event sources and starts them.
pub(super) struct Functions {
    pub(super) engine: Engine,
    pub(super) catalogue: Catalogue,
    /// What no order is found by (rule 28).
    pub(super) redaction: Redaction,
    /// The channels that alerts go to (rule 29).
    pub(super) sinks: Vec<Arc<str>>,
    pub(super) loops: Loops,
    pub(super) scheduler: Loops,
}

impl Functions {
    /// Orders that were accepted while it was paused wait on the queue.
    pub(super) fn submission(&mut self) {
        let (engine, instance) = (self.engine.clone(), self.instance("submission"));
        let handle = move |batch| {
            let (engine, instance) = (engine.clone(), instance.clone());
            async move { submission::handle(&engine, &instance, batch).await }
        };
        let drain = drain("submission", SUBMISSION_BATCHES_MAX);
        let source = self.engine.submissions();
        self.loops.spawn(|stop| event_source::run(drain, source, handle, stop));
    }

    pub(super) fn scheduler(&mut self) {
        let (engine, instance) = (self.engine.clone(), self.instance("scheduler"));
        let handle = move |batch| {
            let (engine, instance) = (engine.clone(), instance.clone());
            async move { scheduler::handle(&engine, &instance, batch).await }
        };
        let drain = drain("scheduler", SCHEDULER_BATCHES_MAX);
        let drain = Drain { grace_ms: REPLIES_GRACE_MS, until_empty: true, ..drain };
        let source = self.engine.scheduler();
        self.scheduler.spawn(|stop| event_source::run(drain, source, handle, stop));
    }

    /// The agents, each behind its queue. The queue of another agent appears with its first request.
    pub(super) fn agents(&mut self, fleet: &Arc<Fleet<Catalogue>>) {
        for agent in Workflows::SHIPPED_AGENTS {
            drop(self.engine.requests(agent));
        }
        let (engine, fleet) = (self.engine.clone(), fleet.clone());
        self.loops.spawn(|stop| feed_agents(engine, fleet, stop));
    }

    pub(super) fn dead_letters(&mut self) {
        let (engine, instance) = (self.engine.clone(), self.instance("dead-letters"));
        let handle = move |batch| {
            let (engine, instance) = (engine.clone(), instance.clone());
            async move { supervisor::dead_letters(&engine, &instance, batch).await }
        };
        let drain = drain("dead-letters", DEAD_LETTER_BATCHES_MAX);
        let source = self.engine.dead_letters();
        self.loops.spawn(|stop| event_source::run(drain, source, handle, stop));
    }

    /// One of several supervisors. Each has its own schedule; they share the work by leases.
    pub(super) fn supervisor(&mut self, number: u16, every: Duration) {
        let (engine, instance) = (self.engine.clone(), self.instance(&format!("supervisor-{number}")));
        let tick_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX);
        let settings = Settings { tick_ms, ..Settings::default() };
        let redaction = self.redaction.clone();
        let tick = move || {
            let (engine, instance, redaction) = (engine.clone(), instance.clone(), redaction.clone());
            async move {
                // The three are independent and run concurrently. Without the boxes the compiler does not see that the
                // joined future is `Send`.
                tokio::join!(
                    sweep(&engine, &instance, &settings).boxed(),
                    carry_on(&engine, &instance, &settings, &redaction).boxed(),
                    services(&engine, &instance).boxed()
                );
            }
        };
        self.loops.spawn(|stop| ticker::run("supervisor", every, HANDLER_GRACE_MS, tick, stop));
    }

    /// The alerts by cause. They have a schedule of their own, so that no sweep waits for a sink.
    pub(super) fn alerts(&mut self) {
        let (engine, sinks) = (self.engine.clone(), Arc::<[_]>::from(std::mem::take(&mut self.sinks)));
        let tick = move || {
            let (engine, sinks) = (engine.clone(), sinks.clone());
            async move {
                if let Err(error) = supervisor::alerts(&engine, &sinks).boxed().await {
                    tracing::warn!("not all alerts were looked for or told: {error}");
                }
            }
        };
        self.loops.spawn(|stop| ticker::run("alerts", ALERTS_EVERY, HANDLER_GRACE_MS, tick, stop));
    }

    /// The orders of schedules (rule 48).
    pub(super) fn schedules(&mut self) {
        let (engine, instance) = (self.engine.clone(), self.instance("schedules"));
        let redaction = self.redaction.clone();
        let tick = move || {
            let (engine, instance, redaction) = (engine.clone(), instance.clone(), redaction.clone());
            async move {
                let settings = Settings::default();
                let look = supervisor::schedules(&engine, &instance, &settings, &redaction);
                if let Err(error) = look.boxed().await {
                    tracing::warn!("not all that is due by a schedule was posted: {error}");
                }
            }
        };
        self.loops.spawn(|stop| ticker::run("schedules", SCHEDULES_EVERY, HANDLER_GRACE_MS, tick, stop));
    }

    /// The process ID distinguishes the claims of this run from those of the previous one.
    pub(super) fn instance(&self, function: &str) -> Arc<Instance> {
        let name = format!("{function}-{}", std::process::id()).into();
        Arc::new(Instance { name, catalogue: self.catalogue.clone(), shards: SHARDS })
    }
}

#[expect(clippy::disallowed_methods, reason = "a look at the host's own queues, which no test waits for")]
async fn feed_agents(engine: Engine, fleet: Arc<Fleet<Catalogue>>, stop: Stop) {
    let (mut fed, mut loops) = (BTreeSet::new(), JoinSet::new());
    let mut looks = tokio::time::interval(AGENTS_LOOKED_FOR);
    let stopped = stop.requested();
    pin!(stopped);
    loop {
        select! {
            () = &mut stopped => break,
            _ = looks.tick() => {}
        }
        for agent in engine.agents() {
            if !fed.insert(agent.clone()) {
                continue;
            }
            let source = engine.requests(&agent);
            let (engine, fleet) = (engine.clone(), fleet.clone());
            let handle = move |batch| {
                let (engine, fleet) = (engine.clone(), fleet.clone());
                async move { fleet.handle(&engine, batch).await }
            };
            let drain = Drain { grace_ms: CALL_GRACE_MS, ..drain("agents", AGENT_BATCHES_MAX) };
            loops.spawn(event_source::run(drain, source, handle, stop.clone()));
        }
    }
    while loops.join_next().await.is_some() {}
}

async fn sweep(engine: &Engine, instance: &Instance, settings: &Settings) {
    if let Err(error) = supervisor::handle(engine, instance, settings).await {
        tracing::warn!(instance = %instance.name, "the supervisor's run was interrupted: {error}");
    }
}

async fn carry_on(engine: &Engine, instance: &Instance, settings: &Settings, redaction: &Redaction) {
    match supervisor::bulk(engine, instance, settings, redaction).await {
        Ok(BulkReport { active, sent, .. }) if sent > 0 => {
            tracing::info!(instance = %instance.name, active, sent, "bulk");
        }
        Ok(_) => {}
        Err(error) => tracing::warn!(instance = %instance.name, "a bulk job was not continued: {error}"),
    }
}

async fn services(engine: &Engine, instance: &Instance) {
    if let Err(error) = supervisor::services(engine).await {
        tracing::warn!(instance = %instance.name, "an alert about a service was not sent: {error}");
    }
}

const fn drain(queue: &'static str, batches_max: usize) -> Drain {
    Drain { queue, batches_max, grace_ms: HANDLER_GRACE_MS, until_empty: false }
}
