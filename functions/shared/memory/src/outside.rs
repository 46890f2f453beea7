//! The clock, randomness, the event bus and the reply channels.

use domain::message::CloudEvent;
use domain::ports::{Environment, Events, PortError};
use domain::time::Timestamp;

use super::Memory;

/// The order names a reply channel that is not registered.
#[derive(Debug, thiserror::Error)]
#[error("no reply channel is registered under the name {0:?}")]
struct UnknownChannel(String);

impl Environment for Memory {
    fn now(&self) -> Timestamp {
        self.state().now
    }

    fn wall(&self) -> Timestamp {
        let state = self.state();
        state.now.plus_ms(state.jump_ms)
    }

    async fn sleep(&self, ms: u64) {
        let until = self.now().plus_ms(ms);
        self.until(|state| (state.now >= until).then_some(())).await;
    }

    /// SplitMix64.
    fn random(&self) -> u64 {
        let mut state = self.state();
        state.random = state.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = state.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }
}

impl Events for Memory {
    async fn publish(&self, event: CloudEvent) -> Result<(), PortError> {
        self.work("events.publish", |state| state.published.push(event))
    }

    async fn notify(&self, channel: &str, event: CloudEvent) -> Result<(), PortError> {
        const OPERATION: &str = "events.notify";
        self.work(OPERATION, |state| {
            if !state.channels.contains(channel) {
                return Err(PortError::refused(OPERATION, UnknownChannel(channel.to_owned())));
            }
            state.notified.push((channel.to_owned(), event));
            Ok(())
        })?
    }
}
