//! Batches the messages that concurrent records send one by one.
//!
//! Each sender waits for the outcome of its own entry. Entries to the same target share a batch if they come before it
//! is sent. The batch is sent once every ready sender has added its entry. If other work of the same invocation is in
//! flight, the batch waits a moment for it. Ten records that are read together send their messages almost together.

mod delivery;
mod split;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};

use domain::limits::BATCH_MAX;
use domain::ports::PortError;
use futures_util::future::join_all;
use tokio::sync::{Notify, oneshot};

use crate::environment::{Random, within};
use crate::scope::{Company, Scope};
use delivery::deliver;
use split::split;

/// The time that a batch waits for other work in flight, in milliseconds.
const LINGER_MS: u64 = 2;

/// Sends entries of one kind.
pub(crate) trait Carrier: Send + Sync + 'static {
    /// One entry of a request.
    type Entry: Send + Sync + 'static;
    /// The name of the operation, for errors.
    const OPERATION: &'static str;
    /// The maximum number of bytes in one request.
    const BYTES_MAX: usize;

    /// The size of an entry in bytes, as the request's limit counts it.
    fn bytes(entry: &Self::Entry) -> usize;

    /// Sends entries with one request. Returns the outcome of each, in their order.
    fn carry(
        &self,
        target: &str,
        entries: &[&Self::Entry],
    ) -> impl Future<Output = Result<Vec<SendOutcome>, PortError>> + Send;
}

/// The outcome of one entry of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// The entry was taken.
    Taken,
    /// The entry was not taken this time.
    NotNow(String),
    /// The entry will never be taken.
    Refused(String),
}

/// Collects entries by target, and sends them. A clone shares them.
pub(crate) struct Batcher<C: Carrier>(Arc<Inner<C>>);

struct Inner<C: Carrier> {
    carrier: C,
    random: Arc<Random>,
    piles: Mutex<HashMap<Arc<str>, Pile<C::Entry>>>,
}

/// The entries of the next batch to one target. A pile exists while a task is going to send it.
struct Pile<E> {
    entries: Vec<Waiting<E>>,
    company: Company,
    /// Notified when a longer wait has no use.
    complete: Arc<Notify>,
}

/// One entry, and the channel for its outcome.
struct Waiting<E> {
    entry: E,
    teller: oneshot::Sender<Result<(), PortError>>,
}

impl<C: Carrier> Batcher<C> {
    pub(crate) fn new(carrier: C, random: Arc<Random>) -> Self {
        Self(Arc::new(Inner { carrier, random, piles: Mutex::default() }))
    }

    /// Sends one entry, in a batch with others if there are any.
    ///
    /// # Errors
    /// [`PortError`] if the entry was not taken, or if its outcome is unknown.
    pub(crate) async fn send(&self, target: &Arc<str>, entry: C::Entry) -> Result<(), PortError> {
        let bytes = C::bytes(&entry);
        if bytes > C::BYTES_MAX {
            let problem = format!("{bytes} bytes are too many to send at once, {} are the most", C::BYTES_MAX);
            return Err(PortError::refused(C::OPERATION, problem));
        }
        let (teller, outcome) = oneshot::channel();
        if let Some(complete) = self.0.put(target, Waiting { entry, teller }) {
            let (inner, target) = (self.0.clone(), target.clone());
            tokio::spawn(async move { inner.send_pile(&target, &complete).await });
        }
        outcome.await.unwrap_or_else(|_| Err(PortError::unavailable(C::OPERATION, "the sending was broken off")))
    }
}

impl<C: Carrier> Inner<C> {
    /// Adds an entry to its target's pile. For the first entry it returns the signal; the caller must then send the
    /// pile.
    fn put(&self, target: &Arc<str>, waiting: Waiting<C::Entry>) -> Option<Arc<Notify>> {
        let mut piles = self.piles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pile) = piles.get_mut(target) {
            pile.entries.push(waiting);
            if pile.is_complete() {
                pile.complete.notify_one();
            }
            return None;
        }
        let complete = Arc::new(Notify::new());
        let pile = Pile { entries: vec![waiting], company: Scope::current().company, complete: complete.clone() };
        piles.insert(target.clone(), pile);
        Some(complete)
    }

    async fn send_pile(&self, target: &Arc<str>, complete: &Notify) {
        // Lets every ready sender add its entry.
        tokio::task::yield_now().await;
        if !self.is_complete(target) {
            within(LINGER_MS, complete.notified()).await;
        }
        let entries = self.take(target);
        let batches = split(entries, BATCH_MAX, C::BYTES_MAX, |waiting| C::bytes(&waiting.entry));
        join_all(batches.into_iter().map(|batch| deliver(&self.carrier, &self.random, target, batch))).await;
    }

    fn is_complete(&self, target: &str) -> bool {
        self.piles.lock().unwrap_or_else(PoisonError::into_inner).get(target).is_none_or(Pile::is_complete)
    }

    /// Removes the pile. The next entry for this target begins another.
    fn take(&self, target: &str) -> Vec<Waiting<C::Entry>> {
        let mut piles = self.piles.lock().unwrap_or_else(PoisonError::into_inner);
        piles.remove(target).map(|mut pile| mem::take(&mut pile.entries)).unwrap_or_default()
    }
}

impl<E> Pile<E> {
    /// Whether a request is full, or no other work in flight can send a message.
    fn is_complete(&self) -> bool {
        self.entries.len() >= BATCH_MAX.min(self.company.size())
    }
}

impl<C: Carrier> Clone for Batcher<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C: Carrier> std::fmt::Debug for Batcher<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batcher").field("operation", &C::OPERATION).finish_non_exhaustive()
    }
}
