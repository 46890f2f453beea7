//! The sending ends of the queues between the functions.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use domain::limits::{COMPLETE_WITHIN_MS_MAX, DELAY_MS_MAX};
use domain::message::{Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, Environment, Inserted, PortError, Queues, SourceQueue};
use domain::trace;
use rusqlite::Connection;

use crate::core::{Core, State};
use crate::dead_letters;
use crate::lock::lock;
use crate::log::Urgency;
use crate::options::{Options, QueueOptions};
use crate::queue::{Queue, delayed};
use crate::write::Write;

/// All queues.
#[derive(Debug)]
pub(crate) struct AllQueues {
    /// Its messages are also on disk.
    pub(crate) submissions: Queue<Order>,
    /// What does not come again by itself is also on disk.
    pub(crate) scheduler: Queue<SchedulerMessage>,
    requests: RwLock<BTreeMap<Arc<str>, Arc<Queue<Request>>>>,
    request_options: QueueOptions,
    /// Its messages are also on disk.
    pub(crate) dead_letters: Queue<DeadLetter>,
}

impl AllQueues {
    /// Empty queues. Their ids continue after those on disk.
    pub(crate) fn new(connection: &Connection, options: &Options) -> rusqlite::Result<Self> {
        let next = |table: &str| {
            let sql = format!("SELECT coalesce(max(message_id), 0) + 1 FROM {table}");
            connection.query_row(&sql, [], |row| row.get::<_, i64>(0))
        };
        let dead_letters = QueueOptions { receives_max: u32::MAX, visibility_ms: options.dead_letter_visibility_ms };
        Ok(Self {
            submissions: Queue::new(options.submissions, next("messages")?),
            scheduler: Queue::new(options.scheduler, next("commands")?).in_turns(SchedulerMessage::order_id),
            requests: RwLock::default(),
            request_options: options.requests,
            dead_letters: Queue::new(dead_letters, dead_letters::next_id(connection)?),
        })
    }

    /// The queue of an agent. It is created at its first use.
    pub(crate) fn agent(&self, agent: &str) -> Arc<Queue<Request>> {
        let known = self.requests.read().unwrap_or_else(PoisonError::into_inner).get(agent).cloned();
        known.unwrap_or_else(|| {
            let mut queues = self.requests.write().unwrap_or_else(PoisonError::into_inner);
            queues.entry(agent.into()).or_insert_with(|| Arc::new(Queue::new(self.request_options, 1))).clone()
        })
    }

    /// The queues of all agents.
    pub(crate) fn agents(&self) -> Vec<Arc<Queue<Request>>> {
        self.requests.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The agents that have a queue.
    pub(crate) fn agent_names(&self) -> Vec<Arc<str>> {
        self.requests.read().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// A message is now a dead letter on disk.
    pub(crate) fn buried(&self, queue: &SourceQueue, message_id: i64) {
        match queue {
            SourceQueue::Submission => self.submissions.finish(message_id),
            SourceQueue::Scheduler => self.scheduler.finish(message_id),
            SourceQueue::Agent(agent) => self.agent(agent).finish(message_id),
        }
    }

    /// Messages of a failed transaction become visible again after `delay_ms`.
    pub(crate) fn not_written(&self, delay_ms: u64) {
        // Submission handlers do not wait for their writes, so all their messages in flight come back.
        self.submissions.redeliver(delay_ms);
        self.scheduler.come_back(delay_ms);
        self.dead_letters.come_back(delay_ms);
        self.agents().iter().for_each(|queue| queue.come_back(delay_ms));
    }
}

/// The queues between the functions.
#[derive(Debug)]
pub struct EngineQueues {
    core: Arc<Core>,
    all: Arc<AllQueues>,
}

impl EngineQueues {
    pub(crate) const fn new(core: Arc<Core>, all: Arc<AllQueues>) -> Self {
        Self { core, all }
    }
}

impl Queues for EngineQueues {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        let order_id = order.order_id;
        let visible_at = delayed(delay_ms.min(DELAY_MS_MAX));
        let durable = {
            let State { live, log, .. } = &mut *lock(&self.core.state);
            let message_id = self.all.submissions.reserve();
            // The writer enqueues it once it is durable: a handler must not handle a message that can still be lost.
            let parent = trace::current();
            match log.append(Write::Accept { message_id, order, visible_at, parent }, Urgency::Awaited) {
                Ok(seq) => {
                    live.accepted(order_id, log);
                    log.wait(seq)
                }
                Err(closed) => return Err(PortError::unavailable("queues.submit", closed)),
            }
        };
        durable.reached("queues.submit").await?;
        Ok(Inserted::New)
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        let delay_ms = delay_ms.min(DELAY_MS_MAX);
        if message.comes_again() {
            self.all.scheduler.push(message, priority, delay_ms);
            return Ok(());
        }
        let message_id = self.all.scheduler.reserve();
        let not_before = self.core.clock.now().plus_ms(delay_ms);
        // The writer enqueues it, as it does with submissions.
        let write = Write::Send { message_id, message, priority, visible_at: delayed(delay_ms), not_before };
        let durable = lock(&self.core.state).log.append_awaited(write);
        durable.reached("queues.to_scheduler").await
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        let priority = request.priority;
        self.all.agent(agent).push(request, priority, 0);
        Ok(())
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        // An old receipt changes nothing: the later delivery decides.
        self.all.agent(agent).hide(receipt, delay_ms.min(COMPLETE_WITHIN_MS_MAX));
        Ok(())
    }
}
