//! Events that leave the engine. The event bus is a table of the newest events and an observer. Reply channels are the
//! other way out.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use domain::message::CloudEvent;
use domain::ports::{Events, PortError};
use tokio::time::timeout_at;

use crate::clock::later;
use crate::core::Core;
use crate::lock::lock;
use crate::options::{Channel, Observer, Options};
use crate::write::Write;

/// The event bus and the reply channels.
pub struct EngineEvents {
    core: Arc<Core>,
    observer: Option<Observer>,
    pub(crate) channels: OnceLock<BTreeMap<Arc<str>, Channel>>,
    /// Time limit of a channel for one event, in milliseconds.
    channel_ms: u64,
}

impl EngineEvents {
    pub(crate) fn new(core: Arc<Core>, options: Options) -> Self {
        let Options { observer, channels, channel_ms, .. } = options;
        let channels = if channels.is_empty() { OnceLock::new() } else { channels.into() };
        Self { core, observer, channels, channel_ms }
    }
}

impl fmt::Debug for EngineEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineEvents").finish_non_exhaustive()
    }
}

/// The order names a reply channel that is not registered.
#[derive(Debug, thiserror::Error)]
#[error("no reply channel is registered under the name {0:?}")]
struct UnknownChannel(String);

impl Events for EngineEvents {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        let durable = lock(&self.core.state).log.append_awaited(Write::Event(event.clone()));
        durable.reached("events.publish").await?;
        if let Some(observer) = &self.observer {
            observer(&event);
        }
        Ok(())
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        const OPERATION: &str = "events.notify";
        let Some(send) = self.channels.get().and_then(|channels| channels.get(channel)) else {
            return Err(PortError::refused(OPERATION, UnknownChannel(channel.to_owned())));
        };
        match timeout_at(later(self.channel_ms), send(event)).await {
            Ok(taken) => taken.map_err(|error| PortError::unavailable(OPERATION, error)),
            Err(late) => Err(PortError::unavailable(OPERATION, late)),
        }
    }
}
