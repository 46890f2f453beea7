//! The DynamoDB ports with faults on the network, and their costs.

mod commit;
mod erase;
mod insert;
mod lists;
pub(crate) mod local;
mod numbers;
mod rate;
mod records;
mod units;
mod waits;
mod way;

use aws::dynamo::Dynamo;

use local::Local;
use way::Way;

/// A DynamoDB, its ports, and the network between them.
struct World {
    store: Dynamo,
    way: Way,
    local: Local,
}

impl World {
    async fn new() -> Self {
        let local = Local::start().await;
        let (way, config) = Way::of(local.config());
        Self { store: local.ports(config), way, local }
    }

    /// The number of requests of an operation.
    fn count(&self, operation: &str) -> usize {
        self.way.sent().iter().filter(|sent| sent.operation == operation).count()
    }
}
