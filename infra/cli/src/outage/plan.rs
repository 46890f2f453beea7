//! The plan of the outage.

use std::time::Duration;

use local::BadSetting;

/// Connections of the naive client at the same time. More make no more calls on a machine with few cores.
pub(super) const NAIVE_CONNECTIONS_MAX: usize = 256;

/// The numbers of orders, their rate, and the length of the outage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    pub(super) orders: u32,
    pub(super) down: Duration,
    pub(super) normal: Duration,
    /// The time between two orders.
    pub(super) every: Duration,
}

impl Plan {
    /// Payment is down for `down` while `orders` orders come, after a phase of normal orders. By default the orders spread
    /// over the outage.
    ///
    /// # Errors
    /// [`BadSetting`] if the orders do not fit into the outage.
    pub fn new(orders: u32, down: Duration, normal: Duration, rate: Option<u32>) -> Result<Self, BadSetting> {
        let every = rate.map_or(down / orders, |rate| Duration::from_secs(1) / rate);
        let takes = every * orders;
        match rate {
            Some(rate) if takes > down => Err(BadSetting(format!(
                "--orders {orders} at --rate {rate} take {} ms, and payment is --down for {} ms only",
                takes.as_millis(),
                down.as_millis()
            ))),
            Some(_) | None => Ok(Self { orders, down, normal, every }),
        }
    }

    /// Orders in a second.
    pub(super) fn rate_per_s(&self) -> f64 {
        self.every.as_secs_f64().recip()
    }

    /// The most waiting orders released per second: nine tenths of payment's normal rate. Permits are issued by seconds,
    /// and those of two adjacent seconds may be used in one. Even then the calls stay below twice the normal rate.
    #[must_use]
    pub fn release_max(&self) -> u32 {
        // Bounded by the arguments: at most 100,000 orders per second.
        (self.rate_per_s() * 0.9) as u32 + u32::from(self.rate_per_s() < 2.0)
    }

    /// Orders that come before the outage.
    pub(super) fn orders_before(&self) -> u32 {
        u32::try_from(self.normal.as_nanos() / self.every.as_nanos().max(1)).unwrap_or(u32::MAX).max(1)
    }

    /// The longest wait for the last order after the recovery: four times the release at its full rate, plus time for the
    /// release to start.
    pub(super) fn patience(&self) -> Duration {
        Duration::from_secs(60) + self.every * self.orders * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(orders: u32, rate: Option<u32>) -> Result<Plan, BadSetting> {
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
