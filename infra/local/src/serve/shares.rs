//! A bounded number of places, of which no one who is known has more than a part, so that some are left for others.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The places.
#[derive(Debug)]
pub(super) struct Shares<K> {
    pub(super) all_max: usize,
    of_one_max: usize,
    taken: Mutex<Taken<K>>,
}

#[derive(Debug)]
struct Taken<K> {
    all: usize,
    of_one: HashMap<K, usize>,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub(super) struct Share<K: Hash + Eq> {
    shares: Arc<Shares<K>>,
    of: Option<K>,
}

impl<K: Hash + Eq + Clone> Shares<K> {
    pub(super) fn new(all_max: usize, of_one_max: usize) -> Arc<Self> {
        Arc::new(Self { all_max, of_one_max, taken: Mutex::new(Taken { all: 0, of_one: HashMap::new() }) })
    }

    /// A place of this one, if there is room. Those who are not known have no part of their own.
    pub(super) fn take(self: &Arc<Self>, of: Option<K>) -> Option<Share<K>> {
        let mut taken = self.taken();
        let own = of.as_ref().and_then(|one| taken.of_one.get(one)).copied().unwrap_or(0);
        if taken.all >= self.all_max || own >= self.of_one_max {
            return None;
        }
        taken.all += 1;
        if let Some(one) = &of {
            taken.of_one.insert(one.clone(), own + 1);
        }
        Some(Share { shares: self.clone(), of })
    }
}

impl<K> Shares<K> {
    fn taken(&self) -> MutexGuard<'_, Taken<K>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        let taken = self.taken();
        taken.all == 0 && taken.of_one.is_empty()
    }
}

impl<K: Hash + Eq> Drop for Share<K> {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        taken.all -= 1;
        let Some(one) = &self.of else { return };
        if let Some(count) = taken.of_one.get_mut(one) {
            *count -= 1;
            if *count == 0 {
                taken.of_one.remove(one);
            }
        }
    }
}
