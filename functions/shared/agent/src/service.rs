//! What an agent's author writes: one trait for one remote service.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use domain::id::OrderId;
use domain::json::Json;
use domain::message::Failure;
use domain::time::Timestamp;

/// One remote service.
///
/// An object serves one message, and may be asked again after a [`Answer::Retry`]. The future of a call is dropped where
/// it stands when the call's time is over; the object is then dropped too, and the next call gets a fresh one, as it does
/// after a panic. What should outlive a message, such as a pool of connections, is shared by all objects that the agent's
/// `make_service` makes.
pub trait Service: Send {
    /// Carries the step out. A repeat with the same idempotency key must have no second effect.
    fn forward(&mut self, call: &Call<'_>) -> impl Future<Output = Answer> + Send;

    /// Takes the step back. Taking back what was never done succeeds.
    fn undo(&mut self, call: &Call<'_>) -> impl Future<Output = Answer> + Send;
}

/// What a service is called with.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// Whose step.
    pub order_id: OrderId,
    /// The step's name in the workflow.
    pub step: &'a str,
    /// The same over all calls for this step in this direction (rule 4).
    pub idempotency_key: &'a str,
    /// The order's document.
    pub order: &'a Json,
    /// Outputs of the steps that this one comes after and, for an undo, its own.
    pub outputs: &'a BTreeMap<Arc<str>, Json>,
    /// The attempt of the step that this call belongs to, from 1. There may be several calls for one attempt.
    pub attempt: u32,
    /// When the call starts, by the agent's clock: a service has none of its own.
    pub started_at: Timestamp,
    /// After how many milliseconds the call is given up.
    pub timeout_ms: u64,
}

/// How a call ended. There is nothing else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The service did it, or had done it already.
    Done(Json),
    /// It may work later, or nobody knows whether it worked: ask again with the same key.
    Retry {
        /// How long the service wants to be left alone, in milliseconds.
        after_ms: Option<u64>,
        /// What went wrong. It is logged, so nothing of the order belongs here.
        problem: String,
    },
    /// The service said no, and will say no again.
    Fail(Failure),
}

impl Answer {
    /// Ask again whenever the back-off says.
    pub fn retry(problem: impl Into<String>) -> Self {
        Self::Retry { after_ms: None, problem: problem.into() }
    }

    /// No for good: a stable code for programs, a message for people.
    pub fn fail(code: impl Into<Arc<str>>, message: impl Into<Arc<str>>) -> Self {
        Self::Fail(Failure { code: code.into(), message: message.into() })
    }
}
