//! The conformance suite on the ports in memory.

use domain::message::{Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::Source;
use tests::conformance::World;
use tests::conformance::samples::NOON;
use tests::memory::{Memory, RECEIVES_MAX, VISIBILITY_MS};

struct InMemory(Memory);

impl World for InMemory {
    type Ports = Memory;

    fn ports(&self) -> &Memory {
        &self.0
    }

    fn submissions(&self) -> impl Source<Order> {
        self.0.submissions()
    }

    fn scheduler(&self) -> impl Source<SchedulerMessage> {
        self.0.scheduler()
    }

    fn requests(&self, agent: &str) -> impl Source<Request> {
        self.0.requests(agent)
    }

    fn visibility_ms(&self) -> u64 {
        VISIBILITY_MS
    }

    fn receives_max(&self) -> u32 {
        RECEIVES_MAX
    }

    async fn pass(&self, ms: u64) {
        // Whoever begins to wait in the same moment does so before the clock moves.
        tokio::task::yield_now().await;
        self.0.advance(ms);
    }
}

tests::conformance_suite!(InMemory(Memory::new(NOON, 7)));
