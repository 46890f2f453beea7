//! The part of the conformance suite without queues, on the DynamoDB ports.

use std::time::Duration;

use aws::dynamo::Dynamo;
use tests::conformance::StoreWorld;

use crate::dynamodb::local::Local;

struct OnDynamo {
    ports: Dynamo,
    _local: Local,
}

async fn fresh() -> OnDynamo {
    let local = Local::start().await;
    OnDynamo { ports: local.ports(local.config()), _local: local }
}

impl StoreWorld for OnDynamo {
    type Ports = Dynamo;

    fn ports(&self) -> &Dynamo {
        &self.ports
    }

    #[expect(clippy::disallowed_methods, reason = "whoever waits for a task here waits on the runtime's clock")]
    async fn pass(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}

tests::store_conformance_suite!(fresh().await);
