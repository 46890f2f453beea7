//! Standard queues: they deliver in any order, also twice, and make a dead letter of what was delivered too often.

use serde_json::{Value, json};

use rehearsal::rng::Rng;
use rehearsal::state::EPOCH_MS;

/// The queues, each with the number of its dead-letter queue.
const QUEUES: [(&str, Option<usize>); 9] = [
    ("submission", Some(6)),
    ("submission-high", Some(6)),
    ("scheduler", Some(7)),
    ("scheduler-high", Some(7)),
    ("agents", Some(8)),
    ("agents-high", Some(8)),
    ("submission-dead", None),
    ("scheduler-dead", None),
    ("agents-dead", None),
];
/// The ARN of a queue before its name, and its URL.
pub(super) const ARN: &str = "arn:aws:sqs:eu-central-1:1:";
/// Deliveries of a request to an agent.
const AGENT_RECEIVES_MAX: u32 = 1_000;

/// A message.
#[derive(Debug)]
struct Message {
    id: u64,
    body: String,
    sent_ms: i64,
    receives: u32,
    visible_at_ms: i64,
    /// Of the last delivery.
    handle: u64,
}

/// The queues.
#[derive(Debug)]
pub(super) struct Sqs {
    queues: [Vec<Message>; QUEUES.len()],
    visibility_ms: i64,
    receives_max: u32,
    next: u64,
}

/// A batch of one queue.
pub(super) struct Batch {
    queue: usize,
    /// Ids and handles.
    messages: Vec<(u64, u64)>,
    /// The event of the function.
    pub(super) event: Value,
}

/// The number of the queue of this name.
pub(super) fn queue(name: &str) -> Option<usize> {
    QUEUES.iter().position(|(known, _)| *known == name)
}

impl Sqs {
    pub(super) fn new(visibility_ms: u64, receives_max: u32) -> Self {
        let visibility_ms = i64::try_from(visibility_ms).unwrap_or(i64::MAX);
        Self { queues: Default::default(), visibility_ms, receives_max, next: 0 }
    }

    /// Puts a message on a queue.
    pub(super) fn send(&mut self, queue: usize, body: String, now_ms: i64, delay_ms: i64) {
        self.next += 1;
        let visible_at_ms = now_ms + delay_ms;
        self.queues[queue].push(Message {
            id: self.next,
            body,
            sent_ms: now_ms,
            receives: 0,
            visible_at_ms,
            handle: 0,
        });
    }

    /// Takes a batch of the first of these queues that has any visible message, and hides it. `is_twice` says of a message
    /// with this body whether it stays visible. Returns also the number of new dead letters.
    pub(super) fn receive(
        &mut self,
        queues: &[usize],
        batch_max: usize,
        now_ms: i64,
        rng: &mut Rng,
        mut is_twice: impl FnMut(&mut Rng, &str) -> bool,
    ) -> (Option<Batch>, u64) {
        let mut dead = 0;
        for &queue in queues {
            dead += self.bury(queue, now_ms);
            let mut messages = Vec::new();
            let mut records = Vec::new();
            let mut visible: Vec<usize> = (0..self.queues[queue].len())
                .filter(|place| self.queues[queue][*place].visible_at_ms <= now_ms)
                .collect();
            while !visible.is_empty() && records.len() < batch_max {
                let place = visible.swap_remove(rng.place(visible.len()));
                self.next += 1;
                let message = &mut self.queues[queue][place];
                let hidden_ms = if is_twice(rng, &message.body) { 5 } else { self.visibility_ms };
                let next = self.next;
                (message.receives, message.handle) = (message.receives + 1, next);
                message.visible_at_ms = now_ms + hidden_ms;
                messages.push((message.id, next));
                records.push(json!({
                    "messageId": message.id.to_string(), "receiptHandle": next.to_string(), "body": message.body,
                    "attributes": {
                        "ApproximateReceiveCount": message.receives.to_string(),
                        "SentTimestamp": (EPOCH_MS + message.sent_ms).to_string(),
                    },
                    "messageAttributes": {}, "md5OfBody": "", "eventSource": "aws:sqs", "awsRegion": "eu-central-1",
                    "eventSourceARN": format!("{ARN}{}", QUEUES[queue].0),
                }));
            }
            if !records.is_empty() {
                return (Some(Batch { queue, messages, event: json!({ "Records": records }) }), dead);
            }
        }
        (None, dead)
    }

    /// Makes dead letters of what was delivered too often. Returns their number.
    fn bury(&mut self, queue: usize, now_ms: i64) -> u64 {
        let (name, Some(letters)) = QUEUES[queue] else { return 0 };
        let receives_max = if name.starts_with("agents") { AGENT_RECEIVES_MAX } else { self.receives_max };
        let is_dead = |message: &mut Message| message.visible_at_ms <= now_ms && message.receives >= receives_max;
        let dead: Vec<Message> = self.queues[queue].extract_if(.., is_dead).collect();
        let count = dead.len() as u64;
        self.queues[letters].extend(dead);
        count
    }

    /// Deletes the messages of a batch, but for these. `is_lost` says of a deletion whether it does not arrive.
    pub(super) fn delete(&mut self, batch: &Batch, failed: &[String], mut is_lost: impl FnMut() -> bool) {
        for (id, handle) in &batch.messages {
            if !failed.contains(&id.to_string()) && !is_lost() {
                self.queues[batch.queue].retain(|message| (message.id, message.handle) != (*id, *handle));
            }
        }
    }

    /// Hides a delivered message for another time. Returns whether it was hidden.
    pub(super) fn hide(&mut self, queue: usize, handle: &str, hidden_ms: i64, now_ms: i64) -> bool {
        let is_it = |message: &&mut Message| message.handle.to_string() == handle && message.visible_at_ms > now_ms;
        let Some(message) = self.queues[queue].iter_mut().find(is_it) else { return false };
        message.visible_at_ms = now_ms + hidden_ms;
        true
    }

    /// When a message of these queues becomes visible.
    pub(super) fn next_at_ms(&self, queues: &[usize]) -> Option<i64> {
        queues.iter().flat_map(|queue| &self.queues[*queue]).map(|message| message.visible_at_ms).min()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.iter().all(Vec::is_empty)
    }
}
