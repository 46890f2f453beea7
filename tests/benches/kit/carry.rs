//! Orders through all handlers on the ports in memory, stage by stage.

use std::sync::Arc;

use agent::{Agent, Answer, Call, Policy, Service};
use api::{ApiConfig, Caller};
use bytes::Bytes;
use domain::definition::Catalogue;
use domain::instance::Instance;
use domain::json::Json;
use domain::limits::{BATCH_MAX, SHARDS};
use domain::ports::Source;
use domain::task::Task;
use domain::workflow::Workflows;
use futures_util::FutureExt;

use super::document;
use crate::conformance::samples::{NOON, receipts};
use memory::Memory;

/// What each stage does to every order.
pub const STAGES: [&str; 8] = [
    "api: POST /orders",
    "submission: order, first claim",
    "agent: inventory",
    "scheduler: reply, next claim",
    "agent: payment",
    "scheduler: reply, next claim",
    "agent: shipping",
    "scheduler: reply, end",
];

/// A service that has done it already.
struct AtOnce;

impl Service for AtOnce {
    async fn forward(&mut self, _: &Call<'_>) -> Answer {
        Answer::Done(Json::of(&[("Reference", "R-5b1d0fa35c0b1e77"), ("Status", "done")]))
    }

    async fn undo(&mut self, _: &Call<'_>) -> Answer {
        Answer::Done(Json::of(&()))
    }
}

/// Functions on ports in memory.
pub struct Carry {
    memory: Memory,
    instance: Instance,
    api_config: ApiConfig,
    agents: Vec<Agent<fn() -> AtOnce>>,
}

impl Default for Carry {
    fn default() -> Self {
        Self::new()
    }
}

impl Carry {
    /// # Panics
    /// When the shipped workflow is broken.
    #[must_use]
    pub fn new() -> Self {
        let workflows = Workflows::shipped().expect("the shipped workflow");
        let service: fn() -> AtOnce = || AtOnce;
        let agents =
            workflows.current().steps.iter().map(|step| Agent::new(step.agent.clone(), Policy::default(), service));
        let agents = agents.collect::<Result<_, _>>().expect("a good policy");
        let instance = Instance { name: "scheduler-4711".into(), catalogue: Catalogue::new(workflows), shards: SHARDS };
        Self { memory: Memory::new(NOON, 7), instance, api_config: ApiConfig::default(), agents }
    }

    /// Takes so many orders through the first stages. Each stage is done for all of them before the next.
    ///
    /// # Panics
    /// When a message is not taken.
    pub fn through(&self, orders: usize, stages: usize) {
        for stage in 0..stages.min(STAGES.len()) {
            match stage {
                0 => self.post(orders),
                1 => self.submission(),
                place if place % 2 == 0 => self.agent(&self.agents[(place - 2) / 2]),
                _ => self.scheduler(),
            }
        }
    }

    /// The tasks of all orders so far, newest first, at most a page.
    ///
    /// # Panics
    /// When the store fails.
    #[must_use]
    pub fn tasks(&self) -> Vec<Arc<Task>> {
        use domain::ports::Store;
        now(self.memory.list(None, None, 100)).expect("a list").tasks
    }

    fn post(&self, orders: usize) {
        for number in 0..orders {
            let request = http::Request::post("/orders").body(Bytes::from(document(number as u64)));
            let answer = now(api::handle(
                &self.memory,
                &self.api_config,
                &Caller::unrestricted("shop"),
                request.expect("a request"),
            ));
            assert_eq!(answer.status(), 202);
        }
    }

    fn submission(&self) {
        let source = self.memory.submissions();
        while let Some(batch) = source.receive(BATCH_MAX).now_or_never() {
            let receipts = receipts(&batch);
            assert!(now(submission::handle(&self.memory, &self.instance, batch)).0.is_empty());
            now(source.delete(receipts)).expect("deleted");
        }
    }

    fn scheduler(&self) {
        let source = self.memory.scheduler();
        while let Some(batch) = source.receive(BATCH_MAX).now_or_never() {
            let receipts = receipts(&batch);
            assert!(now(scheduler::handle(&self.memory, &self.instance, batch)).0.is_empty());
            now(source.delete(receipts)).expect("deleted");
        }
    }

    fn agent(&self, agent: &Agent<fn() -> AtOnce>) {
        let source = self.memory.requests(agent.name());
        while let Some(batch) = source.receive(BATCH_MAX).now_or_never() {
            let receipts = receipts(&batch);
            assert!(now(agent::handle(&self.memory, agent, batch)).0.is_empty());
            now(source.delete(receipts)).expect("deleted");
        }
    }
}

/// Nothing on these ports is waited for.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("no wait on ports in memory")
}

#[cfg(test)]
mod tests {
    use domain::task::ProcessState;

    use super::*;

    #[test]
    fn after_the_last_stage_every_order_is_processed_and_not_before() {
        for (stages, state) in [(STAGES.len(), ProcessState::Processed), (STAGES.len() - 1, ProcessState::Processing)] {
            let carry = Carry::new();
            carry.through(25, stages);
            let tasks = carry.tasks();
            assert_eq!(tasks.len(), 25);
            assert!(tasks.iter().all(|task| task.process_state == state), "{tasks:?}");
        }
    }
}
