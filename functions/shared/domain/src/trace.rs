//! The content of an order's trace: one order is one trace over all functions.
//!
//! The trace's id is the order's, so nothing is stored. A wake hours later, or a restart of the process, stays in the
//! same trace. A message carries only the span that sent it, as the W3C's `traceparent`. If that is missing or belongs
//! to another trace, the span that handles the message has no parent.
//!
//! Spans are those of `tracing` under the target [`TRACES`]; a subscriber to that target builds traces of them.
//! Without one, a span costs one check of a flag. Its fields are the span's attributes, except these:
//!
//! | field | is |
//! | --- | --- |
//! | `order_id` | the order, and so the trace; a span without it belongs to no trace |
//! | `otel.name` | the name, if it differs from the one in the source |
//! | `otel.kind` | `server`, `client`, `consumer`; absent on internal spans |
//! | `otel.parent`, `otel.link` | [`TraceParent`]s of the span that sent the message, and of a span of another trace |
//! | `otel.error` | the failure |
//!
//! An event under the same target adds its fields to the current span.

use std::cell::Cell;
use std::fmt;

use tracing::Span;

use crate::delivery::Record;
use crate::id::OrderId;
use crate::message::{ChildRequest, Command, Reply, SchedulerMessage};
use crate::task::{Direction, Task};

pub use crate::traceparent::{NotATraceParent, TraceParent};

/// The target of spans that are part of an order's trace, and of events that add to them. They have the level `TRACE`,
/// so that no subscriber gets them by accident.
pub const TRACES: &str = "stepwarden_traces";

/// The name of the header and of the message attribute that carry a [`TraceParent`].
pub const TRACEPARENT: &str = "traceparent";

thread_local! {
    static CURRENT: Cell<Option<TraceParent>> = const { Cell::new(None) };
}

/// The current span of this thread; outgoing messages carry it. `None` without a trace subscriber.
#[must_use]
pub fn current() -> Option<TraceParent> {
    CURRENT.get()
}

/// For the trace subscriber: this thread enters or leaves a span. Returns the previous one.
pub fn set_current(span: Option<TraceParent>) -> Option<TraceParent> {
    CURRENT.replace(span)
}

/// An event that adds to the current span.
macro_rules! say {
    ($($fields:tt)*) => {
        tracing::event!(target: TRACES, tracing::Level::TRACE, { $($fields)* }, "said")
    };
}

/// A request that submits an order. It may be part of a caller's trace.
#[must_use]
pub fn posted(route: &'static str, order_id: OrderId, link: Option<TraceParent>) -> Span {
    tracing::trace_span!(
        target: TRACES,
        "POST",
        otel.name = %format_args!("POST {route}"),
        otel.kind = "server",
        otel.link = link.map(tracing::field::display),
        %order_id,
        stepwarden.order_id = %order_id,
        http.request.method = "POST",
        http.route = route,
        url.path = route,
    )
}

/// The handling of a message of the queue `destination`.
#[must_use]
pub fn handled<M>(destination: &str, order_id: OrderId, record: &Record<M>) -> Span {
    tracing::trace_span!(
        target: TRACES,
        "process",
        otel.name = %format_args!("process {destination}"),
        otel.kind = "consumer",
        otel.parent = record.parent.map(tracing::field::display),
        %order_id,
        stepwarden.order_id = %order_id,
        messaging.operation.name = "process",
        messaging.operation.type = "process",
        messaging.destination.name = destination,
        messaging.message.id = &*record.receipt.message_id,
        stepwarden.receive_count = record.receive_count,
    )
}

/// A call of a remote service by its agent.
#[must_use]
pub fn called(agent: &str, order_id: OrderId, retries: u32) -> Span {
    tracing::trace_span!(
        target: TRACES,
        "call",
        otel.name = %format_args!("call {agent}"),
        otel.kind = "client",
        %order_id,
        peer.service = agent,
        stepwarden.retries = retries,
    )
}

/// What is done for a new order after its post was answered. The span that posted it does not wait for this one.
#[must_use]
pub fn begun(order_id: OrderId, parent: Option<TraceParent>) -> Span {
    tracing::trace_span!(
        target: TRACES,
        parent: None,
        "begin",
        otel.parent = parent.map(tracing::field::display),
        %order_id,
        stepwarden.order_id = %order_id,
    )
}

/// A supervisor's sweep of an order that is due.
#[must_use]
pub fn found(order_id: OrderId) -> Span {
    tracing::trace_span!(target: TRACES, "find", %order_id, stepwarden.order_id = %order_id)
}

/// The current span is a client call to an operation of a service. The URL before the operation is omitted, since it
/// may contain a secret.
pub fn posts(operation: &str, host: Option<&str>, port: Option<u16>) {
    say!(
        otel.name = %format_args!("POST {operation}"),
        http.request.method = "POST",
        url.template = %format_args!("/{operation}"),
        server.address = host,
        server.port = port
    );
}

/// The HTTP status of the answer to the current span's request.
pub fn answered(status: u16) {
    say!(http.response.status_code = status);
}

/// The step of the current span.
pub fn is_about(step: &str, direction: Direction, attempt: u32) {
    say!(stepwarden.step = step, stepwarden.direction = direction.name(), stepwarden.attempt = attempt);
}

/// The message that the current span handles.
pub fn is_event(message: &SchedulerMessage) {
    match message {
        SchedulerMessage::Wake(_) => say!(stepwarden.event = "Wake"),
        SchedulerMessage::Reply(Reply { step, direction, attempt, .. }) => {
            say!(stepwarden.event = "Reply");
            is_about(step, *direction, *attempt);
        }
        SchedulerMessage::Command(Command { action, .. }) => {
            say!(stepwarden.event = "Command", stepwarden.action = action.name());
        }
        SchedulerMessage::Child(ChildRequest { step, direction, attempt, .. }) => {
            say!(stepwarden.event = "Child");
            is_about(step, *direction, *attempt);
        }
    }
}

/// The change that the current span committed.
pub fn committed(task: &Task) {
    say!(
        stepwarden.workflow = &*task.workflow,
        stepwarden.workflow_version = task.workflow_version,
        stepwarden.version = task.version,
        stepwarden.process_state = task.process_state.name()
    );
}

/// The number of conditional writes that the current span lost.
pub fn lost(conflicts: u32) {
    say!(stepwarden.conflicts = conflicts);
}

/// The outcome of the current span, in a word.
pub fn ended(outcome: &str) {
    say!(stepwarden.outcome = outcome);
}

/// The current span failed. The text goes to the logs, so it must not contain data of an order.
pub fn failed(error: &dyn fmt::Display) {
    say!(otel.error = %error);
}
