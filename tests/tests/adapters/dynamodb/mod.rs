//! The ports on DynamoDB where things go wrong on the way, and what they cost.

mod commit;
mod insert;
mod lists;
pub(crate) mod local;
mod records;
mod units;
mod waits;
mod way;

use aws::dynamo::Dynamo;

use local::Local;
use way::Way;

/// A DynamoDB, the ports on it, and the way between them.
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

    /// Requests of an operation.
    fn count(&self, operation: &str) -> usize {
        self.way.sent().iter().filter(|sent| sent.operation == operation).count()
    }
}
