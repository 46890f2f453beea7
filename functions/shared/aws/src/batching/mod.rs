//! Sending in batches what the records that are handled at the same time send one by one.
//!
//! Whoever sends waits for the fate of its own entry. What comes to the same target before the batch goes, goes with it.
//! A batch goes as soon as everybody who is ready to send has done so; where others of the same invocation are still at
//! work it waits for them a moment, since ten records that are read together come to their messages almost together.

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

/// How long a batch waits for others that are still at work, in milliseconds.
const LINGER_MS: u64 = 2;

/// How entries of one kind are sent.
pub(crate) trait Carrier: Send + Sync + 'static {
    /// What is sent.
    type Entry: Send + Sync + 'static;
    /// What is tried, for errors.
    const OPERATION: &'static str;
    /// Most bytes that one request may carry.
    const BYTES_MAX: usize;

    /// The bytes of an entry, as the request's limit counts them.
    fn bytes(entry: &Self::Entry) -> usize;

    /// Sends entries with one request, and gives the fate of each, in their order.
    fn carry(
        &self,
        target: &str,
        entries: &[&Self::Entry],
    ) -> impl Future<Output = Result<Vec<SendOutcome>, PortError>> + Send;
}

/// What became of one entry of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// It was taken.
    Taken,
    /// It was not taken this time.
    NotNow(String),
    /// It will never be taken.
    Refused(String),
}

/// Gathers entries by target, and sends them. Cloning it shares them.
pub(crate) struct Batcher<C: Carrier>(Arc<Inner<C>>);

struct Inner<C: Carrier> {
    carrier: C,
    random: Arc<Random>,
    piles: Mutex<HashMap<Arc<str>, Pile<C::Entry>>>,
}

/// What waits for the next batch to one target. It is there as long as somebody is going to send it.
struct Pile<E> {
    entries: Vec<Waiting<E>>,
    company: Company,
    /// There is no use in waiting any longer.
    complete: Arc<Notify>,
}

/// One entry and whoever waits for its fate.
struct Waiting<E> {
    entry: E,
    teller: oneshot::Sender<Result<(), PortError>>,
}

impl<C: Carrier> Batcher<C> {
    pub(crate) fn new(carrier: C, random: Arc<Random>) -> Self {
        Self(Arc::new(Inner { carrier, random, piles: Mutex::default() }))
    }

    /// Sends one entry, together with others if there are any.
    ///
    /// # Errors
    /// [`PortError`] when it was not taken, or nobody knows whether it was.
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
    /// Lays an entry on its target's pile. Whoever lays down the first has to see to it that the pile is sent.
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
        // Everybody who is ready has a turn.
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

    /// Takes the pile away; the next entry for this target begins another.
    fn take(&self, target: &str) -> Vec<Waiting<C::Entry>> {
        let mut piles = self.piles.lock().unwrap_or_else(PoisonError::into_inner);
        piles.remove(target).map(|mut pile| mem::take(&mut pile.entries)).unwrap_or_default()
    }
}

impl<E> Pile<E> {
    /// Whether a request is full, or nobody is left who might send something.
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
