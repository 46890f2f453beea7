//! The metadata of an invocation beside its event.

use std::sync::Arc;

use domain::time::Timestamp;
use lambda_runtime::Context;
use tokio::time::Instant;

use crate::environment::{moment_in, ms_until};
use crate::scope::{Company, Scope};

/// The answer of an invocation leaves this long before its deadline, finished or not, in milliseconds. After the
/// deadline the platform kills the process, and the whole batch is delivered again.
const MARGIN_MS: u64 = 500;
/// The longest time-out of a function on Lambda, in milliseconds.
const TIME_OUT_MS_MAX: u64 = 15 * 60 * 1_000;

/// The clock of this instance contradicts that of the platform, which set the deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing was done: the clock says {now}, and the platform set the deadline of this invocation to {deadline}")]
pub(super) struct WrongClock {
    now: Timestamp,
    deadline: Timestamp,
}

/// One invocation.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The request id in the platform's logs.
    pub request_id: Arc<str>,
    trace_header: Option<Arc<str>>,
    deadline: Instant,
}

impl Invocation {
    /// The invocation that begins now. A process has no running time from before to compare its clock with, but the
    /// deadline is by another clock (F71).
    ///
    /// # Errors
    /// [`WrongClock`] if the deadline is over, or further ahead than any time-out.
    pub(super) fn of(context: &Context, now: Timestamp) -> Result<Self, WrongClock> {
        let deadline = Timestamp::from_epoch_ms(i64::try_from(context.deadline).unwrap_or(i64::MAX));
        if deadline <= now || deadline.is_beyond(now, TIME_OUT_MS_MAX) {
            return Err(WrongClock { now, deadline });
        }
        Ok(Self {
            request_id: context.request_id.as_str().into(),
            trace_header: context.xray_trace_id.as_deref().filter(|header| !header.is_empty()).map(Into::into),
            deadline: moment_in(now.ms_until(deadline)),
        })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f71_an_instance_whose_clock_contradicts_the_deadline_does_nothing() {
        let now = Timestamp::from_epoch_ms(1_800_000_000_000);
        let of = |ahead_ms: i64| {
            let mut context = Context::default();
            context.deadline = (now.epoch_ms() + ahead_ms).unsigned_abs();
            Invocation::of(&context, now).is_ok()
        };
        const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
        assert!(of(1) && of(30_000) && of(TIME_OUT_MS_MAX.cast_signed()), "each time-out that a function may have");
        assert!(!of(0) && !of(-DAY_MS), "the clock is ahead by more than the time-out");
        assert!(!of(TIME_OUT_MS_MAX.cast_signed() + 60_000) && !of(DAY_MS), "the clock is behind");
    }
}
