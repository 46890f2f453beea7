//! The conformance suite on the ports in memory.

use domain::message::{CloudEvent, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, Source};
use memory::{Memory, RECEIVES_MAX, VISIBILITY_MS};
use tests::conformance::samples::NOON;
use tests::conformance::{StoreWorld, World};

struct InMemory(Memory);

impl StoreWorld for InMemory {
    type Ports = Memory;

    fn ports(&self) -> &Memory {
        &self.0
    }

    async fn pass(&self, ms: u64) {
        // A caller that starts its wait at the same time does so before the clock moves.
        tokio::task::yield_now().await;
        self.0.advance(ms);
    }
}

impl World for InMemory {
    fn submissions(&self) -> impl Source<Order> {
        self.0.submissions()
    }

    fn scheduler(&self) -> impl Source<SchedulerMessage> {
        self.0.scheduler()
    }

    fn requests(&self, agent: &str) -> impl Source<Request> {
        self.0.requests(agent)
    }

    fn dead_letters(&self) -> impl Source<DeadLetter> {
        self.0.dead_letters()
    }

    fn taken_by_shop(&self) -> Vec<CloudEvent> {
        let notified = self.0.notified().into_iter();
        notified.filter(|(channel, _)| channel == "shop").map(|(_, event)| event).collect()
    }

    fn visibility_ms(&self) -> u64 {
        VISIBILITY_MS
    }

    fn receives_max(&self) -> u32 {
        RECEIVES_MAX
    }
}

fn fresh() -> InMemory {
    let memory = Memory::new(NOON, 7);
    memory.register_channel("shop");
    InMemory(memory)
}

tests::conformance_suite!(fresh());
