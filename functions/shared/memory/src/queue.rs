//! The queues between the functions, and their receiving ends.

use std::collections::BTreeMap;

use domain::message::{Delivery, Priority, Receipt, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::{DeadLetter, Inserted, PortError, Queues, Source, SourceQueue};
use domain::time::Timestamp;

use super::{Memory, State};

/// How long a received message is hidden, in milliseconds (visibility time-out).
pub const VISIBILITY_MS: u64 = 60_000;
/// Deliveries after which a message becomes a dead letter.
pub const RECEIVES_MAX: u32 = 10;
/// Batches of the high priority in a row before a batch of the normal priority.
const HIGH_IN_A_ROW_MAX: u32 = 3;

/// A queue of one kind of message.
pub(super) struct MemoryQueue<M> {
    last_id: u64,
    held: BTreeMap<u64, Held<M>>,
    high_in_a_row: u32,
    receives_max: u32,
}

struct Held<M> {
    body: M,
    priority: Priority,
    visible_at: Timestamp,
    receive_count: u32,
}

impl<M> Default for MemoryQueue<M> {
    fn default() -> Self {
        Self { last_id: 0, held: BTreeMap::new(), high_in_a_row: 0, receives_max: RECEIVES_MAX }
    }
}

impl<M: Clone> MemoryQueue<M> {
    pub(super) fn bodies(&self) -> impl Iterator<Item = &M> {
        self.held.values().map(|held| &held.body)
    }

    pub(super) fn retain(&mut self, is_kept: impl Fn(&M) -> bool) {
        self.held.retain(|_, held| is_kept(&held.body));
    }

    fn push(&mut self, body: M, priority: Priority, visible_at: Timestamp) {
        self.last_id += 1;
        self.held.insert(self.last_id, Held { body, priority, visible_at, receive_count: 0 });
    }

    /// Removes the messages that were delivered too often.
    fn dead(&mut self, now: Timestamp) -> Vec<(u64, Held<M>)> {
        let is_dead = |held: &Held<M>| held.visible_at <= now && held.receive_count >= self.receives_max;
        let dead: Vec<u64> = self.held.iter().filter(|(_, held)| is_dead(held)).map(|(id, _)| *id).collect();
        dead.into_iter().filter_map(|id| Some((id, self.held.remove(&id)?))).collect()
    }

    /// The priority of the next batch. The high priority goes first, but at most three times in a row if the normal
    /// queue has a message.
    fn next_priority(&self, now: Timestamp) -> Option<Priority> {
        let has = |priority| self.held.values().any(|held| held.priority == priority && held.visible_at <= now);
        match (has(Priority::Normal), has(Priority::High)) {
            (true, true) if self.high_in_a_row >= HIGH_IN_A_ROW_MAX => Some(Priority::Normal),
            (_, true) => Some(Priority::High),
            (true, false) => Some(Priority::Normal),
            (false, false) => None,
        }
    }

    fn receive(&mut self, now: Timestamp, limit: usize) -> Option<Vec<Delivery<M>>> {
        let priority = self.next_priority(now)?;
        self.high_in_a_row = if priority.is_normal() { 0 } else { self.high_in_a_row + 1 };
        let mine = self.held.iter_mut().filter(|(_, held)| held.priority == priority && held.visible_at <= now);
        let deliver = |(id, held): (&u64, &mut Held<M>)| {
            held.visible_at = now.plus_ms(VISIBILITY_MS);
            held.receive_count += 1;
            Delivery {
                receipt: receipt(*id, held),
                receive_count: held.receive_count,
                parent: None,
                body: Ok(held.body.clone()),
            }
        };
        Some(mine.take(limit).map(deliver).collect())
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

/// A message's body as it was sent.
type Text<M> = fn(&M) -> serde_json::Result<String>;

/// The receipt of a message's last delivery.
fn receipt<M>(id: u64, held: &Held<M>) -> Receipt {
    Receipt { message_id: id.to_string().into(), handle: held.receive_count.to_string().into() }
}

impl Queues for Memory {
    async fn submit(&self, order: Order, delay_ms: u64) -> Result<Inserted, PortError> {
        let priority = order.priority.unwrap_or_default();
        self.work("queues.submit", |state| {
            if let Some((stored, _)) = state.orders.get(&order.order_id).filter(|_| state.knows_orders) {
                return if stored.is_of(&order.fingerprint) { Inserted::Same } else { Inserted::Different };
            }
            state.submissions.push(order, priority, state.now.plus_ms(delay_ms));
            Inserted::New
        })
    }

    fn knows_orders(&self) -> bool {
        self.state().knows_orders
    }

    async fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> Result<(), PortError> {
        let push = |state: &mut State| state.scheduler.push(message, priority, state.now.plus_ms(delay_ms));
        self.work("queues.to_scheduler", push)
    }

    async fn to_agent(&self, agent: &str, request: Request) -> Result<(), PortError> {
        self.work("queues.to_agent", |state| {
            let (now, priority) = (state.now, request.priority);
            state.requests_of(agent).push(request, priority, now);
        })
    }

    async fn return_to_agent(&self, agent: &str, receipt: &Receipt, delay_ms: u64) -> Result<(), PortError> {
        self.work("queues.return_to_agent", |state| {
            let visible_at = state.now.plus_ms(delay_ms);
            let queue = state.requests_of(agent);
            if let Some(held) = queue.find(receipt).and_then(|id| queue.held.get_mut(&id)) {
                held.visible_at = visible_at;
            }
        })
    }
}

impl State {
    fn requests_of(&mut self, agent: &str) -> &mut MemoryQueue<Request> {
        let receives_max = self.request_receives_max;
        self.requests.entry(agent.to_owned()).or_insert_with(|| MemoryQueue { receives_max, ..MemoryQueue::default() })
    }

    fn bury<M>(&mut self, queue: SourceQueue, message_id: u64, dead: &Held<M>, text: Text<M>) {
        let body = text(&dead.body).unwrap_or_else(|error| error.to_string());
        // A message's id is unique only on its queue. The dead letter's number makes it unique among all dead letters.
        let message_id = format!("{message_id}-{}", self.dead_letters.last_id + 1);
        let (receive_count, at) = (dead.receive_count, self.now);
        let dead_letter = DeadLetter { queue, message_id: message_id.into(), body: body.into(), receive_count, at };
        self.dead_letters.push(dead_letter, Priority::Normal, at);
        self.rings = true;
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

/// The receiving end of the dead letters of all queues. A dead letter is delivered until it is deleted.
#[derive(Clone)]
pub struct DeadLetters(Memory);

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

    /// The receiving end of the dead letters of all queues.
    #[must_use]
    pub fn dead_letters(&self) -> DeadLetters {
        DeadLetters(self.clone())
    }

    async fn receive<M: Clone>(
        &self,
        name: SourceQueue,
        queue: impl Fn(&mut State) -> &mut MemoryQueue<M>,
        text: Text<M>,
        limit: usize,
    ) -> Vec<Delivery<M>> {
        let take = |state: &mut State| {
            let now = state.now;
            for (id, dead) in queue(state).dead(now) {
                state.bury(name.clone(), id, &dead, text);
            }
            queue(state).receive(now, limit)
        };
        self.until(take).await
    }
}

impl Source<Order> for Submissions {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Order>> {
        self.0.receive(SourceQueue::Submission, |state| &mut state.submissions, serde_json::to_string, limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.work("source.delete", |state| state.submissions.delete(&receipts))
    }
}

impl Source<SchedulerMessage> for Scheduler {
    async fn receive(&self, limit: usize) -> Vec<Delivery<SchedulerMessage>> {
        self.0.receive(SourceQueue::Scheduler, |state| &mut state.scheduler, serde_json::to_string, limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.work("source.delete", |state| state.scheduler.delete(&receipts))
    }
}

impl Source<Request> for Requests {
    async fn receive(&self, limit: usize) -> Vec<Delivery<Request>> {
        let Self(memory, agent) = self;
        let name = SourceQueue::Agent(agent.as_str().into());
        memory.receive(name, |state| state.requests_of(agent), serde_json::to_string, limit).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.work("source.delete", |state| state.requests_of(&self.1).delete(&receipts))
    }
}

impl Source<DeadLetter> for DeadLetters {
    async fn receive(&self, limit: usize) -> Vec<Delivery<DeadLetter>> {
        self.0.until(|state| state.dead_letters.receive(state.now, limit)).await
    }

    async fn delete(&self, receipts: Vec<Receipt>) -> Result<(), PortError> {
        self.0.work("source.delete", |state| state.dead_letters.delete(&receipts))
    }
}

impl Memory {
    /// From now on, a request becomes a dead letter after this number of deliveries. This applies to agents without a
    /// queue so far. A parked request is delivered again and again.
    pub fn allow_request_receives(&self, receives_max: u32) {
        self.change(|state| state.request_receives_max = receives_max);
    }

    /// Adds a dead letter with any body.
    pub fn leave_dead_letter(&self, queue: SourceQueue, body: &str) {
        self.change(|state| {
            let message_id = format!("left-{}", state.dead_letters.last_id + 1).into();
            let dead_letter =
                DeadLetter { queue, message_id, body: body.into(), receive_count: RECEIVES_MAX, at: state.now };
            let at = state.now;
            state.dead_letters.push(dead_letter, Priority::Normal, at);
        });
    }

    /// The earliest time at which a message can be received from any queue, including the dead letters.
    #[must_use]
    pub fn next_message_at(&self) -> Option<Timestamp> {
        let state = self.state();
        let requests = state.requests.values().filter_map(MemoryQueue::next_at);
        let others = [state.submissions.next_at(), state.scheduler.next_at(), state.dead_letters.next_at()];
        requests.chain(others.into_iter().flatten()).min()
    }
}

impl<M> MemoryQueue<M> {
    fn next_at(&self) -> Option<Timestamp> {
        self.held.values().map(|held| held.visible_at).min()
    }
}
