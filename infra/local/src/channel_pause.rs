//! The back-off of a failing reply channel: senders do not wait for it in vain.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The pause after a first failure.
const PAUSE_FIRST: Duration = Duration::from_secs(5);
/// Each failure after a pause doubles it, up to this.
const PAUSE_MAX: Duration = Duration::from_secs(60);

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
}

#[derive(Debug, Clone, Copy)]
struct Failing {
    pause: Duration,
    until: Instant,
}

impl ChannelPause {
    /// Admits a send. While the channel fails, it admits one send after each pause.
    ///
    /// # Errors
    /// The remaining pause.
    pub(crate) fn attempt(&self, now: Instant) -> Result<Attempt, Duration> {
        self.with(|state| {
            if let Some(Failing { pause, until }) = state.failing {
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
                state.enter(None);
            }
        });
    }

    /// The channel did not take the message.
    pub(crate) fn failed(&self, attempt: &Attempt, now: Instant) {
        self.with(|state| {
            if attempt.era == state.era {
                let pause = state.failing.map_or(PAUSE_FIRST, |failing| (failing.pause * 2).min(PAUSE_MAX));
                state.enter(Some(Failing { pause, until: now + pause }));
            }
        });
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl State {
    const fn enter(&mut self, failing: Option<Failing>) {
        self.era += 1;
        self.failing = failing;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods, reason = "some moment to count from")]

    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_channel_that_keeps_failing_is_tried_after_5_10_20_40_and_then_60_seconds() {
        let (channel, mut now) = (ChannelPause::default(), Instant::now());
        channel.failed(&channel.attempt(now).unwrap(), now);
        for pause in [5, 10, 20, 40, 60, 60].map(seconds) {
            assert_eq!(channel.attempt(now).unwrap_err(), pause);
            let almost = now + pause - Duration::from_millis(1);
            assert_eq!(channel.attempt(almost).unwrap_err(), Duration::from_millis(1));
            now += pause;
            channel.failed(&channel.attempt(now).unwrap(), now);
        }
    }

    #[test]
    fn after_the_pause_one_send_tries_and_its_success_lets_all_through() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        channel.failed(&channel.attempt(now).unwrap(), now);
        let later = now + seconds(5);
        let probe = channel.attempt(later).unwrap();
        assert!(channel.attempt(later).is_err(), "one is enough");
        channel.taken(&probe);
        let [one, other] = [(); 2].map(|()| channel.attempt(later).unwrap());
        channel.taken(&one);
        channel.failed(&other, later);
        assert_eq!(channel.attempt(later).unwrap_err(), seconds(5), "the pause begins anew");
    }

    #[test]
    fn those_that_fail_together_are_one_failure_and_say_nothing_later() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        let together = [(); 4].map(|()| channel.attempt(now).unwrap());
        channel.failed(&together[0], now);
        channel.failed(&together[1], now + seconds(2));
        channel.taken(&together[2]);
        assert_eq!(channel.attempt(now + seconds(2)).unwrap_err(), seconds(3));
        channel.taken(&channel.attempt(now + seconds(5)).unwrap());
        channel.failed(&together[3], now + seconds(5));
        assert!(channel.attempt(now + seconds(5)).is_ok());
    }

    #[test]
    fn a_try_that_nobody_hears_of_again_is_followed_by_another() {
        let (channel, now) = (ChannelPause::default(), Instant::now());
        channel.failed(&channel.attempt(now).unwrap(), now);
        let _unheard = channel.attempt(now + seconds(5)).unwrap();
        assert_eq!(channel.attempt(now + seconds(6)).unwrap_err(), seconds(4));
        assert!(channel.attempt(now + seconds(10)).is_ok());
    }
}
