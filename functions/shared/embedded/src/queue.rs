//! A queue in memory. It has two priorities, visibility time-outs, delays, receive counts and a limit of deliveries.
//!
//! The queue has no task and no timer. A waiting receiver wakes when a message arrives or when the earliest hidden
//! message becomes visible, whichever comes first.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::id::OrderId;
use domain::message::{Delivery, Priority, Receipt, Undecodable};
use domain::trace::{self, TraceParent};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use crate::clock::later;
use crate::lock::lock;
use crate::options::QueueOptions;
use crate::priorities::PriorityQueues;
use crate::turns::{TURN_MS, Turns};

/// A queue of one kind of message.
#[derive(Debug)]
pub(crate) struct Queue<M> {
    options: QueueOptions,
    messages: Mutex<Messages<M>>,
    /// Signals a new visible message, or an earlier time to wait for.
    news: Notify,
}

#[derive(Debug)]
struct Messages<M> {
    next_id: i64,
    last_handle: u64,
    held: HashMap<i64, Held<M>>,
    /// Visible messages.
    ready: PriorityQueues,
    /// Hidden messages, by the time at which they become visible.
    hidden: BTreeSet<(Instant, i64)>,
    /// The order of a message, if the messages of an order take turns.
    order_of: Option<fn(&M) -> OrderId>,
    turns: Turns,
    /// Whether messages became visible that waited for their turn.
    has_news: bool,
}

#[derive(Debug)]
struct Held<M> {
    body: Result<M, Undecodable>,
    priority: Priority,
    /// Whether the message is also on disk.
    is_stored: bool,
    name: Arc<str>,
    parent: Option<TraceParent>,
    receive_count: u32,
    /// The receipt of the last delivery. Only this receipt is valid; 0 means that no receipt is valid.
    handle: u64,
    place: Position,
    /// What it knows of the turns of its order.
    turn: Turn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    None,
    /// It waits for the batch before it.
    Waiting,
    /// It waited long enough.
    Due,
    /// It is in flight.
    Has(OrderId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Ready,
    Hidden(Instant),
    /// Handled, or delivered too often. The message is removed once that is durable.
    Leaving,
}

/// A message to enqueue.
#[derive(Debug)]
pub(crate) struct Arrival<M> {
    /// The id that was reserved for it.
    pub(crate) message_id: i64,
    pub(crate) body: Result<M, Undecodable>,
    pub(crate) priority: Priority,
    /// Whether the message is also on disk. It then stays in the queue until it is deleted from the disk.
    pub(crate) is_stored: bool,
    /// The known number of earlier deliveries.
    pub(crate) receive_count: u32,
    /// The earliest time of delivery. `None` means at once.
    pub(crate) visible_at: Option<Instant>,
    /// The span that sent it.
    pub(crate) parent: Option<TraceParent>,
}

impl<M> Arrival<M> {
    /// A new message that is also on disk.
    pub(crate) const fn stored(
        message_id: i64,
        message: M,
        priority: Priority,
        visible_at: Option<Instant>,
        parent: Option<TraceParent>,
    ) -> Self {
        Self { message_id, body: Ok(message), priority, is_stored: true, receive_count: 0, visible_at, parent }
    }
}

/// The earliest delivery of a message with this delay. `None` means at once.
pub(crate) fn delayed(delay_ms: u64) -> Option<Instant> {
    (delay_ms > 0).then(|| later(delay_ms))
}

/// The result of a receive.
#[derive(Debug)]
pub(crate) enum Received<M> {
    /// Messages to handle.
    Deliveries(Vec<Delivery<M>>),
    /// A message that was delivered too often. It leaves the queue: [`Queue::finish`] removes it.
    Dead(Dead<M>),
}

/// A message that was delivered too often.
#[derive(Debug)]
pub(crate) struct Dead<M> {
    pub(crate) message_id: i64,
    pub(crate) is_stored: bool,
    pub(crate) receive_count: u32,
    pub(crate) body: Result<M, Undecodable>,
}

impl<M: Clone> Queue<M> {
    /// An empty queue. Its message ids start with `first_id`.
    pub(crate) fn new(options: QueueOptions, first_id: i64) -> Self {
        let messages = Messages {
            next_id: first_id,
            last_handle: 0,
            held: HashMap::new(),
            ready: PriorityQueues::default(),
            hidden: BTreeSet::new(),
            order_of: None,
            turns: Turns::default(),
            has_news: false,
        };
        Self { options, messages: Mutex::new(messages), news: Notify::new() }
    }

    /// The same, where messages about one order come one batch after the other.
    pub(crate) fn in_turns(mut self, order_of: fn(&M) -> OrderId) -> Self {
        self.messages.get_mut().unwrap_or_else(PoisonError::into_inner).order_of = Some(order_of);
        self
    }

    /// Reserves an id for a later message.
    pub(crate) fn reserve(&self) -> i64 {
        lock(&self.messages).reserve()
    }

    /// Enqueues a message that is only in memory. It is delivered after `delay_ms`.
    pub(crate) fn push(&self, message: M, priority: Priority, delay_ms: u64) {
        let mut messages = lock(&self.messages);
        let message_id = messages.reserve();
        let body = Ok(message);
        let (visible_at, parent) = (delayed(delay_ms), trace::current());
        let arrival = Arrival { message_id, body, priority, is_stored: false, receive_count: 0, visible_at, parent };
        self.insert(&mut messages, arrival);
    }

    /// Enqueues a message under a reserved id.
    pub(crate) fn put(&self, arrival: Arrival<M>) {
        self.insert(&mut lock(&self.messages), arrival);
    }

    fn insert(&self, messages: &mut Messages<M>, arrival: Arrival<M>) {
        let Arrival { message_id, body, priority, is_stored, receive_count, visible_at, parent } = arrival;
        let place = visible_at.map_or(Position::Ready, Position::Hidden);
        let is_news = match visible_at {
            Some(at) => {
                messages.hidden.insert((at, message_id));
                messages.hidden.first() == Some(&(at, message_id))
            }
            None => {
                messages.ready.priority(priority).push_back(message_id);
                true
            }
        };
        let name = message_id.to_string().into();
        let held = Held { body, priority, is_stored, name, parent, receive_count, handle: 0, place, turn: Turn::None };
        messages.held.insert(message_id, held);
        if is_news {
            self.news.notify_one();
        }
    }

    /// The next messages, at most `limit`. Waits until there is one.
    pub(crate) async fn receive(&self, limit: usize) -> Received<M> {
        loop {
            let visible_at = {
                let mut messages = lock(&self.messages);
                let first_before = messages.first_hidden();
                if let Some(received) = messages.take(limit, self.options) {
                    // Other waiting receivers take the rest, or wait for the new earliest time.
                    if !messages.ready.is_empty() || messages.first_hidden() != first_before {
                        self.news.notify_one();
                    }
                    return received;
                }
                messages.first_hidden()
            };
            let news = self.news.notified();
            match visible_at {
                // After a signal or the time-out, the receiver looks again.
                Some(at) => drop(timeout_at(at, news).await),
                None => news.await,
            }
        }
    }

    /// Hides a message for `delay_ms` from now, in place of the rest of its visibility time-out. Returns false if the
    /// receipt is not from the message's last delivery.
    pub(crate) fn hide(&self, receipt: &Receipt, delay_ms: u64) -> bool {
        let mut messages = lock(&self.messages);
        let Some(id) = messages.find(receipt) else { return false };
        messages.unplace(id);
        messages.has_news |= messages.hide(id, later(delay_ms));
        self.tell(&mut messages);
        true
    }

    /// Stops the delivery of a message. It stays until [`Queue::finish`], or comes back if its write to the disk fails.
    /// Returns `None` if the receipt is not from the message's last delivery.
    pub(crate) fn leave(&self, receipt: &Receipt) -> Option<(i64, Result<M, Undecodable>)> {
        let mut messages = lock(&self.messages);
        let id = messages.find(receipt)?;
        messages.unplace(id);
        self.tell(&mut messages);
        messages.held.get(&id).map(|held| (id, held.body.clone()))
    }

    /// Removes a message.
    pub(crate) fn finish(&self, message_id: i64) {
        let mut messages = lock(&self.messages);
        messages.unplace(message_id);
        self.tell(&mut messages);
        messages.held.remove(&message_id);
    }

    fn tell(&self, messages: &mut Messages<M>) {
        if std::mem::take(&mut messages.has_news) {
            self.news.notify_one();
        }
    }

    /// Removes a handled message. Does nothing if the receipt is not from the message's last delivery. A message that
    /// is also on disk is only marked: its id is returned. The caller finishes it once it is deleted from the disk.
    pub(crate) fn delete(&self, receipt: &Receipt) -> Option<i64> {
        let mut messages = lock(&self.messages);
        let id = messages.find(receipt)?;
        messages.unplace(id);
        self.tell(&mut messages);
        if messages.held.get(&id).is_some_and(|held| held.is_stored) {
            return Some(id);
        }
        messages.held.remove(&id);
        None
    }

    /// Makes leaving messages visible again after `delay_ms`, since the write to the disk failed.
    pub(crate) fn come_back(&self, delay_ms: u64) {
        let mut messages = lock(&self.messages);
        messages.hide_all(|held| held.place == Position::Leaving, delay_ms);
        self.news.notify_one();
    }

    /// Makes all messages in flight and all leaving messages visible again after `delay_ms`. Their receipts become
    /// void.
    pub(crate) fn redeliver(&self, delay_ms: u64) {
        let mut messages = lock(&self.messages);
        for held in messages.held.values_mut().filter(|held| held.handle != 0) {
            held.handle = 0;
            // The message did not cause the failure. The next delivery still counts as a redelivery.
            held.receive_count = (held.receive_count - 1).max(1);
        }
        messages.hide_all(|held| held.place != Position::Ready, delay_ms);
        self.news.notify_one();
    }

    /// The number of messages, whether visible, hidden or leaving.
    pub(crate) fn len(&self) -> usize {
        lock(&self.messages).held.len()
    }
}

impl<M: Clone> Messages<M> {
    const fn reserve(&mut self) -> i64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn first_hidden(&self) -> Option<Instant> {
        self.hidden.first().map(|&(at, _)| at)
    }

    /// The message with this receipt of its last delivery.
    fn find(&self, receipt: &Receipt) -> Option<i64> {
        let id = receipt.message_id.parse().ok()?;
        let handle: u64 = receipt.handle.parse().ok()?;
        let held = self.held.get(&id)?;
        (handle != 0 && held.handle == handle && held.place != Position::Leaving).then_some(id)
    }

    fn show(&mut self, id: i64) {
        self.end_turn(id);
        if let Some(held) = self.held.get_mut(&id) {
            held.place = Position::Ready;
            if held.turn == Turn::Waiting {
                held.turn = Turn::Due;
            }
            self.ready.priority(held.priority).push_back(id);
        }
    }

    /// A message is in flight no more: those that waited for it become visible.
    fn end_turn(&mut self, id: i64) {
        let Some(held) = self.held.get_mut(&id) else { return };
        let Turn::Has(order_id) = held.turn else { return };
        held.turn = Turn::None;
        for waiting in self.turns.end(order_id) {
            if let Some(held) = self.held.get_mut(&waiting)
                && let (Turn::Waiting, Position::Hidden(until)) = (held.turn, held.place)
            {
                (held.turn, held.place) = (Turn::None, Position::Ready);
                self.hidden.remove(&(until, waiting));
                self.ready.priority(held.priority).push_back(waiting);
                self.has_news = true;
            }
        }
    }

    /// Hides a message that is in no list. Returns true if it is now the first to become visible.
    fn hide(&mut self, id: i64, until: Instant) -> bool {
        let Some(held) = self.held.get_mut(&id) else {
            return false;
        };
        held.place = Position::Hidden(until);
        self.hidden.insert((until, id));
        self.hidden.first() == Some(&(until, id))
    }

    /// Hides these messages from now on, wherever they are, and voids their receipts.
    fn hide_all(&mut self, which: impl Fn(&Held<M>) -> bool, delay_ms: u64) {
        let ids: Vec<i64> = self.held.iter().filter(|(_, held)| which(held)).map(|(&id, _)| id).collect();
        let visible_at = later(delay_ms);
        for id in ids {
            self.unplace(id);
            self.hide(id, visible_at);
            if let Some(held) = self.held.get_mut(&id) {
                held.handle = 0;
            }
        }
    }

    /// Removes a message from its list, so that it is in no list.
    fn unplace(&mut self, id: i64) {
        self.end_turn(id);
        let Some(held) = self.held.get_mut(&id) else { return };
        match std::mem::replace(&mut held.place, Position::Leaving) {
            Position::Hidden(until) => {
                self.hidden.remove(&(until, id));
            }
            // A visible message is rarely removed. Only then must a list be searched.
            Position::Ready => self.ready.priority(held.priority).retain(|&ready| ready != id),
            Position::Leaving => {}
        }
    }

    /// Visible messages, hidden from now on, or one message that was delivered too often.
    fn take(&mut self, limit: usize, options: QueueOptions) -> Option<Received<M>> {
        if self.ready.is_empty() && self.hidden.is_empty() {
            return None;
        }
        let now = later(0);
        while let Some(&(at, id)) = self.hidden.first()
            && at <= now
        {
            self.hidden.pop_first();
            self.show(id);
        }
        loop {
            let priority = self.ready.next()?;
            let received = self.take_of(priority, limit, options, now);
            if received.is_some() {
                return received;
            }
        }
    }

    fn take_of(
        &mut self,
        priority: Priority,
        limit: usize,
        options: QueueOptions,
        now: Instant,
    ) -> Option<Received<M>> {
        let until = now + Duration::from_millis(options.visibility_ms);
        let mut deliveries = Vec::with_capacity(limit.min(self.ready.priority(priority).len()));
        let mut orders = Vec::new();
        while deliveries.len() < limit
            && let Some(id) = self.ready.priority(priority).pop_front()
        {
            let Some(held) = self.held.get_mut(&id) else { continue };
            if held.receive_count >= options.receives_max {
                if deliveries.is_empty() {
                    held.place = Position::Leaving;
                    let (is_stored, receive_count, body) = (held.is_stored, held.receive_count, held.body.clone());
                    return Some(Received::Dead(Dead { message_id: id, is_stored, receive_count, body }));
                }
                // It is the first message for the priority's next receiver.
                self.ready.priority(priority).push_front(id);
                break;
            }
            if let (Some(order_of), Ok(message)) = (self.order_of, &held.body) {
                let order_id = order_of(message);
                let has_turn = orders.contains(&order_id) || held.turn == Turn::Due;
                if !has_turn && self.turns.waits(order_id, id) {
                    held.turn = Turn::Waiting;
                    self.hide(id, now + Duration::from_millis(TURN_MS));
                    continue;
                }
                self.turns.begin(order_id);
                orders.push(order_id);
                held.turn = Turn::Has(order_id);
            }
            self.last_handle += 1;
            held.receive_count += 1;
            held.handle = self.last_handle;
            let receipt = Receipt { message_id: held.name.clone(), handle: held.handle.to_string().into() };
            let (receive_count, parent) = (held.receive_count, held.parent);
            deliveries.push(Delivery { receipt, receive_count, parent, body: held.body.clone() });
            held.place = Position::Hidden(until);
            self.hidden.insert((until, id));
        }
        if deliveries.is_empty() {
            return None;
        }
        self.ready.handed_out(priority);
        Some(Received::Deliveries(deliveries))
    }
}

#[cfg(test)]
mod tests;
