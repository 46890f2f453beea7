//! The ports: all that the handlers need from the world. An adapter implements them on one kind of infrastructure; a
//! handler names those that it uses, so its signature says what its role may do.
//!
//! Adapters must keep what is written at each method; `tests/conformance` runs the same suite on all of them.

use std::error::Error;
use std::future::Future;
use std::sync::Arc;

use crate::backoff::Backoff;
use crate::id::OrderId;
use crate::message::{CloudEvent, Delivery, Receipt, Request, SchedulerMessage};
use crate::order::Order;
use crate::task::{ProcessState, Task};
use crate::time::Timestamp;

/// The order database and the state store.
pub trait Store: Send + Sync {
    /// Writes order and task together, or neither. An order is inserted once: repeats change nothing.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether the write happened; the caller repeats it.
    fn insert(&self, order: Order, task: Task) -> impl Future<Output = Result<Inserted, PortError>> + Send;

    /// The order of this id.
    ///
    /// # Errors
    /// [`PortError`] when the store cannot be read.
    fn order(&self, order_id: OrderId) -> impl Future<Output = Result<Option<Arc<Order>>, PortError>> + Send;

    /// The task of this id, as last committed.
    ///
    /// # Errors
    /// [`PortError`] when the store cannot be read.
    fn task(&self, order_id: OrderId) -> impl Future<Output = Result<Option<Arc<Task>>, PortError>> + Send;

    /// Replaces `before` by `after`, if the stored version is still that of `before`. Answers only once the change
    /// cannot be lost any more. A repeat that meets its own nonce has succeeded (rule 3).
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether the write happened; the caller repeats it.
    fn commit(&self, before: &Task, after: Arc<Task>) -> impl Future<Output = Result<Commit, PortError>> + Send;

    /// Orders of a shard that the supervisor has to look after by `now`, those due longest first, at most `limit`.
    /// `after` is the last entry of the page before. The answer may lag behind the tasks.
    ///
    /// # Errors
    /// [`PortError`] when the index cannot be read.
    fn due(
        &self,
        shard: u8,
        now: Timestamp,
        after: Option<Due>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Due>, PortError>> + Send;

    /// Tasks in a state (or in any), newest first, at most `limit`; `after` is the `next` of the page before.
    ///
    /// # Errors
    /// [`ListError`] when `after` was not made by this store, or the store cannot be read.
    fn list(
        &self,
        state: Option<ProcessState>,
        after: Option<&str>,
        limit: usize,
    ) -> impl Future<Output = Result<Page, ListError>> + Send;

    /// The task of this id once it is settled ([`ProcessState::is_settled`]), or as it is after `wait_ms`. Waits also
    /// for an order that was accepted and is not stored yet.
    ///
    /// # Errors
    /// [`PortError`] when the store cannot be read.
    fn settled(
        &self,
        order_id: OrderId,
        wait_ms: u64,
    ) -> impl Future<Output = Result<Option<Arc<Task>>, PortError>> + Send;
}

/// What became of an insert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// It was written.
    New,
    /// The same order with the same document was there.
    Same,
    /// An order of this id with another document was there; nothing changed.
    Different,
}

/// What became of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Commit {
    /// It was written, now or by an earlier try of the same write.
    Committed,
    /// Somebody else was first: read again, decide again. Not an error.
    Conflict,
}

/// An entry of the index `watch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Due {
    /// Since when it is due.
    pub at: Timestamp,
    /// Which order.
    pub order_id: OrderId,
}

/// A page of tasks.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The tasks.
    pub tasks: Vec<Arc<Task>>,
    /// Where the next page goes on; nothing after the last page.
    pub next: Option<String>,
}

/// The queues between the functions.
pub trait Queues: Send + Sync {
    /// Puts an accepted order on the submission queue. Answers only once it cannot be lost any more.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was queued; the caller tells the application to post again.
    fn submit(&self, order: Order) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Puts a message on the scheduler queue, to be delivered after `delay_ms`, at most [`DELAY_MS_MAX`].
    ///
    /// [`DELAY_MS_MAX`]: crate::limits::DELAY_MS_MAX
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was queued; the caller repeats it.
    fn to_scheduler(
        &self,
        message: SchedulerMessage,
        delay_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Puts a request on the queue of an agent.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was queued; the caller repeats it.
    fn to_agent(&self, agent: &str, request: Request) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Leaves a message of an agent's queue hidden for `delay_ms` from now, and then lets it be delivered again. The
    /// handler reports it as not done.
    ///
    /// # Errors
    /// [`PortError`] when that is not known to have happened; it is then delivered again at some other time.
    fn return_to_agent(
        &self,
        agent: &str,
        receipt: &Receipt,
        delay_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// The receiving end of a queue, for a host that feeds the handlers itself. On AWS the platform does that.
///
/// A message that was received is hidden for the queue's visibility time-out. If it is not deleted until then it is
/// delivered again, and after too many deliveries it goes to the queue's dead letters.
pub trait Source<M>: Send + Sync {
    /// The next messages, at most `limit`; waits until there is one.
    fn receive(&self, limit: usize) -> impl Future<Output = Vec<Delivery<M>>> + Send;

    /// Deletes messages that were handled. A delivery that is not the message's last deletes nothing.
    ///
    /// # Errors
    /// [`PortError`] when that is not known to have happened; they are then delivered again.
    fn delete(&self, receipts: Vec<Receipt>) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// The ways out: the event bus and the reply channels.
pub trait Events: Send + Sync {
    /// Puts an event on the event bus.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was taken; it is then sent again.
    fn publish(&self, event: CloudEvent) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Sends an event to a reply channel by its registered name.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was taken, or the channel is gone; it is then sent again.
    fn notify(&self, channel: &str, event: CloudEvent) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// Named leases, so that one of many does a work (rule 13). A lease saves work; nothing may be wrong when two hold it.
pub trait Leases: Send + Sync {
    /// Takes the lease if nobody holds it or its term is over. `None`: somebody else holds it.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was taken; count it as not taken.
    fn acquire(
        &self,
        name: &str,
        owner: &str,
        now: Timestamp,
        term_ms: u64,
    ) -> impl Future<Output = Result<Option<Lease>, PortError>> + Send;

    /// Extends a lease that is still held with this epoch, and leaves a note on its holder's health. `None`: it is lost.
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether it was extended; count it as lost.
    fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> impl Future<Output = Result<Option<Lease>, PortError>> + Send;

    /// Gives a lease back early, if it is still held with this epoch.
    ///
    /// # Errors
    /// [`PortError`] when that is not known to have happened; the term will end it.
    fn release(&self, lease: &Lease) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// A lease as its holder knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// What it is for.
    pub name: Arc<str>,
    /// Who holds it.
    pub owner: Arc<str>,
    /// +1 at every change of holder.
    pub epoch: u64,
    /// When its term is over.
    pub expires_at: Timestamp,
}

/// The health of the remote services, shared by all agent instances (design §5).
pub trait Services: Send + Sync {
    /// What is known of a service; nothing as long as it never failed.
    ///
    /// # Errors
    /// [`PortError`] when the record cannot be read.
    fn health(&self, service: &str) -> impl Future<Output = Result<Option<ServiceHealth>, PortError>> + Send;

    /// Replaces the record, if its stored version is still `version_before` (0: there is none yet).
    ///
    /// # Errors
    /// [`PortError`] when it is not known whether the write happened; read again.
    fn set_health(
        &self,
        version_before: u64,
        after: ServiceHealth,
    ) -> impl Future<Output = Result<Commit, PortError>> + Send;

    /// All records, sorted by service.
    ///
    /// # Errors
    /// [`PortError`] when the records cannot be read.
    fn all_health(&self) -> impl Future<Output = Result<Vec<ServiceHealth>, PortError>> + Send;
}

/// What is known of a remote service.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ServiceHealth {
    /// Name of its agent.
    pub service: Arc<str>,
    /// +1 at every change.
    pub version: u64,
    /// Whether requests go through.
    pub state: Breaker,
    /// Failures since the last success.
    pub failures_in_a_row: u32,
    /// While open: until when. While half-open: until when the probe may take.
    pub until: Timestamp,
    /// Where the back-off stands.
    pub backoff: Backoff,
    /// Since when it is in this state.
    pub since: Timestamp,
}

/// Whether requests to a service go through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Breaker {
    /// They do.
    Closed,
    /// They are parked until a time.
    Open,
    /// One of them probes; the others are parked.
    HalfOpen,
}

/// The time and the way to wait.
pub trait Clock: Send + Sync {
    /// The time, as far as this instance knows.
    fn now(&self) -> Timestamp;

    /// Waits.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + Send;
}

/// Random bits.
pub trait Randomness: Send + Sync {
    /// 64 of them.
    fn random(&self) -> u64;
}

/// A port could not do its work, or could not say whether it did.
#[derive(Debug, thiserror::Error)]
#[error("{operation}: {kind}")]
pub struct PortError {
    /// What was tried, like `store.commit`.
    pub operation: &'static str,
    /// What to do about it.
    pub kind: PortErrorKind,
    /// What the infrastructure said.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

/// What to do about a [`PortError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortErrorKind {
    /// Try again later.
    #[error("unavailable")]
    Unavailable,
    /// No retry will help; somebody has to mend something.
    #[error("refused")]
    Refused,
}

impl PortError {
    /// The infrastructure cannot be reached or is overloaded: try again later.
    pub fn unavailable(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, kind: PortErrorKind::Unavailable, source: Some(source.into()) }
    }

    /// The infrastructure understood and said no, or what is stored cannot be read.
    pub fn refused(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, kind: PortErrorKind::Refused, source: Some(source.into()) }
    }
}

/// A list could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ListError {
    /// The place to go on from was not made by this store.
    #[error("the cursor is not one that this list gave")]
    Cursor,
    /// The store failed.
    #[error(transparent)]
    Port(#[from] PortError),
}
