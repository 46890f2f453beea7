//! All ports of a function on AWS, in one.

use std::sync::Arc;

use domain::bulk::Job;
use domain::id::OrderId;
use domain::instance::Instance;
use domain::message::{CloudEvent, Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Clock, Commit, DeadLetterRecord, DeadLetterRecords, Due, Events, Inserted, Jobs, Lease, LeaseRecord, Leases,
    ListError, Memo, Memos, Page, PortError, Queues, Randomness, ServiceHealth, Services, Store,
};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use domain::workflow::WorkflowError;

use crate::bus::Bus;
use crate::clients::{Clients, TlsError};
use crate::config::{Config, Function};
use crate::dynamo::Dynamo;
use crate::queues::Sqs;
pub use crate::world::NoRandomness;
use crate::world::{Random, now, sleep};

/// All ports. A handler's signature says which of them it uses, and the function's role which of them it may.
#[derive(Debug)]
pub struct Ports {
    dynamo: Dynamo,
    sqs: Sqs,
    bus: Bus,
    random: Arc<Random>,
}

/// The ports cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PortsError {
    /// No root certificates.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// No random bits.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl Ports {
    /// The ports of this configuration. No connection is made yet.
    ///
    /// # Errors
    /// [`PortsError`], which has nothing to do with the configuration.
    pub fn new(config: &Config) -> Result<Self, PortsError> {
        let Clients { dynamodb, sqs, eventbridge } = Clients::new(&config.access)?;
        let random = Arc::new(Random::seeded()?);
        let dynamo = Dynamo::new(dynamodb, config.tables.clone(), config.shards);
        let sqs = Sqs::new(sqs, config.queues.clone(), random.clone());
        let (event_bus, channels) = (config.event_bus.clone(), config.reply_channels.clone());
        let bus = Bus::new(eventbridge, event_bus, sqs.sender().clone(), channels, random.clone());
        Ok(Self { dynamo, sqs, bus, random })
    }

    /// Who this process is, of all that run at the same time.
    ///
    /// # Errors
    /// [`WorkflowError`] when a shipped workflow is wrong; a test of `domain` makes sure that none is.
    pub fn instance(&self, config: &Config, function: Function) -> Result<Instance, WorkflowError> {
        config.instance(&function.to_string(), self.random())
    }
}

impl Store for Ports {
    async fn insert(&self, order: Order, task: Task) -> Result<Inserted, PortError> {
        self.dynamo.insert(order, task).await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.dynamo.order(order_id).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.dynamo.task(order_id).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        self.dynamo.commit(before, after).await
    }

    async fn due(&self, shard: u8, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.dynamo.due(shard, now, after, limit).await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.dynamo.list(state, after, limit).await
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Arc<Task>>, PortError> {
        self.dynamo.settled(order_id, wait_ms).await
    }
}

impl Queues for Ports {
    async fn submit(&self, order: Order) -> Result<(), PortError> {
        self.sqs.submit(order).await
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.sqs.to_scheduler(message, priority, delay_ms).await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.sqs.to_agent(agent, request).await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.sqs.return_to_agent(agent, receipt, delay_ms).await
    }
}

impl Events for Ports {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.bus.publish(event).await
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        self.bus.notify(channel, event).await
    }
}

impl Leases for Ports {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        self.dynamo.acquire(name, owner, now, term_ms).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> Result<Option<Lease>, PortError> {
        self.dynamo.renew(lease, now, term_ms, health).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        self.dynamo.release(lease).await
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        self.dynamo.all_leases().await
    }
}

impl Services for Ports {
    async fn health(&self, service: &str) -> Result<Option<ServiceHealth>, PortError> {
        self.dynamo.health(service).await
    }

    async fn set_health(&self, version_before: u64, after: ServiceHealth) -> Result<Commit, PortError> {
        self.dynamo.set_health(version_before, after).await
    }

    async fn all_health(&self) -> Result<Vec<ServiceHealth>, PortError> {
        self.dynamo.all_health().await
    }
}

impl Memos for Ports {
    async fn memo(&self, key: &str, now: Timestamp) -> Result<Option<Memo>, PortError> {
        self.dynamo.memo(key, now).await
    }

    async fn set_memo(&self, version_before: u64, memo: Memo, now: Timestamp) -> Result<Commit, PortError> {
        self.dynamo.set_memo(version_before, memo, now).await
    }
}

impl Jobs for Ports {
    async fn job(&self, job_id: &str) -> Result<Option<Arc<Job>>, PortError> {
        self.dynamo.job(job_id).await
    }

    async fn set_job(&self, version_before: u64, job: Arc<Job>) -> Result<Commit, PortError> {
        self.dynamo.set_job(version_before, job).await
    }

    async fn jobs(&self) -> Result<Vec<Arc<Job>>, PortError> {
        self.dynamo.jobs().await
    }
}

impl DeadLetterRecords for Ports {
    async fn record(&self, settled: DeadLetterRecord) -> Result<(), PortError> {
        self.dynamo.record(settled).await
    }

    async fn dead_letter_records(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, PortError> {
        self.dynamo.dead_letter_records(limit).await
    }
}

impl Clock for Ports {
    fn now(&self) -> Timestamp {
        now()
    }

    async fn sleep(&self, ms: u64) {
        sleep(ms).await;
    }
}

impl Randomness for Ports {
    fn random(&self) -> u64 {
        self.random.next()
    }
}
