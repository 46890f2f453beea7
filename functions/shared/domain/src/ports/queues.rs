//! The queues between the functions, and their receiving end.

use std::future::Future;

use super::{Inserted, PortError};
use crate::message::{Delivery, Priority, Receipt, Request, SchedulerMessage};
use crate::order::Order;

/// The queues between the functions.
pub trait Queues: Send + Sync {
    /// Puts an accepted order on the submission queue, to be delivered after `delay_ms`, at most [`DELAY_MS_MAX`]. Returns
    /// only once it is durable. A queue that [knows the orders](Queues::knows_orders) does not take an order whose id is
    /// known, and may store a new one at once.
    ///
    /// [`DELAY_MS_MAX`]: crate::limits::DELAY_MS_MAX
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether it was queued; the caller asks the application to post again.
    fn submit(&self, order: Order, delay_ms: u64) -> impl Future<Output = Result<Inserted, PortError>> + Send;

    /// Whether [`Queues::submit`] tells an order that is stored or queued from a new one. Where it does not, each order is
    /// [`Inserted::New`], and its caller looks into the store.
    fn knows_orders(&self) -> bool {
        false
    }

    /// Puts a message on the scheduler queue of this priority, to be delivered after `delay_ms`, at most
    /// [`DELAY_MS_MAX`].
    ///
    /// [`DELAY_MS_MAX`]: crate::limits::DELAY_MS_MAX
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether it was queued; the caller repeats it.
    fn to_scheduler(
        &self,
        message: SchedulerMessage,
        priority: Priority,
        delay_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Puts a request on the queue of an agent, in the priority that it names.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether it was queued; the caller repeats it.
    fn to_agent(&self, agent: &str, request: Request) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Hides a message of an agent's queue for `delay_ms` from now; it is delivered again after that. The handler
    /// reports it as not done.
    ///
    /// # Errors
    /// [`PortError`] if that is not known to have happened; it is then delivered again at some other time.
    fn return_to_agent(
        &self,
        agent: &str,
        receipt: &Receipt,
        delay_ms: u64,
    ) -> impl Future<Output = Result<(), PortError>> + Send;
}

/// The receiving end of a queue, for a host that feeds the handlers itself. On AWS the platform does that.
///
/// A received message is hidden for the queue's visibility timeout. If it is not deleted by then, it is delivered
/// again. After too many deliveries it becomes a dead letter of the queue.
pub trait Source<M>: Send + Sync {
    /// The next messages, at most `limit`; waits until there is at least one.
    fn receive(&self, limit: usize) -> impl Future<Output = Vec<Delivery<M>>> + Send;

    /// Deletes messages that were handled. Only the last delivery of a message can delete it.
    ///
    /// # Errors
    /// [`PortError`] if that is not known to have happened; they are then delivered again.
    fn delete(&self, receipts: Vec<Receipt>) -> impl Future<Output = Result<(), PortError>> + Send;
}
