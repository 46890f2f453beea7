//! What an instance remembers of the requests that it returned to their queue.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use domain::time::Timestamp;

/// The most requests that it remembers. Of any other, an earlier delivery may have called.
const PARKED_MAX: usize = 100_000;

/// The requests, by message.
#[derive(Debug, Default)]
pub(crate) struct Parked(Mutex<BTreeMap<Arc<str>, Returned>>);

#[derive(Debug)]
struct Returned {
    receive_count: u32,
    /// Until when a call of these deliveries may have its effect.
    open_until: Option<Timestamp>,
}

impl Parked {
    /// Remembers a message that this instance returns, after this many deliveries.
    pub(crate) fn note(&self, message_id: &Arc<str>, receive_count: u32, open_until: Option<Timestamp>) {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if parked.len() >= PARKED_MAX {
            parked.clear();
        }
        parked.insert(message_id.clone(), Returned { receive_count, open_until });
    }

    /// Until when a call of the deliveries before this one may have its effect; `None` if another instance, or one that
    /// died, may have called since.
    pub(crate) fn take(&self, message_id: &str, receive_count: u32) -> Option<Option<Timestamp>> {
        let mut parked = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let returned = parked.remove(message_id)?;
        (returned.receive_count + 1 == receive_count).then_some(returned.open_until)
    }
}
