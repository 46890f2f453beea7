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

/// The same without jumps that are taken back soon, for all that an order waits for.
pub(crate) fn even_time() -> Now {
    let even = Even::default();
    Arc::new(move || even.at(system_time(), Instant::now()))
}

/// The time of the options' clock, and randomness from the operating system.
#[derive(Clone)]
pub struct Clock(pub(crate) Now);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

impl Environment for Clock {
    fn now(&self) -> Timestamp {
        self.0()
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

    use super::*;

    #[test]
    fn no_random_number_is_given_twice() {
        let threads = [(); 4].map(|()| std::thread::spawn(|| (0..1_000).map(|_| random()).collect::<Vec<_>>()));
        let given: Vec<u64> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(given.iter().collect::<BTreeSet<_>>().len(), given.len());
    }
}
