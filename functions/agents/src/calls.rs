//! The most calls of a process at once, over all services: each takes a file descriptor, and its host needs others.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The calls under way, and their bound. A clone shares both.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    under_way: Arc<AtomicUsize>,
    pub(crate) max: usize,
}

/// One of the calls, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<AtomicUsize>);

impl Calls {
    pub(crate) fn new(max: usize) -> Self {
        Self { under_way: Arc::default(), max }
    }

    /// A place for one more call; `None` if there is none.
    pub(crate) fn place(&self) -> Option<Place> {
        let more = |under_way| (under_way < self.max).then_some(under_way + 1);
        self.under_way.fetch_update(Relaxed, Relaxed, more).ok()?;
        Some(Place(self.under_way.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
