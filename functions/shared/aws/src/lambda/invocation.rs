//! What is known of an invocation besides its event.

use std::sync::Arc;

use domain::time::Timestamp;
use lambda_runtime::Context;

use crate::environment::now;
use crate::scope::{Company, Scope};

/// How long before its deadline an invocation is answered, whatever is done by then, in milliseconds. After the deadline
/// the platform kills the process, and everything of the batch is delivered again.
const MARGIN_MS: u64 = 500;

/// One invocation.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// As the platform's logs name it.
    pub request_id: Arc<str>,
    trace_header: Option<Arc<str>>,
    deadline: Timestamp,
}

impl Invocation {
    pub(super) fn of(context: &Context) -> Self {
        Self {
            request_id: context.request_id.as_str().into(),
            trace_header: context.xray_trace_id.as_deref().filter(|header| !header.is_empty()).map(Into::into),
            deadline: Timestamp::from_epoch_ms(i64::try_from(context.deadline).unwrap_or(i64::MAX)),
        }
    }

    /// How long there is to answer, in milliseconds.
    #[must_use]
    pub fn left_ms(&self) -> u64 {
        now().ms_until(self.deadline).saturating_sub(MARGIN_MS)
    }

    /// How long there is for what comes after the work and before the answer, in milliseconds: half of what is left at
    /// all, whether or not the work has used up what it had.
    #[must_use]
    pub fn rest_ms(&self) -> u64 {
        now().ms_until(self.deadline) / 2
    }

    /// The surroundings of a piece of work of this invocation, which carries on `trace_header` if it has one of its own.
    pub(super) fn scope(&self, trace_header: Option<Arc<str>>, company: Company) -> Scope {
        Scope { trace_header: trace_header.or_else(|| self.trace_header.clone()), company }
    }
}

#[cfg(test)]
impl Invocation {
    /// With so much time until its deadline.
    pub(super) fn for_test(left_ms: u64) -> Self {
        let deadline = now().plus_ms(left_ms);
        Self { request_id: "request-1".into(), trace_header: Some("Root=of-the-invocation".into()), deadline }
    }
}
