//! One delivery of a message by its queue, and the message decoded from it.

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;

use crate::traceparent::TraceParent;

/// The identity of one delivery of a message, for its queue.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The message's id, the same over redeliveries.
    pub message_id: Arc<str>,
    /// The handle of this delivery.
    pub handle: Arc<str>,
}

/// One message as a handler gets it. Each is decoded by itself, so that a bad body fails alone.
#[derive(Debug, Clone)]
pub struct Delivery<M> {
    /// For the queue.
    pub receipt: Receipt,
    /// How often it was delivered, this time included.
    pub receive_count: u32,
    /// The span that sent it, if traces are on.
    pub parent: Option<TraceParent>,
    /// The message, or the decoding error.
    pub body: Result<M, Undecodable>,
}

impl<M> Delivery<M> {
    /// Whether an earlier delivery may have done part of the work (rule 2).
    #[must_use]
    pub const fn is_redelivery(&self) -> bool {
        self.receive_count > 1
    }
}

/// One decoded message of a batch.
#[derive(Debug, Clone)]
pub struct Record<M> {
    /// The message.
    pub message: M,
    /// For its queue.
    pub receipt: Receipt,
    /// Whether an earlier delivery may have done part of the work (rule 2).
    pub redelivered: bool,
    /// How often it was delivered, this time included.
    pub receive_count: u32,
    /// The span that sent it, if traces are on.
    pub parent: Option<TraceParent>,
}

/// A body that is no message of its queue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("body is not a message of this queue: {problem}")]
pub struct Undecodable {
    /// The decoder's error.
    pub problem: Arc<str>,
}

impl Undecodable {
    /// From a decoder's error.
    pub fn because(error: &impl fmt::Display) -> Self {
        Self { problem: error.to_string().into() }
    }

    /// From the error of the JSON parser, without the value that it quotes: the value may be part of an order, and
    /// this text goes to logs and alerts.
    fn of_json(error: &serde_json::Error) -> Self {
        let words = error.to_string();
        let quoting = ["invalid type", "invalid value", "unknown variant", "unknown field"];
        let Some(fault) = quoting.into_iter().find(|fault| words.starts_with(fault)) else {
            return Self { problem: words.into() };
        };
        // The expectation comes last and contains no input.
        let ours = [", expected ", " at line "].into_iter().find_map(|begin| words.rfind(begin));
        Self { problem: format!("{fault}{}", ours.map_or("", |begin| &words[begin..])).into() }
    }
}

/// Reads one message from its body.
///
/// # Errors
/// [`Undecodable`], with the position of the fault.
pub fn decode<'a, M: Deserialize<'a>>(body: &'a [u8]) -> Result<M, Undecodable> {
    serde_json::from_slice(body).map_err(|error| Undecodable::of_json(&error))
}
