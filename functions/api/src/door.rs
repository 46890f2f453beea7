//! What the door was told by its deployment.

use std::collections::BTreeSet;
use std::sync::Arc;

/// The door's configuration; it does not change while the process runs.
#[derive(Debug, Clone, Default)]
pub struct Door {
    /// Names that an order may give as its `ReplyChannel` (rule 10).
    reply_channels: BTreeSet<Arc<str>>,
}

impl Door {
    /// A door that knows these reply channels by name.
    #[must_use]
    pub fn new<Name: Into<Arc<str>>>(reply_channels: impl IntoIterator<Item = Name>) -> Self {
        Self { reply_channels: reply_channels.into_iter().map(Into::into).collect() }
    }

    /// Whether a reply channel of this name is registered.
    #[must_use]
    pub fn knows(&self, reply_channel: &str) -> bool {
        self.reply_channels.contains(reply_channel)
    }
}
