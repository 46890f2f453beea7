//! The bytes of all bodies that are being received or handled have a bound together.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The bytes of all bodies. One network has three quarters of them, so that it leaves some for others.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// A body of at most this size is always accepted. Commands are small, so they still arrive under an attack.
const SMALL_BYTES: usize = 16 * 1024;

/// All bodies.
#[derive(Debug)]
pub(super) struct Bodies {
    bytes_max: usize,
    small_bytes: usize,
    counts: Mutex<Counts>,
}

/// The bytes of a body, which count until it is dropped.
#[derive(Debug)]
pub(super) struct BodyBytes<'a> {
    all: &'a Bodies,
    network: IpAddr,
    bytes: usize,
}

#[derive(Debug, Default)]
struct Counts {
    all: usize,
    of_network: HashMap<IpAddr, usize>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self { bytes_max: BYTES_MAX, small_bytes: SMALL_BYTES, counts: Mutex::default() }
    }
}

impl Bodies {
    /// A body that comes from this network.
    pub(super) const fn from(&self, network: IpAddr) -> BodyBytes<'_> {
        BodyBytes { all: self, network, bytes: 0 }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BodyBytes<'_> {
    /// So many more are here. Returns whether the body may go on.
    pub(super) fn add(&mut self, bytes: usize) -> bool {
        let Bodies { bytes_max, small_bytes, .. } = self.all;
        self.bytes += bytes;
        let mut counts = self.all.counts();
        counts.all += bytes;
        let of_network = counts.of_network.entry(self.network).or_default();
        *of_network += bytes;
        let fits = *of_network <= bytes_max / 4 * 3 && counts.all <= *bytes_max;
        fits || self.bytes <= *small_bytes
    }
}

impl Drop for BodyBytes<'_> {
    fn drop(&mut self) {
        let mut counts = self.all.counts();
        counts.all -= self.bytes;
        if let Entry::Occupied(mut of_network) = counts.of_network.entry(self.network) {
            *of_network.get_mut() -= self.bytes;
            if *of_network.get() == 0 {
                of_network.remove();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_a_bound_together() {
        let all = Bodies { bytes_max: 100, small_bytes: 4, counts: Mutex::default() };
        let [greedy, foreign] = ["192.0.2.1", "192.0.2.2"].map(|network| network.parse().unwrap());
        let (mut one, mut other, mut of_foreign) = (all.from(greedy), all.from(greedy), all.from(foreign));
        assert!(one.add(60) && other.add(15) && !other.add(1), "three quarters for one network");
        assert!(of_foreign.add(24) && !of_foreign.add(1), "all together");
        let mut command = all.from(foreign);
        assert!(command.add(4) && !command.add(1), "a small one is always taken");
        drop((one, of_foreign, command));
        assert!(other.add(59));
        drop(other);
        assert!(all.counts().of_network.is_empty());
    }
}
