//! What failures are evidence of: a service that fails, or one order whose calls fail. Pure.

use domain::id::OrderId;
use domain::ports::{Breaker, Evidence, OwnFailure, ServiceHealth};
use domain::time::Timestamp;

use crate::health::HealthPolicy;

/// The length of the window of calls, in milliseconds.
const WINDOW_MS: u64 = 1_000;
/// With many calls in the window, this many times as many failures open the breaker.
const FACTOR_MAX: u32 = 4;
/// Failures of this many different orders are the service's. Fewer, if fewer failures open the breaker.
const ORDERS_MIN_MAX: u32 = 5;
/// The orders that are known to fail by themselves, at most.
const OWN_MAX: usize = 8;

/// The calls of an instance that ended in the window. Earlier ones count half as much with each window since.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lately {
    since: Timestamp,
    calls: u32,
}

impl Lately {
    /// Counts a call that ended now.
    pub(crate) fn count(&mut self, now: Timestamp) {
        let windows = self.since.ms_until(now) / WINDOW_MS;
        if windows > 0 || now < self.since {
            let halvings = u32::try_from(windows).unwrap_or(u32::MAX);
            *self = Self { since: now, calls: self.calls.checked_shr(halvings).unwrap_or(0) };
        }
        self.calls = self.calls.saturating_add(1);
    }

    /// The calls at the last count.
    pub(crate) const fn calls(self) -> u32 {
        self.calls
    }
}

/// The failures that open the breaker, with this many calls in the window. Where there are few calls, they are failures in
/// a row. Where there are many, a success takes one failure off: so only a service that fails most calls gets there.
pub(crate) fn failures_to_open(calls: u32, policy: &HealthPolicy) -> u32 {
    let few = policy.failures_to_open;
    calls.clamp(few, few.saturating_mul(FACTOR_MAX))
}

/// The failures that an instance counts alone before it adds them to the record.
pub(crate) fn failures_to_report(calls: u32, policy: &HealthPolicy) -> u32 {
    let few = policy.failures_to_open;
    if failures_to_open(calls, policy) > few { few } else { few.div_ceil(2) }
}

/// The orders that failed, with these. So many that they show whose failure it is.
pub(crate) fn add_orders(orders: &mut Vec<OrderId>, more: &[OrderId]) {
    for order in more {
        if !orders.contains(order) && orders.len() < ORDERS_MIN_MAX as usize {
            orders.push(*order);
        }
    }
}

/// Whether enough different orders failed to say that it is the service.
pub(crate) fn is_of_service(evidence: &Evidence, policy: &HealthPolicy) -> bool {
    evidence.orders.len() >= policy.failures_to_open.min(ORDERS_MIN_MAX) as usize
}

/// The evidence after an answer to this order: the others whose calls failed did so while the service was well.
pub(crate) fn answered(evidence: &Evidence, order: OrderId, now: Timestamp, policy: &HealthPolicy) -> Evidence {
    let mut own = evidence.own.clone();
    if !is_of_service(evidence, policy) {
        add_own(&mut own, &evidence.orders, order, now);
    }
    Evidence { own, ..Evidence::default() }
}

/// Notes that these orders failed, and that the service answered another one after that.
pub(crate) fn add_own(own: &mut Vec<OwnFailure>, failed: &[OrderId], answered: OrderId, now: Timestamp) {
    for order_id in failed.iter().copied().filter(|failed| *failed != answered) {
        own.retain(|known| known.order_id != order_id);
        own.push(OwnFailure { order_id, at: now });
    }
    own.drain(..own.len().saturating_sub(OWN_MAX));
}

/// Whether a failure is the order's own: the service answered another order well since this attempt began and failed.
/// While the service itself fails, nobody can tell.
pub(crate) fn is_own(
    record: &ServiceHealth,
    own: &[OwnFailure],
    order: OrderId,
    sent_at: Timestamp,
    policy: &HealthPolicy,
) -> bool {
    let fails = record.state != Breaker::Closed && is_of_service(&record.evidence, policy);
    let mut known = record.evidence.own.iter().chain(own);
    !fails && known.any(|own| own.order_id == order && sent_at <= own.at)
}

/// Whether an order may make a call though the breaker is not closed: it is another one than those few that failed.
pub(crate) fn lets_in(record: &ServiceHealth, order: OrderId, now: Timestamp, policy: &HealthPolicy) -> bool {
    let Evidence { orders, asked_until, .. } = &record.evidence;
    !record.is_braked()
        && !is_of_service(&record.evidence, policy)
        && !orders.contains(&order)
        && asked_until.is_none_or(|until| until <= now)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_epoch_ms(1_795_195_600_000);

    fn policy(failures_to_open: u32) -> HealthPolicy {
        HealthPolicy { failures_to_open, ..HealthPolicy::default() }
    }

    #[test]
    fn calls_of_earlier_seconds_count_half_as_much_with_each_second() {
        let mut lately = Lately::default();
        let mut calls_at = |ms: u64, calls: u32| {
            (0..calls).for_each(|_| lately.count(NOW.plus_ms(ms)));
            lately.calls()
        };
        assert_eq!(calls_at(0, 8), 8);
        assert_eq!(calls_at(999, 1), 9);
        assert_eq!(calls_at(1_000, 1), 5);
        assert_eq!(calls_at(3_000, 1), 2);
        assert_eq!(calls_at(3_600_000, 1), 1);
        assert_eq!(calls_at(0, 1), 2, "after the clock was set back");
    }

    #[test]
    fn the_more_calls_there_are_the_more_failures_open_it_up_to_four_times_as_many() {
        for (calls, few, opens, reports) in [(0, 5, 5, 3), (5, 5, 5, 3), (9, 5, 9, 5), (20, 5, 20, 5), (999, 5, 20, 5)]
        {
            let policy = policy(few);
            assert_eq!((failures_to_open(calls, &policy), failures_to_report(calls, &policy)), (opens, reports));
        }
        assert_eq!(failures_to_open(999, &policy(u32::MAX)), u32::MAX);
    }
}
