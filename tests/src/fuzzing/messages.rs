//! The bodies of messages on every queue.

use domain::message::{CloudEvent, Request, SchedulerMessage};
use domain::order::Order;
use domain::ports::DeadLetter;

use super::round_trip;

/// What is read as a message is written as one that is read as the same.
pub(super) fn run(input: &[u8]) {
    if let Some(order) = round_trip::<Order>(input) {
        assert_eq!(order.document.fingerprint().len(), 64);
    }
    if let Some(message) = round_trip::<SchedulerMessage>(input) {
        assert!(serde_json::to_string(&message).expect("JSON").contains(&message.order_id().to_string()));
    }
    round_trip::<Request>(input);
    round_trip::<CloudEvent>(input);
    if let Some(dead_letter) = round_trip::<DeadLetter>(input) {
        run(dead_letter.body.as_bytes());
    }
}
