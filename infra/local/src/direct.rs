//! The ports of the API on one machine: an accepted order is stored at once.
//!
//! On AWS an order waits on the submission queue until the store can take it. Here queue and store are one file, so a
//! message would only be written, handled and deleted. The submission does its work within the request instead.

use std::sync::Arc;

use domain::has_parts;
use domain::instance::Instance;
use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    HasDeadLetterRecords, HasEnvironment, HasLeases, HasRecords, HasStore, Inserted, PortError, Queues,
};
use submission::SubmissionPorts;
use tracing::Instrument;

/// The ports of the API over those of the submission.
#[derive(Debug, Clone)]
pub struct Direct<P> {
    ports: P,
    submission: Option<Arc<Instance>>,
}

impl<P> Direct<P> {
    /// Stores orders in the name of this instance. `None`: orders wait on the submission queue.
    pub const fn new(ports: P, submission: Option<Arc<Instance>>) -> Self {
        Self { ports, submission }
    }

    /// The ports below.
    pub const fn ports(&self) -> &P {
        &self.ports
    }
}

impl<P: SubmissionPorts + Clone + 'static> Queues for Direct<P> {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        let Some(instance) = self.submission.clone() else {
            return self.ports.queues().submit(order, delay_ms).await;
        };
        let ports = self.ports.clone();
        // It goes on when the client hangs up: an order that is stored must also be woken.
        let submitting = async move { submission::submit(&ports, &instance, order).await };
        let submitted = tokio::spawn(submitting.in_current_span()).await;
        submitted.unwrap_or_else(|panic| Err(PortError::unavailable("queues.submit", panic)))
    }

    fn knows_orders(&self) -> bool {
        self.submission.is_some() || self.ports.queues().knows_orders()
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.ports.queues().to_scheduler(message, priority, delay_ms).await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.ports.queues().to_agent(agent, request).await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.ports.queues().return_to_agent(agent, receipt, delay_ms).await
    }
}

has_parts!([P: HasStore] Direct<P> {
    HasStore, Store = P::Store, store: |direct| direct.ports.store();
});
has_parts!([P: HasRecords] Direct<P> {
    HasRecords, Records = P::Records, records: |direct| direct.ports.records();
});
has_parts!([P: HasLeases] Direct<P> {
    HasLeases, Leases = P::Leases, leases: |direct| direct.ports.leases();
});
has_parts!([P: HasDeadLetterRecords] Direct<P> {
    HasDeadLetterRecords, DeadLetterRecords = P::DeadLetterRecords, dead_letter_records: |direct| direct.ports.dead_letter_records();
});
has_parts!([P: HasEnvironment] Direct<P> {
    HasEnvironment, Environment = P::Environment, environment: |direct| direct.ports.environment();
});

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::definition::Catalogue;
    use domain::id::OrderId;
    use domain::json::Json;
    use domain::limits::SHARDS;
    use domain::ports::{Source, Store};
    use domain::time::Timestamp;
    use domain::workflow::Workflows;
    use embedded::{Engine, Options};
    use futures_util::FutureExt;

    use super::*;

    fn order() -> Order {
        let document = Json::document(br#"{"Item": "book"}"#).unwrap();
        Order {
            order_id: OrderId::from_idempotency_key("shop", "k"),
            fingerprint: document.fingerprint().into(),
            document,
            submitted_at: Timestamp::from_epoch_ms(1_795_176_000_000),
            submitter: "shop".into(),
            reply_channel: None,
            correlation_id: None,
            priority: None,
            workflow: None,
            terms: Vec::new(),
            again_of: None,
        }
    }

    fn direct(engine: &Engine) -> Direct<Engine> {
        let catalogue = Catalogue::new(Workflows::shipped().unwrap());
        Direct::new(engine.clone(), Some(Arc::new(Instance { name: "submission".into(), catalogue, shards: SHARDS })))
    }

    #[tokio::test]
    async fn an_order_is_stored_without_a_message_and_a_repeat_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let other = Order { fingerprint: "another".into(), ..order() };
        for (order, expected) in [(order(), Inserted::New), (order(), Inserted::Same), (other, Inserted::Different)] {
            assert_eq!(direct(&engine).submit(order, 0).await.unwrap(), expected);
        }
        let stats = engine.stats();
        assert_eq!((stats.submissions, stats.scheduler, stats.transactions), (0, 2, 1));
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a test that fails instead of waiting for ever")]
    async fn an_order_whose_client_hangs_up_is_woken() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        assert!(direct(&engine).submit(order(), 0).now_or_never().is_none());
        let wakes = tokio::time::timeout(Duration::from_secs(60), engine.scheduler().receive(10)).await.unwrap();
        assert_eq!(wakes.len(), 1);
        assert!(engine.store().task(order().order_id).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn while_paused_an_order_waits_on_the_queue() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let paused = Direct::new(engine.clone(), None);
        assert_eq!((paused.knows_orders(), paused.submit(order(), 0).await.unwrap()), (false, Inserted::New));
        assert_eq!(engine.stats().submissions, 1);
    }
}
