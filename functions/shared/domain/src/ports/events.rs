//! The ways out.

use std::future::Future;

use super::PortError;
use crate::message::CloudEvent;

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
