//! The queues between the functions, and their receiving ends.

use std::sync::Arc;

use domain::limits::{COMPLETE_WITHIN_MS_MAX, DELAY_MS_MAX};
use domain::message::{Delivery, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{Clock, PortError, Queues, Source};
use serde::Serialize;

use crate::core::{State, lock};
use crate::engine::Engine;
use crate::log::{Urgency, Write};
use crate::queue::{Dead, Queue, Received};

impl Queues for Engine {
    async fn submit(&self, order: Order) -> Result<(), PortError> {
        let order_id = order.order_id;
        let durable = {
            let State { live, log, .. } = &mut *lock(&self.core().state);
            let message_id = self.core().submissions.reserve();
            // It is put into the queue by the writer: nobody may handle what can still be lost.
            match log.append(Write::Accept { message_id, order }, Urgency::Awaited) {
                Ok(seq) => {
                    live.accepted(order_id, log);
                    log.wait(seq)
                }
                Err(closed) => return Err(PortError::unavailable("queues.submit", closed)),
            }
        };
        durable.reached("queues.submit").await
    }

    async fn to_scheduler(&self, message: SchedulerMessage, delay_ms: u64) -> Result<(), PortError> {
        self.scheduler_queue().push(message, delay_ms.min(DELAY_MS_MAX));
        Ok(())
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.requests_queue(agent).push(request, 0);
        Ok(())
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        // A delivery that is not the message's last has nothing to hide: the later one decides.
        self.requests_queue(agent).hide(receipt, delay_ms.min(COMPLETE_WITHIN_MS_MAX));
        Ok(())
    }
}

/// The receiving end of the submission queue.
#[derive(Debug, Clone)]
pub struct Submissions(pub(crate) Engine);

/// The receiving end of the scheduler queue.
#[derive(Debug, Clone)]
pub struct Scheduler(pub(crate) Engine);

/// The receiving end of the queue of one agent.
#[derive(Debug, Clone)]
pub struct Requests {
    pub(crate) engine: Engine,
    pub(crate) name: Arc<str>,
    pub(crate) queue: Arc<Queue<Request>>,
}

impl Source<Order> for Submissions {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Order>> {
        loop {
            match self.0.core().submissions.receive(limit).await {
                Received::Deliveries(deliveries) => return deliveries,
                Received::Dead(dead) => self.bury(&dead),
            }
        }
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        // Under the lock of the log: a transaction that fails voids the receipts in the same moment in which it forgets
        // what was queued.
        let log = &mut lock(&self.0.core().state).log;
        for receipt in &receipts {
            if let Some((message_id, body)) = self.0.core().submissions.leave(receipt) {
                let remove = Write::Remove { message_id, order_id: body.ok().map(|order| order.order_id) };
                log.append(remove, Urgency::Lazy).map_err(|error| PortError::unavailable("source.delete", error))?;
            }
        }
        Ok(())
    }
}

impl Submissions {
    fn bury(&self, dead: &Dead<Order>) {
        let &Dead { message_id, receive_count, .. } = dead;
        tracing::error!(message_id, receive_count, "a submission is a dead letter");
        let order_id = dead.body.as_ref().ok().map(|order| order.order_id);
        let bury = Write::Bury { message_id, order_id, receive_count, at: self.0.now() };
        // When the engine is closed the message is still on the disk.
        let _ = lock(&self.0.core().state).log.append(bury, Urgency::Awaited);
    }
}

impl Source<SchedulerMessage> for Scheduler {
    async fn receive(&self, limit: usize) -> Vec<Delivery<SchedulerMessage>> {
        receive(&self.0, "scheduler", self.0.scheduler_queue(), limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        receipts.iter().for_each(|receipt| self.0.scheduler_queue().delete(receipt));
        Ok(())
    }
}

impl Source<Request> for Requests {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Request>> {
        receive(&self.engine, &self.name, &self.queue, limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        receipts.iter().for_each(|receipt| self.queue.delete(receipt));
        Ok(())
    }
}

/// Receives from a queue in memory.
async fn receive<M: Clone + Serialize>(
    engine: &Engine,
    name: &str,
    queue: &Queue<M>,
    limit: usize,
) -> Vec<Delivery<M>> {
    loop {
        match queue.receive(limit).await {
            Received::Deliveries(deliveries) => return deliveries,
            Received::Dead(dead) => bury(engine, name, queue, &dead),
        }
    }
}

/// Writes a message of a queue in memory to the dead letters. Its order is not lost with it: the supervisor finds it.
fn bury<M: Clone + Serialize>(engine: &Engine, name: &str, queue: &Queue<M>, dead: &Dead<M>) {
    let &Dead { message_id, receive_count, .. } = dead;
    tracing::error!(queue = name, message_id, receive_count, "a message is a dead letter");
    let body = match &dead.body {
        Ok(message) => serde_json::to_string(message).unwrap_or_else(|error| error.to_string()),
        Err(undecodable) => undecodable.to_string(),
    };
    let letter = Write::DeadLetter { queue: name.into(), body, receive_count, at: engine.now() };
    // When the engine is closed the message goes the way of all that is in memory.
    let _ = lock(&engine.core().state).log.append(letter, Urgency::Lazy);
    queue.finish(message_id);
}
