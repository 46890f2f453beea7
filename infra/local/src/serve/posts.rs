//! The rate of new orders of each known caller, so that the burst of one application leaves the others their share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::host_time::moment;

/// The posts of the present second.
#[derive(Debug)]
pub(super) struct Posts {
    a_second_max: u32,
    start: Instant,
    counted: Mutex<Counted>,
}

/// Of a second since the start, by caller.
#[derive(Debug, Default)]
struct Counted {
    second: u64,
    of_caller: HashMap<Arc<str>, u32>,
}

impl Posts {
    pub(super) fn with(a_second_max: u32) -> Self {
        Self { a_second_max, start: moment(), counted: Mutex::default() }
    }

    /// Counts one more post of this caller, if the second has room for it.
    pub(super) fn take(&self, caller: &Arc<str>) -> bool {
        let second = moment().duration_since(self.start).as_secs();
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        if counted.second != second {
            *counted = Counted { second, ..Counted::default() };
        }
        let count = counted.of_caller.entry(caller.clone()).or_default();
        let has_room = *count < self.a_second_max;
        *count += u32::from(has_room);
        has_room
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn rule_15_the_burst_of_one_caller_leaves_the_others_their_posts() {
        let (posts, shop, other) = (Posts::with(3), Arc::from("shop"), Arc::from("other"));
        let burst = (0..100).filter(|_| posts.take(&shop)).count();
        assert_eq!((burst, posts.take(&other)), (3, true));
        tokio::time::advance(Duration::from_millis(999)).await;
        assert!(!posts.take(&shop), "the same second");
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(posts.take(&shop), "the next one");
        assert_eq!(posts.counted.lock().unwrap().of_caller.len(), 1, "nothing is kept of those who are gone");
    }
}
