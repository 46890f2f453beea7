//! Waiting in virtual time.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::state::Shared;

/// Ready when this much virtual time has passed since the first poll.
pub struct Sleep {
    shared: Shared,
    ms: u64,
    until_ms: Option<i64>,
    timer: Option<(u32, u32)>,
}

impl Sleep {
    /// A sleep of this many milliseconds.
    #[must_use]
    pub const fn new(shared: Shared, ms: u64) -> Self {
        Self { shared, ms, until_ms: None, timer: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.shared.lock();
        let now_ms = state.now_ms;
        let until_ms = *this.until_ms.get_or_insert_with(|| now_ms.saturating_add_unsigned(this.ms));
        if now_ms >= until_ms {
            return Poll::Ready(());
        }
        match this.timer {
            Some(timer) => state.change_timer(timer, context.waker()),
            None => {
                let left_ms = until_ms.abs_diff(now_ms);
                this.timer = Some(state.wake_after(left_ms, context.waker().clone()));
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(timer) = self.timer {
            let waker = self.shared.lock().end_timer(timer);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Waker;

    use super::*;
    use crate::event::Event;
    use crate::testing;

    #[test]
    fn a_sleep_ends_at_its_time_and_one_that_is_dropped_wakes_nobody() {
        let shared = Shared::new(testing::state(testing::setup()));
        let mut context = Context::from_waker(Waker::noop());
        let mut long = pin!(Sleep::new(shared.clone(), 200));
        assert!(long.as_mut().poll(&mut context).is_pending());
        let mut short = Box::pin(Sleep::new(shared.clone(), 100));
        assert!(short.as_mut().poll(&mut context).is_pending());
        drop(short);
        let fire = |at_ms| {
            let Some(Event::Timer(slot, generation)) = shared.lock().next_event() else { panic!("a timer") };
            assert_eq!(shared.lock().now_ms, at_ms);
            shared.lock().end_timer((slot, generation)).is_some()
        };
        assert!(!fire(100), "nobody waits");
        assert!(fire(200));
        assert!(long.as_mut().poll(&mut context).is_ready());
    }
}
