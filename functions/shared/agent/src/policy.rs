//! The patience of an agent.

use std::sync::Arc;

use domain::backoff::BackoffPolicy;
use domain::limits::{COMPLETE_WITHIN_MS_MAX, COMPLETE_WITHIN_MS_MIN, FALLBACKS_MAX};

use crate::bounds::{PolicyError, check_backoff, within};
use crate::health::HealthPolicy;
use crate::memo::MemoPolicy;

/// The patience of an agent with its service. [`Agent::new`] refuses values out of range.
///
/// [`Agent::new`]: crate::Agent::new
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// No call starts if less than this is left until the deadline, in milliseconds (rule 6); of a short attempt, if less
    /// than a fifth of its time is left.
    pub margin_ms: u64,
    /// The time-out of a call, in milliseconds; the deadline may end it earlier.
    pub call_timeout_ms: u64,
    /// Retries of one request. After them the agent is silent, and the supervisor counts a failure.
    pub retries_max: u32,
    /// The wait before each retry.
    pub backoff: BackoffPolicy,
    /// Waits up to this are spent in the invocation, in milliseconds. For a longer one the message goes back to its
    /// queue, where waiting costs nothing.
    pub wait_in_invocation_ms_max: u64,
    /// The share of its time that a request may spend on its queue before it is taken up, in percent. A longer wait
    /// shows that there are more requests than calls: the attempt is given back, and no failure is counted. 100:
    /// never.
    pub queued_percent_max: u64,
    /// When the service counts as failing, and how fast its work returns.
    pub health: HealthPolicy,
    /// The most calls at once of one instance (rule 20). `None`: no limit.
    pub concurrency: Option<u32>,
    /// Present for a service that does not recognise a repeated idempotency key: results are then remembered here.
    pub memo: Option<MemoPolicy>,
    /// The agents to ask instead while the service is failing, in this order (rule 21). Needs `memo`, which alone
    /// proves that no call was made.
    pub fallback: Vec<Arc<str>>,
}

/// Deliveries of a message after which it is given back instead of parked. Each park costs a delivery, and after 1,000
/// the queue makes it a dead letter. The other half is for deliveries that end in a fault of the infrastructure.
pub(crate) const PARKED_RECEIVES_MAX: u32 = 500;
/// Largest [`Policy::retries_max`]. Each retry on the queue is a delivery. Retries must be used up before the message
/// is given back, since that starts their count afresh.
pub const RETRIES_MAX: u32 = PARKED_RECEIVES_MAX - 1;
/// Largest [`Policy::wait_in_invocation_ms_max`], in milliseconds: the wait of an invocation costs money.
pub const WAIT_IN_INVOCATION_MS_MAX: u64 = 60_000;
/// Largest [`Policy::concurrency`].
pub const CONCURRENCY_MAX: u32 = 1_000;

impl Default for Policy {
    fn default() -> Self {
        Self {
            margin_ms: COMPLETE_WITHIN_MS_MIN / 2,
            call_timeout_ms: 10_000,
            retries_max: 100,
            backoff: BackoffPolicy { slot_time_ms: 100, ceiling: 8, stay_at_ceiling: true },
            wait_in_invocation_ms_max: 1_000,
            queued_percent_max: 50,
            health: HealthPolicy::default(),
            concurrency: None,
            memo: None,
            fallback: Vec::new(),
        }
    }
}

impl Policy {
    /// # Errors
    /// [`PolicyError`] for the first value that is out of its range.
    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        within("margin_ms", self.margin_ms, 0, COMPLETE_WITHIN_MS_MAX)?;
        within("call_timeout_ms", self.call_timeout_ms, 1, COMPLETE_WITHIN_MS_MAX)?;
        within("retries_max", u64::from(self.retries_max), 0, u64::from(RETRIES_MAX))?;
        check_backoff("backoff.slot_time_ms", "backoff.ceiling", self.backoff)?;
        within("wait_in_invocation_ms_max", self.wait_in_invocation_ms_max, 0, WAIT_IN_INVOCATION_MS_MAX)?;
        within("queued_percent_max", self.queued_percent_max, 1, 100)?;
        self.concurrency
            .map_or(Ok(()), |calls| within("concurrency", u64::from(calls), 1, u64::from(CONCURRENCY_MAX)))?;
        self.health.check()?;
        self.memo.as_ref().map_or(Ok(()), MemoPolicy::check)?;
        let fallbacks_max = if self.memo.is_some() { FALLBACKS_MAX } else { 0 };
        within("length of the fallback, which needs a memo,", self.fallback.len() as u64, 0, fallbacks_max as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::health::RejectionsPolicy;

    #[test]
    fn the_default_is_valid_and_calls_even_the_shortest_step() {
        let policy = Policy::default();
        assert_eq!(policy.check(), Ok(()));
        assert!(policy.margin_ms < COMPLETE_WITHIN_MS_MIN);
    }

    #[test]
    fn a_memo_is_kept_for_as_long_as_a_step_may_take_at_least_and_ten_years_at_most() {
        let ten_years_ms = 3_660 * 24 * 60 * 60 * 1_000;
        let check = |retention_ms| Policy { memo: Some(MemoPolicy { retention_ms }), ..Policy::default() }.check();
        for (retention_ms, is_taken) in [
            (COMPLETE_WITHIN_MS_MAX - 1, false),
            (COMPLETE_WITHIN_MS_MAX, true),
            (ten_years_ms, true),
            (ten_years_ms + 1, false),
        ] {
            assert_eq!(check(retention_ms).is_ok(), is_taken, "{retention_ms}");
        }
    }

    #[test]
    fn values_that_make_no_sense_are_refused_by_name() {
        let good = Policy::default();
        let backoff = good.backoff;
        let with_health = |change: fn(&mut HealthPolicy)| {
            let mut policy = good.clone();
            change(&mut policy.health);
            policy
        };
        let with_rejections = |change: fn(&mut RejectionsPolicy)| {
            let mut policy = good.clone();
            change(policy.health.rejections.as_mut().unwrap());
            policy
        };
        let bad = [
            ("margin_ms", Policy { margin_ms: COMPLETE_WITHIN_MS_MAX + 1, ..good.clone() }),
            ("call_timeout_ms", Policy { call_timeout_ms: 0, ..good.clone() }),
            ("retries_max", Policy { retries_max: RETRIES_MAX + 1, ..good.clone() }),
            ("backoff.slot_time_ms", Policy { backoff: BackoffPolicy { slot_time_ms: 0, ..backoff }, ..good.clone() }),
            ("backoff.ceiling", Policy { backoff: BackoffPolicy { ceiling: 33, ..backoff }, ..good.clone() }),
            ("wait_in_invocation_ms_max", Policy { wait_in_invocation_ms_max: 60_001, ..good.clone() }),
            ("length of the fallback, which needs a memo,", Policy { fallback: vec!["b".into()], ..good.clone() }),
            ("health.failures_to_open", with_health(|health| health.failures_to_open = 0)),
            ("health.backoff.slot_time_ms", with_health(|health| health.backoff.slot_time_ms = 0)),
            ("health.backoff.ceiling", with_health(|health| health.backoff.ceiling = 33)),
            ("health.release_first", with_health(|health| health.release_first = 0)),
            ("health.release_max", with_health(|health| health.release_max = health.release_first - 1)),
            ("health.rejections.answers_min", with_rejections(|rejections| rejections.answers_min = 0)),
            ("health.rejections.percent", with_rejections(|rejections| rejections.percent = 100)),
            ("health.rejections.window_ms", with_rejections(|rejections| rejections.window_ms = 999)),
            ("memo.retention_ms", Policy { memo: Some(MemoPolicy { retention_ms: 1 }), ..good.clone() }),
        ];
        for (field, policy) in bad {
            let error = policy.check().unwrap_err();
            assert_eq!(error.field, field);
            assert!(error.to_string().starts_with(field), "{error}");
        }
    }
}
