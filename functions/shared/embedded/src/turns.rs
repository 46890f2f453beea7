//! Messages about one order, one batch after the other. The batches of an order beside each other would only lose each
//! other's conditional writes; those that wait for a turn come together, and make one write.

use std::collections::HashMap;

use domain::id::OrderId;

/// How long a message waits for the end of the batch before it, in milliseconds: a handler may wait for something else, such
/// as a reply channel.
pub(crate) const TURN_MS: u64 = 250;

/// The orders of which messages are in flight.
#[derive(Debug, Default)]
pub(crate) struct Turns(HashMap<OrderId, Turn>);

#[derive(Debug, Default)]
struct Turn {
    in_flight: u32,
    /// Messages that wait for its end.
    behind: Vec<i64>,
}

impl Turns {
    /// Lets a message wait if a batch of its order is in flight.
    pub(crate) fn waits(&mut self, order_id: OrderId, message_id: i64) -> bool {
        let turn = self.0.get_mut(&order_id);
        turn.map(|turn| turn.behind.push(message_id)).is_some()
    }

    /// A message of the order is delivered.
    pub(crate) fn begin(&mut self, order_id: OrderId) {
        self.0.entry(order_id).or_default().in_flight += 1;
    }

    /// A message of the order is not in flight any more. Returns those that waited, once none is.
    pub(crate) fn end(&mut self, order_id: OrderId) -> Vec<i64> {
        let Some(turn) = self.0.get_mut(&order_id) else { return Vec::new() };
        turn.in_flight = turn.in_flight.saturating_sub(1);
        if turn.in_flight > 0 {
            return Vec::new();
        }
        self.0.remove(&order_id).map(|turn| turn.behind).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
