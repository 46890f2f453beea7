//! The event bus and the reply channels.

use std::future::Future;

use super::PortError;
use crate::message::CloudEvent;

/// The event bus and the reply channels.
pub trait Events: Send + Sync {
    /// Puts an event on the event bus.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether the event was taken; it is then sent again.
    fn publish(&self, event: CloudEvent) -> impl Future<Output = Result<(), PortError>> + Send;

    /// Sends an event to a reply channel by its registered name.
    ///
    /// # Errors
    /// [`PortError`] if it is not known whether the event was taken, or the channel is gone; it is then sent again.
    fn notify(&self, channel: &str, event: CloudEvent) -> impl Future<Output = Result<(), PortError>> + Send;
}
