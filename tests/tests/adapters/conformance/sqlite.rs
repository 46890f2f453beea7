//! The conformance suite on the one-machine engine.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use domain::message::{CloudEvent, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, Source};
use embedded::{Channel, Engine, Options, QueueOptions};
use tempfile::TempDir;
use tests::conformance::{StoreWorld, World};

const QUEUES: QueueOptions = QueueOptions { receives_max: 4, visibility_ms: 60_000 };

struct OnSqlite {
    engine: Engine,
    shop: Arc<Mutex<Vec<CloudEvent>>>,
    _directory: TempDir,
}

fn fresh() -> OnSqlite {
    let directory = tempfile::tempdir().unwrap();
    let shop = Arc::<Mutex<Vec<CloudEvent>>>::default();
    let taken = shop.clone();
    let channel: Channel = Arc::new(move |event| {
        let taken = taken.clone();
        Box::pin(async move {
            taken.lock().unwrap().push(event);
            Ok(())
        })
    });
    let options = Options {
        submissions: QUEUES,
        scheduler: QUEUES,
        requests: QUEUES,
        dead_letter_visibility_ms: QUEUES.visibility_ms,
        channels: BTreeMap::from([("shop".into(), channel)]),
        clock_rest_ms: 0,
        ..Options::default()
    };
    OnSqlite { engine: Engine::open(directory.path(), options).unwrap(), shop, _directory: directory }
}

impl StoreWorld for OnSqlite {
    type Ports = Engine;

    fn ports(&self) -> &Engine {
        &self.engine
    }

    #[expect(clippy::disallowed_methods, reason = "the engine's queues are on the clock of the runtime")]
    async fn pass(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

impl World for OnSqlite {
    fn submissions(&self) -> impl Source<Order> {
        self.engine.submissions()
    }

    fn scheduler(&self) -> impl Source<SchedulerMessage> {
        self.engine.scheduler()
    }

    fn requests(&self, agent: &str) -> impl Source<Request> {
        self.engine.requests(agent)
    }

    fn dead_letters(&self) -> impl Source<DeadLetter> {
        self.engine.dead_letters()
    }

    fn taken_by_shop(&self) -> Vec<CloudEvent> {
        self.shop.lock().unwrap().clone()
    }

    fn visibility_ms(&self) -> u64 {
        QUEUES.visibility_ms
    }

    fn receives_max(&self) -> u32 {
        QUEUES.receives_max
    }
}

tests::conformance_suite!(fresh());
