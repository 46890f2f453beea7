//! What is done when.

use std::time::Duration;

/// How many orders come when, and how long payment is down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub(super) orders: u32,
    pub(super) down: Duration,
    pub(super) normal: Duration,
    /// From one order to the next.
    pub(super) every: Duration,
}

/// The orders do not fit into the outage.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("--orders {orders} at --rate {rate} take {} ms, and payment is --down for {} ms only", .takes.as_millis(), .down.as_millis())]
pub struct TooMany {
    orders: u32,
    rate: u32,
    takes: Duration,
    down: Duration,
}

impl Plan {
    /// Payment is down for `down` while `orders` orders come, after a time of normal orders. Without a rate the orders just
    /// fill the outage.
    ///
    /// # Errors
    /// [`TooMany`] where they are more than that.
    pub fn new(orders: u32, down: Duration, normal: Duration, rate: Option<u32>) -> Result<Self, TooMany> {
        let every = rate.map_or(down / orders, |rate| Duration::from_secs(1) / rate);
        let takes = every * orders;
        match rate {
            Some(rate) if takes > down => Err(TooMany { orders, rate, takes, down }),
            Some(_) | None => Ok(Self { orders, down, normal, every }),
        }
    }

    /// Orders in a second.
    pub(super) fn rate_per_s(&self) -> f64 {
        self.every.as_secs_f64().recip()
    }

    /// The most of those who waited that payment is to get in a second: nine tenths of its normal rate. Permits are given
    /// out by seconds, and the last of one may be used in the same second as all of the next: even then it is less than
    /// twice the normal rate, and with as many new orders beside them it is usually as well.
    #[must_use]
    pub fn release_max(&self) -> u32 {
        // Bounded by the arguments: at most 100,000 orders in a second.
        (self.rate_per_s() * 0.9) as u32 + u32::from(self.rate_per_s() < 2.0)
    }

    /// Orders that come before the outage.
    pub(super) fn orders_before(&self) -> u32 {
        u32::try_from(self.normal.as_nanos() / self.every.as_nanos().max(1)).unwrap_or(u32::MAX).max(1)
    }

    /// When to give up waiting for the last order, counted from the recovery: four times as long as the release takes at
    /// its full rate, and time for it to begin.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(60) + self.every * self.orders * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(orders: u32, rate: Option<u32>) -> Result<Plan, TooMany> {
        Plan::new(orders, Duration::from_secs(20), Duration::from_secs(5), rate)
    }

    #[test]
    fn without_a_rate_the_orders_just_fill_the_outage() {
        let plan = made(2_000, None).unwrap();
        assert_eq!((plan.every, plan.orders_before(), plan.release_max()), (Duration::from_millis(10), 500, 90));
        let few = made(5, None).unwrap();
        assert_eq!((few.every, few.orders_before(), few.release_max()), (Duration::from_secs(4), 1, 1));
    }

    #[test]
    fn with_a_rate_they_may_end_before_the_outage_and_not_after_it() {
        assert_eq!(made(2_000, Some(200)).unwrap().every, Duration::from_millis(5));
        assert_eq!(made(2_000, Some(100)), made(2_000, None));
        let error = made(2_000, Some(50)).unwrap_err().to_string();
        assert_eq!(error, "--orders 2000 at --rate 50 take 40000 ms, and payment is --down for 20000 ms only");
    }
}
