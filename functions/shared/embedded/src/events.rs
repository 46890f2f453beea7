//! The ways out: the event bus, which is a table of the newest events and an observer, and the reply channels.

use domain::message::CloudEvent;
use domain::ports::{Events, PortError};
use tokio::time::timeout_at;

use crate::clock::later;
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

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        const OPERATION: &str = "events.notify";
        let Some((channel, ms_max)) = self.channel(channel) else {
            return Err(PortError::refused(OPERATION, UnknownChannel(channel.to_owned())));
        };
        match timeout_at(later(ms_max), channel(event)).await {
            Ok(taken) => taken.map_err(|error| PortError::unavailable(OPERATION, error)),
            Err(late) => Err(PortError::unavailable(OPERATION, late)),
        }
    }
}
