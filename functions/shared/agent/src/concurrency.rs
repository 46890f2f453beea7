//! The most calls of an agent at once, in one instance (rule 20).

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::ports::Environment;
use futures_channel::oneshot;
use futures_util::future::{Either, select};

/// The calls that an instance may make at once. Requests wait for a free one in the order in which they came.
#[derive(Debug)]
pub(crate) struct Concurrency(Mutex<State>);

#[derive(Debug)]
struct State {
    free: u32,
    waiting: VecDeque<oneshot::Sender<Seat>>,
}

/// One of the calls. It is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat(Option<Arc<Concurrency>>);

impl Concurrency {
    pub(crate) fn new(calls_max: u32) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { free: calls_max, waiting: VecDeque::new() })))
    }

    /// A seat, if one is free within this time.
    pub(crate) async fn seat(self: &Arc<Self>, environment: &impl Environment, wait_ms: u64) -> Option<Seat> {
        let coming = {
            let mut state = self.state();
            if state.free > 0 {
                state.free -= 1;
                return Some(Seat(Some(self.clone())));
            }
            let (sender, coming) = oneshot::channel();
            // Those that wait no more must not pile up during long calls.
            state.waiting.retain(|waiting| !waiting.is_canceled());
            state.waiting.push_back(sender);
            coming
        };
        match select(coming, pin!(environment.sleep(wait_ms))).await {
            Either::Left((seat, _)) => seat.ok(),
            Either::Right(((), mut coming)) => coming.try_recv().ok().flatten(),
        }
    }

    /// Gives a seat to the next request that still waits.
    fn pass_on(self: Arc<Self>) {
        loop {
            let Some(next) = self.next() else { return };
            match next.send(Seat(Some(self.clone()))) {
                Ok(()) => return,
                Err(mut seat) => drop(seat.0.take()),
            }
        }
    }

    /// The next request that waits. If there is none, the seat is free.
    fn next(&self) -> Option<oneshot::Sender<Seat>> {
        let mut state = self.state();
        let next = state.waiting.pop_front();
        state.free += u32::from(next.is_none());
        next
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(concurrency) = self.0.take() {
            concurrency.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Time passes at once, or not at all.
    struct Passing(bool);

    impl Environment for Passing {
        fn now(&self) -> domain::time::Timestamp {
            unreachable!("a wait needs no clock")
        }

        fn sleep(&self, _: u64) -> impl Future<Output = ()> + Send {
            let passes = self.0;
            std::future::poll_fn(move |_| if passes { Poll::Ready(()) } else { Poll::Pending })
        }

        fn random(&self) -> u64 {
            unreachable!("a wait needs no draw")
        }
    }

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn requests_get_seats_in_their_order_and_a_request_that_went_away_takes_none() {
        let concurrency = Concurrency::new(1);
        let never = Passing(false);
        let ask = || concurrency.seat(&never, 1_000);
        let Poll::Ready(Some(first)) = poll(pin!(ask())) else { panic!("one is free") };
        let mut gone = Box::pin(ask());
        let (mut second, mut third) = (pin!(ask()), pin!(ask()));
        assert!(poll(gone.as_mut()).is_pending());
        assert!(poll(second.as_mut()).is_pending() && poll(third.as_mut()).is_pending());
        drop(gone);
        drop(first);
        assert!(poll(third.as_mut()).is_pending(), "it is the turn of the second");
        let Poll::Ready(Some(seat)) = poll(second.as_mut()) else { panic!("it came next") };
        drop(seat);
        assert!(matches!(poll(third.as_mut()), Poll::Ready(Some(_))));
    }

    #[test]
    fn a_seat_that_was_given_and_not_taken_is_given_to_the_next() {
        let concurrency = Concurrency::new(1);
        let never = Passing(false);
        let Poll::Ready(Some(first)) = poll(pin!(concurrency.seat(&never, 1_000))) else { panic!("one is free") };
        let mut second = Box::pin(concurrency.seat(&never, 1_000));
        assert!(poll(second.as_mut()).is_pending());
        drop(first);
        drop(second);
        assert!(matches!(poll(pin!(concurrency.seat(&never, 1_000))), Poll::Ready(Some(_))));
    }

    #[test]
    fn who_has_waited_long_enough_gets_none() {
        let concurrency = Concurrency::new(1);
        let Poll::Ready(Some(_first)) = poll(pin!(concurrency.seat(&Passing(false), 1_000))) else {
            panic!("one is free")
        };
        assert!(matches!(poll(pin!(concurrency.seat(&Passing(true), 1_000))), Poll::Ready(None)));
    }
}
