//! What failures are evidence of: a service that fails, or one order whose calls fail. Pure.

use std::cmp::Reverse;

use domain::id::OrderId;
use domain::ports::{Breaker, Evidence, OrderAt, ServiceHealth};
use domain::time::Timestamp;

use crate::health::HealthPolicy;

/// The length of the window of calls, in milliseconds.
const WINDOW_MS: u64 = 1_000;
/// With many calls in the window, this many times as many failures open the breaker.
const FACTOR_MAX: u32 = 4;
/// Failures of this many different orders are the service's. Fewer, if fewer failures open the breaker.
const ORDERS_MIN_MAX: u32 = 5;
/// The orders that may fail by themselves, at most.
const OWN_MAX: usize = 64;
/// The orders that failed since the last answer, at most: all that may fail by themselves, and enough others.
const ORDERS_MAX: usize = OWN_MAX + ORDERS_MIN_MAX as usize;
/// A wait that the service asked of this many different orders is the service's. Fewer, if fewer failures open the breaker.
const ASKED_MIN_MAX: u32 = 2;

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
        if !orders.contains(order) && orders.len() < ORDERS_MAX {
            orders.push(*order);
        }
    }
}

/// Notes until when the service asked for no call of these orders.
pub(crate) fn add_asked(asked: &mut Vec<OrderAt>, more: &[OrderAt]) {
    for more in more {
        match asked.iter_mut().find(|known| known.order_id == more.order_id) {
            Some(known) => known.at = known.at.max(more.at),
            None => asked.push(*more),
        }
    }
    asked.sort_by_key(|asked| Reverse(asked.at));
    asked.truncate(ASKED_MIN_MAX as usize);
}

/// The time until which the service asked for no call. One order alone may get such an answer for a fault of its own.
pub(crate) fn asked_until(evidence: &Evidence, policy: &HealthPolicy) -> Option<Timestamp> {
    let orders = policy.failures_to_open.min(ASKED_MIN_MAX) as usize;
    evidence.asked.get(orders.saturating_sub(1)).map(|asked| asked.at)
}

/// Whether enough different orders failed to say that it is the service. An order that failed before an answer to another
/// one may fail by itself, and says nothing.
pub(crate) fn is_of_service(evidence: &Evidence, policy: &HealthPolicy) -> bool {
    let orders = evidence.orders.iter().filter(|order| !is_among(&evidence.own, **order));
    orders.count() >= policy.failures_to_open.min(ORDERS_MIN_MAX) as usize
}

/// Whether this order is one of these.
pub(crate) fn is_among(own: &[OrderAt], order: OrderId) -> bool {
    own.iter().any(|own| own.order_id == order)
}

/// The evidence after an answer to this order. If it took the step on, the others whose calls failed did so while the
/// service was well, or in an outage that is over. A front can say no, and an undo can be well, while the steps fail.
pub(crate) fn answered(
    evidence: &Evidence,
    order: OrderId,
    is_taken: bool,
    now: Timestamp,
    policy: &HealthPolicy,
) -> Evidence {
    let mut own = evidence.own.clone();
    own.retain(|own| own.order_id != order);
    if !is_taken {
        return Evidence { own, ..Evidence::default() };
    }
    let at = if is_of_service(evidence, policy) { Timestamp::default() } else { now };
    add_own(&mut own, &each_at(&evidence.orders, order, at));
    Evidence { own, ..Evidence::default() }
}

/// These orders, without the one that was answered at this time.
pub(crate) fn each_at(failed: &[OrderId], answered: OrderId, at: Timestamp) -> Vec<OrderAt> {
    failed.iter().filter(|failed| **failed != answered).map(|order_id| OrderAt { order_id: *order_id, at }).collect()
}

/// Notes orders that failed before an answer to another one.
pub(crate) fn add_own(own: &mut Vec<OrderAt>, more: &[OrderAt]) {
    for more in more {
        let known = own.iter().position(|known| known.order_id == more.order_id).map(|known| own.remove(known));
        own.push(OrderAt { at: known.map_or(more.at, |known| known.at.max(more.at)), ..*more });
    }
    own.drain(..own.len().saturating_sub(OWN_MAX));
}

/// Whether a failure is the order's own: the service answered another order well since then, after this one had failed.
/// While the service itself fails, nobody can tell.
pub(crate) fn is_own(
    record: &ServiceHealth,
    own: &[OrderAt],
    order: OrderId,
    since: Timestamp,
    policy: &HealthPolicy,
) -> bool {
    let fails = record.state != Breaker::Closed && is_of_service(&record.evidence, policy);
    let mut known = record.evidence.own.iter().chain(own);
    !fails && known.any(|own| own.order_id == order && since <= own.at)
}

/// Whether an order may make a call though the breaker is not closed: it is another one than those few that failed.
pub(crate) fn lets_in(record: &ServiceHealth, order: OrderId, policy: &HealthPolicy) -> bool {
    is_of_few(record, policy) && !record.evidence.orders.contains(&order)
}

/// Whether an order is one of the few whose failures opened the breaker.
pub(crate) fn is_its_own(record: &ServiceHealth, order: OrderId, policy: &HealthPolicy) -> bool {
    record.state != Breaker::Closed && is_of_few(record, policy) && record.evidence.orders.contains(&order)
}

fn is_of_few(record: &ServiceHealth, policy: &HealthPolicy) -> bool {
    !record.is_braked() && !is_of_service(&record.evidence, policy)
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
