//! The ports in memory, with faults where a test wants them.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::id::OrderId;
use domain::message::{CloudEvent, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{Clock, Commit, Due, Events, Inserted, ListError, Page, PortError, Queues, Randomness, Store};
use domain::task::{ProcessState, Task};
use domain::time::Timestamp;
use tokio::sync::Notify;

use crate::memory::Memory;

/// What goes wrong with one call of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// It fails, and nothing has happened.
    Fails,
    /// It happens, and the answer is lost.
    AnswerLost,
    /// The caller dies at this call, before anything has happened: the call never comes back.
    DiesBefore,
    /// The caller dies at this call, after it has happened: the call never comes back.
    DiesAfter,
    /// It waits for [`Faulty::release`], and happens then.
    Waits,
}

/// The ports in memory, with faults. Cloning copies a pointer.
#[derive(Clone)]
pub struct Faulty {
    memory: Memory,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    faults: Mutex<VecDeque<(&'static str, Fault)>>,
    done: Mutex<Vec<&'static str>>,
    released: Notify,
}

impl Faulty {
    /// The same ports, with no faults as yet.
    #[must_use]
    pub fn new(memory: Memory) -> Self {
        Self { memory, shared: Arc::default() }
    }

    /// The next call of this operation, such as `store.commit`, goes wrong. Of several faults for one operation the first
    /// named comes first.
    pub fn next(&self, operation: &'static str, fault: Fault) {
        lock(&self.shared.faults).push_back((operation, fault));
    }

    /// Lets the call go on that waits.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }

    /// What has happened that can be seen from outside, in its order: writes and sends.
    #[must_use]
    pub fn done(&self) -> Vec<&'static str> {
        lock(&self.shared.done).clone()
    }

    async fn through<T>(
        &self,
        operation: &'static str,
        call: impl Future<Output = Result<T, PortError>>,
    ) -> Result<T, PortError> {
        let fault = self.fault(operation);
        match fault {
            Some(Fault::Fails) => return Err(PortError::unavailable(operation, "as the test says")),
            Some(Fault::DiesBefore) => return pending().await,
            Some(Fault::Waits) => self.shared.released.notified().await,
            Some(Fault::AnswerLost | Fault::DiesAfter) | None => {}
        }
        let answer = call.await?;
        lock(&self.shared.done).push(operation);
        match fault {
            Some(Fault::AnswerLost) => Err(PortError::unavailable(operation, "the answer is lost, as the test says")),
            Some(Fault::DiesAfter) => pending().await,
            Some(Fault::Fails | Fault::DiesBefore | Fault::Waits) | None => Ok(answer),
        }
    }

    fn fault(&self, operation: &str) -> Option<Fault> {
        let mut faults = lock(&self.shared.faults);
        let place = faults.iter().position(|(named, _)| *named == operation)?;
        faults.remove(place).map(|(_, fault)| fault)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for Faulty {
    async fn insert(&self, order: Order, task: Task) -> Result<Inserted, PortError> {
        self.through("store.insert", self.memory.insert(order, task)).await
    }

    async fn order(&self, order_id: OrderId) -> Result<Option<Arc<Order>>, PortError> {
        self.memory.order(order_id).await
    }

    async fn task(&self, order_id: OrderId) -> Result<Option<Arc<Task>>, PortError> {
        self.memory.task(order_id).await
    }

    async fn commit(&self, before: &Task, after: Arc<Task>) -> Result<Commit, PortError> {
        self.through("store.commit", self.memory.commit(before, after)).await
    }

    async fn due(&self, shard: u8, now: Timestamp, after: Option<Due>, limit: usize) -> Result<Vec<Due>, PortError> {
        self.memory.due(shard, now, after, limit).await
    }

    async fn list(&self, state: Option<ProcessState>, after: Option<&str>, limit: usize) -> Result<Page, ListError> {
        self.memory.list(state, after, limit).await
    }

    async fn settled(&self, order_id: OrderId, wait_ms: u64) -> Result<Option<Arc<Task>>, PortError> {
        self.memory.settled(order_id, wait_ms).await
    }
}

impl Queues for Faulty {
    async fn submit(&self, order: Order) -> Result<(), PortError> {
        self.through("queues.submit", self.memory.submit(order)).await
    }

    async fn to_scheduler(&self, message: SchedulerMessage, delay_ms: u64) -> Result<(), PortError> {
        self.through("queues.to_scheduler", self.memory.to_scheduler(message, delay_ms)).await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.through("queues.to_agent", self.memory.to_agent(agent, request)).await
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.through("queues.return_to_agent", self.memory.return_to_agent(agent, receipt, delay_ms)).await
    }
}

impl Events for Faulty {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.through("events.publish", self.memory.publish(event)).await
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        self.through("events.notify", self.memory.notify(channel, event)).await
    }
}

impl Clock for Faulty {
    fn now(&self) -> Timestamp {
        self.memory.now()
    }

    async fn sleep(&self, ms: u64) {
        self.memory.sleep(ms).await;
    }
}

impl Randomness for Faulty {
    fn random(&self) -> u64 {
        self.memory.random()
    }
}
