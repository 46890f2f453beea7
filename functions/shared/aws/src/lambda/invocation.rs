//! The metadata of an invocation beside its event.

use std::sync::Arc;

use domain::time::Timestamp;
use lambda_runtime::Context;
use tokio::time::Instant;

use crate::environment::{moment_in, ms_until, now};
use crate::scope::{Company, Scope};

/// The answer of an invocation leaves this long before its deadline, finished or not, in milliseconds. After the
/// deadline the platform kills the process, and the whole batch is delivered again.
const MARGIN_MS: u64 = 500;

/// One invocation.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The request id in the platform's logs.
    pub request_id: Arc<str>,
    trace_header: Option<Arc<str>>,
    deadline: Instant,
}

impl Invocation {
    pub(super) fn of(context: &Context) -> Self {
        let deadline = Timestamp::from_epoch_ms(i64::try_from(context.deadline).unwrap_or(i64::MAX));
        Self {
            request_id: context.request_id.as_str().into(),
            trace_header: context.xray_trace_id.as_deref().filter(|header| !header.is_empty()).map(Into::into),
            deadline: moment_in(now().ms_until(deadline)),
        }
    }

    /// An invocation with this much time until its deadline, outside of Lambda.
    #[must_use]
    pub fn simulated(request_id: &str, left_ms: u64) -> Self {
        Self { request_id: request_id.into(), trace_header: None, deadline: moment_in(left_ms) }
    }

    /// The time left to answer, in milliseconds.
    #[must_use]
    pub fn left_ms(&self) -> u64 {
        ms_until(self.deadline).saturating_sub(MARGIN_MS)
    }

    /// The time limit for the work between the handler and the answer, in milliseconds. It is half of all the time
    /// left, even if the handler used up its own time.
    #[must_use]
    pub fn rest_ms(&self) -> u64 {
        ms_until(self.deadline) / 2
    }

    /// The context of one piece of work of this invocation. It carries on `trace_header`, or else the trace of the
    /// invocation.
    pub(super) fn scope(&self, trace_header: Option<Arc<str>>, company: Company) -> Scope {
        Scope { trace_header: trace_header.or_else(|| self.trace_header.clone()), company }
    }
}

#[cfg(test)]
impl Invocation {
    /// An invocation with this much time until its deadline.
    pub(super) fn for_test(left_ms: u64) -> Self {
        Self { trace_header: Some("Root=of-the-invocation".into()), ..Self::simulated("request-1", left_ms) }
    }
}
