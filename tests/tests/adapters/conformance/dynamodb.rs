//! The part of the conformance suite without queues, on the DynamoDB ports.

use std::time::Duration;

use aws::dynamo::Dynamo;
use aws_sdk_dynamodb::types::AttributeValue;
use domain::order::Order;
use domain::ports::{Inserted, Store};
use domain::tally::{Batch, Change};
use domain::task::Task;
use tests::conformance::StoreWorld;
use tests::conformance::samples::NOON;

use crate::dynamodb::local::Local;

struct OnDynamo {
    ports: Dynamo,
    local: Local,
}

async fn fresh() -> OnDynamo {
    let local = Local::start().await;
    OnDynamo { ports: local.ports(local.config()), local }
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

    /// The order is stored, and its task is not.
    async fn cut_short(&self, order: &Order, task: &Task) {
        assert_eq!(self.ports.insert(order.clone().into(), task.clone().into()).await.unwrap(), Inserted::New);
        let delete = self.local.client().delete_item().table_name(&self.local.tables.tasks);
        delete.key("OrderID", AttributeValue::S(order.order_id.to_string())).send().await.unwrap();
    }

    async fn expire(&self, task: &Task) {
        self.local.delete_as_by_ttl(task).await;
        let change = Change { sequence: "1".into(), at: NOON, before: Some(task.clone()), after: None };
        self.ports.forget(&Batch { changes: vec![change], ..Batch::default() }).await.unwrap();
    }
}

tests::store_conformance_suite!(fresh().await);
