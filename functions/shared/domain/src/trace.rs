//! What a trace of an order is made of: one order is one trace over all functions.
//!
//! The trace's id is the order's, so nothing has to be stored: an order that a supervisor wakes hours later, or that a
//! process goes on with after a restart, is still in its trace. What a message carries is only the span that sent it, as
//! the W3C's `traceparent`. Without it, or where it is of another trace, the span that handles the message has no parent.
//!
//! Spans are those of `tracing` under the target [`TRACES`]; whoever listens to that makes traces of them, and where nobody
//! does they cost a look at a flag. Their fields are the span's attributes, but for these:
//!
//! | field | is |
//! | --- | --- |
//! | `order_id` | the order, and so the trace; a span without is none |
//! | `otel.name` | the name, where it is not the one in the source |
//! | `otel.kind` | `server`, `client`, `consumer`; nothing for what goes on inside |
//! | `otel.parent`, `otel.link` | [`TraceParent`]s of the span that sent the message, and of a trace of somebody else |
//! | `otel.error` | that it failed, and how |
//!
//! An event under the same target adds its fields to the span that it is in.

use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

use tracing::Span;

use crate::batch::Record;
use crate::id::OrderId;
use crate::message::{Command, Reply, SchedulerMessage};
use crate::task::{Direction, Task};

/// The target of spans that are part of an order's trace, and of events that add to them. They have the level `TRACE`, so
/// that nobody listens to them by the way.
pub const TRACES: &str = "stepwarden_traces";

/// The name of the header, and of the attribute of a message, that a [`TraceParent`] is carried in.
pub const TRACEPARENT: &str = "traceparent";

/// A span as others know it: W3C Trace Context, version 00.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceParent {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    is_sampled: bool,
}

/// The text is no `traceparent`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a traceparent such as 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")]
pub struct NotATraceParent;

/// The form of version 00, in characters. Later versions may add something behind it.
const CHARS: usize = 55;

impl TraceParent {
    /// A span of a trace. `None` where an id is all zeros, which is no id.
    #[must_use]
    pub fn new(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) -> Option<Self> {
        (trace_id != [0; 16] && span_id != [0; 8]).then_some(Self { trace_id, span_id, is_sampled })
    }

    /// The 16 bytes of the trace's id.
    #[must_use]
    pub const fn trace_id(&self) -> &[u8; 16] {
        &self.trace_id
    }

    /// The 8 bytes of the span's id.
    #[must_use]
    pub const fn span_id(&self) -> &[u8; 8] {
        &self.span_id
    }

    /// Whether the trace is recorded.
    #[must_use]
    pub const fn is_sampled(&self) -> bool {
        self.is_sampled
    }
}

impl FromStr for TraceParent {
    type Err = NotATraceParent;

    fn from_str(text: &str) -> Result<Self, NotATraceParent> {
        parse(text.as_bytes()).ok_or(NotATraceParent)
    }
}

fn parse(text: &[u8]) -> Option<TraceParent> {
    let (known, more) = text.split_at_checked(CHARS)?;
    let [version] = bytes(&known[..2])?;
    let is_whole = match version {
        0x00 => more.is_empty(),
        // Of a later version the beginning is understood.
        0x01..=0xfe => more.is_empty() || more[0] == b'-',
        0xff => false,
    };
    let is_parted = [2, 35, 52].into_iter().all(|place| known[place] == b'-');
    if !is_whole || !is_parted {
        return None;
    }
    let [flags] = bytes(&known[53..])?;
    TraceParent::new(bytes(&known[3..35])?, bytes(&known[36..52])?, flags & 1 == 1)
}

/// Bytes from two lower-case hexadecimal digits each.
fn bytes<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? * 16 + digit(pair[1])?;
    }
    Some(bytes)
}

const fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let trace_id = u128::from_be_bytes(self.trace_id);
        let span_id = u64::from_be_bytes(self.span_id);
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{:02x}", u8::from(self.is_sampled))
    }
}

impl fmt::Debug for TraceParent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

thread_local! {
    static CURRENT: Cell<Option<TraceParent>> = const { Cell::new(None) };
}

/// The span that this thread is in, which whatever is sent now carries on. `None` where nobody makes traces.
#[must_use]
pub fn current() -> Option<TraceParent> {
    CURRENT.get()
}

/// For whoever makes the traces: this thread enters or leaves a span. Gives the one that it was in.
pub fn set_current(span: Option<TraceParent>) -> Option<TraceParent> {
    CURRENT.replace(span)
}

/// An event that adds to the span that it is in.
macro_rules! say {
    ($($fields:tt)*) => {
        tracing::event!(target: TRACES, tracing::Level::TRACE, { $($fields)* }, "said")
    };
}

/// A request that puts an order on its way, which may be part of somebody else's trace.
#[must_use]
pub fn posted(order_id: OrderId, link: Option<TraceParent>) -> Span {
    tracing::trace_span!(
        target: TRACES,
        "POST /orders",
        otel.kind = "server",
        otel.link = link.map(tracing::field::display),
        %order_id,
        stepwarden.order_id = %order_id,
        http.request.method = "POST",
        http.route = "/orders",
        url.path = "/orders",
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

/// A supervisor's look at an order that is due.
#[must_use]
pub fn found(order_id: OrderId) -> Span {
    tracing::trace_span!(target: TRACES, "find", %order_id, stepwarden.order_id = %order_id)
}

/// The present span, a client's, posts to an operation of a service. What stands before it in the URL may be a secret.
pub fn posts(operation: &str, host: Option<&str>, port: Option<u16>) {
    say!(
        otel.name = %format_args!("POST {operation}"),
        http.request.method = "POST",
        url.template = %format_args!("/{operation}"),
        server.address = host,
        server.port = port
    );
}

/// The status with which the present span's request was answered.
pub fn answered(status: u16) {
    say!(http.response.status_code = status);
}

/// What the present span is about.
pub fn is_about(step: &str, direction: Direction, attempt: u32) {
    say!(stepwarden.step = step, stepwarden.direction = direction.name(), stepwarden.attempt = attempt);
}

/// The message that the present span handles.
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
    }
}

/// What the present span changed.
pub fn committed(task: &Task) {
    say!(
        stepwarden.workflow = &*task.workflow,
        stepwarden.workflow_version = task.workflow_version,
        stepwarden.version = task.version,
        stepwarden.process_state = task.process_state.name()
    );
}

/// So many conditional writes of the present span were lost.
pub fn lost(conflicts: u32) {
    say!(stepwarden.conflicts = conflicts);
}

/// How the present span ended, in a word.
pub fn ended(outcome: &str) {
    say!(stepwarden.outcome = outcome);
}

/// The present span failed. What is said goes where logs go: nothing of an order belongs in it.
pub fn failed(error: &dyn fmt::Display) {
    say!(otel.error = %error);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const W3C: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_example_of_the_recommendation_is_read_and_written_the_same() {
        let parent: TraceParent = W3C.parse().unwrap();
        assert_eq!((parent.trace_id()[0], parent.span_id()[7], parent.is_sampled()), (0x0a, 0x31, true));
        assert_eq!((parent.to_string().as_str(), format!("{parent:?}").as_str()), (W3C, W3C));
    }

    #[test]
    fn of_a_later_version_and_of_unknown_flags_is_read_what_is_known() {
        for (text, is_sampled) in [
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-will-be", true),
            ("01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", true),
        ] {
            assert_eq!(text.parse::<TraceParent>().unwrap().is_sampled(), is_sampled, "{text}");
        }
    }

    #[test]
    fn what_the_recommendation_calls_invalid_is_none() {
        for text in [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01.more",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "0g-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0\u{e9}",
        ] {
            assert_eq!(text.parse::<TraceParent>(), Err(NotATraceParent), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_as_the_same(trace_id: [u8; 16], span_id: [u8; 8], is_sampled: bool) {
            let Some(parent) = TraceParent::new(trace_id, span_id, is_sampled) else { return Ok(()) };
            prop_assert_eq!(parent.to_string().parse(), Ok(parent));
        }

        #[test]
        fn whatever_is_read_is_none_or_means_the_same_when_written(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-?.{0,3})?") {
            if let Ok(parent) = text.parse::<TraceParent>() {
                prop_assert_eq!(&parent.to_string()[3..53], &text[3..53]);
                prop_assert_eq!(parent.to_string().parse(), Ok(parent));
            }
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,80}") {
            if let Ok(parent) = text.parse::<TraceParent>() {
                prop_assert_eq!(parent.to_string().parse(), Ok(parent));
            }
        }
    }
}
