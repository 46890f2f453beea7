//! The ports as the API sees them: the engine's, but nobody waits for an order any more once the process is to stop.

use std::sync::Arc;

use domain::bulk::Job;
use domain::id::OrderId;
use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{
    Clock, Commit, DeadLetterRecord, DeadLetterRecords, Due, Events, Inserted, Jobs, Lease, LeaseRecord, Leases,
    ListError, Memos, Page, PortError, Queues, Randomness, ServiceHealth, Services, Store,
};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use tokio::select;

use crate::stop::Stop;

/// All that the functions together need from one machine.
pub trait Ports:
    Store + Queues + Events + Leases + Services + Memos + Jobs + DeadLetterRecords + Clock + Randomness + 'static
{
}

impl<P> Ports for P where
    P: Store + Queues + Events + Leases + Services + Memos + Jobs + DeadLetterRecords + Clock + Randomness + 'static
{
}

/// Passes everything on; a wait for an order ends early at a stop, with the order as it then is.
pub(super) struct StoppablePorts<P> {
    pub(super) ports: Arc<P>,
    pub(super) stop: Stop,
}

impl<P: Ports> Store for StoppablePorts<P> {
    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Arc<Task>>, PortError> {
        select! {
            settled = self.ports.settled(order_id, wait_ms) => settled,
            () = self.stop.requested() => self.ports.task(order_id).await,
        }
    }

    async fn insert(&self, order: Order, task: Task) -> Result<Inserted, PortError> {
        self.ports.insert(order, task).await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.ports.order(order_id).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.ports.task(order_id).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        self.ports.commit(before, after).await
    }

    async fn due(&self, shard: u8, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.ports.due(shard, now, after, limit).await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.ports.list(state, after, limit).await
    }
}

impl<P: Ports> Queues for StoppablePorts<P> {
    async fn submit(&self, order: Order) -> Result<(), PortError> {
        self.ports.submit(order).await
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        self.ports.to_scheduler(message, priority, delay_ms).await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.ports.to_agent(agent, request).await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.ports.return_to_agent(agent, receipt, delay_ms).await
    }
}

impl<P: Ports> Services for StoppablePorts<P> {
    async fn health(&self, service: &str) -> Result<Option<ServiceHealth>, PortError> {
        self.ports.health(service).await
    }

    async fn set_health(&self, version_before: u64, after: ServiceHealth) -> Result<Commit, PortError> {
        self.ports.set_health(version_before, after).await
    }

    async fn all_health(&self) -> Result<Vec<ServiceHealth>, PortError> {
        self.ports.all_health().await
    }
}

impl<P: Ports> Leases for StoppablePorts<P> {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        self.ports.acquire(name, owner, now, term_ms).await
    }

    async fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> Result<Option<Lease>, PortError> {
        self.ports.renew(lease, now, term_ms, health).await
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        self.ports.release(lease).await
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        self.ports.all_leases().await
    }
}

impl<P: Ports> Jobs for StoppablePorts<P> {
    async fn job(&self, job_id: &str) -> Result<Option<Arc<Job>>, PortError> {
        self.ports.job(job_id).await
    }

    async fn set_job(&self, version_before: u64, job: Arc<Job>) -> Result<Commit, PortError> {
        self.ports.set_job(version_before, job).await
    }

    async fn jobs(&self) -> Result<Vec<Arc<Job>>, PortError> {
        self.ports.jobs().await
    }
}

impl<P: Ports> DeadLetterRecords for StoppablePorts<P> {
    async fn record(&self, settled: DeadLetterRecord) -> Result<(), PortError> {
        self.ports.record(settled).await
    }

    async fn dead_letter_records(&self, limit: usize) -> Result<Vec<DeadLetterRecord>, PortError> {
        self.ports.dead_letter_records(limit).await
    }
}

impl<P: Ports> Clock for StoppablePorts<P> {
    fn now(&self) -> Timestamp {
        self.ports.now()
    }

    async fn sleep(&self, ms: u64) {
        self.ports.sleep(ms).await;
    }
}

impl<P: Ports> Randomness for StoppablePorts<P> {
    fn random(&self) -> u64 {
        self.ports.random()
    }
}
