//! The back-off of a failing reply channel: senders do not wait for it in vain.
//!
//! A message that its receiver answers with an error is a fault of its order. It holds back messages of the orders that had
//! the same, until very many in a row had it. Where no answer comes, senders wait: then a few orders are enough.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The pause after a first failure.
const PAUSE_FIRST: Duration = Duration::from_secs(5);
/// Each failure after a pause doubles it, up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);
/// Failures of this many orders, without a message taken in between, are the channel's: without an answer, and with one.
const ORDERS_MIN: [usize; 2] = [3, 100];

/// The back-off of one channel, shared by all its senders.
#[derive(Debug, Default)]
pub(crate) struct ChannelPause(Mutex<State>);

/// An admitted send. Its sender reports the outcome. If the sender is stopped and reports nothing, another send is
/// admitted after a further pause.
#[derive(Debug)]
pub(crate) struct Attempt {
    era: u64,
}

#[derive(Debug, Default)]
struct State {
    /// +1 when the channel starts or stops to fail, and at every try in between. An outcome counts only in the era of its
    /// send, so that a hundred concurrent failures count as one.
    era: u64,
    failing: Option<Failing>,
    /// The orders whose messages failed since one was taken: without an answer, and with one.
    orders: [Vec<Arc<str>>; 2],
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    pause: Duration,
    until: Instant,
}

impl ChannelPause {
    /// Admits a send of a message about this order. While the channel fails, it admits one send after each pause.
    ///
    /// # Errors
    /// The remaining pause.
    pub(crate) fn attempt(&self, order: &Arc<str>, now: Instant) -> Result<Attempt, Duration> {
        self.with(|state| {
            if let Some(Failing { pause, until }) = state.failing.filter(|_| state.fails_for(order)) {
                if now < until {
                    return Err(until - now);
                }
                // No other send is admitted meanwhile.
                state.enter(Some(Failing { pause, until: now + pause }));
            }
            Ok(Attempt { era: state.era })
        })
    }

    /// The channel took the message.
    pub(crate) fn taken(&self, attempt: &Attempt) {
        self.with(|state| {
            if attempt.era == state.era && state.failing.is_some() {
                state.orders = Default::default();
                state.enter(None);
            }
        });
    }

    /// The channel did not take the message, and said so or not.
    pub(crate) fn failed(&self, attempt: &Attempt, order: &Arc<str>, is_answered: bool, now: Instant) {
        self.with(|state| {
            if attempt.era == state.era {
                let failing = state.failing.filter(|_| state.fails_for(order));
                let pause = failing.map_or(PAUSE_FIRST, |failing| (failing.pause * 2).min(PAUSE_MAX));
                if !state.fails_for(order) {
                    state.orders[usize::from(is_answered)].push(order.clone());
                }
                state.enter(Some(Failing { pause, until: now + pause }));
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    /// Whether the channel fails for this order.
    fn fails_for(&self, order: &Arc<str>) -> bool {
        let mut kinds = self.orders.iter().zip(ORDERS_MIN);
        kinds.any(|(orders, orders_min)| orders.len() >= orders_min || orders.contains(order))
    }

    const fn enter(&mut self, failing: Option<Failing>) {
        self.era += 1;
        self.failing = failing;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "some moment to count from")]

    use super::*;

    fn order(n: usize) -> Arc<str> {
        n.to_string().into()
    }

    /// Of the same order each time.
    fn attempt(channel: &ChannelPause, now: Instant) -> Result<Attempt, Duration> {
        channel.attempt(&order(0), now)
    }

    fn failed(channel: &ChannelPause, attempt: &Attempt, now: Instant) {
        channel.failed(attempt, &order(0), false, now);
    }

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_channel_that_keeps_failing_is_tried_after_5_10_20_40_and_then_60_seconds() {
        let (channel, mut now) = (ChannelPause::default(), Instant::now());
        failed(&channel, &attempt(&channel, now).unwrap(), now);
        for pause in [5, 10, 20, 40, 60, 60].map(seconds) {
            assert_eq!(attempt(&channel, now).unwrap_err(), pause);
            let almost = now + pause - Duration::from_millis(1);
            assert_eq!(attempt(&channel, almost).unwrap_err(), Duration::from_millis(1));
            now += pause;
            failed(&channel, &attempt(&channel, now).unwrap(), now);
        }
    }

    #[test]
    fn after_the_pause_one_send_tries_and_its_success_lets_all_through() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        failed(&channel, &attempt(&channel, now).unwrap(), now);
        let later = now + seconds(5);
        let probe = attempt(&channel, later).unwrap();
        assert!(attempt(&channel, later).is_err(), "one is enough");
        channel.taken(&probe);
        let [one, other] = [(); 2].map(|()| attempt(&channel, later).unwrap());
        channel.taken(&one);
        failed(&channel, &other, later);
        assert_eq!(attempt(&channel, later).unwrap_err(), seconds(5), "the pause begins anew");
    }

    #[test]
    fn those_that_fail_together_are_one_failure_and_say_nothing_later() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        let together = [(); 4].map(|()| attempt(&channel, now).unwrap());
        failed(&channel, &together[0], now);
        failed(&channel, &together[1], now + seconds(2));
        channel.taken(&together[2]);
        assert_eq!(attempt(&channel, now + seconds(2)).unwrap_err(), seconds(3));
        channel.taken(&attempt(&channel, now + seconds(5)).unwrap());
        failed(&channel, &together[3], now + seconds(5));
        assert!(attempt(&channel, now + seconds(5)).is_ok());
    }

    #[test]
    fn a_try_that_nobody_hears_of_again_is_followed_by_another() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        failed(&channel, &attempt(&channel, now).unwrap(), now);
        let _unheard = attempt(&channel, now + seconds(5)).unwrap();
        assert_eq!(attempt(&channel, now + seconds(6)).unwrap_err(), seconds(4));
        assert!(attempt(&channel, now + seconds(10)).is_ok());
    }

    #[test]
    fn rule_10_a_message_without_an_answer_holds_back_its_own_order_alone_and_three_orders_hold_back_all() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        let fails = |n| channel.failed(&channel.attempt(&order(n), now).unwrap(), &order(n), false, now);
        fails(1);
        assert_eq!(channel.attempt(&order(1), now).unwrap_err(), seconds(5));
        for n in 2..50 {
            channel.taken(&channel.attempt(&order(n), now).unwrap());
        }
        fails(1);
        fails(2);
        assert!(channel.attempt(&order(4), now).is_ok());
        fails(3);
        assert_eq!(channel.attempt(&order(4), now).unwrap_err(), seconds(5));
        let later = now + seconds(5);
        channel.failed(&channel.attempt(&order(5), later).unwrap(), &order(5), false, later);
        assert_eq!(channel.attempt(&order(1), later).unwrap_err(), seconds(10));
    }

    #[test]
    fn rule_10_messages_that_are_answered_with_an_error_hold_back_their_orders_and_no_good_one() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        let fails = |n| channel.failed(&channel.attempt(&order(n), now).unwrap(), &order(n), true, now);
        (0..99).for_each(fails);
        assert!((0..99).all(|n| channel.attempt(&order(n), now).is_err()));
        let good = channel.attempt(&order(99), now).unwrap();
        fails(99);
        assert!(channel.attempt(&order(100), now).is_err(), "of a hundred in a row none is taken");
        channel.taken(&good);
        assert!(channel.attempt(&order(100), now).is_err(), "that was sent before");
        channel.taken(&channel.attempt(&order(100), now + seconds(5)).unwrap());
        assert!(channel.attempt(&order(0), now + seconds(5)).is_ok());
    }
}
