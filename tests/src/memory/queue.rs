//! The queues between the functions, and their receiving ends.

use std::collections::BTreeMap;

use domain::message::{Delivery, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{PortError, Queues, Source};
use domain::time::Timestamp;

use super::{Memory, State};

/// How long a message that was received is hidden, in milliseconds.
pub const VISIBILITY_MS: u64 = 60_000;
/// Deliveries after which a message becomes a dead letter.
pub const RECEIVES_MAX: u32 = 10;

/// A message that was delivered too often.
#[derive(Debug, Clone)]
pub enum DeadLetter {
    /// From the submission queue.
    Submission(Order),
    /// From the scheduler queue.
    Scheduler(SchedulerMessage),
    /// From an agent's queue.
    Request(Request),
}

/// A queue of one kind of message.
pub(super) struct MemoryQueue<M> {
    last_id: u64,
    held: BTreeMap<u64, Held<M>>,
}

struct Held<M> {
    body: M,
    visible_at: Timestamp,
    receive_count: u32,
}

impl<M> Default for MemoryQueue<M> {
    fn default() -> Self {
        Self { last_id: 0, held: BTreeMap::new() }
    }
}

impl<M: Clone> MemoryQueue<M> {
    pub(super) fn bodies(&self) -> impl Iterator<Item = &M> {
        self.held.values().map(|held| &held.body)
    }

    fn push(&mut self, body: M, visible_at: Timestamp) {
        self.last_id += 1;
        self.held.insert(self.last_id, Held { body, visible_at, receive_count: 0 });
    }

    /// Takes out what was delivered too often.
    fn dead(&mut self, now: Timestamp) -> Vec<M> {
        let is_dead = |held: &Held<M>| held.visible_at <= now && held.receive_count >= RECEIVES_MAX;
        let dead: Vec<u64> = self.held.iter().filter(|(_, held)| is_dead(held)).map(|(id, _)| *id).collect();
        dead.iter().filter_map(|id| self.held.remove(id)).map(|held| held.body).collect()
    }

    fn receive(&mut self, now: Timestamp, limit: usize) -> Option<Vec<Delivery<M>>> {
        let visible = self.held.iter_mut().filter(|(_, held)| held.visible_at <= now).take(limit);
        let deliveries: Vec<_> = visible
            .map(|(id, held)| {
                held.visible_at = now.plus_ms(VISIBILITY_MS);
                held.receive_count += 1;
                Delivery { receipt: receipt(*id, held), receive_count: held.receive_count, body: Ok(held.body.clone()) }
            })
            .collect();
        (!deliveries.is_empty()).then_some(deliveries)
    }

    fn find(&mut self, wanted: &Receipt) -> Option<u64> {
        let id = wanted.message_id.parse().ok()?;
        self.held.get(&id).filter(|held| receipt(id, held) == *wanted).map(|_| id)
    }

    fn delete(&mut self, receipts: &[Receipt]) {
        for receipt in receipts {
            if let Some(id) = self.find(receipt) {
                self.held.remove(&id);
            }
        }
    }
}

/// The receipt of a message's last delivery.
fn receipt<M>(id: u64, held: &Held<M>) -> Receipt {
    Receipt { message_id: id.to_string().into(), handle: held.receive_count.to_string().into() }
}

impl Queues for Memory {
    async fn submit(&self, order: Order) -> Result<(), PortError> {
        self.change(|state| state.submissions.push(order, state.now));
        Ok(())
    }

    async fn to_scheduler(&self, message: SchedulerMessage, delay_ms: u64) -> Result<(), PortError> {
        self.change(|state| state.scheduler.push(message, state.now.plus_ms(delay_ms)));
        Ok(())
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.change(|state| {
            let now = state.now;
            state.requests_of(agent).push(request, now);
        });
        Ok(())
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.change(|state| {
            let visible_at = state.now.plus_ms(delay_ms);
            let queue = state.requests_of(agent);
            if let Some(held) = queue.find(receipt).and_then(|id| queue.held.get_mut(&id)) {
                held.visible_at = visible_at;
            }
        });
        Ok(())
    }
}

impl State {
    fn requests_of(&mut self, agent: &str) -> &mut MemoryQueue<Request> {
        self.requests.entry(agent.to_owned()).or_default()
    }
}

/// The receiving end of the submission queue.
#[derive(Clone)]
pub struct Submissions(Memory);

/// The receiving end of the scheduler queue.
#[derive(Clone)]
pub struct Scheduler(Memory);

/// The receiving end of an agent's queue.
#[derive(Clone)]
pub struct Requests(Memory, String);

impl Memory {
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
        Requests(self.clone(), agent.to_owned())
    }
}

impl Source<Order> for Submissions {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Order>> {
        let take = |state: &mut State| {
            state.dead_letters.extend(state.submissions.dead(state.now).into_iter().map(DeadLetter::Submission));
            state.submissions.receive(state.now, limit)
        };
        self.0.until(take).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.change(|state| state.submissions.delete(&receipts));
        Ok(())
    }
}

impl Source<SchedulerMessage> for Scheduler {
    async fn receive(&self, limit: usize) -> Vec<Delivery<SchedulerMessage>> {
        let take = |state: &mut State| {
            state.dead_letters.extend(state.scheduler.dead(state.now).into_iter().map(DeadLetter::Scheduler));
            state.scheduler.receive(state.now, limit)
        };
        self.0.until(take).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.change(|state| state.scheduler.delete(&receipts));
        Ok(())
    }
}

impl Source<Request> for Requests {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Request>> {
        let take = |state: &mut State| {
            let now = state.now;
            let dead = state.requests_of(&self.1).dead(now);
            state.dead_letters.extend(dead.into_iter().map(DeadLetter::Request));
            state.requests_of(&self.1).receive(now, limit)
        };
        self.0.until(take).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.change(|state| state.requests_of(&self.1).delete(&receipts));
        Ok(())
    }
}
