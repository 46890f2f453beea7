//! The receiving ends of the queues.
//!
//! A message that was delivered too often leaves its queue only when it is on disk as a dead letter. If the write
//! fails, the message comes back, and the next receive finds it again. The dead letters have no delivery limit: each
//! dead letter is delivered until it is deleted.

use std::sync::Arc;

use domain::message::{Delivery, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, Environment, PortError, Source, SourceQueue};
use serde::Serialize;

use crate::core::State;
use crate::engine::Engine;
use crate::lock::lock;
use crate::log::Urgency;
use crate::queue::{Dead, Queue, Received};
use crate::write::{Burial, Remains, Write};

impl Engine {
    /// The receiving end of the submission queue.
    #[must_use]
    pub fn submissions(&self) -> Submissions {
        Submissions(self.clone())
    }

    /// The receiving end of the scheduler queue.
    #[must_use]
    pub fn scheduler(&self) -> Scheduler {
        Scheduler(self.clone())
    }

    /// The receiving end of an agent's queue.
    #[must_use]
    pub fn requests(&self, agent: &str) -> Requests {
        Requests { engine: self.clone(), agent: agent.into(), queue: self.all_queues().agent(agent) }
    }

    /// The agents that have a queue: it appears with the first request or the first receiver.
    #[must_use]
    pub fn agents(&self) -> Vec<Arc<str>> {
        self.all_queues().agent_names()
    }

    /// The receiving end of the dead letters of all queues.
    #[must_use]
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters(self.clone())
    }
}

/// The receiving end of the submission queue.
#[derive(Debug, Clone)]
pub struct Submissions(Engine);

/// The receiving end of the scheduler queue.
#[derive(Debug, Clone)]
pub struct Scheduler(Engine);

/// The receiving end of the queue of one agent.
#[derive(Debug, Clone)]
pub struct Requests {
    engine: Engine,
    agent: Arc<str>,
    queue: Arc<Queue<Request>>,
}

/// The receiving end of the dead letters of all queues.
#[derive(Debug, Clone)]
pub struct DeadLetters(Engine);

impl Source<Order> for Submissions {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Order>> {
        loop {
            match self.0.all_queues().submissions.receive(limit).await {
                Received::Deliveries(deliveries) => return deliveries,
                Received::Dead(dead) => self.0.bury_submission(&dead),
            }
        }
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        // This runs under the lock of the log. A failed transaction voids the receipts and discards the queued writes
        // under the same lock.
        let log = &mut lock(&self.0.core().state).log;
        for receipt in &receipts {
            if let Some((message_id, body)) = self.0.all_queues().submissions.leave(receipt) {
                let remove = Write::Remove { message_id, order_id: body.ok().map(|order| order.order_id) };
                log.append(remove, Urgency::Lazy).map_err(|error| PortError::unavailable("source.delete", error))?;
            }
        }
        Ok(())
    }
}

impl Source<SchedulerMessage> for Scheduler {
    async fn receive(&self, limit: usize) -> Vec<Delivery<SchedulerMessage>> {
        receive(&self.0, &SourceQueue::Scheduler, &self.0.all_queues().scheduler, limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        for receipt in &receipts {
            if let Some(message_id) = self.0.all_queues().scheduler.delete(receipt) {
                let write = Write::RemoveSent { message_id };
                let queued = lock(&self.0.core().state).log.append(write, Urgency::Lazy);
                queued.map_err(|error| PortError::unavailable("source.delete", error))?;
            }
        }
        Ok(())
    }
}

impl Source<Request> for Requests {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Request>> {
        receive(&self.engine, &SourceQueue::Agent(self.agent.clone()), &self.queue, limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        for receipt in &receipts {
            // None of these messages is on disk, so no write is needed.
            let _ = self.queue.delete(receipt);
        }
        Ok(())
    }
}

impl Source<DeadLetter> for DeadLetters {
    async fn receive(&self, limit: usize) -> Vec<Delivery<DeadLetter>> {
        loop {
            match self.0.all_queues().dead_letters.receive(limit).await {
                Received::Deliveries(deliveries) => return deliveries,
                // This takes about four billion deliveries. The dead letter is still on disk.
                Received::Dead(dead) => self.0.all_queues().dead_letters.finish(dead.message_id),
            }
        }
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        let mut last = None;
        {
            let State { log, .. } = &mut *lock(&self.0.core().state);
            for receipt in &receipts {
                if let Some(dead_letter_id) = self.0.all_queues().dead_letters.delete(receipt) {
                    last = Some(log.append_awaited(Write::RemoveDeadLetter { dead_letter_id }));
                }
            }
        }
        match last {
            Some(durable) => durable.reached("source.delete").await,
            None => Ok(()),
        }
    }
}

async fn receive<M: Clone + Serialize>(
    engine: &Engine,
    name: &SourceQueue,
    queue: &Queue<M>,
    limit: usize,
) -> Vec<Delivery<M>> {
    loop {
        match queue.receive(limit).await {
            Received::Deliveries(deliveries) => return deliveries,
            Received::Dead(dead) => engine.bury_message(name.clone(), &dead),
        }
    }
}

impl Engine {
    /// Moves a message of the submission queue to the dead letters.
    fn bury_submission(&self, dead: &Dead<Order>) {
        let order_id = dead.body.as_ref().ok().map(|order| order.order_id);
        self.bury(SourceQueue::Submission, dead, Remains::Submission(order_id));
    }

    /// Moves a message of the scheduler queue or of an agent's queue to the dead letters.
    fn bury_message<M: Serialize>(&self, queue: SourceQueue, dead: &Dead<M>) {
        let remains = match &dead.body {
            _ if dead.is_stored => Remains::Sent,
            Ok(message) => Remains::Body(serde_json::to_string(message).unwrap_or_else(|error| error.to_string())),
            Err(undecodable) => Remains::Body(undecodable.to_string()),
        };
        self.bury(queue, dead, remains);
    }

    fn bury<M>(&self, queue: SourceQueue, dead: &Dead<M>, remains: Remains) {
        let &Dead { message_id, receive_count, .. } = dead;
        let dead_letter_id = self.all_queues().dead_letters.reserve();
        tracing::error!(%queue, message_id, receive_count, dead_letter_id, "a message is a dead letter");
        let burial = Burial { dead_letter_id, queue, message_id, receive_count, at: self.core().clock.now(), remains };
        // No caller waits, but the write is not lazy: until it is on disk, the message may exist only in memory. If the
        // engine is closed, a message on disk stays there. A message in memory is lost, as all state in memory is.
        let _ = lock(&self.core().state).log.append(Write::Bury(burial), Urgency::Awaited);
    }
}
