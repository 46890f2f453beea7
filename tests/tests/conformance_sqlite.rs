//! The conformance suite on the one-machine engine.

use std::time::Duration;

use domain::message::{Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::Source;
use embedded::{Engine, Options, QueueOptions};
use tempfile::TempDir;
use tests::conformance::World;

const QUEUES: QueueOptions = QueueOptions { receives_max: 4, visibility_ms: 60_000 };

struct OnSqlite {
    engine: Engine,
    _directory: TempDir,
}

fn fresh() -> OnSqlite {
    let directory = tempfile::tempdir().unwrap();
    let options = Options { submissions: QUEUES, scheduler: QUEUES, requests: QUEUES, ..Options::default() };
    OnSqlite { engine: Engine::open(directory.path(), options).unwrap(), _directory: directory }
}

impl World for OnSqlite {
    type Ports = Engine;

    fn ports(&self) -> &Engine {
        &self.engine
    }

    fn submissions(&self) -> impl Source<Order> {
        self.engine.submissions()
    }

    fn scheduler(&self) -> impl Source<SchedulerMessage> {
        self.engine.scheduler()
    }

    fn requests(&self, agent: &str) -> impl Source<Request> {
        self.engine.requests(agent)
    }

    fn visibility_ms(&self) -> u64 {
        QUEUES.visibility_ms
    }

    fn receives_max(&self) -> u32 {
        QUEUES.receives_max
    }

    #[expect(clippy::disallowed_methods, reason = "the engine's queues are on the clock of the runtime")]
    async fn pass(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

tests::conformance_suite!(fresh());
