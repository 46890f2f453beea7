//! Queues like the platform's: at least once, unordered, with visibility time-outs and dead letters.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::id::OrderId;
use domain::message::{Delivery, Priority, Receipt, SchedulerMessage, Undecodable, decode};
use domain::order::Order;
use domain::ports::DeadLetter;
use serde::de::DeserializeOwned;

use crate::event::Event;
use crate::faults::Fault;
use crate::seen::Seen;
use crate::shape::{FIRST_AGENT, SCHEDULER};
use crate::state::State;

/// The longest outage of a queue, in milliseconds.
const AWAY_MS_MAX: u64 = 5 * 60_000;
/// The delay of a late message, in milliseconds.
pub(super) const LATE_MS: (u64, u64) = (20 * 60_000, 3 * 3_600_000);

/// A message on a queue.
#[derive(Debug, Clone)]
pub struct Message {
    pub(super) body: Arc<str>,
    /// Set on the dead-letter queue, unless even the envelope is unreadable.
    pub(super) dead_letter: Option<DeadLetter>,
    pub(super) priority: Priority,
    /// It is one of several messages that the queue made of one, or it was redriven.
    pub(super) is_copied: bool,
    /// The order of a submission or of its dead letter.
    pub(super) brings: Option<OrderId>,
    pub(super) visible_at_ms: i64,
    pub(super) receives: u32,
    /// The invocations that received it.
    pub(super) given_to: Vec<u32>,
}

/// One queue.
#[derive(Debug, Default)]
pub struct Queue {
    pub(super) messages: BTreeMap<u64, Message>,
    pub(super) away_until_ms: i64,
    pub(super) high_in_a_row: u32,
}

/// All queues.
#[derive(Debug)]
pub struct QueueSet {
    pub(super) queues: Vec<Queue>,
    pub(super) last_id: u64,
}

impl QueueSet {
    /// Empty queues of this number of agents.
    #[must_use]
    pub fn of(agents: usize) -> Self {
        Self { queues: (0..=FIRST_AGENT + agents).map(|_| Queue::default()).collect(), last_id: 0 }
    }
}

/// A delivered message.
#[derive(Debug, Clone)]
pub struct Given {
    /// The receipt.
    pub receipt: Receipt,
    /// The number of deliveries, including this one.
    pub receives: u32,
    /// The body.
    pub body: Arc<str>,
    /// The dead letter, if it is one.
    pub dead_letter: Option<DeadLetter>,
    /// The earlier invocations.
    pub earlier: Vec<u32>,
    /// One of them is still at work.
    pub overlaps: bool,
    /// It is one of several messages that the queue made of one, or it was redriven.
    pub is_copied: bool,
    /// The delivery time, in milliseconds since the start of the world.
    pub given_ms: i64,
}

impl Given {
    /// The form for a handler.
    #[must_use]
    pub fn delivery<M: DeserializeOwned>(&self) -> Delivery<M> {
        let body = decode(self.body.as_bytes());
        Delivery { receipt: self.receipt.clone(), receive_count: self.receives, parent: None, body }
    }

    /// The form for the handler of dead letters.
    #[must_use]
    pub fn dead_letter(&self) -> Delivery<DeadLetter> {
        let problem = || Undecodable { problem: "no frame".into() };
        Delivery {
            receipt: self.receipt.clone(),
            receive_count: self.receives,
            parent: None,
            body: self.dead_letter.clone().ok_or_else(problem),
        }
    }
}

impl QueueSet {
    /// The number of messages on all queues.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.queues.iter().map(|queue| queue.messages.len() as u64).sum()
    }

    /// Whether all queues are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The time at which the last late message arrives, in milliseconds since the start of the world.
    #[must_use]
    pub fn last_visible_at_ms(&self) -> i64 {
        let all = self.queues.iter().flat_map(|queue| queue.messages.values());
        all.map(|message| message.visible_at_ms).max().unwrap_or(0)
    }
}

impl State {
    /// Whether a queue is unreachable.
    #[must_use]
    pub fn is_queue_away(&self, queue: usize) -> bool {
        !self.is_calm && self.now_ms < self.queues.queues[queue].away_until_ms
    }

    /// Starts an outage of a queue.
    pub fn take_queue_away(&mut self) {
        let queue = self.rng.place(self.setup.shape.dead_letters());
        let ms = self.rng.between(5_000, AWAY_MS_MAX);
        self.queues.queues[queue].away_until_ms = self.now_ms.saturating_add_unsigned(ms);
        self.trouble(ms);
        self.tell(&format!("queue {queue} is away for {ms} ms"));
        self.after(ms, Event::Pump(queue));
    }

    /// Sends a message: once or twice, now or late.
    pub fn send(&mut self, queue: usize, body: &Arc<str>, priority: Priority, delay_ms: u64, brings: Option<OrderId>) {
        let mut delays_ms = vec![delay_ms];
        if self.strikes(Fault::Delayed) {
            delays_ms[0] += self.rng.between(LATE_MS.0, LATE_MS.1);
            self.trouble(delays_ms[0]);
        }
        if self.strikes(Fault::Duplicated) {
            let most_ms = self.rng.pick(&[1_000, 30_000, 6 * 60_000]);
            delays_ms.push(delay_ms + self.rng.between(0, most_ms));
        }
        if self.strikes(Fault::DuplicatedLater) {
            delays_ms.push(delay_ms + self.rng.between(LATE_MS.0, LATE_MS.1));
        }
        let is_copied = delays_ms.len() > 1;
        for delay_ms in delays_ms {
            let visible_at_ms = self.now_ms.saturating_add_unsigned(delay_ms);
            let message = Message {
                body: body.clone(),
                dead_letter: None,
                priority,
                is_copied,
                brings,
                visible_at_ms,
                receives: 0,
                given_to: Vec::new(),
            };
            self.push(queue, message);
        }
    }

    pub(super) fn push(&mut self, queue: usize, message: Message) {
        if let Some(order) = message.brings {
            let world = self.world.clone();
            self.see(&world, &Seen::Kept { order });
        }
        let visible_at_ms = message.visible_at_ms;
        self.queues.last_id += 1;
        self.queues.queues[queue].messages.insert(self.queues.last_id, message);
        let poll_ms = self.rng.between(0, 20);
        self.at(visible_at_ms.saturating_add_unsigned(poll_ms), Event::Pump(queue));
    }

    /// Receives a batch for an invocation, if any message is visible.
    pub fn take(&mut self, queue: usize, invocation: u32, is_alive: impl Fn(u32) -> bool) -> Vec<Given> {
        if self.is_queue_away(queue) {
            return Vec::new();
        }
        self.bury_dead(queue);
        let limit = usize::try_from(self.rng.between(1, self.setup.batch_max as u64)).unwrap_or(1);
        let mut ready = self.ready(queue);
        if ready.len() > 1 && self.strikes(Fault::Reordered) {
            for place in (1..ready.len()).rev() {
                ready.swap(place, self.rng.place(place + 1));
            }
        }
        ready.truncate(limit);
        let visible_at_ms = self.now_ms.saturating_add_unsigned(self.setup.visibility_ms);
        let mut given = Vec::with_capacity(ready.len());
        for id in ready {
            let Some(message) = self.queues.queues[queue].messages.get_mut(&id) else { continue };
            message.visible_at_ms = visible_at_ms;
            message.receives += 1;
            let earlier = message.given_to.clone();
            message.given_to.push(invocation);
            let overlaps = earlier.iter().any(|earlier| is_alive(*earlier));
            if !self.is_calm && overlaps {
                self.counts.add(Fault::Overlapped);
            }
            given.push(Given {
                receipt: Receipt { message_id: id.to_string().into(), handle: message.receives.to_string().into() },
                receives: message.receives,
                body: message.body.clone(),
                dead_letter: message.dead_letter.clone(),
                earlier,
                overlaps,
                is_copied: message.is_copied,
                given_ms: self.now_ms,
            });
        }
        if !given.is_empty() {
            self.at(visible_at_ms, Event::Pump(queue));
        }
        given
    }

    /// Whether a message is visible now.
    #[must_use]
    pub fn has_ready(&self, queue: usize) -> bool {
        let is_ready = |message: &Message| message.visible_at_ms <= self.now_ms;
        !self.is_queue_away(queue) && self.queues.queues[queue].messages.values().any(is_ready)
    }

    /// The visible messages of one priority, oldest first. One batch of four is of normal priority, if both have messages.
    fn ready(&mut self, queue: usize) -> Vec<u64> {
        let now_ms = self.now_ms;
        let queue = &mut self.queues.queues[queue];
        let of_priority = |priority| {
            let visible = queue.messages.iter().filter(move |(_, message)| message.visible_at_ms <= now_ms);
            visible
                .filter(move |(_, message)| message.priority == priority)
                .map(|(id, message)| (message.visible_at_ms, *id))
        };
        let has = |priority| of_priority(priority).next().is_some();
        let is_high = has(Priority::High) && (queue.high_in_a_row < 3 || !has(Priority::Normal));
        let priority = if is_high { Priority::High } else { Priority::Normal };
        let mut ready: Vec<(i64, u64)> = of_priority(priority).collect();
        queue.high_in_a_row = if is_high { queue.high_in_a_row + 1 } else { 0 };
        ready.sort_unstable();
        ready.into_iter().map(|(_, id)| id).collect()
    }

    /// Deletes a message, if this was its last delivery.
    pub fn delete(&mut self, queue: usize, receipt: &Receipt) {
        let Some(id) = self.find(queue, receipt) else { return };
        let Some(Message { brings, dead_letter, .. }) = self.queues.queues[queue].messages.remove(&id) else { return };
        let world = self.world.clone();
        if let Some(dead_letter) = dead_letter {
            self.see(&world, &Seen::DeadLetterGone { id: dead_letter.message_id });
        }
        if let Some(order) = brings {
            self.see(&world, &Seen::LetGo { order });
        }
    }

    /// Hides a message for another while, if this was its last delivery.
    pub fn hide(&mut self, queue: usize, receipt: &Receipt, ms: u64) {
        let Some(id) = self.find(queue, receipt) else { return };
        let visible_at_ms = self.now_ms.saturating_add_unsigned(ms);
        if let Some(message) = self.queues.queues[queue].messages.get_mut(&id) {
            message.visible_at_ms = visible_at_ms;
            self.at(visible_at_ms, Event::Pump(queue));
        }
    }

    fn find(&self, queue: usize, receipt: &Receipt) -> Option<u64> {
        let id: u64 = receipt.message_id.parse().ok()?;
        let message = self.queues.queues[queue].messages.get(&id)?;
        (*message.receives.to_string() == *receipt.handle).then_some(id)
    }

    /// Whether the invocation also got another scheduler message of the order, which is still queued and not done. A
    /// redelivery of that one is responsible for what the invocation left undone.
    pub fn has_another_of(&self, order: OrderId, invocation: u32, done: &[Given]) -> bool {
        let is_done = |id: u64| done.iter().any(|given| *given.receipt.message_id == *id.to_string());
        let is_of = |message: &Message| {
            decode::<SchedulerMessage>(message.body.as_bytes()).is_ok_and(|message| message.order_id() == order)
        };
        let mut messages = self.queues.queues[SCHEDULER].messages.iter();
        messages.any(|(&id, message)| message.given_to.contains(&invocation) && !is_done(id) && is_of(message))
    }

    /// The host gets the failures of a batch, or no answer.
    pub fn settle(&mut self, queue: usize, done: Vec<Receipt>) -> Vec<Receipt> {
        if self.strikes(Fault::BatchAnswerLost) {
            return Vec::new();
        }
        let done: Vec<Receipt> = done.into_iter().filter(|_| !self.strikes(Fault::DeleteLost)).collect();
        for receipt in &done {
            self.delete(queue, receipt);
        }
        done
    }
}

/// The submission of an order.
#[must_use]
pub fn text_of(order: &Order) -> Arc<str> {
    serde_json::to_string(order).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use domain::ports::SourceQueue;

    use super::*;
    use crate::setup::Setup;
    use crate::testing;

    fn state() -> State {
        testing::state(Setup { receives_max: 2, batch_max: 1, ..testing::setup() })
    }

    fn take(state: &mut State, queue: usize) -> Vec<Given> {
        state.take(queue, 1, |_| false)
    }

    #[test]
    fn a_message_is_hidden_while_somebody_is_at_work_and_gone_once_deleted() {
        let mut state = state();
        state.send(SCHEDULER, &"body".into(), Priority::Normal, 500, None);
        assert!(take(&mut state, SCHEDULER).is_empty(), "it is delayed");
        state.now_ms = 500;
        let given = take(&mut state, SCHEDULER);
        assert_eq!((given.len(), given[0].receives, &*given[0].body), (1, 1, "body"));
        assert!(take(&mut state, SCHEDULER).is_empty(), "it is hidden");
        state.delete(SCHEDULER, &given[0].receipt);
        assert!(state.queues.is_empty());
    }

    #[test]
    fn a_message_that_is_not_deleted_comes_again_and_an_old_receipt_deletes_nothing() {
        let mut state = state();
        state.send(SCHEDULER, &"body".into(), Priority::Normal, 0, None);
        let first = take(&mut state, SCHEDULER);
        state.now_ms = i64::try_from(state.setup.visibility_ms).unwrap();
        let second = take(&mut state, SCHEDULER);
        assert_eq!((second[0].receives, &second[0].earlier), (2, &vec![1]));
        state.delete(SCHEDULER, &first[0].receipt);
        assert_eq!(state.queues.len(), 1);
    }

    #[test]
    fn a_message_that_came_too_often_is_a_dead_letter() {
        let mut state = state();
        state.send(SCHEDULER, &"body".into(), Priority::Normal, 0, None);
        for _ in 0..3 {
            take(&mut state, SCHEDULER);
            state.now_ms += i64::try_from(state.setup.visibility_ms).unwrap();
        }
        let dead_letters = take(&mut state, FIRST_AGENT + 2);
        let dead_letter = dead_letters[0].dead_letter.as_ref().unwrap();
        assert_eq!(
            (&dead_letter.queue, &*dead_letter.body, dead_letter.receive_count),
            (&SourceQueue::Scheduler, "body", 2)
        );
    }

    #[test]
    fn of_four_batches_one_is_of_the_normal_priority() {
        let mut state = state();
        for _ in 0..8 {
            state.send(SCHEDULER, &"high".into(), Priority::High, 0, None);
            state.send(SCHEDULER, &"normal".into(), Priority::Normal, 0, None);
        }
        let bodies: Vec<Arc<str>> = (0..8).map(|_| take(&mut state, SCHEDULER)[0].body.clone()).collect();
        let normal = bodies.iter().filter(|body| &***body == "normal").count();
        assert_eq!(normal, 2, "{bodies:?}");
    }
}
