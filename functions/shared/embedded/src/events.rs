//! The event bus: a table of the newest events, and an observer.

use domain::message::CloudEvent;
use domain::ports::{Events, PortError};

use crate::core::lock;
use crate::engine::Engine;
use crate::log::Write;

/// The order names a reply channel that nobody registered.
#[derive(Debug, thiserror::Error)]
#[error("no reply channel is registered under the name {0:?}")]
struct UnknownChannel(String);

impl Events for Engine {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        let durable = lock(&self.core().state).log.append_awaited(Write::Event(event.clone()));
        durable.reached("events.publish").await?;
        if let Some(observer) = self.observer() {
            observer(&event);
        }
        Ok(())
    }

    async fn notify(&self, channel: &str, _event: CloudEvent) -> Result<(), PortError> {
        Err(PortError::refused("events.notify", UnknownChannel(channel.to_owned())))
    }
}
