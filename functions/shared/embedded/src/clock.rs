//! The system clock, and random bits.

#![expect(clippy::disallowed_methods, reason = "this is where time and randomness come from")]

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use domain::ports::Environment;
use domain::time::Timestamp;

use crate::even::Even;

/// A wall clock.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// The time of the operating system.
#[must_use]
pub fn system_time() -> Timestamp {
    // A time before 1970 counts as 1970.
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_epoch_ms(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// The time of the options' clock, and randomness from the operating system.
#[derive(Clone)]
pub struct Clock {
    wall: Now,
    /// What takes the short jumps out of the system's time, for all that an order waits for.
    even: Option<Arc<Even>>,
}

impl Clock {
    /// Of a clock of a test, or the system's.
    pub(crate) fn new(given: Option<Now>) -> Self {
        let even = given.is_none().then(Arc::default);
        Self { wall: given.unwrap_or_else(|| Arc::new(system_time)), even }
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        match &self.even {
            Some(even) => even.at(self.wall(), Instant::now()),
            None => self.wall(),
        }
    }

    fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    async fn sleep(&self, ms: u64) {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }

    fn random(&self) -> u64 {
        random()
    }
}

/// Random numbers from the operating system, fetched together, since each fetch is a system call.
fn random() -> u64 {
    thread_local!(static NUMBERS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) });
    const NUMBERS_AT_ONCE: usize = 64;
    NUMBERS.with_borrow_mut(|numbers| {
        if numbers.is_empty() {
            let mut bytes = [0; NUMBERS_AT_ONCE * size_of::<u64>()];
            getrandom::fill(&mut bytes).expect("the system has random bits");
            numbers.extend(bytes.as_chunks().0.iter().map(|chunk| u64::from_le_bytes(*chunk)));
        }
        numbers.pop().expect("just filled")
    })
}

/// The monotonic time: it goes on while the machine runs, and cannot be set.
pub(crate) fn since_any_time() -> tokio::time::Instant {
    tokio::time::Instant::now()
}

/// The time `ms` from now, on the clock of the queues and waits.
pub(crate) fn later(ms: u64) -> tokio::time::Instant {
    since_any_time() + Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicI64, Ordering};

    use super::*;

    #[test]
    fn f71_what_others_see_jumps_with_the_clock_and_what_an_order_waits_for_does_not() {
        let shown = Arc::new(AtomicI64::new(1_000_000));
        let wall = shown.clone();
        let wall: Now = Arc::new(move || Timestamp::from_epoch_ms(wall.load(Ordering::Relaxed)));
        let clock = Clock { wall, even: Some(Arc::default()) };
        assert_eq!((clock.now().epoch_ms(), clock.wall().epoch_ms()), (1_000_000, 1_000_000));
        shown.fetch_add(3_600_000, Ordering::Relaxed);
        assert_eq!(clock.wall().epoch_ms(), 4_600_000);
        assert!(clock.now().epoch_ms() < 4_600_000, "an hour is not believed at once");
    }

    #[test]
    fn no_random_number_is_given_twice() {
        let threads = [(); 4].map(|()| std::thread::spawn(|| (0..1_000).map(|_| random()).collect::<Vec<_>>()));
        let given: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
    }
}
