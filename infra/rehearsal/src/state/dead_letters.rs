//! Messages that no handler can take: how one becomes a dead letter, and bodies that are no message.

use std::sync::Arc;

use domain::message::{Priority, Reply, Request, SchedulerMessage, decode};
use domain::order::Order;
use domain::ports::{DeadLetter, SourceQueue};

use crate::faults::Fault;
use crate::seen::Seen;
use crate::shape::{FIRST_AGENT, SCHEDULER, SUBMISSION};
use crate::state::State;
use crate::state::queues::{LATE_MS, Message};

/// Deliveries of a request before it is a dead letter. Each parking costs one delivery.
const REQUEST_RECEIVES_MAX: u32 = 1_000;

impl State {
    /// Moves messages to the dead-letter queue: after too many deliveries, or after long throttling.
    pub(super) fn bury_dead(&mut self, queue: usize) {
        if queue == self.setup.shape.dead_letters() {
            return;
        }
        let receives_max = if queue >= FIRST_AGENT { REQUEST_RECEIVES_MAX } else { self.setup.receives_max };
        let now_ms = self.now_ms;
        let visible: Vec<(u64, u32)> = self.queues.queues[queue]
            .messages
            .iter()
            .filter(|(_, message)| message.visible_at_ms <= now_ms)
            .map(|(id, message)| (*id, message.receives))
            .collect();
        for (id, receives) in visible {
            if receives >= receives_max || self.strikes(Fault::Buried) {
                self.bury(queue, id);
            }
        }
    }

    fn bury(&mut self, queue: usize, id: u64) {
        let Some(message) = self.queues.queues[queue].messages.remove(&id) else { return };
        let name = match queue {
            SUBMISSION => SourceQueue::Submission,
            SCHEDULER => SourceQueue::Scheduler,
            agent => SourceQueue::Agent(self.setup.shape.agents[agent - FIRST_AGENT].clone()),
        };
        let of = match queue {
            SUBMISSION => None,
            SCHEDULER => match decode::<SchedulerMessage>(message.body.as_bytes()) {
                Ok(SchedulerMessage::Reply(Reply { order_id, step, direction, attempt, .. })) => {
                    self.attempt_of(order_id, &step, direction, attempt)
                }
                Ok(SchedulerMessage::Wake(_) | SchedulerMessage::Command(_) | SchedulerMessage::Child(_)) | Err(_) => {
                    None
                }
            },
            _ => decode::<Request>(message.body.as_bytes()).ok().filter(|request| request.look.is_none()).and_then(
                |request| self.attempt_of(request.order_id, &request.step, request.direction, request.attempt),
            ),
        };
        let world = self.world.clone();
        let message_id: Arc<str> = format!("{queue}-{id}").into();
        match of {
            Some(of) => self.see(&world, &Seen::Buried { of }),
            None => self.tell(&format!("a message of queue {queue} is a dead letter")),
        }
        if !is_about_an_order(queue, &message.body) {
            self.see(&world, &Seen::DeadLetterDue { id: message_id.clone() });
        }
        let dead_letter = DeadLetter {
            queue: name,
            message_id,
            body: message.body.clone(),
            receive_count: message.receives,
            at: self.clock(0),
        };
        if self.strikes(Fault::Redriven) {
            let late_ms = self.rng.between(LATE_MS.0, LATE_MS.1);
            let visible_at_ms = self.now_ms.saturating_add_unsigned(late_ms);
            // An unreadable message need not take another thousand deliveries.
            let receives = if of.is_none() && queue >= FIRST_AGENT { REQUEST_RECEIVES_MAX - 3 } else { 0 };
            self.push(queue, Message { visible_at_ms, receives, is_copied: true, ..message.clone() });
        }
        let brings = message.brings;
        let buried = Message {
            dead_letter: Some(dead_letter),
            visible_at_ms: self.now_ms,
            receives: 0,
            given_to: Vec::new(),
            ..message
        };
        self.push(self.setup.shape.dead_letters(), buried);
        if let Some(order) = brings {
            self.see(&world, &Seen::LetGo { order });
        }
    }

    /// Puts an unreadable body on a random queue.
    pub fn poison(&mut self) {
        const BODIES: [&str; 6] = [
            "",
            "no JSON",
            "{\"Wake\":{}}",
            "{\"Reply\":{\"OrderID\":\"0\",\"Step\":\"s0\"}}",
            "{\"OrderID\":\"00000000-0000-7000-8000-000000000000\"}",
            "[[[[[[[[[[[[",
        ];
        let (queue, body) = (self.rng.place(self.setup.shape.dead_letters() + 1), self.rng.pick(&BODIES));
        self.tell(&format!("poison on queue {queue}: {body}"));
        let visible_at_ms = self.now_ms;
        // On an agent's queue it has been for long.
        let receives =
            if (FIRST_AGENT..self.setup.shape.dead_letters()).contains(&queue) { REQUEST_RECEIVES_MAX - 3 } else { 0 };
        let message = Message {
            body: body.into(),
            dead_letter: None,
            priority: self.rng.pick(&Priority::ALL),
            is_copied: false,
            brings: None,
            visible_at_ms,
            receives,
            given_to: Vec::new(),
        };
        self.push(queue, message);
    }
}

/// Whether the order's record shows the outcome of a message. It does not for a command or an unreadable message.
fn is_about_an_order(queue: usize, body: &str) -> bool {
    match queue {
        SUBMISSION => decode::<Order>(body.as_bytes()).is_ok(),
        SCHEDULER => match decode::<SchedulerMessage>(body.as_bytes()) {
            Ok(SchedulerMessage::Wake(_) | SchedulerMessage::Reply(_) | SchedulerMessage::Child(_)) => true,
            Ok(SchedulerMessage::Command(_)) | Err(_) => false,
        },
        _ => decode::<Request>(body.as_bytes()).is_ok(),
    }
}
