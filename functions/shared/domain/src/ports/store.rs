//! The order database and the state store.

use std::future::{Future, ready};
use std::sync::Arc;

use super::PortError;
use crate::id::OrderId;
use crate::index::Term;
use crate::order::Order;
use crate::tally::{Grain, Numbers};
use crate::task::{ProcessState, Task, Watch};
use crate::time::Timestamp;

/// The order database and the state store.
pub trait Store: Send + Sync {
    /// Writes an order and its task. No task is there without its order. An order is inserted once: a repeat of the same
    /// submission writes the task if an earlier one was killed before it, and changes nothing else. A repeat that meets its
    /// own nonce is [`Inserted::New`] again (rule 3).
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether the write happened; the caller repeats it.
    fn insert(&self, order: Arc<Order>, task: Arc<Task>) -> impl Future<Output = Result<Inserted, PortError>> + Send;

    /// The order of this id.
    ///
    /// # Errors
    /// [`PortError`] if the store cannot be read.
    fn order(&self, order_id: OrderId) -> impl Future<Output = Result<Option<Arc<Order>>, PortError>> + Send;

    /// The task of this id, as last committed.
    ///
    /// # Errors
    /// [`PortError`] if the store cannot be read.
    fn task(&self, order_id: OrderId) -> impl Future<Output = Result<Option<Arc<Task>>, PortError>> + Send;

    /// Replaces `before` by `after`, if the stored version is still that of `before`. Returns only once the change is
    /// durable. If `after` is the first version with `erased_at`, the same write removes the personal data of the order
    /// (rule 46). A repeat that meets its own nonce has succeeded (rule 3).
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether the write happened; the caller repeats it.
    fn commit(&self, before: &Task, after: Arc<Task>) -> impl Future<Output = Result<Commit, PortError>> + Send;

    /// Removes what the store keeps of an order beside the order and its task (rule 46). It comes before the commit that
    /// erases the task. A store that removes it with that write has nothing to do here.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all is removed; the caller repeats it.
    fn erase_others(&self, _task: &Task) -> impl Future<Output = Result<(), PortError>> + Send {
        ready(Ok(()))
    }

    /// The orders with this `watch` that are due for the supervisor at `now`: the longest due first, at most `limit`. `after`
    /// is the last entry of the page before. The answer may lag behind the tasks.
    ///
    /// # Errors
    /// [`PortError`] if the index cannot be read.
    fn due(
        &self,
        watch: Watch,
        now: Timestamp,
        after: Option<Due>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Due>, PortError>> + Send;

    /// All entries of the index `watch` with their times, in no order, if there are fewer than `max`. `None`: there may be
    /// more, or this store does not tell. The answer may lag behind the tasks.
    ///
    /// # Errors
    /// [`PortError`] if the index cannot be read.
    fn watches(&self, _max: usize) -> impl Future<Output = Result<Option<Vec<(Watch, Timestamp)>>, PortError>> + Send {
        ready(Ok(None))
    }

    /// Tasks in a state (or in any), newest first, at most `limit`; `after` is the `next` of the page before.
    ///
    /// # Errors
    /// [`ListError`] if `after` was not made by this store, or the store cannot be read.
    fn list(
        &self,
        state: Option<ProcessState>,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Page, ListError>> + Send;

    /// Tasks of the orders with a term (rule 28), newest first, at most `limit`; `after` is the `next` of the page before.
    /// `None`: this store has no index.
    ///
    /// # Errors
    /// As [`Store::list`].
    fn found(
        &self,
        _term: &Term,
        _after: Option<&str>,
        _limit: usize,
    ) -> impl Future<Output = Result<Option<Page>, ListError>> + Send {
        ready(Ok(None))
    }

    /// The task of this id once it is settled ([`ProcessState::is_settled`]), or its state after `wait_ms`. Also waits
    /// for an order that was accepted and is not stored yet.
    ///
    /// # Errors
    /// [`PortError`] if the store cannot be read.
    fn settled(
        &self,
        order_id: OrderId,
        wait_ms: u64,
    ) -> impl Future<Output = Result<Option<Watched>, PortError>> + Send;

    /// Deletes orders that expired by `now` (rule 44), at most `limit`, and returns how many. A store that deletes them by
    /// itself returns 0.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether all of them are deleted; the next run finds the rest.
    fn forget_expired(&self, _now: Timestamp, _limit: usize) -> impl Future<Output = Result<usize, PortError>> + Send {
        ready(Ok(0))
    }

    /// What happened since a time, in spans of this length. `None`: this store keeps no tally (rule 26).
    ///
    /// # Errors
    /// [`PortError`] if the store cannot be read.
    fn numbers(
        &self,
        _grain: Grain,
        _since: Timestamp,
    ) -> impl Future<Output = Result<Option<Numbers>, PortError>> + Send {
        ready(Ok(None))
    }
}

/// The outcome of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It was written.
    New,
    /// The same order with the same document was already stored.
    Same,
    /// An order of this id with another document was already stored; nothing changed.
    Different,
}

impl Inserted {
    /// The outcome of an insert whose order is stored already. The same version and nonce show that this insert was
    /// committed earlier.
    #[must_use]
    pub fn on_conflict(stored: (&Order, &Task), new: (&Order, &Task)) -> Self {
        let ((stored_order, stored_task), (order, task)) = (stored, new);
        if !stored_order.is_of(&order.fingerprint) {
            Self::Different
        } else if (stored_task.version, stored_task.nonce) == (task.version, task.nonce) {
            Self::New
        } else {
            Self::Same
        }
    }
}

/// What a wait for an order ended with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watched {
    /// Its task.
    pub task: Arc<Task>,
    /// The order itself, if the store knows it without another read.
    pub order: Option<Arc<Order>>,
}

/// The outcome of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// It was written, now or by an earlier try of the same write.
    Committed,
    /// Another writer was first: read again, decide again. Not an error.
    Conflict,
}

/// An entry of the index `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// The time since which it is due.
    pub at: Timestamp,
    /// The order.
    pub order_id: OrderId,
}

/// A page of tasks.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// The cursor of the next page; `None` after the last page.
    pub next: Option<String>,
    /// The number of tasks that were read for it. Without an index by state, this includes tasks in other states.
    pub read: usize,
}

/// Why a list could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The cursor was not made by this store.
    #[error("the cursor is not one that this list gave")]
    Cursor,
    /// The store failed.
    #[error(transparent)]
    Port(#[from] PortError),
}
