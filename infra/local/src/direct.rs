//! The ports of the API on one machine: an accepted order is stored at once.
//!
//! On AWS an order waits on the submission queue until the store can take it. Here queue and store are one file, so a
//! message would only be written, handled and deleted. The submission does its work within the request instead.

use std::sync::Arc;

use domain::advance::{AdvanceError, AdvancePorts, follow_up};
use domain::has_parts;
use domain::instance::Instance;
use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{HasEnvironment, HasRecords, HasStore, Inserted, PortError, Queues};
use domain::trace;
use tokio::sync::{Semaphore, oneshot};
use tracing::{Instrument, Span};

use crate::host_time::within;

/// New orders whose messages are being sent, at most. A post waits for room.
const FOLLOW_UPS_MAX: u32 = 1_024;

/// The ports of the API over those of the submission.
#[derive(Debug, Clone)]
pub struct Direct<P> {
    ports: P,
    submission: Option<Arc<Instance>>,
    follow_ups: FollowUps,
}

/// What is still sent for new orders, after their posts were answered.
#[derive(Debug, Clone)]
pub struct FollowUps(Arc<Semaphore>);

impl FollowUps {
    /// Waits until the messages of new orders are sent, for at most `grace_ms`. The API must have stopped.
    pub async fn wait(&self, grace_ms: u64) {
        if within(grace_ms, self.0.acquire_many(FOLLOW_UPS_MAX)).await.is_none() {
            tracing::info!("messages of new orders were not all sent; the next start sends them");
        }
    }
}

impl<P> Direct<P> {
    /// Stores orders in the name of this instance. `None`: orders wait on the submission queue.
    pub fn new(ports: P, submission: Option<Arc<Instance>>) -> Self {
        Self { ports, submission, follow_ups: FollowUps(Arc::new(Semaphore::new(FOLLOW_UPS_MAX as usize))) }
    }

    /// The ports below.
    pub const fn ports(&self) -> &P {
        &self.ports
    }

    /// What is still sent.
    pub fn follow_ups(&self) -> FollowUps {
        self.follow_ups.clone()
    }
}

impl<P: AdvancePorts + Clone + 'static> Queues for Direct<P> {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        const OPERATION: &str = "queues.submit";
        let Some(instance) = self.submission.clone() else {
            return self.ports.queues().submit(order, delay_ms).await;
        };
        let room = self.follow_ups.0.clone().acquire_owned().await;
        let room = room.map_err(|closed| PortError::unavailable(OPERATION, closed))?;
        let (ports, order_id) = (self.ports.clone(), order.order_id);
        let (parent, here) = (trace::current(), Span::current());
        let (stored, answer) = oneshot::channel();
        // It goes on when the client hangs up: the requests of an order that is stored must also be sent. The client is
        // answered before, since a reply channel may be slow.
        tokio::spawn(async move {
            let _room = room;
            let begun = match submission::store(&ports, &instance, order).instrument(here).await {
                Ok(begun) => begun,
                Err(error) => {
                    // A client that hung up needs no answer.
                    let _ = stored.send(Err(error));
                    return;
                }
            };
            let _ = stored.send(Ok(begun.inserted));
            let sent = follow_up(&ports, &instance, begun, false).instrument(trace::begun(order_id, parent));
            if let Err(error) = sent.await {
                tracing::warn!(%order_id, "not all that follows from the new order was sent: {error}");
            }
        });
        match answer.await {
            Ok(Ok(inserted)) => Ok(inserted),
            Ok(Err(AdvanceError::Port(error))) => Err(error),
            Ok(Err(error)) => Err(PortError::refused(OPERATION, error)),
            Err(_) => Err(PortError::unavailable(OPERATION, "it panicked")),
        }
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
has_parts!([P: HasEnvironment] Direct<P> {
    HasEnvironment, Environment = P::Environment, environment: |direct| direct.ports.environment();
});

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use domain::definition::Catalogue;
    use domain::limits::SHARDS;
    use domain::ports::{Source, Store};
    use domain::time::Timestamp;
    use domain::workflow::Workflows;
    use embedded::{Engine, Options};
    use futures_util::FutureExt;
    use tokio::runtime::Handle;

    use super::*;

    fn order() -> Order {
        let at = Timestamp::from_epoch_ms(1_795_176_000_000);
        memory::sample::order("shop", "k", r#"{"Item": "book"}"#, at)
    }

    fn direct(engine: &Engine) -> Direct<Engine> {
        let catalogue = Catalogue::new(Workflows::shipped().unwrap());
        Direct::new(engine.clone(), Some(Arc::new(Instance { name: "submission".into(), catalogue, shards: SHARDS })))
    }

    #[tokio::test]
    async fn an_order_is_stored_without_a_message_and_begun_once_and_a_repeat_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let other = Order { fingerprint: "another".into(), ..order() };
        for (order, expected) in [(order(), Inserted::New), (order(), Inserted::Same), (other, Inserted::Different)] {
            assert_eq!(direct(&engine).submit(order, 0).await.unwrap(), expected);
        }
        let stats = engine.stats();
        assert_eq!((stats.submissions, stats.scheduler, stats.transactions), (0, 0, 1));
        assert_eq!(engine.requests("inventory").receive(10).await.len(), 1);
    }

    #[tokio::test]
    async fn an_order_whose_client_hangs_up_is_begun_and_a_stop_waits_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let direct = direct(&engine);
        assert!(direct.submit(order(), 0).now_or_never().is_none());
        direct.follow_ups().wait(60_000).await;
        let requests = engine.requests("inventory").receive(10).now_or_never().expect("it was sent before");
        assert_eq!(requests.len(), 1);
        assert!(engine.store().task(order().order_id).await.unwrap().is_some());
    }

    #[tokio::test]
    async fn a_post_waits_while_too_much_is_still_to_be_sent() {
        let directory = tempfile::tempdir().unwrap();
        let engine = Engine::open(directory.path(), Options::default()).unwrap();
        let direct = direct(&engine);
        let all = direct.follow_ups.0.clone().acquire_many_owned(FOLLOW_UPS_MAX).await.unwrap();
        let tasks = || Handle::current().metrics().num_alive_tasks();
        let before = tasks();
        let mut posting = pin!(direct.submit(order(), 0));
        assert!(posting.as_mut().now_or_never().is_none());
        assert_eq!(tasks(), before, "it has not begun");
        drop(all);
        assert_eq!(posting.await.unwrap(), Inserted::New);
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
